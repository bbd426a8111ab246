/* SPDX-License-Identifier: MIT */
/* Which system call does a thread wait in? */
#include <seccomp.h>
#include <stddef.h>

#include "daemon/decode/target.h"
#include "daemon/dump.h"

const char *daemon_call_name(int64_t number)
{
	/* The library returns a new copy at each call. */
	static char *names[TARGET_CALLS_MAX];

	if (number < 0 || number >= TARGET_CALLS_MAX)
		return NULL;
	if (!names[number])
		names[number] = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)number);
	return names[number];
}
