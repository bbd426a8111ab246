#!/bin/bash
# SPDX-License-Identifier: MIT
# What docs/permissions.md says of rights holds: its capabilities, its commands, and what containers may.
#
# Usage: tests/packages/permissions_test.sh PROGRAMS PAGE
#   PROGRAMS  the folder with ljrecord and the others
#   PAGE      docs/permissions.md
# A container is namespaces with the capabilities that Docker gives by default, and those that the page adds.
# Exit status 77: this needs root, overlayfs, luajit and setcap.
# shellcheck disable=SC2317 # check() calls functions by their names
set -euo pipefail

(($# == 2)) || {
	sed -n '/^# Usage:/,/^# Exit/p' "$0" | sed 's/^# \{0,1\}//'
	exit 1
}
if [[ -z ${IN_NAMESPACE-} ]]; then
	if ((EUID != 0)) || ! grep -qw overlay /proc/filesystems || ! command -v luajit >/dev/null ||
		! command -v setcap >/dev/null; then
		echo "skipped: this needs root, overlayfs, luajit and setcap"
		exit 77
	fi
	IN_NAMESPACE=1 exec unshare -m "$0" "$@"
fi
folder=$(CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=lib.sh
source "$folder/lib.sh"

programs=$(realpath "$1")
page=$(realpath "$2")
root_begin /
BUSY=$folder/busy.lua
PID=
finish() {
	[[ -z $PID ]] || kill "$PID" 2>/dev/null || true
	root_end
}
trap finish EXIT
trap 'exit 130' INT TERM HUP
cp "$programs"/lj{top,record,report,dump} "$ROOT_FOLDER/usr/bin/"
cp "$folder/busy.lua" "$ROOT_FOLDER/tmp/"

# Source: Docker's documentation, "Runtime privilege and Linux capabilities".
readonly CONTAINER=chown,dac_override,fowner,fsetid,kill,setgid,setuid,setpcap,net_bind_service,net_raw,sys_chroot,mknod,audit_write,setfcap

# as USER COMMAND...: of that user, in that root. setpriv itself still has rights; the shell has none.
# shellcheck disable=SC2016 # the shell's own
as() {
	local user=$1
	shift
	inside setpriv --reuid "$user" --regid "$(id -g "$user" 2>/dev/null || inside id -g "$user")" --init-groups \
		sh -c '"$@"' sh "$@"
}

# block WORD: the page's block of shell commands in which that word is.
block() {
	awk -v word="$1" '/^```sh$/ { text = ""; inside = 1; next }
		/^```$/ { if (inside && index(text, word)) { printf "%s", text; exit }; inside = 0 }
		inside { text = text $0 "\n" }' "$page"
}

# ---- Capabilities of files

# rows: "WAY CAPABILITIES" of the page's table. What kernels ask for more does no harm on others.
# shellcheck disable=SC2016 # the page's marks
rows() {
	sed -nE 's/^\| stops \| `(cap_[a-z_,]+)` \|$/stop \1/p; s/^\| the kernel[^|]* \| `(cap_[a-z_,]+)` \|$/kernel \1/p' "$page"
}

record_with() {
	setcap "$2+ep" "$ROOT_FOLDER/usr/bin/ljrecord"
	as nobody ljrecord --quiet --capture="$1" --pid "$PID" --limit-samples 5 -d 60 -o /tmp/as_nobody.bin
	rm "$ROOT_FOLDER/tmp/as_nobody.bin"
}

# The commands of the page, and what they are for: a user of the group records, others cannot even run it.
grant() { block groupadd | inside bash -e -s; }
take_back() { block "setcap -r" | inside bash -e -s; }
others_may_not() { ! as nobody ljrecord --version && [[ $(stat -c %a:%G "$ROOT_FOLDER/usr/bin/ljtop") != 755:* ]]; }
is_as_before() {
	[[ $(stat -c %a:%U:%g "$ROOT_FOLDER/usr/bin/ljtop") == 755:root:0 &&
		-z $(getcap "$ROOT_FOLDER/usr/bin/ljrecord") && -z $(inside dpkg-statoverride --list '/usr/bin/lj*') ]]
}

# ---- Containers

# runs: "HOW CAPABILITY..." of each "docker run" of the page, such as "host SYS_PTRACE BPF".
runs() {
	sed -nE 's/^docker run .*--pid ([a-z]+)(:[a-z]+)? (.*) ljprof ljtop.*/\1 \3/p' "$page" | sed 's/--cap-add //g'
}

# contained CAPABILITIES COMMAND...: root of a container with these besides the usual ones; its own root folder.
contained() {
	local list=$CONTAINER${1:+,${1,,}}
	shift
	inside setpriv --bounding-set "-all,+${list//,/,+}" --inh-caps=-all "$@"
}

# in_service CAPABILITIES COMMAND...: the same in the pid namespace of a service, whose first process it is here.
in_service() {
	local list=$CONTAINER${1:+,${1,,}}
	shift
	# shellcheck disable=SC2016
	inside unshare --pid --fork --mount-proc setpriv --bounding-set "-all,+${list//,/,+}" --inh-caps=-all \
		sh -c 'luajit /tmp/busy.lua 300 >/dev/null & sleep 1; "$@" --pid $!; status=$?; kill $!; exit $status' \
		sh "$@"
}

# records HOW CAPABILITIES: by kernel samples where the capabilities are enough for them, else by stops.
records() {
	local way=stop runner=(contained "$2" ljrecord --pid "$PID")
	[[ $2 != *BPF* ]] || ! $has_kernel || way=kernel
	[[ $1 != container ]] || runner=(in_service "$2" ljrecord)
	"${runner[@]}" --quiet --capture="$way" --limit-samples 5 -d 60 -o /tmp/contained.bin &&
		says sort_words inside ljreport /tmp/contained.bin
}

# A user namespace, where root has no rights outside. The kernel makes none in a changed root.
in_user_namespace() {
	# shellcheck disable=SC2016
	unshare --user --map-root-user --pid --fork --mount-proc sh -c '
		luajit "$0" 300 >/dev/null & sleep 1; "$@" --pid $!; status=$?; kill $!; exit $status' "$BUSY" \
		"$programs/ljrecord" --quiet --limit-samples 5 -d 60 -o "$WORK/user.bin" "$@"
}

check "a LuaJIT program of root starts" start_target luajit
has_kernel=true
"$programs/ljrecord" --quiet --capture=kernel --pid "$PID" -d 0.2 -o "$WORK/out.bin" 2>"$WORK/refusal" || {
	has_kernel=false
	echo "left out: kernel samples: $(cat "$WORK/refusal")"
}
check "a user may not record it" fails_with 2 "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH" \
	as nobody ljrecord --quiet --pid "$PID" --limit-samples 5 -d 60 -o /tmp/as_nobody.bin
rows >"$WORK/rows"
check "the page has a table of capabilities" grep -q kernel "$WORK/rows"
while read -r way list; do
	[[ $way == stop ]] || $has_kernel || continue
	# Kernels that ask for CAP_SYS_ADMIN.
	[[ $way == stop || $list == *admin* || $(cat /proc/sys/kernel/perf_event_paranoid) -le 2 ]] || continue
	check "a user with $list records by $way" record_with "$way" "$list"
done <"$WORK/rows"
setcap -r "$ROOT_FOLDER/usr/bin/ljrecord"
inside useradd alice
check "the commands for a group of users run" grant
check "a user of the group records" as alice ljrecord --quiet --pid "$PID" --limit-samples 5 -d 60 -o /tmp/as_alice.bin
check "others may not run it" others_may_not
check "the commands that take the rights back run" take_back
check "all is as before" is_as_before

runs >"$WORK/runs"
check "the page runs containers" test "$(wc -l <"$WORK/runs")" = 3
while read -r how list; do
	check "a container by --pid $how and $list records" records "$how" "${list// /,}"
done <"$WORK/runs"
check "a container without SYS_PTRACE may not" fails_with 2 "--cap-add SYS_PTRACE" \
	contained "" ljrecord --quiet --pid "$PID" --limit-samples 5 -d 60 -o /tmp/contained.bin
check "in a user namespace it stops threads" in_user_namespace --capture=stop
check "in a user namespace there are no kernel samples" fails_with 2 "not permitted" in_user_namespace --capture=kernel
exit $FAILED
