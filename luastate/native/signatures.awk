# SPDX-License-Identifier: MIT
# Turns a table of signatures into C: the names, the signatures sorted by hash, and the lists of calls.
# Usage: awk -f signatures.awk signatures_x64.table >signatures.inc

/^#/ || NF == 0 { next }

function fail(text) {
	print FILENAME ":" FNR ": " text > "/dev/stderr"
	exit 1
}

function check_hash(text) {
	if (length(text) != 16 || text !~ /^[0-9a-f]+$/)
		fail("not a hash")
}

# The index of a name.
function index_of(name) {
	if (name !~ /^[A-Za-z_][A-Za-z0-9_]*$/ || length(name) > 63)
		fail("not a name")
	if (!(name in indices)) {
		indices[name] = count
		names[++count] = name
	}
	return indices[name]
}

$1 == "calls" {
	check_hash($2)
	lists[++list_count] = "{ 0x" $2 ", " call_count + 0 ", " NF - 2 " }"
	for (i = 3; i <= NF; i++)
		calls[++call_count] = $i == "-" ? 0 : index_of($i) + 1
	next
}

{
	name = index_of($1)
	for (i = 2; i <= NF; i++) {
		check_hash($i)
		hashes[++hash_count] = $i " " name
	}
}

END {
	print "static const char *const signature_names[] = {"
	for (i = 1; i <= count; i++)
		print "\t\"" names[i] "\","
	print "\tNULL\n};\n"
	print "static const struct {\n\tuint64_t hash;\n\tuint16_t name;\n} __attribute__((packed)) signatures[] = {"
	fflush()
	sort = "LC_ALL=C sort | sed 's/\\(.*\\) \\(.*\\)/\t{ 0x\\1, \\2 },/'"
	for (i = 1; i <= hash_count; i++)
		print hashes[i] | sort
	close(sort)
	print "\t{ UINT64_MAX, 0 }\n};\n\nstatic const uint16_t call_names[] = {"
	for (i = 1; i <= call_count; i++)
		print "\t" calls[i] ","
	print "\t0\n};\n\nstatic const struct {\n\tuint64_t flags;\n\tuint16_t first, count;\n} call_lists[] = {"
	for (i = 1; i <= list_count; i++)
		print "\t" lists[i] ","
	print "\t{ 0, 0, 0 }\n};"
}
