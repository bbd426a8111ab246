/* SPDX-License-Identifier: MIT */
/* What a stop copies by the rules of the BPF program, from a fake VM. */
#include "plan_stop.h"

#include <stdlib.h>

enum {
	SALT = 0x1234567,
	HOSTILE_PLANS = 20000,
	BUDGET_NS = 1000 * 1000 * 1000,
};

/** A thread that is copied again and again. */
struct copied {
	struct stop stop;
	struct luastate_copier *copier;
	struct attach_fetcher *fetcher;
	struct luastate_bpf_plan plan;
	uint64_t *known;
};

static void copied_begin(struct copied *copied, struct sample *sample)
{
	struct failure why;

	memset(copied, 0, sizeof(*copied));
	stop_begin(&copied->stop, sample);
	assert_int_equal(0, luastate_copier_create(&copied->copier, &why));
	assert_int_equal(0, attach_fetcher_create(&copied->fetcher, &why));
	copied->known = calloc(LUASTATE_BPF_KNOWN, sizeof(*copied->known));
	assert_non_null(copied->known);
	copied->plan.salt = SALT;
	copied->plan.head.budget_ns = BUDGET_NS;
}

static void copied_end(struct copied *copied)
{
	stop_end(&copied->stop);
	luastate_copier_destroy(copied->copier);
	attach_fetcher_destroy(copied->fetcher);
	free(copied->known);
}

static void run(struct copied *copied)
{
	attach_fetcher_begin_from(copied->fetcher, &copied->stop.sample->vm->reader);
	luastate_copier_run(copied->copier, &copied->plan, copied->known,
			    &copied->stop.sample->regs, copied->fetcher);
}

/* Copy the thread. @return whether the copy lacked something. */
static bool copy(struct copied *copied)
{
	struct stop *stop = &copied->stop;

	luastate_plan_bpf(&stop->context, &copied->plan);
	run(copied);
	attach_image_clear(stop->image);
	*attach_image_registers(stop->image) = stop->sample->regs;
	assert_true(luastate_copier_take(copied->copier, stop->image));
	return luastate_plan_copied(&stop->context, stop->image, &copied->plan);
}

static void learn(struct copied *copied)
{
	stop_decode(&copied->stop);
	luastate_note_known(&copied->stop.context, &copied->stop.sample->chain, SALT,
			    copied->known);
	stop_learn(&copied->stop);
}

static bool has_function(const struct copied *copied, uint64_t function)
{
	return stop_has(&copied->stop, function,
			(size_t)copied->stop.sample->vm->layout->GCfunc_header);
}

static bool has_code(const struct copied *copied, uint64_t proto)
{
	return stop_has(&copied->stop, fake_pc(copied->stop.sample->vm, proto, 2), 4);
}

/* One copy has all that a chain needs, although nothing is known of the thread. */
static void test_first_copy(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct stop_scene scene = stop_make_scene(sample);
	struct copied copied;

	copied_begin(&copied, sample);
	copy(&copied);
	assert_true(
		stop_has(&copied.stop, attach_sp(&sample->regs), (size_t)vm->layout->cframe_size));
	stop_expect_stack(&copied.stop, vm->main);
	assert_true(has_function(&copied, scene.work) && has_function(&copied, scene.main));
	assert_true(has_code(&copied, scene.work_proto) && has_code(&copied, scene.main_proto));
	stop_decode(&copied.stop);
	assert_int_equal(LUASTATE_FULL, sample->chain.outcome);
	assert_int_equal(2, sample->chain.count);
	assert_int_equal(11, sample->chain.frames[0].line);
	copied_end(&copied);
}

/* A known prototype is copied as far as it must be to recognise it; if it is another one at the
 * same address, as a whole. */
static void test_known_prototypes(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct stop_scene scene = stop_make_scene(sample);
	struct copied copied;

	copied_begin(&copied, sample);
	copy(&copied);
	learn(&copied);
	copy(&copied);
	assert_true(stop_has(&copied.stop, scene.main_proto, (size_t)vm->layout->GCproto_sizeof));
	assert_false(has_code(&copied, scene.main_proto));
	fake_put_u32(vm, scene.main_proto + (uint64_t)vm->layout->GCproto_firstline, 77);
	copy(&copied);
	assert_true(has_code(&copied, scene.main_proto));
	assert_false(has_code(&copied, scene.work_proto));
	copied_end(&copied);
}

/* A coroutine that was not there before is found on the native stack, in the same copy. */
static void test_new_coroutine(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct stop_scene scene = stop_make_scene(sample);
	struct copied copied;
	uint64_t co;

	copied_begin(&copied, sample);
	copy(&copied);
	learn(&copied);
	co = stop_resume(sample, &scene);
	copy(&copied);
	stop_expect_stack(&copied.stop, co);
	stop_expect_stack(&copied.stop, vm->main);
	copied_end(&copied);
}

/* What a copy lacked, later copies have. */
static void test_what_was_lacking(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct copied copied;

	stop_make_scene(sample);
	copied_begin(&copied, sample);
	copy(&copied);
	copied.plan.extras[copied.plan.extra_count++] =
		(struct luastate_bpf_extra){ .start = vm->native_end - 64, .size = 64 };
	copied.plan.native_end = copied.plan.native_limit = attach_sp(&sample->regs) + 64;
	run(&copied);
	attach_image_clear(copied.stop.image);
	assert_true(luastate_copier_take(copied.copier, copied.stop.image));
	assert_true(stop_has(&copied.stop, vm->native_end - 64, 64));
	assert_false(stop_has(&copied.stop, vm->native_end - 128, 8));
	copied_end(&copied);
}

/* A copy whose time is over ends; what it has is in order. */
static void test_budget(void **state)
{
	struct sample *sample = *state;
	struct stop_scene scene = stop_make_scene(sample);
	struct copied copied;

	copied_begin(&copied, sample);
	copy(&copied);
	assert_false(luastate_copier_is_late(copied.copier));
	copied.plan.head.budget_ns = 0;
	copy(&copied);
	assert_false(has_code(&copied, scene.main_proto));
	assert_true(luastate_copier_is_late(copied.copier));
	copied_end(&copied);
}

/* A plan with any content, over any memory: bounded, and within our own memory. */
static void test_hostile_plans(void **state)
{
	struct sample *sample = *state;
	struct copied copied;
	uint64_t seed = 0x9e3779b97f4a7c15;

	stop_make_scene(sample);
	copied_begin(&copied, sample);
	copied.plan.head.budget_ns = BUDGET_NS;
	for (int i = 0; i < HOSTILE_PLANS; i++) {
		uint8_t *bytes = (uint8_t *)&copied.plan;
		const size_t first = sizeof(copied.plan.head);

		luastate_plan_bpf(&copied.stop.context, &copied.plan);
		for (int change = 0; change < 1 + i % 8; change++) {
			seed = seed * 6364136223846793005 + 1442695040888963407;
			bytes[first + (seed >> 33) % (sizeof(copied.plan) - first)] ^=
				(uint8_t)(seed >> 24);
		}
		run(&copied);
		attach_image_clear(copied.stop.image);
		luastate_copier_take(copied.copier, copied.stop.image);
	}
	copied_end(&copied);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_first_copy),	 SAMPLE_TEST(test_known_prototypes),
		SAMPLE_TEST(test_new_coroutine), SAMPLE_TEST(test_what_was_lacking),
		SAMPLE_TEST(test_budget),	 SAMPLE_TEST(test_hostile_plans),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
