/* SPDX-License-Identifier: MIT */
/* At which offsets are the members of lua_State and global_State, as a live VM shows?
 *
 * Source: LuaJIT v2.1 src/lj_obj.h (lua_State, global_State), lj_dispatch.h (GG_State), lj_state.c
 * (stack_init, resizestack), lj_dispatch.c (lj_dispatch_init), lj_str.c (lj_str_resize).
 */
#include "luastate/derive/derive.h"

#include <stdlib.h>

#include "luastate/layout/fields.h"
#include "luastate/state/invariants.h"

enum {
	/* Slots of a dispatch table: opcodes, built-ins, and opcodes again for hooks. */
	SLOTS_MIN = 128,
	SLOTS_MAX = 512,
	BUILT_INS_MIN = 8,
	/* Sizes to try of lua_State, which has about 100 bytes: the main coroutine is right before
	 * its global state. */
	COROUTINE_MIN = 48,
	COROUTINE_MAX = STATE_OBJECT_MAX - 16,
	STACK_EXTRA_MIN = 5,
	STACK_EXTRA_MAX = 16,
	/* Objects of the collector's list to visit, until there are enough functions. */
	LIST_MAX = 65536,
	CHAIN = 64,    /* this number of linked objects is no coincidence */
	GCT_FIRST = 4, /* ~LJ_TSTR */
	GCT_LAST = 12, /* ~LJ_TUDATA */
	STRTAB_LOOKED = 256,
	/* The members of the string table are close to each other. */
	STRTAB_NEAR = 24,
	STACK_LOOKED = 1024,
};

/* ---- The dispatch table ----------------------------------------------------------------- */

/* The dispatch table is a run of addresses in one interpreter. The built-ins' instructions follow
 * it; their opcodes count up from the first number that bytecode does not use. */
static bool find_dispatch(struct derive *derive)
{
	struct luastate_layout *layout = &derive->layout;
	uint64_t at = derive->G + (uint64_t)layout->global_State_to_dispatch, slots[SLOTS_MAX];
	const struct state_interpreter *interpreter = derive->interpreter;
	uint32_t fast[SLOTS_MAX / 2];
	int32_t run = 0, count = 0, first;
	struct failure why;

	if (state_read(derive->reader, at, slots, 8 * SLOTS_MIN, &why) != 0)
		return false;
	while (run < SLOTS_MAX &&
	       (run < SLOTS_MIN ||
		state_read(derive->reader, at + 8 * (uint64_t)run, &slots[run], 8, &why) == 0) &&
	       slots[run] >= interpreter->start && slots[run] < interpreter->end)
		run++;
	if (run < SLOTS_MIN || run == SLOTS_MAX)
		return false;
	at += 8 * (uint64_t)run;
	while (count < SLOTS_MAX / 2 &&
	       state_read(derive->reader, at + 4 * (uint64_t)count, &fast[count], 4, &why) == 0 &&
	       (fast[count] & 0xff) == (fast[0] & 0xff) + (uint32_t)count)
		count++;
	first = (int32_t)(fast[0] & 0xff);
	if (count < BUILT_INS_MIN || run - first - count <= 0 || run - first - count >= first)
		return false;
	derive_note(derive, DERIVE_FIELD(BC__MAX), first);
	derive_note(derive, DERIVE_FIELD(GG_NUM_ASMFF), count);
	derive_note(derive, DERIVE_FIELD(BC_FUNCF), run - first - count);
	derive_note(derive, DERIVE_FIELD(global_State_to_bcff),
		    layout->global_State_to_dispatch + 8 * run);
	return true;
}

/* ---- Coroutines ------------------------------------------------------------------------- */

static bool is_coroutine(const struct derive *derive, uint64_t address)
{
	const struct luastate_layout *layout = &derive->layout;
	uint8_t L[COROUTINE_MIN];
	struct failure why;

	return state_read_object(layout, derive->reader, address, state_gct(layout->tag_thread), L,
				 sizeof(L), &why) == 0 &&
	       state_ref(layout, L, layout->lua_State_glref) == derive->G;
}

/* The main coroutine is right before the global state. */
static bool find_main(struct derive *derive)
{
	for (int32_t size = COROUTINE_MIN; size <= COROUTINE_MAX; size += 8)
		if (is_coroutine(derive, derive->G - (uint64_t)size)) {
			derive_note(derive, DERIVE_FIELD(lua_State_sizeof), size);
			return true;
		}
	return false;
}

/* Each coroutine satisfies maxstack = stack + 8 * (stacksize - 1 - LJ_STACK_EXTRA). @return the
 * extra slots if all coroutines agree with this offset of stacksize, else 0. */
static int32_t extra_at(const struct derive *derive, int32_t location)
{
	const struct luastate_layout *layout = &derive->layout;
	int32_t extra = 0;

	if (location < 0 || location + 4 > layout->lua_State_sizeof)
		return 0;
	for (size_t i = 0; i < derive->objects.thread_count; i++) {
		uint8_t L[STATE_OBJECT_MAX] = { 0 };
		uint64_t stack, limit;
		int64_t own;
		struct failure why;

		if (state_read(derive->reader, derive->objects.threads[i], L,
			       (size_t)layout->lua_State_sizeof, &why) != 0)
			continue;
		stack = state_ref(layout, L, layout->lua_State_stack);
		limit = state_ref(layout, L, layout->lua_State_maxstack);
		own = (int64_t)state_u32(L, location) - 1 - (int64_t)(limit - stack) / 8;
		if (limit <= stack || limit - stack > 8 * STATE_STACK_SLOTS_MAX ||
		    own < STACK_EXTRA_MIN || own > STACK_EXTRA_MAX || (extra && own != extra))
			return 0;
		extra = (int32_t)own;
	}
	return extra;
}

static bool holds_stack_size(const struct derive *derive, int32_t location)
{
	return extra_at(derive, location) > 0;
}

static void find_stack_size(struct derive *derive)
{
	size_t field = DERIVE_FIELD(lua_State_stacksize);
	int32_t extra;

	derive_pick(derive, "lua_State.", field, 4, holds_stack_size);
	if (derive->source[field] == DERIVE_UNKNOWN) {
		int32_t found = -1;

		/* Accept any offset, if it is the only one that fits. */
		for (int32_t at = 8; at + 4 <= derive->layout.lua_State_sizeof; at += 4)
			if (holds_stack_size(derive, at))
				found = found == -1 ? at : -2;
		if (found < 0)
			return;
		derive_note(derive, field, found);
	}
	extra = extra_at(derive, derive->layout.lua_State_stacksize);
	if (extra > 0) /* otherwise a stack was resized between the reads */
		derive_note(derive, DERIVE_FIELD(LJ_STACK_EXTRA), extra);
}

/* ---- Objects ---------------------------------------------------------------------------- */

static void add(uint64_t *list, size_t *count, uint64_t address)
{
	for (size_t i = 0; i < *count; i++)
		if (list[i] == address)
			return;
	if (*count < DERIVE_OBJECTS)
		list[(*count)++] = address;
}

/* Note a Lua function's bytecode; many functions share the same. */
static void add_function(struct derive *derive, uint64_t address)
{
	const struct luastate_layout *layout = &derive->layout;
	uint8_t function[STATE_OBJECT_MAX];
	uint64_t pc;
	struct failure why;

	if (state_read_object(layout, derive->reader, address, state_gct(layout->tag_func),
			      function, (size_t)layout->GCfunc_header, &why) != 0 ||
	    function[layout->GCfunc_ffid] != 0)
		return;
	pc = state_ref(layout, function, layout->GCfunc_pc);
	if (state_is_pointer(pc) && pc % 4 == 0)
		add(derive->objects.code, &derive->objects.code_count, pc);
}

static void add_object(struct derive *derive, uint64_t address, uint8_t gct)
{
	const struct luastate_layout *layout = &derive->layout;

	if (gct == state_gct(layout->tag_thread) && is_coroutine(derive, address))
		add(derive->objects.threads, &derive->objects.thread_count, address);
	else if (gct == state_gct(layout->tag_func))
		add_function(derive, address);
}

/* Note the functions on a coroutine's stack. */
static void add_stack(struct derive *derive, uint64_t L)
{
	const struct luastate_layout *layout = &derive->layout;
	uint64_t stack, top, slot, size = (uint64_t)layout->lua_State_top + 8;
	uint8_t head[STATE_OBJECT_MAX];
	struct failure why;

	if (size < (uint64_t)layout->lua_State_stack + 8)
		size = (uint64_t)layout->lua_State_stack + 8;
	if (size > sizeof(head) || state_read(derive->reader, L, head, size, &why) != 0)
		return;
	stack = state_ref(layout, head, layout->lua_State_stack);
	top = state_u64(head, layout->lua_State_top);
	for (size_t i = 0; state_is_aligned(stack) && i < STACK_LOOKED && stack + 8 * i < top;
	     i++) {
		uint8_t object[16];

		if (state_read(derive->reader, stack + 8 * i, &slot, 8, &why) != 0)
			return;
		/* Without GC64, and in older GC64 builds, a frame's function has no tag in its
		 * slot. */
		slot = state_object(layout, slot);
		if (state_is_aligned(slot) &&
		    state_read(derive->reader, slot, object, sizeof(object), &why) == 0)
			add_object(derive, slot, object[layout->GCobj_gct]);
	}
}

/* Whether @max objects are linked, or all objects up to the main coroutine, which is a VM's first
 * object. @param collect Whether to note them. */
static bool walk_list(struct derive *derive, uint64_t head, size_t max, bool collect)
{
	const struct luastate_layout *layout = &derive->layout;
	uint64_t main_thread = derive->G - (uint64_t)layout->lua_State_sizeof;

	for (size_t count = 0; count < max && head != main_thread; count++) {
		uint8_t object[16];
		struct failure why;

		if (!state_is_aligned(head) ||
		    state_read(derive->reader, head, object, sizeof(object), &why) != 0 ||
		    object[layout->GCobj_gct] < GCT_FIRST || object[layout->GCobj_gct] > GCT_LAST)
			return false;
		if (collect)
			add_object(derive, head, object[layout->GCobj_gct]);
		if (collect && derive->objects.code_count == DERIVE_OBJECTS)
			break;
		head = state_ref(layout, object, 0);
	}
	return true;
}

/* ---- Members of global_State ------------------------------------------------------------ */

/* Whether a list contains an object. */
static bool leads_to(const struct derive *derive, uint64_t head, uint64_t object)
{
	for (size_t count = 0; count < LIST_MAX && head != object; count++) {
		struct failure why;

		if (!state_is_aligned(head) ||
		    state_read_ref(&derive->layout, derive->reader, head, &head, &why) != 0)
			return false;
	}
	return head == object;
}

static bool read_list(struct derive *derive, int32_t at, uint64_t *ret_head)
{
	struct failure why;

	return at >= 0 &&
	       state_read_ref(&derive->layout, derive->reader, derive->G + (uint64_t)at, ret_head,
			      &why) == 0 &&
	       !derive_is_own(derive, *ret_head) && walk_list(derive, *ret_head, CHAIN, false);
}

/* The list of all objects is three references before the list gc.grayagain, which the code shows;
 * sweep and gray are between them. These lead to older objects than their first one, so the list of
 * all objects must contain that. */
static void find_list(struct derive *derive)
{
	int32_t again, location, size = derive->layout.ref_size;
	uint64_t head, other;

	if (!derive_winner(&derive->reading->gc_grayagain, &again))
		return;
	location = again - 3 * size;
	if (!read_list(derive, location, &head))
		return;
	for (int32_t at = location - size; at < again; at += size)
		if (at != location && read_list(derive, at, &other) &&
		    !leads_to(derive, head, other))
			return;
	derive_note(derive, DERIVE_FIELD(global_State_gc_root), location);
	walk_list(derive, head, LIST_MAX, true);
}

/* Whether @table is the string table: the hashes of the first buckets' strings lead back to them.
 * Newer builds keep a flag of the hash in the reference's lowest bit. */
static bool is_string_table(const struct derive *derive, uint64_t table, uint32_t mask,
			    int32_t hash)
{
	const struct luastate_layout *layout = &derive->layout;
	size_t size = (size_t)layout->ref_size, seen = 0;
	uint8_t heads[8 * STRTAB_LOOKED];
	struct failure why;

	if (!state_is_aligned(table) ||
	    state_read(derive->reader, table, heads, size * STRTAB_LOOKED, &why) != 0)
		return false;
	for (uint32_t i = 0; i < STRTAB_LOOKED; i++) {
		uint64_t head = state_ref(layout, heads, (int32_t)(size * i)) & ~(uint64_t)1;
		uint8_t string[STATE_OBJECT_MAX];

		if (!head)
			continue;
		if (state_read_object(layout, derive->reader, head, state_gct(layout->tag_str),
				      string, (size_t)layout->GCstr_sizeof, &why) != 0 ||
		    (state_u32(string, hash) & mask) != i)
			return false;
		seen++;
	}
	return seen > STRTAB_LOOKED / 16;
}

static void find_string_table(struct derive *derive)
{
	const struct luastate_layout *layout = &derive->layout;

	for (int32_t at = 0; at + 4 <= derive->g_len; at += 4) {
		uint32_t mask = state_u32(derive->g, at);

		if (mask < STATE_STRTAB_MASK_MIN || (mask & (mask + 1)) != 0 || mask == UINT32_MAX)
			continue;
		for (int32_t location = (at - STRTAB_NEAR) & ~(layout->ref_size - 1);
		     location <= at + STRTAB_NEAR; location += layout->ref_size)
			if (location >= 0 && location + layout->ref_size <= derive->g_len &&
			    is_string_table(derive, state_ref(layout, derive->g, location), mask,
					    layout->GCstr_hash)) {
				derive_note(derive, DERIVE_FIELD(global_State_str_mask), at);
				return;
			}
	}
}

/* The registry is the only table with the loaded modules. */
static void find_registry(struct derive *derive)
{
	const struct luastate_layout *layout = &derive->layout;

	for (int32_t at = 0; at + 8 <= derive->g_len; at += 8) {
		uint64_t value = state_u64(derive->g, at), loaded;

		if (state_tag(layout, value) != layout->tag_tab)
			continue;
		loaded = state_table_get(layout, derive->reader, state_object(layout, value),
					 "_LOADED", UINT64_MAX);
		if (state_tag(layout, loaded) != layout->tag_tab)
			continue;
		derive_note(derive, DERIVE_FIELD(global_State_registrytv), at);
		return;
	}
}

static bool is_empty_string(const struct derive *derive, int32_t at)
{
	const struct luastate_layout *layout = &derive->layout;

	return at >= 0 && at + layout->GCstr_sizeof < derive->g_len &&
	       derive->g[at + layout->GCobj_gct] == state_gct(layout->tag_str) &&
	       state_u32(derive->g, at + layout->GCstr_len) == 0 &&
	       derive->g[at + layout->GCstr_sizeof] == 0;
}

static bool refers_to_main(const struct derive *derive, int32_t at)
{
	const struct luastate_layout *layout = &derive->layout;

	return at >= 0 && at + layout->ref_size <= derive->g_len &&
	       at != layout->global_State_cur_L &&
	       state_ref(layout, derive->g, at) == derive->G - (uint64_t)layout->lua_State_sizeof;
}

/* The empty string is between members that the code shows. Zeros elsewhere may look like it. */
static void find_empty_string(struct derive *derive)
{
	size_t field = DERIVE_FIELD(global_State_strempty);
	int32_t least, most, location = state_field_value(derive->row, field);

	derive_range(derive, "global_State.", field, &least, &most);
	for (int32_t shift = least; shift <= most; shift += derive->layout.ref_size)
		if (is_empty_string(derive, location + shift)) {
			derive_note(derive, field, location + shift);
			derive_note(derive, DERIVE_FIELD(global_State_stremptyz),
				    location + shift + derive->layout.GCstr_sizeof);
			return;
		}
	derive->source[field] = DERIVE_DOUBTFUL;
}

/* Note the offset that passes a test and is nearest to the row's. */
static void find_member(struct derive *derive, size_t field, int32_t step, derive_test *holds)
{
	int32_t location = state_field_value(derive->row, field);

	for (int32_t i = 0; i <= 2 * derive->g_len / step; i++) {
		int32_t at = location + (i % 2 ? -step : step) * ((i + 1) / 2);

		if (at >= 0 && at < derive->g_len && holds(derive, at)) {
			derive_note(derive, field, at);
			return;
		}
	}
}

/* The collector's phase is between its sums, which the code shows, and its list of objects. A phase
 * is a small number that any byte may look like, so its offset is believed only if both neighbours
 * have moved by the same distance. */
static void find_phase(struct derive *derive)
{
	const struct luastate_layout *row = derive->row, *layout = &derive->layout;
	int32_t total, shift = layout->global_State_gc_root - row->global_State_gc_root;

	if (!derive_winner(&derive->reading->gc_total, &total))
		return;
	if (derive_is_seen(derive, DERIVE_FIELD(global_State_gc_root)) &&
	    total - row->global_State_gc_total == shift)
		derive_note(derive, DERIVE_FIELD(global_State_gc_state),
			    row->global_State_gc_state + shift);
}

static bool find_globals(struct derive *derive)
{
	struct luastate_layout *layout = &derive->layout;
	int32_t end = derive->reading->has_compiler ? layout->global_State_to_J
						    : layout->global_State_to_dispatch;
	int32_t total;
	struct failure why;

	derive->g_len = end < STATE_GLOBAL_MAX - 8 ? end : STATE_GLOBAL_MAX - 8;
	if (derive->g_len < layout->ref_size ||
	    state_read(derive->reader, derive->G, derive->g, (size_t)derive->g_len, &why) != 0)
		return false;
	/* The compiler's state is aligned to 16 bytes, the structure itself to 8. The padding
	 * between does not matter. */
	derive_note(derive, DERIVE_FIELD(global_State_sizeof), derive->g_len);
	if (derive_winner(&derive->reading->gc_total, &total))
		derive_note(derive, DERIVE_FIELD(global_State_gc_total), total);
	find_string_table(derive);
	find_registry(derive);
	find_member(derive, DERIVE_FIELD(global_State_mainthref), layout->ref_size, refers_to_main);
	return true;
}

bool derive_vm(struct derive *derive, uint64_t L)
{
	struct luastate_layout *layout = &derive->layout;
	uint64_t current;
	struct failure why;

	if (!derive_is_seen(derive, DERIVE_FIELD(lua_State_glref)) ||
	    layout->lua_State_glref + 8 > COROUTINE_MIN ||
	    state_read_ref(layout, derive->reader, L + (uint64_t)layout->lua_State_glref,
			   &derive->G, &why) != 0 ||
	    !state_is_aligned(derive->G) || !is_coroutine(derive, L) || !find_dispatch(derive) ||
	    !find_main(derive)) {
		derive->G = 0; /* no VM: a failed search causes no delay */
		return false;
	}
	memset(&derive->objects, 0, sizeof(derive->objects));
	add_object(derive, L, (uint8_t)state_gct(layout->tag_thread));
	add_object(derive, derive->G - (uint64_t)layout->lua_State_sizeof,
		   (uint8_t)state_gct(layout->tag_thread));
	if (!find_globals(derive))
		return false;
	if (layout->global_State_cur_L + layout->ref_size > derive->g_len)
		return false;
	current = state_ref(layout, derive->g, layout->global_State_cur_L);
	if (state_is_aligned(current))
		add_object(derive, current, (uint8_t)state_gct(layout->tag_thread));
	for (size_t i = 0; i < derive->objects.thread_count; i++)
		add_stack(derive, derive->objects.threads[i]);
	find_list(derive);
	find_phase(derive);
	find_empty_string(derive);
	derive_fill(derive, "global_State.");
	find_stack_size(derive);
	derive_fill(derive, "lua_State.");
	return true;
}
