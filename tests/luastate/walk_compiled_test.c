/* SPDX-License-Identifier: MIT */
/* The walk below a trace of which no more than the number and the start is known. */
#include "walk_cast.h"

struct trace {
	uint64_t J, table, object;
};

/* The VM runs a trace. */
static struct trace put_trace(struct fake_vm *vm, uint32_t number, uint32_t size, uint64_t proto,
			      unsigned index)
{
	const struct luastate_layout *layout = vm->layout;
	struct trace trace = { .J = vm->G + (uint64_t)layout->global_State_to_J,
			       .object = fake_trace(vm, number, size, proto, index) };

	trace.table = fake_get_u64(vm, trace.J + (uint64_t)layout->jit_State_trace);
	fake_put_u32(vm, vm->G + (uint64_t)layout->global_State_vmstate, number);
	return trace;
}

static void test_running_trace(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	const struct luastate_function *function;

	put_trace(vm, 3, 8, cast.inner_proto, 1);
	sample_cframe(sample, vm->main, 1, 0);
	fake_call(vm, vm->main, cast.main, 0, FAKE_LINK_C);
	fake_put_ref(vm, vm->G + (uint64_t)vm->layout->global_State_jit_base,
		     fake_call_lua(vm, vm->main, cast.work, ret_in(sample, cast.main_proto)));
	/* The coroutine's own base is of before the trace. */
	fake_L_set(vm, vm->main, vm->layout->lua_State_base,
		   fake_L_get(vm, vm->main, vm->layout->lua_State_stack) + vm->frame_bytes);
	sample->vm_frames[0].compiled = true;
	/* Where rows differ in what the compiler has alone, the first trace decides. */
	sample_walk(sample);
	EXPECT(sample, LUASTATE_FULL, { 3, 21, 0 }, { cast.work_proto, 10, 0 },
	       { cast.main_proto, 2, 0 });
	assert_int_equal(3, sample->chain.trace);
	assert_int_equal(9, sample->chain.state);
	function = sample->chain.frames[0].function;
	assert_int_equal(LUASTATE_TRACE, function->kind);
	assert_int_equal(21, function->firstline);
	assert_string_equal("=inner", function->chunkname);
	/* The same trace is the same function in the next sample. */
	sample_walk(sample);
	assert_ptr_equal(function, sample->chain.frames[0].function);
}

static void test_traces_that_are_none(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	struct cast cast = make_cast(vm);
	struct trace trace = put_trace(vm, 3, 8, cast.inner_proto, 1);

	sample_cframe(sample, vm->main, 1, 0);
	fake_call(vm, vm->main, cast.main, 0, FAKE_LINK_C);
	sample->vm_frames[0].compiled = true;
	sample_walk(sample);
	fake_put_u32(vm, trace.J + (uint64_t)layout->jit_State_sizetrace, 3);
	EXPECT(sample, LUASTATE_FULL, { cast.main_proto, 0, 0 });
	fake_put_u32(vm, trace.J + (uint64_t)layout->jit_State_sizetrace, 8);
	fake_put_u64(vm, trace.J + (uint64_t)layout->jit_State_trace, 0);
	EXPECT(sample, LUASTATE_FULL, { cast.main_proto, 0, 0 });
	fake_put_u64(vm, trace.J + (uint64_t)layout->jit_State_trace, trace.table);
	fake_put_ref(vm, trace.table + 3 * (uint64_t)layout->ref_size, cast.main);
	EXPECT(sample, LUASTATE_FULL, { cast.main_proto, 0, 0 });
	fake_put_ref(vm, trace.table + 3 * (uint64_t)layout->ref_size, trace.object);
	fake_put_ref(vm, trace.object + (uint64_t)layout->GCtrace_startpt, cast.main);
	EXPECT(sample, LUASTATE_FULL, { cast.main_proto, 0, 0 });
	fake_put_ref(vm, trace.object + (uint64_t)layout->GCtrace_startpt, cast.main_proto);
	/* A start in another function. */
	EXPECT(sample, LUASTATE_FULL, { cast.main_proto, 0, 0 });
	fake_put_ref(vm, trace.object + (uint64_t)layout->GCtrace_startpt, cast.inner_proto);
	sample_walk(sample);
	EXPECT(sample, LUASTATE_FULL, { 3, 21, 0 }, { cast.main_proto, 0, 0 });
}

/* jit.flush() between the stop and the walk: an empty table fits rows that differ in traces alone.
 */
static void test_dropped_traces_change_no_layout(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	struct trace trace = put_trace(vm, 3, 8, cast.inner_proto, 1);
	const struct luastate_layout *layout;

	sample_cframe(sample, vm->main, 1, 0);
	fake_call(vm, vm->main, cast.main, 0, FAKE_LINK_C);
	sample->vm_frames[0].compiled = true;
	sample_walk(sample);
	layout = luastate_vm_get(sample->state, 0)->layout;
	fake_put_ref(vm, trace.table + 3 * (uint64_t)vm->layout->ref_size, 0);
	sample_walk(sample);
	assert_ptr_equal(layout, luastate_vm_get(sample->state, 0)->layout);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_running_trace),
		SAMPLE_TEST(test_traces_that_are_none),
		SAMPLE_TEST(test_dropped_traces_change_no_layout),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
