/* SPDX-License-Identifier: MIT */
/*
 * Private to format: which tables does a live view have?
 *
 * In each table except the nodes, entry 0 is "[other]". The nodes begin with the root of all
 * chains; samples folded below a node are in its `other`.
 */
#ifndef FORMAT_LIVE_LIVE_INTERNAL_H
#define FORMAT_LIVE_LIVE_INTERNAL_H

#include "format/live.h"
#include "format/live/live_table.h"
#include "format/view/reduce.h"

enum { LIVE_RECENT = 4096 };

/** Used instead of a node's function: root of a thread; line and trace are pid and tid. */
#define LIVE_THREAD (UINT32_MAX - 1)

/** In live_node_key.trace: the frame is approximate. */
#define LIVE_APPROXIMATE ((uint32_t)1 << 31)

/** The identity of a function; strings by their hashes. */
struct live_function_key {
	uint64_t hash, second;
};

/** A function as shown. Owns its strings. */
struct live_function {
	struct format_function value; /**< Strings as announced, owned. */
	char *shown, *location, *module_name;
	uint32_t module;
	enum view_class class;
};

struct live_line_key {
	uint32_t function, line;
};

struct live_module {
	char *name;
};

struct live_trace_key {
	int32_t pid;
	uint32_t number;
};

/** A trace and the function in which it starts. */
struct live_trace {
	uint32_t function; /**< Id, or FORMAT_LIVE_OTHER. */
	uint64_t compiled[FORMAT_COMPILED_COUNT];
};

/** A coroutine: its address, and the address of the function that it began with; 0: unknown, or
 * the main coroutine. */
struct live_coroutine_key {
	uint64_t address, began;
	int32_t pid;
	uint32_t is_main;
};

struct live_coroutine {
	uint32_t function; /**< The function that it began with, or FORMAT_LIVE_OTHER. */
	int32_t tid;	   /**< The last thread that ran it. */
};

struct live_thread_key {
	int32_t pid, tid;
};

/** One frame of a chain and its parent. */
struct live_node_key {
	uint32_t parent, function, line, trace;
};

/** The end of a chain: what writers need besides its frames. */
struct live_end_key {
	uint32_t node;
	uint8_t state, compiled, full, cut; /**< cut: frames below it were folded. */
	uint32_t trace, trace_function;
};

/** The same samples as the view of a program shows them, in a live view of its own. */
struct live_program {
	struct format_live *live;
	enum view_class *classes;
	struct view_step *steps;
	struct format_frame *frames;
	size_t class_capacity, step_capacity, frame_capacity;
	struct format_text text;
};

struct format_live {
	struct live_program *program; /**< NULL in the live view of a program itself. */
	struct live_table functions, lines, modules, traces, coroutines, threads, processes, nodes,
		ends;
	struct live_function *function_info; /**< By id; room for functions.max. */
	struct live_module *module_info;
	struct live_trace *trace_info;
	struct live_coroutine *coroutine_info;
	uint64_t *node_addresses; /**< Address of the first frame counted there. */
	/** Announced ids: open addressing; id + 1 and the function. Both are neighbours in
	 * memory, because each frame of each sample looks one up. */
	struct live_id {
		uint64_t id;
		uint32_t function;
	} * ids;
	uint32_t id_count, id_size;
	/** The last announced functions, by a hash of their code's address. */
	uint32_t recent[LIVE_RECENT];
	uint32_t window, refresh, serial;
	uint64_t samples, *window_ring, window_samples;
	struct format_live_folded folded;
	bool forgotten;
	/** Already folded in this refresh; until the next one, new entries count as "[other]". */
	bool functions_full, lines_full, nodes_full, others_full;
};

/** Create a live view without `program`. */
int live_create_plain(const struct format_live_options *options, struct format_live **ret_live,
		      struct failure *why);

int live_program_create(const struct format_live_options *options,
			struct live_program **ret_program, struct failure *why);
void live_program_destroy(struct live_program *program);
/** Count a sample. @param from The live view that @p sample's functions were announced to. */
int live_program_sample(struct live_program *program, const struct format_live *from,
			const struct format_sample *sample, struct failure *why);

/** @return The live view that a query asks. */
static inline const struct format_live *live_asked(const struct format_live *live,
						   const struct format_live_query *query)
{
	bool is_program =
		query->native == FORMAT_NATIVE_PROGRAM || query->native == FORMAT_NATIVE_NONE;

	return is_program && live->program ? live->program->live : live;
}

static inline bool live_hides_natives(const struct format_live_query *query)
{
	return query->no_natives || query->native == FORMAT_NATIVE_NONE;
}

/** Make room if there is none. @return 0, or -1 with FAILURE_NO_MEMORY. */
int live_fold_functions(struct format_live *live, struct failure *why);
int live_fold_lines(struct format_live *live, struct failure *why);
int live_fold_nodes(struct format_live *live, struct failure *why);
/** @param ret_map As for live_table_fold(). */
int live_fold_plain(struct live_table *table, uint32_t *ret_map, struct failure *why);

/** Find or add a function. @param ret_id LIVE_GONE if there is no room until the next refresh. */
int live_put_function(struct format_live *live, const struct format_function *function,
		      uint32_t *ret_id, struct failure *why);

/** @return The function announced under an id, or FORMAT_LIVE_OTHER. */
uint32_t live_function_of(const struct format_live *live, uint32_t id);

/** Renumber the functions of all ids; ids of folded functions are forgotten. */
void live_move_ids(struct format_live *live, const uint32_t *map);
void live_free_function(struct live_function *info);

/** Unsorted rows, the start of every query of a tree or a table (live_view.c). */
struct live_rows {
	struct format_live_row *rows;
	size_t count, size;
	size_t left_out; /* by the query's limit */
};

int live_rows_add(struct live_rows *rows, const struct format_live_row *row, struct failure *why);

/** @return A row for a function, without counts. */
struct format_live_row live_function_row(const struct format_live *live, uint32_t function);

/** Sort rows, and drop rows that the query excludes, and those beyond its limit. */
void live_rows_finish(struct live_rows *rows, const struct format_live_query *query);
bool live_row_fits(const struct format_live_row *row, const struct format_live_query *query);
int live_row_compare(const struct format_live_row *a, const struct format_live_row *b,
		     const struct format_live_query *query);

/** @return By node: whether the query asks for its samples; the caller frees it. NULL if memory
 * runs out. */
bool *live_select_nodes(const struct format_live *live, const struct format_live_query *query);

/**
 * Visit all nodes, before and after their children.
 * @param enter May be NULL.
 * @param leave May be NULL.
 * @return 0, or -1 with FAILURE_NO_MEMORY.
 */
typedef void live_visitor(void *context, uint32_t node);
int live_walk_nodes(const struct format_live *live, live_visitor *enter, live_visitor *leave,
		    void *context, struct failure *why);

static inline bool live_is_native(const struct format_live *live, uint32_t function)
{
	return function < live->functions.count && function != FORMAT_LIVE_OTHER &&
	       format_kind_is_native(live->function_info[function].value.kind);
}

static inline const struct live_node_key *live_node(const struct format_live *live, uint32_t node)
{
	return live_table_key(&live->nodes, node);
}

/** @return The counts of an entry in the form of a row. */
struct format_live_count live_count_of(const struct live_count *count);

#endif
