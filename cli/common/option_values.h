/* SPDX-License-Identifier: MIT */
/* How are values of options read, and which word was probably meant by a wrong one? */
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

/** Patterns for names of processes; release with options_names_deinit(). */
struct options_names {
	const char **patterns;
	size_t count;
	/** Patterns made from names, which the list above also has, and these names (borrowed). */
	char **exact;
	const char **words;
	size_t exact_count;
};

void options_names_deinit(struct options_names *names);

bool options_number(const char *text, long min, long max, long *ret_value);

/**
 * Read a time in milliseconds, seconds, minutes or hours: "500ms", "90s", "1.5m", "1h".
 * @param unit_s The unit of a number without one, in seconds.
 */
bool options_time(const char *text, double unit_s, double min_s, double max_s, double *ret_seconds);

/** Read a size in bytes, KiB, MiB or GiB: "5000", "64K", "10M", "2G". */
bool options_size(const char *text, uint64_t *ret_bytes);

/**
 * Add a pattern.
 * @return false if it is empty, or not an extended regular expression.
 */
bool options_add_name(const char *program, const char *pattern, struct options_names *names);

/** Add a pattern for exactly this name. The kernel's name for a process has at most 15 bytes, so
 * the pattern also matches the first 15 bytes of a longer name. */
void options_add_exact_name(const char *program, const char *name, struct options_names *names);

/** Add a pid, unless the list has it. */
void options_add_pid(const char *program, pid_t pid, struct options_pids *pids);

/**
 * Add a pid, or several separated by commas, each once.
 * @return false if the list is malformed.
 */
bool options_add_pids(const char *program, const char *list, struct options_pids *pids);

/** The word that is most like a wrong one. */
struct options_guess {
	const char *word; /**< Borrowed; NULL: none is like it. */
	unsigned distance;
};

/** Compare a wrong word with one of the right ones; keep the best one. @param guess All zero at
 * first. */
void options_guess(const char *wrong, const char *right, struct options_guess *guess);

#endif
