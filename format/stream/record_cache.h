/* SPDX-License-Identifier: MIT */
/* Has a record of these bytes been decoded before? */
#ifndef FORMAT_STREAM_RECORD_CACHE_H
#define FORMAT_STREAM_RECORD_CACHE_H

#include <stddef.h>
#include <stdint.h>

/**
 * What the records of samples became. Of millions of samples most have the bytes of an earlier one,
 * and as long as no symbol came in between they mean the same: they need not be decoded and
 * merged again.
 */
struct record_cache {
	struct cached_record *slots; /* NULL until there are enough samples. */
	uint32_t seen;
	uint64_t hash[2]; /* Of what was looked for last. */
};

/** A record in the cache. */
struct cached_record {
	uint64_t hash;
	uint32_t hash_more;
	uint32_t chain, key; /* Of the profile. */
	uint8_t state;
	uint64_t generation; /* Of the symbols, + 1; 0: nothing is here. */
};

void record_cache_deinit(struct record_cache *record_cache);

/** @param generation Of the symbols now.
 *  @return NULL where these bytes are not known; else valid until the next call. */
const struct cached_record *record_cache_find(struct record_cache *record_cache,
					      const uint8_t *bytes, size_t len,
					      uint64_t generation);

/** Remember what those bytes became that were looked for last and not found; only most are.
 *  @param repeat But for hash and generation. */
void record_cache_put(struct record_cache *record_cache, uint64_t generation,
		      const struct cached_record *cached_record);

#endif
