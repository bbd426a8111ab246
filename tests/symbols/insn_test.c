/* SPDX-License-Identifier: MIT */

/* Instructions by their bytes, as the assembler writes them. */

#include "symbols/names/insn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ADDRESS ((uint64_t)0x400100)

struct instruction {
	uint8_t bytes[16];
	size_t len;
};

/** What ends at ADDRESS, behind bytes that are no instruction. */
static void place_before(const struct instruction *instruction, uint8_t *ret_bytes)
{
	memset(ret_bytes, 0x06, SYMBOLS_CODE_CALL_BYTES);
	memcpy(ret_bytes + SYMBOLS_CODE_CALL_BYTES - instruction->len, instruction->bytes,
	       instruction->len);
}

static bool decode(const struct instruction *instruction, struct symbols_code_call *ret_call)
{
	uint8_t bytes[SYMBOLS_CODE_CALL_BYTES];

	place_before(instruction, bytes);
	return symbols_code_call(bytes, ADDRESS, ret_call);
}

#if defined(__x86_64__)

static const struct instruction calls[] = {
	{ { 0xff, 0xd0 }, 2 },				       /* call rax */
	{ { 0x41, 0xff, 0xd4 }, 3 },			       /* call r12 */
	{ { 0xff, 0x10 }, 2 },				       /* call [rax] */
	{ { 0xff, 0x14, 0x24 }, 3 },			       /* call [rsp] */
	{ { 0xff, 0x50, 0x18 }, 3 },			       /* call [rax+24] */
	{ { 0x41, 0xff, 0x54, 0x24, 0x08 }, 5 },	       /* call [r12+8] */
	{ { 0xff, 0x15, 0x10, 0x20, 0, 0 }, 6 },	       /* call [rip+0x2010] */
	{ { 0xff, 0x93, 0, 1, 0, 0 }, 6 },		       /* call [rbx+256] */
	{ { 0xff, 0x94, 0x24, 0x90, 1, 0, 0 }, 7 },	       /* call [rsp+400] */
	{ { 0xff, 0x14, 0xc5, 0x40, 0x60, 0x40, 0 }, 7 },      /* call [rax*8+0x406040] */
	{ { 0xff, 0x14, 0xc8 }, 3 },			       /* call [rax+rcx*8] */
	{ { 0x42, 0xff, 0x14, 0xed, 0x40, 0x60, 0x40, 0 }, 8 } /* call [r13*8+0x406040] */
};

/* The first JUMPS of them do not go on. */
static const struct instruction others[] = {
	{ { 0xff, 0xe0 }, 2 },			 /* jmp rax */
	{ { 0x41, 0xff, 0xe4 }, 3 },		 /* jmp r12 */
	{ { 0xc3 }, 1 },			 /* ret */
	{ { 0xff, 0x25, 0x10, 0x20, 0, 0 }, 6 }, /* jmp [rip+0x2010] */
	{ { 0xff, 0xc0 }, 2 },			 /* inc eax */
	{ { 0xff, 0x30 }, 2 },			 /* push [rax] */
	{ { 0xe9, 0, 1, 0, 0 }, 5 },		 /* jmp */
	{ { 0xff, 0x50 }, 2 },			 /* call [rax+…], cut */
	{ { 0xff, 0x15, 0x10, 0x20 }, 4 },	 /* call [rip+…], cut */
	{ { 0x48, 0x89, 0xe5 }, 3 },		 /* mov rbp,rsp */
};

#define JUMPS 3

static const struct instruction direct = { { 0xe8, 0xfb, 0xfe, 0xff, 0xff }, 5 };

#define DIRECT_TARGET (ADDRESS - 0x105)

#else

static const struct instruction calls[] = {
	{ { 0x00, 0x00, 0x3f, 0xd6 }, 4 }, /* blr x0 */
	{ { 0x20, 0x03, 0x3f, 0xd6 }, 4 }, /* blr x25 */
	{ { 0x11, 0x08, 0x3f, 0xd7 }, 4 }, /* blraa x0, x17 */
	{ { 0x1f, 0x08, 0x3f, 0xd6 }, 4 }, /* blraaz x0 */
};

/* The first JUMPS of them do not go on. */
static const struct instruction others[] = {
	{ { 0x00, 0x00, 0x1f, 0xd6 }, 4 }, /* br x0 */
	{ { 0xc0, 0x03, 0x5f, 0xd6 }, 4 }, /* ret */
	{ { 0x00, 0x01, 0x00, 0x14 }, 4 }, /* b */
	{ { 0xfd, 0x03, 0x00, 0x91 }, 4 }, /* mov x29, sp */
};

#define JUMPS 2

static const struct instruction direct = { { 0xc0, 0xff, 0xff, 0x97 }, 4 };

#define DIRECT_TARGET (ADDRESS - 4 - 0x100)

#endif

static void test_calls(void **state)
{
	struct symbols_code_call call;

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		assert_true(decode(&calls[i], &call));
		assert_false(call.is_direct);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(decode(&others[i], &call));
	assert_true(decode(&direct, &call));
	assert_true(call.is_direct);
	assert_int_equal(call.target, DIRECT_TARGET);
}

static void test_jumps(void **state)
{
	uint8_t bytes[SYMBOLS_CODE_CALL_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		place_before(&others[i], bytes);
		assert_int_equal(symbols_code_never_goes_on(bytes), i < JUMPS);
	}
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		place_before(&calls[i], bytes);
		assert_false(symbols_code_never_goes_on(bytes));
	}
}

/* ---- How functions begin ---------------------------------------------------------------- */

struct function {
	uint8_t bytes[32];
	size_t len;
	size_t saved, ready; /**< 0 where it sets up nothing. */
	int64_t size;	     /**< -1 where it is not certain. */
	uint64_t caller_sp;
};

#if defined(__x86_64__)

static const struct function functions[] = {
	/* push rbp; mov rbp,rsp; nop… */
	{ { 0x55, 0x48, 0x89, 0xe5, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 }, 11, 1, 4, 0, 16 },
	/* endbr64; push rbp; mov rbp,rsp; push r12; push rbx; sub rsp,16 */
	{ { 0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x41, 0x54, 0x53, 0x48, 0x83, 0xec,
	    0x10, 0x90, 0x90, 0x90 },
	  18,
	  5,
	  8,
	  32,
	  16 },
	/* push rbp; mov rbp,rsp; sub rsp,0x1000 */
	{ { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x81, 0xec, 0, 0x10, 0, 0 }, 11, 1, 4, 0x1000, 16 },
	/* push rbp; xor eax,eax; mov rbp,rsp */
	{ { 0x55, 0x31, 0xc0, 0x48, 0x89, 0xe5, 0x90, 0x90, 0x90, 0x90, 0x90 }, 11, 1, 6, -1, 16 },
	/* test edi,edi; je +3; push rbp; mov rbp,rsp */
	{ { 0x85, 0xff, 0x74, 3, 0x55, 0x48, 0x89, 0xe5, 0x90, 0x90, 0x90, 0x90 },
	  12,
	  5,
	  8,
	  -1,
	  16 },
	/* push rbx; sub rsp,16 */
	{ { 0x53, 0x48, 0x83, 0xec, 0x10, 0x90, 0x90, 0x90 }, 8, 0, 0, -1 },
	{ { 0x55, 0x48, 0x89 }, 3, 0, 0, -1 },
	{ { 0x55 }, 1, 0, 0, -1 },
	{ { 0 }, 0, 0, 0, -1 },
};

static const struct instruction returns[] = {
	{ { 0xc3 }, 1 },
	{ { 0xf3, 0xc3 }, 2 },
	{ { 0xc2, 8, 0 }, 3 },
};

static const struct {
	struct instruction code;
	struct symbols_code_stub stub;
} stubs[] = {
	{ { { 0xff, 0x25, 0x10, 0x20, 0, 0 }, 6 }, { .slot = ADDRESS + 6 + 0x2010 } },
	{ { { 0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0xf0, 0xff, 0xff, 0xff }, 10 },
	  { .slot = ADDRESS + 10 - 16 } },
	{ { { 0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 1, 0, 0, 0 }, 11 },
	  { .slot = ADDRESS + 11 + 1 } },
	{ { { 0xf3, 0x0f, 0x1e, 0xfa, 0x68, 7, 0, 0, 0, 0xf2 }, 10 },
	  { .has_index = true, .index = 7 } },
};

#else

static const struct function functions[] = {
	/* stp x29,x30,[sp,-32]!; mov x29,sp */
	{ { 0xfd, 0x7b, 0xbe, 0xa9, 0xfd, 0x03, 0x00, 0x91 }, 8, 4, 8, 0, 32 },
	/* sub sp,sp,64; stp x29,x30,[sp,48]; add x29,sp,48 */
	{ { 0xff, 0x03, 0x01, 0xd1, 0xfd, 0x7b, 0x03, 0xa9, 0xfd, 0xc3, 0x00, 0x91 },
	  12,
	  8,
	  12,
	  48,
	  16 },
	/* paciasp; str x19,[sp,-80]!; stp x29,x30,[sp,16]; add x29,sp,16 */
	{ { 0x3f, 0x23, 0x03, 0xd5, 0xf3, 0x0f, 0x1b, 0xf8, 0xfd, 0x7b, 0x01, 0xa9, 0xfd, 0x43,
	    0x00, 0x91 },
	  16,
	  12,
	  16,
	  -1,
	  64 },
	/* nop; nop; nop; stp x29,x30,[sp,-16]!; mov x29,sp */
	{ { 0x1f, 0x20, 0x03, 0xd5, 0x1f, 0x20, 0x03, 0xd5, 0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03,
	    0x00, 0x91 },
	  16,
	  12,
	  16,
	  -1,
	  16 },
	/* sub sp,sp,x12; stp x29,x30,[sp]; mov x29,sp */
	{ { 0xff, 0x63, 0x2c, 0xcb, 0xfd, 0x7b, 0x00, 0xa9, 0xfd, 0x03, 0x00, 0x91 },
	  12,
	  8,
	  12,
	  0,
	  0 },
	/* str x30,[sp,-16]! */
	{ { 0xfe, 0x0f, 0x1f, 0xf8 }, 4, 0, 0, -1 },
	{ { 0 }, 0, 0, 0, -1 },
};

static const struct instruction returns[] = {
	{ { 0xc0, 0x03, 0x5f, 0xd6 }, 4 },
	{ { 0xff, 0x0b, 0x5f, 0xd6 }, 4 },
};

static const struct {
	struct instruction code;
	struct symbols_code_stub stub;
} stubs[] = {
	/* adrp x16, +0x11000; ldr x17, [x16, 0xfa8]; add x16, x16, 0xfa8; br x17 */
	{ { { 0x90, 0x00, 0x00, 0xb0, 0x11, 0xd6, 0x47, 0xf9, 0x10, 0xa2, 0x3e, 0x91, 0x20, 0x02,
	      0x1f, 0xd6 },
	    16 },
	  { .slot = (ADDRESS & ~(uint64_t)4095) + 0x11000 + 0xfa8 } },
};

#endif

static void test_begins(void **state)
{
	struct symbols_code_begin begin;
	uint64_t size;

	(void)state;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		const struct function *function = &functions[i];
		/* From the heap, so that a read past the end is seen. */
		uint8_t *bytes = malloc(function->len + !function->len);

		memcpy(bytes, function->bytes, function->len);
		assert_int_equal(symbols_code_begin(bytes, function->len, &begin),
				 function->ready != 0);
		if (function->ready) {
			assert_int_equal(begin.saved, function->saved);
			assert_int_equal(begin.ready, function->ready);
			assert_int_equal(begin.caller_sp, function->caller_sp);
		}
		assert_int_equal(symbols_code_frame_size(bytes, function->len, &size),
				 function->size >= 0);
		if (function->size >= 0)
			assert_int_equal(size, function->size);
		free(bytes);
	}
}

static void test_ends(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(returns) / sizeof(returns[0]); i++)
		assert_true(symbols_code_is_return(returns[i].bytes, returns[i].len));
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		assert_false(symbols_code_is_return(calls[i].bytes, calls[i].len));
	assert_false(symbols_code_is_return(NULL, 0));
}

#if defined(__x86_64__)

static void test_leaves(void **state)
{
	static const uint8_t returns_at_once[] = { 0xc3 };

	(void)state;
	assert_false(symbols_code_is_leaf(returns_at_once, sizeof(returns_at_once)));
	assert_int_equal(symbols_code_lowers_sp(functions[1].bytes, functions[1].len), 0);
}

#else

/** Instructions after which the return address is not in x30, or sp is not the caller's. */
static const uint32_t touching[] = {
	0xa9be7bfd, /* stp x29,x30,[sp,-32]! */
	0xd10103ff, /* sub sp,sp,64 */
	0xf81f0ffe, /* str x30,[sp,-16]! */
	0xa8c27bfd, /* ldp x29,x30,[sp],32 */
	0x94000000, /* bl */
	0xd63f0060, /* blr x3 */
	0x910043ff, /* add sp,sp,16 */
	0xcb2c63ff, /* sub sp,sp,x12 */
	0x927be93f, /* and sp,x9,-32 */
	0xaa0903fe, /* mov x30,x9 */
	0xf940003e, /* ldr x30,[x1] */
	0xa9407853, /* ldp x19,x30,[x2] */
	0xf80107e1, /* str x1,[sp],16 */
	0xa9810be1, /* stp x1,x2,[sp,16]! */
};

static const uint32_t harmless[] = {
	0xd503233f, /* paciasp */
	0xd50323bf, /* autiasp */
	0xa9010be1, /* stp x1,x2,[sp,16] */
	0xf90007e1, /* str x1,[sp,8] */
	0xf100103f, /* cmp x1,4 */
	0xeb2363ff, /* cmp sp,x3 */
	0xf240003f, /* tst x1,1 */
	0x14000000, /* b */
	0xd61f0220, /* br x17 */
	0xd65f03c0, /* ret */
	0xd4000001, /* svc 0 */
	0xf9400611, /* ldr x17,[x16,8] */
	0x91002210, /* add x16,x16,8 */
	0x8b2463e4, /* add x4,sp,x4 */
	0xf8008401, /* str x1,[x0],8 */
	0x9b037841, /* madd x1,x2,x3,x30 */
	0xb400001e, /* cbz x30 */
};

static void test_leaves(void **state)
{
	uint32_t code[2] = { 0xd503201f, 0 }; /* nop */

	(void)state;
	assert_true(symbols_code_is_leaf((const uint8_t *)harmless, sizeof(harmless)));
	for (size_t i = 0; i < sizeof(touching) / sizeof(touching[0]); i++) {
		code[1] = touching[i];
		assert_false(symbols_code_is_leaf((const uint8_t *)code, sizeof(code)));
	}
	assert_false(symbols_code_is_leaf(NULL, 0));
	assert_int_equal(symbols_code_lowers_sp((const uint8_t *)touching, 4), 32);
	assert_int_equal(symbols_code_lowers_sp((const uint8_t *)touching, 12), 32 + 64 + 16);
}

#endif

static void test_stubs(void **state)
{
	struct symbols_code_stub stub;

	(void)state;
	for (size_t i = 0; i < sizeof(stubs) / sizeof(stubs[0]); i++) {
		const struct instruction *code = &stubs[i].code;

		assert_true(symbols_code_stub(code->bytes, code->len, ADDRESS, &stub));
		assert_int_equal(stub.has_index, stubs[i].stub.has_index);
		assert_int_equal(stub.index, stubs[i].stub.index);
		assert_int_equal(stub.slot, stubs[i].stub.slot);
		assert_false(symbols_code_stub(code->bytes, code->len - 1, ADDRESS, &stub));
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(symbols_code_stub(others[i].bytes, others[i].len, ADDRESS, &stub),
				 others[i].bytes[0] == 0xff && others[i].bytes[1] == 0x25);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),  cmocka_unit_test(test_jumps),
		cmocka_unit_test(test_begins), cmocka_unit_test(test_ends),
		cmocka_unit_test(test_leaves), cmocka_unit_test(test_stubs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
