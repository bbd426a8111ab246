/* SPDX-License-Identifier: MIT */
/* Private to attach: the inside of a process and small readers of /proc. */
#ifndef ATTACH_PROCESS_PROCESS_INTERNAL_H
#define ATTACH_PROCESS_PROCESS_INTERNAL_H

#include "attach/thread.h"

/* Phrases by which attach_explain() tells the kinds of FAILURE_NOT_FOUND apart. */
#define PROCESS_IS_THREAD "profile a single thread"
#define PROCESS_IS_ZOMBIE "profile a zombie"
#define PROCESS_IS_KERNEL "profile a kernel thread"

#define PROCESS_IS_32_BIT "profile a 32-bit process"

/** What /proc/PID/stat tells. */
struct process_stat {
	char command[64];
	char state;
	bool is_kernel; /* a thread of the kernel's own */
	pid_t parent;
	long threads;
	uint64_t start_ticks, size_bytes, text_start, stack_start;
	int processor; /* it runs on, or ran last */
};

/** @return 0, or -1 where there is no such process. */
int process_read_stat(pid_t pid, struct process_stat *ret_stat);

enum { PROCESS_RANDOM_BYTES = 16 };

/** What every exec makes anew. */
struct program_id {
	uint64_t text_start, stack_start;
	uint64_t random_address; /* 0: not known */
	uint8_t random[PROCESS_RANDOM_BYTES];
};

struct attach_process {
	pid_t pid;
	pid_t memory_id; /* of a thread that has the memory: pid, mostly */
	uint64_t start_ticks;
	struct program_id program;
	struct attach_reader reader;
};

/** Open a file of /proc/PID, close-on-exec. @return A descriptor, or -1 with errno. */
int process_open(pid_t pid, const char *name, int flags);

/** Read a small file of /proc/PID into text. @return 0, or -1 with errno. */
int process_read_file(pid_t pid, const char *name, char *ret_text, size_t size);

/** Make text from a process fit for a terminal. */
void process_clean_text(char *text);

/** Find "Field:\tvalue" in the text of a status file. */
bool process_status_field(const char *status, const char *field, char *ret_value, size_t size);

/** Whether a thread is gone or a zombie. */
bool process_thread_ended(pid_t pid, pid_t tid);

/**
 * Undo what a stop did to a thread that had fallen asleep since we looked: calls such as epoll_wait
 * fail with EINTR, even though no handler of a signal has run. The kernel is made to begin the call
 * again unless one does now, as it does for most calls by itself; a timeout begins again, too. For
 * calls that it goes on with by restart_syscall(2) that is done where the process filters its
 * calls.
 *
 * Stopped window: yes; some system calls in the rare case, else none. On AArch64 nothing is done:
 * what the first argument was is lost when the thread stands. A thread that our death lets go sees
 * EINTR. May be called by a signal handler.
 * @param status Of waitpid().
 * @param is_prompt It stood at once. One that had to wait for a processor may have been woken by
 * the end of its timeout, which a socket's call does not tell.
 * @param regs As they were read. They keep the result that the kernel had set.
 * Source: signal(7), calls that are never restarted; Linux 6.1, arch/x86/kernel/signal.c,
 * arch_do_signal_or_restart() and handle_signal(); arch/arm64/kernel/signal.c, do_signal().
 */
void registers_restart_wait(pid_t tid, int status, const struct attach_registers *regs,
			    bool is_prompt);

/** The same for a thread that is let go without a look: reads its registers. */
void registers_undo_stop(pid_t tid, int status);

/** Whether somebody traces a thread; also where that is not known. */
bool process_thread_is_traced(pid_t tid);

/**
 * How often a thread was given a processor. Counted before a thread is seen asleep, and again at
 * any time later: it has slept all the time where both are equal. Some 3 us; 0: unknown. Source:
 * Linux, Documentation/scheduler/sched-stats.rst, /proc/<pid>/schedstat; proc(5), status.
 */
uint64_t process_count_runs(pid_t tid);

/** attach_thread_probe() but for the status file; 1.4 us. */
enum attach_thread_state process_thread_sleep(const struct attach_thread *thread,
					      struct attach_sleep *ret_sleep);

/** Read what a planner asks for, in rounds. @return As attach_process_fetch(). */
int process_read_rounds(const struct attach_process *process, const struct attach_planner *planner,
			unsigned rounds, struct attach_image *image, struct failure *why);

/** Rounds of reads of one image: the known ranges, then what they point to, and so on: the first
 * and one for each stage of luastate's planner, of which the steady state takes two. */
enum { PROCESS_ROUNDS = 14 };

/** A thread that does not wait for a processor stands sooner than this after the interrupt. */
enum { PROCESS_PROMPT_NS = 500 * 1000 };

/** First address behind the main thread's frames; 0 if unknown. */
uint64_t process_stack_start(const struct attach_process *process);

#endif
