/* SPDX-License-Identifier: MIT */
/* Instructions of AArch64: where control goes, addresses, and what has the same signature. Runs on
 * any machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "luastate/native/native.h"

enum { AT = 0x70000 };

static struct native_decoder decoder;

static struct native_insn decode(uint32_t word, uint64_t address)
{
	struct native_insn insn;

	assert_true(native_decode(&decoder, (const uint8_t *)&word, sizeof(word), address, &insn));
	assert_int_equal(4, insn.len);
	return insn;
}

static void check(uint32_t word, enum native_insn_kind kind, uint64_t target)
{
	struct native_insn insn = decode(word, AT);

	assert_int_equal(kind, insn.kind);
	assert_int_equal(target, insn.target);
}

static void test_targets(void **state)
{
	(void)state;
	check(0x94000004, NATIVE_CALL, AT + 16);  /* bl +16 */
	check(0x97ffffff, NATIVE_CALL, AT - 4);	  /* bl -4 */
	check(0x14000002, NATIVE_JUMP, AT + 8);	  /* b +8 */
	check(0x54000041, NATIVE_BRANCH, AT + 8); /* b.ne +8 */
	check(0xb4ffffe0, NATIVE_BRANCH, AT - 4); /* cbz x0, -4 */
	check(0x37100043, NATIVE_BRANCH, AT + 8); /* tbnz w3, #2, +8 */
	check(0xd65f03c0, NATIVE_INDIRECT, 0);	  /* ret */
	check(0xd61f0200, NATIVE_INDIRECT, 0);	  /* br x16 */
	check(0xd63f0020, NATIVE_OTHER, 0);	  /* blr x1 */
	check(0x10000041, NATIVE_SET, AT + 8);	  /* adr x1, +8 */
}

/* A page and two offsets, as gcc writes them for data near an anchor. */
static void test_addresses(void **state)
{
	struct native_insn insn;

	(void)state;
	memset(&decoder, 0, sizeof(decoder));
	decode(0xd0000163, 0x7070c); /* adrp x3, 9e000 */
	insn = decode(0x910f0063, 0x70710);
	assert_int_equal(0x9e3c0, insn.reference);
	insn = decode(0x91324063, 0x70718);
	assert_int_equal(NATIVE_SET, insn.kind);
	assert_int_equal(3, insn.argument);
	assert_int_equal(0x9f050, insn.target);
	/* Another value. */
	decode(0xaa0003e3, 0x7071c); /* mov x3, x0 */
	assert_int_equal(NATIVE_OTHER, decode(0x91324063, 0x70720).kind);
	/* A call does not keep it. */
	decode(0xd0000163, 0x70724);
	decode(0x94000004, 0x70728);
	assert_int_equal(NATIVE_OTHER, decode(0x91324063, 0x7072c).kind);
}

static void test_operations(void **state)
{
	(void)state;
	assert_int_equal(0, decode(0xd503201f, AT).operation); /* nop */
	assert_int_equal(0, decode(0xd503245f, AT).operation); /* bti c */
	/* add with other registers and numbers */
	assert_int_equal(decode(0x910f0063, AT).operation, decode(0x91324041, AT).operation);
	assert_int_not_equal(decode(0x910f0063, AT).operation, decode(0xd10f0063, AT).operation);
	/* ldr and str */
	assert_int_equal(decode(0xf9400421, AT).operation, decode(0xf9404c02, AT).operation);
	assert_int_not_equal(decode(0xf9400421, AT).operation, decode(0xf9000421, AT).operation);
	/* b.ne and b.eq */
	assert_int_equal(decode(0x54000041, AT).operation, decode(0x54000081, AT).operation);
	assert_int_not_equal(decode(0x54000041, AT).operation, decode(0x54000040, AT).operation);
}

static void test_cut(void **state)
{
	const uint8_t bytes[3] = { 0 };
	struct native_insn insn;

	(void)state;
	assert_false(native_decode(&decoder, bytes, sizeof(bytes), AT, &insn));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_operations),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
