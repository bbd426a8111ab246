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

/** What a thread does, seen without stopping it. Source: proc(5), /proc/PID/task/TID/syscall. */
enum attach_thread_state {
	ATTACH_RUNNING,
	ATTACH_BLOCKED, /**< In a system call or otherwise asleep. We never interrupt it. */
	ATTACH_EXITED,
};

/** The scheduler's counters of a thread. */
struct attach_schedule {
	uint64_t ran_ns;    /**< Time on a processor; if it runs, until its last clock tick. */
	uint64_t waited_ns; /**< Time waiting for a processor, in waits that have ended. */
	uint64_t runs;	    /**< How often it got a processor. */
};

/** A thread's turns on processors around one stop, for attach_capture(). */
struct attach_turn {
	struct attach_schedule before; /**< At the interrupt. */
	bool is_known;		       /**< `before` could be read. */
	bool is_late;		       /**< It did not stop at once. */
	bool is_ours;		       /**< It then ran or waited on the caller's processor. */
	uint64_t own_waited_ns; /**< Time for which the caller had waited for processors by then. */
	uint64_t ran_ns;	/**< Its processor time when it stopped; 0: unknown. */
};

struct attach_thread {
	pid_t tid;
	int syscall_fd;	   /**< Stays open, because a probe then takes 1.4 us. */
	int schedule_fd;   /**< Stays open, too; 0: not opened yet, -1: unavailable. */
	bool stop_pending; /**< We still trace it: it has not answered an interrupt yet, or it was
			      killed while stopped. */
	uint64_t interrupt_ns; /**< When we sent an interrupt that it has not answered; 0: none. */
	uint64_t patience_ns;  /**< Longest wait of attach_capture(), at most 1 s; 0: 100 ms. */
	bool shares_processor; /**< Ran on our processor at its last stop. */
	uint64_t tick_ns; /**< If the tick is of processor time: when the caller woke for it. 0: the
			     tick is of wall-clock time, and a thread that waits for a processor
			     counts too. */
	bool is_tick_late; /**< The caller woke too late for the tick. */
	uint64_t woke_ns;  /**< When the caller woke because threads with stop_pending had stopped;
			      0: it did not sleep. */
	struct attach_turn turn;
	uint64_t stack_limit; /**< Main thread: first address after its frames; other threads: 0. */
	void *data;	      /**< Free for the caller; NULL at first. */
	uint64_t last_stop_ns;		   /**< Its last stop, CLOCK_MONOTONIC; 0: never stopped. */
	struct attach_registers registers; /**< Registers of its last stop. */
};

/** The threads of a process. attach_threads_refresh() updates the list; entries keep their
 *  addresses. */
struct attach_threads;
int attach_threads_create(struct attach_process *process, struct attach_threads **ret_threads,
			  struct failure *why);
void attach_threads_destroy(struct attach_threads *threads);
int attach_threads_refresh(struct attach_threads *threads, struct failure *why);
/** Call after attach_process_note_exec(): the main thread has a new stack. Reads nothing. */
void attach_threads_note_exec(struct attach_threads *threads);
/**
 * @param forget Called before the list drops a thread, because the thread ended or the list is
 *        destroyed.
 */
void attach_threads_on_forget(struct attach_threads *threads,
			      void (*forget)(void *context, struct attach_thread *thread),
			      void *context);
/**
 * Whether the number of threads differs from the last refresh; takes less than 1 us. Does not
 * notice that one thread ended while another started.
 * Source: proc_task_getattr() of Linux, st_nlink.
 */
bool attach_threads_changed(const struct attach_threads *threads);
size_t attach_threads_count(const struct attach_threads *threads);
struct attach_thread *attach_threads_get(struct attach_threads *threads, size_t index);

/**
 * Probe a thread without stopping it.
 * @param ret_sp,ret_pc Set if the thread is blocked; may be NULL.
 */
enum attach_thread_state attach_thread_state(struct attach_thread *thread, uint64_t *ret_sp,
					     uint64_t *ret_pc);

/** A thread that does not run, as the kernel shows it. */
struct attach_sleep {
	int64_t syscall; /**< Number of the system call in which it waits; -1: none. */
	uint64_t sp, pc;
	uint64_t runs;	 /**< How often it had got a processor before we saw it asleep. */
	bool is_stopped; /**< By a signal such as SIGSTOP. */
};

/**
 * Probe a thread as attach_thread_state() does, and read all that /proc shows of a blocked one;
 * some 15 us. A thread counts as running if the kernel gives no counter by which we can check later
 * that it did not wake.
 * @param ret_sleep Set if the thread is blocked.
 * Source: proc(5), syscall and status.
 */
enum attach_thread_state attach_thread_probe(const struct attach_process *process,
					     struct attach_thread *thread,
					     struct attach_sleep *ret_sleep);

/**
 * Whether a thread is still in the sleep that an earlier probe saw; some 5 us.
 *
 * Stopped window: no. Stops nothing.
 * @param sleep From attach_thread_probe() or attach_capture_asleep().
 * Source: proc(5), syscall; Linux, Documentation/scheduler/sched-stats.rst.
 */
bool attach_thread_sleeps_on(const struct attach_thread *thread, const struct attach_sleep *sleep);

/**
 * Read the name that a thread's program gave it: any bytes. "" if the thread has ended.
 * Source: proc(5), comm.
 */
void attach_thread_name(const struct attach_process *process, pid_t tid, char *ret_name,
			size_t size);

/* ---- The stop --------------------------------------------------------------------------- */

/**
 * Read the registers of a thread that we trace and that is stopped.
 *
 * Stopped window: yes, one system call.
 * @param why FAILURE_GONE, FAILURE_INVALID (a 32-bit process).
 * Source: ptrace(2), PTRACE_GETREGSET; struct user_regs_struct of <sys/user.h>.
 */
int attach_read_registers(pid_t tid, struct attach_registers *ret_registers, struct failure *why);

/**
 * Whether the stop that read @p regs woke the thread from a system call. This happens if the thread
 * goes to sleep between our probe and the stop. The kernel restarts most calls by itself, and the
 * stop makes it restart others. On AArch64 some calls return EINTR.
 *
 * Stopped window: no; it may read code.
 * Source: linux/errno.h; Linux 6.1, arch/x86/kernel/signal.c, arch_do_signal_or_restart(), and
 * arch/arm64/kernel/signal.c, do_signal().
 */
bool attach_was_interrupted(const struct attach_reader *reader,
			    const struct attach_registers *regs);

/**
 * Reads memory for a copy that follows pointers. Most of what it reads, the last copy of the same
 * thread has read too, so the fetcher reads all of that at once. Other memory it reads by the page.
 */
struct attach_fetcher;

enum {
	/* Pieces that are read at once, and their bytes. */
	ATTACH_PIECES = 64,
	ATTACH_PIECES_BYTES = 256 << 10,
};

/** What to read at once; zero-initialise. */
struct attach_pieces {
	struct {
		uint64_t start;
		uint32_t len;
	} piece[ATTACH_PIECES]; /**< Ascending, without overlap. */
	uint32_t count;
};

/**
 * Create a fetcher, for any number of threads in turn.
 * @param ret_fetcher The caller releases it with attach_fetcher_destroy().
 * @param why FAILURE_NO_MEMORY. @return 0 or -1.
 */
int attach_fetcher_create(struct attach_fetcher **ret_fetcher, struct failure *why);
void attach_fetcher_destroy(struct attach_fetcher *fetcher);

/**
 * Begin a copy, and read the pieces at once. Stopped window: yes, one system call.
 * @param process, pieces Borrowed until attach_fetcher_end().
 * Source: process_vm_readv(2).
 */
void attach_fetcher_begin(struct attach_fetcher *fetcher, const struct attach_process *process,
			  const struct attach_pieces *pieces);

/** The same, with memory from a reader, which is borrowed for the copy. */
void attach_fetcher_begin_from(struct attach_fetcher *fetcher, const struct attach_reader *reader);

/**
 * Read [address, address+len). Stopped window: yes; at most two system calls.
 * @return false if not all of it can be read; @p ret_bytes is then undefined.
 */
bool attach_fetch(struct attach_fetcher *fetcher, uint64_t address, void *ret_bytes, size_t len);

/** Set the pieces for the thread's next copy, by what this one has read. Stopped window: no. */
void attach_fetcher_end(struct attach_fetcher *fetcher, struct attach_pieces *ret_pieces);

/** Decides what a stop reads: by copy(), or by plan(). */
struct attach_planner {
	/**
	 * Copies what it reads with attach_fetch() to memory of its own. Stopped window: yes, so it
	 * only follows pointers.
	 */
	void (*copy)(void *context, const struct attach_registers *registers,
		     struct attach_fetcher *fetcher);
	struct attach_fetcher *fetcher;
	struct attach_pieces *pieces; /**< Of the thread: what the last copy read. */
	/**
	 * If there is no copy(): asks for ranges with attach_image_want(), by the registers and the
	 * ranges of the earlier rounds. Stopped window: yes, so it only computes addresses.
	 * @return true if it wants another round.
	 */
	bool (*plan)(void *context, struct attach_image *image, unsigned round);
	void *context;
	bool rehearses; /**< It may also run before the stop, with the registers of the last stop.
			 */
};

/** Times of one stop in nanoseconds. */
struct attach_timing {
	uint64_t stopped_ns; /**< From before the interrupt to after the detach: the longest pause
				that the target can notice. Leaves out time for which the caller
				loses its processor in the detach, because the target usually has it
				then. */
	uint64_t stop_ns;    /**< Part of stopped_ns until the thread stopped. */
	uint64_t waited_ns;  /**< Part of stop_ns for which the thread waited for a processor. */
};

/**
 * Stop one thread, fill the image, and let the thread go.
 *
 * The steps are seize, interrupt, wait (spin for a bounded time, then block), registers, bulk
 * reads, detach. We trace nothing afterwards, except a thread with stop_pending. If the planner
 * rehearses, we make the plan and the reads once before the stop, while the thread runs: half of
 * their time in a stop is cache misses. We skip this within 2 ms of the thread's last stop.
 *
 * The detach delivers signals that arrive while the thread is stopped. A thread in a group stop
 * stays in it. A thread that waits for a processor may not stop in time. It then stays under the
 * interrupt (stop_pending): SIGCHLD reports its stop, and the next call continues where this one
 * ended. If the next call does not come within 10 ms of the stop, a handler of SIGRTMIN lets the
 * thread go, and the call fails with FAILURE_TIMEOUT.
 * Stopped window: the middle part.
 * @param ret_timing Set on success, and with FAILURE_UNSCHEDULED.
 * @param why FAILURE_GONE, FAILURE_BUSY, FAILURE_DENIED, FAILURE_TIMEOUT, FAILURE_FAULT;
 *        FAILURE_ASLEEP if the thread fell asleep during the rehearsal; FAILURE_UNSCHEDULED if
 *        thread->tick_ns is set and the thread waited for a processor at that tick.
 * Source: ptrace(2), process_vm_readv(2).
 */
int attach_capture(struct attach_process *process, struct attach_thread *thread,
		   const struct attach_planner *planner, struct attach_image *image,
		   struct attach_timing *ret_timing, struct failure *why);

/**
 * Fill the image of a sleeping thread without waking it. We read the planned memory while the
 * thread sleeps, then probe the thread again. If it did not wake, the memory is consistent unless
 * another thread wrote there. Of the registers only pc and sp are known; the others are 0. Stopped
 * window: no.
 * @param ret_sleep Set on success.
 * @param why FAILURE_TIMEOUT if the thread runs, or ran meanwhile; FAILURE_GONE; FAILURE_SYSTEM.
 */
int attach_capture_asleep(const struct attach_process *process, struct attach_thread *thread,
			  const struct attach_planner *planner, struct attach_image *image,
			  struct attach_sleep *ret_sleep, struct failure *why);

/**
 * Read the ranges asked for since the last read, while the threads run; usually one system call. An
 * unreadable range stays empty.
 * @return 0, or -1 with FAILURE_GONE or FAILURE_SYSTEM.
 */
int attach_process_fetch(const struct attach_process *process, struct attach_image *image,
			 struct failure *why);

/**
 * Read the scheduler's counters of the thread, in less than 1 us. Stopped window: allowed. Keeps
 * the file open in @p thread until that is freed.
 * @return false if the kernel does not count, or the thread is gone; @p ret_schedule is then
 *         unchanged.
 * Source: Linux, Documentation/scheduler/sched-stats.rst, /proc/PID/schedstat.
 */
bool attach_thread_schedule(struct attach_thread *thread, struct attach_schedule *ret_schedule);

/** Whether a thread with a pending stop has stopped or ended. Reaps nothing. */
bool attach_thread_is_stopped(const struct attach_thread *thread);

/**
 * Let a thread go that answered an interrupt too late, or reap one that was killed while stopped
 * (stop_pending). Never blocks.
 * @return 0 if nothing is pending any more, else -1.
 */
int attach_thread_settle(struct attach_thread *thread);

#endif
