/* SPDX-License-Identifier: MIT */
/*
 * A profile as V8's inspector gives it (".cpuprofile"), which Chrome's DevTools and many editors
 * read: a call tree, and its nodes in the order of time.
 *
 * The form has one thread. Samples of several are in it one after the other, on a thread's node
 * each. A sample lasts its ticks' periods, and "(idle)" is what is between two.
 * Source of the form: Chrome DevTools Protocol, "Profiler" domain, type Profile.
 */
#include <stdlib.h>
#include <string.h>

#include "format/charted.h"
#include "format/reports.h"

enum {
	/* Nodes of the file: two of its own, then those of the tree. */
	ROOT_ID = 1,
	IDLE_ID = 2,
	FIRST_ID = 3,
};

/** One row of `samples`. */
struct row {
	uint32_t id;
	uint64_t begin_ns;
};

struct cpuprofile {
	struct charted charted;
	struct stacks stacks;
	struct row *rows;
	size_t row_count;
	uint32_t *roots; /* By track: its node, 0: none. */
	uint64_t *hits;	 /* By node of the tree. */
	uint64_t end_ns;
	bool has_idle;
};

static int no_memory(struct failure *why)
{
	return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "write the profile");
}

/** Each thread has a node where there are several. Their labels are behind those of the frames. */
static int add_roots(struct cpuprofile *cpuprofile, struct failure *why)
{
	const struct charted *charted = &cpuprofile->charted;

	cpuprofile->roots =
		calloc((size_t)charted->chart.track_count + 1, sizeof(*cpuprofile->roots));
	if (!cpuprofile->roots)
		return no_memory(why);
	for (uint32_t i = 0; i < charted->chart.track_count && charted->chart.track_count > 1; i++)
		if (stacks_add(&cpuprofile->stacks,
			       (struct stack_node){ 0, charted->fold.label_count + i },
			       &cpuprofile->roots[i], why))
			return -1;
	return 0;
}

static void add_row(struct cpuprofile *cpuprofile, uint32_t id, uint64_t begin_ns)
{
	struct row *last =
		cpuprofile->row_count ? &cpuprofile->rows[cpuprofile->row_count - 1] : NULL;

	/* One that goes on. */
	if (last && last->id == id)
		return;
	cpuprofile->rows[cpuprofile->row_count++] = (struct row){ id, begin_ns };
}

/** Samples one after the other, and what is between them. */
static int make_rows(struct cpuprofile *cpuprofile, struct failure *why)
{
	struct chart *chart = &cpuprofile->charted.chart;
	uint64_t now_ns = 0;

	chart_sort_by_time(chart);
	cpuprofile->rows = calloc(2 * chart->event_count + 2, sizeof(*cpuprofile->rows));
	if (!cpuprofile->rows)
		return no_memory(why);
	for (size_t i = 0; i < chart->event_count; i++) {
		const struct chart_event *event = &chart->events[i];
		uint32_t node;

		if (stacks_find(&cpuprofile->stacks, &cpuprofile->charted.fold,
				cpuprofile->roots[event->track],
				charted_chain(&cpuprofile->charted, event), &node, why))
			return -1;
		if (event->begin_ns > now_ns) {
			add_row(cpuprofile, IDLE_ID, now_ns);
			cpuprofile->has_idle = true;
			now_ns = event->begin_ns;
		}
		add_row(cpuprofile, FIRST_ID + node - 1, now_ns);
		now_ns += chart_end_ns(chart, event) - event->begin_ns;
	}
	cpuprofile->end_ns = now_ns;
	/* Some readers take a sample's end from the next one's begin. */
	if (cpuprofile->row_count > 0) {
		cpuprofile->rows[cpuprofile->row_count] =
			(struct row){ cpuprofile->rows[cpuprofile->row_count - 1].id, now_ns };
		cpuprofile->row_count++;
	}
	return 0;
}

static int count_hits(struct cpuprofile *cpuprofile, struct failure *why)
{
	const struct chart *chart = &cpuprofile->charted.chart;

	cpuprofile->hits =
		calloc((size_t)stacks_count(&cpuprofile->stacks) + 1, sizeof(*cpuprofile->hits));
	if (!cpuprofile->hits)
		return no_memory(why);
	for (size_t i = 0; i < chart->event_count; i++) {
		const struct chart_event *event = &chart->events[i];
		uint32_t node;

		if (stacks_find(&cpuprofile->stacks, &cpuprofile->charted.fold,
				cpuprofile->roots[event->track],
				charted_chain(&cpuprofile->charted, event), &node, why))
			return -1;
		cpuprofile->hits[node] += event->count;
	}
	return 0;
}

/* ---- Nodes -------------------------------------------------------------------------------- */

/** @param label NULL: one that is no function. */
static void put_frame(struct charted *charted, const char *name, const struct fold_label *label)
{
	struct json_out *json = &charted->json;
	uint64_t line = 0;
	size_t len;

	json_out_key(json, "callFrame");
	json_out_open(json, '{');
	json_out_key(json, "functionName");
	json_out_text(json, name ? name : "");
	json_out_key(json, "scriptId");
	json_out_text(json, "0");
	json_out_key(json, "url");
	if (label && charted_place(label, &len, &line))
		charted_put_file(charted, label);
	else
		json_out_text(json, "");
	json_out_key(json, "lineNumber");
	json_out_signed(json, (int64_t)line - 1);
	json_out_key(json, "columnNumber");
	json_out_signed(json, -1);
	json_out_close(json, '}');
}

/** Children of all nodes, those of a node together. */
struct children {
	uint32_t *ids;
	uint32_t *first; /* By parent, 0 the root, and one behind the last. */
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
	struct charted *charted = &cpuprofile->charted;
	uint32_t label = stacks_node(&cpuprofile->stacks, node).label;
	struct json_out *json = &charted->json;

	json_out_line(json);
	json_out_open(json, '{');
	json_out_key(json, "id");
	json_out_number(json, FIRST_ID + node - 1);
	if (label < charted->fold.label_count)
		put_frame(charted, charted->fold.labels[label].text, &charted->fold.labels[label]);
	else
		put_frame(charted, charted_track_name(charted, label - charted->fold.label_count),
			  NULL);
	json_out_key(json, "hitCount");
	json_out_number(json, cpuprofile->hits[node]);
	put_children(json, children, node, false);
	json_out_close(json, '}');
}

/** A node that is no function: the root, and what is idle. */
static void put_special(struct cpuprofile *cpuprofile, const struct children *children, uint32_t id)
{
	struct json_out *json = &cpuprofile->charted.json;

	json_out_line(json);
	json_out_open(json, '{');
	json_out_key(json, "id");
	json_out_number(json, id);
	put_frame(&cpuprofile->charted, id == ROOT_ID ? "(root)" : "(idle)", NULL);
	json_out_key(json, "hitCount");
	json_out_number(json, 0);
	if (id == ROOT_ID)
		put_children(json, children, 0, cpuprofile->has_idle);
	json_out_close(json, '}');
}

static int put_nodes(struct cpuprofile *cpuprofile, struct failure *why)
{
	struct children children = { 0 };
	struct json_out *json = &cpuprofile->charted.json;
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

/* ---- The file ----------------------------------------------------------------------------- */

static void put_rows(struct cpuprofile *cpuprofile)
{
	struct json_out *json = &cpuprofile->charted.json;
	uint64_t last_us = 0;

	json_out_line(json);
	json_out_key(json, "startTime");
	json_out_number(json, 0);
	json_out_key(json, "endTime");
	json_out_number(json, cpuprofile->end_ns / 1000);
	json_out_key(json, "samples");
	json_out_open(json, '[');
	for (size_t i = 0; i < cpuprofile->row_count; i++)
		json_out_number(json, cpuprofile->rows[i].id);
	json_out_close(json, ']');
	json_out_line(json);
	/* A sample lasts until the next one: what is between that and the one before it. */
	json_out_key(json, "timeDeltas");
	json_out_open(json, '[');
	for (size_t i = 0; i < cpuprofile->row_count; i++) {
		uint64_t us = cpuprofile->rows[i].begin_ns / 1000;

		json_out_number(json, us - last_us);
		last_us = us;
	}
	json_out_close(json, ']');
}

static int put_file(struct cpuprofile *cpuprofile, struct failure *why)
{
	struct json_out *json = &cpuprofile->charted.json;

	if (add_roots(cpuprofile, why) || make_rows(cpuprofile, why) || count_hits(cpuprofile, why))
		return -1;
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

	if (charted_init(&cpuprofile.charted, profile, options, file, why))
		return -1;
	result = stacks_init(&cpuprofile.stacks, why) ? -1 : put_file(&cpuprofile, why);
	stacks_deinit(&cpuprofile.stacks);
	free(cpuprofile.rows);
	free(cpuprofile.roots);
	free(cpuprofile.hits);
	return charted_done(&cpuprofile.charted, result, why);
}

const struct format_report_ops format_report_cpuprofile = {
	.name = "cpuprofile",
	.description = "for Chrome's DevTools and editors: the samples in the order of time",
	.needs_order = true,
	.print = cpuprofile_print,
};
