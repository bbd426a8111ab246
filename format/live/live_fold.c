/* SPDX-License-Identifier: MIT */
/* How does the cold part of a full table fold into "[other]"? */
#include "format/live/live_internal.h"

#include <stdlib.h>
#include <string.h>

enum {
	/* One in this many entries of a full table folds. */
	FOLD_PART = 4,
};

/* How a frame of a node continues in the new tree: its parent and its function. */
struct fold_step {
	const bool *gone;	   /* by node; NULL: none */
	const uint32_t *functions; /* new numbers, or NULL */
};

static uint32_t mapped(const uint32_t *map, uint32_t function)
{
	return map && function < LIVE_THREAD ? map[function] : function;
}

/* Copy one node into the new tree. */
static int renumber_node(struct format_live *live, struct live_table *made, uint32_t node,
			 const struct fold_step *step, uint32_t *map, uint8_t *into,
			 struct failure *why)
{
	struct live_node_key key = *live_node(live, node);
	uint32_t before = made->count;

	if (node > 0)
		key.parent = map[key.parent];
	if (node > 0 && step->gone && step->gone[node]) {
		bool below = step->gone[live_node(live, node)->parent];

		map[node] = key.parent;
		into[node] = below ? LIVE_INTO_NOTHING : LIVE_INTO_OTHER;
		live->folded.nodes++;
		return 0;
	}
	key.function = mapped(step->functions, key.function);
	if (key.function == FORMAT_LIVE_OTHER && node > 0) {
		key.line = key.trace = 0;
		if (((const struct live_node_key *)live_table_key(made, key.parent))->function ==
			    FORMAT_LIVE_OTHER &&
		    key.parent > 0) {
			map[node] = key.parent;
			into[node] = LIVE_INTO_INNER;
			return 0;
		}
	}
	if (live_table_put(made, &key, &map[node], why) != 0)
		return -1;
	into[node] = LIVE_INTO_ALL;
	if (made->count > before)
		live->node_addresses[map[node]] = live->node_addresses[node];
	return 0;
}

/* Move the ends of chains to the new nodes. */
static int renumber_ends(struct format_live *live, const struct fold_step *step,
			 const uint32_t *nodes, struct failure *why)
{
	struct live_table made;
	uint32_t *map = calloc((size_t)live->ends.count + 1, sizeof(*map));
	uint8_t *into = calloc((size_t)live->ends.count + 1, sizeof(*into));
	int ret = -1;

	if (map && into &&
	    live_table_init(&made, live->ends.key_len, live->ends.max, 0, why) == 0) {
		ret = 0;
		for (uint32_t i = 0; i < live->ends.count && ret == 0; i++) {
			struct live_end_key key =
				*(const struct live_end_key *)live_table_key(&live->ends, i);

			key.cut |= step->gone && step->gone[key.node];
			key.node = nodes[key.node];
			if (key.trace_function != FORMAT_NO_FUNCTION)
				key.trace_function = mapped(step->functions, key.trace_function);
			ret = live_table_put(&made, &key, &map[i], why);
			into[i] = LIVE_INTO_ALL;
		}
		if (ret == 0)
			live_table_renumber(&live->ends, made.keys, made.count, map, into);
		live_table_deinit(&made);
	}
	free(map);
	free(into);
	return ret ? failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "fold call chains") : 0;
}

static int renumber_nodes(struct format_live *live, const struct fold_step *step,
			  struct failure *why)
{
	struct live_table made;
	uint32_t *map = calloc(live->nodes.count, sizeof(*map));
	uint8_t *into = calloc(live->nodes.count, sizeof(*into));
	int ret = -1;

	if (map && into &&
	    live_table_init(&made, live->nodes.key_len, live->nodes.max, 0, why) == 0) {
		ret = 0;
		for (uint32_t i = 0; i < live->nodes.count && ret == 0; i++)
			ret = renumber_node(live, &made, i, step, map, into, why);
		if (ret == 0)
			ret = renumber_ends(live, step, map, why);
		if (ret == 0)
			live_table_renumber(&live->nodes, made.keys, made.count, map, into);
		live_table_deinit(&made);
	}
	free(map);
	free(into);
	return ret ? failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "fold call chains") : 0;
}

int live_fold_nodes(struct format_live *live, struct failure *why)
{
	bool *gone = calloc(live->nodes.count, sizeof(*gone));
	struct fold_step step = { .gone = gone };
	int ret = gone ? live_table_choose(&live->nodes, 1, FOLD_PART, gone, why) : -1;

	if (ret == 0)
		ret = renumber_nodes(live, &step, why);
	free(gone);
	live->nodes_full = true;
	return ret ? failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "fold call chains") : 0;
}

/* Move lines to the new numbers of their functions. */
static int renumber_lines(struct format_live *live, const uint32_t *functions, struct failure *why)
{
	struct live_table made;
	uint32_t *map = calloc(live->lines.count, sizeof(*map));
	uint8_t *into = calloc(live->lines.count, sizeof(*into));
	int ret = -1;

	if (map && into &&
	    live_table_init(&made, live->lines.key_len, live->lines.max, 0, why) == 0) {
		ret = 0;
		for (uint32_t i = 0; i < live->lines.count && ret == 0; i++) {
			struct live_line_key key =
				*(const struct live_line_key *)live_table_key(&live->lines, i);

			key.function = functions[key.function];
			if (key.function == FORMAT_LIVE_OTHER)
				key.line = 0;
			ret = live_table_put(&made, &key, &map[i], why);
			into[i] = LIVE_INTO_ALL;
		}
		if (ret == 0)
			live_table_renumber(&live->lines, made.keys, made.count, map, into);
		live_table_deinit(&made);
	}
	free(map);
	free(into);
	return ret ? failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "fold lines") : 0;
}

/* Remove folded functions from everything that refers to them. */
static int fold_marked_functions(struct format_live *live, const bool *gone, uint32_t *map,
				 struct failure *why)
{
	struct fold_step step = { .functions = map };
	uint32_t count = live->functions.count;

	if (live_table_fold(&live->functions, gone, map, why) != 0)
		return -1;
	for (uint32_t id = 0; id < count; id++) {
		struct live_function info = live->function_info[id];

		memset(&live->function_info[id], 0, sizeof(info));
		if (id > 0 && map[id] == FORMAT_LIVE_OTHER) {
			live_free_function(&info);
			live->folded.functions++;
		} else {
			live->function_info[map[id]] = info;
		}
	}
	for (uint32_t i = 0; i < live->traces.count; i++)
		live->trace_info[i].function = map[live->trace_info[i].function];
	for (uint32_t i = 0; i < live->coroutines.count; i++)
		live->coroutine_info[i].function = map[live->coroutine_info[i].function];
	live_move_ids(live, map);
	memset(live->recent, 0, sizeof(live->recent));
	return renumber_lines(live, map, why) != 0 || renumber_nodes(live, &step, why) != 0 ? -1
											    : 0;
}

int live_fold_functions(struct format_live *live, struct failure *why)
{
	bool *gone = calloc(live->functions.count, sizeof(*gone));
	uint32_t *map = calloc(live->functions.count, sizeof(*map));
	int ret = -1;

	if (gone && map && live_table_choose(&live->functions, 1, FOLD_PART, gone, why) == 0)
		ret = fold_marked_functions(live, gone, map, why);
	free(gone);
	free(map);
	live->functions_full = true;
	return ret ? failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "fold functions") : 0;
}

int live_fold_lines(struct format_live *live, struct failure *why)
{
	bool *gone = calloc(live->lines.count, sizeof(*gone));
	uint32_t *map = calloc(live->lines.count, sizeof(*map)), before = live->lines.count;
	int ret = -1;

	if (gone && map && live_table_choose(&live->lines, 1, FOLD_PART, gone, why) == 0)
		ret = live_table_fold(&live->lines, gone, map, why);
	live->folded.lines += before - live->lines.count;
	free(gone);
	free(map);
	live->lines_full = true;
	return ret ? failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "fold lines") : 0;
}

/* ---- Tables that nothing refers to ------------------------------------------------------ */

int live_fold_plain(struct live_table *table, uint32_t *ret_map, struct failure *why)
{
	bool *gone = calloc(table->count, sizeof(*gone));
	int ret = -1;

	if (gone && live_table_choose(table, 1, FOLD_PART, gone, why) == 0)
		ret = live_table_fold(table, gone, ret_map, why);
	free(gone);
	return ret ? failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "fold a table") : 0;
}
