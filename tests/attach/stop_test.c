/* SPDX-License-Identifier: MIT */
/* One stop: what it reads, and how it leaves the target. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/thread/pending_stops.h"
#include "stop_target.h"
#include "children.h"

#define PAGE 4096

/* ---- What a stop reads ------------------------------------------------------------------ */

static void test_registers(void **state)
{
	/* Not the address of a variable: a sanitizer may keep those elsewhere. */
	const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
	volatile uint64_t *counter;
	struct stop_target target;
	pid_t pid = capture_start_spinning(&counter);
	const struct attach_registers *regs;

	(void)state;
	capture_open(&target, pid);
	for (int i = 0; i < 100; i++) {
		capture_expect(&target, capture_plan_nothing, NULL);
		regs = attach_image_registers(target.image);
		assert_in_range(attach_pc(regs), (uintptr_t)child_loop_begin,
				(uintptr_t)child_loop_end - 1);
		assert_in_range(attach_sp(regs), frame - (1 << 20), frame);
		assert_int_equal(-1, regs->syscall);
		assert_int_equal((uintptr_t)counter, regs->r[CHILD_COUNTER]);
		for (unsigned r = 0; r < ATTACH_REG_COUNT; r++)
			if (child_register_is_known(r))
				assert_int_equal(CHILD_REGISTER(r), regs->r[r]);
		assert_false(attach_was_interrupted(attach_process_reader(target.process), regs));
		assert_true(target.timing.stop_ns <= target.timing.stopped_ns);
		assert_false(target.thread.stop_pending);
	}
	capture_expect_untouched(pid, counter);
	child_end(pid);
	capture_close(&target);
}

/** What plan_counter() was called with, each time from the first round on. */
struct rehearsal {
	const volatile uint64_t *counter;
	unsigned begun;
	struct attach_registers registers[4];
	uint64_t values[4];
};

enum { REHEARSAL = 1 }; /* the second time: of three captures the second one rehearses */

static bool plan_counter(void *context, struct attach_image *image, unsigned round)
{
	const struct remote_addr address =
		remote_addr_make((uintptr_t)((struct rehearsal *)context)->counter);
	struct rehearsal *rehearsal = context;
	struct failure why;
	unsigned time;

	if (round == 0) {
		assert_in_range(rehearsal->begun, 0, 3);
		rehearsal->registers[rehearsal->begun++] = *attach_image_registers(image);
		attach_image_want(image, address, sizeof(uint64_t), &why);
		return true;
	}
	time = rehearsal->begun - 1;
	assert_int_equal(0, attach_read(attach_image_reader(image), address,
					&rehearsal->values[time], sizeof(uint64_t), &why));
	if (time == REHEARSAL) /* what it read is old when the thread stands */
		assert_true(child_await(rehearsal->counter, rehearsal->values[time] + 1));
	return false;
}

static void test_rehearsal(void **state)
{
	volatile uint64_t *counter;
	struct stop_target target;
	pid_t pid = capture_start_spinning(&counter);
	struct rehearsal rehearsal = { .counter = counter };
	uint64_t value;

	(void)state;
	capture_open(&target, pid);
	target.rehearses = true;
	target.thread.patience_ns = STOP_BOUND_NS; /* a second try would rehearse, too */
	capture_expect(&target, plan_counter, &rehearsal);
	assert_int_equal(1, rehearsal.begun); /* nothing is known to rehearse with */
	target.thread.last_stop_ns = 1;	      /* long ago */
	capture_expect(&target, plan_counter, &rehearsal);
	assert_int_equal(3, rehearsal.begun);
	assert_memory_equal(&rehearsal.registers[0], &rehearsal.registers[REHEARSAL],
			    sizeof(struct attach_registers));
	assert_int_equal(0, attach_read(attach_image_reader(target.image),
					remote_addr_make((uintptr_t)counter), &value, sizeof(value),
					&target.why));
	assert_int_equal(rehearsal.values[2], value);
	assert_true(value > rehearsal.values[REHEARSAL]);
	target.thread.last_stop_ns += STOP_BOUND_NS; /* just now */
	capture_expect(&target, plan_counter, &rehearsal);
	assert_int_equal(4, rehearsal.begun);
	capture_expect_untouched(pid, counter);
	child_end(pid);
	capture_close(&target);
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
	struct stop_target target;
	struct chain chain = { .first = remote_addr_make((uintptr_t)&links[0]) };
	pid_t pid;

	(void)state;
	for (size_t i = 0; i < 8; i++)
		links[i] = (uintptr_t)&links[(i + 1) % 8];
	pid = capture_start_spinning(&counter);
	capture_open(&target, pid);
	capture_expect(&target, plan_chain, &chain);
	assert_true(chain.content_seen);
	assert_in_range(chain.rounds, 3, 16);
	capture_expect_untouched(pid, counter);
	child_end(pid);
	capture_close(&target);
}

/** Ranges of a mapping in which every second page is missing, and one that reaches behind the end
 * of another. */
struct stripes {
	uint8_t *pages;
	unsigned count;
	uint8_t *end; /* of a mapped page, before one that cannot be read */
};

enum { BEFORE_END = 96 }; /* bytes of the range that can be read */

static bool plan_stripes(void *context, struct attach_image *image, unsigned round)
{
	const struct stripes *stripes = context;
	struct failure why;

	(void)round;
	attach_image_want(image, remote_addr_make(0), 8, &why);
	for (unsigned i = 0; i < stripes->count; i++)
		attach_image_want(image, remote_addr_make((uintptr_t)stripes->pages + i * PAGE),
				  PAGE, &why);
	attach_image_want(image, remote_addr_make((uintptr_t)stripes->end - BEFORE_END),
			  2 * BEFORE_END, &why);
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
	struct stop_target target;
	const struct attach_reader *reader;
	uint8_t got[PAGE];
	struct failure why;
	pid_t pid;

	(void)state;
	stripes.end = PAGE + (uint8_t *)mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
					     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(stripes.end, PAGE, PROT_NONE); /* not unmapped: something else may come there */
	memset(stripes.end - PAGE, 7, PAGE);
	stripes.pages = mmap(NULL, stripes.count * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (unsigned i = 0; i < stripes.count; i++) {
		memset(stripes.pages + i * PAGE, (int)i, PAGE);
		if (i % 2)
			mprotect(stripes.pages + i * PAGE, PAGE, PROT_NONE);
	}
	pid = capture_start_spinning(&counter);
	capture_open(&target, pid);
	capture_expect(&target, plan_stripes, &stripes);
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
	assert_int_equal(0,
			 attach_read(reader, remote_addr_make((uintptr_t)stripes.end - BEFORE_END),
				     got, BEFORE_END, &why));
	assert_memory_equal(stripes.end - BEFORE_END, got, BEFORE_END);
	assert_int_equal(-1, attach_read(reader, remote_addr_make((uintptr_t)stripes.end - 1), got,
					 2, &why));
	assert_int_equal((uintptr_t)stripes.end, why.address);
	capture_expect_untouched(pid, counter);
	child_end(pid);
	capture_close(&target);
	munmap(stripes.pages, stripes.count * PAGE);
	munmap(stripes.end - PAGE, 2 * PAGE);
}

/** Ranges of one read, by offset and length, on SIDE_BY_SIDE_PAGES pages. */
static const struct {
	size_t at, len;
} side_by_side[] = {
	{ 9 * PAGE + 7, 100 },		/* behind a page that nobody asks for */
	{ 3000, 20 },			/* its page is read with the others */
	{ 100, 500 },			/* lies before */
	{ 400, 1000 },			/* overlaps the end of that */
	{ 200, 50 },			/* within */
	{ 100, 500 },			/* the same once more */
	{ PAGE - 4, 8 },		/* across two pages */
	{ 1 * PAGE + 4, 16 },		/* right behind */
	{ 2 * PAGE, PAGE },		/* a page as a whole */
	{ 4 * PAGE - 1, 1 },		/* its neighbour's last byte */
	{ 5 * PAGE + 1, 2 * PAGE + 3 }, /* more than a page */
	{ 6 * PAGE, 1 },
};

enum { SIDE_BY_SIDE_PAGES = 10 };

static bool plan_side_by_side(void *context, struct attach_image *image, unsigned round)
{
	struct failure why;

	(void)round;
	for (size_t i = 0; i < sizeof(side_by_side) / sizeof(side_by_side[0]); i++)
		attach_image_want(image, remote_addr_make((uintptr_t)context + side_by_side[i].at),
				  side_by_side[i].len, &why);
	return false;
}

static void expect_side_by_side(const struct attach_image *image, const uint8_t *bytes)
{
	for (size_t i = 0; i < sizeof(side_by_side) / sizeof(side_by_side[0]); i++) {
		for (size_t k = 0; k < side_by_side[i].len; k++) {
			uintptr_t address = (uintptr_t)bytes + side_by_side[i].at + k;
			size_t len;
			const uint8_t *got =
				attach_image_peek(image, remote_addr_make(address), 1, &len);

			assert_non_null(got);
			assert_int_equal(bytes[side_by_side[i].at + k], *got);
		}
	}
}

/* Ranges are read together, and each holds its own bytes and no others. */
static void test_ranges_side_by_side(void **state)
{
	const size_t size = SIDE_BY_SIDE_PAGES * PAGE;
	volatile uint64_t *counter;
	struct stop_target target;
	uint8_t *bytes;
	size_t len;
	pid_t pid;

	(void)state;
	bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(i * 31 + i / 251);
	pid = capture_start_spinning(&counter);
	capture_open(&target, pid);
	for (int i = 0; i < 3; i++) {
		capture_expect(&target, plan_side_by_side, bytes);
		expect_side_by_side(target.image, bytes);
		assert_null(attach_image_peek(target.image, remote_addr_make((uintptr_t)bytes + 99),
					      1, &len));
		assert_null(attach_image_peek(target.image,
					      remote_addr_make((uintptr_t)bytes + 1400), 1, &len));
		assert_null(attach_image_peek(
			target.image, remote_addr_make((uintptr_t)bytes + 8 * PAGE), 1, &len));
	}
	capture_expect_untouched(pid, counter);
	child_end(pid);
	capture_close(&target);
	munmap(bytes, size);
}

/* The image's earlier content is gone, whatever becomes of the capture. */
static void test_image_is_cleared(void **state)
{
	static const uint64_t known = 42;
	volatile uint64_t *counter;
	struct stop_target target;
	pid_t pid = capture_start_spinning(&counter);
	size_t len;

	(void)state;
	capture_open(&target, pid);
	attach_image_add(target.image, remote_addr_make(0x1000), &known, sizeof(known),
			 &target.why);
	capture_expect(&target, capture_plan_nothing, NULL);
	assert_null(attach_image_peek(target.image, remote_addr_make(0x1000), 1, &len));
	child_end(pid);
	attach_image_add(target.image, remote_addr_make(0x1000), &known, sizeof(known),
			 &target.why);
	assert_int_equal(-1, capture_run(&target, capture_plan_nothing, NULL));
	assert_int_equal(FAILURE_GONE, target.why.kind);
	assert_null(attach_image_peek(target.image, remote_addr_make(0x1000), 1, &len));
	capture_close(&target);
}

/* ---- Threads that do not stop ----------------------------------------------------------- */

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
	struct stop_target target;
	uint64_t begin_ns;

	(void)state;
	capture_open(&target, pid);
	assert_true(child_await(&numbers[1], 1));
	assert_true(child_await_state(pid, "D"));
	assert_int_equal(0, attach_thread_settle(&target.thread));
	begin_ns = child_now_ns();
	assert_int_equal(-1, capture_run(&target, capture_plan_nothing, NULL));
	assert_true(child_now_ns() - begin_ns < STOP_BOUND_NS);
	assert_int_equal(FAILURE_TIMEOUT, target.why.kind);
	assert_true(target.thread.stop_pending);
	/* Never twice at once. */
	assert_int_equal(-1, attach_thread_settle(&target.thread));
	assert_int_equal(-1, capture_run(&target, capture_plan_nothing, NULL));
	assert_int_equal(FAILURE_TIMEOUT, target.why.kind);
	numbers[2] = 1;
	assert_true(child_await_state(pid, "t"));
	assert_int_equal(0, attach_thread_settle(&target.thread));
	assert_false(target.thread.stop_pending);
	assert_true(child_await(&numbers[0], 1));
	capture_expect_untouched(pid, numbers);
	capture_expect(&target, capture_plan_nothing, NULL);
	child_end(pid);
	capture_close(&target);
}

#define LATE_BOUND_NS ((uint64_t)100 * 1000000)

/* One processor for two: the target has it only when the other one is gone. */
static void spin_at_leisure(void *argument)
{
	const struct sched_param param = { 0 };
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	sched_setaffinity(0, sizeof(first), &first);
	sched_setscheduler(0, SCHED_IDLE, &param);
	child_spin(argument);
}

static void spin_first(void *argument)
{
	const struct sched_param param = { .sched_priority = 1 };
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	sched_setaffinity(0, sizeof(first), &first);
	*(volatile uint64_t *)argument = 1 + (sched_setscheduler(0, SCHED_FIFO, &param) == 0);
	for (uint64_t begin_ns = child_now_ns(); child_now_ns() - begin_ns < 300 * 1000000u;)
		continue;
}

/* A thread that waits for a processor is not waited for. It is captured when it is stopped. */
static pid_t start_hog(struct stop_target *target, volatile uint64_t *number)
{
	pid_t hog = child_start(spin_first, (void *)(uintptr_t)number);

	assert_true(child_await(number, 1));
	if (*number == 2)
		return hog;
	printf("[ SKIPPED  ] a late thread: real-time priority is not permitted\n");
	child_end(hog);
	child_end(target->pid);
	capture_close(target);
	skip();
	return 0;
}

/* A capture of a thread that has no processor now. @return How long it took. */
static uint64_t begin_late_capture(struct stop_target *target)
{
	uint64_t begin_ns = child_now_ns(), took_ns;

	assert_int_equal(-1, capture_run(target, capture_plan_nothing, NULL));
	took_ns = child_now_ns() - begin_ns;
	assert_int_equal(FAILURE_TIMEOUT, target->why.kind);
	assert_true(target->thread.stop_pending);
	assert_true(target->thread.interrupt_ns != 0);
	return took_ns;
}

static void test_capture_of_a_late_thread(void **state)
{
	volatile uint64_t *numbers = child_share(4 * sizeof(*numbers));
	pid_t pid = child_start(spin_at_leisure, (void *)(uintptr_t)numbers), hog;
	struct stop_target target;
	uint64_t late_ns = 0, best_ns = UINT64_MAX;
	int ret = -1;

	(void)state;
	capture_open(&target, pid);
	target.thread.patience_ns = 1;
	assert_true(child_await(&numbers[0], 1));
	hog = start_hog(&target, &numbers[1]);
	/* If we have no processor ourselves, the capture takes longer, and after 10 ms the thread
	 * is let go. */
	for (int i = 0; i < 20 && (ret != 0 || best_ns >= LATE_BOUND_NS); i++) {
		uint64_t took_ns = begin_late_capture(&target);

		best_ns = took_ns < best_ns ? took_ns : best_ns;
		while (!attach_thread_is_stopped(&target.thread))
			child_nap_us(100);
		assert_true(
			attach_thread_is_stopped(&target.thread)); /* nothing is reaped by that */
		late_ns = child_now_ns() - target.thread.interrupt_ns;
		ret = capture_run(&target, capture_plan_nothing, NULL);
		assert_false(target.thread.stop_pending);
	}
	assert_int_equal(0, ret);
	assert_true(best_ns < LATE_BOUND_NS);
	assert_int_equal(0, target.thread.interrupt_ns);
	assert_false(attach_thread_is_stopped(&target.thread));
	/* The whole time counts, not that since the second call. */
	assert_true(target.timing.stopped_ns >= late_ns);
	assert_true(target.timing.stop_ns <= target.timing.stopped_ns);
	capture_expect_untouched(pid, numbers);
	child_end(hog);
	child_end(pid);
	capture_close(&target);
}

/* Nobody comes for it: then it does not stand for long. */
static void test_late_thread_is_let_go(void **state)
{
	volatile uint64_t *numbers = child_share(4 * sizeof(*numbers));
	pid_t pid = child_start(spin_at_leisure, (void *)(uintptr_t)numbers), hog;
	struct stop_target target;

	(void)state;
	capture_open(&target, pid);
	target.thread.patience_ns = 1;
	assert_true(child_await(&numbers[0], 1));
	hog = start_hog(&target, &numbers[1]);
	begin_late_capture(&target);
	/* Other threads that come and go put nothing off. */
	for (int i = 0; i < 5000 && pending_stop_poll(pid) == PENDING_STOP_STILL; i++) {
		pending_stops_add(getpid());
		child_nap_us(1000);
		pending_stops_remove(getpid());
	}
	assert_int_equal(PENDING_STOP_LET_GO, pending_stop_poll(pid));
	capture_expect_untouched(pid, numbers);
	assert_true(attach_thread_is_stopped(&target.thread)); /* there is an answer */
	assert_int_equal(-1, capture_run(&target, capture_plan_nothing, NULL));
	assert_int_equal(FAILURE_TIMEOUT, target.why.kind);
	assert_false(target.thread.stop_pending);
	child_end(hog);
	target.thread.patience_ns = 0;
	capture_expect(&target, capture_plan_nothing, NULL);
	child_end(pid);
	capture_close(&target);
}

/* ---- Stopped targets -------------------------------------------------------------------- */

static void test_group_stop_stays(void **state)
{
	volatile uint64_t *counter;
	struct stop_target target;
	pid_t pid = capture_start_spinning(&counter);
	int status;

	(void)state;
	capture_open(&target, pid);
	kill(pid, SIGSTOP);
	assert_int_equal(pid, waitpid(pid, &status, WUNTRACED));
	assert_true(WIFSTOPPED(status));
	for (int i = 0; i < 20; i++) {
		uint64_t before = *counter;

		capture_expect(&target, capture_plan_nothing, NULL);
		assert_in_range(attach_pc(attach_image_registers(target.image)),
				(uintptr_t)child_loop_begin, (uintptr_t)child_loop_end - 1);
		assert_true(child_await_state(pid, "T"));
		assert_int_equal(0, child_field(pid, "TracerPid"));
		child_nap_us(1000);
		assert_int_equal(before, *counter);
	}
	kill(pid, SIGCONT);
	capture_expect_untouched(pid, counter);
	capture_expect(&target, capture_plan_nothing, NULL);
	capture_expect_untouched(pid, counter);
	child_end(pid);
	capture_close(&target);
}

static void test_stop_and_go_on_during_a_capture(void **state)
{
	volatile uint64_t *counter;
	struct stop_target target;
	pid_t pid = capture_start_spinning(&counter);
	/* Not SIGTSTP: an orphaned process group, as of a job without a terminal, ignores it. */
	struct capture_signal stop = { pid, SIGSTOP }, go = { pid, SIGCONT };

	(void)state;
	capture_open(&target, pid);
	for (int i = 0; i < 20; i++) {
		capture_expect(&target, capture_plan_signal, &stop);
		assert_true(child_await_state(pid, "T"));
		assert_int_equal(0, child_field(pid, "TracerPid"));
		capture_expect(&target, capture_plan_signal, &go);
		capture_expect_untouched(pid, counter);
	}
	child_end(pid);
	capture_close(&target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registers),
		cmocka_unit_test(test_rehearsal),
		cmocka_unit_test(test_rounds),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_ranges_side_by_side),
		cmocka_unit_test(test_image_is_cleared),
		cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_capture_of_a_late_thread),
		cmocka_unit_test(test_late_thread_is_let_go),
		cmocka_unit_test(test_group_stop_stays),
		cmocka_unit_test(test_stop_and_go_on_during_a_capture),
	};

	if (!child_can_trace())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
