#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: callgrind_test.sh LJREPORT GOLDEN_FOLDER
# Our files in callgrind_annotate: every function has the samples that we count for it, itself and in
# all, also where it calls itself. Exit status 77: there is no callgrind_annotate.

ljreport=$1
golden=$2
command -v callgrind_annotate >/dev/null || {
	echo "skipped: no callgrind_annotate (package valgrind)"
	exit 77
}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failures=0

fail() {
	echo "FAIL: $*" >&2
	failures=$((failures + 1))
}

# listed FILE [OPTION]: NAME SAMPLES of each function, sorted.
listed() {
	callgrind_annotate --threshold=100 --auto=no "${@:2}" "$1" 2>err | awk '
		/file:function/ { on = 1; next }
		on && /^ *[0-9]/ {
			samples = $1
			gsub(/,/, "", samples)
			sub(/^ *[0-9,]+ \([^)]*\) +/, "")
			sub(/ \[[^]]*\]$/, "")
			sub(/^[^:]*:/, "")
			sum[$0] += samples
		}
		END { for (name in sum) if (name != "[all]") print name, sum[name] }' | sort
}

# expected FILE self|total
expected() {
	"$ljreport" -f json "$1" | python3 -c '
import json, sys
rows = {}
for f in json.load(sys.stdin)["functions"]:
    rows[f["function"]] = rows.get(f["function"], 0) + f[sys.argv[1]]
for name, samples in rows.items():
    if samples:
        print(name, samples)' "$2" | sort
}

# check FILE
check() {
	"$ljreport" -o out.callgrind "$1" || fail "$1: cannot write"
	listed out.callgrind >got
	expected "$1" self >wanted
	[ -s got ] || fail "$1: callgrind_annotate lists nothing: $(cat err)"
	diff wanted got >difference || fail "$1: own samples: $(head -n 5 difference)"
	listed out.callgrind --inclusive=yes >got
	expected "$1" total >wanted
	diff wanted got >difference || fail "$1: samples in all: $(head -n 5 difference)"
	total=$(awk '$1 == "summary:" { print $2 }' out.callgrind)
	[ "$total" = "$("$ljreport" -f counters "$1" | awk '$1 == "samples" { print $2 }')" ] ||
		fail "$1: summary $total"
}

printf 'main;f;g;f;g;f 5\nmain;f;g 3\nmain;g;f;h 2\nmain 1\n' >recursion
check recursion
for stream in sysprof_c_full_deep sysprof_c_full_jitoff sysprof_c_jiton; do
	check "$golden/gc64/$stream.bin"
done

[ $failures -eq 0 ] && echo "all checks passed"
exit $((failures > 0))
