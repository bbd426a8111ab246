/* SPDX-License-Identifier: MIT */
/* How are functions written as JSON, one per line? */
#include <stdlib.h>

#include "format/diff/compare.h"
#include "format/formats/reports.h"
#include "format/json.h"

static void put_share(struct json_out *json, const char *key, double value)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "%.6f", value);

	json_out_key(json, key);
	json_out_raw(json, text, (size_t)len);
}

static void begin_rows(struct json_out *json)
{
	json_out_close(json, '}');
	json_out_break(json);
	json_out_key(json, "functions");
	json_out_open(json, '[');
}

static void begin_row(struct json_out *json, const char *text, enum format_kind kind)
{
	json_out_break(json);
	json_out_open(json, '{');
	json_out_key_text(json, "function", text);
	json_out_key_text(json, "kind", format_kind_name(kind));
}

static int end_rows(struct json_out *json, int result, struct failure *why)
{
	json_out_line(json);
	json_out_close(json, ']');
	json_out_close(json, '}');
	json_out_line(json);
	return result == 0 && json->failed
		       ? failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "write JSON")
		       : result;
}

/* ---- One profile ------------------------------------------------------------------------ */

static void put_head(struct json_out *json, const struct format_profile *profile)
{
	json_out_open(json, '{');
	json_out_key(json, "profile");
	json_out_open(json, '{');
	json_out_key_number(json, "samples", profile->samples);
	json_out_key_number(json, "period_ns", profile->period_ns);
	json_out_key_number(json, "duration_ns", profile->duration_ns);
	json_out_key(json, "states");
	json_out_open(json, '{');
	for (int i = 0; i < FORMAT_STATE_COUNT; i++)
		json_out_key_number(json, format_state_name((enum format_state)i),
				    profile->states[i]);
	json_out_close(json, '}');
	begin_rows(json);
}

static void put_function(struct json_out *json, const struct call_tree *call_tree,
			 const struct call_tree_label *label, const struct call_tree_count *count)
{
	double all = call_tree->samples ? (double)call_tree->samples : 1;

	begin_row(json, label->text, label->kind);
	if (label->name)
		json_out_key_text(json, "name", label->name);
	if (label->location)
		json_out_key_text(json, "location", label->location);
	json_out_key_number(json, "self", count->self);
	json_out_key_number(json, "total", count->total);
	put_share(json, "self_share", (double)count->self / all);
	put_share(json, "total_share", (double)count->total / all);
	json_out_close(json, '}');
}

static int json_print(const struct format_profile *profile,
		      const struct format_report_options *options, FILE *file, struct failure *why)
{
	enum format_lines lines = options->lines ? options->lines : FORMAT_LINES_FUNCTION;
	struct json_out json = { .file = file };
	struct call_tree_count *counts;
	struct call_tree call_tree;
	int result;

	if (call_tree_need_chains(profile, why) ||
	    call_tree_init(&call_tree, profile, lines, options->annotate, why))
		return -1;
	counts = call_tree_count(&call_tree);
	result = counts ? 0 : failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "write JSON");
	put_head(&json, profile);
	for (uint32_t i = 0; i < call_tree.label_count && result == 0; i++)
		put_function(&json, &call_tree, &call_tree.labels[i], &counts[i]);
	result = end_rows(&json, result, why);
	free(counts);
	call_tree_deinit(&call_tree);
	return result;
}

/* ---- Two -------------------------------------------------------------------------------- */

static void put_pair(struct json_out *json, const char *key, const uint64_t counts[2])
{
	json_out_key(json, key);
	json_out_open(json, '{');
	json_out_key_number(json, "base", counts[0]);
	json_out_key_number(json, "new", counts[1]);
	json_out_close(json, '}');
}

static void put_range(struct json_out *json, const char *key, struct compare_range change)
{
	json_out_key(json, key);
	json_out_open(json, '{');
	put_share(json, "low", change.low);
	put_share(json, "value", change.value);
	put_share(json, "high", change.high);
	json_out_key(json, "certain");
	json_out_bool(json, compare_is_certain(change));
	json_out_close(json, '}');
}

static void put_change(struct json_out *json, const struct compare_row *change)
{
	begin_row(json, change->text, change->kind);
	put_pair(json, "self", change->self);
	put_pair(json, "total", change->total);
	put_range(json, "self_change", change->self_change);
	put_range(json, "total_change", change->total_change);
	json_out_close(json, '}');
}

static int json_diff(const struct format_profile *base, const struct format_profile *profile,
		     const struct format_report_options *options, FILE *file, struct failure *why)
{
	struct json_out json = { .file = file };
	struct compare compare;
	int result;

	if (call_tree_need_chains(base, why) || call_tree_need_chains(profile, why) ||
	    compare_init(&compare, base, profile,
			 options->lines ? options->lines : FORMAT_LINES_FUNCTION, why))
		return -1;
	result = compare_judge(&compare, why);
	json_out_open(&json, '{');
	json_out_key(&json, "profiles");
	json_out_open(&json, '{');
	put_pair(&json, "samples", compare.samples);
	put_pair(&json, "period_ns", (uint64_t[]){ base->period_ns, profile->period_ns });
	put_share(&json, "confidence", COMPARE_CONFIDENCE);
	begin_rows(&json);
	for (uint32_t i = 0; i < compare.count && result == 0; i++)
		put_change(&json, &compare.rows[i]);
	result = end_rows(&json, result, why);
	compare_deinit(&compare);
	return result;
}

const struct format_report_ops format_report_json = {
	.name = "json",
	.description = "functions with their samples, for scripts",
	.print = json_print,
	.diff = json_diff,
};
