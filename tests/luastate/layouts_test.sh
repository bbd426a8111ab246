#!/bin/bash
# SPDX-License-Identifier: MIT
# The program that turns the layout table into C, on tables that are right and wrong.
#
# Usage: layouts_test.sh AWK FOLDER CC
#   FOLDER  holds layouts.awk and layouts.table

set -euo pipefail

readonly awk=$1 folder=$2 compiler=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

die() {
	printf 'layouts_test: %s\n' "$1" >&2
	exit 1
}

convert() {
	"$awk" -f "$folder/layouts.awk" "$1" >"$work/out.inc" 2>"$work/err"
}

# compiles PROGRAM: with the converted table as layouts.inc
compiles() {
	cp "$work/out.inc" "$work/layouts.inc"
	printf '%s\n' '#include <stdint.h>' '#include <stddef.h>' '#define LUASTATE_LAYOUT_ROWS' \
		'#include "layouts.inc"' "$1" >"$work/main.c"
	"$compiler" -Werror -I"$work" "$work/main.c" -o "$work/main" && "$work/main"
}

# refuses LINE TEXT: the table in "$work/table" is refused in that line with that message
refuses() {
	if convert "$work/table"; then
		die "accepted a table that is wrong: $2"
	fi
	grep -qF "layouts.table:$1: $2" "$work/err" || die "wrong message: $(cat "$work/err")"
}

# What the project ships.
convert "$folder/layouts.table" || die "layouts.table: $(cat "$work/err")"
compiles 'int main(void) { return !(luastate_layout_count >= 1 &&
	luastate_layouts[0].lua_State_sizeof > 0 && luastate_layouts[0].family[0]); }' ||
	die "layouts.table does not give what it says"

# Two columns, texts and numbers, comments, empty lines.
cat >"$work/table" <<'END'
# comment
@family		one	two

part.first	8	-16
part.second	0x10	0
END
convert "$work/table" || die "$(cat "$work/err")"
compiles 'int main(void) { return !(luastate_layout_count == 2 &&
	luastate_layouts[0].family[0] == 0x6f && luastate_layouts[1].family[0] == 0x74 &&
	luastate_layouts[0].part_first == 8 && luastate_layouts[1].part_first == -16 &&
	luastate_layouts[0].part_second == 16 && luastate_layouts[1].part_second == 0); }' ||
	die "two columns give other values"

printf 'a 1\nb 2\na 3\n' >"$work/table"
refuses 3 "a appears twice"
printf '@a one\n\na 2\n' >"$work/table"
refuses 3 "a appears twice"
printf 'a.b 1\na_b 2\n' >"$work/table"
refuses 2 "a_b appears twice"
printf '# x\na 1 2\nb 1\n' >"$work/table"
refuses 3 "a line needs 2 values"
printf 'a 1\nb 1 2\n' >"$work/table"
refuses 2 "a line needs 1 values"
printf 'a 1\nb\n' >"$work/table"
refuses 2 "a line needs 1 values"
printf 'layouts: all as expected\n'
