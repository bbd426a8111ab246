/* SPDX-License-Identifier: MIT */
/*
 * Where are the interpreter's own frames, the VM frames, on the native stack?
 *
 * The unwind table has one rule for all VM code. The rule is wrong by a few words in three places:
 * in helpers that VM code calls, in the entry sequence before the frame is complete, and in the
 * exit sequence after its release. A VM frame counts in three cases: its coroutine's chain of VM
 * frames (L->cframe, SAVE_CFRAME) contains it; its return address follows a call into VM code; or
 * the code at the leaf, or the coroutine, shows that it is not linked yet or no longer linked.
 *
 * In an error's second phase the coroutine releases its VM frames one by one. All of them stay on
 * the native stack until the C unwinder jumps. Such a frame counts if its own links lead to the
 * ones that remain.
 *
 * Source: LuaJIT v2.1 src/lj_frame.h (CFRAME_OFS_*), vm_*.dasc (vm_call, vm_resume, vm_cpcall),
 * lj_err.c (err_unwind), lj_obj.h (struct lua_State).
 */
#include "luastate/stack.h"

#include "luastate/arch/arch.h"
#include "luastate/trace/code_areas.h"
#include "luastate/trace/trace.h"
#include "luastate/trace/trace_index.h"
#include "luastate/vm/vm_internal.h"

enum {
	/* Spill slots of a trace, or the exit handler's register area. */
	NEWEST_BYTES = 8192,
	/* In all layouts, lua_State.status is one byte after the byte that follows the type. */
	STATUS_FROM_TYPE = 2,
	STATUS_YIELD = 1, /* LUA_YIELD; errors have higher numbers */
	/* Depth to which native stacks of usual size let C calls nest. */
	CHAIN_MAX = 8000,
	/* Limit for one sample. The search for each VM frame begins at the newest one of its
	 * chain. LUASTATE_VM_FRAMES_MAX frames, the most that are kept, need half of this limit. */
	LINKS_MAX = 256 * 1024,
	/* Distance to search above for a VM frame that unwinding cannot reach, and words per
	 * read. */
	ABOVE_BYTES = 256 * 1024,
	ABOVE_WORDS = 32,
};

/* Fill a frame from the bytes at @address. @regs are the registers in the frame. */
static int read_full(const struct state_view *view, uint64_t address,
		     const struct attach_registers *regs, struct luastate_vm_frame *ret_vm_frame,
		     struct failure *why)
{
	const struct luastate_layout *layout = view->layout;
	uint8_t bytes[STATE_OBJECT_MAX];

	if (state_read(view->memory->stopped, address, bytes, (size_t)layout->cframe_size, why) !=
	    0)
		return -1;
	memset(ret_vm_frame, 0, sizeof(*ret_vm_frame));
	ret_vm_frame->address = address;
	ret_vm_frame->L = state_ref(layout, bytes, layout->cframe_L);
	ret_vm_frame->frame = ret_vm_frame->caller = *regs;
	state_arch_restore(layout, bytes, address, &ret_vm_frame->caller);
	return 0;
}

/* Whether this sample may follow no more links. All memory of a hostile target can look like VM
 * frames, each at the end of a long chain. */
static bool is_exhausted(const struct luastate *state)
{
	return state->link_work >= LINKS_MAX;
}

/* Count one more link, if allowed. */
static bool may_follow(struct luastate *state)
{
	return !is_exhausted(state) && ++state->link_work;
}

static int set_exhausted(struct failure *why, uint64_t address)
{
	return failure_set(why, FAILURE_LIMIT, 0, 0, address, "follow the links of VM frames");
}

/* The newest frame at or above @sp in the chain of the coroutine @L, 0 if there is none. Chains
 * ascend towards the root. */
static uint64_t newest_above(const struct state_view *view, uint64_t L, uint64_t sp)
{
	const struct luastate_layout *layout = view->layout;
	const struct attach_reader *reader = view->memory->stopped;
	uint64_t link, previous = 0;
	struct failure why;

	if (state_read(reader, L + (uint64_t)layout->lua_State_cframe, &link, 8, &why) != 0)
		return 0;
	for (int i = 0; i < CHAIN_MAX && may_follow(view->state); i++) {
		link &= ~(uint64_t)STATE_CFRAME_FLAGS;
		if (link >= sp)
			return link;
		if (link <= previous)
			return 0;
		previous = link;
		if (state_read(reader, link + (uint64_t)layout->cframe_prev, &link, 8, &why) != 0)
			return 0;
	}
	return 0;
}

static bool is_linked(const struct state_view *view, uint64_t L, uint64_t frame)
{
	return newest_above(view, L, frame) == frame;
}

/* Whether an error has ended the coroutine. It then has no VM frames of its own any more. */
static bool has_failed(const struct state_view *view, uint64_t L)
{
	uint8_t status;
	struct failure why;

	return state_read(view->memory->stopped,
			  L + (uint64_t)view->layout->GCobj_gct + STATUS_FROM_TYPE, &status, 1,
			  &why) == 0 &&
	       status > STATUS_YIELD;
}

/* Whether the coroutine is its VM's current one. */
static bool is_current(const struct state_view *view, uint64_t L)
{
	const struct luastate_layout *layout = view->layout;
	const struct attach_reader *reader = view->memory->stopped;
	uint64_t G = state_global_of(layout, reader, L), current;
	struct failure why;

	return G &&
	       state_read_ref(layout, reader, G + (uint64_t)layout->global_State_cur_L, &current,
			      &why) == 0 &&
	       current == L;
}

/* Whether the links of the frame lead to the newest VM frame of the coroutine @L. A coroutine
 * has none after an error has ended it. It has none, either, while it still runs at the end of
 * lua_yield(), or after an error has reached its outermost protected call. Source: LuaJIT v2.1
 * src/lj_api.c, lua_yield(); src/lj_err.c, err_unwind(). */
static bool is_released(const struct state_view *view, uint64_t L, uint64_t frame)
{
	const struct luastate_layout *layout = view->layout;
	const struct attach_reader *reader = view->memory->stopped;
	uint64_t newest, link;
	struct failure why;

	if (state_read(reader, L + (uint64_t)layout->lua_State_cframe, &newest, 8, &why) != 0)
		return false;
	newest &= ~(uint64_t)STATE_CFRAME_FLAGS;
	if (newest == 0 && !has_failed(view, L) && !is_current(view, L))
		return false;
	for (int i = 0; i < CHAIN_MAX && may_follow(view->state); i++) {
		if (state_read(reader, frame + (uint64_t)layout->cframe_prev, &link, 8, &why) != 0)
			return false;
		link &= ~(uint64_t)STATE_CFRAME_FLAGS;
		if (link == newest)
			return true;
		if (link <= frame)
			return false;
		frame = link;
	}
	return false;
}

/** Range to search for a newest VM frame. */
struct span {
	uint64_t sp, most; /* start; maximum distance above it */
	bool compiled;	   /* only VMs that run compiled code */
};

/* newest_above() of a VM's current coroutine. Also 0 if the span requires compiled code and the
 * VM runs none. */
static uint64_t newest_of_vm(const struct state_view *view, const struct span *span)
{
	const struct luastate_layout *layout = view->layout;
	const struct attach_reader *reader = view->memory->stopped;
	uint64_t L, base, frame;
	struct failure why;

	/* From a trace's entry to its exit, this holds the base of the trace's start. */
	if (span->compiled &&
	    (state_read_ref(layout, reader, view->G + (uint64_t)layout->global_State_jit_base,
			    &base, &why) != 0 ||
	     base == 0))
		return 0;
	if (state_read_ref(layout, reader, view->G + (uint64_t)layout->global_State_cur_L, &L,
			   &why) != 0)
		return 0;
	frame = newest_above(view, L, span->sp);
	return frame - span->sp <= span->most ? frame : 0;
}

/*
 * Find the nearest VM frame of a span, among the VMs that @interpreter runs, or all VMs if it is
 * NULL. This serves code that runs far below its frame: traces with their spill slots, and the exit
 * handler, which saves all registers there. Functions that the handler calls have VM frames below
 * sp.
 */
static int find_newest(struct luastate *state, const struct luastate_memory *memory,
		       const struct state_interpreter *interpreter, const struct span *span,
		       const struct attach_registers *regs, struct luastate_vm_frame *ret_vm_frame,
		       struct failure *why)
{
	struct state_view nearest = { 0 };
	uint64_t address = UINT64_MAX;

	for (size_t i = 0; i < state->vm_count; i++) {
		const struct state_view view = state_view_of(state, memory, &state->vms[i]);
		uint64_t frame;

		if (interpreter && state->vm_code[i] != interpreter->start)
			continue;
		frame = newest_of_vm(&view, span);
		if (!frame || frame >= address)
			continue;
		address = frame;
		nearest = view;
	}
	/* A VM that was not searched may have a nearer one. */
	if (is_exhausted(state))
		return set_exhausted(why, span->sp);
	if (nearest.layout)
		return read_full(&nearest, address, regs, ret_vm_frame, why);
	return failure_set(why, FAILURE_NOT_FOUND, 0, 0, span->sp, "find the interpreter's frame");
}

/* How a coroutine's links show that a frame is its own: is_linked(), is_released(). */
typedef bool is_held_function(const struct state_view *view, uint64_t L, uint64_t frame);

/*
 * Find the frame at @address, if its coroutine's links show it.
 * @return 1; 0 if there is no frame; -1 if its VM is unknown, or no more links may be followed.
 */
static int find_held(const struct state_view *view, is_held_function *is_held, uint64_t address,
		     const struct attach_registers *regs, struct luastate_vm_frame *ret_vm_frame,
		     struct failure *why)
{
	const struct luastate_vm *vm;

	if (!may_follow(view->state))
		return set_exhausted(why, address);
	if (address % 8 != 0 || read_full(view, address, regs, ret_vm_frame, why) != 0 ||
	    !state_global_of(view->layout, view->memory->stopped, ret_vm_frame->L))
		return 0;
	if (!is_held(view, ret_vm_frame->L, address))
		return is_exhausted(view->state) ? set_exhausted(why, address) : 0;
	vm = state_sample_vm_of(view->state, view->memory->any, ret_vm_frame->L, why);
	return vm && vm->layout == view->layout ? 1
						: failure_set(why, FAILURE_INVALID, 0, 0, address,
							      "recognise the VM of a VM frame");
}

/* Whether the current coroutine has released the frame, as it does before the exit sequence or
 * in lua_yield(). Code that leaves a trace has old words at sp instead of a frame; a trace
 * counts as running until its registers are saved there. Source: LuaJIT v2.1 src/vm_x64.dasc,
 * vm_arm64.dasc (vm_leave_cp, vm_resume: the frame of a coroutine that can yield has no older
 * one; vm_exit_handler); src/lj_api.c, lua_yield(). */
static bool is_left(const struct state_view *view, const struct luastate_vm_frame *frame)
{
	const struct luastate_layout *layout = view->layout;
	const struct attach_reader *reader = view->memory->stopped;
	uint64_t G = state_global_of(layout, reader, frame->L), compiled_base, newest, link;
	struct failure why;

	return is_current(view, frame->L) &&
	       state_read_ref(layout, reader, G + (uint64_t)layout->global_State_jit_base,
			      &compiled_base, &why) == 0 &&
	       compiled_base == 0 &&
	       state_read(reader, frame->L + (uint64_t)layout->lua_State_cframe, &newest, 8,
			  &why) == 0 &&
	       state_read(reader, frame->address + (uint64_t)layout->cframe_prev, &link, 8, &why) ==
		       0 &&
	       newest == link;
}

/* Whether the leaf is in a frame at sp that its coroutine has not linked yet, or has unlinked. */
static bool is_between(const struct state_view *view, const struct luastate_vm_frame *frame)
{
	uint64_t pc = attach_pc(&frame->frame), ret = attach_pc(&frame->caller);

	if (state_arch_vm_call_target(view->state, view->memory->any, ret))
		return true;
	/* C functions may jump to the entry as their last act. The return address is then in
	 * their caller. */
	return state_arch_follows_call(view->memory->any, ret) &&
	       (state_arch_is_entering(state_interpreter_at(view->state, pc), view->layout, pc) ||
		is_left(view, frame));
}

/* Whether the frame belongs to a VM that was not copied, because it was unknown. The missing
 * link to the frame then shows nothing. If a leaf's coroutine was not copied but its VM was, the
 * coroutine is not current yet. While a frame is entered, an old word is in the coroutine's
 * slot. Source: LuaJIT v2.1 src/vm_x64.dasc, vm_arm64.dasc (vm_resume, vm_call: the current
 * coroutine is noted some instructions after the frame is linked). */
static bool is_unseen(const struct state_view *view, bool leaf,
		      const struct luastate_vm_frame *frame)
{
	struct luastate *state = view->state;
	const struct luastate_layout *layout = view->layout;
	const struct luastate_memory *memory = view->memory;
	uint64_t pc = attach_pc(&frame->frame), ret = attach_pc(&frame->caller), current;
	uint64_t G = state_global_of(layout, memory->any, frame->L);
	struct failure why;

	return G && !state_global_of(layout, memory->stopped, frame->L) &&
	       (!leaf ||
		state_read_ref(layout, memory->stopped, G + (uint64_t)layout->global_State_cur_L,
			       &current, &why) != 0 ||
		current == frame->L) &&
	       (state_arch_vm_call_target(state, memory->any, ret) ||
		state_arch_follows_call(memory->any, ret)) &&
	       !state_arch_is_entering(state_interpreter_at(state, pc), layout, pc);
}

/* Make the VM known, so that the next sample copies it. */
static int meet_unseen(const struct state_view *view, const struct luastate_vm_frame *frame,
		       struct failure *why)
{
	struct failure reason;

	state_sample_vm_of(view->state, view->memory->any, frame->L, &reason);
	return failure_set(why, FAILURE_NOT_FOUND, 0, 0, frame->address,
			   "read the coroutine of a VM frame");
}

static int find_complete(const struct state_view *view, const struct attach_registers *regs,
			 bool leaf, struct luastate_vm_frame *ret_vm_frame, struct failure *why)
{
	struct attach_registers caller;
	uint64_t sp = attach_sp(regs);
	const struct span span = { .sp = sp, .most = NEWEST_BYTES };
	int found = find_held(view, is_linked, sp, regs, ret_vm_frame, why);

	/* In a helper that C called, a VM frame further up does not belong to the helper. */
	if (found == 0 && leaf &&
	    state_arch_restore_helper(view->state, view->memory, regs, &caller)) {
		*ret_vm_frame = (struct luastate_vm_frame){ .address = sp,
							    .frame = *regs,
							    .caller = caller };
		return 0;
	}
	for (unsigned pushed = 8; found == 0 && pushed <= state_arch_helper_bytes; pushed += 8)
		found = find_held(view, is_linked, sp + pushed, regs, ret_vm_frame, why);
	/* The C unwinder runs only below C functions. */
	if (found == 0 && !leaf)
		found = find_held(view, is_released, sp, regs, ret_vm_frame, why);
	if (found != 0)
		return found > 0 ? 0 : -1;
	if (read_full(view, sp, regs, ret_vm_frame, why) != 0)
		return -1;
	if (is_unseen(view, leaf, ret_vm_frame))
		return meet_unseen(view, ret_vm_frame, why);
	/* Only the leaf can be between two states. */
	if (leaf && is_between(view, ret_vm_frame)) {
		ret_vm_frame->L = 0;
		return 0;
	}
	/* The VM must belong to the same interpreter as this code. */
	return find_newest(view->state, view->memory,
			   state_interpreter_at(view->state, attach_pc(regs)), &span, regs,
			   ret_vm_frame, why);
}

/* A new VM shows its layout. */
static const struct luastate_layout *layout_of_frame(struct luastate *state,
						     const struct luastate_memory *memory,
						     const struct attach_registers *frame)
{
	const struct luastate_layout *layout = state_layout_at(state, attach_pc(frame));
	struct failure why;

	if (layout)
		return layout;
	luastate_find_in_frame(state, memory->any, frame, &why);
	return state_layout_at(state, attach_pc(frame));
}

int luastate_find_vm_frame(struct luastate *state, const struct luastate_memory *memory,
			   const struct attach_registers *frame, bool leaf,
			   struct luastate_vm_frame *ret_vm_frame, struct failure *why)
{
	const struct state_interpreter *interpreter = state_interpreter_at(state, attach_pc(frame));
	struct state_view view = { state, memory, NULL, 0 };
	struct attach_registers caller;

	if (!interpreter)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, attach_pc(frame),
				   "find the interpreter");
	if (leaf) {
		int found = state_arch_restore_partial(interpreter, memory->stopped, frame, &caller,
						       why);

		if (found < 0)
			return -1;
		if (found) {
			*ret_vm_frame = (struct luastate_vm_frame){ .address = attach_sp(frame),
								    .frame = *frame,
								    .caller = caller,
								    .leaf = true };
			return 0;
		}
	}
	view.layout = layout_of_frame(state, memory, frame);
	if (!view.layout)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, attach_sp(frame),
				   "recognise the VM");
	if (find_complete(&view, frame, leaf, ret_vm_frame, why) != 0)
		return -1;
	ret_vm_frame->leaf = leaf;
	return 0;
}

/* Find the frame that a word of the stack, a return address in some interpreter, belongs to. */
static bool find_shown(struct luastate *state, const struct luastate_memory *memory, uint64_t word,
		       uint64_t address, const struct attach_registers *below,
		       struct luastate_vm_frame *ret_vm_frame)
{
	struct attach_registers regs = *below;
	struct failure why;

	regs.r[STATE_REG_PC] = regs.r[STATE_REG_KEPT_BASE] = 0;
	for (size_t i = 0; i < state->interpreter_count; i++) {
		const struct state_interpreter *interpreter = &state->interpreters[i];
		const struct state_view view = { state, memory, interpreter->layout, 0 };
		uint64_t frame = state_arch_frame_shown(interpreter, address, word);

		regs.r[ATTACH_REG_PC] = interpreter->start;
		regs.r[ATTACH_REG_SP] = frame;
		if (frame && view.layout &&
		    find_held(&view, is_linked, frame, &regs, ret_vm_frame, &why) > 0)
			return true;
	}
	return false;
}

/* Find the nearest VM frame below which a word returns to its interpreter. */
static int find_interpreted_above(struct luastate *state, const struct luastate_memory *memory,
				  const struct attach_registers *frame, uint64_t limit,
				  struct luastate_vm_frame *ret_vm_frame, struct failure *why)
{
	uint64_t words[ABOVE_WORDS], sp = (attach_sp(frame) + 7) & ~(uint64_t)7;

	for (uint64_t at = sp; at + 8 <= limit; at += sizeof(words)) {
		size_t len = limit - at < sizeof(words) ? (size_t)(limit - at) & ~(size_t)7
							: sizeof(words);

		if (state_read(memory->stopped, at, words, len, why) != 0)
			return -1;
		for (size_t i = 0; i < len / 8; i++)
			if (find_shown(state, memory, words[i], at + 8 * i, frame, ret_vm_frame))
				return 0;
		if (is_exhausted(state))
			return set_exhausted(why, at);
	}
	return failure_set(why, FAILURE_NOT_FOUND, 0, 0, sp, "find a VM frame above");
}

/* Find the position in a trace that a function called by it returns to; 0 if there is none. The
 * word must be at the trace's stack pointer during a call. */
static uint64_t find_return_to_trace(const struct luastate *state,
				     const struct luastate_memory *memory, uint64_t G, uint64_t at,
				     uint64_t end)
{
	uint64_t words[ABOVE_WORDS];
	struct failure why;

	for (; at + 8 <= end; at += sizeof(words)) {
		size_t len =
			end - at < sizeof(words) ? (size_t)(end - at) & ~(size_t)7 : sizeof(words);

		if (state_read(memory->stopped, at, words, len, &why) != 0)
			return 0;
		for (size_t i = 0; i < len / 8; i++) {
			const struct trace *trace =
				trace_find(state, G, trace_number_at(state, G, words[i] - 1));

			if (trace &&
			    state_arch_is_return_slot(at + 8 * i, end, trace_spadjust(trace)))
				return words[i];
		}
	}
	return 0;
}

/* No return address shows a trace's VM frame, because the interpreter jumped into the trace's
 * code. The newest VM frame of a VM that runs compiled code is the trace's, unless an
 * interpreter's is nearer. */
static bool take_compiled_above(struct luastate *state, const struct luastate_memory *memory,
				const struct attach_registers *frame, uint64_t limit,
				struct luastate_vm_frame *vm_frame)
{
	struct attach_registers regs = *frame;
	struct luastate_vm_frame compiled;
	uint64_t sp = (attach_sp(frame) + 7) & ~(uint64_t)7;
	const struct span span = { .sp = attach_sp(frame),
				   .most = limit - attach_sp(frame),
				   .compiled = true };
	const struct luastate_vm *vm;
	struct failure why;

	regs.r[STATE_REG_PC] = regs.r[STATE_REG_KEPT_BASE] = 0;
	if (find_newest(state, memory, NULL, &span, &regs, &compiled, &why) != 0 ||
	    compiled.address >= vm_frame->address)
		return false;
	vm = state_sample_vm_of(state, memory->any, compiled.L, &why);
	if (!vm)
		return false;
	compiled.compiled = true;
	compiled.frame.r[ATTACH_REG_PC] =
		find_return_to_trace(state, memory, vm->G, sp, compiled.address);
	compiled.frame.r[ATTACH_REG_SP] = compiled.address;
	*vm_frame = compiled;
	return true;
}

int luastate_find_vm_frame_above(struct luastate *state, const struct luastate_memory *memory,
				 const struct attach_registers *frame, uint64_t limit,
				 struct luastate_vm_frame *ret_vm_frame, struct failure *why)
{
	struct luastate_vm_frame found;
	uint64_t sp = attach_sp(frame);
	int result;

	if (limit > sp + ABOVE_BYTES)
		limit = sp + ABOVE_BYTES;
	if (limit <= sp)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, sp, "find a VM frame above");
	result = find_interpreted_above(state, memory, frame, limit, &found, why);
	if (result != 0)
		found.address = UINT64_MAX;
	if (take_compiled_above(state, memory, frame, limit, &found))
		result = 0;
	if (is_exhausted(state))
		return set_exhausted(why, sp);
	if (result == 0)
		*ret_vm_frame = found;
	return result;
}

/* Find the VM, known or new, that VM code with these registers belongs to, if it has that
 * layout. Its current coroutine must refer back to it. */
static const struct luastate_vm *vm_of_register(struct luastate *state,
						const struct luastate_layout *layout,
						const struct luastate_memory *memory,
						const struct attach_registers *regs)
{
	uint64_t G = regs->r[STATE_REG_VM] - state_arch_register_offset(layout), L;
	const struct luastate_vm *vm = state_vm_by_G(state, G);
	struct failure why;

	if (vm)
		return vm->layout == layout ? vm : NULL;
	if (!state_is_aligned(G) ||
	    state_read_ref(layout, memory->any, G + (uint64_t)layout->global_State_cur_L, &L,
			   &why) != 0 ||
	    !state_is_pointer(L) || state_global_of(layout, memory->any, L) != G)
		return NULL;
	vm = state_sample_vm_of(state, memory->any, L, &why);
	return vm && vm->G == G ? vm : NULL;
}

/* The VM in a trace's register. Memory that was one VM's code may now be another VM's. */
static const struct luastate_vm *vm_in_register(struct luastate *state,
						const struct luastate_memory *memory,
						const struct attach_registers *regs)
{
	const struct luastate_layout *last = NULL;
	const struct luastate_vm *vm = NULL;

	for (size_t i = 0; i < state->interpreter_count && !vm; i++) {
		const struct luastate_layout *layout = state->interpreters[i].layout;

		if (layout && layout != last)
			vm = vm_of_register(state, layout, memory, regs);
		last = layout;
	}
	return vm;
}

bool luastate_is_in_trace(struct luastate *state, const struct luastate_memory *memory,
			  const struct attach_registers *leaf)
{
	const struct span span = { attach_sp(leaf), NEWEST_BYTES, true };
	const struct luastate_vm *vm = vm_in_register(state, memory, leaf);
	struct state_view view;
	int vmstate;
	struct failure why;

	if (!vm)
		return false;
	view = state_view_of(state, memory, vm);
	/* Code of other compilers that a trace calls keeps the register, too. */
	return areas_have(state, vm, memory->any, attach_pc(leaf)) == AREAS_HAVE &&
	       luastate_read_vmstate(state, memory->stopped, vm->G, &vmstate, &why) == 0 &&
	       vmstate >= !!STATE_TRACES_NOTED && newest_of_vm(&view, &span) != 0;
}

int luastate_find_trace_vm_frame(struct luastate *state, const struct luastate_memory *memory,
				 const struct attach_registers *frame, bool leaf,
				 struct luastate_vm_frame *ret_vm_frame, struct failure *why)
{
	const struct span span = { attach_sp(frame), NEWEST_BYTES, true };
	const struct luastate_vm *vm = vm_in_register(state, memory, frame);
	struct state_view view = { 0 };
	uint64_t address = 0;

	if (vm) {
		view = state_view_of(state, memory, vm);
		address = newest_of_vm(&view, &span);
	}
	if (!address)
		vm = luastate_compiled_by(state, memory, attach_pc(frame) - (leaf ? 0 : 1));
	if (!address && vm) {
		view = state_view_of(state, memory, vm);
		address = newest_of_vm(&view, &span);
	}
	if (is_exhausted(state))
		return set_exhausted(why, span.sp);
	/* Another VM's frame may be nearby, too. */
	if (vm && !address)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, span.sp,
				   "find the interpreter's frame");
	if (!vm && find_newest(state, memory, NULL, &span, frame, ret_vm_frame, why) != 0)
		return -1;
	if (vm && read_full(&view, address, frame, ret_vm_frame, why) != 0)
		return -1;
	ret_vm_frame->leaf = leaf;
	ret_vm_frame->compiled = true;
	return 0;
}
