/* SPDX-License-Identifier: MIT */
/* Builds whose structures have changed, as VMs of them are: what is derived is true or unknown, and
 * the row that such a build was made of is ruled out where what has changed can be seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fake_derive.h"
#include "fake_traces.h"
#include "luastate/layout/fields.h"
#include "tests/rounds.h"

enum { ROUNDS = 300, ROUNDS_FULL = 6000, ROW_STEP = 7, SHIFT = 8 };

/* Members of one structure and one size, which may change places. */
#define GROUP(...)                                                          \
	{                                                                   \
		.fields = { __VA_ARGS__ },                                  \
		.count = sizeof((size_t[]){ __VA_ARGS__ }) / sizeof(size_t) \
	}
#define FIELD(member) DERIVE_FIELD(member)
static const struct {
	size_t fields[8], count;
} groups[] = {
	GROUP(FIELD(GCproto_sizebc), FIELD(GCproto_sizekgc), FIELD(GCproto_sizekn),
	      FIELD(GCproto_sizept), FIELD(GCproto_firstline), FIELD(GCproto_numline)),
	GROUP(FIELD(GCproto_chunkname), FIELD(GCproto_uv), FIELD(GCproto_lineinfo),
	      FIELD(GCproto_uvinfo), FIELD(GCproto_varinfo)),
	GROUP(FIELD(GCtrace_nsnap), FIELD(GCtrace_traceno), FIELD(GCtrace_link),
	      FIELD(GCtrace_root), FIELD(GCtrace_nchild), FIELD(GCtrace_spadjust)),
	GROUP(FIELD(GCtrace_nins), FIELD(GCtrace_nk), FIELD(GCtrace_nsnapmap),
	      FIELD(GCtrace_szmcode), FIELD(GCtrace_startins)),
	GROUP(FIELD(GCtrace_ir), FIELD(GCtrace_snap), FIELD(GCtrace_snapmap)),
	GROUP(FIELD(lua_State_base), FIELD(lua_State_top)),
	GROUP(FIELD(lua_State_maxstack), FIELD(lua_State_stack)),
	GROUP(FIELD(jit_State_sizetrace), FIELD(jit_State_freetrace)),
};
static const char *const structures[] = { "lua_State.", "GCproto.", "GCtrace.", "jit_State." };

static uint32_t random_below(uint32_t *seed, uint32_t limit)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 8) % limit;
}

/* Two members change places. */
static void swap(struct luastate_layout *layout, uint32_t *seed)
{
	size_t group = random_below(seed, sizeof(groups) / sizeof(groups[0]));
	size_t count = groups[group].count, first = random_below(seed, (uint32_t)count);
	size_t second = (first + 1 + random_below(seed, (uint32_t)count - 1)) % count;
	int32_t *a = state_field_at(layout, groups[group].fields[first]);
	int32_t *b = state_field_at(layout, groups[group].fields[second]);
	int32_t before = *a;

	if (*a == LAYOUT_ABSENT || *b == LAYOUT_ABSENT)
		return;
	*a = *b;
	*b = before;
}

static bool is_size(size_t field)
{
	return strstr(state_fields[field].name, ".sizeof") != NULL;
}

/* A member is put before another one: that, and all behind it, moves. What all objects begin with
 * stays. */
static void insert(struct luastate_layout *layout, uint32_t *seed)
{
	const char *structure =
		structures[random_below(seed, sizeof(structures) / sizeof(structures[0]))];
	size_t members[STATE_FIELDS_MAX] = { 0 }, count = 0;
	int32_t location;

	for (size_t i = 0; i < state_field_count; i++)
		if (derive_is_member(i, structure) && !is_size(i) &&
		    state_field_value(layout, i) > 40)
			members[count++] = i;
	location = state_field_value(layout, members[random_below(seed, (uint32_t)count)]) / 8 * 8;
	for (size_t i = 0; i < state_field_count; i++)
		if (derive_is_member(i, structure) && state_field_value(layout, i) >= location &&
		    i != DERIVE_FIELD(GCproto_numparams) && i != DERIVE_FIELD(GCproto_gclist))
			*state_field_at(layout, i) += SHIFT;
}

/** A VM of a build, and what its code shows. */
struct scene {
	struct luastate_layout layout;
	struct fake_vm *vm;
	struct luastate *state;
	struct derive_reading reading;
	struct fake_traces traces;
};

static struct scene *create(const struct luastate_layout *row, uint32_t seed)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	assert_non_null(scene);
	scene->layout = *row;
	if (seed % 2)
		swap(&scene->layout, &seed);
	else if (seed)
		insert(&scene->layout, &seed);
	scene->vm = fake_vm_create(&(struct fake_options){ .layout = &scene->layout });
	assert_non_null(scene->vm);
	fake_derive_objects(scene->vm);
	fake_traces_make(scene->vm, &scene->traces);
	scene->state = fake_vm_open(scene->vm, false);
	assert_non_null(scene->state);
	fake_derive_reading(&scene->layout, &scene->reading);
	return scene;
}

static void destroy(struct scene *scene)
{
	luastate_destroy(scene->state);
	fake_vm_destroy(scene->vm);
	free(scene);
}

/* @return how many fields have another value than the build. */
static unsigned count_wrong(const struct scene *scene, const struct derive *derive, uint32_t seed)
{
	unsigned wrong = 0;

	for (size_t i = 0; i < state_field_count; i++) {
		int32_t value = state_field_value(&derive->layout, i),
			truth = state_field_value(&scene->layout, i);

		if (value == LAYOUT_ABSENT || value == truth || is_size(i))
			continue;
		fprintf(stderr, "seed %u, %s %s: %s is %d, not %d: %s\n", seed,
			scene->layout.family, scene->layout.first, state_fields[i].name, value,
			truth, derive_evidence(derive->source[i]));
		wrong++;
	}
	return wrong;
}

static void test_changed(void **state)
{
	unsigned wrong = 0, found = 0, rounds = test_length(ROUNDS, ROUNDS_FULL);

	(void)state;
	for (uint32_t seed = 1; seed <= rounds; seed++) {
		const struct luastate_layout *row = fake_layout_at(seed * ROW_STEP);
		struct scene *scene = create(row, seed);
		struct derive *derive = calloc(1, sizeof(*derive));

		assert_non_null(derive);
		derive->state = scene->state;
		derive->interpreter = &scene->state->interpreters[0];
		derive->reader = &scene->vm->reader;
		derive->reading = &scene->reading;
		if (derive_layout(derive, scene->vm->main)) {
			found++;
			wrong += count_wrong(scene, derive, seed);
		}
		free(derive);
		destroy(scene);
	}
	fprintf(stderr, "%u of %u are derived\n", found, rounds);
	assert_int_equal(0, wrong);
	assert_true(2 * found > rounds);
}

static enum derive_verdict judge(struct scene *scene, const struct luastate_layout *row)
{
	struct state_interpreter *interpreter = &scene->state->interpreters[0];
	enum derive_verdict verdict;

	/* In place of what its code would be read as. */
	interpreter->reading = &scene->reading;
	verdict = derive_judge_row(scene->state, interpreter, &scene->vm->reader, row,
				   scene->vm->main);
	interpreter->reading = NULL;
	return verdict;
}

/* No VM contradicts the row that it was made of. */
static void test_own_rows(void **state)
{
	unsigned confirmed = 0;

	(void)state;
	for (unsigned i = 0; i < luastate_layout_count; i++) {
		const struct luastate_layout *row = fake_layout_at(i);
		struct scene *scene = create(row, 0);
		enum derive_verdict verdict = judge(scene, row);

		assert_int_not_equal(DERIVE_CONTRADICTED, verdict);
		confirmed += verdict == DERIVE_CONFIRMED;
		destroy(scene);
	}
	fprintf(stderr, "%u of %zu are confirmed\n", confirmed, luastate_layout_count);
	assert_true(2 * confirmed > luastate_layout_count);
}

/* Most changes contradict the row that they were made to. */
static void test_changed_rows(void **state)
{
	unsigned ruled_out = 0, rounds = test_length(ROUNDS, ROUNDS_FULL);

	(void)state;
	for (uint32_t seed = 1; seed <= rounds; seed++) {
		const struct luastate_layout *row = fake_layout_at(seed * ROW_STEP);
		struct scene *scene = create(row, seed);

		ruled_out += judge(scene, row) == DERIVE_CONTRADICTED;
		destroy(scene);
	}
	fprintf(stderr, "%u of %u contradict their row\n", ruled_out, rounds);
	assert_true(3 * ruled_out > 2 * rounds);
}

/* Derive a layout for the only copy, which has what its code shows already. */
static bool derive_copy(struct scene *scene)
{
	struct luastate *lua = scene->state;
	struct state_interpreter *interpreter = &lua->interpreters[0];

	interpreter->reading = malloc(sizeof(*interpreter->reading));
	assert_non_null(interpreter->reading);
	*interpreter->reading = scene->reading;
	lua->derive_time = (struct state_budget){ 0 };
	return derive_interpreter(lua, interpreter, &scene->vm->reader, scene->vm->main);
}

/* A program that loads and unloads such a build again and again needs one layout. */
static void test_dropped_copies(void **state)
{
	const struct luastate_layout *known = NULL;
	struct scene *scene = NULL;
	uint32_t seed = 0;

	(void)state;
	do {
		if (scene)
			destroy(scene);
		seed += 2;
		assert_true(seed < ROUNDS);
		scene = create(fake_layout_at(seed * ROW_STEP), seed);
	} while (!derive_copy(scene));
	known = scene->state->interpreters[0].own;
	for (int i = 0; i < 2 * STATE_RETIRED_MAX; i++) {
		luastate_drop_interpreter(scene->state, 0);
		assert_int_equal(0, scene->state->interpreter_count);
		assert_int_equal(0, fake_vm_add_interpreter(scene->vm, scene->state));
		assert_true(derive_copy(scene));
		assert_ptr_equal(known, scene->state->interpreters[0].own);
	}
	destroy(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changed),
		cmocka_unit_test(test_own_rows),
		cmocka_unit_test(test_changed_rows),
		cmocka_unit_test(test_dropped_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
