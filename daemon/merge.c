/* SPDX-License-Identifier: MIT */
/*
 * From an image to one call chain.
 *
 * First the native stack is unwound from the leaf to the thread's first function. At each C frame
 * of the interpreter, which the unwind tables describe roughly and luastate exactly, the walk goes
 * on behind it. Then luastate walks the Lua stacks and says which run of Lua frames belongs to
 * which C frame; each run takes its C frame's place in the chain.
 */
#include "daemon/native.h"

#include <string.h>
#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- Native walk ------------------------------------------------------------------------ */

static int add_native(struct daemon_target *target, uint64_t pc, uint64_t lookup,
		      struct failure *why)
{
	struct target_item *item = &target->items[target->item_count];

	if (target_native_id(target, lookup, &item->function, &item->start, why) != 0)
		return -1;
	item->is_vm = false;
	item->pc = pc;
	target->item_count++;
	return 0;
}

/* Machine code of traces lies in anonymous executable memory. */
static bool is_machine_code(const struct daemon_target *target, uint64_t pc)
{
	const struct symbols_mapping *mapping;

	if (luastate_vm_count(target->lua) == 0)
		return false;
	mapping = symbols_space_find(target->space, pc);
	return mapping && mapping->executable && mapping->inode == 0 && mapping->path[0] == '\0';
}

/* Note a C frame and set the unwinder to its caller. */
static int cross_cframe(struct daemon_target *target, const struct luastate_cframe *cframe,
			const struct symbols_native_frame *frame,
			const struct luastate_memory *memory, struct failure *why)
{
	struct target_item *item = &target->items[target->item_count];
	struct attach_registers regs = { .syscall = -1 };

	if (target->cframe_count == TARGET_CFRAMES_MAX)
		return failure_set(why, FAILURE_LIMIT, 0, 0, cframe->address, "follow a C frame");
	item->is_vm = true;
	item->cframe = (unsigned)target->cframe_count;
	target->item_count++;
	target->cframes[target->cframe_count++] = *cframe;
	memcpy(regs.r, cframe->saved, sizeof(regs.r));
	regs.r[12] = frame->r12; /* VM code leaves both alone */
	regs.r[13] = frame->r13;
	regs.r[ATTACH_REG_RIP] = cframe->ret;
	regs.r[ATTACH_REG_RSP] = cframe->sp;
	return symbols_unwind_begin_caller(target->unwinder, &regs, memory->stopped, why);
}

/* One frame at which the unwinder stands. @return 1 to step on, 2 where the unwinder was set to the
 *  next frame already, -1 on failure. */
static int take_frame(struct daemon_target *target, const struct attach_registers *regs,
		      const struct luastate_memory *memory, bool interrupted, struct failure *why)
{
	struct symbols_native_frame frame;
	struct luastate_cframe cframe;
	uint64_t lookup;
	bool leaf = target->item_count == 0;

	symbols_unwind_frame(target->unwinder, &frame);
	lookup = interrupted ? frame.pc : frame.pc - 1;
	target->stack_top = frame.sp;
	if (luastate_in_interpreter(target->lua, lookup)) {
		if (luastate_find_cframe(target->lua, memory, frame.pc, frame.sp, frame.rbx,
					 leaf ? regs : NULL, &cframe, why) != 0)
			return -1;
		cframe.rbp = frame.rbp;
		return cross_cframe(target, &cframe, &frame, memory, why) == 0 ? 2 : -1;
	}
	if (is_machine_code(target, lookup) &&
	    luastate_find_trace_cframe(target->lua, memory, frame.sp, &cframe, why) == 0)
		return cross_cframe(target, &cframe, &frame, memory, why) == 0 ? 2 : -1;
	return add_native(target, frame.pc, lookup, why) == 0 ? 1 : -1;
}

/* @return DAEMON_FULL where the walk reached the thread's first function. */
static enum daemon_outcome walk_native(struct daemon_target *target,
				       const struct attach_registers *regs,
				       const struct luastate_memory *memory, struct failure *why)
{
	bool interrupted = true;

	target->item_count = target->cframe_count = 0;
	target->stack_top = attach_sp(regs);
	if (symbols_unwind_begin(target->unwinder, regs, memory->stopped, why) != 0)
		return DAEMON_UNWOUND;
	while (target->item_count < TARGET_NATIVE_MAX) {
		struct symbols_native_frame frame;
		int got = take_frame(target, regs, memory, interrupted, why);

		if (got < 0)
			return why->kind == FAILURE_FAULT ? DAEMON_TRUNCATED : DAEMON_TORN;
		symbols_unwind_frame(target->unwinder, &frame);
		interrupted = got == 1 && frame.is_signal;
		if (got == 2)
			continue;
		got = symbols_unwind_step(target->unwinder, why);
		if (got == 0)
			return DAEMON_FULL;
		if (got < 0)
			return why->kind == FAILURE_FAULT ? DAEMON_TRUNCATED : DAEMON_UNWOUND;
	}
	return DAEMON_TRUNCATED;
}

/* ---- Merge ------------------------------------------------------------------------------ */

/** The chain in the making. */
struct merge {
	struct daemon_target *target;
	size_t count;
	uint64_t last_native_start; /* of the frame appended last, 0 if that is no native frame */
};

static void append(struct merge *merge, uint32_t function, uint64_t address, uint32_t line,
		   bool native)
{
	if (merge->count == TARGET_FRAMES_MAX)
		return;
	merge->target->is_native[merge->count] = native;
	merge->target->frames[merge->count++] =
		(struct format_frame){ .function = function, .address = address, .line = line };
}

/*
 * The frames of one C frame's run. A run whose leaf is a C function, of a library or the
 * application, has that function's native frame right above: one call, so one frame, under the name
 * that Lua knows.
 */
static int append_run(struct merge *merge, unsigned cframe, struct failure *why)
{
	const struct luastate_chain *chain = &merge->target->chain;
	bool first = true;

	for (size_t i = 0; i < chain->count; i++) {
		const struct luastate_frame *frame = &chain->frames[i];
		struct luastate_function *function = frame->function;
		uint32_t id;

		if (frame->owner != cframe)
			continue;
		if (target_guest_id(merge->target, function, &id, why) != 0)
			return -1;
		if (first && merge->count && merge->last_native_start == function->address &&
		    (function->kind == LUASTATE_C || function->kind == LUASTATE_FAST))
			merge->count--;
		first = false;
		append(merge, id, frame->pc ? frame->pc : function->address, frame->line, false);
	}
	merge->last_native_start = 0;
	return 0;
}

static int append_state(struct merge *merge, enum format_state state, struct failure *why)
{
	uint32_t id;

	if (state < FORMAT_STATE_GC || state > FORMAT_STATE_ASM)
		return 0;
	if (target_pseudo_id(merge->target, state, &id, why) != 0)
		return -1;
	append(merge, id, 0, 0, true);
	return 0;
}

static int merge_chain(struct merge *merge, enum format_state state, struct failure *why)
{
	struct daemon_target *target = merge->target;

	if (append_state(merge, state, why) != 0)
		return -1;
	for (size_t i = 0; i < target->item_count; i++) {
		const struct target_item *item = &target->items[i];

		if (item->is_vm) {
			if (append_run(merge, item->cframe, why) != 0)
				return -1;
		} else {
			append(merge, item->function, item->pc, 0, true);
			merge->last_native_start = item->start;
		}
	}
	return 0;
}

static enum daemon_outcome judge(const struct daemon_target *target, enum daemon_outcome native)
{
	if (target->cframe_count == 0 && native == DAEMON_FULL)
		return DAEMON_NO_VM;
	if (native != DAEMON_FULL)
		return native;
	switch (target->chain.outcome) {
	case LUASTATE_FULL:
		break;
	case LUASTATE_TORN:
		return DAEMON_TORN;
	case LUASTATE_TRUNCATED:
		return DAEMON_TRUNCATED;
	}
	return DAEMON_FULL;
}

int target_decode(struct daemon_target *target, struct attach_image *image,
		  const struct luastate_memory *memory, struct format_sample *ret_sample,
		  enum daemon_outcome *ret_outcome, struct failure *why)
{
	const struct attach_registers *regs = attach_image_registers(image);
	struct merge merge = { .target = target };
	enum daemon_outcome native;
	uint64_t begin_ns = now_ns();
	int state;

	luastate_begin_sample(target->lua, memory->any);
	native = walk_native(target, regs, memory, why);
	target->native_ns = now_ns() - begin_ns;
	if (native == DAEMON_FULL || target->cframe_count)
		luastate_walk(target->lua, memory, regs, target->cframes, target->cframe_count,
			      &target->chain);
	else
		target->chain.count = 0;
	*ret_outcome = judge(target, native);
	state = luastate_sysprof_state(target->lua, target->chain.vmstate);
	/* Outside the VM its state says nothing about this thread. */
	ret_sample->state = target->cframe_count == 0 || state < 0 ? FORMAT_STATE_CFUNC
								   : (enum format_state)state;
	ret_sample->trace = target->chain.trace;
	ret_sample->full = *ret_outcome == DAEMON_FULL;
	if (merge_chain(&merge, ret_sample->state, why) != 0)
		return -1;
	ret_sample->frames = target->frames;
	ret_sample->frame_count = (uint32_t)merge.count;
	return 0;
}
