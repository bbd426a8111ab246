#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: large_test.sh MAKE_STREAM LJREPORT [--full | --sanitized]
# A large recording in all forms: as many samples, little memory; with --full ten million samples of
# 100,000 distinct chains, and the time that it takes. A short one takes 25 MiB at most, and twice as
# much if it kept what it reads. Sanitizers keep what is freed.

make_stream=$1
ljreport=$2
samples=200000 chains=5000 bound_mib=40 bound_s=0
case ${3-} in
--full) samples=10000000 chains=100000 bound_mib=500 bound_s=10 ;;
--sanitized) bound_mib=500 ;;
esac
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failures=0

# result WHAT ASKED MEASURED CONDITION
result() {
	local verdict=ok
	awk "BEGIN { exit !($4) }" || verdict=FAILED
	[ $verdict = ok ] || failures=$((failures + 1))
	printf 'RESULT\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$verdict"
}

"$make_stream" $samples $chains "$folder/in.bin" || exit 1

# convert FORM: seconds and MiB of it to $seconds and $memory.
convert() {
	python3 - "$ljreport" "$1" "$folder/in.bin" "$folder/out.$1" >"$folder/usage" <<-'END' || exit 1
		import resource, subprocess, sys, time
		begin = time.monotonic()
		subprocess.run([sys.argv[1], "-f", sys.argv[2], "-o", sys.argv[4], sys.argv[3]], check=True)
		usage = resource.getrusage(resource.RUSAGE_CHILDREN)
		print("%.2f %.0f" % (time.monotonic() - begin, usage.ru_maxrss / 1024))
	END
	read -r seconds memory <"$folder/usage"
}

what="$samples samples of $chains chains as"
# trace-event and perf have each sample's calls as text: some 10 GB of ten million, whatever writes them.
for form in pprof folded callgrind markdown svg html json speedscope cpuprofile firefox; do
	convert $form
	[[ $form == pprof || $form == folded ]] || rm -f "$folder/out.$form"
	result "$what $form: memory" "<= $bound_mib MiB" "$memory MiB" "$memory <= $bound_mib"
	((bound_s == 0)) || result "$what $form: time" "< $bound_s s" "$seconds s" "$seconds < $bound_s"
done
expected=$("$ljreport" -f folded "$folder/in.bin" | awk '{ n += $NF } END { print n + 0, NR }')
for form in pprof folded; do
	got=$("$ljreport" -f folded "$folder/out.$form" |
		awk '{ n += $NF } END { print n + 0, NR }')
	result "$what $form: samples and chains read back" "$expected" "$got" "\"$got\" == \"$expected\""
done
# Go's own tool writes the same profile.
if command -v go >/dev/null; then
	export HOME=$folder PPROF_TMPDIR=$folder GOFLAGS=-mod=mod GOTOOLCHAIN=local
	mv "$folder/out.pprof" "$folder/out.pb.gz"
	go tool pprof -symbolize=none -proto -output="$folder/go.pb.gz" "$folder/out.pb.gz" >/dev/null 2>"$folder/err" || {
		cat "$folder/err" >&2
		exit 1
	}
	read -r ours theirs < <(stat -c %s "$folder/out.pb.gz" "$folder/go.pb.gz" | tr '\n' ' ')
	result "$what pprof: size" "<= 3 times that of go's" "$(awk "BEGIN { printf \"%.2f times\", $ours / $theirs }")" \
		"$ours <= 3 * $theirs"
else
	echo "skipped: pprof's size (no go command)"
fi
exit $((failures > 0))
