/* SPDX-License-Identifier: MIT */
/* What do the threads of a process do, and how is one stopped? */
#ifndef ATTACH_THREAD_H
#define ATTACH_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/image.h"
#include "attach/process.h"

/* ---- Threads ---------------------------------------------------------------------------- */

/** What a thread is doing, without touching it. Source: proc(5), /proc/PID/task/TID/syscall. */
enum attach_thread_state {
	ATTACH_RUNNING,
	ATTACH_BLOCKED, /**< In a system call or otherwise asleep: never interrupted. */
	ATTACH_EXITED,
};

/** What the kernel's scheduler has counted of a thread. */
struct attach_schedule {
	uint64_t ran_ns;    /**< On a processor; of one that runs: until its last clock tick. */
	uint64_t waited_ns; /**< For a processor, in waits that have ended. */
	uint64_t runs;	    /**< How often it was given one. */
};

/** What attach_capture() keeps of a thread's turns on processors. */
struct attach_turn {
	struct attach_schedule before; /**< At the interrupt. */
	bool is_known;		       /**< It could be read. */
	bool is_late;		       /**< It did not stand at once. */
	bool is_ours;		       /**< Its turn was on the caller's processor then. */
	uint64_t own_waited_ns;	       /**< What the caller had waited for processors by then. */
	uint64_t ran_ns; /**< The processor time that it had used when it stood; 0: it is
			      not known. */
};

struct attach_thread {
	pid_t tid;
	int syscall_fd;	       /**< Kept open: 1.4 us a look. */
	int schedule_fd;       /**< Kept open, too; 0: not yet, -1: cannot be. */
	bool stop_pending;     /**< Still ours: an interrupt has not been answered yet, or the
				    thread was killed while it stood. */
	uint64_t interrupt_ns; /**< When an interrupt was sent that has not been answered, or 0. */
	uint64_t patience_ns;  /**< Longest wait of attach_capture(); 0: 100 ms. */
	bool shares_processor; /**< Ran on ours when it was stopped last. */
	uint64_t tick_ns;      /**< Of processor time: when the caller woke for it. 0: of wall clock
				    time, at which a thread that waits for a processor counts. */
	bool is_tick_late;     /**< The caller was to wake earlier. */
	uint64_t woke_ns; /**< When the caller woke as threads stood that had stop_pending; 0: it
			       did not sleep. */
	struct attach_turn turn;
	uint64_t stack_limit; /**< Main thread: first address behind its frames; else 0. */
	void *data;	      /**< Free for the caller; NULL at first. */
	uint64_t stood_ns;    /**< When it stood last, CLOCK_MONOTONIC; 0: it never has. */
	struct attach_registers registers; /**< Then those of its last stop. */
};

/** Live list of a process's threads, refreshed on request; entries keep their address. */
struct attach_threads;
int attach_threads_create(struct attach_process *process, struct attach_threads **ret_threads,
			  struct failure *why);
void attach_threads_destroy(struct attach_threads *threads);
int attach_threads_refresh(struct attach_threads *threads, struct failure *why);
/** After attach_process_note_exec(): the main thread's stack lies elsewhere. Reads nothing. */
void attach_threads_note_exec(struct attach_threads *threads);
/** @param forget Called for each thread before its entry goes: it has ended, or the list is
 *  destroyed. */
void attach_threads_on_forget(struct attach_threads *threads,
			      void (*forget)(void *context, struct attach_thread *thread),
			      void *context);
/** Whether there are more or fewer threads than at the last refresh; less than 1 us. One that has
 *  ended while another began is not seen here. Source: proc_task_getattr() of Linux, st_nlink. */
bool attach_threads_changed(const struct attach_threads *threads);
size_t attach_threads_count(const struct attach_threads *threads);
struct attach_thread *attach_threads_get(struct attach_threads *threads, size_t index);

/**
 * Look at a thread without stopping it.
 * @param ret_sp,ret_pc Set where blocked; may be NULL.
 */
enum attach_thread_state attach_thread_state(struct attach_thread *thread, uint64_t *ret_sp,
					     uint64_t *ret_pc);

/** A thread that does not run, as the kernel shows it. */
struct attach_sleep {
	int64_t syscall; /**< Number of the system call that it waits in; -1: in none. */
	uint64_t sp, pc;
	uint64_t runs;	 /**< How often it was given a processor, before it was seen asleep. */
	bool is_stopped; /**< By a signal such as SIGSTOP. */
};

/**
 * attach_thread_state(), with all that is to be seen of a thread that does not run; some 15 us.
 * One that cannot be seen well enough to tell later whether it has slept on counts as running.
 * @param ret_sleep Set where blocked.
 * Source: proc(5), syscall and status.
 */
enum attach_thread_state attach_thread_probe(const struct attach_process *process,
					     struct attach_thread *thread,
					     struct attach_sleep *ret_sleep);

/**
 * Whether a thread is in the same sleep as at an earlier look; some 5 us.
 *
 * Stopped window: no, it stops nothing.
 * @param sleep As attach_thread_probe() or attach_capture_asleep() gave it.
 * Source: proc(5), syscall; Linux, Documentation/scheduler/sched-stats.rst.
 */
bool attach_thread_sleeps_on(const struct attach_thread *thread, const struct attach_sleep *sleep);

/** The kernel's name of a thread, as its program has set it: any bytes. "" where it has ended.
 *  Source: proc(5), comm. */
void attach_thread_name(const struct attach_process *process, pid_t tid, char *ret_name,
			size_t size);

/* ---- The stop --------------------------------------------------------------------------- */

/**
 * Read the registers of a thread that is traced by us and stands.
 *
 * Stopped window: yes, one system call.
 * @param why FAILURE_GONE, FAILURE_INVALID (a 32-bit process).
 * Source: ptrace(2), PTRACE_GETREGSET; struct user_regs_struct of <sys/user.h>.
 */
int attach_read_registers(pid_t tid, struct attach_registers *ret_registers, struct failure *why);

/**
 * Whether the stop that took @p regs woke the thread from a system call, as happens to one that
 * goes to sleep between our look and the stop. The kernel restarts most calls by itself, and others
 * as the stop has asked for; on AArch64 some report EINTR.
 *
 * Stopped window: no, it may read code.
 * Source: linux/errno.h; Linux 6.1, arch/x86/kernel/signal.c, arch_do_signal_or_restart(), and
 * arch/arm64/kernel/signal.c, do_signal().
 */
bool attach_was_interrupted(const struct attach_reader *reader,
			    const struct attach_registers *regs);

/**
 * Decides what a stop reads. Called with the registers filled and the ranges of the earlier rounds
 * read; asks for more with attach_image_want(). Stopped window: yes, so it only computes addresses.
 * @return true while another round is wanted.
 */
struct attach_planner {
	bool (*plan)(void *context, struct attach_image *image, unsigned round);
	void *context;
	bool rehearses; /**< May be called before the stop as well, with the registers of the last.
			 */
};

/** Times of one stop in nanoseconds. */
struct attach_timing {
	uint64_t stopped_ns; /**< From before the interrupt to after the detach: what the target may
				feel at most. Not the time that the caller is without a processor
				in the detach, as most often the target has it then. */
	uint64_t stop_ns;    /**< Part of it until the thread stood. */
	uint64_t waited_ns;  /**< Part of that in which it waited for a processor. */
};

/**
 * Stop one thread, fill the image, let it go.
 *
 * Seize, interrupt, wait (bounded spin, then block), registers, bulk reads, detach. Nobody is
 * attached afterwards, whatever the result. Where the planner rehearses, the plan and the reads are
 * done once before, while the thread runs: half of what they take in a stop is cache misses. Not so
 * within 2 ms of when it stood last.
 * Signals that arrive while the thread stands are delivered by the detach; a thread in a group stop
 * stays in it. A thread that does not stand in time, because it waits for a processor, stays under
 * the interrupt (stop_pending): SIGCHLD tells when it stands, and the next call goes on where this
 * one ended. Where that does not come within 10 ms of when it stands, a handler of SIGRTMIN lets go
 * of it, and the call fails with FAILURE_TIMEOUT. Stopped window: the middle part.
 * @param ret_timing Set on success, and with FAILURE_UNSCHEDULED.
 * @param why FAILURE_GONE, FAILURE_BUSY, FAILURE_DENIED, FAILURE_TIMEOUT, FAILURE_FAULT;
 * FAILURE_UNSCHEDULED where thread->tick_ns is set and it waited for a processor then.
 * Source: ptrace(2), process_vm_readv(2).
 */
int attach_capture(struct attach_process *process, struct attach_thread *thread,
		   const struct attach_planner *planner, struct attach_image *image,
		   struct attach_timing *ret_timing, struct failure *why);

/**
 * Fill the image of a thread that sleeps, without waking it: what the planner asks for is read as
 * it lies, and the thread is looked at again afterwards, so that all of it is of one moment as far
 * as no other thread writes there. Of the registers only pc and sp are known; the others are 0.
 * Stopped window: no.
 * @param ret_sleep Set on success.
 * @param why FAILURE_TIMEOUT where it runs, or ran meanwhile; FAILURE_GONE; FAILURE_SYSTEM.
 */
int attach_capture_asleep(const struct attach_process *process, struct attach_thread *thread,
			  const struct attach_planner *planner, struct attach_image *image,
			  struct attach_sleep *ret_sleep, struct failure *why);

/**
 * Read the ranges asked for since the last read, with the threads running; one system call for
 * most. A range that cannot be read stays empty. @return 0, or -1 with FAILURE_GONE or
 * FAILURE_SYSTEM.
 */
int attach_process_fetch(const struct attach_process *process, struct attach_image *image,
			 struct failure *why);

/**
 * Read what the scheduler has counted for the thread, in less than 1 us. Stopped window: may be.
 * Keeps the file open in @p thread, until that is freed.
 * @return false where the kernel does not count, or the thread is gone; @p ret_schedule is not set.
 * Source: Linux, Documentation/scheduler/sched-stats.rst, /proc/PID/schedstat.
 */
bool attach_thread_schedule(struct attach_thread *thread, struct attach_schedule *ret_schedule);

/** Whether a thread under an interrupt stands by now, or has ended; reaps nothing. */
bool attach_thread_stands(const struct attach_thread *thread);

/** Let go of a thread that answered an interrupt too late, or reap one that was killed while it
 *  stood (stop_pending). @return 0 once nothing is
 *  pending, -1 while it still is. Never blocks. */
int attach_thread_settle(struct attach_thread *thread);

#endif
