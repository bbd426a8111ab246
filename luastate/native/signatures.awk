# SPDX-License-Identifier: MIT
# Turns a table of signatures into C: the names, and the signatures sorted by hash.
# Usage: awk -f signatures.awk signatures_x64.table >signatures.inc

/^#/ || NF == 0 { next }

{
	if ($1 !~ /^[A-Za-z_][A-Za-z0-9_]*$/ || length($1) > 63) {
		print FILENAME ":" FNR ": not a name" > "/dev/stderr"
		exit 1
	}
	names[++count] = $1
	for (i = 2; i <= NF; i++) {
		if (length($i) != 16 || $i !~ /^[0-9a-f]+$/) {
			print FILENAME ":" FNR ": not a hash" > "/dev/stderr"
			exit 1
		}
		hashes[++hash_count] = $i " " count - 1
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
	print "\t{ UINT64_MAX, 0 }\n};"
}
