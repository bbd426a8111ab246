/* SPDX-License-Identifier: MIT */
/* How are values of options read? */
#ifndef CLI_COMMON_OPTION_VALUES_H
#define CLI_COMMON_OPTION_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** Processes; the owner frees the list. */
struct options_pids {
	pid_t *pids;
	size_t count;
};

/** Patterns for names of processes. The texts are borrowed; the owner frees the list. */
struct options_names {
	const char **patterns;
	size_t count;
};

bool options_number(const char *text, long min, long max, long *ret_value);

/** Read seconds from @p min to @p max, with a fraction. */
bool options_seconds(const char *text, double min, double max, double *ret_value);

/** Read a time in seconds, minutes or hours: "90", "90s", "1.5m", "1h". */
bool options_time(const char *text, double min_s, double max_s, double *ret_seconds);

/** Read a size in bytes, KiB, MiB or GiB: "5000", "64K", "10M", "2G". */
bool options_size(const char *text, uint64_t *ret_bytes);

/**
 * Add a pattern.
 * @return false if it is empty, or not an extended regular expression.
 */
bool options_add_name(const char *program, const char *pattern, struct options_names *names);

/**
 * Add a pid, or several separated by commas, each once.
 * @return false if the list is malformed.
 */
bool options_add_pids(const char *program, const char *list, struct options_pids *pids);

#endif
