/* SPDX-License-Identifier: MIT */
/* One stop: what it reads, and how it leaves the target. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/attach.h"
#include "children.h"

#define PAGE 4096
/** Within this a stop in vain has to end: the module's own bound is 100 ms. */
#define STOP_BOUND_NS ((uint64_t)5000 * 1000000)

/** A processor that somebody else uses for 100 ms is no fault of ours, if it is rare. */
#define TIMEOUTS_MAX 2

/** A target, opened. */
struct target {
	pid_t pid;
	struct attach_process *process;
	struct attach_thread thread;
	struct attach_image *image;
	struct attach_timing timing;
	struct failure why;
};

static void open_target(struct target *target, pid_t pid)
{
	*target = (struct target){ .pid = pid, .thread = { .tid = pid, .syscall_fd = -1 } };
	assert_int_equal(0, attach_process_open(pid, &target->process, &target->why));
	target->image = attach_image_create();
	assert_non_null(target->image);
}

static void close_target(struct target *target)
{
	attach_image_destroy(target->image);
	attach_process_close(target->process);
}

static int capture(struct target *target, bool (*plan)(void *, struct attach_image *, unsigned),
		   void *context)
{
	const struct attach_planner planner = { .plan = plan, .context = context };

	return attach_capture(target->process, &target->thread, &planner, target->image,
			      &target->timing, &target->why);
}

static void settle(struct attach_thread *thread)
{
	for (int i = 0; i < 5000 && attach_thread_settle(thread) != 0; i++)
		child_nap_us(1000);
	assert_int_equal(0, attach_thread_settle(thread));
}

/* A capture that has to succeed. */
static void expect_capture(struct target *target,
			   bool (*plan)(void *, struct attach_image *, unsigned), void *context)
{
	int ret = capture(target, plan, context);
	char text[200];

	for (int i = 0; i < TIMEOUTS_MAX && ret != 0 && target->why.kind == FAILURE_TIMEOUT; i++) {
		settle(&target->thread);
		ret = capture(target, plan, context);
	}
	if (ret != 0) {
		failure_describe(&target->why, text, sizeof(text));
		fail_msg("%s", text);
	}
}

static bool plan_nothing(void *context, struct attach_image *image, unsigned round)
{
	(void)context;
	(void)image;
	(void)round;
	return false;
}

static pid_t start_spinning(volatile uint64_t **ret_counter)
{
	uint64_t *counter = child_share(sizeof(*counter));
	pid_t pid = child_start(child_spin, counter);

	assert_true(child_await(counter, 1));
	*ret_counter = counter;
	return pid;
}

/* Free, running, and counting on. */
static void expect_untouched(pid_t pid, const volatile uint64_t *counter)
{
	assert_true(child_is_free(pid));
	assert_true(child_await(counter, *counter + 1));
}

/* ---- What a stop reads ------------------------------------------------------------------ */

static void test_registers(void **state)
{
	/* Not the address of a variable: a sanitizer may keep those elsewhere. */
	const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
	volatile uint64_t *counter;
	struct target target;
	pid_t pid = start_spinning(&counter);
	const struct attach_registers *regs;

	(void)state;
	open_target(&target, pid);
	for (int i = 0; i < 100; i++) {
		expect_capture(&target, plan_nothing, NULL);
		regs = attach_image_registers(target.image);
		assert_in_range(attach_pc(regs), (uintptr_t)child_loop_begin,
				(uintptr_t)child_loop_end - 1);
		assert_in_range(attach_sp(regs), frame - (1 << 20), frame);
		assert_int_equal(-1, regs->syscall);
		for (unsigned r = 0; r < ATTACH_REG_RIP; r++) {
			if (r == ATTACH_REG_RDI)
				assert_int_equal((uintptr_t)counter, regs->r[r]);
			else if (r != ATTACH_REG_RSP)
				assert_int_equal(CHILD_REGISTER(r), regs->r[r]);
		}
		assert_true(target.timing.stop_ns <= target.timing.stopped_ns);
		assert_false(target.thread.stop_pending);
	}
	expect_untouched(pid, counter);
	child_end(pid);
	close_target(&target);
}

/** A chain of three pointers; each round follows one. */
struct chain {
	struct remote_addr first;
	unsigned rounds;
	bool content_seen;
};

static bool plan_chain(void *context, struct attach_image *image, unsigned round)
{
	struct chain *chain = context;
	struct remote_addr at = chain->first;
	struct failure why;

	assert_int_equal(chain->rounds++, round);
	/* Registers are there in the first round. */
	assert_true(attach_pc(attach_image_registers(image)) != 0);
	for (unsigned i = 0; i < round; i++) {
		size_t len;
		const void *bytes = attach_image_peek(image, at, sizeof(at), &len);

		chain->content_seen = bytes && len == sizeof(at);
		if (!chain->content_seen)
			return false;
		memcpy(&at, bytes, sizeof(at));
	}
	attach_image_want(image, at, sizeof(at), &why);
	return true; /* for ever: the module bounds it */
}

static void test_rounds(void **state)
{
	static uint64_t links[8];
	volatile uint64_t *counter;
	struct target target;
	struct chain chain = { .first = remote_addr_make((uintptr_t)&links[0]) };
	pid_t pid;

	(void)state;
	for (size_t i = 0; i < 8; i++)
		links[i] = (uintptr_t)&links[(i + 1) % 8];
	pid = start_spinning(&counter);
	open_target(&target, pid);
	expect_capture(&target, plan_chain, &chain);
	assert_true(chain.content_seen);
	assert_in_range(chain.rounds, 3, 8);
	expect_untouched(pid, counter);
	child_end(pid);
	close_target(&target);
}

/** Ranges of a mapping in which every second page is missing. */
struct stripes {
	uint8_t *pages;
	unsigned count;
};

static bool plan_stripes(void *context, struct attach_image *image, unsigned round)
{
	const struct stripes *stripes = context;
	struct failure why;

	(void)round;
	attach_image_want(image, remote_addr_make(0), 8, &why);
	for (unsigned i = 0; i < stripes->count; i++)
		attach_image_want(image, remote_addr_make((uintptr_t)stripes->pages + i * PAGE),
				  PAGE, &why);
	/* One that runs into a missing page, and one at the far end of memory. */
	attach_image_want(image, remote_addr_make((uintptr_t)stripes->pages + 100), PAGE, &why);
	attach_image_want(image, remote_addr_make(UINT64_MAX - 64), 64, &why);
	attach_image_want(image, remote_addr_make((uintptr_t)stripes->pages + 2 * PAGE), 16, &why);
	return false;
}

/* Unreadable ranges cost themselves and no others, in any number and place. */
static void test_faults(void **state)
{
	/* More than fit into one call to the kernel. */
	struct stripes stripes = { .count = 300 };
	volatile uint64_t *counter;
	struct target target;
	const struct attach_reader *reader;
	uint8_t got[PAGE];
	struct failure why;
	pid_t pid;

	(void)state;
	stripes.pages = mmap(NULL, stripes.count * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (unsigned i = 0; i < stripes.count; i++) {
		memset(stripes.pages + i * PAGE, (int)i, PAGE);
		if (i % 2)
			munmap(stripes.pages + i * PAGE, PAGE);
	}
	pid = start_spinning(&counter);
	open_target(&target, pid);
	expect_capture(&target, plan_stripes, &stripes);
	reader = attach_image_reader(target.image);
	for (unsigned i = 0; i < stripes.count; i++) {
		uint8_t *page = stripes.pages + i * PAGE;
		int ret = attach_read(reader, remote_addr_make((uintptr_t)page), got, PAGE, &why);

		assert_int_equal(i % 2 ? -1 : 0, ret);
		if (ret == 0)
			assert_memory_equal(page, got, PAGE);
		else
			assert_int_equal((uintptr_t)page, why.address);
	}
	/* What came before the fault is kept, to the byte. */
	assert_int_equal(-1, attach_read(reader, remote_addr_make((uintptr_t)stripes.pages + 100),
					 got, PAGE, &why));
	assert_int_equal((uintptr_t)stripes.pages + PAGE, why.address);
	expect_untouched(pid, counter);
	child_end(pid);
	close_target(&target);
	munmap(stripes.pages, stripes.count * PAGE);
}

/* Ranges asked for afterwards are read with the thread running. */
static void test_fetch(void **state)
{
	static const char known[] = "known bytes";
	const struct remote_addr at = remote_addr_make((uintptr_t)known);
	volatile uint64_t *counter;
	struct target target;
	pid_t pid = start_spinning(&counter);
	size_t len;

	(void)state;
	open_target(&target, pid);
	expect_capture(&target, plan_nothing, NULL);
	assert_int_equal(0, attach_process_fetch(target.process, target.image, &target.why));
	attach_image_want(target.image, remote_addr_make(0x10), 8, &target.why);
	attach_image_want(target.image, at, sizeof(known), &target.why);
	assert_int_equal(0, attach_process_fetch(target.process, target.image, &target.why));
	assert_string_equal(known, attach_image_peek(target.image, at, sizeof(known), &len));
	assert_null(attach_image_peek(target.image, remote_addr_make(0x10), 8, &len));
	expect_untouched(pid, counter);
	child_end(pid);
	attach_image_want(target.image, at, 1, &target.why);
	assert_int_equal(-1, attach_process_fetch(target.process, target.image, &target.why));
	assert_int_equal(FAILURE_GONE, target.why.kind);
	close_target(&target);
}

/* The image's earlier content is gone, whatever becomes of the capture. */
static void test_image_is_cleared(void **state)
{
	static const uint64_t known = 42;
	volatile uint64_t *counter;
	struct target target;
	pid_t pid = start_spinning(&counter);
	size_t len;

	(void)state;
	open_target(&target, pid);
	attach_image_add(target.image, remote_addr_make(0x1000), &known, sizeof(known),
			 &target.why);
	expect_capture(&target, plan_nothing, NULL);
	assert_null(attach_image_peek(target.image, remote_addr_make(0x1000), 1, &len));
	child_end(pid);
	attach_image_add(target.image, remote_addr_make(0x1000), &known, sizeof(known),
			 &target.why);
	assert_int_equal(-1, capture(&target, plan_nothing, NULL));
	assert_int_equal(FAILURE_GONE, target.why.kind);
	assert_null(attach_image_peek(target.image, remote_addr_make(0x1000), 1, &len));
	close_target(&target);
}

/* ---- Other tracers, and threads that do not stop ---------------------------------------- */

static void trace_for_ever(void *argument)
{
	ptrace(PTRACE_SEIZE, *(pid_t *)argument, NULL, NULL);
	for (;;)
		pause();
}

static void test_busy(void **state)
{
	volatile uint64_t *counter;
	struct target target;
	pid_t pid = start_spinning(&counter), tracer;

	(void)state;
	open_target(&target, pid);
	tracer = child_start(trace_for_ever, &pid);
	while (child_field(pid, "TracerPid") == 0)
		child_nap_us(100);
	assert_int_equal(-1, capture(&target, plan_nothing, NULL));
	assert_int_equal(FAILURE_BUSY, target.why.kind);
	assert_int_equal(tracer, target.why.address);
	assert_int_equal(tracer, child_field(pid, "TracerPid"));
	child_end(tracer);
	expect_capture(&target, plan_nothing, NULL);
	expect_untouched(pid, counter);
	child_end(pid);
	close_target(&target);
}

/* A parent in vfork(2) waits uninterruptibly until its child is through. */
static void fork_slowly(void *argument)
{
	volatile uint64_t *numbers = argument;

	numbers[1] = 1;
	if (vfork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (!numbers[2])
			continue;
		_exit(0);
	}
	child_spin(argument);
}

static void test_timeout(void **state)
{
	volatile uint64_t *numbers = child_share(4 * sizeof(*numbers));
	pid_t pid = child_start(fork_slowly, (void *)(uintptr_t)numbers);
	struct target target;
	uint64_t begin_ns;

	(void)state;
	open_target(&target, pid);
	assert_true(child_await(&numbers[1], 1));
	assert_true(child_await_state(pid, "D"));
	assert_int_equal(0, attach_thread_settle(&target.thread));
	begin_ns = child_now_ns();
	assert_int_equal(-1, capture(&target, plan_nothing, NULL));
	assert_true(child_now_ns() - begin_ns < STOP_BOUND_NS);
	assert_int_equal(FAILURE_TIMEOUT, target.why.kind);
	assert_true(target.thread.stop_pending);
	/* Never twice at once. */
	assert_int_equal(-1, attach_thread_settle(&target.thread));
	assert_int_equal(-1, capture(&target, plan_nothing, NULL));
	assert_int_equal(FAILURE_TIMEOUT, target.why.kind);
	numbers[2] = 1;
	assert_true(child_await_state(pid, "t"));
	assert_int_equal(0, attach_thread_settle(&target.thread));
	assert_false(target.thread.stop_pending);
	assert_true(child_await(&numbers[0], 1));
	expect_untouched(pid, numbers);
	expect_capture(&target, plan_nothing, NULL);
	child_end(pid);
	close_target(&target);
}

/* ---- Stopped targets -------------------------------------------------------------------- */

static void test_group_stop_stays(void **state)
{
	volatile uint64_t *counter;
	struct target target;
	pid_t pid = start_spinning(&counter);
	int status;

	(void)state;
	open_target(&target, pid);
	kill(pid, SIGSTOP);
	assert_int_equal(pid, waitpid(pid, &status, WUNTRACED));
	assert_true(WIFSTOPPED(status));
	for (int i = 0; i < 20; i++) {
		uint64_t before = *counter;

		expect_capture(&target, plan_nothing, NULL);
		assert_in_range(attach_pc(attach_image_registers(target.image)),
				(uintptr_t)child_loop_begin, (uintptr_t)child_loop_end - 1);
		assert_true(child_await_state(pid, "T"));
		assert_int_equal(0, child_field(pid, "TracerPid"));
		child_nap_us(1000);
		assert_int_equal(before, *counter);
	}
	kill(pid, SIGCONT);
	expect_untouched(pid, counter);
	expect_capture(&target, plan_nothing, NULL);
	expect_untouched(pid, counter);
	child_end(pid);
	close_target(&target);
}

/** A signal that is sent while the thread stands. */
struct sending {
	pid_t pid;
	int number;
};

static bool plan_signal(void *context, struct attach_image *image, unsigned round)
{
	const struct sending *sending = context;

	(void)image;
	(void)round;
	kill(sending->pid, sending->number);
	return false;
}

static void test_stop_and_go_on_during_a_capture(void **state)
{
	volatile uint64_t *counter;
	struct target target;
	pid_t pid = start_spinning(&counter);
	/* Not SIGTSTP: an orphaned process group, as of a job without a terminal, ignores it. */
	struct sending stop = { pid, SIGSTOP }, go = { pid, SIGCONT };

	(void)state;
	open_target(&target, pid);
	for (int i = 0; i < 20; i++) {
		expect_capture(&target, plan_signal, &stop);
		assert_true(child_await_state(pid, "T"));
		assert_int_equal(0, child_field(pid, "TracerPid"));
		expect_capture(&target, plan_signal, &go);
		expect_untouched(pid, counter);
	}
	child_end(pid);
	close_target(&target);
}

/* Numbers of one child that counts signals, in shared memory. */
static volatile uint64_t *volatile handled;

static void count_signal(int number)
{
	(void)number;
	handled[1]++;
}

static void spin_with_handler(void *argument)
{
	handled = argument;
	signal(SIGUSR1, count_signal);
	child_spin(argument);
}

static void test_signal_during_a_capture(void **state)
{
	volatile uint64_t *numbers = child_share(2 * sizeof(*numbers));
	pid_t pid = child_start(spin_with_handler, (void *)(uintptr_t)numbers);
	struct sending sending = { pid, SIGUSR1 };
	struct target target;

	(void)state;
	assert_true(child_await(numbers, 1));
	open_target(&target, pid);
	for (uint64_t i = 1; i <= 200; i++) {
		expect_capture(&target, plan_signal, &sending);
		assert_true(child_await(&numbers[1], i));
		assert_int_equal(i, numbers[1]);
	}
	expect_untouched(pid, numbers);
	child_end(pid);
	close_target(&target);
}

/* ---- Ends ------------------------------------------------------------------------------- */

static bool plan_kill(void *context, struct attach_image *image, unsigned round)
{
	const struct sending *sending = context;
	struct failure why;

	(void)round;
	kill(sending->pid, SIGKILL);
	child_nap_us(20000);
	attach_image_want(image, remote_addr_make((uintptr_t)context), 8, &why);
	return false;
}

/* Killed while it stands: its parent learns of it although we, the tracer, live on. */
static void test_killed_during_a_capture(void **state)
{
	uint64_t *counter = child_share(sizeof(*counter));
	volatile int *reaped = child_share(sizeof(*reaped));
	pid_t pid = child_start_below(child_spin, counter, reaped);
	struct sending sending = { pid, SIGKILL };
	struct target target;

	(void)state;
	assert_true(child_await(counter, 1));
	open_target(&target, pid);
	if (capture(&target, plan_kill, &sending) != 0)
		assert_int_equal(FAILURE_GONE, target.why.kind);
	settle(&target.thread);
	for (int i = 0; i < 5000 && !*reaped; i++)
		child_nap_us(1000);
	assert_true(*reaped);
	assert_int_equal(-1, capture(&target, plan_nothing, NULL));
	assert_int_equal(FAILURE_GONE, target.why.kind);
	close_target(&target);
}

/** A process of which one thread is captured while another one calls exec. */
struct execution {
	uint64_t counter;
	volatile uint64_t exec_now, spinner;
};

static void *spin_thread(void *argument)
{
	struct execution *execution = argument;

	execution->spinner = (uint64_t)syscall(SYS_gettid);
	child_spin(&execution->counter);
	return NULL;
}

static void *exec_thread(void *argument)
{
	struct execution *execution = argument;

	while (!execution->exec_now)
		child_nap_us(200);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* of this thread */
	execl("/bin/sleep", "sleep", "1000", (char *)NULL);
	_exit(1);
}

static void exec_beside_spinning_worker(void *argument)
{
	pthread_t thread;

	pthread_create(&thread, NULL, spin_thread, argument);
	exec_thread(argument);
}

static void exec_beside_spinning_main(void *argument)
{
	pthread_t thread;

	pthread_create(&thread, NULL, exec_thread, argument);
	spin_thread(argument);
}

static bool plan_exec(void *context, struct attach_image *image, unsigned round)
{
	struct execution *execution = context;

	(void)image;
	(void)round;
	execution->exec_now = 1;
	child_nap_us(50000);
	return false;
}

/* exec(2) ends all other threads and waits for them: one that we hold must not stay unreaped. */
static void check_exec(void (*run)(void *))
{
	struct execution *execution = child_share(sizeof(*execution));
	pid_t pid = child_start(run, execution);
	struct target target;

	assert_true(child_await(&execution->counter, 1));
	open_target(&target, pid);
	target.thread.tid = (pid_t)execution->spinner;
	if (capture(&target, plan_exec, execution) != 0)
		assert_int_equal(FAILURE_GONE, target.why.kind);
	settle(&target.thread);
	/* The new program sleeps; the old one never did for long. */
	for (int i = 0; i < 5000 && attach_process_fate(target.process) == ATTACH_FATE_SAME; i++)
		child_nap_us(1000);
	assert_int_equal(ATTACH_FATE_EXEC, attach_process_fate(target.process));
	assert_true(child_is_free(pid));
	child_end(pid);
	close_target(&target);
}

static void test_exec_ends_a_captured_worker(void **state)
{
	(void)state;
	check_exec(exec_beside_spinning_worker);
}

static void test_exec_ends_a_captured_main_thread(void **state)
{
	(void)state;
	check_exec(exec_beside_spinning_main);
}

static void end_on_request(void *argument)
{
	volatile uint64_t *numbers = argument;

	for (uint64_t i = 0; !numbers[1]; i++)
		numbers[0] = i;
}

/* A target that ends by itself under captures: the end is told and nothing hangs. */
static void test_exit_under_captures(void **state)
{
	(void)state;
	for (int i = 0; i < 50; i++) {
		volatile uint64_t *numbers = child_share(2 * sizeof(*numbers));
		volatile int *reaped = child_share(sizeof(*reaped));
		pid_t pid = child_start_below(end_on_request, (void *)(uintptr_t)numbers, reaped);
		struct target target;
		int ret = 0;

		assert_true(child_await(numbers, 1));
		open_target(&target, pid);
		for (int k = 0; k < 1000000 && ret == 0; k++) {
			ret = capture(&target, plan_nothing, NULL);
			if (k == i)
				numbers[1] = 1;
		}
		assert_int_equal(-1, ret);
		assert_int_equal(FAILURE_GONE, target.why.kind);
		settle(&target.thread);
		for (int k = 0; k < 5000 && !*reaped; k++)
			child_nap_us(1000);
		assert_true(*reaped);
		close_target(&target);
		munmap((void *)(uintptr_t)numbers, 2 * sizeof(*numbers));
		munmap((void *)(uintptr_t)reaped, sizeof(*reaped));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registers),
		cmocka_unit_test(test_rounds),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_fetch),
		cmocka_unit_test(test_image_is_cleared),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_group_stop_stays),
		cmocka_unit_test(test_stop_and_go_on_during_a_capture),
		cmocka_unit_test(test_signal_during_a_capture),
		cmocka_unit_test(test_killed_during_a_capture),
		cmocka_unit_test(test_exec_ends_a_captured_worker),
		cmocka_unit_test(test_exec_ends_a_captured_main_thread),
		cmocka_unit_test(test_exit_under_captures),
	};

	if (!child_can_trace())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
