# SPDX-License-Identifier: MIT
# Growth curves: the bench's lines as a Markdown table and, where it is asked for, as a chart.
#
# Usage: LC_ALL=C awk -f scripts/growth.awk [-v chart=FILE.svg] [FILE]
#
# Lines, with tabs between; all others are passed over:
#   GROWTH      KIND SIZE STOPPED_US CPU_US STOPPED_RATIO CPU_RATIO
#   GROWTH-RUN  KIND WHAT UNIT SIZE VALUE RATIO
# Sizes of a kind come smallest first, and ratios are to that one.

BEGIN {
	FS = "\t"
	WIDTH = 900; HEIGHT = 580; COLUMNS = 3
	# The first panel's field of lines, and from one panel to the next.
	LEFT = 70; TOP = 104; ACROSS = 285; DOWN = 246
	FIELD_WIDTH = 225; FIELD_HEIGHT = 160
	STOPPED = "#1663a6"; CPU = "#c2410c"; RUN = "#15803d"; GREY = "#6b7280"
	TITLE = "What a sample costs by the size of the process"
}

function join(list, text) { return list == "" ? text : list ", " text }

$1 == "GROWTH" && NF >= 7 && $3 > 0 {
	if (!($2 in count)) {
		kinds[++kind_count] = $2
		stopped_us[$2] = $4; cpu_us[$2] = $5
	}
	n = ++count[$2]
	size[$2, n] = $3; stopped[$2, n] = $6 + 0; cpu[$2, n] = $7 + 0
	sizes[$2] = join(sizes[$2], $3)
	stopped_list[$2] = join(stopped_list[$2], $6)
	cpu_list[$2] = join(cpu_list[$2], $7)
}

$1 == "GROWTH-RUN" && NF >= 7 {
	run = $3 FS $2
	if (!(run in run_sizes)) {
		runs[++run_count] = run
		run_value[run] = $6 " " $4
		if (!($2 in run_name))
			run_name[$2] = $3
	}
	if (run_name[$2] == $3) {
		n = ++run_count_of[$2]
		run_size[$2, n] = $5; run_ratio[$2, n] = $7 + 0
	}
	run_sizes[run] = join(run_sizes[run], $5)
	run_list[run] = join(run_list[run], $7)
}

# ---- Table ------------------------------------------------------------------------------------

function print_tables(    i, kind, part) {
	print "| by | sizes | stopped time p50 at the smallest | ratios to it |" \
		" processor time of a sample at the smallest | ratios to it |"
	print "|---|---|---|---|---|---|"
	for (i = 1; i <= kind_count; i++) {
		kind = kinds[i]
		printf "| %s | %s | %s us | %s | %s us | %s |\n", kind, sizes[kind], stopped_us[kind],
			stopped_list[kind], cpu_us[kind], cpu_list[kind]
	}
	if (!run_count)
		return
	print "\n| of whole runs | by | sizes | at the smallest | ratios to it |"
	print "|---|---|---|---|---|"
	for (i = 1; i <= run_count; i++) {
		split(runs[i], part, FS)
		printf "| %s | %s | %s | %s | %s |\n", part[1], part[2], run_sizes[runs[i]],
			run_value[runs[i]], run_list[runs[i]]
	}
}

# ---- Chart ------------------------------------------------------------------------------------

function escape(text) {
	gsub(/&/, "\\&amp;", text); gsub(/</, "\\&lt;", text); gsub(/>/, "\\&gt;", text)
	return text
}

function text_at(x, y, anchor, style, text) {
	printf "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>%s</text>\n", x, y, anchor, style,
		escape(text) >chart
}

function line(x1, y1, x2, y2, style) {
	printf "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2,
		style >chart
}

# One scale for all panels, so that they can be compared: whole decades, and some room below 1.
function set_scale(    i, k, kind) {
	most = 1; least = 1
	for (i = 1; i <= kind_count; i++) {
		kind = kinds[i]
		for (k = 1; k <= count[kind]; k++) {
			hold(stopped[kind, k]); hold(cpu[kind, k])
		}
		for (k = 1; k <= run_count_of[kind]; k++)
			hold(run_ratio[kind, k])
	}
	Y_MIN = 0.5
	while (Y_MIN > 0.001 && Y_MIN * 1.2 > least) Y_MIN /= 2
	Y_MAX = 10
	while (Y_MAX < 1e9 && Y_MAX < most * 1.5) Y_MAX *= 10
}

function hold(ratio) {
	if (ratio > most) most = ratio
	if (ratio > 0 && ratio < least) least = ratio
}

function x_of(kind, value,    first, last) {
	first = size[kind, 1]; last = size[kind, count[kind]]
	if (last <= first)
		return left + FIELD_WIDTH / 2
	return left + FIELD_WIDTH * log(value / first) / log(last / first)
}

function y_of(ratio) {
	if (ratio < Y_MIN) ratio = Y_MIN
	return top + FIELD_HEIGHT * (1 - log(ratio / Y_MIN) / log(Y_MAX / Y_MIN))
}

function short(number) {
	return number >= 1000 && number % 1000 == 0 ? number / 1000 "k" : number
}

# Lines differ by their marks, too.
function draw_line(kind, xs, ratios, n, color, mark,    k, points) {
	for (k = 1; k <= n; k++)
		points = points (k > 1 ? " " : "") sprintf("%.1f,%.1f", x_of(kind, xs[kind, k]),
			y_of(ratios[kind, k]))
	printf "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n", points,
		color >chart
	for (k = 1; k <= n; k++)
		draw_mark(x_of(kind, xs[kind, k]), y_of(ratios[kind, k]), color, mark)
}

function draw_mark(x, y, color, mark) {
	if (mark == "square")
		printf "<rect x=\"%.1f\" y=\"%.1f\" width=\"8\" height=\"8\" fill=\"%s\"/>\n", x - 4,
			y - 4, color >chart
	else if (mark == "diamond")
		printf "<path d=\"M%.1f %.1fl6 6l-6 6l-6 -6z\" fill=\"%s\"/>\n", x, y - 6, color >chart
	else
		printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\" fill=\"#fff\" stroke=\"%s\"" \
			" stroke-width=\"2\"/>\n", x, y, color >chart
}

# Where a cost would be that grows as the size does, as far as the field goes.
function draw_proportion(kind,    first, last) {
	first = size[kind, 1]; last = size[kind, count[kind]]
	if (last > first * Y_MAX)
		last = first * Y_MAX
	if (last > first)
		line(x_of(kind, first), y_of(1), x_of(kind, last), y_of(last / first),
			"stroke=\"" GREY "\" stroke-dasharray=\"4 4\"")
}

function draw_panel(i, kind,    k, ratio, n) {
	left = LEFT + (i - 1) % COLUMNS * ACROSS
	top = TOP + int((i - 1) / COLUMNS) * DOWN
	n = count[kind]
	for (ratio = Y_MAX; ratio >= Y_MIN; ratio /= 10) {
		line(left, y_of(ratio), left + FIELD_WIDTH, y_of(ratio),
			ratio == 1 ? "stroke=\"#9ca3af\"" : "stroke=\"#e5e7eb\"")
		text_at(left - 8, y_of(ratio) + 4, "end", "", short(ratio))
	}
	for (k = 1; k <= n; k++) {
		line(x_of(kind, size[kind, k]), top + FIELD_HEIGHT, x_of(kind, size[kind, k]),
			top + FIELD_HEIGHT + 4, "stroke=\"" GREY "\"")
		text_at(x_of(kind, size[kind, k]), top + FIELD_HEIGHT + 17, "middle", "",
			short(size[kind, k]))
	}
	line(left, top + FIELD_HEIGHT, left + FIELD_WIDTH, top + FIELD_HEIGHT, "stroke=\"" GREY "\"")
	draw_proportion(kind)
	text_at(left + FIELD_WIDTH / 2, top + FIELD_HEIGHT + 35, "middle", " font-size=\"13\"", kind)
	note(1, STOPPED, sprintf("%.2f", stopped[kind, n]))
	note(2, CPU, sprintf("%.2f", cpu[kind, n]))
	if (run_count_of[kind]) {
		note(3, RUN, sprintf("%.2f", run_ratio[kind, run_count_of[kind]]))
		text_at(left + FIELD_WIDTH / 2, top + FIELD_HEIGHT + 51, "middle", " fill=\"" RUN "\"",
			run_name[kind])
		draw_line(kind, run_size, run_ratio, run_count_of[kind], RUN, "diamond")
	}
	draw_line(kind, size, cpu, n, CPU, "square")
	draw_line(kind, size, stopped, n, STOPPED, "circle")
}

# In the corner of a field, readable also on a line.
function note(row, color, text) {
	text_at(left + 4, top + 16 * row - 4, "start", " fill=\"" color "\" stroke=\"#fff\"" \
		" stroke-width=\"3\" paint-order=\"stroke\" font-weight=\"bold\" font-size=\"12\"", text)
}

function draw_key(x, color, mark, text) {
	line(x, 62, x + 28, 62, "stroke=\"" color "\" stroke-width=\"2\"")
	draw_mark(x + 14, 62, color, mark)
	text_at(x + 36, 66, "start", " font-size=\"13\"", text)
}

function draw_legend() {
	draw_key(LEFT, STOPPED, "circle", "stopped time p50")
	draw_key(LEFT + 180, CPU, "square", "processor time p50")
	draw_key(LEFT + 375, RUN, "diamond", "whole runs of ljrecord")
	line(LEFT + 592, 62, LEFT + 620, 62, "stroke=\"" GREY "\" stroke-dasharray=\"4 4\"")
	text_at(LEFT + 628, 66, "start", " font-size=\"13\"", "in proportion to the size")
	text_at(LEFT + 2 * ACROSS + FIELD_WIDTH, 34, "end", "",
		"in the corners: ratios at the largest size")
}

function draw_chart(    i, rows, middle) {
	rows = int((kind_count + COLUMNS - 1) / COLUMNS)
	HEIGHT -= (2 - rows) * DOWN
	middle = TOP + (rows * DOWN - 86) / 2
	set_scale()
	printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\"" \
		" height=\"%d\" font-family=\"sans-serif\" font-size=\"11\" fill=\"#1f2937\"" \
		" role=\"img\">\n", WIDTH, HEIGHT, WIDTH, HEIGHT >chart
	print "<title>" TITLE "</title>" >chart
	printf "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", WIDTH, HEIGHT >chart
	text_at(LEFT, 34, "start", " font-size=\"18\" font-weight=\"bold\"",
		TITLE)
	draw_legend()
	printf "<text transform=\"translate(20 %.1f) rotate(-90)\" text-anchor=\"middle\"" \
		" font-size=\"13\">ratio to the smallest size</text>\n", middle >chart
	for (i = 1; i <= kind_count; i++)
		draw_panel(i, kinds[i])
	print "</svg>" >chart
	close(chart)
}

END {
	if (!kind_count)
		exit 1
	print_tables()
	if (chart != "")
		draw_chart()
}
