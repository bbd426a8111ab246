/* SPDX-License-Identifier: MIT */
/* What do the samples of a recording in progress say so far? */
#ifndef FORMAT_LIVE_H
#define FORMAT_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/sample.h"
#include "format/view.h"

/**
 * The data of a live view: samples by function, line, module, trace, coroutine and thread, and all
 * call chains as one tree. One thread feeds and reads it. It never reads a process.
 *
 * Memory is bounded. When a table is full, its cold entries (few samples, long ago) fold into
 * "[other]", the entry with id FORMAT_LIVE_OTHER in each table. format_live_folded() counts the
 * folded entries. Counts of the entries that remain are exact.
 */
struct format_live;

/** Bounds; 0 selects the default. */
struct format_live_options {
	uint32_t functions_max; /**< Distinct functions: 16384 by default, at least 16. */
	uint32_t lines_max;	/**< Distinct lines: 32768 by default, at least 16. */
	uint32_t nodes_max;	/**< Frames of distinct chains: 131072 by default, at least 64. */
	uint32_t window;	/**< Refreshes in the window: 10 by default, at most 600. */
};

int format_live_create(const struct format_live_options *options, struct format_live **ret_live,
		       struct failure *why);
void format_live_destroy(struct format_live *live);

/**
 * Announce the function that samples refer to by @p id. Equal functions may have several ids. If a
 * Lua function was announced without a name, a later announcement adds the name. @p id may be any
 * number; it may have meant another function before.
 * @return 0, or -1 with FAILURE_NO_MEMORY.
 */
int format_live_function(struct format_live *live, uint32_t id,
			 const struct format_function *function, struct failure *why);

/**
 * Count a sample. Frames whose ids were not announced, or were forgotten, count as "[other]".
 * @return 0, or -1 with FAILURE_NO_MEMORY; then only a part of the sample is counted.
 */
int format_live_sample(struct format_live *live, const struct format_sample *sample,
		       struct failure *why);

/** End one refresh of the screen and move the window. @return 0, or -1 with FAILURE_NO_MEMORY. */
int format_live_refresh(struct format_live *live, struct failure *why);

/** Set all counts to zero. Functions keep their ids. */
void format_live_reset(struct format_live *live);

/** Samples so far, and samples in the window. The window includes the unfinished refresh. */
uint64_t format_live_samples(const struct format_live *live);
uint64_t format_live_window_samples(const struct format_live *live);

/** Entries folded into "[other]" since the beginning. */
struct format_live_folded {
	uint64_t functions, lines, nodes;
};

struct format_live_folded format_live_folded(const struct format_live *live);

/** Whether functions were forgotten since the last call. If so, the caller must announce all ids
 * again when samples next use them. */
bool format_live_take_forgotten(struct format_live *live);

/** Id of "[other]" in each table. */
enum { FORMAT_LIVE_OTHER = 0 };

/** Samples of one entry. A recursive function counts once per sample in totals. */
struct format_live_count {
	uint64_t self;	/**< The entry is the leaf. */
	uint64_t guest; /**< The entry is the leafmost frame that is not native. This adds the
			   native code that it calls to its own samples. 0 for native code. */
	uint64_t total; /**< The entry is in the chain. */
	uint64_t window_self, window_guest, window_total; /**< The same counts for the window. */
};

/** One row of a table. The texts are safe to print on a terminal. They are valid until the rows
 * are released or the profile receives another function. */
struct format_live_row {
	/** FUNCTIONS, LINES: stable until format_live_take_forgotten() returns true. */
	uint32_t id;
	uint32_t function; /**< Id of the function; also set for LINES. */
	enum format_kind kind;
	const char *name; /**< "burn_heavy", "lj_gc_step", "[gc sweep]", "trace 12"; for MODULES a
			     file or library. Never NULL, may be "". */
	const char *location; /**< "burn.lua:12": the function's first line, or the current line for
				 LINES; "" if unknown. */
	const char *module; /**< File of a Lua function, library or program of a native function, or
			       "". */
	const char *chunk; /**< Lua: the chunk name as the VM stores it, not safe for a terminal; or
			      NULL. */
	uint32_t line;	   /**< LINES: the line. FUNCTIONS: the first line. Otherwise 0. */
	/** THREADS has both; PROCESSES, TRACES and COROUTINES have only pid. Otherwise 0. */
	int32_t pid, tid;
	uint64_t coroutine;  /**< COROUTINES: address of its lua_State; otherwise 0. */
	uint32_t coroutines; /**< COROUTINE_GROUPS: how many there were; otherwise 0. */
	uint32_t trace;	     /**< TRACES: the trace number. */
	/** TRACES: samples by how well the location in the trace is known, since the beginning. */
	uint64_t compiled[FORMAT_COMPILED_COUNT];
	struct format_live_count count;
};

enum format_live_view {
	FORMAT_LIVE_FUNCTIONS,
	FORMAT_LIVE_LINES, /**< Lines of Lua functions; whole functions of other kinds. */
	FORMAT_LIVE_MODULES,
	FORMAT_LIVE_TRACES, /**< self and guest count samples of the trace and of code that it
			       calls. */
	/** self and guest: the coroutine runs. total: the coroutine, or one that it resumed,
	 * runs. The function is the one that the coroutine began with. Addresses are reused, so
	 * the address and the function together identify a coroutine. The main coroutine of a VM
	 * is called "main", a coroutine whose function is unknown "?". */
	FORMAT_LIVE_COROUTINES,
	FORMAT_LIVE_THREADS,
	FORMAT_LIVE_PROCESSES,
	/** COROUTINES that began with the same function as one row, main coroutines as another. A
	 * sample may count for several of them, so `total` is at most all samples. */
	FORMAT_LIVE_COROUTINE_GROUPS,
	FORMAT_LIVE_VIEW_COUNT,
};

/** Sort order of rows, largest first. Ties go by the other counts, then by first appearance.
 * Without natives, guest replaces self. */
enum format_live_order {
	FORMAT_LIVE_SELF,
	FORMAT_LIVE_TOTAL,
	FORMAT_LIVE_WINDOW_SELF,
	FORMAT_LIVE_WINDOW_TOTAL,
	FORMAT_LIVE_NAME, /**< From A to Z. */
	FORMAT_LIVE_ORDER_COUNT,
};

/** A request for rows. */
struct format_live_query {
	enum format_live_view view;
	enum format_live_order order;
	/** DEFAULT means ALL, and NONE means PROGRAM without natives. Ids of rows of ALL mean
	 * nothing to the other two, and the other way round. */
	enum format_native native;
	bool no_natives;    /**< Omit native functions; what they use counts to their callers. */
	const char *filter; /**< Only rows whose name or location contains this text, in any case;
			       NULL or "": all rows. */
	int32_t pid, tid;   /**< Only samples of this process or thread; 0: all. These counts come
			       from the call tree, where some chains may be folded. */
	uint32_t max;	    /**< Most rows to return, the first in this order; 0: all. */
};

struct format_live_rows {
	struct format_live_row *rows;
	size_t count;
	size_t left_out; /**< Rows that there are besides. */
	/** Sums over the requested process or thread, or over all. */
	uint64_t samples, window_samples;
	char *texts; /**< Memory of the rows' texts; private. */
};

/**
 * Sort and filter the rows of one view.
 * @param ret_rows Release with format_live_rows_deinit().
 * @return 0, or -1 with FAILURE_NO_MEMORY.
 */
int format_live_query(const struct format_live *live, const struct format_live_query *query,
		      struct format_live_rows *ret_rows, struct failure *why);
void format_live_rows_deinit(struct format_live_rows *rows);

/**
 * Direct callers of a function, or its direct callees. `total` counts samples that contain the
 * call; `self` counts samples whose leaf is the callee. The view of @p query is ignored.
 * @param function Id of a FUNCTIONS row.
 */
int format_live_callers(const struct format_live *live, uint32_t function,
			const struct format_live_query *query, struct format_live_rows *ret_rows,
			struct failure *why);
int format_live_callees(const struct format_live *live, uint32_t function,
			const struct format_live_query *query, struct format_live_rows *ret_rows,
			struct failure *why);

/** Marks the absence of a node. */
#define FORMAT_LIVE_NO_NODE UINT32_MAX

/** One frame of the call tree. The first node is the root, which has all samples. */
struct format_live_node {
	struct format_live_row row; /**< Filled as for FUNCTIONS; the root has the name "all". */
	uint64_t key;		    /**< Equal for equal chains of functions, in every tree. */
	uint32_t parent, depth;
	uint32_t first_child, next; /**< Children, in the requested order. */
	uint32_t child_count;
};

/** A call tree by function. Parents come before children. */
struct format_live_tree {
	struct format_live_node *nodes;
	size_t count;
};

/**
 * Build the call tree. The view of @p query is ignored; a filter keeps the chains with a matching
 * frame.
 * @param ret_tree Release with format_live_tree_deinit().
 */
int format_live_tree(const struct format_live *live, const struct format_live_query *query,
		     struct format_live_tree *ret_tree, struct failure *why);
void format_live_tree_deinit(struct format_live_tree *tree);

/** @return Whether format_live_write() can write this format: "sysprof" or any name in
 * format_reports[]. The written profile has no times. */
bool format_live_can_write(const char *format);

/**
 * Write the samples so far. Folded frames are written as "[other]".
 * @param title Used by formats that have a title; may be NULL.
 * @param fd Closed by this function.
 * @return 0, or -1: FAILURE_NOT_FOUND (no such format), FAILURE_NO_MEMORY, or the file's failure.
 */
int format_live_write(const struct format_live *live, const char *format, const char *title, int fd,
		      struct failure *why);

#endif
