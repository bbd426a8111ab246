#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Build LuaJIT from Debian's source package in ways that no row of layouts.table has, and see what ljprof
makes of each: with options that people use, and changed as versions to come might be (mutate.py).

Usage: builds.py BUILD [--changed N] [--only NAME] [--table FILE]

BUILD is the folder of the build of ljprof. N changed builds (default 40). For each build the layout that
is found in a stripped program is compared with that by the debug information of the same program that is
not stripped, in three states: with traces, with the compiler off, and waiting. Then it is sampled. Prints a
line for each; the last one sums up. A value that is wrong fails it, and so do more than 5 % that are not
right.
"""
import argparse
import json
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
LIVE = os.path.join(HERE, "..", "live")
OPTIONS = [
    ("default", []),
    ("without GC64", ["XCFLAGS=-DLUAJIT_DISABLE_GC64"]),
    ("without the compiler", ["XCFLAGS=-DLUAJIT_DISABLE_JIT"]),
    ("without the FFI", ["XCFLAGS=-DLUAJIT_DISABLE_FFI"]),
    ("without the profiler", ["XCFLAGS=-DLUAJIT_DISABLE_PROFILE"]),
    ("GDB's interface", ["XCFLAGS=-DLUAJIT_USE_GDBJIT"]),
    ("-O3", ["CCOPT=-O3 -fomit-frame-pointer"]),
    ("LTO", ["CCOPT=-O2 -flto -fomit-frame-pointer"]),
    ("clang", ["CC=clang"]),
    ("Lua 5.2's rules", ["XCFLAGS=-DLUAJIT_ENABLE_LUA52COMPAT"]),
]
STATES = ("traces", "compiler off", "waiting")
# Members that a program without traces does not show. What a known row says of them is compared with the first
# traces before it is used.
OF_COMPILER = ("jit_State.", "GCtrace.", "SnapShot.", "HotPenalty.", "global_State.to_J")
# What ljtop shows and no walk reads. Nothing in the code or in a VM at rest tells this setting from other small
# numbers, so a build that moves it alone passes as a known row. Such a build is not right, but it is walked rightly.
SETTINGS = ("global_State.gc_stepmul",)
OPCODE_UNKNOWN = 255
GUESSED = 1  # of enum derive_source: what a program has not shown yet; it is looked for again
SHARE_TOLERANCE = 2.0  # points; 8,000 samples and more have less by chance
FULL_LEAST = 99.5


def get_source(suite, folder):
    """Unpack the source package luajit of a suite of Debian; apt's own state is left alone."""
    targets = subprocess.run(["apt-get", "indextargets", "--format", "$(SITE) $(ORIGIN)", "Created-By: Packages"],
                             check=True, capture_output=True, text=True).stdout
    sites = [line.split()[0] for line in targets.splitlines() if line.endswith(" Debian") and "security" not in line]
    if not sites:
        sys.exit("apt has no archive of Debian in its sources, or no lists yet: apt-get update")
    state = os.path.join(folder, "apt")
    for part in ("lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(state, part))
    with open(os.path.join(state, "list"), "w", encoding="utf-8") as file:
        file.write(f"deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {sites[0]} {suite} main\n")
    apt = ["apt-get", "-q", f"-oDir::State::Lists={state}/lists", f"-oDir::Etc::SourceList={state}/list",
           "-oDir::Etc::SourceParts=/dev/null", f"-oDir::Cache={state}/cache", "-oDir::State::status=/dev/null",
           "-oAPT::Sandbox::User=root"]
    for command in (["update"], ["source", "luajit"]):
        subprocess.run(apt + command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return next(os.path.join(folder, name) for name in os.listdir(folder) if name.startswith("luajit-"))


def make(source, folder, flags, seed):
    """@return the change, or None where it does not build or run: then it is no build at all."""
    shutil.copytree(source, folder)
    src = os.path.join(folder, "src")
    change = ""
    if seed is not None:
        change = subprocess.run([sys.executable, os.path.join(HERE, "mutate.py"), src, str(seed)], check=True,
                                capture_output=True, text=True).stdout.strip().replace("\n", "; ")
    built = subprocess.run(["make", "-s", f"-j{os.cpu_count()}", "-C", src, "CCDEBUG=-g", "BUILDMODE=static"] + flags +
                           ["luajit", "jit/vmdef.lua"], capture_output=True, text=True)
    program = os.path.join(src, "luajit")
    if built.returncode != 0:
        return None
    shutil.copy(program, program + ".debug")
    subprocess.run(["strip", program], check=True)
    test = subprocess.run([program, "-e", "local t = {} for i = 1, 1e6 do t[i % 100] = i .. 'x' end print('ok')"],
                          capture_output=True, text=True, timeout=60)
    return change if test.stdout == "ok\n" else None


class Program:
    """A running luajit, until the end of the block."""

    def __init__(self, binary, arguments):
        self.process = subprocess.Popen([binary] + arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        line = self.process.stdout.readline()
        assert line == "ready\n", line
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def arguments_of(state):
    loops = [os.path.join(HERE, "loops.lua"), "600"]
    if state == "waiting":
        return ["-e", "io.write('ready\\n') io.flush() io.read()"]
    return loops if state == "traces" else ["-joff"] + loops


def layout_of(build, binary, state):
    with Program(binary, arguments_of(state)) as program:
        time.sleep(0.5 if state == "traces" else 0)  # for as many traces as it will have
        got = subprocess.run([os.path.join(build, "tests/builds/layout"), str(program.process.pid)],
                             capture_output=True, text=True)
    lines = [line.split() for line in got.stdout.splitlines()]
    return (lines[0][0], {line[0]: int(line[1]) for line in lines[1:] if int(line[2]) != GUESSED}) if lines else (None, {})


def sample(build, binary, folder):
    """@return burn_heavy's share less what it is by the program's own clock, in points, and the full chains."""
    out, stats = os.path.join(folder, "out.bin"), os.path.join(folder, "stats.json")
    with Program(binary, [os.path.join(LIVE, "share.lua"), "600"]) as program:
        recorded = subprocess.run([os.path.join(build, "cli/ljrecord"), "-q", "-F", "1999", "-p",
                                   str(program.process.pid), "-d", "5", "-o", out, "--stats", stats],
                                  capture_output=True, text=True)
        if recorded.returncode != 0:
            return None, 0.0
        # It tells four times a second; the last that it told was at the recording's end.
        while True:
            line = program.process.stdout.readline().split()
            if line[0] == "TRUTH":
                truth = line
            if not select.select([program.process.stdout], [], [], 0)[0]:
                break
    folded = subprocess.run([os.path.join(build, "cli/ljreport"), "-f", "folded", out], capture_output=True, text=True,
                            check=True).stdout
    counts = {"burn_heavy": 0, "burn_light": 0}
    for line in folded.splitlines():
        for name in counts:
            if name in line:
                counts[name] += int(line.rsplit(" ", 1)[1])
    with open(stats, encoding="utf-8") as file:
        numbers = json.load(file)
    share = 100 * counts["burn_heavy"] / max(1, sum(counts.values()))
    outcomes = numbers["outcomes"]
    running = sum(outcomes[kind] for kind in ("full", "inconsistent", "truncated", "unwound"))
    return share - float(truth[1]), 100 * outcomes["full"] / max(1, running)


def opcodes_of(source):
    """What the build's own list of opcodes says, in the numbers of a source without added ones: those are unknown."""
    with open(os.path.join(source, "src/jit/vmdef.lua"), encoding="utf-8") as file:
        names = re.search(r'bcnames = "([^"]*)"', file.read()).group(1)
    return [names[i:i + 6].strip() for i in range(0, len(names), 6)]


def compare_opcodes(found, names, known):
    """@return those that are taken for another opcode."""
    wrong = []
    for number, name in enumerate(names[:names.index("FUNCF")]):
        value = found.get(f"opcode.{number}", number)
        if value != OPCODE_UNKNOWN and known[value:value + 1] != [name]:
            wrong.append(f"opcode {name} as {known[value] if value < len(known) else value}")
    return wrong


def judge(build, folder, known):
    """@return "right", "imprecise", "refused" or "wrong", and why."""
    binary = os.path.join(folder, "src/luajit")
    names = opcodes_of(folder)
    _, truth = layout_of(build, binary + ".debug", "compiler off")
    said, settings = [], []
    for state in STATES:
        how, found = layout_of(build, binary, state)
        if how is None:
            said.append((state, "refused"))
            continue
        wrong = [f"{name} {value}, not {truth[name]}" for name, value in found.items()
                 if value not in (-1, truth.get(name, value)) and not name.startswith("opcode.") and
                 not (how == "row" and state != "traces" and name.startswith(OF_COMPILER))]
        settings += [text for text in wrong if text.startswith(SETTINGS)]
        wrong = [text for text in wrong if not text.startswith(SETTINGS)]
        wrong += compare_opcodes(found, names, known)
        if wrong:
            return "wrong", f"{state}: {', '.join(wrong[:4])}"
    if any(state != "waiting" for state, _ in said):
        return "refused", ", ".join(state for state, _ in said)
    off, full = sample(build, binary, folder)
    if off is None:
        return "refused", "ljrecord"
    if abs(off) > SHARE_TOLERANCE or full < FULL_LEAST:
        return "wrong", f"share off by {off:.1f} points, {full:.1f} % full"
    if settings:
        return "imprecise", f"{settings[0]}; share off by {off:.1f} points, {full:.1f} % full"
    return "right", f"share off by {off:.1f} points, {full:.1f} % full" + (
        ", refused while it waits" if said else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--changed", type=int, default=40)
    parser.add_argument("--only")
    parser.add_argument("--table")
    options = parser.parse_args()
    counts = {"right": 0, "imprecise": 0, "refused": 0, "wrong": 0}
    with tempfile.TemporaryDirectory() as work:
        sources = []
        for suite in ("bookworm", "sid"):
            os.mkdir(os.path.join(work, suite))
            sources.append(get_source(suite, os.path.join(work, suite)))
        builds = [(name, sources[0], flags, None) for name, flags in OPTIONS]
        known = {}
        for source in sources:
            copy = shutil.copytree(source, os.path.join(work, "unchanged"))
            subprocess.run(["make", "-s", "-C", os.path.join(copy, "src"), "jit/vmdef.lua"], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            known[source] = opcodes_of(copy)
            shutil.rmtree(copy)
        seed = 0
        while len(builds) < len(OPTIONS) + options.changed:
            seed += 1
            flags = ["XCFLAGS=-DLUAJIT_DISABLE_GC64"] if seed % 5 == 0 else []
            builds.append((f"changed {seed}", sources[seed % 2], flags, seed))
        for name, source, flags, seed in builds:
            if options.only and options.only != name:
                continue
            folder = os.path.join(work, "build")
            change = make(source, folder, flags, seed)
            if change is None:
                print(f"{name}\tdoes not build or run\t-", flush=True)
            else:
                verdict, why = judge(options.build, folder, known[source])
                counts[verdict] += 1
                line = f"{name}\t{change or ' '.join(flags)}\t{verdict}: {why}"
                print(line, flush=True)
                if options.table:
                    with open(options.table, "a", encoding="utf-8") as file:
                        file.write(line + "\n")
            shutil.rmtree(folder)
    total = sum(counts.values())
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    sys.exit(0 if total and not counts["wrong"] and counts["right"] >= 0.95 * total else 1)


if __name__ == "__main__":
    main()
