/* SPDX-License-Identifier: MIT */
/* In which forms is a profile printed? */
#ifndef FORMAT_REPORT_H
#define FORMAT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "format/profile.h"

/** Which Lua frames count as the same. */
enum format_lines {
	FORMAT_LINES_DEFAULT, /**< The report's own choice. */
	FORMAT_LINES_LINE,    /**< Those on the same line of the same function. */
	FORMAT_LINES_FUNCTION /**< Those of the same function; shown with its first line. */
};

/** What frames have behind their names. Which Lua frames are compiled only streams of our own tell.
 */
enum format_annotate {
	FORMAT_ANNOTATE_NONE,
	FORMAT_ANNOTATE_JIT, /**< "_[j]", by which flame graph tools colour them; "~_[j]" where the
				  frame is approximate. */
	FORMAT_ANNOTATE_TRACE, /**< " [trace 12]", or " [trace ~12]". */
	FORMAT_ANNOTATE_KIND,  /**< Compiled ones as JIT; "_[l]" other Lua, "_[b]" built-in, "_[c]"
				    C function, "_[a]" activity, "_[p]" process; native nothing. */
};

/** What frames are put before all others, where the profile tells it. Bits. */
enum {
	FORMAT_ROOTS_PROCESS = 1, /**< "process [4711]", where chains do not begin with it. */
	FORMAT_ROOTS_THREAD = 2,  /**< "worker [4712]". */
};

struct format_report_options {
	const char *title; /**< May be NULL. */
	enum format_lines lines;
	enum format_annotate annotate;
	unsigned roots;		   /**< Of call chains, as lines and pictures show them. */
	enum format_memory memory; /**< What pprof shows first of a memory profile. */
	bool leak_only;		   /**< Of a memory profile: its heap alone, and not its events. */
	bool human_readable;	   /**< Sizes as "1.5KiB". */
};

/** One report of a profile. */
struct format_report_ops {
	const char *name;	 /**< As typed by the user, "folded". */
	const char *description; /**< One line for --help. */
	bool is_binary;		 /**< Nothing for a terminal. */
	bool is_packed;		 /**< Compressed in any case. */
	bool needs_order;	 /**< It charts time: see format_profile_keep_order(). */
	/** Prints a memory profile as such; others its format_profile_of_memory(). */
	bool takes_memory;
	/** @return 0, or -1: FAILURE_NOT_FOUND where the report needs call chains, or a memory
	 *	    profile, and it has none; FAILURE_NO_MEMORY. Errors of @p file are left to the
	 *caller's ferror(). */
	int (*print)(const struct format_profile *profile,
		     const struct format_report_options *options, FILE *file, struct failure *why);
	/** What is different in @p profile from @p base; NULL: this report has no such form. */
	int (*diff)(const struct format_profile *base, const struct format_profile *profile,
		    const struct format_report_options *options, FILE *file, struct failure *why);
};

/** All reports, ended by a NULL entry. */
extern const struct format_report_ops *const format_reports[];
const struct format_report_ops *format_report_find(const char *name);

/** The report that a file's name tells by its end, "out.svg", also with ".gz" behind.
 *  @return NULL: none. */
const struct format_report_ops *format_report_for(const char *path);

#endif
