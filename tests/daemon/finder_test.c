/* SPDX-License-Identifier: MIT */
/* New processes, by name and by parent. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/process.h"
#include "daemon/targets/finder.h"

#define SECOND_NS ((uint64_t)1000000000)

enum { TAKEN_MAX = 64 };

/** What a recorder would hold. */
struct taken {
	pid_t pids[TAKEN_MAX];
	size_t count;
	bool refuse;
	unsigned offers;
};

static bool is_known(void *context, pid_t pid)
{
	const struct taken *taken = context;

	for (size_t i = 0; i < taken->count; i++)
		if (taken->pids[i] == pid)
			return true;
	return false;
}

static bool found(void *context, pid_t pid)
{
	struct taken *taken = context;

	taken->offers++;
	assert_false(is_known(taken, pid));
	if (taken->refuse)
		return false;
	assert_true(taken->count < TAKEN_MAX);
	taken->pids[taken->count++] = pid;
	return true;
}

static void look(struct finder *finder, struct taken *taken, uint64_t now_ns)
{
	const struct finder_listener listener = { .is_known = is_known,
						  .found = found,
						  .context = taken };

	finder_poll(finder, &listener, now_ns);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND_NS + (uint64_t)ts.tv_nsec;
}

/** A family: this process, a middle one, and a child of that; all but us have the same name. */
struct family {
	pid_t middle, child;
	char name[16];
};

static _Noreturn void sleep_for_ever(void)
{
	for (;;)
		pause();
}

static unsigned families;

/* Shared memory for a pid that a child tells; @see wait_for_pid(). */
static volatile pid_t *share_pid(void)
{
	void *shared = mmap(NULL, sizeof(pid_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			    -1, 0);

	assert_true(shared != MAP_FAILED);
	return shared;
}

/* @param shared Is gone afterwards. */
static pid_t wait_for_pid(volatile pid_t *shared)
{
	pid_t pid;

	for (int i = 0; i < 10000 && !*shared; i++)
		usleep(1000);
	pid = *shared;
	munmap((void *)(uintptr_t)shared, sizeof(*shared));
	assert_true(pid > 0);
	return pid;
}

static void start_family(struct family *family)
{
	volatile pid_t *child = share_pid();

	/* Another name each time: nobody may reap the orphans of the last one. */
	snprintf(family->name, sizeof(family->name), "f%d.%u", (int)getpid(), ++families);
	family->middle = fork();
	if (family->middle == 0) {
		pid_t pid;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, family->name, 0, 0, 0);
		pid = fork();
		if (pid == 0)
			prctl(PR_SET_PDEATHSIG, SIGKILL);
		else
			*child = pid;
		sleep_for_ever();
	}
	family->child = wait_for_pid(child);
}

static void end_family(const struct family *family)
{
	kill(family->child, SIGKILL);
	kill(family->middle, SIGKILL);
	waitpid(family->middle, NULL, 0);
}

static struct finder *make(const struct daemon_options *options)
{
	struct finder *finder;
	struct failure why;

	assert_int_equal(0, finder_create(options, &finder, &why));
	return finder;
}

static void test_nothing_asked(void **state)
{
	const struct daemon_options options = { 0 };
	struct finder *finder = make(&options);
	struct taken taken = { 0 };

	(void)state;
	look(finder, &taken, now_ns());
	assert_int_equal(0, taken.offers);
	finder_destroy(finder);
	finder_destroy(NULL);
}

static void test_wrong_pattern(void **state)
{
	const char *const names[] = { "good", "(bad" };
	const struct daemon_options options = { .names = names, .name_count = 2 };
	struct finder *finder;
	struct failure why;

	(void)state;
	assert_int_equal(-1, finder_create(&options, &finder, &why));
	assert_int_equal(FAILURE_INVALID, why.kind);
	assert_int_equal(1, why.address);
}

/* A child of ours is never offered: that is the writer. Its child is. */
static void test_names(void **state)
{
	struct family family;
	char pattern[32];
	const char *const names[] = { "^no such name$", pattern };
	const struct daemon_options options = { .names = names, .name_count = 2 };
	struct taken taken = { 0 };
	struct finder *finder;

	(void)state;
	start_family(&family);
	snprintf(pattern, sizeof(pattern), "^(%s|other)$", family.name);
	finder = make(&options);
	look(finder, &taken, now_ns());
	assert_int_equal(1, taken.count);
	assert_int_equal(family.child, taken.pids[0]);
	end_family(&family);
	finder_destroy(finder);
}

static void test_program_names(void **state)
{
	const char *const names[] = { "^daemon_finder_test$" };
	const struct daemon_options options = { .names = names, .name_count = 1 };
	struct finder *finder = make(&options);
	struct taken taken = { 0 };
	struct family family;

	(void)state;
	/* By the executable, as the kernel's name for it is another. */
	start_family(&family);
	look(finder, &taken, now_ns());
	assert_true(is_known(&taken, family.child));
	assert_false(is_known(&taken, family.middle));
	assert_false(is_known(&taken, getpid()));
	end_family(&family);
	finder_destroy(finder);
}

static void test_children(void **state)
{
	const struct daemon_options options = { .children = true };
	struct finder *finder = make(&options);
	struct taken taken = { .count = 1 };
	uint64_t time_ns = now_ns();
	struct family family;

	(void)state;
	start_family(&family);
	taken.pids[0] = family.middle;
	look(finder, &taken, time_ns);
	assert_int_equal(2, taken.count);
	assert_int_equal(family.child, taken.pids[1]);
	look(finder, &taken, time_ns + SECOND_NS);
	assert_int_equal(2, taken.count);
	end_family(&family);
	finder_destroy(finder);
}

/* One that comes between two looks is found at the next, within a quarter of a second. */
static void test_new_child(void **state)
{
	const struct daemon_options options = { .children = true };
	struct finder *finder = make(&options);
	struct taken taken = { 0 };
	struct family family;
	unsigned looks = 0;

	(void)state;
	for (int i = 0; i < 4; i++)
		look(finder, &taken, now_ns() + (uint64_t)i * SECOND_NS);
	assert_int_equal(0, taken.count);
	start_family(&family);
	taken.pids[taken.count++] = family.middle;
	/* Not a full look: only what is new is read. */
	for (uint64_t at = now_ns() + 10 * SECOND_NS; looks < 3 && taken.count == 1; looks++)
		look(finder, &taken, at + looks * SECOND_NS);
	assert_int_equal(1, looks);
	assert_int_equal(family.child, taken.pids[1]);
	end_family(&family);
	finder_destroy(finder);
}

/* A process that leads a session, and one in it whose parent has ended already. */
static void start_session(struct family *family)
{
	volatile pid_t *orphan = share_pid(), *born = share_pid();

	family->middle = fork();
	if (family->middle == 0) {
		pid_t parent;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setsid();
		parent = fork();
		if (parent == 0) {
			pid_t pid = fork();

			if (pid == 0) {
				alarm(60); /* whatever becomes of the test */
				sleep_for_ever();
			}
			*born = pid;
			_exit(0);
		}
		waitpid(parent, NULL, 0);
		*orphan = *born;
		sleep_for_ever();
	}
	family->child = wait_for_pid(orphan);
	munmap((void *)(uintptr_t)born, sizeof(*born));
}

static void test_orphan(void **state)
{
	const struct daemon_options options = { .children = true };
	struct finder *finder = make(&options);
	struct taken taken = { 0 };
	struct family family;

	(void)state;
	start_session(&family);
	assert_int_not_equal(family.middle, attach_parent_of(family.child));
	look(finder, &taken, now_ns());
	assert_int_equal(0, taken.count);
	taken.pids[taken.count++] = family.middle;
	/* On a slow machine the first look has taken so long that the next one is not due in a
	 * second. */
	look(finder, &taken, now_ns() + 60 * SECOND_NS);
	assert_int_equal(2, taken.count);
	assert_int_equal(family.child, taken.pids[1]);
	end_family(&family);
	finder_destroy(finder);
}

static void test_not_too_often(void **state)
{
	struct family family;
	const char *const names[] = { family.name };
	const struct daemon_options options = { .names = names, .name_count = 1 };
	struct taken taken = { .refuse = true };
	struct finder *finder;
	uint64_t time_ns;

	(void)state;
	start_family(&family);
	time_ns = now_ns();
	finder = make(&options);
	for (int i = 0; i < 50; i++)
		look(finder, &taken, time_ns + (uint64_t)i);
	assert_int_equal(1, taken.offers);
	/* A process that was refused is offered again for a while, then once a second. */
	for (int i = 1; i <= 20; i++)
		look(finder, &taken, time_ns + (uint64_t)i * SECOND_NS);
	assert_in_range(taken.offers, 5, 8);
	end_family(&family);
	finder_destroy(finder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_asked), cmocka_unit_test(test_wrong_pattern),
		cmocka_unit_test(test_names),	      cmocka_unit_test(test_program_names),
		cmocka_unit_test(test_children),      cmocka_unit_test(test_new_child),
		cmocka_unit_test(test_orphan),	      cmocka_unit_test(test_not_too_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
