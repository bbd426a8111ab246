#!/bin/bash
# SPDX-License-Identifier: MIT
# What kernels_test runs in an emulated machine: a program of known shares, recorded as the kernel's
# settings and the recorder's rights vary. It sets RECORD, SHARE, FULL, and TRUTH, TOLERANCE and SAMPLES_MIN.
# A row for each: KERNEL, setting, who, exit status, way of sampling, samples, share, the same by the program's
# own clock, reason; separated by tabs.

# shellcheck disable=SC2153
readonly RATE_HZ=499 SECONDS_FIRST=3 LONG_ENOUGH=3000
kernel=$(uname -r)
kernel=${kernel%%[-+]*}
[[ $kernel == *.*.0 ]] && kernel=${kernel%.0}

# set_to NAME VALUE: @return whether it took.
set_to() {
	local file=/proc/sys/kernel/$1
	[[ -e $file ]] && { echo "$2" >"$file"; } 2>/dev/null && [[ $(<"$file") == "$2" ]]
}

target=
start_target() {
	rm -f /tmp/stop /tmp/truth
	"$@" luajit "$SHARE" $LONG_ENOUGH /tmp/stop >/tmp/truth &
	target=$!
	until grep -q TRUTH /tmp/truth 2>/dev/null; do
		kill -0 "$target" || exit 1
		sleep 0.1
	done
}

end_target() {
	echo >/tmp/stop
	wait "$target"
}

# next_clock: the program's own seconds in burn_heavy and in burn_light, as it tells them next.
next_clock() {
	local before
	before=$(grep -c TRUTH /tmp/truth)
	until (($(grep -c TRUTH /tmp/truth) > before)); do
		kill -0 "$target" || exit 1
		sleep 0.05
	done
	awk '/TRUTH/ { heavy = $3; light = $4 } END { print heavy, light }' /tmp/truth
}

# record SECONDS PREFIX...: sets status, heavy and light, which are samples, and clock, burn_heavy's share by
# the program's own clock meanwhile.
record() {
	local seconds=$1 began
	shift
	rm -f /tmp/row/*
	status=0
	began=$(next_clock)
	timeout 180 "$@" "$RECORD" -q -p "$target" -F $RATE_HZ -d "$seconds" -o /tmp/row/out.folded \
		--stats /tmp/row/stats.json 2>/tmp/row/errors </dev/null || status=$?
	read -r heavy light < <(awk '{ n = $NF } /;burn_heavy / { heavy += n } /;burn_light / { light += n }
		END { print heavy + 0, light + 0 }' /tmp/row/out.folded 2>/dev/null)
	clock=$(echo "$began $(next_clock)" | awk '{ h = $3 - $1; l = $4 - $2; printf "%.1f", 100 * h / (h + l) }')
}

# is_near TRUTH: whether there are enough samples, and their share is that.
is_near() {
	awk -v n=$((heavy + light)) -v heavy="$heavy" -v truth="$1" -v tolerance="$TOLERANCE" -v least="$SAMPLES_MIN" \
		'BEGIN { off = 100 * heavy / (n ? n : 1) - truth; exit !(n >= least && off <= tolerance && -off <= tolerance) }'
}

# row SETTING WHO [PREFIX...]: record, with the prefix before the command. An emulated machine on a busy one
# may give few samples: where the share is off, three times, each twice as long as the time before.
row() {
	local setting=$1 who=$2 way share reason seconds=$SECONDS_FIRST try
	shift 2
	for ((try = 1; try <= 3; try++, seconds *= 2)); do
		record "$seconds" "$@"
		share=$(awk -v h="$heavy" -v n=$((heavy + light)) 'BEGIN { if (n) printf "%.1f", 100 * h / n; else print "-" }')
		((status != 0)) && break
		{ is_near "$TRUTH" || is_near "$clock"; } && break
	done
	way=$(sed -n 's/.*"capture":"\([a-z]*\)".*/\1/p' /tmp/row/stats.json 2>/dev/null)
	reason=$(sed 's/.*\r//; s/^ljrecord: //' /tmp/row/errors | head -n 1)
	printf 'ROW\t%s\t%s\t%s\t%d\t%s\t%d\t%s\t%s\t%s\n' "$kernel" "$setting" "$who" "$status" \
		"${way:--}" $((heavy + light)) "$share" "$clock" "${reason:--}"
}

# without SETTING CAPABILITY...
without() {
	local setting=$1 names
	shift
	names=$(IFS=,; echo "$*")
	row "$setting" "root without ${names^^}" setpriv --bounding-set "-${names//,/,-}" --inh-caps "-${names//,/,-}"
}

mkdir -p /tmp/row
chmod 777 /tmp/row
paranoid=$(</proc/sys/kernel/perf_event_paranoid)
bpf=$(</proc/sys/kernel/unprivileged_bpf_disabled)
scope=$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo none)
nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)

start_target
row "default: perf_event_paranoid $paranoid, unprivileged_bpf_disabled $bpf, ptrace_scope $scope" root
without "default" sys_admin
if $FULL; then
	without "default" bpf
	without "default" perfmon
	for value in -1 0 1 2 3 4; do
		set_to perf_event_paranoid $value && row "perf_event_paranoid $value" root
	done
	set_to perf_event_paranoid 2 && {
		without "perf_event_paranoid 2" sys_admin
		without "perf_event_paranoid 2" sys_admin bpf
		without "perf_event_paranoid 2" sys_admin perfmon
	}
	set_to perf_event_paranoid 4 && without "perf_event_paranoid 4" sys_admin
	set_to perf_event_paranoid "$paranoid"
	for value in 0 2; do
		set_to unprivileged_bpf_disabled $value && row "unprivileged_bpf_disabled $value" root
	done
fi
end_target
start_target "${nobody[@]}"
row "default" "its user" "${nobody[@]}"
if $FULL; then
	set_to perf_event_paranoid -1
	set_to unprivileged_bpf_disabled 0
	row "perf_event_paranoid -1, unprivileged_bpf_disabled 0" "its user" "${nobody[@]}"
	set_to perf_event_paranoid "$paranoid"
	end_target
	start_target
	# 1 and, of Yama's, 3 hold until the next start.
	set_to unprivileged_bpf_disabled 1 && row "unprivileged_bpf_disabled 1" root
	for value in 0 1 2 3; do
		set_to yama/ptrace_scope $value && row "ptrace_scope $value" root
	done
fi
end_target
