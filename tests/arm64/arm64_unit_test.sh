#!/bin/bash
# SPDX-License-Identifier: MIT
# The unit tests, cross-built, in the emulated machine.
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

build
# Lines "NAME COMMAND...".
cat >"$WORK/script" <<END
export LJPROF_TEST_EMULATED=1
while read -r name command; do
	begin=\$(cut -d ' ' -f 1 /proc/uptime)
	timeout 300 \$command >/tmp/output 2>&1
	status=\$?
	case \$status in
	0) verdict=passed ;;
	77) verdict="skipped: \$(grep -i -m 1 skip /tmp/output)" ;;
	*) verdict="FAILED with \$status" ;;
	esac
	echo "\$name: \$verdict (\$(cut -d ' ' -f 1 /proc/uptime | awk -v b=\$begin '{ print \$1 - b }') s)"
	[ \$status = 0 ] || [ \$status = 77 ] || cat /tmp/output
done <$BUILD/unit_tests
END
status=0
# The locale is for the tests of a screen.
mapfile -t files < <(programs "$BUILD/tests")
"$ROOT/tests/arm64/machine" --seconds 1100 "$WORK/script" "$BUILD/unit_tests" "${files[@]}" \
	"$ROOT/tests/format/golden" /usr/lib/locale/C.utf8 >"$WORK/output" || status=$?
cat "$WORK/output"
((status == 0)) || exit "$status"
wanted=$(wc -l <"$BUILD/unit_tests")
passed=$(grep -c ': passed (' "$WORK/output" || true)
skipped=$(grep -c ': skipped' "$WORK/output" || true)
echo "$passed passed and $skipped skipped of $wanted"
((passed + skipped == wanted && passed > 0))
