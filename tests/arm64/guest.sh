#!/bin/bash
# SPDX-License-Identifier: MIT
# What live_arm64_test runs in the emulated machine; BUILD is set by it. An instruction takes ten
# times as long there as usual, a stop some milliseconds, so that there are fewer samples.
# The arguments of `folded` are optional, and conditions are called by their names.
# shellcheck disable=SC2119,SC2317
# shellcheck source=../live/lib.sh.in
source "$BUILD/tests/live/lib.sh"

# Instructions that are stepped through, in stretches of a sixtieth.
step_count=1200
$FULL && step_count=3000

# captured_as NAME HOW: what the last recording says of how it took samples.
captured_as() {
	local how
	how=$(awk -F '"' '$2 == "capture" { print $4 }' "$WORK/stats.json")
	result "$1, --capture=$2: how samples were taken" "$2" "$how" "\"$how\" == \"$2\""
}

# by HOW COMMAND...: with recordings that take their samples so, instead of by stops.
by() {
	local LJRECORD=$WORK/by how=$1
	shift
	printf '#!/bin/sh\nexec %s --capture=%s "$@"\n' "$WORK/ljrecord" "$how" >"$LJRECORD"
	chmod +x "$LJRECORD"
	"$@"
}

# check_share NAME RATE
has_shares() {
	read -r heavy light < <(folded | awk '{ n = $NF }
		/;burn_heavy \(/ { heavy += n } /;burn_light \(/ { light += n } END { print heavy + 0, light + 0 }')
	truth=$(told_truth)
	[ "$(near "$truth" 5 "$heavy" $((heavy + light)))" != open ]
}
check_share() {
	local heavy light truth
	start "$SOURCE/share.lua" "$LIFETIME" "$WORK/stop"
	sample_until has_shares -F "$2"
	finish
	result_near "$1: share of burn_heavy" "$truth" 5 "$heavy" $((heavy + light))
	result_full "$1: running samples with a full chain" 99.5
}

# has_floors: samples of what live_chain_test looks for. Sets how many, and those of another chain.
has_floors() {
	local f=@$SOURCE/chain.lua want
	want="_start;__libc_start_main;STATIC;main;lua_cpcall;STATIC;STATIC;lua_pcall"
	want="$want;main chunk ($f:28);outer ($f:22);pcall;guarded ($f:18);coroutine.resume;replace ($f:13);string.gsub"
	want="$want;callback ($f:8);math.floor"
	late=$(stat_of late_copies)
	exact=$(folded | awk -v want="$want" '{ n = $NF; sub(/ [0-9]+$/, "")
		gsub(/(luajit|libc[.]so[.]6)[+]0x[0-9a-f]+|__libc_start_call_main/, "STATIC") }
		$0 == want { found += n } END { print found + 0 }')
	# A copy by the kernel ends after a millisecond, which an emulated processor needs where it has to wait for a real one: then the
	# chain has a mark, or lacks its outer part.
	read -r floors cut < <(folded | awk '/math\.floor/ { n[/^_start;/ && !/ missing\]/] += $NF } END { print n[1] + 0, n[0] + 0 }')
	[ "$exact" -ge 20 ]
}

check_chain() {
	start "$SOURCE/chain.lua" "$LIFETIME"
	sample_until has_floors -F 99
	kill_target
	result "$1: samples of the known chain, exact at every frame and line" ">= 20" "$exact" \
		"$exact >= 20"
	result "$1: samples in math.floor that have another chain" "0" $((floors - exact)) \
		"$floors == $exact"
	result "$1: samples in math.floor that are cut off" "<= copies that ended early: $late" "$cut" "$cut <= $late"
	[ "$floors" = "$exact" ] || folded | grep 'math\.floor'
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
	# One stretch may lie where a trace is all that is known: that takes more of them, too.
	while ((tries < 1 || ((found < least || 20 * traces > found) && tries < 6))); do
		"$BUILD/tests/live/step" $step_count 60 "$WORK/out.bin" luajit "$SOURCE/graph.lua" 120 "$@" \
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
		check_graph "$name" "$what" $((step_count * 14 / 15))
	done
	result "$name: $what without a full chain" "<= 0.1 %" "$partial of $steps" \
		"$partial <= $steps / 1000"
	result "$name: $what, $field" ">= $least" "$found of $steps" "$found >= $least"
	[[ $field != compiled ]] ||
		result "$name: $what of which the trace alone is known" "<= 5 % of those compiled" \
			"$traces" "20 * $traces <= $found"
}

# check_derived NAME: layouts as if no row of the table fitted, or none of that fork.
check_derived() {
	"$BUILD/tests/live/live_derived_test" >"$WORK/derived" || FAILED=1
	sed "s/^RESULT\t/&$1: /" "$WORK/derived"
}

# A recording takes some time to begin.
seconds=4
for name in "main line" OpenResty; do
	[[ $name == OpenResty ]] && PATH=/second/usr/bin:$PATH
	check_chain "$name"
	check_steps "$name" "instructions with the compiler" compiled $((step_count / 6)) jit
	check_derived "$name"
	# What differs between the forks is in the two above.
	[[ $name == "main line" ]] || $FULL || continue
	by kernel check_share "$name, copied by the kernel" 499
	by kernel check_chain "$name, copied by the kernel"
	captured_as "$name" kernel
	check_steps "$name" "instructions" interpreter $((step_count / 6))
	$FULL || continue
	check_share "$name" 99
	check_samples "$name"
done
if [[ -n ${TRIXIE-} ]]; then
	mkdir -p /root/trixie
	loader=$(find "$TRIXIE/usr/lib" -name 'ld-linux-aarch64.so.1' | head -n 1)
	printf '#!/bin/sh\nexec %s --library-path %s %s "$@"\n' "$loader" "$TRIXIE/usr/lib/aarch64-linux-gnu" \
		"$TRIXIE/usr/bin/luajit" >/root/trixie/luajit
	chmod +x /root/trixie/luajit
	PATH=/root/trixie:$PATH
	check_share "Debian 13" 99
	by kernel check_share "Debian 13, copied by the kernel" 499
	check_derived "Debian 13"
fi
echo "all checked"
done_testing
