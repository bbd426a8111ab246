/* SPDX-License-Identifier: MIT */
/* What a view shows: rows copied out of the live profile, so that they stay while it goes on. */
#ifndef CLI_TOP_MODEL_TOP_TABLE_H
#define CLI_TOP_MODEL_TOP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/live.h"

enum top_view {
	TOP_VIEW_FUNCTIONS,
	TOP_VIEW_LINES,
	TOP_VIEW_TREE,
	TOP_VIEW_CALLS,
	TOP_VIEW_MODULES,
	TOP_VIEW_TRACES,
	TOP_VIEW_COROUTINES,
	TOP_VIEW_THREADS,
	TOP_VIEW_SOURCE,
	TOP_VIEW_COUNT,
};

/** What rows are sorted by. */
enum top_sort { TOP_SORT_SELF, TOP_SORT_TOTAL, TOP_SORT_NAME, TOP_SORT_COUNT };

enum { TOP_FILTER_MAX = 128 };

/** What the user has chosen. */
struct top_choice {
	enum top_view view;
	enum top_sort sort;
	bool is_reversed;
	bool window; /**< The last refreshes instead of all since the start. */
	bool no_natives;
	char filter[TOP_FILTER_MAX];
	int32_t pid, tid; /**< Only this process, or thread; 0: all. */
	/** The function whose callers are shown; after a fold its id may mean another one, which
	 * the texts tell. */
	bool has_function;
	uint32_t function;
	char name[256], location[256];
};

/** What stands before a row. */
enum top_mark {
	TOP_MARK_NONE,
	TOP_MARK_OPEN,
	TOP_MARK_FOLDED,
	TOP_MARK_TITLE,	 /**< No row but the title of those below. */
	TOP_MARK_CHOSEN, /**< The function or thread that was chosen. */
};

/** One row. Texts are the table's. */
struct top_row {
	uint64_t id; /**< The same for the same thing in the next table of the view. */
	const char *name, *location;
	const char *chunk; /**< As the VM stores it, not fit for a terminal; or NULL. */
	enum format_kind kind;
	enum top_mark mark;
	uint32_t function, line, trace;
	uint64_t coroutine; /**< Address, of coroutines. */
	int32_t pid, tid;
	unsigned depth;
	uint64_t self, total;
	uint64_t compiled[FORMAT_COMPILED_COUNT];
};

struct top_block;

/** All zero is empty. */
struct top_table {
	struct top_row *rows;
	size_t count, capacity;
	uint64_t samples; /**< What all of it is a part of. */
	struct top_block *blocks;
};

void top_table_deinit(struct top_table *table);

/** Add a row with copies of the texts. @return It, to be filled further, borrowed until the next;
 *  or NULL without memory. */
struct top_row *top_table_add(struct top_table *table, const struct format_live_row *row,
			      const struct top_choice *choice);

/** Add a row that is only a text. @return As top_table_add(). */
struct top_row *top_table_add_text(struct top_table *table, const char *text, enum top_mark mark);

/** @return The row with an id, or SIZE_MAX: as top_list_update() asks for it. */
size_t top_table_find(const void *table, uint64_t id);

/** What the choice asks of the live profile. The filter is borrowed. */
struct format_live_query top_table_query(const struct top_choice *choice,
					 enum format_live_view view);

/** Put the rows of a view that is a list into an empty table: functions, lines, modules, traces,
 *  coroutines.
 *  @return 0, or -1 with FAILURE_NO_MEMORY. */
int top_table_list(struct top_table *table, const struct format_live *live,
		   const struct top_choice *choice, struct failure *why);

/** Callers, the chosen function, and what it calls. Chooses the first function where none is
 * chosen, or the chosen one is gone. */
int top_table_calls(struct top_table *table, const struct format_live *live,
		    struct top_choice *choice, struct failure *why);

/** Processes, and below each its threads. */
int top_table_threads(struct top_table *table, const struct format_live *live,
		      const struct top_choice *choice, struct failure *why);

/** Choose what a query asks for, as far as there is something like it on the screen. */
void top_choice_begin(struct top_choice *choice, const struct format_live_query *query);

/** Choose the function that a row is of. */
void top_choice_function(struct top_choice *choice, const struct top_row *row);

#endif
