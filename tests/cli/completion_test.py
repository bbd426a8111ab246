#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a shell completes for each command: its options and the words that they take, and no others.

Usage: completion_test.py bash|zsh BUILD SPY COMMAND...

The shell runs on a terminal of its own, with the files as they are installed. There a key completes
all that fits what has been typed; a function of the command's name writes what it then is given.
"""
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import command_options  # noqa: E402

PATIENCE_S = 60
# A process of this name runs when processes are completed.
HOSTILE = "$(touch pwned)"
DONE = "\x1fdone\n"

# Writes its arguments, one a line, and what says that these are all.
GIVEN = """
given() { printf '%s\\n' "$@" >>"$OUT"; printf '\\037done\\n' >>"$OUT"; }
ljrecord() { given "$@"; }; ljreport() { given "$@"; }
ljtop() { given "$@"; }; ljdump() { given "$@"; }
"""
BASH = GIVEN + """
PS1=
bind 'set bell-style none'
bind '"\\C-t": insert-completions'
"""
PACKAGE = "/usr/share/bash-completion/bash_completion"
ZSH = GIVEN + """
PS1=
unsetopt beep
fpath=($SITE $fpath)
autoload -Uz compinit
compinit -u -D
all-and-accept() { zle all-matches; zle accept-line; }
zle -C all-matches complete-word _generic
zle -N all-and-accept
bindkey '^T' all-and-accept
zstyle ':completion:*' completer _all_matches _complete
zstyle ':completion:*' insert yes
zstyle ':completion:*' insert-tab false
"""

failed = 0


class Shell:
    """An interactive shell on a terminal."""

    def __init__(self, command, setup, work, **variables):
        self.out = os.path.join(work, "out")
        with open(os.path.join(work, "setup"), "w", encoding="utf-8") as file:
            file.write(setup)
        open(self.out, "w", encoding="utf-8").close()
        environment = dict(os.environ, OUT=self.out, TERM="xterm", HOME=work, LC_ALL="C",
                           **variables)
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(os.path.join(work, "files"))
            os.execvpe(command[0], command, environment)
        self.ask(" . ../setup; given\n")

    def ask(self, keys):
        """What the command is given that the keys run."""
        os.truncate(self.out, 0)
        os.write(self.terminal, keys.encode())
        end, shown = time.monotonic() + PATIENCE_S, b""
        while time.monotonic() < end:
            if select.select([self.terminal], [], [], 0.01)[0]:
                shown += os.read(self.terminal, 65536)
            with open(self.out, encoding="utf-8") as file:
                text = file.read()
            if text.endswith(DONE):
                return text[:-len(DONE)].splitlines()
        raise RuntimeError("no answer to %r; on the terminal: %r" % (keys, shown[-500:]))

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class Bash(Shell):
    def __init__(self, work, installed, package):
        setup = BASH
        if package:
            setup += ". %s\n" % PACKAGE
        else:
            setup += ". %s/bash-completion/completions/ljtop\n" % installed
            # Nor does it depend on what else the user has set.
            setup += "set -u\nIFS=$'\\n'\n"
        super().__init__(["bash", "--norc", "--noprofile", "-i"], setup, work,
                         XDG_DATA_HOME="/nonexistent", XDG_DATA_DIRS=installed + ":/usr/share")

    def complete(self, line):
        return self.ask(line + "\x14\n")


class Zsh(Shell):
    def __init__(self, work, installed):
        super().__init__(["zsh", "-f", "-i"], ZSH, work, SITE=installed + "/zsh/site-functions")

    def complete(self, line):
        return self.ask(line + "\x14")


def expect(what, got, wanted):
    global failed
    if set(got) != set(wanted):
        print("FAILED: %s: missing %s, unexpected %s" % (
            what, sorted(set(wanted) - set(got)), sorted(set(got) - set(wanted))))
        failed = 1


def check_command(shell, command, spy):
    """All its options, and all words of those that take some only."""
    name = os.path.basename(command)
    table = command_options.table(command, spy)
    # zsh leaves a = behind a name that has a value.
    offered = {word.rstrip("=") for word in shell.complete(name + " -")}
    offered |= {word.rstrip("=") for word in shell.complete(name + " --")}
    # What was typed may stay: it could begin a command.
    expect(name + " -", offered - {"-"}, table)
    for option, has_value in table.items():
        if not has_value or not option.startswith("--"):
            continue
        words = command_options.choices(command, option[2:])
        if not words:
            continue
        expect("%s %s" % (name, option), shell.complete("%s %s " % (name, option))[1:], words)
        # One that is the only one to begin so: of several, bash repeats the option before the first.
        word = next(word for word in sorted(words)
                    if sum(other.startswith(word[:-1]) for other in words) == 1)
        expect("%s %s=" % (name, option), shell.complete("%s %s=%s" % (name, option, word[:-1])),
               [option + "=" + word])


def check_values(shell, work):
    """File names, folders, processes and commands where they are meant."""
    pid = str(os.getpid())
    all_files = ["a b.bin", "folder/", "other.bin"]
    for name, option in (("ljrecord", "-o"), ("ljrecord", "--stats"), ("ljreport", "--output"),
                         ("ljdump", "--core"), ("ljdump", "--stats")):
        expect(name + " " + option, [word.rstrip("/") for word in
                                     shell.complete("%s %s " % (name, option))[1:]],
               [word.rstrip("/") for word in all_files])
    for line in ("ljrecord --save-images ", "ljdump --sysroot "):
        expect(line, [word.rstrip("/") for word in shell.complete(line)[1:]], ["folder"])
    expect("ljreport", shell.complete("ljreport oth"), ["other.bin"])
    expect("ljreport, behind options", shell.complete("ljreport -f top a"), ["-f", "top", "a b.bin"])
    for name in ("ljrecord", "ljtop", "ljdump"):
        for option in ("-p ", "--pid "):
            got = shell.complete("%s %s" % (name, option))[1:]
            expect("%s %s: own pid" % (name, option), {pid} & set(got), {pid})
            expect("%s %s: numbers only" % (name, option),
                   [word for word in got if not word.isdigit()], [])
        got = shell.complete("%s --pid 1,%s" % (name, pid[:-1]))[1:]
        expect(name + " --pid 1,", {"1," + pid} & {word.rstrip(",") for word in got}, {"1," + pid})
    # Processes as operands.
    for name in ("ljtop", "ljdump"):
        got = shell.complete("%s %s" % (name, pid[:-1]))
        expect(name + " PID", {pid} & {word.rstrip(",") for word in got}, {pid})
    hostile = subprocess.Popen([os.path.join("bin", HOSTILE), "600"], cwd=work)
    try:
        shell.complete("ljtop pwn")
        shell.complete("ljtop ")
        expect("a process named as a command", [os.path.exists(os.path.join(work, "files", "pwned"))], [False])
    finally:
        hostile.kill()
        hostile.wait()
    for line in ("ljrecord -d 1 -- ", "ljrecord --frequency 10 ", "ljrecord -qo x "):
        given = line.split()[1:]
        expect(line, shell.complete(line + "ljprof-comm"), given + ["ljprof-command"])
        expect(line + "COMMAND", shell.complete(line + "ljprof-command oth"),
               given + ["ljprof-command", "other.bin"])


def check_bash(shell):
    """What getopt takes, too."""
    expect("ljrecord --mod", shell.complete("ljrecord --mod l"), ["--mod", "leaf"])
    expect("ljtop -bF 9", shell.complete("ljtop -bF 9 --vie"), ["-bF", "9", "--view"])
    expect("ljrecord -m", shell.complete("ljrecord -qm l"), ["-qm", "leaf"])


def check_zsh(shell):
    """What excludes each other is not offered together, and nothing twice but what may be repeated."""
    for line, offered, left_out in (
            ("ljtop --json ", {"--pid"}, {"--json", "--batch", "-b"}),
            ("ljtop -b ", {"--pid"}, {"--json", "--batch"}),
            ("ljdump -p 1 ", {"--pid", "--traces"}, {"--core", "--sysroot"}),
            ("ljdump --traces ", {"--json"}, {"--traces", "--locals", "--depth", "-a"}),
            ("ljrecord -d 1 -o x ", {"--output", "--help"}, {"--duration"}),
            ("ljrecord --help ", set(), {"--pid", "--help", "-d"})):
        got = {word.rstrip("=") for key in ("-", "--") for word in shell.complete(line + key)}
        expect(line, got & offered, offered)
        expect(line, (got - set(line.split())) & left_out, set())


def check(shell, commands, spy, work):
    try:
        for command in commands:
            check_command(shell, command, spy)
        check_values(shell, work)
        if isinstance(shell, Bash):
            check_bash(shell)
        else:
            check_zsh(shell)
    finally:
        shell.end()


def main():
    kind, build, spy, *commands = sys.argv[1:]
    if not shutil.which(kind):
        print("skipped: %s is not installed" % kind)
        sys.exit(77)
    with tempfile.TemporaryDirectory() as work:
        for name in ("files/folder", "bin"):
            os.makedirs(os.path.join(work, name))
        for name in ("a b.bin", "other.bin"):
            open(os.path.join(work, "files", name), "w", encoding="utf-8").close()
        with open(os.path.join(work, "bin", "ljprof-command"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n")
        os.chmod(file.name, 0o755)
        shutil.copy(shutil.which("sleep"), os.path.join(work, "bin", HOSTILE))
        os.environ["PATH"] = ":".join([os.path.join(work, "bin"), os.path.dirname(commands[0]),
                                       os.environ["PATH"]])
        subprocess.run(["cmake", "--install", os.path.join(build, "cli", "completion"), "--prefix",
                        os.path.join(work, "usr")], check=True, stdout=subprocess.DEVNULL)
        installed = os.path.join(work, "usr", "share")
        if kind == "zsh":
            check(Zsh(work, installed), commands, spy, work)
        else:
            check(Bash(work, installed, False), commands, spy, work)
            if os.path.exists(PACKAGE):
                check(Bash(work, installed, True), commands, spy, work)
            else:
                print("left out: bash-completion is not installed")
    sys.exit(failed)


main()
