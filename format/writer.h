/* SPDX-License-Identifier: MIT */
/* How are samples written while they come? */
#ifndef FORMAT_WRITER_H
#define FORMAT_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "format/sample.h"

/* ---- Sinks: where bytes of a profile go ------------------------------------------------- */

/**
 * Output file whose content is readable after every commit, whatever ends the writer.
 *
 * Bytes are buffered; a commit writes them with a trailer behind (the format's end mark). On a
 * regular file the new bytes are put behind the old trailer's first byte before that byte itself is
 * replaced, so that at any instant the file is a complete profile. A full disk leaves the last
 * committed state. On pipes and devices bytes are written in order and the trailer only at close.
 */
struct format_sink;

/** Take over @p fd (closed by format_sink_destroy()). */
int format_sink_create(int fd, struct format_sink **ret_sink, struct failure *why);
/** One for whole files, each with a descriptor of its own. */
int format_sink_create_idle(struct format_sink **ret_sink, struct failure *why);
/** Write the next whole file to @p fd, which is taken over on success; the one before is closed. */
int format_sink_aim(struct format_sink *sink, int fd, struct failure *why);
/** Have the file be gzip's, before anything is put. It is whole at any instant for ljreport; gzip
 *  may find half a member behind its end. */
void format_sink_compress(struct format_sink *sink);
void format_sink_destroy(struct format_sink *sink);
int format_sink_put(struct format_sink *sink, const void *bytes, size_t len, struct failure *why);
/** @param final Also write the trailer where it was held back. */
int format_sink_commit(struct format_sink *sink, const void *trailer, size_t len, bool final,
		       struct failure *why);
/** Bytes committed so far, trailer included. */
uint64_t format_sink_bytes(const struct format_sink *sink);
/** Write a whole file in order, in place of putting and committing. @return NULL without memory. */
FILE *format_sink_file(struct format_sink *sink, struct failure *why);
/** It is complete. @param file Closed. @return 0, or -1 where not all of it was written. */
int format_sink_file_done(struct format_sink *sink, FILE *file, struct failure *why);

/* ---- Writers ---------------------------------------------------------------------------- */

/** How much detail of a chain a writer keeps. */
struct format_options {
	bool first_lines; /**< Guest frames carry the function's first line, not the current. */
	/** Sysprof: a sample in state TRACE has its trace alone, as the reference writes it. */
	bool trace_records;
	bool gzip; /**< The file is compressed, beside what the format itself does. */
	/* What the recording says of itself; 0: nothing. */
	uint64_t period_ns; /**< Of a tick. */
	uint64_t start_ns;  /**< Its begin, CLOCK_MONOTONIC. */
	uint64_t time_ns;   /**< The same since 1970. */
	bool is_wall;	    /**< Threads that wait are in it. */
};

/** One output format of the recorder. `self` is what open() returned. */
struct format_writer_ops {
	const char *name;	 /**< As typed by the user, "sysprof". */
	const char *description; /**< One line for --help. */
	/** Ends of file names that tell the format, blanks between; "" none. */
	const char *suffixes;
	bool is_packed;	  /**< Its files are compressed in any case. */
	bool is_buffered; /**< Written when the recording ends; a part of it is of no use. */
	/** @param functions Borrowed until close; grows while samples arrive. */
	int (*open)(struct format_sink *sink, const struct format_functions *functions,
		    const struct format_options *options, void **ret_self, struct failure *why);
	int (*sample)(void *self, const struct format_sample *sample, struct failure *why);
	/** Lines about the recording, each with its line feed: comments for people. Before the last
	 * commit. NULL: the format has no place for them. */
	int (*notes)(void *self, const char *text, struct failure *why);
	/** Make everything so far readable. */
	int (*commit)(void *self, bool final, struct failure *why);
	void (*close)(void *self);
};

/** All output formats, ended by a NULL entry. */
extern const struct format_writer_ops *const format_writers[];
const struct format_writer_ops *format_writer_find(const char *name);

/** The format that a file's name tells, "out.pb.gz", also with ".gz" behind. @return NULL: none. */
const struct format_writer_ops *format_writer_for(const char *path);

/** How much of a file's name stands before what tells its format, or else before its last dot:
 *  "out" of "out.pb.gz", "out.folded.gz" and "out.dat". */
size_t format_stem_len(const char *path);

#endif
