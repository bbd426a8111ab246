/* SPDX-License-Identifier: MIT */
/* An address space: mappings, the objects that they show, and a cache of answers. */
#ifndef SYMBOLS_SPACE_SPACE_INTERNAL_H
#define SYMBOLS_SPACE_SPACE_INTERNAL_H

#include "symbols/space/maps.h"
#include "symbols/space/object.h"

/** Slots of the cache of named addresses: 112 KiB. */
#define SYMBOLS_CACHE_SLOTS 2048

/** Unwind entries of all objects; those of a browser have 15 MiB. */
#define SYMBOLS_EH_KEPT_BYTES ((size_t)64 << 20)

/** Objects that are kept open, if half of the descriptors that we may have suffice: each holds
 * one or two. Nobody maps as many files with code, but for the largest of desktops a thousand. */
#define SYMBOLS_MAX_OBJECTS 8192

/** What a mapping shows; found on first use. */
struct symbols_binding {
	struct symbols_object *object; /**< NULL if none. */
	uint64_t bias;
	bool tried;
};

struct symbols_cached {
	uint64_t generation, address;
	struct symbols_function function;
};

struct symbols_space {
	struct attach_process *process; /**< NULL for a recorded image. */
	const struct attach_reader *memory;
	struct symbols_root root;
	bool headers_prove; /**< See symbols_object_create(). */
	struct symbols_maps maps;
	struct symbols_binding *bindings; /**< One per mapping. */
	struct symbols_object *objects;	  /**< A hash table. */
	unsigned object_max;
	uint64_t generation;	     /**< From 1. */
	uint64_t eh_clock, eh_drops; /**< See symbols_space_eh(). */
	struct failure shortage;     /**< What could not be opened or loaded last; kind NONE if all
					  could. What failed so is tried again. */
	struct intern *strings;	     /**< Names. */
	size_t string_bytes;
	struct symbols_cached cache[SYMBOLS_CACHE_SLOTS];
};

/**
 * The object mapped at @p address.
 * @param ret_bias Set where there is one; target address = link-time address + bias.
 * @return NULL if none.
 */
struct symbols_object *symbols_space_object_at(struct symbols_space *space, uint64_t address,
					       uint64_t *ret_bias);
/** The same for a mapping by index. */
struct symbols_object *symbols_space_bind(struct symbols_space *space, size_t index,
					  uint64_t *ret_bias);

/**
 * The unwind entries of an object, loaded if they are not. All objects together keep at most
 * SYMBOLS_EH_KEPT_BYTES: those that were used longest ago are dropped, and `eh_drops` counts that.
 * @return Borrowed until the next call or refresh; NULL if there are none.
 */
const struct symbols_eh *symbols_space_eh(struct symbols_space *space,
					  struct symbols_object *object);

#endif
