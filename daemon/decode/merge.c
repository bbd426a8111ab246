/* SPDX-License-Identifier: MIT */
/*
 * How does an image become one call chain?
 *
 * First the native stack is unwound from the leaf to the thread's first function. The unwind tables
 * describe the interpreter's VM frames roughly, luastate exactly; at each VM frame the walk
 * continues at its caller. Then luastate walks the Lua stacks, and says which run of Lua frames
 * belongs to which VM frame. Each run replaces its VM frame in the chain.
 */
#include "attach/clock.h"
#include "daemon/decode/function_ids.h"
#include "daemon/decode/sleeper_walk.h"

#include <string.h>
#include <time.h>

/* ---- Native walk ------------------------------------------------------------------------ */

static int add_native(struct daemon_target *target, uint64_t pc, uint64_t lookup,
		      struct failure *why)
{
	struct target_item *item = &target->items[target->item_count];

	if (target_native_id(target, lookup, &item->function, &item->start, why) != 0)
		return -1;
	item->step = TARGET_NATIVE;
	item->pc = pc;
	target->item_count++;
	return 0;
}

/* Traces are in anonymous memory, like other compilers' code. While LuaJIT writes there, the memory
 * is not executable. The maps may have been read at such a time, or before the area was
 * allocated. */
static bool may_be_compiled(const struct daemon_target *target, uint64_t pc)
{
	const struct symbols_mapping *mapping;

	if (luastate_vm_count(target->lua) == 0)
		return false;
	mapping = symbols_space_find(target->space, pc);
	return !mapping || (mapping->inode == 0 && mapping->path[0] == '\0');
}

/* Or whether it was in one: for the leaf, its registers also show this. */
static bool is_compiled(const struct daemon_target *target, const struct luastate_memory *memory,
			const struct attach_registers *regs, bool interrupted, uint64_t pc)
{
	return luastate_compiled_by(target->lua, memory, pc) != NULL ||
	       (interrupted && luastate_is_in_trace(target->lua, memory, regs));
}

/* Note a VM frame and set the unwinder to its caller. */
static int cross_vm_frame(struct daemon_target *target, const struct luastate_vm_frame *vm_frame,
			  const struct luastate_memory *memory, struct failure *why)
{
	struct target_item *item = &target->items[target->item_count];

	if (target->vm_frame_count == TARGET_VM_FRAMES_MAX)
		return failure_set(why, FAILURE_LIMIT, 0, 0, vm_frame->address,
				   "follow a VM frame");
	item->step = TARGET_VM_FRAME;
	item->vm_frame = (unsigned)target->vm_frame_count;
	target->item_count++;
	target->vm_frames[target->vm_frame_count++] = *vm_frame;
	symbols_unwind_begin_caller(target->unwinder, &vm_frame->caller, memory->stopped);
	return 0;
}

/* Handle the unwinder's current frame. @return 1 to step on, 2 if the unwinder is already at the
 * next frame, -1 on failure. */
static int take_frame(struct daemon_target *target, const struct luastate_memory *memory,
		      bool interrupted, struct failure *why)
{
	struct symbols_native_frame frame;
	struct attach_registers regs;
	struct luastate_vm_frame vm_frame;
	uint64_t lookup;

	symbols_unwind_frame(target->unwinder, &frame);
	lookup = interrupted ? frame.pc : frame.pc - 1;
	target->stack_top = frame.sp;
	if (luastate_in_interpreter(target->lua, lookup)) {
		symbols_unwind_registers(target->unwinder, &regs);
		if (luastate_find_vm_frame(target->lua, memory, &regs, interrupted, &vm_frame,
					   why) != 0)
			return -1;
		return cross_vm_frame(target, &vm_frame, memory, why) == 0 ? 2 : -1;
	}
	if (!may_be_compiled(target, lookup))
		return add_native(target, frame.pc, lookup, why) == 0 ? 1 : -1;
	symbols_unwind_registers(target->unwinder, &regs);
	if (is_compiled(target, memory, &regs, interrupted, lookup)) {
		if (luastate_find_trace_vm_frame(target->lua, memory, &regs, interrupted, &vm_frame,
						 why) == 0)
			return cross_vm_frame(target, &vm_frame, memory, why) == 0 ? 2 : -1;
		if (why->kind == FAILURE_LIMIT)
			return -1;
	}
	return add_native(target, frame.pc, lookup, why) == 0 ? 1 : -1;
}

/* At code without unwind information, continue at the next VM frame, which keeps Lua's part of the
 * chain complete. @return Whether there is one. */
static bool cross_gap(struct daemon_target *target, const struct luastate_memory *memory,
		      struct failure *why)
{
	struct attach_registers regs;
	const struct symbols_mapping *stack;
	struct luastate_vm_frame vm_frame;
	struct failure reason;

	symbols_unwind_registers(target->unwinder, &regs);
	/* Memory above the stack may belong to another thread. */
	stack = symbols_space_find(target->space, attach_sp(&regs));
	if (!stack || target->item_count + 2 > TARGET_NATIVE_MAX ||
	    luastate_find_vm_frame_above(target->lua, memory, &regs, stack->end, &vm_frame,
					 &reason) != 0)
		return false;
	target->items[target->item_count++].step = TARGET_GAP;
	return cross_vm_frame(target, &vm_frame, memory, why) == 0;
}

/* Step to the caller by the unwind entry, else by the frame pointer. @return As
 * symbols_unwind_step(). */
static int step_native(struct daemon_target *target, struct failure *why)
{
	struct failure reason;
	int got = symbols_unwind_step(target->unwinder, why);

	if (got >= 0 || why->kind != FAILURE_NOT_FOUND)
		return got;
	got = symbols_unwind_step_frame_pointer(target->unwinder, &reason);
	return got >= 0 ? got : -1; /* why says what the entry lacked */
}

/* @return DAEMON_FULL if the walk reached the thread's first function. */
static enum daemon_outcome walk_native(struct daemon_target *target,
				       const struct attach_registers *regs,
				       const struct luastate_memory *memory, struct failure *why)
{
	enum daemon_outcome best = DAEMON_FULL;
	bool interrupted = true;

	target->item_count = target->vm_frame_count = 0;
	target->gap_sp = target->unmapped_pc = 0;
	target->stack_top = attach_sp(regs);
	symbols_unwind_begin(target->unwinder, regs, memory->stopped);
	while (target->item_count < TARGET_NATIVE_MAX) {
		struct symbols_native_frame frame;
		int got = take_frame(target, memory, interrupted, why);

		if (got < 0)
			return why->kind == FAILURE_FAULT ? DAEMON_TRUNCATED : DAEMON_INCONSISTENT;
		symbols_unwind_frame(target->unwinder, &frame);
		interrupted = got == 1 && frame.is_signal;
		if (got == 2)
			continue;
		got = target->lacks_registers ? asleep_step(target, memory, why)
					      : step_native(target, why);
		if (got == 0)
			return best;
		if (got > 0)
			continue;
		if (why->kind == FAILURE_FAULT || why->kind == FAILURE_LIMIT)
			return DAEMON_TRUNCATED;
		target_note_unwind_gap(target);
		if (!cross_gap(target, memory, why))
			return DAEMON_UNWOUND;
		best = DAEMON_UNWOUND;
		interrupted = false;
	}
	return DAEMON_TRUNCATED;
}

/* ---- Merge ------------------------------------------------------------------------------ */

/** The chain under construction. A chain that is too long keeps both ends: later frames use the
 * second half as a ring buffer, after a slot for the placeholder. */
struct merge {
	struct daemon_target *target;
	size_t count; /* frames so far, kept or not */
	bool is_truncated;
	uint64_t last_native_start; /* start of the last frame's function, 0 if it is not native */
	/* The Lua frames of each VM frame: [first, end) in the Lua chain. */
	uint32_t first[TARGET_VM_FRAMES_MAX], end[TARGET_VM_FRAMES_MAX];
};

/* @param guest Index in the Lua chain + 1; 0: a native frame. */
static void append(struct merge *merge, const struct format_frame *frame, uint32_t guest)
{
	size_t index = merge->count++;

	if (index >= TARGET_END_FRAMES)
		index = TARGET_END_FRAMES + 1 + index % TARGET_END_FRAMES;
	merge->target->is_native[index] = guest == 0;
	merge->target->guests[index] = guest;
	merge->target->frames[index] = *frame;
}

/* Append a frame without line and trace. */
static void append_plain(struct merge *merge, uint32_t function, uint64_t address)
{
	append(merge, &(struct format_frame){ .function = function, .address = address }, 0);
}

/* Put the second half in order. is_native is used only for the leaf's end. */
static int finish_chain(struct merge *merge, size_t *ret_count, struct failure *why)
{
	struct daemon_target *target = merge->target;
	struct format_frame *second = target->frames + TARGET_END_FRAMES;
	uint32_t *guests = target->guests + TARGET_END_FRAMES;
	size_t rest = merge->count > TARGET_END_FRAMES ? merge->count - TARGET_END_FRAMES : 0;
	size_t kept = rest < TARGET_END_FRAMES ? rest : TARGET_END_FRAMES;
	size_t oldest = rest > kept ? merge->count % TARGET_END_FRAMES : 0;
	uint32_t id = 0;

	*ret_count = merge->count;
	if (rest == 0)
		return 0;
	for (size_t i = 0; i < kept; i++) {
		target->rotated[i] = second[1 + (oldest + i) % TARGET_END_FRAMES];
		target->rotated_guests[i] = guests[1 + (oldest + i) % TARGET_END_FRAMES];
	}
	merge->is_truncated = rest > kept;
	if (merge->is_truncated) {
		if (target_placeholder_id(target, TARGET_PLACEHOLDER_CUT, &id, why) != 0)
			return -1;
		*second++ = (struct format_frame){ .function = id };
		*guests++ = 0;
		*ret_count = TARGET_END_FRAMES + 1 + kept;
	}
	memcpy(second, target->rotated, kept * sizeof(*second));
	memcpy(guests, target->rotated_guests, kept * sizeof(*guests));
	return 0;
}

/* Whether the last frame is the native frame of this function. */
static bool is_native_of(const struct merge *merge, const struct luastate_function *function)
{
	return merge->count && merge->last_native_start == function->address &&
	       (function->kind == LUASTATE_C || function->kind == LUASTATE_BUILTIN);
}

static int append_guest(struct merge *merge, uint32_t guest, struct failure *why)
{
	const struct luastate_frame *frame = &merge->target->chain.frames[guest];
	struct luastate_function *function = frame->function;
	uint32_t id;

	if (target_guest_id(merge->target, function, &id, why) != 0)
		return -1;
	append(merge,
	       &(struct format_frame){ .function = id,
				       .address = frame->pc ? frame->pc : function->address,
				       .line = frame->line,
				       .trace = frame->trace,
				       .approximate = frame->approximate },
	       guest + 1);
	return 0;
}

static int append_vm_work(struct merge *merge, struct failure *why)
{
	struct daemon_target *target = merge->target;
	uint32_t id;

	if (target_vm_work_id(target, &target->chain.work, &id, why) != 0)
		return -1;
	if (merge->count < TARGET_END_FRAMES)
		target->work = merge->count;
	append_plain(merge, id, 0);
	return 0;
}

/* Append the leaf-most frame: what the thread waits in. */
static int append_sleep(struct merge *merge, struct failure *why)
{
	uint32_t id;

	if (target_sleep_id(merge->target, merge->target->sleep, &id, why) != 0)
		return -1;
	append_plain(merge, id, 0);
	return 0;
}

static int append_placeholder(struct merge *merge, enum target_placeholder mark,
			      struct failure *why)
{
	uint32_t id;

	if (target_placeholder_id(merge->target, mark, &id, why) != 0)
		return -1;
	append_plain(merge, id, 0);
	merge->last_native_start = 0;
	return 0;
}

/* Append the frames of one VM frame's run. If the run's leaf is a C function of a library or the
 * application, its native frame is just above. Both are one call, so they become one frame with the
 * name that Lua knows. VM work that the run triggers goes between the run and the native frames of
 * the collector or compiler. */
static int append_run(struct merge *merge, unsigned vm_frame, struct failure *why)
{
	const struct luastate_chain *chain = &merge->target->chain;
	uint32_t first = merge->first[vm_frame], end = merge->end[vm_frame];

	if (first < end && is_native_of(merge, chain->frames[first].function))
		merge->count--;
	if (chain->work.kind != LUASTATE_VM_WORK_NONE && chain->work.owner == vm_frame &&
	    append_vm_work(merge, why) != 0)
		return -1;
	for (uint32_t i = first; i < end; i++)
		if (append_guest(merge, i, why) != 0)
			return -1;
	merge->last_native_start = 0;
	return chain->lost[vm_frame] ? append_placeholder(merge, TARGET_PLACEHOLDER_LOST, why) : 0;
}

/* The frames of a run are adjacent. */
static void index_runs(struct merge *merge)
{
	const struct luastate_chain *chain = &merge->target->chain;

	for (uint32_t i = 0; i < chain->count; i++) {
		unsigned owner = chain->frames[i].owner;

		if (i == 0 || chain->frames[i - 1].owner != owner)
			merge->first[owner] = i;
		merge->end[owner] = i + 1;
	}
}

static int append_item(struct merge *merge, const struct target_item *item, struct failure *why)
{
	switch (item->step) {
	case TARGET_VM_FRAME:
		return append_run(merge, item->vm_frame, why);
	case TARGET_GAP:
		return append_placeholder(merge,
					  merge->target->lacks_registers
						  ? TARGET_PLACEHOLDER_UNKNOWN
						  : TARGET_PLACEHOLDER_GAP,
					  why);
	case TARGET_NATIVE:
		break;
	}
	append_plain(merge, item->function, item->pc);
	merge->last_native_start = item->start;
	return 0;
}

static int merge_chain(struct merge *merge, size_t *ret_count, struct failure *why)
{
	struct daemon_target *target = merge->target;

	index_runs(merge);
	target->work = SIZE_MAX;
	if (target->sleep && append_sleep(merge, why) != 0)
		return -1;
	for (size_t i = 0; i < target->item_count; i++)
		if (append_item(merge, &target->items[i], why) != 0)
			return -1;
	return finish_chain(merge, ret_count, why);
}

static enum daemon_outcome judge(const struct daemon_target *target, enum daemon_outcome native)
{
	if (target->vm_frame_count == 0 && native == DAEMON_FULL)
		return DAEMON_NO_VM;
	if (native != DAEMON_FULL)
		return native;
	switch (target->chain.outcome) {
	case LUASTATE_FULL:
		break;
	case LUASTATE_INCONSISTENT:
		return DAEMON_INCONSISTENT;
	case LUASTATE_TRUNCATED:
		return DAEMON_TRUNCATED;
	}
	return DAEMON_FULL;
}

static enum format_compiled compiled_of(const struct daemon_target *target)
{
	static const enum format_compiled places[LUASTATE_COMPILED_COUNT] = {
		[LUASTATE_COMPILED_NONE] = FORMAT_COMPILED_NONE,
		[LUASTATE_COMPILED_EXACT] = FORMAT_COMPILED_EXACT,
		[LUASTATE_COMPILED_APPROXIMATE] = FORMAT_COMPILED_APPROXIMATE,
		[LUASTATE_COMPILED_TRACE] = FORMAT_COMPILED_TRACE,
	};

	return target->vm_frame_count ? places[target->chain.compiled] : FORMAT_COMPILED_NONE;
}

/* Set which trace runs, and the location in it. Without VM frames, the Lua chain is still that of
 * an older sample. */
static int describe_trace(struct daemon_target *target, struct format_sample *sample,
			  struct failure *why)
{
	struct luastate_function *function = target->chain.trace_function;

	sample->compiled = compiled_of(target);
	sample->trace = target->vm_frame_count ? target->chain.trace : 0;
	sample->trace_function = FORMAT_NO_FUNCTION;
	return sample->trace && function
		       ? target_guest_id(target, function, &sample->trace_function, why)
		       : 0;
}

static bool is_main(const struct daemon_target *target, uint64_t L)
{
	for (size_t i = 0; i < luastate_vm_count(target->lua); i++)
		if (luastate_vm_get(target->lua, i)->main_thread == L)
			return true;
	return false;
}

/* Describe a coroutine by its root frame: the function that it began with, if no frames are
 * missing. */
static int describe_coroutine(struct daemon_target *target, const struct luastate_frame *root,
			      struct format_coroutine *ret_coroutine, struct failure *why)
{
	*ret_coroutine = (struct format_coroutine){ .address = root->coroutine,
						    .function = FORMAT_NO_FUNCTION,
						    .is_main = is_main(target, root->coroutine) };
	if (ret_coroutine->is_main || target->chain.outcome != LUASTATE_FULL)
		return 0;
	return target_guest_id(target, root->function, &ret_coroutine->function, why);
}

/* The frames of each coroutine are adjacent. */
static int describe_coroutines(struct daemon_target *target, struct format_sample *sample,
			       struct failure *why)
{
	const struct luastate_chain *chain = &target->chain;

	sample->coroutines = target->coroutines;
	sample->coroutine_count = 0;
	for (size_t i = 0; i < chain->count; i++) {
		const struct luastate_frame *frame = &chain->frames[i];
		bool is_root = i + 1 == chain->count || frame[1].coroutine != frame->coroutine;

		if (!is_root || !frame->coroutine ||
		    sample->coroutine_count == FORMAT_COROUTINES_MAX)
			continue;
		if (describe_coroutine(target, frame, &target->coroutines[sample->coroutine_count],
				       why) != 0)
			return -1;
		sample->coroutine_count++;
	}
	return 0;
}

int target_decode(struct daemon_target *target, struct attach_image *image,
		  const struct luastate_memory *memory, struct format_sample *ret_sample,
		  enum daemon_outcome *ret_outcome, struct failure *why)
{
	const struct attach_registers *regs = attach_image_registers(image);
	struct merge merge = { .target = target };
	enum daemon_outcome native;
	uint64_t begin_ns = clock_now_ns();
	size_t count = 0;
	int state;

	luastate_begin_sample(target->lua, memory->any);
	native = walk_native(target, regs, memory, why);
	target->native_ns = clock_now_ns() - begin_ns;
	if (native == DAEMON_FULL || target->vm_frame_count) {
		luastate_walk(target->lua, memory, target->vm_frames, target->vm_frame_count,
			      &target->chain);
	} else {
		target->chain.count = 0;
		target->chain.work.kind = LUASTATE_VM_WORK_NONE;
		target->chain.heap_bytes = 0;
	}
	*ret_outcome = judge(target, native);
	target->is_stack_cut = *ret_outcome == DAEMON_TRUNCATED;
	state = target->vm_frame_count ? target->chain.state : -1;
	/* Outside of the VM, its state says nothing about this thread. */
	ret_sample->state = state < 0 ? FORMAT_STATE_CFUNC : (enum format_state)state;
	ret_sample->heap_bytes = target->chain.heap_bytes;
	if (describe_trace(target, ret_sample, why) != 0 ||
	    describe_coroutines(target, ret_sample, why) != 0 ||
	    merge_chain(&merge, &count, why) != 0)
		return -1;
	if (merge.is_truncated && *ret_outcome == DAEMON_FULL)
		*ret_outcome = DAEMON_TRUNCATED;
	ret_sample->full = daemon_outcome_reaches_root(*ret_outcome) && !merge.is_truncated;
	ret_sample->frames = target->frames;
	ret_sample->frame_count = (uint32_t)count;
	return 0;
}
