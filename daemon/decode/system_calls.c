/* SPDX-License-Identifier: MIT */
/* Which system call does a thread wait in? */
#include <seccomp.h>
#include <stddef.h>

#include "daemon/dump.h"

enum {
	/* More than any architecture has; x86-64's other ABI begins there. */
	CALLS_MAX = 512,
};

const char *daemon_call_name(int64_t number)
{
	/* The library returns a new copy at each call. */
	static char *names[CALLS_MAX];

	if (number < 0 || number >= CALLS_MAX)
		return NULL;
	if (!names[number])
		names[number] = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)number);
	return names[number];
}
