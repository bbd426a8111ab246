/* SPDX-License-Identifier: MIT */
/*
 * Which unwind entries in a space belong to code whose frame already exists?
 *
 * We search an object once, and remember the entries by link-time addresses: a process may map one
 * file many thousand times, and we search again when its mappings change. A hostile file may try to
 * keep us busy, so all of this is bounded.
 */

#include <stdlib.h>
#include <string.h>

#include "symbols/space/space_internal.h"
#include "symbols/unwind/eh_rule.h"

/** Code with one rule has no longer programs; LuaJIT's have less than 100 bytes. */
#define PROGRAM_SHORT_BYTES 256
/** Program bytes to run for one object, and the extra count for each entry. LLVM's library of 110
 *  MB needs 70 KB. */
#define WORK_MAX_BYTES	 ((size_t)1 << 20)
#define WORK_ENTRY_BYTES 32
/** Entries to remember of one object. A program contains one interpreter, perhaps several. */
#define FRAMED_MAX 16

/** Whether a register besides the return address is saved. */
static bool saves_registers(const struct symbols_eh_rule *rule)
{
	for (int i = 0; i < ATTACH_REG_COUNT; i++)
		if (i != SYMBOLS_EH_RETURN_ADDRESS && rule->saved_offset[i] != INT64_MIN)
			return true;
	return false;
}

/**
 * Copy an entry's rule.
 * @return false if it is not one that we want.
 */
static bool take_entry(const struct symbols_eh *eh, const struct symbols_eh_entry *entry,
		       struct symbols_unwind_entry *ret)
{
	struct symbols_eh_rule first, last;

	_Static_assert(sizeof(ret->saved_offset) == sizeof(first.saved_offset),
		       "attach and DWARF number the same registers");
	if (!symbols_eh_check(eh, entry) || !symbols_eh_rule_at(eh, entry, entry->start, &first) ||
	    !saves_registers(&first))
		return false;
	ret->start = entry->start;
	ret->end = entry->end;
	ret->cfa_register = first.cfa_register;
	ret->cfa_offset = first.cfa_offset;
	memcpy(ret->saved_offset, first.saved_offset, sizeof(ret->saved_offset));
	ret->constant =
		symbols_eh_rule_at(eh, entry, entry->end - 1, &last) &&
		first.cfa_register == last.cfa_register && first.cfa_offset == last.cfa_offset &&
		memcmp(first.saved_offset, last.saved_offset, sizeof(last.saved_offset)) == 0;
	return true;
}

/** Whether the table has @p min_len bytes from the start of @p row to the next row. */
static bool has_room(const struct symbols_eh *eh, size_t row, uint64_t min_len)
{
	return row + 1 == eh->count ||
	       (int64_t)eh->rows[row + 1].start - eh->rows[row].start >= (int64_t)min_len;
}

/** @return Work for an entry's programs, or SIZE_MAX if one is too long. */
static size_t work_of(const struct symbols_eh_entry *entry)
{
	size_t own = entry->code_end - entry->code_start;
	size_t common = entry->cie_code_end - entry->cie_code_start;

	return own > PROGRAM_SHORT_BYTES || common > PROGRAM_SHORT_BYTES
		       ? SIZE_MAX
		       : own + common + WORK_ENTRY_BYTES;
}

/** @return Number of entries. */
static size_t list_framed(const struct symbols_eh *eh, uint64_t min_len,
			  struct symbols_unwind_entry list[FRAMED_MAX])
{
	size_t count = 0, left = WORK_MAX_BYTES;

	for (size_t i = 0; i < eh->count && count < FRAMED_MAX; i++) {
		struct symbols_eh_entry entry;
		size_t work;

		if (!has_room(eh, i, min_len) || !symbols_eh_entry_at(eh, i, &entry) ||
		    entry.end - entry.start < min_len)
			continue;
		work = work_of(&entry);
		if (work == SIZE_MAX)
			work = 0; /* skipped */
		else if (work <= left)
			count += take_entry(eh, &entry, &list[count]);
		else
			break;
		left -= work;
	}
	return count;
}

/**
 * Search an object, unless its entries are known.
 * @return false when out of memory.
 */
static bool search_object(struct symbols_space *space, struct symbols_object *object,
			  uint64_t min_len)
{
	struct symbols_unwind_entry list[FRAMED_MAX];
	bool was_loaded = object->eh_tried;
	const struct symbols_eh *eh;
	size_t count;

	if (object->framed_searched && object->framed_min_len == min_len)
		return true;
	free(object->framed);
	object->framed = NULL;
	object->framed_count = 0;
	eh = symbols_space_eh(space, object);
	if (!object->eh_tried)
		return true; /* out of memory, and the space has noted it */
	count = eh ? list_framed(eh, min_len, list) : 0;
	/* Most objects are never unwound through, so drop what only this search needed. */
	if (!was_loaded)
		symbols_object_drop_eh(object); /* newer than any unwinder's window */
	if (count) {
		object->framed = malloc(count * sizeof(list[0]));
		if (!object->framed)
			return false;
		memcpy(object->framed, list, count * sizeof(list[0]));
	}
	object->framed_count = count;
	object->framed_min_len = min_len;
	object->framed_searched = true;
	return true;
}

/**
 * Visit the entries that begin in one mapping.
 * @return false to end all visits.
 */
static bool visit_mapping(const struct symbols_object *object, uint64_t bias,
			  const struct symbols_mapping *mapping,
			  bool (*visit)(void *context, const struct symbols_unwind_entry *entry),
			  void *context)
{
	for (size_t i = 0; i < object->framed_count; i++) {
		struct symbols_unwind_entry entry = object->framed[i];

		entry.start += bias;
		entry.end += bias;
		if (entry.start >= mapping->start && entry.start < mapping->end &&
		    !visit(context, &entry))
			return false;
	}
	return true;
}

int symbols_each_unwind_entry(struct symbols_space *space, uint64_t min_len,
			      bool (*visit)(void *context,
					    const struct symbols_unwind_entry *entry),
			      void *context, struct failure *why)
{
	bool any = false;

	space->shortage.kind = FAILURE_NONE;
	for (size_t i = 0; i < space->maps.count; i++) {
		const struct symbols_mapping *mapping = &space->maps.list[i];
		struct symbols_object *object;
		uint64_t bias;

		if (!mapping->executable)
			continue;
		object = symbols_space_bind(space, i, &bias); /* NULL: skip */
		if (!object)
			continue;
		if (!search_object(space, object, min_len))
			return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "keep unwind entries");
		any |= object->framed_count > 0;
		if (!visit_mapping(object, bias, mapping, visit, context))
			break;
	}
	if (any || space->shortage.kind == FAILURE_NONE)
		return 0;
	if (why)
		*why = space->shortage;
	return -1;
}

int symbols_each_unwind_entry_in(struct symbols_space *space, size_t index, uint64_t min_len,
				 bool (*visit)(void *context,
					       const struct symbols_unwind_entry *entry),
				 void *context, struct failure *why)
{
	struct symbols_object *object;
	uint64_t bias;

	space->shortage.kind = FAILURE_NONE;
	object = symbols_space_bind(space, index, &bias);
	if (object && !search_object(space, object, min_len))
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "keep unwind entries");
	if (object)
		visit_mapping(object, bias, &space->maps.list[index], visit, context);
	if (space->shortage.kind == FAILURE_NONE)
		return 0;
	if (why)
		*why = space->shortage;
	return -1;
}
