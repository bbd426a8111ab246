/* SPDX-License-Identifier: MIT */
/* What do all samples of a file say together? */
#ifndef FORMAT_PROFILE_H
#define FORMAT_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "format/stream.h"

/** The sum of a profile: distinct call chains with their counts (sysprof and other formats), or
 * allocations by location (memprof). Distinct functions, chains and locations bound the memory,
 * not the length of the stream. */
struct format_profile;

/** @return An empty profile, or NULL with FAILURE_NO_MEMORY. */
struct format_profile *format_profile_create(struct failure *why);

/** What the order of the samples is for. It costs 2 to 8 bytes per sample. */
enum format_order {
	FORMAT_ORDER_UNUSED,
	/** Shown or written if it is known. More than 32 MiB of it are forgotten as a whole. */
	FORMAT_ORDER_OPTIONAL,
	/** For charts of time, comparisons and rules. Without the order, charts mean nothing, and
	 * comparisons and rules treat similar neighbouring samples as independent. Samples after
	 * 192 MiB of it are left out of the order. */
	FORMAT_ORDER_NEEDED,
};

/** Keep the order of the samples added from now on. */
void format_profile_keep_order(struct format_profile *profile, enum format_order order);

/** Whether the profile has the order in which its samples came. Folded chains and pprof profiles of
 * other programs have not. */
bool format_profile_has_order(const struct format_profile *profile);

/**
 * Set a callback for progress while a file is read. It gets the number of bytes read since the last
 * call, compressed or not, at least once per 64 KiB.
 * @param progress NULL: no callback.
 */
void format_profile_set_progress(struct format_profile *profile,
				 void (*progress)(void *context, size_t bytes), void *context);

/**
 * Add a file to a profile: a sysprof or memprof stream, a pprof profile, or folded chains. The
 * file's first bytes tell the format. The file may be compressed with gzip.
 * Times add up only if all files have the same period.
 * @param why As for format_read_stream(), FAILURE_NO_MEMORY, FAILURE_LIMIT with the offset, or
 * FAILURE_DENIED if the files cannot be added (a memory profile and another kind, samples and other
 * values). A part of the file may have been added by then.
 */
int format_profile_add(struct format_profile *profile, FILE *file, struct failure *why);

/** Whether the profile counts samples. Only then can shares be compared statistically. */
bool format_profile_has_samples(const struct format_profile *profile);

/** The counted unit: "samples", "bytes". Borrowed. */
const char *format_profile_unit(const struct format_profile *profile);

/** Read one file. @param why As for format_profile_add(). */
int format_profile_read(FILE *file, struct format_profile **ret_profile, struct failure *why);
void format_profile_destroy(struct format_profile *profile);
enum format_stream_kind format_profile_kind(const struct format_profile *profile);

/** Whether any sample has its process: as a label, or as the outermost frame. */
bool format_profile_has_processes(const struct format_profile *profile);

/** Whether any sample has its thread. */
bool format_profile_has_threads(const struct format_profile *profile);

/** The value that a memory profile shows as call chains. */
enum format_memory {
	FORMAT_MEMORY_INUSE_SPACE, /**< Bytes that are still allocated at the end. */
	FORMAT_MEMORY_INUSE_OBJECTS,
	FORMAT_MEMORY_ALLOC_SPACE, /**< Bytes that were allocated or reallocated. */
	FORMAT_MEMORY_ALLOC_OBJECTS,
	FORMAT_MEMORY_COUNT,
};

/** @return "inuse_space", as in Go's heap profiles; NULL for an invalid value. */
const char *format_memory_name(enum format_memory value);

/**
 * Turn a memory profile into chains of one frame, the location, counted in bytes or objects. Any
 * other profile gives an empty one.
 * @param ret_profile The caller destroys it.
 */
int format_profile_of_memory(const struct format_profile *memory, enum format_memory value,
			     struct format_profile **ret_profile, struct failure *why);

#endif
