/* SPDX-License-Identifier: MIT */
/* What runs between two snapshots of its caller, and shows in neither. */
#include "trace_scene.h"

#include "luastate/function/call_names.h"
#include "luastate/trace/trace.h"

enum {
	BC_ISLT = 0,
	JUMP = 0x8000, /* a jump of no instruction */
	IR_LT = 0,
};

static void put_code(struct trace_scene *scene, uint64_t proto, unsigned index, uint32_t ins)
{
	fake_put_u32(scene->vm, trace_scene_pc(scene, proto, index), ins);
}

static void know(struct trace_scene *scene, uint64_t function)
{
	fake_tracing_object(scene->vm, &scene->tracing, function, FAKE_IRT_FUNC);
}

/* Snapshots of work around its instructions [from, to), and where the trace ends. */
static void put_around(struct trace_scene *scene, unsigned from, unsigned to)
{
	trace_scene_base(scene, 0, 0);
	trace_scene_base(scene, 40, from);
	trace_scene_base(scene, 80, to);
	trace_scene_base(scene, 120, to);
	trace_scene_put(scene);
}

/* Between them the callee runs, where the layout tells where snapshots begin; else the caller. */
#define EXPECT_CALLEE(scene, callee_proto, callee_line, ...)                                     \
	do {                                                                                     \
		if (trace_scene_has_offsets(scene))                                              \
			EXPECT_AT(scene, 60, APPROXIMATE,                                        \
				  { (scene)->callee_proto, callee_line, 1, true }, __VA_ARGS__); \
		else                                                                             \
			EXPECT_AT(scene, 60, APPROXIMATE, __VA_ARGS__);                          \
	} while (0)

#define EXPECT_CALLER(scene, line) EXPECT_AT(scene, 60, APPROXIMATE, WORK(line, true), MAIN)

/* The trace knows but one function that the call can call. */
static void test_only_function(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	fake_name_function(scene.sample->vm, "inner", scene.leaf);
	know(&scene, scene.leaf);
	put_around(&scene, 2, 3);
	EXPECT_CALLEE(&scene, leaf_proto, 31, WORK(12, true), MAIN);
	/* Before and behind it is the caller alone. */
	EXPECT_AT(&scene, 20, APPROXIMATE, WORK(10, true), MAIN);
	EXPECT_AT(&scene, 100, APPROXIMATE, WORK(13, true), MAIN);
	/* So it is in the exit from there. */
	trace_scene_stand(&scene, scene.stubs + FAKE_STUB_BYTES * 1, true);
	EXPECT_NOW(&scene, APPROXIMATE, WORK(12, true), MAIN);
	/* Its name is that of the function. */
	if (trace_scene_has_offsets(&scene))
		assert_string_equal("inner", sample_proto(*state, scene.leaf_proto)->function.name);
}

/* It stands at its call, wherever the snapshot is. */
static void test_line_of_the_call(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	know(&scene, scene.leaf);
	put_around(&scene, 1, 3);
	if (trace_scene_has_offsets(&scene))
		EXPECT_AT(&scene, 60, APPROXIMATE, LEAF(31, true), WORK(12, true), MAIN);
	else
		EXPECT_CALLER(&scene, 11);
}

/* Two closures of it are one. */
static void test_two_closures(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	know(&scene, scene.leaf);
	know(&scene, fake_lua_function(scene.vm, scene.leaf_proto));
	put_around(&scene, 2, 3);
	EXPECT_CALLEE(&scene, leaf_proto, 31, WORK(12, true), MAIN);
}

static void test_two_functions(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	know(&scene, scene.leaf);
	know(&scene, scene.inner);
	put_around(&scene, 2, 3);
	EXPECT_CALLER(&scene, 12);
	/* One of LuaJIT's own. */
	trace_scene_again(&scene);
	know(&scene, scene.leaf);
	know(&scene, scene.pcall);
	put_around(&scene, 2, 3);
	EXPECT_CALLER(&scene, 12);
}

/* Another snapshot shows whom the call calls, however many functions there are. */
static void test_shown_elsewhere(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	know(&scene, scene.leaf);
	know(&scene, scene.pcall);
	trace_scene_base(&scene, 0, 0);
	trace_scene_base(&scene, 40, 2);
	trace_scene_base(&scene, 80, 3);
	trace_scene_inner(&scene, 120, 1);
	trace_scene_put(&scene);
	EXPECT_CALLEE(&scene, inner_proto, 21, WORK(12, true), MAIN);
	/* Not where it calls two. */
	trace_scene_again(&scene);
	trace_scene_base(&scene, 0, 0);
	trace_scene_base(&scene, 40, 2);
	trace_scene_base(&scene, 80, 3);
	trace_scene_inner(&scene, 120, 1);
	fake_snap_begin(scene.vm, &scene.tracing, 160);
	fake_snap_call(scene.vm, &scene.tracing, scene.leaf,
		       trace_scene_ret(&scene, scene.work_proto));
	fake_snap_end(scene.vm, &scene.tracing, trace_scene_pc(&scene, scene.leaf_proto, 1));
	trace_scene_put(&scene);
	EXPECT_CALLER(&scene, 12);
}

/* Above a function that is inlined itself. */
static void test_above_an_inlined_one(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	know(&scene, scene.leaf);
	for (unsigned i = 0; i < 4; i++)
		trace_scene_inner(&scene, 40 * i, i);
	trace_scene_put(&scene);
	/* Instruction 2 is at offset 80. */
	if (trace_scene_has_offsets(&scene))
		EXPECT_AT(&scene, 100, APPROXIMATE, LEAF(31, true), INNER(22, true),
			  WORK(12, false), MAIN);
	else
		EXPECT_AT(&scene, 100, APPROXIMATE, INNER(22, true), WORK(12, false), MAIN);
}

/* A function of other code on as many lines, which work has called. */
static uint64_t make_function(struct trace_scene *scene, uint32_t *bc, uint32_t count)
{
	static const uint32_t lines[] = { 0, 1, 2, 3, 4 };

	bc[0] = fake_funcf(scene->vm, 5);
	return fake_lua_function(
		scene->vm, fake_proto(scene->vm, &(struct fake_proto){ .chunkname = "@other.lua",
								       .firstline = 50,
								       .numline = 5,
								       .bc = bc,
								       .sizebc = count,
								       .lines = lines }));
}

static uint64_t proto_of(const struct trace_scene *scene, uint64_t function)
{
	return fake_get_ref(scene->vm, fake_member(function, scene->vm->layout->GCfunc_pc)) -
	       (uint64_t)scene->vm->layout->GCproto_sizeof;
}

static void begin_above_work(struct trace_scene *scene, uint32_t offset, uint64_t function)
{
	fake_snap_begin(scene->vm, &scene->tracing, offset);
	fake_snap_call(scene->vm, &scene->tracing, function,
		       trace_scene_ret(scene, scene->work_proto));
}

static void put_above_work(struct trace_scene *scene, uint32_t offset, uint64_t function,
			   unsigned index)
{
	begin_above_work(scene, offset, function);
	fake_snap_end(scene->vm, &scene->tracing,
		      trace_scene_pc(scene, proto_of(scene, function), index));
}

/* Nothing but a straight line with one call leads there. */
static void test_other_code(void **state)
{
	const struct {
		uint32_t second, third;
		bool calls;
	} codes[] = {
		{ fake_ad(FAKE_MOV, 3, 1), fake_abc(FAKE_CALL, 2, 1, 1), true },
		{ fake_ad(FAKE_MOV, 3, 1), fake_abc(FAKE_CALLM, 2, 1, 1), true },
		{ fake_abc(FAKE_CALL, 3, 1, 1), fake_abc(FAKE_CALL, 2, 1, 1), false },
		{ fake_ad(BC_JMP, 0, JUMP), fake_abc(FAKE_CALL, 2, 1, 1), false },
		/* Its frame is the caller's. */
		{ fake_ad(FAKE_MOV, 3, 1), fake_ad(FAKE_CALLT, 2, 1), false },
		{ fake_ad(FAKE_MOV, 3, 1), fake_abc(FAKE_ITERC, 2, 1, 1), false },
	};
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		uint32_t bc[] = { 0, codes[i].second, codes[i].third, fake_ad(FAKE_RET0, 0, 1) };
		uint64_t function = make_function(&scene, bc, 4), proto;

		proto = proto_of(&scene, function);
		trace_scene_again(&scene);
		know(&scene, scene.leaf);
		put_above_work(&scene, 0, function, 0);
		put_above_work(&scene, 40, function, 1);
		put_above_work(&scene, 80, function, 3);
		put_above_work(&scene, 120, function, 3);
		trace_scene_put(&scene);
		if (codes[i].calls && trace_scene_has_offsets(&scene))
			EXPECT_AT(&scene, 60, APPROXIMATE, LEAF(31, true), { proto, 52, 1, true },
				  WORK(12, false), MAIN);
		else
			EXPECT_AT(&scene, 60, APPROXIMATE, { proto, 51, 1, true }, WORK(12, false),
				  MAIN);
	}
}

/* Most of the code in between must be the callee's. */
static void test_short_callee(void **state)
{
	uint32_t bc[] = { 0, fake_ad(FAKE_MOV, 0, 1), fake_ad(FAKE_RET0, 0, 1) };
	struct trace_scene scene;
	uint64_t function, proto;

	trace_scene_init(&scene, *state);
	function = make_function(&scene, bc, 3);
	proto = proto_of(&scene, function);
	know(&scene, function);
	put_around(&scene, 1, 3);
	EXPECT_CALLER(&scene, 11);
	trace_scene_again(&scene);
	know(&scene, function);
	put_around(&scene, 2, 3);
	if (trace_scene_has_offsets(&scene))
		EXPECT_AT(&scene, 60, APPROXIMATE, { proto, 51, 1, true }, WORK(12, true), MAIN);
	else
		EXPECT_CALLER(&scene, 12);
}

/* A snapshot of a branch has the position of the way that is not taken. */
static void put_branch(struct trace_scene *scene)
{
	trace_scene_base(scene, 0, 0);
	trace_scene_base(scene, 40, 3);
	fake_tracing_ins(&scene->tracing, IR_LT, 0, 0);
	trace_scene_base(scene, 80, 3);
	trace_scene_base(scene, 120, 1);
	trace_scene_put(scene);
}

static void test_behind_a_branch(void **state)
{
	struct trace_scene scene;

	/* 1: for …, to 3, 2: call, 3: return */
	trace_scene_init(&scene, *state);
	put_code(&scene, scene.work_proto, 1, fake_ad(BC_FORI, 2, JUMP + 1));
	know(&scene, scene.leaf);
	put_branch(&scene);
	if (trace_scene_has_offsets(&scene))
		EXPECT_AT(&scene, 60, APPROXIMATE, LEAF(31, true), WORK(12, true), MAIN);
	else
		EXPECT_CALLER(&scene, 13);
}

static void test_behind_a_comparison(void **state)
{
	/* 1: if …, 2: to 4, 3: call, 4: return */
	uint32_t bc[] = { 0, fake_ad(BC_ISLT, 2, 3), fake_ad(BC_JMP, 2, JUMP + 1),
			  fake_abc(FAKE_CALL, 2, 1, 1), fake_ad(FAKE_RET0, 0, 1) };
	struct trace_scene scene;
	uint64_t function, proto;

	trace_scene_init(&scene, *state);
	function = make_function(&scene, bc, 5);
	proto = proto_of(&scene, function);
	put_above_work(&scene, 0, function, 0);
	put_above_work(&scene, 40, function, 4);
	fake_tracing_ins(&scene.tracing, IR_LT, 0, 0);
	put_above_work(&scene, 80, function, 4);
	/* There the call shows. */
	begin_above_work(&scene, 120, function);
	fake_snap_call(scene.vm, &scene.tracing, scene.leaf, trace_scene_pc(&scene, proto, 4));
	fake_snap_end(scene.vm, &scene.tracing, trace_scene_pc(&scene, scene.leaf_proto, 1));
	trace_scene_put(&scene);
	if (trace_scene_has_offsets(&scene))
		EXPECT_AT(&scene, 60, APPROXIMATE, LEAF(31, true), { proto, 53, 1, true },
			  WORK(12, false), MAIN);
	else
		EXPECT_AT(&scene, 60, EXACT, { proto, 54, 1, false }, WORK(12, false), MAIN);
}

/* A branch of which no other way is known. */
static void test_no_branch(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	know(&scene, scene.leaf);
	put_branch(&scene);
	EXPECT_CALLER(&scene, 13);
}

/* Where the function has another call, the trace may never come to this one. */
static void test_branch_of_other_calls(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	put_code(&scene, scene.work_proto, 1, fake_ad(BC_FORI, 2, JUMP + 1));
	put_code(&scene, scene.work_proto, 3, fake_abc(FAKE_CALL, 2, 1, 1));
	know(&scene, scene.leaf);
	put_branch(&scene);
	EXPECT_CALLER(&scene, 13);
}

/* The call has the name of its own function: that may have called itself. */
static void test_recursion(void **state)
{
	struct sample *sample = *state;
	struct trace_scene scene;
	struct state_proto *work;

	trace_scene_init(&scene, sample);
	know(&scene, scene.leaf);
	put_around(&scene, 2, 3);
	EXPECT_CALLEE(&scene, leaf_proto, 31, WORK(12, true), MAIN);
	trace_free_all(sample->state);
	work = sample_proto(sample, scene.work_proto);
	work->function.name = work->name;
	strcpy(work->name, "inner");
	EXPECT_CALLER(&scene, 12);
	/* And it is not that of a function with another name. */
	trace_free_all(sample->state);
	strcpy(work->name, "work");
	work = sample_proto(sample, scene.leaf_proto);
	work->function.name = work->name;
	strcpy(work->name, "leaf");
	EXPECT_CALLER(&scene, 12);
}

/* A caller with many variables that live nowhere: the steps that a walk takes for a call in it,
 * and whether it shows the callee. */
static size_t steps_of(struct trace_scene *scene, size_t len, bool *ret_shown)
{
	const struct luastate_chain *chain = &scene->sample->chain;
	const uint32_t bc[] = { fake_funcf(scene->vm, 5), fake_ad(FAKE_MOV, 3, 1),
				fake_abc(FAKE_CALL, 2, 1, 1), fake_ad(FAKE_RET0, 0, 1) };
	char *variables = calloc(1, len);
	uint64_t function;

	assert_non_null(variables);
	for (size_t i = 0; i + 4 < len; i += 4)
		variables[i] = 'v';
	function = fake_lua_function(
		scene->vm, fake_proto(scene->vm, &(struct fake_proto){ .chunkname = "@other.lua",
								       .firstline = 50,
								       .numline = 5,
								       .bc = bc,
								       .sizebc = 4,
								       .varinfo = variables,
								       .varinfo_len = len }));
	free(variables);
	trace_scene_again(scene);
	know(scene, scene->leaf);
	for (unsigned i = 0; i < 4; i++)
		put_above_work(scene, 40 * i, function, i < 2 ? i : 3);
	trace_scene_put(scene);
	/* From the call's argument to its end. */
	trace_scene_at(scene, 60);
	sample_walk(scene->sample);
	assert_int_equal(LUASTATE_FULL, chain->outcome);
	*ret_shown = chain->frames[0].function->address == scene->leaf_proto;
	return scene->sample->state->trace_work;
}

/* The search for a call's name costs steps by the bytes that it reads, and has a limit. */
static void test_many_names(void **state)
{
	struct trace_scene scene;
	size_t few, many, more;
	bool shown;

	trace_scene_init(&scene, *state);
	if (!trace_scene_has_offsets(&scene))
		return;
	few = steps_of(&scene, 8, &shown);
	assert_true(shown);
	many = steps_of(&scene, STATE_PACKED_NAMES_MAX / 2, &shown);
	assert_true(shown);
	assert_true(many > few + STATE_PACKED_NAMES_MAX / 2 / 100);
	more = steps_of(&scene, 4 * STATE_PACKED_NAMES_MAX, &shown);
	assert_false(shown);
	assert_true(more < few + 2 * (many - few) + 100);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_only_function),   SAMPLE_TEST(test_line_of_the_call),
		SAMPLE_TEST(test_two_closures),	   SAMPLE_TEST(test_two_functions),
		SAMPLE_TEST(test_shown_elsewhere), SAMPLE_TEST(test_above_an_inlined_one),
		SAMPLE_TEST(test_other_code),	   SAMPLE_TEST(test_short_callee),
		SAMPLE_TEST(test_behind_a_branch), SAMPLE_TEST(test_behind_a_comparison),
		SAMPLE_TEST(test_no_branch),	   SAMPLE_TEST(test_branch_of_other_calls),
		SAMPLE_TEST(test_recursion),	   SAMPLE_TEST(test_many_names),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
