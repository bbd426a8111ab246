#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The structure of the sources: small folders, one sentence on top of each file, calls and includes in one direction.

usage: structure_test.py SOURCE BUILD

Calls are those of the object files in BUILD, by binutils' nm.
"""
import collections
import os
import re
import subprocess
import sys

MODULES = ("attach", "symbols", "luastate", "format", "daemon", "cli")
# So many are taken in at a glance.
FILES_MAX = 12
LICENSE = "/* SPDX-License-Identifier: MIT */\n"


def sources(root):
    """All C files of the product, by their paths in it."""
    return sorted(os.path.relpath(os.path.join(folder, file), root) for module in MODULES
                  for folder, _, files in os.walk(os.path.join(root, module)) for file in files
                  if file.endswith((".c", ".h")))


def folders(root):
    """Each folder of the product, with the names of its files."""
    for module in MODULES:
        for folder, _, files in os.walk(os.path.join(root, module)):
            yield os.path.relpath(folder, root), files


def read(root, path):
    """The text of a file."""
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def check_sizes(root):
    """Folders that have too many files."""
    return [f"{folder}: {len(files)} files, more than {FILES_MAX}" for folder, files in folders(root)
            if len(files) > FILES_MAX]


def check_openings(root):
    """Files that do not begin with what they are about."""
    return [f"{path}: no comment in its second line" for path in sources(root)
            if not re.match(re.escape(LICENSE) + r"/\*(?!\*)", read(root, path))]


def check_pages(root):
    """Folders that docs/architecture.md does not name once."""
    text = read(root, "docs/architecture.md")
    named = collections.Counter(re.findall(r"^\| `([a-z/]+)/` \|", text, re.M))
    return [f"docs/architecture.md: names {folder}/ {named[folder]} times, not once" for folder, files in folders(root)
            if files and named[folder] != 1]


def includes(root):
    """Pairs of files of the product, of which one includes the other."""
    known = set(sources(root))
    for path in sorted(known):
        for header in re.findall(r'^#include "([^"]+)"', read(root, path), re.M):
            if header in known:
                yield path, header


def check_private(root):
    """Headers of another module's inside."""
    return [f"{path}: includes {header}, which is private to {header.split('/')[0]}" for path, header in includes(root)
            if path.split("/")[0] != header.split("/")[0] and header.count("/") > 1]


def circles(edges):
    """Groups of folders that reach each other."""
    def reach(start):
        found, todo = set(), [start]
        while todo:
            for to in edges[todo.pop()]:
                if to not in found:
                    found.add(to)
                    todo.append(to)
        return found

    reached = {folder: reach(folder) for folder in list(edges)}
    groups = {frozenset(other for other in reached[folder] if folder in reached.get(other, ()))
              for folder in reached if folder in reached[folder]}
    return sorted(sorted(group) for group in groups)


def tell(kind, edges, pairs):
    """One line for each circle, and for each edge in it."""
    for group in circles(edges):
        yield f"{kind} go in a circle: {' '.join(group)}"
        for one, other in sorted(pairs):
            ends = os.path.dirname(one), os.path.dirname(other)
            if ends[0] != ends[1] and ends[0] in group and ends[1] in group:
                yield f"  {one} -> {other}"


def check_includes(root):
    """Folders whose headers include each other. Public headers lie at the top of a module, and all of it has them."""
    edges = collections.defaultdict(set)
    pairs = [(one, other) for one, other in includes(root) if other.count("/") > 1]
    for one, other in pairs:
        if os.path.dirname(one) != os.path.dirname(other):
            edges[os.path.dirname(one)].add(os.path.dirname(other))
    return list(tell("includes", edges, pairs))


def objects(root, build):
    """Object files by the paths of their sources."""
    found = {}
    for module in MODULES:
        for folder, _, files in os.walk(os.path.join(build, module, "CMakeFiles")):
            for file in files:
                path = os.path.join(folder, file)
                match = re.search(r"\.dir/(.*\.c)\.o$", path)
                if match and os.path.isfile(os.path.join(root, module, match[1])):
                    found[os.path.join(module, match[1])] = path
    return found


def symbols(files):
    """Names that object files define and want: two sets of pairs of a name and its file."""
    listing = subprocess.run(["nm", "-g", "-A", "-P", *files], capture_output=True, text=True, check=True).stdout
    defined, wanted = set(), set()
    for line in listing.splitlines():
        path, name, kind = re.match(r"(.*): (\S+) (\S)", line).groups()
        (wanted if kind in "Uw" else defined).add((name, path))
    return defined, wanted


def check_calls(root, build):
    """Folders that call each other."""
    sources_by_object = {file: path for path, file in objects(root, build).items()}
    if not sources_by_object:
        return [f"{build}: no object files"]
    defined, wanted = symbols(sources_by_object)
    owners = {name: sources_by_object[file] for name, file in defined}
    edges, pairs = collections.defaultdict(set), set()
    for name, file in wanted:
        path = sources_by_object[file]
        owner = owners.get(name, path)
        if os.path.dirname(owner) != os.path.dirname(path):
            edges[os.path.dirname(path)].add(os.path.dirname(owner))
            pairs.add((path, owner))
    return list(tell("calls", edges, pairs))


def main():
    """Print what is wrong; the exit code tells whether anything is."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    root, build = sys.argv[1:]
    wrong = (check_sizes(root) + check_openings(root) + check_pages(root) + check_private(root) + check_includes(root) +
             check_calls(root, build))
    for line in wrong:
        print(line)
    print(f"{len(sources(root))} files, {len(wrong)} complaints")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
