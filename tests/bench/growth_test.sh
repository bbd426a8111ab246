#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: growth_test.sh GROWTH_AWK
# Tables and chart of growth curves, from fixed lines.

growth=$1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failures=0

fail() {
	echo "FAIL: $*" >&2
	failures=$((failures + 1))
}

# draw [FILE]: tables of standard input, and its chart.
draw() {
	LC_ALL=C awk -f "$growth" ${1+-v chart="$1"} >"$folder/tables"
}

lines() {
	cat <<-'END'
		10 native frames: of 314 samples 100.0 % full
		GROWTH	native frames	10	65.3	73.7	1.00	1.00
		GROWTH	native frames	100	66.0	94.6	1.01	1.28
		GROWTH	native frames	10000	70.5	3007.9	1.08	40.81
		RESULT	stopped time p50	<= 2	1.08	ok
		GROWTH	threads	1	66.0	72.5	1.00	1.00
		GROWTH-RUN	threads	time of a <tick>	us	1	66.0	1.00
		GROWTH	threads	500	33.1	72.7	0.40	1.00
		GROWTH-RUN	threads	time of a <tick>	us	500	781.2	11.84
		GROWTH	of one & only size	5	1.0	2.0	1.00	1.00
		GROWTH	d	1	1.0	2.0	1.00	1.00
		GROWTH	d	2	1.0	2.0	1.00	1.00
		GROWTH	broken	1
	END
}

cat >"$folder/expected" <<'END'
| by | sizes | stopped time p50 at the smallest | ratios to it | processor time of a sample at the smallest | ratios to it |
|---|---|---|---|---|---|
| native frames | 10, 100, 10000 | 65.3 us | 1.00, 1.01, 1.08 | 73.7 us | 1.00, 1.28, 40.81 |
| threads | 1, 500 | 66.0 us | 1.00, 0.40 | 72.5 us | 1.00, 1.00 |
| of one & only size | 5 | 1.0 us | 1.00 | 2.0 us | 1.00 |
| d | 1, 2 | 1.0 us | 1.00, 1.00 | 2.0 us | 1.00, 1.00 |

| of whole runs | by | sizes | at the smallest | ratios to it |
|---|---|---|---|---|
| time of a <tick> | threads | 1, 500 | 66.0 us | 1.00, 11.84 |
END

lines | draw "$folder/chart.svg" || fail 'exit code'
cmp "$folder/tables" "$folder/expected" || fail "tables: $(cat "$folder/tables")"

# A chart is one small file of XML, the same each time.
lines | draw "$folder/again.svg"
cmp "$folder/chart.svg" "$folder/again.svg" || fail 'the chart is another one'
(($(wc -c <"$folder/chart.svg") < 20000)) || fail 'the chart is large'
if command -v xmllint >/dev/null; then
	xmllint --noout "$folder/chart.svg" || fail 'the chart is no XML'
else
	# Elements are on one line each, but for the root.
	head -n 1 "$folder/chart.svg" | grep -q '^<svg [^<>]*>$' || fail 'no root'
	tail -n 1 "$folder/chart.svg" | grep -qx '</svg>' || fail 'the root has no end'
	sed '1d; $d' "$folder/chart.svg" |
		grep -v -x -E '<(rect|line|circle|path|polyline) [^<>]*/>|<(text|title)( [^<>]*)?>[^<>]*</(text|title)>' &&
		fail 'the chart is no XML'
fi
grep -q '<script\|nan\|inf"' "$folder/chart.svg" && fail 'what does not belong into a chart'

# Each kind has its panel and its lines, and whole runs have one where they were measured.
(($(grep -c '^<polyline .*#1663a6' "$folder/chart.svg") == 4)) || fail 'lines of stopped time'
(($(grep -c '^<polyline .*#c2410c' "$folder/chart.svg") == 4)) || fail 'lines of processor time'
(($(grep -c '^<polyline .*#15803d' "$folder/chart.svg") == 1)) || fail 'lines of whole runs'
# The first panel's field is 225 wide and its scale goes from 0.25 to 100.
grep -q '^<polyline points="70.0,227.0 145.0,226.7 295.0,224.9" .*#1663a6' "$folder/chart.svg" ||
	fail "points: $(grep -m 1 '^<polyline .*#1663a6' "$folder/chart.svg")"
for text in 'native frames' 'of one &amp; only size' 'time of a &lt;tick&gt;' 10k 500 0.40 40.81 \
	'ratio to the smallest size' 'stopped time p50' 'processor time p50'; do
	grep -q ">$text</text>" "$folder/chart.svg" || fail "the chart does not say $text"
done

# Without a chart, and without lines.
rm "$folder"/*.svg
lines | draw || fail 'exit code without a chart'
cmp "$folder/tables" "$folder/expected" || fail 'tables without a chart'
ls "$folder"/*.svg >/dev/null 2>&1 && fail 'a chart that nobody asked for'
if echo 'RESULT	a	b	c	ok' | draw "$folder/chart.svg"; then
	fail 'exit code without lines'
fi
[ -e "$folder/chart.svg" ] && fail 'a chart of nothing'

[ $failures -eq 0 ] && echo "all checks passed"
exit $((failures > 0))
