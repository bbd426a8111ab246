/* SPDX-License-Identifier: MIT */
/* Which tables go on the page of a CI job? The most important rows of a profile. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/budget.h"
#include "format/diff/compare.h"
#include "format/formats/reports.h"
#include "format/text/markdown.h"

enum {
	/* People read the page and do not search it. */
	ROWS_MAX = 20,
	NAME_MAX_CHARACTERS = 160,
	/* A reason names several functions. */
	REASON_MAX_CHARACTERS = 1000,
};

static void print_more(size_t count, size_t most, const char *what, FILE *file)
{
	if (count > most)
		fprintf(file, "\n%zu more %s are not shown.\n", count - most, what);
}

/* ---- One profile ------------------------------------------------------------------------ */

static void print_title(const struct format_report_options *options, FILE *file)
{
	fputs("### ", file);
	if (options->title && *options->title)
		markdown_print_code(file, options->title, NAME_MAX_CHARACTERS);
	else
		fputs("Profile", file);
	fputs("\n\n", file);
}

static void print_states(const struct format_profile *profile, FILE *file)
{
	const char *lead = "\nStates of the VM: ";
	uint64_t all = 0;

	for (int i = 0; i < FORMAT_STATE_COUNT; i++)
		all += profile->states[i];
	for (int i = 0; i < FORMAT_STATE_COUNT; i++) {
		if (profile->states[i] == 0)
			continue;
		fprintf(file, "%s%s %.1f %%", lead, format_state_name((enum format_state)i),
			format_percent(profile->states[i], all));
		lead = ", ";
	}
	if (all)
		fputs(".\n", file);
}

static void print_head(const struct format_profile *profile,
		       const struct format_report_options *options, FILE *file)
{
	const char *unit = format_profile_unit(profile);

	print_title(options, file);
	fprintf(file, "**%" PRIu64 "** ", profile->samples);
	if (format_profile_has_samples(profile))
		fputs("samples", file);
	else
		markdown_print_code(file, unit, NAME_MAX_CHARACTERS);
	if (profile->duration_ns)
		fprintf(file, " in %.2f s", (double)profile->duration_ns / 1e9);
	if (profile->period_ns)
		fprintf(file, ", one per %.3f ms", (double)profile->period_ns / 1e6);
	fputs(".\n", file);
	print_states(profile, file);
}

struct row {
	const struct call_tree_label *label;
	uint64_t self, total;
};

static int compare_text(const struct row *a, const struct row *b)
{
	int texts = strcmp(a->label->text, b->label->text);

	return texts ? texts : (int)a->label->kind - (int)b->label->kind;
}

static int by_self(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return compare_text(a, b);
}

static int by_total(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	return a->total != b->total ? (a->total > b->total ? -1 : 1) : by_self(left, right);
}

static void print_rows(const char *what, struct row *rows, size_t count, uint64_t samples,
		       int (*order)(const void *, const void *),
		       const struct format_report_options *options, FILE *file)
{
	size_t most = options->top ? options->top : ROWS_MAX, shown = 0;

	qsort(rows, count, sizeof(*rows), order);
	fprintf(file,
		"\n#### %s\n\n| Self | Self %% | Total | Total %% | Kind | Function |\n"
		"|---:|---:|---:|---:|---|---|\n",
		what);
	for (size_t i = 0; i < count && shown < most; i++) {
		if (format_percent(rows[i].total, samples) < options->minimum)
			continue;
		shown++;
		fprintf(file, "| %" PRIu64 " | %.2f | %" PRIu64 " | %.2f | %s | ", rows[i].self,
			format_percent(rows[i].self, samples), rows[i].total,
			format_percent(rows[i].total, samples),
			format_kind_name(rows[i].label->kind));
		markdown_print_code(file, rows[i].label->text, NAME_MAX_CHARACTERS);
		fputs(" |\n", file);
	}
	print_more(count, shown, "functions", file);
}

static int markdown_print(const struct format_profile *profile,
			  const struct format_report_options *options, FILE *file,
			  struct failure *why)
{
	struct call_tree_count *counts;
	struct call_tree call_tree;
	struct row *rows;

	if (call_tree_need_chains(profile, why) ||
	    call_tree_init(&call_tree, profile,
			   options->lines ? options->lines : FORMAT_LINES_FUNCTION,
			   options->annotate, why))
		return -1;
	rows = calloc((size_t)call_tree.label_count + 1, sizeof(*rows));
	counts = call_tree_count(&call_tree);
	for (uint32_t i = 0; rows && counts && i < call_tree.label_count; i++)
		rows[i] = (struct row){ &call_tree.labels[i], counts[i].self, counts[i].total };
	if (rows && counts) {
		print_head(profile, options, file);
		print_rows("By own samples", rows, call_tree.label_count, call_tree.samples,
			   by_self, options, file);
		print_rows("Including callees", rows, call_tree.label_count, call_tree.samples,
			   by_total, options, file);
	} else {
		failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "sum up the functions");
	}
	call_tree_deinit(&call_tree);
	free(counts);
	free(rows);
	return rows && counts ? 0 : -1;
}

/* ---- Two -------------------------------------------------------------------------------- */

/** A change of a function's share. */
struct change {
	const char *text;
	const uint64_t *parts;
	struct compare_range range;
};

/** Significant changes first, then by size. */
static int compare_changes(const void *left, const void *right)
{
	const struct change *a = left, *b = right;
	bool certain[] = { compare_is_certain(a->range), compare_is_certain(b->range) };
	double sizes[] = { fabs(a->range.value), fabs(b->range.value) };

	if (certain[0] != certain[1])
		return certain[0] ? -1 : 1;
	if (sizes[0] < sizes[1] || sizes[0] > sizes[1])
		return sizes[0] > sizes[1] ? -1 : 1;
	return strcmp(a->text, b->text);
}

static void print_changes(const char *what, const struct compare *compare, bool self,
			  struct change *changes, FILE *file)
{
	size_t count = 0;

	for (uint32_t i = 0; i < compare->count; i++) {
		const struct compare_row *row = &compare->rows[i];
		struct change change = { row->text, self ? row->self : row->total,
					 self ? row->self_change : row->total_change };

		if (change.range.value < 0 || change.range.value > 0)
			changes[count++] = change;
	}
	fprintf(file, "\n#### %s\n\n", what);
	if (count == 0) {
		fputs("No function's share changed.\n", file);
		return;
	}
	qsort(changes, count, sizeof(*changes), compare_changes);
	fputs("| Base % | Now % | Change | From .. to | Certain | Function |\n"
	      "|---:|---:|---:|---:|---|---|\n",
	      file);
	for (size_t i = 0; i < count && i < ROWS_MAX; i++) {
		const struct change *change = &changes[i];

		fprintf(file, "| %.2f | %.2f | %+.2f | %+.2f .. %+.2f | %s | ",
			format_percent(change->parts[0], compare->samples[0]),
			format_percent(change->parts[1], compare->samples[1]),
			100 * change->range.value, 100 * change->range.low,
			100 * change->range.high,
			compare_is_certain(change->range) ? "**yes**" : "no");
		markdown_print_code(file, change->text, NAME_MAX_CHARACTERS);
		fputs(" |\n", file);
	}
	print_more(count, ROWS_MAX, "changes", file);
}

static int markdown_diff(const struct format_profile *base, const struct format_profile *profile,
			 const struct format_report_options *options, FILE *file,
			 struct failure *why)
{
	struct compare compare;
	struct change *changes;
	int result;

	if (call_tree_need_chains(base, why) || call_tree_need_chains(profile, why) ||
	    compare_init(&compare, base, profile,
			 options->lines ? options->lines : FORMAT_LINES_FUNCTION, why))
		return -1;
	changes = calloc((size_t)compare.count + 1, sizeof(*changes));
	result = changes ? compare_judge(&compare, why)
			 : failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "compare the functions");
	if (result == 0) {
		print_title(options, file);
		fprintf(file,
			"**%" PRIu64 "** samples before, **%" PRIu64 "** now. Certain changes are "
			"significant: all ranges hold together with a confidence of %.0f %%.\n",
			compare.samples[0], compare.samples[1], 100 * COMPARE_CONFIDENCE);
		print_changes("Changes of own samples", &compare, true, changes, file);
		print_changes("Changes including callees", &compare, false, changes, file);
	}
	free(changes);
	compare_deinit(&compare);
	return result;
}

/* ---- Rules ------------------------------------------------------------------------------ */

void format_budget_print_markdown(const struct format_budget *budget, FILE *file)
{
	size_t count, failed = 0;
	const struct format_verdict *verdicts = format_budget_verdicts(budget, &count);

	for (size_t i = 0; i < count; i++)
		failed += verdicts[i].failed;
	fputs("### Rules: ", file);
	if (failed)
		fprintf(file, "%zu of %zu broken\n\n", failed, count);
	else
		fprintf(file, "all %zu kept\n\n", count);
	fputs("| Rule | Result | Reason |\n|---|---|---|\n", file);
	for (size_t i = 0; i < count; i++) {
		fputs("| ", file);
		markdown_print_code(file, verdicts[i].rule, NAME_MAX_CHARACTERS);
		fprintf(file, " | %s | ", verdicts[i].failed ? "**FAILED**" : "ok");
		if (verdicts[i].failed)
			markdown_print_code(file, verdicts[i].reason, REASON_MAX_CHARACTERS);
		else if (verdicts[i].is_unmatched)
			fputs("no function has that name", file);
		fputs(" |\n", file);
	}
}

const struct format_report_ops format_report_markdown = {
	.name = "markdown",
	.is_view = true,
	.description = "short tables of functions, for pages of CI jobs",
	.print = markdown_print,
	.diff = markdown_diff,
};
