#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The pictures of the README: how scripts draw them, and that a page can show those in docs/pictures.

Usage: pictures_test.py LJREPORT SOURCE
       pictures_test.py --only FOLDER

With --only it checks just the pictures in a folder.
"""
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"
BYTES_MAX = 150_000
WIDTHS = range(850, 1051)
CELL_WIDTH, CELL_HEIGHT, PAD = 8.4, 18, 14
BLOCKS = "▁▂▃▄▅▆▇█▏▎▍▌▋▊▉"
# Of nginx, of its Lua module, and of the program; of the screen.
FRAMES = (r"^ngx_process_events_and_timers\b", r"^ngx_http_lua_run_thread\b", r"^writev\b",
          r"^shop\.serve \(@shop\.lua:\d+\)", r"^pages\.search \(@shop\.lua:\d+\)", r"^cjson\.decode\b")
SHOWN = (r"ljtop +nginx \[\d+\]", r"LuaJIT", r"SELF% +TOT%", r"pages\.search +shop\.lua:\d+", r"find_similar",
         r"no natives")
FOLDED = """\
main;ngx_worker;nginx+0x1000;nginx+0x2000;serve (@shop.lua:7)_[l];score (@shop.lua:3)_[j] 700
main;ngx_worker;nginx+0x1000;nginx+0x3000;serve (@shop.lua:7)_[l];score (@shop.lua:3)~_[j];table.sort_[b] 200
main;ngx_worker;nginx+0x4000;writev 99
main;rare 1
"""
MERGED = """\
main;ngx_worker;nginx;serve (@shop.lua:7)_[l];score (@shop.lua:3)_[j] 700
main;ngx_worker;nginx;serve (@shop.lua:7)_[l];score (@shop.lua:3)~_[j];table.sort_[b] 200
main;ngx_worker;nginx;writev 99
main;rare 1
"""
# Names, places in the picture, kinds, and what is written on them.
DRAWN = {("main", 0, 980, "native", "main"), ("nginx", 0, 979, "native", "nginx"),
         ("serve (@shop.lua:7)", 0, 882, "lua", "serve (@shop.lua:7)"),
         ("score (@shop.lua:3)", 0, 686, "compiled", "score (@shop.lua:3)"),
         ("score (@shop.lua:3)", 686, 196, "compiled", "score (@shop.lua:3)"),
         ("table.sort", 686, 196, "builtin", "table.sort"),
         ("writev", 882, 97, "native", "writev")}
failures = 0


def check(good, what):
    """Count and print what is wrong."""
    global failures
    if not good:
        failures += 1
        print("FAILED:", what)


def run(*command, feed):
    """What a command prints."""
    return subprocess.run(command, input=feed, capture_output=True, text=True, check=True).stdout


# ---- Drawing ------------------------------------------------------------------------------------

def grid(picture, rows, columns):
    """The characters of a drawn screen."""
    cells = [[" "] * columns for _ in range(rows)]
    for text in picture.iter(SVG + "text"):
        column = round((float(text.get("x")) - PAD) / CELL_WIDTH)
        row = int((float(text.get("y")) - PAD) // CELL_HEIGHT)
        check(abs(float(text.get("textLength")) - CELL_WIDTH * len(text.text)) < 0.1, f"the width of {text.text!r}")
        cells[row][column:column + len(text.text)] = text.text
    return ["".join(row) for row in cells]


def grounds(picture, row):
    """(column, columns, colour) of the full rectangles of a row."""
    return [(round((float(rect.get("x")) - PAD) / CELL_WIDTH), round(float(rect.get("width")) / CELL_WIDTH),
             rect.get("fill")) for rect in picture.iter(SVG + "rect")
            if rect.get("y") == str(PAD + row * CELL_HEIGHT) and rect.get("height") == str(CELL_HEIGHT)]


def check_small_screen(draw):
    """Colours and attributes, one by one."""
    screen = ("\x1b[1mab\x1b[0m  \x1b[32mc<&\x1b[39m  d\n"
              "\x1b[30m\x1b[46mon \x1b[39m\x1b[49m \x1b[7mr\x1b[27m\x1b[2me\x1b[22m\n"
              "\x1b[33m▄█▌\x1b[39m\n")
    picture = ET.fromstring(run(draw, "--title", "a & b", "10", feed=screen))
    check(picture.find(SVG + "title").text == "a & b", "the title")
    check(grid(picture, 3, 10) == ["ab  c<&  d", "on  re    ", "          "], f"cells: {grid(picture, 3, 10)}")
    fills = {text.text: (text.get("fill"), text.get("class")) for text in picture.iter(SVG + "text")}
    check(fills == {"ab": ("#d6dce5", "bold"), "c<&": ("#7fc97a", None), "d": ("#d6dce5", None), "on": ("#14181f", None),
                    "r": ("#14181f", None), "e": ("#7d8796", None)}, f"colours: {fills}")
    check(grounds(picture, 1) == [(0, 3, "#5fc4c9"), (4, 1, "#d6dce5")], f"grounds: {grounds(picture, 1)}")
    # Half a cell from below, a whole one, and half of one from the left.
    blocks = [(rect.get("x"), rect.get("y"), rect.get("width"), rect.get("height"))
              for rect in picture.iter(SVG + "rect") if rect.get("fill") == "#e2bd5a"]
    check(blocks == [("14.0", "59", "8.4", "9"), ("22.4", "50", "8.4", "18"), ("30.8", "50", "4.2", "18")],
          f"blocks: {blocks}")
    for wrong in ("\x1b[2J", "\t", "\x1b[38;5;1mx", "x" * 11):
        refused = subprocess.run([draw, "--title", "", "10"], input=wrong, capture_output=True, text=True, check=False)
        check(refused.returncode == 1 and refused.stdout == "", f"not refused: {wrong!r}")


def check_recorded_screen(draw, path):
    """A screen of ljtop: each cell is where it was."""
    with open(path, encoding="utf-8") as file:
        screen = file.read()
    picture = ET.fromstring(run(draw, "--title", "ljtop", "108", feed=screen))
    plain = [re.sub(f"[{BLOCKS}]", " ", re.sub(r"\x1b\[[0-9;]*m", "", row)).ljust(108)
             for row in screen.rstrip("\n").split("\n")]
    check(grid(picture, len(plain), 108) == plain, "the recorded screen")
    check(len(plain) == 30 and any("pages.search" in row for row in plain), "the record of it")


def check_flamegraph(draw, ljreport, folder):
    """Merged, drawn by ljreport, and made smaller."""
    merged = run(draw, "--merge", feed=FOLDED)
    check(merged == MERGED, f"merged chains: {merged}")
    graph, path = os.path.join(folder, "graph.svg"), os.path.join(folder, "picture.svg")
    run(ljreport, "-f", "svg", "--native=all", "--annotate=jit", "--title", "a & b", "-o", graph, "-", feed=merged)
    run(draw, graph, path, feed="")
    picture = ET.parse(path).getroot()
    check(picture.find(SVG + "title").text == "a & b", "the title")
    drawn = set()
    for group in picture.iter(SVG + "g"):
        if group.get("class") == "f":
            rect, text = group.find(SVG + "rect"), group.find(SVG + "text")
            drawn.add((group.find(SVG + "title").text.split("\n")[0], round(float(rect.get("x"))),
                       round(float(rect.get("width"))), rect.get("class"), text.text if text is not None else ""))
    check(DRAWN <= drawn, f"frames: {DRAWN - drawn} of {drawn}")
    check(not any(name == "rare" for name, *_ in drawn), "a frame of one pixel is drawn")
    legend = next(group for group in picture.iter(SVG + "g") if group.get("class") == "legend")
    words = [text.text for text in legend.iter(SVG + "text")]
    check(words == ["native", "Lua, interpreted", "Lua, compiled", "built-in function"], f"the legend: {words}")


# ---- What is there ------------------------------------------------------------------------------

def read_picture(path):
    """The root of a picture; checks that a page can show it: small, no script, no other file."""
    root = ET.parse(path).getroot()
    check(root.tag == SVG + "svg" and root.find(SVG + "title").text, f"{path}: no picture with a title")
    check(os.path.getsize(path) <= BYTES_MAX, f"{path}: {os.path.getsize(path)} bytes")
    check(int(root.get("width")) in WIDTHS, f"{path}: {root.get('width')} pixels wide")
    for element in root.iter():
        check(element.tag.startswith(SVG) and element.tag[len(SVG):] not in ("script", "foreignObject", "image", "use"),
              f"{path}: has {element.tag}")
        for name, value in element.attrib.items():
            check(not name.startswith("on") and not name.endswith("href") and "url(" not in value,
                  f"{path}: has {name}={value}")
    return root


def check_folder(folder):
    """Both pictures have what a reader looks for."""
    graph = read_picture(os.path.join(folder, "nginx-flamegraph.svg"))
    frames = [title.text for title in graph.iter(SVG + "title")]
    for pattern in FRAMES:
        check(any(re.search(pattern, frame) for frame in frames), f"no frame {pattern}")
    check(any(re.match(r"\w.* \(@shop\.lua:\d+\)\n.*, in compiled code$", frame) for frame in frames),
          "no Lua function in compiled code")
    screen = read_picture(os.path.join(folder, "ljtop.svg"))
    rows = grid(screen, (int(screen.get("height")) - 2 * PAD) // CELL_HEIGHT, int(screen.get("width")))
    for pattern in SHOWN:
        check(any(re.search(pattern, row) for row in rows), f"no {pattern} on the screen")


def check_readme(source):
    """README.md has both pictures, each with an alternative text."""
    with open(os.path.join(source, "README.md"), encoding="utf-8") as file:
        shown = dict((path, words) for words, path in re.findall(r"!\[([^\]]*)\]\(([^)]*)\)", file.read()))
    for name in ("nginx-flamegraph.svg", "ljtop.svg"):
        check(len(shown.get("docs/pictures/" + name, "")) > 20, f"README.md: no {name} with an alternative text")


def main():
    """Print what is wrong; the exit code tells whether anything is."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if sys.argv[1] == "--only":
        check_folder(sys.argv[2])
        return failures > 0
    ljreport, source = (os.path.realpath(path) for path in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        check_flamegraph(os.path.join(source, "scripts/draw_flamegraph.py"), ljreport, folder)
    draw_screen = os.path.join(source, "scripts/draw_screen.py")
    check_small_screen(draw_screen)
    check_recorded_screen(draw_screen, os.path.join(source, "tests/pictures/ljtop.screen"))
    check_folder(os.path.join(source, "docs/pictures"))
    check_readme(source)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
