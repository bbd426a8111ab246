/* SPDX-License-Identifier: MIT */
/* What is the stack of each thread of a process? */
#include "daemon/dump/stacks.h"
#include "attach/clock.h"
#include "luastate/explain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/dump/dump_internal.h"
#include "daemon/dump/frames.h"
#include "daemon/tick_clock.h"

enum {
	/* For a thread that waits for a processor on a busy machine. */
	PATIENCE_NS = 1000 * 1000 * 1000,
	/* Sleeping threads are read more often than running ones are stopped: reading costs them
	 * nothing, and they may wake up all the time. */
	PROBES_MAX = 40,
	PROBE_NAP_NS = 200 * 1000,
	/* Probes without a better result, after which a stack is final. */
	VAIN_MAX = 3,
	/* All memory, if no thread shows a VM. */
	SEARCH_S = 10,
	SETTLE_NS = 1000 * 1000 * 1000,
	SETTLE_NAP_NS = 1000 * 1000,
	/* Bytes to copy for variables in addition to the pages that a probe has read. */
	BESIDE_BYTES = 16 << 20,
	/* Bytes around a VM's global state that the planner reads in a stop. */
	VM_BYTES = 16 << 10,
	THREAD_BYTES = 256,
};

/** Stacks being read. */
struct reading {
	struct attach_process *process;
	struct daemon_target *target;
	struct format_functions *functions;
	struct attach_image *image, *after; /* as in a recorder */
	const struct daemon_stacks_options *options;
	struct daemon_stacks *stacks;
	struct luastate_values_options values; /* with the rest of their budget */
	struct snapshot *snapshot;
	size_t frames;
	bool searched;	     /* all memory, for VMs */
	struct failure last; /* why a thread could not be read */
};

/** One thread and its probes. */
struct probing {
	struct attach_thread *thread;
	struct luastate_prediction prediction;
	struct daemon_thread best;
	struct luastate_values_options values; /* rest of the budget for its variables */
	bool has_best;
	bool is_final;	 /* more probes would show no more */
	bool is_stopped; /* by a signal: after our probe it runs for a moment, then stops again */
	unsigned stops, probes;
	unsigned vain; /* probes since the best one */
};

/* ---- One probe -------------------------------------------------------------------------- */

/* A sleeping thread is read in place. Others are stopped, including those that a signal has
 * stopped, because that interrupts no system call. */
static int capture(struct reading *reading, struct probing *probing,
		   struct luastate_plan_context *context, struct daemon_thread *ret_thread,
		   struct failure *why)
{
	const struct attach_planner planner = { .plan = luastate_plan, .context = context };
	struct attach_thread *thread = probing->thread;
	struct attach_sleep sleep = { .is_stopped = false };
	struct attach_timing timing;

	*ret_thread = (struct daemon_thread){ .tid = thread->tid, .syscall = -1 };
	if (!thread->stop_pending &&
	    attach_thread_probe(reading->process, thread, &sleep) == ATTACH_BLOCKED &&
	    !sleep.is_stopped) {
		if (attach_capture_asleep(reading->process, thread, &planner, reading->image,
					  &sleep, why) != 0)
			return -1;
		ret_thread->doing = DAEMON_WAITING;
		ret_thread->syscall = sleep.syscall;
		return 0;
	}
	if (probing->stops == DAEMON_STOPS_MAX)
		return failure_set(why, FAILURE_LIMIT, 0, thread->tid, 0, "stop the thread again");
	probing->stops++;
	probing->is_stopped |= sleep.is_stopped;
	thread->patience_ns = PATIENCE_NS;
	if (attach_capture(reading->process, thread, &planner, reading->image, &timing, why) != 0)
		return -1;
	ret_thread->doing = probing->is_stopped ? DAEMON_STOPPED : DAEMON_RUNNING;
	return 0;
}

enum daemon_outcome stacks_judge(const struct daemon_target *target,
				 const struct daemon_thread *thread, enum daemon_outcome outcome)
{
	bool is_unsure = thread->doing == DAEMON_WAITING && thread->syscall < 0 &&
			 target->vm_frame_count && target->vm_frames[0].leaf;

	return is_unsure && outcome == DAEMON_FULL ? DAEMON_INCONSISTENT : outcome;
}

/* Combine what the stop has copied with what the planner requests after it. */
static void open_memory(struct reading *reading, const struct luastate_plan_context *context,
			struct luastate_memory *ret_memory)
{
	const struct attach_reader *after;
	struct failure why;

	attach_image_clear(reading->after);
	luastate_plan_after(context, reading->image, reading->after);
	attach_process_fetch(reading->process, reading->after, &why);
	after = attach_image_reader_behind(reading->after, attach_process_reader(reading->process),
					   false);
	*ret_memory = (struct luastate_memory){
		.stopped = attach_image_reader(reading->image),
		.any = attach_image_reader_behind(reading->image, after, false),
		.later = after,
	};
}

static int decode(struct reading *reading, struct probing *probing,
		  const struct luastate_memory *memory, struct daemon_thread *thread,
		  struct failure *why)
{
	struct daemon_target *target = reading->target;
	struct format_sample sample = { .weight = 1 };
	struct luastate_native_walk native;
	enum daemon_outcome outcome;

	target->lacks_registers = thread->doing == DAEMON_WAITING;
	luastate_set_thorough(target->lua, true); /* names are worth their time here */
	if (target_decode(target, reading->image, memory, &sample, &outcome, why) != 0)
		return -1;
	outcome = stacks_judge(target, thread, outcome);
	native = target_native_walk(
		target, outcome == DAEMON_FULL ? LUASTATE_REACH_ALL : LUASTATE_REACH_CUT,
		attach_sp(attach_image_registers(reading->image)));
	luastate_learn(target->lua, memory->any, &native, &probing->prediction);
	return frames_copy_stack(target, reading->functions, memory->any, &sample, outcome,
				 &thread->stack, why);
}

/* Search an unknown VM on the thread's stack in the image, or in memory. @return Whether there are
 * new VMs. */
static bool find_vm(struct reading *reading, const struct probing *probing)
{
	struct daemon_target *target = reading->target;
	const struct attach_reader *reader = attach_image_reader_behind(
		reading->image, attach_process_reader(reading->process), false);
	uint64_t sp = attach_sp(attach_image_registers(reading->image));
	uint64_t limit = probing->thread->stack_limit;
	size_t known = luastate_vm_count(target->lua);
	struct failure why;

	if (known == 0)
		luastate_find_on_stack(target->lua, reader, sp, limit, &why);
	if (target->gap_sp)
		target_find_gap_vm(target, reader, limit);
	if (target->gap_sp && luastate_vm_count(target->lua) == known && !reading->searched) {
		reading->searched = true;
		target_find_more_vms(target);
	}
	return luastate_vm_count(target->lua) != known;
}

/* ---- The best probe --------------------------------------------------------------------- */

int stacks_rank(const struct daemon_stack *stack)
{
	switch (stack->outcome) {
	case DAEMON_FULL:
	case DAEMON_NO_VM:
		return 3;
	case DAEMON_UNWOUND:
		return 2;
	case DAEMON_TRUNCATED:
		return 1;
	default:
		return 0;
	}
}

/* A chain may have more frames, but fewer Lua frames. */
static size_t guests_of(const struct daemon_stack *stack)
{
	size_t count = 0;

	for (size_t i = 0; i < stack->count; i++)
		count += !format_kind_is_native(stack->frames[i].kind) &&
			 stack->frames[i].kind != FORMAT_KIND_PSEUDO;
	return count;
}

static bool is_better(const struct daemon_stack *stack, const struct daemon_stack *than)
{
	size_t guests = guests_of(stack), others = guests_of(than);

	if (stacks_rank(stack) != stacks_rank(than))
		return stacks_rank(stack) > stacks_rank(than);
	return guests != others ? guests > others : stack->count > than->count;
}

/* Note the memory that the walk of a stopped thread has used, which is then copied at once. */
static void note_probe(struct reading *reading, const struct probing *probing)
{
	const struct luastate_prediction *seen = &probing->prediction;
	uint64_t sp = attach_sp(attach_image_registers(reading->image));

	snapshot_note_stack(reading->snapshot, sp);
	if (seen->native_end > sp)
		snapshot_note(reading->snapshot, sp, seen->native_end);
	for (unsigned i = 0; i < seen->thread_count; i++) {
		snapshot_note(reading->snapshot, seen->threads[i].L,
			      seen->threads[i].L + THREAD_BYTES);
		snapshot_note(reading->snapshot, seen->threads[i].stack, seen->threads[i].limit);
		snapshot_note(reading->snapshot, seen->threads[i].G - VM_BYTES,
			      seen->threads[i].G + VM_BYTES);
	}
}

/** What a probe has copied, then what is read after it. */
struct probed_memory {
	const struct attach_reader *image, *behind;
};

static int read_probed(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		       struct failure *why)
{
	const struct probed_memory *probed = self;

	if (attach_read(probed->image, address, ret_bytes, len, why) == 0)
		return 0;
	return attach_read(probed->behind, address, ret_bytes, len, why);
}

/* Read the variables for this probe. Objects that they refer to may have changed since the stop, so
 * a freeze reads them again. */
static void read_variables(struct reading *reading, struct probing *probing,
			   const struct luastate_memory *memory, struct daemon_thread *thread)
{
	/* memory->any already is the image's only reader with others behind it. */
	struct probed_memory probed = { .image = memory->stopped,
					.behind = snapshot_live(reading->snapshot) };
	const struct attach_reader reader = { .read = read_probed, .self = &probed };
	const struct luastate_memory heap = { .stopped = memory->stopped, .any = &reader };

	frames_read_variables(reading->target, &heap, &probing->values, &thread->stack);
}

/* Keep or drop a probe. If a chain is not better than the one before, the next one will not be
 * better, unless the VM was just inconsistent. */
static void keep_best(struct reading *reading, struct probing *probing,
		      const struct luastate_memory *memory, struct daemon_thread *thread)
{
	bool better = !probing->has_best || is_better(&thread->stack, &probing->best.stack);

	probing->vain = better ? 0 : probing->vain + 1;
	probing->is_final =
		daemon_outcome_reaches_root(thread->stack.outcome) ||
		(thread->stack.outcome == DAEMON_UNWOUND && !better) ||
		(thread->stack.outcome == DAEMON_TRUNCATED && probing->vain >= VAIN_MAX);
	if (!better) {
		daemon_stack_deinit(&thread->stack);
		return;
	}
	probing->values = reading->values;
	note_probe(reading, probing);
	if (reading->options->values)
		read_variables(reading, probing, memory, thread);
	daemon_stack_deinit(&probing->best.stack);
	probing->best = *thread;
	probing->has_best = true;
}

/* @return false if the thread needs no more probes. */
static bool probe_once(struct reading *reading, struct probing *probing, struct failure *why)
{
	struct luastate_plan_context context = { .state = reading->target->lua,
						 .prediction = &probing->prediction,
						 .stack_limit = probing->thread->stack_limit };
	const struct timespec nap = { .tv_nsec = PROBE_NAP_NS };
	struct luastate_memory memory;
	size_t known = luastate_vm_count(reading->target->lua);
	struct daemon_thread thread;
	bool is_full, is_met;

	if (capture(reading, probing, &context, &thread, why) != 0) {
		if (why->kind != FAILURE_TIMEOUT)
			return false;
		nanosleep(&nap, NULL);
		return true;
	}
	open_memory(reading, &context, &memory);
	if (decode(reading, probing, &memory, &thread, why) != 0)
		return false;
	is_full = thread.stack.outcome == DAEMON_FULL;
	/* Found by this probe, too late to see its frames. */
	is_met = thread.stack.G == 0 && luastate_vm_count(reading->target->lua) != known;
	keep_best(reading, probing, &memory, &thread);
	/* Frames of a VM that was unknown may have been missed. */
	return is_met || (!is_full && find_vm(reading, probing)) || !probing->is_final;
}

/* ---- All threads ------------------------------------------------------------------------ */

int stacks_add_vm(struct daemon_stacks *stacks, struct daemon_target *target, uint64_t G)
{
	const struct attach_reader *reader = target_reader(target);
	struct luastate *lua = target->lua;
	struct daemon_stack_vm *vms, *vm;
	struct failure why;

	for (size_t i = 0; i < stacks->vm_count; i++)
		if (stacks->vms[i].G == G)
			return 0;
	vms = realloc(stacks->vms, (stacks->vm_count + 1) * sizeof(*vms));
	if (!vms)
		return -1;
	stacks->vms = vms;
	vm = &vms[stacks->vm_count++];
	*vm = (struct daemon_stack_vm){ .G = G };
	for (size_t i = 0; i < luastate_vm_count(lua); i++)
		if (luastate_vm_get(lua, i)->G == G)
			luastate_describe_layout(luastate_vm_get(lua, i)->layout, vm->layout,
						 sizeof(vm->layout));
	if (luastate_read_version(lua, reader, G, vm->version, sizeof(vm->version), &why) != 0)
		vm->version[0] = '\0';
	return 0;
}

/* Owns the thread's stack from now on. */
static int add_thread(struct reading *reading, struct probing *probing)
{
	struct daemon_stacks *stacks = reading->stacks;
	struct daemon_thread *thread = &probing->best;
	bool has_lua = thread->stack.G != 0;

	if (has_lua && stacks_add_vm(stacks, reading->target, thread->stack.G) != 0) {
		daemon_stack_deinit(&thread->stack);
		return -1;
	}
	thread->stops = probing->stops;
	attach_thread_name(reading->process, thread->tid, thread->name, sizeof(thread->name));
	reading->frames += thread->stack.count;
	reading->values = probing->values;
	stacks->threads[stacks->count++] = *thread;
	return 0;
}

/* @return -1 if memory is out. */
static int read_thread(struct reading *reading, struct attach_thread *thread)
{
	struct probing probing = { .thread = thread };
	struct failure why = { 0 };

	while (probing.probes++ < PROBES_MAX && probe_once(reading, &probing, &why))
		;
	if (probing.has_best)
		return add_thread(reading, &probing);
	if (why.kind == FAILURE_GONE)
		return 0;
	if (why.kind == FAILURE_NO_MEMORY)
		return -1;
	reading->stacks->unread++;
	reading->last = why;
	return 0;
}

/* Threads with pending stops continue on their own when we end. Callers that live on let go of them
 * earlier. */
static void settle(struct attach_threads *threads)
{
	const struct timespec nap = { .tv_nsec = SETTLE_NAP_NS };
	uint64_t end_ns = clock_now_ns() + SETTLE_NS;

	for (size_t i = 0; i < attach_threads_count(threads);)
		if (attach_thread_settle(attach_threads_get(threads, i)) == 0 ||
		    clock_now_ns() >= end_ns)
			i++;
		else
			nanosleep(&nap, NULL);
}

void stacks_forget_threads(struct daemon_stacks *stacks)
{
	for (size_t i = 0; i < stacks->count; i++)
		daemon_stack_deinit(&stacks->threads[i].stack);
	free(stacks->threads);
	stacks->threads = NULL;
	stacks->count = stacks->others = stacks->unread = 0;
}

/* @return -1 if memory is out. */
static int read_threads(struct reading *reading)
{
	struct daemon_stacks *stacks = reading->stacks;
	struct attach_threads *threads = reading->target->threads;
	size_t count = attach_threads_count(threads);
	int ret = 0;

	stacks_forget_threads(stacks);
	reading->frames = 0;
	if (reading->options->values)
		reading->values = *reading->options->values;
	stacks->threads = calloc(count + 1, sizeof(*stacks->threads));
	if (!stacks->threads)
		return -1;
	for (size_t i = 0; i < count && ret == 0; i++) {
		if (reading->frames < STACKS_FRAMES_MAX)
			ret = read_thread(reading, attach_threads_get(threads, i));
		else
			stacks->unread++;
	}
	settle(threads);
	return ret;
}

/* A VM that no thread runs now is somewhere in memory; then the dump is complete without Lua
 * frames. */
static bool has_vm(struct reading *reading)
{
	struct failure why;

	if (luastate_vm_count(reading->target->lua) > 0)
		return true;
	target_limit_search(reading->target, NULL,
			    clock_now_ns() + SEARCH_S * (uint64_t)1000000000);
	return target_find_vm(reading->target, &why) == 0;
}

static enum daemon_end read_vms(struct reading *reading)
{
	struct daemon_stacks *stacks = reading->stacks;

	if (!luastate_has_interpreter(reading->target->lua))
		return DAEMON_END_NO_VM;
	if (read_threads(reading) != 0)
		return DAEMON_END_SYSTEM;
	if (stacks->count == 0 && stacks->others == 0 && stacks->unread)
		return target_end_of_failure(&reading->last);
	return stacks->vm_count || has_vm(reading) ? DAEMON_END_STOPPED : DAEMON_END_NO_VM;
}

/* Unreadable memory of an ending process looks like a process without threads, or without
 * LuaJIT. */
static enum daemon_end read_process(struct reading *reading)
{
	struct daemon_stacks *stacks = reading->stacks;
	enum daemon_end end = read_vms(reading);

	stacks->is_exhausted = reading->values.is_exhausted;
	if (end == DAEMON_END_STOPPED &&
	    stacks_read_snapshot(&(struct stacks_snapshot){ .snapshot = reading->snapshot,
							    .target = reading->target,
							    .functions = reading->functions,
							    .options = reading->options },
				 stacks) != 0)
		return DAEMON_END_SYSTEM;
	stacks->ended = attach_process_fate(reading->process) != ATTACH_FATE_SAME;
	if (!stacks->ended || end == DAEMON_END_SYSTEM)
		return end;
	return end == DAEMON_END_STOPPED && stacks->count ? end : DAEMON_END_EARLY;
}

/* ---- One process ------------------------------------------------------------------------ */

static int open_target(pid_t pid, struct reading *reading, struct failure *why)
{
	const struct target_listener listener = { .function = frames_keep_function,
						  .context = reading->functions };
	const struct snapshot_options how = { .max_pause_ns = reading->options->max_pause_ns,
					      .beside_bytes =
						      reading->options->values ? BESIDE_BYTES : 0 };

	if (!reading->functions || !reading->image || !reading->after)
		return failure_set_errno(why, ENOMEM, 0, "read stacks");
	if (target_open_process(pid, &reading->process, why) != 0 ||
	    target_create(reading->process, &listener, &reading->target, why) != 0)
		return -1;
	target_limit_search(reading->target, NULL,
			    clock_now_ns() + SEARCH_S * (uint64_t)1000000000);
	reading->snapshot = snapshot_create(reading->target, &how);
	if (!reading->snapshot)
		return failure_set_errno(why, ENOMEM, 0, "read stacks");
	return target_refresh(reading->target, why);
}

static void tell_end(const struct reading *reading, pid_t pid, enum daemon_end end, char *ret_text,
		     size_t len)
{
	if (end == DAEMON_END_EARLY)
		snprintf(ret_text, len,
			 "the program of process %d ended before its stacks were read", (int)pid);
	else if (end == DAEMON_END_SYSTEM && reading->last.kind != FAILURE_NONE)
		failure_describe(&reading->last, ret_text, len);
	else if (end == DAEMON_END_NO_VM || end == DAEMON_END_SYSTEM)
		target_tell_end(reading->target, pid, end, ret_text, len);
	else if (end != DAEMON_END_STOPPED)
		attach_explain(pid, &reading->last, ret_text, len);
}

enum daemon_end daemon_dump_stacks(pid_t pid, const struct daemon_stacks_options *options,
				   struct daemon_stacks *ret_stacks, char *ret_text, size_t len)
{
	struct daemon_stacks stacks = { .pid = pid };
	struct reading reading = { .options = options,
				   .stacks = &stacks,
				   .functions = format_functions_create(),
				   .image = attach_image_create(),
				   .after = attach_image_create() };
	struct attach_names names;
	enum daemon_end end;
	struct failure why;

	if (open_target(pid, &reading, &why) != 0) {
		attach_explain(pid, &why, ret_text, len);
		end = target_end_of_failure(&why);
	} else {
		if (attach_names_of(pid, &names))
			snprintf(stacks.name, sizeof(stacks.name), "%s", names.command);
		end = read_process(&reading);
		tell_end(&reading, pid, end, ret_text, len);
	}
	snapshot_destroy(reading.snapshot);
	target_destroy(reading.target);
	attach_process_close(reading.process);
	attach_image_destroy(reading.image);
	attach_image_destroy(reading.after);
	format_functions_destroy(reading.functions);
	if (end == DAEMON_END_STOPPED)
		*ret_stacks = stacks;
	else
		daemon_stacks_deinit(&stacks);
	return end;
}

void daemon_stacks_deinit(struct daemon_stacks *stacks)
{
	stacks_forget_threads(stacks);
	free(stacks->vms);
	*stacks = (struct daemon_stacks){ 0 };
}
