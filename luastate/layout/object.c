/* SPDX-License-Identifier: MIT */
/* How are objects of a VM read: references, headers, strings, and tables by key? */
#include "luastate/layout/object.h"

#include "attach/clock.h"

/* Slots of a table between two checks of the time. */
enum { CLOCK_SLOTS = 64 };

int state_read_ref(const struct luastate_layout *layout, const struct attach_reader *reader,
		   uint64_t address, uint64_t *ret_ref, struct failure *why)
{
	uint8_t bytes[8];

	if (state_read(reader, address, bytes, (size_t)layout->ref_size, why) != 0)
		return -1;
	*ret_ref = state_ref(layout, bytes, 0);
	return 0;
}

int state_read_object(const struct luastate_layout *layout, const struct attach_reader *reader,
		      uint64_t address, int32_t gct, void *ret_bytes, size_t len,
		      struct failure *why)
{
	if (!state_is_aligned(address))
		return failure_set(why, FAILURE_INVALID, 0, 0, address, "follow an object");
	if (state_read(reader, address, ret_bytes, len, why) != 0)
		return -1;
	if (((const uint8_t *)ret_bytes)[layout->GCobj_gct] != gct)
		return failure_set(why, FAILURE_INVALID, 0, 0, address, "follow an object");
	return 0;
}

int state_read_string(const struct luastate_layout *layout, const struct attach_reader *reader,
		      uint64_t address, char *ret_text, size_t size, struct failure *why)
{
	uint8_t header[STATE_OBJECT_MAX];
	uint64_t text = address + (uint64_t)layout->GCstr_sizeof;
	uint32_t len;
	char end;

	if (state_read_object(layout, reader, address, state_gct(layout->tag_str), header,
			      (size_t)layout->GCstr_sizeof, why) != 0)
		return -1;
	len = state_u32(header, layout->GCstr_len);
	/* A valid string has a zero byte behind its last character. */
	if (len < size) {
		if (state_read(reader, text, ret_text, (size_t)len + 1, why) != 0)
			return -1;
		end = ret_text[len];
	} else if (state_read(reader, text + len, &end, 1, why) != 0 ||
		   state_read(reader, text, ret_text, size - 1, why) != 0) {
		return -1;
	}
	ret_text[len < size ? len : size - 1] = '\0';
	return end == '\0' ? 0 : failure_set(why, FAILURE_INVALID, 0, 0, address, "read a string");
}

uint64_t state_heap_bytes(const struct luastate_layout *layout, const struct attach_reader *reader,
			  uint64_t G)
{
	uint8_t bytes[8] = { 0 };
	struct failure why;

	if (layout->global_State_gc_total == LAYOUT_ABSENT ||
	    state_read(reader, G + (uint64_t)layout->global_State_gc_total, bytes,
		       (size_t)layout->ref_size, &why) != 0)
		return 0;
	return state_ref(layout, bytes, 0);
}

bool state_is_plain(const char *name)
{
	for (; *name; name++)
		if ((unsigned char)*name < 32 || *name == 127)
			return false;
	return true;
}

uint64_t state_table_get(const struct luastate_layout *layout, const struct attach_reader *reader,
			 uint64_t address, const char *key, uint64_t end_ns)
{
	uint8_t bytes[STATE_OBJECT_MAX], item[STATE_OBJECT_MAX];
	char name[64];
	struct failure why;
	uint64_t node;
	uint32_t count;

	if (state_read_object(layout, reader, address, state_gct(layout->tag_tab), bytes,
			      (size_t)layout->GCtab_sizeof, &why) != 0)
		return 0;
	node = state_ref(layout, bytes, layout->GCtab_node);
	count = state_u32(bytes, layout->GCtab_hmask) + 1;
	if (count == 0 || count > STATE_TABLE_SLOTS_MAX || !state_is_pointer(node))
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t at = node + (uint64_t)i * (uint64_t)layout->Node_sizeof, k;

		if ((i % CLOCK_SLOTS == CLOCK_SLOTS - 1 && clock_now_ns() >= end_ns) ||
		    state_read(reader, at, item, (size_t)layout->Node_sizeof, &why) != 0)
			return 0;
		k = state_u64(item, layout->Node_key);
		if (state_tag(layout, k) == layout->tag_str &&
		    state_read_string(layout, reader, state_object(layout, k), name, sizeof(name),
				      &why) == 0 &&
		    strcmp(name, key) == 0)
			return state_u64(item, layout->Node_val);
	}
	return 0;
}
