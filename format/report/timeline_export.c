/* SPDX-License-Identifier: MIT */
/* How do formats that chart time write samples with labels as JSON? */
#include "format/report/timeline_export.h"

#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "format/formats/reports.h"

uint32_t timeline_export_chain(const struct timeline_export *timeline_export,
			       const struct chart_event *event)
{
	return timeline_export->call_tree
		.chain_of[profile_sample(timeline_export->profile, event->key).chain];
}

const struct profile_labels *timeline_export_labels(const struct timeline_export *timeline_export,
						    const struct chart_event *event)
{
	return profile_labels(timeline_export->profile,
			      profile_sample(timeline_export->profile, event->key).labels);
}

const char *timeline_export_track_name(struct timeline_export *timeline_export, uint32_t index)
{
	const struct chart_track *track = &timeline_export->chart.tracks[index];
	struct format_text *text = &timeline_export->text;
	struct failure ignored;
	const char *name;

	format_text_clear(text);
	if (track->pid && track->tid != track->pid)
		format_text_addf(text, "[%d] ", (int)track->pid);
	if (track->name)
		format_text_add_shown(text, track->name, strlen(track->name));
	if (track->tid)
		format_text_addf(text, "%s[%d]", track->name ? " " : "", (int)track->tid);
	if (text->len == 0)
		format_text_add_string(text, "all samples");
	return format_text_take(text, &name, &ignored) ? NULL : name;
}

const char *timeline_export_location(const struct call_tree_label *label, size_t *ret_len,
				     uint64_t *ret_line)
{
	const char *location = label->location, *colon = location ? strrchr(location, ':') : NULL;

	*ret_len = 0;
	*ret_line = 0;
	if (!colon)
		return NULL;
	location += *location == '@' || *location == '=';
	*ret_len = colon > location ? (size_t)(colon - location) : 0;
	if (colon[1] != '-')
		*ret_line = strtoull(colon + 1, NULL, 10);
	return location;
}

static void put_label_file(struct json_out *json, struct format_text *text,
			   const struct call_tree_label *label)
{
	uint64_t line;
	size_t len;
	const char *location = timeline_export_location(label, &len, &line), *file = NULL;
	struct failure ignored;

	if (location) {
		format_text_clear(text);
		format_text_add(text, location, len);
		json->failed |= format_text_take(text, &file, &ignored) != 0;
	}
	json_out_text(json, file);
}

/** Quote each label once, because millions of nodes and events share them. */
static int quote_labels(struct timeline_export *timeline_export, struct failure *why)
{
	const struct call_tree *call_tree = &timeline_export->call_tree;
	struct json_out json = { 0 };
	size_t len;

	timeline_export->quoted_at = calloc(2 * (size_t)call_tree->label_count + 1, sizeof(size_t));
	json.file = open_memstream(&timeline_export->quoted, &len);
	for (uint32_t i = 0; timeline_export->quoted_at && json.file && i < call_tree->label_count;
	     i++) {
		timeline_export->quoted_at[2 * i] = (size_t)ftell(json.file);
		json_out_text(&json, call_tree->labels[i].text);
		timeline_export->quoted_at[2 * i + 1] = (size_t)ftell(json.file);
		put_label_file(&json, &timeline_export->text, &call_tree->labels[i]);
	}
	if (timeline_export->quoted_at && json.file)
		timeline_export->quoted_at[2 * call_tree->label_count] = (size_t)ftell(json.file);
	json.failed |= !timeline_export->quoted_at || !json.file || ferror(json.file);
	if (json.file)
		json.failed |= fclose(json.file) != 0;
	return json.failed ? failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "write the labels") : 0;
}

static void put_quoted(struct timeline_export *timeline_export, size_t index)
{
	size_t at = timeline_export->quoted_at[index];

	json_out_raw(&timeline_export->json, timeline_export->quoted + at,
		     timeline_export->quoted_at[index + 1] - at);
}

void timeline_export_put_text(struct timeline_export *timeline_export, uint32_t label)
{
	put_quoted(timeline_export, 2 * (size_t)label);
}

void timeline_export_put_file(struct timeline_export *timeline_export, uint32_t label)
{
	put_quoted(timeline_export, 2 * (size_t)label + 1);
}

const char *timeline_export_phase(uint8_t state)
{
	switch (state) {
	case FORMAT_STATE_GC + 1:
		return "gc";
	case FORMAT_STATE_EXIT + 1:
		return "jit exit";
	case FORMAT_STATE_RECORD + 1:
		return "jit record";
	case FORMAT_STATE_OPT + 1:
		return "jit optimize";
	case FORMAT_STATE_ASM + 1:
		return "jit assemble";
	default:
		return NULL;
	}
}

int timeline_export_init(struct timeline_export *timeline_export,
			 const struct format_profile *profile,
			 const struct format_report_options *options, FILE *file,
			 struct failure *why)
{
	enum format_lines lines = options->lines ? options->lines : FORMAT_LINES_FUNCTION;

	*timeline_export =
		(struct timeline_export){ .profile = profile,
					  .json = { .file = file },
					  .title = options->title ? options->title : "ljprof" };
	if (call_tree_need_chains(profile, why) ||
	    call_tree_init(&timeline_export->call_tree, profile, lines, options->annotate, why))
		return -1;
	if (quote_labels(timeline_export, why) == 0 &&
	    chart_init(&timeline_export->chart, profile, why) == 0)
		return 0;
	return timeline_export_done(timeline_export, -1, why);
}

int timeline_export_need_samples(const struct format_profile *profile, struct failure *why)
{
	return format_profile_has_samples(profile)
		       ? 0
		       : failure_set(why, FAILURE_DENIED, 0, 0, 0,
				     "chart over time a profile without samples");
}

int timeline_export_done(struct timeline_export *timeline_export, int result, struct failure *why)
{
	if (result == 0 && timeline_export->json.failed)
		result = failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "write JSON");
	chart_deinit(&timeline_export->chart);
	call_tree_deinit(&timeline_export->call_tree);
	format_text_deinit(&timeline_export->text);
	free(timeline_export->quoted);
	free(timeline_export->quoted_at);
	return result;
}

/* ---- Call trees ------------------------------------------------------------------------- */

void stacks_deinit(struct stacks *stacks)
{
	free(stacks->nodes);
	format_addrmap_deinit(&stacks->ids);
	format_addrmap_deinit(&stacks->leaves);
	*stacks = (struct stacks){ 0 };
}

int stacks_add(struct stacks *stacks, struct stack_node node, uint32_t *ret_node,
	       struct failure *why)
{
	uint64_t key = (uint64_t)node.parent << 32 | node.label, known;

	if (format_addrmap_get(&stacks->ids, key, &known)) {
		*ret_node = (uint32_t)known;
		return 0;
	}
	if (!ARRAY_RESERVE(stacks->nodes, stacks->capacity, (size_t)stacks->count + 1))
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "write the call tree");
	stacks->nodes[stacks->count++] = node;
	*ret_node = stacks->count;
	return format_addrmap_set(&stacks->ids, key, stacks->count, why);
}

static int add_chain(struct stacks *stacks, const struct call_tree_chain *chain, uint32_t root,
		     uint32_t *ret_node, struct failure *why)
{
	uint32_t node = root;

	for (uint32_t i = 0; i < chain->len; i++)
		if (stacks_add(stacks, (struct stack_node){ node, chain->labels[i] }, &node, why))
			return -1;
	*ret_node = node;
	return 0;
}

int stacks_find(struct stacks *stacks, const struct call_tree *call_tree, uint32_t root,
		uint32_t chain, uint32_t *ret_node, struct failure *why)
{
	uint64_t key = (uint64_t)root << 32 | chain, known;

	if (format_addrmap_get(&stacks->leaves, key, &known)) {
		*ret_node = (uint32_t)known;
		return 0;
	}
	return add_chain(stacks, &call_tree->chains[chain], root, ret_node, why) ||
			       format_addrmap_set(&stacks->leaves, key, *ret_node, why)
		       ? -1
		       : 0;
}

uint32_t stacks_count(const struct stacks *stacks)
{
	return stacks->count;
}

struct stack_node stacks_node(const struct stacks *stacks, uint32_t node)
{
	return stacks->nodes[node - 1];
}

int timeline_export_node(const struct timeline_export *timeline_export,
			 const struct chart_event *event, uint32_t root, struct stacks *stacks,
			 uint32_t *nodes, struct failure *why)
{
	/* Chains are never empty: a chain without frames has a label for that. */
	return nodes[event->key] ? 0
				 : stacks_find(stacks, &timeline_export->call_tree, root,
					       timeline_export_chain(timeline_export, event),
					       &nodes[event->key], why);
}
