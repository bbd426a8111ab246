/* SPDX-License-Identifier: MIT */
/* Comparing profiles, and the rules that they have to keep. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/budget.h"
#include "format/diff/compare.h"
#include "format/diff/effective_samples.h"
#include "tests/rounds.h"

/* ---- Profiles --------------------------------------------------------------------------- */

static struct format_profile *profile_of(const char *folded)
{
	FILE *file = fmemopen((void *)(uintptr_t)folded, strlen(folded), "r");
	struct format_profile *profile;
	struct failure why;

	assert_non_null(file);
	assert_int_equal(0, format_profile_read(file, &profile, &why));
	fclose(file);
	return profile;
}

/* ---- Intervals -------------------------------------------------------------------------- */

static void expect_range(double low, double value, double high, struct compare_range range)
{
	assert_true(fabs(low - range.low) < 0.0005);
	assert_true(fabs(value - range.value) < 0.0005);
	assert_true(fabs(high - range.high) < 0.0005);
}

/* Figures of Newcombe 1998, Statistics in Medicine 17, 857-872: exact intervals of 95 %. */
static void test_intervals(void **state)
{
	const double tail = 0.025;

	(void)state;
	expect_range(0.2527, 0.3080, 0.3676, compare_share(81, 263, 1, tail));
	expect_range(0.0579, 0.1014, 0.1617, compare_share(15, 148, 1, tail));
	expect_range(0.0000, 0.0000, 0.1684, compare_share(0, 20, 1, tail));
	expect_range(0.0009, 0.0345, 0.1776, compare_share(1, 29, 1, tail));
	expect_range(0, 0, 1, compare_share(0, 0, 1, tail));
	expect_range(1, 1, 1, compare_share(UINT64_MAX / 4, UINT64_MAX / 4, 1, tail));
	/* Where one side has no samples no change is certain. */
	expect_range(
		-0.5478, 0.5, 0.8129,
		compare_difference(compare_share(0, 0, 1, tail), compare_share(5, 10, 1, tail)));
	assert_false(compare_is_certain(compare_difference(
		compare_share(0, 0, 1, tail), compare_share(1000000, 1000000, 1, tail))));
}

/* Against the binomial distribution itself: beyond each end lies what is asked for. */
static void test_exact(void **state)
{
	static const double tails[] = { 0.025, 1e-4, 1e-7 };

	(void)state;
	for (size_t t = 0; t < 3; t++) {
		for (unsigned k = 1; k < 60; k += 7) {
			const unsigned n = 60;
			struct compare_range range = compare_share(k, n, 1, tails[t]);
			double at_least = 0, at_most = 0;

			for (unsigned i = 0; i <= n; i++) {
				double ways =
					lgamma(n + 1.0) - lgamma(i + 1.0) - lgamma(n - i + 1.0);

				at_least += i >= k ? exp(ways + i * log(range.low) +
							 (n - i) * log1p(-range.low))
						   : 0;
				at_most += i <= k ? exp(ways + i * log(range.high) +
							(n - i) * log1p(-range.high))
						  : 0;
			}
			assert_true(fabs(at_least / tails[t] - 1) < 1e-3);
			assert_true(fabs(at_most / tails[t] - 1) < 1e-3);
		}
	}
}

static void test_rows(void **state)
{
	struct format_profile *base = profile_of("main;a 600\nmain;b 400\n");
	struct format_profile *new = profile_of("main;a 300\nmain;c 700\n");
	struct compare compare;
	struct failure why;

	(void)state;
	assert_int_equal(0, compare_init(&compare, base, new, FORMAT_LINES_FUNCTION, &why));
	assert_int_equal(0, compare_judge(&compare, &why));
	assert_int_equal(4, compare.count);
	assert_string_equal("c", compare.rows[0].text);
	assert_int_equal(0, compare.rows[0].self[0]);
	assert_int_equal(700, compare.rows[0].self[1]);
	assert_string_equal("b", compare.rows[1].text);
	assert_string_equal("a", compare.rows[2].text);
	assert_string_equal("main", compare.rows[3].text);
	assert_int_equal(1000, compare.rows[3].total[0]);
	assert_int_equal(0, compare.rows[3].self[1]);
	for (int i = 0; i < 3; i++)
		assert_true(compare_is_certain(compare.rows[i].self_change));
	assert_false(compare_is_certain(compare.rows[3].total_change));
	assert_true(fabs(compare_tail(8) - 0.01 / 16) < 1e-12);
	compare_deinit(&compare);
	format_profile_destroy(base);
	format_profile_destroy(new);
}

/* ---- Rules ------------------------------------------------------------------------------ */

/** Whether one rule is broken, and why. @param base Folded, or NULL. */
static bool is_broken(const char *rule, const char *base, const char *new, char *ret_reason,
		      size_t len)
{
	struct format_budget *budget = format_budget_create();
	struct format_profile *before = base ? profile_of(base) : NULL, *now = profile_of(new);
	const struct format_verdict *verdicts;
	struct failure why = { 0 };
	size_t failed, count;

	assert_int_equal(0, format_budget_add(budget, rule, &why));
	assert_int_equal(
		0, format_budget_judge(budget, before, now, FORMAT_LINES_DEFAULT, &failed, &why));
	verdicts = format_budget_verdicts(budget, &count);
	assert_int_equal(1, count);
	assert_string_equal(rule, verdicts[0].rule);
	assert_int_equal(failed, verdicts[0].failed);
	assert_int_equal(failed == 0, *verdicts[0].reason == '\0');
	snprintf(ret_reason, len, "%s", verdicts[0].reason);
	format_profile_destroy(before);
	format_profile_destroy(now);
	format_budget_destroy(budget);
	return failed;
}

static void expect_kept(const char *rule, const char *base, const char *new)
{
	char reason[4096];

	if (is_broken(rule, base, new, reason, sizeof(reason)))
		fail_msg("%s is broken: %s", rule, reason);
}

static void expect_broken(const char *rule, const char *base, const char *new, const char *who)
{
	char reason[4096];

	if (!is_broken(rule, base, new, reason, sizeof(reason)))
		fail_msg("%s is kept", rule);
	if (!strstr(reason, who))
		fail_msg("%s: %s", rule, reason);
}

static const char many[] = "main;work (@a.lua:3);encode 1000\n"
			   "main;work (@a.lua:3) 200\n"
			   "main;rest 8800\n";
static const char more[] = "main;work (@a.lua:3);encode 1500\n"
			   "main;work (@a.lua:3) 200\n"
			   "main;rest 8300\n";

static void test_shares(void **state)
{
	(void)state;
	expect_broken("self>5%", NULL, many, "encode itself has 10.00 %");
	expect_broken("self > 9 %", NULL, many, "encode");
	expect_broken("self>88%", NULL, "a 9999\nb 1\n", "a itself");
	expect_kept("self>90%", NULL, many);
	/* What was measured is beyond, but that may be chance. */
	expect_kept("self>9.9%", NULL,
		    "e 10\nf 10\ng 10\nh 10\ni 10\nj 10\nk 10\nl 10\nm 10\nn 11\n");
	expect_broken("total>11%", NULL, many, "work (@a.lua:3) has in total 12.00 %");
	expect_kept("func:work>13%", NULL, many);
	expect_broken("func:work>10%", NULL, many, "work (@a.lua:3)");
	expect_broken("func:w?r*>10%", NULL, many, "work (@a.lua:3)");
	expect_broken("func:work (@a.lua:3)>10%", NULL, many, "work (@a.lua:3)");
	expect_broken("func:encode<20%", NULL, many, "encode has in total 10.00 %");
	expect_kept("func:nothing>0%", NULL, many);
	expect_kept("self>0%", NULL, "\n"); /* no samples */
}

static void test_changes(void **state)
{
	(void)state;
	expect_broken("+2%", many, more, "encode itself has 15.00 %, +5.00 (");
	expect_broken("self+2%", many, more, "encode");
	expect_broken("func:work+2%", many, more, "work");
	expect_kept("func:rest+2%", many, more);
	expect_broken("func:rest-2%", many, more, "rest");
	expect_kept("+6%", many, more);
	expect_kept("+2%", many, many);
	/* Few samples tell little. */
	expect_kept("+2%", "a 5\nb 5\n", "a 7\nb 3\n");
	expect_broken("+2%", "a 100\n", "b 100\n", "b");
}

static void expect_no_rule(const char *text)
{
	struct format_budget *budget = format_budget_create();
	struct failure why = { 0 };

	assert_int_equal(-1, format_budget_add(budget, text, &why));
	assert_int_equal(FAILURE_INVALID, why.kind);
	format_budget_destroy(budget);
}

static void test_grammar(void **state)
{
	static const char *const wrong[] = {
		"",	     "5%",	   "self",	 "self>",	"self>5",   "self>5%%",
		">5%",	     "self=5%",	   "self>-5%",	 "self>101%",	"func:>5%", "func>5%",
		"Self>5%",   "self>5% no", "gc",	 "-2%",		"self<5%",  "total-5%",
		"self>nan%", "self>inf%",  "self>0x1%x", "compiled 5%",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		expect_no_rule(wrong[i]);
}

static void test_file(void **state)
{
	static char text[] = "# a budget\n\n  self > 5 %   # no hot spots\nfunc:a<b>1%\n+2%\n";
	static char wrong[] = "self>5%\n\nself>x\n";
	struct format_budget *budget = format_budget_create();
	const struct format_verdict *verdicts;
	struct failure why = { 0 };
	size_t count;
	FILE *file = fmemopen(text, strlen(text), "r");

	(void)state;
	assert_int_equal(0, format_budget_read(budget, file, &why));
	fclose(file);
	verdicts = format_budget_verdicts(budget, &count);
	assert_int_equal(3, count);
	assert_string_equal("self > 5 %", verdicts[0].rule);
	assert_string_equal("func:a<b>1%", verdicts[1].rule);
	assert_true(format_budget_needs_base(budget));
	file = fmemopen(wrong, strlen(wrong), "r");
	assert_int_equal(-1, format_budget_read(budget, file, &why));
	fclose(file);
	assert_int_equal(FAILURE_INVALID, why.kind);
	assert_int_equal(3, why.address);
	format_budget_destroy(budget);
}

static void test_states(void **state)
{
	struct format_budget *budget = format_budget_create();
	struct format_profile *profile = profile_of(many);
	struct failure why = { 0 };
	size_t failed, count;

	(void)state;
	assert_int_equal(0, format_budget_add(budget, "gc>15%", &why));
	assert_int_equal(0, format_budget_add(budget, "compiled<80%", &why));
	/* Folded chains do not tell them. */
	assert_int_equal(-1, format_budget_judge(budget, NULL, profile, FORMAT_LINES_DEFAULT,
						 &failed, &why));
	assert_int_equal(FAILURE_NOT_FOUND, why.kind);
	profile->states[FORMAT_STATE_GC] = 2000;
	profile->states[FORMAT_STATE_TRACE] = 8000;
	assert_int_equal(
		0, format_budget_judge(budget, NULL, profile, FORMAT_LINES_DEFAULT, &failed, &why));
	assert_int_equal(1, failed);
	assert_true(format_budget_verdicts(budget, &count)[0].failed);
	profile->states[FORMAT_STATE_TRACE] = 7000;
	profile->states[FORMAT_STATE_INTERP] = 1000;
	assert_int_equal(
		0, format_budget_judge(budget, NULL, profile, FORMAT_LINES_DEFAULT, &failed, &why));
	assert_int_equal(2, failed);
	format_profile_destroy(profile);
	format_budget_destroy(budget);
}

static void test_junit(void **state)
{
	struct format_budget *budget = format_budget_create();
	struct format_profile *profile = profile_of("a<b> 1000\nc 1\n");
	struct failure why;
	size_t failed, len;
	char *text;
	FILE *file = open_memstream(&text, &len);

	(void)state;
	assert_int_equal(0, format_budget_add(budget, "self>5%", &why));
	assert_int_equal(0, format_budget_add(budget, "func:c>5%", &why));
	assert_int_equal(
		0, format_budget_judge(budget, NULL, profile, FORMAT_LINES_DEFAULT, &failed, &why));
	format_budget_print_junit(budget, "a & b", file);
	fclose(file);
	assert_non_null(strstr(text, "<testsuite name=\"a &amp; b\" tests=\"2\" failures=\"1\">"));
	assert_non_null(strstr(text, "name=\"self&gt;5%\"><failure message=\"a&lt;b&gt; itself"));
	assert_non_null(strstr(text, "name=\"func:c&gt;5%\"/>"));
	free(text);
	format_profile_destroy(profile);
	format_budget_destroy(budget);
}

/* ---- Noise ------------------------------------------------------------------------------ */

static uint64_t random_state;

static double random_share(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (double)(random_state >> 11) / 9007199254740992.0;
}

enum { FUNCTIONS_MAX = 100, OTHERS = 400 };

/** Draw samples as a profiler does. @param shares Of the functions; many others share the rest. */
static struct format_profile *draw(const double *shares, int functions, int samples)
{
	struct format_profile *profile;
	uint64_t counts[FUNCTIONS_MAX + OTHERS] = { 0 };
	struct failure why;
	char name[32];

	for (int k = 0; k < samples; k++) {
		double point = random_share();
		int i = 0;

		for (; i < functions && point >= shares[i]; i++)
			point -= shares[i];
		counts[i < functions ? i : functions + (int)(random_share() * OTHERS)]++;
	}
	profile = format_profile_create(&why);
	assert_non_null(profile);
	for (int i = 0; i < functions + OTHERS; i++) {
		struct format_function function = { .kind = FORMAT_KIND_NATIVE, .name = name };
		struct profile_frame frame = { 0 };

		snprintf(name, sizeof(name), "function%d", i);
		assert_int_equal(
			0, profile_add_function(profile, &function, NULL, &frame.function, &why));
		if (counts[i])
			assert_int_equal(
				0, profile_add_sample(profile, &frame, 1, NULL, counts[i], &why));
	}
	return profile;
}

/** How often a rule is broken. @param before NULL: there is no base. */
static int count_broken(const char *rule, const double *before, const double *now, int functions,
			int samples, int repetitions)
{
	struct format_budget *budget = format_budget_create();
	struct failure why;
	int broken = 0;

	random_state = 42;
	assert_int_equal(0, format_budget_add(budget, rule, &why));
	for (int i = 0; i < repetitions; i++) {
		struct format_profile *base = before ? draw(before, functions, samples) : NULL;
		struct format_profile *profile = draw(now, functions, samples);
		size_t failed;

		assert_int_equal(0, format_budget_judge(budget, base, profile, FORMAT_LINES_DEFAULT,
							&failed, &why));
		broken += failed > 0;
		format_profile_destroy(base);
		format_profile_destroy(profile);
	}
	format_budget_destroy(budget);
	return broken;
}

static void fill(double *shares, int functions, double share)
{
	for (int i = 0; i < functions; i++)
		shares[i] = share;
}

/** Of that many judgements of 1 % each may so many be wrong: the mean and four deviations. */
static int allowed(int repetitions)
{
	double mean = 0.01 * repetitions;

	return (int)(mean + 4 * sqrt(mean));
}

/* All functions have just what is allowed: of a hundred judgements one at most may be broken, for
 * few samples and many, few functions and many. */
static void test_chance_of_shares(void **state)
{
	static const struct {
		const char *rule;
		double share;
		int functions, samples;
	} cases[] = {
		{ "self>5%", 0.05, 1, 1000 },	  { "self>5%", 0.05, 18, 2000 },
		{ "self>1%", 0.01, 40, 1000 },	  { "self>1%", 0.01, 90, 100 },
		{ "self>0.5%", 0.005, 30, 1000 },
	};
	const int repetitions = (int)test_length(100, 400);
	double shares[FUNCTIONS_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fill(shares, cases[i].functions, cases[i].share);
		assert_in_range(count_broken(cases[i].rule, NULL, shares, cases[i].functions,
					     cases[i].samples, repetitions),
				0, allowed(repetitions));
	}
}

/* The same where each of them has gained just what is allowed. */
static void test_chance_of_changes(void **state)
{
	const int repetitions = (int)test_length(100, 400);
	double before[FUNCTIONS_MAX], now[FUNCTIONS_MAX];

	(void)state;
	fill(before, 20, 0.01);
	fill(now, 20, 0.03);
	assert_in_range(count_broken("self+2%", before, now, 20, 2000, repetitions), 0,
			allowed(repetitions));
	assert_in_range(count_broken("+2%", before, now, 20, 200, repetitions), 0,
			allowed(repetitions));
}

/* A program of 40 functions of which one has 12 %, with 15,000 samples, as 15 s at 999 Hz give: the
 * same program breaks nothing, and one that takes 5 % longer by that function does. */
static void test_noise(void **state)
{
	enum { FUNCTIONS = 40, SAMPLES = 15000 };
	const int repetitions = (int)test_length(50, 200);
	double before[FUNCTIONS], now[FUNCTIONS];

	(void)state;
	for (int i = 0; i < FUNCTIONS; i++) {
		before[i] = i == 5 ? 0.12 : 0.87 * 2 * (i + 1) / (FUNCTIONS * (FUNCTIONS + 1.0));
		now[i] = (before[i] + (i == 5 ? 0.05 : 0)) / 1.05;
	}
	assert_int_equal(0, count_broken("+2%", before, before, FUNCTIONS, SAMPLES, repetitions));
	assert_in_range(count_broken("+2%", before, now, FUNCTIONS, SAMPLES, repetitions),
			repetitions * 95 / 100, repetitions);
}

/* ---- Samples that are not independent --------------------------------------------------- */

static void add_leaf(struct format_profile *profile, int leaf, int copies)
{
	struct format_function function = { .kind = FORMAT_KIND_LUA, .first_line = 1 + leaf };
	struct profile_frame frame = { .line = 1 };
	struct failure why;

	assert_int_equal(0, profile_add_function(profile, &function, NULL, &frame.function, &why));
	for (int i = 0; i < copies; i++)
		assert_int_equal(0, profile_add_sample(profile, &frame, 1, NULL, 1, &why));
}

/** As a recording has them: each of @p looks is there @p copies times, and what the program does
 * changes after @p phase looks. @param leaves As many functions, alike. */
static struct format_profile *sequence(int looks, int copies, int phase, int leaves)
{
	struct format_profile *profile;
	struct failure why;
	int leaf = 0;

	profile = format_profile_create(&why);
	assert_non_null(profile);
	format_profile_keep_order(profile, FORMAT_ORDER_NEEDED);
	for (int i = 0; i < looks; i++) {
		if (i % phase == 0)
			leaf = (int)(random_share() * leaves);
		add_leaf(profile, leaf, copies);
	}
	return profile;
}

static void expect_worth(double low, double high, struct format_profile *profile)
{
	struct failure why;
	struct call_tree call_tree;
	double worth;

	assert_int_equal(0,
			 call_tree_init_by_text(&call_tree, profile, FORMAT_LINES_FUNCTION, &why));
	assert_int_equal(0, effective_samples(profile, &call_tree, &worth, &why));
	if (worth < low || worth > high)
		fail_msg("%.2f samples are worth one, not %.2f to %.2f", worth, low, high);
	call_tree_deinit(&call_tree);
	format_profile_destroy(profile);
}

/* A sample that is there several times tells no more than one; nor do all those of a phase. */
static void test_worth(void **state)
{
	struct format_profile *profile;

	(void)state;
	random_state = 42;
	expect_worth(1, 1.2, sequence(5000, 1, 1, 8));
	expect_worth(1, 1.2, sequence(700, 1, 1, 2));
	expect_worth(1.6, 2.4, sequence(2500, 2, 1, 8));
	expect_worth(5, 9, sequence(2500, 7, 1, 8));
	expect_worth(20, 45, sequence(2500, 30, 1, 8));
	expect_worth(7, 13, sequence(10000, 1, 10, 8));
	expect_worth(70, 140, sequence(50000, 1, 100, 8));
	/* A program that stood still for a while. */
	profile = sequence(10000, 1, 1, 8);
	add_leaf(profile, 3, 1000);
	expect_worth(70, 110, profile);
	/* One that mostly does the same: there long runs are no wonder. */
	profile = sequence(1, 1, 1, 1);
	for (int i = 0; i < 10000; i++)
		add_leaf(profile, random_share() < 0.99 ? 0 : 1, 1);
	expect_worth(1, 1.4, profile);
	/* A few long stages, in which it does several things, are no noise. */
	profile = sequence(1, 1, 1, 1);
	for (int i = 0; i < 20000; i++)
		add_leaf(profile, i / 5000 * 10 + (int)(random_share() * 8), 1);
	expect_worth(1, 1.5, profile);
	/* Too few to tell, none, and all alike. */
	expect_worth(1, 1, sequence(100, 10, 1, 1));
	expect_worth(1, 1, sequence(20, 5, 1, 8));
	expect_worth(1, 1, sequence(0, 1, 1, 8));
	/* What was summed up has no order. */
	profile = sequence(2500, 7, 1, 8);
	profile->timeline.is_summed = true;
	expect_worth(1, 1, profile);
	/* So intervals are as wide as those of fewer samples. */
	expect_range(0.2527, 0.3080, 0.3676, compare_share(810, 2630, 10, 0.025));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_intervals),
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_grammar),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_junit),
		cmocka_unit_test(test_chance_of_shares),
		cmocka_unit_test(test_chance_of_changes),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_worth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
