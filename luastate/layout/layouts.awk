# SPDX-License-Identifier: MIT
# Turns layouts.table into C: the struct of a layout, one initialised row per block, and the names of
# the fields.
# Usage: awk -f layouts.awk layouts.table >layouts.inc

function fail(text) {
	print "layouts.table:" FNR ": " text > "/dev/stderr"
	failed = 1
	exit 1
}

function identifier(name) {
	gsub(/[.]/, "_", name)
	return name
}

# The index of a block, which its family, architecture, model and first commit identify.
function find(family, arch, model, first,   i) {
	for (i = 1; i < rows; i++)
		if (head[i, 2] == family && head[i, 3] == arch && head[i, 4] == model &&
		    head[i, 5] == first)
			return i
	fail("no block " family " " arch " " model " " first " above")
}

/^#/ || NF == 0 { next }

$1 == "build" {
	if (NF != 8 && !(NF == 13 && $9 == "like"))
		fail("a block's head needs seven words, and like with four more at most")
	rows++
	for (i = 2; i <= 8; i++)
		head[rows, i] = $i
	base = NF == 13 ? find($10, $11, $12, $13) : rows - 1
	for (i = 1; base && i <= count; i++)
		value[rows, names[i]] = value[base, names[i]]
	delete given
	next
}

{
	if (!rows || NF != 2 || $2 !~ /^(-|-?[0-9]+)$/)
		fail("expected a name and a number")
	if ($1 in given)
		fail($1 " appears twice")
	given[$1] = 1
	if (!($1 in known)) {
		if (rows > 1)
			fail("unknown field " $1)
		known[$1] = 1
		names[++count] = $1
	}
	value[rows, $1] = $2 == "-" ? "LAYOUT_ABSENT" : $2
}

# The collector's sums and settings are at fixed distances from its phase in all builds since 2017.
function add_collector(   r, wide) {
	names[++count] = "global_State.gc_total"
	names[++count] = "global_State.gc_stepmul"
	for (r = 1; r <= rows; r++) {
		wide = head[r, 4] == "gc64"
		value[r, "global_State.gc_total"] = value[r, "global_State.gc_state"] - (wide ? 17 : 9)
		value[r, "global_State.gc_stepmul"] = value[r, "global_State.gc_state"] + (wide ? 71 : 39)
	}
}

function print_row(r,   n) {
	print "\t{"
	print "\t\t.family = \"" head[r, 2] "\", .arch = \"" head[r, 3] "\","
	print "\t\t.gc64 = " (head[r, 4] == "gc64" ? 1 : 0) ", .ref_size = " \
		(head[r, 4] == "gc64" ? 8 : 4) ","
	print "\t\t.first = \"" head[r, 5] "\", .first_date = \"" head[r, 6] "\","
	print "\t\t.last = \"" head[r, 7] "\", .last_date = \"" head[r, 8] "\","
	for (n = 1; n <= count; n++)
		print "\t\t." identifier(names[n]) " = " value[r, names[n]] ","
	print "\t},"
}

END {
	if (failed)
		exit 1
	if ("global_State.gc_state" in known)
		add_collector()
	print "/* Made from layouts.table. */"
	print "#define LAYOUT_ABSENT (-1)"
	print "struct luastate_layout {"
	print "\tconst char *family, *arch, *first, *first_date, *last, *last_date;"
	print "\tint32_t gc64, ref_size;"
	for (n = 1; n <= count; n++)
		print "\tint32_t " identifier(names[n]) ";"
	print "\t/* Whether opcodes differ from all rows; the number in the rows of each opcode. */"
	print "\tint32_t has_opcodes;"
	print "\tuint8_t opcodes[256];"
	print "};"
	print "#ifdef LUASTATE_LAYOUT_ROWS"
	print "const struct luastate_layout luastate_layouts[] = {"
	for (r = 1; r <= rows; r++)
		print_row(r)
	print "};"
	print "const size_t luastate_layout_count = " rows ";"
	print "const struct state_field state_fields[] = {"
	for (n = 1; n <= count; n++)
		print "\t{ \"" names[n] "\", offsetof(struct luastate_layout, " \
			identifier(names[n]) ") },"
	print "};"
	print "const size_t state_field_count = " count ";"
	print "#endif"
}
