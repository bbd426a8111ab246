/* SPDX-License-Identifier: MIT */
/* Names of what the VM does, each announced once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/decode/function_ids.h"

enum { NAMES_MAX = 8192, EXITS_MAX = 4096 };

/** What a recorder would hold. */
struct program {
	struct daemon_target *target;
	char *names[NAMES_MAX]; /* by id */
	uint32_t count;
	bool full;
};

static int announce(void *context, const struct format_function *function, uint32_t *ret_id,
		    struct failure *why)
{
	struct program *program = context;

	if (program->full)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "announce");
	assert_true(program->count < NAMES_MAX);
	assert_int_equal(FORMAT_KIND_PSEUDO, function->kind);
	assert_int_equal(0, function->address);
	assert_null(function->source);
	program->names[program->count] = strdup(function->name);
	*ret_id = program->count++;
	return 0;
}

static int set_up(void **state)
{
	struct program *program = calloc(1, sizeof(*program));
	struct target_listener listener = { .function = announce, .context = program };
	struct failure why;

	*state = program;
	return program ? target_create(NULL, &listener, &program->target, &why) : -1;
}

static int tear_down(void **state)
{
	struct program *program = *state;

	target_destroy(program->target);
	for (uint32_t i = 0; i < program->count; i++)
		free(program->names[i]);
	free(program);
	return 0;
}

static uint32_t id_of(struct program *program, struct luastate_vm_work work)
{
	struct failure why;
	uint32_t id = UINT32_MAX;

	assert_int_equal(0, target_vm_work_id(program->target, &work, &id, &why));
	assert_true(id < program->count);
	return id;
}

static struct luastate_vm_work exit_of(uint32_t trace, uint32_t exit)
{
	return (struct luastate_vm_work){ .kind = LUASTATE_VM_WORK_EXIT,
					  .trace = trace,
					  .exit = exit };
}

#define EXPECT(program, name, ...) \
	assert_string_equal(       \
		name, (program)->names[id_of(program, (struct luastate_vm_work){ __VA_ARGS__ })])

static void expect_all(struct program *program)
{
	EXPECT(program, "[gc]", LUASTATE_VM_WORK_GC, LUASTATE_GC_PAUSE);
	EXPECT(program, "[gc propagate]", LUASTATE_VM_WORK_GC, LUASTATE_GC_PROPAGATE);
	EXPECT(program, "[gc atomic]", LUASTATE_VM_WORK_GC, LUASTATE_GC_ATOMIC);
	EXPECT(program, "[gc sweep string]", LUASTATE_VM_WORK_GC, LUASTATE_GC_SWEEP_STRING);
	EXPECT(program, "[gc sweep]", LUASTATE_VM_WORK_GC, LUASTATE_GC_SWEEP);
	EXPECT(program, "[gc finalize]", LUASTATE_VM_WORK_GC, LUASTATE_GC_FINALIZE);
	EXPECT(program, "[jit record]", LUASTATE_VM_WORK_RECORD);
	EXPECT(program, "[jit opt]", LUASTATE_VM_WORK_OPT);
	EXPECT(program, "[jit asm]", LUASTATE_VM_WORK_ASM);
	EXPECT(program, "[jit exit]", LUASTATE_VM_WORK_EXIT);
	EXPECT(program, "[jit exit 12/3]", LUASTATE_VM_WORK_EXIT, .trace = 12, .exit = 3);
	EXPECT(program, "[jit exit 3/12]", LUASTATE_VM_WORK_EXIT, .trace = 3, .exit = 12);
	EXPECT(program, "[jit exit 65535/65535]", LUASTATE_VM_WORK_EXIT, .trace = 65535,
	       .exit = 65535);
}

static void test_names(void **state)
{
	struct program *program = *state;

	expect_all(program);
	assert_int_equal(13, program->count);
	expect_all(program);
	assert_int_equal(13, program->count);
}

/** A program that makes traces all the time. */
static void test_endless_exits(void **state)
{
	struct program *program = *state;
	uint32_t first = id_of(program, exit_of(1, 0)), id;

	for (uint32_t i = 1; i < EXITS_MAX; i++)
		id_of(program, exit_of(1 + i / 7, i % 7));
	assert_int_equal(EXITS_MAX, program->count);
	for (uint32_t i = 0; i < 10000; i++) {
		id = id_of(program, exit_of(1000 + i, i % 3));
		assert_string_equal("[jit exit]", program->names[id]);
	}
	/* The known ones keep their names. */
	assert_int_equal(first, id_of(program, exit_of(1, 0)));
	assert_int_equal(EXITS_MAX + 1, program->count);
}

static void test_refused_announcements(void **state)
{
	struct program *program = *state;
	struct luastate_vm_work work = exit_of(4, 5);
	struct failure why;
	uint32_t id = 77;

	program->full = true;
	assert_int_equal(-1, target_vm_work_id(program->target, &work, &id, &why));
	assert_int_equal(FAILURE_NO_MEMORY, why.kind);
	assert_int_equal(77, id);
	/* It is tried again. */
	program->full = false;
	EXPECT(program, "[jit exit 4/5]", LUASTATE_VM_WORK_EXIT, .trace = 4, .exit = 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_names),
		TEST(test_endless_exits),
		TEST(test_refused_announcements),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
