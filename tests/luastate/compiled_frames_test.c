/* SPDX-License-Identifier: MIT */
/* Where a thread is in compiled code: by the VM's state, machine code, exits and guards. */
#include "trace_scene.h"

#include "luastate/trace/trace.h"
#include "luastate/trace/trace_index.h"

static const struct trace *known_trace(const struct trace_scene *scene, uint32_t number)
{
	return trace_find(scene->sample->state, scene->vm->G, number);
}

static void test_collector_below_a_trace(void **state)
{
	struct trace_scene scene;
	struct fake_tracing other;

	trace_scene_init(&scene, *state);
	trace_scene_inner(&scene, 0, 1);
	trace_scene_inner(&scene, 50, 2);
	trace_scene_put(&scene);
	other = scene.tracing;
	other.number = 2;
	other.mcode = scene.code + 6000;
	trace_scene_put_other(&scene, &other);
	trace_scene_vmstate(&scene, ~scene.vm->layout->vmst_gc);
	/* By the machine code, which no one has read before; then by what is known of it. */
	for (int i = 0; i < 2; i++) {
		trace_scene_stand(&scene, scene.tracing.mcode + 40, false);
		EXPECT_NOW(&scene, EXACT, INNER(21, false), WORK(12, false), MAIN);
		assert_int_equal(1, scene.sample->chain.trace);
		assert_int_equal(i ? 2 : 0, trace_number_at(scene.sample->state, scene.vm->G,
							    other.mcode + 40));
		trace_scene_stand(&scene, other.mcode + 40, false);
		EXPECT_NOW(&scene, EXACT, { scene.inner_proto, 21, 2, false },
			   { scene.work_proto, 12, 2, false }, MAIN);
	}
	/* In the first instruction, before the number is noted. */
	trace_scene_stand(&scene, scene.tracing.mcode, true);
	EXPECT_NOW(&scene, EXACT, INNER(21, false), WORK(12, false), MAIN);
	/* Behind both. */
	trace_scene_stand(&scene, scene.code + 12000, false);
	EXPECT_NOW(&scene, TRACE, { scene.work_proto, 10, 0, false }, MAIN);
}

/* Where nothing but the code tells: traces lie side by side. */
static void test_neighbours(void **state)
{
	enum { HEAD = 60, HEAD_BYTES = 11 };
	struct trace_scene scene;
	struct fake_tracing other;
	struct fake_vm *vm;
	uint8_t head[HEAD_BYTES];

	trace_scene_init(&scene, *state);
	vm = scene.vm;
	for (uint32_t offset = 0; offset <= 140; offset += 70)
		trace_scene_inner(&scene, offset, 1);
	trace_scene_put(&scene);
	other = scene.tracing;
	other.number = 2;
	other.mcode += other.szmcode;
	trace_scene_put_other(&scene, &other);
	/* Below the last call of the first one the next one's head is near. */
	trace_scene_vmstate(&scene, ~vm->layout->vmst_gc);
	trace_scene_stand(&scene, other.mcode, false);
	EXPECT_NOW(&scene, EXACT, INNER(21, false), WORK(12, false), MAIN);
	/* In front of its head a side trace restores what its parent has kept. */
	memcpy(head, fake_at(vm, other.mcode, HEAD_BYTES), HEAD_BYTES);
	memset(fake_at(vm, other.mcode, HEAD_BYTES), 0x90, HEAD_BYTES);
	fake_put(vm, other.mcode + HEAD, head, HEAD_BYTES);
	trace_scene_vmstate(&scene, 1);
	trace_scene_stand(&scene, other.mcode + 20, true);
	sample_walk(scene.sample);
	assert_int_equal(2, scene.sample->chain.trace);
	/* Far behind its head, and in an area that has just begun. */
	trace_scene_again(&scene);
	scene.tracing.number = 3;
	scene.tracing.mcode = scene.code;
	scene.tracing.szmcode = FAKE_TRACE_CODE;
	trace_scene_inner(&scene, 0, 1);
	fake_hide(vm, scene.code - 64, 64);
	trace_scene_put(&scene);
	trace_scene_vmstate(&scene, ~vm->layout->vmst_gc);
	trace_scene_stand(&scene, scene.code + FAKE_TRACE_CODE - 1, true);
	sample_walk(scene.sample);
	assert_int_equal(3, scene.sample->chain.trace);
	trace_free_all(scene.sample->state);
	trace_scene_stand(&scene, scene.code + 600, true);
	sample_walk(scene.sample);
	assert_int_equal(3, scene.sample->chain.trace);
}

static void test_exit_stub(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	trace_scene_base(&scene, 0, 1);
	trace_scene_inner(&scene, 50, 1);
	trace_scene_inner(&scene, 100, 2);
	trace_scene_inner(&scene, 150, 2);
	trace_scene_put(&scene);
	trace_scene_vmstate(&scene, 1);
	trace_scene_stand(&scene, scene.stubs + FAKE_STUB_BYTES * 2, true);
	EXPECT_NOW(&scene, EXACT, INNER(22, false), WORK(12, false), MAIN);
	trace_scene_stand(&scene, scene.stubs + FAKE_STUB_BYTES * 2 + 2, true);
	EXPECT_NOW(&scene, EXACT, INNER(22, false), WORK(12, false), MAIN);
	/* An exit that the trace does not have, and what is behind the stubs. */
	trace_scene_stand(&scene, scene.stubs + FAKE_STUB_BYTES * 40, true);
	EXPECT_NOW(&scene, TRACE, ALONE(1), MAIN);
	trace_scene_stand(&scene, scene.stubs + FAKE_STUB_BYTES * FAKE_STUBS, true);
	EXPECT_NOW(&scene, TRACE, ALONE(1), MAIN);
}

/* The compiler's state tells of the exit. */
static void leave(struct trace_scene *scene, uint32_t number, uint32_t exit)
{
	const struct luastate_layout *layout = scene->vm->layout;
	uint64_t J = fake_member(scene->vm->G, layout->global_State_to_J);
	struct luastate_vm_frame *vm_frame = &scene->sample->vm_frames[0];

	trace_scene_vmstate(scene, ~layout->vmst_exit);
	fake_put_u32(scene->vm, fake_member(J, layout->jit_State_parent), number);
	fake_put_u32(scene->vm, fake_member(J, layout->jit_State_exitno), exit);
	vm_frame->compiled = vm_frame->leaf = false;
	vm_frame->frame.r[ATTACH_REG_PC] = scene->vm->code + FAKE_AT_RETURN;
}

static void test_exit(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	trace_scene_base(&scene, 0, 1);
	trace_scene_inner(&scene, 50, 1);
	trace_scene_put(&scene);
	/* The snapshot is not written to the stack yet. */
	leave(&scene, 1, 1);
	EXPECT_NOW(&scene, LUASTATE_COMPILED_NONE, { scene.inner_proto, 21, 0, false },
		   { scene.work_proto, 12, 0, false }, MAIN);
	leave(&scene, 1, 0);
	EXPECT_NOW(&scene, LUASTATE_COMPILED_NONE, { scene.work_proto, 11, 0, false }, MAIN);
	/* An exit or a trace that there is not. */
	leave(&scene, 1, 2);
	EXPECT_NOW(&scene, LUASTATE_COMPILED_NONE, { scene.work_proto, 10, 0, false }, MAIN);
	leave(&scene, 5, 0);
	EXPECT_NOW(&scene, LUASTATE_COMPILED_NONE, { scene.work_proto, 10, 0, false }, MAIN);
	/* Now it is: the stack has all. */
	leave(&scene, 1, 1);
	fake_call_lua(scene.vm, scene.vm->main, scene.inner,
		      trace_scene_ret(&scene, scene.work_proto));
	EXPECT_NOW(&scene, LUASTATE_COMPILED_NONE, { scene.inner_proto, 20, 0, false },
		   { scene.work_proto, 12, 0, false }, MAIN);
}

/* What the stack says of the position comes first; and what is not there tells nothing. */
static void test_exit_in_doubt(void **state)
{
	struct trace_scene scene;
	uint64_t J;

	trace_scene_init(&scene, *state);
	trace_scene_base(&scene, 0, 3);
	trace_scene_put(&scene);
	leave(&scene, 1, 0);
	sample_set_pc(scene.sample, 0, trace_scene_pc(&scene, scene.work_proto, 2));
	EXPECT_NOW(&scene, LUASTATE_COMPILED_NONE, { scene.work_proto, 11, 0, false }, MAIN);
	sample_set_pc(scene.sample, 0, 0);
	EXPECT_NOW(&scene, LUASTATE_COMPILED_NONE, { scene.work_proto, 13, 0, false }, MAIN);
	J = fake_member(scene.vm->G, scene.vm->layout->global_State_to_J);
	fake_hide(scene.vm, fake_member(J, scene.vm->layout->jit_State_exitno), 4);
	EXPECT_NOW(&scene, LUASTATE_COMPILED_NONE, { scene.work_proto, 10, 0, false }, MAIN);
}

/* The stack cannot be walked: the trace is all that is known. */
static void test_torn_stack(void **state)
{
	struct trace_scene scene;
	const struct luastate_chain *chain;

	trace_scene_init(&scene, *state);
	chain = &scene.sample->chain;
	trace_scene_base(&scene, 0, 1);
	trace_scene_put(&scene);
	fake_put_link(scene.vm, scene.base, 4);
	trace_scene_at(&scene, 50);
	sample_walk(scene.sample);
	assert_int_not_equal(LUASTATE_FULL, chain->outcome);
	assert_int_equal(TRACE, chain->compiled);
	assert_int_equal(1, chain->count);
	assert_int_equal(LUASTATE_TRACE, chain->frames[0].function->kind);
	assert_int_equal(1, chain->trace);
}

/* A function that calls itself looks alike before and after. */
static void test_exit_of_recursion(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	fake_snap_begin(scene.vm, &scene.tracing, 0);
	fake_snap_call(scene.vm, &scene.tracing, scene.work,
		       trace_scene_ret(&scene, scene.work_proto));
	fake_snap_end(scene.vm, &scene.tracing, trace_scene_pc(&scene, scene.work_proto, 1));
	trace_scene_put(&scene);
	leave(&scene, 1, 0);
	EXPECT_NOW(&scene, LUASTATE_COMPILED_NONE, { scene.work_proto, 10, 0, false }, MAIN);
}

/* A side trace may check the stack before it notes its number: the exit is its parent's. */
static void test_stack_check_of_a_side_trace(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	scene.tracing.stack_check = 2;
	trace_scene_inner(&scene, 0, 1);
	trace_scene_inner(&scene, 50, 2);
	trace_scene_inner(&scene, 100, 3);
	trace_scene_base(&scene, 150, 3);
	trace_scene_put(&scene);
	EXPECT_AT(&scene, 70, EXACT, INNER(22, false), WORK(12, false), MAIN);
	EXPECT_AT(&scene, 120, APPROXIMATE, INNER(23, true), WORK(12, true), MAIN);
}

/* A guard from which a side trace begins leads there instead of to a stub. */
static void test_patched_guard(void **state)
{
	struct trace_scene scene;
	struct fake_tracing side;

	trace_scene_init(&scene, *state);
	trace_scene_inner(&scene, 0, 1);
	trace_scene_inner(&scene, 50, 2);
	trace_scene_inner(&scene, 100, 3);
	trace_scene_base(&scene, 150, 3);
	side = scene.tracing;
	side.number = 2;
	side.parent = side.root = 1;
	side.exit = 1;
	side.mcode = scene.code + 4096;
	trace_scene_put(&scene);
	trace_scene_put_other(&scene, &side);
	fake_put_guard(scene.vm, scene.tracing.mcode + 100 - FAKE_GUARD_BYTES, side.mcode);
	/* What leads elsewhere is none: within the trace, to code of nobody, to nowhere. */
	fake_put_guard(scene.vm, scene.tracing.mcode + 20, scene.tracing.mcode + 60);
	fake_put_guard(scene.vm, scene.tracing.mcode + 30, scene.code + 12000);
	fake_put_guard(scene.vm, scene.tracing.mcode + 36, scene.code + 0x1000000);
	/* The side trace is known first. */
	trace_scene_vmstate(&scene, 2);
	trace_scene_stand(&scene, side.mcode + 70, true);
	EXPECT_NOW(&scene, EXACT, { scene.inner_proto, 22, 2, false },
		   { scene.work_proto, 12, 2, false }, MAIN);
	EXPECT_AT(&scene, 70, EXACT, INNER(22, false), WORK(12, false), MAIN);
	EXPECT_AT(&scene, 120, APPROXIMATE, INNER(23, true), WORK(12, true), MAIN);
	assert_int_equal(100, known_trace(&scene, 1)->snapshots[2].offset);
}

/* A trace called a C function that called Lua code, which is in another trace. */
static void test_two_traces(void **state)
{
	struct sample *sample = *state;
	struct trace_scene scene;
	struct fake_tracing other;
	struct fake_vm *vm;
	struct luastate_vm_frame older;

	trace_scene_init(&scene, sample);
	vm = scene.vm;
	for (uint32_t offset = 0; offset <= 100; offset += 50)
		trace_scene_inner(&scene, offset, 1);
	trace_scene_put(&scene);
	fake_tracing_init(&other, 2, scene.leaf_proto, 1, scene.code + 4096);
	fake_snap_begin(vm, &other, 0);
	fake_snap_end(vm, &other, trace_scene_pc(&scene, scene.leaf_proto, 1));
	trace_scene_put_other(&scene, &other);
	/* The first one is known. */
	EXPECT_AT(&scene, 70, EXACT, INNER(21, false), WORK(12, false), MAIN);
	trace_scene_stand(&scene, scene.tracing.mcode + 70, false);
	older = sample->vm_frames[0];
	sample_cframe(sample, vm->main, 1, 0);
	scene.base = fake_call(vm, vm->main, scene.leaf, 8, FAKE_LINK_C);
	trace_scene_vmstate(&scene, 2);
	trace_scene_stand(&scene, other.mcode + 10, true);
	sample->vm_frames[1] = older;
	EXPECT_NOW(&scene, EXACT, { scene.leaf_proto, 31, 2, false }, INNER(21, false),
		   WORK(12, false), MAIN);
	assert_int_equal(2, sample->chain.trace);
	assert_int_equal(0, sample->chain.frames[0].owner);
	assert_int_equal(1, sample->chain.frames[1].owner);
	/* Nothing is known of the newest one; the older one stays what it is. */
	fake_trace_enter(vm, 2, 0);
	EXPECT_NOW(&scene, TRACE, { scene.leaf_proto, 30, 0, false }, INNER(21, false),
		   WORK(12, false), MAIN);
}

/* The C frame above code without unwind information, and where it returns to. */
static uint64_t return_above(struct trace_scene *scene, uint64_t sp)
{
	struct sample *sample = scene->sample;
	const struct luastate_memory memory = sample_memory(sample);
	const struct attach_registers frame = { .r[ATTACH_REG_SP] = sp };
	struct luastate_vm_frame vm_frame;

	assert_int_equal(0, luastate_find_vm_frame_above(sample->state, &memory, &frame, UINT64_MAX,
							 &vm_frame, &sample->why));
	assert_true(vm_frame.compiled);
	assert_int_equal(sample->vm_frames[0].address, vm_frame.address);
	return attach_pc(&vm_frame.frame);
}

static void put_spadjust(const struct trace_scene *scene, const struct fake_tracing *tracing,
			 uint16_t bytes)
{
	fake_put(scene->vm, fake_member(tracing->address, scene->vm->layout->GCtrace_spadjust),
		 &bytes, sizeof(bytes));
}

/* Stale words of traces lie below and above the place to which a trace's call returns. */
static void test_return_from_foreign_code(void **state)
{
	enum { SPADJUST = 32, OTHER_SPADJUST = 64 };
	struct trace_scene scene;
	struct fake_tracing other;
	uint64_t slot, sp, ret;

	trace_scene_init(&scene, *state);
	for (uint32_t offset = 0; offset <= 100; offset += 50)
		trace_scene_inner(&scene, offset, 1);
	trace_scene_put(&scene);
	put_spadjust(&scene, &scene.tracing, SPADJUST);
	other = scene.tracing;
	other.number = 2;
	other.mcode = scene.code + 6000;
	trace_scene_put_other(&scene, &other);
	put_spadjust(&scene, &other, OTHER_SPADJUST);
	/* Both are known. */
	trace_scene_vmstate(&scene, 2);
	trace_scene_stand(&scene, other.mcode + 70, true);
	sample_walk(scene.sample);
	EXPECT_AT(&scene, 70, EXACT, INNER(21, false), WORK(12, false), MAIN);
	slot = scene.sample->vm_frames[0].address - 16 - SPADJUST - 8;
	sp = slot - 256;
	ret = scene.tracing.mcode + 90;
	for (uint64_t at = sp; at < scene.sample->vm_frames[0].address; at += 8)
		fake_put_u64(scene.vm, at, 0);
	assert_int_equal(0, return_above(&scene, sp));
	/* Of another trace, of the same one, and where only another one would return to. */
	fake_put_u64(scene.vm, sp, other.mcode + 60);
	fake_put_u64(scene.vm, sp + 64, scene.tracing.mcode + 40);
	fake_put_u64(scene.vm, slot - (OTHER_SPADJUST - SPADJUST), scene.tracing.mcode + 30);
	assert_int_equal(0, return_above(&scene, sp));
	fake_put_u64(scene.vm, slot, ret);
	fake_put_u64(scene.vm, slot + 8, other.mcode + 50);
	assert_int_equal(ret, return_above(&scene, sp));
}

/* The base is a fast function's frame. */
static void test_base_of_a_fast_function(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	trace_scene_base(&scene, 0, 1);
	trace_scene_base(&scene, 100, 1);
	trace_scene_put(&scene);
	scene.base = fake_call_lua(scene.vm, scene.vm->main, scene.pcall,
				   trace_scene_ret(&scene, scene.work_proto));
	for (uint32_t offset = 50; offset <= 150; offset += 100)
		EXPECT_AT(&scene, offset, TRACE, { 1, 11, 1, false },
			  { scene.pcall_code, 0, 1, false }, { scene.work_proto, 12, 0, false },
			  MAIN);
}

static void expect_gone(struct trace_scene *scene, enum luastate_outcome outcome, size_t count)
{
	const struct luastate_chain *chain = &scene->sample->chain;

	trace_scene_at(scene, 70);
	sample_walk(scene->sample);
	assert_int_equal(outcome, chain->outcome);
	assert_int_equal(TRACE, chain->compiled);
	assert_int_equal(count, chain->count);
	assert_int_equal(scene->work_proto, chain->frames[count - 2].function->address);
}

/* Prototypes that can be read no more. */
static void test_hidden_prototypes(void **state)
{
	struct trace_scene scene;
	size_t size;

	trace_scene_init(&scene, *state);
	size = (size_t)scene.vm->layout->GCproto_sizeof;
	scene.tracing.proto = scene.leaf_proto;
	for (uint32_t offset = 0; offset <= 100; offset += 50)
		trace_scene_inner(&scene, offset, 1);
	/* So that the trace's base is known. */
	fake_tracing_object(scene.vm, &scene.tracing, scene.work_proto, FAKE_IRT_PROTO);
	trace_scene_put(&scene);
	EXPECT_AT(&scene, 70, EXACT, INNER(21, false), WORK(12, false), MAIN);
	fake_hide(scene.vm, scene.inner_proto, size);
	/* It was there a moment ago: nobody knows what ran. */
	expect_gone(&scene, LUASTATE_INCONSISTENT, 3);
	expect_gone(&scene, LUASTATE_FULL, 3);
	/* Nor where it began: then it is left out. */
	fake_hide(scene.vm, scene.leaf_proto, size);
	expect_gone(&scene, LUASTATE_FULL, 2);
	fake_show(scene.vm, scene.inner_proto, size);
	EXPECT_AT(&scene, 70, EXACT, INNER(21, false), WORK(12, false), MAIN);
}

/* Code that cannot be read tells nothing where the layout does not either. */
static void test_hidden_code(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	trace_scene_inner(&scene, 0, 1);
	trace_scene_inner(&scene, 50, 2);
	trace_scene_put(&scene);
	fake_hide(scene.vm, scene.tracing.mcode + 190, 10);
	if (trace_scene_has_offsets(&scene))
		EXPECT_AT(&scene, 70, EXACT, INNER(22, false), WORK(12, false), MAIN);
	else
		EXPECT_AT(&scene, 70, TRACE, ALONE(1), MAIN);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_collector_below_a_trace),
		SAMPLE_TEST(test_neighbours),
		SAMPLE_TEST(test_exit_stub),
		SAMPLE_TEST(test_exit),
		SAMPLE_TEST(test_exit_in_doubt),
		SAMPLE_TEST(test_torn_stack),
		SAMPLE_TEST(test_exit_of_recursion),
		SAMPLE_TEST(test_stack_check_of_a_side_trace),
		SAMPLE_TEST(test_patched_guard),
		SAMPLE_TEST(test_two_traces),
		SAMPLE_TEST(test_return_from_foreign_code),
		SAMPLE_TEST(test_base_of_a_fast_function),
		SAMPLE_TEST(test_hidden_prototypes),
		SAMPLE_TEST(test_hidden_code),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
