/* SPDX-License-Identifier: MIT */
/* Private to attach: what does an open process hold, and how do we read /proc? */
#ifndef ATTACH_PROCESS_PROCESS_INTERNAL_H
#define ATTACH_PROCESS_PROCESS_INTERNAL_H

#include "attach/thread.h"

/* Phrases by which attach_explain() distinguishes the kinds of FAILURE_NOT_FOUND. */
#define PROCESS_IS_THREAD "profile a single thread"
#define PROCESS_IS_ZOMBIE "profile a zombie"
#define PROCESS_IS_KERNEL "profile a kernel thread"

#define PROCESS_IS_32_BIT "profile a 32-bit process"

/** Fields of /proc/PID/stat. */
struct process_stat {
	char command[64];
	char state;
	bool is_kernel;
	pid_t parent;
	long threads;
	uint64_t start_ticks, size_bytes, text_start, stack_start;
	int processor; /* the current or last one */
};

/** @return 0, or -1 if there is no such process. */
int process_read_stat(pid_t pid, struct process_stat *ret_stat);

enum { PROCESS_RANDOM_BYTES = 16 };

/** What every exec changes. */
struct program_id {
	uint64_t text_start, stack_start;
	uint64_t random_address; /* 0: unknown */
	uint8_t random[PROCESS_RANDOM_BYTES];
};

struct attach_process {
	pid_t pid;
	pid_t memory_id; /* thread that has the memory; usually pid */
	uint64_t start_ticks;
	struct program_id program;
	struct attach_reader reader;
};

/** Open a file of /proc/PID, close-on-exec. @return A descriptor, or -1 with errno. */
int process_open(pid_t pid, const char *name, int flags);

/** Read a small file of /proc/PID into text. @return 0, or -1 with errno. */
int process_read_file(pid_t pid, const char *name, char *ret_text, size_t size);

/** Replace bytes that could control a terminal by '?'. */
void process_clean_text(char *text);

/** Find "Field:\tvalue" in the text of a status file. */
bool process_status_field(const char *status, const char *field, char *ret_value, size_t size);

/** Whether a thread is gone or a zombie. */
bool process_thread_ended(pid_t pid, pid_t tid);

/** Whether some process traces a thread; true if unknown. */
bool process_thread_is_traced(pid_t tid);

/** First address after the main thread's frames; 0: unknown. */
uint64_t process_stack_start(const struct attach_process *process);

#endif
