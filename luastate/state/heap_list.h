/* SPDX-License-Identifier: MIT */
/* Private to luastate: all objects of a VM. */
#ifndef LUASTATE_STATE_HEAP_LIST_H
#define LUASTATE_STATE_HEAP_LIST_H

#include "luastate/layout/object.h"

struct heap_page;

/** A walk along the list of all objects but strings; newest first. */
struct heap_list {
	const struct luastate_layout *layout;
	const struct attach_reader *reader;
	uint64_t G;
	/** Asked now and then. @return Whether the walk is to end here. */
	bool (*is_over)(void *context);
	/** Called for each object, also for those of walks that do not reach the end. @param gct
	 * Its type. */
	void (*visit)(void *context, uint64_t object, uint8_t gct);
	void *context;
	struct heap_page *pages; /**< The list's own, as what follows. */
	uint64_t objects;	 /**< That all walks have met. */
};

/**
 * Visit all objects of a VM. Of a process that runs meanwhile objects may be freed under us: then
 * the list leads anywhere, which is seen, and it is walked again.
 *
 * Stopped window: no. Bounded in objects, and by is_over().
 * @return Whether the walk came to its end: then all were met that were there before and still are.
 * Source: LuaJIT v2.1 src/lj_state.c (lua_newstate), src/lj_gc.c (lj_mem_newgco), src/lj_udata.c
 * (lj_udata_new).
 */
bool heap_list_walk(struct heap_list *list);

/** Bytes as they were a moment ago, during a walk. @return false where there are none. */
bool heap_list_read(struct heap_list *list, uint64_t address, uint8_t *ret_bytes, size_t len);

#endif
