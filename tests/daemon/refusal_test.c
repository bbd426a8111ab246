/* SPDX-License-Identifier: MIT */
/* What users read where the kernel copies no threads. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/bpf.h"
#include "daemon/rights/refusal.h"
#include "luastate/plan.h"

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
	check(FAILURE_DENIED, EPERM, &facts, DAEMON_END_DENIED, "(missing: CAP_BPF)");
	facts.has_perfmon = false;
	check(FAILURE_DENIED, EPERM, &facts, DAEMON_END_DENIED,
	      "use root, or grant the capabilities CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE");
	check(FAILURE_DENIED, EPERM, &facts, DAEMON_END_DENIED, "(missing: CAP_BPF, CAP_PERFMON)");
	facts.paranoid = 3;
	check(FAILURE_DENIED, EPERM, &facts, DAEMON_END_DENIED, "CAP_PERFMON, CAP_SYS_ADMIN");
}

static void tells_what_we_lack(void **state)
{
	(void)state;
	check(FAILURE_SYSTEM, EMFILE, &root, DAEMON_END_SYSTEM,
	      "Too many open files: the limit of open files (ulimit -n) is too low");
	check(FAILURE_NO_MEMORY, ENOMEM, &root, DAEMON_END_SYSTEM, "out of memory");
}

static void tells_the_setting(void **state)
{
	struct refusal_facts facts = root;

	(void)state;
	facts.has_admin = false;
	facts.paranoid = 3;
	check(FAILURE_DENIED, EACCES, &facts, DAEMON_END_DENIED,
	      "kernel.perf_event_paranoid is 3, so this kernel requires CAP_SYS_ADMIN: grant it, "
	      "or set the value to 2");
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
	      "99 Hz need a kernel.perf_event_max_sample_rate of 2101");
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
	      "kernel samples need Linux 5.17 or later, and this kernel is 5.10");
	/* More rights would not help. */
	check(FAILURE_DENIED, EPERM, &facts, DAEMON_END_SYSTEM, "this kernel is 5.10");
	/* What a distribution has taken over does not depend on the number. */
	facts.loop = REFUSAL_LOOP_THERE;
	check(FAILURE_DENIED, EPERM, &facts, DAEMON_END_DENIED, "the container's filter");
	check(FAILURE_SYSTEM, EINVAL, &facts, DAEMON_END_SYSTEM, "Invalid argument");
	facts.loop = REFUSAL_LOOP_LACKING;
	check(FAILURE_DENIED, EPERM, &facts, DAEMON_END_SYSTEM, "this kernel is 5.10");
	facts.loop = REFUSAL_LOOP_UNKNOWN;
	facts.kernel_minor = 17;
	check(FAILURE_SYSTEM, EINVAL, &facts, DAEMON_END_SYSTEM, "Invalid argument");
	facts.kernel_major = 4;
	facts.kernel_minor = 19;
	check(FAILURE_SYSTEM, EINVAL, &facts, DAEMON_END_SYSTEM, "this kernel is 4.19");
	facts.kernel_major = facts.kernel_minor = 0;
	check(FAILURE_SYSTEM, EINVAL, &facts, DAEMON_END_SYSTEM, "Invalid argument");
}

/* @return what a file with these bytes says. */
static enum refusal_loop loop_in(const char *bytes, size_t len)
{
	char path[] = "/tmp/refusal_test.XXXXXX";
	enum refusal_loop found;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(len, write(fd, bytes, len));
	close(fd);
	found = refusal_find_loop(path);
	unlink(path);
	return found;
}

static void looks_for_what_it_needs(void **state)
{
	static const char has[] = "x\0BPF_FUNC_loop\0y", other[] = "x\0BPF_FUNC_loop_more\0y",
			  another[] = "x\0NO_BPF_FUNC_loop\0y";

	(void)state;
	assert_int_equal(REFUSAL_LOOP_UNKNOWN, refusal_find_loop("/tmp/refusal_test/none"));
	assert_int_equal(REFUSAL_LOOP_UNKNOWN, loop_in("", 0));
	assert_int_equal(REFUSAL_LOOP_THERE, loop_in(has, sizeof(has)));
	assert_int_equal(REFUSAL_LOOP_LACKING, loop_in(other, sizeof(other)));
	assert_int_equal(REFUSAL_LOOP_LACKING, loop_in(another, sizeof(another)));
}

/* Where copies work, the kernel has what they need. */
static void agrees_with_the_kernel(void **state)
{
	struct refusal_facts facts;
	const struct attach_sampler_object object = luastate_bpf_object();
	struct attach_sampler *sampler;
	struct failure why;

	(void)state;
	if (attach_sampler_create(&object, 99, &sampler, &why) != 0) {
		print_message("skipped: the kernel copies no threads here\n");
		skip();
	}
	attach_sampler_destroy(sampler);
	refusal_find_facts(&facts);
	assert_true(facts.loop != REFUSAL_LOOP_LACKING);
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
		cmocka_unit_test(names_what_lacks),
		cmocka_unit_test(tells_what_we_lack),
		cmocka_unit_test(tells_the_setting),
		cmocka_unit_test(tells_other_causes),
		cmocka_unit_test(tells_that_a_kernel_is_old),
		cmocka_unit_test(finds_facts),
		cmocka_unit_test(looks_for_what_it_needs),
		cmocka_unit_test(agrees_with_the_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
