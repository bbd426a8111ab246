#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Phrases that make readers stop, in what people read: pages, manuals, help texts, errors and comments.

usage: prose_test.py SOURCE
"""
import os
import re
import sys

# Instead: is reported or is shown; without a result; in place; the name of the number; because it has no; silently;
# significant, or a coincidence; unchanged; the outcome; recently.
PHRASES = (
    r"(?:is|are|was|were|be|been) told",
    r"in vain",
    r"as (?:it|they) (?:lies|lie)",
    r"of those later",
    r"by chance none",
    r"has what was",
    r"so many(?= (?:bytes|samples|ticks|times|at|of the|in all|seconds)\b)",
    r"(?:for|after|wait|waits|within) so long(?! (?:that|as)\b)",
    r"what of it is no chance",
    r"ever (?:longer|more rarely)",
    r"for want of",
    r"(?:is|are|was|were|be) no chance",
    r"(?<!soon )as it stands",
    r"done without",
    r"without a word",
    r"the more so",
    r"what (?:became|becomes|has become) of",
    r"which see",
    r"of late(?!r)",
)
# For pages and manuals only, because their readers do not know the code. Instead: a sentence with a verb; kernel
# samples; a consistent snapshot; is not a number; distinguish.
PAGE_PHRASES = (
    r"(?-i:Of) (?:a|the|each|all|several|its|those|these)",
    r"of which",
    r"of (?:one|the same) moment",
    r"in the making",
    r"copies by the kernel",
    r"(?:that|which) (?:is|are) none",
    r"(?:is|are) looked (?:at|for|into)",
    r"for (?:all|what|whoever) that",
    r"tells? (?:of|apart)",
    r"told apart",
)
PATTERN = re.compile(r"\b(?:" + "|".join(PHRASES) + r")\b", re.I)
PAGE_PATTERN = re.compile(r"\b(?:" + "|".join(PHRASES + PAGE_PHRASES) + r")\b", re.I)
FOLDERS = ("attach", "symbols", "luastate", "format", "daemon", "cli", "man", "docs", "examples", "tests",
           "scripts", ".ci")
# What tests have printed, inputs that fuzzers made, and this list.
LEFT_OUT = ("docs/measurements", "tests/fuzz/corpus", "tests/format/golden", "tests/structure")
PAGES = ("README.md", "NEWS.md", "SECURITY.md")
PAGE_ENDINGS = (".md", ".1", ".yml")
ENDINGS = (".c", ".h", ".1", ".md", ".yml", ".sh", ".in", ".py", ".awk", ".txt")


def texts(root):
    """Paths of all files to check."""
    yield from PAGES
    for top in FOLDERS:
        for folder, _, files in os.walk(os.path.join(root, top)):
            for file in sorted(files):
                path = os.path.relpath(os.path.join(folder, file), root)
                is_text = path.endswith(ENDINGS) or (top in ("scripts", ".ci", "examples") and "." not in file)
                if is_text and not path.startswith(LEFT_OUT):
                    yield path


def main():
    """Print each line that has one; the exit code tells whether there are any."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = count = 0
    for path in texts(sys.argv[1]):
        count += 1
        with open(os.path.join(sys.argv[1], path), encoding="utf-8") as file:
            text = file.read()
        pattern = PAGE_PATTERN if path.endswith(PAGE_ENDINGS) else PATTERN
        # A phrase may go on in the next line, behind the mark of a comment.
        for match in pattern.finditer(re.sub(r"\n[ \t]*(?:\*|#)? ", lambda end: "\n" + " " * (len(end[0]) - 1), text)
                                      .replace("\n", " ")):
            line = text.count("\n", 0, match.start()) + 1
            print(f"{path}:{line}: {match[0]}")
            found += 1
    print(f"{count} files, {found} phrases")
    return 1 if found or not count else 0


if __name__ == "__main__":
    sys.exit(main())
