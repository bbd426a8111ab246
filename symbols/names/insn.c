/* SPDX-License-Identifier: MIT */
/* Which instructions are calls, returns and stubs, and which set up a frame pointer? */
#include "symbols/names/insn.h"

#include <string.h>

#if defined(__x86_64__)

/** Longest distance between push rbp and mov rbp, rsp; compilers put one or two other instructions
 *  in between. */
#define APART_MAX 12

/** Length of endbr64; 0: not here. */
static size_t landing_length(const uint8_t *bytes, size_t len)
{
	static const uint8_t landing[] = { 0xf3, 0x0f, 0x1e, 0xfa };

	return len >= sizeof(landing) && memcmp(bytes, landing, sizeof(landing)) == 0
		       ? sizeof(landing)
		       : 0;
}

static int32_t read_int32(const uint8_t *bytes)
{
	int32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

/**
 * Length of "call r/m64" (ff /2) at @p bytes, with @p len bytes available; 0: another instruction.
 * Source: Intel 64 and IA-32 Architectures SDM, volume 2, 2.1.5 (ModR/M, SIB) and CALL.
 */
static size_t indirect_length(const uint8_t *bytes, size_t len)
{
	unsigned mod = bytes[1] >> 6, rm = bytes[1] & 7;
	size_t length = 2;

	if (bytes[0] != 0xff || (bytes[1] >> 3 & 7) != 2)
		return 0;
	if (mod == 3)
		return length;
	if (rm == 4) {
		if (len < 3)
			return 0;
		/* Without a base, four bytes of displacement follow. */
		length += mod == 0 && (bytes[2] & 7) == 5 ? 5 : 1;
	} else if (mod == 0 && rm == 5) {
		length += 4; /* relative to the pc */
	}
	return length + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

bool symbols_code_call(const uint8_t *bytes, uint64_t address, struct symbols_code_call *ret_call)
{
	const uint8_t *end = bytes + SYMBOLS_CODE_CALL_BYTES;

	*ret_call = (struct symbols_code_call){ .is_direct = end[-5] == 0xe8 };
	if (ret_call->is_direct) {
		ret_call->target = address + (uint64_t)(int64_t)read_int32(end - 4);
		return true;
	}
	for (size_t length = 2; length <= 7; length++) {
		if (indirect_length(end - length, length) == length)
			return true;
	}
	return false;
}

bool symbols_code_never_goes_on(const uint8_t *bytes)
{
	const uint8_t *end = bytes + SYMBOLS_CODE_CALL_BYTES;

	return end[-1] == 0xc3 || (end[-2] == 0xff && (end[-1] & 0xf8) == 0xe0);
}

bool symbols_code_begin(const uint8_t *bytes, size_t len, struct symbols_code_begin *ret_begin)
{
	static const uint8_t moves[][3] = { { 0x48, 0x89, 0xe5 }, { 0x48, 0x8b, 0xec } };
	size_t push = 0;

	while (push < len && bytes[push] != 0x55)
		push++;
	for (size_t at = push + 1; at + 3 <= len && at <= push + 1 + APART_MAX; at++) {
		if (memcmp(bytes + at, moves[0], 3) != 0 && memcmp(bytes + at, moves[1], 3) != 0)
			continue;
		*ret_begin = (struct symbols_code_begin){ .saved = push + 1,
							  .ready = at + 3,
							  .caller_sp = 16 };
		return true;
	}
	return false;
}

bool symbols_code_frame_size(const uint8_t *bytes, size_t len, uint64_t *ret_size)
{
	struct symbols_code_begin begin;
	uint64_t size = 0;
	size_t at;

	if (!symbols_code_begin(bytes, len, &begin) || begin.ready != begin.saved + 3 ||
	    begin.saved != 1 + landing_length(bytes, len))
		return false;
	/* push of any register, with or without a prefix */
	for (at = begin.ready; at + 2 <= len; at++) {
		at += bytes[at] == 0x41;
		if ((bytes[at] & 0xf8) != 0x50)
			break;
		size += 8;
	}
	if (at + 7 > len)
		return false;
	/* sub rsp, with an operand of one byte or of four */
	if (bytes[at] == 0x48 && bytes[at + 1] == 0x83 && bytes[at + 2] == 0xec)
		size += bytes[at + 3];
	else if (bytes[at] == 0x48 && bytes[at + 1] == 0x81 && bytes[at + 2] == 0xec)
		size += (uint32_t)read_int32(bytes + at + 3);
	*ret_size = size;
	return true;
}

uint64_t symbols_code_lowers_sp(const uint8_t *bytes, size_t len)
{
	(void)bytes, (void)len;
	return 0;
}

bool symbols_code_is_leaf(const uint8_t *bytes, size_t len)
{
	(void)bytes, (void)len;
	return false; /* a call pushes the return address */
}

bool symbols_code_is_return(const uint8_t *bytes, size_t len)
{
	size_t at = len > 1 && (bytes[0] == 0xf3 || bytes[0] == 0xf2) ? 1 : 0;

	return len > at && (bytes[at] == 0xc3 || bytes[at] == 0xc2);
}

bool symbols_code_stub(const uint8_t *bytes, size_t len, uint64_t address,
		       struct symbols_code_stub *ret_stub)
{
	size_t at = landing_length(bytes, len);

	at += at < len && bytes[at] == 0xf2; /* bnd */
	*ret_stub = (struct symbols_code_stub){ 0 };
	/* jmp [rip + …] */
	if (at + 6 <= len && bytes[at] == 0xff && bytes[at + 1] == 0x25) {
		ret_stub->slot = address + at + 6 + (uint64_t)(int64_t)read_int32(bytes + at + 2);
		return true;
	}
	/* push index, then a jump to the section's first stub */
	if (at + 6 > len || bytes[at] != 0x68 || (bytes[at + 5] != 0xe9 && bytes[at + 5] != 0xf2))
		return false;
	ret_stub->has_index = true;
	ret_stub->index = (uint32_t)read_int32(bytes + at + 1);
	return true;
}

#elif defined(__aarch64__)

static uint32_t read_word(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* Source: Arm Architecture Reference Manual, C6.2 (BL, BLR, BLRA, STP, ADD, RET, RETA, BR). */

bool symbols_code_call(const uint8_t *bytes, uint64_t address, struct symbols_code_call *ret_call)
{
	uint32_t word = read_word(bytes + SYMBOLS_CODE_CALL_BYTES - 4);

	*ret_call = (struct symbols_code_call){ .is_direct = word >> 26 == 0x25 };
	if (ret_call->is_direct) {
		int64_t words = (int32_t)(word << 6) >> 6;

		ret_call->target = address - 4 + (uint64_t)(words * 4);
		return true;
	}
	return (word & 0xfffffc1f) == 0xd63f0000 || (word & 0xfefff800) == 0xd63f0800;
}

/** By how much an instruction lowers sp: sub sp, sp, …; stp or str of any register to [sp, -…]!. */
static uint64_t lowers_sp(uint32_t word)
{
	if ((word & 0xff8003ff) == 0xd10003ff)
		return (uint64_t)(word >> 10 & 0xfff) << (word >> 22 & 1 ? 12 : 0);
	if ((word & 0xffc003e0) == 0xa98003e0 && word >> 21 & 1)
		return 8 * (uint64_t)(128 - (word >> 15 & 0x7f));
	if ((word & 0xffe00fe0) == 0xf8000fe0 && word >> 20 & 1)
		return 512 - (uint64_t)(word >> 12 & 0x1ff);
	return 0;
}

bool symbols_code_never_goes_on(const uint8_t *bytes)
{
	const uint8_t *last = bytes + SYMBOLS_CODE_CALL_BYTES - 4;

	return symbols_code_is_return(last, 4) || (read_word(last) & 0xfffffc1f) == 0xd61f0000;
}

bool symbols_code_begin(const uint8_t *bytes, size_t len, struct symbols_code_begin *ret_begin)
{
	uint64_t lowered = 0, distance = 0;
	size_t saved = 0;

	for (size_t at = 0; at + 4 <= len; at += 4) {
		uint32_t word = read_word(bytes + at);

		lowered += lowers_sp(word);
		/* stp x29, x30, [sp, …], perhaps with a change of sp */
		if (!saved && (word & 0xff407fff) == 0xa9007bfd)
			saved = at + 4;
		/* mov x29, sp or add x29, sp, … */
		if (saved && (word & 0xff8003ff) == 0x910003fd) {
			if (!(word >> 22 & 1) && lowered >= (word >> 10 & 0xfff) + 16)
				distance = lowered - (word >> 10 & 0xfff);
			*ret_begin = (struct symbols_code_begin){ .saved = saved,
								  .ready = at + 4,
								  .caller_sp = distance };
			return true;
		}
	}
	return false;
}

bool symbols_code_frame_size(const uint8_t *bytes, size_t len, uint64_t *ret_size)
{
	struct symbols_code_begin begin;
	uint32_t word;

	if (!symbols_code_begin(bytes, len, &begin) || begin.ready != begin.saved + 4 ||
	    begin.saved > 8)
		return false;
	/* add x29, sp, … without a shift: the operand is the distance */
	word = read_word(bytes + begin.saved);
	*ret_size = word >> 10 & 0xfff;
	return !(word >> 22 & 1);
}

uint64_t symbols_code_lowers_sp(const uint8_t *bytes, size_t len)
{
	uint64_t lowered = 0;

	for (size_t at = 0; at + 4 <= len; at += 4)
		lowered += lowers_sp(read_word(bytes + at));
	return lowered;
}

/**
 * Whether an instruction is a call, or sets sp or x30 as compilers do. Hints that sign and
 * authenticate x30 do not count.
 * Source: Arm Architecture Reference Manual, C4.1.
 */
static bool touches_frame(uint32_t word)
{
	unsigned first = word & 31, second = word >> 10 & 31, address = word >> 5 & 31;
	bool pair = (word & 0x3a000000) == 0x28000000;

	if ((word & 0x1c000000) == 0x14000000) /* branches, system */
		return word >> 26 == 0x25 || (word & 0xfe3f0000) == 0xd63f0000;
	if ((word & 0x0a000000) == 0x08000000) {
		bool moves =
			pair ? word >> 23 & 1 : (word & 0x3b200000) == 0x38000000 && word >> 10 & 1;

		return first == 30 || (pair && second == 30) || (address == 31 && moves);
	}
	if ((word & 0x1c000000) == 0x10000000 || (word & 0x1fe00000) == 0x0b200000)
		return first == 30 || (first == 31 && !(word >> 29 & 1)); /* neither cmp nor tst */
	return first == 30;
}

bool symbols_code_is_leaf(const uint8_t *bytes, size_t len)
{
	for (size_t at = 0; at + 4 <= len; at += 4)
		if (touches_frame(read_word(bytes + at)))
			return false;
	return len >= 4;
}

bool symbols_code_is_return(const uint8_t *bytes, size_t len)
{
	uint32_t word = len >= 4 ? read_word(bytes) : 0;

	return word == 0xd65f03c0 || word == 0xd65f0bff || word == 0xd65f0fff;
}

bool symbols_code_stub(const uint8_t *bytes, size_t len, uint64_t address,
		       struct symbols_code_stub *ret_stub)
{
	*ret_stub = (struct symbols_code_stub){ 0 };
	/* adrp x16, page; ldr x17, [x16, offset]; add x16, …; br x17; perhaps after bti c */
	for (size_t at = 0; at + 16 <= len && at <= 4; at += 4) {
		uint32_t page = read_word(bytes + at), load = read_word(bytes + at + 4);
		uint64_t pages;

		if ((page & 0x9f00001f) != 0x90000010 || (load & 0xffc003ff) != 0xf9400211 ||
		    read_word(bytes + at + 12) != 0xd61f0220)
			continue;
		pages = (uint64_t)((page >> 5 & 0x7ffff) << 2 | (page >> 29 & 3));
		if (pages & 1 << 20)
			pages |= UINT64_MAX << 21;
		ret_stub->slot = ((address + at) & ~(uint64_t)4095) + pages * 4096 +
				 (load >> 10 & 0xfff) * 8;
		return true;
	}
	return false;
}

#endif
