/* SPDX-License-Identifier: MIT */
/* Which debug files do debuginfod servers have? */
#ifndef SYMBOLS_SPACE_DEBUGINFOD_H
#define SYMBOLS_SPACE_DEBUGINFOD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/failure.h"

/** Longest path of a file in the cache of debuginfod. */
#define SYMBOLS_FETCH_PATH_MAX 4096

struct symbols_fetch {
	const uint8_t *build_id;
	size_t build_id_len;
	char *path; /**< Set if the file came; free() it. The contents are unchecked. */
};

/** When to stop: at a time, or when somebody sets a flag. */
struct symbols_fetch_end {
	uint64_t at_ms;			   /**< CLOCK_MONOTONIC. */
	const volatile sig_atomic_t *stop; /**< May be NULL. */
};

void symbols_fetch_begin(unsigned limit_ms, const volatile sig_atomic_t *stop,
			 struct symbols_fetch_end *ret_end);
bool symbols_fetch_is_over(const struct symbols_fetch_end *end);

/** Whether DEBUGINFOD_URLS names servers. */
bool symbols_fetch_is_asked_for(void);

/**
 * Ask the servers of DEBUGINFOD_URLS for debug files.
 *
 * A child process without capabilities asks for one file after the other. At the end of the time it
 * removes an incomplete file and exits; if it does not exit within 2 s, we kill it. So no server
 * can delay or harm us.
 * @param list Wanted files; paths are NULL. We set the paths of files that came in time.
 * @param why FAILURE_NOT_FOUND (no libdebuginfod.so.1), FAILURE_SYSTEM.
 * Source: debuginfod_find_debuginfo(3), debuginfod-client-config(7).
 */
int symbols_fetch(struct symbols_fetch *list, size_t count, const struct symbols_fetch_end *end,
		  struct failure *why);

#endif
