# SPDX-License-Identifier: MIT
"""Whether a dump of moment.lua is of one moment.

Usage: moment_check.py stacks|coroutines DUMP
Prints: values that were seen, how far they are apart at most, the process's pause in microseconds,
1 if the dump is partial.
"""
import json
import sys


def entry_of(value, *path):
    for key in path:
        for entry in value.get("entries", []):
            if entry["key"].get("value") == key:
                value = entry["value"]
                break
        else:
            return None
    return value.get("value")


# What is in a variable, by its name.
PATHS = {
    "now": (),
    "count": (),
    "seen": (),
    "first": ("n",),
    "second": ("list", 1),
    "third": ("at", "n"),
}


def values_of(frames):
    for frame in frames:
        for variable in (frame.get("variables") or {}).get("list", []):
            if variable["name"] in PATHS:
                value = entry_of(variable["value"], *PATHS[variable["name"]])
                if value is not None:
                    yield variable["name"], value


def main():
    process = json.load(open(sys.argv[2], encoding="utf-8"))["processes"][0]
    if sys.argv[1] == "stacks":
        stacks = process["threads"]
    else:
        stacks = [one for vm in process["vms"] for one in vm["coroutines"]]
    found = [item for stack in stacks for item in values_of(stack["frames"])]
    apart = max(v for _, v in found) - min(v for _, v in found) if found else 0
    if apart > 1:
        print(found, file=sys.stderr)
    print(len({name for name, _ in found}), int(apart), round(process["pause_ms"] * 1000),
          int(process["partial"]))


main()
