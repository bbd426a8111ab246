/* SPDX-License-Identifier: MIT */
#include "format/heap.h"

#include <stdlib.h>
#include <string.h>

#include "format/stream.h"

/** Bytes of all locations' texts: more than any program's. */
#define HEAP_TEXT_MAX (256u << 20)

/** What makes events one location; no padding, because its bytes are compared. */
struct key {
	uint64_t kind;
	struct reference_location location;
};

int heap_init(struct heap *heap, struct failure *why)
{
	memset(heap, 0, sizeof(*heap));
	heap->keys = format_intern_create();
	if (!heap->keys)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the locations");
	return reference_aliases_init(&heap->aliases, why);
}

void heap_deinit(struct heap *heap)
{
	for (uint32_t i = 0; i < heap->count; i++)
		free(heap->locations[i].text);
	free(heap->locations);
	format_intern_destroy(heap->keys);
	reference_aliases_deinit(&heap->aliases);
	format_text_deinit(&heap->scratch);
	memset(heap, 0, sizeof(*heap));
}

static struct key key_of(const struct format_raw_event *event)
{
	static const enum heap_kind kinds[] = {
		[STREAM_EVENT_ALLOC] = HEAP_ALLOC,
		[STREAM_EVENT_FREE] = HEAP_FREE,
		[STREAM_EVENT_REALLOC] = HEAP_REALLOC,
	};
	struct key key = { .kind = kinds[event->kind] };

	if (event->source == STREAM_SOURCE_TRACE)
		key.location.trace = event->address;
	else
		key.location.address = event->address;
	key.location.line = event->line;
	return key;
}

static int append(struct heap *heap, const struct symtab *symtab, const struct key *key,
		  struct failure *why)
{
	struct heap_location location = { .kind = (enum heap_kind)key->kind };
	const char *text;

	if (heap->count == heap->capacity) {
		uint32_t capacity = heap->capacity ? 2 * heap->capacity : 64;
		void *grown = reallocarray(heap->locations, capacity, sizeof(*heap->locations));

		if (!grown)
			return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the locations");
		heap->locations = grown;
		heap->capacity = capacity;
	}
	format_text_clear(&heap->scratch);
	reference_add_location(&heap->scratch, symtab, &heap->aliases, &key->location);
	if (format_text_take(&heap->scratch, &text, why))
		return -1;
	heap->text_bytes += heap->scratch.len;
	if (heap->text_bytes > HEAP_TEXT_MAX)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "more locations than can be kept");
	location.text = strdup(text);
	if (!location.text)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the locations");
	format_clean_text(location.text, strlen(location.text));
	heap->locations[heap->count++] = location;
	return 0;
}

int heap_add_event(struct heap *heap, const struct symtab *symtab,
		   const struct format_raw_event *event, struct failure *why)
{
	struct key key = key_of(event);
	struct heap_location *location;
	uint32_t id;

	if (format_intern_put(heap->keys, &key, sizeof(key), &id, why))
		return -1;
	if (id == heap->count && append(heap, symtab, &key, why))
		return -1;
	location = &heap->locations[id];
	location->events++;
	location->allocated_bytes += event->new_size;
	location->freed_bytes += event->old_size;
	return 0;
}

struct heap_location heap_total(const struct heap *heap, enum heap_kind kind)
{
	struct heap_location total = { .kind = kind };

	for (uint32_t i = 0; i < heap->count; i++) {
		const struct heap_location *location = &heap->locations[i];

		if (location->kind != kind)
			continue;
		total.events += location->events;
		total.allocated_bytes += location->allocated_bytes;
		total.freed_bytes += location->freed_bytes;
	}
	return total;
}

static int compare_locations(const void *left, const void *right)
{
	const struct heap_location *a = left, *b = right;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->events != b->events)
		return a->events > b->events ? -1 : 1;
	return strcmp(a->text, b->text);
}

void heap_sort(struct heap *heap)
{
	if (heap->count)
		qsort(heap->locations, heap->count, sizeof(*heap->locations), compare_locations);
}
