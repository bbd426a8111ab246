#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Compare what ljdump --json shows of a process that stands still and of its core.

Usage: core_check.py stacks PROCESS CORE
       core_check.py coroutines PROCESS CORE STACKS
Prints: 1 if both are the same, threads or coroutines, frames, variables, those that are not whole.
STACKS, of the core, has the frames of all coroutines that run or wait for one that does: they are
the same there. Of a process that a signal has stopped in Lua itself, --coroutines knows no
registers, and of what runs no frames.
"""
import json
import sys

# What a core does not have, or what a process alone costs.
CORE = {"core", "core_truncated"}
THREAD = {"name", "doing", "syscall", "syscall_name", "stops"}
COST = {"frozen_threads", "pause_ms", "copied_bytes"}


def bare(item, keys):
    return {key: value for key, value in item.items() if key not in keys}


def read(path):
    with open(path, encoding="utf-8") as file:
        process = bare(json.load(file)["processes"][0], CORE | COST)
    process["vms"].sort(key=lambda vm: vm["global_state"])
    if "threads" in process:
        threads = [bare(thread, THREAD) for thread in process["threads"]]
        process["threads"] = sorted(threads, key=lambda thread: thread["tid"])
    return process


def coroutines_of(dump):
    return [coroutine for vm in dump["vms"] for coroutine in vm["coroutines"]]


def forget_names(ours, theirs):
    """Functions have names from calls that were seen: a running coroutine has some more."""
    if isinstance(ours, list):
        for mine, yours in zip(ours, theirs):
            forget_names(mine, yours)
    elif isinstance(ours, dict):
        if ours.get("type") == "function" and ours.get("name") is None:
            theirs["name"] = None
        for key in ours.keys() & theirs.keys():
            forget_names(ours[key], theirs[key])


def forget_unknown(process, core):
    for ours, theirs in zip(coroutines_of(process), coroutines_of(core)):
        if ours["outcome"] == "inconsistent" and not ours["frames"] and ours["status"] == "running":
            ours["outcome"], ours["frames"] = theirs["outcome"], theirs["frames"]
        else:
            forget_names(ours["frames"], theirs["frames"])


def plain(frames):
    """Frames of Lua functions, without their variables."""
    return [bare(frame, {"variables"}) for frame in frames if frame["kind"] == "lua"]


def are_of(core, stacks):
    """The newest coroutine of each stack is the one that runs; all its frames come first there."""
    good = True
    running = {c["address"]: c for c in coroutines_of(core) if c["status"] == "running"}
    for thread in stacks["threads"]:
        if thread["coroutine"] is None:
            continue
        runs = running.pop(thread["coroutine"], None)
        frames = plain(runs["frames"]) if runs else []
        good &= bool(frames) and plain(thread["frames"])[: len(frames)] == frames
    return good and not running


def main():
    process, core = read(sys.argv[2]), read(sys.argv[3])
    good = True
    if sys.argv[1] == "stacks":
        items = core["threads"]
    else:
        forget_unknown(process, core)
        items = coroutines_of(core)
        good = are_of(core, read(sys.argv[4]))
    frames = [frame for item in items for frame in item["frames"]]
    variables = sum(len(frame["variables"]["list"]) for frame in frames if "variables" in frame)
    torn = sum(item["outcome"] not in ("full", "no_vm") for item in items)
    if process != core:
        print("process:", json.dumps(process), "\ncore:", json.dumps(core), file=sys.stderr)
    print(int(good and process == core), len(items), len(frames), variables, torn)


main()
