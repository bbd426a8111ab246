#!/bin/bash
# SPDX-License-Identifier: MIT
# The statically linked programs work in a root that has nothing of theirs, or nothing at all.
#
# Usage: tests/packages/static_test.sh TARBALL [LOWER]
#   TARBALL  what scripts/package --tar has built
#   LOWER    a root folder, which stays as it is (default: a root that has the programs, /proc and /sys only)
# The program that they profile runs outside of that root.
# Exit status 77: this needs root, or a kernel with overlayfs.
# shellcheck disable=SC2317 # check() calls functions by their names
set -euo pipefail

(($# >= 1)) || {
	sed -n '/^# Usage:/,/^# Exit/p' "$0" | sed 's/^# \{0,1\}//'
	exit 1
}
if [[ -z ${IN_NAMESPACE-} ]]; then
	if ((EUID != 0)) || ! grep -qw overlay /proc/filesystems || ! command -v luajit >/dev/null ||
		! command -v tmux >/dev/null; then
		echo "skipped: programs run in another root: this needs root, overlayfs, luajit and tmux"
		exit 77
	fi
	IN_NAMESPACE=1 exec unshare -m "$0" "$@"
fi
folder=$(CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=lib.sh
source "$folder/lib.sh"

tarball=$(realpath "$1")
lower=${2-}
[[ -z $lower ]] || lower=$(realpath "$lower")
root_begin "$lower"
BUSY=$folder/busy.lua
PID=
TMUX_SOCKET=
finish() {
	[[ -z $PID ]] || kill "$PID" 2>/dev/null || true
	[[ -z $TMUX_SOCKET ]] || tmux -S "$TMUX_SOCKET" kill-server 2>/dev/null || true
	root_end
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

# unpack_by_readme FOLDER: by the command of the README, which unpacks it to /usr/local.
unpack_by_readme() {
	local command
	command=$(sed -nE 's/^(tar -xzf .*[^ ]) +# .*/\1/p' "$folder/../../README.md")
	command=${command/build\/package\/ljprof-\*-linux-\*.tar.gz/$tarball}
	mkdir -p "$1"
	bash -c "${command/\/usr\/local/$1}" && [[ -e $1/bin/ljtop ]]
}

# Only the programs where there is nothing else.
unpack() {
	unpack_by_readme "$WORK/unpacked" || return 1
	if [[ -n $lower ]]; then
		unpack_by_readme "$ROOT_FOLDER/usr/local"
	else
		mkdir "$ROOT_FOLDER/bin" && mkdir -m 1777 "$ROOT_FOLDER/out"
		cp "$WORK"/unpacked/bin/* "$ROOT_FOLDER/bin/"
	fi
}

has_files() {
	local file
	for file in bin/{ljtop,ljrecord,ljreport,ljdump} share/man/man1/ljtop.1 share/zsh/site-functions/_ljprof \
		share/bash-completion/completions/ljtop share/doc/ljprof/{LICENSE,README.md,docs/permissions.md} \
		share/doc/ljprof/licenses/libc6-dev lib/ljprof/locale/C.utf8/LC_CTYPE; do
		[[ -s $WORK/unpacked/$file ]] || {
			echo "there is no $file"
			return 1
		}
	done
}

# No interpreter: the kernel starts them by itself.
is_static() {
	local program
	for program in "$WORK"/unpacked/bin/*; do
		if readelf -lW "$program" | grep INTERP; then return 1; fi
	done
}

# shows TEXT: whether ljtop's screen has it some time.
shows() {
	for _ in {1..300}; do
		tmux -S "$TMUX_SOCKET" capture-pane -p >"$WORK/screen" 2>&1 || true
		! grep -qF -e "$1" "$WORK/screen" || return 0
		sleep 0.1
	done
	cat "$WORK/screen"
	return 1
}

# screen TERMINAL: ljtop in its full screen, which draws its functions and ends with q.
screen() {
	# A server of its own: one that ends takes no further session.
	TMUX_SOCKET=$WORK/tmux.$1
	tmux -S "$TMUX_SOCKET" -f /dev/null new-session -d -x 100 -y 30 "env -i PATH=$PATH TERM=$1 LANG=en_US.UTF-8 \
		chroot '$ROOT_FOLDER' $programs/ljtop --pid $PID; echo; echo status \$?; sleep 600"
	shows sort_words || return 1
	cp "$WORK/screen" "$WORK/screen.functions"
	tmux -S "$TMUX_SOCKET" send-keys q
	shows "status 0" || return 1
	tmux -S "$TMUX_SOCKET" kill-server
}

# The package has its own locale; only the programs alone need the host's.
draws_boxes() { LC_ALL=C grep -q "$(printf '\342')" "$WORK/screen.functions"; }

check "the tarball unpacks" unpack
check "it has all files" has_files
check "the programs are static" is_static
check "a LuaJIT program starts" start_target luajit
if [[ -n $lower ]]; then
	programs=/usr/local/bin out=/tmp
else
	programs=/bin out=/out
fi
check "ljrecord records it" inside $programs/ljrecord --quiet --pid "$PID" --limit-samples 20 -d 60 -o $out/profile.bin
check "ljreport names its functions" says sort_words inside $programs/ljreport $out/profile.bin
check "ljrecord writes pprof" inside $programs/ljrecord --quiet --pid "$PID" -d 1 -o $out/profile.pb.gz
check "ljreport reads pprof" says sort_words inside $programs/ljreport $out/profile.pb.gz
check "ljreport draws a flame graph" inside $programs/ljreport -o $out/profile.svg $out/profile.bin
# Where the kernel allows them outside of the root, they work inside, too.
if "$WORK/unpacked/bin/ljrecord" --quiet --capture=kernel --pid "$PID" -d 0.2 -o "$WORK/kernel.bin" 2>"$WORK/refusal"; then
	check "kernel samples" inside $programs/ljrecord --quiet --capture=kernel --pid "$PID" --limit-samples 20 -d 60 -o $out/kernel.bin
	check "they name its functions" says sort_words inside $programs/ljreport $out/kernel.bin
else
	echo "left out: kernel samples: $(cat "$WORK/refusal")"
fi
check "stops" inside $programs/ljrecord --quiet --capture=stop --pid "$PID" -d 1 -o $out/stop.bin
check "ljtop shows its functions" says sort_words inside $programs/ljtop --pid "$PID" --batch -n 2
for terminal in xterm-256color tmux-256color linux; do
	check "ljtop's full screen on $terminal" screen $terminal
	[[ -z $lower ]] || check "it is in UTF-8" draws_boxes
done
check "ljdump shows its stack" says work inside $programs/ljdump --pid "$PID"
DEBUGINFOD_URLS=http://127.0.0.1:9 check "--debuginfod says what it lacks" says "linked statically" \
	inside $programs/ljrecord --debuginfod --pid "$PID" -d 0.2 -o $out/debug.bin
SUDO_UID=4242 check "a user without a name may run a command" fails_with 7 "user 4242 has no name here" \
	inside $programs/ljrecord -o $out/command.bin -- $programs/ljreport --version
if [[ -e $ROOT_FOLDER/etc/passwd ]]; then
	check "users have names" fails_with 2 "of user root" \
		inside /usr/sbin/chroot --userspec=4242:4242 / $programs/ljrecord --pid "$PID" -d 1 -o /dev/null
else
	check "users without names are unknown" fails_with 2 "of user unknown" \
		chroot --userspec=4242:4242 "$ROOT_FOLDER" $programs/ljrecord --pid "$PID" -d 1 -o $out/none.bin
fi
exit $FAILED
