# SPDX-License-Identifier: MIT
"""The options of a command, as its own table, its help and its manual page have them.

An option is (letter or None, name, whether a value follows).
"""
import functools
import os
import re
import shlex
import subprocess

# Letters, name and value of an entry: "-p, --pid PID[,PID]...", "--format=FORMAT".
ENTRY = re.compile(r"^ *(?:-(\w), )?--([a-z][a-z-]*)(?:[ =]([A-Z]\S*))?")


def run(command, **more):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, **more)


def table(command, spy):
    """{"-p" or "--pid": whether a value follows}, as the command gives them to getopt_long()."""
    done = run([command], env=dict(os.environ, LD_PRELOAD=spy))
    if done.returncode != 0 or not done.stdout:
        raise RuntimeError("%s gives no options: %s" % (command, done.stderr))
    return {line.split()[0]: line.split()[1] == "value" for line in done.stdout.splitlines()}


def entry(text):
    found = ENTRY.match(text)
    return found and (found[1], found[2], found[3] is not None)


def help_text(command):
    done = run([command, "--help"])
    if done.returncode != 0:
        raise RuntimeError("%s --help exits with %d" % (command, done.returncode))
    return done.stdout


def help_entries(command):
    return [entry(line) for line in help_text(command).splitlines()
            if re.match(r"  -\w, --| {6}--", line)]


# The same in mdoc(7): ".It Fl f Ar format , Fl -format Ns = Ns Ar format".
MDOC_ENTRY = re.compile(r"\.It (?:Fl (\w) (?:Ar \w+ )?, )?Fl -([a-z-]+)(?: Ns = Ns Ar (\w+))?$")


def mdoc_entry(line):
    found = MDOC_ENTRY.match(line)
    return found and (found[1], found[2], found[3] is not None)


def man_entry(line):
    """In man(7): the macro changes the font from word to word, or takes one text."""
    words = shlex.split(re.sub(r"\\f.", "", line).replace("\\-", "-"))
    return entry((" " if words[0] == ".B" else "").join(words[1:]))


def page_entries(page):
    with open(page, encoding="utf-8") as file:
        lines = file.read().splitlines()
    entries = [mdoc_entry(line) for line in lines]
    entries += [man_entry(after) for line, after in zip(lines, lines[1:])
                if line == ".TP" and "\\-\\-" in after]
    return [found for found in entries if found]


def help_of(command, option):
    """The help but for what it says of other options: the last one has what follows all of them."""
    first, *entries, last = re.split(r"\n(?=  -\w, --| {6}--)", help_text(command))
    return "\n".join([first, *(text for text in entries if "--" + option in text.splitlines()[0]), last])


def accepts(command, option, value):
    """Whether the option takes it; --help ends the command before it does anything."""
    return run([command, "--" + option, value, "--help"]).returncode == 0


@functools.lru_cache(maxsize=None)
def choices(command, option):
    """The words of the help that the option takes, if it takes some words only."""
    if any(accepts(command, option, value) for value in ("no such word", "100", "1")):
        return set()
    words = set(re.findall(r"(?<![\w-])[a-z][a-z_-]*(?![\w-])", help_of(command, option)))
    return {word for word in words if accepts(command, option, word)}
