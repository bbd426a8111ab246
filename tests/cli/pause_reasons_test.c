/* SPDX-License-Identifier: MIT */
/* What makes a dump of stacks partial is said to people and to programs alike. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <json.h>

#include "cli/dump/dump.h"

/* @return Freed by the caller. */
static char *print(const struct daemon_stacks *stacks, bool as_json)
{
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	assert_non_null(file);
	if (as_json)
		assert_int_equal(0, dump_print_stacks_json(file, stacks, 1));
	else
		dump_print_stacks(file, stacks);
	fclose(file);
	return text;
}

static void assert_partial(const struct daemon_stacks *stacks, const char *text, const char *json)
{
	char *people = print(stacks, false), *programs = print(stacks, true);
	struct json_object *root = json_tokener_parse(programs), *list, *process, *flag, *why;

	assert_non_null(root);
	assert_true(json_object_object_get_ex(root, "processes", &list));
	process = json_object_array_get_idx(list, 0);
	assert_true(json_object_object_get_ex(process, "partial", &flag));
	assert_true(json_object_object_get_ex(process, "partial_why", &why));
	assert_int_equal(json != NULL, json_object_get_boolean(flag));
	assert_int_equal(json != NULL, json_object_array_length(why));
	assert_int_equal(text != NULL, strstr(people, "partial: ") != NULL);
	if (json)
		assert_string_equal(json,
				    json_object_get_string(json_object_array_get_idx(why, 0)));
	if (text)
		assert_non_null(strstr(people, text));
	json_object_put(root);
	free(people);
	free(programs);
}

static void test_stacks(void **state)
{
	(void)state;
	assert_partial(&(struct daemon_stacks){ .pid = 1 }, NULL, NULL);
	assert_partial(&(struct daemon_stacks){ .is_late = true }, "--max-pause helps", "late");
	assert_partial(&(struct daemon_stacks){ .is_huge = true }, "heap is larger", "huge");
	assert_partial(&(struct daemon_stacks){ .has_woken = true }, "ran while", "woken");
	assert_partial(&(struct daemon_stacks){ .is_exhausted = true }, "<omitted>", "values");
	assert_partial(&(struct daemon_stacks){ .core = "core", .is_truncated = true },
		       "is incomplete", "core_truncated");
	assert_partial(&(struct daemon_stacks){ .ended = true }, "program ended", "ended");
	assert_partial(&(struct daemon_stacks){ .unread = 2 }, "2 threads that could not be read",
		       "unread");
	assert_partial(
		&(struct daemon_stacks){ .not_frozen = "traced by another" },
		"could not be frozen, so this is not a consistent snapshot: traced by another",
		"not_frozen");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
