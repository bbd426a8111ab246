/* SPDX-License-Identifier: MIT */
/* How does a sorted map stay fast with a million keys? */
#include "format/data/map.h"

#include <stdlib.h>
#include <string.h>

#include "attach/array.h"

/* Inserting moves at most a chunk, and splitting moves half the list of chunks; both are small
 * here. */
#define CHUNK_ENTRIES 256

struct entry {
	uint64_t key, value;
};

struct format_addrmap_chunk {
	size_t count;
	struct entry entries[CHUNK_ENTRIES];
};

void format_addrmap_deinit(struct format_addrmap *map)
{
	for (size_t i = 0; i < map->count; i++)
		free(map->chunks[i]);
	free(map->chunks);
	memset(map, 0, sizeof(*map));
}

/** @return Index of the last chunk that starts at or below @p key; 0 if there is none. */
static size_t find_chunk(const struct format_addrmap *map, uint64_t key)
{
	size_t end = ARRAY_SEARCH(map->count, i, map->chunks[i]->entries[0].key <= key);

	return end ? end - 1 : 0;
}

/** @return Number of entries in @p chunk with a key at or below @p key. */
static size_t count_upto(const struct format_addrmap_chunk *chunk, uint64_t key)
{
	return ARRAY_SEARCH(chunk->count, i, chunk->entries[i].key <= key);
}

static struct entry *find_floor(const struct format_addrmap *map, uint64_t key)
{
	struct format_addrmap_chunk *chunk;
	size_t upto;

	if (map->count == 0)
		return NULL;
	chunk = map->chunks[find_chunk(map, key)];
	upto = count_upto(chunk, key);
	return upto ? &chunk->entries[upto - 1] : NULL;
}

/** Insert an empty chunk at @p index. */
static int insert_chunk(struct format_addrmap *map, size_t index)
{
	struct format_addrmap_chunk *chunk = NULL;

	if (ARRAY_RESERVE(map->chunks, map->capacity, map->count + 1))
		chunk = malloc(sizeof(*chunk));
	if (!chunk)
		return -1;
	memmove(map->chunks + index + 1, map->chunks + index,
		(map->count - index) * sizeof(*map->chunks));
	chunk->count = 0;
	map->chunks[index] = chunk;
	map->count++;
	return 0;
}

/** Move the upper half of the full chunk at @p index into a new one behind it. */
static int split_chunk(struct format_addrmap *map, size_t index)
{
	struct format_addrmap_chunk *lower, *upper;
	size_t keep = CHUNK_ENTRIES / 2;

	if (insert_chunk(map, index + 1))
		return -1;
	lower = map->chunks[index];
	upper = map->chunks[index + 1];
	upper->count = lower->count - keep;
	memcpy(upper->entries, lower->entries + keep, upper->count * sizeof(*upper->entries));
	lower->count = keep;
	return 0;
}

int format_addrmap_set(struct format_addrmap *map, uint64_t key, uint64_t value,
		       struct failure *why)
{
	struct entry *found = find_floor(map, key);
	struct format_addrmap_chunk *chunk;
	size_t upto;

	if (found && found->key == key) {
		found->value = value;
		return 0;
	}
	if ((map->count == 0 && insert_chunk(map, 0)) ||
	    (map->chunks[find_chunk(map, key)]->count == CHUNK_ENTRIES &&
	     split_chunk(map, find_chunk(map, key))))
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "remember another symbol");
	chunk = map->chunks[find_chunk(map, key)];
	upto = count_upto(chunk, key);
	memmove(chunk->entries + upto + 1, chunk->entries + upto,
		(chunk->count - upto) * sizeof(*chunk->entries));
	chunk->entries[upto] = (struct entry){ .key = key, .value = value };
	chunk->count++;
	return 0;
}

bool format_addrmap_floor(const struct format_addrmap *map, uint64_t key, uint64_t *ret_key,
			  uint64_t *ret_value)
{
	const struct entry *found = find_floor(map, key);

	if (!found)
		return false;
	*ret_key = found->key;
	*ret_value = found->value;
	return true;
}

bool format_addrmap_get(const struct format_addrmap *map, uint64_t key, uint64_t *ret_value)
{
	const struct entry *found = find_floor(map, key);

	if (!found || found->key != key)
		return false;
	*ret_value = found->value;
	return true;
}
