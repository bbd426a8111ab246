/* SPDX-License-Identifier: MIT */
/* What a stop reads: an image is filled round by round, as in a stop, from a fake VM. */
#include "sample.h"

#include "attach/image.h"

enum {
	ROUNDS_MAX = 4,
	C_CODE = 0x5000,
	/* Nothing that one stop asks for is larger than a native stack and eight Lua stacks. */
	STOP_BYTES_MAX = (1 << 20) + 8 * 66000 * 8 + 65536,
};

struct stop {
	struct sample *sample;
	struct attach_image *image;
	struct luastate_prediction prediction;
	struct luastate_plan_context context;
	unsigned rounds;
	size_t ranges[ROUNDS_MAX]; /* number of ranges after each round */
};

static void begin(struct stop *stop, struct sample *sample)
{
	memset(stop, 0, sizeof(*stop));
	stop->sample = sample;
	stop->image = attach_image_create();
	assert_non_null(stop->image);
	stop->context.state = sample->state;
	stop->context.prediction = &stop->prediction;
	stop->context.stack_limit = sample->vm->native_end;
}

static void end(struct stop *stop)
{
	attach_image_destroy(stop->image);
}

/* Read what was asked for; of a range that faults, what comes before the fault. */
static void fill(struct stop *stop)
{
	const struct attach_reader *memory = &stop->sample->vm->reader;
	struct attach_image *image = stop->image;

	for (; image->planned < image->range_count; image->planned++) {
		struct image_range *range = &image->ranges[image->planned];
		uint8_t *to = image->arena + range->offset;
		struct failure why;

		range->len = range->wanted;
		if (attach_read(memory, remote_addr_make(range->start), to, range->wanted, &why) !=
		    0)
			range->len = why.address > range->start ? why.address - range->start : 0;
		if (range->len && range->len < range->wanted)
			attach_read(memory, remote_addr_make(range->start), to, range->len, &why);
	}
}

/* @return Bytes that the stop asked for. */
static size_t capture(struct stop *stop)
{
	bool more = true;

	attach_image_clear(stop->image);
	*attach_image_registers(stop->image) = stop->sample->regs;
	for (stop->rounds = 0; more; stop->rounds++) {
		assert_true(stop->rounds < ROUNDS_MAX);
		more = luastate_plan(&stop->context, stop->image, stop->rounds);
		fill(stop);
		stop->ranges[stop->rounds] = stop->image->range_count;
	}
	assert_true(stop->image->arena_len <= STOP_BYTES_MAX);
	return stop->image->arena_len;
}

static bool has(const struct stop *stop, uint64_t address, size_t len)
{
	uint8_t *bytes = malloc(len);
	struct failure why;
	bool there;

	assert_non_null(bytes);
	there = attach_read(attach_image_reader(stop->image), remote_addr_make(address), bytes, len,
			    &why) == 0;
	free(bytes);
	return there;
}

/* Whether any round asked for this, read or not. */
static bool asked(const struct stop *stop, uint64_t address)
{
	for (size_t i = 0; i < stop->image->range_count; i++)
		if (address - stop->image->ranges[i].start < stop->image->ranges[i].wanted)
			return true;
	return false;
}

/* Where in the sequence of rounds an address was asked for first. */
static unsigned round_of(const struct stop *stop, uint64_t address)
{
	for (unsigned round = 0; round < stop->rounds; round++)
		for (size_t i = round ? stop->ranges[round - 1] : 0; i < stop->ranges[round]; i++)
			if (address - stop->image->ranges[i].start < stop->image->ranges[i].wanted)
				return round;
	return ROUNDS_MAX;
}

static void learn(struct stop *stop)
{
	struct sample *sample = stop->sample;

	luastate_learn(sample->state, &sample->vm->reader, sample->cframes, sample->cframe_count,
		       sample->vm->native_end - 256, false, attach_sp(&sample->regs),
		       &stop->prediction);
}

/* main calls work; the thread is in the interpreter. */
struct scene {
	uint64_t main, work, work_proto, main_proto;
	uint64_t co; /* of resume() */
};

static struct scene make_scene(struct sample *sample)
{
	struct fake_vm *vm = sample->vm;
	struct scene scene = { .main_proto = fake_caller(vm, "@main.lua", 0, "work"),
			       .work_proto = fake_caller(vm, "@main.lua", 10, "inner") };

	scene.main = fake_lua_function(vm, scene.main_proto);
	scene.work = fake_lua_function(vm, scene.work_proto);
	sample_cframe(sample, vm->main, 1, 0);
	fake_call(vm, vm->main, scene.main, 0, FAKE_LINK_C);
	fake_call_lua(vm, vm->main, scene.work, fake_pc(vm, scene.main_proto, 3));
	sample_leaf(sample, FAKE_AT_PLAIN, fake_L_get(vm, vm->main, vm->layout->lua_State_base),
		    fake_pc(vm, scene.work_proto, 2));
	return scene;
}

/* The thread runs a coroutine on top. */
static uint64_t resume(struct sample *sample, const struct scene *scene)
{
	struct fake_vm *vm = sample->vm;
	uint64_t co = fake_coroutine(vm, 64);

	/* C code that VM code called. */
	fake_put_u64(vm, vm->sp, vm->code + FAKE_AT_RETURN);
	sample_cframe(sample, co, 0, 0);
	fake_call(vm, co, scene->work, 0, FAKE_LINK_CP);
	sample_leaf(sample, FAKE_AT_PLAIN, fake_L_get(vm, co, vm->layout->lua_State_base),
		    fake_pc(vm, scene->work_proto, 2));
	return co;
}

static uint64_t stack_of(const struct fake_vm *vm, uint64_t L)
{
	return fake_L_get(vm, L, vm->layout->lua_State_stack);
}

static void expect_stack(const struct stop *stop, uint64_t L)
{
	const struct fake_vm *vm = stop->sample->vm;
	uint64_t start = stack_of(vm, L), base = fake_L_get(vm, L, vm->layout->lua_State_base);

	assert_true(has(stop, L, (size_t)vm->layout->lua_State_sizeof));
	assert_true(has(stop, start, (size_t)(base - start)));
}

/* ---- Rounds ----------------------------------------------------------------------------- */

static void test_first_stop(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct scene scene = make_scene(sample);
	struct stop stop;

	begin(&stop, sample);
	capture(&stop);
	assert_int_equal(4, stop.rounds);
	assert_true(has(&stop, attach_sp(&sample->regs), 80));
	assert_int_equal(0, round_of(&stop, attach_sp(&sample->regs)));
	assert_int_equal(1, round_of(&stop, vm->main));
	assert_int_equal(2, round_of(&stop, stack_of(vm, vm->main)));
	assert_int_equal(0, round_of(&stop, vm->G)); /* the state knows the VM */
	assert_int_equal(3, round_of(&stop, scene.work));
	assert_int_equal(3, round_of(&stop, scene.main));
	expect_stack(&stop, vm->main);
	assert_true(has(&stop, vm->G, (size_t)vm->layout->global_State_sizeof));
	assert_true(has(&stop, scene.work, (size_t)vm->layout->GCfunc_header));
	end(&stop);
}

static void test_steady_state(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct scene scene = make_scene(sample);
	struct stop stop;

	begin(&stop, sample);
	learn(&stop);
	assert_int_equal(vm->G, stop.prediction.G);
	assert_int_equal(1, stop.prediction.thread_count);
	capture(&stop);
	assert_int_equal(2, stop.rounds);
	assert_int_equal(0, round_of(&stop, vm->G));
	assert_int_equal(0, round_of(&stop, vm->main));
	assert_int_equal(0, round_of(&stop, stack_of(vm, vm->main)));
	assert_int_equal(1, round_of(&stop, scene.work));
	expect_stack(&stop, vm->main);
	end(&stop);
}

static void test_new_coroutine(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct scene scene = make_scene(sample);
	struct stop stop;
	uint64_t co;

	begin(&stop, sample);
	learn(&stop);
	co = resume(sample, &scene);
	capture(&stop);
	assert_int_equal(1, round_of(&stop, co));
	assert_int_equal(2, round_of(&stop, stack_of(vm, co)));
	expect_stack(&stop, co);
	expect_stack(&stop, vm->main);
	learn(&stop);
	assert_int_equal(2, stop.prediction.thread_count);
	capture(&stop);
	assert_int_equal(2, stop.rounds);
	assert_int_equal(0, round_of(&stop, co));
	assert_int_equal(0, round_of(&stop, stack_of(vm, co)));
	end(&stop);
}

static void test_stack_that_moved(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct scene scene = make_scene(sample);
	uint64_t cframe = fake_L_get(vm, vm->main, vm->layout->lua_State_cframe);
	uint64_t old = stack_of(vm, vm->main);
	struct stop stop;

	begin(&stop, sample);
	learn(&stop);
	fake_lua_state(vm, vm->main, 512);
	fake_L_set(vm, vm->main, vm->layout->lua_State_cframe, cframe);
	fake_call(vm, vm->main, scene.main, 0, FAKE_LINK_C);
	sample_leaf(sample, FAKE_AT_PLAIN,
		    fake_call_lua(vm, vm->main, scene.work, fake_pc(vm, scene.main_proto, 3)), 0);
	capture(&stop);
	assert_true(asked(&stop, old));
	assert_int_equal(1, round_of(&stop, stack_of(vm, vm->main)));
	assert_int_equal(2, round_of(&stop, scene.main));
	expect_stack(&stop, vm->main);
	end(&stop);
}

static void test_stack_that_grew(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct scene scene = make_scene(sample);
	uint64_t L = fake_coroutine(vm, 4096), top;
	struct stop stop;

	sample->cframes[0].L = L;
	fake_put_u64(vm, sample->cframes[0].address + (uint64_t)vm->layout->cframe_L, L);
	fake_call(vm, L, scene.work, 0, FAKE_LINK_C);
	fake_put_u64(vm, vm->G + (uint64_t)vm->layout->global_State_cur_L, L);
	begin(&stop, sample);
	learn(&stop);
	for (int i = 0; i < 500; i++)
		fake_call_lua(vm, L, scene.work, fake_pc(vm, scene.work_proto, 3));
	top = fake_c_function(vm, C_CODE);
	fake_call_lua(vm, L, top, fake_pc(vm, scene.work_proto, 3));
	sample->regs.r[ATTACH_REG_RDX] = 0;
	capture(&stop);
	expect_stack(&stop, L);
	assert_int_equal(1, round_of(&stop, fake_L_get(vm, L, vm->layout->lua_State_base) - 8));
	assert_int_equal(2, round_of(&stop, top));
	assert_int_equal(3, stop.rounds);
	/* In the interpreter BASE tells at once. */
	sample->regs.r[ATTACH_REG_RDX] = fake_L_get(vm, L, vm->layout->lua_State_base);
	fake_L_set(vm, L, vm->layout->lua_State_base, stack_of(vm, L) + 32);
	capture(&stop);
	assert_int_equal(0, round_of(&stop, sample->regs.r[ATTACH_REG_RDX] - 8));
	assert_int_equal(2, stop.rounds);
	end(&stop);
}

/* VM code that was entered by a call from VM code: the frame begins above the return address. */
static void test_helper(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct stop stop;

	make_scene(sample);
	vm->sp = sample->cframes[0].address;
	for (int words = 1; words <= 8; words++) {
		fake_push(vm, words == 1 ? vm->code + FAKE_AT_RETURN : (uint64_t)words);
		sample->regs.r[ATTACH_REG_RSP] = vm->sp;
		sample->regs.r[ATTACH_REG_RIP] = vm->code + FAKE_AT_HELPER;
		begin(&stop, sample);
		capture(&stop);
		expect_stack(&stop, vm->main);
		end(&stop);
	}
}

static void test_after_the_stop(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct scene scene = make_scene(sample);
	struct luastate_memory memory;
	struct stop stop;

	begin(&stop, sample);
	learn(&stop);
	capture(&stop);
	assert_false(asked(&stop, scene.main_proto));
	luastate_plan_after(&stop.context, stop.image);
	fill(&stop);
	assert_true(has(&stop, scene.main_proto, (size_t)vm->layout->GCproto_sizeof));
	assert_true(has(&stop, scene.work_proto, (size_t)vm->layout->GCproto_sizeof));
	assert_true(has(&stop, fake_pc(vm, scene.main_proto, 2), 4));
	/* Stacks are read in the image alone, what lives longer in the process too. */
	memory = sample_memory(sample);
	memory.stopped = attach_image_reader(stop.image);
	luastate_begin_sample(sample->state, memory.any);
	luastate_walk(sample->state, &memory, &sample->regs, sample->cframes, sample->cframe_count,
		      &sample->chain);
	assert_int_equal(LUASTATE_FULL, sample->chain.outcome);
	assert_int_equal(2, sample->chain.count);
	assert_int_equal(11, sample->chain.frames[0].line);
	end(&stop);
}

/* ---- Bounds ----------------------------------------------------------------------------- */

static void test_native_stack(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t sp;
	struct stop stop;

	make_scene(sample);
	sample->regs.r[ATTACH_REG_RIP] = vm->host;
	sp = sample->regs.r[ATTACH_REG_RSP] = vm->native_start + 1024;
	begin(&stop, sample);
	stop.context.stack_limit = 0;
	capture(&stop);
	/* The red zone below, and a first guess above. */
	assert_true(has(&stop, sp - 128, 128 + 16384));
	assert_false(asked(&stop, sp - 129));
	assert_false(asked(&stop, sp + 16384));
	stop.prediction.native_end = sp + 20000;
	capture(&stop);
	assert_true(has(&stop, sp, 20000));
	assert_false(asked(&stop, sp + 20000));
	stop.context.stack_limit = sp + 4096;
	capture(&stop);
	assert_true(has(&stop, sp, 4096));
	assert_false(asked(&stop, sp + 4096));
	/* A limit below says nothing. */
	stop.context.stack_limit = sp;
	capture(&stop);
	assert_true(has(&stop, sp, 20000));
	/* As far as there is memory. */
	stop.context.stack_limit = 0;
	stop.prediction.native_end = sp + (1 << 20);
	capture(&stop);
	assert_true(has(&stop, sp, (size_t)(vm->native_end - sp)));
	assert_false(asked(&stop, sp + (1 << 20)));
	/* Another stack than the last one: a first guess again, or a bounded one. */
	stop.prediction.native_end = sp - 4096;
	capture(&stop);
	assert_true(asked(&stop, sp + 4096));
	assert_false(asked(&stop, sp + (1 << 20)));
	stop.prediction.native_end = UINT64_MAX;
	capture(&stop);
	assert_true(asked(&stop, sp + 4096));
	assert_false(asked(&stop, sp + (1 << 20)));
	end(&stop);
}

static void test_any_stack_pointer(void **state)
{
	static const uint64_t values[] = { 0,
					   1,
					   100,
					   128,
					   4096,
					   UINT64_MAX,
					   UINT64_MAX - 8191,
					   UINT64_MAX - (1 << 20),
					   (uint64_t)1 << 47 };
	struct sample *sample = *state;
	struct stop stop;

	make_scene(sample);
	begin(&stop, sample);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		sample->regs.r[ATTACH_REG_RSP] = values[i];
		for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
			stop.prediction.native_end = values[k];
			stop.context.stack_limit = values[(i + k) % 9];
			assert_true(capture(&stop) <= (1 << 20) + 8192);
		}
	}
	end(&stop);
}

static void test_hostile_headers(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	const int32_t fields[] = { layout->lua_State_stack, layout->lua_State_base,
				   layout->lua_State_maxstack };
	const uint64_t values[] = { 0,		8,
				    FAKE_BASE,	FAKE_END,
				    UINT64_MAX, UINT64_MAX - 7,
				    1 << 20,	(uint64_t)1 << 46,
				    vm->main,	stack_of(vm, vm->main) + 4 };
	enum { VALUES = sizeof(values) / sizeof(values[0]) };
	struct stop stop;

	make_scene(sample);
	begin(&stop, sample);
	learn(&stop);
	for (size_t i = 0; i < VALUES * VALUES * VALUES; i++) {
		fake_L_set(vm, vm->main, fields[0], values[i % VALUES]);
		fake_L_set(vm, vm->main, fields[1], values[i / VALUES % VALUES]);
		fake_L_set(vm, vm->main, fields[2], values[i / VALUES / VALUES]);
		sample->regs.r[ATTACH_REG_RDX] = values[(i + 3) % VALUES];
		capture(&stop);
		luastate_plan_after(&stop.context, stop.image);
		fill(&stop);
	}
	end(&stop);
}

static void test_headers_of_no_coroutine(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct stop stop;

	make_scene(sample);
	begin(&stop, sample);
	fake_put_u8(vm, vm->main + (uint64_t)vm->layout->GCobj_gct, 4);
	capture(&stop);
	assert_false(asked(&stop, stack_of(vm, vm->main)));
	/* One that ends too early. */
	fake_put_u8(vm, vm->main + (uint64_t)vm->layout->GCobj_gct, 6);
	fake_hide(vm, vm->main + 64, 8);
	capture(&stop);
	assert_true(asked(&stop, vm->main));
	assert_false(asked(&stop, stack_of(vm, vm->main)));
	end(&stop);
}

/* Predictions are what an earlier sample saw; the process may be another meanwhile. */
static void test_stale_predictions(void **state)
{
	struct sample *sample = *state;
	struct stop stop;

	make_scene(sample);
	begin(&stop, sample);
	learn(&stop);
	stop.prediction.thread_count = 8;
	for (unsigned i = 1; i < 8; i++) {
		stop.prediction.threads[i].L = i % 2 ? 8 : UINT64_MAX - 8 * i;
		stop.prediction.threads[i].stack = i % 3 ? 4096 : UINT64_MAX - 65536;
		stop.prediction.threads[i].used_end = i % 2 ? UINT64_MAX : 8192;
		stop.prediction.threads[i].limit = UINT64_MAX;
	}
	sample->regs.r[ATTACH_REG_RDX] = UINT64_MAX - 1;
	capture(&stop);
	stop.prediction.G = 12345;
	capture(&stop);
	expect_stack(&stop, sample->vm->main);
	end(&stop);
}

static void test_many_coroutines(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct scene scene = make_scene(sample);
	unsigned count = 0;
	uint64_t co[20];
	struct stop stop;

	for (int i = 0; i < 20; i++)
		co[i] = resume(sample, &scene);
	begin(&stop, sample);
	capture(&stop);
	for (int i = 0; i < 20; i++)
		count += asked(&stop, stack_of(vm, co[i]));
	assert_int_equal(20, count);
	assert_true(asked(&stop, stack_of(vm, co[19])));
	assert_true(asked(&stop, stack_of(vm, co[12])));
	learn(&stop);
	assert_int_equal(21, stop.prediction.thread_count); /* with the main one */
	capture(&stop);
	end(&stop);
}

/* A stack full of frames of different functions. */
static void test_many_functions(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t L = fake_coroutine(vm, 8192), first = 0, last = 0;
	struct stop stop;

	sample_cframe(sample, L, 1, 0);
	for (int i = 0; i < 2000; i++) {
		last = fake_c_function(vm, C_CODE + (uint64_t)i);
		first = first ? first : last;
		fake_call(vm, L, last, 0, i ? FAKE_LINK_PCALL : FAKE_LINK_C);
	}
	sample_leaf(sample, FAKE_AT_PLAIN, fake_L_get(vm, L, vm->layout->lua_State_base), 0);
	begin(&stop, sample);
	capture(&stop);
	assert_true(asked(&stop, last));
	assert_false(asked(&stop, first));
	assert_true(stop.ranges[3] - stop.ranges[2] <= 160);
	luastate_plan_after(&stop.context, stop.image);
	assert_true(stop.image->range_count - stop.ranges[3] <= 161);
	end(&stop);
}

/* Ranges that overlap: the same address is found now in a long one, now in a short one. */
static void test_overlapping_ranges(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct scene scene = make_scene(sample);
	const struct luastate_layout *layout = vm->layout;
	/* A function, a coroutine and the start of its stack, side by side. */
	uint64_t block = fake_alloc(vm, 48 + 96 + 8 * 1024), L = block + 48, stack = L + 96;
	struct stop stop;

	fake_put(vm, block, vm->bytes + (scene.main - FAKE_BASE), 48);
	fake_lua_state(vm, L, 1000);
	fake_L_set(vm, L, layout->lua_State_stack, stack);
	fake_L_set(vm, L, layout->lua_State_base, stack + 8 * 1000);
	fake_L_set(vm, L, layout->lua_State_maxstack, stack + 8 * 1000);
	for (uint64_t slot = 2; slot + 1 < 1000; slot += 2) {
		fake_put_u64(vm, stack + 8 * slot, fake_tag(layout->tag_func, block));
		fake_put_u64(vm, stack + 8 * slot + 8, 16 | FAKE_LINK_C);
	}
	fake_put_u64(vm, sample->cframes[0].address + (uint64_t)layout->cframe_L, L);
	sample->regs.r[ATTACH_REG_RDX] = 0;
	begin(&stop, sample);
	stop.prediction.G = vm->G;
	stop.prediction.thread_count = 2;
	stop.prediction.threads[0].L = L;
	stop.prediction.threads[0].stack = stack;
	stop.prediction.threads[0].used_end = stack + 8 * 1000;
	stop.prediction.threads[1].L = vm->main;
	stop.prediction.threads[1].stack = block;
	stop.prediction.threads[1].used_end = stack + 8;
	capture(&stop);
	luastate_plan_after(&stop.context, stop.image);
	fill(&stop);
	end(&stop);
}

/* ---- Learning --------------------------------------------------------------------------- */

static void test_learning(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct luastate_prediction prediction = { 0 };
	struct luastate_cframe cframes[4] = {
		{ .L = 0 }, { .L = vm->main }, { .L = vm->main }, { .L = FAKE_END }
	};

	luastate_learn(sample->state, &vm->reader, cframes, 4, 5000, false, 1000, &prediction);
	assert_true(prediction.native_end >= 5000 && prediction.native_end <= 5000 + 8192);
	assert_int_equal(1, prediction.thread_count);
	assert_int_equal(vm->main, prediction.threads[0].L);
	assert_int_equal(stack_of(vm, vm->main), prediction.threads[0].stack);
	/* It grows, … */
	luastate_learn(sample->state, &vm->reader, cframes, 0, 90000, false, 1000, &prediction);
	assert_true(prediction.native_end >= 90000);
	assert_int_equal(0, prediction.thread_count);
	/* … does not shrink for a shorter stack, … */
	luastate_learn(sample->state, &vm->reader, cframes, 0, 2000, false, 1000, &prediction);
	assert_true(prediction.native_end >= 90000);
	/* … and follows a thread that has changed its stack. */
	luastate_learn(sample->state, &vm->reader, cframes, 0, 50000000, false, 49999000,
		       &prediction);
	assert_true(prediction.native_end >= 50000000);
	luastate_learn(sample->state, &vm->reader, cframes, 0, 2000, false, 1000, &prediction);
	assert_true(prediction.native_end < 90000);
}

/* A walk that the end of the copy cut short asks for more, up to a bound. */
static void test_learning_from_a_cut_stack(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t sp = vm->native_start + 256;
	struct stop stop;
	size_t before, most = 0;

	make_scene(sample);
	sample->regs.r[ATTACH_REG_RSP] = sp;
	begin(&stop, sample);
	stop.context.stack_limit = 0;
	before = capture(&stop);
	for (int i = 0; i < 100; i++) {
		size_t now;

		luastate_learn(sample->state, &vm->reader, NULL, 0, sp + 64, true, sp,
			       &stop.prediction);
		now = capture(&stop);
		most = now > most ? now : most;
	}
	assert_true(most >= 16 * before);
	end(&stop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_first_stop),
		SAMPLE_TEST(test_steady_state),
		SAMPLE_TEST(test_new_coroutine),
		SAMPLE_TEST(test_stack_that_moved),
		SAMPLE_TEST(test_stack_that_grew),
		SAMPLE_TEST(test_helper),
		SAMPLE_TEST(test_after_the_stop),
		SAMPLE_TEST(test_native_stack),
		SAMPLE_TEST(test_any_stack_pointer),
		SAMPLE_TEST(test_hostile_headers),
		SAMPLE_TEST(test_headers_of_no_coroutine),
		SAMPLE_TEST(test_stale_predictions),
		SAMPLE_TEST(test_many_coroutines),
		SAMPLE_TEST(test_many_functions),
		SAMPLE_TEST(test_overlapping_ranges),
		SAMPLE_TEST(test_learning),
		SAMPLE_TEST(test_learning_from_a_cut_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
