/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FORMAT_CHAINS_H
#define TESTS_FORMAT_CHAINS_H

#include "format/report.h"

/*
 * Call chains for tests: made by hand, written by the sysprof writer, and read back in two ways.
 * All functions fail the running cmocka test on any error.
 */

#define CHAINS_FRAMES_MAX 64

struct chains {
	struct format_functions *functions;
	struct format_sink *sink;
	void *writer;
	FILE *file;
	struct format_frame frames[CHAINS_FRAMES_MAX]; /* Root first until sampled. */
	uint32_t count;
};

void chains_open(struct chains *chains, bool first_lines);
void chains_open_with(struct chains *chains, const struct format_options *options);
void chains_close(struct chains *chains);

uint32_t chains_native(struct chains *chains, uint64_t address, const char *name);
uint32_t chains_lua(struct chains *chains, uint64_t proto, const char *chunk, int64_t first_line,
		    const char *name);
uint32_t chains_fast(struct chains *chains, const char *name);
uint32_t chains_cfunc(struct chains *chains, uint64_t address, const char *name);
uint32_t chains_trace(struct chains *chains, uint64_t number, const char *chunk, int64_t line);
/** A trace that starts in the prototype @p proto, which begins at line @p proto_line. */
uint32_t chains_trace_in(struct chains *chains, uint64_t number, const char *chunk, int64_t line,
			 uint64_t proto, int64_t proto_line);
uint32_t chains_pseudo(struct chains *chains, const char *name);
uint32_t chains_process(struct chains *chains, uint64_t pid, const char *name);

/** Add a frame leafward of the last one. */
void chains_push(struct chains *chains, uint32_t function, uint64_t address, uint32_t line);

/** Say that the frame pushed last is compiled into a trace. */
void chains_mark(struct chains *chains, uint32_t trace, bool approximate);

/** Hand the frames to the writer and start a new chain. */
void chains_sample(struct chains *chains, enum format_state state);
/** The same with all that a sample may tell. */
void chains_sample_as(struct chains *chains, enum format_state state, uint32_t trace,
		      uint32_t weight);

/** The same; @p like tells all but the frames. */
void chains_sample_like(struct chains *chains, const struct format_sample *like);

void chains_commit(struct chains *chains);

/** Report of the stream by our reader; to be freed. */
char *chains_report(struct chains *chains, const char *report);

/** The same with compiled frames annotated. */
char *chains_report_annotated(struct chains *chains, const char *report,
			      enum format_annotate annotate);

/** The stream by a second implementation of the reference's rules: lines "a;b;c; N", sorted, names
 *  without addresses; to be freed. */
char *chains_reference(struct chains *chains);

/** A temporary file of that content; to be closed. */
FILE *chains_file_of(const void *bytes, size_t len);

/** A report of any profile as text; to be freed. */
char *chains_report_as(FILE *file, const char *report, const struct format_report_options *options);
char *chains_report_of(FILE *file, const char *report);

#endif
