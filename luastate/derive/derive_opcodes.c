/* SPDX-License-Identifier: MIT */
/* Which numbers do a build's opcodes have?
 *
 * LuaJIT's read-only data has a table of the operands of each opcode: one word per opcode, then
 * zeros for the built-ins. New builds add opcodes, but known ones keep their order, so the operands
 * show which opcodes are new. If a new opcode has the same operands as its neighbours, all of them
 * are unknown.
 *
 * Source: LuaJIT v2.1 src/lj_bc.h (BCDEF, BCMode, BCMODE), lj_bc.c (lj_bc_mode).
 */
#include "luastate/derive/derive.h"

#include <stdlib.h>

enum {
	/* Opcodes before FUNCF that have the same numbers in all builds of layouts.table. */
	NAMED = 89,
	/* The same with the bit operators, which builds since a2ce8114 have behind JMP. */
	NAMED_MORE = 96,
	/* The first opcodes, comparisons, are the same in all builds. They identify the table. */
	FIRST = 12,
	/* The upper bits name a metamethod, whose number depends on the build's options. */
	OPERANDS = 0x7ff,
	PIECE = 1 << 16,
	FILE_MAX = 1 << 28,
};

/* Operands A, B and C or D of the opcodes ISLT to BSAR, three letters each: none (-), dst, base,
 * var, rbase, uv, lit, lits (s), pri, num, str (t), tab (T), func, jump and cdata. */
/* clang-format off */
static const char operands[] =
	/* ISLT */   "v-v" "v-v" "v-v" "v-v" "v-v" "v-v" "v-t" "v-t" "v-n"
	             "v-n" "v-p" "v-p"
	/* ISTC */   "d-v" "d-v" "--v" "--v" "v-l" "v-l"
	/* MOV */    "d-v" "d-v" "d-v" "d-v"
	/* ADDVN */  "dvn" "dvn" "dvn" "dvn" "dvn" "dvn" "dvn" "dvn" "dvn"
	             "dvn"
	/* ADDVV */  "dvv" "dvv" "dvv" "dvv" "dvv" "dvv" "drr"
	/* KSTR */   "d-t" "d-c" "d-s" "d-n" "d-p" "b-b"
	/* UGET */   "d-u" "u-v" "u-t" "u-n" "u-p" "r-j" "d-f"
	/* TNEW */   "d-l" "d-T" "d-t" "v-t" "dvv" "dvt" "dvl" "dvv"
	/* TSETV */  "vvv" "vvt" "vvl" "b-n" "vvv"
	/* CALLM */  "bll" "bll" "b-l" "b-l" "bll" "bll" "bll" "b-j"
	/* RETM */   "b-l" "r-l" "r-l" "r-l"
	/* FORI */   "b-j" "b-j" "b-j" "b-j" "b-l" "b-j" "b-j" "b-l"
	/* LOOP */   "r-j" "r-j" "r-l" "r-j"
	/* BNOT */   "d-v" "dvv" "dvv" "dvv" "dvv" "dvv" "dvv";
/* clang-format on */

/* The BCM* number of a letter. */
static uint32_t mode_of(char letter)
{
	static const char letters[] = "-dbvrulspntTfjc";

	return (uint32_t)(strchr(letters, letter) - letters);
}

/* The operands of a known opcode, encoded as in the table. */
static uint32_t known_operands(size_t op)
{
	const char *letters = operands + 3 * op;

	return mode_of(letters[0]) | mode_of(letters[1]) << 3 | mode_of(letters[2]) << 7;
}

bool derive_is_operands(const uint16_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (i >= NAMED_MORE || (words[i] & OPERANDS) != known_operands(i))
			return false;
	return true;
}

/* ---- The table -------------------------------------------------------------------------- */

static bool is_table(const uint16_t *words, size_t max, size_t fast)
{
	for (size_t i = 0; i < FIRST; i++)
		if ((words[i] & OPERANDS) != known_operands(i))
			return false;
	for (size_t i = FIRST; i < max; i++)
		if (words[i] == 0)
			return false;
	for (size_t i = max; i < max + fast; i++)
		if (words[i] != 0)
			return false;
	return true;
}

/* Find the table in the file's mapping. @param ret_words The words of all opcodes. */
static bool find_table(const struct state_interpreter *interpreter,
		       const struct attach_reader *reader, const struct luastate_layout *layout,
		       uint16_t ret_words[STATE_OPCODES_MAX])
{
	size_t max = (size_t)layout->BC__MAX, fast = (size_t)layout->GG_NUM_ASMFF;
	size_t bytes = sizeof(uint16_t) * (max + fast), kept = 0;
	uint8_t *piece = malloc(2 * PIECE);
	bool found = false;
	uint64_t end = interpreter->data_end;

	if (end - interpreter->data_start > FILE_MAX)
		end = interpreter->data_start + FILE_MAX;
	/* The table may cross from one piece to the next, so the end of a piece is kept. An
	 * unreadable piece discards the kept bytes. */
	for (uint64_t at = interpreter->data_start; piece && at < end && !found; at += PIECE) {
		size_t len = end - at < PIECE ? (size_t)(end - at) : PIECE, whole = kept + len;
		struct failure why;

		if (state_read(reader, at, piece + kept, len, &why) != 0) {
			kept = 0;
			continue;
		}
		for (size_t i = 0; i + bytes <= whole && !found; i += sizeof(uint16_t)) {
			const uint16_t *words = (const uint16_t *)(const void *)(piece + i);

			found = (words[0] & OPERANDS) == known_operands(0) &&
				is_table(words, max, fast);
			if (found)
				memcpy(ret_words, words, sizeof(uint16_t) * max);
		}
		kept = whole < bytes ? whole : bytes;
		memmove(piece, piece + whole - kept, kept);
	}
	free(piece);
	return found;
}

/* ---- Alignment -------------------------------------------------------------------------- */

/** Number of ways to match opcodes from index i on with known opcodes from index k on. */
struct ways {
	double count[STATE_OPCODES_MAX + 1][NAMED_MORE + 1];
};

static bool is_like(const uint16_t *words, size_t op, size_t known)
{
	return (words[op] & OPERANDS) == known_operands(known);
}

/* Count the ways from the end to the beginning. Each known opcode must occur, in order; the others
 * are new. */
static void count_ways(const uint16_t *words, size_t count, size_t named, struct ways *ret_ways)
{
	memset(ret_ways, 0, sizeof(*ret_ways));
	for (size_t i = count + 1; i-- > 0;) {
		ret_ways->count[i][named] = 1;
		for (size_t k = named; k-- > 0 && i < count;)
			ret_ways->count[i][k] =
				ret_ways->count[i + 1][k] +
				(is_like(words, i, k) ? ret_ways->count[i + 1][k + 1] : 0);
	}
}

/* Identify the opcodes that are the same known opcode in every way. */
static void align(const uint16_t *words, size_t count, size_t named, const struct ways *from,
		  uint8_t ret_opcodes[STATE_OPCODES_MAX])
{
	struct ways *to = calloc(1, sizeof(*to));
	double all = from->count[0][0];

	/* Count the ways to match the opcodes before i with the known ones before k. */
	if (!to || all == 0) {
		free(to);
		return;
	}
	to->count[0][0] = 1;
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k <= named; k++) {
			to->count[i + 1][k] += to->count[i][k];
			if (k < named && is_like(words, i, k))
				to->count[i + 1][k + 1] += to->count[i][k];
		}
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < named; k++)
			if (is_like(words, i, k) &&
			    to->count[i][k] * from->count[i + 1][k + 1] == all)
				ret_opcodes[i] = (uint8_t)k;
	free(to);
}

void derive_opcodes(const struct state_interpreter *interpreter, const struct attach_reader *reader,
		    struct luastate_layout *layout)
{
	size_t funcf = (size_t)layout->BC_FUNCF, named = NAMED_MORE;
	struct ways *ways = malloc(sizeof(*ways));
	uint16_t words[STATE_OPCODES_MAX];
	bool same = true, found = false;

	for (size_t i = 0; i < STATE_OPCODES_MAX; i++)
		layout->opcodes[i] = i < funcf ? STATE_OPCODE_UNKNOWN : (uint8_t)i;
	found = ways && funcf >= NAMED && find_table(interpreter, reader, layout, words);
	if (found) {
		count_ways(words, funcf, named, ways);
		if (ways->count[0][0] == 0) {
			named = NAMED;
			count_ways(words, funcf, named, ways);
		}
		align(words, funcf, named, ways, layout->opcodes);
	}
	for (size_t i = 0; i < funcf; i++)
		same &= layout->opcodes[i] == i;
	/* Without a table, as in an image, the number of opcodes decides. */
	layout->has_opcodes = found ? !same : funcf != NAMED && funcf != NAMED_MORE;
	free(ways);
}
