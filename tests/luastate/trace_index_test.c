/* SPDX-License-Identifier: MIT */
/* Traces that come and go. */
#include "trace_scene.h"

#include "luastate/trace/trace.h"
#include "luastate/trace/trace_index.h"

static uint64_t J_of(const struct fake_vm *vm)
{
	return fake_member(vm->G, vm->layout->global_State_to_J);
}

/* ---- What changes while a trace lives --------------------------------------------------- */

static void test_volatile_members(void **state)
{
	struct trace_scene scene;
	const struct luastate_layout *layout;
	const struct trace *known;

	trace_scene_begin(&scene, *state);
	layout = scene.vm->layout;
	EXPECT_INNER(scene);
	known = trace_find(scene.sample->state, scene.vm->G, 1);
	/* The collector's links, side traces, exits that are counted. */
	fake_put_ref(scene.vm, scene.tracing.address, scene.work);
	fake_put_ref(scene.vm,
		     fake_member(scene.tracing.address, layout->GCtrace_ir - layout->ref_size),
		     scene.work);
	fake_put_u8(scene.vm, fake_member(scene.tracing.address, layout->GCtrace_nchild), 3);
	fake_put_u8(scene.vm, fake_member(scene.tracing.address, layout->GCtrace_link), 3);
	fake_put_u8(
		scene.vm,
		fake_get_u64(scene.vm, fake_member(scene.tracing.address, layout->GCtrace_snap)) +
			(uint64_t)layout->SnapShot_count,
		9);
	EXPECT_INNER(scene);
	assert_ptr_equal(known, trace_find(scene.sample->state, scene.vm->G, 1));
}

/* Same number, address, code and size. */
static void test_other_content(void **state)
{
	struct trace_scene scene;
	uint64_t address;

	trace_scene_begin(&scene, *state);
	EXPECT_INNER(scene);
	address = scene.tracing.address;
	trace_scene_again(&scene);
	for (uint32_t offset = 0; offset <= 100; offset += 50) {
		fake_snap_begin(scene.vm, &scene.tracing, offset);
		fake_snap_call(scene.vm, &scene.tracing, scene.leaf,
			       trace_scene_ret(&scene, scene.work_proto));
		fake_snap_end(scene.vm, &scene.tracing,
			      trace_scene_pc(&scene, scene.leaf_proto, 1));
	}
	fake_tracing_put_at(scene.vm, &scene.tracing, address);
	EXPECT_AT(&scene, 70, EXACT, LEAF(31, false), WORK(12, false), MAIN);
}

/* Same number; elsewhere, and with code of another size. */
static void test_other_trace(void **state)
{
	struct trace_scene scene;

	trace_scene_begin(&scene, *state);
	EXPECT_INNER(scene);
	trace_scene_again(&scene);
	trace_scene_base(&scene, 0, 1);
	scene.tracing.szmcode = 300;
	trace_scene_put(&scene);
	EXPECT_AT(&scene, 70, EXACT, WORK(11, false), MAIN);
	EXPECT_AT(&scene, 250, EXACT, WORK(11, false), MAIN);
	/* Back at what was there before. */
	trace_scene_again(&scene);
	trace_scene_describe(&scene);
	trace_scene_put(&scene);
	EXPECT_INNER(scene);
	EXPECT_AT(&scene, 250, TRACE, ALONE(1), MAIN);
}

static void test_flush(void **state)
{
	struct trace_scene scene;

	trace_scene_begin(&scene, *state);
	EXPECT_INNER(scene);
	fake_trace_enter(scene.vm, 1, 0);
	EXPECT_AT(&scene, 70, TRACE, { scene.work_proto, 10, 0, false }, MAIN);
	/* A slot that refers to something else. */
	fake_trace_enter(scene.vm, 1, scene.work);
	EXPECT_AT(&scene, 70, TRACE, { scene.work_proto, 10, 0, false }, MAIN);
	fake_trace_enter(scene.vm, 1, scene.tracing.address);
	EXPECT_INNER(scene);
	fake_put_u32(scene.vm, fake_member(J_of(scene.vm), scene.vm->layout->jit_State_sizetrace),
		     1);
	EXPECT_AT(&scene, 70, TRACE, { scene.work_proto, 10, 0, false }, MAIN);
}

/* What a sample may read of traces does not depend on what the one before has read. */
static void test_work_of_the_sample_before(void **state)
{
	struct trace_scene scene;

	trace_scene_begin(&scene, *state);
	scene.sample->state->trace_work = TRACE_WORK_MAX + 1;
	EXPECT_INNER(scene);
}

/* ---- Between the stop and its decoding -------------------------------------------------- */

/* A memory that is another one's but for some bytes. */
struct patched {
	const struct attach_reader *under;
	uint64_t start;
	uint8_t bytes[512];
	size_t len;
};

static int read_patched(void *self, struct remote_addr address, void *ret_bytes, size_t len,
			struct failure *why)
{
	const struct patched *patched = self;
	uint8_t *to = ret_bytes;

	if (attach_read(patched->under, address, ret_bytes, len, why) != 0)
		return -1;
	for (size_t i = 0; i < len; i++)
		if (address.value + i - patched->start < patched->len)
			to[i] = patched->bytes[address.value + i - patched->start];
	return 0;
}

/* Walk with a stop in which some bytes were what they are now, and then change them. */
static void keep(struct trace_scene *scene, struct patched *patched, uint64_t start, size_t len)
{
	MUST(len <= sizeof(patched->bytes));
	patched->under = &scene->vm->reader;
	patched->start = start;
	patched->len = len;
	memcpy(patched->bytes, fake_at(scene->vm, start, len), len);
}

static void walk_patched(struct trace_scene *scene, struct patched *patched)
{
	const struct attach_reader stopped = { .read = read_patched, .self = patched };
	const struct luastate_memory memory = { .stopped = &stopped, .any = &scene->vm->reader };
	struct sample *sample = scene->sample;

	luastate_begin_sample(sample->state, &scene->vm->reader);
	luastate_walk(sample->state, &memory, sample->vm_frames, sample->vm_frame_count,
		      &sample->chain);
}

/* The header was read with the stop; since then another trace was put in its place. */
static void test_replaced_after_the_stop(void **state)
{
	struct trace_scene scene;
	struct patched patched;
	size_t size;

	trace_scene_begin(&scene, *state);
	size = (size_t)scene.vm->layout->GCtrace_sizeof;
	trace_scene_at(&scene, 70);
	keep(&scene, &patched, scene.tracing.address, size);
	scene.tracing.szmcode = 190;
	fake_tracing_put_at(scene.vm, &scene.tracing, scene.tracing.address);
	/* Nobody knows what the one that ran was like. */
	walk_patched(&scene, &patched);
	assert_int_equal(LUASTATE_COMPILED_TRACE, scene.sample->chain.compiled);
	assert_int_equal(2, scene.sample->chain.count);
	assert_null(trace_find(scene.sample->state, scene.vm->G, 1));
	/* But if it was known. */
	scene.tracing.szmcode = 200;
	fake_tracing_put_at(scene.vm, &scene.tracing, scene.tracing.address);
	EXPECT_INNER(scene);
	scene.tracing.szmcode = 190;
	fake_tracing_put_at(scene.vm, &scene.tracing, scene.tracing.address);
	walk_patched(&scene, &patched);
	assert_int_equal(LUASTATE_COMPILED_EXACT, scene.sample->chain.compiled);
	assert_int_equal(3, scene.sample->chain.count);
	/* From the next stop on it is the new one. */
	EXPECT_INNER(scene);
	assert_int_equal(190, trace_find(scene.sample->state, scene.vm->G, 1)->szmcode);
}

/* The trace was flushed after the stop. */
static void test_flushed_after_the_stop(void **state)
{
	struct trace_scene scene;
	struct patched patched;
	uint64_t table;

	trace_scene_begin(&scene, *state);
	trace_scene_at(&scene, 70);
	table = fake_get_u64(scene.vm,
			     fake_member(J_of(scene.vm), scene.vm->layout->jit_State_trace));
	keep(&scene, &patched, table, (size_t)scene.vm->layout->ref_size * 2);
	fake_trace_enter(scene.vm, 1, 0);
	walk_patched(&scene, &patched);
	assert_int_equal(LUASTATE_COMPILED_TRACE, scene.sample->chain.compiled);
	fake_trace_enter(scene.vm, 1, scene.tracing.address);
	EXPECT_INNER(scene);
	fake_trace_enter(scene.vm, 1, 0);
	walk_patched(&scene, &patched);
	assert_int_equal(LUASTATE_COMPILED_EXACT, scene.sample->chain.compiled);
}

/* ---- Many ------------------------------------------------------------------------------- */

enum { MANY = 3000 };

/* Their code is in three places at a time; the newest counts. */
static void test_many_traces(void **state)
{
	struct trace_scene scene;
	struct luastate *lua;
	const struct luastate_memory memory = sample_memory(*state);
	const struct luastate_vm *vm;
	struct failure why;

	trace_scene_begin(&scene, *state);
	lua = scene.sample->state;
	fake_trace_table(scene.vm, MANY + 1);
	for (uint32_t i = 1; i <= MANY; i++) {
		struct state_view view;

		scene.tracing.number = i;
		scene.tracing.mcode = 0x10000000 + 256 * (uint64_t)(i / 3) + i % 3;
		if (i == 1)
			fake_tracing_put(scene.vm, &scene.tracing);
		else
			fake_tracing_put_at(scene.vm, &scene.tracing, scene.tracing.address);
		vm = luastate_vm_of(lua, &scene.vm->reader, scene.vm->main, &why);
		assert_non_null(vm);
		luastate_begin_sample(lua, &scene.vm->reader);
		/* Without its code a trace can be read, but not located. */
		view = state_view_of(lua, &memory, vm);
		assert_non_null(trace_get(&view, i, &why));
	}
	assert_int_equal(MANY, HASH_COUNT(lua->traces));
	assert_int_equal(MANY / 3 + 1, lua->trace_index_count);
	for (uint32_t i = 5; i <= MANY; i += 3) {
		uint64_t mcode = 0x10000000 + 256 * (uint64_t)(i / 3) + 2;

		assert_int_equal(i, trace_number_at(lua, scene.vm->G, mcode));
		assert_int_equal(i, trace_number_at(lua, scene.vm->G, mcode + 199));
		assert_int_equal(0, trace_number_at(lua, scene.vm->G, mcode + 200));
		assert_int_equal(0, trace_number_at(lua, scene.vm->G, mcode - 1));
		assert_int_equal(0, trace_number_at(lua, scene.vm->G + 8, mcode));
	}
	trace_free_all(lua);
	assert_int_equal(0, HASH_COUNT(lua->traces));
	assert_int_equal(0, trace_number_at(lua, scene.vm->G, 0x10000000));
}

/* Behind a bound on all that is kept, it begins anew. */
static void test_room(void **state)
{
	struct trace_scene scene;

	trace_scene_begin(&scene, *state);
	EXPECT_INNER(scene);
	assert_true(scene.sample->state->trace_bytes > 0);
	scene.sample->state->trace_bytes += TRACE_KEPT_BYTES;
	scene.tracing.number = 2;
	scene.tracing.mcode += 2048;
	fake_tracing_put(scene.vm, &scene.tracing);
	trace_scene_vmstate(&scene, 2);
	trace_scene_stand(&scene, scene.tracing.mcode + 70, true);
	sample_walk(scene.sample);
	assert_int_equal(LUASTATE_COMPILED_EXACT, scene.sample->chain.compiled);
	assert_null(trace_find(scene.sample->state, scene.vm->G, 1));
	assert_non_null(trace_find(scene.sample->state, scene.vm->G, 2));
	assert_true(scene.sample->state->trace_bytes < TRACE_KEPT_BYTES);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_volatile_members),
		SAMPLE_TEST(test_other_content),
		SAMPLE_TEST(test_other_trace),
		SAMPLE_TEST(test_flush),
		SAMPLE_TEST(test_replaced_after_the_stop),
		SAMPLE_TEST(test_flushed_after_the_stop),
		SAMPLE_TEST(test_work_of_the_sample_before),
		SAMPLE_TEST(test_many_traces),
		SAMPLE_TEST(test_room),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
