#!/bin/bash
# SPDX-License-Identifier: MIT
# examples/container/Dockerfile builds an image whose programs run, where a builder of images is there. Else its
# commands are those of the tree.
#
# Usage: tests/packages/container_test.sh TREE [LOWER]
#   TREE   the source tree
#   LOWER  a bare root of Debian 12, from which the image's base is made: nothing is fetched but packages. Without it
#          nothing is built.
# shellcheck disable=SC2317 # check() calls functions by their names
set -euo pipefail

(($# >= 1)) || {
	sed -n '/^# Usage:/,/^set/p' "$0" | sed '/^set\|shellcheck/d; s/^# \{0,1\}//'
	exit 1
}
tree=$(realpath "$1")
lower=${2-}
recipe=$tree/examples/container/Dockerfile
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

# check WHAT COMMAND...
check() {
	local what=$1 verdict=ok measured=yes
	shift
	if ! "$@" >"$work/log" 2>&1; then
		echo "$what:"
		tail -n 30 "$work/log"
		verdict=FAILED measured=no failed=1
	fi
	printf 'RESULT\t%s\tyes\t%s\t%s\n' "$what" "$measured" "$verdict"
}

# ---- Without a builder

# lines: the recipe's instructions, one a line.
lines() { sed -e '/^#/d' -e '/^$/d' -e ':more' -e '/\\$/{N;s/\\\n *//;b more' -e '}' "$recipe"; }

# Each is one that builders know, of a form that they take.
has_known_instructions() {
	! lines | grep -vE '^(ARG [A-Z]+=[a-z0-9.:/-]+|FROM (\$\{[A-Z]+\}|scratch)( AS [a-z]+)?|COPY (--from=[a-z]+ )?[^ ]+ [^ ]+|RUN .+|ENV( [A-Z]+=[^ ]+)+|WORKDIR /[a-z]+|CMD \["[^"]+"(, "[^"]+")*\])$'
}

# What it runs of the tree is there, and takes these options; what it copies was made before.
runs_what_is_there() {
	local word
	for word in $(lines | grep -oE '/ljprof/scripts/[a-z]+'); do
		[[ -x $tree/${word#/ljprof/} ]] || return 1
	done
	for word in $(lines | grep -oE 'scripts/package [^&]*' | grep -oE -- '--[a-z]+'); do
		"$tree/scripts/package" --help | grep -qF -e "$word" || return 1
	done
	for word in $(lines | sed -nE 's/^COPY --from=build ([^ ]+) .*/\1/p'); do
		lines | grep -E '^RUN ' | grep -qE "mkdir $word( |$)" || return 1
	done
}

# Debian has each package that it installs.
has_packages() {
	local missing
	"$tree/scripts/deps" --list --package | sort -u >"$work/wanted"
	# shellcheck disable=SC2094 # it is read only
	missing=$(xargs apt-cache --no-all-versions show <"$work/wanted" 2>/dev/null | sed -n 's/^Package: //p' | sort -u |
		comm -23 "$work/wanted" -)
	echo "missing: $missing"
	[[ -z $missing ]]
}

# ---- With one

readonly IMAGE=localhost/ljprof-test BASE=localhost/ljprof-test-base

# The builder that works here, if one does.
find_builder() {
	local name
	for name in buildah podman docker; do
		! "$name" info >/dev/null 2>&1 || {
			echo "$name"
			return
		}
	done
}

# build BUILDER: the image, whose base is made of the bare root.
build() {
	local builder=$1 container
	case $builder in
	buildah)
		tar -C "$lower" --one-file-system -c . >"$work/base.tar"
		container=$(buildah from scratch)
		buildah add --quiet "$container" "$work/base.tar" / >/dev/null
		buildah commit --quiet --rm "$container" "$BASE" >/dev/null
		buildah bud --isolation chroot --network host --build-arg DEBIAN="$BASE" -t "$IMAGE" -f "$recipe" "$tree"
		;;
	*)
		tar -C "$lower" --one-file-system -c . | "$builder" import - "$BASE"
		"$builder" build --network host --build-arg DEBIAN="$BASE" -t "$IMAGE" -f "$recipe" "$tree"
		;;
	esac
}

# run BUILDER COMMAND...: in the image.
run() {
	local builder=$1 container status=0
	shift
	if [[ $builder != buildah ]]; then
		"$builder" run --rm "$IMAGE" "$@"
		return
	fi
	container=$(buildah from "$IMAGE")
	buildah run --isolation chroot "$container" "$@" || status=$?
	buildah rm "$container" >/dev/null
	return "$status"
}

remove() {
	case $1 in
	buildah) buildah rmi "$IMAGE" "$BASE" ;;
	*) "$1" image rm "$IMAGE" "$BASE" ;;
	esac >/dev/null
}

runs() {
	run "$builder" ljrecord --version >"$work/version" 2>&1 && grep '^ljrecord [0-9]' "$work/version"
}

check "the recipe's instructions are known" has_known_instructions
check "the recipe names what is there" runs_what_is_there
check "the recipe's packages exist" has_packages
builder=$(find_builder)
if [[ -z $builder ]]; then
	echo "left out: building the image: there is no builder of images"
elif [[ -z $lower ]]; then
	echo "left out: building the image: no bare root is given"
else
	check "$builder builds the image" build "$builder"
	check "its programs run" runs
	remove "$builder"
fi
exit "$failed"
