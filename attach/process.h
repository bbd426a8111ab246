/* SPDX-License-Identifier: MIT */
/* Private to attach: the inside of a process and small readers of /proc. */
#ifndef ATTACH_PROCESS_H
#define ATTACH_PROCESS_H

#include "attach/attach.h"

/* Phrases by which attach_explain() tells the kinds of FAILURE_NOT_FOUND apart. */
#define PROCESS_IS_THREAD "profile a single thread"
#define PROCESS_IS_ZOMBIE "profile a zombie"
#define PROCESS_IS_KERNEL "profile a kernel thread"

/** Two addresses that every exec places anew. */
struct program_id {
	uint64_t text_start, stack_start;
};

struct attach_process {
	pid_t pid;
	struct program_id program;
	struct attach_reader reader;
};

/** Read a small file of /proc/PID into text. @return 0, or -1 with errno. */
int process_read_file(pid_t pid, const char *name, char *ret_text, size_t size);

/** Find "Field:\tvalue" in the text of a status file. */
bool process_status_field(const char *status, const char *field, char *ret_value, size_t size);

/** Whether a thread is gone or a zombie. */
bool process_thread_ended(pid_t pid, pid_t tid);

/** Whether somebody traces a thread; also where that cannot be told. */
bool process_thread_is_traced(pid_t tid);

/** First address behind the main thread's frames; 0 if unknown. */
uint64_t process_stack_start(const struct attach_process *process);

#endif
