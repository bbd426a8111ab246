#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each option that a command takes is in its help and in its manual page, and no other.

Usage: options_test.py SPY COMMAND PAGE
"""
import sys

sys.dont_write_bytecode = True
import command_options  # noqa: E402

failed = 0


def compare(what, entries, table):
    global failed
    names = {}
    for letter, name, has_value in entries:
        names["--" + name] = has_value
        if letter:
            names["-" + letter] = has_value
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
    if {entry[:2] for entry in shown} != {entry[:2] for entry in described}:
        print("FAILED: other letters in the help than in the page:", set(shown) ^ set(described))
        failed = 1
    print("%d options" % len(shown))
    sys.exit(failed)


main()
