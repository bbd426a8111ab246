/* SPDX-License-Identifier: MIT */
/*
 * How are samples written as trace events for Perfetto and Chrome's own viewers? Each thread is a
 * track of function calls; a call lasts as long as neighbouring samples contain it. Work of the
 * collector and the compiler, and the running coroutine, have rows of their own. The collector's
 * heap is a counter.
 * Source of the format: "Trace Event Format" of the Chromium project (events B, E, b, e, C, M).
 */
#include <stdlib.h>

#include "format/formats/reports.h"
#include "format/report/timeline_export.h"

/** A row with one value at a time: the current value and its begin. */
struct phase {
	uint32_t value; /**< 0: no value. */
	uint64_t begin_ns;
};

struct trace {
	struct timeline_export timeline_export;
	uint32_t *calls; /* Labels of the open calls, by depth. */
	uint32_t depth;
	uint64_t now_ns; /* End of its last sample. */
	struct phase state, coroutine;
	uint64_t id; /* Id of the last event in a separate row. */
};

static void begin_event(struct trace *trace, const char *phase, const struct chart_track *track,
			uint64_t ns)
{
	struct json_out *json = &trace->timeline_export.json;

	json_out_line(json);
	json_out_open(json, '{');
	json_out_key_text(json, "ph", phase);
	json_out_key(json, "pid");
	json_out_signed(json, track->pid);
	json_out_key(json, "tid");
	json_out_signed(json, track->tid);
	json_out_key(json, "ts");
	json_out_us(json, ns);
}

/* ---- Calls ------------------------------------------------------------------------------ */

/** End the calls from @p depth on at the end of the last sample, minus a nanosecond: at equal
 * times, readers cannot tell the order of a function's end and its next begin. */
static void end_calls(struct trace *trace, const struct chart_track *track, uint32_t depth)
{
	while (trace->depth > depth) {
		trace->depth--;
		/* Readers find the matching begin by the name. */
		begin_event(trace, "E", track, trace->now_ns ? trace->now_ns - 1 : 0);
		json_out_key(&trace->timeline_export.json, "name");
		timeline_export_put_text(&trace->timeline_export, trace->calls[trace->depth]);
		json_out_close(&trace->timeline_export.json, '}');
	}
}

static void begin_call(struct trace *trace, const struct chart_track *track, uint32_t label,
		       uint64_t ns)
{
	const struct call_tree_label *text = &trace->timeline_export.call_tree.labels[label];

	trace->calls[trace->depth++] = label;
	begin_event(trace, "B", track, ns);
	json_out_key(&trace->timeline_export.json, "name");
	timeline_export_put_text(&trace->timeline_export, label);
	json_out_key_text(&trace->timeline_export.json, "cat", format_kind_name(text->kind));
	json_out_close(&trace->timeline_export.json, '}');
}

static void take_chain(struct trace *trace, const struct chart_track *track,
		       const struct chart_event *event)
{
	const struct call_tree_chain *chain =
		&trace->timeline_export.call_tree
			 .chains[timeline_export_chain(&trace->timeline_export, event)];
	uint32_t common = 0;

	if (event->begin_ns > trace->now_ns)
		end_calls(trace, track, 0);
	while (common < trace->depth && common < chain->len &&
	       trace->calls[common] == chain->labels[common])
		common++;
	end_calls(trace, track, common);
	while (trace->depth < chain->len)
		begin_call(trace, track, chain->labels[trace->depth], event->begin_ns);
}

/* ---- Rows of their own ------------------------------------------------------------------ */

/** Write begin and end of a span that is not a call. */
static void put_span(struct trace *trace, const struct chart_track *track,
		     const struct phase *phase, const char *category, const char *name)
{
	static const char *const ends[] = { "b", "e" };
	struct json_out *json = &trace->timeline_export.json;

	trace->id++;
	for (int i = 0; i < 2; i++) {
		begin_event(trace, ends[i], track, i ? trace->now_ns : phase->begin_ns);
		json_out_key_text(json, "cat", category);
		json_out_key_number(json, "id", trace->id);
		json_out_key_text(json, "name", name);
		json_out_close(json, '}');
	}
}

static void end_state(struct trace *trace, const struct chart_track *track)
{
	const char *name = timeline_export_phase((uint8_t)trace->state.value);

	if (name)
		put_span(trace, track, &trace->state, *name == 'g' ? "gc" : "jit", name);
	trace->state.value = 0;
}

static void end_coroutine(struct trace *trace, const struct chart_track *track)
{
	const char *name = profile_string(trace->timeline_export.profile, trace->coroutine.value);

	if (name)
		put_span(trace, track, &trace->coroutine, "coroutine", name);
	trace->coroutine.value = 0;
}

static void take_labels(struct trace *trace, const struct chart_track *track,
			const struct chart_event *event)
{
	const struct profile_labels *labels =
		timeline_export_labels(&trace->timeline_export, event);
	bool is_new = event->begin_ns > trace->now_ns;

	if (is_new || trace->state.value != labels->state) {
		end_state(trace, track);
		trace->state = (struct phase){ labels->state, event->begin_ns };
	}
	if (is_new || trace->coroutine.value != labels->coroutine) {
		end_coroutine(trace, track);
		trace->coroutine = (struct phase){ labels->coroutine, event->begin_ns };
	}
}

/* ---- The file --------------------------------------------------------------------------- */

/** Write the name of a track. */
static void put_names(struct trace *trace, uint32_t index)
{
	const struct chart_track *track = &trace->timeline_export.chart.tracks[index];
	struct json_out *json = &trace->timeline_export.json;

	begin_event(trace, "M", track, 0);
	json_out_key_text(json, "name", "thread_name");
	json_out_key(json, "args");
	json_out_open(json, '{');
	json_out_key_text(json, "name",
			  track->name ? track->name
				      : timeline_export_track_name(&trace->timeline_export, index));
	json_out_close(json, '}');
	json_out_close(json, '}');
}

static void put_track(struct trace *trace, uint32_t index)
{
	const struct chart_track *track = &trace->timeline_export.chart.tracks[index];

	put_names(trace, index);
	trace->depth = 0;
	trace->now_ns = 0;
	trace->state = trace->coroutine = (struct phase){ 0 };
	for (size_t i = 0; i < track->count; i++) {
		const struct chart_event *event =
			&trace->timeline_export.chart.events[track->first + i];

		take_chain(trace, track, event);
		take_labels(trace, track, event);
		trace->now_ns = chart_end_ns(&trace->timeline_export.chart, event);
	}
	end_calls(trace, track, 0);
	end_state(trace, track);
	end_coroutine(trace, track);
}

static void put_heaps(struct trace *trace)
{
	const struct chart *chart = &trace->timeline_export.chart;
	struct json_out *json = &trace->timeline_export.json;

	for (size_t i = 0; i < chart->heap_count; i++) {
		const struct chart_heap *heap = &chart->heaps[i];

		begin_event(trace, "C", &chart->tracks[heap->track], heap->ns);
		json_out_key_text(json, "name", "Lua heap");
		/* The thread identifies the VM: a process may have several VMs, and a thread
		 * runs one at a time. */
		json_out_key(json, "id");
		json_out_signed(json, chart->tracks[heap->track].tid);
		json_out_key(json, "args");
		json_out_open(json, '{');
		json_out_key_number(json, "bytes", heap->bytes);
		json_out_close(json, '}');
		json_out_close(json, '}');
	}
}

static int make_room(struct trace *trace, struct failure *why)
{
	size_t longest = 0;

	for (uint32_t i = 0; i < trace->timeline_export.call_tree.chain_count; i++)
		if (trace->timeline_export.call_tree.chains[i].len > longest)
			longest = trace->timeline_export.call_tree.chains[i].len;
	trace->calls = calloc(longest + 1, sizeof(*trace->calls));
	return trace->calls ? 0 : failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "write the calls");
}

/** Write the notes about the recording. */
static void put_comments(struct trace *trace)
{
	struct json_out *json = &trace->timeline_export.json;
	struct profile_comment comment;

	json_out_key(json, "comments");
	json_out_open(json, '[');
	for (size_t at = 0; profile_next_comment(trace->timeline_export.profile, &at, &comment);)
		json_out_part(json, comment.line, comment.len);
	json_out_close(json, ']');
}

static void put_file(struct trace *trace)
{
	struct json_out *json = &trace->timeline_export.json;

	json_out_open(json, '{');
	json_out_key_text(json, "displayTimeUnit", "ms");
	json_out_key(json, "otherData");
	json_out_open(json, '{');
	json_out_key_text(json, "title", trace->timeline_export.title);
	if (!trace->timeline_export.chart.has_period)
		json_out_key_text(json, "time",
				  "the profile has none: each sample takes a millisecond");
	put_comments(trace);
	json_out_close(json, '}');
	json_out_key(json, "traceEvents");
	json_out_open(json, '[');
	for (uint32_t i = 0; i < trace->timeline_export.chart.track_count; i++)
		put_track(trace, i);
	put_heaps(trace);
	json_out_close(json, ']');
	json_out_close(json, '}');
	json_out_line(json);
}

static int trace_print(const struct format_profile *profile,
		       const struct format_report_options *options, FILE *file, struct failure *why)
{
	struct trace trace = { 0 };
	int result;

	if (timeline_export_need_samples(profile, why) ||
	    timeline_export_init(&trace.timeline_export, profile, options, file, why))
		return -1;
	result = make_room(&trace, why);
	if (result == 0)
		put_file(&trace);
	free(trace.calls);
	return timeline_export_done(&trace.timeline_export, result, why);
}

const struct format_report_ops format_report_trace_event = {
	.name = "trace-event",
	.is_view = true,
	.description = "for Perfetto and chrome://tracing: calls, phases and heap over time",
	.order = FORMAT_ORDER_NEEDED,
	.print = trace_print,
};
