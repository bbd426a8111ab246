/* SPDX-License-Identifier: MIT */
/*
 * Run a Lua program one instruction at a time and decode it at each: what a sampler meets once in
 * many hours, such as the one instruction in which a link is not stored yet, is met here. Between
 * the stretches it runs freely for a while, as one of them may lie in a collection. Usage: step
 * STEPS STRETCHES STREAM luajit FILE [ARGUMENT...] Prints the numbers of steps, of those inside the
 * interpreter, of those without a full chain; and of those in or below compiled code whose chain is
 * exact, approximate, and ends with the trace.
 */
#include "attach/freeze.h"
#include "tests/live/stream.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/decode/target.h"

enum {
	/* A free run between two stretches: some rounds of the program, or a collection. */
	RUN_LEAST_US = 500,
	RUN_MOST_US = 5000,
	/* Of the program's own time: what it compiles first is compiled then. */
	WARM_UP_NS = 100 * 1000 * 1000,
	POLL_US = 5000,
	/* Of all that is read in one run. */
	PAGES_MAX = 100000,
	/* On a busy machine all takes longer. */
	READY_MS = 60000,
};

struct stepper {
	pid_t pid;
	struct daemon_target *target;
	struct format_functions *functions;
	struct attach_image *image;
	struct attach_pages *pages;
	struct stream stream;
	long interpreter, partial, outside;
	long compiled[FORMAT_COMPILED_COUNT];
};

static int on_function(void *context, const struct format_function *function, uint32_t *ret_id,
		       struct failure *why)
{
	struct stepper *stepper = context;

	return format_functions_add(stepper->functions, function, ret_id, why);
}

/* Where that was, by the file, as addresses differ from run to run. */
static void tell_partial(const struct daemon_target *target, long number, uint64_t pc,
			 enum daemon_outcome outcome, const struct failure *why)
{
	const struct symbols_mapping *mapping = symbols_space_find(target->space, pc);
	char text[256] = "no failure";

	if (why->kind)
		failure_describe(why, text, sizeof(text));
	fprintf(stderr, "step %ld at 0x%llx of %s: %s, %zu VM frames, chain %d, state %d, %s\n",
		number, (unsigned long long)(mapping ? pc - mapping->start + mapping->offset : pc),
		mapping ? mapping->path : "no file", daemon_outcome_name(outcome),
		target->vm_frame_count, (int)target->chain.outcome, target->chain.state, text);
}

static void decode(struct stepper *stepper, long number)
{
	struct daemon_target *target = stepper->target;
	struct luastate_memory memory = { 0 };
	struct attach_registers *regs = attach_image_registers(stepper->image);
	struct format_sample sample = { .weight = 1 };
	enum daemon_outcome outcome;
	struct failure why = { 0 };

	attach_image_clear(stepper->image);
	attach_pages_forget(stepper->pages);
	attach_read_registers(stepper->pid, regs, &why);
	/* The process stands all the time. */
	memory.stopped = memory.any = attach_image_reader_behind(
		stepper->image, attach_pages_reader(stepper->pages), false);
	if (target_decode(target, stepper->image, &memory, &sample, &outcome, &why) != 0)
		stream_die("decode", &why);
	stepper->compiled[sample.compiled]++;
	stepper->interpreter += luastate_in_interpreter(target->lua, attach_pc(regs));
	if (outcome == DAEMON_FULL) {
		stream_put(&stepper->stream, &sample);
		return;
	}
	/* C code of a host may run between two calls of the VM. */
	if (outcome == DAEMON_NO_VM && sample.full &&
	    !luastate_in_interpreter(target->lua, attach_pc(regs))) {
		stepper->outside++;
		return;
	}
	stepper->partial++;
	tell_partial(target, number, attach_pc(regs), outcome, &why);
}

static bool wait_for_stop(pid_t pid)
{
	int status;

	return waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status);
}

static bool run_freely(struct stepper *stepper)
{
	struct failure why;

	if (ptrace(PTRACE_CONT, stepper->pid, NULL, NULL) != 0)
		return false;
	usleep((useconds_t)(RUN_LEAST_US + random() % (RUN_MOST_US - RUN_LEAST_US)));
	return ptrace(PTRACE_INTERRUPT, stepper->pid, NULL, NULL) == 0 &&
	       wait_for_stop(stepper->pid) && target_refresh(stepper->target, &why) == 0;
}

static long run(struct stepper *stepper, long steps, long stretches)
{
	const long stretch = steps / stretches;

	for (long i = 0; i < steps; i++) {
		if (i > 0 && i % stretch == 0 && !run_freely(stepper))
			return i;
		decode(stepper, i);
		if (ptrace(PTRACE_SINGLESTEP, stepper->pid, NULL, NULL) != 0 ||
		    !wait_for_stop(stepper->pid))
			return i;
	}
	return steps;
}

/* @return Whether the program has said that it is ready, which is all that it says. */
static bool wait_for_ready(int fd)
{
	static const char ready[] = "ready\n";
	struct pollfd said = { .fd = fd, .events = POLLIN };
	char text[sizeof(ready)] = "";
	size_t len = 0;
	ssize_t got;

	while (len < strlen(ready)) {
		if (poll(&said, 1, READY_MS) != 1)
			return false;
		got = read(fd, text + len, strlen(ready) - len);
		if (got <= 0)
			return false;
		len += (size_t)got;
	}
	return strcmp(text, ready) == 0;
}

/* The pipe stays open: what the program may still say is not to end it. */
static pid_t start(char **argv)
{
	struct failure why = { 0 };
	struct timespec used;
	clockid_t clock;
	int ends[2];
	pid_t pid;

	if (pipe(ends) != 0 || (pid = fork()) < 0)
		stream_die("start the program", &why);
	if (pid == 0) {
		if (dup2(ends[1], STDOUT_FILENO) < 0)
			_exit(127);
		close(ends[0]);
		close(ends[1]);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(ends[1]);
	if (!wait_for_ready(ends[0])) {
		kill(pid, SIGKILL);
		stream_die("the program did not start", &why);
	}
	while (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &used) == 0 &&
	       used.tv_sec == 0 && used.tv_nsec < WARM_UP_NS)
		usleep(POLL_US);
	return pid;
}

int main(int argc, char **argv)
{
	struct stepper stepper = { .functions = format_functions_create(),
				   .image = attach_image_create() };
	const struct target_listener listener = { .function = on_function, .context = &stepper };
	struct attach_process *process;
	struct failure why = { 0 };
	long steps, stretches, done;

	if (argc < 6)
		stream_die("usage: step STEPS STRETCHES STREAM luajit FILE", &why);
	steps = strtol(argv[1], NULL, 10);
	stretches = strtol(argv[2], NULL, 10);
	if (stretches < 1 || steps < stretches)
		stream_die("STEPS and STRETCHES", &why);
	stepper.pid = start(argv + 4);
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
	wait_for_stop(stepper.pid);
	stepper.pages = attach_pages_create(attach_process_reader(process), PAGES_MAX);
	if (!stepper.pages || target_find_vm(stepper.target, &why) != 0)
		stream_die("find the VM", &why);
	stream_open(&stepper.stream, argv[3], stepper.functions);
	done = run(&stepper, steps, stretches);
	stream_close(&stepper.stream);
	printf("%ld %ld %ld %ld %ld %ld %ld\n", done, stepper.interpreter, stepper.partial,
	       stepper.outside, stepper.compiled[FORMAT_COMPILED_EXACT],
	       stepper.compiled[FORMAT_COMPILED_APPROXIMATE],
	       stepper.compiled[FORMAT_COMPILED_TRACE]);
	kill(stepper.pid, SIGKILL);
	waitpid(stepper.pid, NULL, 0);
	target_destroy(stepper.target);
	attach_pages_destroy(stepper.pages);
	attach_process_close(process);
	attach_image_destroy(stepper.image);
	format_functions_destroy(stepper.functions);
	return 0;
}
