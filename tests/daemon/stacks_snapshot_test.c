/* SPDX-License-Identifier: MIT */
/* Stacks where a freeze fails, or does not see all threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/dump/stacks.h"
#include "luastate/variables.h"

enum { MS_NS = 1000 * 1000, THREAD = 7, VM = 0x1000 };

static enum failure_kind fails;	  /* FAILURE_NONE: no freeze does */
static struct attach_freeze seen; /* without threads, else */

int __wrap_attach_freeze(struct attach_process *process, uint64_t max_pause_ns,
			 struct attach_copy *copy, struct attach_freeze *ret_freeze,
			 struct failure *why);

int __wrap_attach_freeze(struct attach_process *process, uint64_t max_pause_ns,
			 struct attach_copy *copy, struct attach_freeze *ret_freeze,
			 struct failure *why)
{
	(void)process, (void)max_pause_ns, (void)copy;
	if (fails != FAILURE_NONE) {
		ret_freeze->pause_ns = 30 * MS_NS;
		return failure_set(why, fails, 0, 0, (uint64_t)getpid(), "freeze it");
	}
	*ret_freeze = seen;
	return 0;
}

static struct daemon_target target;
static struct daemon_stacks stacks;

static int begin(void **state)
{
	struct failure why;

	(void)state;
	fails = FAILURE_NONE;
	seen = (struct attach_freeze){ .pause_ns = 2 * MS_NS };
	/* What a probe has found: one thread, and values that were too many. */
	stacks = (struct daemon_stacks){ .pid = getpid(),
					 .vms = calloc(1, sizeof(*stacks.vms)),
					 .vm_count = 1,
					 .threads = calloc(1, sizeof(*stacks.threads)),
					 .count = 1,
					 .is_exhausted = true };
	stacks.vms[0].G = VM;
	stacks.threads[0] = (struct daemon_thread){
		.tid = THREAD,
		.syscall = -1,
		.stack = { .outcome = DAEMON_FULL,
			   .frames = calloc(1, sizeof(struct daemon_frame)),
			   .count = 1,
			   .G = VM },
	};
	if (attach_process_open(getpid(), &target.process, &why) != 0 ||
	    symbols_space_create(target.process, &target.space, &why) != 0)
		return -1;
	return 0;
}

static int end(void **state)
{
	(void)state;
	daemon_stacks_deinit(&stacks);
	symbols_space_destroy(target.space);
	attach_process_close(target.process);
	return 0;
}

static void read_moment(void)
{
	const struct luastate_values_options values = LUASTATE_VALUES_DEFAULTS;
	const struct daemon_stacks_options options = { .values = &values };
	const struct snapshot_options how = { .max_bytes = 1 << 20 };
	struct snapshot *snapshot = snapshot_create(&target, &how);

	assert_non_null(snapshot);
	assert_int_equal(0, stacks_read_snapshot(&(struct stacks_snapshot){ .snapshot = snapshot,
									    .target = &target,
									    .options = &options },
						 &stacks));
	snapshot_destroy(snapshot);
}

static void assert_probe_stays(void)
{
	assert_int_equal(1, stacks.count);
	assert_int_equal(THREAD, stacks.threads[0].tid);
	assert_int_equal(1, stacks.threads[0].stack.count);
	assert_true(stacks.is_exhausted);
}

static void test_time_was_over(void **state)
{
	(void)state;
	fails = FAILURE_TIMEOUT;
	read_moment();
	assert_probe_stays();
	assert_true(stacks.is_late);
	assert_string_equal("", stacks.not_frozen);
	assert_true(stacks.pause_ns >= 30 * MS_NS);
}

/* A longer pause would not help. */
static void test_other_failures(void **state)
{
	static const enum failure_kind kinds[] = { FAILURE_BUSY, FAILURE_DENIED, FAILURE_GONE,
						   FAILURE_SYSTEM };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (i)
			assert_int_equal(0, begin(state));
		fails = kinds[i];
		read_moment();
		assert_probe_stays();
		assert_false(stacks.is_late);
		assert_string_not_equal("", stacks.not_frozen);
		if (kinds[i] == FAILURE_BUSY)
			assert_non_null(strstr(stacks.not_frozen, "already traced by pid"));
		if (i + 1 < sizeof(kinds) / sizeof(kinds[0]))
			end(state);
	}
}

static void test_ended_thread(void **state)
{
	(void)state;
	read_moment();
	assert_int_equal(0, stacks.count);
	assert_false(stacks.is_late);
	assert_false(stacks.is_exhausted);
	assert_int_equal(2 * MS_NS, stacks.pause_ns);
}

/* A thread for which no freeze had room is as it was before. */
static void test_more_threads_than_a_freeze_has(void **state)
{
	(void)state;
	seen.is_full = true;
	seen.woken = 1;
	read_moment();
	assert_probe_stays();
	assert_true(stacks.is_late);
	assert_true(stacks.has_woken);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_time_was_over),
		TEST(test_other_failures),
		TEST(test_ended_thread),
		TEST(test_more_threads_than_a_freeze_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
