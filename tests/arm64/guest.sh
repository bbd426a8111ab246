#!/bin/bash
# SPDX-License-Identifier: MIT
# What live_arm64_test runs in the emulated machine; BUILD is set by it. An instruction takes ten
# times as long there as usual, a stop some milliseconds, so that there are fewer samples.
# The arguments of `folded` are optional, and conditions are called by their names.
# shellcheck disable=SC2119,SC2317
# shellcheck source=../live/lib.sh.in
source "$BUILD/tests/live/lib.sh"

has_shares() { [ "$(stat_of samples)" -ge 500 ]; }

# 5 points are four standard deviations of a share of 75 % among 1,200 samples.
check_share() {
	local truth share
	seconds=16
	start "$SOURCE/share.lua" "$LIFETIME" "$WORK/stop"
	sample_until has_shares -F 99
	finish
	truth=$(told_truth)
	share=$(folded | awk '{ n = $NF } /;burn_heavy \(/ { heavy += n } /;burn_light \(/ { light += n }
		END { printf "%.2f", 100 * heavy / (heavy + light) }')
	result "$1: share of burn_heavy" "truth $truth +- 5" "$share" "($share - $truth) ^ 2 <= 25"
	result_full "$1: running samples with a full chain" 99.5
}

# has_floors: samples of what live_chain_test looks for. Sets how many, and those of another chain.
has_floors() {
	local f=@$SOURCE/chain.lua want
	want="_start;__libc_start_main;STATIC;main;lua_cpcall;STATIC;STATIC;lua_pcall"
	want="$want;main chunk ($f:28);outer ($f:22);pcall;$f:18;coroutine.resume;$f:13;string.gsub"
	want="$want;$f:8;math.floor"
	exact=$(folded | awk -v want="$want" '{ n = $NF; sub(/ [0-9]+$/, "")
		gsub(/(luajit|libc[.]so[.]6)[+]0x[0-9a-f]+|__libc_start_call_main/, "STATIC") }
		$0 == want { found += n } END { print found + 0 }')
	floors=$(folded | awk '/;math\.floor/ { n += $NF } END { print n + 0 }')
	[ "$exact" -ge 20 ]
}

check_chain() {
	seconds=8
	start "$SOURCE/chain.lua" "$LIFETIME"
	sample_until has_floors -F 99
	kill_target
	result "$1: samples of the known chain, exact at every frame and line" ">= 20" "$exact" \
		"$exact >= 20"
	result "$1: samples in math.floor that have another chain" "0" $((floors - exact)) \
		"$floors == $exact"
}

# check_copies NAME: the same chain where the kernel copies the program.
check_copies() {
	local LJRECORD=$WORK/copies
	printf '#!/bin/sh\nexec %s --capture=kernel "$@"\n' "$WORK/ljrecord" >"$LJRECORD"
	chmod +x "$LJRECORD"
	check_chain "$1, copied by the kernel"
	result "$1, copied by the kernel: how samples were taken" kernel "$(captured)" \
		"\"$(captured)\" == \"kernel\""
}

# check_graph NAME WHAT LEAST: the recorded chains against what the program's text allows.
check_graph() {
	local total impossible functions
	folded >"$WORK/folded"
	awk -v chunk="@$SOURCE/graph.lua" -f "$SOURCE/graph.awk" "$SOURCE/graph.lua" \
		"$WORK/folded" >"$WORK/graph"
	head -n 5 "$WORK/graph"
	read -r total impossible functions < <(tail -n 1 "$WORK/graph")
	result "$1: $2 of a program with a known call graph" ">= $3" \
		"$total of $functions functions" "$total >= $3"
	result "$1: impossible chains among them" "0" "$impossible" "$impossible == 0"
}

# Of them some are of the program's start.
has_samples() { [ "$(stat_of samples)" -ge 230 ]; }

check_samples() {
	seconds=8
	start "$SOURCE/graph.lua" "$LIFETIME"
	sample_until has_samples -F 99
	kill_target
	check_graph "$1" samples 200
}

# check_steps NAME WHAT FIELD LEAST [jit]: each instruction of some stretches of the program, which
# may all lie in the garbage collector or in string functions: more are taken until the numbers that
# step prints from FIELD on are LEAST in sum.
check_steps() {
	local name=$1 what=$2 field=$3 least=$4 steps=0 found=0 partial=0 traces=0 tries=0 numbers
	shift 4
	while ((tries < 1 || (found < least && tries < 6))); do
		"$BUILD/tests/live/step" 3000 30 "$WORK/out.bin" luajit "$SOURCE/graph.lua" 120 "$@" \
			>"$WORK/numbers" 2>"$WORK/partial" || die "step failed: $(cat "$WORK/partial")"
		head -n 5 "$WORK/partial"
		# Steps; in the interpreter, without a full chain, outside of the VM; compiled: exact,
		# approximate, trace only.
		read -ra numbers <"$WORK/numbers"
		tries=$((tries + 1))
		steps=$((steps + numbers[0])) partial=$((partial + numbers[2]))
		traces=$((traces + numbers[6]))
		[[ $field = interpreter ]] && found=$((found + numbers[1]))
		[[ $field = compiled ]] && found=$((found + numbers[4] + numbers[5]))
		check_graph "$name" "$what" 2800
	done
	result "$name: $what without a full chain" "<= 0.1 %" "$partial of $steps" \
		"$partial <= $steps / 1000"
	result "$name: $what, $field" ">= $least" "$found of $steps" "$found >= $least"
	[[ $field != compiled ]] ||
		result "$name: $what of which the trace alone is known" "<= 5 % of those compiled" \
			"$traces" "20 * $traces <= $found"
}

for name in "main line" OpenResty; do
	[[ $name == OpenResty ]] && PATH=/second/usr/bin:$PATH
	check_share "$name"
	check_chain "$name"
	check_copies "$name"
	check_samples "$name"
	check_steps "$name" "instructions" interpreter 500
	check_steps "$name" "instructions with the compiler" compiled 500 jit
done
echo "all checked"
done_testing
