/* SPDX-License-Identifier: MIT */
/* Holding a whole process: one moment in all of its memory, and none left behind. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/freeze.h"
#include "tests/rounds.h"
#include "children.h"

enum {
	WRITERS = 2,
	WORDS = 1 << 16, /* that a writer counts up, one behind the other */
	/* More than can be copied in the pauses that are asked for. */
	HEAP_BYTES = 192 << 20,
	PAUSE_MS = 10,
	/* A holder that is to let go has to get a processor first. On a machine that is busy it may
	 * wait for some slices of the scheduler's; of several pauses the shortest has not. */
	SLICES_MS = 20,
	TRIES = 10,
	WAKING_TRIES = 100,
	AWAKE_MS = 20, /* longer than a holder looks away */
	/* Beside two busy programs about nine of ten pauses are longer, because the holder waits
	 * for a processor. That all 300 are longer has a chance of less than one in 10^13. */
	PAUSES_MAX = 300,
	MS_NS = 1000 * 1000,
};

/** What the child and the test share. */
struct scene {
	volatile uint64_t words[WRITERS][WORDS];
	volatile uint64_t tids[WRITERS + 1];
	volatile uint64_t ready, interrupted, woken, signals;
	volatile uint64_t longest_ns; /* that the child itself stood still */
	volatile uint64_t rounds;     /* of its main thread */
	volatile uint64_t heap;	      /* address */
	int wake[2];
};

static struct scene *scene;

/* All words are equal, but for one step between two neighbours. */
static void *write_words(void *argument)
{
	volatile uint64_t *words = argument;
	size_t number = (size_t)(words - scene->words[0]) / WORDS;

	scene->tids[number] = (uint64_t)syscall(SYS_gettid);
	__atomic_add_fetch(&scene->ready, 1, __ATOMIC_SEQ_CST);
	for (uint64_t count = 1;; count++)
		for (size_t i = 0; i < WORDS; i++)
			words[i] = count;
	return NULL;
}

static uint64_t *heap_word(size_t offset)
{
	return (uint64_t *)(uintptr_t)(scene->heap + offset);
}

static void *sleep_in_read(void *argument)
{
	char byte;

	(void)argument;
	scene->tids[WRITERS] = (uint64_t)syscall(SYS_gettid);
	__atomic_add_fetch(&scene->ready, 1, __ATOMIC_SEQ_CST);
	for (;;) {
		if (read(scene->wake[0], &byte, 1) != 1) {
			scene->interrupted++;
			continue;
		}
		/* At both ends of what is copied: at no moment is the last one ahead. */
		scene->woken++;
		__atomic_add_fetch(heap_word(0), 1, __ATOMIC_SEQ_CST);
		__atomic_add_fetch(heap_word(HEAP_BYTES - 8), 1, __ATOMIC_SEQ_CST);
		/* Seen asleep again one time, and running the other. */
		for (uint64_t begin_ns = child_now_ns();
		     scene->woken % 2 && child_now_ns() - begin_ns < AWAKE_MS * MS_NS;)
			;
	}
	return NULL;
}

static void count_signal(int sig)
{
	(void)sig;
	scene->signals++;
}

static void measure_pauses(void)
{
	uint64_t last = child_now_ns();

	for (;;) {
		uint64_t now = child_now_ns();

		if (now - last > scene->longest_ns)
			scene->longest_ns = now - last;
		last = now;
		scene->rounds++;
	}
}

static void run_crew(void *argument)
{
	pthread_t thread;
	char *heap = mmap(NULL, HEAP_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	(void)argument;
	signal(SIGUSR1, count_signal);
	for (size_t i = 0; i < HEAP_BYTES; i += 4096)
		heap[i] = 1;
	scene->heap = (uint64_t)(uintptr_t)heap;
	for (size_t i = 0; i < WRITERS; i++)
		pthread_create(&thread, NULL, write_words, (void *)(uintptr_t)scene->words[i]);
	pthread_create(&thread, NULL, sleep_in_read, NULL);
	while (scene->ready < WRITERS + 1)
		child_nap_us(100);
	scene->ready++;
	measure_pauses();
}

static pid_t target;
static struct attach_process *process;

static int begin(void **state)
{
	struct failure why;

	(void)state;
	scene = child_share(sizeof(*scene));
	if (pipe(scene->wake) != 0)
		return -1;
	target = child_start(run_crew, NULL);
	if (!child_await(&scene->ready, WRITERS + 2))
		return -1;
	return attach_process_open(target, &process, &why);
}

static int end(void **state)
{
	(void)state;
	attach_process_close(process);
	child_end(target);
	close(scene->wake[0]);
	close(scene->wake[1]);
	munmap(scene, sizeof(*scene));
	return 0;
}

/* No thread is stopped or traced, and each that ran runs on. */
static void assert_free(void)
{
	uint64_t before[WRITERS];

	for (size_t i = 0; i < WRITERS; i++) {
		assert_true(child_is_free((pid_t)scene->tids[i]));
		before[i] = scene->words[i][0];
	}
	assert_true(child_is_free((pid_t)scene->tids[WRITERS]));
	assert_true(child_is_free(target));
	for (size_t i = 0; i < WRITERS; i++)
		assert_true(child_await(&scene->words[i][0], before[i] + 2));
}

static struct attach_copy *copy_of(uint64_t address, size_t len)
{
	struct attach_copy *copy = attach_copy_create((size_t)1 << 30);
	struct failure why;

	assert_non_null(copy);
	assert_int_equal(0, attach_copy_want(copy, address, address + len, &why));
	return copy;
}

static const struct attach_frozen_thread *held(const struct attach_freeze *freeze, uint64_t tid)
{
	for (size_t i = 0; i < freeze->thread_count; i++)
		if ((uint64_t)freeze->threads[i].tid == tid)
			return &freeze->threads[i];
	return NULL;
}

/* ---- Copies ----------------------------------------------------------------------------- */

static void assert_one_moment(struct attach_copy *copy, size_t writer)
{
	const struct attach_reader *reader = attach_copy_reader(copy);
	uint64_t *words = malloc(sizeof(scene->words[0]));
	uint64_t at = (uint64_t)(uintptr_t)scene->words[writer];
	struct failure why;
	unsigned steps = 0;

	assert_int_equal(
		0, attach_read(reader, remote_addr_make(at), words, sizeof(scene->words[0]), &why));
	for (size_t i = 1; i < WORDS; i++) {
		assert_true(words[i] == words[i - 1] || words[i] + 1 == words[i - 1]);
		steps += words[i] != words[i - 1];
	}
	assert_true(steps <= 1);
	free(words);
}

static void test_copy_is_of_one_moment(void **state)
{
	struct attach_copy *copy = copy_of((uint64_t)(uintptr_t)scene->words, sizeof(scene->words));
	struct failure why;

	(void)state;
	for (unsigned i = 0; i < TRIES; i++) {
		struct attach_freeze freeze;

		assert_int_equal(
			0, attach_freeze(process, (uint64_t)2000 * MS_NS, copy, &freeze, &why));
		assert_false(freeze.is_truncated);
		assert_int_equal(0, freeze.woken);
		assert_int_equal(0, freeze.unread);
		assert_int_equal(WRITERS + 2, freeze.thread_count);
		assert_int_equal(WRITERS + 1, freeze.stopped_count);
		assert_int_equal(sizeof(scene->words), attach_copy_bytes(copy));
		for (size_t k = 0; k < WRITERS; k++) {
			assert_true(held(&freeze, scene->tids[k])->is_stopped);
			assert_one_moment(copy, k);
		}
		assert_true(held(&freeze, scene->tids[WRITERS])->syscall >= 0);
		assert_true(freeze.pause_ns > 0);
		attach_freeze_deinit(&freeze);
		assert_free();
	}
	assert_int_equal(0, scene->interrupted);
	attach_copy_destroy(copy);
}

static void test_unmapped_ranges_are_told(void **state)
{
	struct attach_copy *copy = copy_of(scene->heap, 4096);
	struct attach_freeze freeze;
	struct failure why;
	uint8_t byte;

	(void)state;
	assert_int_equal(0, attach_copy_want(copy, 4096, 8192, &why));
	assert_int_equal(0, attach_copy_want(copy, scene->heap + 8192, scene->heap + 12288, &why));
	assert_int_equal(0, attach_freeze(process, (uint64_t)2000 * MS_NS, copy, &freeze, &why));
	assert_int_equal(1, freeze.unread);
	assert_false(freeze.is_truncated);
	assert_int_equal(8192, attach_copy_bytes(copy));
	assert_int_equal(0, attach_read(attach_copy_reader(copy),
					remote_addr_make(scene->heap + 8192), &byte, 1, &why));
	assert_int_equal(1, byte);
	assert_int_equal(-1, attach_read(attach_copy_reader(copy),
					 remote_addr_make(scene->heap + 4095), &byte, 2, &why));
	assert_int_equal(FAILURE_FAULT, why.kind);
	assert_true(why.address == scene->heap + 4096);
	attach_freeze_deinit(&freeze);
	attach_copy_destroy(copy);
	assert_free();
}

static void test_room_is_bounded(void **state)
{
	struct attach_copy *copy = attach_copy_create(8192);
	struct failure why;

	(void)state;
	assert_int_equal(0, attach_copy_want(copy, 4096, 8192, &why));
	assert_int_equal(-1, attach_copy_want(copy, 65536, 1 << 20, &why));
	assert_int_equal(FAILURE_LIMIT, why.kind);
	attach_copy_destroy(copy);
	attach_copy_destroy(NULL);
}

/* ---- The pause -------------------------------------------------------------------------- */

/* As the target itself sees it. */
static void test_pause_is_bounded(void **state)
{
	struct attach_copy *copy = copy_of(scene->heap, HEAP_BYTES);
	const uint64_t bound_ns = (uint64_t)(PAUSE_MS + SLICES_MS) * MS_NS;
	uint64_t shortest_ns = UINT64_MAX;
	struct failure why;
	bool cut = false, held = false;

	(void)state;
	for (unsigned i = 0; i < TRIES || (shortest_ns > bound_ns && i < PAUSES_MAX); i++) {
		struct attach_freeze freeze;

		scene->longest_ns = 0;
		if (attach_freeze(process, (uint64_t)PAUSE_MS * MS_NS, copy, &freeze, &why) != 0) {
			assert_int_equal(FAILURE_TIMEOUT, why.kind);
			continue;
		}
		child_nap_us(1000);
		held = true;
		cut |= freeze.is_truncated;
		if (scene->longest_ns < shortest_ns)
			shortest_ns = scene->longest_ns;
		attach_freeze_deinit(&freeze);
	}
	/* An emulated machine may be too slow for any to succeed in that time. */
	if (held) {
		assert_true(cut);
		assert_in_range(shortest_ns, 0, bound_ns);
	}
	attach_copy_destroy(copy);
	assert_free();
}

/* A holder that would hold for a minute, if there was so much to copy, in a process that is ended
 * or stopped.
 */
static void freeze_long(void *argument)
{
	struct attach_copy *copy = copy_of(scene->heap, HEAP_BYTES / 4);
	struct attach_freeze freeze;
	struct failure why;
	uint64_t pause_ms = (uint64_t)(uintptr_t)argument;

	for (;;) {
		if (attach_freeze(process, pause_ms * MS_NS, copy, &freeze, &why) == 0)
			attach_freeze_deinit(&freeze);
		/* A thread comes to its signals when it gets a processor, for which the threads of
		 * an emulated machine may wait for long. */
		if (pause_ms < 1000)
			for (uint64_t rounds = scene->rounds; scene->rounds == rounds;)
				child_nap_us((unsigned)pause_ms * 250);
	}
}

/* @return the holder. */
static pid_t await_freezer(void)
{
	for (uint64_t end = child_now_ns() + (uint64_t)CHILD_DEADLINE_MS * MS_NS;
	     child_now_ns() < end;) {
		long tracer = child_field((pid_t)scene->tids[0], "TracerPid");

		if (tracer > 0)
			return (pid_t)tracer;
	}
	return 0;
}

static void test_death_lets_go(void **state)
{
	(void)state;
	for (unsigned i = 0; i < test_rounds(10); i++) {
		pid_t pid = child_start(freeze_long, (void *)(uintptr_t)60000);

		assert_true(await_freezer() > 0);
		child_nap_us(i * 500); /* at any moment */
		child_end(pid);
		assert_free();
	}
}

static void test_death_of_the_holder_lets_go(void **state)
{
	pid_t pid = child_start(freeze_long, (void *)(uintptr_t)60000);

	(void)state;
	for (unsigned i = 0; i < test_rounds(10); i++) {
		pid_t holder = await_freezer();

		assert_true(holder > 0);
		kill(holder, SIGKILL);
	}
	child_end(pid);
	assert_free();
}

/* Where we are stopped, the holder is not. */
static void test_stop_of_ours_lets_go(void **state)
{
	pid_t pid = child_start(freeze_long, (void *)(uintptr_t)300);

	(void)state;
	/* One of these stops may come between two holds. */
	for (unsigned i = 0; i < 3; i++) {
		uint64_t begin_ns;

		assert_true(await_freezer() > 0);
		kill(pid, SIGSTOP);
		assert_true(child_await_state(pid, "T"));
		begin_ns = child_now_ns();
		assert_free();
		/* After 300 ms, and when it gets a processor. */
		assert_true(child_now_ns() - begin_ns < (uint64_t)10000 * MS_NS);
		kill(pid, SIGCONT);
	}
	child_end(pid);
}

/* ---- Signals, stops, sleep -------------------------------------------------------------- */

static void test_signals_arrive(void **state)
{
	pid_t pid = child_start(freeze_long, (void *)(uintptr_t)50);
	uint64_t count = test_rounds(10);

	(void)state;
	assert_true(await_freezer() > 0);
	for (uint64_t i = 0; i < count; i++) {
		kill(target, SIGUSR1);
		assert_true(child_await(&scene->signals, i + 1));
	}
	child_end(pid);
	assert_int_equal(count, scene->signals);
	assert_free();
}

static void test_group_stop_is_kept(void **state)
{
	struct attach_copy *copy = copy_of(scene->heap, 4096);
	struct attach_freeze freeze;
	struct failure why;

	(void)state;
	kill(target, SIGSTOP);
	assert_true(child_await_state((pid_t)scene->tids[0], "T"));
	assert_true(child_await_state((pid_t)scene->tids[WRITERS], "T"));
	assert_true(child_await_state(target, "T"));
	assert_int_equal(0, attach_freeze(process, (uint64_t)2000 * MS_NS, copy, &freeze, &why));
	assert_int_equal(4096, attach_copy_bytes(copy));
	attach_freeze_deinit(&freeze);
	/* A thread that is let go needs a processor to stop again. */
	assert_true(child_await_state((pid_t)scene->tids[0], "T"));
	assert_true(child_await_state(target, "T"));
	kill(target, SIGCONT);
	attach_copy_destroy(copy);
	assert_free();
}

static bool all_stand(void)
{
	for (size_t i = 0; i < WRITERS; i++)
		if (child_state((pid_t)scene->tids[i]) != 't')
			return false;
	return child_state(target) == 't';
}

/* Once in each hold, when all that ran stand and copying begins. */
static void *wake_sleeper(void *argument)
{
	const volatile bool *done = argument;

	while (!*done) {
		if (all_stand() && write(scene->wake[1], "", 1) != 1)
			break;
		while (!*done && all_stand())
			child_nap_us(100);
		child_nap_us(100);
	}
	return NULL;
}

/* @return what the copy has of a word of the heap. */
static uint64_t copied_word(struct attach_copy *copy, size_t offset)
{
	uint64_t word = 0;
	struct failure why;

	assert_int_equal(0, attach_read(attach_copy_reader(copy),
					remote_addr_make(scene->heap + offset), &word, sizeof(word),
					&why));
	return word;
}

/* Who wakes meanwhile is noticed: what was copied is not of one moment then. */
static void test_waking_is_told(void **state)
{
	struct attach_copy *copy = copy_of(scene->heap, HEAP_BYTES);
	volatile bool done = false;
	unsigned slept_on = 0, ran_on = 0, wrong = 0;
	pthread_t thread;
	struct failure why;

	(void)state;
	pthread_create(&thread, NULL, wake_sleeper, (void *)(uintptr_t)&done);
	/* On a busy machine it may wake behind the hold, or be seen running before it. */
	for (unsigned i = 0; i < WAKING_TRIES && (i < TRIES || !slept_on || !ran_on); i++) {
		struct attach_freeze freeze;

		if (attach_freeze(process, (uint64_t)2000 * MS_NS, copy, &freeze, &why) != 0)
			continue;
		if (held(&freeze, scene->tids[WRITERS])->is_stopped)
			ran_on += freeze.woken > 0;
		else
			slept_on += freeze.woken > 0;
		/* The first word was 1 before any wake. */
		wrong += !freeze.woken && !freeze.is_truncated &&
			 copied_word(copy, HEAP_BYTES - 8) >= copied_word(copy, 0);
		attach_freeze_deinit(&freeze);
	}
	done = true;
	pthread_join(thread, NULL);
	assert_int_equal(0, wrong);
	assert_true(slept_on > 0);
	assert_true(ran_on > 0);
	assert_int_equal(0, scene->interrupted);
	attach_copy_destroy(copy);
	assert_free();
}

static void test_ended_process(void **state)
{
	struct attach_copy *copy = copy_of(scene->heap, 4096);
	struct attach_freeze freeze = { 0 };
	struct failure why;

	(void)state;
	kill(target, SIGKILL);
	assert_true(child_await_state(target, "Z"));
	assert_int_equal(-1, attach_freeze(process, (uint64_t)50 * MS_NS, copy, &freeze, &why));
	attach_copy_destroy(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copy_is_of_one_moment),
		cmocka_unit_test(test_unmapped_ranges_are_told),
		cmocka_unit_test(test_room_is_bounded),
		cmocka_unit_test(test_pause_is_bounded),
		cmocka_unit_test(test_death_lets_go),
		cmocka_unit_test(test_death_of_the_holder_lets_go),
		cmocka_unit_test(test_stop_of_ours_lets_go),
		cmocka_unit_test(test_signals_arrive),
		cmocka_unit_test(test_group_stop_is_kept),
		cmocka_unit_test(test_waking_is_told),
		/* The last one: it ends the process that all of them have. */
		cmocka_unit_test(test_ended_process),
	};

	if (!child_can_trace())
		return 77;
	return cmocka_run_group_tests(tests, begin, end);
}
