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
	printf '%s\n' '#include <stdint.h>' '#include <stddef.h>' '#include <stdio.h>' \
		'#include <string.h>' 'struct state_field { const char *name; size_t offset; };' \
		'#define LUASTATE_LAYOUT_ROWS' '#include "layouts.inc"' "$1" >"$work/main.c"
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
	luastate_layouts[0].lua_State_sizeof > 0 && luastate_layouts[0].family[0] &&
	state_field_count > 10 && state_fields[0].offset > 0); }' ||
	die "layouts.table does not give what it says"

# Blocks: each takes from the one before it, or from the one that it names, what it does not list.
cat >"$work/table" <<'END'
# comment
build one x64 gc64  aaa 2017-01-02  bbb 2018-03-04

	part.first	8
	part.second	-
build one x64 gc64  ccc 2019-05-06  ddd 2020-07-08
	part.second	-16
build two x64 gc32  aaa 2017-01-02  bbb 2018-03-04
	part.first	4
build one x64 gc64  eee 2021-09-10  fff 2022-11-12  like one x64 gc64 aaa
	part.first	0
END
convert "$work/table" || die "$(cat "$work/err")"
compiles '
static int row(size_t i, const char *names, int gc64, int ref, int first, int second)
{
	const struct luastate_layout *row = &luastate_layouts[i];
	char text[64];

	snprintf(text, sizeof(text), "%s %s %s %s %s %s", row->family, row->arch, row->first,
		 row->first_date, row->last, row->last_date);
	return strcmp(text, names) == 0 && row->gc64 == gc64 && row->ref_size == ref &&
	       row->part_first == first && row->part_second == second;
}
int main(void)
{
	return !(luastate_layout_count == 4 && LAYOUT_ABSENT == -1 &&
		 row(0, "one x64 aaa 2017-01-02 bbb 2018-03-04", 1, 8, 8, LAYOUT_ABSENT) &&
		 row(1, "one x64 ccc 2019-05-06 ddd 2020-07-08", 1, 8, 8, -16) &&
		 row(2, "two x64 aaa 2017-01-02 bbb 2018-03-04", 0, 4, 4, -16) &&
		 row(3, "one x64 eee 2021-09-10 fff 2022-11-12", 1, 8, 0, LAYOUT_ABSENT) &&
		 state_field_count == 2 && strcmp(state_fields[0].name, "part.first") == 0 &&
		 strcmp(state_fields[1].name, "part.second") == 0 &&
		 state_fields[1].offset == offsetof(struct luastate_layout, part_second));
}' || die "blocks give other values"

readonly head='build one x64 gc64 aaa 2017-01-02 bbb 2018-03-04'
printf '%s\n' "$head" 'a 1' 'b 2' 'a 3' >"$work/table"
refuses 4 "a appears twice"
printf '%s\n' "$head" 'a 1' "$head" 'b 2' >"$work/table"
refuses 4 "unknown field b"
printf '%s\n' "$head" 'a 1 2' >"$work/table"
refuses 2 "expected a name and a number"
printf '%s\n' "$head" 'a' >"$work/table"
refuses 2 "expected a name and a number"
printf '%s\n' "$head" 'a 0x10' >"$work/table"
refuses 2 "expected a name and a number"
printf 'a 1\n' >"$work/table"
refuses 1 "expected a name and a number"
printf 'build one x64 gc64 aaa 2017-01-02 bbb\n' >"$work/table"
refuses 1 "a block's head needs"
printf '%s\n' "$head like one x64 gc64" >"$work/table"
refuses 1 "a block's head needs"
printf '%s\n' "$head" 'a 1' "$head like one x64 gc64 zzz" >"$work/table"
refuses 3 "no block one x64 gc64 zzz above"
printf '%s\n' "$head like one x64 gc64 aaa" >"$work/table"
refuses 1 "no block one x64 gc64 aaa above"
printf 'layouts: all as expected\n'
