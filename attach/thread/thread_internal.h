/* SPDX-License-Identifier: MIT */
/* Private to attach: how threads are stopped, read and seen asleep. */
#ifndef ATTACH_THREAD_THREAD_INTERNAL_H
#define ATTACH_THREAD_THREAD_INTERNAL_H

#include "attach/thread.h"

/**
 * Undo what a stop did to a thread that fell asleep after our probe. Calls such as epoll_wait would
 * fail with EINTR although no signal handler ran. We make the kernel restart the call unless a
 * handler runs now, as the kernel does for most calls by itself. The call's timeout starts again,
 * too. The kernel continues some calls by restart_syscall(2); for these we do the same if the
 * process filters its system calls.
 *
 * Stopped window: yes; some system calls in this rare case, else none. On AArch64 this does
 * nothing, because the stop destroys the first argument. If our own death lets a thread go, the
 * thread sees EINTR. Signal handlers may call this.
 * @param status From waitpid().
 * @param is_prompt The thread stopped at once. If it had to wait for a processor, the end of its
 *        timeout may have woken it, and a socket call does not show this.
 * @param regs Registers as read. They keep the result that the kernel had set.
 * Source: signal(7), calls that are never restarted; Linux 6.1, arch/x86/kernel/signal.c,
 * arch_do_signal_or_restart() and handle_signal(); arch/arm64/kernel/signal.c, do_signal().
 */
void registers_restart_wait(pid_t tid, int status, const struct attach_registers *regs,
			    bool is_prompt);

/** Read a thread's registers and call registers_restart_wait(), for a stop without a sample. */
void registers_undo_stop(pid_t tid, int status);

/**
 * How often a thread got a processor. Count before a probe sees the thread asleep, and again later:
 * if both numbers are equal, the thread slept all the time. Some 3 us; 0: unknown.
 * Source: Linux, Documentation/scheduler/sched-stats.rst, /proc/<pid>/schedstat; proc(5), status.
 */
uint64_t process_count_runs(pid_t tid);

/** attach_thread_probe() without the status file and the count of runs; 1.4 us. */
enum attach_thread_state process_thread_sleep(const struct attach_thread *thread,
					      struct attach_sleep *ret_sleep);

/**
 * Read what a planner asks for.
 * @param rounds The most, of a planner that has rounds.
 * @return As attach_process_fetch().
 */
int process_read_planned(const struct attach_process *process, const struct attach_planner *planner,
			 unsigned rounds, struct attach_image *image, struct failure *why);

/** Call after the reads. Stopped window: no. */
void process_end_reads(const struct attach_planner *planner);

/** Rounds of reads for one image. The first reads known ranges; each further round reads what the
 *  last one points to. This is one round more than luastate's planner has stages; the steady state
 *  takes two. */
enum { PROCESS_ROUNDS = 14 };

/** A thread that does not wait for a processor stops sooner than this after the interrupt. */
enum { PROCESS_PROMPT_NS = 500 * 1000 };

#endif
