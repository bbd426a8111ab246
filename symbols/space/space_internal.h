/* SPDX-License-Identifier: MIT */
/* Private to symbols: what does an address space consist of? */
#ifndef SYMBOLS_SPACE_SPACE_INTERNAL_H
#define SYMBOLS_SPACE_SPACE_INTERNAL_H

#include "symbols/space/maps.h"
#include "symbols/space/object.h"

/** Slots of the cache of named addresses: 112 KiB. */
#define SYMBOLS_CACHE_SLOTS 2048

/** Unwind entries of all objects together; a browser has 15 MiB. */
#define SYMBOLS_EH_KEPT_BYTES ((size_t)64 << 20)

/** Names of all objects together; a browser has some 10 MiB. A process may map any number of files,
 *  whose links lead to one debug file. */
#define SYMBOLS_NAMES_KEPT_BYTES ((size_t)256 << 20)

/** Processor time for loading names. Checksums of large debug files take a second each. */
#define SYMBOLS_NAMES_LOAD_NS ((uint64_t)10 * 1000 * 1000 * 1000)

/** Objects to keep open, if half of our descriptors suffice: each object holds one or two. The
 *  largest desktop programs map a thousand files with code. */
#define SYMBOLS_MAX_OBJECTS 8192

/** The object that a mapping shows; found on first use. */
struct symbols_binding {
	struct symbols_object *object; /**< NULL: none. */
	uint64_t bias;
	bool tried;
	bool is_missing; /**< The file cannot be opened. */
};

struct symbols_cached {
	uint64_t generation, address;
	struct symbols_function function;
};

struct symbols_space {
	struct attach_process *process; /**< NULL: a recorded image. */
	const struct attach_reader *memory;
	struct symbols_root root;
	bool headers_prove; /**< See symbols_object_create(). */
	struct symbols_maps maps;
	struct symbols_binding *bindings; /**< One per mapping. */
	struct symbols_object *objects;	  /**< A hash table. */
	unsigned object_max;
	uint64_t generation;	     /**< From 1. */
	uint64_t eh_clock, eh_drops; /**< See symbols_space_eh(). */
	uint64_t names_ns;	     /**< Processor time spent loading names. */
	struct failure shortage;     /**< Why an object could not be opened or loaded last: a
					  shortage of our own. kind NONE: none. We try again. */
	struct intern *strings;	     /**< Names. */
	size_t string_bytes;
	struct symbols_cached cache[SYMBOLS_CACHE_SLOTS];
};

/**
 * Find the object mapped at @p address.
 * @param ret_bias Set if there is one; target address = link-time address + bias.
 * @return NULL if there is none.
 */
struct symbols_object *symbols_space_object_at(struct symbols_space *space, uint64_t address,
					       uint64_t *ret_bias);
/** Find the object of a mapping by the mapping's index. */
struct symbols_object *symbols_space_bind(struct symbols_space *space, size_t index,
					  uint64_t *ret_bias);

/**
 * Get the unwind entries of an object, and load them if necessary. All objects together keep at
 * most SYMBOLS_EH_KEPT_BYTES. We drop those not used for the longest time, and count this in
 * `eh_drops`.
 * @return Borrowed until the next call or refresh; NULL if there are none.
 */
const struct symbols_eh *symbols_space_eh(struct symbols_space *space,
					  struct symbols_object *object);

/**
 * Get the names of an object, and load them if necessary. Beyond the bounds above we load no more:
 * functions then have the names of files without symbols.
 * @return Borrowed; NULL when out of memory.
 */
const struct symbols_names *symbols_space_names(struct symbols_space *space,
						struct symbols_object *object);

#endif
