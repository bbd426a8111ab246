/* SPDX-License-Identifier: MIT */
/* The priority of a process that stops others: taken where that is permitted, and given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/rights/priority.h"

static int own(void)
{
	return getpriority(PRIO_PROCESS, 0);
}

/* @return 0, or the number of what is not as it should be. */
static int check(int nice_value, int taken)
{
	int before;

	if (setpriority(PRIO_PROCESS, 0, nice_value) != 0)
		return 1;
	before = priority_take();
	if (before != nice_value)
		return 2;
	if (own() != taken)
		return 3;
	priority_give_back(before);
	return own() == nice_value ? 0 : 4;
}

/* In a child, as a process without the right does not get its nice value back. */
static void assert_taken(bool has_right, int nice_value, int taken)
{
	const struct rlimit none = { 0, 0 };
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (!has_right &&
		    (setrlimit(RLIMIT_NICE, &none) != 0 || (geteuid() == 0 && setuid(65534) != 0)))
			_exit(5);
		_exit(check(nice_value, taken));
	}
	assert_int_equal(pid, waitpid(pid, &status, 0));
	assert_true(WIFEXITED(status));
	assert_int_equal(0, WEXITSTATUS(status));
}

static void test_with_the_right(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_taken(true, 0, -10);
	assert_taken(true, 19, -10);
	assert_taken(true, -10, -10);
	assert_taken(true, -15, -15);
}

static void test_without_the_right(void **state)
{
	(void)state;
	/* A usual value, and the least, which anybody may set. */
	assert_taken(false, own() > 5 ? own() : 5, own() > 5 ? own() : 5);
	assert_taken(false, 19, 19);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_with_the_right),
		cmocka_unit_test(test_without_the_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
