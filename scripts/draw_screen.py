#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draw a terminal's screen as a picture for a page.

Usage: draw_screen.py --title TITLE COLUMNS <SCREEN >PICTURE

SCREEN is what tmux capture-pane -e -N -p prints: a line for each row, with colours and attributes as a terminal takes
them. Screen readers read TITLE.
"""
import re
import sys
from xml.sax.saxutils import escape

CELL_WIDTH, CELL_HEIGHT = 8.4, 18
PAD = 14
BASELINE = 13.5
STYLE = """\
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; }
.bold { font-weight: 700; }
"""
GROUND, INK, EDGE, DIM = "#14181f", "#d6dce5", "#3a4350", "#7d8796"
# Black, red, green, yellow, blue, magenta, cyan and white, and the bright ones.
COLOURS = ("#14181f", "#e5746f", "#7fc97a", "#e2bd5a", "#6fa8ef", "#c68be0", "#5fc4c9", "#c3cad4",
           "#7d8796", "#ff938d", "#9be595", "#ffd978", "#93c2ff", "#e0a8f7", "#84e3e8", "#ffffff")
TOKEN = re.compile(r"\x1b\[([0-9;]*)m|([^\x00-\x1f\x7f])")
LOWER_BLOCKS = "▁▂▃▄▅▆▇█"
LEFT_BLOCKS = "▏▎▍▌▋▊▉"


class Look:
    """The attributes that the next characters get."""

    def __init__(self):
        self.reset()

    def reset(self):
        """No attributes."""
        self.text = self.ground = None
        self.flags = set()

    def take(self, codes):
        """Apply a sequence. Source: ECMA-48, SGR; 90 and 100 on: XTerm Control Sequences."""
        flags = {1: "bold", 2: "dim", 7: "reverse"}
        for code in (int(code or 0) for code in codes.split(";")):
            if code == 0:
                self.reset()
            elif code in flags:
                self.flags.add(flags[code])
            elif code == 22:
                self.flags -= {"bold", "dim"}
            elif code == 27:
                self.flags.discard("reverse")
            elif 30 <= code <= 37 or 90 <= code <= 97:
                self.text = COLOURS[code - 30 if code < 90 else code - 82]
            elif 40 <= code <= 47 or 100 <= code <= 107:
                self.ground = COLOURS[code - 40 if code < 100 else code - 92]
            elif code == 39:
                self.text = None
            elif code == 49:
                self.ground = None
            else:
                sys.exit(f"draw_screen.py: an attribute that is not known: {code}")

    def cell(self):
        """What a character looks like now: its colour, that behind it or None, and whether it is bold."""
        text, ground = self.text or (DIM if "dim" in self.flags else INK), self.ground
        if "reverse" in self.flags:
            text, ground = ground or GROUND, text
        return text, ground, "bold" in self.flags


def cells_of(screen, columns):
    """Rows of (character, look)."""
    look, rows = Look(), []
    for line in screen.split("\n"):
        row, end = [], 0
        for token in TOKEN.finditer(line):
            if token.start() != end:
                break
            end = token.end()
            if token[2]:
                row.append((token[2], look.cell()))
            else:
                look.take(token[1])
        if end != len(line) or len(row) > columns:
            sys.exit(f"draw_screen.py: this is no row of {columns} columns: {line!r}")
        rows.append(row + [(" ", (INK, None, False))] * (columns - len(row)))
    return rows


def runs_of(row, key):
    """(column, cells) of neighbours that have the same key."""
    begin = 0
    for column in range(1, len(row) + 1):
        if column == len(row) or key(row[column]) != key(row[begin]):
            yield begin, row[begin:column]
            begin = column


def rect(column, y, width, height, colour):
    """A rectangle; width in columns."""
    return (f'<rect x="{PAD + column * CELL_WIDTH:.1f}" y="{y:g}" width="{width * CELL_WIDTH:.1f}" '
            f'height="{height:g}" fill="{colour}"/>')


def block(column, y, character, colour):
    """A character that fills a part of its cell, as fonts leave gaps."""
    if character in LOWER_BLOCKS:
        height = CELL_HEIGHT * (LOWER_BLOCKS.index(character) + 1) / 8
        return rect(column, y + CELL_HEIGHT - height, 1, height, colour)
    return rect(column, y, (LEFT_BLOCKS.index(character) + 1) / 8, CELL_HEIGHT, colour)


def words(column, y, text, look):
    """A run of text, as wide as its cells whatever the font."""
    indent = len(text) - len(text.lstrip(" "))
    text = text.strip(" ")
    if not text:
        return
    bold = ' class="bold"' if look[2] else ""
    yield (f'<text{bold} x="{PAD + (column + indent) * CELL_WIDTH:.1f}" y="{y + BASELINE:g}" fill="{look[0]}" '
           f'textLength="{len(text) * CELL_WIDTH:.1f}" lengthAdjust="spacingAndGlyphs">{escape(text)}</text>')


def draw_row(row, y):
    """Elements of one row: grounds, then what is on them."""
    for column, run in runs_of(row, lambda cell: cell[1][1]):
        if run[0][1][1]:
            yield rect(column, y, len(run), CELL_HEIGHT, run[0][1][1])
    for column, run in runs_of(row, lambda cell: (cell[1], cell[0] in LOWER_BLOCKS + LEFT_BLOCKS)):
        if run[0][0] in LOWER_BLOCKS + LEFT_BLOCKS:
            yield from (block(column + i, y, cell[0], cell[1][0]) for i, cell in enumerate(run))
        else:
            yield from words(column, y, "".join(cell[0] for cell in run), run[0][1])


def draw(screen, columns, title):
    """The picture, as lines."""
    rows = cells_of(screen, columns)
    width, height = round(2 * PAD + columns * CELL_WIDTH), 2 * PAD + len(rows) * CELL_HEIGHT
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    yield f"<title>{escape(title)}</title>"
    yield f"<style>\n{STYLE}</style>"
    yield (f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8" fill="{GROUND}" '
           f'stroke="{EDGE}"/>')
    for number, row in enumerate(rows):
        yield from draw_row(row, PAD + number * CELL_HEIGHT)
    yield "</svg>"


def main():
    """Do what the arguments say."""
    if len(sys.argv) != 4 or sys.argv[1] != "--title":
        sys.exit(__doc__)
    print("\n".join(draw(sys.stdin.read().rstrip("\n"), int(sys.argv[3]), sys.argv[2])))


if __name__ == "__main__":
    main()
