/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SYMBOLS_STOPPED_H
#define TESTS_SYMBOLS_STOPPED_H

/* Processes that tests start, stop and copy. */

#include <sys/types.h>

#include "symbols/unwind.h"

/** Start @p argv and wait until it prints a line. @return Its pid; fails the test otherwise. */
pid_t stopped_spawn(const char *const *argv);
void stopped_kill(pid_t pid);

/** The thread of @p pid that is not the first one, or @p pid. */
pid_t stopped_last_thread(pid_t pid);

/** Attach to @p tid for good. @return false if ptrace is not permitted here. */
bool stopped_seize(pid_t tid);
/** Try that with a process of its own that runs @p argv. Where it is not permitted, print so. */
bool stopped_may_trace(const char *const *argv);
/** Stop a seized thread and read its registers. */
void stopped_stop(pid_t tid, struct attach_registers *ret_regs);
/** Registers of a stopped thread. */
void stopped_registers(pid_t tid, struct attach_registers *ret);
/** Let it run on, with the signal that it stopped for. */
void stopped_go(pid_t tid);

/** A step as the daemon makes it: by the unwind entry, or where there is none by the frame pointer
 *  and what else the function's own instructions tell. @return As symbols_unwind_step(). */
int stopped_step(struct symbols_unwinder *unwinder, struct failure *why);

/** Copy the mapping that holds the stack pointer from there to its end, at most 1 MiB. */
void stopped_copy_stack(struct symbols_space *space, const struct attach_reader *reader,
			const struct attach_registers *regs, struct attach_image *image);

#endif
