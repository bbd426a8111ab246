/* SPDX-License-Identifier: MIT */
/* Distinct byte strings by number. */
#include "format/data/intern.h"

#include <stdlib.h>
#include <string.h>

/* An entry that could not be added has no table afterwards (uthash 2.3, HASH_NONFATAL_OOM). */
#define HASH_NONFATAL_OOM		  1
#define HASH_FUNCTION(key, key_len, hash) ((hash) = (unsigned)hash_bytes(key, key_len))
#include <uthash.h>

#include "attach/array.h"
#include "format/data/hash.h"

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

/* ---- Entries ---------------------------------------------------------------------------- */

struct format_intern *format_intern_create(void)
{
	hash_init();
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

static struct entry *add(struct format_intern *intern, const void *bytes, size_t len)
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
