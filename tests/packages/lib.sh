# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Roots in which packages are tried: copies that are gone with the test. Sourced, in a mount namespace of its own.

# shellcheck disable=SC2034 # what a test exits with
FAILED=0

# check WHAT COMMAND...: one result for each, and why where the command fails.
check() {
	local what=$1 verdict=ok measured=yes
	shift
	if ! "$@" >"$WORK/out" 2>&1; then
		echo "$what:"
		tail -n 25 "$WORK/out"
		verdict=FAILED measured=no
		# shellcheck disable=SC2034 # of the test
		FAILED=1
	fi
	printf 'RESULT\t%s\tyes\t%s\t%s\n' "$what" "$measured" "$verdict"
}

# root_begin LOWER: set ROOT_FOLDER to a root like the folder LOWER; what is written there goes to memory. An
# empty LOWER is a root that has nothing but /proc and /sys.
root_begin() {
	local lower=$1
	WORK=$(mktemp -d)
	mount -t tmpfs -o mode=755 tmp "$WORK"
	mkdir "$WORK"/{root,upper,work}
	ROOT_FOLDER=$WORK/root
	if [[ -n $lower ]]; then
		mount -t overlay -o "lowerdir=$lower,upperdir=$WORK/upper,workdir=$WORK/work" root "$ROOT_FOLDER"
		mount --rbind /dev "$ROOT_FOLDER/dev"
		mount -t tmpfs -o mode=1777 tmp "$ROOT_FOLDER/tmp"
	else
		mkdir "$ROOT_FOLDER"/{proc,sys}
	fi
	mount --bind /proc "$ROOT_FOLDER/proc"
	mount --rbind /sys "$ROOT_FOLDER/sys"
}

# root_end: nothing of it is left.
root_end() {
	umount -l "$WORK"
	rmdir "$WORK"
}

# inside COMMAND...: run it in that root.
inside() {
	env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/bin HOME=/root TERM="${TERM-}" LANG="${LANG-}" \
		DEBIAN_FRONTEND=noninteractive DEBUGINFOD_URLS="${DEBUGINFOD_URLS-}" SUDO_UID="${SUDO_UID-}" \
		SUDO_GID="${SUDO_UID-}" chroot "$ROOT_FOLDER" "$@"
}

# start_target COMMAND...: start busy.lua by that command, which has the file as its further arguments, and set PID.
start_target() {
	"$@" "$BUSY" 300 >"$WORK/target" &
	PID=$!
	for _ in {1..600}; do
		! grep -q ready "$WORK/target" || return 0
		sleep 0.1
	done
	return 1
}

# says TEXT COMMAND...: whether the command succeeds and its output has that text.
says() {
	local text=$1
	shift
	"$@" >"$WORK/said" 2>&1 || { cat "$WORK/said"; return 1; }
	grep -qF -e "$text" "$WORK/said" || { cat "$WORK/said"; return 1; }
}

# fails_with STATUS TEXT COMMAND...: the same of one that fails so.
fails_with() {
	local status=$1 text=$2 ended=0
	shift 2
	"$@" >"$WORK/said" 2>&1 || ended=$?
	! ((ended == status)) || ! grep -qF -e "$text" "$WORK/said" || return 0
	echo "status $ended, asked for $status and: $text"
	cat "$WORK/said"
	return 1
}
