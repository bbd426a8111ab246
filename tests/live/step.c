/* SPDX-License-Identifier: MIT */
/*
 * Run a Lua program one instruction at a time and decode it at each: what a sampler meets once in
 * many hours, such as the one instruction in which a link is not stored yet, is met here.
 * Usage: step STEPS STREAM luajit FILE [ARGUMENT...]
 * Prints the numbers of steps, of those inside the interpreter, and of those without a full chain.
 */
#include "tests/live/stream.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/target.h"

struct stepper {
	pid_t pid;
	struct daemon_target *target;
	struct format_functions *functions;
	struct attach_image *image;
	struct stream stream;
	long interpreter, partial;
};

static int on_function(void *context, uint32_t id, const struct format_function *function,
		       struct failure *why)
{
	struct stepper *stepper = context;
	uint32_t given;

	(void)id;
	return format_functions_add(stepper->functions, function, &given, why);
}

static void read_registers(pid_t pid, struct attach_registers *ret_registers)
{
	struct user_regs_struct user;
	struct iovec iov = { .iov_base = &user, .iov_len = sizeof(user) };
	const unsigned long long *from[ATTACH_REG_COUNT] = {
		&user.rax, &user.rdx, &user.rcx, &user.rbx, &user.rsi, &user.rdi,
		&user.rbp, &user.rsp, &user.r8,	 &user.r9,  &user.r10, &user.r11,
		&user.r12, &user.r13, &user.r14, &user.r15, &user.rip,
	};

	ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &iov);
	for (int i = 0; i < ATTACH_REG_COUNT; i++)
		ret_registers->r[i] = *from[i];
	ret_registers->syscall = (int64_t)user.orig_rax;
}

static void decode(struct stepper *stepper, long number)
{
	struct daemon_target *target = stepper->target;
	struct luastate_memory memory;
	struct attach_registers *regs = attach_image_registers(stepper->image);
	struct format_sample sample = { .weight = 1 };
	enum daemon_outcome outcome;
	struct failure why = { 0 };

	attach_image_clear(stepper->image);
	read_registers(stepper->pid, regs);
	/* The process stands all the time. */
	memory.stopped = memory.any = attach_image_reader_behind(
		stepper->image, attach_process_reader(target->process), false);
	if (target_decode(target, stepper->image, &memory, &sample, &outcome, &why) != 0)
		stream_die("decode", &why);
	stepper->interpreter += luastate_in_interpreter(target->lua, attach_pc(regs));
	if (outcome == DAEMON_FULL) {
		stream_put(&stepper->stream, &sample);
		return;
	}
	stepper->partial++;
	fprintf(stderr, "step %ld at pc 0x%llx: %s\n", number, (unsigned long long)attach_pc(regs),
		daemon_outcome_name(outcome));
}

static long run(struct stepper *stepper, long steps)
{
	int status;

	for (long i = 0; i < steps; i++) {
		decode(stepper, i);
		if (ptrace(PTRACE_SINGLESTEP, stepper->pid, NULL, NULL) != 0 ||
		    waitpid(stepper->pid, &status, __WALL) != stepper->pid || !WIFSTOPPED(status))
			return i;
	}
	return steps;
}

static pid_t start(char **argv)
{
	pid_t pid = fork();

	if (pid == 0) {
		/* The program says when it is ready, for people; here its output is in the way. */
		if (!freopen("/dev/null", "w", stdout))
			_exit(127);
		execvp(argv[0], argv);
		_exit(127);
	}
	usleep(300 * 1000);
	return pid;
}

int main(int argc, char **argv)
{
	struct stepper stepper = { .functions = format_functions_create(),
				   .image = attach_image_create() };
	const struct target_listener listener = { .function = on_function, .context = &stepper };
	struct attach_process *process;
	struct failure why = { 0 };
	long steps, done;
	int status;

	if (argc < 5)
		stream_die("usage: step STEPS STREAM luajit FILE", &why);
	steps = strtol(argv[1], NULL, 10);
	stepper.pid = start(argv + 3);
	if (attach_process_open(stepper.pid, &process, &why) != 0 ||
	    target_create(process, &listener, &stepper.target, &why) != 0 ||
	    target_refresh(stepper.target, &why) != 0)
		stream_die("open", &why);
	if (ptrace(PTRACE_SEIZE, stepper.pid, NULL, NULL) != 0) {
		printf("skipped: ptrace is not permitted: %s\n", strerror(errno));
		kill(stepper.pid, SIGKILL);
		return 77;
	}
	ptrace(PTRACE_INTERRUPT, stepper.pid, NULL, NULL);
	waitpid(stepper.pid, &status, __WALL);
	if (target_find_vm(stepper.target, &why) != 0)
		stream_die("find the VM", &why);
	stream_open(&stepper.stream, argv[2], stepper.functions);
	done = run(&stepper, steps);
	stream_close(&stepper.stream);
	printf("%ld %ld %ld\n", done, stepper.interpreter, stepper.partial);
	kill(stepper.pid, SIGKILL);
	waitpid(stepper.pid, NULL, 0);
	target_destroy(stepper.target);
	attach_image_destroy(stepper.image);
	format_functions_destroy(stepper.functions);
	return 0;
}
