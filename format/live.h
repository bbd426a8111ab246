/* SPDX-License-Identifier: MIT */
/* What do the samples of a recording that goes on say so far? */
#ifndef FORMAT_LIVE_H
#define FORMAT_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/sample.h"

/**
 * What a live view shows: samples by function, by line, by module, by trace, by coroutine and by
 * thread, and all call chains as one tree. Fed by one caller, in one thread; never looks at a
 * process.
 *
 * Memory is bounded whatever comes: where a table is full, the cold part of it, what was seen
 * longest ago and least, folds into "[other]", the entry with id FORMAT_LIVE_OTHER in each table,
 * and is counted (format_live_folded()). Counts of what stays are exact.
 */
struct format_live;

/** Bounds; 0 is the default. */
struct format_live_options {
	uint32_t functions_max; /**< Distinct functions, 16384; at least 16. */
	uint32_t lines_max;	/**< Distinct lines, 32768; at least 16. */
	uint32_t nodes_max;	/**< Frames of distinct chains, 131072; at least 64. */
	uint32_t window;	/**< Refreshes that the window spans, 10; at most 600. */
};

int format_live_create(const struct format_live_options *options, struct format_live **ret_live,
		       struct failure *why);
void format_live_destroy(struct format_live *live);

/** Say which function samples mean by @p id. Equal ones, announced under several ids, are one; a
 *  Lua function that was announced without its name takes it. The id may be any number, also one
 *  that meant another function before. @return 0, or -1 with FAILURE_NO_MEMORY. */
int format_live_function(struct format_live *live, uint32_t id,
			 const struct format_function *function, struct failure *why);

/** Count a sample. Frames whose ids were not announced, or were forgotten, count as "[other]".
 *  @return 0, or -1 with FAILURE_NO_MEMORY: the sample is then counted in part. */
int format_live_sample(struct format_live *live, const struct format_sample *sample,
		       struct failure *why);

/** One refresh of the screen is over: the window moves on. @return 0, or -1 with FAILURE_NO_MEMORY.
 */
int format_live_refresh(struct format_live *live, struct failure *why);

/** Count from zero. Functions keep their ids. */
void format_live_reset(struct format_live *live);

/** Samples so far; in the window: of the refreshes that it spans, the unfinished one included. */
uint64_t format_live_samples(const struct format_live *live);
uint64_t format_live_window_samples(const struct format_live *live);

/** What was folded into "[other]" since the beginning. */
struct format_live_folded {
	uint64_t functions, lines, nodes;
};

struct format_live_folded format_live_folded(const struct format_live *live);

/** Whether functions were forgotten since the last call: their ids are to be announced anew where
 *  they are met again. */
bool format_live_take_forgotten(struct format_live *live);

/** Id of "[other]" in each table. */
enum { FORMAT_LIVE_OTHER = 0 };

/** Samples of something. A function that calls itself counts once per sample in totals. */
struct format_live_count {
	uint64_t self;	/**< It is the leaf. */
	uint64_t guest; /**< It is the leafmost frame that is not native: its own samples, with
			     those of native code that it calls. 0 for native code. */
	uint64_t total; /**< It is in the chain. */
	uint64_t window_self, window_guest, window_total; /**< The same, in the window. */
};

/** One row of a table. Texts are fit for a terminal, and valid until the rows are released or the
 *  profile takes another function. */
struct format_live_row {
	/** FUNCTIONS, LINES: stays what it is until format_live_take_forgotten() tells. */
	uint32_t id;
	uint32_t function; /**< Id of the function; LINES too. */
	enum format_kind kind;
	const char *name;     /**< "burn_heavy", "lj_gc_step", "[gc sweep]", "trace 12"; file or
				 library of a MODULES row. Never NULL, may be "". */
	const char *location; /**< "burn.lua:12", where the function begins, or the line; "" where
			      there is none. */
	const char *module;   /**< File of a Lua function, library or program of a native one, or
				 "". */
	const char *chunk; /**< Lua: the chunk name as the VM stores it, not fit for a terminal; or
			      NULL. */
	uint32_t line;	   /**< LINES: the line. FUNCTIONS: the first line. Else 0. */
	/** THREADS; PROCESSES, TRACES and COROUTINES have pid alone. Else 0. */
	int32_t pid, tid;
	uint64_t coroutine; /**< COROUTINES: its lua_State; else 0. */
	uint32_t trace;	    /**< TRACES: its number. */
	/** TRACES: how well the place in it was known, counts since the beginning. */
	uint64_t compiled[FORMAT_COMPILED_COUNT];
	struct format_live_count count;
};

enum format_live_view {
	FORMAT_LIVE_FUNCTIONS,
	FORMAT_LIVE_LINES, /**< Lines of Lua functions; other functions as they are. */
	FORMAT_LIVE_MODULES,
	FORMAT_LIVE_TRACES, /**< self and guest: a trace runs, or what it calls. */
	/** self and guest: it runs; total: or what it has resumed does. The function is the one
	 * that it began with: as addresses are used again, both tell it from others. The main one
	 * of a VM has the name "main", one of which that is not known "?". */
	FORMAT_LIVE_COROUTINES,
	FORMAT_LIVE_THREADS,
	FORMAT_LIVE_PROCESSES,
	FORMAT_LIVE_VIEW_COUNT,
};

/** What rows are sorted by, the most first; equal ones by the other counts, then in the order in
 *  which they were met. With natives left out, guest stands for self. */
enum format_live_order {
	FORMAT_LIVE_SELF,
	FORMAT_LIVE_TOTAL,
	FORMAT_LIVE_WINDOW_SELF,
	FORMAT_LIVE_WINDOW_TOTAL,
	FORMAT_LIVE_NAME, /**< From A to Z. */
	FORMAT_LIVE_ORDER_COUNT,
};

/** What is asked for. */
struct format_live_query {
	enum format_live_view view;
	enum format_live_order order;
	bool no_natives;    /**< Leave out native functions. */
	const char *filter; /**< Only what has this in name or place, in any case; NULL or "": all.
			     */
	int32_t pid, tid;   /**< Only samples of this process, or thread; 0: of all. From the tree,
			       where some chains may be folded. */
};

struct format_live_rows {
	struct format_live_row *rows;
	size_t count;
	/** The sums over the process or thread that was asked for, or all. */
	uint64_t samples, window_samples;
	char *texts; /**< Of the rows; private. */
};

/** @param ret_rows Release with format_live_rows_deinit(). @return 0, or -1 with FAILURE_NO_MEMORY.
 */
int format_live_query(const struct format_live *live, const struct format_live_query *query,
		      struct format_live_rows *ret_rows, struct failure *why);
void format_live_rows_deinit(struct format_live_rows *rows);

/** Direct callers of a function, or what it calls. `total` counts the samples with such a call;
 *  `self` those in which the callee is the leaf. Of @p query all but the view counts.
 *  @param function Id of a FUNCTIONS row. */
int format_live_callers(const struct format_live *live, uint32_t function,
			const struct format_live_query *query, struct format_live_rows *ret_rows,
			struct failure *why);
int format_live_callees(const struct format_live *live, uint32_t function,
			const struct format_live_query *query, struct format_live_rows *ret_rows,
			struct failure *why);

/** No node. */
#define FORMAT_LIVE_NO_NODE UINT32_MAX

/** One frame of the call tree. The first node is the root: all samples. */
struct format_live_node {
	struct format_live_row row; /**< As of FUNCTIONS; the root has the name "all". */
	uint64_t key;		    /**< The same in each tree that has this chain of functions. */
	uint32_t parent, depth;
	uint32_t first_child, next; /**< Children, sorted as was asked for. */
	uint32_t child_count;
};

/** A call tree by functions; parents before children. */
struct format_live_tree {
	struct format_live_node *nodes;
	size_t count;
};

/** @param query All but the view; a filter keeps chains through what fits.
 *  @param ret_tree Release with format_live_tree_deinit(). */
int format_live_tree(const struct format_live *live, const struct format_live_query *query,
		     struct format_live_tree *ret_tree, struct failure *why);
void format_live_tree_deinit(struct format_live_tree *tree);

/** The name of a writer or report in which a live profile can be written, "sysprof" or any of
 *  format_reports[]; these have no times. @return Whether it is one. */
bool format_live_can_write(const char *format);

/**
 * Write what was sampled so far. Chains that were folded have "[other]" in place of their frames.
 * @param title For those that have one; may be NULL.
 * @param fd Taken over, and closed.
 * @return 0, or -1: FAILURE_NOT_FOUND (no such format), FAILURE_NO_MEMORY, or of the file.
 */
int format_live_write(const struct format_live *live, const char *format, const char *title, int fd,
		      struct failure *why);

#endif
