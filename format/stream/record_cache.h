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
struct repeats {
	struct repeat *slots; /* NULL until there are enough samples. */
	uint32_t seen;
	uint64_t hash[2]; /* Of what was looked for last. */
};

/** What became of one. */
struct repeat {
	uint64_t hash;
	uint32_t hash_more;
	uint32_t chain, key; /* Of the profile. */
	uint8_t state;
	uint64_t generation; /* Of the symbols, + 1; 0: nothing is here. */
};

void repeats_deinit(struct repeats *repeats);

/** @param generation Of the symbols now.
 *  @return NULL where these bytes are not known; else valid until the next call. */
const struct repeat *repeats_find(struct repeats *repeats, const uint8_t *bytes, size_t len,
				  uint64_t generation);

/** Remember what those bytes became that were looked for last and not found; only most are.
 *  @param repeat But for hash and generation. */
void repeats_put(struct repeats *repeats, uint64_t generation, const struct repeat *repeat);

#endif
