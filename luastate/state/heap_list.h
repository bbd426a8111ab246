/* SPDX-License-Identifier: MIT */
/* Which objects does a VM have? Private to luastate. */
#ifndef LUASTATE_STATE_HEAP_LIST_H
#define LUASTATE_STATE_HEAP_LIST_H

#include "luastate/layout/object.h"

struct heap_page;

/** A walk along the list of all objects except strings; newest first. */
struct heap_list {
	const struct luastate_layout *layout;
	const struct attach_reader *reader;
	uint64_t G;
	/** Called at intervals. @return whether the walk must end. */
	bool (*is_over)(void *context);
	/**
	 * Called for each object, also in walks that do not reach the end.
	 * @param header Its first bytes, up to its type. @return whether to continue.
	 */
	bool (*visit)(void *context, uint64_t object, const uint8_t *header);
	void *context;
	bool is_still;		 /**< The objects do not change, so one walk is enough. */
	struct heap_page *pages; /**< This and the next member belong to the list. */
	uint64_t objects;	 /**< Objects that all walks have met. */
};

/**
 * Visit all objects of a VM. A process that runs may free objects under the walk, so that the list
 * leads anywhere; the walk detects this and starts again.
 *
 * Stopped window: only with is_still, which reads object by object. Bounded by a number of objects,
 * and by is_over().
 * @return Whether a walk reached the end: it met all objects that existed before and still exist.
 * Source: LuaJIT v2.1 src/lj_state.c (lua_newstate), src/lj_gc.c (lj_mem_newgco), src/lj_udata.c
 * (lj_udata_new).
 */
bool heap_list_walk(struct heap_list *list);

/** Read bytes as they were a moment ago, during a walk. @return false if they cannot be read. */
bool heap_list_read(struct heap_list *list, uint64_t address, uint8_t *ret_bytes, size_t len);

#endif
