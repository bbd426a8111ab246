/* SPDX-License-Identifier: MIT */
/* Which chain do a raw sample's Lua and native frames form? */
#ifndef FORMAT_STREAM_MERGE_H
#define FORMAT_STREAM_MERGE_H

#include "format/stream.h"
#include "format/stream/stream_symbols.h"
#include "format/sysprof/symbol_encoding.h"

/** One frame of a merged chain: an index into the raw sample's Lua or host list. */
struct merge_frame {
	bool is_lua;
	uint32_t index;
};

/** A merged chain, root first. All zero is empty; the memory is reused by the next merge. */
struct merge {
	struct merge_frame *frames;
	size_t count, capacity;
	struct merge_frame *live; /* The rest of the Lua list during a merge. */
	size_t live_capacity;
};

void merge_deinit(struct merge *merge);

/** @return The effect of a host address on the merge, by its text. */
enum symbol_role merge_role_of(const struct symtab *symtab, uint64_t address);

/**
 * Merge the two stacks of a sample exactly as Tarantool's parser does. It prints the host frames
 * from the root;
 * - after a frame named lua_call… or lua_pcall…, it prints the Lua list from the root up to its
 * first C function, and removes that C function, or the last printed frame, from the list;
 * - before a frame named lua_cpcall…, it removes the leaf from the list.
 * Printed frames stay in the list, so a second such host frame repeats them.
 * Source: tarantool/luajit b52fe979, tools/sysprof/parse.lua.
 * @param role_of Returns the role of host frame @p index: merge_role_of() its address.
 * @return 0, or -1 with FAILURE_NO_MEMORY or, for hostile repetition, FAILURE_LIMIT.
 */
int merge_sample(struct merge *merge, const struct format_raw_sample *raw,
		 enum symbol_role (*role_of)(void *context, size_t index), void *context,
		 struct failure *why);

#endif
