#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The forms that chart time, as those read them for whom they are: each function has just the samples
that the profile has, also in speedscope's page and in the code of Chrome's DevTools.

Usage: readers_test.py LJREPORT [FOLDER]
With FOLDER, a picture of speedscope is left there.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import chromium  # noqa: E402
import forms  # noqa: E402

# Functions that call themselves and each other, activities, names that JSON and text have to guard.
CHAINS = [
    ("main;@a.lua:1;work (@a.lua:3);string.gsub", 300),
    ("main;@a.lua:1;work (@a.lua:3);work (@a.lua:3)", 100),
    ("main;@a.lua:1;work (@a.lua:3);rest (@a.lua:9);work (@a.lua:3)", 50),
    ("main;@a.lua:1;rest (@a.lua:9)", 150),
    ("main;[gc sweep]", 149),
    ("main;luajit+0x1234;\"quoted\\\" \u00e9\u4e2d </script>", 1),
    ("main;trace 7 @ a.lua:12", 249),
    ("[no stack]", 1),
]
failed = 0


def expect(what, got, expected):
    global failed
    if got != expected:
        print("FAILED: %s: %r, not %r" % (what, got, expected))
        failed = 1


def perf_name(name):
    """There it has nothing that readers of perf's text cut off."""
    return re.sub(r"\+(0x[\da-f]+)$", r"@\1", name).replace("(", "[").replace(")", "]")


def compare(what, rows, wanted, unit, slack):
    """@param unit What one sample is. @param slack By how many of them a number may differ, as readers
    round it."""
    found = {name: (own / unit, total / unit) for name, own, total in rows}
    if what.endswith("perf") or what.startswith("perf"):
        wanted = {perf_name(name): row for name, row in wanted.items()}
    expect(what + ": functions", sorted(found), sorted(wanted))
    for name in set(found) & set(wanted):
        far = max(abs(a - b) for a, b in zip(found[name], wanted[name]))
        if far > slack(max(wanted[name])):
            expect("%s: %s" % (what, name), found[name], wanted[name])
    print("ok: %s: self and total of %d functions" % (what, len(found)))


def exact(_):
    return 1e-6


def nearly(_):
    """A call ends a nanosecond before its last sample does."""
    return 1e-4


def shown(samples):
    """Two digits behind the point, of a unit that grows."""
    return max(0.01, samples * 0.01)


def shown_of_perf(samples):
    """The same; a sample takes the time to the next one, and the last one does not have that."""
    return shown(samples) + 1


def by_rules(folder, wanted):
    def path(suffix):
        return os.path.join(folder, "out." + suffix)
    compare("speedscope, by rules", forms.speedscope_file(path("speedscope.json")), wanted, 1, exact)
    compare("cpuprofile, by rules", forms.cpuprofile_file(path("cpuprofile")), wanted, 1, exact)
    compare("trace events, by rules", forms.trace_events(path("trace.json")), wanted, 1000, nearly)
    compare("Firefox, by rules", forms.firefox(path("firefox.json")), wanted, 1, exact)
    compare("perf, by rules", forms.perf(path("perf")), wanted, 1, exact)


def in_browser(folder, wanted, pictures):
    page = forms.speedscope_page()
    with chromium.start(width=1280, height=2000) as browser:
        rows, idle = forms.devtools(browser, os.path.join(folder, "out.cpuprofile"))
        compare("DevTools", rows, wanted, 1, exact)
        expect("DevTools: idle", idle, 0)
        if not page:
            print("skipped: speedscope: the npm package cannot be fetched here")
            return
        reader = forms.Speedscope(browser, page, folder)
        for suffix, unit, slack in (("speedscope.json", 1, shown), ("cpuprofile", 1e6, shown),
                                    ("trace.json", 1e6, shown), ("perf", 1e6, shown_of_perf)):
            compare("speedscope with " + suffix, reader.read(os.path.join(folder, "out." + suffix)),
                    wanted, unit, slack)
        if pictures:
            shown_page = reader.show(os.path.join(folder, "out.speedscope.json"))
            shown_page.screenshot(os.path.join(pictures, "speedscope.png"))


def main():
    if not chromium.find():
        print("skipped: chromium is not installed")
        return 77
    ljreport = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "out.folded")
        with open(source, "w", encoding="utf-8") as file:
            file.writelines("%s %d\n" % row for row in CHAINS)
        for suffix in ("speedscope.json", "cpuprofile", "trace.json", "firefox.json", "perf"):
            subprocess.run([ljreport, "--native=all", "-o", os.path.join(folder, "out." + suffix), source],
                           check=True)
        report = json.loads(subprocess.run([ljreport, "-f", "json", source], check=True,
                                           capture_output=True).stdout)
        wanted = {row["function"]: (row["self"], row["total"]) for row in report["functions"]}
        expect("distinct functions", len(wanted), 10)
        by_rules(folder, wanted)
        in_browser(folder, wanted, sys.argv[2] if len(sys.argv) > 2 else None)
    return failed


sys.exit(main())
