#!/bin/bash
# SPDX-License-Identifier: MIT
# Recordings on kernels of Debian in emulated machines: which way samples are taken, whether the
# shares are right, and whether the reason is given where they are not the kernel's copies.
#
# Usage: tests/kernels/kernels_test.sh BUILD [--full] [--table] [SUITE]...
#   BUILD    the folder of the build
#   --full   every setting, not the default ones only
#   --table  append the rows to the file KERNELS, for scripts/verify
#   SUITE    of Debian; by default bookworm
# Exit status 77: nothing could be run.
set -euo pipefail

folder=$(CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(realpath "$1")
share=$(realpath "$folder/../live/share.lua")
shift
full=false
table=/dev/null
suites=()
while (($#)); do
	case $1 in
	--full) full=true ;;
	--table) table=$KERNELS ;;
	*) suites+=("$1") ;;
	esac
	shift
done
((${#suites[@]})) || suites=(bookworm)

# burn_heavy does three quarters of the program's work; where the machine is held up for a moment, or stops
# take long, its own clock tells what that was of its time.
readonly TRUTH=75 TOLERANCE=5 SAMPLES_MIN=200 ROWS_MIN=3
limit=400
$full && limit=3000
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

# judge: reads rows of one kernel, prints "ROW… VERDICT". CAP_SYS_ADMIN stands for the other two. Above
# 2 of perf_event_paranoid, Debian's default, its kernels want it to count a thread's time. Where threads
# are stopped the reason must be given.
judge() {
	awk -F '\t' -v OFS='\t' -v truth=$TRUTH -v tolerance=$TOLERANCE -v least=$SAMPLES_MIN '
		function older(release, major, minor, part) {
			split(release, part, ".")
			return part[1] < major || (part[1] == major && part[2] < minor)
		}
		function near(a, b) { return a - b <= tolerance && b - a <= tolerance }
		{
			kernel = $2; setting = $3; who = $4; status = $5; way = $6; samples = $7
			share = $8; clock = $9; reason = $10; verdict = "ok"
			traced = setting !~ /^ptrace_scope 3/
			want = "kernel"
			if (older(kernel, 5, 17) || who ~ /user|SYS_ADMIN,/) want = "stop"
			if (who ~ /SYS_ADMIN/ && setting ~ /default|paranoid [34]/) want = "stop"
			if (!traced && status == 2 && reason != "-") verdict = "ok"
			else if (status != 0) verdict = "FAILED: exit status " status
			else if (way != want) verdict = "FAILED: not by " want
			else if (way == "stop" && reason == "-") verdict = "FAILED: no reason is given"
			else if (way == "stop" && older(kernel, 5, 17) && reason !~ /this kernel is 5\.10/)
				verdict = "FAILED: another reason"
			else if (way == "kernel" && reason != "-") verdict = "FAILED: " reason
			else if (samples < least) verdict = "FAILED: too few samples"
			else if (!near(share, truth) && !near(share, clock)) verdict = "FAILED: share"
			print $0, verdict
		}'
}

ran=false
status=0
for suite in "${suites[@]}"; do
	if ! "$folder/fetch" "$suite" 2>"$work/log"; then
		echo "skipped: the kernel of $suite cannot be had: $(tail -n 1 "$work/log")"
		continue
	fi
	{
		printf 'RECORD=%q SHARE=%q FULL=%s TRUTH=%d TOLERANCE=%d SAMPLES_MIN=%d\n' "$build/cli/ljrecord" "$share" \
			$full $TRUTH $TOLERANCE $SAMPLES_MIN
		cat "$folder/guest.sh"
	} >"$work/script"
	code=0
	"$folder/machine" --seconds $limit "$suite" "$work/script" "$build/cli/ljrecord" "$share" \
		"$(command -v luajit)" "$(command -v setpriv)" "$(command -v timeout)" >"$work/out" 2>"$work/log" || code=$?
	if ((code == 77)); then
		cat "$work/out"
		continue
	fi
	ran=true
	grep -a $'^ROW\t' "$work/out" | judge >"$work/rows" || true
	cat "$work/rows"
	cat "$work/rows" >>"$table"
	rows=$(grep -c '' "$work/rows" || true)
	failed=$(grep -c 'FAILED' "$work/rows" || true)
	echo "$suite: $((rows - failed)) of $rows rows hold"
	if ((code != 0 || failed > 0 || rows < ROWS_MIN)); then
		status=1
		grep -a -v $'^ROW\t' "$work/out" || true
		cat "$work/log"
	fi
done
$ran || exit 77
exit $status
