/* SPDX-License-Identifier: MIT */
/* Which x86-64 instructions call, jump, and set arguments? */
#include "luastate/arch/insn_x64.h"
#include "luastate/native/native.h"

/* Lower numbers are offsets in structures. */
enum { ADDRESS_MIN = 0xffff };

/* Registers of the arguments 0 to 3. Source: System V ABI, AMD64, 3.2.3. */
static uint8_t argument_of(uint8_t reg)
{
	static const uint8_t registers[] = { INSN_RDI, INSN_RSI, INSN_RDX, INSN_RCX };

	for (uint8_t i = 0; i < sizeof(registers); i++)
		if (registers[i] == reg)
			return i;
	return UINT8_MAX;
}

/* An address relative to the instruction, or a number, that goes to a register. */
static void take_constant(const struct insn *insn, uint64_t next, struct native_insn *native)
{
	uint8_t reg;

	if (insn->kind == INSN_LEA && insn->is_relative) {
		reg = insn->reg;
		native->target = next + (uint64_t)(int64_t)insn->disp;
	} else if (insn->kind == INSN_STORE_IMM && !insn->has_mem) {
		reg = insn->base;
		native->target = (uint32_t)insn->imm; /* programs at fixed addresses */
	} else {
		return;
	}
	native->argument = argument_of(reg);
	if (native->argument != UINT8_MAX)
		native->kind = NATIVE_SET;
}

/* The address in an operand; 0: none. Programs at fixed addresses have them as numbers. */
static uint64_t reference_of(const struct insn *insn, uint64_t next)
{
	if (insn->is_relative)
		return next + (uint64_t)(int64_t)insn->disp;
	if (insn->has_mem && insn->disp > ADDRESS_MIN)
		return (uint64_t)insn->disp;
	if ((insn->kind == INSN_STORE_IMM || insn->kind == INSN_ALU_IMM) && insn->size >= 4 &&
	    insn->imm > ADDRESS_MIN)
		return (uint64_t)insn->imm;
	return 0;
}

bool native_decode(struct native_decoder *decoder, const uint8_t *code, size_t len,
		   uint64_t address, struct native_insn *ret_insn)
{
	struct insn insn;
	struct native_insn native = { 0 };
	uint64_t next;

	(void)decoder;
	if (!insn_decode(code, len, &insn))
		return false;
	next = address + insn.len;
	native.len = insn.len;
	native.operation = insn.operation;
	native.target = next + (uint64_t)(int64_t)insn.imm;
	native.reference = reference_of(&insn, next);
	switch (insn.kind) {
	case INSN_CALL:
		native.kind = NATIVE_CALL;
		break;
	case INSN_JUMP:
		native.kind = NATIVE_JUMP;
		break;
	case INSN_BRANCH:
		native.kind = NATIVE_BRANCH;
		break;
	case INSN_JUMP_MEM:
		native.kind = NATIVE_INDIRECT;
		break;
	default:
		native.target = 0;
		take_constant(&insn, next, &native);
	}
	if (code[0] == 0xc3 || (code[0] == 0xf3 && len > 1 && code[1] == 0xc3))
		native.kind = NATIVE_INDIRECT;
	*ret_insn = native;
	return true;
}
