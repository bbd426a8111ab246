/* SPDX-License-Identifier: MIT */
/* Functions as JSON, one in a line. */
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "format/diff/compare.h"
#include "format/formats/reports.h"
#include "format/text.h"

/** A row that is made; NULL once memory was missing. */
struct row {
	struct json_object *object;
};

static void add(struct row *row, const char *key, struct json_object *value)
{
	if (!row->object || !value || json_object_object_add(row->object, key, value)) {
		json_object_put(value);
		json_object_put(row->object);
		row->object = NULL;
	}
}

/** @param text May be no UTF-8. */
static void add_text(struct row *row, const char *key, const char *text)
{
	char *copy = strdup(text);

	if (copy)
		format_clean_utf8(copy, strlen(copy));
	add(row, key, copy ? json_object_new_string(copy) : NULL);
	free(copy);
}

static void add_number(struct row *row, const char *key, uint64_t value)
{
	add(row, key, json_object_new_uint64(value));
}

static void add_share(struct row *row, const char *key, double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.6f", value);
	add(row, key, json_object_new_double_s(value, text));
}

/** Print a row and give it back. @return 0, or -1. */
static int put(struct row *row, const char *end, FILE *file, struct failure *why)
{
	const char *text =
		row->object ? json_object_to_json_string_ext(row->object,
							     JSON_C_TO_STRING_PLAIN |
								     JSON_C_TO_STRING_NOSLASHESCAPE)
			    : NULL;

	if (!text)
		failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "write JSON");
	else
		fprintf(file, "%s%s", text, end);
	json_object_put(row->object);
	row->object = NULL;
	return text ? 0 : -1;
}

static struct row begin(void)
{
	return (struct row){ json_object_new_object() };
}

/* ---- One profile ------------------------------------------------------------------------ */

static int put_head(const struct format_profile *profile, FILE *file, struct failure *why)
{
	struct row states = begin(), head = begin();

	for (int i = 0; i < FORMAT_STATE_COUNT; i++)
		add_number(&states, format_state_name((enum format_state)i), profile->states[i]);
	add_number(&head, "samples", profile->samples);
	add_number(&head, "period_ns", profile->period_ns);
	add_number(&head, "duration_ns", profile->duration_ns);
	add(&head, "states", states.object);
	fputs("{\"profile\":", file);
	return put(&head, ",\n\"functions\":[", file, why);
}

static int put_function(const struct call_tree *call_tree, const struct call_tree_label *label,
			const struct call_tree_count *count, const char *lead, FILE *file,
			struct failure *why)
{
	double all = call_tree->samples ? (double)call_tree->samples : 1;
	struct row row = begin();

	add_text(&row, "function", label->text);
	add_text(&row, "kind", label_kind_name(label->kind));
	if (label->name)
		add_text(&row, "name", label->name);
	if (label->location)
		add_text(&row, "place", label->location);
	add_number(&row, "self", count->self);
	add_number(&row, "total", count->total);
	add_share(&row, "self_share", (double)count->self / all);
	add_share(&row, "total_share", (double)count->total / all);
	fputs(lead, file);
	return put(&row, "", file, why);
}

static int json_print(const struct format_profile *profile,
		      const struct format_report_options *options, FILE *file, struct failure *why)
{
	enum format_lines lines = options->lines ? options->lines : FORMAT_LINES_FUNCTION;
	struct call_tree_count *counts;
	struct call_tree call_tree;
	int result;

	if (call_tree_need_chains(profile, why) ||
	    call_tree_init(&call_tree, profile, lines, options->annotate, why))
		return -1;
	counts = call_tree_count(&call_tree);
	result = counts ? put_head(profile, file, why)
			: failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "write JSON");
	for (uint32_t i = 0; i < call_tree.label_count && result == 0; i++)
		result = put_function(&call_tree, &call_tree.labels[i], &counts[i],
				      i ? ",\n" : "\n", file, why);
	fputs("\n]}\n", file);
	free(counts);
	call_tree_deinit(&call_tree);
	return result;
}

/* ---- Two -------------------------------------------------------------------------------- */

static void add_pair(struct row *row, const char *key, const uint64_t counts[2])
{
	struct row diff_view = begin();

	add_number(&diff_view, "base", counts[0]);
	add_number(&diff_view, "new", counts[1]);
	add(row, key, diff_view.object);
}

static void add_change(struct row *row, const char *key, struct compare_range change)
{
	struct row range = begin();

	add_share(&range, "low", change.low);
	add_share(&range, "value", change.value);
	add_share(&range, "high", change.high);
	add(&range, "certain", json_object_new_boolean(compare_is_certain(change)));
	add(row, key, range.object);
}

static int put_change(const struct compare_row *change, const char *lead, FILE *file,
		      struct failure *why)
{
	struct row row = begin();

	add_text(&row, "function", change->text);
	add_text(&row, "kind", label_kind_name(change->kind));
	add_pair(&row, "self", change->self);
	add_pair(&row, "total", change->total);
	add_change(&row, "self_change", change->self_change);
	add_change(&row, "total_change", change->total_change);
	fputs(lead, file);
	return put(&row, "", file, why);
}

static int json_diff(const struct format_profile *base, const struct format_profile *profile,
		     const struct format_report_options *options, FILE *file, struct failure *why)
{
	struct compare compare;
	struct row head = begin();
	int result;

	if (call_tree_need_chains(base, why) || call_tree_need_chains(profile, why) ||
	    compare_init(&compare, base, profile,
			 options->lines ? options->lines : FORMAT_LINES_FUNCTION, why)) {
		json_object_put(head.object);
		return -1;
	}
	result = compare_judge(&compare, why);
	add_pair(&head, "samples", compare.samples);
	add_pair(&head, "period_ns", (uint64_t[]){ base->period_ns, profile->period_ns });
	add_share(&head, "confidence", COMPARE_CONFIDENCE);
	fputs("{\"profiles\":", file);
	if (put(&head, ",\n\"functions\":[", file, why))
		result = -1;
	for (uint32_t i = 0; i < compare.count && result == 0; i++)
		result = put_change(&compare.rows[i], i ? ",\n" : "\n", file, why);
	fputs("\n]}\n", file);
	compare_deinit(&compare);
	return result;
}

const struct format_report_ops format_report_json = {
	.name = "json",
	.description = "functions with their samples, for scripts",
	.print = json_print,
	.diff = json_diff,
};
