/* SPDX-License-Identifier: MIT */
/* Each row of layouts.table of this architecture: a whole sample of a VM that has that layout. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "luastate/arch/arch.h"
#include "luastate/explain.h"
#include "play.h"

static void describe(const struct luastate_layout *layout, const char *what)
{
	char text[160];

	luastate_describe_layout(layout, text, sizeof(text));
	print_error("%s: %s\n", text, what);
}

static bool is_here(const struct luastate_layout *layout)
{
	return strcmp(layout->arch, state_arch_name) == 0;
}

static bool is_right(const struct luastate_layout *layout, enum play_leaf leaf, uint64_t fill)
{
	struct play play;
	enum play_result result;

	play_init(&play, &(struct fake_options){ .layout = layout, .fill = fill }, leaf);
	result = play_run(&play);
	play_deinit(&play);
	if (result != PLAY_RIGHT)
		describe(layout, result == PLAY_WRONG	  ? play.text
				 : result == PLAY_PARTIAL ? "partial"
							  : "refused");
	return result == PLAY_RIGHT;
}

static void test_samples(void **state)
{
	unsigned wrong = 0;

	(void)state;
	for (size_t i = 0; i < luastate_layout_count; i++)
		for (int leaf = 0; leaf < PLAY_LEAFS && is_here(&luastate_layouts[i]); leaf++) {
			const struct luastate_layout *layout = &luastate_layouts[i];

			wrong += !is_right(layout, leaf, 0);
			wrong += !is_right(layout, leaf, play_fill(layout));
		}
	assert_int_equal(0, wrong);
}

/* ---- Two copies of LuaJIT in one process ------------------------------------------------ */

static void expect_both(const struct luastate_layout *one, const struct luastate_layout *other,
			enum play_leaf leaf)
{
	const struct luastate_layout *const layouts[2] = { one, other };
	struct luastate *state = luastate_create();
	struct play plays[2];
	struct failure why;

	assert_non_null(state);
	for (uint64_t i = 0; i < 2; i++) {
		play_init(&plays[i],
			  &(struct fake_options){ .layout = layouts[i], .displaced = i << 28 },
			  leaf);
		assert_int_equal(0, fake_vm_add_interpreter(plays[i].vm, state));
	}
	for (int i = 0; i < 2; i++) {
		struct fake_vm *vm = plays[i].vm;
		const struct luastate_vm *found =
			luastate_vm_of(state, &vm->reader, vm->main, &why);

		assert_non_null(found);
		assert_int_equal(vm->G, found->G);
		assert_int_equal(layouts[i]->gc64, found->layout->gc64);
		assert_int_equal(layouts[i]->global_State_to_bcff,
				 found->layout->global_State_to_bcff);
	}
	assert_int_equal(2, luastate_vm_count(state));
	for (int i = 0; i < 6; i++)
		assert_int_equal(PLAY_RIGHT, play_sample(&plays[i % 2], state));
	luastate_destroy(state);
	play_deinit(&plays[0]);
	play_deinit(&plays[1]);
}

static void test_two_interpreters(void **state)
{
	const struct luastate_layout *mainline = fake_layout("mainline", true, "a32aeadc");
	const struct luastate_layout *others[] = { fake_layout("openresty", true, "15e77d84"),
						   fake_layout("tarantool", true, "4b0f1724"),
						   fake_layout("mainline", false, "394fb626"),
						   fake_layout("tarantool", false, "71ec8eb2"),
						   mainline };

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		for (int leaf = 0; leaf < PLAY_LEAFS; leaf++) {
			expect_both(mainline, others[i], leaf);
			expect_both(others[i], mainline, leaf);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_two_interpreters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
