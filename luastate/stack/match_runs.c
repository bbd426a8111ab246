/* SPDX-License-Identifier: MIT */
/*
 * Which VM frame does each run of Lua frames belong to, on the stacks of all coroutines of a
 * sample?
 */
#include "luastate/stack/match_runs.h"

#include "luastate/definition/definition_names.h"
#include "luastate/function/proto.h"
#include "luastate/layout/object.h"
#include "luastate/stack/compiled_frames.h"
#include "luastate/stack/top_frame.h"
#include "luastate/stack/vm_work.h"
#include "luastate/vm/vm_internal.h"

/* The VM frames of one coroutine, newest first, by their index in the caller's list. */
struct owners {
	unsigned index[LUASTATE_VM_FRAMES_MAX];
	unsigned count;
	unsigned released; /* Number of newest ones that an error has released. */
};

/** A coroutine during the search for its topmost frame. */
struct coroutine {
	struct walk *walk;
	struct walk_stack stack;
	struct owners owners;
	size_t before;	 /* number of frames in the chain that belong to other coroutines */
	unsigned losses; /* state->losses before its walks */
	bool found;
	struct failure *why;
};

/* A protected C call without a Lua frame of its own has a negative number of results. Its VM
 * frame owns no run (lj_frame.h, cframe_nres). */
static bool owns_run(struct walk *walk, const struct luastate_layout *layout, uint64_t frame)
{
	int32_t nres;
	struct failure why;

	return state_read(walk->stopped, frame + (uint64_t)layout->cframe_nres, &nres, 4, &why) ==
		       0 &&
	       nres >= 0;
}

static void find_owners(struct walk *walk, const struct walk_stack *stack, size_t first,
			struct owners *ret_owners)
{
	ret_owners->count = ret_owners->released = 0;
	for (size_t i = first;
	     i < walk->vm_frame_count && ret_owners->count < LUASTATE_VM_FRAMES_MAX; i++) {
		const struct luastate_vm_frame *vm_frame = &walk->vm_frames[i];

		if (vm_frame->L != stack->L ||
		    !owns_run(walk, stack->view.layout, vm_frame->address))
			continue;
		ret_owners->index[ret_owners->count++] = (unsigned)i;
		ret_owners->released += vm_frame->address < stack->vm_frame;
	}
}

/* The VM frame that has the coroutine's position. */
static const struct luastate_vm_frame *newest_held(const struct walk *walk,
						   const struct owners *owners, size_t first)
{
	return owners->released && owners->released < owners->count
		       ? &walk->vm_frames[owners->index[owners->released]]
		       : &walk->vm_frames[first];
}

/* Match runs to VM frames from the root. A newest VM frame without a run is being entered or
 * left, or is released. Frames whose position only the VM frame has get it here. */
static int assign_owners(const struct coroutine *coroutine, unsigned runs)
{
	const struct walk *walk = coroutine->walk;
	const struct owners *owners = &coroutine->owners;
	struct luastate_chain *chain = walk->chain;
	unsigned shift, previous = UINT32_MAX;

	if (owners->count > runs + 1 + owners->released || owners->count < runs ||
	    (owners->count == 0 && chain->count > coroutine->before))
		return failure_set(coroutine->why, FAILURE_INVALID, 0, 0, coroutine->stack.L,
				   "match Lua frames with VM frames");
	shift = owners->count > runs ? owners->count - runs : 0;
	for (size_t i = coroutine->before; i < chain->count; i++) {
		struct luastate_frame *frame = &chain->frames[i];
		unsigned run = frame->owner;
		unsigned slot = run + shift < owners->count ? run + shift : owners->count - 1;
		const struct luastate_vm_frame *vm_frame = &walk->vm_frames[owners->index[slot]];
		uint64_t pc = vm_frame->frame.r[STATE_REG_PC];

		frame->owner = owners->index[slot];
		if (run != previous && !frame->pc && frame->function->kind == LUASTATE_LUA &&
		    !vm_frame->leaf && !vm_frame->compiled) {
			struct state_proto *proto = state_proto_of(frame->function);

			if (state_proto_holds(proto, pc) && pc > proto->bytecode) {
				frame->pc = pc - 4;
				frame->line = state_proto_line(proto, walk->reader, frame->pc);
			}
		}
		previous = run;
	}
	return 0;
}

/* A stack has more frames than a chain holds. The chain then has the leaf's end of the stack,
 * which belongs to the newest VM frames. Without VM frames, these frames are dropped. */
static void keep_top_end(struct luastate_chain *chain, const struct owners *owners, size_t first)
{
	if (owners->count == 0)
		chain->count = first;
	for (size_t i = first; i < chain->count; i++) {
		unsigned run = chain->frames[i].owner;

		chain->frames[i].owner =
			owners->index[run < owners->count ? run : owners->count - 1];
	}
}

/* Whether the oldest VM frame of a coroutine on this native stack is its first. If C code
 * entered the coroutine again on another native stack, older ones are there. Their runs would
 * look like the runs of the VM frames here. */
static bool has_first(struct walk *walk, const struct walk_stack *stack)
{
	const struct luastate_vm_frame *vm_frames = walk->vm_frames;
	size_t count = walk->vm_frame_count;
	uint64_t older;
	struct failure why;

	while (count > 0 && vm_frames[count - 1].L != stack->L)
		count--;
	return count > 0 &&
	       state_read(walk->stopped,
			  vm_frames[count - 1].address + (uint64_t)stack->view.layout->cframe_prev,
			  &older, 8, &why) == 0 &&
	       (older & ~(uint64_t)STATE_CFRAME_FLAGS) == 0;
}

/* Whether a newer VM frame belongs to another coroutine, which this one has resumed. */
static bool is_resuming(const struct luastate_vm_frame *vm_frames, size_t first)
{
	for (size_t i = 0; i < first; i++)
		if (vm_frames[i].L && vm_frames[i].L != vm_frames[first].L)
			return true;
	return false;
}

/* @return whether the search is over, with or without success. */
static bool walk_from(void *context, const struct walk_top *top)
{
	struct coroutine *coroutine = context;
	struct walk *walk = coroutine->walk;
	struct failure *why = coroutine->why;
	unsigned runs;

	/* If a function was lost, or part of the stack was not copied, the right candidate
	 * fails. A wrong one may then fit. */
	if (walk->state->losses != coroutine->losses)
		return true;
	walk->chain->count = coroutine->before;
	coroutine->found = walk_frames(walk, &coroutine->stack, top, &runs, why) == 0 &&
			   assign_owners(coroutine, runs) == 0;
	if (coroutine->found)
		return true;
	return why->kind == FAILURE_FAULT ||
	       (walk->chain->count == LUASTATE_FRAMES_MAX && why->kind == FAILURE_LIMIT);
}

static int walk_coroutine(struct walk *walk, size_t first, struct failure *why)
{
	struct coroutine coroutine = { .walk = walk,
				       .before = walk->chain->count,
				       .losses = walk->state->losses,
				       .why = why };

	if (walk_read_stack(walk, walk->vm_frames[first].L, &coroutine.stack, why) != 0)
		return -1;
	if (!has_first(walk, &coroutine.stack))
		return failure_set(why, FAILURE_INVALID, 0, 0, coroutine.stack.L,
				   "find a coroutine's first VM frame");
	find_owners(walk, &coroutine.stack, first, &coroutine.owners);
	failure_set(why, FAILURE_INVALID, 0, 0, coroutine.stack.L,
		    "find a coroutine's topmost frame");
	walk_top_frames(walk, &coroutine.stack, newest_held(walk, &coroutine.owners, first),
			is_resuming(walk->vm_frames, first), walk_from, &coroutine);
	if (coroutine.found)
		return 0;
	if (walk->chain->count == LUASTATE_FRAMES_MAX && why->kind == FAILURE_LIMIT)
		keep_top_end(walk->chain, &coroutine.owners, coroutine.before);
	else
		walk->chain->count = coroutine.before;
	return -1;
}

/* The VM belongs to the newest VM frame with a coroutine. A VM frame that is being entered or
 * left has no coroutine yet. */
static const struct luastate_vm *vm_of_frames(struct walk *walk)
{
	struct failure why;

	for (size_t i = 0; i < walk->vm_frame_count; i++)
		if (walk->vm_frames[i].L)
			return state_sample_vm_of(walk->state, walk->reader, walk->vm_frames[i].L,
						  &why);
	return walk->state->vm_count ? &walk->state->vms[0] : NULL;
}

bool walk_lacks_line(const struct luastate_frame *frame)
{
	const struct state_proto *proto;

	if (frame->function->kind != LUASTATE_LUA || frame->line != 0)
		return false;
	proto = state_proto_of(frame->function);
	return proto->lineinfo && frame->pc > proto->bytecode;
}

enum luastate_outcome walk_outcome_of(const struct failure *why)
{
	return why->kind == FAILURE_FAULT || why->kind == FAILURE_LIMIT ? LUASTATE_TRUNCATED
									: LUASTATE_INCONSISTENT;
}

static void note_lost(struct walk *walk, uint64_t L)
{
	const struct luastate_vm_frame *vm_frames = walk->vm_frames;
	struct failure why;
	const struct luastate_vm *vm = state_sample_vm_of(walk->state, walk->reader, L, &why);

	for (size_t i = 0; i < walk->vm_frame_count && i < LUASTATE_VM_FRAMES_MAX; i++)
		walk->chain->lost[i] |= vm_frames[i].L == L &&
					(!vm || owns_run(walk, vm->layout, vm_frames[i].address));
}

/* Walk each coroutine once, by its newest VM frame. */
static void walk_coroutines(struct walk *walk)
{
	const struct luastate_vm_frame *vm_frames = walk->vm_frames;
	struct failure why;

	for (size_t i = 0; i < walk->vm_frame_count; i++) {
		size_t before = walk->chain->count;
		bool seen = vm_frames[i].L == 0;

		for (size_t k = 0; k < i && !seen; k++)
			seen = vm_frames[k].L == vm_frames[i].L;
		if (seen || walk_coroutine(walk, i, &why) == 0)
			continue;
		walk->chain->outcome = walk_outcome_of(&why);
		if (walk->chain->count == before)
			note_lost(walk, vm_frames[i].L);
	}
}

/* Outcome of the sample, which no coroutine's walk shows alone. */
static enum luastate_outcome judge(const struct walk *walk)
{
	const struct luastate_chain *chain = walk->chain;

	if (chain->outcome != LUASTATE_FULL)
		return chain->outcome;
	if (walk->state->losses != walk->losses)
		return LUASTATE_INCONSISTENT;
	for (size_t i = 0; i < chain->count; i++)
		if (walk_lacks_line(&chain->frames[i]))
			return LUASTATE_TRUNCATED;
	return LUASTATE_FULL;
}

void luastate_walk(struct luastate *state, const struct luastate_memory *memory,
		   const struct luastate_vm_frame *vm_frames, size_t vm_frame_count,
		   struct luastate_chain *ret_chain)
{
	struct walk walk = { .state = state,
			     .memory = memory,
			     .stopped = memory->stopped,
			     .reader = memory->any,
			     .vm_frames = vm_frames,
			     .vm_frame_count = vm_frame_count,
			     .chain = ret_chain,
			     .steps_left = WALK_STEPS,
			     .losses = state->losses };
	const struct luastate_vm *vm;
	struct failure why;

	ret_chain->outcome = LUASTATE_FULL;
	ret_chain->count = 0;
	memset(ret_chain->lost, 0, sizeof(ret_chain->lost));
	ret_chain->trace = 0;
	ret_chain->trace_function = NULL;
	ret_chain->compiled = LUASTATE_COMPILED_NONE;
	ret_chain->state = -1;
	ret_chain->work = (struct luastate_vm_work){ 0 };
	ret_chain->heap_bytes = 0;
	if (vm_frame_count == 0)
		return;
	vm = walk.vm = vm_of_frames(&walk);
	walk_read_state(&walk);
	if (vm)
		ret_chain->heap_bytes = state_heap_bytes(vm->layout, memory->stopped, vm->G);
	if (state->thorough && vm)
		luastate_load_names(state, memory->any, vm->G, &why);
	walk_coroutines(&walk);
	walk_read_vm_work(&walk);
	walk_add_compiled(&walk);
	state_define_frames(state, memory, ret_chain->frames, ret_chain->count);
	ret_chain->outcome = judge(&walk);
}
