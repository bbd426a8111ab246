/* SPDX-License-Identifier: MIT */
/*
 * A line on a terminal for what takes longer than a second. Drawn by a thread of its own, at most
 * ten times a second, so that work which tells nothing is shown, too.
 */
#ifndef CLI_REPORT_PROGRESS_H
#define CLI_REPORT_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

/** Begin on standard error, if that is a terminal. Without a thread there is no line.
 *  @param total_bytes What is to be read; 0: unknown. */
void progress_start(uint64_t total_bytes);

/** More bytes were read; for format_profile_set_progress(). */
void progress_add(void *context, size_t bytes);

/** Reading is over. */
void progress_write(void);

/** Erase the line, before anything else goes to the terminal. It does not come again. Does nothing
 * where there is none. */
void progress_stop(void);

#endif
