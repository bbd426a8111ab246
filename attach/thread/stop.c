/* SPDX-License-Identifier: MIT */
/*
 * How do we stop one thread, copy what the planner wants, and let the thread go?
 *
 * The steps are seize, interrupt, wait, registers, bulk reads, detach. Between stops we trace
 * nothing, so no signal to the target is held back, and another debugger may attach. Our death
 * leaves nothing behind: the kernel detaches the threads of a dead tracer and lets them run,
 * because PTRACE_O_EXITKILL is not set.
 */
#include "attach/clock.h"
#include "attach/image/image_internal.h"
#include "attach/process/process_internal.h"
#include "attach/thread/pending_stops.h"
#include "attach/thread/processor_turns.h"
#include "attach/thread/thread_internal.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

enum {
	/* We spin this long first, because sleeping in waitpid adds our own wake-up to the target's
	 * pause. A stop takes 10 to 30 us. A thread that takes longer waits for a processor,
	 * perhaps for our own: see turn_shares_processor(). */
	SPIN_NS = 60 * 1000,
	/* A thread in uninterruptible sleep may take longer than this. */
	STOP_TIMEOUT_NS = 100 * 1000 * 1000,
	/* Another recorder may stop the thread again and again without a rest. In one of ten tries
	 * it lets go between our refused seize and our search for its pid. With equal rests the two
	 * recorders may fall into step, and then nearly each try ends this way. All tries together
	 * take 7 ms, because the kernel lengthens each rest. */
	SEIZE_TRIES = 64,
	SEIZE_REST_NS = 1700,
	REHEARSED_ROUNDS = 2,
	/* Within this time after a stop, all is still in the caches. */
	REHEARSAL_REST_NS = 2 * 1000 * 1000,
	/* If a detach takes longer, we have lost the processor. */
	LET_GO_NS = 20 * 1000,
	CAPTURE_IOVECS = 256,
	/* Ranges to sort at most while a thread is stopped; the steady state has a handful. */
	MERGED_MAX = 256,
	PAGE_BYTES = 4096, /* the smallest page size */
};

static long trace(int request, pid_t tid, void *address, void *data)
{
	return ptrace((enum __ptrace_request)request, tid, address, data);
}

/*
 * Poll until the thread stops, at least once.
 * @return as waitpid.
 */
static pid_t spin_for_stop(pid_t tid, uint64_t begin_ns, uint64_t spin_ns, int *ret_status)
{
	pid_t got;

	do {
		got = waitpid(tid, ret_status, __WALL | WNOHANG);
	} while ((got == 0 && clock_now_ns() - begin_ns < spin_ns) || (got < 0 && errno == EINTR));
	return got;
}

/*
 * Sleep until SIGCHLD reports that the thread stopped, for at most @patience_ns.
 * @return as waitpid.
 */
static pid_t sleep_for_stop(pid_t tid, uint64_t begin_ns, uint64_t patience_ns, int *ret_status)
{
	sigset_t child, old;
	pid_t got;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &child, &old);
	for (;;) {
		uint64_t waited_ns = clock_now_ns() - begin_ns;
		struct timespec rest = { 0 };

		got = waitpid(tid, ret_status, __WALL | WNOHANG);
		if (got != 0 || waited_ns >= patience_ns)
			break;
		rest.tv_nsec = (long)(patience_ns - waited_ns);
		sigtimedwait(&child, NULL, &rest);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return got;
}

/* We still trace the thread, and continue with other work. */
static void await_later(struct attach_thread *thread, uint64_t interrupt_ns)
{
	thread->stop_pending = true;
	thread->interrupt_ns = interrupt_ns;
	pending_stops_add(thread->tid);
}

/*
 * @return whether we still trace the thread. The timer lets a thread go that was stopped for too
 *         long.
 */
static bool take_back(struct attach_thread *thread, struct failure *why)
{
	enum pending_stop_fate fate = pending_stops_remove(thread->tid);

	if (fate == PENDING_STOP_STILL)
		return true;
	thread->stop_pending = false;
	thread->interrupt_ns = 0;
	if (fate == PENDING_STOP_ENDED)
		failure_set(why, FAILURE_GONE, ESRCH, thread->tid, 0, "stop the thread");
	else
		failure_set(why, FAILURE_TIMEOUT, 0, thread->tid, 0, "keep the thread stopped");
	return false;
}

/*
 * Wait until the thread stops. The caller may try again later if the thread waits for a processor.
 * @return 0 and its wait status, or -1.
 */
static int await_stop(struct attach_thread *thread, int *ret_status, struct failure *why)
{
	uint64_t patience_ns = thread->patience_ns ? thread->patience_ns : STOP_TIMEOUT_NS;
	uint64_t begin_ns = clock_now_ns();
	pid_t tid = thread->tid, got;

	if (thread->stop_pending && !take_back(thread, why))
		return -1;
	if (thread->stop_pending)
		got = waitpid(tid, ret_status, __WALL | WNOHANG);
	else
		got = spin_for_stop(tid, begin_ns, thread->shares_processor ? 0 : SPIN_NS,
				    ret_status);
	if (got == 0 && patience_ns > SPIN_NS)
		got = sleep_for_stop(tid, begin_ns, patience_ns, ret_status);
	/* Another process may have its id by now: see settle(). */
	if (got == 0 && (!thread->stop_pending || process_thread_is_traced(tid))) {
		turn_postpone(thread);
		await_later(thread, thread->interrupt_ns);
		return failure_set(why, FAILURE_TIMEOUT, 0, tid, 0, "stop the thread");
	}
	thread->stop_pending = false;
	thread->interrupt_ns = 0;
	if (got <= 0 || !WIFSTOPPED(*ret_status))
		return failure_set(why, FAILURE_GONE, ESRCH, tid, 0, "stop the thread");
	return 0;
}

/* Fill iovecs with the ranges from @first on, which no round has tried yet. */
static size_t fill_iovecs(struct attach_image *image, size_t first, struct iovec *local,
			  struct iovec *remote)
{
	size_t count = 0;

	for (size_t i = first; i < image->range_count && count < CAPTURE_IOVECS; i++, count++) {
		struct image_range *range = &image->ranges[i];

		local[count].iov_base = image->arena + range->offset;
		remote[count].iov_base = (void *)(uintptr_t)range->start;
		local[count].iov_len = remote[count].iov_len = range->wanted;
	}
	return count;
}

/*
 * Note that @len bytes were read into the ranges from @first on.
 * @return the first incomplete range.
 */
static size_t note_read(struct attach_image *image, size_t first, size_t len)
{
	while (first < image->range_count && len >= image->ranges[first].wanted) {
		image->ranges[first].len = image->ranges[first].wanted;
		len -= image->ranges[first].wanted;
		first++;
	}
	if (first < image->range_count)
		image->ranges[first].len = len;
	return first;
}

/** The ranges of one read, sorted by address. Ranges on the same page or on adjacent pages form one
 *  piece, and we read the bytes between them, too. The kernel spends most of its time on page
 *  lookups, once for each piece. */
struct merged {
	struct image_range *ranges[MERGED_MAX];
	size_t offsets[MERGED_MAX]; /* of each range, in the bytes of all pieces */
	struct iovec pieces[MERGED_MAX];
	size_t range_count, piece_count, len;
};

static void sort_ranges(struct attach_image *image, size_t first, struct merged *ret_merged)
{
	struct image_range **sorted = ret_merged->ranges;
	size_t count = image->range_count - first;

	for (size_t i = 0; i < count; i++) {
		struct image_range *range = &image->ranges[first + i];
		size_t at = i;

		for (; at > 0 && sorted[at - 1]->start > range->start; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = range;
	}
	ret_merged->range_count = count;
}

static void merge_ranges(struct merged *merged)
{
	uint64_t piece_start = 0, end = 0;

	merged->piece_count = merged->len = 0;
	for (size_t i = 0; i < merged->range_count; i++) {
		uint64_t start = merged->ranges[i]->start;
		uint64_t range_end = start + merged->ranges[i]->wanted;

		/* A new piece begins after a page that no range touches. */
		if (i == 0 || (start > end && start / PAGE_BYTES - (end - 1) / PAGE_BYTES > 1)) {
			merged->pieces[merged->piece_count++].iov_base = (void *)(uintptr_t)start;
			merged->len += end - piece_start;
			piece_start = end = start;
		}
		if (range_end > end)
			end = range_end;
		merged->offsets[i] = merged->len + (size_t)(start - piece_start);
		merged->pieces[merged->piece_count - 1].iov_len = end - piece_start;
	}
	merged->len += end - piece_start;
}

/*
 * Read the planned ranges in as few pieces as possible.
 * @return false if not all can be read; the caller then reads each range alone to see which.
 */
static bool read_merged(const struct attach_process *process, struct attach_image *image)
{
	size_t count = image->range_count - image->planned;
	struct iovec all;
	struct merged merged;
	size_t at;

	if (count < 2 || count > MERGED_MAX)
		return false;
	sort_ranges(image, image->planned, &merged);
	merge_ranges(&merged);
	if (!image_make_room(image, merged.len, &at))
		return false;
	all = (struct iovec){ .iov_base = image->arena + at, .iov_len = merged.len };
	if (process_vm_readv(process->memory_id, &all, 1, merged.pieces, merged.piece_count, 0) !=
	    (ssize_t)merged.len) {
		image->arena_len = at;
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		merged.ranges[i]->offset = at + merged.offsets[i];
		merged.ranges[i]->len = merged.ranges[i]->wanted;
	}
	image->planned = image->range_count;
	return true;
}

/* Read all planned ranges. A range that faults keeps the bytes before the fault, and we continue
 * with the next. */
static int read_ranges(const struct attach_process *process, struct attach_image *image,
		       struct failure *why)
{
	struct iovec local[CAPTURE_IOVECS], remote[CAPTURE_IOVECS];

	if (read_merged(process, image))
		return 0;
	while (image->planned < image->range_count) {
		size_t first = image->planned;
		size_t count = fill_iovecs(image, first, local, remote);
		ssize_t len = process_vm_readv(process->memory_id, local, count, remote, count, 0);
		size_t next;

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0 && errno != EFAULT)
			return failure_set_errno(why, errno, process->pid, "read memory");
		next = note_read(image, first, len < 0 ? 0 : (size_t)len);
		image->planned = next < first + count ? next + 1 : next;
	}
	return 0;
}

int process_read_planned(const struct attach_process *process, const struct attach_planner *planner,
			 unsigned rounds, struct attach_image *image, struct failure *why)
{
	bool more = true;

	if (planner->copy) {
		attach_fetcher_begin(planner->fetcher, process, planner->pieces);
		planner->copy(planner->context, &image->registers, planner->fetcher);
		return 0;
	}
	for (unsigned round = 0; more && round < rounds; round++) {
		more = planner->plan(planner->context, image, round);
		if (read_ranges(process, image, why) != 0)
			return -1;
	}
	return 0;
}

void process_end_reads(const struct attach_planner *planner)
{
	if (planner->copy)
		attach_fetcher_end(planner->fetcher, planner->pieces);
}

/* Make the reads once before the stop, with the registers of the last stop, and discard the result.
 * Our code and tables, the kernel's, and the target's memory are then in the caches during the
 * stop. This takes longer than all other work between the probe of a thread and its stop, so we
 * probe again after it. Right after a stop we skip it: it would cost a tenth of our cycles at a
 * kilohertz. */
static int rehearse(const struct attach_process *process, const struct attach_thread *thread,
		    const struct attach_planner *planner, struct attach_image *image,
		    struct failure *why)
{
	struct attach_sleep sleep;

	if (!planner->rehearses || !thread->last_stop_ns || thread->stop_pending ||
	    clock_now_ns() < thread->last_stop_ns + REHEARSAL_REST_NS)
		return 0;
	image->registers = thread->registers;
	process_read_planned(process, planner, REHEARSED_ROUNDS, image, why);
	process_end_reads(planner);
	attach_image_clear(image);
	if (process_thread_sleep(thread, &sleep) == ATTACH_BLOCKED)
		return failure_set(why, FAILURE_ASLEEP, 0, thread->tid, 0, "stop the thread");
	return 0;
}

static int read_all(const struct attach_process *process, struct attach_thread *thread, int status,
		    bool is_prompt, const struct attach_planner *planner,
		    struct attach_image *image, struct failure *why)
{
	if (attach_read_registers(thread->tid, &image->registers, why) != 0)
		return -1;
	registers_restart_wait(thread->tid, status, &image->registers, is_prompt);
	return process_read_planned(process, planner, PROCESS_ROUNDS, image, why);
}

/* We still trace a thread that did not stop in time, or that was killed while stopped. Let it go as
 * soon as it stops, or reap it. */
static int settle(struct attach_thread *thread, struct failure *why)
{
	int status;
	pid_t got;

	if (!thread->stop_pending || !take_back(thread, why))
		return 0;
	got = waitpid(thread->tid, &status, __WALL | WNOHANG);
	/* If a main thread is killed and another thread calls exec, that thread gets the main
	 * thread's id. It may be our own child, so waitpid() knows the id although we do not trace
	 * it. */
	if (got == 0 && process_thread_is_traced(thread->tid)) {
		await_later(thread, thread->interrupt_ns);
		return failure_set(why, FAILURE_TIMEOUT, 0, thread->tid, 0, "stop the thread");
	}
	thread->interrupt_ns = 0;
	if (got == thread->tid)
		registers_undo_stop(thread->tid, status);
	thread->stop_pending = got == thread->tid && WIFSTOPPED(status) &&
			       pending_stop_let_go(thread->tid, status) != 0;
	return thread->stop_pending ? settle(thread, why) : 0;
}

/*
 * Whether the kernel lets us read the thread's memory. It checks the same permission as for
 * tracing, but not whether another process traces the thread. Nothing is mapped at the address.
 * Source: mm_access() of Linux.
 */
static bool may_read(pid_t tid)
{
	char byte;
	const struct iovec here = { .iov_base = &byte, .iov_len = 1 };
	const struct iovec there = { .iov_base = NULL, .iov_len = 1 };

	return process_vm_readv(tid, &here, 1, &there, 1, 0) >= 0 || errno != EPERM;
}

/* The kernel returns EPERM for a missing permission, another tracer, and a zombie. Another recorder
 * may let go before we look for its pid. After an exec, another thread may have the id of a main
 * thread that has ended. So we try again if we find no tracer. Our own pid does not count: while a
 * tracer lets go, /proc may show the parent as the tracer. */
static int seize(const struct attach_process *process, pid_t tid, struct failure *why)
{
	pid_t tracer = 0;

	for (int tries = 0; tries < SEIZE_TRIES; tries++) {
		const struct timespec rest = { .tv_nsec = (long)tries * SEIZE_REST_NS };

		if (tries)
			nanosleep(&rest, NULL);
		if (trace(PTRACE_SEIZE, tid, NULL, NULL) == 0)
			return 0;
		if (errno != EPERM)
			return failure_set_errno(why, errno, tid, "trace the thread");
		if (process_thread_ended(process->pid, tid))
			return failure_set_errno(why, ESRCH, tid, "trace the thread");
		tracer = attach_tracer_of(process->pid, tid);
		if (tracer && tracer != getpid())
			return failure_set(why, FAILURE_BUSY, EPERM, tid, (uint64_t)tracer,
					   "trace the thread");
		if (!may_read(tid))
			break;
	}
	/* We still trace the thread, and it ends under our interrupt. */
	return failure_set_errno(why, tracer ? ESRCH : EPERM, tid, "trace the thread");
}

/* Seize and interrupt the thread, unless it has not answered an earlier interrupt yet. */
static int begin_stop(const struct attach_process *process, struct attach_thread *thread,
		      struct failure *why)
{
	int errnum;

	if (thread->stop_pending && thread->interrupt_ns)
		return 0;
	if (settle(thread, why) != 0 || seize(process, thread->tid, why) != 0)
		return -1;
	turn_begin(thread);
	thread->interrupt_ns = clock_now_ns();
	if (trace(PTRACE_INTERRUPT, thread->tid, NULL, NULL) == 0)
		return 0;
	errnum = errno;
	await_later(thread, 0); /* the thread is seized, so we must reap it */
	return failure_set_errno(why, errnum, thread->tid, "stop the thread");
}

/*
 * Let the thread go. If it shares our processor, the kernel may switch to it inside the call. We
 * then continue some milliseconds later, and the thread ran meanwhile. The part of the call before
 * the switch is at most the processor time that we have used since @used_ns.
 * @return The latest time at which the thread ran again.
 */
static uint64_t let_go(struct attach_thread *thread, int status, uint64_t used_ns)
{
	uint64_t begin_ns = clock_now_ns(), end_ns, bound_ns;

	if (pending_stop_let_go(thread->tid, status) != 0)
		await_later(thread, 0);
	end_ns = clock_now_ns();
	if (end_ns - begin_ns <= LET_GO_NS)
		return end_ns;
	bound_ns = begin_ns + clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - used_ns;
	return bound_ns < end_ns ? bound_ns : end_ns;
}

int attach_capture(struct attach_process *process, struct attach_thread *thread,
		   const struct attach_planner *planner, struct attach_image *image,
		   struct attach_timing *ret_timing, struct failure *why)
{
	uint64_t used_ns, begin_ns, last_stop_ns, waited_ns = 0;
	bool has_waited = false;
	int status = 0, ret = -1;

	attach_image_clear(image);
	if (rehearse(process, thread, planner, image, why) != 0)
		return -1;
	used_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	if (begin_stop(process, thread, why) != 0)
		return -1;
	begin_ns = thread->interrupt_ns;
	if (await_stop(thread, &status, why) != 0)
		return -1;
	last_stop_ns = clock_now_ns();
	/* If the thread stopped at once, check after letting it go, to keep the stop short. */
	if (thread->turn.is_late)
		has_waited = turn_has_waited(thread, last_stop_ns, &waited_ns);
	if (!has_waited || !thread->tick_ns)
		ret = read_all(process, thread, status, last_stop_ns - begin_ns < PROCESS_PROMPT_NS,
			       planner, image, why);
	else
		registers_undo_stop(thread->tid, status);
	ret_timing->stopped_ns = let_go(thread, status, used_ns) - begin_ns;
	ret_timing->stop_ns = last_stop_ns - begin_ns;
	if (!thread->turn.is_late)
		has_waited = turn_has_waited(thread, last_stop_ns, &waited_ns);
	ret_timing->waited_ns = waited_ns < ret_timing->stop_ns ? waited_ns : ret_timing->stop_ns;
	if (thread->shares_processor || ret_timing->stop_ns >= SPIN_NS)
		thread->shares_processor = turn_shares_processor(thread);
	if (ret == 0) {
		process_end_reads(planner);
		thread->registers = image->registers;
		thread->last_stop_ns = last_stop_ns;
	}
	if (has_waited && thread->tick_ns && (ret == 0 || thread->turn.is_late))
		return failure_set(why, FAILURE_UNSCHEDULED, 0, thread->tid, 0,
				   "sample the thread");
	return ret;
}

int attach_process_fetch(const struct attach_process *process, struct attach_image *image,
			 struct failure *why)
{
	return read_ranges(process, image, why);
}

bool attach_thread_is_stopped(const struct attach_thread *thread)
{
	siginfo_t info = { 0 };

	if (!thread->stop_pending)
		return false;
	if (pending_stop_poll(thread->tid) != PENDING_STOP_STILL)
		return true;
	if (waitid(P_PID, (id_t)thread->tid, &info,
		   WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL) != 0)
		return true; /* we do not trace it any more */
	return info.si_pid != 0;
}

int attach_thread_settle(struct attach_thread *thread)
{
	struct failure why;

	return settle(thread, &why);
}
