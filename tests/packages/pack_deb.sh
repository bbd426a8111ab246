#!/bin/bash
# SPDX-License-Identifier: MIT
# The package of a build that is there: lintian accepts it, and it passes deb_test.sh in a copy of this machine's root.
#
# Usage: tests/packages/pack_deb.sh BUILD
set -euo pipefail

folder=$(CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
SOURCE_DATE_EPOCH=$(date +%s) cpack --config "$1/CPackConfig.cmake" -B "$work/deb" >"$work/log" 2>&1 || {
	cat "$work/log"
	exit 1
}
if command -v lintian >/dev/null; then
	lintian --allow-root --tag-display-limit 0 --fail-on error,warning "$work"/deb/*.deb
else
	echo "left out: lintian (it is not installed)"
fi
# Not by exec: the folder is removed afterwards.
"$folder/deb_test.sh" "$work"/deb/*.deb
