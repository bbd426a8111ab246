/* SPDX-License-Identifier: MIT */
/* What the snapshots of compiled code tell: the frames that are inlined, and how sure they are. */
#include "trace_scene.h"

#include "luastate/trace/trace.h"

static const struct trace *known_trace(const struct trace_scene *scene, uint32_t number)
{
	return trace_find(scene->sample->state, scene->vm->G, number);
}

/* ---- Frames ----------------------------------------------------------------------------- */

static void test_one_inlined_call(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	fake_name_function(scene.sample->vm, "inner", scene.inner);
	trace_scene_base(&scene, 0, 1);
	trace_scene_inner(&scene, 40, 1);
	trace_scene_inner(&scene, 60, 2);
	trace_scene_inner(&scene, 80, 3);
	trace_scene_base(&scene, 100, 3);
	trace_scene_base(&scene, 120, 1);
	trace_scene_put(&scene);
	/* The next snapshot has one more frame, … */
	EXPECT_AT(&scene, 20, APPROXIMATE, WORK(11, true), MAIN);
	EXPECT_AT(&scene, 39, APPROXIMATE, WORK(11, true), MAIN);
	/* … the same ones, … */
	EXPECT_AT(&scene, 60, EXACT, INNER(22, false), WORK(12, false), MAIN);
	EXPECT_AT(&scene, 79, EXACT, INNER(22, false), WORK(12, false), MAIN);
	/* … and one less. */
	EXPECT_AT(&scene, 80, APPROXIMATE, INNER(23, true), WORK(12, true), MAIN);
	EXPECT_AT(&scene, 199, EXACT, WORK(11, false), MAIN);
	assert_int_equal(1, scene.sample->chain.trace);
	/* Where only the guards tell, the snapshot before counts, too. */
	if (trace_scene_has_offsets(&scene)) {
		EXPECT_AT(&scene, 40, EXACT, INNER(21, false), WORK(12, false), MAIN);
	} else {
		EXPECT_AT(&scene, 40, APPROXIMATE, INNER(21, true), WORK(12, true), MAIN);
	}
	/* Round to a position before may pass the call. */
	EXPECT_AT(&scene, 119, APPROXIMATE, WORK(13, true), MAIN);
	/* What is inlined gets its name as others do. */
	assert_string_equal("inner", sample_proto(*state, scene.inner_proto)->function.name);
}

/* A call between two snapshots of its caller: the callee may have run without a guard. */
static void test_call_without_guard(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	trace_scene_base(&scene, 0, 1);
	trace_scene_base(&scene, 40, 2);
	trace_scene_base(&scene, 80, 3);
	trace_scene_inner(&scene, 120, 1);
	trace_scene_put(&scene);
	EXPECT_AT(&scene, 20, EXACT, WORK(11, false), MAIN);
	/* Here another snapshot shows whom it calls, and no more code is the caller's. */
	if (trace_scene_has_offsets(&scene))
		EXPECT_AT(&scene, 60, APPROXIMATE, INNER(21, true), WORK(12, true), MAIN);
	else
		EXPECT_AT(&scene, 60, APPROXIMATE, WORK(12, true), MAIN);
	EXPECT_AT(&scene, 100, APPROXIMATE, WORK(13, true), MAIN);
}

/* Not where the trace knows no other function. */
static void test_call_of_no_function(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	trace_scene_base(&scene, 0, 1);
	trace_scene_base(&scene, 40, 2);
	trace_scene_base(&scene, 80, 3);
	trace_scene_put(&scene);
	EXPECT_AT(&scene, 60, EXACT, WORK(12, false), MAIN);
}

/* The return address of a call that the trace made is behind its last byte at most. */
static void test_below_a_trace(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	trace_scene_inner(&scene, 0, 3);
	trace_scene_inner(&scene, 60, 2);
	trace_scene_inner(&scene, 100, 1);
	trace_scene_put(&scene);
	trace_scene_vmstate(&scene, 1);
	trace_scene_stand(&scene, scene.tracing.mcode + 100, false);
	EXPECT_NOW(&scene, EXACT, INNER(22, false), WORK(12, false), MAIN);
	trace_scene_stand(&scene, scene.tracing.mcode + 200, false);
	EXPECT_NOW(&scene, EXACT, INNER(21, false), WORK(12, false), MAIN);
	trace_scene_stand(&scene, scene.tracing.mcode + 200, true);
	EXPECT_NOW(&scene, TRACE, ALONE(1), MAIN);
}

static void put_two_levels(struct trace_scene *scene, uint32_t offset, unsigned index)
{
	fake_snap_begin(scene->vm, &scene->tracing, offset);
	fake_snap_call(scene->vm, &scene->tracing, scene->inner,
		       trace_scene_ret(scene, scene->work_proto));
	fake_snap_call(scene->vm, &scene->tracing, scene->leaf,
		       trace_scene_ret(scene, scene->inner_proto));
	fake_snap_end(scene->vm, &scene->tracing, trace_scene_pc(scene, scene->leaf_proto, index));
}

static void test_two_levels(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	put_two_levels(&scene, 0, 0);
	put_two_levels(&scene, 50, 1);
	put_two_levels(&scene, 100, 3);
	trace_scene_inner(&scene, 150, 3);
	trace_scene_put(&scene);
	EXPECT_AT(&scene, 70, EXACT, LEAF(31, false), INNER(22, false), WORK(12, false), MAIN);
	/* The call of leaf ends, that of inner does not. */
	EXPECT_AT(&scene, 120, APPROXIMATE, LEAF(33, true), INNER(22, true), WORK(12, false), MAIN);
}

static void test_pcall(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	for (uint32_t offset = 0; offset < 150; offset += 50) {
		fake_snap_begin(scene.vm, &scene.tracing, offset);
		fake_snap_call(scene.vm, &scene.tracing, scene.pcall,
			       trace_scene_ret(&scene, scene.work_proto));
		fake_snap_delta(scene.vm, &scene.tracing, scene.inner, 0, FAKE_LINK_PCALL);
		fake_snap_end(scene.vm, &scene.tracing,
			      trace_scene_pc(&scene, scene.inner_proto, 1));
	}
	trace_scene_put(&scene);
	EXPECT_AT(&scene, 70, EXACT, INNER(21, false), { scene.pcall_code, 0, 1, false },
		  WORK(12, false), MAIN);
	assert_int_equal(LUASTATE_BUILTIN, scene.sample->chain.frames[1].function->kind);
}

static void test_continuation(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	for (uint32_t offset = 0; offset < 150; offset += 50) {
		fake_snap_begin(scene.vm, &scene.tracing, offset);
		fake_snap_cont(scene.vm, &scene.tracing, scene.inner, 3,
			       trace_scene_pc(&scene, scene.work_proto, 2));
		fake_snap_call(scene.vm, &scene.tracing, scene.leaf,
			       trace_scene_ret(&scene, scene.inner_proto));
		fake_snap_end(scene.vm, &scene.tracing,
			      trace_scene_pc(&scene, scene.leaf_proto, 1));
	}
	trace_scene_put(&scene);
	EXPECT_AT(&scene, 70, EXACT, LEAF(31, false), INNER(22, false), WORK(11, false), MAIN);
}

/* A vararg function has two frames. */
static void test_vararg(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	for (uint32_t offset = 0; offset < 150; offset += 50) {
		fake_snap_begin(scene.vm, &scene.tracing, offset);
		fake_snap_call(scene.vm, &scene.tracing, scene.inner,
			       trace_scene_ret(&scene, scene.work_proto));
		fake_snap_delta(scene.vm, &scene.tracing, scene.inner, 2, FAKE_LINK_VARG);
		fake_snap_end(scene.vm, &scene.tracing,
			      trace_scene_pc(&scene, scene.inner_proto, 3));
	}
	trace_scene_put(&scene);
	EXPECT_AT(&scene, 70, EXACT, INNER(23, false), WORK(12, false), MAIN);
}

/* The trace began at a vararg function's first instruction. */
static void test_vararg_base(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	for (uint32_t offset = 0; offset < 150; offset += 50) {
		fake_snap_begin(scene.vm, &scene.tracing, offset);
		fake_snap_delta(scene.vm, &scene.tracing, 0, 2, FAKE_LINK_VARG);
		fake_snap_call(scene.vm, &scene.tracing, scene.inner,
			       trace_scene_ret(&scene, scene.work_proto));
		fake_snap_end(scene.vm, &scene.tracing,
			      trace_scene_pc(&scene, scene.inner_proto, 1));
	}
	trace_scene_put(&scene);
	EXPECT_AT(&scene, 70, EXACT, INNER(21, false), WORK(12, false), MAIN);
}

static void test_tail_called_base(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	trace_scene_base(&scene, 0, 1);
	for (uint32_t offset = 50; offset <= 150; offset += 50) {
		fake_snap_begin(scene.vm, &scene.tracing, offset);
		fake_snap_replace(scene.vm, &scene.tracing, scene.leaf);
		fake_snap_end(scene.vm, &scene.tracing,
			      trace_scene_pc(&scene, scene.leaf_proto, 1));
	}
	trace_scene_put(&scene);
	EXPECT_AT(&scene, 20, APPROXIMATE, WORK(11, true), MAIN);
	/* The stack has the caller still. */
	EXPECT_AT(&scene, 120, EXACT, LEAF(31, false), MAIN);
}

/* A function that is specialised by its prototype is no constant itself. */
static void test_function_by_prototype(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	fake_tracing_object(scene.vm, &scene.tracing, scene.leaf_proto, FAKE_IRT_PROTO);
	fake_tracing_object(scene.vm, &scene.tracing, scene.inner_proto, FAKE_IRT_PROTO);
	fake_tracing_object(scene.vm, &scene.tracing, scene.main, FAKE_IRT_FUNC);
	for (uint32_t offset = 0; offset < 150; offset += 50) {
		fake_snap_begin(scene.vm, &scene.tracing, offset);
		fake_snap_call(scene.vm, &scene.tracing, 0,
			       trace_scene_ret(&scene, scene.work_proto));
		fake_snap_call(scene.vm, &scene.tracing, 0,
			       trace_scene_ret(&scene, scene.inner_proto));
		fake_snap_call(scene.vm, &scene.tracing, 0,
			       trace_scene_ret(&scene, scene.leaf_proto));
		fake_snap_end(scene.vm, &scene.tracing,
			      trace_scene_pc(&scene, scene.main_proto, 1));
	}
	trace_scene_put(&scene);
	EXPECT_AT(&scene, 70, EXACT, { scene.main_proto, 1, 1, false }, LEAF(32, false),
		  INNER(22, false), WORK(12, false), MAIN);
}

static void put_unknown(struct trace_scene *scene, uint32_t offset)
{
	fake_snap_begin(scene->vm, &scene->tracing, offset);
	fake_snap_call(scene->vm, &scene->tracing, 0, trace_scene_ret(scene, scene->work_proto));
	fake_snap_end(scene->vm, &scene->tracing, trace_scene_pc(scene, scene->inner_proto, 1));
}

/* Nothing tells the function: the trace alone. */
static void test_function_that_nothing_tells(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	put_unknown(&scene, 0);
	put_unknown(&scene, 50);
	trace_scene_put(&scene);
	EXPECT_AT(&scene, 20, TRACE, ALONE(1), MAIN);
	assert_int_equal(LUASTATE_TRACE, scene.sample->chain.frames[0].function->kind);
}

/* A side trace inherits functions from its parent. */
static void test_function_of_the_parent(void **state)
{
	struct trace_scene scene;
	struct fake_tracing parent;

	trace_scene_init(&scene, *state);
	trace_scene_inner(&scene, 0, 1);
	parent = scene.tracing;
	parent.number = 2;
	parent.mcode = scene.code + 2048;
	trace_scene_put_other(&scene, &parent);
	trace_scene_again(&scene);
	scene.tracing.parent = scene.tracing.root = 2;
	put_unknown(&scene, 0);
	put_unknown(&scene, 50);
	put_unknown(&scene, 100);
	trace_scene_put(&scene);
	EXPECT_AT(&scene, 70, EXACT, INNER(21, false), WORK(12, false), MAIN);
	assert_int_equal(2, known_trace(&scene, 1)->parent);
	assert_non_null(known_trace(&scene, 2));
}

/* ---- Certainty -------------------------------------------------------------------------- */

/* A snapshot of the caller alone, to which the trace has returned. */
static void put_returned(struct trace_scene *scene, uint32_t offset, unsigned index)
{
	fake_snap_begin(scene->vm, &scene->tracing, offset);
	fake_snap_end(scene->vm, &scene->tracing, trace_scene_pc(scene, scene->main_proto, index));
}

static void test_return_to_a_lower_frame(void **state)
{
	struct trace_scene scene;
	uint64_t upper;
	uint32_t ref;

	trace_scene_init(&scene, *state);
	ref = fake_tracing_object(scene.vm, &scene.tracing, scene.main_proto, FAKE_IRT_PROTO);
	trace_scene_base(&scene, 0, 1);
	trace_scene_base(&scene, 50, 3);
	fake_tracing_ins(&scene.tracing, FAKE_IR_RETF, ref, 0);
	put_returned(&scene, 100, 3);
	put_returned(&scene, 150, 3);
	trace_scene_put(&scene);
	EXPECT_AT(&scene, 70, APPROXIMATE, WORK(13, true), MAIN);
	/* The base is the caller's already, the next snapshot does not hold yet. */
	upper = scene.base;

	scene.base = upper - scene.vm->frame_bytes - 8 * 2;
	EXPECT_AT(&scene, 70, APPROXIMATE, { scene.main_proto, 3, 1, true });
	if (trace_scene_has_offsets(&scene))
		EXPECT_AT(&scene, 120, EXACT, { scene.main_proto, 3, 1, false });
	EXPECT_AT(&scene, 170, EXACT, { scene.main_proto, 3, 1, false });
	/* A base that fits neither. */
	EXPECT_AT(&scene, 20, TRACE, { 1, 11, 1, false }, { scene.main_proto, 0, 1, false });
	scene.base = upper;
	EXPECT_AT(&scene, 120, TRACE, ALONE(1), MAIN);
}

/* At its end the trace has written its frames to the stack, and the base is the topmost one's. */
static void test_base_moved_at_the_end(void **state)
{
	struct trace_scene scene;
	struct fake_vm *vm;
	uint64_t base;

	trace_scene_init(&scene, *state);
	vm = scene.vm;
	trace_scene_base(&scene, 0, 1);
	trace_scene_inner(&scene, 60, 2);
	trace_scene_inner(&scene, 100, 1);
	trace_scene_put(&scene);
	EXPECT_AT(&scene, 190, EXACT, INNER(21, false), WORK(12, false), MAIN);
	base = scene.base;
	scene.base =
		fake_call_lua(vm, vm->main, scene.inner, trace_scene_ret(&scene, scene.work_proto));
	EXPECT_AT(&scene, 190, EXACT, INNER(21, false), { scene.work_proto, 12, 0, false }, MAIN);
	/* Also where some function may hide in the trace: it is left. */
	fake_tracing_object(vm, &scene.tracing, scene.leaf, FAKE_IRT_FUNC);
	trace_scene_put(&scene);
	EXPECT_AT(&scene, 190, EXACT, INNER(21, false), { scene.work_proto, 12, 0, false }, MAIN);
	/* Only behind the last snapshot. */
	EXPECT_AT(&scene, 50, TRACE, { 1, 11, 1, false }, { scene.inner_proto, 20, 1, false },
		  { scene.work_proto, 12, 0, false }, MAIN);
	scene.base = base;
}

/* A tail call behind a return: nobody knows what the stack has. */
static void test_tail_call_after_a_return(void **state)
{
	struct trace_scene scene;
	uint32_t ref;

	trace_scene_init(&scene, *state);
	ref = fake_tracing_object(scene.vm, &scene.tracing, scene.main_proto, FAKE_IRT_PROTO);
	trace_scene_base(&scene, 0, 1);
	fake_tracing_ins(&scene.tracing, FAKE_IR_RETF, ref, 0);
	for (uint32_t offset = 50; offset <= 150; offset += 50) {
		fake_snap_begin(scene.vm, &scene.tracing, offset);
		fake_snap_replace(scene.vm, &scene.tracing, scene.leaf);
		fake_snap_end(scene.vm, &scene.tracing,
			      trace_scene_pc(&scene, scene.leaf_proto, 1));
	}
	trace_scene_put(&scene);
	EXPECT_AT(&scene, 120, TRACE, ALONE(1), MAIN);
}

static void test_hidden_function(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	trace_scene_inner(&scene, 0, 1);
	trace_scene_inner(&scene, 50, 2);
	fake_tracing_object(scene.vm, &scene.tracing, scene.leaf, FAKE_IRT_FUNC);
	trace_scene_put(&scene);
	/* It may run above inner; what is below holds. */
	EXPECT_AT(&scene, 20, APPROXIMATE, INNER(21, true), WORK(12, false), MAIN);
	trace_scene_again(&scene);
	trace_scene_inner(&scene, 0, 1);
	trace_scene_inner(&scene, 50, 2);
	fake_tracing_object(scene.vm, &scene.tracing, scene.leaf_proto, FAKE_IRT_PROTO);
	trace_scene_put(&scene);
	EXPECT_AT(&scene, 20, APPROXIMATE, INNER(21, true), WORK(12, false), MAIN);
	/* One in C is no matter. */
	trace_scene_again(&scene);
	trace_scene_inner(&scene, 0, 1);
	trace_scene_inner(&scene, 50, 2);
	fake_tracing_object(scene.vm, &scene.tracing, scene.pcall, FAKE_IRT_FUNC);
	fake_tracing_object(scene.vm, &scene.tracing, scene.work, FAKE_IRT_FUNC);
	trace_scene_put(&scene);
	EXPECT_AT(&scene, 20, EXACT, INNER(21, false), WORK(12, false), MAIN);
}

/* Behind its last snapshot a loop begins anew. */
static void put_code(struct trace_scene *scene, uint64_t proto, unsigned index, uint32_t ins)
{
	fake_put_u32(scene->vm, trace_scene_pc(scene, proto, index), ins);
}

/* work: 1: for …, to 3; 2: call; 3: the loop's end, whose operand may name a trace. */
static void put_loop(struct trace_scene *scene, unsigned end, unsigned operand)
{
	put_code(scene, scene->work_proto, 1, fake_ad(77, 3, 0x8002)); /* FORI */
	put_code(scene, scene->work_proto, 3, fake_ad(end, 3, operand));
}

/* A loop that the trace has unrolled: the code may have come back to the same call round it. */
static void test_unrolled_loop(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	put_loop(&scene, 79, 0x7ffd); /* FORL */
	trace_scene_inner(&scene, 0, 1);
	trace_scene_inner(&scene, 50, 2);
	trace_scene_inner(&scene, 100, 3);
	trace_scene_put(&scene);
	EXPECT_AT(&scene, 70, APPROXIMATE, INNER(22, true), WORK(12, true), MAIN);
	/* That of another trace, as which it was compiled later. */
	trace_free_all(scene.sample->state);
	put_loop(&scene, 81, 7); /* JFORL */
	EXPECT_AT(&scene, 70, APPROXIMATE, INNER(22, true), WORK(12, true), MAIN);
	/* The trace's own. */
	trace_free_all(scene.sample->state);
	put_loop(&scene, 81, SCENE_TRACE);
	EXPECT_AT(&scene, 70, EXACT, INNER(22, false), WORK(12, false), MAIN);
}

static void test_loop(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	trace_scene_base(&scene, 0, 1);
	trace_scene_inner(&scene, 50, 1);
	trace_scene_inner(&scene, 100, 2);
	trace_scene_inner(&scene, 150, 3);
	scene.tracing.mcloop = 60;
	trace_scene_put(&scene);
	/* The compiler makes no loop of which a part is in a callee: work may be anywhere. */
	EXPECT_AT(&scene, 170, APPROXIMATE, INNER(23, true), WORK(12, true), MAIN);
	/* To where inner is not called yet. */
	scene.tracing.mcloop = 20;
	trace_scene_put(&scene);
	EXPECT_AT(&scene, 170, APPROXIMATE, INNER(23, true), WORK(12, true), MAIN);
	/* To nowhere. */
	scene.tracing.mcloop = 3000;
	trace_scene_put(&scene);
	EXPECT_AT(&scene, 170, APPROXIMATE, INNER(23, true), WORK(12, true), MAIN);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_one_inlined_call),
		SAMPLE_TEST(test_call_without_guard),
		SAMPLE_TEST(test_call_of_no_function),
		SAMPLE_TEST(test_below_a_trace),
		SAMPLE_TEST(test_unrolled_loop),
		SAMPLE_TEST(test_two_levels),
		SAMPLE_TEST(test_pcall),
		SAMPLE_TEST(test_continuation),
		SAMPLE_TEST(test_vararg),
		SAMPLE_TEST(test_vararg_base),
		SAMPLE_TEST(test_tail_called_base),
		SAMPLE_TEST(test_function_by_prototype),
		SAMPLE_TEST(test_function_that_nothing_tells),
		SAMPLE_TEST(test_function_of_the_parent),
		SAMPLE_TEST(test_return_to_a_lower_frame),
		SAMPLE_TEST(test_base_moved_at_the_end),
		SAMPLE_TEST(test_tail_call_after_a_return),
		SAMPLE_TEST(test_hidden_function),
		SAMPLE_TEST(test_loop),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
