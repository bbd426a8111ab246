/* SPDX-License-Identifier: MIT */
/* How does a memory profile become call chains, with one frame per location? */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/profile/profile_internal.h"

static const struct {
	const char *name, *unit;
} values[FORMAT_MEMORY_COUNT] = {
	[FORMAT_MEMORY_INUSE_SPACE] = { "inuse_space", "bytes" },
	[FORMAT_MEMORY_INUSE_OBJECTS] = { "inuse_objects", "objects" },
	[FORMAT_MEMORY_ALLOC_SPACE] = { "alloc_space", "bytes" },
	[FORMAT_MEMORY_ALLOC_OBJECTS] = { "alloc_objects", "objects" },
};

const char *format_memory_name(enum format_memory value)
{
	return (unsigned)value < FORMAT_MEMORY_COUNT ? values[value].name : NULL;
}

/** Add; sums of hostile files may exceed the largest signed number. */
static uint64_t at_most(uint64_t left, uint64_t right)
{
	uint64_t sum;

	return __builtin_add_overflow(left, right, &sum) || sum > INT64_MAX ? INT64_MAX : sum;
}

/** The location's total of each value. A reallocated block counts as a new one. */
static void values_of(const struct heap_location *location,
		      uint64_t ret_values[FORMAT_MEMORY_COUNT])
{
	const struct heap_count *alloc = &location->counts[HEAP_ALLOC];
	const struct heap_count *realloc = &location->counts[HEAP_REALLOC];

	ret_values[FORMAT_MEMORY_INUSE_SPACE] = at_most(location->held_bytes, 0);
	ret_values[FORMAT_MEMORY_INUSE_OBJECTS] = at_most(location->held_blocks, 0);
	ret_values[FORMAT_MEMORY_ALLOC_SPACE] =
		at_most(alloc->allocated_bytes, realloc->allocated_bytes);
	ret_values[FORMAT_MEMORY_ALLOC_OBJECTS] = at_most(alloc->events, realloc->events);
}

/** Add the location as a function: these streams do not tell which function a line belongs to. */
static int add_function(const struct heap *heap, uint32_t id, struct format_profile *profile,
			struct profile_frame *ret_frame, struct failure *why)
{
	const struct tarantool_frame *location = intern_get(heap->keys, id, NULL);
	bool is_lua = location->kind == TARANTOOL_LUA;
	const char *name = is_lua || location->kind == TARANTOOL_NATIVE
				   ? intern_get(heap->strings, location->name, NULL)
				   : NULL;
	int64_t line = !is_lua || location->number > INT32_MAX ? 0 : (int64_t)location->number;
	struct format_function function = { .kind = FORMAT_KIND_CFUNC, .name = name };
	/* After several runs a trace has no number, only its line. */
	bool is_trace = location->is_trace && !(location->is_general && is_lua);
	struct label_mark mark = { .compiled = location->is_trace && !is_trace };
	char text[64];

	if (is_trace && !location->is_general) {
		function = (struct format_function){ .kind = FORMAT_KIND_TRACE,
						     .address = location->trace,
						     .source = is_lua ? name : NULL,
						     .first_line = line };
	} else if (is_lua) {
		function = (struct format_function){ .kind = FORMAT_KIND_LUA,
						     .source = name,
						     .first_line = line };
	} else if (location->kind == TARANTOOL_INTERNAL || is_trace) {
		function.kind = FORMAT_KIND_PSEUDO;
		function.name = is_trace ? "[trace]" : "[internal]";
	} else if (location->kind == TARANTOOL_UNKNOWN) {
		snprintf(text, sizeof(text), "CFUNC %#" PRIx64, location->number);
		function.name = text;
	} else {
		function.address = location->number;
	}
	if (profile_add_function(profile, &function, &mark, &ret_frame->function, why))
		return -1;
	ret_frame->line = profile_line(profile, ret_frame->function,
				       is_lua && !is_trace ? (uint32_t)line : 0);
	return 0;
}

static int add_location(const struct heap *heap, uint32_t id, enum format_memory value, bool is_all,
			struct format_profile *profile, struct failure *why)
{
	uint64_t all[FORMAT_MEMORY_COUNT], *sums;
	struct profile_frame frame;
	uint32_t chain;

	values_of(&heap->locations[id], all);
	if (is_all ? !all[FORMAT_MEMORY_ALLOC_OBJECTS] : !all[value])
		return 0;
	if (add_function(heap, id, profile, &frame, why) ||
	    profile_add_sample(profile, &frame, 1, NULL, all[value], why))
		return -1;
	if (intern_find(profile->chains, &frame, sizeof(frame), &chain)) {
		sums = profile->memory_values[profile->plain_keys[chain] - 1];
		for (int i = 0; i < FORMAT_MEMORY_COUNT; i++)
			sums[i] = at_most(sums[i], all[i]);
	}
	return 0;
}

int profile_of_memory(const struct format_profile *memory, enum format_memory value, bool is_all,
		      struct format_profile **ret_profile, struct failure *why)
{
	const struct heap *heap = &memory->heap;
	uint32_t count = heap_location_count(heap);
	struct format_profile *profile = format_profile_create(why);
	int result = 0;

	if (!profile)
		return -1;
	profile->kind = FORMAT_STREAM_SYSPROF;
	profile->has_kind = true;
	profile->memory_shown = value;
	snprintf(profile->unit, sizeof(profile->unit), "%s", values[value].unit);
	profile->memory_values = calloc((size_t)count + 1, sizeof(*profile->memory_values));
	if (!profile->memory_values)
		result = failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the chains");
	for (uint32_t i = 0; i < count && result == 0; i++)
		result = add_location(heap, i, value, is_all, profile, why);
	if (result)
		format_profile_destroy(profile);
	else
		*ret_profile = profile;
	return result;
}

int format_profile_of_memory(const struct format_profile *memory, enum format_memory value,
			     struct format_profile **ret_profile, struct failure *why)
{
	return profile_of_memory(memory, value, false, ret_profile, why);
}
