/* SPDX-License-Identifier: MIT */
/* What layouts are derived from: votes, and the table of operands that tells opcodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "luastate/derive/derive.h"

enum {
	FILE_START = 0x400000,
	FILE_BYTES = 300000,
	NAMED = 89,
	ADDED_MAX = 7,
	FUNCTIONS = 8,
	FAST = 57
};

/** The file of an interpreter, in memory. */
struct file {
	uint8_t bytes[FILE_BYTES];
	uint64_t hole_start, hole_end;
	unsigned reads;
};

static int read_file(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		     struct failure *why)
{
	struct file *file = self;
	uint64_t at = address.value - FILE_START;

	file->reads++;
	if (at > FILE_BYTES || len > FILE_BYTES - at ||
	    (at < file->hole_end && at + len > file->hole_start))
		return failure_set(why, FAILURE_FAULT, 0, 0, address.value, "read");
	memcpy(ret_bytes, file->bytes + at, len);
	return 0;
}

/* Operands A, B, C or D as LuaJIT's table has them (lj_bc.h: BCMode). */
static const char known[] =
	"v-v v-v v-v v-v v-v v-v v-t v-t v-n v-n v-p v-p d-v d-v --v --v v-l v-l d-v d-v d-v d-v "
	"dvn "
	"dvn dvn dvn dvn dvn dvn dvn dvn dvn dvv dvv dvv dvv dvv dvv drr d-t d-c d-s d-n d-p b-b "
	"d-u "
	"u-v u-t u-n u-p r-j d-f d-l d-T d-t v-t dvv dvt dvl dvv vvv vvt vvl b-n vvv bll bll b-l "
	"b-l "
	"bll bll bll b-j b-l r-l r-l r-l b-j b-j b-j b-j b-l b-j b-j b-l r-j r-j r-l r-j ";

static uint16_t word_of(const char *letters)
{
	static const char modes[] = "-dbvrulspntTfjc";
	size_t a = (size_t)(strchr(modes, letters[0]) - modes);
	size_t b = (size_t)(strchr(modes, letters[1]) - modes);
	size_t c = (size_t)(strchr(modes, letters[2]) - modes);

	/* The upper bits name a metamethod; none of a table's words is 0. */
	return (uint16_t)(a | b << 3 | c << 7 | 21 << 11);
}

/** A build with some opcodes more. */
struct build {
	struct file file;
	struct state_interpreter interpreter;
	struct luastate_layout layout;
	struct attach_reader reader;
};

/* Write the table at an offset. @param added Operands of one more opcode before that one, or NULL;
 * behind the last one there may be several. */
static void make(struct build *build, size_t offset, size_t before, const char *added)
{
	uint16_t words[NAMED + ADDED_MAX + FUNCTIONS + FAST] = { 0 };
	size_t count = 0;

	memset(build, 0, sizeof(*build));
	memset(build->file.bytes, 0x5a, sizeof(build->file.bytes));
	for (size_t i = 0; i < NAMED; i++) {
		if (added && i == before)
			words[count++] = word_of(added);
		words[count++] = word_of(known + 4 * i);
	}
	for (; added && before == NAMED && *added; added += 4)
		words[count++] = word_of(added);
	build->layout.BC_FUNCF = (int32_t)count;
	for (size_t i = 0; i < FUNCTIONS; i++)
		words[count++] = word_of("r--");
	build->layout.BC__MAX = (int32_t)count;
	build->layout.GG_NUM_ASMFF = FAST;
	memcpy(build->file.bytes + offset, words, sizeof(uint16_t) * (count + FAST));
	build->interpreter.data_start = FILE_START;
	build->interpreter.data_end = FILE_START + FILE_BYTES;
	build->reader = (struct attach_reader){ read_file, &build->file };
}

static uint8_t opcode(const struct build *build, size_t op)
{
	return (uint8_t)state_instruction(&build->layout, (uint32_t)op | 0xabcd00);
}

static void test_same_opcodes(void **state)
{
	static const size_t offsets[] = { 0, 2, 65535, 65536 - 100, 131072 - 2, FILE_BYTES - 400 };
	struct build *build = malloc(sizeof(*build));

	(void)state;
	assert_non_null(build);
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		make(build, offsets[i] & ~(size_t)1, 0, NULL);
		derive_opcodes(&build->interpreter, &build->reader, &build->layout);
		assert_false(build->layout.has_opcodes);
	}
	free(build);
}

/* Before each opcode, one that differs from its neighbours: all others are known, the new one not.
 */
static void test_added_opcode(void **state)
{
	struct build *build = malloc(sizeof(*build));

	(void)state;
	assert_non_null(build);
	for (size_t before = 12; before < NAMED; before++) {
		make(build, 1000, before, "c-c");
		derive_opcodes(&build->interpreter, &build->reader, &build->layout);
		assert_true(build->layout.has_opcodes);
		for (size_t op = 0; op < NAMED; op++)
			assert_int_equal(op, opcode(build, op < before ? op : op + 1));
		assert_int_equal(STATE_OPCODE_UNKNOWN, opcode(build, before));
		/* Those of functions keep their numbers. */
		for (size_t op = NAMED + 1; op < NAMED + 1 + FUNCTIONS; op++)
			assert_int_equal(op, opcode(build, op));
	}
	free(build);
}

/* Behind the last one: the bit operators have numbers of their own, what else is there has none. */
static void test_opcodes_behind(void **state)
{
	static const char bits[] = "d-v dvv dvv dvv dvv dvv dvv ";
	struct build *build = malloc(sizeof(*build));

	(void)state;
	assert_non_null(build);
	make(build, 1000, NAMED, bits);
	derive_opcodes(&build->interpreter, &build->reader, &build->layout);
	assert_false(build->layout.has_opcodes);
	make(build, 1000, NAMED, "d-v ");
	derive_opcodes(&build->interpreter, &build->reader, &build->layout);
	assert_true(build->layout.has_opcodes);
	assert_int_equal(STATE_OPCODE_UNKNOWN, opcode(build, NAMED));
	assert_int_equal(NAMED - 1, opcode(build, NAMED - 1));
	make(build, 1000, NAMED, "d-v dvv dvv dvv dvv dvv v-v ");
	derive_opcodes(&build->interpreter, &build->reader, &build->layout);
	assert_true(build->layout.has_opcodes);
	for (size_t op = NAMED; op < NAMED + ADDED_MAX; op++)
		assert_int_equal(STATE_OPCODE_UNKNOWN, opcode(build, op));
	free(build);
}

/* One like its neighbours: any of them may be the new one. None is taken for another. */
static void test_ambiguous_opcode(void **state)
{
	struct build *build = malloc(sizeof(*build));

	(void)state;
	assert_non_null(build);
	for (size_t before = 12; before < NAMED; before++) {
		char operands[4] = { 0 };

		memcpy(operands, known + 4 * before, 3);
		make(build, 1000, before, operands);
		derive_opcodes(&build->interpreter, &build->reader, &build->layout);
		assert_int_equal(STATE_OPCODE_UNKNOWN, opcode(build, before));
		assert_int_equal(STATE_OPCODE_UNKNOWN, opcode(build, before + 1));
		for (size_t op = 0; op < NAMED; op++) {
			uint8_t found = opcode(build, op < before ? op : op + 1);

			assert_true(found == op || found == STATE_OPCODE_UNKNOWN);
		}
	}
	free(build);
}

/* Without the table, or with one that ends wrongly, no opcode is known unless there are as many as
 * in other builds, and the search ends. */
static void test_no_table(void **state)
{
	struct build *build = malloc(sizeof(*build));

	(void)state;
	assert_non_null(build);
	make(build, 1000, 20, "c-c");
	build->file.bytes[1000 + 2 * (NAMED + 1 + FUNCTIONS) + 20] = 1;
	derive_opcodes(&build->interpreter, &build->reader, &build->layout);
	assert_int_equal(STATE_OPCODE_UNKNOWN, opcode(build, 18));
	make(build, 1000, 0, NULL);
	build->file.bytes[1000 + 2 * (NAMED + FUNCTIONS) + 20] = 1;
	derive_opcodes(&build->interpreter, &build->reader, &build->layout);
	assert_int_equal(18, opcode(build, 18));
	make(build, 100000, 20, "c-c");
	build->file.hole_start = 90000;
	build->file.hole_end = 110000;
	derive_opcodes(&build->interpreter, &build->reader, &build->layout);
	assert_int_equal(STATE_OPCODE_UNKNOWN, opcode(build, 18));
	make(build, 1000, 0, NULL);
	build->interpreter.data_end = UINT64_MAX;
	derive_opcodes(&build->interpreter, &build->reader, &build->layout);
	assert_false(build->layout.has_opcodes);
	make(build, 1000, 20, "v-v");
	build->file.bytes[1000] ^= 0xff;
	build->interpreter.data_end = UINT64_MAX;
	derive_opcodes(&build->interpreter, &build->reader, &build->layout);
	assert_true(build->file.reads < 8192);
	free(build);
}

static void test_votes(void **state)
{
	struct derive_votes votes = { 0 };
	int32_t value = -7;

	(void)state;
	assert_false(derive_winner(&votes, &value));
	derive_vote(&votes, 0);
	assert_true(derive_winner(&votes, &value));
	assert_int_equal(0, value);
	/* Three quarters are not more than three quarters. */
	for (int i = 0; i < 3; i++)
		derive_vote(&votes, 40);
	assert_false(derive_winner(&votes, &value));
	derive_vote(&votes, 40);
	assert_true(derive_winner(&votes, &value));
	assert_int_equal(40, value);
	/* Many others do not displace one that has several, and it does not win any more. */
	for (int i = 0; i < 100; i++)
		derive_vote(&votes, 1000 + i);
	for (int i = 0; i < 2; i++)
		derive_vote(&votes, 8);
	assert_false(derive_winner(&votes, &value));
}

/* No structure reaches so far, and to add to it would lead anywhere. */
static void test_far_votes(void **state)
{
	static const int32_t far[] = { INT32_MIN, INT32_MIN + 15, -STATE_DISTANCE_MAX - 1,
				       STATE_DISTANCE_MAX + 1, INT32_MAX };
	struct derive_votes votes = { 0 };
	int32_t value = -7;

	(void)state;
	for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++)
		derive_vote(&votes, far[i]);
	assert_false(derive_winner(&votes, &value));
	derive_vote(&votes, STATE_DISTANCE_MAX);
	assert_true(derive_winner(&votes, &value));
	assert_int_equal(STATE_DISTANCE_MAX, value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_votes),	       cmocka_unit_test(test_far_votes),
		cmocka_unit_test(test_same_opcodes),   cmocka_unit_test(test_added_opcode),
		cmocka_unit_test(test_opcodes_behind), cmocka_unit_test(test_ambiguous_opcode),
		cmocka_unit_test(test_no_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
