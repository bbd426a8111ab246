#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: pprof_go_test.sh LJREPORT GOLDEN_FOLDER MAPPED
# Our profiles in the reader that people use, go tool pprof, and profiles that it wrote in ours. MAPPED
# is a profile in pprof's form with mappings, some of the same file. Exit status 77: there is no go.

ljreport=$1
stream=$2/gc64/sysprof_c_full_jitoff.bin
mapped=$3
command -v go >/dev/null || {
	echo "skipped: no go command (package golang-go)"
	exit 77
}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
export HOME=$folder PPROF_TMPDIR=$folder GOFLAGS=-mod=mod GOTOOLCHAIN=local
failures=0

fail() {
	echo "FAIL: $*" >&2
	failures=$((failures + 1))
}

"$ljreport" -o ours.pb.gz "$stream" || fail 'cannot write'

# Own and total samples of every function, one in a line: NAME SELF TOTAL.
go tool pprof -symbolize=none -sample_index=samples -nodecount=100000 -nodefraction=0 -edgefraction=0 \
	-top ours.pb.gz >top 2>err || fail "go tool pprof -top: $(cat err)"
awk '/^ *flat /{ on = 1; next } on { self = $1; total = $4; $1 = $2 = $3 = $4 = $5 = ""; sub(/^ */, ""); print $0, self, total }' \
	top | sort >theirs
"$ljreport" -f json "$stream" | python3 -c '
import json, sys
rows = {}
for f in json.load(sys.stdin)["functions"]:
    row = rows.setdefault(f["function"], [0, 0])
    row[0] += f["self"]
    row[1] += f["total"]
for name in sorted(rows):
    print(name, *rows[name])' | sort >expected
[ -s theirs ] || fail 'go tool pprof shows no function'
diff expected theirs >difference || fail "functions differ: $(head -n 5 difference)"

# All of it can be read, and written anew.
go tool pprof -symbolize=none -raw ours.pb.gz >raw 2>err || fail "go tool pprof -raw: $(cat err)"
grep -q '^samples/count' raw || fail "raw: $(head -n 3 raw)"
go tool pprof -symbolize=none -proto -output=theirs.pb.gz ours.pb.gz >/dev/null 2>err ||
	fail "go tool pprof -proto: $(cat err)"
"$ljreport" -f folded ours.pb.gz >ours.folded
"$ljreport" -f folded theirs.pb.gz >theirs.folded || fail 'cannot read what go wrote'
cmp -s ours.folded theirs.folded || fail 'what go wrote differs'
"$ljreport" -o /dev/null -f cpuprofile ours.pb.gz 2>err || fail "cannot chart: $(cat err)"
[ ! -s err ] || fail "ours lacks its order: $(cat err)"
"$ljreport" -o /dev/null -f cpuprofile theirs.pb.gz 2>err || fail "cannot chart: $(cat err)"
grep -q 'does not tell in which order' err || fail "what go wrote seems to have an order: $(cat err)"
sizes=$(stat -c %s ours.pb.gz theirs.pb.gz | tr '\n' ' ')
read -r ours theirs <<<"$sizes"
((ours <= 3 * theirs)) || fail "ours has $ours bytes, theirs $theirs"

# A heap has the values that Go's have: what is left, and all.
heap=$2/gc64/memprof_jiton.bin
"$ljreport" -o heap.pb.gz "$heap" || fail 'cannot write a heap'
go tool pprof -symbolize=none -raw heap.pb.gz >raw 2>err || fail "heap, raw: $(cat err)"
grep -q '^alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes\[dflt\]' raw ||
	fail "types of a heap: $(head -n 5 raw)"
for value in inuse_space inuse_objects alloc_space alloc_objects; do
	go tool pprof -symbolize=none -sample_index=$value -nodecount=1000 -nodefraction=0 -unit=B -top \
		heap.pb.gz 2>err |
		awk '/^ *flat /{ on = 1; next } on && $1 + 0 { held = $1 + 0; $1 = $2 = $3 = $4 = $5 = ""; sub(/^ */, ""); print $0, held }' |
		sort >theirs
	"$ljreport" -f folded --memory=$value "$heap" | sort >expected
	[ -s theirs ] || fail "go tool pprof shows no $value: $(cat err)"
	diff expected theirs >difference || fail "$value: $(head -n 5 difference)"
done

# Mappings, as go has those of the first file: what it merges, we merge; and addresses in them.
places() {
	go tool pprof -symbolize=none -raw "$1" 2>err | awk '
		/^Locations/ { where = "at" } /^Mappings/ { where = "in" }
		where == "in" && /^[0-9]+: / { print "mapping", $2, $3, $4 }
		where == "at" && /^ +[0-9]+: 0x/ { print "address", $2 }' | sort -u
}
"$ljreport" -o mapped.pb.gz "$mapped" || fail 'cannot write a profile with mappings'
go tool pprof -symbolize=none -proto -output=back.pb.gz mapped.pb.gz >/dev/null 2>err ||
	fail "go tool pprof -proto: $(cat err)"
"$ljreport" -o again.pb.gz back.pb.gz || fail 'cannot read what go wrote with mappings'
places "$mapped" >expected
[ "$(grep -c '^mapping' expected)" -ge 2 ] || fail "mappings: $(cat expected err)"
for file in mapped.pb.gz back.pb.gz again.pb.gz; do
	places "$file" >found
	diff expected found >difference || fail "mappings of $file differ: $(cat difference)"
done

[ $failures -eq 0 ] && echo "all checks passed: $ours bytes, go's $theirs"
exit $((failures > 0))
