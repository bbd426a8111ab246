/* SPDX-License-Identifier: MIT */
/* What do the parts of ljdump share? */
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

/** Samples of one trace. */
struct dump_samples {
	uint64_t all, exact, approximate, trace_only;
	/** Samples of this trace or of similar ones; not part of the numbers above. */
	uint64_t shared;
};

/** Samples of all traces in a profile. */
struct dump_totals {
	uint64_t all;
	uint64_t unknown; /**< Samples of traces that are not shown: flushed since, or of other
			     processes. */
	uint64_t shared; /**< Samples of traces that are shown several times with the same start. */
};

/**
 * Find the traces that a profile has samples of: traces of the same process with the same number
 * and the same start. If a recorded process is not among @p dumps, a process that was not recorded
 * may replace it, as after a restart. Samples that match several traces, for example of several
 * VMs, belong to none of them, but are shared.
 * @param dumps All dumps that will be shown; borrowed for the call.
 */
void dump_profile_match(struct dump_profile *profile, const struct daemon_dump *dumps,
			size_t count);

/**
 * Get the samples of a trace, after dump_profile_match().
 * @param pid Process of the trace.
 */
struct dump_samples dump_profile_find(const struct dump_profile *profile, pid_t pid,
				      const struct luastate_jit_report *report,
				      const struct luastate_trace *trace);

/** Get the totals, after dump_profile_match(). */
struct dump_totals dump_profile_count(const struct dump_profile *profile);

/**
 * Print JIT reports for people.
 * @param profile May be NULL.
 */
void dump_print_text(FILE *file, const struct daemon_dump *dump,
		     const struct dump_profile *profile);

/**
 * Print all processes as one JSON object.
 * @return 0, or -1 if writing failed.
 */
int dump_print_json(FILE *file, const struct daemon_dump *dumps, size_t count,
		    const struct dump_profile *profile);

/** Why a dump is partial. */
struct dump_reason {
	const char *text; /**< For people. */
	const char *json; /**< For programs. */
	const char *more; /**< For people: further facts; or NULL. */
};

/** All reasons of a dump. */
struct dump_reasons {
	struct dump_reason items[DUMP_REASONS_MAX];
	size_t count;
};

/** Add a reason if it holds. */
void dump_add_reason(struct dump_reasons *reasons, bool holds, const char *text, const char *json);

/** Add the reasons why a dump of stacks or coroutines is not a consistent snapshot, or not
 * complete. */
void dump_add_snapshot_reasons(struct dump_reasons *reasons, bool is_late, bool is_huge,
			       bool has_woken, bool is_exhausted, bool is_core_truncated);

/** Print one line for each reason. */
void dump_print_reasons(FILE *file, const struct dump_reasons *reasons);

/** Print "3 threads frozen for 1.2 ms". */
void dump_print_freeze(FILE *file, size_t frozen, uint64_t pause_ns);

/** Add the keys frozen_threads and pause_ms. */
void dump_add_freeze(struct json_object *object, size_t frozen, uint64_t pause_ns);

/** Add the keys partial and partial_why. */
void dump_add_reasons(struct json_object *object, const struct dump_reasons *reasons);

/** Print the stacks of a process for people. */
void dump_print_stacks(FILE *file, const struct daemon_stacks *stacks);

/**
 * Print the stacks of all processes as one JSON object.
 * @return 0, or -1 if writing failed.
 */
int dump_print_stacks_json(FILE *file, const struct daemon_stacks *stacks, size_t count);

/** Print the coroutines of a process for people, equal ones only once. */
void dump_print_coroutines(FILE *file, const struct daemon_coroutines *coroutines);

/**
 * Print the coroutines of all processes as one JSON object, each one separately.
 * @return 0, or -1 if writing failed.
 */
int dump_print_coroutines_json(FILE *file, const struct daemon_coroutines *coroutines,
			       size_t count);

/** Print the frames of a stack for people, leaf first, on one line each after @p indent blanks;
 * then why the stack is not full. */
void dump_print_frames(FILE *file, const struct daemon_stack *stack, int indent);

/** Add the frames of a stack to a JSON object, and what else is known of the stack. */
void dump_add_frames(struct json_object *object, const struct daemon_stack *stack);

#endif
