/* SPDX-License-Identifier: MIT */

/* Listing the unwind entries of a space. */

#include <string.h>

#include "symbols/space.h"

/** What to visit, and with what. */
struct visit {
	uint64_t min_len;
	bool (*call)(void *context, const struct symbols_unwind_entry *entry);
	void *context;
};

/** @return false to end all visits. */
static bool visit_entry(const struct symbols_eh *eh, const struct symbols_eh_entry *entry,
			uint64_t bias, const struct visit *visit)
{
	struct symbols_eh_rule first, last;
	struct symbols_unwind_entry told = { .start = entry->start + bias,
					     .end = entry->end + bias };

	_Static_assert(sizeof(told.saved_offset) == sizeof(first.saved_offset),
		       "attach and DWARF number the same registers");
	if (!symbols_eh_check(eh, entry) || !symbols_eh_rule_at(eh, entry, entry->start, &first))
		return true;
	told.cfa_register = first.cfa_register;
	told.cfa_offset = first.cfa_offset;
	memcpy(told.saved_offset, first.saved_offset, sizeof(told.saved_offset));
	told.constant =
		symbols_eh_rule_at(eh, entry, entry->end - 1, &last) &&
		first.cfa_register == last.cfa_register && first.cfa_offset == last.cfa_offset &&
		memcmp(first.saved_offset, last.saved_offset, sizeof(last.saved_offset)) == 0;
	return visit->call(visit->context, &told);
}

/** Whether the table leaves room for an entry of @p min_len at @p row. */
static bool has_room(const struct symbols_eh *eh, size_t row, uint64_t min_len)
{
	return row + 1 == eh->count ||
	       (int64_t)eh->rows[row + 1].start - eh->rows[row].start >= (int64_t)min_len;
}

static bool visit_object(struct symbols_object *object, uint64_t bias, const struct visit *visit)
{
	bool was_loaded = object->eh_tried, go_on = true;
	const struct symbols_eh *eh = symbols_object_eh(object);

	for (size_t i = 0; eh && i < eh->count && go_on; i++) {
		struct symbols_eh_entry entry;

		if (has_room(eh, i, visit->min_len) && symbols_eh_entry_at(eh, i, &entry) &&
		    entry.end - entry.start >= visit->min_len)
			go_on = visit_entry(eh, &entry, bias, visit);
	}
	/* Most objects are never unwound through: do not keep what only this visit needed. */
	if (!was_loaded)
		symbols_object_drop_eh(object);
	return go_on;
}

int symbols_each_unwind_entry(struct symbols_space *space, uint64_t min_len,
			      bool (*visit)(void *context,
					    const struct symbols_unwind_entry *entry),
			      void *context, struct failure *why)
{
	struct visit what = { .min_len = min_len, .call = visit, .context = context };
	uint64_t last_bias = 0;
	const struct symbols_object *last = NULL;

	(void)why; /* what cannot be opened is passed over */
	for (size_t i = 0; i < space->maps.count; i++) {
		struct symbols_object *object;
		uint64_t bias;

		if (!space->maps.list[i].executable)
			continue;
		object = symbols_space_bind(space, i, &bias);
		if (!object || (object == last && bias == last_bias))
			continue;
		last = object;
		last_bias = bias;
		if (!visit_object(object, bias, &what))
			break;
	}
	return 0;
}
