/* SPDX-License-Identifier: MIT */
/* Copies that the kernel makes of a thread that runs on: its registers and its native stack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "../attach/children.h"
#include "../attach/sampler_scene.h"
#include "attach/failure.h"
#include "attach/freeze.h"

static uint64_t word_at(const struct scene *scene, uint64_t address)
{
	uint64_t word;
	struct failure why;

	assert_int_equal(0, attach_read(attach_image_reader(scene->image),
					remote_addr_make(address), &word, sizeof(word), &why));
	return word;
}

static bool check_stack(struct scene *scene)
{
	const struct attach_registers *registers = attach_image_registers(scene->image);
	uint64_t sp = attach_sp(registers), found = 0;

	/* One that has just begun is elsewhere. */
	if (attach_pc(registers) - (uintptr_t)scene_spin > 4096)
		return true;
	for (uint64_t at = sp; at < sp + 2 * sizeof(uint64_t) * SCENE_MARKS && !found; at += 8)
		found = word_at(scene, at) == SCENE_MARK ? at : 0;
	assert_true(found != 0);
	for (uint64_t i = 0; i < SCENE_MARKS; i++)
		assert_int_equal(SCENE_MARK + i, word_at(scene, found + 8 * i));
	++*(int *)scene->context;
	return true;
}

static bool check_registers(struct scene *scene)
{
	const struct attach_registers *registers = attach_image_registers(scene->image);
	uint64_t pc = attach_pc(registers);

	/* One that has just begun is elsewhere. */
	if (pc < (uintptr_t)child_loop_begin || pc >= (uintptr_t)child_loop_end)
		return true;
	for (unsigned n = 0; n < ATTACH_REG_COUNT; n++)
		if (child_register_is_known(n))
			assert_int_equal(CHILD_REGISTER(n), registers->r[n]);
	++*(int *)scene->context;
	return true;
}

static void copies_registers(void **state)
{
	uint64_t *counter = child_share(sizeof(*counter));
	struct scene scene;
	int checked = 0;

	(void)state;
	scene_begin(&scene, SCENE_RATE_HZ, child_spin, counter);
	scene.check = check_registers;
	scene.context = &checked;
	scene_await(&scene, 100);
	assert_true(checked >= 90);
	scene_end(&scene);
}

static void copies_the_native_stack(void **state)
{
	struct scene scene;
	int checked = 0;

	(void)state;
	scene_begin(&scene, SCENE_RATE_HZ, scene_spin, NULL);
	scene.check = check_stack;
	scene.context = &checked;
	scene_await(&scene, 100);
	assert_true(checked >= 90);
	scene_end(&scene);
}

enum {
	/* A stack whose lowest page is the first of its memory. */
	LOW_BYTES = 3 * ATTACH_PAGE_BYTES,
	/* A stack that takes several records. */
	DEEP_BYTES = 600 << 10,
	/* Of the stack pointer, from the start of either. */
	LOW_SP = 32,
};

/** A stack full of marks. */
struct marked_stack {
	uint8_t *start;
	size_t len;
	int checked;
};

static void spin_on_marks(void *argument)
{
	const struct marked_stack *stack = argument;
	uint64_t *words = (uint64_t *)(void *)stack->start;

	for (size_t i = 0; i < stack->len / sizeof(*words); i++)
		words[i] = SCENE_MARK + i;
#if defined(__x86_64__)
	__asm__ volatile("mov %0, %%rsp\n1: jmp 1b" : : "r"(stack->start + LOW_SP));
#else
	__asm__ volatile("mov sp, %0\n1: b 1b" : : "r"(stack->start + LOW_SP));
#endif
}

static bool check_low_stack(struct scene *scene)
{
	struct marked_stack *low = scene->context;
	uint64_t start = (uintptr_t)low->start;

	/* One that has just begun is elsewhere. */
	if (attach_sp(attach_image_registers(scene->image)) != start + LOW_SP)
		return true;
	for (uint64_t i = LOW_SP / 8; i < LOW_BYTES / 8; i++)
		assert_int_equal(SCENE_MARK + i, word_at(scene, start + 8 * i));
	low->checked++;
	return true;
}

static void copies_a_stack_from_its_first_page(void **state)
{
	uint8_t *memory = child_share(ATTACH_PAGE_BYTES + LOW_BYTES);
	struct marked_stack low = { .start = memory + ATTACH_PAGE_BYTES, .len = LOW_BYTES };
	struct scene scene;

	(void)state;
	assert_int_equal(0, munmap(memory, ATTACH_PAGE_BYTES));
	scene_begin(&scene, SCENE_RATE_HZ, spin_on_marks, &low);
	scene.check = check_low_stack;
	scene.context = &low;
	scene_await(&scene, 100);
	assert_true(low.checked >= 90);
	scene_end(&scene);
	munmap(low.start, LOW_BYTES);
}

static bool check_end(struct scene *scene)
{
	const struct attach_registers *registers = attach_image_registers(scene->image);
	uint64_t end = *(uint64_t *)scene->context, word;
	struct failure why;

	assert_true(attach_sp(registers) < end);
	assert_int_equal(0, attach_read(attach_image_reader(scene->image),
					remote_addr_make(end - 8), &word, 8, &why));
	assert_int_equal(-1, attach_read(attach_image_reader(scene->image), remote_addr_make(end),
					 &word, 8, &why));
	return true;
}

static bool note_sp(struct scene *scene)
{
	*(uint64_t *)scene->context = attach_sp(attach_image_registers(scene->image));
	return true;
}

static void copies_stack_to_its_known_end(void **state)
{
	struct scene scene;
	uint64_t end_address = 0;

	(void)state;
	scene_begin(&scene, SCENE_RATE_HZ, scene_spin, NULL);
	scene.check = note_sp;
	scene.context = &end_address;
	scene_await(&scene, 20);
	end_address += 800;
	scene.plan->native_end = end_address;
	scene_watch(&scene, check_end);
	scene_await(&scene, 50);
	assert_int_equal(0, scene.cut_count);
	scene_end(&scene);
}

static void tells_of_stacks_that_are_too_deep(void **state)
{
	struct scene scene;
	uint64_t sp = 0;

	(void)state;
	scene_begin(&scene, SCENE_RATE_HZ, scene_spin, NULL);
	scene.check = note_sp;
	scene.context = &sp;
	scene_await(&scene, 20);
	scene.plan->native_end = sp + 2000000;
	scene_watch(&scene, NULL);
	scene_await(&scene, 200);
	assert_true(scene.cut_count > 0);
	scene_end(&scene);
}

static bool check_deep_stack(struct scene *scene)
{
	struct marked_stack *deep = scene->context;
	uint64_t start = (uintptr_t)deep->start, sp = start + LOW_SP;
	const uint64_t *words;
	size_t len;

	/* One that has just begun is elsewhere. */
	if (attach_sp(attach_image_registers(scene->image)) != sp)
		return true;
	/* All of it is one range. */
	words = attach_image_peek(scene->image, remote_addr_make(sp), DEEP_BYTES, &len);
	assert_int_equal(DEEP_BYTES - LOW_SP, len);
	for (uint64_t i = 0; i < len / 8; i++)
		assert_int_equal(SCENE_MARK + LOW_SP / 8 + i, words[i]);
	deep->checked++;
	return true;
}

static void copies_deep_stacks_in_parts(void **state)
{
	uint8_t *memory = child_share(DEEP_BYTES);
	struct marked_stack deep = { .start = memory, .len = DEEP_BYTES };
	struct scene scene;

	(void)state;
	scene_begin(&scene, SCENE_RATE_HZ, spin_on_marks, &deep);
	scene.plan->native_end = scene.plan->native_limit = (uintptr_t)memory + DEEP_BYTES;
	scene_await(&scene, 20); /* the child begins */
	scene.context = &deep;
	scene_watch(&scene, check_deep_stack);
	scene_await(&scene, 100);
	assert_true(deep.checked >= 90);
	assert_int_equal(0, scene.cut_count);
	scene_end(&scene);
	munmap(memory, DEEP_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_registers),
		cmocka_unit_test(copies_the_native_stack),
		cmocka_unit_test(copies_a_stack_from_its_first_page),
		cmocka_unit_test(copies_stack_to_its_known_end),
		cmocka_unit_test(tells_of_stacks_that_are_too_deep),
		cmocka_unit_test(copies_deep_stacks_in_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
