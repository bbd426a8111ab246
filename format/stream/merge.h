/* SPDX-License-Identifier: MIT */
/* One chain of a raw sample's Lua and native frames. */
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

/** A merged chain, root first. All zero is empty; memory is kept from one merge to the next. */
struct merge {
	struct merge_frame *frames;
	size_t count, capacity;
	struct merge_frame *live; /* The Lua list as the merge eats it. */
	size_t live_capacity;
};

void merge_deinit(struct merge *merge);

/** What a host address makes the merge do, by its text. */
enum symbol_role merge_role_of(const struct symtab *symtab, uint64_t address);

/**
 * Merge the two stacks of a sample exactly as the reference parser does. From the root, each host
 * frame is printed;
 *  - behind one named lua_call… or lua_pcall… the Lua frames follow, from the root of the Lua list
 *    up to its first C function, and that C function, or the last frame printed, leaves the list;
 *  - before one named lua_cpcall… the leaf leaves the list.
 * Printed frames stay in the list, so a second such host frame repeats them.
 * Source: tarantool/luajit b52fe979, tools/sysprof/parse.lua.
 * @param role_of Role of the host frame with that index: merge_role_of() its address.
 * @return 0, or -1 with FAILURE_NO_MEMORY or, for hostile repetition, FAILURE_LIMIT.
 */
int merge_sample(struct merge *merge, const struct format_raw_sample *raw,
		 enum symbol_role (*role_of)(void *context, size_t index), void *context,
		 struct failure *why);

#endif
