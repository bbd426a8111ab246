/* SPDX-License-Identifier: MIT */
/* How are x86-64 instructions decoded? All give their length; those that may show offsets also give
 * their operands. */
#include "luastate/arch/insn_x64.h"

#include <string.h>

/** The decoder's position in an instruction. */
struct cursor {
	const uint8_t *code;
	size_t len, at;
	bool wide, narrow; /* REX.W, 66 */
	uint8_t repeat;	   /* F2 or F3; 0: neither */
	uint8_t rex;
};

/* What follows an opcode. */
enum {
	NOTHING = 0,
	MODRM = 1,
	IMM8 = 2,
	IMM32 = 4, /* 16 bits with prefix 66 */
	BAD = 8,
};

static bool take(struct cursor *cursor, size_t size, int32_t *ret_value)
{
	int32_t value = 0;

	if (cursor->len - cursor->at < size)
		return false;
	memcpy(&value, cursor->code + cursor->at, size);
	cursor->at += size;
	*ret_value = size == 1 ? (int8_t)value : size == 2 ? (int16_t)value : value;
	return true;
}

static bool take_byte(struct cursor *cursor, uint8_t *ret_byte)
{
	if (cursor->at >= cursor->len)
		return false;
	*ret_byte = cursor->code[cursor->at++];
	return true;
}

static bool take_prefixes(struct cursor *cursor, uint8_t *ret_opcode)
{
	uint8_t byte = 0;

	while (take_byte(cursor, &byte)) {
		if (byte == 0x66)
			cursor->narrow = true;
		else if (byte == 0xf2 || byte == 0xf3)
			cursor->repeat = byte;
		else if (byte != 0x2e && byte != 0x3e && byte != 0x64 && byte != 0x65)
			break;
	}
	if ((byte & 0xf0) == 0x40) {
		cursor->rex = byte;
		cursor->wide = byte & 8;
		if (!take_byte(cursor, &byte))
			return false;
	}
	*ret_opcode = byte;
	return cursor->at > 0;
}

/* ModRM, SIB and displacement. */
static bool take_operand(struct cursor *cursor, struct insn *insn)
{
	uint8_t modrm, sib, mode;
	bool absolute;

	if (!take_byte(cursor, &modrm))
		return false;
	mode = modrm >> 6;
	insn->reg = (uint8_t)((modrm >> 3 & 7) | (cursor->rex & 4) << 1);
	insn->base = (uint8_t)((modrm & 7) | (cursor->rex & 1) << 3);
	insn->has_mem = mode != 3;
	if (mode == 3)
		return true;
	absolute = mode == 0 && (modrm & 7) == 5; /* relative to the instruction's end */
	if ((modrm & 7) == 4) {
		if (!take_byte(cursor, &sib))
			return false;
		insn->base = (uint8_t)((sib & 7) | (cursor->rex & 1) << 3);
		insn->index = (uint8_t)((sib >> 3 & 7) | (cursor->rex & 2) << 2);
		insn->scale = (uint8_t)(1 << (sib >> 6));
		if (insn->index == INSN_RSP)
			insn->index = INSN_NO_REG;
		absolute = mode == 0 && (sib & 7) == 5;
	}
	insn->is_relative = absolute && (modrm & 7) == 5;
	if (absolute)
		insn->base = INSN_NO_REG;
	if (absolute || mode == 2)
		return take(cursor, 4, &insn->disp);
	return mode != 1 || take(cursor, 1, &insn->disp);
}

/* What follows a one-byte opcode. */
static unsigned form_of(uint8_t opcode)
{
	if (opcode < 0x40) {
		static const uint8_t forms[8] = {
			MODRM, MODRM, MODRM, MODRM, IMM8, IMM32, BAD, BAD
		};

		return forms[opcode & 7];
	}
	if ((opcode & 0xf0) == 0x70 || opcode == 0x6a || opcode == 0xa8 || opcode == 0xeb ||
	    (opcode & 0xf8) == 0xb0)
		return IMM8;
	if (opcode == 0x68 || opcode == 0xa9 || opcode == 0xe8 || opcode == 0xe9 ||
	    (opcode & 0xf8) == 0xb8)
		return IMM32;
	if (opcode == 0x69 || opcode == 0x81 || opcode == 0xc7)
		return MODRM | IMM32;
	if (opcode == 0x6b || opcode == 0x80 || opcode == 0x83 || opcode == 0xc0 ||
	    opcode == 0xc1 || opcode == 0xc6)
		return MODRM | IMM8;
	if (opcode == 0x63 || (opcode >= 0x84 && opcode <= 0x8f) || (opcode & 0xf8) == 0xd8 ||
	    (opcode & 0xfc) == 0xd0 || opcode == 0xf6 || opcode == 0xf7 || opcode >= 0xfe)
		return MODRM;
	if ((opcode & 0xf0) == 0x50 || (opcode & 0xf0) == 0x90 || (opcode & 0xf6) == 0xa4 ||
	    (opcode >= 0xaa && opcode <= 0xaf) || opcode == 0xc3 || opcode == 0xc9 ||
	    opcode == 0xcc || opcode == 0xf4)
		return NOTHING;
	return BAD;
}

/* What follows an opcode after 0F. */
static unsigned form_of_second(uint8_t opcode)
{
	if ((opcode & 0xf0) == 0x80)
		return IMM32;
	if (opcode == 0x05 || opcode == 0x0b || opcode == 0x31 || opcode == 0x77 ||
	    opcode == 0xa2 || (opcode & 0xf8) == 0xc8)
		return NOTHING;
	if ((opcode >= 0x70 && opcode <= 0x73) || opcode == 0xa4 || opcode == 0xac ||
	    opcode == 0xba || opcode == 0xc2 || (opcode >= 0xc4 && opcode <= 0xc6))
		return MODRM | IMM8;
	if ((opcode >= 0x10 && opcode < 0x30) || (opcode >= 0x40 && opcode < 0x80) ||
	    (opcode & 0xf0) == 0x90 || opcode >= 0xa3 || opcode == 0x0d)
		return MODRM;
	return BAD;
}

/* Name the operation of opcodes 80, 81, 83, C0, C1, C6, C7, F6, F7, FE, FF and D0 to D3, where the
 * register field extends the opcode. */
static void name_group(struct insn *insn, uint8_t opcode)
{
	uint8_t which = insn->reg & 7;

	insn->reg = INSN_NO_REG;
	insn->op = which;
	if (opcode == 0x80 || opcode == 0x81 || opcode == 0x83)
		insn->kind = INSN_ALU_IMM;
	else if ((opcode == 0xc6 || opcode == 0xc7) && which == 0)
		insn->kind = INSN_STORE_IMM;
	else if (opcode == 0xf6 || opcode == 0xf7)
		insn->kind = which <= 1 ? INSN_TEST_IMM : which == 3 ? INSN_NEG : INSN_OTHER;
	else if (opcode >= 0xfe && which <= 1)
		insn->kind = which == 0 ? INSN_INC : INSN_DEC;
	else if (opcode == 0xff && (which == 2 || which == 4))
		insn->kind = which == 2 ? INSN_CALL_MEM : INSN_JUMP_MEM;
	else if (opcode == 0xc1 && which == 7)
		insn->kind = INSN_SAR;
}

static bool is_group(uint8_t opcode)
{
	return opcode == 0x80 || opcode == 0x81 || opcode == 0x83 || opcode == 0xc0 ||
	       opcode == 0xc1 || opcode == 0xc6 || opcode == 0xc7 || (opcode & 0xfc) == 0xd0 ||
	       opcode == 0xf6 || opcode == 0xf7 || opcode >= 0xfe;
}

static void name_kind(struct insn *insn, uint8_t opcode)
{
	if (is_group(opcode)) {
		name_group(insn, opcode);
	} else if (opcode < 0x40 && (opcode & 7) < 4) {
		insn->op = opcode >> 3;
		insn->kind = opcode & 2 ? INSN_ALU_LOAD : INSN_ALU_STORE;
	} else if (opcode == 0x88 || opcode == 0x89) {
		insn->kind = INSN_STORE;
	} else if (opcode == 0x8a || opcode == 0x8b) {
		insn->kind = INSN_LOAD;
	} else if (opcode == 0x8d) {
		insn->kind = INSN_LEA;
	} else if (opcode == 0x69 || opcode == 0x6b) {
		insn->kind = INSN_IMUL_IMM;
	} else if (opcode == 0xe8) {
		insn->kind = INSN_CALL;
	} else if (opcode == 0xe9 || opcode == 0xeb) {
		insn->kind = INSN_JUMP;
	} else if ((opcode & 0xf0) == 0x70) {
		insn->kind = INSN_BRANCH;
		insn->op = opcode & 15;
	}
}

static void name_second(struct insn *insn, uint8_t opcode)
{
	if (opcode == 0xb6 || opcode == 0xb7) {
		insn->kind = INSN_EXTEND;
		insn->size = opcode == 0xb6 ? 1 : 2;
	} else if (opcode == 0x2a) {
		insn->kind = INSN_TO_FLOAT;
	} else if ((opcode & 0xf0) == 0x80) {
		insn->kind = INSN_BRANCH;
		insn->op = opcode & 15;
	}
}

/* Whether operands have one byte: the even opcodes among those that exist in both sizes. */
static bool is_byte_sized(uint8_t opcode)
{
	return (opcode < 0x40 && !(opcode & 1)) || opcode == 0x80 || opcode == 0x84 ||
	       opcode == 0x88 || opcode == 0x8a || opcode == 0xc6 || opcode == 0xf6 ||
	       opcode == 0xfe;
}

/* ---- Operations ------------------------------------------------------------------------- */

/* Operations of one-byte opcodes that several opcodes share. Others are the opcode itself; no
 * shared opcode is among the rest. */
enum {
	OPERATION_ALU = 0x01,	 /* and the seven after it */
	OPERATION_BRANCH = 0x10, /* and the conditions */
	OPERATION_SHIFT = 0x20,	 /* and the seven after it */
	OPERATION_GROUP = 0x28,	 /* not, neg, mul, div, inc, dec and jumps through memory */
	OPERATION_MOVE = 0x38,
	OPERATION_LOAD,
	OPERATION_STORE,
	OPERATION_TEST,
	OPERATION_PUSH,
	OPERATION_POP,
	OPERATION_MULTIPLY,
	OPERATION_JUMP,
	OPERATION_SECOND = 0x100, /* opcodes behind 0F, by their mandatory prefixes */
	OPERATION_THIRD = 0x1000, /* opcodes behind 0F 38 and 0F 3A */
	OPERATION_VEX = 0x4000,
};

static uint16_t move_of(const struct insn *insn, bool is_load)
{
	return insn->has_mem ? is_load ? OPERATION_LOAD : OPERATION_STORE : OPERATION_MOVE;
}

static uint16_t operation_of(const struct insn *insn, uint8_t opcode, uint8_t group)
{
	if (opcode < 0x40)
		return (uint16_t)(OPERATION_ALU + (opcode >> 3));
	if (opcode == 0x80 || opcode == 0x81 || opcode == 0x83)
		return (uint16_t)(OPERATION_ALU + group);
	if ((opcode & 0xf0) == 0x70)
		return (uint16_t)(OPERATION_BRANCH + (opcode & 15));
	if (opcode == 0xc0 || opcode == 0xc1 || (opcode & 0xfc) == 0xd0)
		return (uint16_t)(OPERATION_SHIFT + group);
	if (opcode == 0x84 || opcode == 0x85 || opcode == 0xa8 || opcode == 0xa9 ||
	    insn->kind == INSN_TEST_IMM)
		return OPERATION_TEST;
	if (opcode == 0xf6 || opcode == 0xf7 || opcode >= 0xfe)
		return (uint16_t)(OPERATION_GROUP + group + (opcode >= 0xfe ? 8 : 0));
	if (opcode >= 0x88 && opcode <= 0x8b)
		return move_of(insn, opcode & 2);
	if ((opcode & 0xf0) == 0xb0 || opcode == 0xc6 || opcode == 0xc7)
		return move_of(insn, false);
	if ((opcode & 0xf8) == 0x50 || opcode == 0x68 || opcode == 0x6a)
		return OPERATION_PUSH;
	if ((opcode & 0xf8) == 0x58)
		return OPERATION_POP;
	if (opcode == 0x69 || opcode == 0x6b)
		return OPERATION_MULTIPLY;
	if (opcode == 0xe9 || opcode == 0xeb)
		return OPERATION_JUMP;
	return opcode == 0x90 ? INSN_NO_OPERATION : opcode;
}

static uint16_t operation_of_second(const struct cursor *cursor, uint8_t opcode)
{
	uint16_t prefix = cursor->repeat ? cursor->repeat == 0xf2 ? 3 : 2 : cursor->narrow;

	if ((opcode & 0xf0) == 0x80)
		return (uint16_t)(OPERATION_BRANCH + (opcode & 15));
	if (opcode == 0xaf)
		return OPERATION_MULTIPLY;
	if ((opcode & 0xf8) == 0xc8)
		opcode = 0xc8;
	/* Long forms of nop, and landing pads. */
	if (opcode >= 0x18 && opcode <= 0x1f)
		return INSN_NO_OPERATION;
	if ((opcode & 0xf0) == 0x40 || (opcode >= 0xa0 && opcode < 0xd0))
		prefix = 0; /* an operand's width */
	return (uint16_t)(OPERATION_SECOND + 0x100 * prefix + opcode);
}

/* ---- The rest of an instruction --------------------------------------------------------- */

/* AVX and BMI, prefixes C4 and C5: lengths only. */
static bool decode_vex(struct cursor *cursor, uint8_t opcode, struct insn *insn)
{
	uint8_t byte = 0, map = 1;
	int32_t unused;

	if (!take_byte(cursor, &byte))
		return false;
	if (opcode == 0xc4) {
		map = byte & 31;
		if (!take_byte(cursor, &byte))
			return false;
	}
	if (!take_byte(cursor, &byte) || !take_operand(cursor, insn))
		return false;
	insn->kind = INSN_OTHER;
	insn->operation = (uint16_t)(OPERATION_VEX + 0x100 * map + byte);
	return (map != 3 && !(map == 1 && form_of_second(byte) & IMM8)) || take(cursor, 1, &unused);
}

static bool decode_rest(struct cursor *cursor, uint8_t opcode, struct insn *insn)
{
	unsigned form = form_of(opcode);
	bool second = opcode == 0x0f;
	uint8_t third = 0, group;

	if (second) {
		if (!take_byte(cursor, &opcode))
			return false;
		form = form_of_second(opcode);
		if (opcode == 0x38 || opcode == 0x3a) {
			form = opcode == 0x38 ? MODRM : MODRM | IMM8;
			if (!take_byte(cursor, &third))
				return false;
		}
	}
	if (form == BAD || (form & MODRM && !take_operand(cursor, insn)))
		return false;
	group = insn->reg & 7;
	if (second)
		name_second(insn, opcode);
	else
		name_kind(insn, opcode);
	insn->operation = !second ? operation_of(insn, opcode, group)
			  : opcode == 0x38 || opcode == 0x3a
				  ? (uint16_t)(OPERATION_THIRD + 0x100 * (opcode & 2) + third)
				  : operation_of_second(cursor, opcode);
	if (insn->kind == INSN_TEST_IMM)
		form |= opcode == 0xf6 ? IMM8 : IMM32;
	if (!second && is_byte_sized(opcode))
		insn->size = 1;
	if (form & IMM8)
		return take(cursor, 1, &insn->imm);
	if (!(form & IMM32))
		return true;
	if (!second && (opcode & 0xf8) == 0xb8) {
		insn->kind = INSN_STORE_IMM;
		insn->base = (uint8_t)((opcode & 7) | (cursor->rex & 1) << 3);
		if (cursor->wide)
			return take(cursor, 4, &insn->imm) && take(cursor, 4, &insn->disp);
	}
	return take(cursor, cursor->narrow && insn->kind != INSN_CALL ? 2 : 4, &insn->imm);
}

bool insn_decode(const uint8_t *code, size_t len, struct insn *ret_insn)
{
	struct cursor cursor = { .code = code, .len = len < 15 ? len : 15 };
	struct insn insn = { .reg = INSN_NO_REG, .base = INSN_NO_REG, .index = INSN_NO_REG };
	uint8_t opcode;

	if (!take_prefixes(&cursor, &opcode))
		return false;
	insn.size = cursor.wide ? 8 : cursor.narrow ? 2 : 4;
	if (opcode == 0xc4 || opcode == 0xc5) {
		if (!decode_vex(&cursor, opcode, &insn))
			return false;
	} else if (!decode_rest(&cursor, opcode, &insn)) {
		return false;
	}
	insn.len = (uint8_t)cursor.at;
	*ret_insn = insn;
	return true;
}
