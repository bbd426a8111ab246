# SPDX-License-Identifier: MIT
"""Whether dumps of moment.lua are of one moment each.

Usage: moment_check.py stacks|coroutines COUNT COMMAND...
Runs the command, which prints a dump, a number of times. Prints for each: values that were seen, how far they
are apart at most, the process's pause in microseconds less what the machine's host took from the processors
meanwhile, 1 if the dump is partial.
"""
import json
import os
import subprocess
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


def stolen_us():
    with open("/proc/stat", encoding="ascii") as file:
        return int(file.readline().split()[8]) * 1000000 // os.sysconf("SC_CLK_TCK")


def main():
    kind, count, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    for _ in range(count):
        stolen = stolen_us()
        process = json.loads(subprocess.check_output(command))["processes"][0]
        stolen = stolen_us() - stolen
        if kind == "stacks":
            stacks = process["threads"]
        else:
            stacks = [one for vm in process["vms"] for one in vm["coroutines"]]
        found = [item for stack in stacks for item in values_of(stack["frames"])]
        apart = max(v for _, v in found) - min(v for _, v in found) if found else 0
        if apart > 1:
            print(found, file=sys.stderr)
        print(len({name for name, _ in found}), int(apart), round(process["pause_ms"] * 1000) - stolen,
              int(process["partial"]))


main()
