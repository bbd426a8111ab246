/* SPDX-License-Identifier: MIT */
/* What does a view show? Rows are copied from the live profile, and stay while it changes. */
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

/** Sort orders of rows. */
enum top_sort { TOP_SORT_SELF, TOP_SORT_TOTAL, TOP_SORT_NAME, TOP_SORT_COUNT };

enum { TOP_FILTER_MAX = 128 };

/** What the user has chosen. */
struct top_choice {
	enum top_view view;
	enum top_sort sort;
	bool is_reversed;
	bool window; /**< Show the last refreshes instead of everything since the start. */
	enum format_native native;
	char filter[TOP_FILTER_MAX];
	int32_t pid, tid; /**< Only this process or thread; 0: all. */
	/** The function whose callers are shown. Its id may change its meaning when the live
	 * profile is folded, so its texts identify it. */
	bool has_function;
	uint32_t function;
	char name[256], location[256];
};

/** Mark before a row. */
enum top_mark {
	TOP_MARK_NONE,
	TOP_MARK_OPEN,
	TOP_MARK_FOLDED,
	TOP_MARK_TITLE,	 /**< Not a row, but the title of the rows below. */
	TOP_MARK_CHOSEN, /**< The chosen function or thread. */
};

/** One row. The table owns the texts. */
struct top_row {
	uint64_t id; /**< Stays the same for the same object in the view's next table. */
	const char *name, *location;
	const char *chunk;   /**< As the VM stores it, unsafe for a terminal; or NULL. */
	uint32_t coroutines; /**< How many the row stands for; 0: it is none. */
	enum format_kind kind;
	enum top_mark mark;
	uint32_t function, line, trace;
	int32_t pid, tid;
	unsigned depth;
	uint64_t self, total;
	uint64_t compiled[FORMAT_COMPILED_COUNT];
};

/** Most processes that have a column of their own. */
enum { TOP_SPLIT_MAX = 8 };

/** How the rows' own samples are split among processes. */
struct top_split {
	int32_t pids[TOP_SPLIT_MAX];
	size_t count;			 /**< 0: they are not. */
	uint64_t samples[TOP_SPLIT_MAX]; /**< The totals of which they are shares. */
	uint64_t *self;			 /**< Rows times processes. */
};

struct top_block;

/** All zero is empty. */
struct top_table {
	struct top_row *rows;
	size_t count, capacity;
	uint64_t samples; /**< The total of which rows are shares. */
	struct top_split split;
	struct top_block *blocks;
};

void top_table_deinit(struct top_table *table);

/**
 * Add a row with copies of the texts.
 * @return The row for further changes, borrowed until the next call; NULL if memory is out.
 */
struct top_row *top_table_add(struct top_table *table, const struct format_live_row *row,
			      const struct top_choice *choice);

/**
 * Add a row that is only a text.
 * @return As top_table_add().
 */
struct top_row *top_table_add_text(struct top_table *table, const char *text, enum top_mark mark);

/** @return The row with an id, or SIZE_MAX; for top_list_update(). */
size_t top_table_find(const void *table, uint64_t id);

/** The query of the live profile for a choice. The filter is borrowed. */
struct format_live_query top_table_query(const struct top_choice *choice,
					 enum format_live_view view);

/**
 * Fill an empty table with a view that is a list: functions, lines, modules, traces, coroutines.
 * @return 0, or -1 with FAILURE_NO_MEMORY.
 */
int top_table_list(struct top_table *table, const struct format_live *live,
		   const struct top_choice *choice, struct failure *why);

/**
 * Split the rows' own samples of functions, lines or modules among some processes.
 * @param pids In the order of their columns; at most TOP_SPLIT_MAX.
 * @return 0, or -1 with FAILURE_NO_MEMORY.
 */
int top_table_split(struct top_table *table, const struct format_live *live,
		    const struct top_choice *choice, const int32_t *pids, size_t count,
		    struct failure *why);

/** Fill a table with callers, the chosen function, and its callees. Chooses the first function if
 * none is chosen, or the chosen one no longer exists. */
int top_table_calls(struct top_table *table, const struct format_live *live,
		    struct top_choice *choice, struct failure *why);

/** Fill a table with processes, and each one's threads below it. */
int top_table_threads(struct top_table *table, const struct format_live *live,
		      const struct top_choice *choice, struct failure *why);

/** Choose what a query requests, as far as the screen supports it. */
void top_choice_begin(struct top_choice *choice, const struct format_live_query *query);

/** Choose the function of a row. */
void top_choice_function(struct top_choice *choice, const struct top_row *row);

#endif
