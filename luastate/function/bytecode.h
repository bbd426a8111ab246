/* SPDX-License-Identifier: MIT */
/*
 * Private to luastate: what does a bytecode instruction do, as far as names and traces need it?
 *
 *   31      24 23      16 15       8 7        0
 *   |   B    |     C     |    A     |   op    |
 *   |        D           |    A     |   op    |
 *
 * Source: LuaJIT v2.1 src/lj_bc.h. Opcodes up to JMP are the same since 2.1.0-beta3. Since
 * a2ce8114, the bit operators follow them. Any other opcode may do anything.
 */
#ifndef LUASTATE_FUNCTION_BYTECODE_H
#define LUASTATE_FUNCTION_BYTECODE_H

#include "luastate/layout/layout.h"

enum {
	BC_ISNEV = 5, /* the last comparison of two values */
	BC_ISTC = 12,
	BC_ISFC = 13,
	BC_IST = 14,
	BC_ISF = 15,
	BC_ISTYPE = 16, /* tests and comparisons have lower numbers */
	BC_MOV = 18,
	BC_UNM = 20,
	BC_CAT = 38,
	BC_KSTR = 39,
	BC_KSHORT = 41,
	BC_KPRI = 43,
	BC_KNIL = 44,
	BC_UGET = 45,
	BC_USETV = 46,
	BC_UCLO = 50,
	BC_FNEW = 51,
	BC_TNEW = 52,
	BC_TDUP = 53,
	BC_GGET = 54,
	BC_GSET = 55,
	BC_TGETV = 56,
	BC_TGETS = 57,
	BC_TGETB = 58,
	BC_TGETR = 59,
	BC_TSETV = 60,
	BC_TSETS = 61,
	BC_TSETB = 62,
	BC_TSETM = 63,
	BC_TSETR = 64,
	BC_CALLM = 65,
	BC_CALL = 66,
	BC_CALLMT = 67,
	BC_CALLT = 68,
	BC_ITERC = 69,
	BC_ITERN = 70,
	BC_VARG = 71,
	BC_ISNEXT = 72,
	BC_RETM = 73,
	BC_RET = 74,
	BC_RET0 = 75,
	BC_RET1 = 76,
	BC_FORI = 77,
	BC_JFORI = 78,
	BC_FORL = 79,
	BC_IFORL = 80,
	BC_JFORL = 81,
	BC_ITERL = 82,
	BC_IITERL = 83,
	BC_JITERL = 84,
	BC_LOOP = 85,
	BC_ILOOP = 86,
	BC_JLOOP = 87,
	BC_JMP = 88,
	BC_BNOT = 89,
	BC_BSAR = 95, /* the last of the bit operators */

	/* Jump distances are relative to this bias. */
	BCBIAS_J = 0x8000,
	/* Operand D is the index of a constant. */
	BC_CONSTANTS_MAX = 1 << 16,
};

static inline uint32_t bc_op(uint32_t ins)
{
	return ins & 0xff;
}

static inline uint32_t bc_a(uint32_t ins)
{
	return ins >> 8 & 0xff;
}

static inline uint32_t bc_b(uint32_t ins)
{
	return ins >> 24;
}

static inline uint32_t bc_c(uint32_t ins)
{
	return ins >> 16 & 0xff;
}

static inline uint32_t bc_d(uint32_t ins)
{
	return ins >> 16;
}

/** Whether the numbers above are valid for the result of state_instruction(). The number of
 * opcodes shows this for known builds, and the build's own table of opcodes for others. If they
 * are not valid, no instruction is understood. */
static inline bool bc_is_known(const struct luastate_layout *layout)
{
	return layout->has_opcodes || layout->BC_FUNCF == 89 || layout->BC_FUNCF == 96;
}

/** Whether the effect of the instruction is known. */
static inline bool bc_is_understood(uint32_t op)
{
	return op <= BC_BSAR;
}

/** Whether operand A is a slot that the instruction writes. */
static inline bool bc_writes_slot(uint32_t op)
{
	return op == BC_ISTC || op == BC_ISFC || (op >= BC_MOV && op <= BC_KPRI) || op == BC_UGET ||
	       (op >= BC_FNEW && op <= BC_GGET) || (op >= BC_TGETV && op <= BC_TGETR) ||
	       (op >= BC_BNOT && op <= BC_BSAR);
}

/** Whether operand A is the first of several slots that the instruction may write. */
static inline bool bc_writes_from(uint32_t op)
{
	return op == BC_KNIL || op == BC_TSETM || (op >= BC_CALLM && op <= BC_RETM) ||
	       (op >= BC_FORI && op <= BC_JITERL);
}

/** Whether the instruction may write a slot. */
static inline bool bc_writes(uint32_t ins, uint32_t slot)
{
	uint32_t op = bc_op(ins), a = bc_a(ins);

	if (!bc_is_understood(op))
		return true;
	if (op == BC_KNIL)
		return slot >= a && slot <= bc_d(ins);
	if (op == BC_CAT && slot >= bc_b(ins) && slot <= bc_c(ins))
		return true;
	return bc_writes_from(op) ? slot >= a : bc_writes_slot(op) && slot == a;
}

/** Whether the instruction may jump to operand D, backwards or forwards. An instruction that is
 * not understood is no other kind of jump. */
static inline bool bc_may_jump(uint32_t op)
{
	return op == BC_JMP || op == BC_UCLO || op == BC_ISNEXT || op == BC_FORI ||
	       op == BC_JFORI || !bc_is_understood(op);
}

/** Index of the instruction that the jump at @p index leads to. */
static inline int64_t bc_target(uint32_t index, uint32_t ins)
{
	return (int64_t)index + 1 + (int64_t)bc_d(ins) - BCBIAS_J;
}

#endif
