#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The flame graphs in a browser: what clicks, keys and search do, and which numbers are shown.

Usage: flame_test.py LJREPORT [FOLDER]
With FOLDER, pictures of the pages are left there.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import chromium  # noqa: E402

HOSTILE = "</script><img src=x onerror=alert(1)><svg onload=alert(2)><!--<script>alert(3)"
# 1000 samples; a function that calls itself, one with two callers, two kinds and more.
NEW = [
    ("main;@a.lua:1;work (@a.lua:3);string.gsub", 300),
    ("main;@a.lua:1;work (@a.lua:3);work (@a.lua:3)", 100),
    ("main;@a.lua:1;work (@a.lua:3)", 100),
    ("main;@a.lua:1;rest (@a.lua:9);string.gsub", 100),
    ("main;@a.lua:1;rest (@a.lua:9)", 150),
    ("main;[gc sweep]", 150),
    ("main;" + HOSTILE, 100),
]
BASE = [
    ("main;@a.lua:1;work (@a.lua:3);string.gsub", 200),
    ("main;@a.lua:1;work (@a.lua:3)", 400),
    ("main;@a.lua:1;rest (@a.lua:9)", 1400),
]
COMMENTS = ["ljprof: ticks 100", HOSTILE]
failed = 0


def expect(what, got, expected):
    global failed
    if got != expected:
        print("FAILED: %s: %r, not %r" % (what, got, expected))
        failed = 1


class Graph:
    """The page of -f html, by what a user sees of it."""

    def __init__(self, browser, path, folder, dark=False):
        self.page = browser.open(path, dark)
        self.folder = folder

    def boxes(self):
        """All that is drawn: name, left, top, width in pixels of the window."""
        return self.page.evaluate("""(function () {
            const view = flame.view, place = document.getElementById("canvas").getBoundingClientRect();
            const top = document.getElementById("graph").scrollTop, boxes = [];
            view.halves.forEach(function (half) { half.rows.forEach(function (row, depth) {
                row.forEach(function (rect) {
                    const y = place.top + (view.root + half.direction * depth) * flame.ROW - top;
                    boxes.push({ name: rect.box ? view.nameOf(rect.box) : null, x: place.left + rect.x,
                                 y: y, width: rect.width, depth: half.direction * depth });
                }); }); });
            return boxes; }())""")

    def box(self, name, number=0):
        found = [b for b in self.boxes() if b["name"] == name]
        if len(found) <= number:
            raise chromium.Failure("no %s is drawn" % name)
        return found[number]

    def rows(self):
        """Names by depth, from left to right."""
        rows = {}
        for box in sorted(self.boxes(), key=lambda b: (b["depth"], b["x"])):
            rows.setdefault(box["depth"], []).append(box["name"])
        return rows

    def middle(self, name, number=0):
        box = self.box(name, number)
        return box["x"] + box["width"] / 2, box["y"] + 9

    def click(self, name, number=0, shift=False):
        self.page.click(*self.middle(name, number), shift=shift)

    def tip(self, name, number=0):
        """The lines of the tooltip there."""
        self.page.move(*self.middle(name, number))
        return self.page.evaluate("""Array.from(document.querySelectorAll(
            "#tip:not([hidden]) b, #tip:not([hidden]) p, #tip:not([hidden]) tr"), function (line) {
            return Array.from(line.children.length ? line.children : [line], function (part) {
                return part.textContent; }).join(" | "); })""")

    def colour(self, name, number=0):
        """What is drawn near the box's upper right corner, where no text is."""
        box = self.box(name, number)
        return self.page.evaluate("""(function () {
            const canvas = document.getElementById("canvas"), place = canvas.getBoundingClientRect();
            const pixel = document.createElement("canvas").getContext("2d");
            pixel.drawImage(canvas, place.left - %f, place.top - %f);
            return "#" + Array.from(pixel.getImageData(0, 0, 1, 1).data.slice(0, 3), function (part) {
                return part.toString(16).padStart(2, "0"); }).join(""); }())""" % (
                    box["x"] + box["width"] - 3, box["y"] + 1))

    def text(self, selector):
        return self.page.evaluate("document.querySelector(%s).textContent" % json.dumps(selector))

    def path(self):
        return self.page.evaluate("""Array.from(document.querySelectorAll("#path button:not(.more)"),
            function (part) { return part.textContent; })""")

    def table(self):
        return self.page.evaluate("""Array.from(document.querySelectorAll("#rows tr[tabindex]"),
            function (row) { return Array.from(row.cells, function (cell) { return cell.textContent; });
            })""")

    def picture(self, name):
        if self.folder:
            self.page.screenshot(os.path.join(self.folder, name + ".png"))

    def end(self, what):
        """Nothing was fetched, nothing went wrong, no name did anything."""
        expect(what + ": errors", self.page.errors, [])
        expect(what + ": requests", self.page.requests, [])
        expect(what + ": dialogs", self.page.dialogs, [])
        expect(what + ": elements of names", self.page.evaluate(
            "document.querySelectorAll('img, body script[src], svg[onload]').length"), 0)
        self.page.close()


def check_zoom(graph):
    full = graph.box("main")["width"]
    expect("widths", [round(graph.box(name)["width"] / full, 3) for name in
                      ("@a.lua:1", "work (@a.lua:3)", "rest (@a.lua:9)", "[gc sweep]")],
           [0.75, 0.5, 0.25, 0.15])
    graph.click("rest (@a.lua:9)")
    expect("zoomed", round(graph.box("rest (@a.lua:9)")["width"] / full, 3), 1)
    expect("zoomed: its child", round(graph.box("string.gsub")["width"] / full, 3), 0.4)
    expect("zoomed: no others", [b for b in graph.boxes() if b["name"] == "work (@a.lua:3)"], [])
    expect("zoomed: path", graph.path(), ["all", "main", "@a.lua:1", "rest (@a.lua:9)"])
    expect("zoomed: tip", graph.tip("string.gsub")[-1], "of zoomed frame |  | 40.00 %")
    graph.picture("zoomed")
    # Ways back.
    graph.click("main")
    expect("path after a click below", graph.path(), ["all", "main"])
    graph.page.key("Backspace")
    expect("path after Backspace", graph.path()[-1], "rest (@a.lua:9)")
    graph.page.click_on("#path button:nth-of-type(3)")
    expect("path after a click on it", graph.path()[-1], "@a.lua:1")
    graph.page.key("Escape")
    expect("path after Esc", graph.path(), ["all"])


def check_tips(graph):
    expect("tip", graph.tip("work (@a.lua:3)"), [
        "work", "Lua \u00b7 @a.lua:3", "self | 100 samples | 10.00 %", "total | 500 samples | 50.00 %",
        "function, self | 200 samples | 20.00 %", "function, total | 500 samples | 50.00 %"])
    expect("tip, called by itself", graph.tip("work (@a.lua:3)", 1)[2:4],
           ["self | 100 samples | 10.00 %", "total | 100 samples | 10.00 %"])
    expect("tip, of two callers", graph.tip("string.gsub")[4:],
           ["function, self | 400 samples | 40.00 %", "function, total | 400 samples | 40.00 %"])
    expect("tip, hostile name", graph.tip(HOSTILE)[0], HOSTILE)
    expect("colours", [graph.colour(name) for name in
                       ("main", "@a.lua:1", "string.gsub", "[gc sweep]")],
           ["#eeb08c", "#7db3f2", "#6fcfc4", "#e58a9b"])


def check_search(graph):
    graph.page.key("/")
    graph.page.type("string")
    expect("search", graph.text("#matched"), "matched 40.00 %")
    expect("search: colours", [graph.colour(name) for name in ("string.gsub", "main")],
           ["#ff5ccd", "#eeb08c"])
    graph.picture("search")
    # One above the other counts once; a pattern that is none is taken as text.
    for pattern, share in (("WORK|GSUB", "60.00"), ("^rest", "25.00"), ("[gc", "15.00"),
                           ("img src", "10.00")):
        graph.page.evaluate("document.getElementById('search').select()")
        graph.page.type(pattern)
        expect("search for " + pattern, graph.text("#matched"), "matched %s %%" % share)
    graph.page.key("Escape")
    expect("search after Esc", [graph.text("#matched"), graph.colour("main")], ["", "#eeb08c"])


def check_views(graph):
    expect("flame", graph.rows()[-2], [HOSTILE, "@a.lua:1", "[gc sweep]"])
    flame = graph.box("main")["y"] > graph.box("@a.lua:1")["y"]
    graph.page.key("i")
    expect("flame, icicle", [flame, graph.box("main")["y"] < graph.box("@a.lua:1")["y"]], [True, True])
    expect("icicle", graph.rows()[3], ["rest (@a.lua:9)", "work (@a.lua:3)"])
    graph.picture("icicle")
    graph.page.key("i")
    graph.page.key("b")
    # What runs, most first; then who calls it.
    expect("bottom-up", graph.rows()[-1], ["string.gsub", "work (@a.lua:3)", "[gc sweep]",
                                           "rest (@a.lua:9)", HOSTILE])
    expect("bottom-up: callers", graph.rows()[-2][:3],
           ["work (@a.lua:3)", "rest (@a.lua:9)", "@a.lua:1"])
    expect("bottom-up: tip", graph.tip("rest (@a.lua:9)", 1)[2], "this way | 100 samples | 10.00 %")
    graph.click("string.gsub")
    expect("bottom-up, zoomed", graph.rows()[-2], ["work (@a.lua:3)", "rest (@a.lua:9)"])
    graph.picture("bottom-up")
    graph.page.key("c")
    graph.click("work (@a.lua:3)", shift=True)
    expect("sandwich", {d: r for d, r in graph.rows().items() if abs(d) < 2},
           {-1: ["@a.lua:1"], 0: ["work (@a.lua:3)", "work (@a.lua:3)"],
            1: ["string.gsub", "work (@a.lua:3)"]})
    graph.click("string.gsub", shift=True)
    expect("sandwich of another", {d: r for d, r in graph.rows().items() if -3 < d < 3},
           {-2: ["@a.lua:1", "@a.lua:1"], -1: ["work (@a.lua:3)", "rest (@a.lua:9)"],
            0: ["string.gsub", "string.gsub"]})
    expect("sandwich: tip", graph.tip("work (@a.lua:3)")[2], "this way | 300 samples | 30.00 %")
    graph.picture("sandwich")
    graph.click("rest (@a.lua:9)")
    expect("sandwich, zoomed", graph.rows()[-1], ["rest (@a.lua:9)"])
    graph.page.key("Escape")
    graph.page.key("Escape")
    expect("after Esc", graph.rows()[-1], ["main"])


def check_keys(graph):
    for key in ("ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowRight"):
        graph.page.key(key)
    expect("arrow keys", graph.text("#tip b"), "work")
    graph.page.key("Enter")
    expect("Enter", graph.path()[-1], "work (@a.lua:3)")
    graph.page.key("Escape")
    graph.page.key("?")
    expect("help", graph.page.evaluate("document.getElementById('help').hidden"), False)
    graph.page.key("Escape")
    expect("help after Esc", graph.page.evaluate("document.getElementById('help').hidden"), True)


def check_table(graph):
    graph.page.key("t")
    expect("table", graph.table()[:2], [
        ["400", "40.00", "400", "40.00", "built-in function", "string.gsub"],
        ["200", "20.00", "500", "50.00", "Lua", "work (@a.lua:3)"]])
    graph.picture("table")
    graph.page.click_on("#columns th:nth-child(3) button")
    expect("table by total", [row[5] for row in graph.table()[:3]], ["main", "@a.lua:1", "work (@a.lua:3)"])
    graph.page.click_on("#columns th:nth-child(3) button")
    expect("table by total, least first", graph.table()[0][5], HOSTILE)
    graph.page.click_on("#rows tr:nth-child(3)")
    expect("sandwich from the table", graph.rows()[0][0], "[gc sweep]")
    graph.page.key("Escape")
    graph.page.key("t")
    expect("without the table", graph.rows()[-1], ["main"])


def check_dark(browser, path, folder):
    ground = "getComputedStyle(document.body).backgroundColor"
    for dark in (False, True):
        graph = Graph(browser, path, folder, dark)
        shown = [graph.page.evaluate(ground), graph.colour("main")]
        graph.page.click_on("#theme")
        turned = [graph.page.evaluate(ground), graph.colour("main")]
        light, night = ["rgb(255, 255, 255)", "#eeb08c"], ["rgb(20, 24, 31)", "#d89d7b"]
        expect("dark" if dark else "light", [shown, turned], [night, light] if dark else [light, night])
        if not dark:
            graph.picture("dark")
        graph.end("dark")


def check_difference(graph):
    """work: 50 % now and 30 % before; rest: 25 % and 70 %, the largest change."""
    expect("difference: about", graph.text("#about"),
           "1000 samples, 7 call chains; 2000 samples before")
    expect("difference: tip", graph.tip("rest (@a.lua:9)")[3],
           "total | 250 samples | 25.00 % | before 1400 samples | 70.00 % | change -45.00 points")
    expect("difference: tip of more", graph.tip("work (@a.lua:3)")[2:4], [
        "self | 100 samples | 10.00 % | before 400 samples | 20.00 % | change -10.00 points",
        "total | 500 samples | 50.00 % | before 600 samples | 30.00 % | change +20.00 points"])
    expect("difference: colours", [graph.colour(name) for name in ("all", "rest (@a.lua:9)")],
           ["#e8e8ec", "#5a92f5"])
    red = graph.colour("work (@a.lua:3)")
    expect("difference: red", int(red[1:3], 16) > int(red[5:7], 16) + 40, True)
    graph.picture("difference")
    full = graph.box("main")["width"]
    graph.page.key("w")
    expect("difference: widths before", round(graph.box("rest (@a.lua:9)")["width"] / full, 3), 0.7)
    graph.page.key("w")
    graph.page.key("t")
    graph.page.click_on("#columns th:nth-child(6) button")
    expect("difference: table", [row[5:7] for row in graph.table()[:2]],
           [["+30.00", "string.gsub"], ["+20.00", "work (@a.lua:3)"]])
    graph.picture("difference-table")
    graph.end("difference")


def add_recording(path, out):
    """A page as of a recording: it has comments, and its samples in order: half of the time only work,
    then rest."""
    with open(path, encoding="utf-8") as file:
        page = file.read()
    begin = page.index(">", page.index('id="data"')) + 1
    end = page.index("</script", begin)
    data = json.loads(page[begin:end])
    chains = [c["name"] for c in decode(data)]
    work, rest = chains.index("string.gsub"), len(chains) - 1 - chains[::-1].index("rest (@a.lua:9)")
    data["timeline"] = {"chains": [work] * 50 + [rest] * 50, "weights": [2] * 50 + [6] * 50,
                        "times_ns": [10 ** 7 * i for i in range(100)]}
    data["comments"] = COMMENTS
    text = json.dumps(data).replace("<", "\\u003c")
    with open(out, "w", encoding="utf-8") as file:
        file.write(page[:begin] + text + page[end:])


def decode(data):
    """The last function of each chain."""
    values, at = data["chains"], 0
    while at < len(values):
        count = values[at + 1]
        yield {"name": data["functions"][values[at + 1 + count]][0]}
        at += 2 + count + 1


def check_comments(graph):
    def shown():
        return graph.page.evaluate("""(function () {
            const lines = Array.from(document.querySelectorAll("#comments p"));
            return lines.filter(function (line) { return line.getClientRects().length; })
                .map(function (line) { return line.textContent; }); }())""")

    expect("comments before they are asked for", shown(), [])
    graph.page.key("?")
    expect("comments", shown(), COMMENTS)
    graph.picture("comments")
    graph.page.key("Escape")
    expect("comments as a tooltip", graph.page.evaluate("document.getElementById('about').title"),
           "\n".join(COMMENTS))


def check_timeline(graph):
    def choose(begin, end):
        """Drag over the strip, from and to a part of its width."""
        x, y, width, height = graph.page.evaluate("""(function () {
            const r = document.getElementById("time").getBoundingClientRect();
            return [r.x, r.y, r.width, r.height]; }())""")
        expect("timeline is there", height > 20, True)
        graph.page.drag(x + begin * width, x + end * width, y + height / 2)

    choose(0.75, 1.02)
    expect("range", [graph.text("#about").split("; ")[1], graph.rows()[-3]],
           ["chosen: 150 samples, 37.50 %, from 0.750 s to 0.990 s", ["rest (@a.lua:9)"]])
    expect("range: tip", graph.tip("rest (@a.lua:9)")[2], "self | 150 samples | 100.00 %")
    graph.picture("timeline")
    choose(0.25, 0)
    expect("range to the left", [graph.text("#about").split("; ")[1].split(", ")[0], "string.gsub" in
                                 [b["name"] for b in graph.boxes()]], ["chosen: 50 samples", True])
    graph.page.key("Escape")
    expect("range after Esc", [graph.text("#about"), graph.tip("main")[3]],
           ["1000 samples, 7 call chains", "total | 1000 samples | 100.00 %"])
    graph.end("timeline")


def check_deep(browser, ljreport, work):
    """A chain that no recursion over it could follow."""
    deep, page = (os.path.join(work, name) for name in ("deep.folded", "deep.html"))
    write(deep, [(";".join("f%d" % (i % 999) for i in range(30000)), 3), ("f0;f1", 1)])
    subprocess.run([ljreport, "-o", page, deep], check=True)
    graph = Graph(browser, page, None)
    expect("deep", graph.tip("all")[2], "total | 4 samples | 100.00 %")
    for key in "bsit":
        graph.page.key(key)
    expect("deep: table", graph.table()[0][:4], ["3", "75.00", "3", "75.00"])
    graph.end("deep")


def check_svg(browser, path, folder):
    page = browser.open(path)
    title = "document.querySelectorAll('.f')[%d].querySelector('title').textContent"
    names = page.evaluate("Array.from(document.querySelectorAll('.f title'),"
                          " function (t) { return t.textContent.split('\\n')[0]; })")

    def place(name, part="x + r.width / 2"):
        return page.evaluate("(function () { const r = document.querySelectorAll('.f')[%d].querySelector("
                             "'rect').getBoundingClientRect(); return r.%s; }())" % (
                                 names.index(name), part))

    expect("svg: hostile name", HOSTILE in names, True)
    expect("svg: numbers", page.evaluate(title % names.index("work (@a.lua:3)")),
           "work (@a.lua:3)\nLua, 500 samples, 50.00%")
    full = place("main", "width")
    page.click(place("rest (@a.lua:9)"), place("rest (@a.lua:9)", "y + r.height / 2"))
    expect("svg: zoomed", round(place("rest (@a.lua:9)", "width") / full, 3), 1)
    page.key("/")
    page.type("string")
    expect("svg: search", page.evaluate("document.getElementById('matched').textContent"),
           "matched 40.00%")
    page.key("Escape")
    expect("svg: after Esc", round(place("rest (@a.lua:9)", "width") / full, 3), 0.25)
    if folder:
        page.screenshot(os.path.join(folder, "svg.png"))
    expect("svg: errors, requests, dialogs", [page.errors, page.requests, page.dialogs], [[], [], []])
    page.close()


def check_svg_difference(browser, path, folder):
    page = browser.open(path)
    fills = dict(page.evaluate("""Array.from(document.querySelectorAll(".f"), function (f) { return [
        f.querySelector("title").textContent.split("\\n")[0],
        getComputedStyle(f.querySelector("rect")).fill]; })"""))
    expect("svg difference: colours", [fills[n] for n in ("all", "rest (@a.lua:9)")],
           ["rgb(232, 232, 236)", "rgb(90, 146, 245)"])
    red, _, blue = map(int, re.findall(r"\d+", fills["[gc sweep]"]))
    expect("svg difference: red", red > blue + 40, True)
    if folder:
        page.screenshot(os.path.join(folder, "svg-difference.png"))
    expect("svg difference: errors", page.errors, [])
    page.close()


def write(path, chains):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines("%s %d\n" % chain for chain in chains)


def check(ljreport, work, folder):
    def report(out, *arguments):
        path = os.path.join(work, out)
        subprocess.run([ljreport, "--native=all", "-o", path, *arguments, new], check=True)
        return path

    new, base = (os.path.join(work, name) for name in ("new.folded", "base.folded"))
    write(new, NEW)
    write(base, BASE)
    page = report("new.html", "--title=" + HOSTILE)
    timed = os.path.join(work, "timed.html")
    add_recording(page, timed)
    with chromium.start() as browser:
        graph = Graph(browser, page, folder)
        expect("title", graph.page.evaluate("document.title"), HOSTILE)
        expect("about", graph.text("#about"), "1000 samples, 7 call chains")
        for part in (check_tips, check_zoom, check_search, check_views, check_keys, check_table):
            part(graph)
        graph.end("page")
        check_dark(browser, page, folder)
        check_difference(Graph(browser, report("diff.html", "--diff=" + base), folder))
        graph = Graph(browser, timed, folder)
        check_comments(graph)
        check_timeline(graph)
        check_deep(browser, ljreport, work)
        check_svg(browser, report("new.svg"), folder)
        check_svg_difference(browser, report("diff.svg", "--diff=" + base), folder)


def main():
    ljreport, folder = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    if not chromium.find():
        print("skipped: chromium is not installed")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as work:
        check(ljreport, work, folder)
    sys.exit(failed)


main()
