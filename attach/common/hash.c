/* SPDX-License-Identifier: MIT */
/*
 * How do SipHash-1-3 and its variant of 128 bits work, and how do byte strings get numbers?
 *
 * Source: J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", 2012; the variant is
 * that of their reference implementation.
 */
#include "attach/hash.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "attach/array.h"

uint64_t hash_key[2];

/* Run before any hash is computed, and before sandboxes. */
__attribute__((constructor)) static void choose_key(void)
{
	/* Without entropy another number is better than none. */
	if (getrandom(hash_key, sizeof(hash_key), GRND_NONBLOCK) < 0)
		hash_key[0] = HASH_GOLDEN ^ (uint64_t)getpid();
}

/* ---- Functions -------------------------------------------------------------------------- */

static uint64_t rotate(uint64_t value, int bits)
{
	return value << bits | value >> (64 - bits);
}

static inline void mix(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

static inline uint64_t finish(uint64_t v[4])
{
	for (int i = 0; i < 3; i++)
		mix(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/** @param variant Distinguishes the two functions. */
static inline void absorb(const void *bytes, size_t len, uint64_t variant, uint64_t ret_v[4])
{
	uint64_t v[] = { hash_key[0] ^ 0x736f6d6570736575,
			 hash_key[1] ^ 0x646f72616e646f6d ^ variant,
			 hash_key[0] ^ 0x6c7967656e657261, hash_key[1] ^ 0x7465646279746573 };
	const unsigned char *at = bytes;
	uint64_t word, last = (uint64_t)len << 56;

	for (; len >= sizeof(word); len -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		v[3] ^= word;
		mix(v);
		v[0] ^= word;
	}
	for (size_t i = 0; i < len; i++)
		last |= (uint64_t)at[i] << 8 * i;
	v[3] ^= last;
	mix(v);
	v[0] ^= last;
	memcpy(ret_v, v, sizeof(v));
}

uint64_t hash_bytes(const void *bytes, size_t len)
{
	uint64_t v[4];

	absorb(bytes, len, 0, v);
	v[2] ^= 0xff;
	return finish(v);
}

void hash_bytes_wide(const void *bytes, size_t len, uint64_t ret_hash[2])
{
	uint64_t v[4];

	absorb(bytes, len, 0xee, v);
	v[2] ^= 0xee;
	ret_hash[0] = finish(v);
	v[1] ^= 0xdd;
	ret_hash[1] = finish(v);
}

uint64_t hash_lasting(const char *text, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3;
	return hash;
}

/* ---- Byte strings by number ------------------------------------------------------------- */

/* Files choose these byte strings. */
#undef HASH_FUNCTION
#define HASH_FUNCTION(key, len, hash) ((hash) = (unsigned)hash_bytes((key), (len)))

#define INTERN_MAX (UINT32_MAX - 1)

struct entry {
	UT_hash_handle hh;
	uint32_t id;
	size_t len;
	_Alignas(uint64_t) unsigned char bytes[];
};

struct intern {
	struct entry *table;
	struct entry **by_id;
	uint32_t count, capacity;
};

struct intern *intern_create(void)
{
	return calloc(1, sizeof(struct intern));
}

void intern_destroy(struct intern *intern)
{
	if (!intern)
		return;
	HASH_CLEAR(hh, intern->table);
	for (uint32_t id = 0; id < intern->count; id++)
		free(intern->by_id[id]);
	free(intern->by_id);
	free(intern);
}

static struct entry *find(const struct intern *intern, const void *bytes, size_t len)
{
	/* An empty key may be NULL, but memcmp() needs a pointer. */
	const void *key = len ? bytes : "";
	struct entry *entry;

	HASH_FIND(hh, intern->table, key, len, entry);
	return entry;
}

static struct entry *add(struct intern *intern, const void *bytes, size_t len)
{
	struct entry *entry;

	if (!ARRAY_RESERVE(intern->by_id, intern->capacity, intern->count + 1))
		return NULL;
	entry = calloc(1, sizeof(*entry) + len + 1);
	if (!entry)
		return NULL;
	if (len)
		memcpy(entry->bytes, bytes, len);
	entry->len = len;
	entry->id = intern->count;
	HASH_ADD_KEYPTR(hh, intern->table, entry->bytes, len, entry);
	if (!entry->hh.tbl) {
		free(entry);
		return NULL;
	}
	intern->by_id[intern->count++] = entry;
	return entry;
}

int intern_put(struct intern *intern, const void *bytes, size_t len, uint32_t *ret_id,
	       struct failure *why)
{
	struct entry *entry = find(intern, bytes, len);

	if (!entry && intern->count >= INTERN_MAX / 2)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "remember another string");
	if (!entry)
		entry = add(intern, bytes, len);
	if (!entry)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "remember another string");
	*ret_id = entry->id;
	return 0;
}

bool intern_find(const struct intern *intern, const void *bytes, size_t len, uint32_t *ret_id)
{
	const struct entry *entry = find(intern, bytes, len);

	if (!entry)
		return false;
	*ret_id = entry->id;
	return true;
}

const void *intern_get(const struct intern *intern, uint32_t id, size_t *ret_len)
{
	if (ret_len)
		*ret_len = intern->by_id[id]->len;
	return intern->by_id[id]->bytes;
}

uint32_t intern_count(const struct intern *intern)
{
	return intern->count;
}
