/* SPDX-License-Identifier: MIT */
/* Private to luastate: how are objects of a VM read? */
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

/** A GCRef or MRef: 32 bits wide without GC64. Source: lj_obj.h. */
static inline uint64_t state_ref(const struct luastate_layout *layout, const uint8_t *bytes,
				 int32_t offset)
{
	return layout->gc64 ? state_u64(bytes, offset) : state_u32(bytes, offset);
}

/*
 * The tag and the object of a TValue (lj_obj.h, "64 bit and 32 bit TValues"):
 *   GC64     tag in the top 17 bits, the object's address below
 *   else     tag in the upper 32 bits, the object's address in the lower
 */
static inline int32_t state_tag(const struct luastate_layout *layout, uint64_t value)
{
	return (int32_t)((int64_t)value >> (layout->gc64 ? 47 : 32));
}

static inline uint64_t state_object(const struct luastate_layout *layout, uint64_t value)
{
	return value & (((uint64_t)1 << (layout->gc64 ? 47 : 32)) - 1);
}

/** Type number in GCobj.gct of the objects with a tag. */
static inline int32_t state_gct(int32_t tag)
{
	return ~tag;
}

/** No object lies in the first page. */
static inline bool state_is_pointer(uint64_t value)
{
	return value >= 4096 && value < (uint64_t)1 << STATE_ADDRESS_BITS;
}

static inline int state_read(const struct attach_reader *reader, uint64_t address, void *ret_bytes,
			     size_t len, struct failure *why)
{
	return attach_read(reader, remote_addr_make(address), ret_bytes, len, why);
}

/** A collectable object's type number. */
int state_read_object(const struct luastate_layout *layout, const struct attach_reader *reader,
		      uint64_t address, int32_t gct, void *ret_bytes, size_t len,
		      struct failure *why);

/** Copy a GCstr's text, at most size - 1 bytes, always terminated. */
int state_read_string(const struct luastate_layout *layout, const struct attach_reader *reader,
		      uint64_t address, char *ret_text, size_t size, struct failure *why);

/** Whether a name may stand in a line: no byte of it is a control character. */
bool state_is_plain(const char *name);

/** A GCRef or MRef in the target. */
int state_read_ref(const struct luastate_layout *layout, const struct attach_reader *reader,
		   uint64_t address, uint64_t *ret_ref, struct failure *why);

/** What a VM's collector holds, in bytes; 0 where that cannot be read. */
uint64_t state_heap_bytes(const struct luastate_layout *layout, const struct attach_reader *reader,
			  uint64_t G);

/** The value under a string key of a table, 0 if there is none. */
uint64_t state_table_get(const struct luastate_layout *layout, const struct attach_reader *reader,
			 uint64_t address, const char *key);

#endif
