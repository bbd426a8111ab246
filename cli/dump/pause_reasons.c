/* SPDX-License-Identifier: MIT */
/* How long was a process frozen for a dump, and why is the dump partial? The words are an
 * interface: ljdump(1). */
#include <assert.h>
#include <json.h>

#include "cli/common/json_keys.h"
#include "cli/dump/dump.h"

void dump_add_reason(struct dump_reasons *reasons, bool holds, const char *text, const char *json)
{
	if (!holds)
		return;
	assert(reasons->count < DUMP_REASONS_MAX);
	reasons->items[reasons->count++] = (struct dump_reason){ .text = text, .json = json };
}

void dump_add_snapshot_reasons(struct dump_reasons *reasons, bool is_late, bool is_huge,
			       bool has_woken, bool is_exhausted, bool is_core_truncated)
{
	dump_add_reason(reasons, is_late,
			"a part was read before or after the freeze: a longer --max-pause helps",
			"late");
	dump_add_reason(reasons, is_huge, "the heap is larger than the limit of a copy", "huge");
	dump_add_reason(reasons, has_woken, "waiting threads ran while memory was copied", "woken");
	dump_add_reason(reasons, is_exhausted, "too many values, the rest is <omitted>", "values");
	dump_add_reason(reasons, is_core_truncated, "the core file is incomplete",
			"core_truncated");
}

void dump_print_reasons(FILE *file, const struct dump_reasons *reasons)
{
	for (size_t i = 0; i < reasons->count; i++) {
		const struct dump_reason *reason = &reasons->items[i];

		fprintf(file, "  partial: %s%s%s\n", reason->text, reason->more ? ": " : "",
			reason->more ? reason->more : "");
	}
}

static double ms(uint64_t ns)
{
	return (double)ns / 1000000;
}

void dump_print_freeze(FILE *file, size_t frozen, uint64_t pause_ns)
{
	fprintf(file, "%zu thread%s frozen for %.1f ms\n", frozen, frozen == 1 ? "" : "s",
		ms(pause_ns));
}

void dump_add_freeze(struct json_object *object, size_t frozen, uint64_t pause_ns)
{
	json_keys_add_number(object, "frozen_threads", frozen);
	json_object_object_add(object, "pause_ms", json_object_new_double(ms(pause_ns)));
}

void dump_add_reasons(struct json_object *object, const struct dump_reasons *reasons)
{
	struct json_object *list = json_object_new_array();

	json_keys_add_flag(object, "partial", reasons->count > 0);
	for (size_t i = 0; i < reasons->count; i++)
		json_object_array_add(list, json_object_new_string(reasons->items[i].json));
	json_object_object_add(object, "partial_why", list);
}
