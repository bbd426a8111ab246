# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Shared by the tests in the emulated machine; sourced.
set -euo pipefail

ROOT=$(CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck disable=SC2034 # used by those who source this
BUILD=$ROOT/build/arm64
# At full length, as scripts/verify runs them.
# shellcheck disable=SC2034 # used by those who source this
FULL=$([[ ${1-} == --full ]] && echo true || echo false)
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
trap 'exit 130' INT TERM HUP

# Build first; without the compiler or its libraries there is nothing to run.
build() {
	local status=0
	command -v qemu-system-aarch64 >/dev/null || {
		echo "skipped: there is no qemu-system-aarch64"
		exit 77
	}
	# The tests of this folder may begin at once.
	mkdir -p "$ROOT/build"
	flock "$ROOT/build/arm64.lock" "$ROOT/scripts/cross" || status=$?
	((status != 77)) || echo "skipped: there is no cross build"
	((status == 0)) || exit "$status"
}

# programs FOLDER: what the linker made below it, and what goes with that.
programs() {
	find "$1" -path '*/CMakeFiles' -prune -o -type f \( -perm /111 -o -name '*.so' -o \
		-name '*.debug' -o -name '*.xz' -o -name '*.sh' \) -print
}
