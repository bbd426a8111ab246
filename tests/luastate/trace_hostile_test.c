/* SPDX-License-Identifier: MIT */
/* Traces that contradict themselves, and ones that would make much work. */
#include "trace_scene.h"

#include "luastate/state/invariants.h"
#include "luastate/trace/trace.h"

/* A walk gives the frames on the stack, with or without the trace, and no others. */
static void expect_no_inlined(struct trace_scene *scene)
{
	const struct luastate_chain *chain = &scene->sample->chain;
	size_t first;

	sample_walk(scene->sample);
	assert_int_equal(LUASTATE_COMPILED_TRACE, chain->compiled);
	first = chain->frames[0].function->kind == LUASTATE_TRACE;
	assert_int_equal(first + 2, chain->count);
	assert_int_equal(scene->work_proto, chain->frames[first].function->address);
	assert_int_equal(scene->main_proto, chain->frames[first + 1].function->address);
}

static void test_hostile_headers(void **state)
{
	struct trace_scene scene;
	const struct luastate_layout *layout;

	trace_scene_begin(&scene, *state);
	layout = scene.vm->layout;
	const struct {
		int32_t member;
		unsigned len;
		uint64_t value;
	} changes[] = {
		{ layout->GCtrace_nk, 4, 0x8001 },
		{ layout->GCtrace_nk, 4, 0 },
		{ layout->GCtrace_nk, 4, UINT32_MAX },
		{ layout->GCtrace_nins, 4, 0x8000 },
		{ layout->GCtrace_nins, 4, 0x10001 },
		{ layout->GCtrace_nins, 4, UINT32_MAX },
		{ layout->GCtrace_nsnap, 2, 0 },
		{ layout->GCtrace_nsnap, 2, 65535 },
		{ layout->GCtrace_nsnapmap, 2, 65535 },
		{ layout->GCtrace_snap, 8, 0 },
		{ layout->GCtrace_snapmap, 8, UINT64_MAX },
		{ layout->GCtrace_ir, 8, 8 },
		{ layout->GCtrace_mcode, 8, 0 },
		{ layout->GCtrace_mcode, 8, UINT64_MAX - 10 },
		{ layout->GCtrace_szmcode, 4, 0 },
		{ layout->GCtrace_traceno, 2, 2 },
		{ layout->GCtrace_linktype, 1, 200 },
		{ layout->GCtrace_startpt, (unsigned)layout->ref_size, 0 },
		{ layout->GCtrace_startpc, (unsigned)layout->ref_size, 16 },
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		uint64_t at = fake_member(scene.tracing.address, changes[i].member);
		uint8_t kept[8];

		memcpy(kept, fake_at(scene.vm, at, 8), 8);
		trace_free_all(scene.sample->state);
		fake_put(scene.vm, at, &changes[i].value, changes[i].len);
		trace_scene_at(&scene, 70);
		expect_no_inlined(&scene);
		fake_put(scene.vm, at, kept, 8);
		EXPECT_INNER(scene);
	}
}

/* The block is longer than any trace has it. */
static void test_huge_block(void **state)
{
	struct trace_scene scene;
	const struct luastate_layout *layout;
	uint64_t reads;

	trace_scene_begin(&scene, *state);
	layout = scene.vm->layout;
	if (layout->SnapShot_ref == 2)
		return; /* its numbers are too short for that */
	fake_put_u32(scene.vm, fake_member(scene.tracing.address, layout->GCtrace_nsnapmap),
		     TRACE_BLOCK_MAX / 4);
	trace_scene_at(&scene, 70);
	reads = scene.vm->bytes_read;
	expect_no_inlined(&scene);
	assert_true(scene.vm->bytes_read - reads < TRACE_BLOCK_MAX / 2);
}

/* Snapshots that contradict themselves tell nothing, the others do. */
static void test_hostile_snapshots(void **state)
{
	struct trace_scene scene;
	const struct luastate_layout *layout;
	uint64_t second;

	trace_scene_begin(&scene, *state);
	layout = scene.vm->layout;
	second = fake_get_u64(scene.vm, fake_member(scene.tracing.address, layout->GCtrace_snap)) +
		 (uint64_t)layout->SnapShot_sizeof;
	/* Its part of the map ends before it begins, or behind the map's end. */
	for (uint32_t offset = 0; offset < 0x10000; offset += 0x7fff) {
		uint8_t kept[2];

		memcpy(kept, fake_at(scene.vm, second, 2), 2);
		fake_put(scene.vm, second, &offset, 2);
		trace_scene_at(&scene, 70);
		if (offset)
			expect_no_inlined(&scene);
		else
			sample_walk(scene.sample);
		fake_put(scene.vm, second, kept, 2);
	}
	for (unsigned nent = 5; nent < 256; nent += 50) {
		fake_put_u8(scene.vm, fake_member(second, layout->SnapShot_nent), (uint8_t)nent);
		trace_scene_at(&scene, 70);
		expect_no_inlined(&scene);
	}
	if (trace_scene_has_offsets(&scene))
		EXPECT_AT(&scene, 150, EXACT, INNER(23, false), WORK(12, false), MAIN);
	else
		EXPECT_AT(&scene, 150, APPROXIMATE, INNER(23, true), WORK(12, true), MAIN);
}

/* @param type Of the link of the frame above the lowest. */
static void put_link(struct trace_scene *scene, unsigned gap, unsigned type, uint64_t pc)
{
	trace_scene_again(scene);
	for (uint32_t offset = 0; offset <= 100; offset += 50) {
		fake_snap_begin(scene->vm, &scene->tracing, offset);
		fake_snap_delta(scene->vm, &scene->tracing, scene->inner, gap, type);
		fake_snap_end(scene->vm, &scene->tracing, pc);
	}
	trace_scene_put(scene);
	trace_scene_at(scene, 70);
}

static void test_hostile_links(void **state)
{
	struct trace_scene scene;
	uint64_t pc, address = 0;
	unsigned frame_slots;

	trace_scene_begin(&scene, *state);
	frame_slots = scene.vm->layout->gc64 ? 2 : 1;
	pc = trace_scene_pc(&scene, scene.inner_proto, 1);
	/* A frame of C code or of pcall whose own caller has no position. */
	for (unsigned type = 1; type < 8; type++) {
		if (type == FAKE_LINK_VARG || type == 4)
			continue;
		put_link(&scene, 3, type, pc);
		expect_no_inlined(&scene);
	}
	/* A position in another function. */
	put_link(&scene, 3, FAKE_LINK_VARG, trace_scene_pc(&scene, scene.work_proto, 1));
	expect_no_inlined(&scene);
	for (uint64_t link = 0; link < 5000; link += 7) {
		trace_scene_again(&scene);
		fake_snap_begin(scene.vm, &scene.tracing, 0);
		fake_snap_delta(scene.vm, &scene.tracing, scene.inner, 3, FAKE_LINK_PCALL);
		/* The link is a constant with GC64, else the last of the map's words. */
		if (scene.vm->layout->gc64)
			scene.tracing.constants[scene.tracing.constant_count - 2] = link;
		else
			scene.tracing.links[0] = (uint32_t)link;
		fake_snap_end(scene.vm, &scene.tracing, pc);
		if (!address)
			address = fake_tracing_put(scene.vm, &scene.tracing);
		fake_tracing_put_at(scene.vm, &scene.tracing, address);
		trace_scene_at(&scene, 70);
		/* A vararg link to the lowest frame is right, but of another function. */
		if ((link & 7) == FAKE_LINK_VARG && link / 8 == frame_slots + 3)
			continue;
		expect_no_inlined(&scene);
	}
}

/* The only snapshot of a stitched trace, with a vararg function's upper frame as its last call. */
static void test_stitch_of_vararg(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	scene.tracing.linktype = TRACE_LINK_STITCH;
	fake_snap_begin(scene.vm, &scene.tracing, 0);
	fake_snap_delta(scene.vm, &scene.tracing, scene.inner, 3, FAKE_LINK_VARG);
	fake_snap_end(scene.vm, &scene.tracing, trace_scene_pc(&scene, scene.inner_proto, 1));
	trace_scene_put(&scene);
	trace_scene_at(&scene, 70);
	expect_no_inlined(&scene);
}

/* Without GC64 each frame has a word behind the position; with it there is none. */
static void test_number_of_links(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	if (scene.vm->layout->gc64)
		return;
	for (int change = -1; change <= 1; change += 2) {
		trace_scene_again(&scene);
		fake_snap_begin(scene.vm, &scene.tracing, 0);
		fake_snap_call(scene.vm, &scene.tracing, scene.inner,
			       trace_scene_ret(&scene, scene.work_proto));
		scene.tracing.link_count += (uint32_t)change;
		fake_snap_end(scene.vm, &scene.tracing,
			      trace_scene_pc(&scene, scene.inner_proto, 1));
		trace_scene_put(&scene);
		trace_scene_at(&scene, 70);
		expect_no_inlined(&scene);
	}
}

/* A call whose slot is not in the snapshot, and a link to what cannot be read. */
static void test_hostile_calls(void **state)
{
	struct trace_scene scene;
	uint64_t call;

	trace_scene_begin(&scene, *state);
	call = trace_scene_pc(&scene, scene.work_proto, 2);
	EXPECT_INNER(scene);
	for (unsigned a = 0; a < 256; a++) {
		if (a == 2)
			continue;
		fake_put_u32(scene.vm, call, fake_abc(FAKE_CALL, a, 1, 1));
		trace_free_all(scene.sample->state);
		trace_scene_at(&scene, 70);
		expect_no_inlined(&scene);
	}
	fake_put_u32(scene.vm, call, fake_abc(FAKE_CALL, 2, 1, 1));
	trace_free_all(scene.sample->state);
	EXPECT_INNER(scene);
	trace_scene_again(&scene);
	fake_snap_begin(scene.vm, &scene.tracing, 0);
	fake_snap_call(scene.vm, &scene.tracing, scene.inner, call + 4);
	if (scene.vm->layout->gc64)
		scene.tracing.constants[scene.tracing.constant_count - 2] = 0x7fff00000000;
	else
		scene.tracing.links[0] = 0x7ffffff0;
	fake_snap_end(scene.vm, &scene.tracing, trace_scene_pc(&scene, scene.inner_proto, 1));
	trace_scene_put(&scene);
	trace_scene_at(&scene, 70);
	expect_no_inlined(&scene);
}

/* Constants that are no functions, though the trace says so. */
static void test_hostile_constants(void **state)
{
	struct trace_scene scene;

	trace_scene_init(&scene, *state);
	trace_scene_describe(&scene);
	fake_tracing_object(scene.vm, &scene.tracing, scene.vm->main, FAKE_IRT_FUNC);
	fake_tracing_object(scene.vm, &scene.tracing, 16, FAKE_IRT_FUNC);
	fake_tracing_object(scene.vm, &scene.tracing, 0, FAKE_IRT_PROTO);
	fake_tracing_object(scene.vm, &scene.tracing, scene.work, 5);
	trace_scene_put(&scene);
	EXPECT_INNER(scene);
	/* One of which no more is known may hide. */
	fake_tracing_object(scene.vm, &scene.tracing, scene.vm->main, FAKE_IRT_PROTO);
	trace_scene_put(&scene);
	EXPECT_AT(&scene, 70, APPROXIMATE, INNER(22, true), WORK(12, false), MAIN);
}

/* Slots of a frame beyond what a snapshot can have; frames without end. */
static void test_deep_snapshots(void **state)
{
	struct trace_scene scene;
	unsigned depth = 0;

	trace_scene_begin(&scene, *state);
	trace_scene_again(&scene);
	fake_snap_begin(scene.vm, &scene.tracing, 0);
	/* Each call is in the third slot, so that frames of inner are four or five slots high. */
	fake_snap_call(scene.vm, &scene.tracing, scene.inner,
		       trace_scene_ret(&scene, scene.work_proto));
	while (scene.tracing.base < 245) {
		fake_snap_call(scene.vm, &scene.tracing, scene.inner,
			       trace_scene_ret(&scene, scene.inner_proto));
		depth++;
	}
	fake_snap_end(scene.vm, &scene.tracing, trace_scene_pc(&scene, scene.inner_proto, 1));
	trace_scene_put(&scene);
	trace_scene_at(&scene, 70);
	sample_walk(scene.sample);
	assert_int_equal(LUASTATE_COMPILED_EXACT, scene.sample->chain.compiled);
	assert_int_equal(depth + 3, scene.sample->chain.count);
	/* Behind the last slot. */
	scene.tracing.snapshot_count = scene.tracing.map_count = 0;
	fake_snap_begin(scene.vm, &scene.tracing, 0);
	fake_snap_slot(&scene.tracing, 255, FAKE_SNAP_FRAME, FAKE_REF_NIL);
	scene.tracing.base = 257;
	fake_snap_end(scene.vm, &scene.tracing, trace_scene_pc(&scene, scene.inner_proto, 1));
	trace_scene_put(&scene);
	expect_no_inlined(&scene);
}

/* More frames than a chain of calls has slots for: pcall's frames need few. */
static void test_frames_without_end(void **state)
{
	struct trace_scene scene;
	unsigned frame_slots, count = 0;

	trace_scene_begin(&scene, *state);
	frame_slots = scene.vm->layout->gc64 ? 2 : 1;
	trace_scene_again(&scene);
	fake_snap_begin(scene.vm, &scene.tracing, 0);
	while (scene.tracing.base + frame_slots < 255) {
		fake_snap_delta(scene.vm, &scene.tracing, scene.pcall, 0, FAKE_LINK_PCALL);
		count++;
	}
	fake_snap_end(scene.vm, &scene.tracing, trace_scene_pc(&scene, scene.work_proto, 1));
	trace_scene_put(&scene);
	trace_scene_at(&scene, 70);
	assert_true(frame_slots == 2 || count > TRACE_DEPTH_MAX);
	expect_no_inlined(&scene);
}

/* Side traces whose parents are each other. */
static void test_parents_in_a_circle(void **state)
{
	struct trace_scene scene;
	struct fake_tracing other;
	uint64_t reads;

	trace_scene_begin(&scene, *state);
	scene.tracing.parent = scene.tracing.root = 2;
	other = scene.tracing;
	other.number = 2;
	other.parent = other.root = 1;
	other.mcode = scene.code + 4096;
	fake_tracing_put(scene.vm, &other);
	trace_scene_put(&scene);
	reads = scene.vm->reads;
	EXPECT_INNER(scene);
	assert_true(scene.vm->reads - reads < 10000);
	/* Its own one. */
	scene.tracing.parent = 1;
	trace_scene_put(&scene);
	reads = scene.vm->reads;
	EXPECT_INNER(scene);
	assert_true(scene.vm->reads - reads < 10000);
	/* One that there is not. */
	scene.tracing.parent = 60000;
	trace_scene_put(&scene);
	EXPECT_INNER(scene);
}

/* Many frames and constants: each frame may be looked for among all of these. */
static void test_work_is_bounded(void **state)
{
	enum { COUNT = 6000, READS = 20000 };
	struct trace_scene scene;
	const struct trace *trace;
	uint64_t reads;

	trace_scene_init(&scene, *state);
	for (unsigned i = 0; i < COUNT; i++)
		fake_tracing_object(scene.vm, &scene.tracing, scene.inner, FAKE_IRT_FUNC);
	for (unsigned i = 0; i < COUNT; i++) {
		fake_snap_begin(scene.vm, &scene.tracing, 0);
		fake_snap_call(scene.vm, &scene.tracing, 0,
			       trace_scene_ret(&scene, scene.work_proto));
		fake_snap_end(scene.vm, &scene.tracing,
			      trace_scene_pc(&scene, scene.leaf_proto, 1));
	}
	trace_scene_put(&scene);
	trace_scene_at(&scene, 70);
	reads = scene.vm->reads;
	expect_no_inlined(&scene);
	trace = trace_find(scene.sample->state, scene.vm->G, 1);
	assert_non_null(trace);
	assert_int_equal(COUNT, trace->snapshot_count);
	assert_int_equal(TRACE_FUNCTIONS_MAX, trace->function_count);
	assert_true(scene.vm->reads - reads < READS);
}

/* Many snapshots whose frames are many, too, but whose lowest one is in another function. */
static void test_walks_in_vain_are_bounded(void **state)
{
	enum { COUNT = 6000 };
	struct trace_scene scene;
	struct fake_tracing *tracing = &scene.tracing;
	uint64_t reads;

	trace_scene_init(&scene, *state);
	fake_snap_begin(scene.vm, tracing, 0);
	fake_snap_slot(tracing, 0, 0,
		       fake_tracing_object(scene.vm, tracing, scene.inner, FAKE_IRT_FUNC));
	fake_snap_call(scene.vm, tracing, scene.inner, trace_scene_ret(&scene, scene.work_proto));
	while (tracing->base < 245)
		fake_snap_call(scene.vm, tracing, scene.inner,
			       trace_scene_ret(&scene, scene.inner_proto));
	fake_snap_end(scene.vm, tracing, trace_scene_pc(&scene, scene.inner_proto, 1));
	trace_scene_base(&scene, 0, 1);
	for (; tracing->snapshot_count < COUNT; tracing->snapshot_count++)
		tracing->snapshots[tracing->snapshot_count] =
			tracing->snapshots[tracing->snapshot_count % 2];
	trace_scene_put(&scene);
	trace_scene_at(&scene, 70);
	reads = scene.vm->reads;
	sample_walk(scene.sample);
	assert_non_null(trace_find(scene.sample->state, scene.vm->G, 1));
	assert_true(scene.vm->reads - reads < TRACE_FRAMES_MAX + TRACE_FRAMES_MAX / 2);
	assert_true(scene.vm->reads - reads > TRACE_FRAMES_MAX / 2);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_hostile_headers),
		SAMPLE_TEST(test_huge_block),
		SAMPLE_TEST(test_hostile_snapshots),
		SAMPLE_TEST(test_hostile_links),
		SAMPLE_TEST(test_stitch_of_vararg),
		SAMPLE_TEST(test_number_of_links),
		SAMPLE_TEST(test_hostile_calls),
		SAMPLE_TEST(test_hostile_constants),
		SAMPLE_TEST(test_deep_snapshots),
		SAMPLE_TEST(test_frames_without_end),
		SAMPLE_TEST(test_parents_in_a_circle),
		SAMPLE_TEST(test_work_is_bounded),
		SAMPLE_TEST(test_walks_in_vain_are_bounded),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
