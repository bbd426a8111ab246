#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each option that a command takes is in its help, in its list for completions and in its manual
page, and no other. Help and page call values and the command alike.

Usage: options_test.py SPY COMMAND PAGE
"""
import sys

sys.dont_write_bytecode = True
import command_options  # noqa: E402

failed = 0


def compare(what, entries, table):
    global failed
    names = {}
    for letter, name, value in entries:
        names["--" + name] = value is not None
        if letter:
            names["-" + letter] = value is not None
    compare_names(what, names, table)


def compare_names(what, names, table):
    global failed
    for option in sorted(set(names) | set(table)):
        if names.get(option) != table.get(option):
            print("FAILED: %s: %s is %s there and %s in the command" % (
                what, option, *({None: "missing", True: "with a value", False: "without a value"}[
                    where.get(option)] for where in (names, table))))
            failed = 1


def main():
    global failed
    spy, command, page = sys.argv[1:]
    table = command_options.table(command, spy)
    shown = command_options.help_entries(command)
    described = command_options.page_entries(page)
    compare("help", shown, table)
    compare("manual page", described, table)
    if set(shown) != set(described):
        print("FAILED: other letters or values in the help than in the page:",
              set(shown) ^ set(described))
        failed = 1
    compare_names("list", command_options.listed(command)[0], table)
    usage, synopsis = command_options.help_usage(command), command_options.page_usage(page)
    if not usage or usage != synopsis:
        print("FAILED: the help says %s, and the synopsis %s" % (usage, synopsis))
        failed = 1
    wide = [line for line in command_options.help_text(command).splitlines() if len(line) > 80]
    if wide:
        print("FAILED: lines of the help that a terminal breaks:", wide)
        failed = 1
    print("%d options" % len(shown))
    sys.exit(failed)


main()
