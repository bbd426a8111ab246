# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Lines "RESULT<TAB>what<TAB>asked<TAB>measured<TAB>verdict" from programs, as a table. Sourced.
# Likewise "MATRIX<TAB>..." of ten cells, the last of which is a verdict; where $MATRIX names a file.
# "PEER<TAB>..." and "GROWTH<TAB>..." are kept where $PEERS and $GROWTH name files, and rows of a Markdown
# table, "| ...", where $TWINS does ($DIFFS for those of recordings against each other).

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
	say "$name" "${@:2}"
	timeout --kill-after=10 10800 "$@" >"$output" || status=$?
	# Where a checkout or a scratch folder is on this machine tells nobody anything.
	sed -i -E "s|$ROOT/||g; s|${TMPDIR:-/tmp}/tmp\.[[:alnum:]]+/||g" "$output"
	grep -a $'^RESULT\t' "$output" >>"$RESULTS" || true
	grep -a $'^MATRIX\t' "$output" >>"${MATRIX:-/dev/null}" || true
	grep -a $'^PEER\t' "$output" >>"${PEERS:-/dev/null}" || true
	grep -a '^GROWTH' "$output" >>"${GROWTH:-/dev/null}" || true
	grep -a '^| ' "$output" >>"${TWINS:-/dev/null}" || true
	if ((status == 77)); then
		add_result "$name" "runs" "$(grep -a -i -m 1 skip "$output" || echo skipped)" skipped
	elif ((status != 0)) && ! grep -a -q $'^RESULT\t.*\tFAILED$' "$output"; then
		add_result "$name" "exit status 0" "exit status $status" FAILED
	elif ! grep -a -q $'^RESULT\t' "$output"; then
		add_result "$name" "exit status 0" "exit status 0" ok
	fi
	((status == 0 || status == 77)) || grep -a -v -E $'^((RESULT|MATRIX|PEER|GROWTH|GROWTH-RUN)\t|\\| )' "$output" | tail -n 20 >&2 || true
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

print_matrix() {
	awk -F '\t' '
		BEGIN {
			print "| target | fork | version of LuaJIT | references | compiler | namespaces of its own |" \
				" samples by | share of burn_heavy, truth / measured | full chains | |"
			print "|---|---|---|---|---|---|---|---|---|---|"
		}
		{
			for (i = 2; i <= 11; i++) { gsub(/\|/, "\\|", $i); printf "| %s ", $i }
			print "|"
		}
	' "$MATRIX"
}

# Other profilers beside ours: a table a program.
print_peers() {
	awk -F '\t' '
		$2 != work {
			print (NR > 1 ? "\n" : "") "**" $2 "**\n"
			print "| a second | profiler | the program is slower by (95 %) | processor time a sample" \
				" | as by stops | bytes a sample | peak memory | stopped p50 / p99 / most" \
				" | first sample | chains to main | Lua frames a sample |"
			print "|---|---|---|---|---|---|---|---|---|---|---|"
			work = $2
		}
		{
			for (i = 3; i <= 13; i++) printf "| %s ", $i
			print "|"
		}
	' "$PEERS"
}

print_twins() {
	echo "| program, library | compiled samples | exact % | approximate % | trace only % |" \
		"largest difference in points | |"
	echo "|---|---|---|---|---|---|---|"
	cat "$TWINS"
}

print_kernels() {
	awk -F '\t' '
		BEGIN {
			print "| Linux | setting | who | samples by | samples | share of burn_heavy, of 75 % of the work |" \
				" by its own clock | what is said | |"
			print "|---|---|---|---|---|---|---|---|---|"
		}
		{
			for (i = 2; i <= 11; i++) {
				gsub(/\|/, "\\|", $i)
				if (i != 5) printf "| %s ", $i
			}
			print "|"
		}
	' "$KERNELS"
}

print_diffs() {
	echo "| program | the same program breaks +2% | one that is 5 % slower breaks it, of pairs that tell enough | |"
	echo "|---|---|---|---|"
	cat "$DIFFS"
}

# write_table MARK PRINT: what PRINT prints, and where it was measured, into the file of docs/measurements that
# has the marks of that name, between them.
write_table() {
	local begin="<!-- $1:begin -->" end="<!-- $1:end -->" page table
	page=$(grep -lF "$begin" "$ROOT"/docs/measurements/*.md || true)
	if [[ -z $page ]] || ! grep -qF "$end" "$page"; then
		die "no page of docs/measurements has the marks $begin and $end"
	fi
	table=$(mktemp)
	{
		echo
		echo "Measured on $(describe_machine)."
		echo
		"$2"
		echo
	} >"$table"
	awk -v begin="$begin" -v end="$end" -v table="$table" '
		$0 == end { inside = 0 }
		!inside { print }
		$0 == begin { inside = 1; while ((getline line < table) > 0) print line }
	' "$page" >"$table.new"
	cat "$table.new" >"$page"
	rm -f "$table" "$table.new"
	say "wrote the table $1 to ${page#"$ROOT/"}"
}

# all_held: whether no line says FAILED.
all_held() {
	! grep -q $'\tFAILED$' "$RESULTS"
}
