/* SPDX-License-Identifier: MIT */
/*
 * Builds that no row of layouts.table describes: each differs from a row in one field. Whatever a
 * sample of such a VM gives, it is not a full chain that is wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "play.h"
#include "shift.h"
#include "tests/rounds.h"

/* Rows that differ in kind: value model, C frames, sizes of the lua_State, strings, bytecodes. */
static const struct {
	const char *family, *first;
	bool gc64;
} rows[] = {
	{ "mainline", "fbfbd7b9", true },   { "mainline", "a32aeadc", true },
	{ "mainline", "a2ce8114", true },   { "mainline", "fbfbd7b9", false },
	{ "mainline", "394fb626", false },  { "openresty", "15e77d84", true },
	{ "openresty", "fe32831a", false }, { "tarantool", "4b0f1724", true },
	{ "tarantool", "71ec8eb2", false },
};

/* Fields whose change cannot be seen, and why. */
static const struct {
	const char *field, *reason;
} unseen[] = {
	{ "cframe.nres", "any small number is one of results, and 0 is what lies around it" },
	{ "GCfuncC.f", "only the maps could tell a function's code from another address" },
};

enum { UNSEEN = sizeof(unseen) / sizeof(unseen[0]) };

/* Each row has a third of the fields, and each field a third of the rows; at full length each row
 * has all of them. With sanitizers an image takes ten times as long: a third of both. */
#ifdef SHIFTED_WITH_SANITIZERS
enum { STEP = 9, FULL_STEP = 3 };
#else
enum { STEP = 3, FULL_STEP = 1 };
#endif

struct counts {
	unsigned results[PLAY_WRONG + 1];
	unsigned bad, unseen[UNSEEN + 1];
};

static bool is_unseen(const char *field, struct counts *counts)
{
	for (size_t i = 0; i < UNSEEN; i++)
		if (strcmp(unseen[i].field, field) == 0) {
			counts->unseen[i]++;
			return true;
		}
	return false;
}

static void try_layout(const struct luastate_layout *row, const struct luastate_layout *layout,
		       size_t field, const char *how, uint64_t fill, struct counts *counts)
{
	for (int leaf = 0; leaf < PLAY_LEAFS; leaf++) {
		const char *name = state_fields[field].name;
		enum play_result result;
		struct play play;

		play_init(&play, &(struct fake_options){ .layout = layout, .fill = fill }, leaf);
		result = play_run(&play);
		play_deinit(&play);
		counts->results[result]++;
		if (result != PLAY_WRONG || is_unseen(name, counts))
			continue;
		counts->bad++;
		print_error("%s %s %s: %s %s, leaf %d, fill %d: %s\n", row->family,
			    row->gc64 ? "gc64" : "gc32", row->first, name, how, leaf, fill != 0,
			    play.text);
	}
}

static void try_field(const struct luastate_layout *row, size_t field, struct counts *counts)
{
	static const int32_t bytes[] = { -16, -8, -4, 4, 8, 16 }, numbers[] = { -1, 1 };
	bool number = shift_is_number(field);
	const int32_t *amounts = number ? numbers : bytes;
	size_t count = number ? 2 : sizeof(bytes) / sizeof(bytes[0]);

	for (int kind = 0; kind < SHIFT_KINDS; kind++)
		for (size_t i = 0; i < count; i++) {
			struct luastate_layout layout;
			char how[48];

			if (!shift_layout(row, field, kind, amounts[i], &layout))
				continue;
			snprintf(how, sizeof(how), "%+d %s", amounts[i],
				 kind == SHIFT_TAIL ? "with all behind it" : "alone");
			try_layout(row, &layout, field, how, 0, counts);
			try_layout(row, &layout, field, how, play_fill(&layout), counts);
		}
}

static void test_one_field(void **state)
{
	struct counts counts = { 0 };
	const size_t step = test_is_full() ? FULL_STEP : STEP;
	unsigned images = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t field = i % step; field < state_field_count; field += step)
			try_field(fake_layout(rows[i].family, rows[i].gc64, rows[i].first), field,
				  &counts);
	for (int i = 0; i <= PLAY_WRONG; i++)
		images += counts.results[i];
	print_message("%u images: %u refused, %u partial, %u right, %u wrong\n", images,
		      counts.results[PLAY_REFUSED], counts.results[PLAY_PARTIAL],
		      counts.results[PLAY_RIGHT], counts.results[PLAY_WRONG]);
	assert_int_equal(0, counts.bad);
	/* What is listed as unseen is so, where enough is tried. */
	for (size_t i = 0; i < UNSEEN && step <= 3; i++)
		assert_true(counts.unseen[i] > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_field),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
