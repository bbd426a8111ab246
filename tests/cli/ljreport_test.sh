#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: ljreport_test.sh LJREPORT GOLDEN_FOLDER
# Command line, exit codes and error texts of ljreport.

ljreport=$1
golden=$2
stream=$golden/gc64/sysprof_c_full_jitoff.bin
memory=$golden/gc64/memprof_jitoff.bin
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failures=0

fail() {
	echo "FAIL: $*" >&2
	failures=$((failures + 1))
}

# check CODE PATTERN ARGUMENT...: run, compare the exit code, and match the one line on stderr.
check() {
	local code=$1 pattern=$2 got
	shift 2
	"$ljreport" "$@" >"$folder/out" 2>"$folder/err"
	got=$?
	[ $got -eq "$code" ] || fail "$*: exit code $got, not $code"
	if [ -z "$pattern" ]; then
		[ ! -s "$folder/err" ] || fail "$*: says $(cat "$folder/err")"
		return
	fi
	[ "$(wc -l <"$folder/err")" -eq 1 ] || fail "$*: not one line: $(cat "$folder/err")"
	grep -q -- "$pattern" "$folder/err" || fail "$*: says $(cat "$folder/err")"
}

# Reports
check 0 '' "$stream"
grep -q '^117 samples' "$folder/out" || fail 'top is the default'
check 0 '' -f counters "$stream"
cmp -s "$folder/out" "$golden/gc64/sysprof_c_full_jitoff.counters.txt" || fail 'counters differ'
check 0 '' --format=folded "$stream"
awk '{ n += $NF } END { exit n != 117 }' "$folder/out" || fail 'folded counts'
cp "$folder/out" "$folder/lines"
check 0 '' --lines=function -f folded "$stream"
awk '{ n += $NF } END { exit n != 117 }' "$folder/out" || fail 'folded counts by function'
# The reference's streams do not tell what is compiled, but for traces.
check 0 '' -f folded --annotate=jit "$stream"
cmp -s "$folder/out" "$folder/lines" || fail 'annotated without traces'
check 0 '' -f folded --annotate=jit "$golden/gc64/sysprof_c_jiton.bin"
grep -q 'trace [0-9]* @ .*_\[j\] ' "$folder/out" || fail 'traces are not annotated'
check 0 '' -f folded --annotate=kind "$stream"
grep -q '_\[l\];' "$folder/out" || fail 'Lua frames do not tell their kind'
cp "$folder/out" "$folder/kinds"
check 0 '' -f folded --annotate=kind "$folder/kinds"
cmp -s "$folder/out" "$folder/kinds" || fail 'kinds by way of folded differ'
# A sysprof stream does not tell threads.
check 0 'no sample has its process or thread, so --roots cannot show it' -f folded --roots=process,thread "$stream"
cmp -s "$folder/out" "$folder/lines" || fail 'roots that are not known'
check 0 'no sample has its thread, so --roots cannot show it' -f svg --roots=thread "$stream"
check 0 '--roots has no effect on the format top' --roots=thread "$stream"
check 0 '' --roots=none "$stream"
# Streams and our pprof profiles tell the order of samples, text does not.
check 0 '' -f pprof -o "$folder/ordered.pb.gz" "$stream"
check 0 '' -f cpuprofile "$stream"
cp "$folder/out" "$folder/chart"
check 0 '' -f cpuprofile "$folder/ordered.pb.gz"
cmp -s "$folder/out" "$folder/chart" || fail 'the chart of a pprof profile differs from that of its stream'
check 0 '' --diff "$stream" "$folder/ordered.pb.gz"
check 0 'does not tell in which order its samples came: the times of the chart mean nothing' -f cpuprofile "$folder/lines"
check 0 '' -q -f cpuprofile "$folder/lines"
check 0 '' -f html "$folder/lines"
check 0 "^ljreport: $folder/lines does not tell .*: samples count as independent" --diff "$folder/lines" "$stream"
check 0 "^ljreport: $folder/lines does not tell .*: samples count as independent" --diff "$stream" "$folder/lines"
check 0 "^ljreport: $folder/lines does not tell .*: samples count as independent" --fail-on 'self>100%' "$folder/lines"
check 0 '' -f folded -o "$folder/file" "$stream"
cmp -s "$folder/file" "$folder/lines" || fail '-o differs from standard output'
check 0 '' -f folded -o - "$stream"
cmp -s "$folder/out" "$folder/lines" || fail '-o - is not standard output'
check 0 '' -f svg --title='my <title>' "$stream"
grep -q 'my &lt;title&gt;' "$folder/out" || fail 'svg title'
"$ljreport" -f folded - <"$stream" | cmp -s - "$folder/lines" || fail 'standard input differs'
check 0 '' -f counters "$memory"
grep -q '^allocs 104$' "$folder/out" || fail 'memory counters'
check 0 '' "$memory"
sort "$folder/out" | cmp -s - <(sort "$golden/gc64/memprof_jitoff.txt") ||
	fail 'a memory profile differs from the reference'
check 0 '' --leak-only --human-readable "$memory"
head -n 1 "$folder/out" | grep -q '^HEAP SUMMARY:$' || fail '--leak-only prints more'
check 0 '' -f leaks "$memory"
cp "$folder/out" "$folder/leaks"
check 0 '' -f leaks --human-readable "$golden/gc64/memprof_jiton.bin"
grep -q '^3.86KiB in 15 blocks' "$folder/out" || fail 'sizes are not for people'
check 0 '' -f leaks "$memory" "$memory"
[ "$(awk '{ print 2 * $1, $2, $3 * 2; exit }' "$folder/leaks")" = "$(awk '{ print $1 + 0, $2, $3; exit }' "$folder/out")" ] ||
	fail 'two memory profiles do not add up'
check 6 'not a memory profile' -f leaks "$stream"
# Its locations are chains.
bytes=$(awk '{ print $1 + 0; exit }' "$folder/leaks")
check 0 '' -f folded "$memory"
awk -v bytes="$bytes" '{ n += $NF } END { exit n != bytes }' "$folder/out" || fail 'what is held, as chains'
cp "$folder/out" "$folder/held"
check 0 '' -f folded --memory=alloc_objects "$memory"
awk '{ n += $NF } END { exit n != 104 + 11 }' "$folder/out" || fail 'allocations as chains'
check 0 '' -o "$folder/heap.pb.gz" "$memory"
check 0 '' -f folded "$folder/heap.pb.gz"
grep -v ' 0$' "$folder/out" | cmp -s - "$folder/held" || fail 'a heap by way of pprof differs'
check 0 '' -f svg "$memory"
grep -q 'memprof_workload.lua:48' "$folder/out" || fail 'no flame graph of a heap'

# Other forms, there and back; the ending of the name tells the form.
check 0 '' -o "$folder/p.pb.gz" "$stream"
check 0 '' -f folded "$folder/p.pb.gz"
cmp -s "$folder/out" "$folder/lines" || fail 'folded by way of pprof differs'
check 0 '' -o "$folder/p.folded" "$folder/p.pb.gz"
cmp -s "$folder/p.folded" "$folder/lines" || fail '-o x.folded is not folded'
check 0 '' -f folded "$folder/p.folded"
cmp -s "$folder/out" "$folder/lines" || fail 'folded by way of folded differs'
check 0 '' -o "$folder/p.svg" "$folder/p.folded"
grep -q '<svg' "$folder/p.svg" || fail '-o x.svg is no flame graph'

# Several files add up.
check 0 '' -f folded "$stream" "$folder/p.pb.gz" "$folder/p.folded"
awk '{ n += $NF } END { exit n != 3 * 117 }' "$folder/out" || fail 'three files do not add up'
# Text does not tell C functions from native ones, so that a chain may be there as two.
chains_of() {
	sed 's/ [0-9]*$//' "$1" | sort -u
}
[ "$(chains_of "$folder/out")" = "$(chains_of "$folder/lines")" ] || fail 'chains are not the same ones'

# Help
check 0 '' --help
for format in top folded svg html pprof callgrind speedscope cpuprofile trace-event firefox perf json counters leaks; do
	grep -q "^  $format" "$folder/out" || fail "--help does not list $format"
done
check 0 '' -V
grep -q '^ljreport [0-9]' "$folder/out" || fail 'version'

# Wrong usage: 1
check 1 'FILE is missing'
check 1 'unknown format: nothing' -f nothing "$stream"
check 1 'unknown option' --nothing "$stream"
check 1 'unknown option' -x "$stream"
check 1 'argument is missing after -f' "$stream" -f
check 1 'lines (line or function): words' --lines=words "$stream"
check 1 'marks (jit, trace or kind): all' --annotate=all "$stream"
check 1 'values (inuse_space, inuse_objects, alloc_space or alloc_objects): all' --memory=all "$memory"
check 1 'roots (none, process, thread or process,thread): pid' --roots=pid "$stream"
check 1 'unknown suffix (known: .*\.svg .*\.json .*; or give --format): foo.png: try' -o foo.png "$stream"
check 1 'unknown option --formt: did you mean --format?$' --formt svg "$stream"
check 1 'unknown format: speedscpoe: did you mean speedscope?$' -f speedscpoe "$stream"

# Input: 6
check 6 'No such file' "$folder/nothing"
check 6 'Is a directory' "$folder"
check 6 'no count after the chain at byte 0' "$0"
check 6 'empty file at byte 0' /dev/null
check 6 'cannot add up a memory profile' "$memory" "$stream"
check 6 'cannot add up a memory profile' "$stream" "$memory"
# Two places with allocations of 2^63 bytes.
printf 'ljs\3\0\0\0\200ljm\3\0\0\0\5\1\200\200\200\200\200\200\200\200\200\1\11\1\1\2\200\200\200\200\200\200\200\200\200\1\200' \
	>"$folder/large"
check 4 'large: more samples than can be counted$' -f folded "$folder/large"
head -c 5000 "$stream" >"$folder/cut"
check 6 'cut: truncated item at byte 5000' "$folder/cut"
"$ljreport" - <"$folder/cut" 2>"$folder/err"
grep -q '^ljreport: standard input: ' "$folder/err" || fail 'name of standard input'

# Output: 4
check 4 'No such file' -o "$folder/no/file" "$stream"
if [ -w /dev/full ]; then
	check 4 '/dev/full: No space left' -o /dev/full "$stream"
	"$ljreport" "$stream" >/dev/full 2>"$folder/err"
	[ $? -eq 4 ] || fail 'full standard output'
	"$ljreport" --help >/dev/full 2>"$folder/err"
	[ $? -eq 4 ] || fail 'full standard output for --help'
fi

# What is there stays until another one is complete, and as who may read it.
echo kept >"$folder/kept"
chmod 640 "$folder/kept"
echo 'a;b 2000000' >"$folder/many"
check 4 'more than 1000000 repeated samples' -q -f perf -o "$folder/kept" "$folder/many"
[ "$(cat "$folder/kept")" = kept ] || fail 'a failed report has emptied a file'
check 0 '' -f folded -o "$folder/kept" "$folder/many"
[ "$(cat "$folder/kept")" = 'a;b 2000000' ] || fail 'a file was not replaced'
[ "$(stat -c %a "$folder/kept")" = 640 ] || fail 'a file has other permissions now'
check 0 '' -f folded -o "$folder/many" "$folder/many"
[ "$(cat "$folder/many")" = 'a;b 2000000' ] || fail 'a file was not its own output'
[ -z "$(find "$folder" -name '*.tmp')" ] || fail 'temporary files are left'
# Not even if it is interrupted. The report is long, so there is time for that.
for number in INT TERM HUP; do
	printf "%0300d 1000000\n" 0 >"$folder/long"
	# A script's background jobs ignore SIGINT.
	env --default-signal=INT "$ljreport" -f perf -o "$folder/interrupted" "$folder/long" &
	until [ -n "$(find "$folder" -name '*.tmp')" ] || ! kill -0 $! 2>/dev/null; do sleep 0.01; done
	kill -$number $!
	wait $! 2>/dev/null
	[ "$(kill -l $?)" = $number ] || fail "SIG$number does not end it"
	[ -z "$(find "$folder" -name '*.tmp' -o -name interrupted)" ] || fail "SIG$number leaves a file"
done
check 1 'two outputs have the same name' -o "$folder/x" --fail-on 'self>99%' --junit "$folder/x" "$stream"

# A reader that has seen enough is no error worth a word.
"$ljreport" -f svg "$stream" 2>"$folder/err" | head -n 1 >/dev/null
[ ! -s "$folder/err" ] || fail "closed pipe: $(cat "$folder/err")"

[ $failures -eq 0 ] && echo "all checks passed"
exit $((failures > 0))
