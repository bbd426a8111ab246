/* SPDX-License-Identifier: MIT */
/* What is the call tree of a live view, and which functions call each other? */
#include "format/live/live_internal.h"

#include <stdlib.h>
#include <string.h>

#include "attach/hash.h"

/* ---- Walking ---------------------------------------------------------------------------- */

/* Children of all nodes: the first child, and the next child of the same parent. */
struct children {
	uint32_t *first, *next;
};

static void children_deinit(struct children *children)
{
	free(children->first);
	free(children->next);
}

static int no_memory(struct failure *why)
{
	return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "build the call tree");
}

static int children_init(struct children *children, const struct live_table *table,
			 struct failure *why)
{
	children->first = calloc(table->count, sizeof(*children->first));
	children->next = calloc(table->count, sizeof(*children->next));
	if (!children->first || !children->next) {
		children_deinit(children);
		return no_memory(why);
	}
	/* A key begins with the parent. Node 0, the root, has none. */
	for (uint32_t i = table->count; i-- > 1;) {
		uint32_t parent = *(const uint32_t *)live_table_key(table, i);

		children->next[i] = children->first[parent];
		children->first[parent] = i;
	}
	return 0;
}

int live_walk_nodes(const struct format_live *live, live_visitor *enter, live_visitor *leave,
		    void *context, struct failure *why)
{
	struct children children;
	uint32_t node = 0;

	if (children_init(&children, &live->nodes, why) != 0)
		return -1;
	for (;;) {
		if (enter)
			enter(context, node);
		if (children.first[node]) {
			node = children.first[node];
			continue;
		}
		while (node && !children.next[node]) {
			if (leave)
				leave(context, node);
			node = live_node(live, node)->parent;
		}
		if (leave)
			leave(context, node);
		if (!node)
			break;
		node = children.next[node];
	}
	children_deinit(&children);
	return 0;
}

/* ---- Callers and callees ---------------------------------------------------------------- */

struct relating {
	const struct format_live *live;
	const struct format_live_query *query;
	const bool *selected;
	uint32_t function;
	bool callers;
	uint32_t *kept;	 /* by node: the node itself, or the ancestor that replaces it if it is
			    omitted */
	uint32_t *above; /* by function: how many such calls the walk is inside */
	struct live_count *counts; /* by function; after the last one: of threads */
};

/* The function at the other end of a call by, or of, the function. LIVE_GONE: this node is no
 * such call. */
static uint32_t other_side(const struct relating *relating, uint32_t node)
{
	const struct format_live *live = relating->live;
	uint32_t function = live_node(live, node)->function, caller;

	if (node == 0 || function == LIVE_THREAD || relating->kept[node] != node)
		return LIVE_GONE;
	caller = live_node(live, relating->kept[live_node(live, node)->parent])->function;
	if (caller >= live->functions.count)
		caller = live->functions.count;
	if (relating->callers)
		return function == relating->function ? caller : LIVE_GONE;
	return caller == relating->function ? function : LIVE_GONE;
}

static void enter_call(void *context, uint32_t node)
{
	struct relating *relating = context;
	const struct format_live *live = relating->live;
	const struct live_count *from = &live->nodes.counts[node];
	uint32_t function = live_node(live, node)->function, side;
	struct live_count *to;

	/* Parents have lower numbers than their children. */
	relating->kept[node] = node;
	if (node && live_hides_natives(relating->query) && live_is_native(live, function))
		relating->kept[node] = relating->kept[live_node(live, node)->parent];
	if (relating->selected[node] && !relating->callers && from->other &&
	    live_node(live, relating->kept[node])->function == relating->function) {
		to = &relating->counts[FORMAT_LIVE_OTHER];
		to->self += from->other;
		to->total += from->other;
		to->window_self += from->window_other;
		to->window_total += from->window_other;
	}
	side = other_side(relating, node);
	if (side == LIVE_GONE)
		return;
	to = &relating->counts[side];
	if (relating->selected[node]) {
		to->self += from->self;
		to->guest += from->guest;
		to->window_self += from->window_self;
		to->window_guest += from->window_guest;
	}
	if (relating->selected[node] && !relating->above[side]) {
		to->total += from->total;
		to->window_total += from->window_total;
	}
	relating->above[side]++;
}

static void leave_call(void *context, uint32_t node)
{
	struct relating *relating = context;
	uint32_t side = other_side(relating, node);

	if (side != LIVE_GONE)
		relating->above[side]--;
}

static int list_calls(const struct relating *relating, struct live_rows *rows, struct failure *why)
{
	const struct format_live *live = relating->live;

	for (uint32_t id = 0; id <= live->functions.count; id++) {
		struct format_live_row row = { .id = FORMAT_NO_FUNCTION,
					       .function = FORMAT_NO_FUNCTION,
					       .kind = FORMAT_KIND_PROCESS,
					       .name = "[thread]",
					       .location = "",
					       .module = "" };

		if (!relating->counts[id].total)
			continue;
		if (id < live->functions.count)
			row = live_function_row(live, id);
		row.count = live_count_of(&relating->counts[id]);
		if (live_rows_add(rows, &row, why) != 0)
			return -1;
	}
	return 0;
}

static int relate(const struct format_live *live, uint32_t function,
		  const struct format_live_query *query, bool callers,
		  struct format_live_rows *ret_rows, struct failure *why)
{
	size_t count = (size_t)live->functions.count + 1;
	bool *selected = live_select_nodes(live, query);
	struct format_live_query of_functions = *query;
	struct relating relating = { .live = live,
				     .query = query,
				     .selected = selected,
				     .function = function,
				     .callers = callers,
				     .kept = calloc(live->nodes.count, sizeof(*relating.kept)),
				     .above = calloc(count, sizeof(*relating.above)),
				     .counts = calloc(count, sizeof(*relating.counts)) };
	struct live_rows rows = { 0 };
	int ret = -1;

	of_functions.view = FORMAT_LIVE_FUNCTIONS;
	if (selected && relating.kept && relating.above && relating.counts &&
	    live_walk_nodes(live, enter_call, leave_call, &relating, why) == 0)
		ret = list_calls(&relating, &rows, why);
	if (ret == 0) {
		live_rows_finish(&rows, &of_functions);
		*ret_rows = (struct format_live_rows){ .rows = rows.rows,
						       .count = rows.count,
						       .samples = live->samples,
						       .window_samples = live->window_samples };
	} else {
		free(rows.rows);
		no_memory(why);
	}
	free(selected);
	free(relating.kept);
	free(relating.above);
	free(relating.counts);
	return ret;
}

int format_live_callers(const struct format_live *live, uint32_t function,
			const struct format_live_query *query, struct format_live_rows *ret_rows,
			struct failure *why)
{
	return relate(live_asked(live, query), function, query, true, ret_rows, why);
}

int format_live_callees(const struct format_live *live, uint32_t function,
			const struct format_live_query *query, struct format_live_rows *ret_rows,
			struct failure *why)
{
	return relate(live_asked(live, query), function, query, false, ret_rows, why);
}

/* ---- The tree --------------------------------------------------------------------------- */

struct tree_key {
	uint32_t parent, function;
};

static void add_count(struct live_count *to, const struct live_count *from)
{
	to->self += from->self;
	to->guest += from->guest;
	to->total += from->total;
	to->window_self += from->window_self;
	to->window_guest += from->window_guest;
	to->window_total += from->window_total;
}

/* Samples folded below a node become a child of their own. */
static int add_folded(struct live_table *made, uint32_t parent, const struct live_count *from,
		      struct failure *why)
{
	const struct tree_key key = { .parent = parent, .function = FORMAT_LIVE_OTHER };
	const struct live_count folded = { .self = from->other,
					   .total = from->other,
					   .window_self = from->window_other,
					   .window_total = from->window_other };
	uint32_t id;

	if (!from->other)
		return 0;
	if (live_table_put(made, &key, &id, why) != 0 || id == LIVE_GONE)
		return -1;
	add_count(&made->counts[id], &folded);
	return 0;
}

/* Merge nodes that differ only in lines or traces, and merge all threads. */
static int merge_nodes(const struct format_live *live, const struct format_live_query *query,
		       const bool *selected, struct live_table *made, struct failure *why)
{
	uint32_t *map = calloc(live->nodes.count, sizeof(*map));
	int ret = map ? 0 : -1;

	for (uint32_t i = 0; ret == 0 && i < live->nodes.count; i++) {
		const struct live_node_key *node = live_node(live, i);
		const struct tree_key key = { .parent = i ? map[node->parent] : 0,
					      .function = i ? node->function : LIVE_THREAD };
		bool left_out =
			node->function == LIVE_THREAD ||
			(i && live_hides_natives(query) && live_is_native(live, node->function));

		if (i && !selected[i])
			continue;
		if (left_out)
			map[i] = i && node->function != LIVE_THREAD ? map[node->parent] : 0;
		else
			ret = live_table_put(made, &key, &map[i], why);
		if (ret != 0)
			break;
		if (!left_out && i)
			add_count(&made->counts[map[i]], &live->nodes.counts[i]);
		if (node->function == LIVE_THREAD)
			add_count(&made->counts[0], &live->nodes.counts[i]);
		if (selected[i])
			ret = add_folded(made, map[i], &live->nodes.counts[i], why);
	}
	free(map);
	return ret;
}

/* Data to build the nodes of a tree. */
struct growing {
	const struct format_live *live;
	const struct format_live_query *query;
	const struct live_table *made;
	struct format_live_node *nodes; /* same ids as in `made` */
	bool *kept;
};

static void fill_nodes(struct growing *growing)
{
	const struct live_table *made = growing->made;

	for (uint32_t i = 0; i < made->count; i++) {
		const struct tree_key *key = live_table_key(made, i);
		struct format_live_node *node = &growing->nodes[i];

		node->parent = i ? key->parent : FORMAT_LIVE_NO_NODE;
		node->first_child = node->next = FORMAT_LIVE_NO_NODE;
		node->key = i ? hash_words(&key->function, sizeof(key->function),
					   growing->nodes[key->parent].key)
			      : 0;
		node->depth = i ? growing->nodes[key->parent].depth + 1 : 0;
		if (i)
			node->row = live_function_row(growing->live, key->function);
		else
			node->row = (struct format_live_row){ .id = FORMAT_NO_FUNCTION,
							      .function = FORMAT_NO_FUNCTION,
							      .kind = FORMAT_KIND_PROCESS,
							      .name = "all",
							      .location = "",
							      .module = "" };
		node->row.count = live_count_of(&made->counts[i]);
	}
}

/* With a filter, keep only chains with a matching frame. */
static void keep_nodes(struct growing *growing)
{
	struct format_live_query query = *growing->query;
	uint32_t count = growing->made->count;

	query.view = FORMAT_LIVE_FUNCTIONS;
	for (uint32_t i = 0; i < count; i++) {
		struct format_live_node *node = &growing->nodes[i];

		/* Keep everything below a matching frame. */
		growing->kept[i] = (!query.filter || !*query.filter) ||
				   (i && live_row_fits(&node->row, &query)) ||
				   (i && growing->kept[node->parent]);
		growing->kept[i] &= i == 0 || node->row.count.total > 0;
	}
	for (uint32_t i = count; i-- > 1;)
		if (growing->kept[i])
			growing->kept[growing->nodes[i].parent] = true;
}

static int compare_nodes(const void *left, const void *right, void *context)
{
	const struct growing *growing = context;
	const struct format_live_node *a = &growing->nodes[*(const uint32_t *)left];
	const struct format_live_node *b = &growing->nodes[*(const uint32_t *)right];

	/* Children of one parent are neighbours; lower parents come first. */
	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	return live_row_compare(&a->row, &b->row, growing->query);
}

/* Link the children of each node in sorted order. */
static int link_nodes(struct growing *growing, struct failure *why)
{
	uint32_t count = growing->made->count, kept = 0;
	uint32_t *sorted = calloc(count, sizeof(*sorted));

	if (!sorted)
		return no_memory(why);
	for (uint32_t i = 1; i < count; i++)
		if (growing->kept[i])
			sorted[kept++] = i;
	qsort_r(sorted, kept, sizeof(*sorted), compare_nodes, growing);
	for (uint32_t i = kept; i-- > 0;) {
		struct format_live_node *node = &growing->nodes[sorted[i]];
		struct format_live_node *parent = &growing->nodes[node->parent];

		node->next = parent->first_child;
		parent->first_child = sorted[i];
		parent->child_count++;
	}
	free(sorted);
	return 0;
}

int format_live_tree(const struct format_live *live, const struct format_live_query *query,
		     struct format_live_tree *ret_tree, struct failure *why)
{
	struct growing growing = { .live = live = live_asked(live, query), .query = query };
	bool *selected = live_select_nodes(live, query);
	struct live_table made = { 0 };
	int ret = -1;

	/* Twice the nodes: each may have one more child for folded samples. */
	if (selected &&
	    live_table_init(&made, sizeof(struct tree_key), 2 * live->nodes.max, 0, why) == 0 &&
	    merge_nodes(live, query, selected, &made, why) == 0) {
		growing.made = &made;
		growing.nodes = calloc(made.count, sizeof(*growing.nodes));
		growing.kept = calloc(made.count, sizeof(*growing.kept));
	}
	if (growing.nodes && growing.kept) {
		fill_nodes(&growing);
		keep_nodes(&growing);
		ret = link_nodes(&growing, why);
	}
	if (ret == 0)
		*ret_tree =
			(struct format_live_tree){ .nodes = growing.nodes, .count = made.count };
	else
		free(growing.nodes);
	free(growing.kept);
	free(selected);
	live_table_deinit(&made);
	return ret ? no_memory(why) : 0;
}

void format_live_tree_deinit(struct format_live_tree *tree)
{
	free(tree->nodes);
	memset(tree, 0, sizeof(*tree));
}
