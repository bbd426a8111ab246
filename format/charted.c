/* SPDX-License-Identifier: MIT */
#include "format/charted.h"

#include <stdlib.h>
#include <string.h>

#include "format/reports.h"

int charted_init(struct charted *charted, const struct format_profile *profile,
		 const struct format_report_options *options, FILE *file, struct failure *why)
{
	enum format_lines lines = options->lines ? options->lines : FORMAT_LINES_FUNCTION;

	*charted = (struct charted){ .profile = profile,
				     .json = { .file = file },
				     .title = options->title ? options->title : "ljprof" };
	if (report_need_chains(profile, why) ||
	    fold_init(&charted->fold, profile, lines, options->annotate, why))
		return -1;
	if (chart_init(&charted->chart, profile, why) == 0)
		return 0;
	fold_deinit(&charted->fold);
	return -1;
}

int charted_done(struct charted *charted, int result, struct failure *why)
{
	if (result == 0 && charted->json.failed)
		result = failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "write JSON");
	chart_deinit(&charted->chart);
	fold_deinit(&charted->fold);
	format_text_deinit(&charted->text);
	return result;
}

uint32_t charted_chain(const struct charted *charted, const struct chart_event *event)
{
	return charted->fold.chain_of[profile_sample(charted->profile, event->key).chain];
}

const struct profile_labels *charted_labels(const struct charted *charted,
					    const struct chart_event *event)
{
	return profile_labels(charted->profile,
			      profile_sample(charted->profile, event->key).labels);
}

const char *charted_track_name(struct charted *charted, uint32_t index)
{
	const struct chart_track *track = &charted->chart.tracks[index];
	struct format_text *text = &charted->text;
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

const char *charted_place(const struct fold_label *label, size_t *ret_len, uint64_t *ret_line)
{
	const char *place = label->place, *colon = place ? strrchr(place, ':') : NULL;

	*ret_len = 0;
	*ret_line = 0;
	if (!colon)
		return NULL;
	place += *place == '@' || *place == '=';
	*ret_len = colon > place ? (size_t)(colon - place) : 0;
	if (colon[1] != '-')
		*ret_line = strtoull(colon + 1, NULL, 10);
	return place;
}

void charted_put_file(struct charted *charted, const struct fold_label *label)
{
	uint64_t line;
	size_t len;
	const char *place = charted_place(label, &len, &line), *file = NULL;
	struct failure ignored;

	if (place) {
		format_text_clear(&charted->text);
		format_text_add(&charted->text, place, len);
		charted->json.failed |= format_text_take(&charted->text, &file, &ignored) != 0;
	}
	json_out_text(&charted->json, file);
}

const char *charted_phase(uint8_t state)
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

/* ---- Call trees --------------------------------------------------------------------------- */

int stacks_init(struct stacks *stacks, struct failure *why)
{
	*stacks = (struct stacks){ .nodes = format_intern_create(),
				   .chains = format_intern_create() };
	if (stacks->nodes && stacks->chains)
		return 0;
	stacks_deinit(stacks);
	return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "write the call tree");
}

void stacks_deinit(struct stacks *stacks)
{
	format_intern_destroy(stacks->nodes);
	format_intern_destroy(stacks->chains);
	free(stacks->leaves);
	*stacks = (struct stacks){ 0 };
}

int stacks_add(struct stacks *stacks, struct stack_node node, uint32_t *ret_node,
	       struct failure *why)
{
	uint32_t id;

	if (format_intern_put(stacks->nodes, &node, sizeof(node), &id, why))
		return -1;
	*ret_node = id + 1;
	return 0;
}

static int add_chain(struct stacks *stacks, const struct fold_chain *chain, uint32_t root,
		     uint32_t *ret_node, struct failure *why)
{
	uint32_t node = root;

	for (uint32_t i = 0; i < chain->len; i++)
		if (stacks_add(stacks, (struct stack_node){ node, chain->labels[i] }, &node, why))
			return -1;
	*ret_node = node;
	return 0;
}

int stacks_find(struct stacks *stacks, const struct fold *fold, uint32_t root, uint32_t chain,
		uint32_t *ret_node, struct failure *why)
{
	const uint32_t key[] = { root, chain };
	uint32_t known = format_intern_count(stacks->chains), id;

	if (format_intern_put(stacks->chains, key, sizeof(key), &id, why))
		return -1;
	if (id == known) {
		if (id >= stacks->capacity) {
			uint32_t capacity = stacks->capacity ? 2 * stacks->capacity : 256;
			void *leaves =
				reallocarray(stacks->leaves, capacity, sizeof(*stacks->leaves));

			if (!leaves)
				return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0,
						   "write the call tree");
			stacks->leaves = leaves;
			stacks->capacity = capacity;
		}
		if (add_chain(stacks, &fold->chains[chain], root, &stacks->leaves[id], why))
			return -1;
	}
	*ret_node = stacks->leaves[id];
	return 0;
}

uint32_t stacks_count(const struct stacks *stacks)
{
	return format_intern_count(stacks->nodes);
}

struct stack_node stacks_node(const struct stacks *stacks, uint32_t node)
{
	struct stack_node value;
	size_t len;

	memcpy(&value, format_intern_get(stacks->nodes, node - 1, &len), sizeof(value));
	return value;
}
