/* SPDX-License-Identifier: MIT */
/* Which of the traces that are shown has which samples of a recording. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/dump/dump.h"

/* Two workers of one program, 10 and 20, and one with two VMs, 30. */
#define SAMPLES(n) "\"samples\":" #n ",\"exact\":" #n ",\"approximate\":0,\"trace_only\":0}"
#define ENTRY(pid, trace, line, n) \
	"{\"pid\":" #pid ",\"trace\":" #trace ",\"chunk\":\"@a.lua\",\"line\":" #line "," SAMPLES(n)

static char chunk[] = "@a.lua", other_chunk[] = "@b.lua";

static struct luastate_known_function functions[] = { { .chunkname = chunk },
						      { .chunkname = other_chunk } };

static struct luastate_trace traces[] = {
	{ .number = 1, .start = { .function = 0, .line = 5 } },
	{ .number = 2, .start = { .function = 0, .line = 9 } },
	{ .number = 3, .start = { .function = 1, .line = 9 } },
	{ .number = 4, .start = { .function = LUASTATE_NO_FUNCTION } },
};

/* All VMs have made the same. */
static struct luastate_jit_report report = {
	.functions = functions, .function_count = 2, .traces = traces, .trace_count = 4
};

static struct daemon_dump_vm vms[] = { { .report = &report }, { .report = &report } };

static int try_read(const char *text, struct dump_profile **ret_profile)
{
	char path[] = "/tmp/dump_profile_test.XXXXXX";
	int fd = mkstemp(path), ret;

	assert_true(fd >= 0);
	assert_true(dprintf(fd, "%s", text) > 0);
	close(fd);
	ret = dump_profile_read(path, ret_profile);
	unlink(path);
	return ret;
}

static struct dump_profile *read_profile(const char *text)
{
	struct dump_profile *profile = NULL;

	assert_int_equal(0, try_read(text, &profile));
	return profile;
}

static struct dump_samples find(const struct dump_profile *profile, pid_t pid, size_t index)
{
	return dump_profile_find(profile, pid, &report, &traces[index]);
}

static const char workers[] =
	"{\"processes\":[{\"pid\":10},{\"pid\":20},{\"pid\":30}],\"traces\":[" ENTRY(
		10, 1, 5, 49) "," ENTRY(20, 1, 5, 47) "," ENTRY(20, 2, 9, 4) "]}";

static void test_processes(void **state)
{
	const struct daemon_dump dumps[] = { { .pid = 10, .vms = vms, .count = 1 },
					     { .pid = 20, .vms = vms, .count = 1 },
					     { .pid = 30, .vms = vms, .count = 1 } };
	struct dump_profile *profile = read_profile(workers);
	struct dump_totals totals;

	(void)state;
	dump_profile_match(profile, dumps, 3);
	assert_int_equal(49, find(profile, 10, 0).all);
	assert_int_equal(49, find(profile, 10, 0).exact);
	assert_int_equal(0, find(profile, 10, 1).all);
	assert_int_equal(47, find(profile, 20, 0).all);
	assert_int_equal(4, find(profile, 20, 1).all);
	assert_int_equal(0, find(profile, 20, 0).shared);
	/* It was recorded, and met in no trace. */
	assert_int_equal(0, find(profile, 30, 0).all);
	totals = dump_profile_count(profile);
	assert_int_equal(100, totals.all);
	assert_int_equal(0, totals.unknown);
	assert_int_equal(0, totals.shared);
	/* Those of a process that is not shown are not another one's. */
	dump_profile_match(profile, dumps, 1);
	assert_int_equal(49, find(profile, 10, 0).all);
	assert_int_equal(51, dump_profile_count(profile).unknown);
	dump_profile_destroy(profile);
}

/* One that was not recorded stands for those that are not shown. */
static void test_restarted(void **state)
{
	const struct daemon_dump dumps[] = { { .pid = 10, .vms = vms, .count = 1 },
					     { .pid = 40, .vms = vms, .count = 1 },
					     { .pid = 50, .vms = vms, .count = 1 } };
	struct dump_profile *profile = read_profile(workers);

	(void)state;
	dump_profile_match(profile, dumps, 2);
	assert_int_equal(49, find(profile, 10, 0).all);
	assert_int_equal(47, find(profile, 40, 0).all);
	assert_int_equal(4, find(profile, 40, 1).all);
	assert_int_equal(0, dump_profile_count(profile).unknown);
	/* Two of them: either may be the one. */
	dump_profile_match(profile, dumps, 3);
	for (pid_t pid = 40; pid <= 50; pid += 10) {
		assert_int_equal(0, find(profile, pid, 0).all);
		assert_int_equal(47, find(profile, pid, 0).shared);
	}
	assert_int_equal(51, dump_profile_count(profile).shared);
	dump_profile_destroy(profile);
}

/* Of two VMs' traces that are alike both have been recorded, or one. */
static void test_vms(void **state)
{
	const struct daemon_dump dump = { .pid = 30, .vms = vms, .count = 2 };
	struct dump_profile *profile = read_profile("{\"traces\":[" ENTRY(30, 1, 5, 60) "," ENTRY(
		30, 1, 5, 30) "," ENTRY(30, 2, 8, 10) "]}");
	struct dump_totals totals;

	(void)state;
	dump_profile_match(profile, &dump, 1);
	assert_int_equal(0, find(profile, 30, 0).all);
	assert_int_equal(0, find(profile, 30, 0).exact);
	assert_int_equal(90, find(profile, 30, 0).shared);
	assert_int_equal(0, find(profile, 30, 1).shared);
	totals = dump_profile_count(profile);
	assert_int_equal(100, totals.all);
	assert_int_equal(90, totals.shared);
	assert_int_equal(10, totals.unknown);
	dump_profile_destroy(profile);
}

/* What ljrecord writes of a trace whose start it does not know. */
static void test_unknown_start(void **state)
{
	const struct daemon_dump dump = { .pid = 10, .vms = vms, .count = 1 };
	struct dump_profile *profile = read_profile(
		"{\"traces\":[{\"pid\":10,\"trace\":1,\"chunk\":null,\"line\":0," SAMPLES(
			3) ",{\"pid\":10,\"trace\":4,\"chunk\":\"@a.lua\",\"line\":-"
			   "1," SAMPLES(2) "]}");

	(void)state;
	dump_profile_match(profile, &dump, 1);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(0, find(profile, 10, i).all);
	assert_int_equal(5, dump_profile_count(profile).unknown);
	dump_profile_destroy(profile);
}

static void test_refused(void **state)
{
	static const char *const texts[] = {
		"[",
		"7",
		"{}",
		"{\"traces\":7}",
		"{\"traces\":[7]}",
		"{\"traces\":[" ENTRY(0, 1, 5, 1) "]}",
		"{\"traces\":[" ENTRY(4294967297, 1, 5, 1) "]}",
		"{\"traces\":[" ENTRY(7, -1, 5, 1) "]}",
		"{\"traces\":[" ENTRY(7, 1, null, 1) "]}",
		"{\"traces\":[" ENTRY(7, 1, 5, -1) "]}",
		"{\"traces\":[" ENTRY(7, 1, 5, 9223372036854775807) "]}",
		"{\"traces\":[{\"trace\":1,\"chunk\":\"@a.lua\",\"line\":5," SAMPLES(1) "]}",
		"{\"traces\":[{\"pid\":7,\"trace\":1,\"line\":5," SAMPLES(1) "]}",
		"{\"processes\":[{}],\"traces\":[]}",
		"{\"processes\":[null],\"traces\":[]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct dump_profile *profile = NULL;

		assert_int_equal(-1, try_read(texts[i], &profile));
		assert_null(profile);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_processes), cmocka_unit_test(test_restarted),
		cmocka_unit_test(test_vms),	  cmocka_unit_test(test_unknown_start),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
