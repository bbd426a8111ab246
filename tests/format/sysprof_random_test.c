/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chains.h"

/*
 * Random chains of all kinds of functions, with addresses that collide and memory that is used
 * again, against what the chains were made of.
 */

#define ROUNDS	      40
#define CHAINS	      60
#define FUNCTIONS     40
#define CHAIN_LEN_MAX 12
#define TRACES	      5

struct maker {
	struct chains chains;
	uint32_t ids[FUNCTIONS];
	enum format_kind kinds[FUNCTIONS];
	uint64_t addresses[FUNCTIONS];
	char names[FUNCTIONS][64];
	char *lines[CHAINS], *marked[CHAINS];
};

static uint32_t pick(uint32_t count)
{
	return (uint32_t)rand() % count;
}

static void make_native(struct maker *maker, uint32_t i, enum format_kind kind)
{
	static const char *const calls[] = { "lua_call", "lua_pcall", "lua_cpcall",
					     "lua_callback" };
	char *name = maker->names[i];

	/* Functions side by side, some at one address. */
	maker->addresses[i] = 0x400000 + 0x10 * pick(20);
	if (pick(3) == 0)
		strcpy(name, calls[pick(4)]);
	else
		snprintf(name, sizeof(maker->names[i]), "native_%u", i);
	maker->ids[i] = kind == FORMAT_KIND_NATIVE
				? chains_native(&maker->chains, maker->addresses[i], name)
				: chains_cfunc(&maker->chains, maker->addresses[i], name);
}

static void make_function(struct maker *maker, uint32_t i)
{
	enum format_kind kind = (enum format_kind)pick(FORMAT_KIND_COUNT);
	char *name = maker->names[i];

	maker->kinds[i] = kind;
	switch (kind) {
	case FORMAT_KIND_LUA:
		maker->addresses[i] = 0x41000000 + 0x200 * i;
		snprintf(name, sizeof(maker->names[i]), pick(4) ? "@f%u.lua" : "lua_call%u()", i);
		maker->ids[i] = chains_lua(&maker->chains, maker->addresses[i], name, i, NULL);
		break;
	case FORMAT_KIND_BUILTIN:
		strcpy(name, pick(3) ? "string.gsub" : "table.odd");
		maker->ids[i] = chains_fast(&maker->chains, name);
		break;
	case FORMAT_KIND_TRACE:
		snprintf(name, sizeof(maker->names[i]), "trace %u @ f.lua:%u", i, i * 2);
		maker->ids[i] = chains_trace(&maker->chains, i, "@f.lua", i * 2);
		break;
	case FORMAT_KIND_PROCESS:
		snprintf(name, sizeof(maker->names[i]), "a program [%u]", i + 1);
		maker->ids[i] = chains_process(&maker->chains, i + 1, name);
		break;
	case FORMAT_KIND_PSEUDO:
		strcpy(name, "[gc]");
		maker->ids[i] = chains_pseudo(&maker->chains, name);
		break;
	default:
		make_native(maker, i, kind);
	}
}

/** Say of some frames that they are compiled. @param marked Receives what is annotated. */
static void make_mark(struct maker *maker, FILE *marked)
{
	uint32_t trace = pick(2) ? 1 + pick(TRACES) : 0;
	bool approximate = pick(2);

	chains_mark(&maker->chains, trace, approximate);
	if (trace)
		fprintf(marked, " [trace %s%u]", approximate ? "~" : "", trace);
}

/** Add a frame and its expected label, without and with its annotation. */
static void make_frame(struct maker *maker, FILE *line, FILE *marked)
{
	uint32_t i = pick(FUNCTIONS), at = pick(30);
	uint64_t address = maker->addresses[i];

	fputs(maker->names[i], line);
	fputs(maker->names[i], marked);
	if (maker->kinds[i] == FORMAT_KIND_LUA) {
		fprintf(line, ":%u", at + 1);
		fprintf(marked, ":%u", at + 1);
		chains_push(&maker->chains, maker->ids[i], address + 0x68 + 4 * at, at + 1);
		make_mark(maker, marked);
	} else {
		chains_push(&maker->chains, maker->ids[i], address ? address + at : 0, 0);
	}
}

static void make_chain(struct maker *maker, char **ret_line, char **ret_marked)
{
	/* Two frames at least: one trace alone is another record. */
	uint32_t len = 2 + pick(CHAIN_LEN_MAX - 1);
	size_t size;
	FILE *line = open_memstream(ret_line, &size);
	FILE *marked = open_memstream(ret_marked, &size);

	for (uint32_t i = 0; i < len; i++) {
		if (i > 0) {
			putc(';', line);
			putc(';', marked);
		}
		make_frame(maker, line, marked);
	}
	fclose(line);
	fclose(marked);
	chains_sample(&maker->chains, (enum format_state)pick(FORMAT_STATE_COUNT));
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/** Remove all @p part of @p text that stand at the start of a frame or, with @p anywhere, else. */
static void strip(char *text, const char *part, bool anywhere)
{
	size_t len = strlen(part);

	for (char *at = text; (at = strstr(at, part));) {
		if (anywhere || at == text || at[-1] == ';' || at[-1] == '\n')
			memmove(at, at + len, strlen(at + len) + 1);
		else
			at++;
	}
}

/** Split a report into sorted lines, each as often as it counts, without the count. */
static void expect_lines(char *const *expected, char *text, const char *separator)
{
	char *lines[CHAINS], *save;
	size_t count = 0;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *blank = strrchr(line, ' ');

		assert_true(blank - line >= (ptrdiff_t)strlen(separator));
		*(blank - strlen(separator)) = '\0';
		for (int i = atoi(blank + 1); i > 0; i--) {
			assert_true(count < CHAINS);
			lines[count++] = line;
		}
	}
	assert_int_equal(CHAINS, count);
	qsort(lines, CHAINS, sizeof(*lines), compare);
	for (int i = 0; i < CHAINS; i++)
		assert_string_equal(expected[i], lines[i]);
}

static void test_random_chains(void **state)
{
	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct maker maker = { 0 };
		char *text;

		srand(round);
		chains_open(&maker.chains, false);
		for (uint32_t i = 0; i < FUNCTIONS; i++)
			make_function(&maker, i);
		for (uint32_t i = 0; i < CHAINS; i++)
			make_chain(&maker, &maker.lines[i], &maker.marked[i]);
		qsort(maker.lines, CHAINS, sizeof(*maker.lines), compare);
		qsort(maker.marked, CHAINS, sizeof(*maker.marked), compare);
		text = chains_report(&maker.chains, "folded");
		expect_lines(maker.lines, text, "");
		free(text);
		text = chains_report_annotated(&maker.chains, "folded", FORMAT_ANNOTATE_TRACE);
		expect_lines(maker.marked, text, "");
		free(text);
		text = chains_reference(&maker.chains);
		strip(text, "lua_call [LuaJIT];", false);
		strip(text, "api:", false);
		strip(text, " [C]", true);
		expect_lines(maker.lines, text, ";");
		free(text);
		for (uint32_t i = 0; i < CHAINS; i++) {
			free(maker.lines[i]);
			free(maker.marked[i]);
		}
		chains_close(&maker.chains);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_random_chains) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
