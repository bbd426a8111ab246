/* SPDX-License-Identifier: MIT */
/* How is the table of functions printed? */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/diff/compare.h"
#include "format/formats/reports.h"

/** Characters for names; a longer name moves its location to the right. */
#define NAME_WIDTH_MAX 48

struct row {
	const struct call_tree_label *label;
	uint64_t self, total;
};

static struct row *count_rows(const struct call_tree *call_tree)
{
	struct row *rows = calloc((size_t)call_tree->label_count + 1, sizeof(*rows));
	struct call_tree_count *counts = call_tree_count(call_tree);

	for (uint32_t i = 0; rows && counts && i < call_tree->label_count; i++)
		rows[i] = (struct row){ .label = &call_tree->labels[i],
					.self = counts[i].self,
					.total = counts[i].total };
	if (!counts) {
		free(rows);
		rows = NULL;
	}
	free(counts);
	return rows;
}

static int compare_rows(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return strcmp(a->label->text, b->label->text);
}

/** The text of a trace contains its location, so the name column shows the whole text. */
static const char *name_of(const struct call_tree_label *label)
{
	if (label->kind == FORMAT_KIND_LUA)
		return label->name ? label->name : "-";
	return label->text;
}

/** The annotation after the name. */
static const char *note_of(const struct call_tree_label *label)
{
	return label->kind == FORMAT_KIND_LUA && label->note ? label->note : "";
}

static int name_width(const struct row *rows, uint32_t count)
{
	size_t width = strlen("FUNCTION");

	for (uint32_t i = 0; i < count; i++) {
		size_t len = strlen(name_of(rows[i].label));

		len += strlen(note_of(rows[i].label));
		if (len > width)
			width = len;
	}
	return (int)(width > NAME_WIDTH_MAX ? NAME_WIDTH_MAX : width);
}

/** @return The number of rows that the options leave; they go to the front. */
static uint32_t choose_rows(struct row *rows, const struct call_tree *call_tree,
			    const struct format_report_options *options)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < call_tree->label_count; i++) {
		if (options->top && count >= options->top)
			break;
		if (format_percent(rows[i].total, call_tree->samples) >= options->minimum)
			rows[count++] = rows[i];
	}
	return count;
}

static void print_rows(struct row *rows, const struct call_tree *call_tree, const char *unit,
		       const struct format_report_options *options, FILE *file)
{
	uint32_t count = choose_rows(rows, call_tree, options);
	int width = name_width(rows, count);

	fprintf(file, "%" PRIu64 " %s, %" PRIu32 " functions\n\n", call_tree->samples, unit,
		call_tree->label_count);
	fprintf(file, "%9s %6s %9s %6s  %-8s  %-*s  %s\n", "SELF", "%", "TOTAL", "%", "KIND", width,
		"FUNCTION", "LOCATION");
	for (uint32_t i = 0; i < count; i++) {
		const struct call_tree_label *label = rows[i].label;
		bool location = label->kind == FORMAT_KIND_LUA && label->location;
		size_t len = strlen(name_of(label));
		int rest = len < (size_t)width ? width - (int)len : 0;

		fprintf(file, "%9" PRIu64 " %6.2f %9" PRIu64 " %6.2f  %-8s  %s%-*s%s%s\n",
			rows[i].self, format_percent(rows[i].self, call_tree->samples),
			rows[i].total, format_percent(rows[i].total, call_tree->samples),
			format_kind_name(label->kind), name_of(label), location ? rest : 0,
			note_of(label), location ? "  " : "", location ? label->location : "");
	}
}

static int print_chains(const struct format_profile *profile,
			const struct format_report_options *options, FILE *file,
			struct failure *why)
{
	enum format_lines lines = options->lines ? options->lines : FORMAT_LINES_FUNCTION;
	struct call_tree call_tree;
	struct row *rows;

	if (call_tree_init(&call_tree, profile, lines, options->annotate, why))
		return -1;
	rows = count_rows(&call_tree);
	if (rows) {
		qsort(rows, call_tree.label_count, sizeof(*rows), compare_rows);
		print_rows(rows, &call_tree, format_profile_unit(profile), options, file);
	}
	call_tree_deinit(&call_tree);
	free(rows);
	return rows ? 0 : failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "sum up the functions");
}

static int top_print(const struct format_profile *profile,
		     const struct format_report_options *options, FILE *file, struct failure *why)
{
	if (profile->kind == FORMAT_STREAM_SYSPROF)
		return print_chains(profile, options, file, why);
	return report_memory_print(&profile->heap, options, file, why);
}

/* ---- Differences ------------------------------------------------------------------------ */

/** Print a time estimated from the number of samples, or blanks if the period is unknown. */
static void print_time(double share, uint64_t samples, uint64_t period_ns, FILE *file)
{
	if (period_ns)
		fprintf(file, " %9.3f", share * (double)samples * (double)period_ns / 1e9);
	else
		fprintf(file, " %9s", "-");
}

static void print_change(const struct compare *compare, const uint64_t parts[2],
			 struct compare_range change, FILE *file)
{
	char range[32];

	snprintf(range, sizeof(range), "%+.2f..%+.2f", 100 * change.low, 100 * change.high);
	fprintf(file, " %7.2f %7.2f %+7.2f%c %-15s", format_percent(parts[0], compare->samples[0]),
		format_percent(parts[1], compare->samples[1]), 100 * change.value,
		compare_is_certain(change) ? '*' : ' ', range);
}

static void print_diff(const struct compare *compare, const uint64_t periods_ns[2], FILE *file)
{
	fprintf(file,
		"%" PRIu64 " samples before, %" PRIu64 " now; * is significant; the ranges of "
		"all rows hold together with a confidence of %.0f %%\n\n",
		compare->samples[0], compare->samples[1], 100 * COMPARE_CONFIDENCE);
	fprintf(file, " %7s %7s %8s %-15s %9s %9s %7s %7s %8s %-15s  %-8s  %s\n", "SELF %", "NOW",
		"CHANGE", "FROM..TO", "SELF S", "NOW", "TOTAL %", "NOW", "CHANGE", "FROM..TO",
		"KIND", "FUNCTION");
	for (uint32_t i = 0; i < compare->count; i++) {
		const struct compare_row *row = &compare->rows[i];

		print_change(compare, row->self, row->self_change, file);
		for (int side = 0; side < 2; side++)
			print_time(format_percent(row->self[side], compare->samples[side]) / 100,
				   compare->samples[side], periods_ns[side], file);
		print_change(compare, row->total, row->total_change, file);
		fprintf(file, "  %-8s  %s\n", format_kind_name(row->kind), row->text);
	}
}

static int top_diff(const struct format_profile *base, const struct format_profile *profile,
		    const struct format_report_options *options, FILE *file, struct failure *why)
{
	const uint64_t periods_ns[2] = { base->period_ns, profile->period_ns };
	struct compare compare;
	int result;

	if (call_tree_need_chains(base, why) || call_tree_need_chains(profile, why) ||
	    compare_init(&compare, base, profile,
			 options->lines ? options->lines : FORMAT_LINES_FUNCTION, why))
		return -1;
	result = compare_judge(&compare, why);
	if (result == 0)
		print_diff(&compare, periods_ns, file);
	compare_deinit(&compare);
	return result;
}

const struct format_report_ops format_report_top = {
	.name = "top",
	.is_view = true,
	.description =
		"table of functions by own samples; of a memory profile its events by location",
	.takes_memory = true,
	.print = top_print,
	.diff = top_diff,
};
