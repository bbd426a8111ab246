/* SPDX-License-Identifier: MIT */
/*
 * Which coroutines does a VM have, each with which stack?
 *
 * The list of all objects has them. Each is checked: whether it refers to its VM, and whether its
 * stack refers to it.
 *
 * Location of a stack's topmost frame:
 *   suspended, dead   lua_State.base, as the yield or the error left it
 *   normal            lua_State.base, as the call of resume left it
 *   away              lua_State.base, as the C function that left for another stack left it
 *   running           lua_State.base during a system call, unless compiled code made the call; else
 *                     in registers
 *
 * Source: LuaJIT v2.1 src/lib_base.c (coroutine.status), src/lj_state.c (lua_newstate,
 * lj_state_new), src/lj_gc.c (lj_mem_newgco, isdead), src/lj_err.c, src/vm_x64.dasc (vm_resume,
 * coroutine_yield: L->base, L->status, L->cframe; cur_L is set whenever a call into C returns).
 */
#include "luastate/coroutines.h"

#include <stdlib.h>
#include <time.h>

#include "attach/clock.h"
#include "luastate/definition/definition_names.h"
#include "luastate/layout/object.h"
#include "luastate/stack/match_runs.h"
#include "luastate/state/heap_list.h"
#include "luastate/variables.h"
#include "luastate/vm/vm_internal.h"

enum {
	/* dummy_ffid and status follow the type. Source: lj_obj.h, struct lua_State. */
	STATUS_FROM_TYPE = 2,
	STATUS_YIELD = 1, /* LUA_YIELD; errors have higher numbers */
};

/** An enumeration. */
struct each {
	const struct luastate_coroutines *how;
	const struct luastate_vm *vm;
	const struct luastate_layout *layout; /* the VM's */
	struct walk walk;
	uint64_t cur_L, jit_base;
	uint8_t other_white; /* colour of objects that the collector found dead */
};

/** State of one coroutine, from its lua_State. */
struct probe {
	uint64_t L, base, top, vm_frame;
	uint8_t status;
	const struct luastate_position
		*position; /* position of the thread that runs on its VM frames, if any */
	bool is_away;	   /* no thread runs on its VM frames */
	struct walk_stack stack;
};

static const char *const status_names[LUASTATE_COROUTINE_STATUSES] = {
	[LUASTATE_COROUTINE_SUSPENDED] = "suspended", [LUASTATE_COROUTINE_RUNNING] = "running",
	[LUASTATE_COROUTINE_NORMAL] = "normal",	      [LUASTATE_COROUTINE_DEAD] = "dead",
	[LUASTATE_COROUTINE_IDLE] = "idle",	      [LUASTATE_COROUTINE_UNKNOWN] = "unknown",
};

const char *luastate_coroutine_status_name(enum luastate_coroutine_status status)
{
	return status_names[status];
}

/* ---- Status ----------------------------------------------------------------------------- */

/* Find the thread whose native stack contains a VM frame. Frames are above its stack pointer. */
static const struct luastate_position *find_position(const struct each *each, uint64_t vm_frame)
{
	for (size_t i = 0; i < each->how->position_count; i++) {
		const struct luastate_position *position = &each->how->positions[i];

		if (vm_frame >= position->sp && vm_frame >= position->stack_start &&
		    vm_frame < position->stack_end)
			return position;
	}
	return NULL;
}

/* @return false if it is not a coroutine of this VM, or is being created. */
static bool probe_coroutine(struct each *each, uint64_t L, struct probe *ret_probe)
{
	const struct luastate_layout *layout = each->layout;
	uint8_t bytes[STATE_OBJECT_MAX];
	struct failure why;

	/* walk_read_stack() would search for another VM. */
	if (state_global_of(layout, each->walk.stopped, L) != each->vm->G ||
	    state_read(each->walk.stopped, L, bytes, (size_t)layout->lua_State_sizeof, &why) != 0 ||
	    walk_read_stack(&each->walk, L, &ret_probe->stack, &why) != 0)
		return false;
	ret_probe->L = L;
	ret_probe->base = ret_probe->stack.base;
	ret_probe->top = state_u64(bytes, layout->lua_State_top);
	ret_probe->vm_frame = ret_probe->stack.vm_frame;
	ret_probe->status = bytes[layout->GCobj_gct + STATUS_FROM_TYPE];
	ret_probe->position = ret_probe->vm_frame ? find_position(each, ret_probe->vm_frame) : NULL;
	ret_probe->is_away =
		ret_probe->vm_frame && !ret_probe->position && each->how->has_all_positions;
	return walk_is_base(&ret_probe->stack, ret_probe->base);
}

static enum luastate_coroutine_status status_of(const struct each *each, const struct probe *probe)
{
	bool is_main = probe->L == each->vm->main_thread;

	if (probe->status == STATUS_YIELD)
		return LUASTATE_COROUTINE_SUSPENDED;
	if (probe->status > STATUS_YIELD)
		return LUASTATE_COROUTINE_DEAD;
	if (probe->is_away)
		return LUASTATE_COROUTINE_SUSPENDED;
	if (probe->vm_frame && probe->L == each->cur_L)
		return LUASTATE_COROUTINE_RUNNING;
	if (is_main && !probe->vm_frame)
		return LUASTATE_COROUTINE_IDLE;
	if (probe->base > probe->stack.bottom)
		return LUASTATE_COROUTINE_NORMAL;
	return probe->top == probe->base ? LUASTATE_COROUTINE_DEAD : LUASTATE_COROUTINE_SUSPENDED;
}

/* ---- Frames ----------------------------------------------------------------------------- */

static int walk_from(struct each *each, const struct probe *probe, uint64_t base,
		     struct failure *why)
{
	const struct walk_top top = { .base = base };
	unsigned runs, losses = each->walk.state->losses;

	each->walk.chain->count = 0;
	each->walk.steps_left = WALK_STEPS;
	if (walk_frames(&each->walk, &probe->stack, &top, &runs, why) != 0)
		return -1;
	if (each->walk.state->losses != losses)
		return failure_set(why, FAILURE_INVALID, 0, 0, probe->L, "find functions again");
	return 0;
}

/* The function that a coroutine will begin with is the lowest value on its stack. */
static void show_first_function(struct each *each, const struct probe *probe)
{
	const struct luastate_layout *layout = each->layout;
	const struct walk_top nowhere = { 0 };
	struct walk_function function;
	struct failure why;
	uint64_t slot, base = probe->stack.bottom + probe->stack.frame_bytes;

	if (probe->top <= probe->stack.bottom ||
	    state_read(each->walk.stopped, probe->stack.bottom, &slot, 8, &why) != 0 ||
	    state_tag(layout, slot) != layout->tag_func ||
	    walk_read_function(&each->walk, &probe->stack, base, &function, &why) != 0 ||
	    function.dummy)
		return;
	walk_append(&each->walk, &probe->stack, &function, &nowhere, 0, &why);
}

/* A coroutine that has returned to C may have left its results on the stack, and then looks like
 * one that has not started. */
static bool is_started(const struct probe *probe, const struct luastate_coroutine *coroutine)
{
	return probe->base > probe->stack.bottom || probe->vm_frame || coroutine->is_main ||
	       coroutine->status == LUASTATE_COROUTINE_DEAD;
}

/* Whether the base in a lua_State is that of the topmost frame. */
static bool knows_base(const struct each *each, const struct probe *probe,
		       enum luastate_coroutine_status status)
{
	if (status != LUASTATE_COROUTINE_RUNNING)
		return true;
	return probe->position && probe->position->is_in_call && !each->jit_base;
}

/* If the position was only in a VM frame that is gone, as after an error, the line is unknown. */
static void check_line(struct luastate_frame *frame, struct luastate_coroutine *coroutine)
{
	if (coroutine->is_started && frame->function->kind == LUASTATE_LUA && !frame->pc)
		frame->line = 0;
	else if (coroutine->outcome == LUASTATE_FULL && walk_lacks_line(frame))
		coroutine->outcome = LUASTATE_TRUNCATED;
}

static void read_frames(struct each *each, const struct probe *probe,
			struct luastate_coroutine *coroutine)
{
	struct luastate_chain *chain = each->walk.chain;
	struct failure why = { 0 };

	chain->count = 0;
	coroutine->is_started = true;
	if (!is_started(probe, coroutine)) {
		show_first_function(each, probe);
		coroutine->is_started = chain->count == 0;
	} else if (!knows_base(each, probe, coroutine->status)) {
		coroutine->outcome = LUASTATE_INCONSISTENT;
	} else if (walk_from(each, probe, probe->base, &why) != 0) {
		coroutine->outcome = walk_outcome_of(&why);
	}
	state_define_frames(each->walk.state, each->walk.memory, chain->frames, chain->count);
	for (size_t i = 0; i < chain->count; i++)
		check_line(&chain->frames[i], coroutine);
	coroutine->frames = chain->frames;
	coroutine->frame_count = chain->count;
}

/* @return whether to continue. */
static bool visit(struct each *each, uint64_t L)
{
	struct luastate_coroutine coroutine = { .L = L, .is_main = L == each->vm->main_thread };
	struct probe probe;

	if (!probe_coroutine(each, L, &probe)) {
		coroutine.status = LUASTATE_COROUTINE_UNKNOWN;
		coroutine.outcome = LUASTATE_INCONSISTENT;
	} else {
		coroutine.status = status_of(each, &probe);
		coroutine.vm_frame = probe.vm_frame;
		read_frames(each, &probe, &coroutine);
	}
	return each->how->visit(each->how->context, &coroutine);
}

/* ---- The list --------------------------------------------------------------------------- */

static bool is_late(void *context)
{
	const struct each *each = context;

	return clock_now_ns() >= each->how->end_ns;
}

/* Visit coroutines, except those that the collector found unreachable: they have the white that the
 * sweep frees. */
static bool visit_object(void *context, uint64_t object, const uint8_t *header)
{
	struct each *each = context;
	const struct luastate_layout *layout = each->layout;

	return header[layout->GCobj_gct] != state_gct(layout->tag_thread) ||
	       (header[layout->GCobj_gct + STATE_MARKED_FROM_TYPE] & each->other_white) ||
	       visit(each, object);
}

static void read_globals(struct each *each)
{
	const struct luastate_layout *layout = each->layout;
	uint64_t G = each->vm->G;
	uint8_t white;
	struct failure why;

	state_read_ref(layout, each->walk.stopped, G + (uint64_t)layout->global_State_cur_L,
		       &each->cur_L, &why);
	state_read_ref(layout, each->walk.stopped, G + (uint64_t)layout->global_State_jit_base,
		       &each->jit_base, &why);
	if (layout->global_State_gc_state != LAYOUT_ABSENT &&
	    state_read(each->walk.stopped,
		       G + (uint64_t)(layout->global_State_gc_state + STATE_WHITE_FROM_STATE),
		       &white, 1, &why) == 0)
		each->other_white = (white ^ STATE_WHITES) & STATE_WHITES;
}

int luastate_each_coroutine(struct luastate *state, const struct luastate_memory *memory,
			    uint64_t G, const struct luastate_coroutines *how,
			    uint64_t *ret_objects, struct failure *why)
{
	const struct luastate_vm *vm = state_vm_by_G(state, G);
	struct luastate_vm copy;
	struct heap_list list;
	struct each *each;
	bool whole;

	*ret_objects = 0;
	if (!vm)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, G, "find the VM");
	each = calloc(1, sizeof(*each));
	if (each)
		each->walk.chain = calloc(1, sizeof(*each->walk.chain));
	if (!each || !each->walk.chain) {
		free(each);
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, G, "list coroutines");
	}
	copy = *vm; /* a search may move the VM in its table */
	each->how = how;
	each->vm = &copy;
	each->layout = vm->layout;
	each->walk.state = state;
	each->walk.memory = memory;
	each->walk.stopped = memory->stopped;
	each->walk.reader = memory->any;
	each->walk.vmstate = -1;
	read_globals(each);
	list = (struct heap_list){ .layout = copy.layout,
				   .reader = memory->stopped,
				   .G = G,
				   .is_over = is_late,
				   .visit = visit_object,
				   .context = each,
				   .is_still = true };
	whole = heap_list_walk(&list);
	visit(each, copy.main_thread);
	*ret_objects = list.objects;
	free(each->walk.chain);
	free(each);
	return whole ? 0 : 1;
}
