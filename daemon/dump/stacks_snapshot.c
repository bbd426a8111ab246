/* SPDX-License-Identifier: MIT */
/* What are the stacks of all threads, with variables, in one consistent snapshot? */
#include "daemon/dump/stacks.h"

#include <stdlib.h>

#include "daemon/dump/frames.h"

/** State of reading one freeze. */
struct held {
	const struct stacks_snapshot *of;
	struct attach_image *image;
	struct daemon_stacks *looked; /* by the probe before the freeze */
	struct daemon_stacks fresh;   /* only threads and counts */
	struct luastate_values_options values;
	size_t frames;
	bool is_late;
	bool has_spent; /* the probes left out values of their threads */
};

/* ---- One thread ------------------------------------------------------------------------- */

static struct daemon_thread *find_looked(struct daemon_stacks *looked, pid_t tid)
{
	for (size_t i = 0; i < looked->count; i++)
		if (looked->threads[i].tid == tid)
			return &looked->threads[i];
	return NULL;
}

/* A stopped thread has all registers, a sleeping one only pc and sp. */
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
	if (seen->is_stopped)
		*registers = seen->registers;
	registers->r[ATTACH_REG_PC] = seen->pc;
	registers->r[ATTACH_REG_SP] = seen->sp;
	target->lacks_registers = !seen->is_stopped;
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

/* @return false if nothing of it is visible. */
static bool read_thread(struct held *held, const struct attach_frozen_thread *seen,
			struct daemon_thread *ret_thread)
{
	struct failure why;

	*ret_thread =
		(struct daemon_thread){ .tid = seen->tid,
					.doing = seen->is_stopped ? DAEMON_RUNNING : DAEMON_WAITING,
					.syscall = seen->is_stopped ? -1 : seen->syscall,
					.stops = seen->is_stopped };
	if (seen->is_unknown || seen->woke || held->frames >= STACKS_FRAMES_MAX ||
	    decode(held, seen, ret_thread, &why) != 0)
		return false;
	attach_thread_name(held->of->target->process, seen->tid, ret_thread->name,
			   sizeof(ret_thread->name));
	held->frames += ret_thread->stack.count;
	return true;
}

/* ---- All threads ------------------------------------------------------------------------ */

/* The probe has all registers of a thread that a signal has stopped, if it is still stopped. */
static bool is_still_stopped(const struct daemon_thread *looked, const struct daemon_thread *held)
{
	return looked->doing == DAEMON_STOPPED && held->doing == DAEMON_WAITING &&
	       held->syscall < 0;
}

/* @return -1 if memory is out. */
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

/* Keep the better stack of each thread that was read twice. */
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

/* Keep the probe's stacks of threads that were too many to freeze. Other threads that the freeze
 * did not see have ended. @return -1 if memory is out. */
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

		/* 0: already moved into the freeze's list. */
		if (thread->tid == 0 || is_frozen(freeze, thread->tid))
			continue;
		fresh->threads[fresh->count++] = *thread;
		*thread = (struct daemon_thread){ 0 };
		looked->is_late = true;
		looked->is_exhausted |= held->has_spent;
	}
	return 0;
}

/* Keep the requested threads, and list their VMs. @return -1 if memory is out. */
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

/* Replace the probes' threads with the freeze's; VMs and names remain. */
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

	stacks->frozen = freeze->stopped_count;
	stacks->pause_ns = freeze->pause_ns;
	stacks->has_woken = freeze->woken > 0;
	stacks->is_huge = snapshot_is_huge(held->of->snapshot);
	stacks->is_late = held->is_late;
	stacks->is_exhausted = held->values.is_exhausted;
}

/* Note why there was no freeze. A longer pause helps only for is_late. */
static void note_failure(const struct held *held, const struct failure *why)
{
	struct daemon_stacks *stacks = held->looked;

	if (why->kind == FAILURE_TIMEOUT || why->kind == FAILURE_LIMIT)
		stacks->is_late = true;
	else if (why->kind == FAILURE_GONE) /* the process exists, so its threads have ended */
		failure_describe(why, stacks->not_frozen, sizeof(stacks->not_frozen));
	else
		attach_explain(stacks->pid, why, stacks->not_frozen, sizeof(stacks->not_frozen));
}

/* Freeze again while another freeze is likely to show more. @return 1 if there was no freeze, -1 if
 * memory is out. */
static int read_snapshots(struct held *held)
{
	struct failure why;
	bool any = false;

	/* The next copy contains what the last one lacked. */
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

/* One stack alone is a consistent snapshot. */
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
		/* There is only what the probes have seen. */
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
