# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the scripts share. Sourced, not run.

set -euo pipefail
# With it cd goes elsewhere, and prints where.
unset CDPATH

# The source tree, wherever the script was called from.
# shellcheck disable=SC2034 # used by the scripts
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
NAME=$(basename "$0")

say() {
	printf '%s: %s\n' "$NAME" "$*" >&2
}

die() {
	say "$*"
	exit 1
}

# usage TEXT: the script's own head comment is its help.
usage() {
	sed -n '/^# Usage:/,/^$/p' "$0" | sed '/^$/d; s/^# \{0,1\}//'
}

# A whole number of at least MIN: is_number TEXT MIN.
is_number() {
	[[ $1 =~ ^[0-9]{1,9}$ ]] && ((10#$1 >= $2))
}

# configure PRESET: set up build/PRESET with its tests, quietly unless it fails. A new folder gets gcc
# where the preset does not say otherwise.
configure() {
	local preset=$1 output
	if ! output=$(cd "$ROOT" && CC=gcc cmake --preset "$preset" -DBUILD_TESTING=ON 2>&1); then
		printf '%s\n' "$output" >&2
		die "cannot set up the $preset build"
	fi
}

# compile FOLDER [TARGET]...: build, quietly unless it fails.
compile() {
	local folder=$1 output
	shift
	if ! output=$(cmake --build "$folder" ${1+--target "$@"} 2>&1); then
		printf '%s\n' "$output" >&2
		die "the build in $folder failed"
	fi
}
