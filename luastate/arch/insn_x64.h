/* SPDX-License-Identifier: MIT */
/* What do x86-64 instructions do with registers and memory? Private to luastate. The decoder covers
 * what shows the offsets of LuaJIT's structures in the interpreter's code. */
#ifndef LUASTATE_ARCH_INSN_X64_H
#define LUASTATE_ARCH_INSN_X64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Registers by their numbers in instructions. */
enum {
	INSN_RAX,
	INSN_RCX,
	INSN_RDX,
	INSN_RBX,
	INSN_RSP,
	INSN_RBP,
	INSN_RSI,
	INSN_RDI,
	INSN_R14 = 14,
	INSN_R15,
	INSN_NO_REG = 0xff,
};

/**
 * Kinds of instructions. "Load" reads the operand in memory, "store" writes it. The operand may
 * also be a register; has_mem is then not set.
 */
enum insn_kind {
	INSN_OTHER,
	INSN_LOAD,	/* mov reg, mem */
	INSN_STORE,	/* mov mem, reg */
	INSN_STORE_IMM, /* mov mem, imm; mov reg, imm */
	INSN_EXTEND,	/* movzx reg, mem of size bytes */
	INSN_LEA,
	INSN_ALU_LOAD,	/* operation reg, mem */
	INSN_ALU_STORE, /* operation mem, reg */
	INSN_ALU_IMM,	/* operation mem, imm */
	INSN_TEST_IMM,
	INSN_NEG,
	INSN_SAR,
	INSN_IMUL_IMM,
	INSN_INC,
	INSN_DEC,
	INSN_TO_FLOAT, /* cvtsi2sd xmm, mem */
	INSN_CALL,     /* direct call */
	INSN_CALL_MEM, /* call through memory or a register */
	INSN_JUMP,
	INSN_JUMP_MEM,
	INSN_BRANCH, /* conditional branch */
};

/** Operations of INSN_ALU_*, as their numbers in opcodes. */
enum {
	INSN_ADD = 0,
	INSN_AND = 4,
	INSN_SUB = 5,
	INSN_CMP = 7,
};

/** One instruction. */
struct insn {
	uint32_t at; /* offset in the code */
	uint8_t len, kind;
	uint8_t size; /* size of the operands in bytes */
	uint8_t op;   /* operation of INSN_ALU_*, condition of INSN_BRANCH */
	uint8_t reg;  /* INSN_NO_REG: none */
	bool has_mem;
	uint8_t base, index; /* INSN_NO_REG: none; without has_mem, base is the operand */
	uint8_t scale;	     /* 1, 2, 4 or 8 */
	int32_t disp, imm; /* for direct targets, imm is the distance from the instruction's end */
	bool is_relative;  /* the memory operand is disp behind the instruction's end */
	/* What it does, without operands and the width of immediates: equal for forms of one
	 * instruction between which an assembler chooses. INSN_NO_OPERATION: it only fills space.
	 */
	uint16_t operation;
};

enum { INSN_NO_OPERATION = 0 };

/**
 * Decode the instruction at @p code. @param len Available bytes.
 * @return false if it is incomplete, or neither compilers nor LuaJIT's assembler use it.
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapter 2 and
 * appendix A.
 */
bool insn_decode(const uint8_t *code, size_t len, struct insn *ret_insn);

#endif
