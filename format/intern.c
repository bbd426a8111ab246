/* SPDX-License-Identifier: MIT */
#include "format/intern.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* An entry that could not be added has no table afterwards (uthash 2.3, HASH_NONFATAL_OOM). */
#define HASH_NONFATAL_OOM		  1
#define HASH_FUNCTION(key, key_len, hash) ((hash) = hash_bytes(key, key_len))
static unsigned hash_bytes(const void *bytes, size_t len);
#include <uthash.h>

#define INTERN_MAX (UINT32_MAX - 1)

struct entry {
	UT_hash_handle hh;
	uint32_t id;
	size_t len;
	_Alignas(uint64_t) unsigned char bytes[];
};

struct format_intern {
	struct entry *table;
	struct entry **by_id;
	uint32_t count, capacity;
};

/* ---- Hash ---------------------------------------------------------------------------------- */

/*
 * SipHash-1-3 with a key of this process: keys come from files, and whoever could choose many of
 * one hash would have all of them compared with each other. Source: J.-P. Aumasson, D. J.
 * Bernstein, "SipHash: a fast short-input PRF", 2012.
 */
static uint64_t hash_key[2];

static void choose_key(void)
{
	/* Without entropy any other one does as well as none. */
	if (!hash_key[0] && getrandom(hash_key, sizeof(hash_key), GRND_NONBLOCK) < 0)
		hash_key[0] = 0x9e3779b97f4a7c15 ^ (uint64_t)getpid();
}

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

static unsigned hash_bytes(const void *bytes, size_t len)
{
	uint64_t v[] = { hash_key[0] ^ 0x736f6d6570736575, hash_key[1] ^ 0x646f72616e646f6d,
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
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		mix(v);
	last = v[0] ^ v[1] ^ v[2] ^ v[3];
	return (unsigned)(last ^ last >> 32);
}

/* ---- Entries ------------------------------------------------------------------------------- */

struct format_intern *format_intern_create(void)
{
	choose_key();
	return calloc(1, sizeof(struct format_intern));
}

void format_intern_destroy(struct format_intern *intern)
{
	if (!intern)
		return;
	HASH_CLEAR(hh, intern->table);
	for (uint32_t id = 0; id < intern->count; id++)
		free(intern->by_id[id]);
	free(intern->by_id);
	free(intern);
}

static struct entry *find(const struct format_intern *intern, const void *bytes, size_t len)
{
	/* An empty key may have no bytes, but memcmp() wants a place. */
	const void *key = len ? bytes : "";
	struct entry *entry;

	HASH_FIND(hh, intern->table, key, len, entry);
	return entry;
}

static int grow(struct format_intern *intern)
{
	uint32_t capacity = intern->capacity ? 2 * intern->capacity : 64;
	struct entry **by_id;

	if (intern->count < intern->capacity)
		return 0;
	by_id = reallocarray(intern->by_id, capacity, sizeof(*by_id));
	if (!by_id)
		return -1;
	intern->by_id = by_id;
	intern->capacity = capacity;
	return 0;
}

static struct entry *add(struct format_intern *intern, const void *bytes, size_t len)
{
	struct entry *entry;

	if (grow(intern))
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

int format_intern_put(struct format_intern *intern, const void *bytes, size_t len, uint32_t *ret_id,
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

bool format_intern_find(const struct format_intern *intern, const void *bytes, size_t len,
			uint32_t *ret_id)
{
	const struct entry *entry = find(intern, bytes, len);

	if (!entry)
		return false;
	*ret_id = entry->id;
	return true;
}

const void *format_intern_get(const struct format_intern *intern, uint32_t id, size_t *ret_len)
{
	if (ret_len)
		*ret_len = intern->by_id[id]->len;
	return intern->by_id[id]->bytes;
}

uint32_t format_intern_count(const struct format_intern *intern)
{
	return intern->count;
}
