/* SPDX-License-Identifier: MIT */
/* Which rows has a view, copied from the live profile? */
#include "attach/array.h"
#include "attach/hash.h"
#include "cli/top/model/top_table.h"
#include "format/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BLOCK_BYTES = 64 * 1024,
	/* Further rows of a list have hardly a sample, and would cost as much as these. */
	LIST_MAX = 1000,
};

/** Texts of a table. */
struct top_block {
	struct top_block *next;
	size_t len, capacity;
	char bytes[];
};

void top_table_deinit(struct top_table *table)
{
	while (table->blocks) {
		struct top_block *next = table->blocks->next;

		free(table->blocks);
		table->blocks = next;
	}
	free(table->rows);
	free(table->split.self);
	memset(table, 0, sizeof(*table));
}

static struct top_block *get_block(struct top_table *table, size_t len)
{
	size_t capacity = len > BLOCK_BYTES ? len : BLOCK_BYTES;
	struct top_block *block = table->blocks;

	if (block && block->capacity - block->len >= len)
		return block;
	block = malloc(sizeof(*block) + capacity);
	if (!block)
		return NULL;
	*block = (struct top_block){ .next = table->blocks, .capacity = capacity };
	table->blocks = block;
	return block;
}

/* @return NULL for no text, or if memory is out. */
static const char *keep(struct top_table *table, const char *text)
{
	size_t len = text ? strlen(text) + 1 : 0;
	struct top_block *block = text ? get_block(table, len) : NULL;
	char *copy;

	if (!block)
		return NULL;
	copy = block->bytes + block->len;
	memcpy(copy, text, len);
	block->len += len;
	return copy;
}

static struct top_row *add_row(struct top_table *table)
{
	if (!ARRAY_RESERVE(table->rows, table->capacity, table->count + 1))
		return NULL;
	memset(&table->rows[table->count], 0, sizeof(*table->rows));
	return &table->rows[table->count];
}

struct top_row *top_table_add_text(struct top_table *table, const char *text, enum top_mark mark)
{
	struct top_row *row = add_row(table);

	if (!row)
		return NULL;
	row->name = keep(table, text);
	row->location = "";
	row->mark = mark;
	if (!row->name)
		return NULL;
	table->count++;
	return row;
}

static uint64_t self_of(const struct format_live_count *count, const struct top_choice *choice)
{
	if (choice->native == FORMAT_NATIVE_NONE)
		return choice->window ? count->window_guest : count->guest;
	return choice->window ? count->window_self : count->self;
}

struct top_row *top_table_add(struct top_table *table, const struct format_live_row *from,
			      const struct top_choice *choice)
{
	const struct format_live_count *count = &from->count;
	struct top_row *row = add_row(table);

	if (!row)
		return NULL;
	*row = (struct top_row){ .id = from->id,
				 .name = keep(table, from->name),
				 .location = keep(table, from->location ? from->location : ""),
				 .chunk = keep(table, from->chunk),
				 .kind = from->kind,
				 .function = from->function,
				 .line = from->line,
				 .trace = from->trace,
				 .coroutines = from->coroutines,
				 .pid = from->pid,
				 .tid = from->tid,
				 .self = self_of(count, choice),
				 .total = choice->window ? count->window_total : count->total };
	memcpy(row->compiled, from->compiled, sizeof(row->compiled));
	if (!row->name || !row->location || (from->chunk && !row->chunk))
		return NULL;
	table->count++;
	return row;
}

size_t top_table_find(const void *table, uint64_t id)
{
	const struct top_table *of = table;

	for (size_t i = 0; i < of->count; i++)
		if (of->rows[i].id == id && of->rows[i].mark != TOP_MARK_TITLE)
			return i;
	return SIZE_MAX;
}

/* ---- Queries ---------------------------------------------------------------------------- */

static int no_memory(struct failure *why)
{
	return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold a table");
}

struct format_live_query top_table_query(const struct top_choice *choice,
					 enum format_live_view view)
{
	static const enum format_live_order orders[TOP_SORT_COUNT][2] = {
		[TOP_SORT_SELF] = { FORMAT_LIVE_SELF, FORMAT_LIVE_WINDOW_SELF },
		[TOP_SORT_TOTAL] = { FORMAT_LIVE_TOTAL, FORMAT_LIVE_WINDOW_TOTAL },
		[TOP_SORT_NAME] = { FORMAT_LIVE_NAME, FORMAT_LIVE_NAME },
	};

	return (struct format_live_query){ .view = view,
					   .order = orders[choice->sort][choice->window],
					   .native = choice->native,
					   .filter = choice->filter,
					   .pid = choice->pid,
					   .tid = choice->tid };
}

static uint64_t id_of(const struct top_row *row, enum top_view view)
{
	switch (view) {
	case TOP_VIEW_MODULES:
		return hash_words(row->name, strlen(row->name), 0);
	case TOP_VIEW_COROUTINES:
		return hash_words(row->location, strlen(row->location),
				  hash_words(row->name, strlen(row->name), 0));
	case TOP_VIEW_TRACES:
		return (uint64_t)(uint32_t)row->pid << 32 | row->trace;
	case TOP_VIEW_THREADS:
		return (uint64_t)(uint32_t)row->pid << 32 | (uint32_t)row->tid;
	default:
		return row->id;
	}
}

/* Whether a row has samples in the window, or no window is chosen. */
static bool is_shown(const struct format_live_row *row, const struct top_choice *choice)
{
	return !choice->window || row->count.window_total || row->count.window_self;
}

static int add_rows(struct top_table *table, const struct format_live_rows *rows,
		    const struct top_choice *choice)
{
	for (size_t i = 0; i < rows->count; i++) {
		const struct format_live_row *from =
			&rows->rows[choice->is_reversed ? rows->count - 1 - i : i];
		struct top_row *row;

		if (!is_shown(from, choice))
			continue;
		row = top_table_add(table, from, choice);
		if (!row)
			return -1;
		row->id = id_of(row, choice->view);
	}
	return 0;
}

static uint64_t samples_of(const struct format_live_rows *rows, const struct top_choice *choice)
{
	return choice->window ? rows->window_samples : rows->samples;
}

static const enum format_live_view list_views[TOP_VIEW_COUNT] = {
	[TOP_VIEW_FUNCTIONS] = FORMAT_LIVE_FUNCTIONS,
	[TOP_VIEW_LINES] = FORMAT_LIVE_LINES,
	[TOP_VIEW_MODULES] = FORMAT_LIVE_MODULES,
	[TOP_VIEW_TRACES] = FORMAT_LIVE_TRACES,
	[TOP_VIEW_COROUTINES] = FORMAT_LIVE_COROUTINE_GROUPS,
};

int top_table_list(struct top_table *table, const struct format_live *live,
		   const struct top_choice *choice, struct failure *why)
{
	struct format_live_query query = top_table_query(choice, list_views[choice->view]);
	struct format_live_rows rows;
	char text[64];
	int ret;

	/* The last rows come first in a reversed list. */
	query.max = choice->is_reversed ? 0 : LIST_MAX;
	if (format_live_query(live, &query, &rows, why) != 0)
		return -1;
	table->samples = samples_of(&rows, choice);
	ret = add_rows(table, &rows, choice);
	snprintf(text, sizeof(text), "%zu more: a filter shows them", rows.left_out);
	if (ret == 0 && rows.left_out && !top_table_add_text(table, text, TOP_MARK_TITLE))
		ret = -1;
	format_live_rows_deinit(&rows);
	return ret == 0 ? 0 : no_memory(why);
}

/* ---- Processes side by side ------------------------------------------------------------- */

/** Where the row with an id is. */
struct place {
	uint64_t id;
	size_t index;
};

static int compare_places(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	return a->id < b->id ? -1 : a->id > b->id;
}

static struct place *places_of(const struct top_table *table)
{
	struct place *places = calloc(table->count + 1, sizeof(*places));

	for (size_t i = 0; places && i < table->count; i++)
		places[i] = (struct place){ table->rows[i].id, i };
	if (places)
		qsort(places, table->count, sizeof(*places), compare_places);
	return places;
}

static int split_column(struct top_table *table, const struct format_live *live,
			const struct top_choice *choice, const struct place *places, size_t column,
			struct failure *why)
{
	struct format_live_query query = top_table_query(choice, list_views[choice->view]);
	struct top_split *split = &table->split;
	struct format_live_rows rows;

	query.pid = split->pids[column];
	if (format_live_query(live, &query, &rows, why) != 0)
		return -1;
	split->samples[column] = samples_of(&rows, choice);
	for (size_t i = 0; i < rows.count; i++) {
		struct top_row row = { .name = rows.rows[i].name, .id = rows.rows[i].id };
		struct place wanted = { .id = id_of(&row, choice->view) }, *found;

		found = bsearch(&wanted, places, table->count, sizeof(*places), compare_places);
		if (found)
			split->self[found->index * split->count + column] =
				self_of(&rows.rows[i].count, choice);
	}
	format_live_rows_deinit(&rows);
	return 0;
}

int top_table_split(struct top_table *table, const struct format_live *live,
		    const struct top_choice *choice, const int32_t *pids, size_t count,
		    struct failure *why)
{
	struct place *places = places_of(table);
	int ret = 0;

	table->split.count = count;
	memcpy(table->split.pids, pids, count * sizeof(*pids));
	table->split.self = calloc(table->count * count + 1, sizeof(*table->split.self));
	if (!places || !table->split.self) {
		table->split.count = 0;
		free(places);
		return no_memory(why);
	}
	for (size_t i = 0; i < count && ret == 0; i++)
		ret = split_column(table, live, choice, places, i, why);
	free(places);
	return ret;
}

void top_choice_begin(struct top_choice *choice, const struct format_live_query *query)
{
	static const enum top_view views[FORMAT_LIVE_VIEW_COUNT] = {
		[FORMAT_LIVE_FUNCTIONS] = TOP_VIEW_FUNCTIONS,
		[FORMAT_LIVE_LINES] = TOP_VIEW_LINES,
		[FORMAT_LIVE_MODULES] = TOP_VIEW_MODULES,
		[FORMAT_LIVE_TRACES] = TOP_VIEW_TRACES,
		[FORMAT_LIVE_COROUTINES] = TOP_VIEW_COROUTINES,
		[FORMAT_LIVE_COROUTINE_GROUPS] = TOP_VIEW_COROUTINES,
		[FORMAT_LIVE_THREADS] = TOP_VIEW_THREADS,
		[FORMAT_LIVE_PROCESSES] = TOP_VIEW_THREADS,
	};
	static const enum top_sort sorts[FORMAT_LIVE_ORDER_COUNT] = {
		[FORMAT_LIVE_SELF] = TOP_SORT_SELF,
		[FORMAT_LIVE_TOTAL] = TOP_SORT_TOTAL,
		[FORMAT_LIVE_WINDOW_SELF] = TOP_SORT_SELF,
		[FORMAT_LIVE_WINDOW_TOTAL] = TOP_SORT_TOTAL,
		[FORMAT_LIVE_NAME] = TOP_SORT_NAME,
	};
	const char *filter = query->filter ? query->filter : "";
	size_t len = format_text_cut(filter, strlen(filter), TOP_FILTER_MAX - 1);

	memset(choice, 0, sizeof(*choice));
	choice->view = views[query->view];
	choice->sort = sorts[query->order];
	choice->window =
		query->order == FORMAT_LIVE_WINDOW_SELF || query->order == FORMAT_LIVE_WINDOW_TOTAL;
	choice->native = query->native;
	memcpy(choice->filter, filter, len);
}

/* ---- Calls ------------------------------------------------------------------------------ */

void top_choice_function(struct top_choice *choice, const struct top_row *row)
{
	choice->has_function = true;
	choice->function = row->function;
	snprintf(choice->name, sizeof(choice->name), "%s", row->name);
	snprintf(choice->location, sizeof(choice->location), "%s", row->location);
}

static bool is_chosen(const struct top_choice *choice, const struct format_live_row *row)
{
	return strncmp(row->name, choice->name, sizeof(choice->name) - 1) == 0 &&
	       (!choice->location[0] ||
		strncmp(row->location, choice->location, sizeof(choice->location) - 1) == 0);
}

/* Find the chosen function among all: by its id, else by its texts, else the first one. */
static const struct format_live_row *find_chosen(const struct format_live_rows *rows,
						 const struct top_choice *choice)
{
	const struct format_live_row *found = rows->count ? &rows->rows[0] : NULL;

	if (!choice->has_function)
		return found;
	for (size_t i = 0; i < rows->count; i++)
		if (rows->rows[i].id == choice->function && is_chosen(choice, &rows->rows[i]))
			return &rows->rows[i];
	for (size_t i = 0; i < rows->count; i++)
		if (is_chosen(choice, &rows->rows[i]))
			return &rows->rows[i];
	return found;
}

/* @param part 0 callers, 2 callees. */
static int add_part(struct top_table *table, const struct format_live *live,
		    const struct top_choice *choice, uint64_t part, struct failure *why)
{
	struct format_live_query query = top_table_query(choice, FORMAT_LIVE_FUNCTIONS);
	struct format_live_rows rows;
	size_t first;
	int ret;

	if (!top_table_add_text(table, part ? "callees" : "callers", TOP_MARK_TITLE))
		return no_memory(why);
	ret = part ? format_live_callees(live, choice->function, &query, &rows, why)
		   : format_live_callers(live, choice->function, &query, &rows, why);
	if (ret != 0)
		return -1;
	first = table->count;
	ret = add_rows(table, &rows, choice);
	format_live_rows_deinit(&rows);
	for (size_t i = first; i < table->count; i++)
		table->rows[i].id |= part << 32;
	return ret == 0 ? 0 : no_memory(why);
}

static int add_chosen(struct top_table *table, const struct format_live_row *chosen,
		      const struct top_choice *choice, struct failure *why)
{
	struct top_row *row;

	if (!top_table_add_text(table, "function", TOP_MARK_TITLE))
		return no_memory(why);
	row = top_table_add(table, chosen, choice);
	if (!row)
		return no_memory(why);
	row->mark = TOP_MARK_CHOSEN;
	row->id |= (uint64_t)1 << 32;
	return 0;
}

int top_table_calls(struct top_table *table, const struct format_live *live,
		    struct top_choice *choice, struct failure *why)
{
	struct format_live_query query = top_table_query(choice, FORMAT_LIVE_FUNCTIONS);
	const struct format_live_row *chosen;
	struct format_live_rows rows;
	int ret = 0;

	/* The function may be native, or not match the filter. */
	query.filter = NULL;
	if (choice->native == FORMAT_NATIVE_NONE && choice->has_function)
		query.native = FORMAT_NATIVE_PROGRAM;
	if (format_live_query(live, &query, &rows, why) != 0)
		return -1;
	table->samples = samples_of(&rows, choice);
	chosen = find_chosen(&rows, choice);
	if (chosen) {
		choice->function = chosen->id;
		ret = add_part(table, live, choice, 0, why);
		ret = ret ? ret : add_chosen(table, chosen, choice, why);
		ret = ret ? ret : add_part(table, live, choice, 2, why);
	}
	if (chosen && ret == 0)
		top_choice_function(
			choice,
			&table->rows[top_table_find(table, (uint64_t)1 << 32 | chosen->id)]);
	format_live_rows_deinit(&rows);
	return ret;
}

/* ---- Threads ---------------------------------------------------------------------------- */

static void mark_thread(struct top_row *row, const struct top_choice *choice)
{
	row->id = id_of(row, TOP_VIEW_THREADS);
	if (row->pid == choice->pid && row->tid == choice->tid)
		row->mark = TOP_MARK_CHOSEN;
}

static int add_threads(struct top_table *table, const struct format_live_rows *threads, int32_t pid,
		       const struct top_choice *choice)
{
	for (size_t i = 0; i < threads->count; i++) {
		struct top_row *row;

		if (threads->rows[i].pid != pid || !is_shown(&threads->rows[i], choice))
			continue;
		row = top_table_add(table, &threads->rows[i], choice);
		if (!row)
			return -1;
		row->depth = 1;
		mark_thread(row, choice);
	}
	return 0;
}

static int add_processes(struct top_table *table, const struct format_live_rows *processes,
			 const struct format_live_rows *threads, const struct top_choice *choice)
{
	struct top_row *row = top_table_add_text(table, "all", TOP_MARK_NONE);

	if (!row)
		return -1;
	row->self = row->total = table->samples;
	mark_thread(row, choice);
	for (size_t i = 0; i < processes->count; i++) {
		const struct format_live_row *from =
			&processes->rows[choice->is_reversed ? processes->count - 1 - i : i];

		if (!is_shown(from, choice))
			continue;
		row = top_table_add(table, from, choice);
		if (!row)
			return -1;
		row->tid = 0;
		mark_thread(row, choice);
		if (add_threads(table, threads, from->pid, choice) != 0)
			return -1;
	}
	return 0;
}

int top_table_threads(struct top_table *table, const struct format_live *live,
		      const struct top_choice *choice, struct failure *why)
{
	struct format_live_query query = top_table_query(choice, FORMAT_LIVE_PROCESSES);
	struct format_live_rows processes, threads;
	int ret;

	/* Show all processes and threads, so that the user can choose others. */
	query.pid = query.tid = 0;
	if (format_live_query(live, &query, &processes, why) != 0)
		return -1;
	query.view = FORMAT_LIVE_THREADS;
	if (format_live_query(live, &query, &threads, why) != 0) {
		format_live_rows_deinit(&processes);
		return -1;
	}
	table->samples = samples_of(&processes, choice);
	ret = add_processes(table, &processes, &threads, choice);
	format_live_rows_deinit(&processes);
	format_live_rows_deinit(&threads);
	return ret == 0 ? 0 : no_memory(why);
}
