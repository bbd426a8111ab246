/* SPDX-License-Identifier: MIT */
/* Which invariants does a live VM satisfy, whatever its program does?
 *
 * A layout is believed only if it satisfies all of them, so a build that differs from every row is
 * refused, and never walked wrongly. Prototypes and coroutines have invariants of their own, which
 * are checked where they are read.
 *
 * The target runs while it is read, so no check depends on two reads of the same time, unless a
 * second look decides (luastate_vm_of() tries again).
 *
 * Source: LuaJIT v2.1 src/lj_state.c (lua_newstate, stack_init, resizestack), lj_obj.h, lj_str.c,
 * lj_gc.h (GC states), lj_dispatch.c (lj_dispatch_init), lj_trace.c (trace_findfree).
 */
#include "luastate/state/invariants.h"

#include "luastate/layout/object.h"
#include "luastate/state/state.h"

enum {
	GC_STATE_LAST = 5, /* GCSfinalize */
	/* The largest setting of maxtrace is below 65536. */
	TRACES_MAX = 65536,
	TRACES_LOOKED = 4096,
	TRACES_AT_ONCE = 64,
	/* One trace may fit two rows by its lengths; several traces of different lengths do not. */
	TRACES_CHECKED = 4,
	DISPATCH_MAX = 512,
	VMSTATE_LEAST = -16, /* no build has this number of states */
};

/** A check of one VM under one layout. */
struct check {
	const struct luastate *state;
	const struct luastate_layout *layout;
	const struct attach_reader *reader;
	uint64_t G, main_thread;
	luastate_invariant_visitor *visit;
	void *context;
	bool good;
	uint8_t g[STATE_GLOBAL_MAX], L[STATE_OBJECT_MAX];
};

/* Note the result of an invariant. @return whether to continue. */
static bool note(struct check *check, const char *what, uint64_t address, uint64_t value,
		 bool holds)
{
	if (check->visit)
		check->visit(check->context, what, address, value, holds);
	check->good &= holds;
	return check->good || check->visit;
}

/* Note the result of an invariant of a member of global_State. */
static bool note_member(struct check *check, const char *what, int32_t offset, uint64_t value,
			bool holds)
{
	return note(check, what, check->G + (uint64_t)offset, value, holds);
}

/* The main coroutine is right before the global state, and each refers to the other. */
static bool check_main(struct check *check)
{
	const struct luastate_layout *layout = check->layout;
	uint64_t glref = state_ref(layout, check->L, layout->lua_State_glref);
	uint64_t back = state_ref(layout, check->g, layout->global_State_mainthref);

	return note(check, "the main coroutine is a coroutine",
		    check->main_thread + (uint64_t)layout->GCobj_gct, check->L[layout->GCobj_gct],
		    check->L[layout->GCobj_gct] == state_gct(layout->tag_thread)) &&
	       note(check, "it refers to the global state right behind it",
		    check->main_thread + (uint64_t)layout->lua_State_glref, glref,
		    glref == check->G) &&
	       note_member(check, "the global state refers back to it",
			   layout->global_State_mainthref, back, back == check->main_thread);
}

static bool check_strings(struct check *check)
{
	const struct luastate_layout *layout = check->layout;
	int32_t empty = layout->global_State_strempty;
	uint8_t type = check->g[empty + layout->GCobj_gct];
	uint32_t len = state_u32(check->g, empty + layout->GCstr_len);
	uint32_t mask = state_u32(check->g, layout->global_State_str_mask);
	uint8_t end = check->g[layout->global_State_stremptyz];

	return note_member(check, "the empty string is a string", empty + layout->GCobj_gct, type,
			   type == state_gct(layout->tag_str)) &&
	       note_member(check, "its length is 0", empty + layout->GCstr_len, len, len == 0) &&
	       note_member(check, "its text is terminated", layout->global_State_stremptyz, end,
			   end == 0 && layout->global_State_stremptyz ==
					       empty + layout->GCstr_sizeof) &&
	       note_member(check, "the string table's mask is 2^n-1", layout->global_State_str_mask,
			   mask, mask >= STATE_STRTAB_MASK_MIN && (mask & (mask + 1)) == 0);
}

/* A coroutine belongs to this VM, and has a stack of its own. */
static bool check_coroutine(struct check *check, uint64_t address, const char *what_type,
			    const char *what_stack)
{
	const struct luastate_layout *layout = check->layout;
	uint8_t L[STATE_OBJECT_MAX];
	uint64_t stack, limit, base, slot = 0;
	uint32_t size;
	struct failure why;
	bool holds =
		state_read_object(layout, check->reader, address, state_gct(layout->tag_thread), L,
				  (size_t)layout->lua_State_sizeof, &why) == 0 &&
		state_ref(layout, L, layout->lua_State_glref) == check->G;

	if (!holds)
		return note(check, what_type, address, 0, false);
	if (!note(check, what_type, address, L[layout->GCobj_gct], true))
		return false;
	stack = state_ref(layout, L, layout->lua_State_stack);
	limit = state_ref(layout, L, layout->lua_State_maxstack);
	base = state_u64(L, layout->lua_State_base);
	size = state_u32(L, layout->lua_State_stacksize);
	holds = state_is_aligned(stack) && size > (uint32_t)layout->LJ_STACK_EXTRA &&
		size < STATE_STACK_SLOTS_MAX &&
		limit == stack + 8 * ((uint64_t)size - 1 - (uint64_t)layout->LJ_STACK_EXTRA) &&
		base > stack && base <= limit + 8 * (uint64_t)layout->LJ_STACK_EXTRA &&
		base % 8 == 0 && state_u64(L, layout->lua_State_top) % 8 == 0 &&
		state_read(check->reader, stack, &slot, 8, &why) == 0 &&
		state_object(layout, slot) == address;
	return note(check, what_stack, stack, slot, holds);
}

static bool check_coroutines(struct check *check)
{
	const struct luastate_layout *layout = check->layout;
	uint64_t current = state_ref(layout, check->g, layout->global_State_cur_L);
	uint64_t base = state_ref(layout, check->g, layout->global_State_jit_base);

	if (!check_coroutine(check, check->main_thread, "the main coroutine is of this VM",
			     "its stack holds it in its lowest slot"))
		return false;
	if (current && !check_coroutine(check, current, "the current coroutine is of this VM",
					"its stack holds it in its lowest slot"))
		return false;
	return note_member(check, "the base of compiled code is none or a slot",
			   layout->global_State_jit_base, base,
			   base == 0 || state_is_aligned(base));
}

static bool check_state(struct check *check)
{
	const struct luastate_layout *layout = check->layout;
	uint8_t gc = layout->global_State_gc_state == LAYOUT_ABSENT
			     ? 0
			     : check->g[layout->global_State_gc_state];
	int32_t vmstate = (int32_t)state_u32(check->g, layout->global_State_vmstate);
	int32_t least = layout->vmst_asm == LAYOUT_ABSENT ? VMSTATE_LEAST : ~layout->vmst_asm;
	uint64_t registry = state_u64(check->g, layout->global_State_registrytv);
	uint8_t table[STATE_OBJECT_MAX] = { 0 };
	struct failure why;
	bool is_table = state_tag(layout, registry) == layout->tag_tab &&
			state_read_object(layout, check->reader, state_object(layout, registry),
					  state_gct(layout->tag_tab), table,
					  (size_t)layout->GCtab_sizeof, &why) == 0;
	uint32_t mask = state_u32(table, layout->GCtab_hmask);

	return (layout->global_State_gc_state == LAYOUT_ABSENT ||
		note_member(check, "the collector is in a phase", layout->global_State_gc_state, gc,
			    gc <= GC_STATE_LAST)) &&
	       note_member(check, "the VM is in a state", layout->global_State_vmstate,
			   (uint32_t)vmstate,
			   (vmstate != 0 || !STATE_TRACES_NOTED) && vmstate >= least &&
				   vmstate < TRACES_MAX) &&
	       note_member(check, "the registry is a table", layout->global_State_registrytv,
			   registry, is_table && (mask & (mask + 1)) == 0);
}

/* Each slot of the dispatch table leads into one interpreter. The built-ins' bytecode follows the
 * table, with consecutive opcodes; so a build fails in which any part before it has another length.
 */
static bool check_dispatch(struct check *check)
{
	const struct luastate_layout *layout = check->layout;
	size_t handlers = (size_t)(layout->BC__MAX + layout->GG_NUM_ASMFF + layout->BC_FUNCF);
	size_t ffs = (size_t)layout->GG_NUM_ASMFF, good = 0, counted = 0;
	uint64_t dispatch[DISPATCH_MAX], at = check->G + (uint64_t)layout->global_State_to_dispatch;
	uint64_t bcff_at = check->G + (uint64_t)layout->global_State_to_bcff;
	uint32_t bcff[DISPATCH_MAX];
	const struct state_interpreter *first;
	struct failure why;

	if (handlers > DISPATCH_MAX || bcff_at != at + 8 * handlers ||
	    state_read(check->reader, at, dispatch, 8 * handlers, &why) != 0 ||
	    state_read(check->reader, bcff_at, bcff, 4 * ffs, &why) != 0)
		return note(check, "the dispatch table leads into one interpreter", at, 0, false);
	first = state_interpreter_at(check->state, dispatch[0]);
	for (size_t i = 0; i < handlers; i++)
		good += first && state_interpreter_at(check->state, dispatch[i]) == first;
	for (size_t i = 0; i < ffs; i++)
		counted += (bcff[i] & 0xff) == (uint32_t)layout->BC__MAX + i;
	return note(check, "the dispatch table leads into one interpreter", at, dispatch[0],
		    good == handlers) &&
	       note(check, "its C frames have this size", at,
		    first ? (uint64_t)first->shape.size : 0,
		    first && first->shape.size == layout->cframe_size &&
			    first->shape.prev == layout->cframe_prev) &&
	       note(check, "the built-ins' bytecode follows it", bcff_at, bcff[0], counted == ffs);
}

/* ---- The compiler ----------------------------------------------------------------------- */

/* A trace is one block: GCtrace, instructions, snapshots, their map (lj_trace_alloc). */
bool state_trace_fits(const struct luastate_layout *layout, const struct attach_reader *reader,
		      const uint8_t *trace, uint64_t address, uint32_t number)
{
	uint32_t nins = state_u32(trace, layout->GCtrace_nins);
	uint32_t nk = state_u32(trace, layout->GCtrace_nk);
	uint64_t header = ((uint64_t)layout->GCtrace_sizeof + 7) & ~(uint64_t)7;
	uint64_t snap = address + header + 8 * ((uint64_t)nins - nk);
	uint64_t snapmap = snap + (state_u32(trace, layout->GCtrace_nsnap) & 0xffff) *
					  (uint64_t)layout->SnapShot_sizeof;
	uint64_t pt = state_ref(layout, trace, layout->GCtrace_startpt);
	uint64_t bytecode = pt + (uint64_t)layout->GCproto_sizeof;
	uint64_t pc = state_ref(layout, trace, layout->GCtrace_startpc);
	uint8_t proto[STATE_OBJECT_MAX];
	struct failure why;

	return (state_u32(trace, layout->GCtrace_traceno) & 0xffff) == number &&
	       nins > TRACE_REF_BASE && nk <= TRACE_REF_BASE &&
	       state_u64(trace, layout->GCtrace_ir) == address + header - 8 * (uint64_t)nk &&
	       state_u64(trace, layout->GCtrace_snap) == snap &&
	       state_u64(trace, layout->GCtrace_snapmap) == snapmap &&
	       trace[layout->GCtrace_linktype] <= TRACE_LINK_STITCH &&
	       state_is_pointer(state_u64(trace, layout->GCtrace_mcode)) &&
	       state_u32(trace, layout->GCtrace_szmcode) > 0 &&
	       state_read_object(layout, reader, pt, state_gct(layout->tag_proto), proto,
				 (size_t)layout->GCproto_sizeof, &why) == 0 &&
	       pc >= bytecode &&
	       pc - bytecode < 4 * (uint64_t)state_u32(proto, layout->GCproto_sizebc);
}

static bool trace_at_fits(const struct luastate_layout *layout, const struct attach_reader *reader,
			  uint64_t address, uint32_t number)
{
	uint8_t trace[STATE_OBJECT_MAX];
	struct failure why;

	return state_read_object(layout, reader, address, state_gct(layout->tag_trace), trace,
				 (size_t)layout->GCtrace_sizeof, &why) == 0 &&
	       state_trace_fits(layout, reader, trace, address, number);
}

/* Read references of a table, if possible several at once. @return their number. */
static uint32_t read_refs(const struct luastate_layout *layout, const struct attach_reader *reader,
			  uint64_t address, uint32_t count, uint8_t bytes[8 * TRACES_AT_ONCE])
{
	size_t size = (size_t)layout->ref_size;
	struct failure why;

	if (count > TRACES_AT_ONCE)
		count = TRACES_AT_ONCE;
	if (state_read(reader, address, bytes, size * count, &why) == 0)
		return count;
	return state_read(reader, address, bytes, size, &why) == 0 ? 1 : 0;
}

/* The table of traces has no trace 0, and each trace has its own number. */
static bool traces_fit(const struct luastate_layout *layout, const struct attach_reader *reader,
		       uint64_t G, uint64_t table, uint32_t size)
{
	uint64_t trace, end = G + (uint64_t)layout->global_State_to_dispatch;
	uint32_t first = 0, count = 0;
	unsigned left = TRACES_CHECKED;
	uint8_t bytes[8 * TRACES_AT_ONCE];

	for (uint32_t i = 0; i < size && i < TRACES_LOOKED && left; i++) {
		if (i == first + count) {
			first = i;
			count = read_refs(layout, reader, table + (uint64_t)layout->ref_size * i,
					  size - i, bytes);
		}
		if (count == 0)
			return false;
		trace = state_ref(layout, bytes, layout->ref_size * (int32_t)(i - first));
		if (trace >= G && trace < end)
			continue; /* J.cur, a trace being recorded */
		if (!trace)
			continue;
		if (i == 0 || !trace_at_fits(layout, reader, trace, i))
			return false;
		left--;
	}
	return true;
}

bool state_check_trace(const struct luastate_layout *layout, const struct attach_reader *reader,
		       uint64_t G)
{
	uint64_t J = G + (uint64_t)layout->global_State_to_J, table;
	uint32_t size, unused;
	struct failure why;

	if (state_read(reader, J + (uint64_t)layout->jit_State_trace, &table, 8, &why) != 0 ||
	    state_read(reader, J + (uint64_t)layout->jit_State_sizetrace, &size, 4, &why) != 0 ||
	    state_read(reader, J + (uint64_t)layout->jit_State_freetrace, &unused, 4, &why) != 0)
		return false;
	if (size == 0)
		return table == 0;
	return size <= TRACES_MAX && state_is_aligned(table) && unused <= size &&
	       traces_fit(layout, reader, G, table, size);
}

static bool check_compiler(struct check *check)
{
	const struct luastate_layout *layout = check->layout;
	/* Builds without the compiler, and those with an unknown one, have nothing to check. */
	uint64_t J = check->G + (uint64_t)layout->global_State_to_J, L = 0;
	struct failure why;
	/* The coroutine that was recorded last may have been collected since. */
	bool known = !state_has_compiler(layout) ||
		     state_read(check->reader, J + (uint64_t)layout->jit_State_L, &L, 8, &why) == 0;

	return !state_has_compiler(layout) ||
	       (note(check, "the compiler's state names an object or none",
		     J + (uint64_t)layout->jit_State_L, L,
		     known && (L == 0 || state_is_aligned(L))) &&
		note(check, "its traces have their numbers and parts",
		     J + (uint64_t)layout->jit_State_trace, 0,
		     state_check_trace(layout, check->reader, check->G)));
}

bool state_check_vm(const struct luastate *state, const struct luastate_layout *layout,
		    const struct attach_reader *reader, uint64_t G,
		    luastate_invariant_visitor *visit, void *context)
{
	struct check check = { .state = state,
			       .layout = layout,
			       .reader = reader,
			       .G = G,
			       .main_thread = G - (uint64_t)layout->lua_State_sizeof,
			       .visit = visit,
			       .context = context,
			       .good = true };
	struct failure why;

	if (state_read(reader, G, check.g, (size_t)layout->global_State_sizeof, &why) != 0 ||
	    state_read(reader, check.main_thread, check.L, (size_t)layout->lua_State_sizeof,
		       &why) != 0)
		return note(&check, "the global state is readable", G, 0, false) && check.good;
	return check_main(&check) && check_strings(&check) && check_state(&check) &&
	       check_coroutines(&check) && check_dispatch(&check) && check_compiler(&check) &&
	       check.good;
}
