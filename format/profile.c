/* SPDX-License-Identifier: MIT */
#include "format/profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void format_profile_destroy(struct format_profile *profile)
{
	if (!profile)
		return;
	format_functions_destroy(profile->functions);
	format_intern_destroy(profile->function_keys);
	format_intern_destroy(profile->chains);
	free(profile->marks);
	free(profile->counts);
	heap_deinit(&profile->heap);
	free(profile);
}

enum format_stream_kind format_profile_kind(const struct format_profile *profile)
{
	return profile->kind;
}

const struct profile_frame *profile_chain(const struct format_profile *profile, uint32_t chain,
					  size_t *ret_count)
{
	size_t len;
	const struct profile_frame *frames = format_intern_get(profile->chains, chain, &len);

	*ret_count = len / sizeof(*frames);
	return frames;
}

/** Everything that makes a function itself, and how it runs, as one text. */
static void add_function_key(struct format_text *key, const struct format_function *function,
			     const struct names_mark *mark)
{
	format_text_addf(key, "%d %d %d %" PRIu32 " %" PRIu64 " %" PRId64, (int)function->kind,
			 mark->compiled, mark->approximate, mark->trace,
			 function->kind == FORMAT_KIND_TRACE ? function->address : 0,
			 function->first_line);
	if (function->name) {
		format_text_add(key, "\0n", 2);
		format_text_add_string(key, function->name);
	}
	if (function->source) {
		format_text_add(key, "\0s", 2);
		format_text_add_string(key, function->source);
	}
}

/** Room for the marks of one more function. */
static int grow_marks(struct format_profile *profile, struct failure *why)
{
	uint32_t capacity = profile->mark_capacity ? 2 * profile->mark_capacity : 64;
	struct names_mark *marks;

	if (format_functions_count(profile->functions) < profile->mark_capacity)
		return 0;
	marks = reallocarray(profile->marks, capacity, sizeof(*marks));
	if (!marks)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the functions");
	profile->marks = marks;
	profile->mark_capacity = capacity;
	return 0;
}

int profile_add_function(struct format_profile *profile, const struct format_function *function,
			 const struct names_mark *mark, uint32_t *ret_id, struct failure *why)
{
	static const struct names_mark none = { 0 };
	struct format_text key = { 0 };
	const char *string;
	uint32_t id, added;
	int result;

	add_function_key(&key, function, mark ? mark : &none);
	result = format_text_take(&key, &string, why);
	if (result == 0)
		result = format_intern_put(profile->function_keys, string, key.len, &id, why);
	format_text_deinit(&key);
	if (result)
		return -1;
	if (id == format_functions_count(profile->functions)) {
		if (grow_marks(profile, why) ||
		    format_functions_add(profile->functions, function, &added, why))
			return -1;
		profile->marks[id] = mark ? *mark : none;
	}
	*ret_id = id;
	return 0;
}

static int grow_counts(struct format_profile *profile, struct failure *why)
{
	uint32_t capacity = profile->capacity ? 2 * profile->capacity : 64;
	uint64_t *counts = reallocarray(profile->counts, capacity, sizeof(*counts));

	if (!counts)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the chains");
	memset(counts + profile->capacity, 0, (capacity - profile->capacity) * sizeof(*counts));
	profile->counts = counts;
	profile->capacity = capacity;
	return 0;
}

int profile_add_chain(struct format_profile *profile, const struct profile_frame *frames,
		      size_t frame_count, uint64_t count, struct failure *why)
{
	uint32_t id;

	if (format_intern_put(profile->chains, frames, frame_count * sizeof(*frames), &id, why))
		return -1;
	if (id >= profile->capacity && grow_counts(profile, why))
		return -1;
	profile->counts[id] += count;
	profile->samples += count;
	return 0;
}
