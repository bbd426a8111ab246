/* SPDX-License-Identifier: MIT */
/* What x86-64 tells of calls and of entries by its code alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "luastate/arch/arch.h"
#include "luastate/state/state.h"

#define CODE UINT64_C(0x7f0000010000)

enum { CODE_BYTES = 256, CFRAME = 80, FRAME_SIZE = 80 };

static uint8_t code[CODE_BYTES];

static int read_code(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		     struct failure *why)
{
	(void)self;
	if (address.value < CODE || address.value + len > CODE + CODE_BYTES)
		return failure_set(why, FAILURE_FAULT, 0, 0, address.value, "read memory");
	memcpy(ret_bytes, code + (address.value - CODE), len);
	return 0;
}

static const struct attach_reader reader = { .read = read_code };

/* Source: Intel SDM vol. 2, CALL, and the tables of ModR/M and SIB bytes. */
static void test_follows_call(void **state)
{
	static const struct {
		uint8_t bytes[7];
		unsigned len;
		bool is_call;
	} cases[] = {
		{ { 0xe8, 1, 2, 3, 4 }, 5, true },	       /* call rel32 */
		{ { 0xe9, 1, 2, 3, 4 }, 5, false },	       /* jmp rel32 */
		{ { 0xff, 0xd0 }, 2, true },		       /* call rax */
		{ { 0x41, 0xff, 0xd0 }, 3, true },	       /* call r8 */
		{ { 0xff, 0xe0 }, 2, false },		       /* jmp rax */
		{ { 0xff, 0x10 }, 2, true },		       /* call [rax] */
		{ { 0xff, 0x50, 1 }, 3, true },		       /* call [rax + 1] */
		{ { 0xff, 0x54, 0x24, 1 }, 4, true },	       /* call [rsp + 1] */
		{ { 0xff, 0x14, 0xc3 }, 3, true },	       /* call [rbx + rax * 8] */
		{ { 0xff, 0x90, 1, 2, 3, 4 }, 6, true },       /* call [rax + disp32] */
		{ { 0xff, 0x94, 0x24, 1, 2, 3, 4 }, 7, true }, /* call [rsp + disp32] */
		{ { 0xff, 0x15, 1, 2, 3, 4 }, 6, true },       /* call [rip + disp32] */
		{ { 0xff, 0x14, 0x25, 1, 2, 3, 4 }, 7, true }, /* call [disp32] */
		{ { 0xff, 0x25, 1, 2, 3, 4 }, 6, false },      /* jmp [rip + disp32] */
		{ { 0xff, 0x30 }, 2, false },		       /* push [rax] */
		{ { 0x90, 0x90 }, 2, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memset(code, 0x90, sizeof(code));
		memcpy(code + 16, cases[i].bytes, cases[i].len);
		for (unsigned end = 0; end < CODE_BYTES; end++)
			assert_int_equal(cases[i].is_call && end == 16 + cases[i].len,
					 state_arch_follows_call(&reader, CODE + end));
	}
	assert_false(state_arch_follows_call(&reader, CODE + CODE_BYTES + 1));
	assert_false(state_arch_follows_call(&reader, 0));
	assert_false(state_arch_follows_call(&reader, UINT64_MAX));
}

/* A C frame is complete from the entry sequence's end, and linked behind the store. */
static void test_entering(void **state)
{
	static const uint8_t entry[] = { 0x55, 0x53, 0x41, 0x57, 0x41,
					 0x56, 0x48, 0x83, 0xec, FRAME_SIZE - 40 };
	static const uint8_t stores[][4] = {
		{ 0x48, 0x89, 0x65, CFRAME }, /* mov [rbp + 80], rsp */
		{ 0x4c, 0x89, 0x7d, CFRAME }, /* mov [rbp + 80], r15 */
	};
	static const struct luastate_layout layout = { .lua_State_cframe = CFRAME };
	const struct state_interpreter interpreter = { .start = CODE,
						       .end = CODE + CODE_BYTES,
						       .code = code,
						       .shape = { .size = FRAME_SIZE } };
	const unsigned first = 20, complete = first + sizeof(entry), store = complete + 60;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		memset(code, 0x90, sizeof(code));
		memcpy(code + first, entry, sizeof(entry));
		memcpy(code + complete + 20, stores[i], 4);
		code[complete + 20 + 3] = CFRAME + 8; /* of something else */
		memcpy(code + store, stores[i], 4);
		for (unsigned at = 0; at < CODE_BYTES; at++)
			assert_int_equal(at >= complete && at < store + 4,
					 state_arch_is_entering(&interpreter, &layout, CODE + at));
	}
	/* Without any link it ends somewhere. */
	memset(code + store, 0x90, 4);
	assert_false(state_arch_is_entering(&interpreter, &layout, CODE + complete + 100));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_follows_call),
		cmocka_unit_test(test_entering),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
