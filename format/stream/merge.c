/* SPDX-License-Identifier: MIT */
/* How are Lua frames inserted where native frames called them? */
#include "format/stream/merge.h"

#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "format/sysprof/stream_format.h"
#include "format/sysprof/symbol_encoding.h"

/** Most frames of one merged chain: all frames of two whole stacks. Only repetition makes more. */
#define MERGED_MAX (2 * STREAM_FRAMES_MAX)

void merge_deinit(struct merge *merge)
{
	free(merge->frames);
	free(merge->live);
	memset(merge, 0, sizeof(*merge));
}

static int append(struct merge *merge, struct merge_frame frame, struct failure *why)
{
	if (merge->count == MERGED_MAX)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "too many frames after merging");
	if (!ARRAY_RESERVE(merge->frames, merge->capacity, merge->count + 1))
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "merge a sample");
	merge->frames[merge->count++] = frame;
	return 0;
}

/** Fill the live list with all Lua frames, root first. */
static int fill_live(struct merge *merge, const struct format_raw_sample *raw, struct failure *why)
{
	size_t count = raw->lua_count;

	if (!ARRAY_RESERVE(merge->live, merge->live_capacity, count))
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "merge a sample");
	for (size_t i = 0; i < count; i++)
		merge->live[i] = (struct merge_frame){ true, (uint32_t)(count - 1 - i) };
	return 0;
}

/** Print the live list [*start, *end) up to its first C function, and remove one frame. Removing
 * a C function moves only the frames just printed, so the output bounds the work. */
static int insert_lua(struct merge *merge, const struct format_raw_sample *raw, size_t *start,
		      size_t *end, struct failure *why)
{
	struct merge_frame *live = merge->live;
	size_t i = *start;

	for (; i < *end && raw->lua[live[i].index].kind != STREAM_FRAME_CFUNC; i++)
		if (append(merge, live[i], why))
			return -1;
	if (i < *end) {
		memmove(live + *start + 1, live + *start, (i - *start) * sizeof(*live));
		(*start)++;
	} else if (*start < *end) {
		(*end)--;
	}
	return 0;
}

/* The text of a prototype is its chunk name. */
enum symbol_role merge_role_of(const struct symtab *symtab, uint64_t address)
{
	const struct symtab_proto *proto = symtab_find_proto(symtab, address);
	uint64_t start;
	size_t len;
	const char *name;

	if (proto) {
		name = symtab_string(symtab, proto->chunk, &len);
		/* Tarantool's parser replaces a chunk name that contains a newline by an alias. */
		return memchr(name, '\n', len) ? SYMBOL_ROLE_NONE : symbol_role_of(name);
	}
	name = symtab_find_native(symtab, address, &start, &len);
	return name ? symbol_role_of(name) : SYMBOL_ROLE_NONE;
}

int merge_sample(struct merge *merge, const struct format_raw_sample *raw,
		 enum symbol_role (*role_of)(void *context, size_t index), void *context,
		 struct failure *why)
{
	size_t start = 0, end = raw->lua_count;

	merge->count = 0;
	if (fill_live(merge, raw, why))
		return -1;
	for (size_t i = raw->host_count; i-- > 0;) {
		enum symbol_role role = role_of(context, i);

		if (append(merge, (struct merge_frame){ false, (uint32_t)i }, why))
			return -1;
		if (role == SYMBOL_ROLE_CPCALL && start < end)
			end--;
		if (role == SYMBOL_ROLE_CALL && insert_lua(merge, raw, &start, &end, why))
			return -1;
	}
	return 0;
}
