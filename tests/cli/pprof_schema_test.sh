#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: pprof_schema_test.sh LJREPORT FORMAT_FOLDER PROFILE...
# Our profiles in pprof's form against its published schema: each field of ours is one of it, and
# protoc decodes our files by it without a rest. Exit status 77: there is no protoc, or no schema.

ljreport=$1
ours=$2/pprof.proto
shift 2
# Debian's package golang-github-google-pprof-dev.
published=/usr/share/gocode/src/github.com/google/pprof/proto
for need in protoc zcat; do
	command -v $need >/dev/null || {
		echo "skipped: no $need command"
		exit 77
	}
done
[ -e $published/profile.proto ] || {
	echo "skipped: no $published/profile.proto (package golang-github-google-pprof-dev)"
	exit 77
}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failures=0

fail() {
	echo "FAIL: $*" >&2
	failures=$((failures + 1))
}

# Fields, one in a line: MESSAGE.FIELD TYPE = NUMBER.
fields() {
	sed 's,//.*,,' "$1" | awk '$1 == "message" { message = $2; next } / = [0-9]+;/ && message {
		sub(/^ */, ""); sub(/;.*/, "")
		name = $(NF - 2); number = $NF; $(NF - 2) = $(NF - 1) = $NF = ""; sub(/ *$/, "")
		print message "." name, $0, "=", number
	}' | sort
}
fields "$ours" >"$folder/ours"
fields $published/profile.proto >"$folder/theirs"
[ "$(wc -l <"$folder/ours")" -ge 40 ] || fail "only $(wc -l <"$folder/ours") fields are found in $ours"
other=$(comm -23 "$folder/ours" "$folder/theirs")
[ -z "$other" ] || fail "not in the published schema: $other"

for profile in "$@"; do
	"$ljreport" -f pprof "$profile" >"$folder/out.pb.gz" || fail "cannot convert $profile"
	zcat "$folder/out.pb.gz" | protoc --decode=perftools.profiles.Profile --proto_path=$published \
		profile.proto >"$folder/decoded" 2>"$folder/err" || fail "$profile: $(cat "$folder/err")"
	grep -q '^sample {' "$folder/decoded" || fail "$profile: no sample is decoded"
	# Fields that the schema does not have are shown by their numbers.
	! grep -Em 1 '^ *[0-9]+(:| \{)' "$folder/decoded" || fail "$profile: unknown fields"
done

[ $failures -eq 0 ] && echo "all checks passed: $(wc -l <"$folder/ours") fields, $# profiles"
exit $((failures > 0))
