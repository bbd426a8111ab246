/* SPDX-License-Identifier: MIT */
/* Names that a recording finds after a function's first samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/profile/aggregator.h"
#include "format/report.h"

struct recording {
	struct format_functions *functions;
	struct aggregator aggregator;
};

static int begin(void **state)
{
	struct recording *recording = calloc(1, sizeof(*recording));
	struct failure why;

	recording->functions = format_functions_create();
	assert_int_equal(0,
			 aggregator_init(&recording->aggregator, recording->functions, NULL, &why));
	*state = recording;
	return 0;
}

static int end(void **state)
{
	struct recording *recording = *state;

	aggregator_deinit(&recording->aggregator);
	format_functions_destroy(recording->functions);
	free(recording);
	return 0;
}

/* A function of the file a.lua. @return Its id. */
static uint32_t announce(struct recording *recording, uint64_t address, int64_t line,
			 const char *name)
{
	const struct format_function function = { .kind = FORMAT_KIND_LUA,
						  .address = address,
						  .name = name,
						  .source = "@a.lua",
						  .first_line = line };
	struct failure why;
	uint32_t id;

	assert_int_equal(0, format_functions_add(recording->functions, &function, &id, &why));
	return id;
}

/* One sample of a function, which runs compiled as @p trace or is interpreted. */
static void count(struct recording *recording, uint32_t function, uint32_t trace)
{
	const struct format_frame frame = { .function = function, .line = 5, .trace = trace };
	const struct format_sample sample = { .frames = &frame, .frame_count = 1, .weight = 1 };
	struct failure why;

	assert_int_equal(0, aggregator_sample(&recording->aggregator, &sample, &why));
}

/* What a report by function says, at the end. */
static void expect(struct recording *recording, const char *expected)
{
	const struct format_report_options options = { .lines = FORMAT_LINES_FUNCTION };
	struct failure why;
	size_t len;
	char *text;
	FILE *file = open_memstream(&text, &len);

	assert_int_equal(0, aggregator_take_names(&recording->aggregator, &why));
	assert_int_equal(0, format_report_find("folded")->print(recording->aggregator.profile,
								&options, file, &why));
	fclose(file);
	assert_string_equal(expected, text);
	free(text);
}

static void test_later_name(void **state)
{
	uint32_t before = announce(*state, 0x1000, 3, NULL), after;

	count(*state, before, 0);
	count(*state, before, 7);
	after = announce(*state, 0x1000, 3, "f");
	count(*state, after, 0);
	expect(*state, "f (@a.lua:3) 3\n");
}

/* The definition of a function replaces the name that a call gave it. */
static void test_better_name(void **state)
{
	count(*state, announce(*state, 0x1000, 3, "f"), 0);
	count(*state, announce(*state, 0x1000, 3, "M.f"), 0);
	expect(*state, "M.f (@a.lua:3) 2\n");
}

/* A name that no sample has is a name, too: only frames of other coroutines may show it. */
static void test_name_without_samples(void **state)
{
	count(*state, announce(*state, 0x1000, 3, NULL), 0);
	announce(*state, 0x1000, 3, "f");
	expect(*state, "f (@a.lua:3) 1\n");
}

/* Another function on the same line never gets a name: it must not get the first one's. */
static void test_two_on_one_line(void **state)
{
	count(*state, announce(*state, 0x1000, 3, NULL), 0);
	count(*state, announce(*state, 0x2000, 3, NULL), 0);
	count(*state, announce(*state, 0x1000, 3, "f"), 0);
	expect(*state, "@a.lua:3 2\nf (@a.lua:3) 1\n");
}

/* In two processes a function has two addresses, and one name. */
static void test_two_processes(void **state)
{
	count(*state, announce(*state, 0x1000, 3, NULL), 0);
	count(*state, announce(*state, 0x2000, 3, NULL), 0);
	count(*state, announce(*state, 0x1000, 3, "f"), 0);
	count(*state, announce(*state, 0x2000, 3, "f"), 0);
	expect(*state, "f (@a.lua:3) 4\n");
}

/* Memory of one function that another one gets. */
static void test_same_address(void **state)
{
	count(*state, announce(*state, 0x1000, 3, NULL), 0);
	count(*state, announce(*state, 0x1000, 9, "g"), 0);
	expect(*state, "@a.lua:3 1\ng (@a.lua:9) 1\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_later_name, begin, end),
		cmocka_unit_test_setup_teardown(test_better_name, begin, end),
		cmocka_unit_test_setup_teardown(test_name_without_samples, begin, end),
		cmocka_unit_test_setup_teardown(test_two_on_one_line, begin, end),
		cmocka_unit_test_setup_teardown(test_two_processes, begin, end),
		cmocka_unit_test_setup_teardown(test_same_address, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
