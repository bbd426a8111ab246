/* SPDX-License-Identifier: MIT */
/*
 * The stop: seize, interrupt, wait, registers, bulk reads, detach.
 *
 * Between stops nobody is attached: a signal to the target is never held back, another debugger may
 * attach, and our death leaves nothing behind (the kernel detaches a dead tracer's threads and lets
 * them run on, as PTRACE_O_EXITKILL is not set).
 */
#include "attach/image.h"
#include "attach/process.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

enum {
	/* Sleeping in waitpid adds our own wake-up to the target's pause, so look this long first.
	 * A stop takes 10 to 30 us; a thread that takes longer waits for a processor, perhaps for
	 * the very one that we keep busy. */
	SPIN_NS = 60 * 1000,
	/* A thread in uninterruptible sleep may take longer than this. */
	STOP_TIMEOUT_NS = 100 * 1000 * 1000,
	/* Rounds of reads in one stop: the known ranges, then what they point to, twice. */
	CAPTURE_ROUNDS = 4,
	CAPTURE_IOVECS = 256,
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static long trace(int request, pid_t tid, void *address, void *data)
{
	return ptrace((enum __ptrace_request)request, tid, address, data);
}

/*
 * Undo of the seize. A thread that stands for a signal gets that signal with the detach; one in a
 * group stop stays in it.
 * @return 0, or -1 where the thread was killed while it stood: it is ours until it is reaped, and
 * until then its parent does not learn of its end and an exec of another thread waits for it.
 */
static int let_go(pid_t tid, int status)
{
	bool event = status >> 16 != 0; /* our interrupt or a group stop: nothing to deliver */
	long sig = WIFSTOPPED(status) && !event ? WSTOPSIG(status) : 0;

	return trace(PTRACE_DETACH, tid, NULL, (void *)sig) == 0 ? 0 : -1;
}

/* Look until the thread stands, for a short while. @return as waitpid. */
static pid_t spin_for_stop(pid_t tid, uint64_t begin_ns, int *ret_status)
{
	pid_t got;

	do {
		got = waitpid(tid, ret_status, __WALL | WNOHANG);
	} while ((got == 0 && now_ns() - begin_ns < SPIN_NS) || (got < 0 && errno == EINTR));
	return got;
}

/* Sleep until the thread stands, which SIGCHLD tells, or until the timeout. @return as waitpid. */
static pid_t sleep_for_stop(pid_t tid, uint64_t begin_ns, int *ret_status)
{
	sigset_t child, old;
	pid_t got;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &child, &old);
	for (;;) {
		uint64_t waited_ns = now_ns() - begin_ns;
		struct timespec rest = { 0 };

		got = waitpid(tid, ret_status, __WALL | WNOHANG);
		if (got != 0 || waited_ns >= STOP_TIMEOUT_NS)
			break;
		rest.tv_nsec = (long)(STOP_TIMEOUT_NS - waited_ns);
		sigtimedwait(&child, NULL, &rest);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return got;
}

/* Wait until the thread stands. @return 0 and its wait status, or -1. */
static int await_stop(pid_t tid, uint64_t begin_ns, int *ret_status, struct failure *why)
{
	pid_t got = spin_for_stop(tid, begin_ns, ret_status);

	if (got == 0)
		got = sleep_for_stop(tid, begin_ns, ret_status);
	if (got == 0)
		return failure_set(why, FAILURE_TIMEOUT, 0, tid, 0, "stop the thread");
	if (got < 0 || !WIFSTOPPED(*ret_status))
		return failure_set(why, FAILURE_GONE, ESRCH, tid, 0, "stop the thread");
	return 0;
}

static int read_registers(pid_t tid, struct attach_registers *ret_registers, struct failure *why)
{
	struct user_regs_struct user;
	struct iovec iov = { .iov_base = &user, .iov_len = sizeof(user) };
	uint64_t *r = ret_registers->r;

	if (trace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &iov) != 0)
		return failure_set_errno(why, errno, tid, "read the registers");
	if (iov.iov_len != sizeof(user))
		return failure_set(why, FAILURE_INVALID, 0, tid, 0,
				   "read the registers of a 32-bit process");
	r[0] = user.rax;
	r[1] = user.rdx;
	r[2] = user.rcx;
	r[3] = user.rbx;
	r[4] = user.rsi;
	r[5] = user.rdi;
	r[6] = user.rbp;
	r[7] = user.rsp;
	r[8] = user.r8;
	r[9] = user.r9;
	r[10] = user.r10;
	r[11] = user.r11;
	r[12] = user.r12;
	r[13] = user.r13;
	r[14] = user.r14;
	r[15] = user.r15;
	r[16] = user.rip;
	ret_registers->syscall = (int64_t)user.orig_rax;
	return 0;
}

/* Fill iovecs with the ranges that no round has tried yet, from @first on. */
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

/* Note @len read bytes over the ranges from @first on. @return the first range not fully read. */
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

/* Read all planned ranges; one that faults keeps what came before the fault and is passed over. */
static int read_ranges(const struct attach_process *process, struct attach_image *image,
		       struct failure *why)
{
	struct iovec local[CAPTURE_IOVECS], remote[CAPTURE_IOVECS];

	while (image->planned < image->range_count) {
		size_t first = image->planned;
		size_t count = fill_iovecs(image, first, local, remote);
		ssize_t len = process_vm_readv(process->pid, local, count, remote, count, 0);
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

static int read_all(const struct attach_process *process, pid_t tid,
		    const struct attach_planner *planner, struct attach_image *image,
		    struct failure *why)
{
	if (read_registers(tid, &image->registers, why) != 0)
		return -1;
	for (unsigned round = 0; round < CAPTURE_ROUNDS; round++) {
		bool more = planner->plan(planner->context, image, round);

		if (read_ranges(process, image, why) != 0)
			return -1;
		if (!more)
			break;
	}
	return 0;
}

/* A thread that did not stand in time, or was killed while it stood, is still ours: let it go as
 * soon as it stands, or reap it. */
static int settle(struct attach_thread *thread, struct failure *why)
{
	int status;
	pid_t got;

	if (!thread->stop_pending)
		return 0;
	got = waitpid(thread->tid, &status, __WALL | WNOHANG);
	/* Our own child may have taken over the number of a main thread that was killed: an exec in
	 * another thread does that. */
	if (got == 0 && process_thread_is_traced(thread->tid))
		return failure_set(why, FAILURE_TIMEOUT, 0, thread->tid, 0, "stop the thread");
	thread->stop_pending =
		got == thread->tid && WIFSTOPPED(status) && let_go(thread->tid, status) != 0;
	return thread->stop_pending ? settle(thread, why) : 0;
}

static int seize(const struct attach_process *process, pid_t tid, struct failure *why)
{
	pid_t tracer;

	if (trace(PTRACE_SEIZE, tid, NULL, NULL) == 0)
		return 0;
	if (errno == EPERM) {
		int saved = errno;

		tracer = attach_tracer_of(process->pid, tid);
		if (tracer)
			return failure_set(why, FAILURE_BUSY, saved, tid, (uint64_t)tracer,
					   "trace the thread");
		/* The kernel refuses a zombie in the same way. */
		errno = process_thread_ended(process->pid, tid) ? ESRCH : saved;
	}
	return failure_set_errno(why, errno, tid, "trace the thread");
}

int attach_capture(struct attach_process *process, struct attach_thread *thread,
		   const struct attach_planner *planner, struct attach_image *image,
		   struct attach_timing *ret_timing, struct failure *why)
{
	uint64_t begin_ns, stood_ns;
	int status = 0, ret;

	attach_image_clear(image);
	if (settle(thread, why) != 0 || seize(process, thread->tid, why) != 0)
		return -1;
	begin_ns = now_ns();
	if (trace(PTRACE_INTERRUPT, thread->tid, NULL, NULL) != 0) {
		thread->stop_pending = true; /* seized it is, so something is there to reap */
		return failure_set_errno(why, errno, thread->tid, "stop the thread");
	}
	if (await_stop(thread->tid, begin_ns, &status, why) != 0) {
		thread->stop_pending = why->kind == FAILURE_TIMEOUT;
		return -1;
	}
	stood_ns = now_ns();
	ret = read_all(process, thread->tid, planner, image, why);
	thread->stop_pending = let_go(thread->tid, status) != 0;
	ret_timing->stopped_ns = now_ns() - begin_ns;
	ret_timing->stop_ns = stood_ns - begin_ns;
	return ret;
}

int attach_thread_settle(struct attach_thread *thread)
{
	struct failure why;

	return settle(thread, &why);
}

int attach_process_fetch(const struct attach_process *process, struct attach_image *image,
			 struct failure *why)
{
	return read_ranges(process, image, why);
}
