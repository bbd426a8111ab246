/* SPDX-License-Identifier: MIT */
/* Holds that fail, and what stays of those before them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/image/bulk_copy.h"
#include "daemon/snapshot/snapshot.h"

enum { MS_NS = 1000 * 1000, CALLS_MAX = 4 };

/** What attach_freeze() does when it is called next. */
struct call {
	enum failure_kind fails; /* FAILURE_NONE: it does not */
	size_t woken;
	uint64_t pause_ns;
};

static struct call calls[CALLS_MAX];
static unsigned called;
static uint64_t left_ns;       /* that the last call was allowed */
static volatile uint64_t word; /* copied; by call */

int __wrap_attach_freeze(struct attach_process *process, uint64_t max_pause_ns,
			 struct attach_copy *copy, struct attach_freeze *ret_freeze,
			 struct failure *why);

int __wrap_attach_freeze(struct attach_process *process, uint64_t max_pause_ns,
			 struct attach_copy *copy, struct attach_freeze *ret_freeze,
			 struct failure *why)
{
	const struct call *call = &calls[called++];
	size_t unread;

	assert_true(called <= CALLS_MAX);
	left_ns = max_pause_ns;
	word = called;
	assert_int_equal(0, copy_prepare(copy, why));
	assert_int_equal(0, copy_read(copy, process, UINT64_MAX, &unread, why));
	copy_finish(copy);
	ret_freeze->pause_ns = call->pause_ns;
	if (call->fails != FAILURE_NONE)
		return failure_set(why, call->fails, 0, 0, 0, "freeze it");
	ret_freeze->threads = calloc(1, sizeof(*ret_freeze->threads));
	ret_freeze->thread_count = ret_freeze->stopped_count = 1;
	ret_freeze->woken = call->woken;
	return 0;
}

static struct daemon_target target;
static struct snapshot *snapshot;

static int begin(void **state)
{
	const struct snapshot_options options = { .max_pause_ns = 50 * MS_NS,
						  .max_bytes = 1 << 20 };
	struct failure why;
	uint64_t seen;

	(void)state;
	called = 0;
	if (attach_process_open(getpid(), &target.process, &why) != 0 ||
	    symbols_space_create(target.process, &target.space, &why) != 0)
		return -1;
	snapshot = snapshot_create(&target, &options);
	return snapshot ? attach_read(snapshot_live(snapshot),
				      remote_addr_make((uint64_t)(uintptr_t)&word), &seen,
				      sizeof(seen), &why)
			: -1;
}

static int end(void **state)
{
	(void)state;
	snapshot_destroy(snapshot);
	symbols_space_destroy(target.space);
	attach_process_close(target.process);
	return 0;
}

static uint64_t copied_word(void)
{
	struct failure why;
	uint64_t value = 0;

	assert_int_equal(0, attach_read(snapshot_copy(snapshot),
					remote_addr_make((uint64_t)(uintptr_t)&word), &value,
					sizeof(value), &why));
	return value;
}

static void test_woken_is_held_again(void **state)
{
	struct failure why;

	(void)state;
	calls[0] = (struct call){ .woken = 1, .pause_ns = 2 * MS_NS };
	calls[1] = (struct call){ .pause_ns = 3 * MS_NS };
	assert_int_equal(0, snapshot_take(snapshot, &why));
	assert_int_equal(2, called);
	assert_int_equal(0, snapshot_freeze(snapshot)->woken);
	assert_int_equal(5 * MS_NS, snapshot_freeze(snapshot)->pause_ns);
	assert_int_equal(2, copied_word());
}

static void test_earlier_stays_where_retry_fails(void **state)
{
	static const enum failure_kind kinds[] = { FAILURE_TIMEOUT, FAILURE_BUSY, FAILURE_DENIED,
						   FAILURE_NO_MEMORY };
	struct failure why;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (i)
			assert_int_equal(0, begin(state));
		calls[0] = (struct call){ .woken = 1, .pause_ns = 2 * MS_NS };
		calls[1] = (struct call){ .fails = kinds[i], .pause_ns = 45 * MS_NS };
		assert_int_equal(0, snapshot_take(snapshot, &why));
		assert_int_equal(2, called);
		assert_int_equal(1, snapshot_freeze(snapshot)->woken);
		assert_int_equal(1, snapshot_freeze(snapshot)->thread_count);
		assert_int_equal(47 * MS_NS, snapshot_freeze(snapshot)->pause_ns);
		assert_int_equal(1, copied_word());
		if (i + 1 < sizeof(kinds) / sizeof(kinds[0]))
			end(state);
	}
}

/* For however long threads stood, it is of the time that was allowed. */
static void test_failed_pause_counts(void **state)
{
	struct failure why;

	(void)state;
	calls[0] = (struct call){ .fails = FAILURE_TIMEOUT, .pause_ns = 10 * MS_NS };
	calls[1] = (struct call){ .pause_ns = 4 * MS_NS };
	assert_int_equal(0, snapshot_take(snapshot, &why));
	assert_int_equal(2, called);
	assert_int_equal(40 * MS_NS, left_ns);
	assert_int_equal(14 * MS_NS, snapshot_freeze(snapshot)->pause_ns);
}

static void test_failure_is_told(void **state)
{
	struct failure why;

	(void)state;
	calls[0] = (struct call){ .pause_ns = 2 * MS_NS };
	calls[1] = (struct call){ .fails = FAILURE_BUSY, .pause_ns = 3 * MS_NS };
	assert_int_equal(0, snapshot_take(snapshot, &why));
	assert_int_equal(-1, snapshot_take(snapshot, &why));
	assert_int_equal(FAILURE_BUSY, why.kind);
	assert_int_equal(2, called);
	assert_int_equal(0, snapshot_freeze(snapshot)->thread_count);
	assert_int_equal(5 * MS_NS, snapshot_freeze(snapshot)->pause_ns);
}

/* Each look shows what is there then; what an earlier one met is copied, too. */
static void test_looks_are_new(void **state)
{
	const struct remote_addr address = remote_addr_make((uint64_t)(uintptr_t)&word);
	struct failure why;
	uint64_t seen = 0;

	(void)state;
	for (uint64_t i = 1; i < 4; i++) {
		const struct attach_reader *look = snapshot_live(snapshot);

		word = i;
		assert_int_equal(0, attach_read(look, address, &seen, sizeof(seen), &why));
		assert_int_equal(i, seen);
	}
	snapshot_live(snapshot);
	calls[0] = (struct call){ .pause_ns = MS_NS };
	assert_int_equal(0, snapshot_take(snapshot, &why));
	assert_int_equal(1, copied_word());
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_woken_is_held_again), TEST(test_earlier_stays_where_retry_fails),
		TEST(test_failed_pause_counts), TEST(test_failure_is_told),
		TEST(test_looks_are_new),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
