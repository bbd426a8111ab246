/* SPDX-License-Identifier: MIT */
/* How are objects of a VM read? Private to luastate. */
#ifndef LUASTATE_LAYOUT_OBJECT_H
#define LUASTATE_LAYOUT_OBJECT_H

#include <string.h>

#include "attach/reader.h"
#include "luastate/layout/layout.h"
#include "luastate/layout/machine.h"

enum {
	STATE_TABLE_SLOTS_MAX = 1 << 16,
};

static inline uint64_t state_u64(const uint8_t *bytes, int32_t offset)
{
	uint64_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

static inline uint32_t state_u32(const uint8_t *bytes, int32_t offset)
{
	uint32_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

/** Decode a GCRef or MRef, which has 32 bits without GC64. Source: lj_obj.h. */
static inline uint64_t state_ref(const struct luastate_layout *layout, const uint8_t *bytes,
				 int32_t offset)
{
	return layout->gc64 ? state_u64(bytes, offset) : state_u32(bytes, offset);
}

/* The tag and the object of a TValue (lj_obj.h, "64 bit and 32 bit TValues"):
 *   GC64     tag in the top 17 bits, the object's address below
 *   else     tag in the upper 32 bits, the object's address in the lower */
static inline int32_t state_tag(const struct luastate_layout *layout, uint64_t value)
{
	return (int32_t)((int64_t)value >> (layout->gc64 ? 47 : 32));
}

static inline uint64_t state_object(const struct luastate_layout *layout, uint64_t value)
{
	return value & (((uint64_t)1 << (layout->gc64 ? 47 : 32)) - 1);
}

/** The type number in GCobj.gct of objects with a tag. */
static inline int32_t state_gct(int32_t tag)
{
	return ~tag;
}

/** Whether an address is possible. No object is in the first page. */
static inline bool state_is_pointer(uint64_t value)
{
	return value >= 4096 && value < (uint64_t)1 << STATE_ADDRESS_BITS;
}

/** Whether an object may be at this address. */
static inline bool state_is_aligned(uint64_t value)
{
	return state_is_pointer(value) && value % 8 == 0;
}

static inline int state_read(const struct attach_reader *reader, uint64_t address, void *ret_bytes,
			     size_t len, struct failure *why)
{
	return attach_read(reader, remote_addr_make(address), ret_bytes, len, why);
}

/** Read a collectable object and check its type number. @param gct The expected type. */
int state_read_object(const struct luastate_layout *layout, const struct attach_reader *reader,
		      uint64_t address, int32_t gct, void *ret_bytes, size_t len,
		      struct failure *why);

/** Copy a GCstr's text, at most size - 1 bytes; the copy is always terminated. */
int state_read_string(const struct luastate_layout *layout, const struct attach_reader *reader,
		      uint64_t address, char *ret_text, size_t size, struct failure *why);

/** Whether a name can be printed in a line: it has no control characters. */
bool state_is_plain(const char *name);

/** Read a GCRef or MRef in the target. */
int state_read_ref(const struct luastate_layout *layout, const struct attach_reader *reader,
		   uint64_t address, uint64_t *ret_ref, struct failure *why);

/** Bytes that a VM's collector manages; 0 if they cannot be read. */
uint64_t state_heap_bytes(const struct luastate_layout *layout, const struct attach_reader *reader,
			  uint64_t G);

/**
 * The value of a string key in a table, 0 if there is none. Reads each slot and its key until it
 * finds the key.
 * @param end_ns Give up at this time (CLOCK_MONOTONIC); UINT64_MAX: never.
 */
uint64_t state_table_get(const struct luastate_layout *layout, const struct attach_reader *reader,
			 uint64_t address, const char *key, uint64_t end_ns);

#endif
