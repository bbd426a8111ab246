/* SPDX-License-Identifier: MIT */
/* The list of a process's threads, and what they are doing. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/thread.h"
#include "children.h"

#define WORKERS 20

/** A child with threads that come and go as we ask. */
struct crew {
	volatile uint64_t wanted; /* workers that shall live */
	volatile uint64_t living; /* workers that do */
	volatile uint64_t tids[WORKERS];
};

struct worker {
	struct crew *crew;
	unsigned number;
};

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct crew *crew = worker->crew;

	crew->tids[worker->number] = (uint64_t)syscall(SYS_gettid);
	__atomic_add_fetch(&crew->living, 1, __ATOMIC_SEQ_CST);
	while (crew->wanted > worker->number)
		child_nap_us(500);
	return NULL;
}

static void run_crew(void *argument)
{
	static struct worker workers[WORKERS];
	pthread_t threads[WORKERS];
	struct crew *crew = argument;
	unsigned count = 0;

	for (;;) {
		for (; count < crew->wanted; count++) {
			workers[count] = (struct worker){ crew, count };
			pthread_create(&threads[count], NULL, work, &workers[count]);
		}
		while (count > crew->wanted) {
			pthread_join(threads[--count], NULL);
			__atomic_sub_fetch(&crew->living, 1, __ATOMIC_SEQ_CST);
		}
		child_nap_us(500);
	}
}

static void set_crew(pid_t pid, struct crew *crew, unsigned wanted)
{
	crew->wanted = wanted;
	CHILD_AWAIT(crew->living == wanted);
	assert_int_equal(wanted, crew->living);
	/* A joined thread leaves /proc a little later. */
	CHILD_AWAIT(child_field(pid, "Threads") == (long)wanted + 1);
}

static struct attach_thread *find(struct attach_threads *threads, uint64_t tid)
{
	for (size_t i = 0; i < attach_threads_count(threads); i++)
		if ((uint64_t)attach_threads_get(threads, i)->tid == tid)
			return attach_threads_get(threads, i);
	return NULL;
}

/* @return how many descriptors we have open, with one for the folder that tells. */
static unsigned descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

static unsigned forgotten;
static pid_t last_forgotten;

static void forget(void *context, struct attach_thread *thread)
{
	unsigned *count = context;

	++*count;
	last_forgotten = thread->tid;
	free(thread->data);
}

static void test_threads_come_and_go(void **state)
{
	struct crew *crew = child_share(sizeof(*crew));
	pid_t pid = child_start(run_crew, crew);
	struct attach_process *process;
	struct attach_threads *threads;
	struct attach_thread *first, *main_thread;
	unsigned open_before;
	struct failure why;

	(void)state;
	assert_int_equal(0, attach_process_open(pid, &process, &why));
	assert_int_equal(0, attach_threads_create(process, &threads, &why));
	attach_threads_on_forget(threads, forget, &forgotten);
	assert_int_equal(1, attach_threads_count(threads));
	main_thread = attach_threads_get(threads, 0);
	assert_int_equal(pid, main_thread->tid);
	assert_true(main_thread->stack_limit != 0);
	assert_null(main_thread->data);
	assert_false(main_thread->stop_pending);

	assert_false(attach_threads_changed(threads));
	set_crew(pid, crew, WORKERS);
	assert_true(attach_threads_changed(threads));
	assert_int_equal(0, attach_threads_refresh(threads, &why));
	assert_false(attach_threads_changed(threads));
	assert_int_equal(WORKERS + 1, attach_threads_count(threads));
	for (unsigned i = 0; i < WORKERS; i++) {
		struct attach_thread *thread = find(threads, crew->tids[i]);

		assert_non_null(thread);
		assert_int_equal(0, thread->stack_limit);
		thread->data = malloc(1);
	}
	first = find(threads, crew->tids[0]);

	/* A thread that has ended leaves nothing open. */
	open_before = descriptors();
	forgotten = 0;
	set_crew(pid, crew, 1);
	assert_true(attach_threads_changed(threads));
	assert_int_equal(0, attach_threads_refresh(threads, &why));
	assert_int_equal(2, attach_threads_count(threads));
	assert_int_equal(WORKERS - 1, forgotten);
	assert_int_equal(open_before - (WORKERS - 1), descriptors());
	/* Entries keep their address and what the caller keeps with them. */
	assert_ptr_equal(first, find(threads, crew->tids[0]));
	assert_non_null(first->data);
	assert_ptr_equal(main_thread, find(threads, (uint64_t)pid));

	child_end(pid);
	assert_int_equal(ATTACH_EXITED, attach_thread_state(first, NULL, NULL));
	assert_int_equal(-1, attach_threads_refresh(threads, &why));
	assert_int_equal(FAILURE_GONE, why.kind);
	assert_int_equal(0, attach_threads_count(threads));
	assert_int_equal(WORKERS + 1, forgotten);
	attach_threads_destroy(threads);
	attach_threads_destroy(NULL);
	attach_process_close(process);
}

/* A thread whose file cannot be opened is not taken for one that has ended. */
static void test_no_descriptors(void **state)
{
	pid_t pid = child_start(child_spin, child_share(8));
	struct attach_process *process;
	struct attach_threads *threads = NULL;
	struct rlimit old, few;
	struct failure why = { 0 };
	int lowest, ret;

	(void)state;
	assert_int_equal(0, attach_process_open(pid, &process, &why));
	assert_int_equal(0, getrlimit(RLIMIT_NOFILE, &old));
	lowest = dup(0);
	assert_true(lowest >= 0);
	close(lowest);
	few = old;
	few.rlim_cur = (rlim_t)lowest + 1; /* one: for the folder */
	assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &few));
	ret = attach_threads_create(process, &threads, &why);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(-1, ret);
	assert_int_equal(FAILURE_SYSTEM, why.kind);
	assert_int_equal(EMFILE, why.errnum);
	child_end(pid);
	attach_process_close(process);
}

/* ---- Activity --------------------------------------------------------------------------- */

static void sleep_long(void *argument)
{
	const struct timespec hour = { .tv_sec = 3600 };

	(void)argument;
	nanosleep(&hour, NULL);
}

static void wait_for_events(void *argument)
{
	struct epoll_event event;

	(void)argument;
	epoll_wait(epoll_create1(0), &event, 1, -1);
}

static void read_from_nobody(void *argument)
{
	int ends[2];
	char byte;

	(void)argument;
	if (pipe(ends) == 0 && read(ends[0], &byte, 1) != 1)
		_exit(1);
}

static enum attach_thread_state activity_of(pid_t pid, uint64_t *ret_sp, uint64_t *ret_pc)
{
	struct attach_process *process;
	struct attach_threads *threads;
	enum attach_thread_state activity;
	struct failure why;

	assert_int_equal(0, attach_process_open(pid, &process, &why));
	assert_int_equal(0, attach_threads_create(process, &threads, &why));
	activity = attach_thread_state(attach_threads_get(threads, 0), ret_sp, ret_pc);
	if (ret_sp && activity == ATTACH_BLOCKED)
		assert_true(*ret_sp < attach_threads_get(threads, 0)->stack_limit);
	attach_threads_destroy(threads);
	attach_process_close(process);
	return activity;
}

static void test_blocked(void **state)
{
	void (*const ways[])(void *) = { sleep_long, wait_for_events, read_from_nobody };

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		pid_t pid = child_start(ways[i], NULL);
		/* Not of a variable: a sanitizer may keep those elsewhere. */
		uint64_t sp = 0, pc = 0, local = (uintptr_t)__builtin_frame_address(0);

		assert_true(child_await_state(pid, "S"));
		assert_int_equal(ATTACH_BLOCKED, activity_of(pid, &sp, &pc));
		/* The child is a copy of us: its stack lies where ours does, a little deeper. */
		assert_true(sp < local && sp > local - (1 << 20));
		assert_true(pc != 0);
		assert_int_equal(ATTACH_BLOCKED, activity_of(pid, NULL, NULL));
		child_end(pid);
	}
}

static void test_running(void **state)
{
	uint64_t *counter = child_share(sizeof(*counter));
	pid_t pid = child_start(child_spin, counter);
	uint64_t sp = 7, pc = 7;

	(void)state;
	assert_true(child_await(counter, 1));
	for (int i = 0; i < 100; i++)
		assert_int_equal(ATTACH_RUNNING, activity_of(pid, &sp, &pc));
	assert_int_equal(7, sp);
	assert_int_equal(7, pc);
	child_end(pid);
}

/* Asleep outside of any system call: the file has no arguments then. */
static void test_group_stopped(void **state)
{
	uint64_t *counter = child_share(sizeof(*counter));
	pid_t pid = child_start(child_spin, counter);
	uint64_t sp = 0, pc = 0;

	(void)state;
	assert_true(child_await(counter, 1));
	kill(pid, SIGSTOP);
	assert_true(child_await_state(pid, "T"));
	assert_int_equal(ATTACH_BLOCKED, activity_of(pid, &sp, &pc));
	assert_in_range(pc, (uintptr_t)child_loop_begin, (uintptr_t)child_loop_end - 1);
	child_end(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_come_and_go),
		cmocka_unit_test(test_no_descriptors),
		cmocka_unit_test(test_blocked),
		cmocka_unit_test(test_running),
		cmocka_unit_test(test_group_stopped),
	};

	if (!child_can_trace())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
