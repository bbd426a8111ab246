/* SPDX-License-Identifier: MIT */
/* Which mapped files does a profile have, each once? */
#ifndef FORMAT_DATA_MAPPINGS_H
#define FORMAT_DATA_MAPPINGS_H

#include "format/sample.h"

/** Distinct mappings. Owns copies of all strings. */
struct format_mappings;

/** Bound of mappings; more than all processes of a recording have. */
#define MAPPINGS_MAX  (1u << 14)
#define MAPPINGS_NONE UINT32_MAX

struct format_mappings *mappings_create(void);
void mappings_destroy(struct format_mappings *mappings);

/**
 * Find or add a mapping; equal mappings are equal in all members.
 * @param ret_id 0, 1, …; MAPPINGS_NONE if there are too many.
 * @return 0, or -1 with FAILURE_NO_MEMORY or FAILURE_LIMIT.
 */
int mappings_put(struct format_mappings *mappings, const struct format_mapping *mapping,
		 uint32_t *ret_id, struct failure *why);

/** As mappings_put(), but the same part of the same file is one mapping at any address: the first
 * one met. The build-id identifies the file, or else its path. Source: github.com/google/pprof,
 * profile/merge.go, does this with mappings of several processes. */
int mappings_put_file(struct format_mappings *mappings, const struct format_mapping *mapping,
		      uint32_t *ret_id, struct failure *why);

/** @return Borrowed until the table is destroyed; NULL for an unknown id. */
const struct format_mapping *mappings_get(const struct format_mappings *mappings, uint32_t id);
uint32_t mappings_count(const struct format_mappings *mappings);

#endif
