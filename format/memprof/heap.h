/* SPDX-License-Identifier: MIT */
/* What was allocated where, and is not freed? */
#ifndef FORMAT_MEMPROF_HEAP_H
#define FORMAT_MEMPROF_HEAP_H

#include "format/memprof/allocation_map.h"
#include "format/stream.h"
#include "format/stream/tarantool_output.h"

enum heap_kind { HEAP_ALLOC, HEAP_REALLOC, HEAP_FREE, HEAP_KIND_COUNT };

/** What events did. Sums stay at the most that can be counted. */
struct heap_count {
	uint64_t events, allocated_bytes, freed_bytes;
};

/** What is known of a place in the program. */
struct heap_location {
	struct heap_count counts[HEAP_KIND_COUNT]; /**< Of events there. */
	uint64_t held_bytes, held_blocks;	   /**< Allocated there, and not freed. */
};

/** Blocks that were allocated in one place and replaced or freed in another. No padding: compared
 * by its bytes. */
struct heap_link {
	uint32_t kind;	   /**< REALLOC or FREE. */
	uint32_t location; /**< Where that happened. */
	uint32_t old;	   /**< Where the blocks were allocated. */
};

struct heap_resolved;

/**
 * Memprof streams, summed up by place as the reference parser does.
 *
 * Within one stream places are what that parser tells apart, but those of equal text are one. When
 * a second stream comes, addresses of C functions and numbers of traces, which are each run's own,
 * are left out.
 */
struct heap {
	uint32_t streams;
	struct intern *strings;		 /* Names of chunks and symbols. */
	struct intern *keys;		 /* struct tarantool_frame, with names in `strings`. */
	struct heap_location *locations; /* By id of these. */
	uint32_t location_capacity;
	struct intern *links; /* struct heap_link. */
	struct heap_count *link_counts;
	uint32_t link_capacity;
	struct tarantool_aliases aliases;
	uint64_t location_bytes; /* Of all places with their texts, about. */
	/* Of the stream that is read. */
	struct allocations allocations;
	struct heap_resolved *cache;
};

int heap_init(struct heap *heap, struct failure *why);
void heap_deinit(struct heap *heap);

/** Memory of places with their texts, at most: more than any program's. */
#define HEAP_PLACE_BYTES_MAX (256u << 20)
/** Links are a square of places only in files that want them to be. */
#define HEAP_LINKS_MAX (2u << 20)

/** A stream begins: its addresses are its own. */
int heap_begin(struct heap *heap, struct failure *why);
/** @param why FAILURE_LIMIT where there are more places, or blocks, than are kept. */
int heap_add_event(struct heap *heap, const struct symtab *symtab,
		   const struct format_raw_event *event, struct failure *why);
/** It has ended: what is still allocated is held. */
void heap_end(struct heap *heap);

/** Sum over all places. */
struct heap_location heap_sum(const struct heap *heap);

uint32_t heap_location_count(const struct heap *heap);
uint32_t heap_link_count(const struct heap *heap);
/** @return A link with its events and bytes; borrowed. */
const struct heap_link *heap_link(const struct heap *heap, uint32_t id,
				  struct heap_count *ret_count);

/** @return What places are called, fit for a terminal, by their ids; NULL without memory. */
char **heap_texts(const struct heap *heap, struct failure *why);
void heap_free_texts(const struct heap *heap, char **texts);

#endif
