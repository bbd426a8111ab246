/* SPDX-License-Identifier: MIT */
#include "children.h"
#include "attach/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Tries of a first stop; each waits for 100 ms. */
enum { TRACE_TRIES = 50 };

/* Each byte of register n is n + 1, see CHILD_REGISTER. */
#if defined(__x86_64__)
__asm__(".text\n"
	".globl child_spin\n"
	".type child_spin, @function\n"
	"child_spin:\n"
	"	movabsq $0x0101010101010101, %rax\n"
	"	movabsq $0x0202020202020202, %rdx\n"
	"	movabsq $0x0303030303030303, %rcx\n"
	"	movabsq $0x0404040404040404, %rbx\n"
	"	movabsq $0x0505050505050505, %rsi\n"
	"	movabsq $0x0707070707070707, %rbp\n"
	"	movabsq $0x0909090909090909, %r8\n"
	"	movabsq $0x0a0a0a0a0a0a0a0a, %r9\n"
	"	movabsq $0x0b0b0b0b0b0b0b0b, %r10\n"
	"	movabsq $0x0c0c0c0c0c0c0c0c, %r11\n"
	"	movabsq $0x0d0d0d0d0d0d0d0d, %r12\n"
	"	movabsq $0x0e0e0e0e0e0e0e0e, %r13\n"
	"	movabsq $0x0f0f0f0f0f0f0f0f, %r14\n"
	"	movabsq $0x1010101010101010, %r15\n"
	".globl child_loop_begin\n"
	"child_loop_begin:\n"
	"	incq (%rdi)\n"
	"	jmp child_loop_begin\n"
	".globl child_loop_end\n"
	"child_loop_end:\n"
	".size child_spin, .-child_spin\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl child_spin\n"
	".type child_spin, %function\n"
	"child_spin:\n"
	"	.irp n, "
	"2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30\n"
	"	ldr x\\n, =0x0101010101010101 * (\\n + 1)\n"
	"	.endr\n"
	".globl child_loop_begin\n"
	"child_loop_begin:\n"
	"	ldr x1, [x0]\n"
	"	add x1, x1, #1\n"
	"	str x1, [x0]\n"
	"	b child_loop_begin\n"
	".globl child_loop_end\n"
	"child_loop_end:\n"
	"	.ltorg\n"
	".size child_spin, .-child_spin\n");
#endif

static _Noreturn void run_child(void (*run)(void *), void *argument)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* cmocka's handlers would go on with the tests. */
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	signal(SIGILL, SIG_DFL);
	signal(SIGFPE, SIG_DFL);
	run(argument);
	_exit(0);
}

pid_t child_start(void (*run)(void *), void *argument)
{
	pid_t pid = fork();

	if (pid == 0)
		run_child(run, argument);
	if (pid < 0)
		abort();
	return pid;
}

pid_t child_start_below(void (*run)(void *), void *argument, volatile int *ret_reaped)
{
	int ends[2];
	pid_t between, pid;

	if (pipe(ends) != 0)
		abort();
	between = fork();
	if (between == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pid = child_start(run, argument);
		if (write(ends[1], &pid, sizeof(pid)) != sizeof(pid) ||
		    waitpid(pid, NULL, 0) != pid)
			_exit(1);
		*ret_reaped = 1;
		pause();
		_exit(0);
	}
	if (between < 0 || read(ends[0], &pid, sizeof(pid)) != sizeof(pid))
		abort();
	close(ends[0]);
	close(ends[1]);
	return pid;
}

void child_end(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, __WALL) == pid || errno == EINTR)
		continue;
}

void *child_share(size_t size)
{
	void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (bytes == MAP_FAILED)
		abort();
	return bytes;
}

static bool read_status(pid_t tid, const char *field, char *ret_value, size_t size)
{
	char path[64], line[256];
	size_t len = strlen(field);
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file)) {
		found = strncmp(line, field, len) == 0 && line[len] == ':';
		if (found)
			snprintf(ret_value, size, "%.*s", (int)size - 1, line + len + 2);
	}
	if (file)
		fclose(file);
	return found;
}

char child_state(pid_t tid)
{
	char value[64];

	return read_status(tid, "State", value, sizeof(value)) ? value[0] : 0;
}

long child_field(pid_t tid, const char *field)
{
	char value[64];

	return read_status(tid, field, value, sizeof(value)) ? strtol(value, NULL, 10) : -1;
}

uint64_t child_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void child_nap_us(unsigned us)
{
	const struct timespec nap = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L };

	nanosleep(&nap, NULL);
}

static uint64_t deadline(void)
{
	return child_now_ns() + (uint64_t)CHILD_DEADLINE_MS * 1000000;
}

bool child_await_state(pid_t tid, const char *states)
{
	for (uint64_t end = deadline(); child_now_ns() < end; child_nap_us(200)) {
		char state = child_state(tid);

		if (state && strchr(states, state))
			return true;
	}
	return false;
}

bool child_await(const volatile uint64_t *number, uint64_t least)
{
	for (uint64_t end = deadline(); child_now_ns() < end; child_nap_us(100))
		if (*number >= least)
			return true;
	return false;
}

bool child_is_free(pid_t tid)
{
	for (uint64_t end = deadline(); child_now_ns() < end; child_nap_us(200)) {
		char state = child_state(tid);

		if (state && state != 't' && state != 'T' && child_field(tid, "TracerPid") == 0)
			return true;
	}
	return false;
}

static bool plan_nothing(void *context, struct attach_image *image, unsigned round)
{
	(void)context;
	(void)image;
	(void)round;
	return false;
}

bool child_can_trace(void)
{
	const struct attach_planner planner = { .plan = plan_nothing };
	uint64_t *counter = child_share(sizeof(*counter));
	struct attach_image *image = attach_image_create();
	pid_t pid = child_start(child_spin, counter);
	struct attach_process *process = NULL;
	struct attach_thread thread = { .tid = pid, .syscall_fd = -1 };
	struct attach_timing timing;
	struct failure why;
	char text[256];
	bool is_open = attach_process_open(pid, &process, &why) == 0, can = false;

	/* A busy machine may not let it come to its stop in time. */
	for (int tries = 0; is_open && !can && tries < TRACE_TRIES; tries++) {
		can = attach_capture(process, &thread, &planner, image, &timing, &why) == 0;
		if (!can && why.kind != FAILURE_TIMEOUT)
			break;
	}
	if (!can) {
		attach_explain(pid, &why, text, sizeof(text));
		printf("skipped: %s\n", text);
	}
	attach_process_close(process);
	attach_image_destroy(image);
	child_end(pid);
	munmap(counter, sizeof(*counter));
	return can;
}
