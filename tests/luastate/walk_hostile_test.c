/* SPDX-License-Identifier: MIT */
/* Stacks that contradict themselves, end early, or never end. */
#include "walk_cast.h"

/* ---- Stacks that contradict themselves -------------------------------------------------- */

/* Reads that a walk of a small stack needs, with all candidates: far above, for it must end. */
enum { READS_MAX = 20000 };

static void expect_partial(struct sample *sample)
{
	sample->vm->reads = 0;
	sample_walk(sample);
	assert_int_not_equal(LUASTATE_FULL, sample->chain.outcome);
	assert_int_equal(0, sample->chain.count);
	assert_true(sample->vm->reads < READS_MAX);
}

static void test_torn_links(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	uint64_t L = vm->main, middle, top, link;

	sample_cframe(sample, L, 1, 0);
	fake_call(vm, L, cast.main, 0, FAKE_LINK_C);
	middle = fake_call_lua(vm, L, cast.work, ret_in(sample, cast.main_proto));
	top = fake_call_lua(vm, L, cast.c, ret_in(sample, cast.work_proto));
	link = fake_get_link(vm, middle);
	{
		const uint64_t links[] = {
			0,
			FAKE_LINK_C,		     /* to itself */
			FAKE_LINK_PCALL,	     /* to itself */
			8 | FAKE_LINK_C,	     /* into its own frame */
			8 | FAKE_LINK_VARG,	     /* likewise */
			24 | FAKE_LINK_C,	     /* to where no frame is */
			16 | FAKE_LINK_CONT,	     /* likewise */
			4096 | FAKE_LINK_C,	     /* out of the stack */
			(uint64_t)-16 | FAKE_LINK_C, /* upwards */
			(uint64_t)-16 | FAKE_LINK_PCALL,
			UINT64_MAX,
			(uint64_t)1 << 63 | FAKE_LINK_C,
			4,    /* no bytecode lies there */
			4096, /* nor there */
			FAKE_END,
			FAKE_END + 4,
			UINT64_MAX - 3,
			link + 400,			 /* behind the caller */
			ret_in(sample, cast.work_proto), /* of another function */
			fake_pc(vm, cast.main_proto, 0), /* no call before it */
			fake_pc(vm, cast.main_proto, 1),
		};

		for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
			fake_put_link(vm, middle, links[i]);
			expect_partial(sample);
		}
	}
	fake_put_link(vm, middle, link);
	EXPECT(sample, LUASTATE_FULL, { C_CODE, 0, 0 }, { cast.work_proto, 12, 0 },
	       { cast.main_proto, 2, 0 });
	assert_int_equal(top, base_of(sample, L));
}

static void test_torn_functions(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	uint64_t middle, string = fake_string(vm, "a string that is long enough for a function");
	const uint64_t slots[] = {
		0,
		UINT64_MAX,
		fake_tag(vm, vm->layout->tag_str, string),
		fake_tag(vm, vm->layout->tag_func, string),
		fake_tag(vm, vm->layout->tag_func, cast.main + 4),
		fake_tag(vm, vm->layout->tag_func, 0),
		fake_tag(vm, vm->layout->tag_func, FAKE_END),
		fake_tag(vm, vm->layout->tag_func, vm->main),
		fake_tag(vm, vm->layout->tag_func, cast.work_proto),
		fake_tag(vm, vm->layout->tag_func, cast.c), /* no Lua function, and a Lua caller */
		fake_tag(vm, vm->layout->tag_thread, vm->main),
	};

	sample_cframe(sample, vm->main, 1, 0);
	fake_call(vm, vm->main, cast.main, 0, FAKE_LINK_C);
	middle = fake_call_lua(vm, vm->main, cast.work, ret_in(sample, cast.main_proto));
	fake_call_lua(vm, vm->main, cast.c, ret_in(sample, cast.work_proto));
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		fake_put_slot(vm, middle, slots[i]);
		expect_partial(sample);
	}
	/* Lua functions whose code is none. */
	fake_put_function(vm, middle, cast.work);
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		fake_put_ref(vm, cast.work + (uint64_t)vm->layout->GCfunc_pc, slots[i]);
		expect_partial(sample);
	}
}

static void test_torn_states(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	struct cast cast = make_cast(vm);
	uint64_t L = fake_coroutine(vm, 64), stack = fake_L_get(vm, L, layout->lua_State_stack);
	const uint64_t values[] = { 0,
				    1,
				    8,
				    stack + 4,
				    stack + 12,
				    stack - 8,
				    FAKE_END,
				    (uint64_t)1 << 47,
				    UINT64_MAX,
				    UINT64_MAX - 7,
				    UINT64_MAX - 15,
				    UINT64_MAX - 23 };
	const int32_t fields[] = { layout->lua_State_base, layout->lua_State_stack,
				   layout->lua_State_maxstack };

	sample_cframe(sample, L, 1, 0);
	fake_call(vm, L, cast.main, 0, FAKE_LINK_CP);
	fake_call_lua(vm, L, cast.c, ret_in(sample, cast.main_proto));
	for (size_t field = 0; field < sizeof(fields) / sizeof(fields[0]); field++) {
		uint64_t kept = fake_L_get(vm, L, fields[field]);

		for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
			if (fields[field] == layout->lua_State_maxstack && values[i] > kept)
				continue; /* harmless: no frame is there */
			fake_L_set(vm, L, fields[field], values[i]);
			expect_partial(sample);
		}
		fake_L_set(vm, L, fields[field], kept);
	}
	EXPECT(sample, LUASTATE_FULL, { C_CODE, 0, 0 }, { cast.main_proto, 2, 0 });
}

/* Nothing shows where the topmost frame is. */
static void test_no_candidates(void **state)
{
	struct sample *sample = *state;

	sample_cframe(sample, sample->vm->main, 1, 0);
	fake_L_set(sample->vm, sample->vm->main, sample->vm->layout->lua_State_base, 0);
	sample_leaf(sample, FAKE_AT_PLAIN, 0, 0);
	sample_walk(sample);
	assert_int_equal(LUASTATE_INCONSISTENT, sample->chain.outcome);
	assert_int_equal(0, sample->chain.count);
}

static void test_memory_that_ends(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	uint64_t L = fake_coroutine(vm, 64), base;

	sample_cframe(sample, L, 1, 0);
	base = fake_call(vm, L, cast.main, 0, FAKE_LINK_CP);
	fake_call_lua(vm, L, cast.c, ret_in(sample, cast.main_proto));
	fake_hide(vm, base - vm->frame_bytes, 8);
	sample_expect(sample, LUASTATE_TRUNCATED, 0, NULL);
	fake_show(vm, base - vm->frame_bytes, 8);
	fake_hide(vm, cast.main_proto, 1);
	sample_expect(sample, LUASTATE_TRUNCATED, 0, NULL);
}

/* ---- Bounds ----------------------------------------------------------------------------- */

static void test_more_frames_than_are_kept(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	uint64_t L = fake_coroutine(vm, 4 * LUASTATE_FRAMES_MAX + 64);

	sample_cframe(sample, L, 1, 0);
	fake_call(vm, L, cast.work, 0, FAKE_LINK_CP);
	for (int i = 1; i < LUASTATE_FRAMES_MAX; i++)
		fake_call_lua(vm, L, cast.work, ret_in(sample, cast.work_proto));
	sample_leaf(sample, FAKE_AT_PLAIN, base_of(sample, L), fake_pc(vm, cast.work_proto, 3));
	sample_walk(sample);
	assert_int_equal(LUASTATE_FULL, sample->chain.outcome);
	assert_int_equal(LUASTATE_FRAMES_MAX, sample->chain.count);
	fake_call_lua(vm, L, cast.inner, ret_in(sample, cast.work_proto));
	sample_leaf(sample, FAKE_AT_PLAIN, base_of(sample, L), fake_pc(vm, cast.inner_proto, 3));
	sample_walk(sample);
	assert_int_equal(LUASTATE_TRUNCATED, sample->chain.outcome);
	assert_true(sample->chain.count <= LUASTATE_FRAMES_MAX);
}

/* None of the C frames owns a run, and the stack has more of both than there are. */
static void test_more_runs_than_are_kept(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	uint64_t L = fake_coroutine(vm, 2 * LUASTATE_FRAMES_MAX + 64);

	sample_cframe(sample, L, -1, 0);
	for (int i = 0; i <= LUASTATE_FRAMES_MAX; i++)
		fake_call(vm, L, cast.c, 0, FAKE_LINK_C);
	sample_walk(sample);
	assert_int_equal(LUASTATE_TRUNCATED, sample->chain.outcome);
	for (size_t i = 0; i < sample->chain.count; i++)
		assert_int_equal(0, sample->chain.frames[i].owner);
}

/* Frames that are not kept, and hundreds of coroutines that all claim the same stack of them. */
static void test_work_is_bounded(void **state)
{
	enum { SLOTS = 60000, COROUTINES = 400 };
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	uint64_t first = fake_coroutine(vm, SLOTS);
	uint64_t stack = fake_L_get(vm, first, layout->lua_State_stack);
	uint64_t thread = fake_get_u64(vm, stack);

	for (uint64_t slot = 2; slot < SLOTS; slot += 2) {
		fake_put_u64(vm, stack + 8 * slot, thread);
		fake_put_u64(vm, stack + 8 * slot + 8, 16 | FAKE_LINK_PCALL);
	}
	for (int i = 0; i < COROUTINES; i++) {
		uint64_t L = i ? fake_coroutine(vm, 8) : first;

		fake_L_set(vm, L, layout->lua_State_stack, stack);
		fake_L_set(vm, L, layout->lua_State_maxstack, stack + 8 * (uint64_t)SLOTS);
		fake_L_set(vm, L, layout->lua_State_base, stack + 8 * (uint64_t)SLOTS);
		sample_cframe(sample, L, 1, 0);
	}
	vm->reads = 0;
	sample_walk(sample);
	assert_true(vm->reads < 1000000);
	assert_int_equal(0, sample->chain.count);
}

/* Every call asks for its callee's name, and every answer takes a long search without a result. */
static void test_naming_is_bounded(void **state)
{
	enum { VARINFO = 8192, FRAMES = 2000 };
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const uint32_t bc[] = { fake_funcf(vm, 5), fake_ad(FAKE_MOV, 2, 2),
				fake_abc(FAKE_CALL, 2, 1, 1), fake_ad(FAKE_RET0, 0, 1) };
	const uint32_t lines[] = { 0, 1, 2, 3 };
	struct fake_proto fake = { .chunkname = "@long.lua",
				   .firstline = 1,
				   .numline = 4,
				   .bc = bc,
				   .sizebc = 4,
				   .varinfo_len = VARINFO };
	char *varinfo = malloc(VARINFO);
	uint64_t L = fake_coroutine(vm, 4 * FRAMES + 64), proto, table;

	assert_non_null(varinfo);
	memset(varinfo, 'v', VARINFO);
	fake.varinfo = varinfo;
	proto = fake_proto(vm, &fake);
	free(varinfo);
	fake.varinfo = NULL;
	fake.varinfo_len = 0;
	table = fake_get_ref(vm, proto + (uint64_t)vm->layout->GCproto_varinfo);
	sample_cframe(sample, L, 1, 0);
	fake_call(vm, L, fake_lua_function(vm, proto), 0, FAKE_LINK_CP);
	for (int i = 1; i < FRAMES; i++) {
		uint64_t ret = ret_in(sample, proto);

		/* The first one's table, which lies above, as if it were this one's. */
		fake.lines = lines;
		proto = fake_proto(vm, &fake);
		fake_put_ref(vm, proto + (uint64_t)vm->layout->GCproto_varinfo, table);
		fake_put_u32(vm, proto + (uint64_t)vm->layout->GCproto_sizept,
			     (uint32_t)(table + VARINFO - proto));
		fake_call_lua(vm, L, fake_lua_function(vm, proto), ret);
	}
	vm->bytes_read = 0;
	sample_walk(sample);
	assert_int_equal(FRAMES, sample->chain.count);
	assert_true(vm->bytes_read < FRAMES * STATE_DEBUG_KEEP + (6 << 20));
	/* A call site that had no name once has none later. */
	for (int i = 0; i < FRAMES / 256; i++)
		sample_walk(sample);
	vm->bytes_read = 0;
	sample_walk(sample);
	assert_true(vm->bytes_read < 1 << 20);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_torn_links),
		SAMPLE_TEST(test_torn_functions),
		SAMPLE_TEST(test_torn_states),
		SAMPLE_TEST(test_no_candidates),
		SAMPLE_TEST(test_memory_that_ends),
		SAMPLE_TEST(test_more_frames_than_are_kept),
		SAMPLE_TEST(test_more_runs_than_are_kept),
		SAMPLE_TEST(test_work_is_bounded),
		SAMPLE_TEST(test_naming_is_bounded),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
