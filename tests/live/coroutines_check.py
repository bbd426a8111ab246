# SPDX-License-Identifier: MIT
"""Compare a dump of coroutines with the program's own record.

Usage: coroutines_check.py RECORD DUMP [--part]
  --part  others come and go, and what runs is none of the record
Prints: coroutines in the record, those that are missing, wrong, unknown to the record; 1 if partial.
"""
import json
import sys

SHOWN = 5


def read_record(path):
    known, main = {}, None
    for line in open(path, encoding="utf-8"):
        address, status, is_main, started, frames = line.rstrip("\n").split("\t")
        item = (status, is_main == "1", started == "1", frames.split(";") if frames else [])
        if address == "-":
            main = item
        else:
            known[int(address, 16)] = item
    return known, main


def frame_of(frame):
    if frame["kind"] != "lua":
        return "C" if frame["kind"] in ("c", "built-in") else frame["kind"]
    chunk = frame["chunk"]
    # The program knows no line where the VM does not.
    return "%s:%d:%d" % (chunk[1:], frame["line"] or -1, frame["first_line"])


def item_of(coroutine):
    return (coroutine["status"], coroutine["main"], coroutine["started"],
            [frame_of(frame) for frame in coroutine["frames"]])


def main():
    known, main_item = read_record(sys.argv[1])
    part = "--part" in sys.argv
    process = json.load(open(sys.argv[2], encoding="utf-8"))["processes"][0]
    (vm,) = process["vms"]
    missing, wrong, unknown = dict(known), [], 0
    for coroutine in vm["coroutines"]:
        address = int(coroutine["address"], 16)
        want = main_item if coroutine["main"] else missing.pop(address, None)
        if want is None:
            unknown += 1
        elif part and want[0] != "suspended" and want[0] != "dead":
            continue
        elif item_of(coroutine) != want or coroutine["outcome"] != "full":
            wrong.append((coroutine["address"], coroutine["outcome"], item_of(coroutine), want))
    for item in wrong[:SHOWN]:
        print("wrong:", item, file=sys.stderr)
    for address in list(missing)[:SHOWN]:
        print("missing:", hex(address), missing[address], file=sys.stderr)
    print(len(known) + 1, len(missing), len(wrong), unknown, int(process["partial"]))


main()
