/* SPDX-License-Identifier: MIT */
/*
 * Which entries does a table have?
 *
 * A table has an array of TValues, whose slot 0 is index 0, and a hash part of 2^n nodes. An empty
 * hash part is one node inside the global state.
 *
 * Source: LuaJIT v2.1 src/lj_obj.h (GCtab, Node), src/lj_tab.c (lj_tab_new, lj_tab_next).
 */
#include "luastate/values/values.h"

#include <stdlib.h>

#include "luastate/layout/object.h"

enum {
	SLOTS_AT_ONCE = 512,
	/* Maximum slots of a metatable to search for a name. */
	METATABLE_SLOTS = 1024,
	KEY_MAX = 16,
};

/** A table while its slots are read. */
struct scan {
	struct values *values;
	struct luastate_table *table;
	uint64_t array, node;
	uint32_t slots_left;
	uint64_t (*entries)[2]; /* keys and values, as TValues; in the array part, the key is the
				   index */
	size_t entry_count, array_count, max;
};

static bool is_nil(const struct luastate_layout *layout, uint64_t tvalue)
{
	return state_tag(layout, tvalue) == -1;
}

static void note_entry(struct scan *scan, uint64_t key, uint64_t value, bool in_array)
{
	if (is_nil(scan->values->layout, value))
		return;
	scan->table->count++;
	if (scan->entry_count == scan->max)
		return;
	scan->entries[scan->entry_count][0] = key;
	scan->entries[scan->entry_count++][1] = value;
	scan->array_count += in_array;
}

/* Number of the @count slots that may still be read. */
static uint32_t take_slots(struct scan *scan, uint32_t count)
{
	if (count > scan->slots_left) {
		count = scan->slots_left;
		scan->table->is_count_cut = true;
	}
	scan->slots_left -= count;
	return count;
}

static bool scan_array(struct scan *scan)
{
	uint32_t count = take_slots(scan, scan->table->array_slots);
	uint64_t slots[SLOTS_AT_ONCE];

	for (uint32_t at = 0; at < count; at += SLOTS_AT_ONCE) {
		uint32_t now = count - at < SLOTS_AT_ONCE ? count - at : SLOTS_AT_ONCE;

		if (!values_read(scan->values, scan->array + 8 * (uint64_t)at, slots,
				 8 * (size_t)now))
			return false;
		for (uint32_t i = 0; i < now; i++)
			note_entry(scan, at + i, slots[i], true);
	}
	return true;
}

static bool scan_hash(struct scan *scan)
{
	const struct luastate_layout *layout = scan->values->layout;
	size_t size = (size_t)layout->Node_sizeof;
	uint32_t at_once = (uint32_t)(8 * SLOTS_AT_ONCE / size);
	uint32_t count = take_slots(scan, scan->table->hash_slots);
	uint8_t nodes[8 * SLOTS_AT_ONCE];

	for (uint32_t at = 0; at < count; at += at_once) {
		uint32_t now = count - at < at_once ? count - at : at_once;

		if (!values_read(scan->values, scan->node + at * (uint64_t)size, nodes, size * now))
			return false;
		for (uint32_t i = 0; i < now; i++)
			note_entry(scan, state_u64(nodes + i * size, layout->Node_key),
				   state_u64(nodes + i * size, layout->Node_val), false);
	}
	return true;
}

static bool read_head(struct values *values, uint64_t address, struct luastate_table *ret_table,
		      uint64_t *ret_array, uint64_t *ret_node)
{
	const struct luastate_layout *layout = values->layout;
	uint8_t bytes[STATE_OBJECT_MAX];
	uint32_t hmask;

	if (!values_read_object(values, address, layout->tag_tab, bytes, layout->GCtab_sizeof))
		return false;
	hmask = state_u32(bytes, layout->GCtab_hmask);
	*ret_array = state_ref(layout, bytes, layout->GCtab_array);
	*ret_node = state_ref(layout, bytes, layout->GCtab_node);
	*ret_table = (struct luastate_table){
		.array_slots = state_u32(bytes, layout->GCtab_asize),
		.hash_slots = hmask + 1,
		.has_metatable = state_ref(layout, bytes, layout->GCtab_metatable) != 0,
	};
	if (ret_table->array_slots > VALUES_ARRAY_MAX || hmask >= VALUES_HASH_MAX ||
	    (hmask & (hmask + 1)) != 0)
		return false;
	if (hmask == 0 && *ret_node - values->vm->G < (uint64_t)layout->global_State_sizeof)
		ret_table->hash_slots = 0;
	return true;
}

static bool is_cycle(const struct values *values, uint64_t address)
{
	for (unsigned i = 0; i < values->depth; i++)
		if (values->path[i] == address)
			return true;
	return false;
}

/* Decode the entries that the scan found. */
static void decode_entries(struct values *values, uint64_t address, const struct scan *scan)
{
	struct luastate_value *keys, *items;
	size_t count = scan->entry_count;

	if (count == 0)
		return;
	keys = values_alloc(values, 2 * count * sizeof(*keys));
	if (!keys) {
		scan->table->cut = LUASTATE_TABLE_ENTRIES;
		return;
	}
	items = keys + count;
	values->path[values->depth++] = address;
	for (size_t i = 0; i < count && values->options->values_left; i++) {
		if (i < scan->array_count)
			keys[i] =
				(struct luastate_value){ .type = LUASTATE_VALUE_INTEGER,
							 .integer = (int64_t)scan->entries[i][0] };
		else
			values_decode(values, scan->entries[i][0], &keys[i]);
		values_decode(values, scan->entries[i][1], &items[i]);
		scan->table->entry_count++;
	}
	values->options->is_exhausted |= scan->table->entry_count < count;
	values->depth--;
	scan->table->keys = keys;
	scan->table->values = items;
}

static void scan_table(struct values *values, uint64_t address, struct scan *scan)
{
	struct luastate_table *table = scan->table;
	bool whole;

	if (scan->max) {
		scan->entries = malloc(scan->max * sizeof(scan->entries[0]));
		if (!scan->entries)
			scan->max = 0;
	}
	whole = scan_array(scan) && scan_hash(scan);
	decode_entries(values, address, scan);
	free(scan->entries);
	if (!whole) {
		table->cut = LUASTATE_TABLE_INCONSISTENT;
		table->is_count_cut = true;
	} else if (table->cut == LUASTATE_TABLE_WHOLE &&
		   (table->entry_count < table->count || table->is_count_cut)) {
		table->cut = LUASTATE_TABLE_ENTRIES;
	}
}

void values_decode_table(struct values *values, uint64_t address, struct luastate_value *ret_value)
{
	struct scan scan = { .values = values, .slots_left = VALUES_TABLE_SLOTS };
	struct luastate_table *table = values_alloc(values, sizeof(*table));
	size_t entries = values->options->entries;

	ret_value->type = LUASTATE_VALUE_TABLE;
	if (!table)
		return;
	if (!read_head(values, address, table, &scan.array, &scan.node)) {
		ret_value->type = LUASTATE_VALUE_UNREADABLE;
		return;
	}
	ret_value->table = scan.table = table;
	if (is_cycle(values, address))
		table->cut = LUASTATE_TABLE_CYCLE;
	else if (values->depth >= values->options->depth ||
		 values->depth >= LUASTATE_VALUES_DEPTH_MAX)
		table->cut = LUASTATE_TABLE_DEPTH;
	else
		scan.max = entries < VALUES_ENTRIES_MAX ? entries : VALUES_ENTRIES_MAX;
	if (scan.max > (size_t)table->array_slots + table->hash_slots)
		scan.max = (size_t)table->array_slots + table->hash_slots;
	scan_table(values, address, &scan);
}

/* Whether a node's key is a string with these bytes. */
static bool is_key(struct values *values, uint64_t tvalue, const char *key)
{
	const struct luastate_layout *layout = values->layout;
	char text[KEY_MAX];

	return state_tag(layout, tvalue) == layout->tag_str &&
	       values_read_text(values, state_object(layout, tvalue), text, sizeof(text)) &&
	       strcmp(text, key) == 0;
}

const char *values_table_text(struct values *values, uint64_t address, const char *key)
{
	const struct luastate_layout *layout = values->layout;
	struct luastate_table table;
	uint64_t array, node;
	char text[VALUES_TEXT_MAX];

	if (!read_head(values, address, &table, &array, &node))
		return NULL;
	for (uint32_t i = 0; i < table.hash_slots && i < METATABLE_SLOTS; i++) {
		uint8_t bytes[STATE_OBJECT_MAX];
		uint64_t value;

		if (!values_read(values, node + i * (uint64_t)layout->Node_sizeof, bytes,
				 (size_t)layout->Node_sizeof))
			return NULL;
		value = state_u64(bytes, layout->Node_val);
		if (state_tag(layout, value) == layout->tag_str &&
		    is_key(values, state_u64(bytes, layout->Node_key), key))
			return values_read_text(values, state_object(layout, value), text,
						sizeof(text))
				       ? values_copy_text(values, text)
				       : NULL;
	}
	return NULL;
}
