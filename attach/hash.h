/* SPDX-License-Identifier: MIT */
/* How do we hash, keep hash tables, and number equal byte strings? */
#ifndef ATTACH_HASH_H
#define ATTACH_HASH_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* If uthash 2.3 cannot add an item, the item's table pointer is NULL. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "attach/failure.h"

/* ---- Functions -------------------------------------------------------------------------- */

/** 2^64 divided by the golden ratio: odd, and its bits have no pattern. */
#define HASH_GOLDEN 0x9e3779b97f4a7c15u

/**
 * Hash for caches, where a collision costs only a miss. The upper bits depend on all bits.
 * Source: D. E. Knuth, "The Art of Computer Programming" 3, 6.4, multiplicative hashing.
 */
static inline uint64_t hash_spread(uint64_t number)
{
	return number * HASH_GOLDEN;
}

/** Random key of this process for the hashes below. Targets choose addresses, and files choose
 *  names. Without a key they could choose many keys with one hash, and we would compare all of them
 *  with each other. */
extern uint64_t hash_key[2];

static inline uint64_t hash_word(uint64_t word, uint64_t seed)
{
	seed = (seed ^ word ^ hash_key[0]) * (hash_key[1] | 1);
	seed = hash_spread(seed ^ seed >> 32);
	return seed ^ seed >> 32;
}

/**
 * Hash a few words fast, such as addresses.
 * @param seed An earlier hash to continue, or 0.
 */
static inline uint64_t hash_words(const void *bytes, size_t len, uint64_t seed)
{
	size_t rest = len % sizeof(uint64_t);
	const char *at = bytes, *end = at + len - rest;
	uint64_t word;

	for (; at < end; at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		seed = hash_word(word, seed);
	}
	if (!rest)
		return seed;
	word = (uint64_t)len << 56;
	memcpy(&word, at, rest);
	return hash_word(word, seed);
}

/** SipHash-1-3 of @p len bytes, for keys that files choose. */
uint64_t hash_bytes(const void *bytes, size_t len);

/** SipHash with 128 bits, wide enough to identify the bytes of a file. */
void hash_bytes_wide(const void *bytes, size_t len, uint64_t ret_hash[2]);

/**
 * Hash of a text that is the same in all processes, for use in files: FNV-1a.
 * Source: draft-eastlake-fnv-17.
 */
uint64_t hash_lasting(const char *text, size_t len);

/* ---- Tables: uthash --------------------------------------------------------------------- */

#undef HASH_FUNCTION
#define HASH_FUNCTION(key, len, hash) ((hash) = (unsigned)hash_words((key), (len), 0))

/**
 * Add an item from malloc() by its member @p key of fixed size.
 * @return The item; or NULL when out of memory, and the item is freed.
 */
#define HASH_KEEP(table, key, item)                                      \
	__extension__({                                                  \
		HASH_ADD(hh, (table), key, sizeof((item)->key), (item)); \
		if (!(item)->hh.tbl) {                                   \
			free(item);                                      \
			(item) = NULL;                                   \
		}                                                        \
		(item);                                                  \
	})

/* ---- Byte strings by number ------------------------------------------------------------- */

/**
 * Numbers for distinct byte strings. Equal bytes have the same id (0, 1, …), in the order of first
 * appearance. Keys may be text or plain structs without padding.
 */
struct intern;

struct intern *intern_create(void);
void intern_destroy(struct intern *intern);

/** Find or add @p bytes. @return 0, or -1 with FAILURE_NO_MEMORY or FAILURE_LIMIT. */
int intern_put(struct intern *intern, const void *bytes, size_t len, uint32_t *ret_id,
	       struct failure *why);

/** Find @p bytes without adding them. */
bool intern_find(const struct intern *intern, const void *bytes, size_t len, uint32_t *ret_id);

/**
 * @return The bytes of a known id, aligned for any integer, with a zero byte after them; borrowed
 *         until the intern table is destroyed.
 */
const void *intern_get(const struct intern *intern, uint32_t id, size_t *ret_len);

uint32_t intern_count(const struct intern *intern);

#endif
