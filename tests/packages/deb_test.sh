#!/bin/bash
# SPDX-License-Identifier: MIT
# The package for Debian installs, works, and leaves nothing behind when it is removed.
#
# Usage: tests/packages/deb_test.sh DEB [LOWER]
#   DEB    the package
#   LOWER  a root folder of the Debian release that it is for, which stays as it is (default: /). Where a library
#          or luajit is missing there, apt gets it.
# Exit status 77: this needs root, or a kernel with overlayfs.
# shellcheck disable=SC2317 # check() calls functions by their names
set -euo pipefail

(($# >= 1)) || {
	sed -n '/^# Usage:/,/^# Exit/p' "$0" | sed 's/^# \{0,1\}//'
	exit 1
}
if [[ -z ${IN_NAMESPACE-} ]]; then
	if ((EUID != 0)) || ! grep -qw overlay /proc/filesystems; then
		echo "skipped: packages are installed in a copy of a root: this needs root and overlayfs"
		exit 77
	fi
	IN_NAMESPACE=1 exec unshare -m "$0" "$@"
fi
folder=$(CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=lib.sh
source "$folder/lib.sh"

deb=$(realpath "$1")
lower=$(realpath "${2:-/}")
root_begin "$lower"
BUSY=/tmp/busy.lua
PID=
finish() {
	[[ -z $PID ]] || kill "$PID" 2>/dev/null || true
	root_end
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

# list_files: what the root has that its lower one has not, but for what dpkg and apt note of packages, and what a program
# leaves for all. It is read where the root keeps it: others may change the lower one meanwhile.
list_files() {
	local kind path
	(cd "$WORK/upper" && find . \( -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache -o -path ./var/log \
		-o -path ./run \) -prune -o -type d -printf 'folder %p\n' -o -printf '%M %u %s %p\n') |
		while read -r kind path; do
			[[ $kind == folder && -d $lower/$path ]] || echo "$kind $path"
		done | LC_ALL=C sort
}

# By the command of the README.
install() {
	local command
	command=$(sed -nE 's/^(apt-get install .*[^ ]) +# .*/\1/p' "$folder/../../README.md")
	inside sh -c "yes | ${command/.\/build\/package\/ljprof_\*.deb//tmp/ljprof.deb}"
}

has_luajit() { inside sh -c 'command -v luajit' >/dev/null; }

install_needed() {
	inside dpkg --dry-run -i /tmp/ljprof.deb >/dev/null 2>&1 && has_luajit && return
	inside apt-get -q update && inside apt-get -q -y --no-install-recommends install luajit &&
		inside apt-get -q -y --no-install-recommends satisfy "$(dpkg-deb -f "$deb" Depends)"
}

has_files() {
	local file
	dpkg-deb -c "$deb" | awk '{ print $6 }' >"$WORK/contents"
	for file in bin/{ljtop,ljrecord,ljreport,ljdump} share/man/man1/{ljtop,ljrecord,ljreport,ljdump}.1.gz \
		share/bash-completion/completions/{ljtop,ljrecord,ljreport,ljdump} share/zsh/site-functions/_ljprof \
		share/doc/ljprof/{copyright,changelog.gz,changelog.Debian.gz,README.md,docs/permissions.md} \
		share/doc/ljprof/examples/container/Dockerfile; do
		grep -qxF "./usr/$file" "$WORK/contents" || {
			echo "there is no /usr/$file"
			return 1
		}
	done
	! awk '!/^d/ && $2 != "root/root"' < <(dpkg-deb -c "$deb") | grep . || return 1
	! dpkg-deb -c "$deb" | awk '{ print $1 }' | grep -vE '^(drwxr-xr-x|-rw-r--r--|-rwxr-xr-x|lrwxrwxrwx)$'
}

# No maintainer's script: what dpkg unpacks is all that there is.
has_no_scripts() { ! dpkg-deb --ctrl-tarfile "$deb" | tar -t | grep -vE '^\./?(control|md5sums)?$'; }

start() {
	cp "$folder/busy.lua" "$ROOT_FOLDER/tmp/"
	start_target chroot "$ROOT_FOLDER" luajit
}

remove() { inside apt-get -q -y purge ljprof && ! inside dpkg -s ljprof; }

cp "$deb" "$ROOT_FOLDER/tmp/ljprof.deb"
check "the package has all files, which belong to root" has_files
check "the package has no scripts of its own" has_no_scripts
check "what it needs is installed" install_needed
list_files >"$WORK/before"
check "apt installs it" install
list_files >"$WORK/between"
check "a LuaJIT program starts" start
check "ljrecord records it" inside ljrecord --quiet --pid "$PID" --limit-samples 20 -d 60 -o /tmp/profile.bin
check "ljreport names its functions" says sort_words inside ljreport /tmp/profile.bin
check "ljtop shows them" says sort_words inside ljtop --pid "$PID" --batch -n 2
check "ljdump shows its stack" says work inside ljdump --pid "$PID"
check "completion for bash loads" inside bash -c 'source /usr/share/bash-completion/completions/ljrecord'
kill "$PID"
PID=
check "apt removes it" remove
list_files >"$WORK/after"
check "it was all in /usr" bash -c "! LC_ALL=C comm -13 '$WORK/before' '$WORK/between' | grep -v ' ./usr/'"
check "it leaves nothing" diff "$WORK/before" "$WORK/after"
exit $FAILED
