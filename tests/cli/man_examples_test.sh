#!/bin/bash
# SPDX-License-Identifier: MIT
# Every example of the manual pages, the README and the pages of docs runs unchanged, against a real luajit process.
#
# Usage: man_examples_test.sh LJRECORD LJREPORT GOLDEN LJDUMP LJTOP PAGE...
#
# An example of a manual page is a line that begins with "$ " between .EX and .EE, or behind .Dl; of a page in Markdown
# a line in a block of shell commands that begins with one of our commands. $PID is a process that runs LuaJIT; in
# Markdown 1234, 4711 and the processes called nginx are. Where an example reads a profile or a Lua program that no example before it has
# left, the test provides one. All files that it promises to write must be there afterwards. But for the
# time that is recorded: that is half a second, as long as it says where LJPROF_TEST_FULL is set.
set -euo pipefail

ljrecord=$(realpath "$1")
ljreport=$(realpath "$2")
golden=$(realpath "$3")
ljdump=$(realpath "$4")
pages=()
for page in "${@:6}"; do
	pages+=("$(realpath "$page")")
done

EXAMPLE_TIMEOUT_S=60

command -v luajit >/dev/null || {
	echo "skipped: luajit is not installed"
	exit 77
}

work=$(mktemp -d)
PID=""
cleanup() {
	[[ -z $PID ]] || kill -KILL "$PID" 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP
mkdir "$work/bin" "$work/files"
ln -s "$ljrecord" "$work/bin/ljrecord"
ln -s "$ljreport" "$work/bin/ljreport"
ln -s "$ljdump" "$work/bin/ljdump"
ln -s "$(realpath "$5")" "$work/bin/ljtop"
if ((EUID == 0)); then
	# Examples may say sudo, which need not be installed.
	printf '#!/bin/sh\nexec "$@"\n' >"$work/bin/sudo"
	chmod +x "$work/bin/sudo"
fi
export PATH=$work/bin:$PATH
cd "$work/files"

cat >"$work/program.lua" <<'LUA'
local finish = os.clock() + (tonumber(arg[1]) or 0.5)
local function work(n)
	local words = {}
	for i = 1, n do
		words[i] = tostring(i):reverse()
	end
	table.sort(words)
	return table.concat(words)
end
io.write("ready\n")
io.flush()
repeat
	work(1000)
until os.clock() >= finish
LUA

# Not a child of bash's job control, so that its end by a signal is not announced.
exec 3< <(exec luajit "$work/program.lua" 600)
PID=$!
export PID
read -r -t 60 _ <&3 || {
	echo "FAILED: luajit did not start"
	exit 1
}

status=0
ljrecord --quiet --limit-samples 100 --duration 60 --output "$work/recorded.bin" "$PID" || status=$?
if ((status == 2)); then
	echo "skipped: this user may not trace processes here"
	exit 77
fi
((status == 0)) || {
	echo "FAILED: ljrecord exits with $status"
	exit 1
}

# examples PAGE: one command per line, without the text formatter's escapes. Nobody ends what has no end: ljtop shows one
# screen, and a series of files is one of some seconds.
# shellcheck disable=SC2016 # formats are of others
examples() {
	if [[ $1 == *.md ]]; then
		sed -n '/^```sh$/,/^```$/p' "$1" | grep -E '^(ljrecord|ljreport|ljdump|ljtop) ' |
			sed -E "s/ +#.*//; s/\\b(1234|4711)\\b/\$PID/g; s/--name '\^nginx\\$'/--pid \$PID/; s/ nginx\$/ \$PID/; s/^ljtop .*/& --batch -n 1/; /--rotate/s/$/ -d 5/"
		return
	fi
	awk '
		/^\.EX/ { inside = 1; next }
		/^\.EE/ { inside = 0; next }
		/^\.Dl \$ / { print substr($0, 7); next }
		inside && /^\$ / { print substr($0, 3) }
	' "$1" | sed 's/\\-/-/g; s/\\(aq/'\''/g; s/\\(dq/"/g; s/\\(ti/~/g; s/\\(ha/^/g; s/\\&//g; s/\\e/\\/g'
}

# outputs COMMAND: the files that it promises to write.
outputs() {
	grep -oE '(( |^)(-o|--output|--stats|--save-images)|[^0-9&]>)[ =]*[A-Za-z0-9_./-]+' <<<"$1" |
		sed -E 's/.*[ =>]//' | grep -vx -e - || true
}

# provide COMMAND: the files that it reads.
# shellcheck disable=SC2016 # the command's own
provide() {
	local file
	for file in $(grep -oE '[A-Za-z0-9_./-]+\.(bin|lua|pb\.gz)|core\.\$PID' <<<"$1" || true); do
		[[ ! -e $file ]] || continue
		! grep -qxF "$file" <<<"$(outputs "$1")" || continue
		case $file in
		*mem*.bin) cp "$golden/gc64/memprof_jitoff.bin" "$file" ;;
		*.bin) cp "$work/recorded.bin" "$file" ;;
		*.lua) cp "$work/program.lua" "$file" ;;
		*.pb.gz) ljreport -o "$file" "$work/recorded.bin" ;;
		core.*) gcore -o core "$PID" >"$work/output" 2>&1 ;;
		esac
	done
}

failed=0
complain() {
	echo "FAILED: $*"
	failed=1
}

run_example() {
	local command=$1 status=0 file
	[[ -n ${LJPROF_TEST_FULL-} ]] ||
		command=$(sed -E '/^(sudo )?ljrecord/s/ (-d|--duration) [0-9.]+m?s?/ \1 0.5/' <<<"$command")
	provide "$command"
	timeout "$EXAMPLE_TIMEOUT_S" bash -o pipefail -c "$command" >"$work/output" 2>&1 || status=$?
	# 141: a reader that has seen enough, such as head, ends its writer with SIGPIPE.
	if ((status != 0 && status != 141)); then
		complain "exit status $status of: $command"
		sed 's/^/    /' "$work/output"
	fi
	for file in $(outputs "$command"); do
		if [[ -d $file ]]; then
			[[ -n $(ls -A "$file") ]] || complain "$file is an empty folder after: $command"
		elif [[ $command == *--rotate* ]]; then
			compgen -G "${file%%.*}-*" >/dev/null || complain "no file of the series after: $command"
		elif [[ ! -s $file ]]; then
			complain "no file $file after: $command"
		fi
	done
	kill -0 "$PID" 2>/dev/null || complain "the recorded process is gone after: $command"
}

for page in "${pages[@]}"; do
	mapfile -t commands < <(examples "$page")
	((${#commands[@]})) || [[ $page == */docs/* ]] || complain "$(basename "$page") has no examples"
	for command in "${commands[@]}"; do
		if [[ $command == gcore* || $command == *"--core "* ]] && ! command -v gcore >/dev/null; then
			echo "left out, as gdb is not installed: $command"
			continue
		fi
		echo "$(basename "$page"): $command"
		run_example "$command"
	done
done
((failed == 0))
