/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chains.h"
#include "tests/rounds.h"

/*
 * What a sysprof stream tells of traces: symbols, bare records, and frames that are compiled.
 */

#define MAIN	   0x401000
#define PCALL	   0x402000
#define CFUNC	   0x7f0000001000
#define PROTO_A	   0x41000000
#define PROTO_B	   0x41001000
#define BYTECODE_A (PROTO_A + 0x68)

struct program {
	struct chains chains;
	uint32_t main, pcall, a, nameless, gsub, cfunc, gc;
};

static void start(struct program *program, const struct format_options *options)
{
	struct chains *chains = &program->chains;

	chains_open_with(chains, options);
	program->main = chains_native(chains, MAIN, "main");
	program->pcall = chains_native(chains, PCALL, "lua_pcall");
	program->a = chains_lua(chains, PROTO_A, "@a.lua", 3, "alpha");
	program->nameless = chains_lua(chains, 0x41002000, "@b.lua", 50, NULL);
	program->gsub = chains_fast(chains, "string.gsub");
	program->cfunc = chains_cfunc(chains, CFUNC, "work");
	program->gc = chains_pseudo(chains, "[gc]");
}

static int set_up(void **state)
{
	static const struct format_options options = { 0 };
	struct program *program = calloc(1, sizeof(*program));

	start(program, &options);
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

/** Both readers' texts. */
static void expect(struct program *program, const char *folded, const char *reference)
{
	char *text = chains_report(&program->chains, "folded");

	assert_string_equal(folded, text);
	free(text);
	text = chains_reference(&program->chains);
	assert_string_equal(reference, text);
	free(text);
}

static void expect_part(char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no '%s' in %s", part, text);
	free(text);
}

static void expect_count(struct program *program, const char *line)
{
	expect_part(chains_report(&program->chains, "counters"), line);
}

static void expect_annotated(struct program *program, const char *report,
			     enum format_annotate annotate, const char *expected)
{
	expect_part(chains_report_annotated(&program->chains, report, annotate), expected);
}

static void push(struct program *program, uint32_t function, uint64_t address, uint32_t line)
{
	chains_push(&program->chains, function, address, line);
}

/** The records of a stream that tell of traces. */
struct records {
	unsigned traces, protos;	   /* Trace symbols; prototypes. */
	struct format_symbol trace, proto; /* The last of each. */
	unsigned trace_samples, samples;
	struct format_raw_sample sample; /* The last trace sample. */
};

static int on_symbol(void *context, const struct format_symbol *symbol, struct failure *why)
{
	struct records *records = context;

	(void)why;
	if (symbol->kind == FORMAT_SYMBOL_TRACE) {
		records->traces++;
		records->trace = *symbol;
	}
	if (symbol->kind == FORMAT_SYMBOL_LUA) {
		records->protos++;
		records->proto = *symbol;
	}
	return 0;
}

static int on_sample(void *context, const struct format_raw_sample *sample, struct failure *why)
{
	struct records *records = context;

	(void)why;
	records->samples++;
	if (sample->state != FORMAT_STATE_TRACE)
		return 0;
	records->trace_samples++;
	records->sample = *sample;
	return 0;
}

static struct records read_records(struct chains *chains)
{
	const struct format_visitor visitor = { .symbol = on_symbol, .sample = on_sample };
	struct records records = { 0 };
	enum format_stream_kind kind;
	struct failure why = { 0 };

	chains_commit(chains);
	rewind(chains->file);
	assert_int_equal(0, format_read_stream(chains->file, &visitor, &records, &kind, &why));
	return records;
}

static void sample_in_trace(struct program *program, uint32_t number, uint32_t function)
{
	const struct format_sample like = { .state = FORMAT_STATE_TRACE,
					    .trace = number,
					    .trace_function = function,
					    .compiled = FORMAT_COMPILED_EXACT,
					    .weight = 1 };

	push(program, program->pcall, PCALL + 0x30, 0);
	push(program, program->a, BYTECODE_A, 5);
	chains_sample_like(&program->chains, &like);
}

/** A trace has a symbol from its first sample on, and a new one when its number is used again. */
static void test_trace_symbols(void **state)
{
	struct program *program = *state;
	uint32_t first = chains_trace_in(&program->chains, 7, "@a.lua", 5, PROTO_A, 3);
	uint32_t again = chains_trace_in(&program->chains, 7, "@b.lua", 32, PROTO_B, 30);
	struct records records;

	sample_in_trace(program, 7, FORMAT_NO_FUNCTION);
	sample_in_trace(program, 7, program->a); /* no trace: not believed */
	assert_int_equal(0, read_records(&program->chains).traces);
	sample_in_trace(program, 7, first);
	sample_in_trace(program, 7, first);
	records = read_records(&program->chains);
	assert_int_equal(1, records.traces);
	assert_int_equal(7, records.trace.trace);
	assert_int_equal(records.proto.address, records.trace.address);
	assert_int_equal(5, records.trace.line);
	/* The function has its record for its own sake already. */
	assert_int_equal(1, records.protos);
	sample_in_trace(program, 7, again);
	records = read_records(&program->chains);
	assert_int_equal(2, records.traces);
	assert_int_equal(2, records.protos);
	assert_int_equal(records.proto.address, records.trace.address);
	assert_int_equal(32, records.trace.line);
	assert_int_equal(0, records.trace_samples);
	expect(program, "lua_pcall;alpha (@a.lua:5) 5\n", "lua_pcall;@a.lua:5; 5\n");
}

/** Samples as Tarantool's profiler writes them: number, prototype, its first line. */
static void test_trace_records(void **state)
{
	const struct format_options options = { .trace_records = true };
	struct program program = { 0 };
	struct format_sample like = { .state = FORMAT_STATE_TRACE, .weight = 1 };
	struct records records;
	uint32_t trace;

	(void)state;
	start(&program, &options);
	trace = chains_trace_in(&program.chains, 7, "@a.lua", 5, PROTO_A, 3);
	sample_in_trace(&program, 7, trace);
	records = read_records(&program.chains);
	assert_int_equal(1, records.samples);
	assert_int_equal(1, records.trace_samples);
	assert_int_equal(7, records.sample.trace);
	assert_int_equal(records.proto.address, records.sample.trace_proto);
	assert_int_equal(3, records.sample.trace_line);
	assert_int_equal(5, records.trace.line);
	assert_int_equal(3, records.proto.line);
	/* Where the trace is not known, its number is all there is. */
	sample_in_trace(&program, 8, FORMAT_NO_FUNCTION);
	/* A sample in another state has its chain. */
	like.state = FORMAT_STATE_INTERP;
	push(&program, program.pcall, PCALL + 0x30, 0);
	push(&program, program.a, BYTECODE_A, 5);
	chains_sample_like(&program.chains, &like);
	expect(&program, "lua_pcall;alpha (@a.lua:5) 1\ntrace 7 @ a.lua:5 1\ntrace 8 1\n",
	       " 2\nlua_pcall;@a.lua:5; 1\n");
	expect_count(&program, "\nTRACE 2\n");
	chains_close(&program.chains);
}

static void push_compiled(struct program *program, uint32_t trace, bool approximate)
{
	push(program, program->a, BYTECODE_A, 5);
	chains_mark(&program->chains, trace, approximate);
}

/** Compiled frames say so to our reader; the reference prints them like all others. */
static void test_compiled_frames(void **state)
{
	struct program *program = *state;

	push(program, program->pcall, PCALL + 0x30, 0);
	push(program, program->a, BYTECODE_A, 5);
	push_compiled(program, 7, false);
	push(program, program->nameless, 0x41002068, 52);
	chains_mark(&program->chains, 7, true);
	chains_sample(&program->chains, FORMAT_STATE_TRACE);
	expect(program, "lua_pcall;alpha (@a.lua:5);alpha (@a.lua:5);@b.lua:52 1\n",
	       "lua_pcall;@a.lua:5;@a.lua:5;@b.lua:52; 1\n");
	expect_annotated(program, "folded", FORMAT_ANNOTATE_JIT,
			 "lua_pcall;alpha (@a.lua:5);alpha (@a.lua:5)_[j];@b.lua:52~_[j] 1\n");
	expect_annotated(
		program, "folded", FORMAT_ANNOTATE_TRACE,
		"lua_pcall;alpha (@a.lua:5);alpha (@a.lua:5) [trace 7];@b.lua:52 [trace ~7] 1\n");
	expect_annotated(program, "top", FORMAT_ANNOTATE_JIT,
			 "  Lua       <b.lua:50>~_[j]  b.lua:50\n");
	expect_annotated(program, "top", FORMAT_ANNOTATE_JIT,
			 "  Lua       alpha_[j]        a.lua:3\n");
	expect_annotated(program, "svg", FORMAT_ANNOTATE_JIT, "alpha (@a.lua:5)_[j]");
	expect_count(program, "\nTRACE 1\n");
}

/** ... behind a call from C as well, where the stream has them among the host frames. */
static void test_compiled_host_frames(void **state)
{
	struct program *program = *state;

	for (uint32_t trace = 0; trace < 3; trace++) {
		push(program, program->pcall, PCALL + 0x30, 0);
		push(program, program->a, BYTECODE_A, 5);
		push(program, program->cfunc, CFUNC, 0);
		push(program, program->pcall, PCALL + 0x30, 0);
		push_compiled(program, trace, trace == 2);
		chains_sample(&program->chains, FORMAT_STATE_TRACE);
	}
	expect(program, "lua_pcall;alpha (@a.lua:5);work;lua_pcall;alpha (@a.lua:5) 3\n",
	       "lua_pcall;@a.lua:5;work [C];api:lua_pcall;@a.lua:5; 3\n");
	expect_annotated(
		program, "folded", FORMAT_ANNOTATE_TRACE,
		"lua_pcall;alpha (@a.lua:5);work;lua_pcall;alpha (@a.lua:5) 1\n"
		"lua_pcall;alpha (@a.lua:5);work;lua_pcall;alpha (@a.lua:5) [trace 1] 1\n"
		"lua_pcall;alpha (@a.lua:5);work;lua_pcall;alpha (@a.lua:5) [trace ~2] 1\n");
	expect_count(program, "\nLFUNC 1\n");
	expect_count(program, "\nTRACE 2\n");
}

/** The state is that of the innermost frame that tells. */
static void test_state_in_traces(void **state)
{
	struct program *program = *state;
	uint32_t trace = chains_trace(&program->chains, 7, "@a.lua", 12);

	push_compiled(program, 7, false);
	push(program, program->gsub, 0, 0);
	push(program, program->main, MAIN, 0);
	chains_sample(&program->chains, FORMAT_STATE_TRACE);
	push(program, program->a, BYTECODE_A, 5);
	push(program, trace, 0, 0);
	push(program, program->main, MAIN, 0);
	chains_sample(&program->chains, FORMAT_STATE_TRACE);
	push_compiled(program, 7, false);
	push(program, program->gc, 0, 0);
	chains_sample(&program->chains, FORMAT_STATE_GC);
	push_compiled(program, 7, false);
	push(program, program->cfunc, CFUNC, 0);
	push(program, program->a, BYTECODE_A, 5);
	chains_sample(&program->chains, FORMAT_STATE_INTERP);
	expect_count(program, "\nTRACE 2\n");
	expect_count(program, "\nGC 1\n");
	expect_count(program, "\nLFUNC 1\n");
	/* A trace as a frame is compiled code too. */
	expect_annotated(program, "folded", FORMAT_ANNOTATE_JIT,
			 "alpha (@a.lua:5);trace 7 @ a.lua:12_[j];main 1\n");
}

/** A name that looks like a mark is one only where our writer puts marks. */
static void test_names_like_marks(void **state)
{
	struct program *program = *state;
	uint32_t odd = chains_lua(&program->chains, 0x41005000, "@c.lua", 1, "f[trace 3]");

	push(program, odd, 0x41005068, 2);
	chains_sample(&program->chains, FORMAT_STATE_INTERP);
	push(program, odd, 0x41005068, 2);
	chains_mark(&program->chains, 4, false);
	chains_sample(&program->chains, FORMAT_STATE_TRACE);
	expect_annotated(program, "folded", FORMAT_ANNOTATE_TRACE,
			 "f[trace 3] (@c.lua:2) 1\nf[trace 3] (@c.lua:2) [trace 4] 1\n");
}

/** Functions by traces, up to the bound: frames of further ones only say that they are compiled. */
static void test_many_compiled(void **state)
{
	enum { TOLD = 1 << 18, MORE = 100 };
	struct program *program = *state;
	struct records records;
	char *text;

	for (uint32_t i = 1; i <= TOLD + MORE; i++) {
		push_compiled(program, i, false);
		chains_sample(&program->chains, FORMAT_STATE_TRACE);
	}
	push_compiled(program, 7, false);
	chains_sample(&program->chains, FORMAT_STATE_TRACE);
	records = read_records(&program->chains);
	assert_int_equal(TOLD + MORE + 1, records.samples);
	assert_int_equal(TOLD + 1, records.protos);
	text = chains_report_annotated(&program->chains, "folded", FORMAT_ANNOTATE_TRACE);
	assert_non_null(strstr(text, "alpha (@a.lua:5) [trace 7] 2\n"));
	assert_non_null(strstr(text, "alpha (@a.lua:5) [trace 262144] 1\n"));
	assert_non_null(strstr(text, "alpha (@a.lua:5) [trace 0] 100\n"));
	free(text);
}

#define TRACES(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TRACES(test_trace_symbols),   cmocka_unit_test(test_trace_records),
		TRACES(test_compiled_frames), TRACES(test_compiled_host_frames),
		TRACES(test_state_in_traces), TRACES(test_names_like_marks),
	};
	const struct CMUnitTest long_tests[] = { TRACES(test_many_compiled) };
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	return test_is_full() ? failed + cmocka_run_group_tests(long_tests, NULL, NULL) : failed;
}
