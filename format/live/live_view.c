/* SPDX-License-Identifier: MIT */
/* How do the tables of a live view become sorted rows? */
#include "format/live/live_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "attach/hash.h"

/* ---- Rows ------------------------------------------------------------------------------- */

struct format_live_count live_count_of(const struct live_count *count)
{
	return (struct format_live_count){ .self = count->self,
					   .guest = count->guest,
					   .total = count->total,
					   .window_self = count->window_self,
					   .window_guest = count->window_guest,
					   .window_total = count->window_total };
}

int live_rows_add(struct live_rows *rows, const struct format_live_row *row, struct failure *why)
{
	if (!ARRAY_RESERVE(rows->rows, rows->size, rows->count + 1))
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "list samples");
	rows->rows[rows->count++] = *row;
	return 0;
}

struct format_live_row live_function_row(const struct format_live *live, uint32_t function)
{
	const struct live_function *info = &live->function_info[function];
	int64_t line = info->value.first_line;

	return (struct format_live_row){
		.id = function,
		.function = function,
		.kind = info->value.kind,
		.name = info->shown,
		.location = info->location,
		.module = info->module_name,
		.chunk = info->value.kind == FORMAT_KIND_LUA ? info->value.source : NULL,
		.line = line > 0 && line <= UINT32_MAX ? (uint32_t)line : 0,
	};
}

/* "[other]" may be several functions of one chain; its total is at most the number of samples. */
static void limit_total(const struct format_live *live, struct format_live_row *row)
{
	if (row->count.total > live->samples)
		row->count.total = live->samples;
	if (row->count.window_total > live->window_samples)
		row->count.window_total = live->window_samples;
}

static bool has_text(const char *text, const char *part)
{
	return strcasestr(text, part) != NULL;
}

bool live_row_fits(const struct format_live_row *row, const struct format_live_query *query)
{
	if (live_hides_natives(query) && format_kind_is_native(row->kind) &&
	    (query->view == FORMAT_LIVE_FUNCTIONS || query->view == FORMAT_LIVE_LINES))
		return false;
	return !query->filter || !*query->filter || has_text(row->name, query->filter) ||
	       has_text(row->location, query->filter);
}

static void list_orders(const struct format_live_row *row, const struct format_live_query *query,
			uint64_t *ret_values)
{
	const struct format_live_count *n = &row->count;
	bool by_guest = live_hides_natives(query);
	uint64_t self = by_guest ? n->guest : n->self;
	uint64_t window_self = by_guest ? n->window_guest : n->window_self;
	const uint64_t by_self[] = { self, n->total, window_self, n->window_total };
	const uint64_t by_total[] = { n->total, self, n->window_total, window_self };
	const uint64_t by_window_self[] = { window_self, n->window_total, self, n->total };
	const uint64_t by_window_total[] = { n->window_total, window_self, n->total, self };
	const uint64_t *const orders[FORMAT_LIVE_ORDER_COUNT] = { by_self, by_total, by_window_self,
								  by_window_total, by_self };

	memcpy(ret_values, orders[query->order], sizeof(by_self));
}

/** A row to sort, with its sort values, because rows are large. */
struct sortable {
	uint64_t of[4];
	const struct format_live_row *row;
};

static struct sortable make_sortable(const struct format_live_row *row,
				     const struct format_live_query *query)
{
	struct sortable sortable = { .row = row };

	list_orders(row, query, sortable.of);
	return sortable;
}

/* Compare names only if requested: thousands of rarely met functions have equal counts, and
 * their names are scattered over memory. */
static int compare(const void *left, const void *right, void *context)
{
	const struct format_live_query *query = context;
	const struct sortable *a = left, *b = right;
	bool by_name = query->order == FORMAT_LIVE_NAME;
	int order = by_name ? strcasecmp(a->row->name, b->row->name) : 0;

	if (order == 0 && by_name)
		order = strcmp(a->row->location, b->row->location);
	for (int i = 0; order == 0 && i < 4; i++)
		if (a->of[i] != b->of[i])
			order = a->of[i] > b->of[i] ? -1 : 1;
	return order ? order : a->row->id < b->row->id ? -1 : a->row->id > b->row->id;
}

int live_row_compare(const struct format_live_row *a, const struct format_live_row *b,
		     const struct format_live_query *query)
{
	const struct sortable x = make_sortable(a, query), y = make_sortable(b, query);
	struct format_live_query copy = *query;

	return compare(&x, &y, &copy);
}

static void swap(struct sortable *a, struct sortable *b)
{
	const struct sortable copy = *a;

	*a = *b;
	*b = copy;
}

/* Bring the first @p wanted rows of all to the front, in any order. The pivots cannot be guessed:
 * targets choose the counts.
 * Source: C. A. R. Hoare, "Algorithm 65: find", Communications of the ACM 4 (1961). */
static void bring_first(struct sortable *order, size_t count, size_t wanted,
			struct format_live_query *query)
{
	size_t first = 0, last = count - 1;

	while (first < last) {
		size_t i = first, j = last;
		struct sortable pivot =
			order[first + hash_word(first << 32 | last, 0) % (last - first + 1)];

		while (i <= j) {
			while (compare(&order[i], &pivot, query) < 0)
				i++;
			while (compare(&order[j], &pivot, query) > 0)
				j--;
			if (i <= j) {
				swap(&order[i++], &order[j]);
				if (j == 0)
					break;
				j--;
			}
		}
		if (wanted <= j)
			last = j;
		else if (wanted >= i)
			first = i;
		else
			return;
	}
}

/* If memory runs out, the rows stay unsorted. */
static void sort_rows(struct live_rows *rows, const struct format_live_query *query)
{
	size_t count = query->max && query->max < rows->count ? query->max : rows->count;
	struct format_live_row *sorted = reallocarray(NULL, count, sizeof(*sorted));
	struct sortable *order = reallocarray(NULL, rows->count, sizeof(*order));
	struct format_live_query copy = *query;

	if (sorted && order) {
		for (size_t i = 0; i < rows->count; i++)
			order[i] = make_sortable(&rows->rows[i], query);
		if (count < rows->count)
			bring_first(order, rows->count, count, &copy);
		qsort_r(order, count, sizeof(*order), compare, &copy);
		for (size_t i = 0; i < count; i++)
			sorted[i] = *order[i].row;
		free(rows->rows);
		rows->rows = sorted;
		rows->left_out = rows->count - count;
		rows->count = rows->size = count;
		sorted = NULL;
	}
	free(sorted);
	free(order);
}

void live_rows_finish(struct live_rows *rows, const struct format_live_query *query)
{
	size_t kept = 0;

	for (size_t i = 0; i < rows->count; i++) {
		const struct format_live_count *n = &rows->rows[i].count;

		/* Known, but without samples since the last reset. */
		if ((n->total || n->self) && live_row_fits(&rows->rows[i], query))
			rows->rows[kept++] = rows->rows[i];
	}
	rows->count = kept;
	if (kept > 1)
		sort_rows(rows, query);
}

/* ---- Tables ----------------------------------------------------------------------------- */

static void name_line(const struct format_live *live, struct format_live_row *row, uint32_t line,
		      char *ret_location, size_t size)
{
	const struct live_function *info = &live->function_info[row->function];

	row->line = line;
	if (line == 0)
		return;
	snprintf(ret_location, size, "%s:%" PRIu32, info->module_name, line);
	row->location = ret_location;
}

/* Texts made for one answer, stored behind its rows. */
struct texts {
	char *bytes;
	size_t size, used;
};

enum { TEXT_MAX = 320 };

static char *take_room(struct texts *texts)
{
	char *room = texts->bytes + texts->used;

	texts->used += TEXT_MAX;
	return room;
}

/* A row by the function that the coroutine began with; the main coroutine begins with a
 * different one each time. */
static struct format_live_row coroutine_row(const struct format_live *live, uint32_t id)
{
	const struct live_coroutine_key *key = live_table_key(&live->coroutines, id);
	struct format_live_row row = live_function_row(live, live->coroutine_info[id].function);

	row.id = id;
	row.pid = key->pid;
	row.coroutine = key->address;
	if (row.function != FORMAT_LIVE_OTHER || id == FORMAT_LIVE_OTHER)
		return row;
	row.name = key->is_main ? "main" : "?";
	row.kind = FORMAT_KIND_LUA;
	row.location = row.module = "";
	return row;
}

static struct format_live_row row_of(const struct format_live *live, enum format_live_view view,
				     uint32_t id, struct texts *texts)
{
	struct format_live_row row = { 0 };
	const struct live_line_key *line;
	const struct live_trace_key *trace;
	const struct live_thread_key *thread;
	char *room;

	switch (view) {
	case FORMAT_LIVE_FUNCTIONS:
		return live_function_row(live, id);
	case FORMAT_LIVE_LINES:
		line = live_table_key(&live->lines, id);
		row = live_function_row(live, line->function);
		row.id = id;
		name_line(live, &row, line->line, take_room(texts), TEXT_MAX);
		return row;
	case FORMAT_LIVE_MODULES:
		row = (struct format_live_row){ .id = id, .name = live->module_info[id].name };
		row.module = row.name;
		row.location = "";
		return row;
	case FORMAT_LIVE_TRACES:
		trace = live_table_key(&live->traces, id);
		row = live_function_row(live, live->trace_info[id].function);
		row.kind = FORMAT_KIND_TRACE;
		row.pid = trace->pid;
		row.trace = trace->number;
		memcpy(row.compiled, live->trace_info[id].compiled, sizeof(row.compiled));
		if (row.function == FORMAT_LIVE_OTHER)
			row.location = row.module = "";
		break;
	case FORMAT_LIVE_COROUTINES:
		return coroutine_row(live, id);
	case FORMAT_LIVE_THREADS:
	case FORMAT_LIVE_PROCESSES:
	case FORMAT_LIVE_COROUTINE_GROUPS:
	case FORMAT_LIVE_VIEW_COUNT:
		thread = live_table_key(
			view == FORMAT_LIVE_THREADS ? &live->threads : &live->processes, id);
		row.kind = FORMAT_KIND_PROCESS;
		row.pid = thread->pid;
		row.tid = thread->tid;
		row.location = row.module = "";
		break;
	}
	row.id = id;
	room = take_room(texts);
	if (id == FORMAT_LIVE_OTHER)
		snprintf(room, TEXT_MAX, "[other]");
	else if (view == FORMAT_LIVE_TRACES)
		snprintf(room, TEXT_MAX, "trace %" PRIu32, row.trace);
	else
		snprintf(room, TEXT_MAX, "%s %" PRId32,
			 view == FORMAT_LIVE_THREADS ? "thread" : "process",
			 view == FORMAT_LIVE_THREADS ? row.tid : row.pid);
	row.name = room;
	return row;
}

static const struct live_table *table_of(const struct format_live *live, enum format_live_view view)
{
	const struct live_table *const tables[FORMAT_LIVE_VIEW_COUNT] = {
		[FORMAT_LIVE_FUNCTIONS] = &live->functions,
		[FORMAT_LIVE_LINES] = &live->lines,
		[FORMAT_LIVE_MODULES] = &live->modules,
		[FORMAT_LIVE_TRACES] = &live->traces,
		[FORMAT_LIVE_COROUTINES] = &live->coroutines,
		[FORMAT_LIVE_THREADS] = &live->threads,
		[FORMAT_LIVE_PROCESSES] = &live->processes,
		[FORMAT_LIVE_COROUTINE_GROUPS] = &live->coroutines,
	};

	return tables[view];
}

/* ---- Samples of one process or thread --------------------------------------------------- */

bool *live_select_nodes(const struct format_live *live, const struct format_live_query *query)
{
	bool *selected = calloc(live->nodes.count, sizeof(*selected));

	for (uint32_t i = 0; selected && i < live->nodes.count; i++) {
		const struct live_node_key *key = live_node(live, i);

		if (i > 0 && key->function == LIVE_THREAD)
			selected[i] = (!query->pid || query->pid == (int32_t)key->line) &&
				      (!query->tid || query->tid == (int32_t)key->trace);
		else if (i > 0)
			selected[i] =
				key->parent ? selected[key->parent] : !query->pid && !query->tid;
		else
			selected[i] = !query->pid && !query->tid;
	}
	return selected;
}

/* Data for counting one view from the chains. */
struct tallying {
	const struct format_live *live;
	enum format_live_view view;
	const bool *selected;
	struct live_count *counts; /* by entry */
	uint32_t *above;	   /* by entry: how many of its nodes the walk is inside */
	int32_t pid;		   /* of the current thread */
	struct format_live_rows *sums;
};

/* The view's entry of a node. LIVE_GONE: none. */
static uint32_t entry_of(const struct tallying *tallying, uint32_t node)
{
	const struct format_live *live = tallying->live;
	const struct live_node_key *key = live_node(live, node);
	const struct live_line_key line = { .function = key->function, .line = key->line };
	const struct live_trace_key trace = { .pid = tallying->pid,
					      .number = key->trace & ~LIVE_APPROXIMATE };
	uint32_t found;

	if (key->function >= live->functions.count)
		return LIVE_GONE;
	switch (tallying->view) {
	case FORMAT_LIVE_FUNCTIONS:
		return key->function;
	case FORMAT_LIVE_LINES:
		found = live_table_find(&live->lines, &line);
		return found == LIVE_GONE ? FORMAT_LIVE_OTHER : found;
	case FORMAT_LIVE_MODULES:
		return live->function_info[key->function].module;
	case FORMAT_LIVE_TRACES:
		return trace.number ? live_table_find(&live->traces, &trace) : LIVE_GONE;
	default:
		return LIVE_GONE;
	}
}

static void add_node(const struct live_count *from, bool total, struct live_count *to)
{
	to->self += from->self;
	to->guest += from->guest;
	to->window_self += from->window_self;
	to->window_guest += from->window_guest;
	if (!total)
		return;
	to->total += from->total;
	to->window_total += from->window_total;
}

static void enter_node(void *context, uint32_t node)
{
	struct tallying *tallying = context;
	const struct live_node_key *key = live_node(tallying->live, node);
	const struct live_count *from = &tallying->live->nodes.counts[node];
	uint32_t entry;

	if (node > 0 && key->function == LIVE_THREAD) {
		tallying->pid = (int32_t)key->line;
		if (tallying->selected[node]) {
			tallying->sums->samples += from->total;
			tallying->sums->window_samples += from->window_total;
		}
	}
	entry = node > 0 ? entry_of(tallying, node) : LIVE_GONE;
	if (tallying->selected[node]) {
		tallying->counts[0].self += from->other;
		tallying->counts[0].total += from->other;
		tallying->counts[0].window_self += from->window_other;
		tallying->counts[0].window_total += from->window_other;
	}
	if (entry == LIVE_GONE)
		return;
	if (tallying->selected[node])
		add_node(from, tallying->above[entry] == 0, &tallying->counts[entry]);
	tallying->above[entry]++;
}

static void leave_node(void *context, uint32_t node)
{
	struct tallying *tallying = context;
	uint32_t entry = node > 0 ? entry_of(tallying, node) : LIVE_GONE;

	if (entry != LIVE_GONE)
		tallying->above[entry]--;
}

/* Count a view's entries from the chains. @return By entry, the caller frees it; or NULL. */
static struct live_count *count_nodes(const struct format_live *live,
				      const struct format_live_query *query,
				      struct format_live_rows *ret_rows, struct failure *why)
{
	uint32_t count = table_of(live, query->view)->count;
	bool *selected = live_select_nodes(live, query);
	struct tallying tallying = { .live = live,
				     .view = query->view,
				     .selected = selected,
				     .counts = calloc(count, sizeof(*tallying.counts)),
				     .above = calloc(count, sizeof(*tallying.above)),
				     .sums = ret_rows };

	if (!selected || !tallying.counts || !tallying.above ||
	    live_walk_nodes(live, enter_node, leave_node, &tallying, why) != 0) {
		free(tallying.counts);
		tallying.counts = NULL;
	}
	free(tallying.above);
	free(selected);
	return tallying.counts;
}

/* ---- Queries ---------------------------------------------------------------------------- */

/* Coroutines, threads and processes have one count each, whatever the query. */
static bool has_own_counts(const struct format_live_query *query)
{
	return query->view == FORMAT_LIVE_COROUTINES || query->view == FORMAT_LIVE_THREADS ||
	       query->view == FORMAT_LIVE_PROCESSES || query->view == FORMAT_LIVE_COROUTINE_GROUPS;
}

static bool needs_nodes(const struct format_live_query *query)
{
	return (query->pid || query->tid) && !has_own_counts(query);
}

/* Whether such an entry belongs to the requested process and thread. */
static bool is_asked_for(const struct format_live *live, const struct format_live_query *query,
			 uint32_t id)
{
	struct live_thread_key of;

	if (!has_own_counts(query))
		return true;
	if (table_of(live, query->view) == &live->coroutines) {
		of.pid = ((const struct live_coroutine_key *)live_table_key(&live->coroutines, id))
				 ->pid;
		of.tid = live->coroutine_info[id].tid;
	} else {
		of = *(const struct live_thread_key *)live_table_key(table_of(live, query->view),
								     id);
	}
	return (!query->pid || query->pid == of.pid) &&
	       (!query->tid || !of.tid || query->tid == of.tid);
}

/* The row of a coroutine's group: its function's, or one of three for coroutines without: main
 * ones, others, and folded ones. */
static struct format_live_row *group_of(struct live_rows *groups, const struct format_live *live,
					uint32_t id, uint32_t *places)
{
	const struct live_coroutine_key *key = live_table_key(&live->coroutines, id);
	uint32_t function = live->coroutine_info[id].function;
	uint32_t place = function != FORMAT_LIVE_OTHER ? function
			 : id == FORMAT_LIVE_OTHER     ? FORMAT_LIVE_OTHER
						       : live->functions.count + !key->is_main;
	struct format_live_row row = coroutine_row(live, id);
	struct failure why;

	if (!places[place]) {
		row.id = place;
		row.coroutine = 0;
		row.pid = 0;
		if (live_rows_add(groups, &row, &why) != 0)
			return NULL;
		places[place] = (uint32_t)groups->count;
	}
	return &groups->rows[places[place] - 1];
}

static int list_groups(const struct format_live *live, const struct format_live_query *query,
		       struct live_rows *rows, struct failure *why)
{
	/* From function to the group's row, + 1. */
	uint32_t *places = calloc((size_t)live->functions.count + 2, sizeof(*places));
	const struct live_table *table = &live->coroutines;
	int ret = places ? 0 : -1;

	for (uint32_t id = 0; ret == 0 && id < table->count; id++) {
		const struct live_count *count = &table->counts[id];
		struct format_live_row *group;

		if ((!count->total && !count->self) || !is_asked_for(live, query, id))
			continue;
		group = group_of(rows, live, id, places);
		if (!group) {
			ret = -1;
			break;
		}
		group->coroutines++;
		group->count.self += count->self;
		group->count.guest += count->guest;
		group->count.total += count->total;
		group->count.window_self += count->window_self;
		group->count.window_guest += count->window_guest;
		group->count.window_total += count->window_total;
	}
	free(places);
	for (size_t i = 0; i < rows->count; i++)
		limit_total(live, &rows->rows[i]);
	if (ret != 0)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "list samples");
	live_rows_finish(rows, query);
	return 0;
}

static int list_rows(const struct format_live *live, const struct format_live_query *query,
		     const struct live_count *counts, struct texts *texts, struct live_rows *rows,
		     struct failure *why)
{
	const struct live_table *table = table_of(live, query->view);

	for (uint32_t id = 0; id < table->count; id++) {
		struct format_live_row row;

		if ((!counts[id].total && !counts[id].self) || !is_asked_for(live, query, id))
			continue;
		row = row_of(live, query->view, id, texts);
		row.count = live_count_of(&counts[id]);
		if (id == FORMAT_LIVE_OTHER)
			limit_total(live, &row);
		if (live_rows_add(rows, &row, why) != 0)
			return -1;
	}
	live_rows_finish(rows, query);
	return 0;
}

int format_live_query(const struct format_live *live, const struct format_live_query *query,
		      struct format_live_rows *ret_rows, struct failure *why)
{
	const struct format_live *asked = live_asked(live, query);
	const struct live_table *table = table_of(asked, query->view);
	struct format_live_rows answer = { .samples = asked->samples,
					   .window_samples = asked->window_samples };
	struct live_rows rows = { 0 };
	struct texts texts = { .size = (size_t)table->count * TEXT_MAX };
	struct live_count *counts = NULL;
	int ret = -1;

	texts.bytes = malloc(texts.size);
	if (needs_nodes(query)) {
		answer.samples = answer.window_samples = 0;
		counts = count_nodes(asked, query, &answer, why);
	}
	if (texts.bytes && query->view == FORMAT_LIVE_COROUTINE_GROUPS)
		ret = list_groups(asked, query, &rows, why);
	else if (texts.bytes && (counts || !needs_nodes(query)))
		ret = list_rows(asked, query, counts ? counts : table->counts, &texts, &rows, why);
	free(counts);
	if (ret != 0) {
		free(texts.bytes);
		free(rows.rows);
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "list samples");
	}
	answer.rows = rows.rows;
	answer.count = rows.count;
	answer.left_out = rows.left_out;
	answer.texts = texts.bytes;
	*ret_rows = answer;
	return 0;
}

void format_live_rows_deinit(struct format_live_rows *rows)
{
	free(rows->rows);
	free(rows->texts);
	memset(rows, 0, sizeof(*rows));
}
