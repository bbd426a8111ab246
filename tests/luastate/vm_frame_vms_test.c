/* SPDX-License-Identifier: MIT */
/* The C frames of several VMs and coroutines, of which not all are known or copied. */
#include "vm_frame_find.h"

/* ---- Not copied ------------------------------------------------------------------------- */

/* What a copy of the memory holds that lacks an object. */
struct part {
	struct fake_vm vm;
	struct luastate_memory memory;
};

static struct part *copy_without(struct sample *sample, uint64_t address, size_t len)
{
	struct part *part = malloc(sizeof(*part));

	assert_non_null(part);
	part->vm = *sample->vm;
	part->vm.known = malloc(FAKE_BYTES);
	assert_non_null(part->vm.known);
	memcpy(part->vm.known, sample->vm->known, FAKE_BYTES);
	fake_hide(&part->vm, address, len);
	part->vm.reader.self = &part->vm;
	part->memory = sample_memory(sample);
	part->memory.stopped = &part->vm.reader;
	return part;
}

static void drop_copy(struct part *part)
{
	free(part->vm.known);
	free(part);
}

/* A VM that is met: its coroutine holds the frame, but nothing of it was copied. What the frame
 * returns to makes it no frame between two states, unless it is entered: then an old word is in the
 * coroutine's place. Copies that were made before the next plan are the same. */
static void test_frame_of_a_vm_that_is_met(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t frame = fake_cframe(vm, vm->main, 0, 0), pc = vm->code + FAKE_AT_PLAIN;
	struct part *part = copy_without(sample, vm->main, fake_vm_bytes(vm->layout));

	luastate_destroy(sample->state);
	sample->state = fake_vm_open(vm, false);
	for (int copy = 0; copy < 4; copy++) {
		assert_int_equal(-1, find_in(sample, &part->memory, pc, frame, copy % 2 == 0));
		assert_int_equal(FAILURE_NOT_FOUND, sample->why.kind);
		assert_int_equal(1, luastate_vm_count(sample->state));
	}
	assert_int_equal(
		0, find_in(sample, &part->memory, vm->code + FAKE_AT_PROLOGUE + 10, frame, true));
	assert_int_equal(0, sample->vm_frames[0].L);
	drop_copy(part);
	/* What is copied by the next plan. */
	assert_int_equal(0, find(sample, pc, frame, true));
	expect_frame(sample, frame, vm->main);
}

/* The same of one that runs in the code of another, whose frame is within reach. */
static void test_frame_of_a_vm_that_is_met_in_another(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t second = fake_second_vm(vm, 0), pc = vm->code + FAKE_AT_PLAIN, inner;
	struct part *part = copy_without(sample, second, fake_vm_bytes(vm->layout));

	for (int leaf = 0; leaf < 2; leaf++) {
		luastate_destroy(sample->state);
		sample->state = fake_vm_open(vm, true);
		fake_cframe(vm, vm->main, 0, 0);
		fake_push(vm, 0);
		inner = fake_cframe(vm, second, 0, 0);
		assert_int_equal(-1, find_in(sample, &part->memory, pc, inner, leaf));
		assert_int_equal(FAILURE_NOT_FOUND, sample->why.kind);
		assert_int_equal(2, luastate_vm_count(sample->state));
		assert_int_equal(0, find(sample, pc, inner, leaf));
		expect_frame(sample, inner, second);
	}
	drop_copy(part);
}

/* The current coroutine is noted after the frame is linked. Until then nothing asks for the new
 * one's copy; its VM's tells that another one is current. */
static void test_frame_of_a_coroutine_that_is_resumed(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t L = fake_coroutine(vm, 16), frame, pc = vm->code + FAKE_AT_PLAIN;
	struct part *part;

	fake_cframe(vm, vm->main, 0, 0);
	fake_push(vm, 0);
	frame = fake_cframe(vm, L, 0, 0);
	part = copy_without(sample, L, (size_t)vm->layout->lua_State_sizeof);
	assert_int_equal(0, find_in(sample, &part->memory, pc, frame, true));
	assert_int_equal(frame, sample->vm_frames[0].address);
	assert_int_equal(0, sample->vm_frames[0].L);
	/* What is called from it has run since: the next frame must not stand in for it. */
	assert_int_equal(-1, find_in(sample, &part->memory, pc, frame, false));
	assert_int_equal(FAILURE_NOT_FOUND, sample->why.kind);
	/* Where it is the current one, it runs. */
	set_current(vm, L);
	assert_int_equal(-1, find_in(sample, &part->memory, pc, frame, true));
	assert_int_equal(FAILURE_NOT_FOUND, sample->why.kind);
	drop_copy(part);
}

/* ---- The nearest one -------------------------------------------------------------------- */

/* VMs on one native stack, each of which has a frame within reach. */
static void test_nearest_frame_of_several_vms(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t second = fake_second_vm(vm, 0), frame = fake_cframe(vm, vm->main, 0, 0), inner;

	fake_push(vm, 0);
	inner = fake_cframe(vm, second, 0, 0);
	assert_non_null(luastate_vm_of(sample->state, &vm->reader, second, &sample->why));
	assert_int_equal(0, find(sample, vm->code + FAKE_AT_PLAIN, inner - 400, true));
	expect_frame(sample, inner, second);
	assert_int_equal(0, find(sample, vm->code + FAKE_AT_PLAIN, inner + 8, true));
	expect_frame(sample, frame, vm->main);
}

/* Two of LuaJIT's libraries in one program: a frame of one's VM is no frame of the other's code. */
static void test_nearest_frame_is_of_the_same_interpreter(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t second = fake_second_vm(vm, 0), frame = fake_cframe(vm, vm->main, 0, 0), inner;
	uint64_t code = fake_second_interpreter(vm, sample->state, second);

	fake_push(vm, 0);
	inner = fake_cframe(vm, second, 0, 0);
	assert_non_null(luastate_vm_of(sample->state, &vm->reader, second, &sample->why));
	assert_int_equal(0, find(sample, code + FAKE_AT_PLAIN, inner - 400, true));
	expect_frame(sample, inner, second);
	assert_int_equal(0, find(sample, vm->code + FAKE_AT_PLAIN, inner - 400, true));
	expect_frame(sample, frame, vm->main);
	/* Its own VM has none there. */
	expect_not_found(sample, code + FAKE_AT_PLAIN, inner + 8);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_frame_of_a_vm_that_is_met),
		SAMPLE_TEST(test_frame_of_a_vm_that_is_met_in_another),
		SAMPLE_TEST(test_frame_of_a_coroutine_that_is_resumed),
		SAMPLE_TEST(test_nearest_frame_of_several_vms),
		SAMPLE_TEST(test_nearest_frame_is_of_the_same_interpreter),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
