/* SPDX-License-Identifier: MIT */
#ifndef FORMAT_HEAP_H
#define FORMAT_HEAP_H

#include "format/reference.h"

enum heap_kind { HEAP_ALLOC, HEAP_REALLOC, HEAP_FREE, HEAP_KIND_COUNT };

/** What happened in one location, by one kind of event. */
struct heap_location {
	enum heap_kind kind;
	char *text; /**< As the reference parser writes it. */
	uint64_t events, allocated_bytes, freed_bytes;
};

/** A memprof stream, summed up by kind and location as the reference parser does. */
struct heap {
	struct format_intern *keys;
	struct heap_location *locations;
	uint32_t count, capacity;
	struct reference_aliases aliases;
	struct format_text scratch;
	uint64_t text_bytes; /* Of all locations. */
};

int heap_init(struct heap *heap, struct failure *why);
void heap_deinit(struct heap *heap);
int heap_add_event(struct heap *heap, const struct symtab *symtab,
		   const struct format_raw_event *event, struct failure *why);

/** Sum over all locations. */
struct heap_location heap_total(const struct heap *heap, enum heap_kind kind);

/** Sort by kind, then by events (most first), then by text. Adding ends with this. */
void heap_sort(struct heap *heap);

#endif
