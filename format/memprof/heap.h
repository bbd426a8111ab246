/* SPDX-License-Identifier: MIT */
/* Which memory was allocated where and not freed? */
#ifndef FORMAT_MEMPROF_HEAP_H
#define FORMAT_MEMPROF_HEAP_H

#include "format/memprof/allocation_map.h"
#include "format/stream.h"
#include "format/stream/tarantool_output.h"

enum heap_kind { HEAP_ALLOC, HEAP_REALLOC, HEAP_FREE, HEAP_KIND_COUNT };

/** Sums over events; they saturate. */
struct heap_count {
	uint64_t events, allocated_bytes, freed_bytes;
};

/** Sums of one location in the program. */
struct heap_location {
	struct heap_count counts[HEAP_KIND_COUNT]; /**< Of events at the location. */
	uint64_t held_bytes, held_blocks;	   /**< Allocated at the location and not freed. */
};

/** Blocks that were allocated at one location and reallocated or freed at another. No padding:
 * links are compared as bytes. */
struct heap_link {
	uint32_t kind;	   /**< REALLOC or FREE. */
	uint32_t location; /**< Location of the event. */
	uint32_t old;	   /**< Location of the allocation. */
};

struct heap_resolved;

/**
 * Memprof streams, added up by location as Tarantool's parser does.
 *
 * Within one stream, locations are as in that parser, but locations with equal texts are one. When
 * a second stream begins, the addresses of C functions and the numbers of traces are removed,
 * because they differ between runs.
 */
struct heap {
	uint32_t streams;
	struct intern *strings;		 /* Names of chunks and symbols. */
	struct intern *keys;		 /* struct tarantool_frame, with names in `strings`. */
	struct heap_location *locations; /* By id in `keys`. */
	uint32_t location_capacity;
	struct intern *links; /* struct heap_link. */
	struct heap_count *link_counts;
	uint32_t link_capacity;
	struct tarantool_aliases aliases;
	uint64_t location_bytes; /* Estimated bytes of all locations with their texts. */
	/* Data of the stream being read. */
	struct allocations allocations;
	struct heap_resolved *cache;
};

int heap_init(struct heap *heap, struct failure *why);
void heap_deinit(struct heap *heap);

/** Bound of `location_bytes`: more than any program needs. */
#define HEAP_LOCATION_BYTES_MAX (256u << 20)
/** Bound of links. Only a hostile file has links between nearly all pairs of locations. */
#define HEAP_LINKS_MAX (2u << 20)

/** Begin a stream, which has its own addresses. */
int heap_begin(struct heap *heap, struct failure *why);
/** @param why FAILURE_LIMIT if there are too many locations or blocks. */
int heap_add_event(struct heap *heap, const struct symtab *symtab,
		   const struct format_raw_event *event, struct failure *why);
/** End the stream. Blocks that are still allocated count as held. */
void heap_end(struct heap *heap);

/** @return The sum over all locations. */
struct heap_location heap_sum(const struct heap *heap);

uint32_t heap_location_count(const struct heap *heap);
uint32_t heap_link_count(const struct heap *heap);
/** @return A link, borrowed, with its events and bytes in @p ret_count. */
const struct heap_link *heap_link(const struct heap *heap, uint32_t id,
				  struct heap_count *ret_count);

/** @return Texts of all locations by id, safe for a terminal; NULL if memory runs out. Release
 * with heap_free_texts(). */
char **heap_texts(const struct heap *heap, struct failure *why);
void heap_free_texts(const struct heap *heap, char **texts);

#endif
