#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: ljrecord_errors_test.sh LJRECORD LJREPORT LJRECORD_HOLD
# What goes wrong, and how ljrecord says so: exit codes, one line on stderr, a target that runs on, and
# no file left that is not a readable profile.
# The parts run side by side, each with a folder and targets of its own.

ljrecord=$1 ljreport=$2 hold=$3
# Longest wait for what happens at once.
DEADLINE_S=120
# A recording that ends when it has some samples.
SHORT=(-F 999 --limit-samples 20 -d "$DEADLINE_S")

command -v luajit >/dev/null || { echo "skipped: luajit is not installed"; exit 77; }
all=$(mktemp -d) || exit 1
# Another user has to get there.
chmod 755 "$all"
# Of all parts, one a line.
touch "$all/started" "$all/failures" "$all/checks"

cleanup() {
	trap - EXIT
	while read -r pid; do
		kill -KILL "$pid" 2>/dev/null
	done <"$all/started"
	wait 2>/dev/null
	! mountpoint -q "$all/output/small" || umount "$all/output/small"
	rm -rf "$all"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

# begin PART: a folder of its own.
begin() {
	echo "-- $1"
	work=$all/$1
	mkdir "$work"
	mkdir -m 777 "$work/open"
	out=$work/out.bin
}

fail() {
	echo "FAIL: $*" >&2
	echo "$*" >>"$all/failures"
}

# await CONDITION...: run a command until it succeeds.
await() {
	local end=$((SECONDS + DEADLINE_S))
	until "$@" 2>/dev/null; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.02
	done
}

status_of() { awk -v field="$2:" '$1 == field { print $2 }' "/proc/$1/status" 2>/dev/null; }
is_free() { [ "$(status_of "$1" TracerPid)" = 0 ] && [[ $(status_of "$1" State) != [tT] ]]; }
in_state() { [ "$(status_of "$1" State)" = "$2" ]; }
untouched() { await is_free "$1" || fail "$2: target left $(grep -E 'State|TracerPid' "/proc/$1/status")"; }
readable() { "$ljreport" -f counters "$1" >"$work/report" 2>&1 || fail "$2: not readable: $(cat "$work/report")"; }
samples_in() { "$ljreport" -f counters "$1" | awk '/^samples/ { print $2 }'; }
samples_arrive() { [ "$(samples_in "$1")" -gt 0 ]; }
zombie_of() { { cat /proc/[0-9]*/status 2>/dev/null || true; } |
	awk -v parent="$pid" '/^State:/ { state = $2 } /^Pid:/ { self = $2 }
	/^PPid:/ && $2 == parent && state == "Z" { print self }'; }
has_zombie() { [ -n "$(zombie_of)" ]; }
unreadable_or_none() { [ ! -e "$1" ] || readable "$1" "$2"; }

# start COMMAND...: run in the background; its pid is $pid.
start() {
	rm -f "$work/started" # or an old one tells that the new program is ready
	"$@" >"$work/started" 2>&1 </dev/null &
	pid=$!
	echo "$pid" >>"$all/started"
}

# captured_by FILE HOW WHAT: how samples were taken, by what --stats wrote.
captured_by() {
	grep -q "^ *\"capture\": *\"$2\"" "$1" || fail "$3: not by $2: $(grep capture "$1")"
}

# start_lua [FILE]: a busy Lua program, running.
start_lua() {
	start luajit "${1:-$all/busy.lua}" "${@:2}"
	await grep -q ready "$work/started" || fail "luajit did not start"
}

stop() {
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
}

# drop_notes: what a build without BPF, or a kernel without it, says of each recording.
drop_notes() {
	sed -i '/^ljrecord: threads are stopped for their samples: /d' "$work/stderr"
}

# run CODE ARGUMENT...: run ljrecord and compare its exit code.
run() {
	local code=$1 got
	shift
	echo "$*" >>"$all/checks"
	timeout "$DEADLINE_S" ${prefix[@]+"${prefix[@]}"} "$ljrecord" "$@" >"$work/stdout" 2>"$work/stderr" </dev/null
	got=$?
	drop_notes
	[ $got -eq "$code" ] || fail "ljrecord $*: exit code $got, not $code: $(cat "$work/stderr")"
}

# error CODE PATTERN ARGUMENT...: the same, with one line on stderr that says PATTERN.
error() {
	local code=$1 pattern=$2
	shift 2
	run "$code" "$@"
	[ "$(wc -l <"$work/stderr")" -eq 1 ] || fail "ljrecord $*: not one line: $(cat "$work/stderr")"
	grep -q '^ljrecord: ' "$work/stderr" || fail "ljrecord $*: does not name itself: $(cat "$work/stderr")"
	grep -Eq -- "$pattern" "$work/stderr" || fail "ljrecord $*: says: $(cat "$work/stderr")"
	unreadable_or_none "$out" "ljrecord $*"
}
prefix=()

# Without an argument it works some of the time, for ever: the others shall have processors, too.
cat >"$all/busy.lua" <<'LUA'
local ffi = require "ffi"
ffi.cdef "int poll(void *fds, unsigned long count, int timeout);"
io.write("ready\n") io.flush()
local function burn() local n = 0 for i = 1, 2e3 do n = n + #tostring(i) end return n end
local finish = arg[1] and os.clock() + arg[1]
repeat
	burn()
	if not finish then ffi.C.poll(nil, 0, 1) end
until finish and os.clock() >= finish
LUA
cat >"$all/exec.lua" <<'LUA'
local ffi = require "ffi"
ffi.cdef "int execl(const char *path, const char *arg, ...);"
io.write("ready\n") io.flush()
local finish, n = os.clock() + 0.6, 0
repeat for i = 1, 1e5 do n = n + #tostring(i) end until os.clock() >= finish
ffi.C.execl("/bin/sleep", ffi.cast("const char *", "sleep"), ffi.cast("const char *", "1000"), ffi.cast("void *", 0))
LUA
# One that its own user may not look into: it has set itself to be not dumpable.
cat >"$all/closed.lua" <<'LUA'
local ffi = require "ffi"
ffi.cdef "int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);"
assert(ffi.C.prctl(4, 0, 0, 0, 0) == 0) -- PR_SET_DUMPABLE
io.write("ready\n") io.flush()
local n = 0
while true do for i = 1, 1e5 do n = n + #tostring(i) end end
LUA
cat >"$all/blocked.lua" <<'LUA'
local ffi = require "ffi"
ffi.cdef "int poll(void *fds, unsigned long count, int timeout);"
io.write("ready\n") io.flush()
while true do ffi.C.poll(nil, 0, 100000) end
LUA
chmod 644 "$all"/*.lua

usage() {
	begin usage
	# Not on a terminal: what could be recorded is listed instead.
	run 1
	tail -n 1 "$work/stderr" | grep -q '^ljrecord: no process given: give a pid or a name' ||
		fail "without a process: says $(cat "$work/stderr")"
	run 1 --children
	tail -n 1 "$work/stderr" | grep -q 'no process given' || fail "--children alone: says $(cat "$work/stderr")"
	error 1 'not both' --pid 1 -- true
	error 1 'goes with processes' --debuginfod -- true
	error 1 'DEBUGINFOD_URLS' --debuginfod --pid 1
	prefix=(env DEBUGINFOD_URLS=)
	error 1 'DEBUGINFOD_URLS' --debuginfod --pid 1
	prefix=()
	error 1 'not a process id: 0' --pid 0
	error 1 'not a process id: -1' --pid -1
	error 1 'not a process id: abc' --pid abc
	error 1 'not a process id: 12x' -p 12x
	error 1 'not a process id: 99999999999' -p 99999999999
	error 1 'not a process id: 1,' -p 1,
	error 1 'not a process id: ,1' -p ,1
	error 1 'not a process id: 1,,2' -p 1,,2
	error 1 'not a process id: 1 2' -p '1 2'
	error 1 'not a process id: 1,x' -p 2 -p 1,x
	error 1 'not both' --name lua -- true
	error 1 'not an extended regular expression: \(lua' --name '(lua'
	error 1 'not an extended regular expression: : try' --name ''
	error 1 'not a choice of roots' --root all -p 1
	error 1 'not a frequency' -F 0 -p 1
	error 1 'not a frequency' -F 10001 -p 1
	error 1 'not a frequency' -F '' -p 1
	error 1 'not a way to take samples \(auto, kernel or stop\): quick' --capture quick -p 1
	error 1 'goes without --wall' --capture kernel --wall -p 1
	error 1 'not a time, such as 500ms, 30s, 5m or 1h: 0:' -d 0 -p 1
	error 1 'not a time, .*: -3:' -d -3 -p 1
	error 1 'not a time, .*: nan:' -d nan -p 1
	error 1 'not a time, .*: inf:' -d inf -p 1
	error 1 'not a time, .*: 5x:' -d 5x -p 1
	error 1 'not a time, .*: 1mm:' --wait 1mm -p 1
	error 1 'not a mode \(callgraph, leaf or default\): all' -m all -p 1
	error 1 'unknown format: xml: try' -f xml -p 1
	error 1 'unknown format: foldd: did you mean folded[?]' -f foldd -p 1
	error 1 'unknown option --formt: did you mean --format[?]' --formt svg -p 1
	error 1 'unknown option --formt=svg: did you mean --format[?]' --formt=svg -p 1
	error 1 'did you mean --limit-samples, --limit-bytes or --lines[?]' --li 5 -p 1
	error 1 '\(auto, kernel or stop\): kernl: did you mean kernel[?]' --capture kernl -p 1
	for name in x.xyz z.json a.b/out.foo out.xyz.gz; do
		error 1 "unknown suffix \(known: \.bin .* \.pb\.gz .* \.perf\.txt; or give --format\): $name: try" -o $name -p 1
	done
	error 1 'not a choice of lines' --lines all -p 1
	error 1 'not a choice of samples in compiled code' --trace-samples all -p 1
	# Texts of getopt_long(3): the wrong option, then our hint.
	for bad in --nonsense -Z --pid --duration=; do
		run 1 "$bad"
		grep -q '^ljrecord: ' "$work/stderr" || fail "ljrecord $bad: says $(cat "$work/stderr")"
		! grep -vq '^[^ ]*ljrecord: ' "$work/stderr" || fail "ljrecord $bad: says $(cat "$work/stderr")"
	done
	run 0 --help
	grep -q 'Usage: ljrecord' "$work/stdout" || fail '--help'
	[ ! -s "$work/stderr" ] || fail '--help says something on stderr'
	run 0 -V
	grep -q '^ljrecord [0-9]' "$work/stdout" || fail 'version'
}

unrecordable() {
	begin unrecordable
	start true
	wait "$pid"
	error 5 "there is no process $pid" -p "$pid" -o "$out" --save-images "$work/unused"
	[ ! -e "$work/unused" ] || fail 'a folder for images is left where there are none'
	# What is wrong follows a long name.
	long=$work/$(printf "%0250d/%0250d" 0 0)
	error 4 "/file: No such file or directory" -p "$pid" -o "$long/file"
	error 5 "no process matches this name" --name "^no-such-program-$$\$" -o "$out"
	# Not even itself.
	cp "$ljrecord" "$work/ljself$$"
	real=$ljrecord ljrecord=$work/ljself$$
	error 5 "no process matches this name" --name "^ljself$$\$" -o "$out"
	ljrecord=$real
	start sleep 1000
	await in_state "$pid" S
	error 3 "no LuaJIT in process $pid" -p "$pid" -o "$out"
	error 3 "no LuaJIT in process $pid" -p "$pid,$pid" -p "$pid" -o "$out"
	untouched "$pid" 'sleep'
	stop
	start bash -c 'while :; do :; done'
	error 3 "no LuaJIT in process $pid" -p "$pid" -o "$out"
	untouched "$pid" 'busy shell'
	stop
	[ ! -e "$out" ] || fail 'a file is left where there was no LuaJIT'
	if [ "$(status_of 2 Name)" = kthreadd ]; then
		error 3 'kernel thread' -p 2 -o "$out"
	else
		echo "skipped: no kernel thread is visible here"
	fi
	# The child ends when bash is sleep, as bash would reap it.
	# shellcheck disable=SC2016
	start bash -c '(until grep -qx sleep /proc/$$/comm; do sleep 0.02; done) & exec sleep 1000'
	await has_zombie || fail 'no zombie came about'
	error 3 'zombie' -p "$(zombie_of)" -o "$out"
	stop
	# Itself, by the pid that exec keeps.
	# shellcheck disable=SC2016
	timeout "$DEADLINE_S" sh -c 'exec "$0" -p $$ -o "$1"' "$ljrecord" "$out" 2>"$work/stderr"
	[ $? -eq 3 ] || fail "itself: $(cat "$work/stderr")"

	# What is there stays as it was if no recording begins.
	echo precious >"$work/precious"
	start sleep 1000
	error 3 'no LuaJIT' -p "$pid" -o "$work/precious"
	[ "$(cat "$work/precious")" = precious ] || fail 'an error emptied an existing file'
	stop
}

permission() {
	begin permission
	if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
		cp "$ljrecord" "$work/ljrecord"
		as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
		start_lua
		real=$ljrecord ljrecord=$work/ljrecord prefix=("${as_nobody[@]}")
		error 2 "not permitted to trace process $pid of user root: use sudo" -p "$pid" -o "$work/open/file"
		[ ! -e "$work/open/file" ] || fail 'a file is left where nothing is permitted'
		error 4 "cannot open $work/file: Permission denied" -p "$pid" -o "$work/file"
		ljrecord=$real prefix=()
		untouched "$pid" 'refused'
		stop
		start "${as_nobody[@]}" luajit "$all/closed.lua"
		await grep -q ready "$work/started" || fail "luajit did not start: $(cat "$work/started")"
		ljrecord=$work/ljrecord prefix=("${as_nobody[@]}")
		error 2 "not permitted to trace process ${pid}[,:] .*use sudo" -p "$pid" -o "$work/open/file"
		ljrecord=$real prefix=()
		untouched "$pid" 'refused, not dumpable'
		run 0 -p "$pid" -o "$out" "${SHORT[@]}"
		readable "$out" 'not dumpable'
		[ "$(samples_in "$out")" -gt 0 ] || fail 'not dumpable: no samples'
		untouched "$pid" 'not dumpable'
		stop
		start "${as_nobody[@]}" luajit "$all/blocked.lua"
		await grep -q ready "$work/started" || fail "luajit did not start: $(cat "$work/started")"
		ljrecord=$work/ljrecord prefix=("${as_nobody[@]}")
		if "$real" -q --capture kernel -p "$pid" -o "$out" -d 0.1 2>&1 | grep -qE 'built without|the kernel refuses'; then
			echo "left out: --capture=kernel without permission: there are no kernel samples here"
		else
			error 2 '--capture=kernel: not permitted: use root' --capture kernel -p "$pid" -o "$work/open/file"
		fi
		[ ! -e "$work/open/file" ] || fail 'a file is left where copies by the kernel are not permitted'
		# Without the option, threads are stopped instead.
		run 0 -q -o "$work/open/file" --stats "$work/open/stats" -- luajit -e \
			'local begin = os.clock() while os.clock() - begin < 0.3 do end'
		captured_by "$work/open/stats" stop 'no copies permitted'
		ljrecord=$real prefix=()
		untouched "$pid" 'copies by the kernel refused'
		stop
	else
		echo "skipped: another user's process (this needs root and setpriv)"
	fi
	start_lua
	target=$pid
	"$hold" "$target" >"$work/hold" &
	holder=$!
	echo "$holder" >>"$all/started"
	if await grep -q ready "$work/hold"; then
		error 2 "already traced by pid $holder" -p "$target" -o "$out"
		[ "$(status_of "$target" TracerPid)" = "$holder" ] || fail 'the other tracer lost its target'
	else
		echo "skipped: another tracer (ptrace is not permitted)"
	fi
	kill -KILL "$holder"
	wait "$holder" 2>/dev/null
	untouched "$target" 'traced by another'
	pid=$target
	stop
}

debug_files() {
	begin debug_files
	# In place of libdebuginfod a file that is no library.
	mkdir "$work/lib"
	: >"$work/lib/libdebuginfod.so.1"
	start_lua
	prefix=(env DEBUGINFOD_URLS=http://127.0.0.1:1 LD_LIBRARY_PATH="$work/lib")
	run 0 -p "$pid" -o "$out" -q --debuginfod "${SHORT[@]}"
	prefix=()
	[ "$(cat "$work/stderr")" = "ljrecord: --debuginfod: cannot load libdebuginfod.so.1: continuing without debug files" ] ||
		fail "without libdebuginfod: $(cat "$work/stderr")"
	readable "$out" 'without libdebuginfod'
	stop
}

recordings() {
	begin recordings
	start_lua
	target=$pid
	for mode in default leaf callgraph; do
		rm -f "$out"
		run 0 -p "$target" -o "$out" -F 999 --limit-samples 50 -d $DEADLINE_S -m $mode --stats "$work/stats.json"
		readable "$out" "$mode"
		grep -q "^ljrecord: .* samples in .* to $out" "$work/stderr" || fail "$mode: no summary"
		# The same numbers in the summary, the file and the report.
		said=$(awk '/^ljrecord: [0-9]+ samples/ { print $2; exit }' "$work/stderr")
		kept=$(awk -F'[:,]' '/"samples":/ { print $2 + 0; exit }' "$work/stats.json")
		size=$(awk -F'[:,]' '/"output_bytes":/ { print $2 + 0; exit }' "$work/stats.json")
		[ "$said" -gt 0 ] || fail "$mode: no samples"
		[ "$said" = "$kept" ] || fail "$mode: summary $said, numbers $kept"
		[ "$said" = "$(samples_in "$out")" ] || fail "$mode: summary $said, profile $(samples_in "$out")"
		[ "$size" = "$(stat -c %s "$out")" ] || fail "$mode: $size bytes said"
		untouched "$target" "$mode"
	done
	# The kernel copies where it can, but for threads that wait and for images that are saved.
	by=stop
	! "$ljrecord" -q -p "$target" -o "$out" "${SHORT[@]}" --capture kernel 2>/dev/null || by=kernel
	for option in "$by" 'stop --capture stop' "$by --capture auto" 'stop --wall' "stop --save-images $work/images"; do
		read -r how more <<<"$option"
		# shellcheck disable=SC2086 # An option and its argument.
		run 0 -q -p "$target" -o "$out" "${SHORT[@]}" --stats "$work/how.json" $more
		captured_by "$work/how.json" "$how" "${more:-without options}"
	done
	# Compressed by name.
	run 0 -q -p "$target" -o "$work/out.bin.gz" "${SHORT[@]}" --stats "$work/packed.json"
	gzip -t "$work/out.bin.gz" || fail "not gzip's"
	readable "$work/out.bin.gz" "compressed"
	[ "$(samples_in "$work/out.bin.gz")" = "$(awk -F'[:,]' '/"samples":/ { print $2 + 0; exit }' "$work/packed.json")" ] ||
		fail "compressed: other samples than said"
	[ "$(stat -c %s "$work/out.bin.gz")" = "$(awk -F'[:,]' '/"output_bytes":/ { print $2 + 0; exit }' "$work/packed.json")" ] ||
		fail "compressed: another size than said"
	# JSON: braces and quotes in pairs, and all of it one object.
	awk '{ text = text $0 }
		END { open = gsub(/\{/, "{", text); close_ = gsub(/\}/, "}", text); quotes = gsub(/"/, "\"", text)
		exit !(text ~ /^\{.*\}$/ && open == close_ && quotes % 2 == 0 && text !~ /,[ \t]*\}/) }' \
		"$work/stats.json" || fail "stats: $(cat "$work/stats.json")"
	# JSON reads as a Lua table once its keys are bracketed and its arrays, empty ones too, are tables.
	{ printf 'return '; sed -E 's/\[\](,?)$/{}\1/; s/\[$/{/; s/^( *)\]/\1}/; s/^( *)("[^"]+"):/\1[\2]=/; s#\\/#/#g' "$work/stats.json"; } >"$work/stats.lua"
	luajit -e "local t = dofile('$work/stats.lua') local n = 0
			for _, count in pairs(t.states) do n = n + count end
			assert(n == t.samples and t.pid == $target and t.frequency_hz == 999)
			local looks = 0 for _, count in pairs(t.outcomes) do looks = looks + count end
			local process = t.processes[1]
			assert(#t.processes == 1 and process.pid == $target and process.name == 'luajit')
			assert(process.kind == 'luajit' and not process.ended and process.samples == t.samples)
			for what, count in pairs(t.outcomes) do assert(process.outcomes[what] == count) end
			assert(looks == t.thread_ticks and looks >= t.samples and t.ticks > 0)
			assert(t.capture == 'stop' or t.capture == 'kernel')
			assert((t.capture == 'kernel') == (t.copied.count > 0))
			assert(t.stopped.count + t.copied.count >= t.records)
			assert(t.records <= t.samples and t.records > 0)
			for _, times in ipairs({t.stopped, t.copied}) do
				assert(times.p50_ns <= times.p99_ns and times.p99_ns <= times.max_ns)
			end" \
		2>"$work/json" || fail "stats: $(cat "$work/json")"
	run 0 -q -p "$target" -o - "${SHORT[@]}"
	cp "$work/stdout" "$work/piped"
	readable "$work/piped" 'standard output'
	[ ! -s "$work/stderr" ] || fail "--quiet says $(cat "$work/stderr")"
	"$ljrecord" -q -p "$target" -o - "${SHORT[@]}" | cat >"$work/piped"
	readable "$work/piped" 'pipe'
	"$ljrecord" -p "$target" -o "$out" "${SHORT[@]}" 2>&- || fail 'closed stderr'
	readable "$out" 'closed stderr'
	"$ljrecord" -q -p "$target" -o "$out" "${SHORT[@]}" <&- >&- 2>&- || fail 'no standard descriptors'
	readable "$out" 'no standard descriptors'
	env -i "$ljrecord" -q -p "$target" -o "$out" "${SHORT[@]}" <&- >"$work/stdout" 2>"$work/stderr" ||
		fail 'no environment and no standard input'
	drop_notes
	readable "$out" 'no environment and no standard input'
	[ ! -s "$work/stderr" ] || fail "without a terminal --quiet says $(cat "$work/stderr")"
	env -i "$ljrecord" -q -n '^no such name$' --wait 0.1 -o "$out" <&- >&- 2>&-
	[ $? -eq 5 ] || fail 'waiting without standard descriptors: another exit code'
	error 4 "cannot write $work/none/stats: No such file" -q -p "$target" -o "$out" -d 0.1 --stats "$work/none/stats"
	# Profile and numbers in one file, by whatever names: one of them would be lost.
	cp "$out" "$work/kept"
	ln -s out.bin "$work/alias"
	error 1 "name the same file" -q -p "$target" -o "$out" -d 0.1 --stats "$out"
	error 1 "name the same file" -q -p "$target" -o "$work/alias" -d 0.1 --stats "$out"
	cmp -s "$out" "$work/kept" || fail 'one name for both: the old profile is changed'
	error 1 "name the same file" -q -p "$target" -o "$work/both" -d 0.1 --stats "$work/both"
	[ ! -e "$work/both" ] || fail 'one name for both: left a file'
	# shellcheck disable=SC2094 # that is the point
	"$ljrecord" -q -p "$target" -o - -d 0.1 --stats "$out" >>"$out" 2>"$work/stderr" && fail 'one file for both: no error'
	cmp -s "$out" "$work/kept" || fail 'one file for both: the old profile is changed'
	run 0 -q -p "$target" -o /dev/null -d 0.1 --stats /dev/null
	# Started with SIGCHLD ignored, which tells that a thread stands: stops are as short as ever. Each that
	# had to wait for its timeout would last 100 ms; nine of ten are shorter where others have the processors,
	# too.
	rm -f "$out"
	(trap '' CHLD; exec "$ljrecord" -q -p "$target" -o "$out" -F 500 --limit-samples 100 -d $DEADLINE_S \
		--stats "$work/stats.json") || fail 'SIGCHLD ignored'
	[ "$(samples_in "$out")" -gt 0 ] || fail "SIGCHLD ignored: no samples"
	most_ns=$(awk -F'[:,]' '/"stopped"/ { inside = 1 } inside && /"p90_ns"/ { print $2 + 0; exit }' "$work/stats.json")
	[ "$most_ns" -lt 90000000 ] || fail "SIGCHLD ignored: a tenth of the stops take $most_ns ns and more"
	"$ljrecord" -q -p "$target" -o "$work/one.bin" -F 2000 2>"$work/one.err" &
	one=$!
	echo "$one" >>"$all/started"
	await samples_arrive "$work/one.bin" || fail 'the first of two: no samples'
	timeout "$DEADLINE_S" "$ljrecord" -q -p "$target" -o "$work/two.bin" "${SHORT[@]}" 2>"$work/two.err"
	two_code=$?
	kill -TERM $one
	wait $one
	one_code=$?
	[ $one_code -eq 0 ] || fail "the first of two: $one_code: $(cat "$work/one.err")"
	readable "$work/one.bin" 'the first of two'
	case $two_code in
	0) readable "$work/two.bin" 'the second of two' ;;
	2) grep -q 'already traced' "$work/two.err" || fail "the second of two says $(cat "$work/two.err")" ;;
	*) fail "the second of two: $two_code: $(cat "$work/two.err")" ;;
	esac
	untouched "$target" 'two recorders'
	pid=$target
	stop
}

signals() {
	begin signals
	# Each of them needs a second, until samples are written: all at once.
	for number in INT TERM HUP; do
		(
			begin "signal $number"
			start_lua
			# Background jobs of a script ignore SIGINT; env gives it back.
			env --default-signal=INT "$ljrecord" -q -p "$pid" -o "$out" 2>"$work/stderr" &
			recorder=$!
			echo "$recorder" >>"$all/started"
			await samples_arrive "$out" || fail "SIG$number: no samples"
			kill -$number $recorder
			wait $recorder
			code=$?
			[ $code -eq 0 ] || fail "SIG$number: exit code $code"
			readable "$out" "SIG$number"
			untouched "$pid" "SIG$number"
			stop
			echo signal >>"$all/ended"
		) &
	done
	for delay in 0 0.03 0.3 1.1; do
		(
			begin "SIGKILL after $delay"
			start_lua
			"$ljrecord" -q -p "$pid" -o "$out" -F 5000 2>"$work/stderr" &
			recorder=$!
			echo "$recorder" >>"$all/started"
			await test -s "$out"
			sleep $delay
			kill -KILL $recorder
			wait $recorder 2>/dev/null
			untouched "$pid" "SIGKILL after $delay"
			# The promise is two seconds; at any instant the file is a profile.
			readable "$out" "SIGKILL after $delay"
			stop
			echo signal >>"$all/ended"
		) &
	done
	wait
}

descriptors() {
	begin descriptors
	start_lua
	target=$pid
	# Whatever it is that cannot be opened, it is not said that there is nothing.
	short=0
	for count in 4 5 6 8 10 12 14 16; do
		(ulimit -n $count; exec timeout "$DEADLINE_S" "$ljrecord" -q -p "$target" -o "$out" -d 0.1) \
			2>"$work/stderr"
		code=$?
		# 127: too few to load a program at all.
		[ $code -eq 0 ] || [ $code -eq 127 ] && continue
		short=$((short + 1))
		[ $code -eq 6 ] || fail "$count descriptors: exit code $code: $(cat "$work/stderr")"
		grep -q 'Too many open files' "$work/stderr" ||
			fail "$count descriptors: says $(cat "$work/stderr")"
	done
	[ $short -gt 4 ] || fail 'descriptors did not lack'
	untouched "$target" 'want of descriptors'
	pid=$target
	stop
}

output() {
	begin output
	start_lua
	target=$pid
	error 4 "cannot open $work/none/file: No such file" -p "$target" -o "$work/none/file"
	error 4 "cannot open $work: Is a directory" -p "$target" -o "$work"
	if [ -e /dev/full ]; then
		error 4 '/dev/full: No space left on device' -q -p "$target" -f sysprof -o /dev/full -d $DEADLINE_S
	fi
	(ulimit -f 8; exec timeout "$DEADLINE_S" "$ljrecord" -q -p "$target" -o "$out" -F 2000 -d $DEADLINE_S) 2>"$work/stderr"
	[ $? -eq 4 ] || fail "file size limit: $(cat "$work/stderr")"
	grep -q 'File too large' "$work/stderr" || fail "file size limit: says $(cat "$work/stderr")"
	readable "$out" 'file size limit'
	rm -f "$out"
	# Messages go to a pipe, as no file takes any.
	zero=$( (ulimit -f 0; timeout "$DEADLINE_S" "$ljrecord" -q -p "$target" -o "$out" -d $DEADLINE_S || echo "code $?") 2>&1 | cat)
	case $zero in
	*'File too large: nothing was written'*'code 4') ;;
	*) fail "no room for anything: says $zero" ;;
	esac
	[ ! -e "$out" ] || fail 'an empty file is left'
	mkdir "$work/small"
	if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=64k none "$work/small" 2>/dev/null; then
		# What is left is enough for the first second.
		head -c 32768 /dev/zero >"$work/small/filler"
		start_lua "$all/busy.lua" 1000
		error 4 'No space left on device' -q -p "$pid" -f sysprof -o "$work/small/file" -F 900 -d $DEADLINE_S
		stop
		readable "$work/small/file" 'small disk'
		[ "$(samples_in "$work/small/file")" -gt 0 ] || fail 'small disk: nothing was kept'
		umount "$work/small"
	else
		echo "skipped: a full disk (mounting one is not permitted)"
	fi
	rm -f "$out"
	"$ljrecord" -q -p "$target" -o "$out" 2>"$work/stderr" &
	recorder=$!
	echo "$recorder" >>"$all/started"
	await samples_arrive "$out" || fail 'no samples before the writer is killed'
	# Processes end meanwhile, which awk would not survive by itself.
	writer=$({ cat /proc/[0-9]*/status 2>/dev/null || true; } |
		awk -v parent=$recorder '/^Name:/ { name = $2 } /^Pid:/ { self = $2 }
			/^PPid:/ && $2 == parent && name == "ljprof-writer" { print self }')
	kill -KILL "$writer"
	wait $recorder
	code=$?
	[ $code -eq 4 ] || fail "writer killed: exit code $code"
	grep -q 'writer of .* died' "$work/stderr" || fail "writer killed: says $(cat "$work/stderr")"
	readable "$out" 'writer killed'
	untouched "$target" 'writer killed'
	"$ljrecord" -q -p "$target" -f sysprof -o - -F 2000 -d $DEADLINE_S 2>"$work/stderr" | head -c 100 >/dev/null
	code=${PIPESTATUS[0]}
	[ "$code" -eq 4 ] || fail "closed pipe: exit code $code"
	if [ "$(id -u)" = 0 ]; then
		# Bits 2, 19 and 40: reading and searching files, tracing, and map_files. Performance events and BPF,
		# 38 and 39, are another process's.
		for how in stop auto; do
			rm -f "$out"
			"$ljrecord" -q -p "$target" -o "$out" --capture $how 2>"$work/stderr" &
			recorder=$!
			echo "$recorder" >>"$all/started"
			await samples_arrive "$out" || fail 'no samples before the look at the capabilities'
			has=$(status_of $recorder CapPrm)
			[ -n "$has" ] || fail "$how: no capabilities are named"
			[ $((0x${has:-0} & ~0x10000080004)) -eq 0 ] ||
				fail "$how: capabilities while recording: $has"
			[ "$(status_of $recorder NoNewPrivs)" = 1 ] || fail "$how: a program that is run may have more"
			# A script's background jobs ignore SIGINT.
			kill -TERM $recorder
			wait $recorder
		done
	else
		echo "skipped: capabilities while recording (this needs root)"
	fi
	pid=$target
	stop
}

stuck_reader() {
	begin stuck_reader
	# A reader that takes nothing: 10 s are waited for it, once. The pipe holds 64 KiB, and all but 128 bytes of
	# it are full at first: on a busy machine there are few samples, but one alone needs more.
	start_lua
	began=${EPOCHREALTIME/[.,]/}
	{
		head -c 65408 /dev/zero
		"$ljrecord" -q -p "$pid" -F 2000 -d 1.5 -f sysprof -o - 2>"$work/stderr"
		echo $? >"$work/code"
	} | { until [ -s "$work/code" ] || [ $((${EPOCHREALTIME/[.,]/} - began)) -gt 60000000 ]; do sleep 0.1; done; }
	took_ms=$(((${EPOCHREALTIME/[.,]/} - began) / 1000))
	grep -q 'it accepted no data for 10 s: the profile is incomplete' "$work/stderr" || fail "stuck reader: says $(cat "$work/stderr")"
	[ "$(cat "$work/code")" -eq 4 ] || fail "stuck reader: exit code $(cat "$work/code")"
	# 1.5 s of recording, 10 s of waiting, and what a busy machine adds; twice would be more than 21.5 s.
	[ $took_ms -lt 21000 ] || fail "stuck reader: $took_ms ms"
	stop
}

ends() {
	begin ends
	start_lua "$all/busy.lua" 0.6
	rm -f "$out"
	run 0 -q -p "$pid" -o "$out"
	[ -s "$work/stderr" ] && fail "the target's end with --quiet: $(cat "$work/stderr")"
	readable "$out" "the target's end"
	[ "$(samples_in "$out")" -gt 0 ] || fail "the target's end: no samples"
	start_lua "$all/busy.lua" 0.6
	timeout "$DEADLINE_S" "$ljrecord" -p "$pid" -o "$out" 2>"$work/stderr"
	drop_notes
	error_line=$(head -n 1 "$work/stderr")
	[[ $error_line == "ljrecord: process $pid ended while it was recorded" ]] || fail "the target's end: $error_line"
	start_lua "$all/exec.lua"
	rm -f "$out"
	run 0 -p "$pid" -o "$out"
	grep -q 'runs another program now' "$work/stderr" || fail "exec: says $(cat "$work/stderr")"
	readable "$out" 'exec'
	[ "$(samples_in "$out")" -gt 0 ] || fail 'exec: no samples'
	untouched "$pid" 'exec'
	stop
	# Asleep in Lua: looked at, never stopped, and so without a sample.
	start_lua "$all/blocked.lua"
	await in_state "$pid" S
	rm -f "$out"
	run 0 -q -p "$pid" -o "$out" -F 999 -d 0.2 --stats "$work/stats.json"
	awk -F'[:,]' '/"idle":/ { idle = $2 + 0 } /"stopped":/ { inside = 1 }
		inside && /"count":/ { count = $2 + 0; inside = 0; exit } END { exit !(idle > 0 && count == 0) }' \
		"$work/stats.json" || fail "a blocked target was stopped: $(cat "$work/stats.json")"
	readable "$out" 'blocked'
	rm -f "$out"
	(await test -s "$out"; kill -KILL "$pid") &
	error 5 "process $pid ended before the first sample" -p "$pid" -o "$out"
	[ ! -e "$out" ] || fail 'a file is left without a sample'
	wait 2>/dev/null
	# A stopped process stays stopped.
	start_lua
	kill -STOP "$pid"
	await in_state "$pid" T
	run 0 -q -p "$pid" -o "$out" -d 0.2
	in_state "$pid" T || fail "a stopped process is $(status_of "$pid" State) afterwards"
	kill -CONT "$pid"
	untouched "$pid" 'continued'
	stop
}

# One that ends within milliseconds: there may be a sample. Its end tells whether there is one.
short_command() {
	local code=0
	rm -f "$out"
	"$ljrecord" -o "$out" -- luajit -e 'print(1)' >"$work/stdout" 2>"$work/stderr" || code=$?
	echo "short command" >>"$all/checks"
	readable "$out" 'short command'
	if [ $code -eq 7 ]; then
		grep -q 'ended before the first sample' "$work/stderr" || fail "short command: $(cat "$work/stderr")"
		[ "$(samples_in "$out")" -eq 0 ] || fail 'short command: exit code 7 with samples'
	elif [ $code -eq 0 ]; then
		[ "$(samples_in "$out")" -gt 0 ] || fail 'short command: exit code 0 without samples'
	else
		fail "short command: exit code $code: $(cat "$work/stderr")"
	fi
	[ "$(cat "$work/stdout")" = 1 ] || fail "short command: printed $(cat "$work/stdout")"
}

commands() {
	begin commands
	rm -f "$out"
	run 0 -q -o "$out" -- luajit "$all/busy.lua" 0.3
	readable "$out" 'command'
	[ "$(samples_in "$out")" -gt 0 ] || fail 'command: no samples'
	rm -f "$out"
	error 7 'ended before the first sample' -o "$out" -- true
	readable "$out" 'command without LuaJIT'
	rm -f "$out"
	# One that runs for longer is known to have none, and what was there before stays.
	error 3 'no LuaJIT was found' -o "$out" -- sleep 2
	[ ! -e "$out" ] || fail 'a file is left where a longer command has no LuaJIT'
	run 0 -q -o "$out" -- luajit "$all/busy.lua" 0.3
	cp "$out" "$work/kept"
	error 3 'no LuaJIT was found' -o "$out" -- sleep 2
	cmp -s "$out" "$work/kept" || fail 'a longer command without LuaJIT has overwritten a file'
	rm -f "$out"
	# A shell's program is sampled soon after its exec: 50 samples are possible, fewer than half
	# means that the recorder slept.
	run 0 -q -o "$out" -- sh -c "id -u >/dev/null; exec luajit $all/busy.lua 0.5"
	[ "$(samples_in "$out")" -ge 25 ] || fail "shell's program: $(samples_in "$out") of 50 samples"
	error 7 'ended before the first sample' -o "$out" -- false
	error 7 'ended before the first sample' -o "$out" -- sh -c 'kill -KILL $$'
	# What it exits with is its own.
	error 7 'ended before the first sample' -o "$out" -- sh -c 'exit 127'
	rm -f "$out"
	error 3 'no LuaJIT was found' -d 0.2 -o "$out" -- sleep 1
	[ ! -e "$out" ] || fail 'a file is left where a command that goes on has no LuaJIT'
	for _ in 1 2 3 4 5 6; do
		short_command
	done
	rm -f "$out"
	error 1 "cannot run $work/none: No such file" -o "$out" -- "$work/none"
	error 1 "cannot run $work: Permission denied" -o "$out" -- "$work"
	[ ! -e "$out" ] || fail 'a file is left where the command could not be run'
	# The recording does not begin, so the command does not either.
	error 4 'cannot open' -o "$work/none/file" -- touch "$work/touched"
	[ ! -e "$work/touched" ] || fail 'the command ran without its recording'
	if [ "$(id -u)" = 0 ]; then
		SUDO_UID=65534 SUDO_GID=65534 run 0 -q -o "$out" -- sh -c \
			"id -u >$work/open/uid; id -g >>$work/open/uid; id -G >>$work/open/uid; exec luajit $all/busy.lua 0.3"
		[ "$(tr '\n' ' ' <"$work/open/uid")" = '65534 65534 65534 ' ] || fail "sudo: $(cat "$work/open/uid")"
		[ "$(samples_in "$out")" -gt 0 ] || fail 'sudo: no samples'
	else
		echo "skipped: commands under sudo (this needs root)"
	fi
}

# on_terminal COMMAND...: run on a terminal; what it shows is in $work/shown. The answers come from standard input.
on_terminal() {
	echo "$*" >>"$all/checks"
	timeout "$DEADLINE_S" python3 -c '
import os, pty, sys
code = pty.spawn(sys.argv[1:])
sys.exit(os.waitstatus_to_exitcode(code))' "$@" >"$work/shown" 2>&1
}

habits() {
	begin habits
	mkdir "$work/here" "$work/bin"
	cp "$(readlink -f "$(command -v luajit)")" "$work/bin/luaj $$"
	start "$work/bin/luaj $$" "$all/busy.lua"
	await grep -q ready "$work/started" || fail "luajit did not start"
	target=$pid name="luaj $$"
	prefix=(env -C "$work/here")
	# A pid and a name, with options before and after it; the name of the file says whose profile it is.
	run 0 "${SHORT[@]}" "$target"
	file=$(find "$work/here" -name '*.pb.gz')
	[[ ${file##*/} =~ ^luaj_$$-$target-[0-9]{8}T[0-9]{6}[.]pb[.]gz$ ]] || fail "a pid: file $file"
	readable "$file" 'a pid'
	"$ljreport" -f folded --roots thread "$file" >"$work/threads" 2>"$work/report" || fail "threads: $(cat "$work/report")"
	grep -q "^luaj $$ \[$target\];" "$work/threads" || fail "no thread in the default format: $(head -n 1 "$work/threads")"
	[ ! -s "$work/report" ] || fail "threads of the default format: says $(cat "$work/report")"
	# The hottest lines, at most ten, below their heads; none that never ran.
	grep -q '^ *SELF .* LOCATION$' "$work/stderr" || fail "no table of hot lines: $(cat "$work/stderr")"
	lines=$(awk '/^ *SELF/ { on = 1; next } on && NF == 0 { exit } on { n++; if ($1 < 1) n += 100 } END { print n + 0 }' "$work/stderr")
	((lines >= 1 && lines <= 10)) || fail "$lines hot lines: $(cat "$work/stderr")"
	# The same states in the summary and in the file.
	"$ljreport" -f counters "$file" >"$work/counters"
	awk 'NR == FNR { if ($1 ~ /^[A-Z]+$/) n[$1] = $2; if ($1 == "samples") all = $2; next }
		/VM states:/ { for (i = 3; i <= NF; i += 3) { share = all ? 100 * n[$i] / all : 0; seen++
			if (share - $(i + 1) > 0.06 || $(i + 1) - share > 0.06) { print $i, $(i + 1), share; bad = 1 } } }
		END { exit bad || !seen }' "$work/counters" "$work/stderr" >"$work/wrong" ||
		fail "other states in the file than in the summary: $(cat "$work/wrong" "$work/counters" "$work/stderr")"
	rm -f "$work/here"/*
	run 0 -q "$name" "${SHORT[@]}"
	file=$(find "$work/here" -name '*.pb.gz')
	[[ ${file##*/} =~ ^luaj_$$-[0-9]{8}T[0-9]{6}[.]pb[.]gz$ ]] || fail "a name: file $file"
	readable "$file" 'a name'
	[ ! -s "$work/stderr" ] || fail "a name with --quiet: says $(cat "$work/stderr")"
	rm -f "$work/here"/*
	run 0 -q -f svg "${SHORT[@]}" "$target"
	grep -q '</svg>' "$work/here"/luaj_*.svg || fail 'no flame graph of the default name'
	rm -f "$work/here"/*
	run 0 -q "$target,$target" "$name" --rotate 1s -d 1200ms
	[ "$(find "$work/here" -name 'ljprof-*T*.pb.gz' | wc -l)" -ge 1 ] || fail "no series of the default name: $(ls "$work/here")"
	rm -f "$work/here"/*
	# Former spellings.
	run 0 -q "$target" --root process --lines current -o "$work/former.folded" "${SHORT[@]}"
	grep -q "^luaj $$ \[$target\];" "$work/former.folded" || fail "--root: $(head -n 1 "$work/former.folded")"
	# Only a stream can do these.
	run 0 -q "$target" --trace-samples record "${SHORT[@]}"
	[ "$(find "$work/here" -name "luaj_*.bin" | wc -l)" = 1 ] || fail "no stream: $(ls "$work/here")"
	# What is no name of a process is a command, if it has arguments or a slash; behind -- it always is one.
	rm -f "$work/here"/*
	error 5 "no LuaJIT process is named luax $$: did you mean luaj $$[?] \(ljrecord -- COMMAND runs a command\)" "luax $$"
	error 1 "cannot run no-such-$$: No such file or directory, and no LuaJIT process has that name" "no-such-$$" argument
	error 5 "no LuaJIT process is named no-such-$$: .*\(ljrecord -- COMMAND runs a command\)" "no-such-$$" -d 1
	printf '#!/bin/sh\nexec luajit %s 0.3\n' "$all/busy.lua" >"$work/bin/run$$"
	chmod +x "$work/bin/run$$"
	for words in "$work/bin/run$$" "-- run$$" "sh $work/bin/run$$"; do
		rm -f "$work/here"/*
		# shellcheck disable=SC2086 # A command and its arguments.
		PATH=$work/bin:$PATH run 0 -q $words
		[ "$(find "$work/here" -name '*-[0-9]*T*.pb.gz' | wc -l)" = 1 ] || fail "$words: $(ls "$work/here")"
	done
	PATH=$work/bin:$PATH error 5 "no LuaJIT process is named run$$: " "run$$"
	start sleep 1000
	cp "$(command -v sleep)" "$work/bin/sleep$$"
	start "$work/bin/sleep$$" 1000
	await in_state "$pid" S
	error 3 "no LuaJIT is in any process named sleep$$: " "sleep$$"
	error 1 'not a process id: 0' 0
	# Commands of the same words as a process and an option of ours.
	rm -f "$work/here"/*
	run 0 -q "$name" -d 0.3
	[ "$(find "$work/here" -name "luaj_*.pb.gz" | wc -l)" = 1 ] || fail "a name before an option: $(ls "$work/here")"
	rm -f "$work/here"/*
	PATH=$work/bin:$PATH run 0 -q "$name" -e 'local begin = os.clock() while os.clock() - begin < 0.3 do end'
	[ "$(find "$work/here" -name "luaj_*.pb.gz" | wc -l)" = 1 ] || fail "a command named as a process: $(ls "$work/here")"
	rm -f "$work/here"/*
	prefix=()
	run 0 --explain "$name"
	grep -q "^process $target" "$work/stdout" || fail "--explain of a name: $(cat "$work/stdout")"
	if ! command -v python3 >/dev/null; then
		echo "skipped: on a terminal (this needs python3)"
	else
		on_terminal "$ljrecord" -q -o - "${SHORT[@]}" "$target" </dev/null && fail 'binary on a terminal: no error'
		grep -q 'a terminal cannot show this format, so give --output FILE or redirect it: pprof' "$work/shown" ||
			fail "binary on a terminal: $(cat "$work/shown")"
		on_terminal "$ljrecord" -q -o - -f folded "${SHORT[@]}" "$target" </dev/null || fail "text on a terminal: $(cat "$work/shown")"
		# Chosen from the list.
		# A machine that is busy may leave no time to look into each process.
		listed() {
			on_terminal "$ljrecord" -q -o "$out" "${SHORT[@]}" <<<"$target" || fail "chosen: $(cat "$work/shown")"
			# Debian 13's luajit is of OpenResty's fork.
			grep -qE "luaj $$ .* (LuaJIT|OpenResty) " "$work/shown"
		}
		for ((try = 0; try < 20; try++)); do
			! listed || break
		done
		((try < 20)) || fail "not in the list: $(cat "$work/shown")"
		readable "$out" 'chosen'
		rm -f "$out"
		on_terminal "$ljrecord" -q -o "$out" "${SHORT[@]}" <<<"nothing"$'\n'"$name" || fail "chosen by name: $(cat "$work/shown")"
		grep -q 'not in the list' "$work/shown" || fail "a wrong answer: $(cat "$work/shown")"
		readable "$out" 'chosen by name'
		on_terminal "$ljrecord" -o "$out" <<<"" && fail 'nothing chosen: no error'
	fi
	pid=$target
	stop
}

# part FUNCTION...: one after the other, beside other parts.
part() {
	local name
	for name; do "$name"; done
	echo part >>"$all/ended"
}

# has_ended COUNT WHAT: so many of what runs side by side have come to their ends.
has_ended() { [ "$(grep -c "^$2\$" "$all/ended")" = "$1" ] || fail "a $2 has not come to its end"; }

unset DEBUGINFOD_URLS
part stuck_reader &
part recordings &
part output descriptors &
part signals ends commands &
part usage unrecordable permission debug_files &
part habits &
wait
has_ended 6 part
has_ended 7 signal
[ ! -s "$all/failures" ] || exit 1
echo "$(wc -l <"$all/checks") runs checked"
