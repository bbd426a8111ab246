/* SPDX-License-Identifier: MIT */
/* Lua stacks with frames of every kind, matched with C frames. */
#include "walk_cast.h"

static void expect_name(const struct sample *sample, size_t frame, const char *name)
{
	assert_true(frame < sample->chain.count);
	assert_non_null(sample->chain.frames[frame].function->name);
	assert_string_equal(name, sample->chain.frames[frame].function->name);
}

/* ---- Frames of one run ------------------------------------------------------------------ */

static void test_lua_calls_lua(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	uint64_t L = vm->main;

	fake_name_function(vm, "inner", cast.inner);
	fake_name_function(vm, "work", cast.work);
	sample_cframe(sample, L, 1, 0);
	fake_call(vm, L, cast.main, 0, FAKE_LINK_C);
	fake_call_lua(vm, L, cast.work, ret_in(sample, cast.main_proto));
	fake_call_lua(vm, L, cast.inner, ret_in(sample, cast.work_proto));
	sample_leaf(sample, FAKE_AT_PLAIN, base_of(sample, L), fake_pc(vm, cast.inner_proto, 2));
	EXPECT(sample, LUASTATE_FULL, { cast.inner_proto, 21, 0 }, { cast.work_proto, 12, 0 },
	       { cast.main_proto, 2, 0 });
	expect_name(sample, 0, "inner");
	expect_name(sample, 1, "work");
	expect_name(sample, 2, "main chunk");
	assert_string_equal("=inner", sample->chain.frames[0].function->chunkname);
	assert_int_equal(20, sample->chain.frames[0].function->firstline);
	assert_int_equal(LUASTATE_LUA, sample->chain.frames[0].function->kind);
	assert_int_equal(fake_pc(vm, cast.inner_proto, 1), sample->chain.frames[0].pc);
	assert_int_equal(fake_pc(vm, cast.work_proto, 2), sample->chain.frames[1].pc);
	assert_int_equal(0, sample->chain.state);
}

/* What looks like a frame there may be none. */
static void test_a_walk_in_vain_gives_no_names(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	uint64_t base, link;

	fake_name_function(vm, "inner", cast.inner);
	sample_cframe(sample, vm->main, 1, 0);
	base = fake_call(vm, vm->main, cast.main, 0, FAKE_LINK_C);
	link = fake_get_ref(vm, base - (uint64_t)vm->layout->ref_size);
	fake_call_lua(vm, vm->main, cast.work, ret_in(sample, cast.main_proto));
	fake_call_lua(vm, vm->main, cast.inner, ret_in(sample, cast.work_proto));
	sample_leaf(sample, FAKE_AT_PLAIN, base_of(sample, vm->main),
		    fake_pc(vm, cast.inner_proto, 2));
	fake_put_link(vm, base, link + 4096);
	sample_walk(sample);
	assert_int_equal(LUASTATE_INCONSISTENT, sample->chain.outcome);
	assert_null(sample_proto(sample, cast.inner_proto)->function.name);
	fake_put_link(vm, base, link);
	sample_walk(sample);
	assert_int_equal(LUASTATE_FULL, sample->chain.outcome);
	expect_name(sample, 0, "inner");
}

/* A coroutine that was entered again on another native stack: the C frame of its run is there. */
static void test_older_cframes_elsewhere(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);

	sample_cframe(sample, vm->main, 1, ret_in(sample, cast.main_proto));
	fake_call(vm, vm->main, cast.main, 0, FAKE_LINK_C);
	sample_cframe(sample, vm->main, 1, 0);
	sample_walk(sample);
	assert_int_equal(LUASTATE_FULL, sample->chain.outcome);
	sample->vm_frame_count = 1;
	sample_walk(sample);
	assert_int_equal(LUASTATE_INCONSISTENT, sample->chain.outcome);
	assert_int_equal(0, sample->chain.count);
}

static void test_no_cframes(void **state)
{
	struct sample *sample = *state;

	sample->chain.count = 7;
	sample_expect(sample, LUASTATE_FULL, 0, NULL);
	assert_int_equal(0, sample->chain.trace);
}

static void test_main_chunk_keeps_its_name(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);

	/* A chunk that is called as a global. */
	sample_cframe(sample, vm->main, 1, 0);
	fake_call(vm, vm->main, cast.work, 0, FAKE_LINK_C);
	fake_call_lua(vm, vm->main, cast.main, ret_in(sample, cast.work_proto));
	EXPECT(sample, LUASTATE_FULL, { cast.main_proto, 0, 0 }, { cast.work_proto, 12, 0 });
	expect_name(sample, 0, "main chunk");
	assert_null(sample->chain.frames[1].function->name);
}

static void test_c_function_called_by_lua(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);

	sample_cframe(sample, vm->main, 1, ret_in(sample, cast.main_proto));
	fake_call(vm, vm->main, cast.main, 0, FAKE_LINK_CP);
	fake_call_lua(vm, vm->main, cast.c, ret_in(sample, cast.main_proto));
	EXPECT(sample, LUASTATE_FULL, { C_CODE, 0, 0 }, { cast.main_proto, 2, 0 });
	assert_int_equal(LUASTATE_C, sample->chain.frames[0].function->kind);
	assert_int_equal(0, sample->chain.frames[0].pc);
}

static void test_fast_functions(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	uint64_t assembler = fake_asm_function(vm, 20, 7),
		 in_c = fake_fast_function(vm, 21, 0x7000);

	sample_cframe(sample, vm->main, 1, 0);
	fake_call(vm, vm->main, cast.main, 0, FAKE_LINK_C);
	fake_call_lua(vm, vm->main, in_c, ret_in(sample, cast.main_proto));
	EXPECT(sample, LUASTATE_FULL, { 0x7000, 0, 0 }, { cast.main_proto, 2, 0 });
	assert_int_equal(LUASTATE_BUILTIN, sample->chain.frames[0].function->kind);
	fake_put_function(vm, base_of(sample, vm->main), assembler);
	EXPECT(sample, LUASTATE_FULL,
	       { vm->G + (uint64_t)vm->layout->global_State_to_bcff + 4 * 7, 0, 0 },
	       { cast.main_proto, 2, 0 });
	assert_int_equal(LUASTATE_BUILTIN, sample->chain.frames[0].function->kind);
}

static void test_pcall(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	uint64_t pcall = fake_asm_function(vm, 20, 7);

	for (unsigned type = FAKE_LINK_PCALL; type <= FAKE_LINK_PCALL + 1; type++) {
		uint64_t L = fake_coroutine(vm, 64);

		sample->vm_frame_count = 0;
		sample_cframe(sample, L, 1, 0);
		fake_call(vm, L, cast.main, 0, FAKE_LINK_C);
		fake_call_lua(vm, L, pcall, ret_in(sample, cast.main_proto));
		fake_call(vm, L, cast.inner, 0, type);
		sample_leaf(sample, FAKE_AT_PLAIN, base_of(sample, L),
			    fake_pc(vm, cast.inner_proto, 3));
		EXPECT(sample, LUASTATE_FULL, { cast.inner_proto, 22, 0 },
		       { vm->G + (uint64_t)vm->layout->global_State_to_bcff + 4 * 7, 0, 0 },
		       { cast.main_proto, 2, 0 });
	}
}

static void test_vararg(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	uint64_t L = vm->main;

	sample_cframe(sample, L, 1, 0);
	fake_call(vm, L, cast.main, 0, FAKE_LINK_C);
	fake_call(vm, L, cast.main, 3, FAKE_LINK_VARG);
	fake_call_lua(vm, L, cast.work, ret_in(sample, cast.main_proto));
	fake_call(vm, L, cast.work, 200, FAKE_LINK_VARG);
	sample_leaf(sample, FAKE_AT_PLAIN, base_of(sample, L), fake_pc(vm, cast.work_proto, 4));
	EXPECT(sample, LUASTATE_FULL, { cast.work_proto, 13, 0 }, { cast.main_proto, 2, 0 });
	/* The frame below is another function's: no vararg frame. */
	fake_put_function(vm, base_of(sample, L), cast.inner);
	sample_leaf(sample, FAKE_AT_PLAIN, base_of(sample, L), fake_pc(vm, cast.inner_proto, 4));
	sample_expect(sample, LUASTATE_INCONSISTENT, 0, NULL);
}

static void test_continuation(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	uint64_t L = vm->main;

	sample_cframe(sample, L, 1, 0);
	fake_call(vm, L, cast.main, 0, FAKE_LINK_C);
	fake_call_cont(vm, L, cast.inner, 4, fake_pc(vm, cast.main_proto, 2));
	sample_leaf(sample, FAKE_AT_PLAIN, base_of(sample, L), fake_pc(vm, cast.inner_proto, 3));
	EXPECT(sample, LUASTATE_FULL, { cast.inner_proto, 22, 0 }, { cast.main_proto, 1, 0 });
	/* A metamethod's name is not that of what the instruction before loaded. */
	assert_null(sample->chain.frames[0].function->name);
	/* A position that is none, as in a frame in the making, and one in another function. */
	fake_put_cont(vm, base_of(sample, L), 17, vm->code);
	sample_expect(sample, LUASTATE_INCONSISTENT, 0, NULL);
	assert_true(sample->chain.lost[0]);
	fake_put_cont(vm, base_of(sample, L), fake_pc(vm, cast.inner_proto, 2), vm->code);
	sample_expect(sample, LUASTATE_INCONSISTENT, 0, NULL);
}

static void test_tail_call(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	const uint32_t bc[] = { fake_funcf(vm, 5), fake_ad(FAKE_GGET, 0, 0),
				fake_ad(FAKE_CALLT, 0, 1) };
	const uint64_t kgc[] = { fake_string(vm, "inner") };
	uint64_t tail = fake_proto(vm, &(struct fake_proto){ .chunkname = "@tail.lua",
							     .firstline = 5,
							     .numline = 1,
							     .bc = bc,
							     .sizebc = 3,
							     .kgc = kgc,
							     .sizekgc = 1 });

	/* Before the tail call, and after it: the callee has taken the frame and its link. */
	sample_cframe(sample, vm->main, 1, 0);
	fake_call(vm, vm->main, cast.main, 0, FAKE_LINK_C);
	fake_call_lua(vm, vm->main, fake_lua_function(vm, tail), ret_in(sample, cast.main_proto));
	sample_leaf(sample, FAKE_AT_PLAIN, base_of(sample, vm->main), fake_pc(vm, tail, 2));
	EXPECT(sample, LUASTATE_FULL, { tail, 0, 0 }, { cast.main_proto, 2, 0 });
	fake_put_function(vm, base_of(sample, vm->main), cast.inner);
	sample_leaf(sample, FAKE_AT_PLAIN, base_of(sample, vm->main),
		    fake_pc(vm, cast.inner_proto, 1));
	EXPECT(sample, LUASTATE_FULL, { cast.inner_proto, 20, 0 }, { cast.main_proto, 2, 0 });
}

static void test_recursion(void **state)
{
	enum { DEPTH = 500 };
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	uint64_t L = fake_coroutine(vm, 4096);

	sample_cframe(sample, L, 1, 0);
	fake_call(vm, L, cast.work, 0, FAKE_LINK_CP);
	for (int i = 1; i < DEPTH; i++)
		fake_call_lua(vm, L, cast.work, ret_in(sample, cast.work_proto));
	sample_leaf(sample, FAKE_AT_PLAIN, base_of(sample, L), fake_pc(vm, cast.work_proto, 2));
	sample_walk(sample);
	assert_int_equal(LUASTATE_FULL, sample->chain.outcome);
	assert_int_equal(DEPTH, sample->chain.count);
	assert_int_equal(11, sample->chain.frames[0].line);
	for (int i = 1; i < DEPTH; i++) {
		assert_int_equal(12, sample->chain.frames[i].line);
		assert_ptr_equal(sample->chain.frames[0].function,
				 sample->chain.frames[i].function);
	}
}

/* ---- Runs and their C frames ------------------------------------------------------------ */

static void test_runs_of_one_coroutine(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	uint64_t L = vm->main;

	/* main -> C -> work -> C -> inner, the C functions by lua_call() */
	sample_cframe(sample, L, 1, 0);
	fake_call(vm, L, cast.main, 0, FAKE_LINK_CP);
	fake_call_lua(vm, L, cast.c, ret_in(sample, cast.main_proto));
	sample_cframe(sample, L, 0, 0);
	fake_call(vm, L, cast.work, 3, FAKE_LINK_C);
	fake_call_lua(vm, L, cast.c, ret_in(sample, cast.work_proto));
	sample_cframe(sample, L, 5, 0);
	fake_call(vm, L, cast.inner, 0, FAKE_LINK_C);
	sample_leaf(sample, FAKE_AT_PLAIN, base_of(sample, L), fake_pc(vm, cast.inner_proto, 1));
	EXPECT(sample, LUASTATE_FULL, { cast.inner_proto, 20, 0 }, { C_CODE, 0, 1 },
	       { cast.work_proto, 12, 1 }, { C_CODE, 0, 2 }, { cast.main_proto, 2, 2 });
}

/* Lua code that a helper in C interrupts: its position is in the next C frame only. */
static void test_position_from_the_cframe(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	uint64_t L = vm->main;

	sample_cframe(sample, L, 1, fake_pc(vm, cast.main_proto, 2));
	fake_call(vm, L, cast.main, 0, FAKE_LINK_C);
	sample_cframe(sample, L, 1, 0);
	fake_call(vm, L, cast.inner, 4, FAKE_LINK_C);
	sample_leaf(sample, FAKE_AT_PLAIN, base_of(sample, L), fake_pc(vm, cast.inner_proto, 2));
	EXPECT(sample, LUASTATE_FULL, { cast.inner_proto, 21, 0 }, { cast.main_proto, 1, 1 });
	assert_int_equal(fake_pc(vm, cast.main_proto, 1), sample->chain.frames[1].pc);
	sample_set_pc(sample, 1, fake_pc(vm, cast.inner_proto, 2));
	EXPECT(sample, LUASTATE_FULL, { cast.inner_proto, 21, 0 }, { cast.main_proto, 0, 1 });
	assert_int_equal(0, sample->chain.frames[1].pc);
	sample_set_pc(sample, 1, fake_pc(vm, cast.main_proto, 0));
	EXPECT(sample, LUASTATE_FULL, { cast.inner_proto, 21, 0 }, { cast.main_proto, 0, 1 });
}

static void test_two_coroutines(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	uint64_t resume = fake_asm_function(vm, 20, 7), L = vm->main, co = fake_coroutine(vm, 64);
	uint64_t resume_at = vm->G + (uint64_t)vm->layout->global_State_to_bcff + 4 * 7;

	sample_cframe(sample, L, 1, 0);
	fake_call(vm, L, cast.main, 0, FAKE_LINK_C);
	fake_call_lua(vm, L, resume, ret_in(sample, cast.main_proto));
	sample_cframe(sample, co, 0, 0);
	fake_call(vm, co, cast.work, 0, FAKE_LINK_CP);
	fake_call_lua(vm, co, cast.inner, ret_in(sample, cast.work_proto));
	sample_leaf(sample, FAKE_AT_PLAIN, base_of(sample, co), fake_pc(vm, cast.inner_proto, 1));
	EXPECT(sample, LUASTATE_FULL, { cast.inner_proto, 20, 0 }, { cast.work_proto, 12, 0 },
	       { resume_at, 0, 1 }, { cast.main_proto, 2, 1 });
	/* The coroutine has a C boundary of its own. */
	sample->vm_frames[0].leaf = false;
	fake_call_lua(vm, co, cast.c, ret_in(sample, cast.inner_proto));
	sample_cframe(sample, co, 1, 0);
	fake_call(vm, co, cast.inner, 0, FAKE_LINK_C);
	sample_leaf(sample, FAKE_AT_PLAIN, base_of(sample, co), fake_pc(vm, cast.inner_proto, 2));
	EXPECT(sample, LUASTATE_FULL, { cast.inner_proto, 21, 0 }, { C_CODE, 0, 1 },
	       { cast.inner_proto, 22, 1 }, { cast.work_proto, 12, 1 }, { resume_at, 0, 2 },
	       { cast.main_proto, 2, 2 });
}

/* What called the function that resumes would fit too, without that function. */
static void test_a_resuming_function_that_is_gone(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	uint64_t resume = fake_asm_function(vm, 20, 7), L = vm->main, co = fake_coroutine(vm, 64);
	uint64_t saved = sample_cframe(sample, L, 1, 0)->address, base;
	uint64_t resume_at = vm->G + (uint64_t)vm->layout->global_State_to_bcff + 4 * 7;
	size_t len = (size_t)vm->layout->GCfunc_header;

	fake_call(vm, L, cast.main, 0, FAKE_LINK_C);
	base = fake_call_lua(vm, L, resume, ret_in(sample, cast.main_proto));
	fake_put_ref(vm, saved + (uint64_t)vm->layout->cframe_pc, ret_in(sample, cast.main_proto));
	sample_cframe(sample, co, 0, 0);
	fake_call(vm, co, cast.inner, 0, FAKE_LINK_CP);
	sample_leaf(sample, FAKE_AT_PLAIN, base_of(sample, co), fake_pc(vm, cast.inner_proto, 1));
	fake_hide(vm, resume, len);
	/* Without GC64 no tag tells that there was a function. */
	EXPECT(sample, vm->layout->gc64 ? LUASTATE_INCONSISTENT : LUASTATE_TRUNCATED,
	       { cast.inner_proto, 20, 0 });
	assert_true(sample->chain.lost[1]);
	fake_show(vm, resume, len);
	EXPECT(sample, LUASTATE_FULL, { cast.inner_proto, 20, 0 }, { resume_at, 0, 1 },
	       { cast.main_proto, 2, 1 });
	/* Part of its frame was not copied. */
	fake_hide(vm, base - vm->layout->gc64 * 8 - 8, 8);
	EXPECT(sample, LUASTATE_TRUNCATED, { cast.inner_proto, 20, 0 });
}

/* Collected after the stop: what C left behind for a base would fit, without its frame. */
static void test_a_leaf_that_is_gone(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	uint64_t L = vm->main, base, c_base;
	size_t len = (size_t)vm->layout->GCfunc_header;

	sample_cframe(sample, L, 1, 0);
	fake_call(vm, L, cast.main, 0, FAKE_LINK_C);
	c_base = fake_call_lua(vm, L, cast.c, ret_in(sample, cast.main_proto));
	fake_call(vm, L, cast.inner, 3, FAKE_LINK_PCALL);
	base = base_of(sample, L);
	fake_L_set(vm, L, vm->layout->lua_State_base, c_base);
	sample_leaf(sample, FAKE_AT_PLAIN, base, fake_pc(vm, cast.inner_proto, 1));
	EXPECT(sample, LUASTATE_FULL, { cast.inner_proto, 20, 0 }, { C_CODE, 0, 0 },
	       { cast.main_proto, 2, 0 });
	fake_hide(vm, cast.inner, len);
	sample_expect(sample, LUASTATE_INCONSISTENT, 0, NULL);
	fake_show(vm, cast.inner, len);
	EXPECT(sample, LUASTATE_FULL, { cast.inner_proto, 20, 0 }, { C_CODE, 0, 0 },
	       { cast.main_proto, 2, 0 });
}

static void test_three_coroutines(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	uint64_t resume = fake_fast_function(vm, 20, 0x7000);
	uint64_t L[3] = { vm->main, fake_coroutine(vm, 64), fake_coroutine(vm, 64) };
	const uint64_t functions[3] = { cast.main, cast.work, cast.inner };
	const uint64_t protos[3] = { cast.main_proto, cast.work_proto, cast.inner_proto };

	for (int i = 0; i < 3; i++) {
		sample_cframe(sample, L[i], 0, 0);
		fake_call(vm, L[i], functions[i], 0, FAKE_LINK_CP);
		if (i < 2)
			fake_call_lua(vm, L[i], resume, ret_in(sample, protos[i]));
	}
	sample_leaf(sample, FAKE_AT_PLAIN, base_of(sample, L[2]), fake_pc(vm, cast.inner_proto, 4));
	EXPECT(sample, LUASTATE_FULL, { cast.inner_proto, 23, 0 }, { 0x7000, 0, 1 },
	       { cast.work_proto, 12, 1 }, { 0x7000, 0, 2 }, { cast.main_proto, 2, 2 });
	/* One torn coroutine leaves the others. */
	fake_put_link(vm, base_of(sample, L[1]), 0);
	EXPECT(sample, LUASTATE_INCONSISTENT, { cast.inner_proto, 23, 0 }, { 0x7000, 0, 2 },
	       { cast.main_proto, 2, 2 });
}

static void test_cframes_without_a_run(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	uint64_t L = vm->main;

	/* lua_cpcall() around all, and a protected helper inside. */
	sample_cframe(sample, L, -3, 0);
	sample_cframe(sample, L, 1, 0);
	fake_call(vm, L, cast.main, 0, FAKE_LINK_C);
	fake_call_lua(vm, L, cast.c, ret_in(sample, cast.main_proto));
	sample_cframe(sample, L, -1, 0);
	sample_cframe(sample, L, 1, 0);
	fake_call(vm, L, cast.inner, 2, FAKE_LINK_C);
	sample_leaf(sample, FAKE_AT_PLAIN, base_of(sample, L), fake_pc(vm, cast.inner_proto, 1));
	EXPECT(sample, LUASTATE_FULL, { cast.inner_proto, 20, 0 }, { C_CODE, 0, 2 },
	       { cast.main_proto, 2, 2 });
	sample->vm_frames[0].leaf = false;
	sample_cframe(sample, L, INT32_MIN, 0);
	sample_set_pc(sample, 1, fake_pc(vm, cast.inner_proto, 1));
	EXPECT(sample, LUASTATE_FULL, { cast.inner_proto, 20, 1 }, { C_CODE, 0, 3 },
	       { cast.main_proto, 2, 3 });
}

static void test_newest_cframe_without_a_run(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	uint64_t L = vm->main;

	sample_cframe(sample, L, 1, 0);
	fake_call(vm, L, cast.main, 0, FAKE_LINK_C);
	fake_call_lua(vm, L, cast.c, ret_in(sample, cast.main_proto));
	sample_cframe(sample, L, 1, 0);
	EXPECT(sample, LUASTATE_FULL, { C_CODE, 0, 1 }, { cast.main_proto, 2, 1 });
	/* Without its coroutine stored yet. */
	sample->vm_frames[0].L = 0;
	EXPECT(sample, LUASTATE_FULL, { C_CODE, 0, 1 }, { cast.main_proto, 2, 1 });
	/* Two such frames cannot be. */
	sample->vm_frames[0].L = L;
	sample_cframe(sample, L, 1, 0);
	sample_expect(sample, LUASTATE_INCONSISTENT, 0, NULL);
}

/* An error has let go of two C frames and their runs, which still lie on the Lua stack. */
static void test_cframes_that_an_error_released(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	uint64_t L = vm->main, base, held, gone = 0;

	held = sample_cframe(sample, L, 1, 0)->address;
	fake_call(vm, L, cast.main, 0, FAKE_LINK_C);
	base = fake_call_lua(vm, L, cast.c, ret_in(sample, cast.main_proto));
	for (int i = 0; i < 2; i++) {
		sample_cframe(sample, L, 1, 0);
		gone = fake_call(vm, L, cast.inner, 2, FAKE_LINK_C);
		fake_call_lua(vm, L, cast.c, fake_pc(vm, cast.inner_proto, 2));
		sample_set_pc(sample, 0, fake_pc(vm, cast.inner_proto, 2));
	}
	fake_L_set(vm, L, vm->layout->lua_State_base, base);
	sample_expect(sample, LUASTATE_INCONSISTENT, 0, NULL);
	/* What a released frame's registers say is over. */
	sample->vm_frames[0].frame.r[STATE_REG_KEPT_BASE] = gone;
	fake_L_set(vm, L, vm->layout->lua_State_cframe, held | 2);
	EXPECT(sample, LUASTATE_FULL, { C_CODE, 0, 2 }, { cast.main_proto, 2, 2 });
}

static void test_an_empty_coroutine(void **state)
{
	struct sample *sample = *state;

	sample_cframe(sample, fake_coroutine(sample->vm, 16), 1, 0);
	sample_expect(sample, LUASTATE_FULL, 0, NULL);
}

static void test_more_runs_than_cframes(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);

	sample_cframe(sample, vm->main, 1, 0);
	for (int i = 0; i < 3; i++)
		fake_call(vm, vm->main, cast.c, 1, FAKE_LINK_C);
	sample_expect(sample, LUASTATE_INCONSISTENT, 0, NULL);
}

/* Frames that no C frame owns, at the stack's bottom. */
static void test_frames_without_a_run(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);

	sample_cframe(sample, vm->main, -1, 0);
	fake_call(vm, vm->main, cast.c, 1, FAKE_LINK_PCALL);
	sample_expect(sample, LUASTATE_INCONSISTENT, 0, NULL);
	fake_call(vm, vm->main, cast.c, 1, FAKE_LINK_C);
	sample_expect(sample, LUASTATE_INCONSISTENT, 0, NULL);
}

static void test_cframe_that_cannot_be_read(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);

	sample_cframe(sample, vm->main, 1, 0);
	fake_call(vm, vm->main, cast.main, 1, FAKE_LINK_C);
	sample->vm_frames[0].address = FAKE_END;
	sample_expect(sample, LUASTATE_INCONSISTENT, 0, NULL);
	sample->vm_frames[0].L = FAKE_END;
	sample_expect(sample, LUASTATE_INCONSISTENT, 0, NULL);
}

/* A VM whose C function runs another VM of the program. */
static void test_two_vms_in_one_thread(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	uint64_t second = fake_second_vm(vm, 0);

	sample_cframe(sample, vm->main, 1, 0);
	fake_call(vm, vm->main, cast.main, 0, FAKE_LINK_C);
	fake_call_lua(vm, vm->main, cast.c, ret_in(sample, cast.main_proto));
	sample_cframe(sample, second, 1, 0);
	fake_call(vm, second, cast.work, 0, FAKE_LINK_CP);
	fake_call_lua(vm, second, cast.inner, ret_in(sample, cast.work_proto));
	sample_leaf(sample, FAKE_AT_PLAIN, base_of(sample, second),
		    fake_pc(vm, cast.inner_proto, 2));
	EXPECT(sample, LUASTATE_FULL, { cast.inner_proto, 21, 0 }, { cast.work_proto, 12, 0 },
	       { C_CODE, 0, 1 }, { cast.main_proto, 2, 1 });
	assert_int_equal(2, luastate_vm_count(sample->state));
	/* The state is that of the VM that runs. */
	fake_put_u32(vm, fake_member(vm->G, vm->layout->global_State_vmstate),
		     (uint32_t)~vm->layout->vmst_gc);
	sample_walk(sample);
	assert_int_equal(0, sample->chain.state);
	fake_put_u32(vm,
		     fake_member(second + (uint64_t)vm->layout->lua_State_sizeof,
				 vm->layout->global_State_vmstate),
		     (uint32_t)~vm->layout->vmst_gc);
	sample_walk(sample);
	assert_int_equal(4, sample->chain.state);
}

/* A C function that the FFI called calls back: the callback's frame looks like a metamethod's, but
 * it ends a run. */
static void test_ffi_callback(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	uint64_t L = vm->main, ff = fake_fast_function(vm, 20, 0x7000), base;

	sample_cframe(sample, L, 1, 0);
	fake_call(vm, L, cast.main, 0, FAKE_LINK_C);
	fake_call_lua(vm, L, ff, ret_in(sample, cast.main_proto));
	sample_cframe(sample, L, 1, 0);
	base = fake_call(vm, L, cast.inner, 2, FAKE_LINK_CONT);
	fake_put_cont(vm, base, 3, 1);
	sample_leaf(sample, FAKE_AT_PLAIN, base, fake_pc(vm, cast.inner_proto, 2));
	EXPECT(sample, LUASTATE_FULL, { cast.inner_proto, 21, 0 }, { 0x7000, 0, 1 },
	       { cast.main_proto, 2, 1 });
	/* With another continuation it is one run, for which there is a C frame too many: as if the
	 * newest were being entered. */
	fake_put_cont(vm, base, fake_pc(vm, cast.main_proto, 2), vm->code);
	EXPECT(sample, LUASTATE_FULL, { cast.inner_proto, 21, 1 }, { 0x7000, 0, 1 },
	       { cast.main_proto, 2, 1 });
	/* Callbacks of which the native stack shows nothing. */
	fake_put_cont(vm, base, 3, 1);
	for (int i = 0; i < 2; i++) {
		base = fake_call(vm, L, cast.inner, 2, FAKE_LINK_CONT);
		fake_put_cont(vm, base, 3, 1);
	}
	sample_leaf(sample, FAKE_AT_PLAIN, base, fake_pc(vm, cast.inner_proto, 2));
	sample_expect(sample, LUASTATE_INCONSISTENT, 0, NULL);
}

/* ---- Lines ------------------------------------------------------------------------------ */

static void expect_lines(struct sample *sample, uint32_t numline)
{
	struct fake_vm *vm = sample->vm;
	const uint32_t bc[] = { fake_funcf(vm, 2), 0, 0, fake_ad(FAKE_RET0, 0, 1) };
	const uint32_t lines[] = { 0, 1, numline / 2, numline };
	const struct fake_proto fake = { .chunkname = "@lines.lua",
					 .firstline = 100,
					 .numline = numline,
					 .bc = bc,
					 .sizebc = 4,
					 .lines = lines };
	uint64_t proto = fake_proto(vm, &fake), L = fake_coroutine(vm, 32);

	sample->vm_frame_count = 0;
	sample_cframe(sample, L, 1, 0);
	fake_call(vm, L, fake_lua_function(vm, proto), 0, FAKE_LINK_CP);
	for (unsigned i = 0; i < 4; i++) {
		sample_leaf(sample, FAKE_AT_PLAIN, base_of(sample, L), fake_pc(vm, proto, i + 1));
		EXPECT(sample, LUASTATE_FULL, { proto, 100 + lines[i], 0 });
	}
	/* Without a position: the definition's line. */
	sample_leaf(sample, FAKE_AT_PLAIN, base_of(sample, L), 0);
	EXPECT(sample, LUASTATE_FULL, { proto, 100, 0 });
}

static void test_line_tables(void **state)
{
	expect_lines(*state, 1);
	expect_lines(*state, 255);
	expect_lines(*state, 256);
	expect_lines(*state, 65535);
	expect_lines(*state, 65536);
	expect_lines(*state, 10000000);
}

/* The function was freed before its lines were read. */
static void test_line_table_that_is_gone(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);

	fake_hide(vm, fake_get_ref(vm, fake_member(cast.main_proto, vm->layout->GCproto_lineinfo)),
		  1);
	sample_cframe(sample, vm->main, 1, 0);
	fake_call(vm, vm->main, cast.main, 0, FAKE_LINK_C);
	sample_leaf(sample, FAKE_AT_PLAIN, base_of(sample, vm->main),
		    fake_pc(vm, cast.main_proto, 2));
	EXPECT(sample, LUASTATE_TRUNCATED, { cast.main_proto, 0, 0 });
}

static void test_stripped_chunk(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const uint32_t bc[] = { fake_funcf(vm, 2), fake_ad(FAKE_RET0, 0, 1) };
	uint64_t proto = fake_proto(
		vm,
		&(struct fake_proto){
			.chunkname = "=?", .firstline = 7, .numline = 2, .bc = bc, .sizebc = 2 });

	sample_cframe(sample, vm->main, 1, 0);
	fake_call(vm, vm->main, fake_lua_function(vm, proto), 0, FAKE_LINK_C);
	sample_leaf(sample, FAKE_AT_PLAIN, base_of(sample, vm->main), fake_pc(vm, proto, 2));
	EXPECT(sample, LUASTATE_FULL, { proto, 0, 0 });
}

/* ---- Thorough --------------------------------------------------------------------------- */

static void test_thorough_walk_is_the_same(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);

	sample_cframe(sample, vm->main, 1, 0);
	fake_call(vm, vm->main, cast.main, 0, FAKE_LINK_C);
	fake_call_lua(vm, vm->main, cast.inner, ret_in(sample, cast.main_proto));
	sample_leaf(sample, FAKE_AT_PLAIN, base_of(sample, vm->main),
		    fake_pc(vm, cast.inner_proto, 2));
	fake_name_function(vm, "work", cast.inner);
	luastate_set_thorough(sample->state, true);
	for (int i = 0; i < 3; i++) {
		uint64_t reads = vm->reads;

		EXPECT(sample, LUASTATE_FULL, { cast.inner_proto, 21, 0 },
		       { cast.main_proto, 2, 0 });
		expect_name(sample, 0, "work");
		/* All is read anew: what an image needs. */
		if (i)
			assert_true(vm->reads > reads + 20);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_lua_calls_lua),
		SAMPLE_TEST(test_a_walk_in_vain_gives_no_names),
		SAMPLE_TEST(test_older_cframes_elsewhere),
		SAMPLE_TEST(test_no_cframes),
		SAMPLE_TEST(test_main_chunk_keeps_its_name),
		SAMPLE_TEST(test_c_function_called_by_lua),
		SAMPLE_TEST(test_fast_functions),
		SAMPLE_TEST(test_pcall),
		SAMPLE_TEST(test_vararg),
		SAMPLE_TEST(test_continuation),
		SAMPLE_TEST(test_tail_call),
		SAMPLE_TEST(test_recursion),
		SAMPLE_TEST(test_runs_of_one_coroutine),
		SAMPLE_TEST(test_position_from_the_cframe),
		SAMPLE_TEST(test_two_coroutines),
		SAMPLE_TEST(test_a_resuming_function_that_is_gone),
		SAMPLE_TEST(test_a_leaf_that_is_gone),
		SAMPLE_TEST(test_three_coroutines),
		SAMPLE_TEST(test_cframes_without_a_run),
		SAMPLE_TEST(test_newest_cframe_without_a_run),
		SAMPLE_TEST(test_cframes_that_an_error_released),
		SAMPLE_TEST(test_an_empty_coroutine),
		SAMPLE_TEST(test_more_runs_than_cframes),
		SAMPLE_TEST(test_frames_without_a_run),
		SAMPLE_TEST(test_cframe_that_cannot_be_read),
		SAMPLE_TEST(test_two_vms_in_one_thread),
		SAMPLE_TEST(test_ffi_callback),
		SAMPLE_TEST(test_line_tables),
		SAMPLE_TEST(test_line_table_that_is_gone),
		SAMPLE_TEST(test_stripped_chunk),
		SAMPLE_TEST(test_thorough_walk_is_the_same),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
