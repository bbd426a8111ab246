/* SPDX-License-Identifier: MIT */
/* Copies by the kernel in place of stops: what is asked for, and what is made of the copies. */
#include "plan_stop.h"

enum { SALT = 0x1234567 };

/* What a stop would have copied, as the kernel did: what cannot be read is not there. */
static void copy_all(struct stop *stop)
{
	struct attach_image *stopped = stop->image;
	struct failure why;

	stop_capture(stop);
	stop->image = attach_image_create();
	assert_non_null(stop->image);
	*attach_image_registers(stop->image) = stop->sample->regs;
	for (size_t i = 0; i < stopped->range_count; i++) {
		const struct image_range *range = &stopped->ranges[i];

		assert_int_equal(0, attach_image_add(stop->image, remote_addr_make(range->start),
						     stopped->arena + range->offset, range->len,
						     &why));
	}
	attach_image_destroy(stopped);
}

/* Registers and native stack alone. */
static void copy_native(struct stop *stop)
{
	const struct fake_vm *vm = stop->sample->vm;
	uint64_t sp = attach_sp(&stop->sample->regs);
	size_t len = (size_t)(vm->native_end - sp);
	struct failure why;

	attach_image_clear(stop->image);
	*attach_image_registers(stop->image) = stop->sample->regs;
	assert_int_equal(0, attach_image_add(stop->image, remote_addr_make(sp),
					     fake_at(vm, sp, len), len, &why));
}

static void decode_live(struct stop *stop, const struct attach_reader *live)
{
	struct sample *sample = stop->sample;
	struct luastate_memory memory = { .live = live };

	stop_ask_again(stop);
	memory.later = attach_image_reader_behind(stop->after, live, false);
	memory.any = attach_image_reader_behind(stop->image, memory.later, false);
	memory.stopped = attach_image_reader(stop->image);
	luastate_begin_sample(sample->state, memory.any);
	luastate_walk(sample->state, &memory, sample->vm_frames, sample->vm_frame_count,
		      &sample->chain);
}

static uint64_t word_of(const struct fake_vm *vm, uint64_t address, uint32_t size)
{
	uint64_t word = 0;

	memcpy(&word, fake_at(vm, address, size), size);
	return word;
}

/* Offsets lead to the same places as LuaJIT's own. */
static void test_vm_is_described(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct luastate_bpf_plan plan = { .head.cookie = 77 };
	struct luastate_bpf_vm *told = &plan.vms[0];
	struct stop_scene scene = stop_make_scene(sample);
	struct stop stop;
	uint64_t proto;

	stop_begin(&stop, sample);
	luastate_plan_bpf(&stop.context, &plan);
	assert_int_equal(77, plan.head.cookie);
	assert_int_equal(vm->native_end, plan.native_limit);
	assert_int_equal(1, plan.vm_count);
	assert_int_equal(0, plan.stack_count);
	assert_int_equal(vm->G, told->G);
	assert_int_equal(vm->layout->ref_size, told->ref_size);
	assert_int_equal(vm->main, word_of(vm, told->G + told->current, told->ref_size));
	assert_int_equal(fake_L_get(vm, vm->main, vm->layout->lua_State_base),
			 word_of(vm, vm->main + told->base, 8));
	assert_true(told->code_start <= vm->code && vm->code < told->code_end);
	/* A prototype lies in front of its function's code. */
	assert_int_equal(0, *fake_at(vm, scene.work + told->function_kind, 1));
	proto = word_of(vm, scene.work + told->function_code, told->ref_size) - told->proto_size;
	assert_int_equal(scene.work_proto, proto);
	assert_int_equal(10, word_of(vm, proto + told->proto_line, 4));
	assert_memory_equal(
		"@main.lua",
		fake_at(vm,
			word_of(vm, proto + told->proto_name, told->ref_size) + told->string_size,
			9),
		9);
	stop_end(&stop);
}

/* By words that return there the kernel knows C frames. */
static void test_vms_of_two_interpreters(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct luastate_bpf_plan plan = { 0 };
	uint64_t second = fake_second_vm(vm, 0);
	uint64_t code = fake_second_interpreter(vm, sample->state, second);
	struct stop stop;

	assert_non_null(luastate_vm_of(sample->state, &vm->reader, second, &sample->why));
	stop_make_scene(sample);
	stop_begin(&stop, sample);
	luastate_plan_bpf(&stop.context, &plan);
	assert_int_equal(2, plan.vm_count);
	assert_int_equal(vm->G, plan.vms[0].G);
	assert_int_equal(vm->code, plan.vms[0].code_start);
	assert_int_equal(code, plan.vms[1].code_start);
	assert_int_equal(code + FAKE_CODE_BYTES, plan.vms[1].code_end);
	stop_end(&stop);
}

static void test_prediction_is_told(void **state)
{
	struct sample *sample = *state;
	struct luastate_bpf_plan plan = { 0 };
	struct stop_scene scene = stop_make_scene(sample);
	struct stop stop;
	uint64_t co;

	co = stop_resume(sample, &scene);
	stop_begin(&stop, sample);
	stop_learn(&stop);
	luastate_plan_bpf(&stop.context, &plan);
	assert_int_equal(stop.prediction.native_end, plan.native_end);
	assert_int_equal(1, plan.vm_count);
	assert_int_equal(2, plan.stack_count);
	assert_true(plan.stacks[0] == co || plan.stacks[1] == co);
	assert_true(plan.stacks[0] == sample->vm->main || plan.stacks[1] == sample->vm->main);
	stop_end(&stop);
}

/* A thread that is in one VM now and in another one then: the kernel looks for both. */
static void test_others_are_told_to_one_that_roams(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct luastate_bpf_plan plan = { 0 };
	struct luastate_vm_frame vm_frame = { .L = fake_second_vm(vm, 0) };
	const struct luastate_vm *second =
		luastate_vm_of(sample->state, &vm->reader, vm_frame.L, &sample->why);
	struct stop stop;
	uint64_t G;

	assert_non_null(second);
	G = second->G;
	stop_make_scene(sample);
	stop_begin(&stop, sample);
	stop_learn(&stop);
	luastate_plan_bpf(&stop.context, &plan);
	assert_false(stop.prediction.roams);
	assert_int_equal(1, plan.vm_count);
	assert_int_equal(0, plan.other_count);
	luastate_learn(sample->state, &vm->reader,
		       &(struct luastate_native_walk){ &vm_frame, 1, 0, LUASTATE_REACH_ALL, 0 },
		       &stop.prediction);
	assert_true(stop.prediction.roams);
	luastate_plan_bpf(&stop.context, &plan);
	assert_int_equal(1, plan.vm_count);
	assert_int_equal(G, plan.vms[0].G);
	assert_int_equal(1, plan.other_count);
	assert_int_equal(vm->G, plan.others[0] & ~(uint64_t)LUASTATE_BPF_VM_MASK);
	assert_int_equal(0, plan.others[0] & LUASTATE_BPF_VM_MASK);
	stop_end(&stop);
}

/* But for what pads a VM. */
static void expect_same(const struct luastate_bpf_plan *one, const struct luastate_bpf_plan *other)
{
	assert_memory_equal(one, other, offsetof(struct luastate_bpf_plan, vms));
	assert_memory_equal(one->vms, other->vms, offsetof(struct luastate_bpf_vm, string_hash));
	assert_memory_equal(one->stacks, other->stacks,
			    sizeof(*one) - offsetof(struct luastate_bpf_plan, stacks));
}

/* The kernel's side writes the head meanwhile, and what copies lacked is not the planner's. */
static void test_plan_is_renewed(void **state)
{
	struct sample *sample = *state;
	struct luastate_bpf_plan plan, wanted = { .salt = SALT, .extra_count = 1 };
	struct stop_scene scene = stop_make_scene(sample);
	struct stop stop;

	memset(&wanted.head, 0x5a, sizeof(wanted.head));
	wanted.extras[0] = (struct luastate_bpf_extra){ .start = 4096, .size = 8 };
	plan = wanted;
	stop_resume(sample, &scene);
	stop_begin(&stop, sample);
	stop_learn(&stop);
	luastate_plan_bpf(&stop.context, &wanted);
	assert_int_equal(2, wanted.stack_count);
	luastate_renew_bpf(&stop.context, &plan);
	expect_same(&wanted, &plan);
	luastate_renew_bpf(&stop.context, &plan);
	expect_same(&wanted, &plan);
	stop_end(&stop);
}

static void test_whole_copy(void **state)
{
	struct sample *sample = *state;
	struct luastate_bpf_plan plan = { 0 };
	uint8_t bytes[LUASTATE_BPF_EXTRA_MAX];
	struct stop stop;

	stop_make_scene(sample);
	stop_begin(&stop, sample);
	copy_all(&stop);
	luastate_plan_copied(&stop.context, stop.image, &plan);
	for (uint32_t i = 0; i < plan.extra_count; i++) /* text may end where memory does */
		assert_int_equal(-1, attach_read(&sample->vm->reader,
						 remote_addr_make(plan.extras[i].start), bytes,
						 plan.extras[i].size, &sample->why));
	decode_live(&stop, &sample->vm->reader);
	assert_int_equal(LUASTATE_FULL, sample->chain.outcome);
	assert_int_equal(2, sample->chain.count);
	stop_end(&stop);
}

/* What a copy lacks is asked for in the next ones, once. */
static void test_what_is_missing(void **state)
{
	struct sample *sample = *state;
	struct luastate_bpf_plan plan = { 0 };
	bool is_there = false;
	struct stop stop;

	stop_make_scene(sample);
	stop_begin(&stop, sample);
	copy_native(&stop);
	assert_true(luastate_plan_copied(&stop.context, stop.image, &plan));
	assert_in_range(plan.extra_count, 1, LUASTATE_BPF_EXTRAS);
	for (uint32_t i = 0; i < plan.extra_count; i++) {
		assert_in_range(plan.extras[i].size, 1, LUASTATE_BPF_EXTRA_MAX);
		is_there |= sample->vm->main - plan.extras[i].start < plan.extras[i].size;
	}
	assert_true(is_there);
	copy_native(&stop);
	assert_false(luastate_plan_copied(&stop.context, stop.image, &plan));
	decode_live(&stop, &sample->vm->reader);
	assert_int_not_equal(LUASTATE_FULL, sample->chain.outcome);
	stop_end(&stop);
}

/* There is room for so many; the oldest go first. */
static void test_many_are_missing(void **state)
{
	struct sample *sample = *state;
	struct luastate_bpf_plan plan = { 0 };
	struct stop stop;

	stop_make_scene(sample);
	for (uint32_t i = 0; i < LUASTATE_BPF_EXTRAS; i++)
		plan.extras[i] = (struct luastate_bpf_extra){ .start = 4096 + i, .size = 1 };
	plan.extra_count = LUASTATE_BPF_EXTRAS;
	stop_begin(&stop, sample);
	copy_native(&stop);
	assert_true(luastate_plan_copied(&stop.context, stop.image, &plan));
	assert_int_equal(LUASTATE_BPF_EXTRAS, plan.extra_count);
	assert_int_not_equal(4096, plan.extras[0].start);
	assert_true(plan.extras[LUASTATE_BPF_EXTRAS - 1].start >= 8192);
	stop_end(&stop);
}

static uint64_t key_of(const struct fake_vm *vm, uint64_t proto)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t name = fake_get_ref(vm, proto + (uint64_t)layout->GCproto_chunkname);

	return luastate_bpf_known_key(
		SALT, proto, (uint32_t)word_of(vm, name + (uint64_t)layout->GCstr_hash, 4),
		(uint32_t)word_of(vm, proto + (uint64_t)layout->GCproto_sizept, 4),
		(uint32_t)word_of(vm, proto + (uint64_t)layout->GCproto_firstline, 4));
}

static void test_known_prototypes(void **state)
{
	static uint64_t table[LUASTATE_BPF_KNOWN];
	struct sample *sample = *state;
	struct luastate_bpf_plan plan = { 0 };
	struct stop_scene scene = stop_make_scene(sample);
	struct stop stop;
	size_t count = 0;

	memset(table, 0, sizeof(table));
	stop_begin(&stop, sample);
	copy_all(&stop);
	luastate_plan_copied(&stop.context, stop.image, &plan);
	memset(&sample->chain, 0, sizeof(sample->chain));
	luastate_note_known(&stop.context, &sample->chain, SALT, table);
	for (size_t i = 0; i < LUASTATE_BPF_KNOWN; i++)
		assert_int_equal(0, table[i]); /* not decoded yet */
	decode_live(&stop, &sample->vm->reader);
	luastate_note_known(&stop.context, &sample->chain, SALT, table);
	for (size_t i = 0; i < LUASTATE_BPF_KNOWN; i++)
		count += table[i] != 0;
	assert_int_equal(2, count);
	assert_int_equal(key_of(sample->vm, scene.main_proto),
			 table[luastate_bpf_known_slot(SALT, scene.main_proto)]);
	assert_int_equal(key_of(sample->vm, scene.work_proto),
			 table[luastate_bpf_known_slot(SALT, scene.work_proto)]);
	stop_end(&stop);
}

/* A stack with more functions than the planner takes: those are known, too, once they are decoded.
 */
static void test_known_prototypes_far_from_the_leaf(void **state)
{
	static uint64_t table[LUASTATE_BPF_KNOWN];
	struct sample *sample = *state;
	struct luastate_bpf_plan plan = { 0 };
	struct stop_scene scene = stop_make_scene(sample);
	const struct luastate_function *work = NULL;
	struct stop stop;

	memset(table, 0, sizeof(table));
	stop_begin(&stop, sample);
	copy_all(&stop);
	luastate_plan_copied(&stop.context, stop.image, &plan);
	decode_live(&stop, &sample->vm->reader);
	for (size_t i = 0; i < sample->chain.count; i++)
		if (sample->chain.frames[i].function &&
		    sample->chain.frames[i].function->address == scene.work_proto)
			work = sample->chain.frames[i].function;
	assert_non_null(work);
	memset(&sample->chain, 0, sizeof(sample->chain));
	stop.context.progress.frame_count = 0;
	sample->chain.count = LUASTATE_PLAN_FRAMES + 2; /* one is of no known function */
	luastate_note_known(&stop.context, &sample->chain, SALT, table);
	assert_int_equal(0, table[luastate_bpf_known_slot(SALT, scene.work_proto)]);
	sample->chain.frames[LUASTATE_PLAN_FRAMES + 1].function =
		(struct luastate_function *)(uintptr_t)work;
	luastate_note_known(&stop.context, &sample->chain, SALT, table);
	assert_int_equal(key_of(sample->vm, scene.work_proto),
			 table[luastate_bpf_known_slot(SALT, scene.work_proto)]);
	stop_end(&stop);
}

/* A new prototype of which the copy has the header alone, and another in its place by now. */
static void test_replaced_after_the_copy(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	struct stop_scene scene = stop_make_scene(sample);
	struct stop stop, partial;

	stop_begin(&stop, sample);
	copy_all(&stop);
	/* The same without the rest of the prototype. */
	stop_begin(&partial, sample);
	*attach_image_registers(partial.image) = sample->regs;
	for (size_t i = 0; i < stop.image->range_count; i++) {
		const struct image_range *range = &stop.image->ranges[i];
		struct failure why;

		if (range->len &&
		    range->start != scene.work_proto + (uint64_t)layout->GCproto_sizeof)
			assert_int_equal(0, attach_image_add(partial.image,
							     remote_addr_make(range->start),
							     stop.image->arena + range->offset,
							     range->len, &why));
	}
	fake_put_u32(vm, scene.work_proto + (uint64_t)layout->GCproto_firstline, 77);
	decode_live(&partial, &vm->reader);
	assert_int_not_equal(LUASTATE_FULL, sample->chain.outcome);
	/* With all of it nothing else counts. */
	decode_live(&stop, &vm->reader);
	assert_int_equal(LUASTATE_FULL, sample->chain.outcome);
	assert_int_equal(10, sample->chain.frames[0].function->firstline);
	stop_end(&stop);
	stop_end(&partial);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_vm_is_described),
		SAMPLE_TEST(test_vms_of_two_interpreters),
		SAMPLE_TEST(test_prediction_is_told),
		SAMPLE_TEST(test_others_are_told_to_one_that_roams),
		SAMPLE_TEST(test_plan_is_renewed),
		SAMPLE_TEST(test_whole_copy),
		SAMPLE_TEST(test_what_is_missing),
		SAMPLE_TEST(test_many_are_missing),
		SAMPLE_TEST(test_known_prototypes),
		SAMPLE_TEST(test_known_prototypes_far_from_the_leaf),
		SAMPLE_TEST(test_replaced_after_the_copy),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
