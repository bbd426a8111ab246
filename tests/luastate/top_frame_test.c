/* SPDX-License-Identifier: MIT */
/* The topmost frame, in the instructions of calls and returns. */
#include "sample.h"

enum { C_CODE = 0x5000, FF = 7, FF_ID = 20 };

/* main calls work, which calls something at instruction 2. */
struct scene {
	uint64_t L;
	uint64_t main_proto, work_proto, inner_proto;
	uint64_t main, work, inner, c, ff;
	uint64_t work_base, callee_base;
	uint64_t ret; /* in work */
};

static struct scene make_scene(struct sample *sample)
{
	struct fake_vm *vm = sample->vm;
	struct scene scene = { .L = vm->main,
			       .main_proto = fake_caller(vm, "@main.lua", 0, "work"),
			       .work_proto = fake_caller(vm, "@main.lua", 10, "inner"),
			       .inner_proto = fake_caller(vm, "@main.lua", 20, "nobody"),
			       .c = fake_c_function(vm, C_CODE),
			       .ff = fake_asm_function(vm, FF_ID, FF) };

	scene.main = fake_lua_function(vm, scene.main_proto);
	scene.work = fake_lua_function(vm, scene.work_proto);
	scene.inner = fake_lua_function(vm, scene.inner_proto);
	scene.ret = fake_pc(vm, scene.work_proto, 3);
	sample_cframe(sample, scene.L, 1, 0);
	fake_call(vm, scene.L, scene.main, 0, FAKE_LINK_C);
	scene.work_base = fake_call_lua(vm, scene.L, scene.work, fake_pc(vm, scene.main_proto, 3));
	scene.callee_base = scene.work_base + vm->frame_bytes + 16;
	return scene;
}

static uint64_t ff_address(const struct fake_vm *vm)
{
	return vm->G + (uint64_t)vm->layout->global_State_to_bcff + 4 * FF;
}

static void put_callee(struct sample *sample, const struct scene *scene, uint64_t function,
		       uint64_t link)
{
	fake_put_function(sample->vm, scene->callee_base, function);
	fake_put_link(sample->vm, scene->callee_base, link);
}

/* A result, as the stack has it: the number 1. */
static const uint64_t number = UINT64_C(0x3ff0000000000000);

static void put_results(struct sample *sample, const struct scene *scene)
{
	fake_put_results(sample->vm, scene->callee_base);
}

/* The walk ends in work at a line, called by main. */
static void expect_work(struct sample *sample, const struct scene *scene, uint32_t line)
{
	const struct sample_frame frames[] = { { scene->work_proto, line, 0 },
					       { scene->main_proto, 2, 0 } };

	sample_expect(sample, LUASTATE_FULL, 2, frames);
}

/* The walk ends in a function that work called. */
static void expect_callee(struct sample *sample, const struct scene *scene, uint64_t address,
			  uint32_t line)
{
	const struct sample_frame frames[] = { { address, line, 0 },
					       { scene->work_proto, 12, 0 },
					       { scene->main_proto, 2, 0 } };

	sample_expect(sample, LUASTATE_FULL, 3, frames);
}

/* ---- Positions -------------------------------------------------------------------------- */

static void test_increment_of_the_position(void **state)
{
	static const unsigned before[] = { 0, 2, 5, 8 };
	struct sample *sample = *state;
	struct scene scene = make_scene(sample);
	uint64_t pc = fake_pc(sample->vm, scene.work_proto, 2);

	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		sample_leaf(sample, FAKE_AT_NEXT + before[i], scene.work_base, pc);
		expect_work(sample, &scene, 12);
	}
	sample_leaf(sample, FAKE_AT_NEXT + 12, scene.work_base, pc);
	expect_work(sample, &scene, 11);
	sample_leaf(sample, FAKE_AT_NEXT - 1, scene.work_base, pc);
	expect_work(sample, &scene, 11);
	/* Where no instruction of the sequence starts it is none. */
	sample_leaf(sample, FAKE_AT_NEXT + 3, scene.work_base, pc);
	expect_work(sample, &scene, 11);
}

static void test_ends_of_a_function(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct scene scene = make_scene(sample);

	sample_leaf(sample, FAKE_AT_PLAIN, scene.work_base, fake_pc(vm, scene.work_proto, 0));
	expect_work(sample, &scene, 10);
	sample_leaf(sample, FAKE_AT_PLAIN, scene.work_base, fake_pc(vm, scene.work_proto, 4));
	expect_work(sample, &scene, 13);
	/* Not its function: the frame is known, the position is not. */
	sample_leaf(sample, FAKE_AT_PLAIN, scene.work_base, fake_pc(vm, scene.work_proto, 5));
	expect_work(sample, &scene, 10);
	sample_leaf(sample, FAKE_AT_PLAIN, scene.work_base, fake_pc(vm, scene.work_proto, 1) + 1);
	expect_work(sample, &scene, 10);
}

/* ---- Calls ------------------------------------------------------------------------------ */

static void test_call_before_its_link_is_stored(void **state)
{
	struct sample *sample = *state;
	struct scene scene = make_scene(sample);

	put_callee(sample, &scene, scene.inner, number);
	sample_leaf(sample, FAKE_AT_STORE_LINK, scene.callee_base, scene.ret);
	expect_work(sample, &scene, 12);
}

static void test_call_before_its_position_is_loaded(void **state)
{
	struct sample *sample = *state;
	struct scene scene = make_scene(sample);

	put_callee(sample, &scene, scene.inner, scene.ret);
	sample_leaf(sample, FAKE_AT_LOAD_PC, scene.callee_base, scene.ret);
	expect_work(sample, &scene, 12);
	/* A recursive call: the position is valid in both. */
	put_callee(sample, &scene, scene.work, scene.ret);
	sample_leaf(sample, FAKE_AT_LOAD_PC, scene.callee_base, scene.ret);
	expect_work(sample, &scene, 12);
	/* A call from C: the position says nothing yet, the link does. */
	sample_leaf(sample, FAKE_AT_LOAD_PC, scene.callee_base, 77);
	expect_work(sample, &scene, 12);
}

static void test_call_done(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct scene scene = make_scene(sample);

	put_callee(sample, &scene, scene.inner, scene.ret);
	/* Position still the caller's, elsewhere in the call. */
	sample_leaf(sample, FAKE_AT_PLAIN, scene.callee_base, scene.ret);
	expect_work(sample, &scene, 12);
	for (unsigned i = 1; i <= 4; i++) {
		sample_leaf(sample, FAKE_AT_PLAIN, scene.callee_base,
			    fake_pc(vm, scene.inner_proto, i));
		expect_callee(sample, &scene, scene.inner_proto, 20 + i - 1);
	}
}

static void test_c_and_fast_functions(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct scene scene = make_scene(sample);

	/* The position register is free for other use in them. */
	put_callee(sample, &scene, scene.c, scene.ret);
	sample_leaf(sample, FAKE_AT_PLAIN, scene.callee_base, 77);
	expect_callee(sample, &scene, C_CODE, 0);
	put_callee(sample, &scene, scene.ff, scene.ret);
	sample_leaf(sample, FAKE_AT_PLAIN, scene.callee_base, 0);
	expect_callee(sample, &scene, ff_address(vm), 0);
	/* With the link in it: in its own code the function runs, elsewhere it returns. */
	for (unsigned i = 0; i < 16; i += 5) {
		sample_leaf(sample, FAKE_AT_FF + 16 * FF + i, scene.callee_base, scene.ret);
		expect_callee(sample, &scene, ff_address(vm), 0);
	}
	sample_leaf(sample, FAKE_AT_FF + 16 * FF + 16, scene.callee_base, scene.ret);
	expect_work(sample, &scene, 12);
	sample_leaf(sample, FAKE_AT_FF + 16 * FF - 1, scene.callee_base, scene.ret);
	expect_work(sample, &scene, 12);
}

static void test_last_handler_has_no_next(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct scene scene = make_scene(sample);
	unsigned last = (unsigned)vm->layout->GG_NUM_ASMFF - 1;

	put_callee(sample, &scene, fake_asm_function(vm, FF_ID, last), scene.ret);
	sample_leaf(sample, FAKE_AT_FF + 16 * last + 100, scene.callee_base, scene.ret);
	expect_callee(sample, &scene,
		      vm->G + (uint64_t)vm->layout->global_State_to_bcff + 4 * (uint64_t)last, 0);
}

/* ---- Returns ---------------------------------------------------------------------------- */

static void test_results_over_the_frame(void **state)
{
	struct sample *sample = *state;
	struct scene scene = make_scene(sample);

	put_results(sample, &scene);
	/* What the link said is in the position register, the lua_State says something older. */
	sample_leaf(sample, FAKE_AT_PLAIN, scene.callee_base, scene.ret);
	expect_work(sample, &scene, 12);
	fake_L_set(sample->vm, scene.L, sample->vm->layout->lua_State_base, scene.callee_base);
	expect_work(sample, &scene, 12);
	/* Only the link is overwritten so far. */
	put_callee(sample, &scene, scene.c, number);
	expect_work(sample, &scene, 12);
	/* One of the results is another function. */
	put_callee(sample, &scene, scene.inner, number);
	expect_work(sample, &scene, 12);
}

static void test_link_is_in_the_cframe(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct scene scene = make_scene(sample);

	put_results(sample, &scene);
	fake_put_ref(vm, sample->vm_frames[0].address + (uint64_t)vm->layout->cframe_pc, scene.ret);
	sample_leaf(sample, FAKE_AT_PLAIN, scene.callee_base, number);
	fake_L_set(vm, scene.L, vm->layout->lua_State_base, scene.callee_base);
	expect_work(sample, &scene, 12);
}

/* Base of a run that C called, with a C frame of its own. */
static uint64_t call_from_c(struct sample *sample, const struct scene *scene, uint64_t *ret_link)
{
	struct fake_vm *vm = sample->vm;
	uint64_t base;

	fake_call_lua(vm, scene->L, scene->c, scene->ret);
	sample_cframe(sample, scene->L, 1, 0);
	base = fake_call(vm, scene->L, scene->inner, 3, FAKE_LINK_C);
	*ret_link = fake_get_link(vm, base);
	return base;
}

/* Where the newest C frame has no run any more. */
static void expect_below(struct sample *sample, const struct scene *scene)
{
	const struct sample_frame frames[] = { { C_CODE, 0, 1 },
					       { scene->work_proto, 12, 1 },
					       { scene->main_proto, 2, 1 } };

	sample_expect(sample, LUASTATE_FULL, 3, frames);
}

static void test_results_for_c(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct scene scene = make_scene(sample);
	uint64_t link, base = call_from_c(sample, &scene, &link);

	fake_put_results(vm, base);
	sample_leaf(sample, FAKE_AT_PLAIN, base, link);
	expect_below(sample, &scene);
	/* The link is kept in the C frame only. */
	fake_put_ref(vm, sample->vm_frames[0].address + (uint64_t)vm->layout->cframe_pc, link);
	sample_leaf(sample, FAKE_AT_PLAIN, base, number);
	expect_below(sample, &scene);
}

static void test_returning_to_c(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct scene scene = make_scene(sample);
	uint64_t link, base = call_from_c(sample, &scene, &link);

	fake_put_results(vm, base);
	sample_leaf(sample, FAKE_AT_PLAIN, number, base - (link & ~(uint64_t)7));
	fake_L_set(vm, scene.L, vm->layout->lua_State_base, 0);
	expect_below(sample, &scene);
	/* Before: the frame is whole. */
	fake_L_set(vm, scene.L, vm->layout->lua_State_base, base);
	fake_put_function(vm, base, scene.inner);
	fake_put_link(vm, base, link);
	sample_leaf(sample, FAKE_AT_PLAIN, base, fake_pc(vm, scene.inner_proto, 4));
	sample_walk(sample);
	assert_int_equal(4, sample->chain.count);
	assert_int_equal(23, sample->chain.frames[0].line);
	assert_int_equal(0, sample->chain.frames[0].owner);
}

/* ---- Outside VM code -------------------------------------------------------------------- */

static void test_base_in_the_lua_state(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct scene scene = make_scene(sample);

	/* A helper in C: the position survives in the callee-saved register. */
	sample_set_pc(sample, 0, fake_pc(vm, scene.work_proto, 2));
	expect_work(sample, &scene, 11);
	sample_set_pc(sample, 0, 0);
	expect_work(sample, &scene, 10);
	sample_set_pc(sample, 0, fake_pc(vm, scene.inner_proto, 2));
	expect_work(sample, &scene, 10);
	/* In the interpreter, with a base that C has overwritten. */
	sample_leaf(sample, FAKE_AT_PLAIN, number, fake_pc(vm, scene.work_proto, 2));
	expect_work(sample, &scene, 11);
}

static void test_results_below_a_call_into_c(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct scene scene = make_scene(sample);

	put_results(sample, &scene);
	fake_L_set(vm, scene.L, vm->layout->lua_State_base, scene.callee_base);
	sample_set_pc(sample, 0, scene.ret);
	expect_work(sample, &scene, 12);
	sample_set_pc(sample, 0, 0);
	fake_put_ref(vm, sample->vm_frames[0].address + (uint64_t)vm->layout->cframe_pc, scene.ret);
	expect_work(sample, &scene, 12);
}

/* The recorder moves the frame of a call up, over a continuation, and the base comes last. */
static void test_base_of_a_frame_that_was_moved(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	struct scene scene = make_scene(sample);
	uint64_t moved = scene.callee_base + vm->frame_bytes + 8;
	uint64_t vmstate = fake_member(vm->G, layout->global_State_vmstate);

	put_callee(sample, &scene, scene.ff, scene.ret);
	fake_L_set(vm, scene.L, layout->lua_State_base, scene.callee_base);
	sample_set_pc(sample, 0, 0);
	fake_put_u32(vm, vmstate, (uint32_t)~layout->vmst_record);
	expect_callee(sample, &scene, ff_address(vm), 0);
	fake_put_function(vm, moved, scene.ff);
	fake_put_link(vm, moved, scene.ret);
	expect_callee(sample, &scene, ff_address(vm), 0);
	put_results(sample, &scene);
	expect_work(sample, &scene, 12);
	fake_put_cont(vm, moved, scene.ret, vm->code);
	fake_put_link(vm, moved, (moved - scene.work_base) | FAKE_LINK_CONT);
	expect_callee(sample, &scene, ff_address(vm), 0);
	/* Nobody else moves frames. */
	fake_put_u32(vm, vmstate, (uint32_t)~layout->vmst_cfunc);
	sample_expect(sample, LUASTATE_INCONSISTENT, 0, NULL);
}

/* ---- Registers of any content ----------------------------------------------------------- */

static void expect_bottom(const struct sample *sample, const struct scene *scene)
{
	const struct luastate_chain *chain = &sample->chain;

	if (chain->count)
		assert_int_equal(scene->main_proto,
				 chain->frames[chain->count - 1].function->address);
}

static void test_any_registers(void **state)
{
	static const unsigned locations[] = { FAKE_AT_PLAIN,	    FAKE_AT_NEXT,
					      FAKE_AT_STORE_LINK,   FAKE_AT_LOAD_PC,
					      FAKE_AT_FF + 16 * FF, 0,
					      FAKE_CODE_BYTES - 1 };
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct scene scene = make_scene(sample);
	const uint64_t values[] = { 0,
				    1,
				    4,
				    17,
				    4096,
				    scene.work_base,
				    scene.callee_base,
				    scene.callee_base + 1,
				    scene.ret,
				    scene.ret + 2,
				    scene.main_proto,
				    scene.work,
				    vm->main,
				    fake_L_get(vm, scene.L, vm->layout->lua_State_stack),
				    fake_L_get(vm, scene.L, vm->layout->lua_State_maxstack) + 16,
				    FAKE_BASE,
				    FAKE_END,
				    (uint64_t)1 << 47,
				    number,
				    UINT64_MAX - 7,
				    UINT64_MAX };
	size_t count = sizeof(values) / sizeof(values[0]);

	put_callee(sample, &scene, scene.ff, scene.ret);
	for (size_t location = 0; location < sizeof(locations) / sizeof(locations[0]); location++) {
		for (size_t i = 0; i < count * count; i++) {
			uint64_t saved = sample->vm_frames[0].address;

			fake_put_ref(vm, saved + (uint64_t)vm->layout->cframe_pc,
				     values[(i + location) % count]);
			sample_leaf(sample, locations[location], values[i % count],
				    values[i / count]);
			vm->reads = 0;
			sample_walk(sample);
			assert_true(vm->reads < 1000);
			assert_true(sample->chain.count <= 3);
			/* A walk reaches the bottom, or there is none. */
			if (sample->chain.outcome == LUASTATE_FULL)
				expect_bottom(sample, &scene);
			else
				assert_int_equal(0, sample->chain.count);
		}
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_increment_of_the_position),
		SAMPLE_TEST(test_ends_of_a_function),
		SAMPLE_TEST(test_call_before_its_link_is_stored),
		SAMPLE_TEST(test_call_before_its_position_is_loaded),
		SAMPLE_TEST(test_call_done),
		SAMPLE_TEST(test_c_and_fast_functions),
		SAMPLE_TEST(test_last_handler_has_no_next),
		SAMPLE_TEST(test_results_over_the_frame),
		SAMPLE_TEST(test_link_is_in_the_cframe),
		SAMPLE_TEST(test_results_for_c),
		SAMPLE_TEST(test_returning_to_c),
		SAMPLE_TEST(test_base_in_the_lua_state),
		SAMPLE_TEST(test_results_below_a_call_into_c),
		SAMPLE_TEST(test_base_of_a_frame_that_was_moved),
		SAMPLE_TEST(test_any_registers),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
