/* SPDX-License-Identifier: MIT */
/* Where are VMs? The search uses native stacks while Lua runs, and memory while it does not. */
#include "luastate/vm.h"

#include <stdlib.h>

#include "luastate/arch/arch.h"
#include "luastate/layout/object.h"
#include "luastate/vm/vm_internal.h"

enum {
	/* The interpreter's frame nearest to the top frame is seldom deeper than this. */
	SEARCH_STACK_BYTES = 256 * 1024,
	/* The newest C frame is nearer still: above a trace's spill slots, or a C function's frame.
	 */
	SEARCH_NEWEST_BYTES = 8192,
	/* Coroutines to try on one stack. Words of old frames may name many before the first real
	 * one. */
	SEARCH_STACK_TRIES = 256,
	SEARCH_CHUNK = 256 * 1024,
	SEARCH_PAGE = 4096,    /* the smallest page size */
	SEARCH_GCT_THREAD = 6, /* ~LJ_TTHREAD, in all builds */
};

/* ---- Native stacks ---------------------------------------------------------------------- */

/* Where C frames hold their coroutine in the possible layouts; there are few variants. */
struct locations {
	struct {
		int32_t offset, size;
	} items[16];
	size_t count;
};

static void add_location(struct locations *locations, const struct luastate_layout *layout)
{
	/* On x86-64 without GC64, SAVE_L has 32 bits. */
	int32_t size = layout->ref_size;

	for (size_t i = 0; i < locations->count; i++)
		if (locations->items[i].offset == layout->cframe_L &&
		    locations->items[i].size == size)
			return;
	if (locations->count < sizeof(locations->items) / sizeof(locations->items[0])) {
		locations->items[locations->count].offset = layout->cframe_L;
		locations->items[locations->count++].size = size;
	}
}

/* Whether an interpreter's C frames have the layout's shape. */
static bool fits(const struct state_interpreter *interpreter, const struct luastate_layout *layout)
{
	return interpreter->shape.size == layout->cframe_size &&
	       interpreter->shape.prev == layout->cframe_prev &&
	       strcmp(layout->arch, state_arch_name) == 0;
}

static void collect_locations(const struct state_interpreter *interpreter,
			      struct locations *ret_locations)
{
	ret_locations->count = 0;
	for (size_t i = 0; i < luastate_layout_count; i++)
		if (fits(interpreter, &luastate_layouts[i]))
			add_location(ret_locations, &luastate_layouts[i]);
}

static bool is_used(const struct luastate *state, const struct luastate_layout *layout)
{
	for (size_t i = 0; i < state->interpreter_count; i++)
		if (fits(&state->interpreters[i], layout))
			return true;
	return false;
}

/* Whether two layouts link coroutine and C frame by the same offsets, as consecutive rows mostly
 * do. */
static bool is_alike(const struct luastate_layout *layout, const struct luastate_layout *other)
{
	return layout->ref_size == other->ref_size && layout->cframe_L == other->cframe_L &&
	       layout->lua_State_cframe == other->lua_State_cframe;
}

/** A search on a native stack. */
struct search {
	struct luastate *state;
	const struct attach_reader *reader;
	unsigned tries_left; /* coroutines that may still be tried */
};

/* Call luastate_vm_of(), while there are tries left. */
static const struct luastate_vm *try_coroutine(struct search *search, uint64_t L,
					       struct failure *why)
{
	if (!state_is_aligned(L) || search->tries_left == 0)
		return NULL;
	search->tries_left--;
	return luastate_vm_of(search->state, search->reader, L, why);
}

/* The VM of an interpreter's C frame at @frame. */
static const struct luastate_vm *find_at(struct search *search,
					 const struct state_interpreter *interpreter,
					 uint64_t frame, struct failure *why)
{
	struct locations locations;

	collect_locations(interpreter, &locations);
	for (size_t i = 0; i < locations.count; i++) {
		const struct luastate_vm *vm;
		uint64_t L = 0;

		if (state_read(search->reader, frame + (uint64_t)locations.items[i].offset, &L,
			       (size_t)locations.items[i].size, why) != 0)
			continue;
		vm = try_coroutine(search, L, why);
		if (vm)
			return vm;
	}
	return NULL;
}

const struct luastate_vm *luastate_find_in_frame(struct luastate *state,
						 const struct attach_reader *reader,
						 const struct attach_registers *frame,
						 struct failure *why)
{
	const struct state_interpreter *interpreter = state_interpreter_at(state, attach_pc(frame));
	struct search search = { state, reader, SEARCH_STACK_TRIES };
	uint64_t sp = attach_sp(frame);

	for (unsigned pushed = 0; interpreter && pushed <= state_arch_helper_bytes; pushed += 8) {
		const struct luastate_vm *vm = find_at(&search, interpreter, sp + pushed, why);

		if (vm)
			return vm;
	}
	failure_set(why, FAILURE_NOT_FOUND, 0, 0, sp, "find a VM in a frame");
	return NULL;
}

static const struct luastate_vm *find_shown(struct search *search, uint64_t address, uint64_t word,
					    struct failure *why)
{
	for (size_t i = 0; i < search->state->interpreter_count; i++) {
		const struct state_interpreter *interpreter = &search->state->interpreters[i];
		uint64_t frame = state_arch_frame_shown(interpreter, address, word);
		const struct luastate_vm *vm =
			frame ? find_at(search, interpreter, frame, why) : NULL;

		if (vm)
			return vm;
	}
	return NULL;
}

/* The VM whose coroutine is in the word at @address. The word must be the newest C frame's SAVE_L,
 * as the coroutine's own link to this frame confirms. */
static const struct luastate_vm *find_newest_by(struct search *search,
						const struct luastate_layout *layout,
						uint64_t address, uint64_t word,
						struct failure *why)
{
	uint64_t L = word, link;

	if (layout->ref_size == 4)
		L = layout->cframe_L % 8 ? word >> 32 : (uint32_t)word;
	if (!state_is_aligned(L) ||
	    state_read(search->reader, L + (uint64_t)layout->lua_State_cframe, &link, sizeof(link),
		       why) != 0 ||
	    (link & ~(uint64_t)STATE_CFRAME_FLAGS) != address - (uint64_t)layout->cframe_L / 8 * 8)
		return NULL;
	return try_coroutine(search, L, why);
}

/* Find the newest C frame by its SAVE_L. No return address shows this frame if the interpreter
 * itself was interrupted, or if machine code runs below the frame, behind its spill slots. */
static const struct luastate_vm *find_newest(struct search *search, uint64_t address, uint64_t word,
					     struct failure *why)
{
	const struct luastate_layout *last = NULL;

	for (size_t i = 0; word && i < luastate_layout_count; i++) {
		const struct luastate_layout *layout = &luastate_layouts[i];
		const struct luastate_vm *vm;

		if (!is_used(search->state, layout) || (last && is_alike(layout, last)))
			continue;
		last = layout;
		vm = find_newest_by(search, layout, address, word, why);
		if (vm)
			return vm;
	}
	return NULL;
}

/* Words of a native stack show the interpreter's C frames, whose SAVE_L names the coroutine. */
const struct luastate_vm *luastate_find_on_stack(struct luastate *state,
						 const struct attach_reader *reader, uint64_t sp,
						 uint64_t limit, struct failure *why)
{
	uint64_t words[64]; /* small pieces, because the stack may end anywhere in its last page */
	struct search search = { state, reader, SEARCH_STACK_TRIES };

	if (limit <= sp || limit - sp > SEARCH_STACK_BYTES)
		limit = sp + SEARCH_STACK_BYTES;
	for (uint64_t at = sp & ~(uint64_t)7; at < limit && search.tries_left;
	     at += sizeof(words)) {
		size_t len = limit - at < sizeof(words) ? (size_t)(limit - at) : sizeof(words);

		if (state_read(reader, at, words, len, why) != 0)
			return NULL;
		for (size_t i = 0; i < len / 8; i++) {
			uint64_t address = at + i * 8;
			const struct luastate_vm *vm = find_shown(&search, address, words[i], why);

			if (!vm && address - sp < SEARCH_NEWEST_BYTES)
				vm = find_newest(&search, address, words[i], why);
			if (vm)
				return vm;
		}
	}
	failure_set(why, FAILURE_NOT_FOUND, 0, 0, sp, "find a VM on the stack");
	return NULL;
}

/* ---- Memory ----------------------------------------------------------------------------- */

/* The common shape of main coroutines under all layouts of a value model: at one offset a reference
 * to the global state, which is right behind the coroutine. The coroutine's size varies a little.
 */
struct shape {
	int32_t glref_at, gct_at;
	uint64_t size_min, size_max;
};

/* Unknown builds may have larger coroutines than all rows. */
enum { SIZE_SPARE = 64 };

static struct shape shape_of_model(bool gc64)
{
	struct shape shape = { .size_min = UINT64_MAX };

	for (size_t i = 0; i < luastate_layout_count; i++) {
		const struct luastate_layout *layout = &luastate_layouts[i];
		uint64_t size = (uint64_t)layout->lua_State_sizeof;

		if (strcmp(layout->arch, state_arch_name) != 0 || (layout->gc64 == 1) != gc64)
			continue;
		shape.glref_at = layout->lua_State_glref;
		shape.gct_at = layout->GCobj_gct;
		shape.size_min = size < shape.size_min ? size : shape.size_min;
		shape.size_max = size > shape.size_max ? size : shape.size_max;
	}
	shape.size_max += SIZE_SPARE;
	return shape;
}

/** A copied part of the target's memory. */
struct chunk {
	uint64_t start;
	const uint8_t *bytes;
	size_t len;
};

/* Find a reference in a chunk. All memory of the target passes through this loop, so it compares
 * once for nearly every aligned address. */
static size_t find_reference(const struct chunk *chunk, size_t from, size_t count,
			     const struct shape *shape, bool gc64)
{
	uint64_t start = chunk->start;
	uint64_t range = shape->size_max - shape->size_min;

	if (gc64)
		from += state_arch_pass(chunk->bytes + 8 * from + shape->glref_at, count - from,
					start + 8 * from + shape->size_min, range);
	for (size_t i = from; i < count; i++) {
		const uint8_t *bytes = chunk->bytes + 8 * i;
		uint64_t ref = gc64 ? state_u64(bytes, shape->glref_at)
				    : state_u32(bytes, shape->glref_at);

		if (ref - (start + 8 * i) - shape->size_min <= range)
			return i;
	}
	return count;
}

static const struct luastate_vm *search_chunk(struct luastate *state,
					      const struct attach_reader *reader,
					      const struct chunk *chunk, bool gc64,
					      struct failure *why)
{
	const struct shape shape = shape_of_model(gc64);
	size_t count = chunk->len < STATE_MAIN_HEAD ? 0 : (chunk->len - STATE_MAIN_HEAD) / 8 + 1;

	if (shape.size_min > shape.size_max)
		return NULL; /* no build of this architecture has this value model */
	for (size_t i = 0; i < count; i++) {
		const struct luastate_vm *vm = NULL;

		i = find_reference(chunk, i, count, &shape, gc64);
		if (i < count && chunk->bytes[8 * i + (size_t)shape.gct_at] == SEARCH_GCT_THREAD)
			vm = luastate_vm_of(state, reader, chunk->start + 8 * i, why);
		if (vm)
			return vm;
	}
	return NULL;
}

const struct luastate_vm *luastate_find_in_range(struct luastate *state,
						 const struct attach_reader *reader, uint64_t start,
						 uint64_t end, struct failure *why)
{
	uint8_t *bytes = malloc(SEARCH_CHUNK);
	const struct luastate_vm *found = NULL;
	bool gone = false;

	if (!bytes) {
		failure_set(why, FAILURE_NO_MEMORY, 0, 0, start, "search memory");
		return NULL;
	}
	for (uint64_t at = start, next; at + STATE_MAIN_HEAD <= end && !found; at = next) {
		size_t len = end - at < SEARCH_CHUNK ? (size_t)(end - at) : SEARCH_CHUNK;
		struct chunk chunk;

		next = at + SEARCH_CHUNK - STATE_MAIN_HEAD + 8;
		if (state_read(reader, at, bytes, len, why) != 0) {
			uint64_t fault = why->address;

			gone = why->kind == FAILURE_GONE;
			if (gone)
				break;
			/* A hole: the target maps and unmaps memory during the search. */
			len = fault > at && fault - at < len ? (size_t)(fault - at) : 0;
			next = (fault < at ? at : fault) / SEARCH_PAGE * SEARCH_PAGE + SEARCH_PAGE;
			if (len && state_read(reader, at, bytes, len, why) != 0)
				continue;
		}
		chunk = (struct chunk){ at, bytes, len };
		found = search_chunk(state, reader, &chunk, true, why);
		if (!found && at < UINT32_MAX)
			found = search_chunk(state, reader, &chunk, false, why);
	}
	free(bytes);
	if (!found && !gone)
		failure_set(why, FAILURE_NOT_FOUND, 0, 0, start, "find a VM in memory");
	return found;
}
