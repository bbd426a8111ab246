#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Change a copy of LuaJIT's source as a version to come might: members of its structures are
inserted, moved, removed and change places, and opcodes added.

Usage: mutate.py SOURCE SEED

SOURCE is the folder with lj_obj.h; it is changed in place. The same SEED makes the same changes. Prints
one line for each. One to three changes of structures; every third SEED adds opcodes besides.
"""
import os
import random
import re
import sys

STRUCTURES = {
    "lua_State": ("lj_obj.h", r"struct lua_State \{\n", r"\n\};"),
    "global_State": ("lj_obj.h", r"typedef struct global_State \{\n", r"\n\} global_State;"),
    "GCState": ("lj_obj.h", r"typedef struct GCState \{\n", r"\n\} GCState;"),
    "GCproto": ("lj_obj.h", r"typedef struct GCproto \{\n", r"\n\} GCproto;"),
    "GCtrace": ("lj_jit.h", r"typedef struct GCtrace \{\n", r"\n\} GCtrace;"),
    "jit_State": ("lj_jit.h", r"typedef struct jit_State \{\n", r"\n(?:LJ_ALIGN\(16\)|\})[^\n]*jit_State;"),
}
# All collectable objects share what is before and at this member.
SHARED_UP_TO = {"lua_State": "gclist", "GCproto": "gclist", "GCtrace": "gclist", "jit_State": "cur"}
# Members that only C code uses, under a name that is only theirs: each becomes a variable.
REMOVABLE = {
    "global_State": [("int32_t", "hookcstart"), ("lua_CFunction", "panic")],
    "GCState": [("MSize", "stepmul")],
    "jit_State": [("uint32_t", "penaltyslot"), ("uint32_t", "bpropslot"), ("int", "mcprot")],
}
# The interpreter needs these where they are: the collector's two sums lie side by side, and the
# compiler's constants are aligned.
FIXED = {"total", "threshold", "ksimd", "k64", "cur"}
INSERTED = ["void *%s;", "uint32_t %s;", "uint64_t %s[2];", "uint64_t %s[3];", "uint8_t %s;", "uint16_t %s;"]
# Opcodes before which others can be: what is between them is in an order that code relies on.
OPCODE_PLACES = ["MOV", "KSTR", "UGET", "UCLO", "TNEW", "GGET", "CALLM", "RETM", "FORI", "JMP", "FUNCF"]
OPCODE_MODES = ["dst,\t___,\tvar,\t___", "var,\t___,\tlit,\t___", "dst,\tvar,\tvar,\tadd", "base,\t___,\tjump,\t___"]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class Structure:
    """The lines of one structure; a member is one line outside of #if."""

    def __init__(self, source, name):
        file, begin, end = STRUCTURES[name]
        self.name, self.path = name, os.path.join(source, file)
        self.text = read(self.path)
        start = re.search(begin, self.text).end()
        stop = re.search(end, self.text[start:]).start() + start
        self.before, self.after = self.text[:start], self.text[stop:]
        self.lines = self.text[start:stop].split("\n")

    def write(self):
        write(self.path, self.before + "\n".join(self.lines) + self.after)

    def members(self):
        """Indices of lines that are members which may move, or before which one may be inserted."""
        depth, free, found = 0, self.name not in SHARED_UP_TO, []
        for i, line in enumerate(self.lines):
            depth += line.startswith("#if")
            name = self.name_of(line)
            if free and not depth and name and name not in FIXED:
                found.append(i)
            depth -= line.startswith("#endif")
            if name == SHARED_UP_TO.get(self.name):
                free = True
        return found

    @staticmethod
    def name_of(line):
        match = re.match(r"\s+[^/#;]*?(\w+)\s*(?:\[[^;]*\])?;", line)
        return match and match.group(1)


def insert(structure, rng, number):
    at = rng.choice(structure.members() + [len(structure.lines)])
    kind = rng.choice(INSERTED)
    after = structure.name_of(structure.lines[at - 1]) if at else "the begin"
    structure.lines.insert(at, "  " + kind % f"inserted{number}")
    return f"insert {kind % 'x'} behind {after} in {structure.name}"


def move(structure, rng, _number):
    members = structure.members()
    place = rng.choice(members)
    line = structure.lines.pop(place)
    members = structure.members()
    at = rng.choice(members)
    structure.lines.insert(at, line)
    return (f"move {structure.name_of(line)} before {structure.name_of(structure.lines[at + 1])} "
            f"in {structure.name}")


def swap(structure, rng, number):
    """Two members of one type change places: nothing else moves."""
    kinds = {}
    for i in structure.members():
        kind = re.match(r"\s+(.*?)\s*\*?\w+\s*(?:\[[^;]*\])?;", structure.lines[i]).group(1)
        kinds.setdefault((kind, "[" in structure.lines[i]), []).append(i)
    pairs = [members for members in kinds.values() if len(members) > 1]
    if not pairs:
        return move(structure, rng, number)
    first, second = rng.sample(rng.choice(pairs), 2)
    structure.lines[first], structure.lines[second] = structure.lines[second], structure.lines[first]
    return (f"swap {structure.name_of(structure.lines[first])} and {structure.name_of(structure.lines[second])} "
            f"in {structure.name}")


def remove(structure, rng, number, source):
    choices = [c for c in REMOVABLE.get(structure.name, []) if any(
        structure.name_of(line) == c[1] for line in structure.lines)]
    if not choices:
        return insert(structure, rng, number)
    kind, name = rng.choice(choices)
    structure.lines = [line for line in structure.lines if structure.name_of(line) != name]
    structure.write()
    for file in os.listdir(source):
        if not file.endswith((".c", ".h")):
            continue
        path = os.path.join(source, file)
        text = read(path)
        text = re.sub(r"\b\w+(?:\([^()]*\))?(?:->|\.)(?:gc\.)?%s\b" % name, f"lj_{name}_gone", text)
        write(path, text)
    path = os.path.join(source, "lj_def.h")
    text = read(path)
    write(path, text.rstrip()[:-len("#endif")] +
          f"#include \"lua.h\"\nextern {kind.replace('MSize', 'uint32_t')} lj_{name}_gone;\n#endif\n")
    path = os.path.join(source, "lj_char.c")
    write(path, read(path) + f"\n{kind.replace('MSize', 'uint32_t')} lj_{name}_gone;\n")
    return f"remove {name} from {structure.name}"


def add_opcodes(source, rng):
    said = []
    for number in range(rng.choice([1, 2, 3])):
        place, modes = rng.choice(OPCODE_PLACES), rng.choice(OPCODE_MODES)
        name = f"ADDED{number}"
        path = os.path.join(source, "lj_bc.h")
        text = read(path)
        text, count = re.subn(r"(\n  _\(%s,)" % place, r"\n  _(%s,\t%s) \\\1" % (name, modes), text)
        assert count == 1
        write(path, text)
        for file in os.listdir(source):
            if re.fullmatch(r"vm_(x86|x64|arm64)\.dasc", file):
                path = os.path.join(source, file)
                text = read(path)
                # One that nobody runs.
                stop = "  |  brk\n" if "arm64" in file else "  |  int3\n"
                text, count = re.subn(r"(\n  case BC_MOV:)", r"\n  case BC_%s:\n%s    break;\n\1" % (name, stop), text)
                assert count == 1
                write(path, text)
        said.append(f"add an opcode ({modes.split()[0].strip(',')}) before {place}")
    return said


def main():
    source, seed = sys.argv[1], int(sys.argv[2])
    rng = random.Random(seed)
    names = list(STRUCTURES)
    for number in range(1 + seed % 3):
        structure = Structure(source, names[(seed + number * 5) % len(names)] if number == 0 else rng.choice(names))
        how = rng.choice([insert, insert, move, swap, remove])
        if how is remove:
            print(remove(structure, rng, number, source))
            continue
        print(how(structure, rng, number))
        structure.write()
    if seed % 3 == 0:
        print("\n".join(add_opcodes(source, rng)))


if __name__ == "__main__":
    main()
