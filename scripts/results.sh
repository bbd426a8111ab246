# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Lines "RESULT<TAB>what<TAB>asked<TAB>measured<TAB>verdict" from programs, as a table. Sourced.

# add_result WHAT ASKED MEASURED VERDICT: for what a script measures itself.
add_result() {
	printf 'RESULT\t%s\t%s\t%s\t%s\n' "$@" >>"$RESULTS"
}

# run_measurement PROGRAM [ARGUMENT]...: add its lines to $RESULTS. One that fails without saying so
# gets a line of its own; so does one that is skipped (77).
run_measurement() {
	local name status=0 output
	name=$(basename "$1")
	output=$(mktemp)
	say "$name"
	timeout --kill-after=10 3600 "$@" >"$output" || status=$?
	grep -a $'^RESULT\t' "$output" >>"$RESULTS" || true
	if ((status == 77)); then
		add_result "$name" "runs" "$(grep -a -i -m 1 skip "$output" || echo skipped)" skipped
	elif ((status != 0)) && ! grep -a -q $'^RESULT\t.*\tFAILED$' "$output"; then
		add_result "$name" "exit status 0" "exit status $status" FAILED
	elif ! grep -a -q $'^RESULT\t' "$output"; then
		add_result "$name" "exit status 0" "exit status 0" ok
	fi
	((status == 0 || status == 77)) || grep -a -v $'^RESULT\t' "$output" | tail -n 20 >&2 || true
	rm -f "$output"
}

# Where the numbers come from, in one line.
describe_machine() {
	local model system
	model=$(sed -n 's/^model name[[:space:]]*: *//p' /proc/cpuinfo | head -n 1)
	# shellcheck source=/dev/null
	system=$(. /etc/os-release && echo "$PRETTY_NAME")
	echo "$(nproc) processors ($model), $system, Linux $(uname -r | cut -d. -f1,2), luajit $(
		dpkg-query -W -f '${Version}' luajit 2>/dev/null || echo unknown
	)"
}

print_table() {
	awk -F '\t' '
		function cell(text) { gsub(/\|/, "\\|", text); return text }
		BEGIN { print "| what | asked | measured | |"; print "|---|---|---|---|" }
		{ printf "| %s | %s | %s | %s |\n", cell($2), cell($3), cell($4), cell($5) }
	' "$RESULTS"
}

# all_held: whether no line says FAILED.
all_held() {
	! grep -q $'\tFAILED$' "$RESULTS"
}
