/* SPDX-License-Identifier: MIT */
/* Instructions of x86-64: lengths, operands, and what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "luastate/arch/insn_x64.h"

#define NO INSN_NO_REG

/** An instruction and what it is. */
struct sample {
	const char *text;
	uint8_t bytes[15];
	struct insn insn;
};

static const struct sample samples[] = {
	{ "mov rbp, [rsp+16]",
	  { 0x48, 0x8b, 0x6c, 0x24, 0x10 },
	  { 0, 5, INSN_LOAD, 8, 0, INSN_RBP, true, INSN_RSP, NO, 1, 16, 0 } },
	{ "mov dword [r14-0xec8], -1",
	  { 0x41, 0xc7, 0x86, 0x38, 0xf1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
	  { 0, 11, INSN_STORE_IMM, 4, 0, NO, true, INSN_R14, NO, 0, -0xec8, -1 } },
	{ "jmp [r14+rbp*8]",
	  { 0x41, 0xff, 0x24, 0xee },
	  { 0, 4, INSN_JUMP_MEM, 4, 4, NO, true, INSN_R14, INSN_RBP, 8, 0, 0 } },
	{ "jmp [r14+rbp*8+0x4d0]",
	  { 0x41, 0xff, 0xa4, 0xee, 0xd0, 0x04, 0, 0 },
	  { 0, 8, INSN_JUMP_MEM, 4, 4, NO, true, INSN_R14, INSN_RBP, 8, 0x4d0, 0 } },
	{ "add r14, 0xf80",
	  { 0x49, 0x81, 0xc6, 0x80, 0x0f, 0, 0 },
	  { 0, 7, INSN_ALU_IMM, 8, INSN_ADD, NO, false, INSN_R14, NO, 0, 0, 0xf80 } },
	{ "movzx ecx, byte [rbx-0x62]",
	  { 0x0f, 0xb6, 0x4b, 0x9e },
	  { 0, 4, INSN_EXTEND, 1, 0, INSN_RCX, true, INSN_RBX, NO, 0, -0x62, 0 } },
	{ "movzx ebp, word [r11+0x68]",
	  { 0x41, 0x0f, 0xb7, 0x6b, 0x68 },
	  { 0, 5, INSN_EXTEND, 2, 0, INSN_RBP, true, 11, NO, 0, 0x68, 0 } },
	{ "lea rdi, [r14-0xca8]",
	  { 0x49, 0x8d, 0xbe, 0x58, 0xf3, 0xff, 0xff },
	  { 0, 7, INSN_LEA, 8, 0, INSN_RDI, true, INSN_R14, NO, 0, -0xca8, 0 } },
	{ "cmp byte [rbp+11], al",
	  { 0x38, 0x45, 0x0b },
	  { 0, 3, INSN_ALU_STORE, 1, INSN_CMP, INSN_RAX, true, INSN_RBP, NO, 0, 11, 0 } },
	{ "sub r15, [rbp+0x28]",
	  { 0x4c, 0x2b, 0x7d, 0x28 },
	  { 0, 4, INSN_ALU_LOAD, 8, INSN_SUB, INSN_R15, true, INSN_RBP, NO, 0, 0x28, 0 } },
	{ "imul r10d, r10d, 24",
	  { 0x45, 0x6b, 0xd2, 0x18 },
	  { 0, 4, INSN_IMUL_IMM, 4, 0, 10, false, 10, NO, 0, 0, 24 } },
	{ "sar r11, 47",
	  { 0x49, 0xc1, 0xfb, 0x2f },
	  { 0, 4, INSN_SAR, 8, 7, NO, false, 11, NO, 0, 0, 47 } },
	{ "test byte [r10+10], 1",
	  { 0x41, 0xf6, 0x42, 0x0a, 0x01 },
	  { 0, 5, INSN_TEST_IMM, 1, 0, NO, true, 10, NO, 0, 10, 1 } },
	{ "neg rcx",
	  { 0x48, 0xf7, 0xd9 },
	  { 0, 3, INSN_NEG, 8, 3, NO, false, INSN_RCX, NO, 0, 0, 0 } },
	{ "cvtsi2sd xmm0, [rax+20]",
	  { 0xf2, 0x0f, 0x2a, 0x40, 0x14 },
	  { 0, 5, INSN_TO_FLOAT, 4, 0, 0, true, INSN_RAX, NO, 0, 20, 0 } },
	{ "call r15",
	  { 0x41, 0xff, 0xd7 },
	  { 0, 3, INSN_CALL_MEM, 4, 2, NO, false, INSN_R15, NO, 0, 0, 0 } },
	{ "ja +0x200",
	  { 0x0f, 0x87, 0, 2, 0, 0 },
	  { 0, 6, INSN_BRANCH, 4, 7, NO, false, NO, NO, 0, 0, 0x200 } },
};

static void test_operands(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		const struct insn *want = &samples[i].insn;
		struct insn got;

		if (!insn_decode(samples[i].bytes, sizeof(samples[i].bytes), &got))
			fail_msg("%s is none", samples[i].text);
		if (got.len != want->len || got.kind != want->kind || got.size != want->size ||
		    got.reg != want->reg || got.has_mem != want->has_mem ||
		    got.base != want->base || got.index != want->index || got.disp != want->disp ||
		    got.imm != want->imm)
			fail_msg(
				"%s: %u bytes, kind %u, size %u, reg %u, base %u, index %u, %d, %d",
				samples[i].text, got.len, got.kind, got.size, got.reg, got.base,
				got.index, got.disp, got.imm);
		/* Cut anywhere it is none. */
		for (size_t len = 0; len < want->len; len++)
			assert_false(insn_decode(samples[i].bytes, len, &got));
	}
}

/** Forms of one operation, which have the same signature. */
static const struct {
	const char *text;
	bool is_nothing; /* they only fill space */
	struct {
		uint8_t bytes[12];
	} forms[2];
} same_operations[] = {
	{ "add", false, { { { 0x48, 0x83, 0xc0, 0x08 } }, { { 0x48, 0x81, 0xc1, 0, 1, 0, 0 } } } },
	{ "sub", false, { { { 0x48, 0x29, 0x43, 0x08 } }, { { 0x2b, 0x43, 0x08 } } } },
	{ "ja", false, { { { 0x77, 0x10 } }, { { 0x0f, 0x87, 0, 2, 0, 0 } } } },
	{ "jmp", false, { { { 0xeb, 0x10 } }, { { 0xe9, 0, 2, 0, 0 } } } },
	{ "push", false, { { { 0x55 } }, { { 0x41, 0x57 } } } },
	{ "mov", false, { { { 0x89, 0xd8 } }, { { 0x8b, 0xc3 } } } },
	{ "load", false, { { { 0x8b, 0x43, 0x08 } }, { { 0x48, 0x8b, 0x83, 0, 1, 0, 0 } } } },
	{ "test", false, { { { 0xa8, 0x01 } }, { { 0x41, 0xf6, 0x42, 0x0a, 0x01 } } } },
	{ "nop", true, { { { 0x90 } }, { { 0x66, 0x0f, 0x1f, 0x44, 0, 0 } } } },
	{ "endbr64", true, { { { 0xf3, 0x0f, 0x1e, 0xfa } }, { { 0x0f, 0x1f, 0 } } } },
};

/* Operands, and forms between which an assembler chooses, do not change the operation; another
 * operation does. */
static void test_operations(void **state)
{
	const uint8_t scalar[] = { 0xf2, 0x0f, 0x58, 0xc1 }, packed[] = { 0x66, 0x0f, 0x58, 0xc1 };
	size_t count = sizeof(same_operations) / sizeof(same_operations[0]);
	struct insn insn, other;

	(void)state;
	for (size_t i = 0; i < count; i++) {
		assert_true(insn_decode(same_operations[i].forms[0].bytes, 12, &insn));
		assert_true(insn_decode(same_operations[i].forms[1].bytes, 12, &other));
		if (insn.operation != other.operation ||
		    (insn.operation == INSN_NO_OPERATION) != same_operations[i].is_nothing)
			fail_msg("%s: %#x and %#x", same_operations[i].text, insn.operation,
				 other.operation);
		for (size_t k = 0; k < i && !same_operations[i].is_nothing; k++) {
			assert_true(insn_decode(same_operations[k].forms[0].bytes, 12, &other));
			assert_int_not_equal(insn.operation, other.operation);
		}
	}
	assert_true(insn_decode(scalar, sizeof(scalar), &insn));
	assert_true(insn_decode(packed, sizeof(packed), &other));
	assert_int_not_equal(insn.operation, other.operation);
}

static void test_relative_operands(void **state)
{
	const uint8_t relative[] = { 0x48, 0x8d, 0x0d, 0x10, 0, 0, 0 };
	const uint8_t absolute[] = { 0x8b, 0x04, 0x25, 0x10, 0, 0, 0 };
	struct insn insn;

	(void)state;
	assert_true(insn_decode(relative, sizeof(relative), &insn));
	assert_true(insn.is_relative);
	assert_int_equal(0x10, insn.disp);
	assert_true(insn_decode(absolute, sizeof(absolute), &insn));
	assert_false(insn.is_relative);
}

/* Any bytes: no more is read than there is, and what is decoded is no longer than that. */
static void test_any_bytes(void **state)
{
	enum { PAGE = 4096 };
	uint8_t *page =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t seed = 1;

	(void)state;
	assert_ptr_not_equal(MAP_FAILED, page);
	assert_int_equal(0, mprotect(page + PAGE, PAGE, PROT_NONE));
	for (unsigned i = 0; i < 2000000; i++) {
		size_t len = 1 + i % 15;
		uint8_t *code = page + PAGE - len;
		struct insn insn;

		for (size_t k = 0; k < len; k++) {
			seed = seed * 1664525 + 1013904223;
			code[k] = (uint8_t)(seed >> 24);
		}
		if (insn_decode(code, len, &insn))
			assert_in_range(insn.len, 1, len);
	}
	munmap(page, 2 * PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_operands),
		cmocka_unit_test(test_operations),
		cmocka_unit_test(test_relative_operands),
		cmocka_unit_test(test_any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
