/* SPDX-License-Identifier: MIT */
/* How are distinct mappings stored with copies of their texts? */
#include "format/data/mappings.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "attach/hash.h"
#include "format/text.h"

struct format_mappings {
	struct intern *keys; /* Same ids as `items`. */
	struct format_mapping **items;
	uint32_t count, capacity;
};

struct format_mappings *mappings_create(void)
{
	struct format_mappings *mappings = calloc(1, sizeof(*mappings));

	if (mappings)
		mappings->keys = intern_create();
	if (mappings && mappings->keys)
		return mappings;
	free(mappings);
	return NULL;
}

/* The table owns its strings, but the public type shows them as borrowed; hence the casts. */
static void free_item(struct format_mapping *item)
{
	if (!item)
		return;
	free((void *)(uintptr_t)item->path);
	free((void *)(uintptr_t)item->build_id);
	free(item);
}

void mappings_destroy(struct format_mappings *mappings)
{
	if (!mappings)
		return;
	for (uint32_t id = 0; id < mappings->count; id++)
		free_item(mappings->items[id]);
	free(mappings->items);
	intern_destroy(mappings->keys);
	free(mappings);
}

static struct format_mapping *copy_item(const struct format_mapping *from)
{
	struct format_mapping *copy = malloc(sizeof(*copy));

	if (!copy)
		return NULL;
	*copy = *from;
	copy->path = strdup(from->path);
	copy->build_id = from->build_id ? strdup(from->build_id) : NULL;
	if (copy->path && (copy->build_id || !from->build_id))
		return copy;
	free_item(copy);
	return NULL;
}

static int no_memory(struct failure *why)
{
	return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "remember a mapping");
}

static int append(struct format_mappings *mappings, const struct format_mapping *mapping,
		  struct failure *why)
{
	if (ARRAY_RESERVE(mappings->items, mappings->capacity, mappings->count + 1))
		mappings->items[mappings->count] = copy_item(mapping);
	else
		return no_memory(why);
	if (!mappings->items[mappings->count])
		return no_memory(why);
	mappings->count++;
	return 0;
}

static int put(struct format_mappings *mappings, const struct format_mapping *mapping,
	       struct format_text *key, uint32_t *ret_id, struct failure *why)
{
	const char *bytes;
	uint32_t id;

	if (format_text_take(key, &bytes, why))
		return -1;
	if (!intern_find(mappings->keys, bytes, key->len, &id)) {
		if (mappings->count >= MAPPINGS_MAX) {
			*ret_id = MAPPINGS_NONE;
			return 0;
		}
		/* Add the item first: an item without its key is only useless. */
		if (append(mappings, mapping, why))
			return -1;
		if (intern_put(mappings->keys, bytes, key->len, &id, why)) {
			free_item(mappings->items[--mappings->count]);
			return -1;
		}
	}
	*ret_id = id;
	return 0;
}

int mappings_put(struct format_mappings *mappings, const struct format_mapping *mapping,
		 uint32_t *ret_id, struct failure *why)
{
	struct format_text key = { 0 };
	int result;

	format_text_addf(&key, "%" PRIx64 " %" PRIx64 " %" PRIx64 " ", mapping->start,
			 mapping->limit, mapping->offset);
	format_text_add_string(&key, mapping->build_id ? mapping->build_id : "");
	format_text_addf(&key, " %s", mapping->path);
	result = put(mappings, mapping, &key, ret_id, why);
	format_text_deinit(&key);
	return result;
}

int mappings_put_file(struct format_mappings *mappings, const struct format_mapping *mapping,
		      uint32_t *ret_id, struct failure *why)
{
	struct format_text key = { 0 };
	int result;

	format_text_addf(&key, "%" PRIx64 " %" PRIx64 " %d ", mapping->limit - mapping->start,
			 mapping->offset, mapping->build_id != NULL);
	format_text_add_string(&key, mapping->build_id ? mapping->build_id : mapping->path);
	result = put(mappings, mapping, &key, ret_id, why);
	format_text_deinit(&key);
	return result;
}

const struct format_mapping *mappings_get(const struct format_mappings *mappings, uint32_t id)
{
	return id < mappings->count ? mappings->items[id] : NULL;
}

uint32_t mappings_count(const struct format_mappings *mappings)
{
	return mappings->count;
}
