/* SPDX-License-Identifier: MIT */
/* Which registers has a stopped thread, and what do they say about the stop? */
#include "attach/process/process_internal.h"
#include "attach/thread/thread_internal.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)

/*
 * Results inside the kernel: whether and how a call restarts after signals.
 * Source: Linux 6.1, include/linux/errno.h.
 */
enum {
	ERESTARTSYS = 512,
	ERESTARTNOINTR = 513,
	ERESTARTNOHAND = 514, /* a handler makes it EINTR */
	ERESTART_RESTARTBLOCK = 516,
};

static void take_registers(const struct user_regs_struct *user, struct attach_registers *ret)
{
	*ret = (struct attach_registers){
		.r = { user->rax, user->rdx, user->rcx, user->rbx, user->rsi, user->rdi, user->rbp,
		       user->rsp, user->r8, user->r9, user->r10, user->r11, user->r12, user->r13,
		       user->r14, user->r15, user->rip },
		.syscall = (int64_t)user->orig_rax,
	};
}

/* The kernel has put the call's result into rax, and restarts the call after the stop. */
bool attach_was_interrupted(const struct attach_reader *reader, const struct attach_registers *regs)
{
	int64_t rax = (int64_t)regs->r[ATTACH_REG_RAX];

	(void)reader;
	return regs->syscall >= 0 &&
	       (rax == -EINTR || rax == -ERESTARTSYS || rax == -ERESTARTNOINTR ||
		rax == -ERESTARTNOHAND || rax == -ERESTART_RESTARTBLOCK);
}

/* Calls that wait, and return EINTR only if they have consumed nothing and their timeout has not
 * expired. */
static bool is_wait(int64_t syscall)
{
	switch (syscall) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_rt_sigtimedwait:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_io_getevents:
		return true;
	default:
		return false;
	}
}

static bool is_socket(pid_t tid, uint64_t fd)
{
	char path[64], name[16];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)tid, (int)fd);
	return readlink(path, name, sizeof(name)) > 7 && memcmp(name, "socket:", 7) == 0;
}

/* Calls that wait on a socket. With a timeout they return EINTR also when it has expired. Calls
 * that send are not listed. Neither are connect(2) and close(2): they have done their work when
 * they return EINTR. */
static bool is_socket_wait(pid_t tid, const struct attach_registers *regs)
{
	switch (regs->syscall) {
	case SYS_accept:
	case SYS_accept4:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
		return true;
	case SYS_read: /* on other files we cannot know what it has done */
	case SYS_readv:
		return is_socket(tid, regs->r[ATTACH_REG_RDI]);
	default:
		return false;
	}
}

/* The 32-bit entries into the kernel number calls differently. */
static bool is_syscall_instruction(pid_t tid, uint64_t address)
{
	const uint8_t code[] = { 0x0f, 0x05 };
	long word;

	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, tid, address, NULL);
	return errno == 0 && memcmp(&word, code, sizeof(code)) == 0;
}

/* A seccomp filter may forbid restart_syscall(2), by which the kernel continues a wait, and kill
 * the process for it. The field follows the list of groups, which may be long. */
static bool is_filtered(pid_t tid)
{
	char status[65536], value[16];

	return process_read_file(tid, "status", status, sizeof(status)) == 0 &&
	       process_status_field(status, "Seccomp", value, sizeof(value)) && value[0] != '0';
}

/* Whether we must restart the call, because the kernel would not, or would do it by
 * restart_syscall(2). */
static bool begins_again(pid_t tid, const struct attach_registers *regs, bool is_prompt)
{
	int64_t result = (int64_t)regs->r[ATTACH_REG_RAX];

	if (regs->syscall < 0)
		return false;
	if (result == -EINTR)
		return is_wait(regs->syscall) || (is_prompt && is_socket_wait(tid, regs));
	return result == -ERESTART_RESTARTBLOCK && is_filtered(tid);
}

void registers_restart_wait(pid_t tid, int status, const struct attach_registers *regs,
			    bool is_prompt)
{
	bool group_stop = status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) != SIGTRAP;

	/* SIGSTOP ends these calls without us, too. */
	if (!group_stop && begins_again(tid, regs, is_prompt) &&
	    is_syscall_instruction(tid, regs->r[ATTACH_REG_RIP] - 2))
		ptrace(PTRACE_POKEUSER, tid, offsetof(struct user, regs.rax),
		       -(int64_t)ERESTARTNOHAND);
}

#elif defined(__aarch64__)

static void take_registers(const struct user_regs_struct *user, struct attach_registers *ret)
{
	for (int i = 0; i < ATTACH_REG_SP; i++)
		ret->r[i] = user->regs[i];
	ret->r[ATTACH_REG_SP] = user->sp;
	ret->r[ATTACH_REG_PC] = user->pc;
	ret->syscall = -1;
}

/*
 * The kernel forgets that the thread was in a system call before the thread stops. A call that
 * restarts has its pc at the svc instruction again. Any other call has a result, and the pc after
 * that instruction. A thread that stopped right before a call looks like a restart; this is one
 * instruction, and does no harm.
 */
bool attach_was_interrupted(const struct attach_reader *reader, const struct attach_registers *regs)
{
	const uint32_t svc = 0xd4000001;
	struct failure why;
	uint32_t code[2];

	if (attach_read(reader, remote_addr_make(attach_pc(regs) - 4), code, sizeof(code), &why))
		return false;
	return code[1] == svc || (code[0] == svc && (int64_t)regs->r[ATTACH_REG_X0] == -EINTR);
}

void registers_restart_wait(pid_t tid, int status, const struct attach_registers *regs,
			    bool is_prompt)
{
	(void)tid;
	(void)status;
	(void)regs;
	(void)is_prompt;
}

#endif

void registers_undo_stop(pid_t tid, int status)
{
	struct attach_registers registers;
	struct failure why;

	if (WIFSTOPPED(status) && attach_read_registers(tid, &registers, &why) == 0)
		registers_restart_wait(tid, status, &registers, false);
}

int attach_decode_registers(const void *bytes, size_t len, struct attach_registers *ret_registers,
			    struct failure *why)
{
	struct user_regs_struct user;

	if (len != sizeof(user))
		return failure_set(why, FAILURE_INVALID, 0, 0, 0,
				   "read the registers of a 32-bit process");
	memcpy(&user, bytes, sizeof(user));
	take_registers(&user, ret_registers);
	return 0;
}

int attach_read_registers(pid_t tid, struct attach_registers *ret_registers, struct failure *why)
{
	struct user_regs_struct user;
	struct iovec iov = { .iov_base = &user, .iov_len = sizeof(user) };

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &iov) != 0)
		return failure_set_errno(why, errno, tid, "read the registers");
	if (iov.iov_len != sizeof(user))
		return failure_set(why, FAILURE_INVALID, 0, tid, 0,
				   "read the registers of a 32-bit process");
	take_registers(&user, ret_registers);
	return 0;
}
