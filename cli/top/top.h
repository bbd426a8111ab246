/* SPDX-License-Identifier: MIT */
/* What the parts of ljtop share. */
#ifndef CLI_TOP_TOP_H
#define CLI_TOP_TOP_H

#include <stdio.h>

#include "cli/common/options.h"
#include "daemon/watch.h"

/** What the command line says. Strings are those of argv. */
struct arguments {
	struct daemon_options options;
	struct format_live_options live;
	struct format_live_query query; /**< What plain screens show. */
	double delay_s;
	bool batch, json, no_mouse;
	long iterations;  /**< 0: until it ends. */
	long width, rows; /**< Columns; rows of the table, 0 all. */
	pid_t *pids;
	const char **names;
};

/**
 * Read the command line. Help and version are printed and end the process.
 * @param ret_arguments Holds the defaults; release with top_arguments_deinit() in any case.
 * @return -1 to go on, else the exit code, with a message printed.
 */
int top_arguments_parse(int argc, char **argv, struct arguments *ret_arguments);
void top_arguments_deinit(struct arguments *arguments);

/** What the VMs do, in words of people. */
enum top_activity {
	TOP_INTERPRETER,
	TOP_COMPILED,
	TOP_C,
	TOP_GC,
	TOP_RECORDING,
	TOP_EXITS,
	TOP_UNSCHEDULED, /**< Ready, and waiting for a processor. */
	TOP_IDLE,
	TOP_ACTIVITY_COUNT,
};

const char *top_activity_name(enum top_activity activity);

/** How samples were taken and how long that took for nearly all of them, with what was stopped
 *  although the kernel copies threads, and why: "copied p99 9 us". */
void top_describe_capture(const struct daemon_vitals *vitals, char *ret_text, size_t len);

/** Looks at threads by activity, of states and outcomes. @param ret_counts TOP_ACTIVITY_COUNT. */
void top_count_activities(const uint32_t *states, const uint32_t *outcomes, uint64_t *ret_counts);

/** Full chains in percent of looks at running threads that had a VM. */
double top_full_percent(const uint64_t *outcomes);

double top_percent(uint64_t part, uint64_t whole);

/** Per second of a moment. */
double top_rate(uint64_t count, const struct daemon_moment *moment);

/** How long ago a process began. @return -1 unknown. */
double top_uptime_s(const struct daemon_vitals *vitals, size_t process);

/** "native", "Lua", "fast", ... */
const char *top_kind_name(enum format_kind kind);

/** One plain screen. @return 0, or -1 with FAILURE_NO_MEMORY; errors of @p file are left to
 *  ferror(). */
int top_print_text(FILE *file, const struct arguments *arguments, struct daemon_watch *watch,
		   struct failure *why);

/** One object on one line; the keys are an interface: ljtop(1). */
int top_print_json(FILE *file, const struct arguments *arguments, struct daemon_watch *watch,
		   struct failure *why);

#endif
