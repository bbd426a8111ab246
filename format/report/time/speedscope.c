/* SPDX-License-Identifier: MIT */
/*
 * How are samples written for speedscope, as one sampled profile per thread? Weights are times if
 * the period is known; idle time of a sleeping thread has no weight.
 * Source of the format: speedscope's file-format-spec.ts and its wiki, "Importing from custom
 * sources".
 */
#include <stdlib.h>
#include <string.h>

#include "format/formats/reports.h"
#include "format/report/timeline_export.h"

/** Texts of chains are cached up to this size. */
#define CHAINS_TEXT_MAX (64u << 20)

struct speedscope {
	struct timeline_export timeline_export;
	struct format_text stacks; /* "[0,1,2]" for all chains, concatenated. */
	size_t *stack_at; /* Offsets by chain, and the end. NULL: the texts are too long to cache.
			   */
};

static void put_frames(struct timeline_export *timeline_export)
{
	struct json_out *json = &timeline_export->json;

	json_out_key(json, "shared");
	json_out_open(json, '{');
	json_out_key(json, "frames");
	json_out_open(json, '[');
	for (uint32_t i = 0; i < timeline_export->call_tree.label_count; i++) {
		const struct call_tree_label *label = &timeline_export->call_tree.labels[i];
		uint64_t line;
		size_t len;

		json_out_line(json);
		json_out_open(json, '{');
		json_out_key(json, "name");
		timeline_export_put_text(timeline_export, i);
		if (timeline_export_location(label, &len, &line)) {
			json_out_key(json, "file");
			timeline_export_put_file(timeline_export, i);
		}
		if (line) {
			json_out_key_number(json, "line", line);
		}
		json_out_close(json, '}');
	}
	json_out_close(json, ']');
	json_out_close(json, '}');
}

/* ---- Stacks ----------------------------------------------------------------------------- */

static void add_stack(struct format_text *text, const struct call_tree_chain *chain)
{
	format_text_add(text, "[", 1);
	for (uint32_t i = 0; i < chain->len; i++)
		format_text_addf(text, "%s%u", i ? "," : "", (unsigned)chain->labels[i]);
	format_text_add(text, "]", 1);
}

/** Write the text of each chain once, because millions of samples share them. */
static int make_stacks(struct speedscope *speedscope, struct failure *why)
{
	const struct call_tree *call_tree = &speedscope->timeline_export.call_tree;
	const char *text;

	speedscope->stack_at = calloc((size_t)call_tree->chain_count + 1, sizeof(size_t));
	if (!speedscope->stack_at)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "write the stacks");
	for (uint32_t i = 0; i < call_tree->chain_count; i++) {
		speedscope->stack_at[i] = speedscope->stacks.len;
		add_stack(&speedscope->stacks, &call_tree->chains[i]);
		if (speedscope->stacks.len > CHAINS_TEXT_MAX) {
			free(speedscope->stack_at);
			speedscope->stack_at = NULL;
			return 0;
		}
	}
	speedscope->stack_at[call_tree->chain_count] = speedscope->stacks.len;
	return format_text_take(&speedscope->stacks, &text, why);
}

static int put_stack(struct speedscope *speedscope, const struct chart_event *event,
		     struct failure *why)
{
	struct timeline_export *timeline_export = &speedscope->timeline_export;
	uint32_t chain = timeline_export_chain(timeline_export, event);
	const char *text;
	size_t len;

	if (speedscope->stack_at) {
		text = speedscope->stacks.bytes + speedscope->stack_at[chain];
		len = speedscope->stack_at[chain + 1] - speedscope->stack_at[chain];
	} else {
		format_text_clear(&timeline_export->text);
		add_stack(&timeline_export->text, &timeline_export->call_tree.chains[chain]);
		if (format_text_take(&timeline_export->text, &text, why))
			return -1;
		len = timeline_export->text.len;
	}
	json_out_raw(&timeline_export->json, text, len);
	return 0;
}

/* ---- Threads ---------------------------------------------------------------------------- */

static uint64_t weight_of(const struct chart *chart, uint64_t count)
{
	uint64_t ns;

	if (!chart->has_period)
		return count;
	return __builtin_mul_overflow(count, chart->period_ns, &ns) ? UINT64_MAX : ns;
}

static const char *unit_of(const struct chart *chart)
{
	if (strcmp(format_profile_unit(chart->profile), "bytes") == 0)
		return "bytes";
	return chart->has_period ? "nanoseconds" : "none";
}

static int put_track(struct speedscope *speedscope, uint32_t index, struct failure *why)
{
	struct timeline_export *timeline_export = &speedscope->timeline_export;
	const struct chart *chart = &timeline_export->chart;
	const struct chart_track *track = &chart->tracks[index];
	struct json_out *json = &timeline_export->json;

	json_out_line(json);
	json_out_open(json, '{');
	json_out_key_text(json, "type", "sampled");
	json_out_key_text(json, "name", timeline_export_track_name(timeline_export, index));
	json_out_key_text(json, "unit", unit_of(chart));
	json_out_key_number(json, "startValue", 0);
	json_out_key_number(json, "endValue", weight_of(chart, track->samples));
	json_out_key(json, "samples");
	json_out_open(json, '[');
	for (size_t i = 0; i < track->count; i++)
		if (put_stack(speedscope, &chart->events[track->first + i], why))
			return -1;
	json_out_close(json, ']');
	json_out_line(json);
	json_out_key(json, "weights");
	json_out_open(json, '[');
	for (size_t i = 0; i < track->count; i++)
		json_out_number(json, weight_of(chart, chart->events[track->first + i].count));
	json_out_close(json, ']');
	json_out_close(json, '}');
	return 0;
}

static int put_file(struct speedscope *speedscope, struct failure *why)
{
	struct json_out *json = &speedscope->timeline_export.json;
	int result = make_stacks(speedscope, why);

	json_out_open(json, '{');
	json_out_key_text(json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_out_key_text(json, "exporter", "ljprof");
	json_out_key_text(json, "name", speedscope->timeline_export.title);
	put_frames(&speedscope->timeline_export);
	json_out_line(json);
	json_out_key(json, "profiles");
	json_out_open(json, '[');
	for (uint32_t i = 0; i < speedscope->timeline_export.chart.track_count && result == 0; i++)
		result = put_track(speedscope, i, why);
	json_out_close(json, ']');
	json_out_close(json, '}');
	json_out_line(json);
	return result;
}

static int speedscope_print(const struct format_profile *profile,
			    const struct format_report_options *options, FILE *file,
			    struct failure *why)
{
	struct speedscope speedscope = { 0 };
	int result;

	if (timeline_export_init(&speedscope.timeline_export, profile, options, file, why))
		return -1;
	result = put_file(&speedscope, why);
	free(speedscope.stack_at);
	format_text_deinit(&speedscope.stacks);
	return timeline_export_done(&speedscope.timeline_export, result, why);
}

const struct format_report_ops format_report_speedscope = {
	.name = "speedscope",
	.is_view = true,
	.description = "for speedscope: each thread in the order of time",
	.order = FORMAT_ORDER_NEEDED,
	.print = speedscope_print,
};
