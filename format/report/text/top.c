/* SPDX-License-Identifier: MIT */
/* How is the table of functions printed? */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/diff/compare.h"
#include "format/formats/reports.h"

/* In place of what is cut. */
#define CUT "..."

enum {
	CUT_LEN = sizeof(CUT) - 1,
	/* Characters for names; a longer name moves its location to the right. */
	NAME_WIDTH_MAX = 48,
	/* Narrower terminals show no counts. */
	COUNTS_WIDTH_MIN = 100,
	/* Characters before the name, with and without counts. */
	SHARES_WIDTH = 25,
	COUNTS_WIDTH = 45,
	LOCATION_WIDTH_MIN = 12,
};

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

/** Where a Lua function is, as people write it: without the mark of a chunk that is a file, and
 * without the line 0 of a whole chunk. @param ret_len Characters before that. */
static const char *location_of(const struct call_tree_label *label, int *ret_len)
{
	const char *location =
		label->kind == FORMAT_KIND_LUA && label->location ? label->location : "";
	size_t len;

	if (*location == '@' || *location == '=')
		location++;
	len = strlen(location);
	if (len > 2 && strcmp(location + len - 2, ":0") == 0)
		len -= 2;
	*ret_len = (int)len;
	return location;
}

/** Write a function's name and its annotation. The text of a trace contains its location, so the
 * name column shows the whole text. */
static const char *write_name(const struct call_tree_label *label, struct format_text *text)
{
	struct failure why;
	const char *result;
	int len;

	format_text_clear(text);
	if (label->kind != FORMAT_KIND_LUA) {
		format_text_add_string(text, label->text);
	} else if (label->name) {
		format_text_add_string(text, label->name);
	} else {
		const char *location = location_of(label, &len);

		format_text_add_string(text, "<");
		format_text_add_line(text, location, (size_t)len);
		format_text_add_string(text, ">");
	}
	if (label->kind == FORMAT_KIND_LUA && label->note)
		format_text_add_string(text, label->note);
	return format_text_take(text, &result, &why) == 0 ? result : "?";
}

/** How wide the columns are. */
struct widths {
	int name, location;
	bool counts; /* Columns of counts are shown. */
	bool cuts;   /* What is longer is cut. */
};

static struct widths choose_widths(const struct row *rows, uint32_t count, unsigned width)
{
	struct widths widths = { .name = (int)strlen("FUNCTION"),
				 .location = (int)strlen("LOCATION"),
				 .counts = !width || width >= COUNTS_WIDTH_MIN };
	struct format_text text = { 0 };
	int left;

	for (uint32_t i = 0; i < count; i++) {
		int name = (int)strlen(write_name(rows[i].label, &text)), location;

		location_of(rows[i].label, &location);
		widths.name = name > widths.name ? name : widths.name;
		widths.location = location > widths.location ? location : widths.location;
	}
	format_text_deinit(&text);
	left = (int)width - (widths.counts ? COUNTS_WIDTH : SHARES_WIDTH);
	if (!width) {
		widths.name = widths.name < NAME_WIDTH_MAX ? widths.name : NAME_WIDTH_MAX;
	} else if (widths.name + 2 + widths.location > left) {
		int most = left * 2 / 5 > LOCATION_WIDTH_MIN ? left * 2 / 5 : LOCATION_WIDTH_MIN;

		widths.cuts = true;
		widths.location = widths.location < most ? widths.location : most;
		widths.name = left - 2 - widths.location;
		widths.name = widths.name > LOCATION_WIDTH_MIN ? widths.name : LOCATION_WIDTH_MIN;
	}
	return widths;
}

/** @param ret_all The number of rows that the options leave without `top`.
 *  @return The number of rows that they leave; these go to the front. */
static uint32_t choose_rows(struct row *rows, const struct call_tree *call_tree,
			    const struct format_report_options *options, uint32_t *ret_all)
{
	uint32_t count = 0, all = 0;

	for (uint32_t i = 0; i < call_tree->label_count; i++) {
		if (format_percent(rows[i].total, call_tree->samples) < options->minimum)
			continue;
		if (!options->top || count < options->top)
			rows[count++] = rows[i];
		all++;
	}
	*ret_all = all;
	return count;
}

static void print_heads(const struct widths *widths, FILE *file)
{
	if (widths->counts)
		fprintf(file, "%9s %6s %9s %6s", "SELF", "%", "TOTAL", "%");
	else
		fprintf(file, "%6s %6s", "SELF%", "TOTAL%");
	fprintf(file, "  %-8s  %-*s  %s\n", "KIND", widths->name, "FUNCTION", "LOCATION");
}

static void print_shares(const struct row *row, const struct widths *widths, uint64_t samples,
			 FILE *file)
{
	double self = format_percent(row->self, samples),
	       total = format_percent(row->total, samples);

	if (widths->counts)
		fprintf(file, "%9" PRIu64 " %6.2f %9" PRIu64 " %6.2f", row->self, self, row->total,
			total);
	else
		fprintf(file, "%6.2f %6.2f", self, total);
}

/** The end of a name, and the beginning of a location, are cut. */
static void print_texts(const struct call_tree_label *label, const struct widths *widths,
			struct format_text *text, FILE *file)
{
	const char *name = write_name(label, text);
	int name_len = (int)strlen(name), len;
	const char *location = location_of(label, &len);
	/* Without a location its column is the name's, too. */
	int room = widths->name + (len ? 0 : 2 + widths->location), kept = name_len;

	if (widths->cuts && name_len > room) {
		kept = (int)format_text_cut(name, (size_t)name_len, (size_t)(room - CUT_LEN));
		fprintf(file, "%.*s" CUT, kept, name);
		kept += CUT_LEN;
	} else {
		fputs(name, file);
	}
	if (len == 0)
		return;
	fprintf(file, "%*s  ", widths->name > kept ? widths->name - kept : 0, "");
	if (widths->cuts && len > widths->location) {
		location += len - (widths->location - CUT_LEN);
		len = widths->location - CUT_LEN;
		/* Not in the middle of a character. */
		for (; len > 0 && ((unsigned char)*location & 0xc0) == 0x80; location++)
			len--;
		fputs(CUT, file);
	}
	fprintf(file, "%.*s", len, location);
}

static void print_rows(struct row *rows, const struct call_tree *call_tree, const char *unit,
		       const struct format_report_options *options, FILE *file)
{
	uint32_t all, count = choose_rows(rows, call_tree, options, &all);
	struct widths widths = choose_widths(rows, count, options->width);
	struct format_text text = { 0 };

	fprintf(file, "%" PRIu64 " %s, %" PRIu32 " functions\n\n", call_tree->samples, unit,
		call_tree->label_count);
	print_heads(&widths, file);
	for (uint32_t i = 0; i < count; i++) {
		print_shares(&rows[i], &widths, call_tree->samples, file);
		fprintf(file, "  %-8s  ", format_kind_name(rows[i].label->kind));
		print_texts(rows[i].label, &widths, &text, file);
		fputc('\n', file);
	}
	if (options->width && count < all)
		fprintf(file, "\n%" PRIu32 " more functions; --top 0 shows all\n", all - count);
	format_text_deinit(&text);
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
