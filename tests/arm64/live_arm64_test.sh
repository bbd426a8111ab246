#!/bin/bash
# SPDX-License-Identifier: MIT
# ljrecord, cross-built, in the emulated machine, against both luajit programs of Debian: shares, exact chains, a known
# call graph, each single instruction of some thousand, and layouts that are derived. In full length against Debian
# 13's, too.
#
# Usage: live_arm64_test.sh [--full]
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

build
cp "$ROOT/tests/arm64/guest.sh" "$WORK/script"
sed -i "2a BUILD=$BUILD" "$WORK/script"
! $FULL || sed -i "3a set -- --full" "$WORK/script"
status=0
mapfile -t files < <(programs "$BUILD/tests/live" && programs "$BUILD/tests/builds" && programs "$BUILD/cli")
if $FULL; then
	# Debian 13's, with its own libraries.
	trixie=$ROOT/build/packages/trixie-arm64/luajit
	"$ROOT/tests/targets/unpack_suite" trixie:arm64 "$trixie" luajit
	sed -i "3a TRIXIE=$trixie" "$WORK/script"
	files+=("$trixie")
fi
"$ROOT/tests/arm64/machine" --seconds 1100 "$WORK/script" "${files[@]}" "$ROOT/tests/live" "$ROOT/tests/builds" \
	>"$WORK/output" || status=$?
sed $'s/^RESULT\t/&AArch64, emulated: /' "$WORK/output"
((status == 0)) || exit "$status"
grep -qx "all checked" "$WORK/output"
