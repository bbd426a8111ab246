/* SPDX-License-Identifier: MIT */
#include "naive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/stream.h"
#include "format/text/builtin_names.h"

#define SYMBOLS_MAX 40000
#define LINES_MAX   4000

struct line {
	char *text;
	unsigned count;
};

static struct {
	struct format_symbol symbols[SYMBOLS_MAX];
	char *names[SYMBOLS_MAX];
	size_t symbol_count;
	struct line lines[LINES_MAX];
	size_t line_count;
} naive;

static int on_symbol(void *context, const struct format_symbol *symbol, struct failure *why)
{
	char *name = strndup(symbol->name_len ? symbol->name : "", symbol->name_len);

	(void)context;
	(void)why;
	assert_true(naive.symbol_count < SYMBOLS_MAX);
	naive.symbols[naive.symbol_count] = *symbol;
	naive.names[naive.symbol_count++] = name;
	return 0;
}

/** Later records win; a prototype beats any C symbol. */
static char *name_address(uint64_t address, uint64_t line)
{
	const char *best = NULL;
	uint64_t best_address = 0;
	char *text = NULL;

	for (size_t i = naive.symbol_count; i-- > 0;) {
		const struct format_symbol *symbol = &naive.symbols[i];

		if (symbol->kind == FORMAT_SYMBOL_LUA && symbol->address == address) {
			assert_true(asprintf(&text, "%s:%llu", naive.names[i],
					     (unsigned long long)line) > 0);
			return text;
		}
		if (symbol->kind == FORMAT_SYMBOL_C && symbol->address <= address &&
		    (!best || symbol->address > best_address)) {
			best = naive.names[i];
			best_address = symbol->address;
		}
	}
	assert_non_null(best);
	return strdup(best);
}

static bool begins(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static void add_line(char *text)
{
	for (size_t i = 0; i < naive.line_count; i++) {
		if (strcmp(naive.lines[i].text, text) == 0) {
			naive.lines[i].count++;
			free(text);
			return;
		}
	}
	assert_true(naive.line_count < LINES_MAX);
	naive.lines[naive.line_count++] = (struct line){ text, 1 };
}

static char *name_lua(const struct format_lua_frame *frame)
{
	if (frame->kind == 3)
		return strdup(format_ffname_of(frame->address));
	return name_address(frame->address, frame->line);
}

/** The list operations of the reference, one by one. */
static int on_sample(void *context, const struct format_raw_sample *raw, struct failure *why)
{
	struct format_lua_frame *list = calloc(raw->lua_count + 1, sizeof(*list));
	size_t count = raw->lua_count, len;
	char *text, *name;
	FILE *out = open_memstream(&text, &len);

	(void)context;
	(void)why;
	for (size_t i = 0; i < count; i++)
		list[i] = raw->lua[count - 1 - i];
	for (size_t h = raw->host_count; h-- > 0; free(name)) {
		name = name_address(raw->host[h], 0);
		fprintf(out, "%s;", name);
		if (begins(name, "lua_cpcall") && count > 0)
			count--;
		if (begins(name, "lua_call") || begins(name, "lua_pcall")) {
			size_t taken = 0, removed;

			for (; taken < count && list[taken].kind != 2; taken++) {
				char *lua = name_lua(&list[taken]);

				fprintf(out, "%s;", lua);
				free(lua);
			}
			removed = taken < count ? taken : taken - 1;
			if (count > 0) {
				for (size_t i = removed; i + 1 < count; i++)
					list[i] = list[i + 1];
				count--;
			}
		}
	}
	fclose(out);
	free(list);
	add_line(text);
	return 0;
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct line *)a)->text, ((const struct line *)b)->text);
}

char *naive_print(FILE *file)
{
	static const struct format_visitor visitor = { .symbol = on_symbol, .sample = on_sample };
	enum format_stream_kind kind;
	struct failure why = { 0 };
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	rewind(file);
	assert_int_equal(0, format_read_stream(file, &visitor, NULL, &kind, &why));
	qsort(naive.lines, naive.line_count, sizeof(naive.lines[0]), compare);
	for (size_t i = 0; i < naive.line_count; i++) {
		fprintf(out, "%s %u\n", naive.lines[i].text, naive.lines[i].count);
		free(naive.lines[i].text);
	}
	for (size_t i = 0; i < naive.symbol_count; i++)
		free(naive.names[i]);
	naive.line_count = 0;
	naive.symbol_count = 0;
	fclose(out);
	return text;
}
