/* SPDX-License-Identifier: MIT */
/* For tests of the writer: what a recorder sends to it, and what is in its files then. All of it
 * fails the test that calls it where something goes wrong, but for what returns a result. */
#ifndef LJPROF_TESTS_RECORDER_H
#define LJPROF_TESTS_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/writer/writer.h"

enum {
	RECORDER_DEADLINE_MS = 20000,
	RECORDER_FUNCTIONS = 8,
};

/** An empty file, of each test that has the two below. */
extern char recorder_path[64];

int recorder_setup(void **state);
int recorder_teardown(void **state);

/** @param ret_writer Has begun; the caller's to finish. */
void recorder_start_as(const struct format_writer_ops *format, const char *output,
		       struct writer *ret_writer);
/** A sysprof stream. */
void recorder_start(const char *output, struct writer *ret_writer);
/** Several at once; formats by their names. */
void recorder_start_all(const char *const *outputs, size_t count, struct writer *ret_writer);
/** As recorder_start_all(), each as a series of files; see struct writer_options. */
void recorder_start_series(const char *const *outputs, size_t count, uint64_t rotate_ns,
			   unsigned keep, struct writer *ret_writer);

/** RECORDER_FUNCTIONS of them, which samples have. */
void recorder_put_functions(struct writer *writer);
/** One of 20 frames, which @p number decides; queued only. @return 0, or -1 with @p why. */
int recorder_put_sample_of(struct writer *writer, uint32_t number, uint64_t time_ns,
			   struct failure *why);
int recorder_put_sample(struct writer *writer, uint32_t number, struct failure *why);
/** So many, and send them. */
int recorder_put(struct writer *writer, uint32_t count, struct failure *why);

/** Samples in a stream, which is readable. */
long recorder_samples_in(const char *name);
/** Until the file is a stream, which it is as soon as the writer has opened it. */
void recorder_await_profile(const char *name);
/** @return Whether it came to have so many. */
bool recorder_await_samples(const char *name, long count);

#endif
