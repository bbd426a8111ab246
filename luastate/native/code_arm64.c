/* SPDX-License-Identifier: MIT */
/* Which AArch64 instructions call, jump, and set arguments?
 *
 * Source: Arm Architecture Reference Manual for A-profile, C4.1 (encodings).
 */
#include <string.h>

#include "luastate/native/native.h"

enum {
	INSN_BYTES = 4,
	ARGUMENTS = 4,	      /* x0 to x3 */
	CHANGED_BY_CALL = 19, /* x0 to x18 */
};

/* A signed field of an instruction. */
static int64_t field(uint32_t insn, unsigned low, unsigned bits)
{
	return (int64_t)((uint64_t)insn << (64 - low - bits)) >> (64 - bits);
}

/* The bits that say what an instruction does, without registers, immediates and distances. */
static uint32_t operation_bits(uint32_t insn)
{
	uint32_t group = insn >> 25 & 15;

	if ((insn & 0x7c000000) == 0x14000000) /* b, bl */
		return insn & 0xfc000000;
	if ((insn & 0xfe000000) == 0x54000000) /* b.cond */
		return insn & 0xff00001f;
	if ((insn & 0x7c000000) == 0x34000000) /* cbz, cbnz, tbz, tbnz */
		return insn & 0x7f000000;
	if (group == 10 || group == 11) /* other branches and system instructions */
		return insn & 0xfffffc00;
	if (group == 8 || group == 9) {		       /* immediates */
		if ((insn & 0x1f000000) == 0x10000000) /* adr, adrp */
			return insn & 0x9f000000;
		return insn & 0xff800000;
	}
	if ((group & 5) == 4) /* loads and stores */
		return (insn & 0x3b000000) == 0x38000000 ? insn & 0xffe00c00 : insn & 0xffc00000;
	return insn & 0xffe0fc00; /* registers, floating point and vectors */
}

static uint16_t operation_of(uint32_t insn)
{
	if ((insn & 0xfffff01f) == 0xd503201f) /* nop and landing pads */
		return 0;
	return (uint16_t)(operation_bits(insn) * 0x9e3779b1u >> 16) | 1;
}

/* An address that is made of a page and offsets. */
static void take_address(struct native_decoder *decoder, uint32_t insn, uint64_t address,
			 struct native_insn *native)
{
	unsigned to = insn & 31, from = insn >> 5 & 31;
	uint64_t page = decoder->pages[from], value = 0;

	decoder->pages[to] = 0;
	if ((insn & 0x3a400000) == 0x28400000) /* ldp has a second register */
		decoder->pages[insn >> 10 & 31] = 0;
	if ((insn & 0x3a800000) == 0x28800000 || (insn & 0x3b200400) == 0x38000400)
		decoder->pages[from] = 0;	 /* the address is written back */
	if ((insn & 0x9f000000) == 0x90000000) { /* adrp */
		int64_t pages = (int64_t)((uint64_t)field(insn, 5, 19) << 2 | (insn >> 29 & 3));

		decoder->pages[to] = (address & ~(uint64_t)0xfff) + ((uint64_t)pages << 12);
		return;
	}
	if ((insn & 0x9f000000) == 0x10000000) /* adr */
		value = address + ((uint64_t)field(insn, 5, 19) << 2 | (insn >> 29 & 3));
	else if ((insn & 0xffc00000) == 0x91000000 && page) /* add */
		value = page + (insn >> 10 & 0xfff);
	else if ((insn & 0xffc00000) == 0xf9400000 && page) /* ldr */
		native->reference = page + 8 * (uint64_t)(insn >> 10 & 0xfff);
	if (!value)
		return;
	decoder->pages[to] = value; /* another offset may follow */
	native->reference = value;
	if (to < ARGUMENTS) {
		native->kind = NATIVE_SET;
		native->argument = (uint8_t)to;
		native->target = value;
	}
}

bool native_decode(struct native_decoder *decoder, const uint8_t *code, size_t len,
		   uint64_t address, struct native_insn *ret_insn)
{
	struct native_insn native = { .len = INSN_BYTES };
	uint32_t insn;

	if (len < INSN_BYTES)
		return false;
	memcpy(&insn, code, sizeof(insn));
	native.operation = operation_of(insn);
	if ((insn & 0x7c000000) == 0x14000000) {
		native.kind = insn >> 31 ? NATIVE_CALL : NATIVE_JUMP;
		native.target = address + 4 * (uint64_t)field(insn, 0, 26);
	} else if ((insn & 0xfe000000) == 0x54000000 || (insn & 0x7e000000) == 0x34000000) {
		native.kind = NATIVE_BRANCH;
		native.target = address + 4 * (uint64_t)field(insn, 5, 19);
	} else if ((insn & 0x7e000000) == 0x36000000) {
		native.kind = NATIVE_BRANCH;
		native.target = address + 4 * (uint64_t)field(insn, 5, 14);
	} else if ((insn & 0xff9f0000) == 0xd61f0000 && (insn >> 21 & 3) != 1) {
		native.kind = NATIVE_INDIRECT; /* br, ret */
	} else {
		take_address(decoder, insn, address, &native);
	}
	if (native.kind == NATIVE_CALL || (insn & 0xfffffc1f) == 0xd63f0000)
		memset(decoder->pages, 0, CHANGED_BY_CALL * sizeof(decoder->pages[0]));
	*ret_insn = native;
	return true;
}
