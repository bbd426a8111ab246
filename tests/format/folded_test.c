/* SPDX-License-Identifier: MIT */
/* Folded chains: roots for processes and threads, and what tells the kinds of frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/data/label.h"
#include "format/profile/profile_internal.h"
#include "format/report.h"

static struct profile_frame frame_of(struct format_profile *profile, enum format_kind kind,
				     const char *name, const char *source, bool is_compiled)
{
	const struct format_function function = {
		.kind = kind, .name = name, .source = source, .first_line = source ? 3 : 0
	};
	const struct label_mark mark = { .compiled = is_compiled };
	struct profile_frame frame = { .line = source ? 5 : 0 };

	assert_int_equal(0, profile_add_function(profile, &function, &mark, &frame.function, NULL));
	return frame;
}

/** Two threads of a process, one whose name would break lines, one of a process whose chains begin
 *  with it, and a sample of which nothing is known. */
static struct format_profile *make_profile(void)
{
	struct format_profile *profile = format_profile_create(NULL);
	const struct profile_frame frames[] = {
		frame_of(profile, FORMAT_KIND_PROCESS, "nginx [9]", NULL, false),
		frame_of(profile, FORMAT_KIND_NATIVE, "main", NULL, false),
		frame_of(profile, FORMAT_KIND_LUA, "a;\nb", "@a.lua", false),
		frame_of(profile, FORMAT_KIND_LUA, NULL, "@a.lua", true),
		frame_of(profile, FORMAT_KIND_BUILTIN, "string.gsub", NULL, false),
		frame_of(profile, FORMAT_KIND_CFUNC, "", NULL, false),
		frame_of(profile, FORMAT_KIND_PSEUDO, "[gc]", NULL, false),
	};
	struct profile_labels labels = { .pid = 7, .tid = 71 };
	uint32_t state = FORMAT_STATE_LFUNC + 1;

	assert_int_equal(0, profile_add_sample(profile, frames + 1, 2, &labels, 1, NULL));
	/* Told apart by the state, but not where that is not shown. */
	labels.state = (uint8_t)state;
	assert_int_equal(0, profile_add_sample(profile, frames + 1, 2, &labels, 2, NULL));
	labels.tid = 72;
	assert_int_equal(0, profile_add_string(profile, "w;\n1", &labels.thread, NULL));
	assert_int_equal(0, profile_add_sample(profile, frames + 1, 2, &labels, 4, NULL));
	assert_int_equal(0, profile_add_sample(profile, frames, 0, &labels, 8, NULL));
	labels.pid = 9;
	assert_int_equal(0, profile_add_sample(profile, frames, 7, &labels, 16, NULL));
	assert_int_equal(0, profile_add_sample(profile, frames + 1, 5, NULL, 32, NULL));
	profile->has_kind = true;
	return profile;
}

static char *print(const struct format_profile *profile, const char *report, unsigned roots,
		   enum format_annotate annotate)
{
	const struct format_report_options options = { .roots = roots, .annotate = annotate };
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_int_equal(0, format_report_find(report)->print(profile, &options, out, NULL));
	fclose(out);
	return text;
}

static void expect(const struct format_profile *profile, unsigned roots,
		   enum format_annotate annotate, const char *expected)
{
	char *text = print(profile, "folded", roots, annotate);

	assert_string_equal(expected, text);
	free(text);
}

#define PLAIN_CHAIN "main;a, b (@a.lua:5);@a.lua:5;string.gsub;?"

static void test_roots(void **state)
{
	struct format_profile *profile = make_profile();
	char *text;

	(void)state;
	expect(profile, 0, FORMAT_ANNOTATE_NONE,
	       "[no stack] 8\n"
	       "main;a, b (@a.lua:5) 7\n" PLAIN_CHAIN " 32\n"
	       "nginx [9];" PLAIN_CHAIN ";[gc] 16\n");
	expect(profile, FORMAT_ROOTS_PROCESS, FORMAT_ANNOTATE_NONE,
	       PLAIN_CHAIN " 32\n"
			   "nginx [9];" PLAIN_CHAIN ";[gc] 16\n"
			   "process [7];[no stack] 8\n"
			   "process [7];main;a, b (@a.lua:5) 7\n");
	expect(profile, FORMAT_ROOTS_THREAD, FORMAT_ANNOTATE_NONE,
	       PLAIN_CHAIN " 32\n"
			   "nginx [9];w, 1 [72];" PLAIN_CHAIN ";[gc] 16\n"
			   "thread [71];main;a, b (@a.lua:5) 3\n"
			   "w, 1 [72];[no stack] 8\n"
			   "w, 1 [72];main;a, b (@a.lua:5) 4\n");
	expect(profile, FORMAT_ROOTS_PROCESS | FORMAT_ROOTS_THREAD, FORMAT_ANNOTATE_NONE,
	       PLAIN_CHAIN " 32\n"
			   "nginx [9];w, 1 [72];" PLAIN_CHAIN ";[gc] 16\n"
			   "process [7];thread [71];main;a, b (@a.lua:5) 3\n"
			   "process [7];w, 1 [72];[no stack] 8\n"
			   "process [7];w, 1 [72];main;a, b (@a.lua:5) 4\n");
	text = print(profile, "svg", FORMAT_ROOTS_PROCESS, FORMAT_ANNOTATE_NONE);
	assert_non_null(strstr(text, "<title>process [7]\nprocess, 15 samples"));
	assert_non_null(strstr(text, "63 samples, 4 call chains"));
	free(text);
	format_profile_destroy(profile);
}

#define KIND_CHAIN "main;a, b (@a.lua:5)_[l];@a.lua:5_[j];string.gsub_[b];_[c]"
#define KIND_CHAINS                                             \
	KIND_CHAIN " 32\n"                                      \
		   "nginx [9]_[p];" KIND_CHAIN ";[gc]_[a] 16\n" \
		   "process [7]_[p];[no stack]_[a] 8\n"         \
		   "process [7]_[p];main;a, b (@a.lua:5)_[l] 7\n"

/** Chains whose frames tell their kinds are read as what they were. */
static void test_kinds(void **state)
{
	struct format_profile *profile = make_profile(), *again;
	const struct format_function *function;
	FILE *file;

	(void)state;
	expect(profile, FORMAT_ROOTS_PROCESS, FORMAT_ANNOTATE_KIND, KIND_CHAINS);
	file = fmemopen((void *)(uintptr_t)KIND_CHAINS, strlen(KIND_CHAINS), "r");
	assert_int_equal(0, format_profile_read(file, &again, NULL));
	fclose(file);
	expect(again, 0, FORMAT_ANNOTATE_KIND, KIND_CHAINS);
	expect(again, FORMAT_ROOTS_PROCESS | FORMAT_ROOTS_THREAD, FORMAT_ANNOTATE_KIND,
	       KIND_CHAINS);
	function = format_functions_get(again->functions, 4);
	assert_int_equal(FORMAT_KIND_CFUNC, function->kind);
	assert_string_equal("", function->name);
	format_profile_destroy(again);
	format_profile_destroy(profile);
}

static void expect_kind(const char *text, enum format_kind kind, const char *name)
{
	struct label label = { 0 };

	assert_int_equal(0, label_parse(&label, text, strlen(text), NULL));
	assert_int_equal(kind, label.function.kind);
	assert_string_equal(name, label.function.name);
	label_deinit(&label);
}

static void test_labels(void **state)
{
	(void)state;
	expect_kind("select_[b]", FORMAT_KIND_BUILTIN, "select");
	expect_kind("select", FORMAT_KIND_NATIVE, "select");
	expect_kind("open_[c]", FORMAT_KIND_CFUNC, "open");
	expect_kind("waits_[a]", FORMAT_KIND_PSEUDO, "waits");
	expect_kind("worker_[p]", FORMAT_KIND_PROCESS, "worker");
	expect_kind("f (@a.lua:4)_[l]", FORMAT_KIND_LUA, "f");
	/* Other tools' are part of the name. */
	expect_kind("read_[k]", FORMAT_KIND_NATIVE, "read_[k]");
	expect_kind("_[i]", FORMAT_KIND_NATIVE, "_[i]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_roots),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
