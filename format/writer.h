/* SPDX-License-Identifier: MIT */
/* How are samples written while a recording runs? */
#ifndef FORMAT_WRITER_H
#define FORMAT_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "format/sample.h"

/* ---- Sinks: where bytes of a profile go ------------------------------------------------- */

/**
 * Output file that is a readable profile after each commit, however the writer ends.
 *
 * Bytes are buffered. A commit writes them, followed by a trailer (the format's end mark). In a
 * regular file, a commit first writes the new bytes behind the old trailer's first byte and then
 * replaces that byte, so the file is a complete profile at any instant. If the disk is full, the
 * file keeps the last committed state. On pipes and devices, bytes are written in order and the
 * trailer only at close.
 */
struct format_sink;

/** Create a sink for @p fd, which format_sink_destroy() closes. */
int format_sink_create(int fd, struct format_sink **ret_sink, struct failure *why);
/** Create a sink for whole files, each with its own descriptor; see format_sink_aim(). */
int format_sink_create_idle(struct format_sink **ret_sink, struct failure *why);
/** Write the next whole file to @p fd. On success the sink owns @p fd and closes the previous
 * one. */
int format_sink_aim(struct format_sink *sink, int fd, struct failure *why);
/** Compress the output with gzip. Call this before the first byte. ljreport can read the file at
 * any instant; gzip may find an incomplete member at its end. */
void format_sink_compress(struct format_sink *sink);
void format_sink_destroy(struct format_sink *sink);
int format_sink_put(struct format_sink *sink, const void *bytes, size_t len, struct failure *why);
/** @param final Also write the trailer if it was held back. */
int format_sink_commit(struct format_sink *sink, const void *trailer, size_t len, bool final,
		       struct failure *why);
/** Bytes committed so far, trailer included. */
uint64_t format_sink_bytes(const struct format_sink *sink);
/** Write a whole file in order, instead of put and commit. @return NULL if memory runs out. */
FILE *format_sink_file(struct format_sink *sink, struct failure *why);
/** End a whole file. @param file Closed. @return 0, or -1 if the file is incomplete. */
int format_sink_file_done(struct format_sink *sink, FILE *file, struct failure *why);

/* ---- Writers ---------------------------------------------------------------------------- */

/** Settings of a writer. */
struct format_options {
	bool first_lines; /**< Lua frames have the function's first line instead of the current
			     line. */
	/** Sysprof: a sample in state TRACE has only its trace, as in Tarantool's streams. */
	bool trace_records;
	bool gzip; /**< Compress the whole file, in addition to what the format itself compresses.
		    */
	/* Facts about the recording; 0: unknown. */
	uint64_t period_ns; /**< Nanoseconds per tick. */
	uint64_t start_ns;  /**< Start of the recording, CLOCK_MONOTONIC. */
	uint64_t time_ns;   /**< Start of the recording, since 1970. */
	bool is_wall;	    /**< The recording includes waiting threads. */
};

/** One output format of the recorder. `self` is the pointer that open() returned. */
struct format_writer_ops {
	const char *name;	 /**< Name on the command line, "sysprof". */
	const char *description; /**< One line for --help. */
	/** File name suffixes of the format, separated by blanks; "": none. */
	const char *suffixes;
	bool is_packed;	  /**< Always compressed. */
	bool is_buffered; /**< Written when the recording ends; an incomplete file is useless. */
	/** @param functions Borrowed until close(); grows while samples arrive. */
	int (*open)(struct format_sink *sink, const struct format_functions *functions,
		    const struct format_options *options, void **ret_self, struct failure *why);
	int (*sample)(void *self, const struct format_sample *sample, struct failure *why);
	/** Add lines about the recording, each with its line feed, as comments for people. Called
	 * before the last commit. NULL if the format has no comments. */
	int (*notes)(void *self, const char *text, struct failure *why);
	/** Make all samples so far readable. */
	int (*commit)(void *self, bool final, struct failure *why);
	void (*close)(void *self);
};

/** All output formats, ended by a NULL entry. */
extern const struct format_writer_ops *const format_writers[];
const struct format_writer_ops *format_writer_find(const char *name);

/** @return The format for a file name ("out.pb.gz", also "out.folded.gz"); NULL if none matches. */
const struct format_writer_ops *format_writer_for(const char *path);

/** @return Whether a file name ends in what looks like a suffix, known or not; .gz alone does not
 * count: "out.xyz", not "out" and "out.gz". */
bool format_has_suffix(const char *path);

/** @return Length of a file name without its format suffix, or without its last suffix: "out" in
 * "out.pb.gz", "out.folded.gz" and "out.dat". */
size_t format_stem_len(const char *path);

#endif
