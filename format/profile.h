/* SPDX-License-Identifier: MIT */
/* What do all samples of a file say together? */
#ifndef FORMAT_PROFILE_H
#define FORMAT_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "format/stream.h"

/**
 * Distinct call chains with their counts (sysprof and others), or allocations by location
 * (memprof). Memory is bounded by the distinct functions, chains and locations, not by the length
 * of the stream.
 */
struct format_profile;

/** @return An empty profile, or NULL with FAILURE_NO_MEMORY. */
struct format_profile *format_profile_create(struct failure *why);

/** Have it keep the order of the samples that are added from now on, for a report that
 *  `needs_order`, and for comparing and for rules: without it samples that are alike count as much
 * as others. Some bytes more for each. */
void format_profile_keep_order(struct format_profile *profile);
/** Call back while a file is read: with the number of bytes read since, compressed or not, for each
 *  64 KiB or less. @param progress NULL: no more. */
void format_profile_set_progress(struct format_profile *profile,
				 void (*progress)(void *context, size_t bytes), void *context);

/**
 * Add a file to a profile: a sysprof or memprof stream, a profile in pprof's form, or folded
 * chains; its first bytes tell which. gzip may have compressed it.
 * Times add up only where all files have the same period.
 * @param why As of format_read_stream(), FAILURE_NO_MEMORY, FAILURE_LIMIT with the offset, or
 * FAILURE_DENIED for what does not add up: a memory profile and another one, samples and other
 * values. A part of the file may have been added then.
 */
int format_profile_add(struct format_profile *profile, FILE *file, struct failure *why);

/** Whether it counts samples: else no share of it is a matter of chance. */
bool format_profile_has_samples(const struct format_profile *profile);

/** What it counts: "samples", "bytes". Borrowed. */
const char *format_profile_unit(const struct format_profile *profile);

/** Read one file. @param why As of format_profile_add(). */
int format_profile_read(FILE *file, struct format_profile **ret_profile, struct failure *why);
void format_profile_destroy(struct format_profile *profile);
enum format_stream_kind format_profile_kind(const struct format_profile *profile);

/** What is counted of a memory profile where it is shown as call chains. */
enum format_memory {
	FORMAT_MEMORY_INUSE_SPACE, /**< Bytes that are still allocated in the end. */
	FORMAT_MEMORY_INUSE_OBJECTS,
	FORMAT_MEMORY_ALLOC_SPACE, /**< Bytes that were allocated, or reallocated. */
	FORMAT_MEMORY_ALLOC_OBJECTS,
	FORMAT_MEMORY_COUNT,
};

/** "inuse_space", as Go's heap profiles have it; NULL for any other. */
const char *format_memory_name(enum format_memory value);

/** A memory profile as chains of one frame, the location, in bytes or objects; empty of another
 *  profile. @param ret_profile To be destroyed. */
int format_profile_of_memory(const struct format_profile *memory, enum format_memory value,
			     struct format_profile **ret_profile, struct failure *why);

#endif
