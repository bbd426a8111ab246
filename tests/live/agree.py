#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One recording in all formats: each function has the same share in all of them, as the readers that
people use have it.

Usage: agree.py --files                   the names of the files, for ljrecord's --output
       agree.py LJREPORT FOLDER WHO       compare them; prints RESULT lines
"""
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree
from collections import defaultdict

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "browser"))
import chromium  # noqa: E402
import forms  # noqa: E402

# Functions with less are left out: percent of all samples.
LEAST = 1.0
LJREPORT = "ljreport"


class Missing(Exception):
    """A reader is not installed."""


def run(*command):
    if not shutil.which(command[0]):
        raise Missing("no " + os.path.basename(command[0]))
    environment = dict(os.environ, HOME=os.getcwd(), PPROF_TMPDIR=os.getcwd(), GOTOOLCHAIN="local")
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env=environment, check=True).stdout


# ---- Extractors: path -> rows of (function, self, total), in any unit --------------------------

def from_chains(chains):
    """Rows of (chain, count), each chain from its root. A function counts once in a chain."""
    rows = defaultdict(lambda: [0, 0])
    for chain, count in chains:
        rows[chain[-1]][0] += count
        for function in set(chain):
            rows[function][1] += count
    return [(function, *row) for function, row in rows.items()]


def folded_chains(text):
    for line in text.splitlines():
        chain, count = line.rsplit(" ", 1)
        yield chain.split(";"), int(count)


def stream(path, native="all"):
    return [(f["function"], f["self"], f["total"])
            for f in json.loads(run(LJREPORT, "-f", "json", "--native=" + native, path))["functions"]]


def packed_stream(path):
    return from_chains(folded_chains(run(LJREPORT, "-f", "folded", "--lines", "function", path)))


def folded(path):
    with open(path, encoding="utf-8") as file:
        return from_chains(folded_chains(file.read()))


def pprof(path):
    lines = run("go", "tool", "pprof", "-symbolize=none", "-sample_index=samples", "-nodecount=100000",
                "-nodefraction=0", "-edgefraction=0", "-top", path).splitlines()
    head = next(i for i, line in enumerate(lines) if line.split()[:2] == ["flat", "flat%"])
    for line in lines[head + 1:]:
        own, _, _, total, _, function = line.split(None, 5)
        yield function, int(own), int(total)


def callgrind_name(text):
    """FILE:FUNCTION [OBJECT], where the file may have colons, too, and the object be [vdso]."""
    text = re.sub(r" \[(\[[^]]*\]|[^]]*)\]$", "", text)
    for colon in (i for i, char in enumerate(text) if char == ":"):
        file, function = text[:colon], text[colon + 1:]
        if file == "???" or re.search(r" \(@?%s:\d+\)$" % re.escape(file), function):
            return function
    return text.split(":", 1)[1]


def callgrind_column(path, *options):
    column = defaultdict(int)
    shown = False
    for line in run("callgrind_annotate", "--threshold=100", "--auto=no", *options, path).splitlines():
        shown = shown or "file:function" in line
        row = re.match(r" *([0-9,]+) +\([^)]*\) +[0-9,]+ +\([^)]*\) +(.*)", line)
        if shown and row:
            column[callgrind_name(row[2])] += int(row[1].replace(",", ""))
    return column


def callgrind(path):
    own = callgrind_column(path)
    for function, total in callgrind_column(path, "--inclusive=yes").items():
        yield function, own.get(function, 0), total


def svg(path):
    """The frames as they are drawn: where each begins, how wide it is, what it stands on."""
    space = "{http://www.w3.org/2000/svg}"
    rows = defaultdict(lambda: [0, 0])
    nodes = [(int(group.get("data-s")), int(group.get("data-d")), int(group.get("data-c")),
              group.find(space + "title").text.split("\n")[0])
             for group in xml.etree.ElementTree.parse(path).iter(space + "g") if group.get("class") == "f"]
    below = []  # of the frame: end, function
    for start, depth, count, function in sorted(nodes):
        del below[depth:]
        if depth > 0:
            rows[function][0] += count
            if depth > 1:
                rows[below[-1]][0] -= count
            if function not in below[1:]:
                rows[function][1] += count
        below.append(function)
    return [(function, *row) for function, row in rows.items()]


def html_data(path):
    with open(path, encoding="utf-8") as file:
        return json.loads(re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>',
                                    file.read(), re.S)[1])


def html(path):
    """The data of the page: functions, and chains that share their begin with the one before."""
    data = html_data(path)
    numbers, chains, chain = iter(data["chains"]), [], []
    for shared in numbers:
        chain = chain[:shared] + [next(numbers) for _ in range(next(numbers))]
        chains.append(([data["functions"][i][0] for i in chain], next(numbers)))
    return from_chains(chains)


def devtools(path):
    if not chromium.find():
        raise Missing("no chromium")
    with chromium.start() as browser:
        return forms.devtools(browser, path)[0]


def perf_name(function):
    """Readers cut off offsets and round brackets, so these stand there in another way."""
    return re.sub(r"\+(0x[0-9a-f]+)$", r"@\1", function).replace("(", "[").replace(")", "]")


# A format: name of its file, what reads it, and by how many percent of all samples a share may
# differ. A further one is one more row; the first is what the others are compared with.
FORMATS = (
    ("out.bin", stream, 0),
    ("out.bin.gz", packed_stream, 0),
    ("out.folded", folded, 0),
    ("out.pb.gz", pprof, 0),
    ("out.callgrind", callgrind, 0),
    # Frames that are too narrow are not drawn.
    ("out.svg", svg, 0.5),
    ("out.html", html, 0),
    ("out.speedscope.json", forms.speedscope_file, 0),
    # DevTools counts microseconds.
    ("out.cpuprofile", devtools, 0.01),
    # A call ends a nanosecond early.
    ("out.trace.json", forms.trace_events, 0.001),
    ("out.firefox.json", forms.firefox, 0),
    ("out.perf", forms.perf, 0),
)


# ---- How the recording went: path -> lines -----------------------------------------------------

def go_comments(path):
    return run("go", "tool", "pprof", "-comments", path).splitlines()


def callgrind_comments(path):
    with open(path, encoding="utf-8") as file:
        return [line[len("desc: "):].rstrip("\n") for line in file if line.startswith("desc: ")]


def svg_comments(path):
    root = xml.etree.ElementTree.parse(path).getroot()
    return root.find("{http://www.w3.org/2000/svg}desc").text.splitlines()


def trace_comments(path):
    return forms.load(path)["otherData"]["comments"]


def firefox_comments(path):
    section, = forms.load(path)["meta"]["extra"]
    return [entry["value"] for entry in section["entries"]]


COMMENTS = (
    ("out.callgrind", callgrind_comments),
    ("out.pb.gz", go_comments),
    ("out.svg", svg_comments),
    ("out.html", lambda path: html_data(path)["comments"]),
    ("out.trace.json", trace_comments),
    ("out.firefox.json", firefox_comments),
)


def compare_comments(who):
    first = None
    failed = False
    for name, read in COMMENTS:
        what = "%s: how the recording went, in %s" % (who, name)
        asked = "lines of samples and ticks, as in %s" % COMMENTS[0][0]
        try:
            lines = read(name)
        except Missing as missing:
            print("RESULT\t%s\t%s\t%s\tskipped" % (what, asked, missing))
            continue
        first = first or lines
        told = {line.split()[1] for line in lines if line.startswith("ljprof: ")}
        good = lines == first and {"samples", "ticks"} <= told
        failed |= not good
        print("RESULT\t%s\t%s\t%d lines\t%s" % (what, asked, len(lines), "ok" if good else "FAILED"))
    return failed


# What people look at shows the program's native code alone.
VIEWS = ("out.svg", "out.html", "out.speedscope.json", "out.cpuprofile", "out.trace.json", "out.firefox.json")


# ---- Comparison ------------------------------------------------------------------------------

def shares(rows):
    """Percent of all samples by function. Line 0 of a function is that it has none."""
    sums = defaultdict(lambda: [0, 0])
    for function, own, total in rows:
        row = sums[re.sub(r":0([)\]])$", r"\1", function)]
        row[0] += own
        row[1] += total
    everything = sum(own for own, _ in sums.values()) / 100
    return {function: (own / everything, total / everything) for function, (own, total) in sums.items()}


def difference(one, other):
    """The largest one, and whose, of functions that matter in either."""
    found = [(0.0, "none")]
    for function in set(one) | set(other):
        left, right = one.get(function, (0, 0)), other.get(function, (0, 0))
        if max(*left, *right) >= LEAST:
            found += [(abs(a - b), function) for a, b in zip(left, right)]
    return max(found)


def main():
    global LJREPORT
    if sys.argv[1:] == ["--files"]:
        print("\n".join(name for name, _, _ in FORMATS))
        return 0
    LJREPORT = os.path.abspath(sys.argv[1])
    os.chdir(sys.argv[2])
    failed = 0
    whole, viewed = (shares(stream(FORMATS[0][0], native)) for native in ("all", "program"))
    for name, read, slack in FORMATS[1:]:
        reference = viewed if name in VIEWS else whole
        matter = sum(1 for row in reference.values() if max(row) >= LEAST)
        what = "%s: functions in %s as in %s" % (sys.argv[3], name, FORMATS[0][0])
        asked = "each of %d by %s %% at most" % (matter, slack)
        try:
            named = reference
            if read == forms.perf:
                named = {perf_name(function): row for function, row in reference.items()}
            most, whose = difference(named, shares(read(name)))
        except Missing as missing:
            print("RESULT\t%s\t%s\t%s\tskipped" % (what, asked, missing))
            continue
        good = most <= slack + 1e-9 and matter > 0
        failed |= not good
        print("RESULT\t%s\t%s\t%.3f %%%s\t%s" % (what, asked, most, "" if good else " of " + whose,
                                                "ok" if good else "FAILED"))
    return failed | compare_comments(sys.argv[3])


sys.exit(main())
