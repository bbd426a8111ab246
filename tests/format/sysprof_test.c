/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chains.h"

/*
 * Shapes of chains. Each is read back by our reader (folded report) and by a second implementation
 * of the reference parser's rules, which must print the same chain.
 */

#define MAIN	   0x401000
#define PCALL	   0x402000
#define CPCALL	   0x403000
#define VM	   0x404000
#define CFUNC	   0x7f0000001000
#define PROTO_A	   0x41000000
#define PROTO_B	   0x41001000
#define BYTECODE_A (PROTO_A + 0x68)
#define BYTECODE_B (PROTO_B + 0x68)

struct program {
	struct chains chains;
	uint32_t main, pcall, cpcall, vm, a, b, anonymous, gsub, odd, cfunc, gc;
};

static int set_up(void **state)
{
	struct program *program = calloc(1, sizeof(*program));
	struct chains *chains = &program->chains;

	chains_open(chains, false);
	program->main = chains_native(chains, MAIN, "main");
	program->pcall = chains_native(chains, PCALL, "lua_pcall");
	program->cpcall = chains_native(chains, CPCALL, "lua_cpcall");
	program->vm = chains_native(chains, VM, "lj_BC_CALL");
	program->a = chains_lua(chains, PROTO_A, "@a.lua", 3, "alpha");
	program->b = chains_lua(chains, PROTO_B, "@b.lua", 30, "beta");
	program->anonymous = chains_lua(chains, 0x41002000, "@b.lua", 50, NULL);
	program->gsub = chains_fast(chains, "string.gsub");
	program->odd = chains_fast(chains, "table.odd");
	program->cfunc = chains_cfunc(chains, CFUNC, "work");
	program->gc = chains_pseudo(chains, "[gc]");
	*state = program;
	return 0;
}

static int tear_down(void **state)
{
	struct program *program = *state;

	chains_close(&program->chains);
	free(program);
	return 0;
}

/** Both readers' texts; NULL where it is not the point. */
static void expect(struct program *program, const char *folded, const char *reference)
{
	char *text;

	if (folded) {
		text = chains_report(&program->chains, "folded");
		assert_string_equal(folded, text);
		free(text);
	}
	if (reference) {
		text = chains_reference(&program->chains);
		assert_string_equal(reference, text);
		free(text);
	}
}

static void expect_count(struct program *program, const char *line)
{
	char *text = chains_report(&program->chains, "counters");

	if (!strstr(text, line))
		fail_msg("no '%s' in %s", line, text);
	free(text);
}

static void push(struct program *program, uint32_t function, uint64_t address, uint32_t line)
{
	chains_push(&program->chains, function, address, line);
}

static void test_single_run(void **state)
{
	struct program *program = *state;

	push(program, program->main, MAIN + 0x20, 0);
	push(program, program->pcall, PCALL + 0x30, 0);
	push(program, program->a, BYTECODE_A, 5);
	push(program, program->anonymous, 0x41002068, 52);
	push(program, program->gsub, 0, 0);
	push(program, program->vm, VM + 9, 0);
	chains_sample(&program->chains, FORMAT_STATE_FFUNC);
	expect(program, "main;lua_pcall;alpha (@a.lua:5);@b.lua:52;string.gsub;lj_BC_CALL 1\n",
	       "main;lua_pcall;@a.lua:5;@b.lua:52;string.gsub;lj_BC_CALL; 1\n");
	expect_count(program, "\nFFUNC 1\n");
}

static void test_inserted_trigger(void **state)
{
	struct program *program = *state;

	push(program, program->main, MAIN + 0x20, 0);
	push(program, program->a, BYTECODE_A, 5);
	chains_sample(&program->chains, FORMAT_STATE_INTERP);
	push(program, program->a, BYTECODE_A, 5);
	chains_sample(&program->chains, FORMAT_STATE_INTERP);
	expect(program, "alpha (@a.lua:5) 1\nmain;alpha (@a.lua:5) 1\n",
	       "lua_call [LuaJIT];@a.lua:5; 1\nmain;lua_call [LuaJIT];@a.lua:5; 1\n");
	expect_count(program, "\nLFUNC 2\n");
}

static void test_nested_runs(void **state)
{
	struct program *program = *state;

	push(program, program->main, MAIN + 0x20, 0);
	push(program, program->pcall, PCALL + 0x30, 0);
	push(program, program->a, BYTECODE_A, 5);
	push(program, program->vm, VM + 9, 0);
	push(program, program->cfunc, CFUNC + 4, 0);
	push(program, program->pcall, PCALL + 0x30, 0);
	push(program, program->b, BYTECODE_B, 31);
	push(program, program->b, BYTECODE_B + 4, 32);
	push(program, program->gsub, 0, 0);
	chains_sample(&program->chains, FORMAT_STATE_LFUNC);
	expect(program,
	       "main;lua_pcall;alpha (@a.lua:5);lj_BC_CALL;work;lua_pcall;beta (@b.lua:31);"
	       "beta (@b.lua:32);string.gsub 1\n",
	       "main;lua_pcall;@a.lua:5;lj_BC_CALL;work [C];api:lua_pcall;@b.lua:31;@b.lua:32;"
	       "string.gsub; 1\n");
	expect_count(program, "\nFFUNC 1\n");
}

/** Only the call right before the run is the trigger. */
static void test_trigger_farther_away(void **state)
{
	struct program *program = *state;

	push(program, program->pcall, PCALL + 0x30, 0);
	push(program, program->vm, VM + 9, 0);
	push(program, program->a, BYTECODE_A, 5);
	chains_sample(&program->chains, FORMAT_STATE_LFUNC);
	expect(program, "lua_pcall;lj_BC_CALL;alpha (@a.lua:5) 1\n",
	       "api:lua_pcall;lj_BC_CALL;lua_call [LuaJIT];@a.lua:5; 1\n");
}

static void test_cpcall_before(void **state)
{
	struct program *program = *state;
	uint32_t pmain = chains_cfunc(&program->chains, CFUNC + 0x1000, "pmain");

	push(program, program->main, MAIN + 0x20, 0);
	push(program, program->cpcall, CPCALL + 0x30, 0);
	push(program, pmain, CFUNC + 0x1000, 0);
	push(program, program->pcall, PCALL + 0x30, 0);
	push(program, program->a, BYTECODE_A, 5);
	push(program, program->b, BYTECODE_B, 31);
	chains_sample(&program->chains, FORMAT_STATE_LFUNC);
	push(program, program->cpcall, CPCALL + 0x30, 0);
	push(program, program->a, BYTECODE_A, 5);
	chains_sample(&program->chains, FORMAT_STATE_LFUNC);
	expect(program,
	       "lua_cpcall;alpha (@a.lua:5) 1\n"
	       "main;lua_cpcall;pmain;lua_pcall;alpha (@a.lua:5);beta (@b.lua:31) 1\n",
	       "api:lua_cpcall;lua_call [LuaJIT];@a.lua:5; 1\n"
	       "main;api:lua_cpcall;pmain [C];lua_pcall;@a.lua:5;@b.lua:31; 1\n");
}

/** Without Lua frames nothing can go wrong, and real names stay. */
static void test_no_run(void **state)
{
	struct program *program = *state;

	push(program, program->main, MAIN + 0x20, 0);
	push(program, program->cpcall, CPCALL + 0x30, 0);
	push(program, program->cfunc, CFUNC, 0);
	push(program, program->pcall, PCALL + 0x30, 0);
	chains_sample(&program->chains, FORMAT_STATE_CFUNC);
	push(program, program->main, MAIN + 0x21, 0);
	push(program, program->gc, 0, 0);
	chains_sample(&program->chains, FORMAT_STATE_GC);
	expect(program, "main;[gc] 1\nmain;lua_cpcall;work;lua_pcall 1\n",
	       "main;[gc]; 1\nmain;lua_cpcall;work [C];lua_pcall; 1\n");
	expect_count(program, "\nCFUNC 1\nGC 1\n");
}

/** Coroutines: the resumer's frames are the root part of one long run. */
static void test_coroutine(void **state)
{
	struct program *program = *state;
	uint32_t resume = chains_fast(&program->chains, "coroutine.resume");

	push(program, program->pcall, PCALL + 0x30, 0);
	push(program, program->a, BYTECODE_A, 5);
	push(program, resume, 0, 0);
	push(program, program->b, BYTECODE_B, 31);
	chains_sample(&program->chains, FORMAT_STATE_LFUNC);
	push(program, program->pcall, PCALL + 0x30, 0);
	push(program, program->a, BYTECODE_A, 5);
	push(program, resume, 0, 0);
	push(program, program->vm, VM + 8, 0);
	push(program, program->b, BYTECODE_B, 31);
	chains_sample(&program->chains, FORMAT_STATE_LFUNC);
	expect(program,
	       "lua_pcall;alpha (@a.lua:5);coroutine.resume;beta (@b.lua:31) 1\n"
	       "lua_pcall;alpha (@a.lua:5);coroutine.resume;lj_BC_CALL;beta (@b.lua:31) 1\n",
	       "lua_pcall;@a.lua:5;coroutine.resume;@b.lua:31; 1\n"
	       "lua_pcall;@a.lua:5;coroutine.resume;lj_BC_CALL;@b.lua:31; 1\n");
}

/** A fast function without a number in the reference's table ends the run. */
static void test_unknown_fast_function(void **state)
{
	struct program *program = *state;

	push(program, program->pcall, PCALL + 0x30, 0);
	push(program, program->a, BYTECODE_A, 5);
	push(program, program->odd, 0, 0);
	push(program, program->b, BYTECODE_B, 31);
	chains_sample(&program->chains, FORMAT_STATE_LFUNC);
	push(program, program->odd, 0, 0);
	push(program, program->b, BYTECODE_B, 31);
	chains_sample(&program->chains, FORMAT_STATE_LFUNC);
	expect(program,
	       "lua_pcall;alpha (@a.lua:5);table.odd;beta (@b.lua:31) 1\n"
	       "table.odd;beta (@b.lua:31) 1\n",
	       "lua_pcall;@a.lua:5;table.odd;@b.lua:31; 1\n"
	       "table.odd;lua_call [LuaJIT];@b.lua:31; 1\n");
}

struct activity {
	enum format_state state;
	const char *name, *counter;
};

static void test_activity_leaves(void **state)
{
	static const struct activity leaves[] = {
		{ FORMAT_STATE_GC, "[gc]", "\nGC 1\n" },
		{ FORMAT_STATE_EXIT, "[jit exit]", "\nEXIT 1\n" },
		{ FORMAT_STATE_RECORD, "[jit record]", "\nRECORD 1\n" },
		{ FORMAT_STATE_OPT, "[jit opt]", "\nOPT 1\n" },
		{ FORMAT_STATE_ASM, "[jit asm]", "\nASM 1\n" },
	};
	struct program *program = *state;

	for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++) {
		push(program, program->pcall, PCALL + 0x30, 0);
		push(program, program->a, BYTECODE_A, 5);
		push(program, chains_pseudo(&program->chains, leaves[i].name), 0, 0);
		chains_sample(&program->chains, leaves[i].state);
	}
	for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++)
		expect_count(program, leaves[i].counter);
	expect_count(program, "\nLFUNC 0\n");
	expect(program, NULL,
	       "lua_pcall;@a.lua:5;[gc]; 1\n"
	       "lua_pcall;@a.lua:5;[jit asm]; 1\n"
	       "lua_pcall;@a.lua:5;[jit exit]; 1\n"
	       "lua_pcall;@a.lua:5;[jit opt]; 1\n"
	       "lua_pcall;@a.lua:5;[jit record]; 1\n");
}

/** Between the line that pays and the native frames of the work, or a mark. */
static void test_activities_below_native_frames(void **state)
{
	static const struct activity works[] = {
		{ FORMAT_STATE_GC, "[gc sweep string]", "\nGC 2\n" },
		{ FORMAT_STATE_GC, "[gc finalize]", "\nGC 2\n" },
		{ FORMAT_STATE_EXIT, "[jit exit 12/3]", "\nEXIT 1\n" },
		{ FORMAT_STATE_RECORD, "[jit record]", "\nRECORD 1\n" },
	};
	struct program *program = *state;
	uint32_t mark = chains_pseudo(&program->chains, "[no unwind information]");

	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
		push(program, program->pcall, PCALL + 0x30, 0);
		push(program, program->a, BYTECODE_A, 5);
		push(program, chains_pseudo(&program->chains, works[i].name), 0, 0);
		if (i == 1)
			push(program, mark, 0, 0);
		push(program, program->vm, VM + 4, 0);
		push(program, program->main, MAIN + 8, 0);
		chains_sample(&program->chains, works[i].state);
	}
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++)
		expect_count(program, works[i].counter);
	expect_count(program, "\nLFUNC 0\n");
	expect(program,
	       "lua_pcall;alpha (@a.lua:5);[gc finalize];[no unwind information];lj_BC_CALL;main "
	       "1\n"
	       "lua_pcall;alpha (@a.lua:5);[gc sweep string];lj_BC_CALL;main 1\n"
	       "lua_pcall;alpha (@a.lua:5);[jit exit 12/3];lj_BC_CALL;main 1\n"
	       "lua_pcall;alpha (@a.lua:5);[jit record];lj_BC_CALL;main 1\n",
	       "lua_pcall;@a.lua:5;[gc finalize];[no unwind information];lj_BC_CALL;main; 1\n"
	       "lua_pcall;@a.lua:5;[gc sweep string];lj_BC_CALL;main; 1\n"
	       "lua_pcall;@a.lua:5;[jit exit 12/3];lj_BC_CALL;main; 1\n"
	       "lua_pcall;@a.lua:5;[jit record];lj_BC_CALL;main; 1\n");
}

/** What is below a guest frame, and what only looks like an activity. */
static void test_no_activities(void **state)
{
	struct program *program = *state;
	uint32_t looks[] = { chains_native(&program->chains, 0x405000, "[gc sweep]"),
			     chains_pseudo(&program->chains, "[gcc]"),
			     chains_pseudo(&program->chains, "[jit exits 1/2]") };

	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		push(program, program->a, BYTECODE_A, 5);
		push(program, looks[i], i == 0 ? 0x405000 : 0, 0);
		chains_sample(&program->chains, FORMAT_STATE_LFUNC);
	}
	push(program, program->a, BYTECODE_A, 5);
	push(program, program->gc, 0, 0);
	push(program, program->vm, VM + 4, 0);
	push(program, program->b, BYTECODE_B, 31);
	push(program, program->vm, VM + 4, 0);
	chains_sample(&program->chains, FORMAT_STATE_LFUNC);
	expect_count(program, "\nLFUNC 4\n");
	expect_count(program, "\nGC 0\n");
}

static void test_trace_leaf(void **state)
{
	struct program *program = *state;
	uint32_t trace = chains_trace(&program->chains, 7, "@a.lua", 12);
	uint32_t bare = chains_trace(&program->chains, 8, NULL, 0);

	push(program, program->pcall, PCALL + 0x30, 0);
	push(program, program->a, BYTECODE_A, 5);
	push(program, trace, 0, 0);
	chains_sample(&program->chains, FORMAT_STATE_TRACE);
	push(program, program->main, MAIN + 1, 0);
	push(program, bare, 0, 0);
	chains_sample(&program->chains, FORMAT_STATE_TRACE);
	expect(program, "lua_pcall;alpha (@a.lua:5);trace 7 @ a.lua:12 1\nmain;trace 8 1\n",
	       "lua_pcall;@a.lua:5;trace 7 @ a.lua:12; 1\nmain;trace 8; 1\n");
	expect_count(program, "\nTRACE 2\n");
}

/** A chain of nothing but the trace is a trace sample, which the reference prints empty. */
static void test_trace_alone(void **state)
{
	struct program *program = *state;

	push(program, chains_trace(&program->chains, 7, "@a.lua", 12), 0, 0);
	chains_sample_as(&program->chains, FORMAT_STATE_TRACE, 7, 1);
	chains_sample_as(&program->chains, FORMAT_STATE_TRACE, 9, 1);
	expect(program, "trace 7 @ a.lua:12 1\ntrace 9 1\n", " 2\n");
	expect_count(program, "\nTRACE 2\n");
}

static void test_recursion(void **state)
{
	struct program *program = *state;

	push(program, program->pcall, PCALL + 0x30, 0);
	for (int i = 0; i < 3; i++)
		push(program, program->a, BYTECODE_A, 5);
	push(program, program->cfunc, CFUNC, 0);
	for (int i = 0; i < 3; i++)
		push(program, program->a, BYTECODE_A, 5);
	chains_sample(&program->chains, FORMAT_STATE_LFUNC);
	expect(program,
	       "lua_pcall;alpha (@a.lua:5);alpha (@a.lua:5);alpha (@a.lua:5);work;"
	       "alpha (@a.lua:5);alpha (@a.lua:5);alpha (@a.lua:5) 1\n",
	       "lua_pcall;@a.lua:5;@a.lua:5;@a.lua:5;work [C];@a.lua:5;@a.lua:5;@a.lua:5; 1\n");
}

/** Chunk names that are source text: newlines, and a start that would trigger. */
static void test_chunk_names(void **state)
{
	struct program *program = *state;
	uint32_t text = chains_lua(&program->chains, 0x41003000, "local a = 1\nreturn a", 0, NULL);
	uint32_t call = chains_lua(&program->chains, 0x41004000, "lua_call_me()", 0, NULL);

	push(program, program->pcall, PCALL + 0x30, 0);
	push(program, program->a, BYTECODE_A, 5);
	push(program, program->cfunc, CFUNC, 0);
	push(program, text, 0x41003068, 2);
	push(program, call, 0x41004068, 1);
	chains_sample(&program->chains, FORMAT_STATE_LFUNC);
	expect(program,
	       "lua_pcall;alpha (@a.lua:5);work;local a = 1 return a:2;lua_call_me():1 1\n",
	       "lua_pcall;@a.lua:5;work [C];local a = 1 return a:2;api:lua_call_me():1; 1\n");
}

/** The function of a line in native position is found again, name and all. */
static void test_native_position_keeps_function(void **state)
{
	struct program *program = *state;
	char *text;

	push(program, program->pcall, PCALL + 0x30, 0);
	push(program, program->a, BYTECODE_A, 5);
	push(program, program->cfunc, CFUNC, 0);
	push(program, program->b, BYTECODE_B, 31);
	chains_sample(&program->chains, FORMAT_STATE_LFUNC);
	text = chains_report(&program->chains, "top");
	assert_non_null(strstr(text, "beta       b.lua:30\n"));
	free(text);
}

static void test_first_lines(void **state)
{
	struct chains chains;
	uint32_t main, a, builtin, cfunc;
	char *text;

	(void)state;
	chains_open(&chains, true);
	main = chains_native(&chains, MAIN, "lua_pcall");
	a = chains_lua(&chains, PROTO_A, "@a.lua", 3, NULL);
	builtin = chains_lua(&chains, PROTO_B, "foreach", -1, NULL);
	cfunc = chains_cfunc(&chains, CFUNC, "work");
	chains_push(&chains, main, MAIN, 0);
	chains_push(&chains, builtin, BYTECODE_B, 0);
	chains_push(&chains, a, BYTECODE_A, 5);
	chains_push(&chains, cfunc, CFUNC, 0);
	chains_push(&chains, a, BYTECODE_A + 4, 6);
	chains_push(&chains, builtin, BYTECODE_B, 0);
	chains_sample(&chains, FORMAT_STATE_LFUNC);
	text = chains_report(&chains, "folded");
	assert_string_equal("lua_pcall;foreach:0;@a.lua:3;work;@a.lua:3;foreach:0 1\n", text);
	free(text);
	chains_close(&chains);
}

/** Code of a name at an address that had another before, also within one sample. */
static void test_same_address(void **state)
{
	struct program *program = *state;
	uint32_t native = chains_native(&program->chains, CFUNC, "work_impl");
	uint32_t inner = chains_native(&program->chains, CFUNC + 0x10, "inner");

	push(program, native, CFUNC + 0x20, 0);
	push(program, program->cfunc, CFUNC, 0);
	push(program, native, CFUNC + 0x20, 0);
	push(program, inner, CFUNC + 0x18, 0);
	push(program, native, CFUNC + 0x20, 0);
	chains_sample(&program->chains, FORMAT_STATE_CFUNC);
	expect(program, "work_impl;work;work_impl;inner;work_impl 1\n",
	       "work_impl;work [C];work_impl;inner;work_impl; 1\n");
}

/** A collected prototype's memory is used again, for another function and for bytecode. */
/* Two processes without address space randomisation: other functions at each address, and samples
 * that take turns. No frame may be shown as the other process's. */
static void test_processes_at_same_addresses(void **state)
{
	struct program *program = *state;
	struct chains *chains = &program->chains;
	uint32_t root[2], native[2], lua[2], inner[2], cfunc[2];

	for (int i = 0; i < 2; i++) {
		root[i] = chains_process(chains, 70 + i, i ? "two [71]" : "one [70]");
		native[i] = chains_native(chains, MAIN + 0x800, i ? "serve" : "start");
		lua[i] = chains_lua(chains, PROTO_A + 0x8000, i ? "@two.lua" : "@one.lua", 1,
				    i ? "second" : "first");
		inner[i] =
			chains_lua(chains, PROTO_B + 0x8000, i ? "@two.lua" : "@one.lua", 7, NULL);
		cfunc[i] = chains_cfunc(chains, CFUNC + 0x800, i ? "read_two" : "read_one");
	}
	for (int i = 0; i < 20; i++) {
		push(program, root[i % 2], 0, 0);
		push(program, native[i % 2], MAIN + 0x820, 0);
		push(program, lua[i % 2], PROTO_A + 0x8068, 5);
		push(program, cfunc[i % 2], CFUNC + 0x810, 0);
		push(program, inner[i % 2], PROTO_B + 0x8068, 9);
		chains_sample(chains, FORMAT_STATE_LFUNC);
	}
	expect(program,
	       "one [70];start;first (@one.lua:5);read_one;@one.lua:9 10\n"
	       "two [71];serve;second (@two.lua:5);read_two;@two.lua:9 10\n",
	       "one [70];start;lua_call [LuaJIT];@one.lua:5;read_one [C];@one.lua:9; 10\n"
	       "two [71];serve;lua_call [LuaJIT];@two.lua:5;read_two [C];@two.lua:9; 10\n");
}

/* A library function in two processes is one function, wherever each has mapped it. */
static void test_processes_with_same_library(void **state)
{
	struct program *program = *state;
	struct chains *chains = &program->chains;

	for (uint64_t i = 0; i < 2; i++) {
		uint64_t base = CFUNC + 0x100000 * i;

		push(program, chains_native(chains, base, "handle"), base + 4, 0);
		push(program, chains_lua(chains, PROTO_A + 0x4000 * i, "@w.lua", 2, "work"),
		     PROTO_A + 0x4000 * i + 0x68, 3);
		chains_sample(chains, FORMAT_STATE_LFUNC);
	}
	expect(program, "handle;work (@w.lua:3) 2\n", "handle;lua_call [LuaJIT];@w.lua:3; 2\n");
}

static void test_reused_memory(void **state)
{
	struct program *program = *state;
	uint32_t next = chains_lua(&program->chains, PROTO_A, "@next.lua", 1, NULL);
	uint32_t large = chains_lua(&program->chains, PROTO_A - 0x100, "@large.lua", 7, "large");

	push(program, program->pcall, PCALL + 0x30, 0);
	push(program, program->a, BYTECODE_A, 5);
	push(program, program->cfunc, CFUNC, 0);
	push(program, program->a, BYTECODE_A, 5);
	chains_sample(&program->chains, FORMAT_STATE_LFUNC);
	push(program, program->pcall, PCALL + 0x30, 0);
	push(program, next, BYTECODE_A, 2);
	push(program, program->cfunc, CFUNC, 0);
	push(program, next, BYTECODE_A, 2);
	chains_sample(&program->chains, FORMAT_STATE_LFUNC);
	push(program, program->pcall, PCALL + 0x30, 0);
	push(program, large, PROTO_A, 8);
	push(program, program->cfunc, CFUNC, 0);
	push(program, large, PROTO_A, 8);
	push(program, large, PROTO_A + 0x80, 9);
	chains_sample(&program->chains, FORMAT_STATE_LFUNC);
	expect(program,
	       "lua_pcall;@next.lua:2;work;@next.lua:2 1\n"
	       "lua_pcall;alpha (@a.lua:5);work;alpha (@a.lua:5) 1\n"
	       "lua_pcall;large (@large.lua:8);work;large (@large.lua:8);large (@large.lua:9) 1\n",
	       "lua_pcall;@a.lua:5;work [C];@a.lua:5; 1\n"
	       "lua_pcall;@large.lua:8;work [C];@large.lua:8;@large.lua:9; 1\n"
	       "lua_pcall;@next.lua:2;work [C];@next.lua:2; 1\n");
}

static void test_no_addresses(void **state)
{
	struct program *program = *state;
	uint32_t native = chains_native(&program->chains, 0, "nowhere");
	uint32_t lua = chains_lua(&program->chains, 0, "@zero.lua", 1, "zero");
	uint32_t cfunc = chains_cfunc(&program->chains, 0, "lua_called");

	push(program, native, 0, 0);
	push(program, lua, 0, 2);
	push(program, cfunc, 0, 0);
	push(program, lua, 0, 3);
	chains_sample(&program->chains, FORMAT_STATE_CFUNC);
	push(program, chains_native(&program->chains, 0, "lua_pcall"), 0, 0);
	push(program, lua, 0, 2);
	chains_sample(&program->chains, FORMAT_STATE_LFUNC);
	expect(program,
	       "lua_pcall;zero (@zero.lua:2) 1\n"
	       "nowhere;zero (@zero.lua:2);lua_called;zero (@zero.lua:3) 1\n",
	       "lua_pcall;@zero.lua:2; 1\n"
	       "nowhere;lua_call [LuaJIT];@zero.lua:2;api:lua_called [C];@zero.lua:3; 1\n");
}

static void test_empty_chain(void **state)
{
	struct program *program = *state;

	for (int i = 0; i < FORMAT_STATE_TRACE; i++)
		chains_sample(&program->chains, (enum format_state)i);
	expect(program, "[no stack] 9\n", " 9\n");
	expect_count(program, "samples 9\nINTERP 1\nLFUNC 1\nFFUNC 1\nCFUNC 1\nGC 1\nEXIT 1\n"
			      "RECORD 1\nOPT 1\nASM 1\nTRACE 0\n");
}

static void test_weight(void **state)
{
	struct program *program = *state;

	push(program, program->main, MAIN, 0);
	chains_sample_as(&program->chains, FORMAT_STATE_INTERP, 0, 5);
	push(program, program->main, MAIN, 0);
	chains_sample_as(&program->chains, FORMAT_STATE_INTERP, 0, 0);
	expect(program, "main 5\n", "main; 5\n");
}

/** More names than numbers of few bytes. */
static void test_many_traces(void **state)
{
	struct program *program = *state;

	for (uint32_t i = 1; i < 140000; i += 2) {
		uint32_t trace = chains_trace(&program->chains, i, "@a.lua", 12);

		push(program, program->main, MAIN, 0);
		push(program, trace, 0, 0);
		chains_sample(&program->chains, FORMAT_STATE_TRACE);
	}
	expect_count(program, "samples 70000\n");
	expect_count(program, "\nTRACE 70000\n");
}

static void test_refused_samples(void **state)
{
	struct program *program = *state;
	const struct format_writer_ops *ops = format_writer_find("sysprof");
	struct format_frame frame = { .function = 9999 };
	struct format_sample sample = { .weight = 1, .frames = &frame, .frame_count = 1 };
	struct failure why = { 0 };

	assert_int_equal(-1, ops->sample(program->chains.writer, &sample, &why));
	assert_int_equal(FAILURE_NOT_FOUND, why.kind);
	sample.frame_count = 1u << 30;
	assert_int_equal(-1, ops->sample(program->chains.writer, &sample, &why));
	assert_int_equal(FAILURE_LIMIT, why.kind);
	sample.frame_count = 0;
	sample.state = FORMAT_STATE_COUNT;
	assert_int_equal(-1, ops->sample(program->chains.writer, &sample, &why));
	assert_int_equal(FAILURE_INVALID, why.kind);
	expect(program, "", "");
}

/** Each symbol is written once, however many samples use it. */
static void test_symbols_once(void **state)
{
	struct program *program = *state;
	uint64_t first = 0, second = 0;

	for (int i = 0; i < 3; i++) {
		push(program, program->pcall, PCALL + 0x30, 0);
		push(program, program->a, BYTECODE_A, 5);
		push(program, program->cfunc, CFUNC, 0);
		push(program, program->pcall, PCALL + 0x30, 0);
		push(program, program->b, BYTECODE_B, 31);
		push(program, program->gc, 0, 0);
		chains_sample(&program->chains, FORMAT_STATE_GC);
		chains_commit(&program->chains);
		if (i == 1)
			first = format_sink_bytes(program->chains.sink);
		if (i == 2)
			second = format_sink_bytes(program->chains.sink);
	}
	/* State, a Lua frame of number and line, the list's end; lua_pcall, work, the altered
	 * lua_pcall, b and [gc], the list's end. No names. */
	assert_int_equal(1 + (1 + 2 + 1) + 1 + (2 + 2 + 1 + 2 + 1) + 1, second - first);
}

static void test_unknown_writer(void **state)
{
	(void)state;
	assert_null(format_writer_find("nothing"));
	assert_string_equal("sysprof", format_writers[0]->name);
	assert_string_equal("TRACE", format_state_name(FORMAT_STATE_TRACE));
}

#define SHAPE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SHAPE(test_single_run),
		SHAPE(test_inserted_trigger),
		SHAPE(test_nested_runs),
		SHAPE(test_trigger_farther_away),
		SHAPE(test_cpcall_before),
		SHAPE(test_no_run),
		SHAPE(test_coroutine),
		SHAPE(test_unknown_fast_function),
		SHAPE(test_activity_leaves),
		SHAPE(test_activities_below_native_frames),
		SHAPE(test_no_activities),
		SHAPE(test_trace_leaf),
		SHAPE(test_trace_alone),
		SHAPE(test_recursion),
		SHAPE(test_chunk_names),
		SHAPE(test_native_position_keeps_function),
		cmocka_unit_test(test_first_lines),
		SHAPE(test_same_address),
		SHAPE(test_processes_at_same_addresses),
		SHAPE(test_processes_with_same_library),
		SHAPE(test_reused_memory),
		SHAPE(test_no_addresses),
		SHAPE(test_empty_chain),
		SHAPE(test_weight),
		SHAPE(test_many_traces),
		SHAPE(test_refused_samples),
		SHAPE(test_symbols_once),
		cmocka_unit_test(test_unknown_writer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
