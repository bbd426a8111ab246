# SPDX-License-Identifier: MIT
# Turns layouts.table into C: the struct of a layout and one initialised row per column.
# Usage: awk -f layouts.awk layouts.table >layouts.inc

function fail(text) {
	print "layouts.table:" FNR ": " text > "/dev/stderr"
	failed = 1
	exit 1
}

/^#/ || NF == 0 { next }

{
	if (!columns)
		columns = NF - 1
	if (NF - 1 != columns)
		fail("a line needs " columns " values")
	name = $1
	text = sub(/^@/, "", name)
	gsub(/\./, "_", name)
	if (name in seen)
		fail($1 " appears twice")
	seen[name] = 1
	count++
	names[count] = name
	is_text[count] = text
	for (i = 1; i <= columns; i++)
		value[count, i] = $(i + 1)
}

END {
	if (failed)
		exit 1
	print "/* Made from layouts.table. */"
	print "struct luastate_layout {"
	for (n = 1; n <= count; n++)
		print "\t" (is_text[n] ? "const char *" : "int32_t ") names[n] ";"
	print "};"
	print "#ifdef LUASTATE_LAYOUT_ROWS"
	print "const struct luastate_layout luastate_layouts[] = {"
	for (i = 1; i <= columns; i++) {
		print "\t{"
		for (n = 1; n <= count; n++)
			print "\t\t." names[n] " = " \
				(is_text[n] ? "\"" value[n, i] "\"" : value[n, i]) ","
		print "\t},"
	}
	print "};"
	print "const size_t luastate_layout_count = " columns ";"
	print "#endif"
}
