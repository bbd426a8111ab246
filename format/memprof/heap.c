/* SPDX-License-Identifier: MIT */
/* How do the events of a memory profile add up by location? */
#include "format/memprof/heap.h"
#include "format/text.h"

#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "format/sysprof/stream_format.h"

/** Entries of the cache from a stream's recent addresses to locations. Nearly all events hit it.
 * A power of two. */
#define CACHE_SIZE 4096

/** Estimated bytes per location besides its name: table entries, and its text when printed. */
#define LOCATION_BYTES 320

struct heap_resolved {
	struct tarantool_location raw_location;
	uint64_t generation; /* Of the symbol table, + 1; 0: the entry is empty. */
	uint32_t location;
};

/* ---- Tables ----------------------------------------------------------------------------- */

int heap_init(struct heap *heap, struct failure *why)
{
	memset(heap, 0, sizeof(*heap));
	heap->strings = intern_create();
	heap->keys = intern_create();
	heap->links = intern_create();
	if (!heap->strings || !heap->keys || !heap->links)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the locations");
	return tarantool_aliases_init(&heap->aliases, why);
}

/** Free all tables except the names and the data of the current stream. */
static void free_locations(struct heap *heap)
{
	intern_destroy(heap->keys);
	intern_destroy(heap->links);
	free(heap->locations);
	free(heap->link_counts);
}

void heap_deinit(struct heap *heap)
{
	free_locations(heap);
	intern_destroy(heap->strings);
	tarantool_aliases_deinit(&heap->aliases);
	allocation_map_deinit(&heap->allocations);
	free(heap->cache);
	memset(heap, 0, sizeof(*heap));
}

/** Add numbers from files; they may have any value, so the sum saturates. */
static void add(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
}

static void add_count(struct heap_count *sum, const struct heap_count *count)
{
	add(&sum->events, count->events);
	add(&sum->allocated_bytes, count->allocated_bytes);
	add(&sum->freed_bytes, count->freed_bytes);
}

static void add_location(struct heap_location *sum, const struct heap_location *location)
{
	for (int i = 0; i < HEAP_KIND_COUNT; i++)
		add_count(&sum->counts[i], &location->counts[i]);
	add(&sum->held_bytes, location->held_bytes);
	add(&sum->held_blocks, location->held_blocks);
}

static int no_memory(struct failure *why)
{
	return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the locations");
}

static int put_location(struct heap *heap, const struct tarantool_frame *key, uint32_t *ret_id,
			struct failure *why)
{
	uint32_t known = intern_count(heap->keys);
	size_t len = 0;

	if (intern_put(heap->keys, key, sizeof(*key), ret_id, why))
		return -1;
	if (*ret_id < known)
		return 0;
	if (key->kind == TARANTOOL_LUA || key->kind == TARANTOOL_NATIVE)
		intern_get(heap->strings, key->name, &len);
	heap->location_bytes += LOCATION_BYTES + len;
	if (heap->location_bytes > HEAP_LOCATION_BYTES_MAX)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "more locations than can be kept");
	return ARRAY_RESERVE_ZEROED(heap->locations, heap->location_capacity, (size_t)*ret_id + 1)
		       ? 0
		       : no_memory(why);
}

static int add_link(struct heap *heap, const struct heap_link *link, const struct heap_count *count,
		    struct failure *why)
{
	uint32_t known = intern_count(heap->links), id;

	if (intern_put(heap->links, link, sizeof(*link), &id, why))
		return -1;
	if (id == known && known >= HEAP_LINKS_MAX)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "more locations than can be kept");
	if (!ARRAY_RESERVE_ZEROED(heap->link_counts, heap->link_capacity, (size_t)id + 1))
		return no_memory(why);
	add_count(&heap->link_counts[id], count);
	return 0;
}

/* ---- Streams ---------------------------------------------------------------------------- */

/** Remove what differs between runs. Code without a symbol then has no identity left. */
static void generalise(struct tarantool_frame *key)
{
	key->is_general = 1;
	key->trace = 0;
	if (key->kind == TARANTOOL_NATIVE)
		key->number = 0;
}

/** Copy locations and links into @p wider, where several may become one. */
static int copy_generalised(const struct heap *heap, struct heap *wider, uint32_t *ids,
			    struct failure *why)
{
	for (uint32_t i = 0; i < intern_count(heap->keys); i++) {
		struct tarantool_frame key;

		memcpy(&key, intern_get(heap->keys, i, NULL), sizeof(key));
		generalise(&key);
		if (put_location(wider, &key, &ids[i], why))
			return -1;
		add_location(&wider->locations[ids[i]], &heap->locations[i]);
	}
	for (uint32_t i = 0; i < intern_count(heap->links); i++) {
		struct heap_link link;

		memcpy(&link, intern_get(heap->links, i, NULL), sizeof(link));
		link.location = ids[link.location];
		link.old = ids[link.old];
		if (add_link(wider, &link, &heap->link_counts[i], why))
			return -1;
	}
	return 0;
}

static int generalise_all(struct heap *heap, struct failure *why)
{
	uint32_t *ids = calloc((size_t)intern_count(heap->keys) + 1, sizeof(*ids));
	struct heap wider = *heap;
	int result = -1;

	wider.keys = intern_create();
	wider.links = intern_create();
	wider.locations = NULL;
	wider.link_counts = NULL;
	wider.location_capacity = wider.link_capacity = 0;
	wider.location_bytes = 0;
	if (!ids || !wider.keys || !wider.links)
		failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the locations");
	else
		result = copy_generalised(heap, &wider, ids, why);
	free_locations(result ? &wider : heap);
	if (result == 0)
		*heap = wider;
	free(ids);
	return result;
}

int heap_begin(struct heap *heap, struct failure *why)
{
	heap->streams++;
	allocation_map_deinit(&heap->allocations);
	free(heap->cache);
	heap->cache = NULL;
	return heap->streams == 2 ? generalise_all(heap, why) : 0;
}

void heap_end(struct heap *heap)
{
	struct allocation allocation;
	uint32_t slot = 0;

	while (allocation_map_next(&heap->allocations, &slot, &allocation)) {
		add(&heap->locations[allocation.location].held_bytes, allocation.size);
		add(&heap->locations[allocation.location].held_blocks, 1);
	}
	allocation_map_deinit(&heap->allocations);
}

/* ---- Events ----------------------------------------------------------------------------- */

static struct tarantool_location raw_location_of(const struct format_raw_event *event)
{
	struct tarantool_location raw_location = { .line = event->line };

	if (event->source == STREAM_SOURCE_TRACE)
		raw_location.trace = event->address;
	else
		raw_location.address = event->address;
	return raw_location;
}

/** Look up a raw location in the current symbol table. */
static int resolve(struct heap *heap, const struct symtab *symtab,
		   const struct tarantool_location *raw_location, uint32_t *ret_location,
		   struct failure *why)
{
	struct tarantool_frame key;
	const char *name;
	size_t len;

	tarantool_resolve(symtab, raw_location, &key);
	if (key.kind == TARANTOOL_LUA || key.kind == TARANTOOL_NATIVE) {
		name = symtab_string(symtab, key.name, &len);
		if (intern_put(heap->strings, name, len, &key.name, why))
			return -1;
	}
	if (heap->streams > 1)
		generalise(&key);
	return put_location(heap, &key, ret_location, why);
}

static int find_location(struct heap *heap, const struct symtab *symtab,
			 const struct format_raw_event *event, uint32_t *ret_location,
			 struct failure *why)
{
	struct tarantool_location raw_location = raw_location_of(event);
	uint64_t mixed = hash_spread(raw_location.address + raw_location.trace * 31);
	struct heap_resolved *known;

	if (!heap->cache)
		heap->cache = calloc(CACHE_SIZE, sizeof(*heap->cache));
	if (!heap->cache)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the locations");
	known = &heap->cache[((mixed >> 32) + raw_location.line) % CACHE_SIZE];
	if (known->generation != symtab->generation + 1 ||
	    memcmp(&known->raw_location, &raw_location, sizeof(raw_location)) != 0) {
		known->generation = 0;
		if (resolve(heap, symtab, &raw_location, &known->location, why))
			return -1;
		known->raw_location = raw_location;
		known->generation = symtab->generation + 1;
	}
	*ret_location = known->location;
	return 0;
}

/** End the block of a free or realloc event, if its allocation was seen. */
static int end_block(struct heap *heap, enum heap_kind kind, uint32_t location,
		     const struct format_raw_event *event, struct failure *why)
{
	struct heap_link link = { .kind = kind, .location = location };
	struct heap_count count = { .events = 1, .allocated_bytes = event->new_size };
	struct allocation allocation;

	if (!allocation_map_take(&heap->allocations, event->old_address, &allocation))
		return 0;
	link.old = allocation.location;
	count.freed_bytes = allocation.size;
	return add_link(heap, &link, &count, why);
}

int heap_add_event(struct heap *heap, const struct symtab *symtab,
		   const struct format_raw_event *event, struct failure *why)
{
	static const enum heap_kind kinds[] = {
		[STREAM_EVENT_ALLOC] = HEAP_ALLOC,
		[STREAM_EVENT_FREE] = HEAP_FREE,
		[STREAM_EVENT_REALLOC] = HEAP_REALLOC,
	};
	enum heap_kind kind = kinds[event->kind];
	struct heap_count count = { .events = 1,
				    .allocated_bytes = event->new_size,
				    .freed_bytes = event->old_size };
	struct allocation allocation = { .size = event->new_size };

	if (find_location(heap, symtab, event, &allocation.location, why))
		return -1;
	add_count(&heap->locations[allocation.location].counts[kind], &count);
	if (kind != HEAP_ALLOC && end_block(heap, kind, allocation.location, event, why))
		return -1;
	return kind == HEAP_FREE ? 0
				 : allocation_map_put(&heap->allocations, event->new_address,
						      allocation, why);
}

/* ---- What was found --------------------------------------------------------------------- */

struct heap_location heap_sum(const struct heap *heap)
{
	struct heap_location sum = { 0 };

	for (uint32_t i = 0; i < heap_location_count(heap); i++)
		add_location(&sum, &heap->locations[i]);
	return sum;
}

uint32_t heap_location_count(const struct heap *heap)
{
	return intern_count(heap->keys);
}

uint32_t heap_link_count(const struct heap *heap)
{
	return intern_count(heap->links);
}

const struct heap_link *heap_link(const struct heap *heap, uint32_t id,
				  struct heap_count *ret_count)
{
	*ret_count = heap->link_counts[id];
	return intern_get(heap->links, id, NULL);
}

static char *text_of(const struct heap *heap, uint32_t id, struct format_text *scratch,
		     struct failure *why)
{
	const struct tarantool_frame *key = intern_get(heap->keys, id, NULL);
	const char *name = "", *text;
	size_t len = 0;
	char *copy;

	if (key->kind == TARANTOOL_LUA || key->kind == TARANTOOL_NATIVE)
		name = intern_get(heap->strings, key->name, &len);
	format_text_clear(scratch);
	tarantool_add_frame(scratch, &heap->aliases, key, name, len);
	if (format_text_take(scratch, &text, why))
		return NULL;
	copy = strdup(text);
	if (copy)
		format_clean_text(copy, strlen(copy));
	else
		failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "name the locations");
	return copy;
}

char **heap_texts(const struct heap *heap, struct failure *why)
{
	uint32_t count = heap_location_count(heap);
	char **texts = calloc((size_t)count + 1, sizeof(*texts));
	struct format_text scratch = { 0 };
	bool done = texts;

	if (!texts)
		failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "name the locations");
	for (uint32_t i = 0; i < count && done; i++) {
		texts[i] = text_of(heap, i, &scratch, why);
		done = texts[i];
	}
	format_text_deinit(&scratch);
	if (done)
		return texts;
	heap_free_texts(heap, texts);
	return NULL;
}

void heap_free_texts(const struct heap *heap, char **texts)
{
	for (uint32_t i = 0; texts && i < heap_location_count(heap); i++)
		free(texts[i]);
	free(texts);
}
