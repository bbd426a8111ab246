# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Bare roots of Debian releases, and how to run commands in them. Sourced, behind common.sh; needs root.

# suite_make SUITE FOLDER: a bare root of that release in FOLDER, unless it is there. As here, packages come
# through the proxies that apt and the system's resolver are set up for.
suite_make() {
	local suite=$1 root=$2 file
	((EUID == 0)) || die "a root of $suite needs root, for debootstrap and chroot"
	command -v debootstrap >/dev/null || die "a root of $suite needs debootstrap: apt-get install debootstrap"
	if [[ ! -e $root/complete ]]; then
		say "making a root of $suite"
		rm -rf "$root"
		mkdir -p "$root"
		# In a mount namespace of its own: nothing that it mounts is left where it fails.
		unshare -m debootstrap --variant=minbase "$suite" "$root" >"$root.log" 2>&1 ||
			die "debootstrap failed: see $root.log"
		touch "$root/complete"
	fi
	# Only what somebody set up here: a package's own file there would be in the way of the same package in the root.
	for file in /etc/apt/apt.conf.d/*; do
		dpkg-query -S "$file" >/dev/null 2>&1 || cp -L "$file" "$root/etc/apt/apt.conf.d/"
	done
	cp -L /etc/resolv.conf "$root/etc/resolv.conf"
}

# suite_enter_with_tree SUITE FOLDER COMMAND...: run a command in a bare root that keeps what was installed in it before,
# with a copy of the source tree in /tree. FOLDER is in there, too, as /packages.
suite_enter_with_tree() {
	local suite=$1 folder=$2 root
	# shellcheck disable=SC2153 # of common.sh
	root=$ROOT/build/suites/$suite
	shift 2
	suite_make "$suite" "$root"
	rm -rf "$root/tree"
	mkdir -p "$root/tree" "$root/packages"
	(cd "$ROOT" && tar -c --exclude=./build --exclude=./.git .) | tar -x -C "$root/tree"
	# shellcheck disable=SC2016 # the inner shell's own
	unshare -m sh -c 'root=$1 folder=$2; shift 2
		mount -t proc proc "$root/proc" && mount --bind "$folder" "$root/packages" && exec chroot "$root" "$@"' \
		sh "$root" "$folder" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		DEBFULLNAME="${DEBFULLNAME-}" DEBEMAIL="${DEBEMAIL-}" \
		${SOURCE_DATE_EPOCH+SOURCE_DATE_EPOCH="$SOURCE_DATE_EPOCH"} "$@"
}
