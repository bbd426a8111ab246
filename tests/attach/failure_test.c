/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "attach/failure.h"

static void test_texts(void **state)
{
	static const struct {
		struct failure why;
		const char *text;
	} cases[] = {
		{ { FAILURE_GONE, ESRCH, 4711, 0, "read the registers" },
		  "cannot read the registers of 4711: it has ended" },
		{ { FAILURE_FAULT, EFAULT, 0, 0xdead0000beef, "read memory" },
		  "cannot read memory at 0xdead0000beef: memory not readable" },
		/* Address 0 is worth telling where a read failed, and nowhere else. */
		{ { FAILURE_FAULT, 0, 12, 0, "read memory" },
		  "cannot read memory of 12 at 0x0: memory not readable" },
		{ { FAILURE_SYSTEM, ENOSPC, 0, 0, "write the output" },
		  "cannot write the output: No space left on device" },
		{ { FAILURE_DENIED, EPERM, 7, 0, "trace the thread" },
		  "cannot trace the thread of 7: Operation not permitted" },
		{ { FAILURE_DENIED, 0, 0, 0, "do that" }, "cannot do that: refused" },
		{ { FAILURE_BUSY, 0, 1, 0, "trace the thread" },
		  "cannot trace the thread of 1: traced by another process" },
		{ { FAILURE_NOT_FOUND, 0, 0, 0, "find a VM" }, "cannot find a VM: not found" },
		{ { FAILURE_LIMIT, 0, 0, 0, "follow a chain" },
		  "cannot follow a chain: limit reached" },
		{ { FAILURE_TIMEOUT, 0, 3, 0, "stop the thread" },
		  "cannot stop the thread of 3: timed out" },
		{ { FAILURE_NO_MEMORY, ENOMEM, 0, 0, "grow an image" },
		  "cannot grow an image: out of memory" },
		{ { FAILURE_NONE }, "cannot continue: no failure" },
	};
	char text[200];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		failure_describe(&cases[i].why, text, sizeof(text));
		assert_string_equal(cases[i].text, text);
	}
}

static void test_short_buffers(void **state)
{
	const struct failure why = { .kind = FAILURE_GONE, .step = "stop the thread" };
	const char whole[] = "cannot stop the thread: it has ended";
	char text[64];

	(void)state;
	for (size_t len = 1; len <= sizeof(whole); len++) {
		memset(text, '#', sizeof(text));
		failure_describe(&why, text, len);
		assert_int_equal(len - 1, strlen(text));
		assert_memory_equal(whole, text, len - 1);
		assert_int_equal('#', text[len]);
	}
}

static void test_set(void **state)
{
	struct failure why;

	(void)state;
	assert_int_equal(-1, failure_set(&why, FAILURE_BUSY, 1, 2, 3, "x"));
	assert_int_equal(FAILURE_BUSY, why.kind);
	assert_int_equal(1, why.errnum);
	assert_int_equal(2, why.tid);
	assert_int_equal(3, why.address);
	assert_string_equal("x", why.step);
	assert_int_equal(-1, failure_set(NULL, FAILURE_BUSY, 1, 2, 3, "x"));
}

static void test_kinds_of_errno(void **state)
{
	static const struct {
		int errnum;
		enum failure_kind kind;
	} cases[] = {
		{ ESRCH, FAILURE_GONE },    { EPERM, FAILURE_DENIED },
		{ EACCES, FAILURE_DENIED }, { ENOMEM, FAILURE_NO_MEMORY },
		{ EMFILE, FAILURE_SYSTEM }, { EIO, FAILURE_SYSTEM },
	};
	struct failure why;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(-1, failure_set_errno(&why, cases[i].errnum, 5, "x"));
		assert_int_equal(cases[i].kind, why.kind);
		assert_int_equal(cases[i].errnum, why.errnum);
		assert_int_equal(5, why.tid);
		assert_int_equal(0, why.address);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_short_buffers),
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_kinds_of_errno),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
