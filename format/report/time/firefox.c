/* SPDX-License-Identifier: MIT */
/*
 * How is a processed profile written for the Firefox Profiler? Each thread has its own tables, in
 * columns; work of the collector and the compiler becomes markers, and the collector's heap a
 * memory counter.
 * Source of the format: firefox-devtools/profiler, version 48 of the processed format, src/types
 * (profile.js, markers.js) and docs-developer/CHANGELOG-formats.md. The Profiler reads any older
 * version, so new versions need no change here.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/formats/reports.h"
#include "format/report/timeline_export.h"

/** Version of the format, and the version of Firefox's own format at that time. */
enum { PROCESSED_VERSION = 48, GECKO_VERSION = 30 };

/** Categories by kind of frame: names for people, and colours that the Profiler knows. */
static const struct {
	const char *name, *color;
} categories[FORMAT_KIND_COUNT] = {
	[FORMAT_KIND_NATIVE] = { "Native", "blue" },
	[FORMAT_KIND_LUA] = { "Lua", "yellow" },
	[FORMAT_KIND_BUILTIN] = { "Built-in function", "lightblue" },
	[FORMAT_KIND_CFUNC] = { "C function", "green" },
	[FORMAT_KIND_TRACE] = { "Trace", "orange" },
	[FORMAT_KIND_PSEUDO] = { "Collector and compiler", "purple" },
	[FORMAT_KIND_PROCESS] = { "Process", "darkgrey" },
	[FORMAT_KIND_VM] = { "LuaJIT", "magenta" },
};

/** After the kinds: the Profiler requires a grey category. */
#define OTHER_CATEGORY FORMAT_KIND_COUNT

/** A time span in which the collector or the compiler worked. */
struct marker {
	uint8_t state;
	uint64_t begin_ns, end_ns;
};

struct firefox {
	struct timeline_export timeline_export;
	uint32_t *nodes; /* By id in the profile's `keys`; each key belongs to one thread. */
	/* Data of the thread being written. */
	const struct chart_track *track;
	struct stacks stacks;
	struct intern *frames; /* Labels (uint32_t), which serve as frames and as functions. */
	size_t row_count;
	struct marker *markers;
	size_t marker_count;
};

/* ---- Of the whole profile --------------------------------------------------------------- */

static void put_categories(struct json_out *json)
{
	json_out_key(json, "categories");
	json_out_open(json, '[');
	for (int i = 0; i <= OTHER_CATEGORY; i++) {
		json_out_open(json, '{');
		json_out_key_text(json, "name", i < OTHER_CATEGORY ? categories[i].name : "Other");
		json_out_key_text(json, "color", i < OTHER_CATEGORY ? categories[i].color : "grey");
		json_out_key(json, "subcategories");
		json_out_open(json, '[');
		json_out_text(json, "Other");
		json_out_close(json, ']');
		json_out_close(json, '}');
	}
	json_out_close(json, ']');
}

/** Tell the Profiler where to show markers. */
static void put_schema(struct json_out *json)
{
	static const char *const locations[] = { "marker-chart", "marker-table",
						 "timeline-overview" };

	json_out_key(json, "markerSchema");
	json_out_open(json, '[');
	json_out_open(json, '{');
	json_out_key_text(json, "name", "phase");
	json_out_key_text(json, "tableLabel", "{marker.name}");
	json_out_key(json, "display");
	json_out_open(json, '[');
	for (size_t i = 0; i < sizeof(locations) / sizeof(locations[0]); i++)
		json_out_text(json, locations[i]);
	json_out_close(json, ']');
	json_out_key(json, "data");
	json_out_open(json, '[');
	json_out_close(json, ']');
	json_out_close(json, '}');
	json_out_close(json, ']');
}

/** Write the notes about the recording as rows of the panel about the profile. Each needs a
 * distinct label. */
static void put_comments(struct firefox *firefox)
{
	struct json_out *json = &firefox->timeline_export.json;
	struct profile_comment comment;
	unsigned count = 0;

	json_out_key(json, "extra");
	json_out_open(json, '[');
	json_out_open(json, '{');
	json_out_key_text(json, "label", "Recording");
	json_out_key(json, "entries");
	json_out_open(json, '[');
	for (size_t at = 0;
	     profile_next_comment(firefox->timeline_export.profile, &at, &comment);) {
		char label[32];

		snprintf(label, sizeof(label), "Comment %u", ++count);
		json_out_open(json, '{');
		json_out_key_text(json, "label", label);
		json_out_key_text(json, "format", "string");
		json_out_key(json, "value");
		json_out_part(json, comment.line, comment.len);
		json_out_close(json, '}');
	}
	json_out_close(json, ']');
	json_out_close(json, '}');
	json_out_close(json, ']');
}

static void put_meta(struct firefox *firefox)
{
	static const char *const flags[] = { "symbolicated", "symbolicationNotSupported",
					     "usesOnlyOneStackType",
					     "doesNotUseFrameImplementation",
					     "sourceCodeIsNotOnSearchfox" };
	const struct timeline_export *timeline_export = &firefox->timeline_export;
	struct json_out *json = &firefox->timeline_export.json;

	json_out_key(json, "meta");
	json_out_open(json, '{');
	json_out_key(json, "interval");
	json_out_ms(json, timeline_export->chart.period_ns);
	json_out_key(json, "startTime");
	json_out_ms(json, timeline_export->profile->time_ns);
	json_out_key_number(json, "processType", 0);
	json_out_key_text(json, "product", timeline_export->title);
	json_out_key_text(json, "importedFrom", "ljprof");
	json_out_key_number(json, "stackwalk", 1);
	json_out_key_number(json, "version", GECKO_VERSION);
	json_out_key_number(json, "preprocessedProfileVersion", PROCESSED_VERSION);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		json_out_key(json, flags[i]);
		json_out_bool(json, true);
	}
	put_categories(json);
	put_schema(json);
	if (timeline_export->profile->comments.len)
		put_comments(firefox);
	json_out_close(json, '}');
	json_out_line(json);
}

/* ---- Rows of a thread ------------------------------------------------------------------- */

static int no_memory(struct failure *why)
{
	return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "write the profile");
}

static void note_phase(struct firefox *firefox, const struct chart_event *event, uint64_t now_ns)
{
	uint8_t state = timeline_export_labels(&firefox->timeline_export, event)->state;
	struct marker *last =
		firefox->marker_count ? &firefox->markers[firefox->marker_count - 1] : NULL;

	if (!timeline_export_phase(state))
		return;
	if (last && last->state == state && last->end_ns == now_ns && event->begin_ns == now_ns)
		last->end_ns = chart_end_ns(&firefox->timeline_export.chart, event);
	else
		firefox->markers[firefox->marker_count++] =
			(struct marker){ state, event->begin_ns,
					 chart_end_ns(&firefox->timeline_export.chart, event) };
}

/** Build the thread's stacks and markers. */
static int make_rows(struct firefox *firefox, struct failure *why)
{
	const struct chart *chart = &firefox->timeline_export.chart;
	const struct chart_track *track = firefox->track;
	uint64_t now_ns = 0;

	firefox->row_count = firefox->marker_count = 0;
	firefox->markers = calloc(track->count + 1, sizeof(*firefox->markers));
	if (!firefox->markers)
		return no_memory(why);
	for (size_t i = 0; i < track->count; i++) {
		const struct chart_event *event = &chart->events[track->first + i];

		firefox->row_count += event->begin_ns > now_ns ? 2 : 1;
		if (timeline_export_node(&firefox->timeline_export, event, 0, &firefox->stacks,
					 firefox->nodes, why))
			return -1;
		note_phase(firefox, event, now_ns);
		now_ns = chart_end_ns(chart, event);
	}
	return 0;
}

/** Number the labels that the thread uses. */
static int make_frames(struct firefox *firefox, struct failure *why)
{
	uint32_t id;

	for (uint32_t i = 1; i <= stacks_count(&firefox->stacks); i++) {
		uint32_t label = stacks_node(&firefox->stacks, i).label;

		if (intern_put(firefox->frames, &label, sizeof(label), &id, why))
			return -1;
	}
	return 0;
}

static uint32_t frame_of(const struct firefox *firefox, uint32_t label)
{
	uint32_t id = 0;

	intern_find(firefox->frames, &label, sizeof(label), &id);
	return id;
}

static uint32_t label_id(const struct firefox *firefox, uint32_t frame)
{
	uint32_t label;
	size_t len;

	memcpy(&label, intern_get(firefox->frames, frame, &len), sizeof(label));
	return label;
}

static const struct call_tree_label *label_of(const struct firefox *firefox, uint32_t frame)
{
	return &firefox->timeline_export.call_tree.labels[label_id(firefox, frame)];
}

/* ---- Columns ---------------------------------------------------------------------------- */

/** Writes one cell of a column. */
typedef void cell(struct firefox *firefox, size_t index);

static void put_column(struct firefox *firefox, const char *key, size_t count, cell *put)
{
	struct json_out *json = &firefox->timeline_export.json;

	json_out_key(json, key);
	json_out_open(json, '[');
	for (size_t i = 0; i < count; i++)
		put(firefox, i);
	json_out_close(json, ']');
}

static void put_zero(struct firefox *firefox, size_t index)
{
	(void)index;
	json_out_number(&firefox->timeline_export.json, 0);
}

static void put_one(struct firefox *firefox, size_t index)
{
	(void)index;
	json_out_number(&firefox->timeline_export.json, 1);
}

static void put_minus_one(struct firefox *firefox, size_t index)
{
	(void)index;
	json_out_signed(&firefox->timeline_export.json, -1);
}

static void put_nothing(struct firefox *firefox, size_t index)
{
	(void)index;
	json_out_null(&firefox->timeline_export.json);
}

static void put_false(struct firefox *firefox, size_t index)
{
	(void)index;
	json_out_bool(&firefox->timeline_export.json, false);
}

static void put_index(struct firefox *firefox, size_t index)
{
	json_out_number(&firefox->timeline_export.json, index);
}

/** Writes one cell of the samples. @param event NULL: the thread is idle from then on. */
typedef void row(struct firefox *firefox, const struct chart_event *event, uint64_t ns);

/** Write a column, with an idle row wherever time passes between two samples. */
static void put_row_column(struct firefox *firefox, const char *key, row *put)
{
	const struct chart *chart = &firefox->timeline_export.chart;
	struct json_out *json = &firefox->timeline_export.json;
	uint64_t now_ns = 0;

	json_out_key(json, key);
	json_out_open(json, '[');
	for (size_t i = 0; i < firefox->track->count; i++) {
		const struct chart_event *event = &chart->events[firefox->track->first + i];

		if (event->begin_ns > now_ns)
			put(firefox, NULL, now_ns);
		put(firefox, event, event->begin_ns);
		now_ns = chart_end_ns(chart, event);
	}
	json_out_close(json, ']');
}

static void put_row_stack(struct firefox *firefox, const struct chart_event *event, uint64_t ns)
{
	(void)ns;
	if (event)
		json_out_number(&firefox->timeline_export.json, firefox->nodes[event->key] - 1);
	else
		json_out_null(&firefox->timeline_export.json);
}

static void put_row_time(struct firefox *firefox, const struct chart_event *event, uint64_t ns)
{
	(void)event;
	json_out_ms(&firefox->timeline_export.json, ns);
}

static void put_row_weight(struct firefox *firefox, const struct chart_event *event, uint64_t ns)
{
	(void)ns;
	json_out_number(&firefox->timeline_export.json, event ? event->count : 0);
}

static void put_samples(struct firefox *firefox)
{
	struct json_out *json = &firefox->timeline_export.json;

	json_out_key(json, "samples");
	json_out_open(json, '{');
	put_row_column(firefox, "stack", put_row_stack);
	put_row_column(firefox, "time", put_row_time);
	put_row_column(firefox, "weight", put_row_weight);
	json_out_key_text(json, "weightType",
			  strcmp(format_profile_unit(firefox->timeline_export.profile), "bytes") ==
					  0
				  ? "bytes"
				  : "samples");
	json_out_key_number(json, "length", firefox->row_count);
	json_out_close(json, '}');
}

static void put_node_frame(struct firefox *firefox, size_t index)
{
	uint32_t label = stacks_node(&firefox->stacks, (uint32_t)index + 1).label;

	json_out_number(&firefox->timeline_export.json, frame_of(firefox, label));
}

static void put_node_prefix(struct firefox *firefox, size_t index)
{
	uint32_t parent = stacks_node(&firefox->stacks, (uint32_t)index + 1).parent;

	if (parent)
		json_out_number(&firefox->timeline_export.json, parent - 1);
	else
		json_out_null(&firefox->timeline_export.json);
}

static void put_node_category(struct firefox *firefox, size_t index)
{
	uint32_t label = stacks_node(&firefox->stacks, (uint32_t)index + 1).label;

	json_out_number(&firefox->timeline_export.json,
			firefox->timeline_export.call_tree.labels[label].kind);
}

static void put_stacks(struct firefox *firefox)
{
	size_t count = stacks_count(&firefox->stacks);

	json_out_key(&firefox->timeline_export.json, "stackTable");
	json_out_open(&firefox->timeline_export.json, '{');
	put_column(firefox, "frame", count, put_node_frame);
	put_column(firefox, "category", count, put_node_category);
	put_column(firefox, "subcategory", count, put_zero);
	put_column(firefox, "prefix", count, put_node_prefix);
	json_out_key_number(&firefox->timeline_export.json, "length", count);
	json_out_close(&firefox->timeline_export.json, '}');
}

static void put_frame_category(struct firefox *firefox, size_t index)
{
	json_out_number(&firefox->timeline_export.json, label_of(firefox, (uint32_t)index)->kind);
}

static void put_frame_line(struct firefox *firefox, size_t index)
{
	uint64_t line;
	size_t len;

	if (timeline_export_location(label_of(firefox, (uint32_t)index), &len, &line) && line)
		json_out_number(&firefox->timeline_export.json, line);
	else
		json_out_null(&firefox->timeline_export.json);
}

/** The string table: name and file of each frame, then the names of all phases. */
static void put_name_index(struct firefox *firefox, size_t index)
{
	json_out_number(&firefox->timeline_export.json, 2 * index);
}

static void put_file_index(struct firefox *firefox, size_t index)
{
	if (label_of(firefox, (uint32_t)index)->location)
		json_out_number(&firefox->timeline_export.json, 2 * index + 1);
	else
		json_out_null(&firefox->timeline_export.json);
}

static void put_frames(struct firefox *firefox)
{
	struct json_out *json = &firefox->timeline_export.json;
	size_t count = intern_count(firefox->frames);

	json_out_key(json, "frameTable");
	json_out_open(json, '{');
	put_column(firefox, "address", count, put_minus_one);
	put_column(firefox, "inlineDepth", count, put_zero);
	put_column(firefox, "category", count, put_frame_category);
	put_column(firefox, "subcategory", count, put_zero);
	put_column(firefox, "func", count, put_index);
	put_column(firefox, "nativeSymbol", count, put_nothing);
	put_column(firefox, "innerWindowID", count, put_zero);
	put_column(firefox, "implementation", count, put_nothing);
	put_column(firefox, "line", count, put_frame_line);
	put_column(firefox, "column", count, put_nothing);
	json_out_key_number(json, "length", count);
	json_out_close(json, '}');
	json_out_key(json, "funcTable");
	json_out_open(json, '{');
	put_column(firefox, "name", count, put_name_index);
	put_column(firefox, "isJS", count, put_false);
	put_column(firefox, "relevantForJS", count, put_false);
	put_column(firefox, "resource", count, put_minus_one);
	put_column(firefox, "fileName", count, put_file_index);
	put_column(firefox, "lineNumber", count, put_frame_line);
	put_column(firefox, "columnNumber", count, put_nothing);
	json_out_key_number(json, "length", count);
	json_out_close(json, '}');
}

static void put_strings(struct firefox *firefox)
{
	struct json_out *json = &firefox->timeline_export.json;

	json_out_key(json, "stringArray");
	json_out_open(json, '[');
	for (uint32_t i = 0; i < intern_count(firefox->frames); i++) {
		timeline_export_put_text(&firefox->timeline_export, label_id(firefox, i));
		if (label_of(firefox, i)->location)
			timeline_export_put_file(&firefox->timeline_export, label_id(firefox, i));
		else
			json_out_text(json, ""); /* the format does not allow null here */
	}
	for (int i = 0; i <= FORMAT_STATE_COUNT; i++)
		json_out_text(json, timeline_export_phase((uint8_t)i)
					    ? timeline_export_phase((uint8_t)i)
					    : "");
	json_out_close(json, ']');
}

/* ---- Markers ---------------------------------------------------------------------------- */

static void put_marker_data(struct firefox *firefox, size_t index)
{
	struct json_out *json = &firefox->timeline_export.json;

	(void)index;
	json_out_open(json, '{');
	json_out_key_text(json, "type", "phase");
	json_out_close(json, '}');
}

static void put_marker_name(struct firefox *firefox, size_t index)
{
	json_out_number(&firefox->timeline_export.json,
			2 * (uint64_t)intern_count(firefox->frames) +
				firefox->markers[index].state);
}

static void put_marker_begin(struct firefox *firefox, size_t index)
{
	json_out_ms(&firefox->timeline_export.json, firefox->markers[index].begin_ns);
}

static void put_marker_end(struct firefox *firefox, size_t index)
{
	json_out_ms(&firefox->timeline_export.json, firefox->markers[index].end_ns);
}

static void put_marker_category(struct firefox *firefox, size_t index)
{
	(void)index;
	json_out_number(&firefox->timeline_export.json, FORMAT_KIND_PSEUDO);
}

static void put_markers(struct firefox *firefox)
{
	struct json_out *json = &firefox->timeline_export.json;
	size_t count = firefox->marker_count;

	json_out_key(json, "markers");
	json_out_open(json, '{');
	put_column(firefox, "data", count, put_marker_data);
	put_column(firefox, "name", count, put_marker_name);
	put_column(firefox, "startTime", count, put_marker_begin);
	put_column(firefox, "endTime", count, put_marker_end);
	/* An interval with start and end. */
	put_column(firefox, "phase", count, put_one);
	put_column(firefox, "category", count, put_marker_category);
	json_out_key_number(json, "length", count);
	json_out_close(json, '}');
}

/* ---- Threads ---------------------------------------------------------------------------- */

/** Write an empty table: libraries are unknown, and no symbols need to be resolved. */
static void put_empty(struct json_out *json, const char *key, const char *const *columns)
{
	json_out_key(json, key);
	json_out_open(json, '{');
	for (; *columns; columns++) {
		json_out_key(json, *columns);
		json_out_open(json, '[');
		json_out_close(json, ']');
	}
	json_out_key_number(json, "length", 0);
	json_out_close(json, '}');
}

static void put_pid(struct json_out *json, int32_t pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%" PRId32, pid);
	json_out_key_text(json, "pid", text);
}

static void put_thread_head(struct firefox *firefox, uint32_t index)
{
	const struct chart_track *track = &firefox->timeline_export.chart.tracks[index];
	struct json_out *json = &firefox->timeline_export.json;

	json_out_key_text(json, "processType", "default");
	json_out_key_number(json, "processStartupTime", 0);
	json_out_key(json, "processShutdownTime");
	json_out_null(json);
	json_out_key_number(json, "registerTime", 0);
	json_out_key(json, "unregisterTime");
	json_out_null(json);
	json_out_key(json, "pausedRanges");
	json_out_open(json, '[');
	json_out_close(json, ']');
	json_out_key_text(json, "name",
			  track->name
				  ? track->name
				  : timeline_export_track_name(&firefox->timeline_export, index));
	json_out_key(json, "isMainThread");
	json_out_bool(json, track->tid == track->pid);
	put_pid(json, track->pid);
	json_out_key(json, "tid");
	json_out_signed(json, track->tid);
}

static void put_thread_tables(struct firefox *firefox)
{
	static const char *const resources[] = { "lib", "name", "host", "type", NULL };
	static const char *const symbols[] = { "libIndex", "address", "name", "functionSize",
					       NULL };
	struct json_out *json = &firefox->timeline_export.json;

	put_samples(firefox);
	json_out_line(json);
	put_markers(firefox);
	json_out_line(json);
	put_stacks(firefox);
	json_out_line(json);
	put_frames(firefox);
	json_out_line(json);
	put_strings(firefox);
	put_empty(json, "resourceTable", resources);
	put_empty(json, "nativeSymbols", symbols);
}

static int put_thread(struct firefox *firefox, uint32_t index, struct failure *why)
{
	struct json_out *json = &firefox->timeline_export.json;
	int result = 0;

	firefox->track = &firefox->timeline_export.chart.tracks[index];
	firefox->frames = intern_create();
	if (!firefox->frames)
		result = no_memory(why);
	else if (make_rows(firefox, why) || make_frames(firefox, why))
		result = -1;
	if (result == 0) {
		json_out_line(json);
		json_out_open(json, '{');
		put_thread_head(firefox, index);
		put_thread_tables(firefox);
		json_out_close(json, '}');
	}
	intern_destroy(firefox->frames);
	stacks_deinit(&firefox->stacks);
	free(firefox->markers);
	firefox->markers = NULL;
	return result;
}

/* ---- The heap --------------------------------------------------------------------------- */

/** Write the heap sizes that a thread showed: @p count entries from @p first on. */
static void put_counter(struct firefox *firefox, size_t first, size_t count)
{
	const struct chart_heap *heaps = &firefox->timeline_export.chart.heaps[first];
	struct json_out *json = &firefox->timeline_export.json;
	uint64_t bytes = 0;

	json_out_line(json);
	json_out_open(json, '{');
	json_out_key_text(json, "name", "malloc");
	json_out_key_text(json, "category", "Memory");
	json_out_key_text(json, "description", "Lua heap");
	put_pid(json, firefox->timeline_export.chart.tracks[heaps->track].pid);
	json_out_key_number(json, "mainThreadIndex", heaps->track);
	json_out_key(json, "samples");
	json_out_open(json, '{');
	json_out_key(json, "time");
	json_out_open(json, '[');
	for (size_t i = 0; i < count; i++)
		json_out_ms(json, heaps[i].ns);
	json_out_close(json, ']');
	/* Differences from the previous entry. */
	json_out_key(json, "count");
	json_out_open(json, '[');
	for (size_t i = 0; i < count; i++) {
		json_out_signed(json, (int64_t)(heaps[i].bytes - bytes));
		bytes = heaps[i].bytes;
	}
	json_out_close(json, ']');
	json_out_key_number(json, "length", count);
	json_out_close(json, '}');
	json_out_close(json, '}');
}

static void put_counters(struct firefox *firefox)
{
	const struct chart *chart = &firefox->timeline_export.chart;
	struct json_out *json = &firefox->timeline_export.json;
	size_t first = 0;

	json_out_key(json, "counters");
	json_out_open(json, '[');
	for (size_t i = 1; i <= chart->heap_count; i++) {
		if (i < chart->heap_count && chart->heaps[i].track == chart->heaps[first].track)
			continue;
		put_counter(firefox, first, i - first);
		first = i;
	}
	json_out_close(json, ']');
}

/* ---- The file --------------------------------------------------------------------------- */

static int put_file(struct firefox *firefox, struct failure *why)
{
	struct json_out *json = &firefox->timeline_export.json;
	int result = 0;

	json_out_open(json, '{');
	put_meta(firefox);
	json_out_key(json, "libs");
	json_out_open(json, '[');
	json_out_close(json, ']');
	json_out_key(json, "threads");
	json_out_open(json, '[');
	for (uint32_t i = 0; i < firefox->timeline_export.chart.track_count && result == 0; i++)
		result = put_thread(firefox, i, why);
	json_out_close(json, ']');
	json_out_line(json);
	put_counters(firefox);
	json_out_close(json, '}');
	json_out_line(json);
	return result;
}

static int firefox_print(const struct format_profile *profile,
			 const struct format_report_options *options, FILE *file,
			 struct failure *why)
{
	struct firefox firefox = { 0 };
	int result;

	if (timeline_export_init(&firefox.timeline_export, profile, options, file, why))
		return -1;
	firefox.nodes = calloc((size_t)intern_count(profile->keys) + 1, sizeof(*firefox.nodes));
	result = firefox.nodes ? put_file(&firefox, why) : no_memory(why);
	free(firefox.nodes);
	return timeline_export_done(&firefox.timeline_export, result, why);
}

const struct format_report_ops format_report_firefox = {
	.name = "firefox",
	.is_view = true,
	.description = "for the Firefox Profiler: threads, categories, phases and heap over time",
	.order = FORMAT_ORDER_NEEDED,
	.print = firefox_print,
};
