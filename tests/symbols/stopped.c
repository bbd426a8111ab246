/* SPDX-License-Identifier: MIT */
#include "stopped.h"
#include "attach/thread.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define READY_TIMEOUT_MS 60000
#define STACK_MAX_BYTES	 ((uint64_t)1 << 20)
/** Below the stack pointer a leaf may use this much. Source: AMD64 ABI, 3.2.2. */
#define RED_ZONE_BYTES 128

/** Signal with which a thread last stopped; the tests stop one thread at a time. */
static int pending_signal;

pid_t stopped_spawn(const char *const *argv)
{
	int ends[2];
	pid_t pid;
	struct pollfd ready;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ends[1], STDOUT_FILENO);
		execvp(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	close(ends[1]);
	ready = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	assert_int_equal(poll(&ready, 1, READY_TIMEOUT_MS), 1);
	assert_true(ready.revents & POLLIN);
	close(ends[0]);
	return pid;
}

pid_t stopped_last_thread(pid_t pid)
{
	char path[64];
	pid_t last = pid;
	struct dirent *entry;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	assert_non_null(tasks);
	while ((entry = readdir(tasks)) != NULL) {
		if (atoi(entry->d_name) > last)
			last = atoi(entry->d_name);
	}
	closedir(tasks);
	return last;
}

void stopped_kill(pid_t pid)
{
	pid_t thread = stopped_last_thread(pid);

	kill(pid, SIGKILL);
	/* A traced thread has to be reaped before its process. */
	if (thread != pid)
		waitpid(thread, NULL, __WALL);
	waitpid(pid, NULL, __WALL);
}

bool stopped_seize(pid_t tid)
{
	return ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0;
}

void stopped_registers(pid_t tid, struct attach_registers *ret)
{
	struct failure why;

	assert_int_equal(attach_read_registers(tid, ret, &why), 0);
}

bool stopped_may_trace(const char *const *argv)
{
	pid_t pid = stopped_spawn(argv);
	bool may_trace = stopped_seize(pid);

	stopped_kill(pid);
	if (!may_trace)
		puts("skipped: tracing one's own child is not permitted here");
	return may_trace;
}

void stopped_stop(pid_t tid, struct attach_registers *ret_regs)
{
	int status;

	/* Where a signal was in the way of the last interrupt, that one stops the thread now.
	 * Another one would stop it again before it has gone on, and so on for ever. */
	if (waitpid(tid, &status, __WALL | WNOHANG) != tid) {
		assert_int_equal(ptrace(PTRACE_INTERRUPT, tid, NULL, NULL), 0);
		assert_int_equal(waitpid(tid, &status, __WALL), tid);
	}
	assert_true(WIFSTOPPED(status));
	pending_signal = status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
	stopped_registers(tid, ret_regs);
}

int stopped_step(struct symbols_unwinder *unwinder, struct failure *why)
{
	int result = symbols_unwind_step(unwinder, why);
	struct failure reason;

	if (result >= 0 || why->kind != FAILURE_NOT_FOUND)
		return result;
	result = symbols_unwind_step_frame_pointer(unwinder, &reason);
	return result >= 0 ? result : -1;
}

void stopped_go(pid_t tid)
{
	assert_int_equal(ptrace(PTRACE_CONT, tid, NULL, (void *)(intptr_t)pending_signal), 0);
}

static void copy_mapping(const struct symbols_mapping *mapping, uint64_t from,
			 const struct attach_reader *reader, struct attach_image *image)
{
	uint64_t len = mapping->end - from;
	struct failure why;
	uint8_t *bytes;

	if (len > STACK_MAX_BYTES)
		len = STACK_MAX_BYTES;
	bytes = malloc(len);
	assert_non_null(bytes);
	assert_int_equal(attach_read(reader, remote_addr_make(from), bytes, len, &why), 0);
	assert_int_equal(attach_image_add(image, remote_addr_make(from), bytes, len, &why), 0);
	free(bytes);
}

void stopped_copy_stack(struct symbols_space *space, const struct attach_reader *reader,
			const struct attach_registers *regs, struct attach_image *image)
{
	uint64_t from = attach_sp(regs) - RED_ZONE_BYTES;
	const struct symbols_mapping *stack;
	struct failure why;

	/* It may have grown since. */
	assert_true(symbols_space_refresh(space, &why) >= 0);
	stack = symbols_space_find(space, attach_sp(regs));
	attach_image_clear(image);
	assert_non_null(stack);
	copy_mapping(stack, from < stack->start ? stack->start : from, reader, image);
	/* A handler on its own stack interrupted the first one. */
	for (size_t i = 0; i < symbols_space_count(space); i++) {
		const struct symbols_mapping *mapping = symbols_space_get(space, i);

		if (strcmp(mapping->path, "[stack]") == 0 && mapping->start != stack->start)
			copy_mapping(mapping, mapping->start, reader, image);
	}
}
