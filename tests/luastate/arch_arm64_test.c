/* SPDX-License-Identifier: MIT */
/* What AArch64 has of its own: C frames and the moments of calls and returns, at each instruction.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "luastate/arch/arch.h"
#include "luastate/state/state.h"

#define CODE	     UINT64_C(0xaaaa00010000)
#define SP	     UINT64_C(0xffff00001000)
#define WORDS(array) (sizeof(array) / sizeof((array)[0]))

/** A stack of two frames' size from SP - 208 on, each byte of which is known. */
static uint8_t stack[2 * 208];

static int read_stack(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		      struct failure *why)
{
	(void)self;
	if (address.value < SP - 208 || address.value + len > SP + 208)
		return failure_set(why, FAILURE_FAULT, 0, 0, address.value, "read memory");
	memcpy(ret_bytes, stack + (address.value - (SP - 208)), len);
	return 0;
}

static const struct attach_reader reader = { .read = read_stack };

static void put(uint64_t address, uint64_t value)
{
	memcpy(stack + (address - (SP - 208)), &value, 8);
}

/** An interpreter with this code. */
static struct state_interpreter make(const uint32_t *code, size_t words, int32_t prev)
{
	return (struct state_interpreter){ .start = CODE,
					   .end = CODE + 4 * words,
					   .code = (uint8_t *)(uintptr_t)code,
					   .shape = { .size = 208, .prev = prev } };
}

/* ---- Shapes ----------------------------------------------------------------------------- */

static int64_t saved[ATTACH_REG_COUNT];

static struct luastate_unwind_rule make_rule(bool late, int cfa_register, int64_t cfa_offset)
{
	for (int i = 0; i < ATTACH_REG_COUNT; i++)
		saved[i] = INT64_MIN;
	for (int i = 19; i <= 28; i++)
		saved[i] = late ? -24 - 8 * (i - 19) : -192 + 8 * (i - 19);
	saved[ATTACH_REG_FP] = late ? -16 : -208;
	saved[ATTACH_REG_LR] = late ? -8 : -200;
	return (struct luastate_unwind_rule){ .start = CODE,
					      .end = CODE + 15740,
					      .cfa_register = cfa_register,
					      .cfa_offset = cfa_offset,
					      .saved_offset = saved };
}

static void expect_shape(bool late, int cfa_register, int64_t cfa_offset, int size, int prev)
{
	struct luastate_unwind_rule rule = make_rule(late, cfa_register, cfa_offset);
	struct state_frame_shape shape = state_arch_shape(&rule);

	assert_int_equal(size, shape.size);
	assert_int_equal(prev, shape.prev);
	assert_int_equal(size != 0, luastate_is_interpreter(&rule));
}

static void test_shape(void **state)
{
	struct luastate_unwind_rule rule;

	(void)state;
	expect_shape(true, ATTACH_REG_FP, 16, 208, 0);
	expect_shape(true, ATTACH_REG_SP, 208, 208, 0);
	expect_shape(false, ATTACH_REG_SP, 208, 208, 160);
	expect_shape(true, ATTACH_REG_FP, 32, 0, 0);
	expect_shape(true, ATTACH_REG_SP, 192, 0, 0);
	expect_shape(true, ATTACH_REG_X19, 16, 0, 0);
	expect_shape(false, ATTACH_REG_FP, 16, 0, 0);
	for (int i = 19; i <= 30; i++) { /* each one counts */
		rule = make_rule(true, ATTACH_REG_FP, 16);
		saved[i] += 8;
		assert_int_equal(0, state_arch_shape(&rule).size);
	}
}

/* ---- Frames ----------------------------------------------------------------------------- */

enum { X = 0x1000, CALLER_FP = 0x2929, RETURN = 0x3030 };

/** Fill the frame at @p frame as VM code does. */
static void make_frame(uint64_t frame, bool late)
{
	for (int i = 19; i <= 28; i++)
		put(frame + (uint64_t)(late ? 184 - 8 * (i - 19) : 16 + 8 * (i - 19)), X + i);
	put(frame + (late ? 192 : 0), CALLER_FP);
	put(frame + (late ? 200 : 8), RETURN);
}

static void expect_caller(const struct attach_registers *caller, uint64_t sp)
{
	for (unsigned i = 19; i <= 28; i++)
		assert_int_equal(X + i, caller->r[i]);
	assert_int_equal(CALLER_FP, caller->r[ATTACH_REG_FP]);
	assert_int_equal(RETURN, attach_pc(caller));
	assert_int_equal(sp, attach_sp(caller));
}

static void test_restore(void **state)
{
	(void)state;
	for (int late = 0; late <= 1; late++) {
		struct luastate_layout layout = { .cframe_size = 208,
						  .cframe_prev = late ? 0 : 160 };
		struct attach_registers regs;

		memset(stack, 0x55, sizeof(stack));
		memset(&regs, 0xaa, sizeof(regs));
		make_frame(SP, late);
		state_arch_restore(&layout, stack + 208, SP, &regs);
		expect_caller(&regs, SP + 208);
	}
}

static const uint32_t late_entry[] = {
	0xd10343ff, 0xa90c7bfd, 0x910303fd, 0xa90b4ff4, 0x6d0623e9, 0xa90a57f6, 0x6d052beb,
	0xa9095ff8, 0x6d0433ed, 0xa90867fa, 0x6d033bef, 0xa9076ffc, 0xaa0003f7,
};
static const uint32_t late_exit[] = {
	0xf9002afc, 0xa94b4ff4, 0x6d4623e9, 0xa94a57f6, 0x6d452beb, 0xa9495ff8, 0x6d4433ed,
	0xa94867fa, 0x6d433bef, 0xa9476ffc, 0xa94c7bfd, 0x910343ff, 0xd65f03c0,
};
static const uint32_t early_entry[] = {
	0xa9b37bfd, 0x910003fd, 0xa90153f3, 0x6d0627e8, 0xa9025bf5, 0x6d072fea,
	0xa90363f7, 0x6d0837ec, 0xa9046bf9, 0x6d093fee, 0xa90573fb, 0xaa0003f7,
};
static const uint32_t early_exit[] = {
	0xf9002afc, 0xa94153f3, 0x6d4627e8, 0xa9425bf5, 0x6d472fea, 0xa94363f7,
	0x6d4837ec, 0xa9446bf9, 0x6d493fee, 0xa94573fb, 0xa8cd7bfd, 0xd65f03c0,
};

/** Registers of the caller, as they are when it calls. */
static struct attach_registers callers(uint64_t sp)
{
	struct attach_registers regs = { .syscall = -1 };

	for (unsigned i = 19; i <= 28; i++)
		regs.r[i] = X + i;
	regs.r[ATTACH_REG_FP] = CALLER_FP;
	regs.r[ATTACH_REG_LR] = RETURN;
	regs.r[ATTACH_REG_SP] = sp;
	return regs;
}

/* The sequences run, one instruction at a time: @regs are those before instruction @at. */
static void run_entry(bool late, unsigned at, struct attach_registers *regs)
{
	uint64_t frame = SP - 208;

	memset(stack, 0x55, sizeof(stack));
	*regs = callers(SP);
	if (at > 0)
		regs->r[ATTACH_REG_SP] = frame;
	if (at > (late ? 1 : 0))
		put(frame + (late ? 192 : 0), CALLER_FP);
	if (at > (late ? 2 : 1))
		regs->r[ATTACH_REG_FP] = frame + (late ? 192 : 0);
}

static void expect_entry(const uint32_t *code, size_t words, bool late)
{
	struct state_interpreter interpreter = make(code, words, late ? 0 : 160);
	struct attach_registers regs, caller;
	struct failure why;

	for (unsigned at = 0; at < words; at++) {
		run_entry(late, at, &regs);
		regs.r[ATTACH_REG_PC] = CODE + 4 * at;
		assert_int_equal(at + 1 < words, state_arch_restore_partial(&interpreter, &reader,
									    &regs, &caller, &why));
		if (at + 1 < words)
			expect_caller(&caller, SP);
	}
}

static void expect_exit(const uint32_t *code, size_t words, bool late)
{
	struct state_interpreter interpreter = make(code, words, late ? 0 : 160);
	struct attach_registers regs, caller;
	struct failure why;

	for (unsigned at = 0; at < words; at++) {
		bool released = at + 1 == words;

		memset(stack, 0x55, sizeof(stack));
		make_frame(SP, late);
		memset(&regs, 0xaa, sizeof(regs));
		if (released) {
			memset(stack, 0x77, sizeof(stack)); /* a signal handler may use it */
			regs = callers(SP + 208);
		} else {
			regs.r[ATTACH_REG_SP] = SP;
		}
		regs.r[ATTACH_REG_PC] = CODE + 4 * at;
		assert_int_equal(at > 0, state_arch_restore_partial(&interpreter, &reader, &regs,
								    &caller, &why));
		if (at > 0)
			expect_caller(&caller, SP + 208);
	}
}

static void test_entry_and_exit(void **state)
{
	(void)state;
	expect_entry(late_entry, WORDS(late_entry), true);
	expect_entry(early_entry, WORDS(early_entry), false);
	expect_exit(late_exit, WORDS(late_exit), true);
	expect_exit(early_exit, WORDS(early_exit), false);
}

static void test_unreadable_stack(void **state)
{
	struct state_interpreter interpreter = make(late_exit, WORDS(late_exit), 0);
	struct attach_registers regs = { .r[ATTACH_REG_SP] = 0x1000, .r[ATTACH_REG_PC] = CODE + 8 };
	struct attach_registers caller;
	struct failure why;

	(void)state;
	assert_int_equal(-1,
			 state_arch_restore_partial(&interpreter, &reader, &regs, &caller, &why));
	assert_int_equal(FAILURE_FAULT, why.kind);
	assert_int_equal(0x1000, why.address);
}

static void test_frame_shown(void **state)
{
	struct state_interpreter late = make(late_exit, WORDS(late_exit), 0);
	struct state_interpreter early = make(early_exit, WORDS(early_exit), 160);

	(void)state;
	assert_int_equal(SP, state_arch_frame_shown(&late, SP - 64, SP + 192));
	assert_int_equal(SP, state_arch_frame_shown(&early, SP - 64, SP));
	assert_int_equal(0, state_arch_frame_shown(&late, SP, SP)); /* not above the word */
	assert_int_equal(0, state_arch_frame_shown(&late, SP - 64, SP + 8)); /* sp is aligned */
	assert_int_equal(0, state_arch_frame_shown(&late, 4096, SP));	     /* another stack */
	assert_int_equal(0, state_arch_frame_shown(&late, SP - 64, CODE));
}

/* ---- Moments ---------------------------------------------------------------------------- */

enum { BASE = 0x19000, OLD_BASE = 0x17000, ARGUMENT = 0x2000 };

static uint64_t base_at(const struct state_interpreter *interpreter, unsigned at)
{
	struct attach_registers regs = { .r[ATTACH_REG_X19] = BASE,
					 .r[17] = OLD_BASE,
					 .r[2] = ARGUMENT,
					 .r[ATTACH_REG_PC] = CODE + 4 * (uint64_t)at };

	return state_arch_base(interpreter, &regs);
}

/** BC_CALL of Debian's luajit from its BC_CALLM on. */
static const uint32_t call[] = {
	0x14000002, /* b to the next but one */
	0xd37d1f9c, /* ubfiz x28, x28, #3, #8 */
	0xaa1303f1, /* mov x17, x19 */
	0x8b1b0e73, /* add x19, x19, x27, lsl #3 */
	0xf9400262, /* ldr x2, [x19] */
	0xd100239c, /* sub x28, x28, #8 */
	0x91004273, /* add x19, x19, #16 */
	0x936ffc4f, /* asr x15, x2, #47 */
	0xb10025ff, /* cmn x15, #9 */
	0x9240b842, /* and x2, x2, #0x7fffffffffff */
	0x54008621, /* b.ne */
	0xf81f8275, /* stur x21, [x19, #-8] */
	0xf9401055, /* ldr x21, [x2, #32] */
	0xb84046b0, /* ldr w16, [x21], #4 */
	0x8b300ec9, /* add x9, x22, w16, uxtb #3 */
	0xd3483e1b, /* ubfx x27, x16, #8, #8 */
	0xf947b528, /* ldr x8, [x9, #3944] */
	0x8b1b0e7b, /* add x27, x19, x27, lsl #3 */
	0xd61f0100, /* br x8 */
};

static void test_call(void **state)
{
	struct state_interpreter interpreter = make(call, WORDS(call), 0);

	(void)state;
	for (unsigned at = 0; at < WORDS(call); at++) {
		bool calling = at > 2 && at <= 11;

		assert_int_equal(calling ? OLD_BASE : BASE, base_at(&interpreter, at));
		assert_int_equal(at == 12   ? STATE_MOMENT_LOAD_PC
				 : at == 13 ? STATE_MOMENT_NEXT
					    : STATE_MOMENT_PLAIN,
				 state_arch_moment(&interpreter, CODE + 4 * at));
	}
	assert_int_equal(STATE_MOMENT_PLAIN, state_arch_moment(&interpreter, CODE - 4));
	assert_int_equal(STATE_MOMENT_PLAIN,
			 state_arch_moment(&interpreter, CODE + 4 * WORDS(call)));
}

/** A metamethod's call: the new base comes from L->top, and a jump leads to the rest. */
static const uint32_t metamethod[] = {
	0x97ff435f, /* bl */
	0xd1000a69, /* sub x9, x19, #2 */
	0xf94016f3, /* ldr x19, [x23, #40] */
	0x5280021c, /* mov w28, #16 */
	0xf85f0262, /* ldur x2, [x19, #-16] */
	0xf81e8275, /* stur x21, [x19, #-24] */
	0xcb090275, /* sub x21, x19, x9 */
	0x9240b842, /* and x2, x2, #0x7fffffffffff */
	0x14000002, /* b to the next but one */
	0xd65f03c0, /* ret */
	0xf81f8275, /* stur x21, [x19, #-8] */
	0xf9401055, /* ldr x21, [x2, #32] */
	0xd61f0100, /* br x8 */
};

static void test_metamethod(void **state)
{
	struct state_interpreter interpreter = make(metamethod, WORDS(metamethod), 0);

	(void)state;
	for (unsigned at = 0; at < WORDS(metamethod); at++)
		assert_int_equal(at > 2 && at <= 10 && at != 9 ? OLD_BASE : BASE,
				 base_at(&interpreter, at));
}

/** BC_RET of Debian's luajit from the test for the frame's type on. */
static const uint32_t returning[] = {
	0xb85fc2b0, /* ldur w16, [x21, #-4] */
	0xf1002389, /* subs x9, x28, #8 */
	0xd1004262, /* sub x2, x19, #16 */
	0x540000c0, /* b.eq */
	0xf8408768, /* ldr x8, [x27], #8 */
	0x91002273, /* add x19, x19, #8 */
	0xd1002129, /* sub x9, x9, #8 */
	0xf81e8268, /* stur x8, [x19, #-24] */
	0xb5ffff89, /* cbnz x9 */
	0xd3483e1b, /* ubfx x27, x16, #8, #8 */
	0xcb1b0c43, /* sub x3, x2, x27, lsl #3 */
	0xd3587e11, /* ubfx x17, x16, #24, #8 */
	0xf85f0060, /* ldur x0, [x3, #-16] */
	0xeb110f9f, /* cmp x28, x17, lsl #3 */
	0x54000163, /* b.lo */
	0x9240b800, /* and x0, x0, #0x7fffffffffff */
	0xaa0303f3, /* mov x19, x3 */
	0xf9401001, /* ldr x1, [x0, #32] */
	0xf85b8034, /* ldur x20, [x1, #-72] */
	0xb84046b0, /* ldr w16, [x21], #4 */
	0x8b300ec9, /* add x9, x22, w16, uxtb #3 */
	0xd3483e1b, /* ubfx x27, x16, #8, #8 */
	0xf947b528, /* ldr x8, [x9, #3944] */
	0xd3507e1c, /* ubfx x28, x16, #16, #16 */
	0xd61f0100, /* br x8 */
	0x91002273, /* add x19, x19, #8 */
	0x9100239c, /* add x28, x28, #8 */
	0xf81e827a, /* stur x26, [x19, #-24] */
	0x17fffff1, /* b */
};

static void test_return(void **state)
{
	struct state_interpreter interpreter = make(returning, WORDS(returning), 0);

	(void)state;
	for (unsigned at = 0; at < WORDS(returning); at++) {
		bool moving = (at > 2 && at <= 16) || at >= 25;

		assert_int_equal(moving ? ARGUMENT + 16 : BASE, base_at(&interpreter, at));
	}
}

/* ---- Calls into VM code ----------------------------------------------------------------- */

static void test_vm_call(void **state)
{
	/* ret, bl back to its start, bl out of it, blr */
	static const uint32_t code[] = { 0xd65f03c0, 0x97ffffff, 0x94001000, 0xd63f0060 };
	struct luastate *known = luastate_create();
	struct luastate_unwind_rule rule = make_rule(true, ATTACH_REG_FP, 16);
	struct failure why;

	(void)state;
	rule.end = rule.start + sizeof(code);
	assert_int_equal(0, luastate_add_interpreter(known, &rule, (const uint8_t *)code, &why));
	assert_int_equal(0, state_arch_vm_call_target(known, &reader, CODE + 4));
	assert_int_equal(CODE, state_arch_vm_call_target(known, &reader, CODE + 8));
	assert_int_equal(0, state_arch_vm_call_target(known, &reader, CODE + 12));
	assert_int_equal(0, state_arch_vm_call_target(known, &reader, CODE + 16));
	assert_int_equal(0, state_arch_vm_call_target(known, &reader, CODE + 7));
	assert_int_equal(0, state_arch_vm_call_target(known, &reader, 0));
	luastate_destroy(known);
}

static void test_follows_call(void **state)
{
	/* bl, blr, br */
	static const uint32_t code[] = { 0x94001000, 0xd63f0060, 0xd61f0060 };

	(void)state;
	memcpy(stack, code, sizeof(code));
	assert_true(state_arch_follows_call(&reader, SP - 208 + 4));
	assert_true(state_arch_follows_call(&reader, SP - 208 + 8));
	assert_false(state_arch_follows_call(&reader, SP - 208 + 12));
	assert_false(state_arch_follows_call(&reader, SP - 208 + 6));
	assert_false(state_arch_follows_call(&reader, SP - 208)); /* cannot be read */
	assert_false(state_arch_follows_call(&reader, 0));
}

/* A C frame is complete from the entry sequence's end, and linked behind the store. */
static void test_entering(void **state)
{
	static const struct luastate_layout layout = { .lua_State_cframe = 80 };
	uint32_t code[32] = { 0xd65f03c0 }; /* ret */
	struct state_interpreter interpreter = make(code, WORDS(code), 160);
	const unsigned first = 1, complete = first + 11, store = complete + 6;

	(void)state;
	memcpy(code + first, early_entry, 4 * (size_t)(complete - first));
	for (unsigned at = complete; at < WORDS(code); at++)
		code[at] = 0xaa0003f7;	 /* mov x23, x0 */
	code[complete + 2] = 0xf9002be8; /* str x8, [sp, #80] */
	code[store] = 0xf9002ae8;	 /* str x8, [x23, #80] */
	for (unsigned at = 0; at < WORDS(code); at++)
		assert_int_equal(
			at >= complete && at <= store,
			state_arch_is_entering(&interpreter, &layout, CODE + 4 * (uint64_t)at));
}

/* ---- Machine code of traces ------------------------------------------------------------- */

enum { STR_LR = 0xf90003fe, BL = 0x94000001, MOVZ_7 = 0x528000e0, NOP = 0xd503201f };

/** Machine code, in front of which and behind which nothing can be read. */
struct machine_code {
	uint32_t words[600];
	size_t count;
};

static int read_code(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		     struct failure *why)
{
	const struct machine_code *code = self;

	if (address.value < CODE || address.value + len > CODE + 4 * code->count)
		return failure_set(why, FAILURE_FAULT, 0, 0, address.value, "read code");
	memcpy(ret_bytes, (const uint8_t *)code->words + (address.value - CODE), len);
	return 0;
}

/* So many words of a trace's code, then the stubs of its exits. */
static void make_trace(struct machine_code *code, size_t words, const uint32_t *stub,
		       size_t stub_words, size_t exits)
{
	assert_true(words + stub_words + exits <= WORDS(code->words));
	for (code->count = 0; code->count < words; code->count++)
		code->words[code->count] = 0x8b010000; /* add x0, x0, x1 */
	memcpy(code->words + words, stub, 4 * stub_words);
	code->count += stub_words;
	for (size_t i = 0; i < exits; i++)
		code->words[code->count++] = BL;
}

/* The number is found from each word of the code, however little lies behind it. */
static void test_trace_at(void **state)
{
	static const uint32_t near[] = { STR_LR, BL, MOVZ_7 };
	static const uint32_t far[] = { NOP, STR_LR, 0xf94002de, 0xd63f03c0, MOVZ_7 };
	struct machine_code code;
	const struct attach_reader code_reader = { .read = read_code, .self = &code };

	(void)state;
	for (size_t words = 1; words < 500; words += 7) {
		make_trace(&code, words, near, WORDS(near), 1 + words % 50);
		for (size_t i = 0; i < words; i += 3)
			assert_int_equal(
				7, state_arch_trace_at(NULL, 0, &code_reader, CODE + 4 * i + 1));
		make_trace(&code, words, far, WORDS(far), 1);
		assert_int_equal(7, state_arch_trace_at(NULL, 0, &code_reader, CODE));
		make_trace(&code, words, near, 2, 3);
		assert_int_equal(0, state_arch_trace_at(NULL, 0, &code_reader, CODE));
	}
	assert_int_equal(0, state_arch_trace_at(NULL, 0, &code_reader, CODE - 4));
}

static void expect_exits(const struct machine_code *code, uint32_t szmcode, size_t exits)
{
	const struct attach_reader code_reader = { .read = read_code,
						   .self = (void *)(uintptr_t)code };
	uint64_t first = CODE + 4 * (code->count - exits);
	struct state_stubs stubs;
	uint32_t exit = 99;

	assert_true(state_arch_read_stubs(NULL, &code_reader, 0, CODE, szmcode, &stubs));
	for (uint32_t i = 0; i < exits; i++) {
		assert_true(state_arch_exit_of(&stubs, first + 4 * i, &exit));
		assert_int_equal(i, exit);
	}
	assert_false(state_arch_exit_of(&stubs, first - 4, &exit));
}

static void test_exits(void **state)
{
	static const uint32_t near[] = { STR_LR, BL, MOVZ_7 };
	static const uint32_t far[] = { NOP, STR_LR, 0xf94002de, 0xd63f03c0, MOVZ_7 };
	struct machine_code code;
	const struct attach_reader code_reader = { .read = read_code, .self = &code };
	struct state_stubs stubs;

	(void)state;
	for (size_t exits = 1; exits < 20; exits++) {
		make_trace(&code, 10, near, WORDS(near), exits);
		expect_exits(&code, 40, exits);
		make_trace(&code, 10, far, WORDS(far), exits);
		expect_exits(&code, 40, exits);
	}
	make_trace(&code, 10, near, 2, 0);
	assert_false(state_arch_read_stubs(NULL, &code_reader, 0, CODE, 40, &stubs));
}

static void test_branches(void **state)
{
	static const struct {
		uint32_t ins;
		int64_t distance; /* 0: none */
	} cases[] = {
		{ 0x54000040, 8 },  /* b.eq */
		{ 0xb4ffffe0, -4 }, /* cbz x0 */
		{ 0x35000060, 12 }, /* cbnz w0 */
		{ 0x36000080, 16 }, /* tbz w0, #0 */
		{ 0xb7ffffc1, -8 }, /* tbnz x1, #62 */
		{ 0x14000001, 4 },  /* b */
		{ 0x17ffffff, -4 }, /* b */
		{ BL, 0 },	    /* bl */
		{ 0xd65f03c0, 0 },  /* ret */
		{ NOP, 0 },
	};

	(void)state;
	for (size_t i = 0; i < WORDS(cases); i++) {
		uint64_t target = CODE;
		size_t len = state_arch_branch_at((const uint8_t *)&cases[i].ins, 4, CODE, &target);

		assert_int_equal(cases[i].distance ? 4 : 0, len);
		assert_int_equal(CODE + (uint64_t)cases[i].distance, target);
		assert_int_equal(
			0, state_arch_branch_at((const uint8_t *)&cases[i].ins, 3, CODE, &target));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shape),	     cmocka_unit_test(test_restore),
		cmocka_unit_test(test_call),	     cmocka_unit_test(test_entry_and_exit),
		cmocka_unit_test(test_metamethod),   cmocka_unit_test(test_unreadable_stack),
		cmocka_unit_test(test_return),	     cmocka_unit_test(test_frame_shown),
		cmocka_unit_test(test_vm_call),	     cmocka_unit_test(test_trace_at),
		cmocka_unit_test(test_follows_call), cmocka_unit_test(test_entering),
		cmocka_unit_test(test_exits),	     cmocka_unit_test(test_branches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
