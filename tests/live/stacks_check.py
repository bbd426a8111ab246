#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What ljdump --json shows of stacks, in lines for a shell to compare.

Usage: stacks_check.py frames FILE THREAD    Lua's frames of one thread, leaf first
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
    if frame["kind"] == "builtin" and frame["name"].startswith("builtin#"):
        return "builtin" # a number of the build's own
    return {"builtin": "%s", "c": "C:%s", "pseudo": "%s"}[frame["kind"]] % frame["name"]


def main():
    with open(sys.argv[2], encoding="utf-8") as file:
        process = json.load(file)["processes"][0]
    if sys.argv[1] == "threads":
        for thread in process["threads"]:
            print(ascii(thread["name"]), thread["doing"], thread.get("syscall_name", "-"), thread["outcome"])
        print("others", process["threads_without_lua"], "vms", len(process["vms"]))
        return
    threads = [t for t in process["threads"] if sys.argv[3] in ("", t["name"])]
    frames = threads[0]["frames"]
    names = [shown(f) for f in frames if f["kind"] != "native"]
    if len(names) > 1 and names[-2].startswith("main:"):
        names.pop() # what called the main chunk, in the interpreter's own program
    print(threads[0]["outcome"], *names)


main()
