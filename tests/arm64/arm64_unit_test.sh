#!/bin/bash
# SPDX-License-Identifier: MIT
# The unit tests, cross-built, in the emulated machine. At short length without those of format and cli: they
# have nothing of an architecture but the signs of characters, and take a third of the time.
#
# Usage: arm64_unit_test.sh [--full]
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

build
tests=$WORK/tests
if $FULL; then
	cp "$BUILD/unit_tests" "$tests"
else
	grep -vE '^(format|cli)_' "$BUILD/unit_tests" >"$tests"
fi
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
done <$tests
END
status=0
# The locale is for the tests of a screen.
mapfile -t files < <(
	while read -r _ program _; do dirname "$program"; done <"$tests" | sort -u | while read -r folder; do
		programs "$folder"
	done
)
"$ROOT/tests/arm64/machine" --seconds 1100 "$WORK/script" "$tests" "${files[@]}" \
	"$ROOT/tests/format/golden" /usr/lib/locale/C.utf8 >"$WORK/output" || status=$?
cat "$WORK/output"
((status == 0)) || exit "$status"
wanted=$(wc -l <"$tests")
passed=$(grep -c ': passed (' "$WORK/output" || true)
skipped=$(grep -c ': skipped' "$WORK/output" || true)
verdict=FAILED
((passed + skipped != wanted || passed == 0)) || verdict=ok
printf 'RESULT\tunit tests, AArch64, in an emulated machine\tall of %d\t%d passed, %d skipped\t%s\n' \
	"$wanted" "$passed" "$skipped" $verdict
[[ $verdict == ok ]]
