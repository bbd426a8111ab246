#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What ljdump --json shows of stacks, in lines for a shell to compare.

Usage: stacks_check.py frames FILE... THREAD Lua's frames of one thread, leaf first: a line for each file
       stacks_check.py threads FILE          one line for each thread
THREAD is a thread's name, or "" for the first one.
"""
import json
import sys


def shown(frame):
    if frame["kind"] == "lua":
        name = "main" if frame["first_line"] == 0 else frame["name"] or "@%d" % frame["first_line"]
        compiled = "j" if "trace" in frame else ""
        return "%s:%d%s" % (name, frame["line"], compiled)
    return {"built-in": "%s", "c": "C:%s", "pseudo": "%s"}[frame["kind"]] % frame["name"]


def load(name):
    with open(name, encoding="utf-8") as file:
        return json.load(file)["processes"][0]


def print_frames(process, name):
    threads = [t for t in process["threads"] if name in ("", t["name"])]
    frames = threads[0]["frames"]
    names = [shown(f) for f in frames if f["kind"] not in ("native", "luajit")]
    if len(names) > 1 and names[-2].startswith("main:"):
        names.pop() # what called the main chunk, in the interpreter's own program
    print(threads[0]["outcome"], *names)


def main():
    if sys.argv[1] == "threads":
        process = load(sys.argv[2])
        for thread in process["threads"]:
            print(ascii(thread["name"]), thread["doing"], thread.get("syscall_name", "-"), thread["outcome"])
        print("others", process["threads_without_lua"], "vms", len(process["vms"]))
        return
    for name in sys.argv[2:-1]:
        print_frames(load(name), sys.argv[-1])


main()
