/* SPDX-License-Identifier: MIT */
/*
 * How does a line on a terminal show the progress of work that takes longer than a second?
 *
 * A separate thread draws it, at most ten times a second, so it also shows work that reports
 * nothing.
 */
#ifndef CLI_REPORT_PROGRESS_H
#define CLI_REPORT_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

/**
 * Start the line on standard error, if that is a terminal. If the thread does not start, there is
 * no line.
 * @param total_bytes Bytes to read; 0: unknown.
 */
void progress_start(uint64_t total_bytes);

/** Add bytes that were read; for format_profile_set_progress(). */
void progress_add(void *context, size_t bytes);

/** Note that reading is over. */
void progress_write(void);

/** Erase the line for good, before anything else goes to the terminal. Does nothing if there is
 * none. */
void progress_stop(void);

#endif
