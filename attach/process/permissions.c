/* SPDX-License-Identifier: MIT */
/* How do we explain a refusal in the user's terms? */
#include "attach/process/process_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int yama_scope(void)
{
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = -1;

	if (!file)
		return -1; /* this kernel has no Yama */
	if (fscanf(file, "%d", &scope) != 1)
		scope = -1;
	fclose(file);
	return scope;
}

static void explain_denied(pid_t pid, char *ret_text, size_t len)
{
	struct attach_identity owner;
	bool is_known = attach_identity_of(pid, &owner);
	int scope = yama_scope();

	if (scope == 3)
		snprintf(ret_text, len,
			 "not permitted to trace process %d: kernel.yama.ptrace_scope is 3, which "
			 "forbids tracing until the next boot",
			 (int)pid);
	else if (geteuid() == 0)
		snprintf(ret_text, len,
			 "not permitted to trace process %d even as root: run where "
			 "CAP_SYS_PTRACE is granted (in a container: --cap-add SYS_PTRACE)",
			 (int)pid);
	else if (is_known && owner.uid != geteuid()) {
		const struct passwd *user = getpwuid(owner.uid);

		snprintf(ret_text, len,
			 "not permitted to trace process %d of user %s: use sudo, or grant "
			 "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
			 (int)pid, user ? user->pw_name : "unknown");
	} else if (scope > 0)
		snprintf(ret_text, len,
			 "not permitted to trace process %d: kernel.yama.ptrace_scope is %d; use "
			 "sudo, or set it to 0",
			 (int)pid, scope);
	else
		snprintf(ret_text, len,
			 "not permitted to trace process %d, which has protected itself or is in "
			 "another namespace: use sudo, or grant CAP_SYS_PTRACE and "
			 "CAP_DAC_READ_SEARCH",
			 (int)pid);
}

static void explain_busy(pid_t pid, pid_t tracer, char *ret_text, size_t len)
{
	char name[64] = "";

	if (process_read_file(tracer, "comm", name, sizeof(name)) == 0)
		name[strcspn(name, "\n")] = '\0';
	process_clean_text(name); /* a program chooses its own name */
	snprintf(ret_text, len,
		 "process %d is already traced by pid %d%s%s%s: end that tracer, then try again",
		 (int)pid, (int)tracer, name[0] ? " (" : "", name, name[0] ? ")" : "");
}

static void explain_kind(pid_t pid, const struct failure *why, char *ret_text, size_t len)
{
	if (strcmp(why->step, PROCESS_IS_THREAD) == 0)
		snprintf(ret_text, len, "%d is a thread of process %d: give --pid %d", (int)pid,
			 (int)why->address, (int)why->address);
	else if (strcmp(why->step, PROCESS_IS_ZOMBIE) == 0)
		snprintf(ret_text, len,
			 "process %d is a zombie: it has ended, and its parent has not "
			 "reaped it",
			 (int)pid);
	else if (strcmp(why->step, PROCESS_IS_KERNEL) == 0)
		snprintf(ret_text, len, "%d is a kernel thread: it cannot run LuaJIT", (int)pid);
	else if (strcmp(why->step, PROCESS_IS_32_BIT) == 0)
		snprintf(ret_text, len,
			 "process %d is a 32-bit program: only 64-bit ones can be recorded",
			 (int)pid);
	else
		failure_describe(why, ret_text, len);
}

void attach_explain(pid_t pid, const struct failure *why, char *ret_text, size_t len)
{
	switch (why->kind) {
	case FAILURE_DENIED:
		explain_denied(pid, ret_text, len);
		break;
	case FAILURE_BUSY:
		explain_busy(pid, (pid_t)why->address, ret_text, len);
		break;
	case FAILURE_NOT_FOUND:
		explain_kind(pid, why, ret_text, len);
		break;
	case FAILURE_GONE:
		snprintf(ret_text, len, "there is no process %d: check the pid", (int)pid);
		break;
	default:
		failure_describe(why, ret_text, len);
		break;
	}
}
