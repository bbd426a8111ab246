#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Make a picture for a page of ljreport's flame graph: smaller, without a script, compiled code in its own colour.

Usage: draw_flamegraph.py --merge <FOLDED >FOLDED
       draw_flamegraph.py GRAPH PICTURE

--merge gives native functions that have no symbol the name of their library. GRAPH is what ljreport -f svg
--annotate=jit draws of that.
"""
import re
import sys
import xml.etree.ElementTree as ET

WIDTH = 1000
PAD = 10
FRAMES_WIDTH = WIDTH - 2 * PAD
HEAD_HEIGHT = 84
ROW_HEIGHT = 18
CHAR_WIDTH = 7.23
TEXT_INSET = 3
# Narrower frames are left out: nobody can tell them apart.
LEAST_WIDTH = 3
# Shorter labels tell nothing.
LEAST_CHARS = 3
# Classes of the flame graph, and of what only this picture has, with the words of the legend.
KINDS = {"native": "native", "lua": "Lua, interpreted", "compiled": "Lua, compiled", "builtin": "built-in function",
         "cfunc": "C function", "trace": "trace", "pseudo": "activity of the VM", "process": "process"}
COMPILED_STYLE = ".compiled { fill: #b3a4f0; }\n"
SVG = "http://www.w3.org/2000/svg"
ADDRESS = re.compile(r"^([^()]+)\+0x[0-9a-f]+$")
COMPILED = re.compile(r"~?_\[j\]$")


def merge(lines):
    """Folded chains in which neighbours without symbols are one frame, named after their library."""
    for line in lines:
        chain, count = line.rstrip("\n").rsplit(" ", 1)
        merged = []
        for name in chain.split(";"):
            unnamed = ADDRESS.match(name)
            name = unnamed[1] if unnamed else name
            if not unnamed or merged[-1:] != [name]:
                merged.append(name)
        yield f"{';'.join(merged)} {count}\n"


def tag(name):
    """An element's name as the parser has it."""
    return f"{{{SVG}}}{name}"


def element(parent, name, text=None, **attributes):
    """A new element at the parent's end."""
    made = ET.SubElement(parent, tag(name), {key.replace("_", "-"): str(value) for key, value in attributes.items()})
    made.text = text
    made.tail = "\n"
    return made


def fit(name, width):
    """As much of a name as fits."""
    chars = int((width - 2 * TEXT_INSET) / CHAR_WIDTH)
    if chars < LEAST_CHARS:
        return ""
    return name if len(name) <= chars else name[:chars - 1] + "…"


class Frame:
    """A frame of the flame graph: where it is in samples, and what it is."""

    def __init__(self, group):
        self.start, self.count, self.depth = (int(group.get("data-" + key)) for key in "scd")
        self.name, _, self.about = group.find(tag("title")).text.partition("\n")
        self.kind = group.find(tag("rect")).get("class")
        if COMPILED.search(self.name):
            self.name = COMPILED.sub("", self.name)
            self.kind = "compiled"

    def draw(self, parent, scale, depth):
        """Add it to a picture of that depth."""
        left, width, y = self.start * scale, self.count * scale, (depth - self.depth) * ROW_HEIGHT
        group = element(parent, "g")
        group.set("class", "f")
        compiled = ", in compiled code" if self.kind == "compiled" else ""
        element(group, "title", f"{self.name}\n{self.about}{compiled}")
        rect = element(group, "rect", x=f"{left:.1f}", y=y, width=f"{width:.1f}", height=ROW_HEIGHT - 1, rx=2)
        rect.set("class", self.kind)
        label = fit(self.name, width)
        if label:
            element(group, "text", label, x=f"{left + TEXT_INSET:.1f}", y=y + 12.5)


def draw_legend(parent, kinds):
    """The kinds that there are."""
    legend = element(parent, "g")
    legend.set("class", "legend")
    x = PAD
    for kind, words in KINDS.items():
        if kind in kinds:
            element(legend, "rect", x=f"{x:.0f}", y=59, width=12, height=12, rx=2).set("class", kind)
            element(legend, "text", words, x=f"{x + 18:.0f}", y=69)
            x += 38 + CHAR_WIDTH * len(words)


def draw(graph):
    """The picture of a flame graph, as an element."""
    frames = [Frame(group) for group in graph.iter(tag("g")) if group.get("class") == "f"]
    total = int(graph.get("data-samples"))
    scale = FRAMES_WIDTH / total
    shown = [frame for frame in frames if frame.count * scale >= LEAST_WIDTH]
    depth = max(frame.depth for frame in shown)
    height = HEAD_HEIGHT + (depth + 1) * ROW_HEIGHT + PAD
    title = graph.find(tag("title")).text
    picture = ET.Element(tag("svg"), {"viewBox": f"0 0 {WIDTH} {height}", "width": str(WIDTH), "height": str(height)})
    element(picture, "title", title)
    element(picture, "style", graph.find(tag("style")).text + COMPILED_STYLE)
    element(picture, "text", title, id="title", x=PAD, y=28)
    element(picture, "text", f"{total:,} samples; native functions without a symbol have the name of their library; "
            f"frames below {100 * LEAST_WIDTH / FRAMES_WIDTH:.1f} % are left out", id="subtitle", x=PAD, y=48)
    draw_legend(picture, {frame.kind for frame in shown})
    area = element(picture, "g", transform=f"translate({PAD} {HEAD_HEIGHT})")
    for frame in shown:
        frame.draw(area, scale, depth)
    return picture


def main():
    """Do what the arguments say."""
    if sys.argv[1:] == ["--merge"]:
        sys.stdout.writelines(merge(sys.stdin))
    elif len(sys.argv) == 3:
        ET.register_namespace("", SVG)
        picture = ET.ElementTree(draw(ET.parse(sys.argv[1]).getroot()))
        picture.write(sys.argv[2], encoding="UTF-8", xml_declaration=True)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
