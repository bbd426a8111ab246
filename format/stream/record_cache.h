/* SPDX-License-Identifier: MIT */
/* Was a record with the same bytes decoded before? */
#ifndef FORMAT_STREAM_RECORD_CACHE_H
#define FORMAT_STREAM_RECORD_CACHE_H

#include <stddef.h>
#include <stdint.h>

/** Results of decoded sample records. Most of a stream's millions of samples have the bytes of an
 * earlier one. While no symbol comes in between, they mean the same, so they are not decoded and
 * merged again. */
struct record_cache {
	struct cached_record *slots; /* NULL until there are enough samples. */
	uint32_t seen;
	uint64_t hash[2]; /* Hash of the last search. */
};

/** A record in the cache. */
struct cached_record {
	uint64_t hash;
	uint32_t hash_more;
	uint32_t chain, key; /* Ids in the profile. */
	uint8_t state;
	uint64_t generation; /* Generation of the symbols, + 1; 0: the entry is empty. */
};

void record_cache_deinit(struct record_cache *record_cache);

/**
 * @param generation Current generation of the symbols.
 * @return NULL if these bytes are unknown; otherwise valid until the next call.
 */
const struct cached_record *record_cache_find(struct record_cache *record_cache,
					      const uint8_t *bytes, size_t len,
					      uint64_t generation);

/**
 * Store the result for the bytes of the last search, which found none. The cache may drop it.
 * @param cached_record All members except hash and generation.
 */
void record_cache_put(struct record_cache *record_cache, uint64_t generation,
		      const struct cached_record *cached_record);

#endif
