/* SPDX-License-Identifier: MIT */
/* When a thread that the kernel copies is stopped, as its copies lack too much. */
#include "daemon/sampled.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* So many samples, of which these first ones are not whole. */
static void note(struct sampled_tap *tap, unsigned samples, unsigned torn)
{
	for (unsigned i = 0; i < samples; i++)
		tapped_note(tap, i < torn ? DAEMON_TRUNCATED : DAEMON_FULL);
}

static void lets_copies_that_lack_little(void **state)
{
	struct sampled_tap tap = { 0 };

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		note(&tap, 128, 2);
	assert_int_equal(tap.torn_copies, 0);
	for (unsigned i = 0; i < 1000; i++)
		tapped_note(&tap, DAEMON_NO_VM);
	assert_int_equal(tap.torn_copies, 0);
}

static void stops_where_copies_lack_more(void **state)
{
	struct sampled_tap tap = { 0 };

	(void)state;
	note(&tap, 127, 3);
	assert_int_equal(tap.torn_copies, 0);
	note(&tap, 1, 0);
	assert_int_equal(tap.torn_copies, 3);
}

static void tells_the_last_one(void **state)
{
	struct sampled_tap tap = { 0 };

	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		tapped_note(&tap, DAEMON_UNWOUND);
		assert_true(tap.is_torn);
		tapped_note(&tap, DAEMON_FULL);
		assert_false(tap.is_torn);
	}
}

static void goes_on_with_stops_that_show_more(void **state)
{
	struct sampled_tap tap = { 0 };

	(void)state;
	note(&tap, 128, 64);
	assert_int_equal(tap.torn_copies, 64);
	tap.is_stopped = true;
	note(&tap, 1000, 249);
	tapped_note_stops(&tap);
	assert_false(tap.is_torn_by_stops);
}

static void takes_copies_where_stops_show_no_more(void **state)
{
	struct sampled_tap tap = { 0 };

	(void)state;
	note(&tap, 128, 64);
	tap.is_stopped = true;
	note(&tap, 1000, 251);
	tapped_note_stops(&tap);
	assert_true(tap.is_torn_by_stops);
	tap.is_stopped = false;
	tap.torn_copies = 0;
	note(&tap, 1280, 1280);
	assert_int_equal(tap.torn_copies, 0);
}

/* It was stopped for another cause, or slept. */
static void judges_no_stops_without_cause(void **state)
{
	struct sampled_tap tap = { .is_stopped = true };

	(void)state;
	note(&tap, 100, 100);
	tapped_note_stops(&tap);
	assert_false(tap.is_torn_by_stops);
	tap.torn_copies = 64;
	tapped_note_stops(&tap);
	assert_false(tap.is_torn_by_stops);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lets_copies_that_lack_little),
		cmocka_unit_test(stops_where_copies_lack_more),
		cmocka_unit_test(tells_the_last_one),
		cmocka_unit_test(goes_on_with_stops_that_show_more),
		cmocka_unit_test(takes_copies_where_stops_show_no_more),
		cmocka_unit_test(judges_no_stops_without_cause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
