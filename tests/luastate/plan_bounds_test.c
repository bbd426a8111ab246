/* SPDX-License-Identifier: MIT */
/* What a stop reads at most, and of hostile memory: bounds of the plan. */
#include "plan_stop.h"

enum { C_CODE = 0x5000 };

static void test_native_stack(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t sp;
	struct stop stop;

	stop_make_scene(sample);
	sample->regs.r[ATTACH_REG_RIP] = vm->host;
	sp = sample->regs.r[ATTACH_REG_RSP] = vm->native_start + 1024;
	stop_begin(&stop, sample);
	stop.context.stack_limit = 0;
	stop_capture(&stop);
	/* The red zone below, and a first guess above. */
	assert_true(stop_has(&stop, sp - 128, 128 + 16384));
	assert_false(stop_asked(&stop, sp - 129));
	assert_false(stop_asked(&stop, sp + 16384));
	stop.prediction.native_end = sp + 20000;
	stop_capture(&stop);
	assert_true(stop_has(&stop, sp, 20000));
	assert_false(stop_asked(&stop, sp + 20000));
	stop.context.stack_limit = sp + 4096;
	stop_capture(&stop);
	assert_true(stop_has(&stop, sp, 4096));
	assert_false(stop_asked(&stop, sp + 4096));
	/* A limit below says nothing. */
	stop.context.stack_limit = sp;
	stop_capture(&stop);
	assert_true(stop_has(&stop, sp, 20000));
	/* As far as there is memory. */
	stop.context.stack_limit = 0;
	stop.prediction.native_end = sp + (1 << 20);
	stop_capture(&stop);
	assert_true(stop_has(&stop, sp, (size_t)(vm->native_end - sp)));
	assert_false(stop_asked(&stop, sp + (1 << 20)));
	/* Another stack than the last one: a first guess again, or a bounded one. */
	stop.prediction.native_end = sp - 4096;
	stop_capture(&stop);
	assert_true(stop_asked(&stop, sp + 4096));
	assert_false(stop_asked(&stop, sp + (1 << 20)));
	stop.prediction.native_end = UINT64_MAX;
	stop_capture(&stop);
	assert_true(stop_asked(&stop, sp + 4096));
	assert_false(stop_asked(&stop, sp + (1 << 20)));
	/* A handler's, below the thread's with memory between them: a whole walk leaves it so, … */
	stop.prediction.native_end = sp + (32 << 20);
	luastate_learn(sample->state, &vm->reader,
		       &(struct luastate_native_walk){ NULL, 0, sp + (32 << 20) - 512,
						       LUASTATE_REACH_ALL, sp },
		       &stop.prediction);
	stop_capture(&stop);
	assert_true(stop_asked(&stop, sp + 4096));
	assert_false(stop_asked(&stop, sp + (1 << 20)));
	/* … one that the end of the copy cut short asks for twice as much, and not for all. */
	luastate_learn(sample->state, &vm->reader,
		       &(struct luastate_native_walk){ NULL, 0, sp + 64, LUASTATE_REACH_CUT, sp },
		       &stop.prediction);
	assert_int_equal(sp + 2 * 16384, stop.prediction.native_end);
	stop_end(&stop);
}

/* Memory that begins at a page, and has none below. */
static uint64_t alloc_at_page(struct fake_vm *vm, size_t len)
{
	uint64_t above = fake_alloc(vm, 8), below = fake_alloc(vm, 8);
	uint64_t end = below - (above - below - 8), start = (end - len) & ~(uint64_t)4095;

	assert_int_equal(start, fake_alloc(vm, (size_t)(end - start)));
	return start;
}

/* A stack that has just grown to its first page has neither a red zone nor an older page below. */
static void test_first_page(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t start, co;
	struct stop_scene scene = stop_make_scene(sample);
	struct stop stop;

	co = stop_resume(sample, &scene);
	start = alloc_at_page(vm, 3 * 4096);
	sample->regs.r[ATTACH_REG_RIP] = vm->host + FAKE_HOST_LEAF;
	sample->regs.r[ATTACH_REG_RDX] = 0;
	sample->regs.r[ATTACH_REG_RSP] = start + 24;
	stop_begin(&stop, sample);
	stop.context.stack_limit = 0;
	stop_capture(&stop);
	assert_true(stop_has(&stop, start, 3 * 4096));
	assert_true(stop_asked(&stop, start + 24 - 128));
	sample->regs.r[ATTACH_REG_RSP] = start + 4096 + 24;
	stop_capture(&stop);
	assert_true(stop_has(&stop, start + 4096 + 24 - 128, 128 + 2 * 4096 - 24));
	/* The same of the stack on which a handler on another one has interrupted the thread. */
	sample->regs.r[ATTACH_REG_RSP] = fake_alloc(vm, 1024) + 256;
	fake_put_ref(vm, vm->G + (uint64_t)vm->layout->global_State_cur_L, co);
	stop.prediction.threads[0].G = vm->G;
	stop.prediction.threads[0].L = co;
	stop.prediction.thread_count = 1;
	for (uint64_t at = start; at <= start + 2 * 4096; at += 4096) {
		fake_L_set(vm, co, vm->layout->lua_State_cframe, at + 64);
		stop_capture(&stop);
		assert_true(stop_has(&stop, start + 64, 3 * 4096 - 64));
	}
	stop_end(&stop);
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

	stop_make_scene(sample);
	stop_begin(&stop, sample);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		sample->regs.r[ATTACH_REG_RSP] = values[i];
		for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
			stop.prediction.native_end = values[k];
			stop.context.stack_limit = values[(i + k) % 9];
			/* The VM, its coroutine, and where its newest C frame is. */
			assert_true(stop_capture(&stop) <= (1 << 20) + 40000);
		}
	}
	stop_end(&stop);
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
				    vm->main,	stop_stack_of(vm, vm->main) + 4 };
	enum { VALUES = sizeof(values) / sizeof(values[0]) };
	struct stop stop;

	stop_make_scene(sample);
	stop_begin(&stop, sample);
	stop_learn(&stop);
	for (size_t i = 0; i < VALUES * VALUES * VALUES; i++) {
		fake_L_set(vm, vm->main, fields[0], values[i % VALUES]);
		fake_L_set(vm, vm->main, fields[1], values[i / VALUES % VALUES]);
		fake_L_set(vm, vm->main, fields[2], values[i / VALUES / VALUES]);
		sample->regs.r[ATTACH_REG_RDX] = values[(i + 3) % VALUES];
		stop_capture(&stop);
		stop_ask_again(&stop);
	}
	stop_end(&stop);
}

static void test_headers_of_no_coroutine(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct stop stop;

	stop_make_scene(sample);
	stop_begin(&stop, sample);
	fake_put_u8(vm, vm->main + (uint64_t)vm->layout->GCobj_gct, 4);
	stop_capture(&stop);
	assert_false(stop_asked(&stop, stop_stack_of(vm, vm->main)));
	/* One that ends too early. */
	fake_put_u8(vm, vm->main + (uint64_t)vm->layout->GCobj_gct,
		    (uint8_t)state_gct(vm->layout->tag_thread));
	fake_hide(vm, vm->G - 8, 8);
	stop_capture(&stop);
	assert_true(stop_asked(&stop, vm->main));
	assert_false(stop_asked(&stop, stop_stack_of(vm, vm->main)));
	stop_end(&stop);
}

/* Predictions are what an earlier sample saw; the process may be another meanwhile. */
static void test_stale_predictions(void **state)
{
	struct sample *sample = *state;
	struct stop stop;

	stop_make_scene(sample);
	stop_begin(&stop, sample);
	stop_learn(&stop);
	stop.prediction.thread_count = 8;
	for (unsigned i = 1; i < 8; i++) {
		stop.prediction.threads[i].L = i % 2 ? 8 : UINT64_MAX - 8 * i;
		stop.prediction.threads[i].stack = i % 3 ? 4096 : UINT64_MAX - 65536;
		stop.prediction.threads[i].used_end = i % 2 ? UINT64_MAX : 8192;
		stop.prediction.threads[i].limit = UINT64_MAX;
	}
	sample->regs.r[ATTACH_REG_RDX] = UINT64_MAX - 1;
	stop_capture(&stop);
	for (unsigned i = 0; i < 8; i++)
		stop.prediction.threads[i].G = 12345;
	stop_capture(&stop);
	stop_expect_stack(&stop, sample->vm->main);
	stop_end(&stop);
}

static void test_many_coroutines(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct stop_scene scene = stop_make_scene(sample);
	unsigned count = 0;
	uint64_t co[20];
	struct stop stop;

	for (int i = 0; i < 20; i++)
		co[i] = stop_resume(sample, &scene);
	stop_begin(&stop, sample);
	stop_capture(&stop);
	for (int i = 0; i < 20; i++)
		count += stop_asked(&stop, stop_stack_of(vm, co[i]));
	assert_int_equal(20, count);
	assert_true(stop_asked(&stop, stop_stack_of(vm, co[19])));
	assert_true(stop_asked(&stop, stop_stack_of(vm, co[12])));
	stop_learn(&stop);
	assert_int_equal(21, stop.prediction.thread_count); /* with the main one */
	stop_capture(&stop);
	stop_end(&stop);
}

/* @return How many reads it takes to learn from a walk that met @p count coroutines of no VM. */
static uint64_t reads_to_learn(struct sample *sample, unsigned count)
{
	struct luastate_prediction prediction = { .thread_count = 1 };
	struct luastate_vm_frame *frames = calloc(count, sizeof(*frames));
	struct fake_vm *vm = sample->vm;

	assert_non_null(frames);
	for (unsigned i = 0; i < count; i++) {
		frames[i].L = fake_coroutine(vm, 16);
		fake_put_ref(vm, frames[i].L + (uint64_t)vm->layout->lua_State_glref,
			     vm->native_start);
	}
	/* A thread that changes between VMs is noticed by the same coroutines. */
	sample->state->vm_count = 2;
	luastate_begin_sample(sample->state, &vm->reader);
	vm->reads = 0;
	luastate_learn(sample->state, &vm->reader,
		       &(struct luastate_native_walk){ frames, count, vm->native_end - 256,
						       LUASTATE_REACH_ALL, vm->sp },
		       &prediction);
	assert_int_equal(0, prediction.thread_count);
	sample->state->vm_count = 1;
	free(frames);
	return vm->reads;
}

/* To try all layouts takes many reads: it is done for some coroutines of a sample, not for all. */
static void test_many_unknown_coroutines(void **state)
{
	uint64_t some = reads_to_learn(*state, 8), many = reads_to_learn(*state, 64);

	print_message("%u reads for 8, %u for 64\n", (unsigned)some, (unsigned)many);
	assert_true(some > 8 * 4);
	assert_true(many < 4 * some);
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
	stop_begin(&stop, sample);
	stop_capture(&stop);
	assert_true(stop_asked(&stop, last));
	assert_false(stop_asked(&stop, first));
	assert_true(stop.ranges[3] - stop.ranges[2] <= LUASTATE_PLAN_FRAMES);
	stop_ask_again(&stop);
	assert_true(stop.after->range_count <= 3 * LUASTATE_PLAN_FRAMES);
	stop_end(&stop);
}

/* Ranges that overlap: the same address is found now in a long one, now in a short one. */
static void test_overlapping_ranges(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct stop_scene scene = stop_make_scene(sample);
	const struct luastate_layout *layout = vm->layout;
	/* A function, a coroutine and the start of its stack, side by side. */
	uint64_t block = fake_alloc(vm, 48 + 96 + 8 * 1024), L = block + 48, stack = L + 96;
	struct stop stop;

	fake_put(vm, block, fake_at(vm, scene.main, 48), 48);
	fake_lua_state(vm, L, 1000);
	fake_L_set(vm, L, layout->lua_State_stack, stack);
	fake_L_set(vm, L, layout->lua_State_base, stack + 8 * 1000);
	fake_L_set(vm, L, layout->lua_State_maxstack, stack + 8 * 1000);
	for (uint64_t slot = 2; slot + 1 < 1000; slot += 2) {
		fake_put_u64(vm, stack + 8 * slot, fake_tag(vm, layout->tag_func, block));
		fake_put_u64(vm, stack + 8 * slot + 8, 16 | FAKE_LINK_C);
	}
	fake_put_ref(vm, sample->vm_frames[0].address + (uint64_t)layout->cframe_L, L);
	sample->regs.r[ATTACH_REG_RDX] = 0;
	stop_begin(&stop, sample);
	stop.prediction.thread_count = 2;
	stop.prediction.threads[0].G = stop.prediction.threads[1].G = vm->G;
	stop.prediction.threads[0].L = L;
	stop.prediction.threads[0].stack = stack;
	stop.prediction.threads[0].used_end = stack + 8 * 1000;
	stop.prediction.threads[1].L = vm->main;
	stop.prediction.threads[1].stack = block;
	stop.prediction.threads[1].used_end = stack + 8;
	stop_capture(&stop);
	stop_ask_again(&stop);
	stop_end(&stop);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_native_stack),
		SAMPLE_TEST(test_first_page),
		SAMPLE_TEST(test_any_stack_pointer),
		SAMPLE_TEST(test_hostile_headers),
		SAMPLE_TEST(test_headers_of_no_coroutine),
		SAMPLE_TEST(test_stale_predictions),
		SAMPLE_TEST(test_many_coroutines),
		SAMPLE_TEST(test_many_unknown_coroutines),
		SAMPLE_TEST(test_many_functions),
		SAMPLE_TEST(test_overlapping_ranges),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
