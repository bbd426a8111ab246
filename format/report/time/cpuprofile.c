/* SPDX-License-Identifier: MIT */
/*
 * How is a profile written in the form of V8's inspector (".cpuprofile"), which Chrome's DevTools
 * and many editors read? The file has a call tree, and its nodes in the order of time.
 *
 * The format has one thread. Samples of several threads follow each other, below one node per
 * thread. A sample lasts the periods of its ticks, and "(idle)" fills the time between two samples.
 * Source of the format: Chrome DevTools Protocol, "Profiler" domain, type Profile.
 */
#include <stdlib.h>
#include <string.h>

#include "format/formats/reports.h"
#include "format/report/timeline_export.h"

enum {
	/* Node ids of the file: two special nodes, then the nodes of the tree. */
	ROOT_ID = 1,
	IDLE_ID = 2,
	FIRST_ID = 3,
};

#define NO_LABEL UINT32_MAX

struct cpuprofile {
	struct timeline_export timeline_export;
	struct stacks stacks;
	uint32_t *nodes; /* By id in the profile's `keys`. */
	uint32_t *roots; /* By track: its node; 0: none. */
	uint64_t *hits;	 /* By node of the tree. */
	uint64_t end_ns, last_us;
	bool has_idle;
};

static int no_memory(struct failure *why)
{
	return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "write the profile");
}

/** With several threads, add a node for each. Their labels follow those of the frames. */
static int add_roots(struct cpuprofile *cpuprofile, struct failure *why)
{
	const struct timeline_export *timeline_export = &cpuprofile->timeline_export;

	cpuprofile->roots =
		calloc((size_t)timeline_export->chart.track_count + 1, sizeof(*cpuprofile->roots));
	if (!cpuprofile->roots)
		return no_memory(why);
	for (uint32_t i = 0;
	     i < timeline_export->chart.track_count && timeline_export->chart.track_count > 1; i++)
		if (stacks_add(&cpuprofile->stacks,
			       (struct stack_node){ 0, timeline_export->call_tree.label_count + i },
			       &cpuprofile->roots[i], why))
			return -1;
	return 0;
}

static int make_nodes(struct cpuprofile *cpuprofile, struct failure *why)
{
	const struct timeline_export *timeline_export = &cpuprofile->timeline_export;
	const struct chart *chart = &timeline_export->chart;

	cpuprofile->nodes = calloc((size_t)intern_count(timeline_export->profile->keys) + 1,
				   sizeof(*cpuprofile->nodes));
	if (!cpuprofile->nodes)
		return no_memory(why);
	for (size_t i = 0; i < chart->event_count; i++)
		if (timeline_export_node(timeline_export, &chart->events[i],
					 cpuprofile->roots[chart->events[i].track],
					 &cpuprofile->stacks, cpuprofile->nodes, why))
			return -1;
	cpuprofile->hits =
		calloc((size_t)stacks_count(&cpuprofile->stacks) + 1, sizeof(*cpuprofile->hits));
	if (!cpuprofile->hits)
		return no_memory(why);
	for (size_t i = 0; i < chart->event_count; i++)
		cpuprofile->hits[cpuprofile->nodes[chart->events[i].key]] += chart->events[i].count;
	return 0;
}

/** Handles one row of `samples`. */
typedef void row(struct cpuprofile *cpuprofile, uint32_t id, uint64_t begin_ns);

/** Walk the samples in order, with the idle time between them. Neighbours with the same chain are
 * one row. */
static void walk_rows(struct cpuprofile *cpuprofile, row *take)
{
	const struct chart *chart = &cpuprofile->timeline_export.chart;
	uint64_t now_ns = 0;
	uint32_t last = 0;

	for (size_t i = 0; i < chart->event_count; i++) {
		const struct chart_event *event = &chart->events[i];
		uint32_t id = FIRST_ID + cpuprofile->nodes[event->key] - 1;

		if (event->begin_ns > now_ns) {
			if (last != IDLE_ID)
				take(cpuprofile, IDLE_ID, now_ns);
			cpuprofile->has_idle = true;
			last = IDLE_ID;
			now_ns = event->begin_ns;
		}
		if (last != id)
			take(cpuprofile, id, now_ns);
		last = id;
		/* Times of hostile files may overflow. */
		if (__builtin_add_overflow(now_ns, chart_end_ns(chart, event) - event->begin_ns,
					   &now_ns) ||
		    now_ns > INT64_MAX)
			now_ns = INT64_MAX;
	}
	cpuprofile->end_ns = now_ns;
	/* Some readers use the next sample's begin as a sample's end. */
	if (last)
		take(cpuprofile, last, now_ns);
}

static void skip_row(struct cpuprofile *cpuprofile, uint32_t id, uint64_t begin_ns)
{
	(void)cpuprofile;
	(void)id;
	(void)begin_ns;
}

/* ---- Nodes ------------------------------------------------------------------------------ */

/** Write the function of a node. @param label NO_LABEL: not a function. */
static void put_frame(struct timeline_export *timeline_export, const char *name, uint32_t label)
{
	struct json_out *json = &timeline_export->json;
	uint64_t line = 0;
	size_t len;

	json_out_key(json, "callFrame");
	json_out_open(json, '{');
	json_out_key(json, "functionName");
	if (label != NO_LABEL)
		timeline_export_put_text(timeline_export, label);
	else
		json_out_text(json, name ? name : "");
	json_out_key(json, "scriptId");
	json_out_raw(json, "\"0\"", 3);
	json_out_key(json, "url");
	if (label != NO_LABEL &&
	    timeline_export_location(&timeline_export->call_tree.labels[label], &len, &line))
		timeline_export_put_file(timeline_export, label);
	else
		json_out_raw(json, "\"\"", 2);
	json_out_key(json, "lineNumber");
	json_out_signed(json, (int64_t)line - 1);
	json_out_key(json, "columnNumber");
	json_out_signed(json, -1);
	json_out_close(json, '}');
}

/** Children of all nodes; the children of a node are neighbours. */
struct children {
	uint32_t *ids;
	uint32_t *first; /* By parent: the first child. 0 is the root; one entry follows the last
			    parent. */
};

static int list_children(const struct stacks *stacks, struct children *children,
			 struct failure *why)
{
	uint32_t count = stacks_count(stacks), *next;

	children->ids = calloc((size_t)count + 1, sizeof(*children->ids));
	children->first = calloc((size_t)count + 2, sizeof(*children->first));
	next = calloc((size_t)count + 2, sizeof(*next));
	if (!children->ids || !children->first || !next) {
		free(next);
		return no_memory(why);
	}
	for (uint32_t i = 1; i <= count; i++)
		children->first[stacks_node(stacks, i).parent + 1]++;
	for (uint32_t i = 1; i <= count + 1; i++)
		children->first[i] += children->first[i - 1];
	memcpy(next, children->first, ((size_t)count + 1) * sizeof(*next));
	for (uint32_t i = 1; i <= count; i++)
		children->ids[next[stacks_node(stacks, i).parent]++] = i;
	free(next);
	return 0;
}

static void put_children(struct json_out *json, const struct children *children, uint32_t node,
			 bool has_idle)
{
	json_out_key(json, "children");
	json_out_open(json, '[');
	if (has_idle)
		json_out_number(json, IDLE_ID);
	for (uint32_t i = children->first[node]; i < children->first[node + 1]; i++)
		json_out_number(json, FIRST_ID + children->ids[i] - 1);
	json_out_close(json, ']');
}

static void put_node(struct cpuprofile *cpuprofile, const struct children *children, uint32_t node)
{
	struct timeline_export *timeline_export = &cpuprofile->timeline_export;
	uint32_t label = stacks_node(&cpuprofile->stacks, node).label;
	struct json_out *json = &timeline_export->json;

	json_out_line(json);
	json_out_open(json, '{');
	json_out_key_number(json, "id", FIRST_ID + node - 1);
	if (label < timeline_export->call_tree.label_count)
		put_frame(timeline_export, NULL, label);
	else
		put_frame(timeline_export,
			  timeline_export_track_name(
				  timeline_export, label - timeline_export->call_tree.label_count),
			  NO_LABEL);
	json_out_key_number(json, "hitCount", cpuprofile->hits[node]);
	put_children(json, children, node, false);
	json_out_close(json, '}');
}

/** Write a node that is not a function: the root or the idle node. */
static void put_special(struct cpuprofile *cpuprofile, const struct children *children, uint32_t id)
{
	struct json_out *json = &cpuprofile->timeline_export.json;

	json_out_line(json);
	json_out_open(json, '{');
	json_out_key_number(json, "id", id);
	put_frame(&cpuprofile->timeline_export, id == ROOT_ID ? "(root)" : "(idle)", NO_LABEL);
	json_out_key_number(json, "hitCount", 0);
	if (id == ROOT_ID)
		put_children(json, children, 0, cpuprofile->has_idle);
	json_out_close(json, '}');
}

static int put_nodes(struct cpuprofile *cpuprofile, struct failure *why)
{
	struct children children = { 0 };
	struct json_out *json = &cpuprofile->timeline_export.json;
	int result = list_children(&cpuprofile->stacks, &children, why);

	json_out_key(json, "nodes");
	json_out_open(json, '[');
	if (result == 0) {
		put_special(cpuprofile, &children, ROOT_ID);
		if (cpuprofile->has_idle)
			put_special(cpuprofile, &children, IDLE_ID);
		for (uint32_t i = 1; i <= stacks_count(&cpuprofile->stacks); i++)
			put_node(cpuprofile, &children, i);
	}
	json_out_close(json, ']');
	free(children.ids);
	free(children.first);
	return result;
}

/* ---- The file --------------------------------------------------------------------------- */

static void put_row_id(struct cpuprofile *cpuprofile, uint32_t id, uint64_t begin_ns)
{
	(void)begin_ns;
	json_out_number(&cpuprofile->timeline_export.json, id);
}

/** Write the time from the previous row to this one. */
static void put_row_delta(struct cpuprofile *cpuprofile, uint32_t id, uint64_t begin_ns)
{
	uint64_t us = begin_ns / 1000;

	(void)id;
	json_out_number(&cpuprofile->timeline_export.json, us - cpuprofile->last_us);
	cpuprofile->last_us = us;
}

static void put_rows(struct cpuprofile *cpuprofile)
{
	struct json_out *json = &cpuprofile->timeline_export.json;

	json_out_line(json);
	json_out_key_number(json, "startTime", 0);
	json_out_key_number(json, "endTime", cpuprofile->end_ns / 1000);
	json_out_key(json, "samples");
	json_out_open(json, '[');
	walk_rows(cpuprofile, put_row_id);
	json_out_close(json, ']');
	json_out_line(json);
	json_out_key(json, "timeDeltas");
	json_out_open(json, '[');
	walk_rows(cpuprofile, put_row_delta);
	json_out_close(json, ']');
}

static int put_file(struct cpuprofile *cpuprofile, struct failure *why)
{
	struct json_out *json = &cpuprofile->timeline_export.json;

	chart_sort_by_time(&cpuprofile->timeline_export.chart);
	if (add_roots(cpuprofile, why) || make_nodes(cpuprofile, why))
		return -1;
	/* Find out whether any row is idle. */
	walk_rows(cpuprofile, skip_row);
	json_out_open(json, '{');
	if (put_nodes(cpuprofile, why))
		return -1;
	put_rows(cpuprofile);
	json_out_close(json, '}');
	json_out_line(json);
	return 0;
}

static int cpuprofile_print(const struct format_profile *profile,
			    const struct format_report_options *options, FILE *file,
			    struct failure *why)
{
	struct cpuprofile cpuprofile = { 0 };
	int result;

	if (timeline_export_need_samples(profile, why) ||
	    timeline_export_init(&cpuprofile.timeline_export, profile, options, file, why))
		return -1;
	result = put_file(&cpuprofile, why);
	stacks_deinit(&cpuprofile.stacks);
	free(cpuprofile.nodes);
	free(cpuprofile.roots);
	free(cpuprofile.hits);
	return timeline_export_done(&cpuprofile.timeline_export, result, why);
}

const struct format_report_ops format_report_cpuprofile = {
	.name = "cpuprofile",
	.is_view = true,
	.description = "for Chrome's DevTools and editors: the samples in the order of time",
	.order = FORMAT_ORDER_NEEDED,
	.print = cpuprofile_print,
};
