# shellcheck shell=bash
# shellcheck disable=SC2034 # set for those that source this
# SPDX-License-Identifier: MIT
# Shared by the starters of real LuaJIT programs in this folder; sourced.
#
# Usage: tests/targets/NAME.sh [--seconds N] [--fork mainline|openresty] [--jit] [--namespaces | --suite SUITE]
#   --seconds N   how long the workload runs, whole seconds (default 5)
#   --fork FORK   the LuaJIT library that the program gets, where it takes either
#   --jit         with LuaJIT's compiler on
#   --namespaces  in user, pid and mount namespaces of its own; its program and its LuaJIT lie in a
#                 file system that exists in there only
#   --suite SUITE the program of another suite of Debian, with that suite's libraries, in a root folder and a
#                 mount namespace of its own; SUITE is trixie, sid and so on
# Prints, and nothing else:
#   TARGET name=NAME version=VERSION
#   VM fork=FORK package=PACKAGE version=VERSION
#   PID pid role     for each process that runs the workload, as numbered outside of the namespaces
#   READY            all of them are at work
#   TRUTH pid=PID share=PERCENT threads=N longest=PERCENT gc64=BOOLEAN jit=BOOLEAN
#                    for each of them at the end: burn_heavy's share of the workload's processor time,
#                    how many threads were at it on average, and the longest round's share of its
#                    thread's time
#   SKIP reason      and exit status 77 where a program is missing
# Ends what it started, and nothing else, also on a signal.
set -euo pipefail

TARGETS=$(CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
NAME=$(basename "$0" .sh)
CACHE=${LJPROF_TARGET_CACHE:-$(cd "$TARGETS/../.." && pwd)/build/packages}
export LJPROF_TARGET_CACHE=$CACHE
seconds=5
fork=
suite=
compiler=false
namespaces=false
while (($#)); do
	case $1 in
	--seconds | --fork | --suite)
		[[ -n ${2-} ]] || { echo "$NAME: $1 takes a value" >&2; exit 1; }
		case $1 in
		--seconds) seconds=$2 ;;
		--fork) fork=$2 ;;
		*) suite=$2 ;;
		esac
		shift
		;;
	--jit) compiler=true ;;
	--namespaces) namespaces=true ;;
	*) sed -n '/^# Usage:/,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 1 ;;
	esac
	shift
done
[[ $seconds =~ ^[1-9][0-9]{0,4}$ ]] || { echo "$NAME: --seconds takes a whole number" >&2; exit 1; }
[[ $suite =~ ^[a-z]*$ ]] || { echo "$NAME: --suite takes a name" >&2; exit 1; }
[[ -z $suite ]] || ! $namespaces || { echo "$NAME: --suite and --namespaces exclude each other" >&2; exit 1; }

WORK=$(mktemp -d)
PRIVATE=$WORK/private # with --namespaces, a file system that only the target sees
STARTED=()            # what we started, in that order
HIDDEN=()             # what goes to $PRIVATE
# Workers that run as another user read the workload and write what they report.
chmod 755 "$WORK"
mkdir -m 777 "$WORK/burn"
mkdir "$PRIVATE"

cleanup() {
	local pid
	trap - EXIT
	trap '' INT TERM HUP
	end_processes
	for pid in "${STARTED[@]}"; do wait "$pid" 2>/dev/null || true; done
	rm -rf "$WORK"
}

# Those that were started last end first; who is not gone after 2 seconds is killed.
end_processes() {
	local i pid alive=true
	for ((i = ${#STARTED[@]} - 1; i >= 0; i--)); do kill "${STARTED[i]}" 2>/dev/null || true; done
	for ((i = 0; i < 40; i++)); do
		alive=false
		for pid in "${STARTED[@]}"; do ! is_running "$pid" || alive=true; done
		$alive || return 0
		sleep 0.05
	done
	for pid in "${STARTED[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

die() {
	echo "$NAME: $*" >&2
	[[ ! -s $WORK/log ]] || tail -n 20 "$WORK/log" >&2
	exit 1
}

skip() {
	echo "SKIP $*"
	exit 77
}

is_running() {
	local state
	state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null) || return 1
	[[ -n $state && $state != Z ]]
}

# wait_until COMMAND...: until it succeeds; gives up after 20 seconds, or if a process has ended.
wait_until() {
	local i pid
	for ((i = 0; i < 400; i++)); do
		! "$@" || return 0
		for pid in "${STARTED[@]}"; do is_running "$pid" || die "a process ended early"; done
		sleep 0.05
	done
	die "waited too long for: $*"
}

need_command() {
	command -v "$1" >/dev/null || skip "$1 is not installed"
}

# need_package NAME: of this suite, unpacked to $CACHE/NAME.
need_package() {
	local why
	[[ -e $CACHE/$1/VERSION ]] && return
	why=$("$TARGETS/unpack" "$1" 2>&1) || skip "${why##*$'\n'}"
}

# need_packages NAME...: all that the target itself is made of.
need_packages() {
	local package why
	if [[ -z $suite ]]; then
		for package; do need_package "$package"; done
		return
	fi
	((EUID == 0)) || skip "another suite's root takes root"
	SUITE_ROOT=$CACHE/$suite/$NAME
	why=$("$TARGETS/unpack_suite" "$suite" "$SUITE_ROOT" "$@" coreutils 2>&1) || skip "${why##*$'\n'}"
}

# path_of PACKAGE PATH: where the target finds the file or folder of an unpacked package, which --namespaces has
# to hide first.
path_of() {
	[[ -n $suite ]] && echo "/$2" || echo "$CACHE/$1/$2"
}

# find_program PACKAGE COMMAND: one that is installed, or of --suite. Sets `program` to its path for the target.
find_program() {
	if [[ -n $suite ]]; then
		need_packages "$1"
		program=$(cd "$SUITE_ROOT" && find usr/bin usr/sbin -name "$2" | head -n 1)
		[[ -n $program ]] || skip "$1 of $suite has no $2"
		program=/$program
	else
		need_command "$2"
		hide program "$(command -v "$2")"
	fi
	say_target "$1"
}

version_of_package() {
	if [[ -n $suite ]]; then
		awk -v package="$1" '$1 == package { print $2 }' "$SUITE_ROOT/VERSIONS"
	elif [[ -e $CACHE/$1/VERSION ]]; then
		cat "$CACHE/$1/VERSION"
	else
		dpkg-query -W -f '${Version}' "$1" 2>/dev/null || echo unknown
	fi
}

# say_target PACKAGE: the program's own package.
say_target() {
	echo "TARGET name=$NAME${suite:+@$suite} version=$(version_of_package "$1")"
}

# say_vm FORK PACKAGE: where its LuaJIT comes from. A --fork that it cannot have is an error.
say_vm() {
	[[ -z $fork || $fork == "$1" ]] || die "has LuaJIT of $1 only"
	echo "VM fork=$1 package=$2 version=$(version_of_package "$2")"
}

# hide VARIABLE FILE: set VARIABLE to the path under which the target finds FILE, which is FILE or,
# with --namespaces, a copy that exists for the target only.
hide() {
	if $namespaces; then
		HIDDEN+=("$2")
		printf -v "$1" '%s' "$PRIVATE/$(basename "$2")"
	else
		printf -v "$1" '%s' "$2"
	fi
}

# choose_library: set LIBRARY_FOLDER to where the target finds libluajit-5.1.so.2 of --fork.
choose_library() {
	local package file
	if [[ -n $suite ]]; then
		choose_library_of_suite
		return
	fi
	case ${fork:=mainline} in
	mainline) package=libluajit-5.1-2 ;;
	openresty) package=libluajit2-5.1-2 ;;
	*) die "--fork takes mainline or openresty" ;;
	esac
	need_package "$package"
	file=$(find "$CACHE/$package/usr/lib" -name libluajit-5.1.so.2 | head -n 1)
	[[ -n $file ]] || die "$package has no libluajit-5.1.so.2"
	hide LIBRARY_FILE "$file"
	LIBRARY_FOLDER=$(dirname "$LIBRARY_FILE")
	say_vm "$fork" "$package"
}

# The suite's own: Debian has had OpenResty's fork under the main line's name since its release 13.
choose_library_of_suite() {
	local package
	package=$(awk '/^libluajit2?-5[.]1-2 / { print $1 }' "$SUITE_ROOT/VERSIONS")
	[[ $(version_of_package "$package") != *openresty* && $package != libluajit2* ]] || fork=openresty
	LIBRARY_FOLDER=/usr/lib/$(uname -m)-linux-gnu
	say_vm "${fork:=mainline}" "$package"
}

# start COMMAND...: as part of the set-up, outside of the namespaces. Sets PID.
start() {
	"$@" >>"$WORK/log" 2>&1 </dev/null &
	PID=$!
	STARTED+=("$PID")
}

# start_target COMMAND...: in the namespaces if asked for. Sets PID, as seen outside, and TARGET,
# what to wait for.
start_target() {
	if [[ -n $suite ]]; then
		start unshare --mount "$TARGETS/in_root" "$SUITE_ROOT" "$WORK" "$@"
		TARGET=$PID
		wait_until has_own_root "$PID"
		return
	fi
	if ! $namespaces; then
		start "$@"
		TARGET=$PID
		return
	fi
	command -v unshare >/dev/null || skip "unshare is not installed"
	mkfifo "$WORK/mapped"
	local enter=(unshare --pid --fork --kill-child --mount --mount-proc
		"$TARGETS/enclosed" "$PRIVATE" "${#HIDDEN[@]}" "${HIDDEN[@]}" "$@")
	if ((EUID == 0)); then
		# All users, as workers change theirs. Their map is written from outside.
		# shellcheck disable=SC2016 # for the shell inside
		start unshare --user sh -c 'read -r _ <"$0" && exec "$@"' "$WORK/mapped" "${enter[@]}"
		TARGET=$PID
		wait_until has_own_user_namespace "$PID"
		echo "0 0 65536" >"/proc/$PID/uid_map"
		echo "0 0 65536" >"/proc/$PID/gid_map"
		echo >"$WORK/mapped"
	else
		start unshare --user --map-root-user "${enter[@]}"
		TARGET=$PID
	fi
	wait_until has_child_elsewhere "$TARGET"
	PID=$(child_of "$TARGET")
	STARTED+=("$PID")
}

has_own_root() {
	[[ $(readlink "/proc/$1/root") == "$SUITE_ROOT" ]]
}

has_own_user_namespace() {
	[[ $(readlink "/proc/$1/ns/user") != "$(readlink /proc/self/ns/user)" ]]
}

children_of() {
	cat "/proc/$1/task/$1/children" 2>/dev/null || true
}

child_of() {
	local children
	read -r -a children <<<"$(children_of "$1")"
	echo "${children[0]-}"
}

# The child is the target itself as soon as it runs another program than the one that prepares.
has_child_elsewhere() {
	local child
	child=$(child_of "$1")
	[[ -n $child ]] && ! tr '\0' '\n' <"/proc/$child/cmdline" 2>/dev/null | grep -q -x -F "$TARGETS/enclosed"
}

# pid_inside PID: its number in its own pid namespace.
pid_inside() {
	awk '/^NSpid:/ { print $NF }' "/proc/$1/status"
}

# The workload of one process or thread, with what else the program runs from standard input.
write_program() {
	{
		echo "BURN_FOLDER = \"$WORK/burn\""
		echo "BURN_JIT = $compiler"
		echo "SECONDS = $seconds"
		cat "$TARGETS/burn.lua" -
	} >"$1"
	chmod 644 "$1"
}

lines_in() {
	[[ -e $1 ]] && (($(wc -l <"$1") >= $2))
}

# say_ready N: when N processes or threads are at work.
say_ready() {
	wait_until lines_in "$WORK/burn/ready" "$1"
	echo READY
}

# finish: let the target end by itself.
finish() {
	local status=0
	wait "$TARGET" || status=$?
	((status == 0)) || die "the target ended with status $status"
}

# say_truth PID [PROCESS]: from all that the process, which its reports call PROCESS, reported.
say_truth() {
	awk -v pid="$1" -v process="${2:--}" '
		$1 == process {
			heavy += $2; light += $3; n++
			if ($5 > 0) threads += $4 / $5
			if ($5 > 0 && 100 * $6 / $5 > longest) longest = 100 * $6 / $5
			gc64 = $7; jit = $8
		}
		END {
			if (heavy + light == 0) exit 1
			printf "TRUTH pid=%d share=%.3f threads=%.3f longest=%.1f gc64=%s jit=%s\n",
				pid, 100 * heavy / (heavy + light), threads, longest, gc64, jit
		}' "$WORK/burn/report" || die "no report of process $1"
}

# run_alone ROLE COMMAND...: a target of one process that ends by itself.
run_alone() {
	local role=$1
	shift
	start_target "$@"
	echo "PID $PID $role"
	say_ready "${READY_LINES:-1}"
	finish
	say_truth "$PID"
}
