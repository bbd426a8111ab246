# SPDX-License-Identifier: MIT
"""Run a recorder, and see how much it holds as time goes by.

Usage: soak.py PERIOD COMMAND [ARGUMENT]...

Looks every PERIOD seconds at the command's process and at its first child, which writes. Prints one
line for each of them, "recorder" and "writer":

    WHO EARLY_KIB LATE_KIB EARLY_FDS LATE_FDS EARLY_MAPPINGS LATE_MAPPINGS

of the second and of the last fifth of all looks the median of memory of its own, as a stall needs more for
a moment, the fewest descriptors, as files are open for a moment, and the most mappings. The first fifth is
where the programs are got to know. Ends with the command's status.
"""
import os
import statistics
import subprocess
import sys
import time


def look(pid):
    """What a process holds: KiB, descriptors, mappings; None once it has ended."""
    try:
        with open(f"/proc/{pid}/status") as status:
            kib = [int(line.split()[1]) for line in status if line.startswith("RssAnon:")]
        with open(f"/proc/{pid}/maps") as maps:
            mappings = sum(1 for _ in maps)
        fds = len(os.listdir(f"/proc/{pid}/fd"))
    except (FileNotFoundError, ProcessLookupError):
        return None
    return (kib[0], fds, mappings) if kib and mappings else None


def child_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            pids = children.read().split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(pids[0]) if pids else None


def main():
    period = float(sys.argv[1])
    command = subprocess.Popen(sys.argv[2:])
    looks = {"recorder": [], "writer": []}
    writer = None
    while command.poll() is None:
        writer = writer or child_of(command.pid)
        for who, pid in (("recorder", command.pid), ("writer", writer)):
            got = look(pid) if writer else None
            if got:
                looks[who].append(got)
        time.sleep(period)
    for who, of in looks.items():
        fifth = len(of) // 5
        if fifth == 0:
            sys.exit(f"only {len(of)} looks at the {who}")
        early, late = of[fifth:2 * fifth], of[-fifth:]
        numbers = [str(pick(look[i] for look in part))
                   for i, pick in enumerate((statistics.median_low, min, max)) for part in (early, late)]
        print(who, *numbers)
    return command.returncode


sys.exit(main())
