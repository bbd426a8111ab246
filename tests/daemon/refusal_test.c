/* SPDX-License-Identifier: MIT */
/* What is told where the kernel copies no threads. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/refusal.h"

static const struct refusal_facts root = { .kernel_major = 6,
					   .kernel_minor = 1,
					   .paranoid = 2,
					   .has_bpf = true,
					   .has_perfmon = true,
					   .has_admin = true };

static void check(enum failure_kind kind, int errnum, const struct refusal_facts *facts,
		  enum daemon_end end, const char *part)
{
	const struct failure why = { .kind = kind, .errnum = errnum, .address = 2101 };
	char text[320] = "";

	assert_int_equal(end, refusal_describe(&why, facts, 99, text, sizeof(text)));
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static void names_what_lacks(void **state)
{
	struct refusal_facts facts = root;

	(void)state;
	facts.has_admin = facts.has_bpf = false;
	check(FAILURE_DENIED, EPERM, &facts, DAEMON_END_DENIED, "(there is no CAP_BPF)");
	facts.has_perfmon = false;
	check(FAILURE_DENIED, EPERM, &facts, DAEMON_END_DENIED,
	      "it takes root, or the capabilities CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE");
	check(FAILURE_DENIED, EPERM, &facts, DAEMON_END_DENIED, "no CAP_BPF, no CAP_PERFMON");
	facts.paranoid = 3;
	check(FAILURE_DENIED, EPERM, &facts, DAEMON_END_DENIED, "CAP_PERFMON, CAP_SYS_ADMIN");
}

static void tells_the_setting(void **state)
{
	struct refusal_facts facts = root;

	(void)state;
	facts.has_admin = false;
	facts.paranoid = 3;
	check(FAILURE_DENIED, EACCES, &facts, DAEMON_END_DENIED,
	      "kernel.perf_event_paranoid is 3, for which this kernel wants CAP_SYS_ADMIN: grant "
	      "that, or set it to 2");
	facts.paranoid = 4;
	check(FAILURE_DENIED, EACCES, &facts, DAEMON_END_DENIED, "kernel.perf_event_paranoid is 4");
}

static void tells_other_causes(void **state)
{
	struct refusal_facts facts = root;

	(void)state;
	check(FAILURE_DENIED, EPERM, &facts, DAEMON_END_DENIED, "the container's filter");
	facts.is_locked_down = true;
	check(FAILURE_DENIED, EPERM, &facts, DAEMON_END_DENIED, "locked down");
	check(FAILURE_LIMIT, 0, &root, DAEMON_END_SYSTEM,
	      "99 Hz take a kernel.perf_event_max_sample_rate of 2101");
	check(FAILURE_SYSTEM, ENOSYS, &root, DAEMON_END_SYSTEM, "built without clang");
	check(FAILURE_NO_MEMORY, ENOMEM, &root, DAEMON_END_SYSTEM, "out of memory");
	check(FAILURE_SYSTEM, E2BIG, &root, DAEMON_END_SYSTEM, "Argument list too long");
}

static void tells_that_a_kernel_is_old(void **state)
{
	struct refusal_facts facts = root;

	(void)state;
	facts.kernel_major = 5;
	facts.kernel_minor = 10;
	check(FAILURE_SYSTEM, EINVAL, &facts, DAEMON_END_SYSTEM,
	      "this kernel is Linux 5.10: it takes 5.17");
	/* More rights would not help. */
	check(FAILURE_DENIED, EPERM, &facts, DAEMON_END_SYSTEM, "Linux 5.10");
	facts.kernel_minor = 17;
	check(FAILURE_SYSTEM, EINVAL, &facts, DAEMON_END_SYSTEM, "Invalid argument");
	facts.kernel_major = 4;
	facts.kernel_minor = 19;
	check(FAILURE_SYSTEM, EINVAL, &facts, DAEMON_END_SYSTEM, "Linux 4.19");
	facts.kernel_major = facts.kernel_minor = 0;
	check(FAILURE_SYSTEM, EINVAL, &facts, DAEMON_END_SYSTEM, "Invalid argument");
}

static void finds_facts(void **state)
{
	struct refusal_facts facts = { 0 };

	(void)state;
	refusal_find_facts(&facts);
	assert_true(facts.kernel_major >= 3);
	assert_true(facts.paranoid >= -2 && facts.paranoid < 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_what_lacks),   cmocka_unit_test(tells_the_setting),
		cmocka_unit_test(tells_other_causes), cmocka_unit_test(tells_that_a_kernel_is_old),
		cmocka_unit_test(finds_facts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
