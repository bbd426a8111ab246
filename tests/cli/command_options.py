# SPDX-License-Identifier: MIT
"""The options of a command, as getopt, its list, its help and its manual page have them.

An option is (letter or None, name, what its value is called or None).
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
    """{"-p" or "--pid": whether a value follows}, as the command gives them to getopt_long(), without
    former spellings."""
    done = run([command], env=dict(os.environ, LD_PRELOAD=spy))
    if done.returncode != 0 or not done.stdout:
        raise RuntimeError("%s gives no options: %s" % (command, done.stderr))
    given = {line.split()[0]: line.split()[1] == "value" for line in done.stdout.splitlines()}
    former = old(command)
    if not former <= set(given):
        raise RuntimeError("%s lists %s as former spellings and does not take them" % (command, former - set(given)))
    return {option: value for option, value in given.items() if option not in former}


def old(command):
    """Former spellings that the command still takes."""
    found = set()
    for line in run([command, "--list-options"]).stdout.splitlines():
        kind, *fields = line.split("\t")
        if kind == "old":
            found |= {"-" + fields[0]} if fields[0] != "-" else set()
            found |= {"--" + fields[1]} if fields[1] != "-" else set()
    return found


def entry(text):
    found = ENTRY.match(text)
    return found and (found[1], found[2], found[3])


def listed(command):
    """The options that completions read, as table() has them, and the words of each."""
    options, words = {}, {}
    for line in run([command, "--list-options"]).stdout.splitlines():
        kind, *fields = line.split("\t")
        if kind == "option":
            letter, name, value = fields[:3]
            options["--" + name] = value != "nothing"
            if letter != "-":
                options["-" + letter] = value != "nothing"
        elif kind == "word":
            words.setdefault(name, set()).add(fields[0])
    return options, words


def help_text(command):
    done = run([command, "--help"])
    if done.returncode != 0:
        raise RuntimeError("%s --help exits with %d" % (command, done.returncode))
    return done.stdout


def help_usage(command):
    """How the command is called, a line each."""
    name = os.path.basename(command)
    return re.findall(r"^(?:Usage: | {7})(%s .*)$" % name, help_text(command), re.M)


def help_entries(command):
    return [entry(line) for line in help_text(command).splitlines()
            if re.match(r"  -\w, --| {6}--", line)]


# The same in mdoc(7): ".It Fl f Ar format , Fl -format Ns = Ns Ar format".
MDOC_ENTRY = re.compile(r"\.It (?:Fl (\w) (?:Ar \w+ )?, )?Fl -([a-z-]+)(?: Ns = Ns Ar (\w+))?$")


def mdoc_entry(line):
    found = MDOC_ENTRY.match(line)
    return found and (found[1], found[2], found[3] and found[3].upper())


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


def mdoc_words(line):
    """The text of a line of the synopsis."""
    text, words = "", iter(line[1:].split())
    for word in words:
        if word == "Ns":
            text = text.rstrip()
        elif word in ("Oo", "Oc"):
            text = text + "[" if word == "Oo" else text.rstrip() + "] "
        elif word == "Fl":
            text += "-" + next(words) + " "
        elif word == "Ar":
            text += next(words).upper() + " "
        else:
            text += word + " "
    return text.replace("=", " ")


def man_words(line):
    """The same in man(7)."""
    macro, *words = shlex.split(re.sub(r"\\f.", "", line).replace("\\-", "-"))
    return (" " if macro in (".B", ".I") else "").join(words)


def page_usage(page):
    """How the command is called by the synopsis of its page."""
    with open(page, encoding="utf-8") as file:
        text = re.search(r"\n\.S[Hh] SYNOPSIS\n(.*?)\n\.S[Hh]", file.read(), re.S)[1]
    if ".Nm" in text:
        name = os.path.splitext(os.path.basename(page))[0]
        return [" ".join([name, *map(str.strip, map(mdoc_words, part.strip().splitlines()))])
                for part in text.split(".Nm\n")[1:]]
    return [" ".join(map(man_words, part.splitlines())) for part in text.split("\n.br\n")]


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
    words = set(re.findall(r"(?<![\w,-])[a-z][a-z_-]*(?:,[a-z]+)*(?![\w-])", help_of(command, option)))
    return {word for word in words if accepts(command, option, word)}
