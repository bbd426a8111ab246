/* SPDX-License-Identifier: MIT */
/* In which forms is a profile printed? */
#ifndef FORMAT_REPORT_H
#define FORMAT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "format/profile.h"
#include "format/view.h"

/** Which Lua frames count as the same frame. */
enum format_lines {
	FORMAT_LINES_DEFAULT, /**< The report's own choice. */
	FORMAT_LINES_LINE,    /**< Frames on the same line of the same function. */
	FORMAT_LINES_FUNCTION /**< Frames of the same function; shown with its first line. */
};

/** The text behind a frame's name. Only our own streams tell which Lua frames are compiled. */
enum format_annotate {
	FORMAT_ANNOTATE_NONE,
	FORMAT_ANNOTATE_JIT,   /**< "_[j]", which flame graph tools colour; "~_[j]" if the frame is
				  approximate. */
	FORMAT_ANNOTATE_TRACE, /**< " [trace 12]", or " [trace ~12]". */
	FORMAT_ANNOTATE_KIND,  /**< Compiled frames as for JIT; "_[l]" other Lua, "_[b]" built-in,
				  "_[c]" C function, "_[a]" VM work, "_[p]" process, "_[v]" LuaJIT's
				  own code; no text for other native frames. */
};

/** Frames put before all others if the profile has the data; bits. */
enum {
	FORMAT_ROOTS_PROCESS = 1, /**< "process [4711]", if the chains do not begin with it. */
	FORMAT_ROOTS_THREAD = 2,  /**< "worker [4712]". */
};

struct format_report_options {
	const char *title; /**< May be NULL. */
	struct format_view view;
	/* Tables of functions: */
	unsigned top;	/**< Most rows; 0: no bound, or the report's own. */
	double minimum; /**< Only rows whose total is at least this many percent. */
	/** Columns of the terminal that the table of functions must fit; 0: as wide as its names.
	 * Then a line tells how many rows `top` leaves out. */
	unsigned width;
	enum format_lines lines;
	enum format_annotate annotate;
	unsigned roots;		   /**< FORMAT_ROOTS_ bits, for reports that show call chains. */
	enum format_memory memory; /**< The value of a memory profile that pprof shows first. */
	bool leak_only;		   /**< Memory profile: print only the heap, not the events. */
	bool human_readable;	   /**< Print sizes as "1.5KiB". */
};

/** One report of a profile. */
struct format_report_ops {
	const char *name;	 /**< Name on the command line, "folded". */
	const char *description; /**< One line for --help. */
	bool is_binary;		 /**< Binary output, which must not go to a terminal. */
	bool is_packed;		 /**< Always compressed. */
	bool is_view;		 /**< For people: by default shows the program's view. */
	enum format_order order; /**< What it does with the order of the samples. */
	/** Prints a memory profile itself; other reports print format_profile_of_memory(). */
	bool takes_memory;
	/** @return 0, or -1: FAILURE_NOT_FOUND if the report needs call chains or a memory
	 * profile and the profile has none; FAILURE_NO_MEMORY. The caller checks ferror(@p
	 * file). */
	int (*print)(const struct format_profile *profile,
		     const struct format_report_options *options, FILE *file, struct failure *why);
	/** Print the changes from @p base to @p profile. NULL if the report has no such form. */
	int (*diff)(const struct format_profile *base, const struct format_profile *profile,
		    const struct format_report_options *options, FILE *file, struct failure *why);
};

/** All reports, ended by a NULL entry. */
extern const struct format_report_ops *const format_reports[];

/**
 * Print a report of what its view shows of a profile.
 * @param base NULL: the profile alone; else the changes since @p base, for a report with diff().
 * @return As for print() and diff().
 */
int format_report_print(const struct format_report_ops *report, const struct format_profile *base,
			const struct format_profile *profile,
			const struct format_report_options *options, FILE *file,
			struct failure *why);
const struct format_report_ops *format_report_find(const char *name);

/** @return The suffixes of a report's files, separated by blanks. */
const char *format_report_suffixes(const struct format_report_ops *report);

/** @return The report for a file name, by its suffix ("out.svg", also "out.svg.gz"); NULL if none
 * matches. */
const struct format_report_ops *format_report_for(const char *path);

#endif
