/* SPDX-License-Identifier: MIT */
/* The stacks of all threads as of one moment, with the variables of their frames. */
#include "daemon/dump/stacks.h"

#include <stdlib.h>

#include "daemon/dump/frames.h"

/** One hold being read. */
struct held {
	const struct stacks_snapshot *of;
	struct attach_image *image;
	struct daemon_stacks *looked; /* by the look before the hold */
	struct daemon_stacks fresh;   /* threads and counts alone */
	struct luastate_values_options values;
	size_t frames;
	bool is_late;
	bool has_spent; /* the look: values of its threads were left out */
};

/* ---- One thread ------------------------------------------------------------------------- */

static struct daemon_thread *find_looked(struct daemon_stacks *looked, pid_t tid)
{
	for (size_t i = 0; i < looked->count; i++)
		if (looked->threads[i].tid == tid)
			return &looked->threads[i];
	return NULL;
}

/* A thread that stands has all registers, one that sleeps pc and sp. */
static int decode(struct held *held, const struct attach_frozen_thread *seen,
		  struct daemon_thread *thread, struct failure *why)
{
	struct snapshot *snapshot = held->of->snapshot;
	struct daemon_target *target = held->of->target;
	const struct luastate_memory memory = { .stopped = snapshot_copy(snapshot),
						.any = snapshot_any(snapshot) };
	const struct luastate_memory heap = { .stopped = snapshot_copy(snapshot),
					      .any = snapshot_memory(snapshot) };
	struct attach_registers *registers = attach_image_registers(held->image);
	struct format_sample sample = { .weight = 1 };
	enum daemon_outcome outcome;

	*registers = (struct attach_registers){ .syscall = -1 };
	if (seen->stands)
		*registers = seen->registers;
	registers->r[ATTACH_REG_PC] = seen->pc;
	registers->r[ATTACH_REG_SP] = seen->sp;
	target->lacks_registers = !seen->stands;
	if (target_decode(target, held->image, &memory, &sample, &outcome, why) != 0)
		return -1;
	outcome = stacks_judge(target, thread, outcome);
	if (frames_copy_stack(target, held->of->functions, memory.any, &sample, outcome,
			      &thread->stack, why) != 0)
		return -1;
	if (held->of->options->values)
		frames_read_variables(target, &heap, &held->values, &thread->stack);
	return 0;
}

/* @return false where nothing is to be seen of it. */
static bool read_thread(struct held *held, const struct attach_frozen_thread *seen,
			struct daemon_thread *ret_thread)
{
	struct failure why;

	*ret_thread =
		(struct daemon_thread){ .tid = seen->tid,
					.doing = seen->stands ? DAEMON_RUNNING : DAEMON_WAITING,
					.syscall = seen->stands ? -1 : seen->syscall,
					.stops = seen->stands };
	if (seen->is_unknown || seen->woke || held->frames >= STACKS_FRAMES_MAX ||
	    decode(held, seen, ret_thread, &why) != 0)
		return false;
	attach_thread_name(held->of->target->process, seen->tid, ret_thread->name,
			   sizeof(ret_thread->name));
	held->frames += ret_thread->stack.count;
	return true;
}

/* ---- All threads ------------------------------------------------------------------------ */

/* Of one that a signal has stopped, and which still stands, the look has all registers. */
static bool is_still_stopped(const struct daemon_thread *looked, const struct daemon_thread *held)
{
	return looked->doing == DAEMON_STOPPED && held->doing == DAEMON_WAITING &&
	       held->syscall < 0;
}

/* @return -1 without memory. */
static int read_frozen(struct held *held)
{
	const struct attach_freeze *freeze = snapshot_freeze(held->of->snapshot);

	stacks_forget_threads(&held->fresh);
	if (held->of->options->values)
		held->values = *held->of->options->values;
	held->frames = 0;
	held->is_late = false;
	held->fresh.threads = calloc(freeze->thread_count + 1, sizeof(*held->fresh.threads));
	if (!held->fresh.threads)
		return -1;
	for (size_t i = 0; i < freeze->thread_count; i++) {
		const struct attach_frozen_thread *seen = &freeze->threads[i];
		struct daemon_thread *looked = find_looked(held->looked, seen->tid);
		struct daemon_thread *thread = &held->fresh.threads[held->fresh.count];
		bool is_read = read_thread(held, seen, thread);

		if (looked && !is_still_stopped(looked, thread))
			held->is_late |= !is_read ||
					 stacks_rank(&looked->stack) > stacks_rank(&thread->stack);
		held->fresh.unread += !looked && !is_read;
		if (looked || is_read)
			held->fresh.count++;
	}
	held->is_late |= snapshot_take_late(held->of->snapshot);
	return 0;
}

/* The better one of each thread that was seen twice. */
static void take_better(struct held *held)
{
	for (size_t i = 0; i < held->fresh.count; i++) {
		struct daemon_thread *thread = &held->fresh.threads[i];
		struct daemon_thread *looked = find_looked(held->looked, thread->tid);
		struct daemon_thread copy = *thread;

		if (!looked)
			continue;
		thread->stops += looked->stops;
		if (thread->stack.frames && !is_still_stopped(looked, thread) &&
		    stacks_rank(&looked->stack) <= stacks_rank(&thread->stack))
			continue;
		copy.stops = thread->stops;
		held->looked->is_exhausted |= held->has_spent;
		*thread = *looked;
		thread->stops = copy.stops;
		*looked = (struct daemon_thread){ .tid = 0, .stack = copy.stack };
	}
}

static bool is_frozen(const struct attach_freeze *freeze, pid_t tid)
{
	for (size_t i = 0; i < freeze->thread_count; i++)
		if (freeze->threads[i].tid == tid)
			return true;
	return false;
}

/* Threads that the hold had no room for stay as the look has them; of others that it has not met,
 * nothing is left: they have ended. @return -1 without memory. */
static int add_unheld(struct held *held)
{
	const struct attach_freeze *freeze = snapshot_freeze(held->of->snapshot);
	struct daemon_stacks *looked = held->looked, *fresh = &held->fresh;
	struct daemon_thread *threads;

	if (!freeze->is_full)
		return 0;
	threads = reallocarray(fresh->threads, fresh->count + looked->count + 1, sizeof(*threads));
	if (!threads)
		return -1;
	fresh->threads = threads;
	for (size_t i = 0; i < looked->count; i++) {
		struct daemon_thread *thread = &looked->threads[i];

		/* 0: taken before, in place of what the hold has of it. */
		if (thread->tid == 0 || is_frozen(freeze, thread->tid))
			continue;
		fresh->threads[fresh->count++] = *thread;
		*thread = (struct daemon_thread){ 0 };
		looked->is_late = true;
		looked->is_exhausted |= held->has_spent;
	}
	return 0;
}

/* Of all threads those that are asked for, and their VMs. @return -1 without memory. */
static int choose(struct held *held)
{
	const struct daemon_stacks_options *options = held->of->options;
	struct daemon_stacks *stacks = &held->fresh;
	size_t kept = 0;
	int ret = 0;

	for (size_t i = 0; i < stacks->count; i++) {
		struct daemon_thread *thread = &stacks->threads[i];

		if (thread->stack.G == 0 && !options->all_threads) {
			daemon_stack_deinit(&thread->stack);
			stacks->others++;
			continue;
		}
		if (thread->stack.G &&
		    stacks_add_vm(held->looked, held->of->target, thread->stack.G) != 0)
			ret = -1;
		stacks->threads[kept++] = *thread;
	}
	stacks->count = kept;
	return ret;
}

/* The threads of the hold in place of those of the look, whose VMs and names stay. */
static void replace(struct held *held)
{
	struct daemon_stacks *stacks = held->looked;

	stacks_forget_threads(stacks);
	stacks->threads = held->fresh.threads;
	stacks->count = held->fresh.count;
	stacks->others = held->fresh.others;
	stacks->unread = held->fresh.unread;
	held->fresh = (struct daemon_stacks){ 0 };
}

static void note_freeze(const struct held *held)
{
	const struct attach_freeze *freeze = snapshot_freeze(held->of->snapshot);
	struct daemon_stacks *stacks = held->looked;

	stacks->held = freeze->stood;
	stacks->pause_ns = freeze->pause_ns;
	stacks->has_woken = freeze->woken > 0;
	stacks->is_huge = snapshot_is_huge(held->of->snapshot);
	stacks->is_late = held->is_late;
	stacks->is_exhausted = held->values.is_exhausted;
}

/* Where no hold came about. A longer pause helps against one of the reasons alone. */
static void note_failure(const struct held *held, const struct failure *why)
{
	struct daemon_stacks *stacks = held->looked;

	if (why->kind == FAILURE_TIMEOUT || why->kind == FAILURE_LIMIT)
		stacks->is_late = true;
	else if (why->kind == FAILURE_GONE) /* of one that is there still: of its threads */
		failure_describe(why, stacks->unheld, sizeof(stacks->unheld));
	else
		attach_explain(stacks->pid, why, stacks->unheld, sizeof(stacks->unheld));
}

/* Hold again while that promises more than the last hold has shown.
 * @return 1 where no hold came about, -1 without memory. */
static int read_snapshots(struct held *held)
{
	struct failure why;
	bool any = false;

	/* What the last one lacked is in the next. */
	do {
		int ret = snapshot_take(held->of->snapshot, &why);

		held->looked->pause_ns = snapshot_freeze(held->of->snapshot)->pause_ns;
		if (ret != 0 && (any || why.kind == FAILURE_NO_MEMORY))
			return any ? 0 : -1;
		if (ret != 0) {
			note_failure(held, &why);
			return 1;
		}
		any = true;
		if (read_frozen(held) != 0)
			return -1;
		note_freeze(held);
	} while (held->is_late && snapshot_may_take(held->of->snapshot));
	return 0;
}

/* The stack of one thread is of one moment already. */
static bool needs_freeze(const struct held *held)
{
	size_t count = 0;

	for (size_t i = 0; i < held->looked->count; i++)
		count += held->looked->threads[i].stack.G != 0;
	return count > 1 || (count && held->of->options->values);
}

int stacks_read_snapshot(const struct stacks_snapshot *reading, struct daemon_stacks *stacks)
{
	struct held held = { .of = reading,
			     .looked = stacks,
			     .image = attach_image_create(),
			     .has_spent = stacks->is_exhausted };
	int ret = !held.image ? -1 : needs_freeze(&held) ? read_snapshots(&held) : 1;

	if (ret == 0) {
		take_better(&held);
		ret = add_unheld(&held);
	} else if (ret > 0) {
		/* What the look has seen is all that there is. */
		held.fresh.threads = stacks->threads;
		held.fresh.count = stacks->count;
		held.fresh.unread = stacks->unread;
		stacks->threads = NULL;
		stacks->count = 0;
	}
	if (ret >= 0)
		ret = choose(&held);
	if (ret == 0)
		replace(&held);
	stacks_forget_threads(&held.fresh);
	attach_image_destroy(held.image);
	return ret;
}
