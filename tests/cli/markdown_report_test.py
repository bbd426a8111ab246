#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pages of CI jobs, as a reader of Markdown that is in use shows them: nothing of a name takes effect.

Usage: markdown_report_test.py LJREPORT
"""
import html.parser
import os
import random
import shutil
import subprocess
import sys
import tempfile

LJREPORT = sys.argv[1]
FRAME = {"h3", "h4", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code"}
PIECES = ["|", "\\", "`", "``", "<b>", "</code>", "<img src=x onerror=y>", "&lt;", "&#124;", "*", "_", "~~",
          "[a](https://a.example)", "![a](b)", "http://a.example/x", "www.a.example", "a@b.example", "@user", "#12",
          "a", "name", "$x$", "<!--", "-->", "<script>", ":smile:", "\u00fc", "\\|", "|---|", "(", ")"]
failures = 0


def check(good, what):
    global failures
    if not good:
        failures += 1
        print("FAILED:", what)


class Page(html.parser.HTMLParser):
    """Elements, and cells by row."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.rows = set(), []
        self.inside = 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.add(tag)
        if any(name not in ("align", "style") for name, _ in attributes):
            self.elements.add(str(attributes))
        if tag == "tr":
            self.rows.append([])
        self.inside += tag in ("td", "th")
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        self.inside -= tag in ("td", "th")

    def handle_comment(self, data):
        self.elements.add("comment")

    def handle_data(self, data):
        if self.inside:
            self.rows[-1][-1] += data


def render(markdown):
    return Page(subprocess.run(
        ["cmark-gfm", "--unsafe", "-e", "table", "-e", "strikethrough", "-e", "autolink", "-e", "tagfilter"],
        input=markdown, capture_output=True, check=True, text=True).stdout)


def report(code, *arguments):
    done = subprocess.run([LJREPORT, *arguments], capture_output=True, text=True, check=False)
    check(done.returncode == code, "%s: exit %d: %s" % (arguments, done.returncode, done.stderr))
    return done.stdout


def write(path, chains):
    with open(path, "w", encoding="utf-8") as file:
        for name, count in chains:
            file.write("main;%s %d\n" % (name, count))


def names():
    draw = random.Random(1)
    for _ in range(15):
        yield "".join(draw.choice(PIECES) for _ in range(draw.randrange(1, 9))).replace(";", ",") + "x"
    yield "".join(PIECES[:8]).replace(";", ",")


def main():
    hostile = sorted(set(names()))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write("base", [(name, 1000) for name in hostile] + [("rest", 100000)])
        write("new", [(name, 3000) for name in hostile] + [("rest", 100000)])
        page = render(report(0, "-f", "markdown", "base"))
        check(page.elements <= FRAME, "one profile: %s" % (page.elements - FRAME))
        check(all(len(row) == 6 for row in page.rows), "rows of one profile: %s" % page.rows)
        shown = {row[5] for row in page.rows}
        check(set(hostile) | {"rest", "main"} <= shown, "names: %s" % (set(hostile) - shown))

        page = render(report(0, "-f", "markdown", "--diff=base", "--title=" + "|<b>`".join(PIECES), "new"))
        check(page.elements <= FRAME, "a diff: %s" % (page.elements - FRAME))
        rows = {row[5]: row for row in page.rows}
        check(all(rows[name][4] == "yes" for name in hostile), "certain: %s" % rows)

        # Appended to, broken or not; by the name's end; with an end of a line in a rule.
        with open("page.md", "w", encoding="utf-8") as file:
            file.write("# Mine")
        budget = ["--fail-on=func:%s>1%%" % name for name in hostile[:5]] + ["--fail-on=func:no|\n|x>1%"]
        report(3, "--summary=page.md", "--diff=base", "--fail-on=+0.5%", *budget, "-o", "out.md", "new")
        report(0, "--summary", "page.md", "--fail-on=self>99%", "-o", "out.json", "new")
        with open("page.md", encoding="utf-8") as file:
            text = file.read()
        page = render(text)
        check(page.elements <= FRAME | {"h1"}, "a summary: %s" % (page.elements - FRAME))
        check(text.startswith("# Mine\n") and "### Rules: all 1 kept" in text, "appended: %s" % text[:80])
        rules = [row for row in page.rows if len(row) == 3 and row[0] != "Rule"]
        check([row[1] for row in rules].count("FAILED") == 6 and len(rules) == 8, "rules: %s" % rules)
        check(rules[6][0] == "func:no| |x>1%" and rules[6][2] == "no function has that name", rules[6])
        with open("out.md", encoding="utf-8") as file:
            check(file.read().startswith("### Profile"), "out.md is no Markdown")

        write("many", [("f%d" % i, 1) for i in range(50)])
        text = report(0, "-f", "markdown", "many")
        check(text.count("31 more functions are not shown") == 2, "50 functions: " + text)
        check("No function's share changed" in report(0, "-f", "markdown", "--diff=many", "many"), "same")
        report(4, "--summary=no/page.md", "-o", "out.md", "new")
    print("%d hostile names" % len(hostile))
    sys.exit(failures > 0)


if not shutil.which("cmark-gfm"):
    print("skipped: cmark-gfm is not installed")
    sys.exit(77)
main()
