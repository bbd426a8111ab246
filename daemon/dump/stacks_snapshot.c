/* SPDX-License-Identifier: MIT */
/* What are the stacks of all threads, with variables, in one consistent snapshot? */
#include "daemon/dump/stacks.h"

#include <stdlib.h>

#include "daemon/dump/frames.h"

/** State of reading the threads of a freeze. */
struct frozen {
	const struct stacks_snapshot *of;
	struct attach_image *image;
	struct daemon_stacks *probed; /* by the probe before the freeze */
	struct daemon_stacks fresh;   /* only threads and counts */
	struct luastate_values_options values;
	size_t frames;
	bool is_late;
	bool has_spent; /* the probes left out values of their threads */
};

/* ---- One thread ------------------------------------------------------------------------- */

static struct daemon_thread *find_probed(struct daemon_stacks *probed, pid_t tid)
{
	for (size_t i = 0; i < probed->count; i++)
		if (probed->threads[i].tid == tid)
			return &probed->threads[i];
	return NULL;
}

/* A stopped thread has all registers, a sleeping one only pc and sp. */
static int decode(struct frozen *frozen, const struct attach_frozen_thread *seen,
		  struct daemon_thread *thread, struct failure *why)
{
	struct snapshot *snapshot = frozen->of->snapshot;
	struct daemon_target *target = frozen->of->target;
	const struct luastate_memory memory = { .stopped = snapshot_copy(snapshot),
						.any = snapshot_any(snapshot) };
	const struct luastate_memory heap = { .stopped = snapshot_copy(snapshot),
					      .any = snapshot_memory(snapshot) };
	struct attach_registers *registers = attach_image_registers(frozen->image);
	struct format_sample sample = { .weight = 1 };
	enum daemon_outcome outcome;

	*registers = (struct attach_registers){ .syscall = -1 };
	if (seen->is_stopped)
		*registers = seen->registers;
	registers->r[ATTACH_REG_PC] = seen->pc;
	registers->r[ATTACH_REG_SP] = seen->sp;
	target->lacks_registers = !seen->is_stopped;
	if (target_decode(target, frozen->image, &memory, &sample, &outcome, why) != 0)
		return -1;
	outcome = stacks_judge(target, thread, outcome);
	if (frames_copy_stack(target, frozen->of->functions, memory.any, &sample, outcome,
			      &thread->stack, why) != 0)
		return -1;
	if (frozen->of->options->values)
		frames_read_variables(target, &heap, &frozen->values, &thread->stack);
	return 0;
}

/* @return false if nothing of it is visible. */
static bool read_thread(struct frozen *frozen, const struct attach_frozen_thread *seen,
			struct daemon_thread *ret_thread)
{
	struct failure why;

	*ret_thread =
		(struct daemon_thread){ .tid = seen->tid,
					.doing = seen->is_stopped ? DAEMON_RUNNING : DAEMON_WAITING,
					.syscall = seen->is_stopped ? -1 : seen->syscall,
					.stops = seen->is_stopped };
	if (seen->is_unknown || seen->woke || frozen->frames >= STACKS_FRAMES_MAX ||
	    decode(frozen, seen, ret_thread, &why) != 0)
		return false;
	attach_thread_name(frozen->of->target->process, seen->tid, ret_thread->name,
			   sizeof(ret_thread->name));
	frozen->frames += ret_thread->stack.count;
	return true;
}

/* ---- All threads ------------------------------------------------------------------------ */

/* The probe has all registers of a thread that a signal has stopped, if it is still stopped. */
static bool is_still_stopped(const struct daemon_thread *probed, const struct daemon_thread *frozen)
{
	return probed->doing == DAEMON_STOPPED && frozen->doing == DAEMON_WAITING &&
	       frozen->syscall < 0;
}

/* @return -1 if memory is out. */
static int read_frozen(struct frozen *frozen)
{
	const struct attach_freeze *freeze = snapshot_freeze(frozen->of->snapshot);

	stacks_forget_threads(&frozen->fresh);
	if (frozen->of->options->values)
		frozen->values = *frozen->of->options->values;
	frozen->frames = 0;
	frozen->is_late = false;
	frozen->fresh.threads = calloc(freeze->thread_count + 1, sizeof(*frozen->fresh.threads));
	if (!frozen->fresh.threads)
		return -1;
	for (size_t i = 0; i < freeze->thread_count; i++) {
		const struct attach_frozen_thread *seen = &freeze->threads[i];
		struct daemon_thread *probed = find_probed(frozen->probed, seen->tid);
		struct daemon_thread *thread = &frozen->fresh.threads[frozen->fresh.count];
		bool is_read = read_thread(frozen, seen, thread);

		if (probed && !is_still_stopped(probed, thread))
			frozen->is_late |= !is_read || stacks_rank(&probed->stack) >
							       stacks_rank(&thread->stack);
		frozen->fresh.unread += !probed && !is_read;
		if (probed || is_read)
			frozen->fresh.count++;
	}
	frozen->is_late |= snapshot_take_late(frozen->of->snapshot);
	return 0;
}

/* Keep the better stack of each thread that was read twice. */
static void take_better(struct frozen *frozen)
{
	for (size_t i = 0; i < frozen->fresh.count; i++) {
		struct daemon_thread *thread = &frozen->fresh.threads[i];
		struct daemon_thread *probed = find_probed(frozen->probed, thread->tid);
		struct daemon_thread copy = *thread;

		if (!probed)
			continue;
		thread->stops += probed->stops;
		if (thread->stack.frames && !is_still_stopped(probed, thread) &&
		    stacks_rank(&probed->stack) <= stacks_rank(&thread->stack))
			continue;
		copy.stops = thread->stops;
		frozen->probed->is_exhausted |= frozen->has_spent;
		*thread = *probed;
		thread->stops = copy.stops;
		*probed = (struct daemon_thread){ .tid = 0, .stack = copy.stack };
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
static int add_unfrozen(struct frozen *frozen)
{
	const struct attach_freeze *freeze = snapshot_freeze(frozen->of->snapshot);
	struct daemon_stacks *probed = frozen->probed, *fresh = &frozen->fresh;
	struct daemon_thread *threads;

	if (!freeze->is_full)
		return 0;
	threads = reallocarray(fresh->threads, fresh->count + probed->count + 1, sizeof(*threads));
	if (!threads)
		return -1;
	fresh->threads = threads;
	for (size_t i = 0; i < probed->count; i++) {
		struct daemon_thread *thread = &probed->threads[i];

		/* 0: already moved into the freeze's list. */
		if (thread->tid == 0 || is_frozen(freeze, thread->tid))
			continue;
		fresh->threads[fresh->count++] = *thread;
		*thread = (struct daemon_thread){ 0 };
		probed->is_late = true;
		probed->is_exhausted |= frozen->has_spent;
	}
	return 0;
}

/* Keep the requested threads, and list their VMs. @return -1 if memory is out. */
static int choose(struct frozen *frozen)
{
	const struct daemon_stacks_options *options = frozen->of->options;
	struct daemon_stacks *stacks = &frozen->fresh;
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
		    stacks_add_vm(frozen->probed, frozen->of->target, thread->stack.G) != 0)
			ret = -1;
		stacks->threads[kept++] = *thread;
	}
	stacks->count = kept;
	return ret;
}

/* Replace the probes' threads with the freeze's; VMs and names remain. */
static void replace(struct frozen *frozen)
{
	struct daemon_stacks *stacks = frozen->probed;

	stacks_forget_threads(stacks);
	stacks->threads = frozen->fresh.threads;
	stacks->count = frozen->fresh.count;
	stacks->others = frozen->fresh.others;
	stacks->unread = frozen->fresh.unread;
	frozen->fresh = (struct daemon_stacks){ 0 };
}

static void note_freeze(const struct frozen *frozen)
{
	const struct attach_freeze *freeze = snapshot_freeze(frozen->of->snapshot);
	struct daemon_stacks *stacks = frozen->probed;

	stacks->frozen = freeze->stopped_count;
	stacks->pause_ns = freeze->pause_ns;
	stacks->has_woken = freeze->woken > 0;
	stacks->is_huge = snapshot_is_huge(frozen->of->snapshot);
	stacks->is_late = frozen->is_late;
	stacks->is_exhausted = frozen->values.is_exhausted;
}

/* Note why there was no freeze. A longer pause helps only for is_late. */
static void note_failure(const struct frozen *frozen, const struct failure *why)
{
	struct daemon_stacks *stacks = frozen->probed;

	if (why->kind == FAILURE_TIMEOUT || why->kind == FAILURE_LIMIT)
		stacks->is_late = true;
	else if (why->kind == FAILURE_GONE) /* the process exists, so its threads have ended */
		failure_describe(why, stacks->not_frozen, sizeof(stacks->not_frozen));
	else
		attach_explain(stacks->pid, why, stacks->not_frozen, sizeof(stacks->not_frozen));
}

/* Freeze again while another freeze is likely to show more. @return 1 if there was no freeze, -1 if
 * memory is out. */
static int read_snapshots(struct frozen *frozen)
{
	struct failure why;
	bool any = false;

	/* The next copy contains what the last one lacked. */
	do {
		int ret = snapshot_take(frozen->of->snapshot, &why);

		frozen->probed->pause_ns = snapshot_freeze(frozen->of->snapshot)->pause_ns;
		if (ret != 0 && (any || why.kind == FAILURE_NO_MEMORY))
			return any ? 0 : -1;
		if (ret != 0) {
			note_failure(frozen, &why);
			return 1;
		}
		any = true;
		if (read_frozen(frozen) != 0)
			return -1;
		note_freeze(frozen);
	} while (frozen->is_late && snapshot_may_take(frozen->of->snapshot));
	return 0;
}

/* One stack alone is a consistent snapshot. */
static bool needs_freeze(const struct frozen *frozen)
{
	size_t count = 0;

	for (size_t i = 0; i < frozen->probed->count; i++)
		count += frozen->probed->threads[i].stack.G != 0;
	return count > 1 || (count && frozen->of->options->values);
}

int stacks_read_snapshot(const struct stacks_snapshot *reading, struct daemon_stacks *stacks)
{
	struct frozen frozen = { .of = reading,
				 .probed = stacks,
				 .image = attach_image_create(),
				 .has_spent = stacks->is_exhausted };
	int ret = !frozen.image ? -1 : needs_freeze(&frozen) ? read_snapshots(&frozen) : 1;

	if (ret == 0) {
		take_better(&frozen);
		ret = add_unfrozen(&frozen);
	} else if (ret > 0) {
		/* There is only what the probes have seen. */
		frozen.fresh.threads = stacks->threads;
		frozen.fresh.count = stacks->count;
		frozen.fresh.unread = stacks->unread;
		stacks->threads = NULL;
		stacks->count = 0;
	}
	if (ret >= 0)
		ret = choose(&frozen);
	if (ret == 0)
		replace(&frozen);
	stacks_forget_threads(&frozen.fresh);
	attach_image_destroy(frozen.image);
	return ret;
}
