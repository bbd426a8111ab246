/* SPDX-License-Identifier: MIT */
/* How do we set a failure and describe it for people? */
#include "attach/failure.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void failure_fill(struct failure *why, enum failure_kind kind, int errnum, pid_t tid,
		  uint64_t address, const char *step)
{
	if (!why)
		return;
	why->kind = kind;
	why->errnum = errnum;
	why->tid = tid;
	why->address = address;
	why->step = step;
}

void failure_fill_errno(struct failure *why, int errnum, pid_t tid, const char *step)
{
	enum failure_kind kind = FAILURE_SYSTEM;

	if (errnum == ESRCH)
		kind = FAILURE_GONE;
	else if (errnum == EPERM || errnum == EACCES)
		kind = FAILURE_DENIED;
	else if (errnum == ENOMEM)
		kind = FAILURE_NO_MEMORY;
	failure_fill(why, kind, errnum, tid, 0, step);
}

bool failure_is_shortage(const struct failure *why)
{
	return why->kind == FAILURE_NO_MEMORY ||
	       (why->kind == FAILURE_SYSTEM && (why->errnum == EMFILE || why->errnum == ENFILE));
}

static const char *reason_of(const struct failure *why)
{
	switch (why->kind) {
	case FAILURE_NONE:
		return "no failure";
	case FAILURE_GONE:
		return "it has ended";
	case FAILURE_FAULT:
		return "memory not readable";
	case FAILURE_BUSY:
		return "traced by another process";
	case FAILURE_INVALID:
		return "not a valid file of its kind";
	case FAILURE_NOT_FOUND:
		return "not found";
	case FAILURE_LIMIT:
		return "limit reached";
	case FAILURE_TIMEOUT:
		return "timed out";
	case FAILURE_ASLEEP:
		return "it is blocked";
	case FAILURE_UNSCHEDULED:
		return "it waited for a processor";
	case FAILURE_NO_MEMORY:
		return "out of memory";
	case FAILURE_SYSTEM:
	case FAILURE_DENIED:
		break;
	}
	return why->errnum ? strerror(why->errnum) : "refused";
}

void failure_describe(const struct failure *why, char *ret_text, size_t len)
{
	char who[32] = "", where[40] = "";

	if (why->tid)
		snprintf(who, sizeof(who), " of %d", (int)why->tid);
	if (why->kind == FAILURE_FAULT || why->address)
		snprintf(where, sizeof(where), " at 0x%" PRIx64, why->address);
	snprintf(ret_text, len, "cannot %s%s%s: %s", why->step ? why->step : "continue", who, where,
		 reason_of(why));
}
