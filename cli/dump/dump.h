/* SPDX-License-Identifier: MIT */
/* What the parts of ljdump share. */
#ifndef CLI_DUMP_DUMP_H
#define CLI_DUMP_DUMP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/common/json_keys.h"
#include "daemon/dump.h"
#include "luastate/jit_report.h"
#include "luastate/luastate.h"

enum { DUMP_REASONS_MAX = 12 };

struct json_object;

/** Samples by trace, from the numbers of a recording. */
struct dump_profile;

/**
 * Read a file that ljrecord --stats has written.
 * @return 0, or -1 with a message printed.
 */
int dump_profile_read(const char *path, struct dump_profile **ret_profile);
void dump_profile_destroy(struct dump_profile *profile);

/** How often a trace was met. */
struct dump_samples {
	uint64_t all, exact, approximate, trace_only;
	/** Of this trace or of others that are like it; not in the numbers above. */
	uint64_t shared;
};

/** Samples of all traces in a profile. */
struct dump_totals {
	uint64_t all;
	uint64_t
		unknown; /**< Of traces that are not shown: flushed since, or of other processes. */
	uint64_t shared; /**< Of traces that are shown more than once, alike. */
};

/**
 * Find the traces that a profile has samples of: those of the same process with the same number
 * and the same start. In place of a recorded process that is not among @p dumps stands one that was
 * not recorded, as after a restart. What fits several traces, of several VMs for instance, is
 * nobody's, but shared.
 * @param dumps All that will be shown; not needed afterwards.
 */
void dump_profile_match(struct dump_profile *profile, const struct daemon_dump *dumps,
			size_t count);

/** After dump_profile_match(). @param pid Process that the trace is of. */
struct dump_samples dump_profile_find(const struct dump_profile *profile, pid_t pid,
				      const struct luastate_jit_report *report,
				      const struct luastate_trace *trace);

/** After dump_profile_match(). */
struct dump_totals dump_profile_count(const struct dump_profile *profile);

/** For people. @param profile May be NULL. */
void dump_print_text(FILE *file, const struct daemon_dump *dump,
		     const struct dump_profile *profile);

/** All processes as one JSON object. @return 0, or -1 where it did not arrive. */
int dump_print_json(FILE *file, const struct daemon_dump *dumps, size_t count,
		    const struct dump_profile *profile);

/** Why a dump is partial. */
struct dump_reason {
	const char *text; /**< For people. */
	const char *json; /**< For programs. */
	const char *more; /**< For people: what else is known; or NULL. */
};

/** All reasons of a dump. */
struct dump_reasons {
	struct dump_reason items[DUMP_REASONS_MAX];
	size_t count;
};

/** Add one where it holds. */
void dump_add_reason(struct dump_reasons *reasons, bool holds, const char *text, const char *json);

/** Why not all is of one moment, or there: what dumps of stacks and of coroutines share. */
void dump_add_snapshot_reasons(struct dump_reasons *reasons, bool is_late, bool is_huge,
			       bool has_woken, bool is_exhausted, bool is_core_cut);

/** One line each. */
void dump_print_reasons(FILE *file, const struct dump_reasons *reasons);

/** "3 threads held for 1.2 ms". */
void dump_print_freeze(FILE *file, size_t held, uint64_t pause_ns);

/** Add the keys frozen_threads and pause_ms. */
void dump_add_freeze(struct json_object *object, size_t held, uint64_t pause_ns);

/** Add the keys partial and partial_why. */
void dump_add_reasons(struct json_object *object, const struct dump_reasons *reasons);

/** The stacks of a process, for people. */
void dump_print_stacks(FILE *file, const struct daemon_stacks *stacks);

/** Those of all processes as one JSON object. @return 0, or -1 where it did not arrive. */
int dump_print_stacks_json(FILE *file, const struct daemon_stacks *stacks, size_t count);

/** The coroutines of a process, for people: those that do the same are shown once. */
void dump_print_coroutines(FILE *file, const struct daemon_coroutines *coroutines);

/** Those of all processes as one JSON object, each on its own. @return 0, or -1 where it did not
 *  arrive. */
int dump_print_coroutines_json(FILE *file, const struct daemon_coroutines *coroutines,
			       size_t count);

/** Frames of a stack for people, one line each, leaf first, with @p indent blanks before it; and
 * why it is not whole. */
void dump_print_frames(FILE *file, const struct daemon_stack *stack, int indent);

/** Add the frames of a stack to a JSON object, and what else is known of it. */
void dump_add_frames(struct json_object *object, const struct daemon_stack *stack);

#endif
