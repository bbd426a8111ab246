/* SPDX-License-Identifier: MIT */
/* Why did a step fail, as a value that every module passes up? */
#ifndef ATTACH_FAILURE_H
#define ATTACH_FAILURE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** What went wrong. Callers choose their next step by it. */
enum failure_kind {
	FAILURE_NONE = 0,
	FAILURE_SYSTEM,	     /**< A system call failed; see errnum. */
	FAILURE_GONE,	     /**< The process or thread no longer exists. */
	FAILURE_FAULT,	     /**< Target memory at `address` could not be read. */
	FAILURE_DENIED,	     /**< The kernel refused access; see errnum. */
	FAILURE_BUSY,	     /**< Another tracer holds the thread. */
	FAILURE_INVALID,     /**< Bytes from outside break the rules of their format. */
	FAILURE_NOT_FOUND,   /**< The wanted thing is not there. */
	FAILURE_LIMIT,	     /**< A named bound was reached. */
	FAILURE_TIMEOUT,     /**< A bounded wait ended without the awaited event. */
	FAILURE_ASLEEP,	     /**< The thread is blocked. We do not interrupt it. */
	FAILURE_UNSCHEDULED, /**< The thread waited for a processor. */
	FAILURE_NO_MEMORY,   /**< Our own allocation failed. */
};

/**
 * Why a function failed.
 *
 * Plain data that allocates nothing, so a failure in the sampling path costs no more than a
 * success. `step` is a static phrase that completes "cannot …", such as "read the thread's
 * registers".
 */
struct failure {
	enum failure_kind kind;
	int errnum;	  /**< errno of the failed call, or 0. */
	pid_t tid;	  /**< Process or thread that failed, or 0. */
	uint64_t address; /**< Target address, or byte offset in a file; 0: neither. */
	const char *step; /**< Static phrase; never freed. */
};

/** Fill @p why. Does nothing if @p why is NULL. */
void failure_fill(struct failure *why, enum failure_kind kind, int errnum, pid_t tid,
		  uint64_t address, const char *step);

/** failure_fill() for a failed system call: FAILURE_GONE for ESRCH, FAILURE_DENIED for EPERM and
 *  EACCES, FAILURE_NO_MEMORY for ENOMEM, else FAILURE_SYSTEM. */
void failure_fill_errno(struct failure *why, int errnum, pid_t tid, const char *step);

/* The next two functions are inline: the compiler then sees the -1, and does not warn that callers
 * use outputs that only a success sets. */

/** failure_fill() and return -1, so that a failing function ends in one statement. */
static inline int failure_set(struct failure *why, enum failure_kind kind, int errnum, pid_t tid,
			      uint64_t address, const char *step)
{
	failure_fill(why, kind, errnum, tid, address, step);
	return -1;
}

/** failure_fill_errno() and return -1. */
static inline int failure_set_errno(struct failure *why, int errnum, pid_t tid, const char *step)
{
	failure_fill_errno(why, errnum, tid, step);
	return -1;
}

/** Whether our own descriptors or memory ran out. Such a failure says nothing about the target. */
bool failure_is_shortage(const struct failure *why);

/**
 * Describe @p why in one line for people, for example
 * "cannot read the registers of 4711: it has ended".
 * @param ret_text Always terminated; at most @p len bytes are written.
 */
void failure_describe(const struct failure *why, char *ret_text, size_t len);

#endif
