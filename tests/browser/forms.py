# SPDX-License-Identifier: MIT
"""Readers of the forms that chart time: each gives (function, self, total), in any unit.

Those of people's tools run in a browser: speedscope's page, and the code of Chrome's DevTools. The
others read by the form's published rules, and raise ValueError where a file does not keep them.
"""
import base64
import json
import os
import re
import shutil
import subprocess
from collections import defaultdict

import chromium

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PACKAGES = os.path.join(ROOT, "build", "packages")


def expect(condition, text):
    if not condition:
        raise ValueError(text)


def from_chains(chains):
    """Rows of (chain, count), each chain from its root. A function counts once in a chain."""
    rows = defaultdict(lambda: [0, 0])
    for chain, count in chains:
        if not chain:
            continue
        rows[chain[-1]][0] += count
        for function in set(chain):
            rows[function][1] += count
    return [(function, *row) for function, row in rows.items()]


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


# ---- speedscope --------------------------------------------------------------------------------

def speedscope_page():
    """The page of the npm package, which is installed where it is missing; None where it cannot be."""
    folder = os.path.join(PACKAGES, "speedscope")
    page = os.path.join(folder, "node_modules", "speedscope", "dist", "release", "index.html")
    if not os.path.exists(page) and shutil.which("npm"):
        os.makedirs(folder, exist_ok=True)
        subprocess.run(["npm", "install", "--prefix", folder, "--no-audit", "--no-fund",
                        "--ignore-scripts", "speedscope"], stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120, check=False)
    return page if os.path.exists(page) else None


SANDWICH = """(function () {
    for (const element of document.querySelectorAll("div"))
        if (element.children.length <= 1 && /Sandwich$/.test(element.textContent)) element.click();
})()"""
UNITS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "": 1}


def quantity(text):
    """Nanoseconds of "1.00s (100%)", or a number of samples."""
    number, unit = re.match(r"([0-9.,]+)(ns|µs|ms|s|) \(", text).groups()
    return float(number.replace(",", "")) * UNITS[unit]


class Speedscope:
    """Its sandwich view, which has a row for each function: total, self and name."""

    def __init__(self, browser, page, folder):
        self.browser, self.page, self.folder = browser, page, folder

    def show(self, path):
        """The page with a file. The script that it takes it from is how its own command gives it."""
        script = os.path.join(self.folder, "speedscope.js")
        with open(path, "rb") as file:
            content = base64.b64encode(file.read()).decode()
        with open(script, "w", encoding="utf-8") as file:
            file.write("speedscope.loadFileFromBase64(%s, %s)"
                       % (json.dumps(os.path.basename(path)), json.dumps(content)))
        page = self.browser.open(self.page, fragment="localProfilePath=" + script)
        page.wait_for("document.body.innerText.includes('Sandwich')")
        return page

    def read(self, path):
        page = self.show(path)
        page.evaluate(SANDWICH)
        page.wait_for("/%\\)/.test(document.body.innerText)")
        # The table draws the rows that are seen: the window is as tall as all of them.
        lines = [line.strip() for line in page.evaluate("document.body.innerText").split("\n")]
        lines = [line for line in lines[lines.index("Total\tSelf\tSymbol Name") + 1:] if line]
        page.close()
        rows = []
        for total, own, name in zip(*[iter(lines)] * 3):
            rows.append((name, quantity(own.replace("<", "")), quantity(total.replace("<", ""))))
        return rows


# ---- DevTools ----------------------------------------------------------------------------------

DEVTOOLS = """import("devtools://devtools/bundled/models/cpu_profile/cpu_profile.js").then(function (module) {
    const model = new module.CPUProfileDataModel.CPUProfileDataModel(%s), rows = [];
    (function walk(node, chain) {
        const name = node.callFrame.functionName, all = chain.concat([name]);
        rows.push([all.slice(1), node.self]);
        for (const child of node.children) walk(child, all);
    })(model.profileHead, []);
    return rows;
})"""


def devtools(browser, path):
    """Milliseconds, as the code has them that draws DevTools' performance panel. Threads are no
    functions."""
    page = browser.open("devtools://devtools/bundled/devtools_app.html")
    rows = page.evaluate(DEVTOOLS % json.dumps(load(path)))
    page.close()
    idle = sum(ms for chain, ms in rows if chain == ["(idle)"])
    return [row for row in from_chains((chain, ms) for chain, ms in rows)
            if row[0] != "(idle)" and not re.search(r"\[\d+\]$", row[0])], idle


# ---- By the rules of the form ------------------------------------------------------------------

def trace_events(path):
    """Microseconds of calls by their begins and ends. Source: "Trace Event Format"."""
    events = load(path)["traceEvents"]
    open_calls, now, rows, spans = {}, {}, defaultdict(lambda: [0, 0]), {}
    for event in events:
        thread = event["pid"], event["tid"]
        if event["ph"] in "BE":
            expect(event["ts"] >= now.get(thread, 0), "time goes back")
            now[thread] = event["ts"]
        if event["ph"] == "B":
            open_calls.setdefault(thread, []).append([event["name"], event["ts"], 0])
        elif event["ph"] == "E":
            name, begin, inner = open_calls[thread].pop()
            expect(name == event["name"], "calls are crossed")
            length = event["ts"] - begin
            rows[name][0] += length - inner
            if open_calls[thread]:
                open_calls[thread][-1][2] += length
            if name not in (call[0] for call in open_calls[thread]):
                rows[name][1] += length
        elif event["ph"] in "be":
            key = event["cat"], event["id"], event["name"]
            expect((key in spans) == (event["ph"] == "e"), "a span has one end")
            spans[key] = event
        else:
            expect(event["ph"] in "MC" and event["args"], "an event of another kind")
    expect(not any(open_calls.values()), "a call does not end")
    return [(name, *row) for name, row in rows.items()]


def check_table(table, where, **columns):
    for column, most in columns.items():
        values = table[column]
        expect(len(values) == table["length"], "%s.%s has another length" % (where, column))
        expect(most is None or all(v is None or 0 <= v < most for v in values),
               "%s.%s is out of range" % (where, column))


def check_thread(thread, categories):
    texts = len(thread["stringArray"])
    expect(all(isinstance(text, str) for text in thread["stringArray"]), "a text is none")
    frames, functions, stacks = thread["frameTable"], thread["funcTable"], thread["stackTable"]
    check_table(thread["samples"], "samples", stack=stacks["length"], time=None, weight=None)
    check_table(stacks, "stackTable", frame=frames["length"], category=categories, subcategory=1,
                prefix=stacks["length"])
    check_table(frames, "frameTable", address=None, inlineDepth=1, category=categories, subcategory=1,
                func=functions["length"], nativeSymbol=0, innerWindowID=1, implementation=texts,
                line=None, column=None)
    check_table(functions, "funcTable", name=texts, isJS=None, relevantForJS=None, resource=None,
                fileName=texts, lineNumber=None, columnNumber=None)
    check_table(thread["markers"], "markers", data=None, name=texts, startTime=None, endTime=None,
                phase=None, category=categories)
    check_table(thread["resourceTable"], "resourceTable", lib=0, name=texts, host=texts, type=None)
    check_table(thread["nativeSymbols"], "nativeSymbols", libIndex=0, address=None, name=texts,
                functionSize=None)
    expect(all(p is None or p < i for i, p in enumerate(stacks["prefix"])), "a prefix is behind")
    expect(all(v is not None for v in stacks["category"]), "a stack has no category")
    times = thread["samples"]["time"]
    expect(all(a <= b for a, b in zip(times, times[1:])), "time goes back")
    expect(isinstance(thread["pid"], str), "pid is no text")
    expect(thread["samples"]["weightType"] == "samples", "another unit")
    for key in ("processType", "processStartupTime", "processShutdownTime", "registerTime",
                "unregisterTime", "pausedRanges", "name", "isMainThread", "tid"):
        expect(key in thread, "a thread has no " + key)


def firefox(path):
    """Samples. Source: firefox-devtools/profiler, version 48 of the processed form."""
    profile = load(path)
    meta = profile["meta"]
    expect(meta["preprocessedProfileVersion"] == 48 and meta["interval"] > 0, "another version")
    expect("grey" in (category["color"] for category in meta["categories"]), "no default category")
    expect(all(category["subcategories"] for category in meta["categories"]), "no subcategory")
    chains = []
    for thread in profile["threads"]:
        check_thread(thread, len(meta["categories"]))
        stacks, texts = thread["stackTable"], thread["stringArray"]
        names = [texts[thread["funcTable"]["name"][f]] for f in thread["frameTable"]["func"]]
        paths = []
        for frame, prefix in zip(stacks["frame"], stacks["prefix"]):
            paths.append((paths[prefix] if prefix is not None else []) + [names[frame]])
        for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
            if stack is not None:
                chains.append((paths[stack], weight))
    for counter in profile["counters"]:
        check_table(counter["samples"], "counter", time=None, count=None)
        expect(isinstance(counter["pid"], str), "a counter's pid is no text")
        expect(counter["mainThreadIndex"] < len(profile["threads"]), "a counter of no thread")
    return from_chains(chains)


def perf(path):
    """Samples. Source: perf-script(1); FlameGraph's stackcollapse-perf.pl takes lines so."""
    chains, chain = [], None
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            head = re.match(r"(\S+) +(\d+)/(\d+) +\d+\.\d{6}: +(\d+) \S+: *$", line)
            frame = re.match(r"\s+(\w+)\s+(.+) \((\S*)\)$", line)
            if head:
                expect(chain is None, "no blank line behind a sample")
                chain = []
            elif frame:
                expect(not re.search(r"\+0x[\da-f]+$", frame[2]), "an offset that readers cut off")
                expect("(" not in frame[2], "round brackets, from which on readers cut off")
                chain.insert(0, frame[2])
            else:
                expect(line == "\n" and chain is not None, "a line of no kind: " + line)
                chains.append((chain, 1))
                chain = None
    expect(chain is None, "the last sample does not end")
    return from_chains(chains)


def speedscope_file(path):
    """The same numbers as speedscope's page has, without one."""
    profile = load(path)
    names = [frame["name"] for frame in profile["shared"]["frames"]]
    chains = []
    for thread in profile["profiles"]:
        expect(thread["type"] == "sampled" and len(thread["samples"]) == len(thread["weights"]),
               "stacks and weights are not as many")
        expect(sum(thread["weights"]) == thread["endValue"], "the end is another")
        chains += [([names[frame] for frame in stack], weight)
                   for stack, weight in zip(thread["samples"], thread["weights"])]
    return from_chains(chains)


def cpuprofile_file(path):
    """Hits, by the rules of the protocol's "Profiler" domain, and microseconds of idle time."""
    profile = load(path)
    nodes = {node["id"]: node for node in profile["nodes"]}
    parents = {child: node["id"] for node in profile["nodes"] for child in node.get("children", [])}
    expect(len(profile["samples"]) == len(profile["timeDeltas"]), "samples and times are not as many")
    expect(all(sample in nodes for sample in profile["samples"]), "a sample of no node")
    expect(all(delta >= 0 for delta in profile["timeDeltas"]), "time goes back")
    chains = []
    for node in profile["nodes"]:
        chain, at = [], node["id"]
        while at in parents:
            name = nodes[at]["callFrame"]["functionName"]
            if not re.search(r"\[\d+\]$", name):
                chain.insert(0, name)
            at = parents[at]
        chains.append((chain, node["hitCount"]))
    return from_chains(chains)
