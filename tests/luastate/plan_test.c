/* SPDX-License-Identifier: MIT */
/* What a stop reads: an image is filled round by round, as in a stop, from a fake VM. */
#include "plan_stop.h"

enum { C_CODE = 0x5000 };

/* ---- Rounds ----------------------------------------------------------------------------- */

/* With the VM's state comes the last exit. */
static bool has_exit(struct stop *stop)
{
	const struct fake_vm *vm = stop->sample->vm;
	const struct luastate_layout *layout = luastate_vm_get(stop->sample->state, 0)->layout;
	uint64_t J = fake_member(vm->G, layout->global_State_to_J);
	uint64_t parent = fake_member(J, layout->jit_State_parent),
		 exitno = fake_member(J, layout->jit_State_exitno);

	return stop_has(stop, parent, 4) && stop_has(stop, exitno, 4) &&
	       stop_round_of(stop, parent) == stop_round_of(stop, vm->G) &&
	       stop_round_of(stop, exitno) == stop_round_of(stop, vm->G);
}

static void test_first_stop(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct stop_scene scene = stop_make_scene(sample);
	struct stop stop;

	stop_begin(&stop, sample);
	stop_capture(&stop);
	assert_true(stop_has(&stop, attach_sp(&sample->regs), (size_t)vm->layout->cframe_size));
	assert_int_equal(0, stop_round_of(&stop, attach_sp(&sample->regs)));
	assert_int_equal(1, stop_round_of(&stop, vm->main));
	assert_int_equal(2, stop_round_of(&stop, stop_stack_of(vm, vm->main)));
	assert_int_equal(0, stop_round_of(&stop, vm->G)); /* the state knows the VM */
	assert_true(has_exit(&stop));
	assert_int_equal(3, stop_round_of(&stop, scene.work));
	assert_int_equal(3, stop_round_of(&stop, scene.main));
	assert_int_equal(4, stop_round_of(&stop, scene.main_proto));
	assert_int_equal(3, stop_round_of(&stop, fake_pc(vm, scene.main_proto, 2))); /* a call */
	stop_expect_stack(&stop, vm->main);
	/* Rows can differ in what such a young VM does not show. */
	assert_true(
		stop_has(&stop, vm->G,
			 (size_t)luastate_vm_get(sample->state, 0)->layout->global_State_sizeof));
	assert_true(stop_has(&stop, scene.work, (size_t)vm->layout->GCfunc_header));
	stop_end(&stop);
}

static void test_steady_state(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct stop_scene scene = stop_make_scene(sample);
	struct stop stop;
	size_t len;

	stop_begin(&stop, sample);
	stop_learn(&stop);
	assert_int_equal(1, stop.prediction.thread_count);
	assert_int_equal(vm->G, stop.prediction.threads[0].G);
	stop_capture(&stop);
	stop_decode(&stop);
	assert_int_equal(2, stop.prediction.frame_count);
	/* All comes with the first round; the second wants no more. */
	stop_capture(&stop);
	assert_int_equal(2, stop.rounds);
	assert_int_equal(stop.ranges[0], stop.ranges[1]);
	assert_int_equal(0, stop_round_of(&stop, scene.work));
	assert_int_equal(0, stop_round_of(&stop, vm->G));
	assert_true(has_exit(&stop));
	assert_int_equal(0, stop_round_of(&stop, vm->main));
	assert_int_equal(0, stop_round_of(&stop, stop_stack_of(vm, vm->main)));
	stop_expect_stack(&stop, vm->main);
	/* Known prototypes, and calls in them, are looked at after the stop. */
	assert_false(stop_asked(&stop, scene.main_proto));
	assert_false(stop_asked(&stop, fake_pc(vm, scene.main_proto, 2)));
	stop_ask_again(&stop);
	assert_true(attach_image_peek(stop.after, remote_addr_make(scene.main_proto), 1, &len));
	stop_end(&stop);
}

/* Functions on top that were not there in the last stop: only they are new, however many. */
static void test_other_leaf(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct stop_scene scene = stop_make_scene(sample);
	size_t header = (size_t)vm->layout->GCfunc_header;
	uint64_t functions[12];
	struct stop stop;

	stop_begin(&stop, sample);
	stop_learn(&stop);
	stop_capture(&stop);
	stop_decode(&stop);
	assert_int_equal(2, stop.prediction.frame_count);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		functions[i] = fake_c_function(vm, C_CODE + i);
		fake_call(vm, vm->main, functions[i], 0, FAKE_LINK_PCALL);
		sample_leaf(sample, FAKE_AT_PLAIN,
			    fake_L_get(vm, vm->main, vm->layout->lua_State_base), 0);
		stop_capture(&stop);
		for (size_t k = 0; k <= i; k++) {
			assert_true(stop_has(&stop, functions[k], header));
			assert_int_equal(1, stop_round_of(&stop, functions[k]));
		}
		assert_int_equal(0, stop_round_of(&stop, scene.work));
		assert_int_equal(0, stop_round_of(&stop, scene.main));
		assert_int_equal(3 + i, stop.context.progress.frame_count);
	}
	stop_end(&stop);
}

/* Another program runs now: what was predicted of the last one, layouts included, is gone. */
static void test_reset_forgets_predictions(void **state)
{
	struct sample *sample = *state;
	struct stop_scene scene = stop_make_scene(sample);
	struct stop stop;

	stop_begin(&stop, sample);
	stop_learn(&stop);
	stop_capture(&stop);
	stop_decode(&stop);
	stop_learn(&stop);
	assert_int_equal(2, stop.prediction.frame_count);
	luastate_reset(sample->state);
	stop_capture(&stop);
	assert_int_equal(0, stop.prediction.frame_count);
	assert_int_equal(0, stop.prediction.thread_count);
	assert_false(stop_asked(&stop, scene.work));
	assert_true(stop_asked(&stop, attach_sp(&sample->regs)));
	stop_end(&stop);
}

static void test_new_coroutine(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct stop_scene scene = stop_make_scene(sample);
	struct stop stop;
	uint64_t co;

	stop_begin(&stop, sample);
	stop_learn(&stop);
	co = stop_resume(sample, &scene);
	stop_capture(&stop);
	assert_int_equal(1, stop_round_of(&stop, co));
	assert_int_equal(2, stop_round_of(&stop, stop_stack_of(vm, co)));
	stop_expect_stack(&stop, co);
	stop_expect_stack(&stop, vm->main);
	stop_learn(&stop);
	assert_int_equal(2, stop.prediction.thread_count);
	stop_decode(&stop);
	stop_capture(&stop);
	assert_int_equal(2, stop.rounds);
	assert_int_equal(0, stop_round_of(&stop, co));
	assert_int_equal(0, stop_round_of(&stop, stop_stack_of(vm, co)));
	stop_end(&stop);
}

/* A signal handler on a stack of its own: that of the thread shows the coroutines. */
static void test_handlers_stack(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct stop_scene scene = stop_make_scene(sample);
	uint64_t co = stop_resume(sample, &scene), sp = fake_alloc(vm, 1024) + 256;
	struct stop stop;

	fake_put_ref(vm, vm->G + (uint64_t)vm->layout->global_State_cur_L, co);
	sample->regs.r[ATTACH_REG_RIP] = vm->host + FAKE_HOST_LEAF;
	sample->regs.r[ATTACH_REG_RSP] = sp;
	sample->regs.r[ATTACH_REG_RDX] = 0;
	stop_begin(&stop, sample);
	stop.prediction.native_end = sp + 512;
	/* Of a thread of which nothing is known it may be another's. */
	stop_capture(&stop);
	assert_false(stop_has(&stop, vm->main, 8));
	assert_int_equal(0, stop.context.progress.other_stack);
	stop.prediction.threads[0].G = vm->G;
	stop.prediction.threads[0].L = co;
	stop.prediction.thread_count = 1;
	stop_capture(&stop);
	assert_true(stop_has(&stop, sp, 512));
	stop_expect_stack(&stop, co);
	stop_expect_stack(&stop, vm->main);
	assert_int_equal(1, stop_round_of(&stop, sample->vm_frames[0].address));
	assert_int_equal(2, stop_round_of(&stop, vm->main));
	/* None of it is wanted where the handler runs on the thread's stack. */
	sample->regs.r[ATTACH_REG_RSP] = sample->vm_frames[0].address - 64;
	stop_capture(&stop);
	assert_false(stop_asked(&stop, sp));
	assert_int_equal(0, stop.context.progress.other_stack);
	stop_expect_stack(&stop, vm->main);
	stop_end(&stop);
}

static void test_stack_that_moved(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct stop_scene scene = stop_make_scene(sample);
	uint64_t vm_frame = fake_L_get(vm, vm->main, vm->layout->lua_State_cframe);
	uint64_t old = stop_stack_of(vm, vm->main);
	struct stop stop;

	stop_begin(&stop, sample);
	stop_learn(&stop);
	fake_lua_state(vm, vm->main, 512);
	fake_L_set(vm, vm->main, vm->layout->lua_State_cframe, vm_frame);
	fake_call(vm, vm->main, scene.main, 0, FAKE_LINK_C);
	sample_leaf(sample, FAKE_AT_PLAIN,
		    fake_call_lua(vm, vm->main, scene.work, fake_pc(vm, scene.main_proto, 3)), 0);
	stop_capture(&stop);
	assert_true(stop_asked(&stop, old));
	assert_int_equal(1, stop_round_of(&stop, stop_stack_of(vm, vm->main)));
	assert_int_equal(2, stop_round_of(&stop, scene.main));
	stop_expect_stack(&stop, vm->main);
	stop_end(&stop);
}

static void test_stack_that_grew(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct stop_scene scene = stop_make_scene(sample);
	uint64_t L = fake_coroutine(vm, 4096), top;
	struct stop stop;

	sample->vm_frames[0].L = L;
	fake_put_ref(vm, sample->vm_frames[0].address + (uint64_t)vm->layout->cframe_L, L);
	fake_call(vm, L, scene.work, 0, FAKE_LINK_C);
	fake_put_ref(vm, vm->G + (uint64_t)vm->layout->global_State_cur_L, L);
	stop_begin(&stop, sample);
	stop_learn(&stop);
	for (int i = 0; i < 500; i++)
		fake_call_lua(vm, L, scene.work, fake_pc(vm, scene.work_proto, 3));
	top = fake_c_function(vm, C_CODE);
	fake_call_lua(vm, L, top, fake_pc(vm, scene.work_proto, 3));
	sample->regs.r[ATTACH_REG_RDX] = 0;
	stop_capture(&stop);
	stop_expect_stack(&stop, L);
	assert_int_equal(1,
			 stop_round_of(&stop, fake_L_get(vm, L, vm->layout->lua_State_base) - 8));
	assert_int_equal(2, stop_round_of(&stop, top));
	stop_decode(&stop);
	/* In the interpreter BASE tells at once. */
	sample->regs.r[ATTACH_REG_RDX] = fake_L_get(vm, L, vm->layout->lua_State_base);
	fake_L_set(vm, L, vm->layout->lua_State_base, stop_stack_of(vm, L) + 32);
	stop_capture(&stop);
	assert_int_equal(0, stop_round_of(&stop, sample->regs.r[ATTACH_REG_RDX] - 8));
	assert_int_equal(2, stop.rounds);
	stop_end(&stop);
}

/* VM code that was entered by a call from VM code: the frame begins above the return address. */
static void test_helper(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct stop stop;

	stop_make_scene(sample);
	vm->sp = sample->vm_frames[0].address;
	for (int words = 1; words <= 8; words++) {
		fake_push(vm, words == 1 ? vm->code + FAKE_AT_RETURN : (uint64_t)words);
		sample->regs.r[ATTACH_REG_RSP] = vm->sp;
		sample->regs.r[ATTACH_REG_RIP] = vm->code + FAKE_AT_HELPER;
		stop_begin(&stop, sample);
		stop_capture(&stop);
		stop_expect_stack(&stop, vm->main);
		stop_end(&stop);
	}
}

static void test_after_the_stop(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct stop_scene scene = stop_make_scene(sample);
	struct stop stop;

	stop_begin(&stop, sample);
	stop_learn(&stop);
	stop_capture(&stop);
	stop_decode(&stop);
	assert_true(stop_has(&stop, scene.main_proto, (size_t)vm->layout->GCproto_sizeof));
	assert_true(stop_has(&stop, scene.work_proto, (size_t)vm->layout->GCproto_sizeof));
	assert_true(stop_has(&stop, fake_pc(vm, scene.main_proto, 2), 4));
	assert_int_equal(LUASTATE_FULL, sample->chain.outcome);
	assert_int_equal(2, sample->chain.count);
	assert_int_equal(11, sample->chain.frames[0].line);
	stop_end(&stop);
}

/* ---- Learning --------------------------------------------------------------------------- */

static void test_learning(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct luastate_prediction prediction = { 0 };
	struct luastate_vm_frame vm_frames[4] = {
		{ .L = 0 }, { .L = vm->main }, { .L = vm->main }, { .L = FAKE_END }
	};

	luastate_learn(
		sample->state, &vm->reader,
		&(struct luastate_native_walk){ vm_frames, 4, 5000, LUASTATE_REACH_ALL, 1000 },
		&prediction);
	assert_true(prediction.native_end >= 5000 && prediction.native_end <= 5000 + 8192);
	assert_int_equal(1, prediction.thread_count);
	assert_int_equal(vm->main, prediction.threads[0].L);
	assert_int_equal(stop_stack_of(vm, vm->main), prediction.threads[0].stack);
	/* It grows, … */
	luastate_learn(
		sample->state, &vm->reader,
		&(struct luastate_native_walk){ vm_frames, 0, 90000, LUASTATE_REACH_ALL, 1000 },
		&prediction);
	assert_true(prediction.native_end >= 90000);
	assert_int_equal(0, prediction.thread_count);
	/* … does not shrink for a shorter stack, … */
	luastate_learn(
		sample->state, &vm->reader,
		&(struct luastate_native_walk){ vm_frames, 0, 2000, LUASTATE_REACH_ALL, 1000 },
		&prediction);
	assert_true(prediction.native_end >= 90000);
	/* … and follows a thread that has changed its stack. */
	luastate_learn(sample->state, &vm->reader,
		       &(struct luastate_native_walk){ vm_frames, 0, 50000000, LUASTATE_REACH_ALL,
						       49999000 },
		       &prediction);
	assert_true(prediction.native_end >= 50000000);
	luastate_learn(
		sample->state, &vm->reader,
		&(struct luastate_native_walk){ vm_frames, 0, 2000, LUASTATE_REACH_ALL, 1000 },
		&prediction);
	assert_true(prediction.native_end < 90000);
}

/* A signal handler's stack is far from the thread's own, and a walk from it may end anywhere. */
static void test_learning_from_a_handlers_stack(void **state)
{
	const uint64_t own = 1 << 30, handlers = 1 << 20;
	struct sample *sample = *state;
	const struct attach_reader *reader = &sample->vm->reader;
	struct luastate_prediction prediction = { 0 };

	/* Nothing is known of the thread's own stack: a guess that is not too short. */
	luastate_learn(
		sample->state, reader,
		&(struct luastate_native_walk){ NULL, 0, own, LUASTATE_REACH_SOME, handlers },
		&prediction);
	assert_true(prediction.native_end >= own + 16384);
	/* What is known of it stays, wherever a walk ends on it, … */
	prediction.native_end = own + 4096;
	luastate_learn(
		sample->state, reader,
		&(struct luastate_native_walk){ NULL, 0, own, LUASTATE_REACH_SOME, handlers },
		&prediction);
	assert_int_equal(own + 4096, prediction.native_end);
	luastate_learn(sample->state, reader,
		       &(struct luastate_native_walk){ NULL, 0, own, LUASTATE_REACH_CUT, handlers },
		       &prediction);
	assert_int_equal(own + 4096, prediction.native_end);
	/* … but not one that ends on the handler's. */
	luastate_learn(sample->state, reader,
		       &(struct luastate_native_walk){ NULL, 0, handlers + 64, LUASTATE_REACH_SOME,
						       handlers },
		       &prediction);
	assert_int_equal(handlers + 64 + 16384, prediction.native_end);
	luastate_learn(
		sample->state, reader,
		&(struct luastate_native_walk){ NULL, 0, own + 64, LUASTATE_REACH_SOME, own },
		&prediction);
	assert_true(prediction.native_end >= own + 64 + 16384);
}

/* A walk that the end of the copy cut short asks for more, up to a bound. */
static void test_learning_from_a_cut_stack(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t sp = vm->native_start + 256;
	struct stop stop;
	size_t before, now = 0, most = 0;

	stop_make_scene(sample);
	sample->regs.r[ATTACH_REG_RSP] = sp;
	stop_begin(&stop, sample);
	stop.context.stack_limit = 0;
	before = stop_capture(&stop);
	for (int i = 0; i < 100; i++) {
		luastate_learn(
			sample->state, &vm->reader,
			&(struct luastate_native_walk){ NULL, 0, sp + 64, LUASTATE_REACH_CUT, sp },
			&stop.prediction);
		now = stop_capture(&stop);
		most = now > most ? now : most;
	}
	assert_true(most >= 16 * before);
	/* However often it was not enough: the most that a stop copies, and not the least again. */
	assert_int_equal(most, now);
	stop_end(&stop);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_first_stop),
		SAMPLE_TEST(test_steady_state),
		SAMPLE_TEST(test_other_leaf),
		SAMPLE_TEST(test_reset_forgets_predictions),
		SAMPLE_TEST(test_new_coroutine),
		SAMPLE_TEST(test_handlers_stack),
		SAMPLE_TEST(test_stack_that_moved),
		SAMPLE_TEST(test_stack_that_grew),
		SAMPLE_TEST(test_helper),
		SAMPLE_TEST(test_after_the_stop),
		SAMPLE_TEST(test_learning),
		SAMPLE_TEST(test_learning_from_a_handlers_stack),
		SAMPLE_TEST(test_learning_from_a_cut_stack),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
