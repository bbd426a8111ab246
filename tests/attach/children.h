/* SPDX-License-Identifier: MIT */
#ifndef TESTS_ATTACH_CHILDREN_H
#define TESTS_ATTACH_CHILDREN_H

/* Processes that tests start, look at and end. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/reader.h"

/** Longest wait for anything that a working program does at once; generous for loaded machines. */
#define CHILD_DEADLINE_MS 60000

/** Fork a child that calls run(argument) and exits with 0 when that returns. It dies with us. */
pid_t child_start(void (*run)(void *), void *argument);

/** The same with a process between us and it, which reaps it and notes that in *ret_reaped (shared
 *  memory), so that the target's parent is not its tracer. @return The grandchild. */
pid_t child_start_below(void (*run)(void *), void *argument, volatile int *ret_reaped);

/** Kill with SIGKILL and reap; also what has ended already. */
void child_end(pid_t pid);

/** Zeroed memory that is shared with children. */
void *child_share(size_t size);

/** State letter of a process or thread, 0 if it is gone. */
char child_state(pid_t tid);

/** A number of /proc/TID/status, -1 if the field or the thread is missing. */
long child_field(pid_t tid, const char *field);

/** Wait until the state is one of @p states. @return Whether that came to pass. */
bool child_await_state(pid_t tid, const char *states);

/** Wait until a number in shared memory is at least so large. */
bool child_await(const volatile uint64_t *number, uint64_t least);

/** Wait until nobody traces @p tid and it is not stopped. */
bool child_is_free(pid_t tid);

uint64_t child_now_ns(void);
void child_nap_us(unsigned us);

/** Wait until @p condition holds, or the deadline is over. */
#define CHILD_AWAIT(condition)                                                            \
	for (uint64_t await_end = child_now_ns() + (uint64_t)CHILD_DEADLINE_MS * 1000000; \
	     !(condition) && child_now_ns() < await_end;)                                 \
	child_nap_us(200)

/** Whether ptrace is permitted here; prints the reason where it is not. */
bool child_can_trace(void);

/* ---- A loop that is known to the byte --------------------------------------------------- */

/** Code of the loop that child_spin() ends up in. */
extern const char child_loop_begin[], child_loop_end[];

/** Registers in the loop but the counter's address, one for counting, sp and pc: register n holds
 *  this. */
#define CHILD_REGISTER(n) ((uint64_t)0x0101010101010101 * ((n) + 1))

/** The register that holds the counter's address, and those that hold CHILD_REGISTER. */
#if defined(__x86_64__)
#define CHILD_COUNTER ATTACH_REG_RDI
static inline bool child_register_is_known(unsigned n)
{
	return n != ATTACH_REG_RDI && n != ATTACH_REG_SP && n != ATTACH_REG_PC;
}
#elif defined(__aarch64__)
#define CHILD_COUNTER ATTACH_REG_X0
static inline bool child_register_is_known(unsigned n)
{
	return n > 1 && n != ATTACH_REG_SP && n != ATTACH_REG_PC;
}
#endif

/** Count *counter up for ever with known registers. Never returns. */
void child_spin(void *counter);

#endif
