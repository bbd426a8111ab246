/* SPDX-License-Identifier: MIT */
/* Functions that are replaced by others around a stop: none lends its name or lines to another. */
#include "plan_stop.h"

enum { C_CODE = 0x5000 };

/* A stop of a scene whose functions are known. */
static void begin_known(struct stop *stop, struct sample *sample)
{
	stop_begin(stop, sample);
	stop_learn(stop);
	stop_capture(stop);
	stop_decode(stop);
	assert_int_equal(LUASTATE_FULL, sample->chain.outcome);
}

/* A known prototype that was replaced at some time around the stop. */
static void test_replaced_prototype(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct stop_scene scene = stop_make_scene(sample);
	uint64_t line = scene.main_proto + (uint64_t)vm->layout->GCproto_firstline;
	struct stop stop;

	begin_known(&stop, sample);
	stop_capture(&stop);
	fake_put_u32(vm, line, 77);
	stop_decode(&stop);
	assert_int_equal(LUASTATE_INCONSISTENT, sample->chain.outcome);
	/* From now on it is read with the stop: what comes later does not matter. */
	stop_capture(&stop);
	assert_true(stop_asked(&stop, scene.main_proto));
	fake_put_u32(vm, line, 78);
	stop_decode(&stop);
	assert_int_equal(LUASTATE_FULL, sample->chain.outcome);
	assert_int_equal(77, sample->chain.frames[1].function->firstline);
	stop_capture(&stop);
	stop_decode(&stop);
	assert_int_equal(78, sample->chain.frames[1].function->firstline);
	/* But not forever. */
	for (int i = 0; i < STATE_STRICT_SAMPLES; i++)
		luastate_begin_sample(sample->state, &vm->reader);
	stop_capture(&stop);
	assert_false(stop_asked(&stop, scene.main_proto));
	stop_end(&stop);
}

/* Several at once: that the first one is lost says nothing of what the stop has read of the next.
 */
static void test_replaced_prototypes_of_two(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct stop_scene scene = stop_make_scene(sample), other = scene;
	uint64_t firstline = (uint64_t)vm->layout->GCproto_firstline;
	struct stop stop;

	other.work_proto = fake_caller(vm, "@other.lua", 20, "inner");
	other.work = fake_lua_function(vm, other.work_proto);
	stop_resume(sample, &other);
	begin_known(&stop, sample);
	assert_int_equal(3, sample->chain.count);
	stop_capture(&stop);
	fake_put_u32(vm, other.work_proto + firstline, 77);
	fake_put_u32(vm, scene.work_proto + firstline, 78);
	stop_decode(&stop);
	assert_int_equal(LUASTATE_INCONSISTENT, sample->chain.outcome);
	for (size_t i = 0; i < sample->chain.count; i++)
		assert_true(sample->chain.frames[i].function->firstline < 77);
	stop_end(&stop);
}

/* The same below C code, where a register still shows the base of its caller: a walk from there
 * fits once the new prototype is known, and would leave the C function out. */
static void test_replaced_caller_of_c(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct stop_scene scene = stop_make_scene(sample);
	struct stop stop;

	sample->vm_frames[0].frame.r[STATE_REG_KEPT_BASE] =
		fake_L_get(vm, vm->main, vm->layout->lua_State_base);
	fake_call_lua(vm, vm->main, fake_c_function(vm, C_CODE), fake_pc(vm, scene.work_proto, 3));
	sample->vm_frames[0].leaf = false;
	sample->vm_frames[0].frame.r[STATE_REG_PC] = 0;
	begin_known(&stop, sample);
	assert_int_equal(3, sample->chain.count);
	stop_capture(&stop);
	fake_put_u32(vm, scene.work_proto + (uint64_t)vm->layout->GCproto_firstline, 77);
	stop_decode(&stop);
	assert_int_equal(LUASTATE_INCONSISTENT, sample->chain.outcome);
	assert_int_equal(0, sample->chain.count);
	stop_end(&stop);
}

/* A caller whose prototype was collected, and a longer one lies there now: what is kept of the old
 * one says nothing of the new one. */
static void test_caller_that_was_replaced(void **state)
{
	enum { LONG = 6000 };
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint32_t *bc = calloc(LONG, sizeof(*bc));
	struct fake_proto old = {
		.chunkname = "@a.lua", .firstline = 1, .numline = 1, .bc = bc, .sizebc = 4
	};
	struct fake_proto new = {
		.chunkname = "@b.lua", .firstline = 1, .numline = 1, .bc = bc, .sizebc = LONG
	};
	uint64_t proto, base;
	struct stop stop;

	stop_make_scene(sample);
	base = fake_L_get(vm, vm->main, vm->layout->lua_State_base);
	assert_non_null(bc);
	for (size_t i = 0; i < LONG; i++)
		bc[i] = i ? fake_abc(FAKE_CALL, 2, 1, 1) : fake_funcf(vm, 5);
	proto = fake_proto(vm, &new);
	fake_put_proto(vm, proto, &old);
	fake_put_function(vm, base - vm->frame_bytes - 16, fake_lua_function(vm, proto));
	fake_put_link(vm, base, fake_pc(vm, proto, 2));
	begin_known(&stop, sample);
	assert_int_equal(proto, sample->chain.frames[1].function->address);
	fake_put_proto(vm, proto, &new);
	fake_put_link(vm, base, fake_pc(vm, proto, LONG - 1));
	/* Another callee, whose name is not known yet. */
	fake_put_function(vm, base, fake_lua_function(vm, fake_caller(vm, "@c.lua", 30, "x")));
	sample_leaf(sample, FAKE_AT_PLAIN, base, 0);
	stop_capture(&stop);
	stop_decode(&stop);
	assert_int_equal(LUASTATE_INCONSISTENT, sample->chain.outcome);
	stop_capture(&stop);
	stop_decode(&stop);
	assert_int_equal(LUASTATE_FULL, sample->chain.outcome);
	assert_string_equal("@b.lua", sample->chain.frames[1].function->chunkname);
	stop_end(&stop);
	free(bc);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_replaced_prototype),
		SAMPLE_TEST(test_replaced_prototypes_of_two),
		SAMPLE_TEST(test_replaced_caller_of_c),
		SAMPLE_TEST(test_caller_that_was_replaced),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
