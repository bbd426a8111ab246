/* SPDX-License-Identifier: MIT */
/* Options that several commands have, and how their values are read. */
#ifndef CLI_COMMON_OPTIONS_H
#define CLI_COMMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/record.h"

/** Of --duration; longer is for ever. */
#define DURATION_MIN_S 1e-9
#define DURATION_MAX_S 1e9

/* Exit codes are an interface: ljrecord(1), ljdump(1). */
enum {
	EXIT_PROFILE = 0,
	EXIT_USAGE = 1,
	EXIT_DENIED = 2,
	EXIT_NO_LUAJIT = 3,
	EXIT_OUTPUT = 4,
	EXIT_ENDED = 5,
	EXIT_SYSTEM = 6,
	EXIT_EMPTY = 7,
};

/** What a command line says; each command has its own. */
struct arguments;

/** One option. */
struct choice {
	const char *name;
	char letter; /**< 0 without a short form. */
	bool (*take)(struct arguments *arguments, const char *text);
	const char
		*refused; /**< The message for a wrong argument; NULL where it takes any, or none.
			   */
	bool is_alone;	  /**< Takes no argument. */
};

/** A command's options; at most OPTIONS_MAX. */
struct options {
	const char *program;
	const struct choice *choices;
	size_t count;
};

enum { OPTIONS_MAX = 64 };

/**
 * Read the options of a command line, up to the first argument that is none. Standard files that
 * are closed are occupied first: using them fails, and nothing else gets their numbers.
 * @param ret_first Index of that one.
 * @return -1 to go on, else the exit code, with a message printed.
 */
int options_parse(const struct options *options, int argc, char **argv, struct arguments *arguments,
		  int *ret_first);

/** Print what is wrong, and that there is a help. @param argument May be NULL. @return EXIT_USAGE.
 */
int options_refuse(const char *program, const char *text, const char *argument);

/** The exit code of how something ended. */
int options_exit_code(enum daemon_end end);

bool options_number(const char *text, long min, long max, long *ret_value);

/** Room for one more behind @p count items. Exits where there is none. */
void *options_one_more(const char *program, void *items, size_t count, size_t size);

/** Read seconds from @p min to @p max, with a fraction. */
bool options_seconds(const char *text, double min, double max, double *ret_value);

/** Read a time in seconds, minutes or hours: "90", "90s", "1.5m", "1h". */
bool options_time(const char *text, double min_s, double max_s, double *ret_seconds);

/** Read a size in bytes, KiB, MiB or GiB: "5000", "64K", "10M", "2G". */
bool options_size(const char *text, uint64_t *ret_bytes);

/** Read a way to take samples: "auto", "kernel" or "stop". */
bool options_capture(const char *text, enum daemon_capture *ret_capture);

/** Read a frequency from 1 to 10000 Hz. */
bool options_rate(const char *text, unsigned *ret_rate_hz);

/** Add a pattern for names of processes. @return false where it is no extended regular expression,
 *  or empty. @param names Grows; borrowed texts. */
bool options_add_name(const char *program, const char *pattern, const char ***names, size_t *count);

/** Add a pid, or several with commas between them, each once. @return false where the list is none.
 */
bool options_add_pids(const char *program, const char *list, pid_t **pids, size_t *count);

#endif
