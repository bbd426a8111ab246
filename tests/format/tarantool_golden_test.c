/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "chains.h"
#include "format/profile/profile_internal.h"
#include "format/report/call_tree.h"
#include "format/stream/tarantool_output.h"

static const char *const sysprof_streams[] = {
	"gc64/sysprof_c_compile",     "gc64/sysprof_c_full_deep", "gc64/sysprof_c_full_jitoff",
	"gc64/sysprof_c_jitoff",      "gc64/sysprof_c_jiton",	  "gc64/sysprof_l_jitoff",
	"gc64/sysprof_l_jiton",	      "gc32/sysprof_c_compile",	  "gc32/sysprof_c_full_deep",
	"gc32/sysprof_c_full_jitoff", "gc32/sysprof_c_jitoff",	  "gc32/sysprof_c_jiton",
	"gc32/sysprof_l_jitoff",      "gc32/sysprof_l_jiton",
};

static const struct {
	const char *name;
	unsigned allocs, frees, reallocs;
} memprof_streams[] = {
	{ "gc64/memprof_cfunc", 113, 107, 11 }, { "gc64/memprof_jitoff", 104, 98, 11 },
	{ "gc64/memprof_jiton", 115, 102, 12 }, { "gc32/memprof_cfunc", 113, 107, 11 },
	{ "gc32/memprof_jitoff", 104, 98, 12 }, { "gc32/memprof_jiton", 114, 101, 14 },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static FILE *open_golden(const char *name, const char *ending)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/golden/%s%s", TEST_DATA_DIR, name, ending);
	file = fopen(path, "rb");
	if (!file)
		fail_msg("cannot open %s", path);
	return file;
}

static char *read_all(FILE *file)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	int c;

	rewind(file);
	while ((c = getc(file)) != EOF)
		putc(c, out);
	fclose(out);
	return text;
}

static char *read_golden(const char *name, const char *ending)
{
	FILE *file = open_golden(name, ending);
	char *text = read_all(file);

	fclose(file);
	return text;
}

/* ---- What the reference prints ---------------------------------------------------------- */

static void test_reference_text(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(sysprof_streams); i++) {
		FILE *file = open_golden(sysprof_streams[i], ".bin");
		char *expected = read_golden(sysprof_streams[i], ".txt");
		struct format_text text = { 0 };
		struct failure why = { 0 };

		assert_int_equal(0, tarantool_print_sysprof(file, &text, &why));
		assert_string_equal(expected, text.bytes);
		format_text_deinit(&text);
		free(expected);
		fclose(file);
	}
}

static void test_counters(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(sysprof_streams); i++) {
		FILE *file = open_golden(sysprof_streams[i], ".bin");
		char *expected = read_golden(sysprof_streams[i], ".counters.txt");
		char *text = chains_report_of(file, "counters");

		assert_string_equal(expected, text);
		free(text);
		free(expected);
		fclose(file);
	}
}

/** Take ":0x…" off each frame of a reference line, the last ";", and the tab. */
static char *normalise_line(char *line, unsigned *ret_count)
{
	char *tab = strchr(line, '\t'), *out = line;

	*ret_count = (unsigned)atoi(tab + 1);
	*tab = '\0';
	for (char *in = line; *in;) {
		size_t len = strcspn(in, ";");
		char *address = NULL;

		for (char *at = in; at + 3 <= in + len; at++)
			if (memcmp(at, ":0x", 3) == 0)
				address = at;
		memmove(out, in, address ? (size_t)(address - in) : len);
		out += address ? (size_t)(address - in) : len;
		in += len;
		if (*in)
			in++;
		*out++ = ';';
	}
	*out = '\0';
	out[-1] = '\0';
	return line;
}

struct folded_line {
	const char *text;
	unsigned count;
};

static int compare_folded(const void *a, const void *b)
{
	return strcmp(((const struct folded_line *)a)->text, ((const struct folded_line *)b)->text);
}

/** Sort, and add up lines that became equal. */
static size_t sum_folded(struct folded_line *lines, size_t count)
{
	size_t kept = 0;

	qsort(lines, count, sizeof(*lines), compare_folded);
	for (size_t i = 1; i < count; i++) {
		if (strcmp(lines[kept].text, lines[i].text) == 0)
			lines[kept].count += lines[i].count;
		else
			lines[++kept] = lines[i];
	}
	return count ? kept + 1 : 0;
}

/** The folded report is the reference's text without addresses, its separator at the end, and with
 *  a blank for the tab. Leaf mode and traces are left out: there we show more than the reference.
 */
static void test_folded(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(sysprof_streams); i++) {
		struct folded_line ours[500], theirs[500];
		size_t our_count = 0, their_count = 0;
		FILE *file;
		char *folded, *text, *save;

		if (!strstr(sysprof_streams[i], "full") && !strstr(sysprof_streams[i], "compile"))
			continue;
		file = open_golden(sysprof_streams[i], ".bin");
		folded = chains_report_of(file, "folded");
		text = read_golden(sysprof_streams[i], ".txt");
		for (char *line = strtok_r(text, "\n", &save); line;
		     line = strtok_r(NULL, "\n", &save), their_count++)
			theirs[their_count].text = normalise_line(line, &theirs[their_count].count);
		for (char *line = strtok_r(folded, "\n", &save); line;
		     line = strtok_r(NULL, "\n", &save), our_count++) {
			char *blank = strrchr(line, ' ');

			*blank = '\0';
			ours[our_count].text = line;
			ours[our_count].count = (unsigned)atoi(blank + 1);
		}
		our_count = sum_folded(ours, our_count);
		their_count = sum_folded(theirs, their_count);
		assert_int_equal(their_count, our_count);
		for (size_t j = 0; j < our_count; j++) {
			assert_string_equal(theirs[j].text, ours[j].text);
			assert_int_equal(theirs[j].count, ours[j].count);
		}
		free(text);
		free(folded);
		fclose(file);
	}
}

/** A location with the lines below it. */
struct entry {
	char *text;
	unsigned events;
};

static int compare_entries(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	if (a->events != b->events)
		return a->events > b->events ? -1 : 1;
	return strcmp(a->text, b->text);
}

/** Sort locations with equal counts by their texts: their order is arbitrary in the reference.
 * Those with other counts must be sorted. */
static void flush_entries(struct entry *entries, size_t count, struct format_text *text)
{
	for (size_t i = 1; i < count; i++)
		assert_true(entries[i - 1].events >= entries[i].events);
	qsort(entries, count, sizeof(*entries), compare_entries);
	for (size_t i = 0; i < count; i++) {
		format_text_add_string(text, entries[i].text);
		free(entries[i].text);
	}
}

/** A memory report in an order that says the same of equal texts. */
static void normalise_memory(char *report, struct format_text *text)
{
	struct entry entries[100];
	bool is_below = false;
	size_t count = 0;
	char *line, *longer;

	while ((line = strsep(&report, "\n"))) {
		const char *events = strstr(line, " events\t"), *holds = strstr(line, " holds ");

		if (events || holds) {
			assert_true(count < 100);
			for (; events && events[-1] != ' '; events--)
				;
			entries[count].events =
				(unsigned)atoi(holds ? holds + strlen(" holds ") : events);
			assert_true(asprintf(&entries[count++].text, "%s\n", line) > 0);
		} else if (count > 0 && (*line == '\t' || (*line == '\0' && is_below))) {
			assert_true(asprintf(&longer, "%s%s\n", entries[count - 1].text, line) > 0);
			free(entries[count - 1].text);
			entries[count - 1].text = longer;
		} else {
			flush_entries(entries, count, text);
			count = 0;
			format_text_addf(text, "%s\n", line);
		}
		is_below = *line == '\t';
	}
	assert_int_equal(0, count);
}

/** The report of a memory profile is the reference's, byte for byte. */
static void test_memprof(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(memprof_streams); i++) {
		FILE *file = open_golden(memprof_streams[i].name, ".bin");
		char *expected = read_golden(memprof_streams[i].name, ".txt");
		char *printed = chains_report_of(file, "top");
		struct format_text ours = { 0 }, theirs = { 0 };
		struct format_profile *profile;
		struct failure why = { 0 };
		struct heap_location sum;

		normalise_memory(printed, &ours);
		normalise_memory(expected, &theirs);
		assert_string_equal(theirs.bytes, ours.bytes);
		rewind(file);
		assert_int_equal(0, format_profile_read(file, &profile, &why));
		assert_int_equal(FORMAT_STREAM_MEMPROF, format_profile_kind(profile));
		sum = heap_sum(&profile->heap);
		assert_int_equal(memprof_streams[i].allocs, sum.counts[HEAP_ALLOC].events);
		assert_int_equal(memprof_streams[i].frees, sum.counts[HEAP_FREE].events);
		assert_int_equal(memprof_streams[i].reallocs, sum.counts[HEAP_REALLOC].events);
		format_text_deinit(&ours);
		format_text_deinit(&theirs);
		format_profile_destroy(profile);
		free(printed);
		free(expected);
		fclose(file);
	}
}

/* ---- Written again ---------------------------------------------------------------------- */

struct copier {
	struct format_sink *sink;
	enum format_stream_kind kind;
	bool in_table;
	size_t table_symbols, symbols;
};

static int count_symbol(void *context, const struct format_symbol *symbol, struct failure *why)
{
	struct copier *copier = context;

	(void)symbol;
	(void)why;
	copier->symbols++;
	return 0;
}

static void end_table(struct copier *copier)
{
	if (!copier->in_table)
		return;
	copier->in_table = false;
	assert_int_equal(0, format_put_symtab_end(copier->sink, NULL));
	assert_int_equal(0, format_put_prologue(copier->sink, copier->kind, NULL));
}

static int copy_symbol(void *context, const struct format_symbol *symbol, struct failure *why)
{
	struct copier *copier = context;

	if (copier->table_symbols == 0)
		end_table(copier);
	if (!copier->in_table)
		return copier->kind == FORMAT_STREAM_SYSPROF
			       ? format_put_symbol(copier->sink, symbol, why)
			       : format_put_event_symbol(copier->sink, symbol, why);
	copier->table_symbols--;
	return format_put_symtab_symbol(copier->sink, symbol, why);
}

static int copy_sample(void *context, const struct format_raw_sample *raw, struct failure *why)
{
	struct copier *copier = context;

	end_table(copier);
	return format_put_sample(copier->sink, raw, why);
}

static int copy_event(void *context, const struct format_raw_event *event, struct failure *why)
{
	struct copier *copier = context;

	end_table(copier);
	return format_put_event(copier->sink, event, why);
}

/** Number of records in a stream's table: all but those behind the second prologue. The reader does
 *  not tell where the table ends, so this looks for the end byte followed by a prologue. */
static size_t count_table_symbols(const char *bytes, size_t len, enum format_stream_kind kind)
{
	static const struct format_visitor visitor = { .symbol = count_symbol };
	struct copier copier = { 0 };
	enum format_stream_kind ignored;
	const char *magic = kind == FORMAT_STREAM_SYSPROF ? "\x80ljp\x02" : "\x80ljm\x03";
	const char *end = memmem(bytes, len, magic, 5);
	char *head;
	size_t head_len;

	assert_non_null(end);
	head_len = (size_t)(end - bytes) + 8;
	head = malloc(head_len + 1);
	memcpy(head, bytes, head_len);
	head[head_len] = '\x80';
	assert_int_equal(0,
			 format_read_bytes(head, head_len + 1, &visitor, &copier, &ignored, NULL));
	free(head);
	return copier.symbols;
}

static void copy_stream(const char *name, enum format_stream_kind kind)
{
	static const struct format_visitor visitor = {
		.symbol = copy_symbol,
		.sample = copy_sample,
		.event = copy_event,
	};
	FILE *file = open_golden(name, ".bin"), *copy = tmpfile();
	struct copier copier = { .kind = kind, .in_table = true };
	enum format_stream_kind read_kind;
	size_t len, copy_len;
	char *bytes = malloc(1 << 20), *copied = malloc(1 << 20);

	len = fread(bytes, 1, 1 << 20, file);
	copier.table_symbols = count_table_symbols(bytes, len, kind);
	assert_int_equal(0, format_sink_create(dup(fileno(copy)), &copier.sink, NULL));
	assert_int_equal(0, format_put_symtab_prologue(copier.sink, NULL));
	assert_int_equal(0, format_read_bytes(bytes, len, &visitor, &copier, &read_kind, NULL));
	assert_int_equal(kind, read_kind);
	assert_int_equal(0, format_sink_commit(copier.sink, "\x80", 1, true, NULL));
	assert_int_equal(len, format_sink_bytes(copier.sink));
	copy_len = fread(copied, 1, 1 << 20, copy);
	assert_int_equal(len, copy_len);
	assert_memory_equal(bytes, copied, len);
	format_sink_destroy(copier.sink);
	free(bytes);
	free(copied);
	fclose(copy);
	fclose(file);
}

/** Reader and writer together give back the same bytes. */
static void test_copies(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(sysprof_streams); i++)
		copy_stream(sysprof_streams[i], FORMAT_STREAM_SYSPROF);
	for (size_t i = 0; i < COUNT(memprof_streams); i++)
		copy_stream(memprof_streams[i].name, FORMAT_STREAM_MEMPROF);
}

/** A golden profile's chains as finished samples, with addresses made up where the profile has
 *  none left. */
static void rewrite_profile(const struct format_profile *profile, struct chains *chains)
{
	const struct format_writer_ops *ops = format_writer_find("sysprof");
	uint32_t functions = format_functions_count(profile->functions), id;
	struct failure why = { 0 };

	for (uint32_t i = 0; i < functions; i++) {
		struct format_function function = *format_functions_get(profile->functions, i);

		if (function.kind == FORMAT_KIND_NATIVE || function.kind == FORMAT_KIND_CFUNC)
			function.address = 0x500000 + i * 0x1000;
		assert_int_equal(0, format_functions_add(chains->functions, &function, &id, &why));
	}
	for (uint32_t i = 0; i < intern_count(profile->chains); i++) {
		size_t count;
		const struct profile_frame *from = profile_chain(profile, i, &count);
		struct format_frame *frames = calloc(count + 1, sizeof(*frames));
		struct format_sample sample = { .state = FORMAT_STATE_INTERP, .frames = frames };

		for (size_t j = 0; j < count; j++) {
			const struct profile_frame *frame = &from[count - 1 - j];

			frames[j].function = frame->function;
			frames[j].line = frame->line;
			frames[j].address =
				format_functions_get(chains->functions, frame->function)->address +
				0x80 + 4 * (frame->line % 256);
		}
		sample.frame_count = (uint32_t)count;
		sample.weight = (uint32_t)profile->counts[i];
		assert_int_equal(0, ops->sample(chains->writer, &sample, &why));
		free(frames);
	}
}

/** Chains of real programs, through our writer and back. */
static void test_rewritten(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(sysprof_streams); i++) {
		FILE *file = open_golden(sysprof_streams[i], ".bin");
		char *expected = chains_report_of(file, "folded"), *text;
		struct format_profile *profile;
		struct failure why = { 0 };
		struct chains chains;

		rewind(file);
		assert_int_equal(0, format_profile_read(file, &profile, &why));
		chains_open(&chains, false);
		rewrite_profile(profile, &chains);
		text = chains_report(&chains, "folded");
		assert_string_equal(expected, text);
		free(text);
		free(expected);
		chains_close(&chains);
		format_profile_destroy(profile);
		fclose(file);
	}
}

/** Version 0.1.0 wrote addresses. */
static void test_addresses(void **state)
{
	const struct format_report_options options = { .annotate = FORMAT_ANNOTATE_TRACE };
	FILE *file = open_golden("ljprof/addresses", ".bin");
	char *expected = read_golden("ljprof/addresses", ".folded.txt");
	char *text = chains_report_as(file, "folded", &options);

	(void)state;
	assert_string_equal(expected, text);
	assert_non_null(strstr(text, "[trace 1]"));
	free(text);
	free(expected);
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reference_text), cmocka_unit_test(test_counters),
		cmocka_unit_test(test_folded),	       cmocka_unit_test(test_memprof),
		cmocka_unit_test(test_copies),	       cmocka_unit_test(test_rewritten),
		cmocka_unit_test(test_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
