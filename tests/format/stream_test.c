/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/sysprof/stream_format.h"
#include "format/text.h"
#include "format/text/base64.h"
#include "format/text/uleb.h"

/* Prologues of an empty symbol table and of the two kinds of stream. */
#define TABLE	"ljs\x03\0\0\0"
#define SYSPROF TABLE "\x80ljp\x02\0\0\0"
#define MEMPROF TABLE "\x80ljm\x03\0\0\0"

#define BYTES(literal) literal, sizeof(literal) - 1

/* ---- What a reader says of bytes -------------------------------------------------------- */

struct seen {
	char text[4096];
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void note(struct seen *seen, const char *layout, ...)
{
	va_list args;

	va_start(args, layout);
	seen->len += (size_t)vsnprintf(seen->text + seen->len, sizeof(seen->text) - seen->len,
				       layout, args);
	va_end(args);
	assert_true(seen->len < sizeof(seen->text));
}

static int on_symbol(void *context, const struct format_symbol *symbol, struct failure *why)
{
	struct seen *seen = context;

	(void)why;
	switch (symbol->kind) {
	case FORMAT_SYMBOL_LUA:
		note(seen, "L %llx %.*s %lld\n", (unsigned long long)symbol->address,
		     (int)symbol->name_len, symbol->name, (long long)symbol->line);
		break;
	case FORMAT_SYMBOL_C:
		note(seen, "C %llx %.*s\n", (unsigned long long)symbol->address,
		     (int)symbol->name_len, symbol->name);
		break;
	case FORMAT_SYMBOL_TRACE:
		note(seen, "T %llu %llx %lld\n", (unsigned long long)symbol->trace,
		     (unsigned long long)symbol->address, (long long)symbol->line);
		break;
	}
	return 0;
}

static int on_sample(void *context, const struct format_raw_sample *raw, struct failure *why)
{
	struct seen *seen = context;

	(void)why;
	note(seen, "%s", format_state_name(raw->state));
	if (raw->state == FORMAT_STATE_TRACE)
		note(seen, " %llu %llx %lld", (unsigned long long)raw->trace,
		     (unsigned long long)raw->trace_proto, (long long)raw->trace_line);
	for (size_t i = 0; i < raw->lua_count; i++)
		note(seen, " %d:%llx:%llu", raw->lua[i].kind,
		     (unsigned long long)raw->lua[i].address, (unsigned long long)raw->lua[i].line);
	note(seen, " |");
	for (size_t i = 0; i < raw->host_count; i++)
		note(seen, " %llx", (unsigned long long)raw->host[i]);
	note(seen, "\n");
	return 0;
}

static int on_event(void *context, const struct format_raw_event *event, struct failure *why)
{
	(void)why;
	note(context, "event %d source %d %llx:%llu old %llx+%llu new %llx+%llu\n", event->kind,
	     event->source, (unsigned long long)event->address, (unsigned long long)event->line,
	     (unsigned long long)event->old_address, (unsigned long long)event->old_size,
	     (unsigned long long)event->new_address, (unsigned long long)event->new_size);
	return 0;
}

static const struct format_visitor visitor = {
	.symbol = on_symbol,
	.sample = on_sample,
	.event = on_event,
};

/** Copy bytes so that they end at a page that cannot be read, and read them. */
static int read_guarded(const void *bytes, size_t len, struct seen *seen, struct failure *why)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (len + page) / page * page;
	char *map =
		mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	enum format_stream_kind kind;
	int result;

	assert_true(map != MAP_FAILED);
	mprotect(map + size, page, PROT_NONE);
	memcpy(map + size - len, bytes, len);
	memset(seen, 0, sizeof(*seen));
	result = format_read_bytes(map + size - len, len, &visitor, seen, &kind, why);
	munmap(map, size + page);
	return result;
}

static void expect(const void *bytes, size_t len, const char *text)
{
	struct failure why = { 0 };
	struct seen seen;

	if (read_guarded(bytes, len, &seen, &why))
		fail_msg("%s at byte %llu", why.step, (unsigned long long)why.address);
	assert_string_equal(text, seen.text);
}

static void expect_failure(const void *bytes, size_t len, const char *what, uint64_t offset)
{
	struct failure why = { 0 };
	struct seen seen;

	assert_int_equal(-1, read_guarded(bytes, len, &seen, &why));
	assert_int_equal(FAILURE_INVALID, why.kind);
	assert_string_equal(what, why.step);
	assert_int_equal(offset, why.address);
}

/* ---- Valid streams ---------------------------------------------------------------------- */

static void test_empty_streams(void **state)
{
	(void)state;
	expect(BYTES(SYSPROF "\x80"), "");
	expect(BYTES(MEMPROF "\x80"), "");
	expect(BYTES(SYSPROF "\x80 and anything behind"), "");
}

static void test_reserved_bytes_are_ignored(void **state)
{
	(void)state;
	expect(BYTES("ljs\x03xyz\x80ljp\x02uvw\x80"), "");
}

/** Any byte with the end bit ends the table; else only two bits count; type 3 is alone. */
static void test_table_headers(void **state)
{
	(void)state;
	expect(BYTES(TABLE "\xffljp\x02\0\0\0\x80"), "");
	expect(BYTES(TABLE "\x45\x10\x01x\x03\x7f\x80ljp\x02\0\0\0\x80"), "C 10 x\n");
}

static void test_symbols(void **state)
{
	(void)state;
	expect(BYTES(TABLE "\x00\x90\x01\x02@f\x07\x01\x05\x01g\x02\x03\x90\x01\x09\x80"
			   "ljp\x02\0\0\0"
			   "\x0a\x11\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x0b\x12\x01h"
			   "\x0c\x04\x11\x08\x80"),
	       "L 90 @f 7\nC 5 g\nT 3 90 9\nL 11  -1\nC 12 h\nT 4 11 8\n");
}

static void test_samples(void **state)
{
	(void)state;
	expect(BYTES(SYSPROF "\x00\x05\x06\x00"
			     "\x01\x01\x21\x03\x02\x22\x03\x12\x80\x07\x00"
			     "\x02\x80\x00\x04\x00\x09\x07\x21\x04\x80"),
	       "INTERP | 5 6\nLFUNC 1:21:3 2:22:0 3:12:0 | 7\nFFUNC |\nGC |\nTRACE 7 21 4 |\n");
}

/** Padded numbers are fine, also the zero that ends a host stack. */
static void test_padded_numbers(void **state)
{
	(void)state;
	expect(BYTES(SYSPROF "\x00\xd0\xac\x82\x80\x00"
			     "\x81\x80\x80\x80\x80\x80\x80\x80\x80\x00\x80\x80\x00\x80"),
	       "INTERP | 9650 1\n");
}

static void test_events(void **state)
{
	(void)state;
	expect(BYTES(MEMPROF "\x05\x10\x20\x0a\x30\x07\x11\x21\x0f\x40\x12\x22\x13\x23"
			     "\x11\x02\x14\x24\x80"),
	       "event 1 source 1 0:0 old 0+0 new 10+32\n"
	       "event 2 source 2 30:7 old 11+33 new 0+0\n"
	       "event 3 source 3 40:0 old 12+34 new 13+35\n"
	       "event 1 source 4 2:0 old 0+0 new 14+36\n");
}

/** A symbol event of a source without symbols is an empty record. */
static void test_event_symbols(void **state)
{
	(void)state;
	expect(BYTES(MEMPROF "\x08\x10\x02@f\x01\x0c\x20\x01g\x10\x01\x10\x05\x00\x04\x80"),
	       "L 10 @f 1\nC 20 g\nT 1 10 5\n");
}

/* ---- Broken streams --------------------------------------------------------------------- */

static void test_bad_prologues(void **state)
{
	(void)state;
	expect_failure("", 0, "truncated item", 0);
	expect_failure(BYTES("lj"), "truncated item", 2);
	expect_failure(BYTES("\x7f"
			     "ELF"),
		       "bad magic", 0);
	expect_failure(BYTES("ljs\x02\0\0\0"), "version mismatch", 3);
	expect_failure(BYTES(TABLE), "missing end of the symbol table", 7);
	expect_failure(BYTES(TABLE "\x80"), "truncated item", 8);
	expect_failure(BYTES(TABLE "\x80ljx\x02\0\0\0\x80"), "bad magic", 8);
	expect_failure(BYTES(TABLE "\x80ljp\x01\0\0\0\x80"), "version mismatch", 11);
	expect_failure(BYTES(TABLE "\x80ljm\x02\0\0\0\x80"), "version mismatch", 11);
	expect_failure(BYTES(TABLE "\x80ljs\x03\0\0\0\x80"), "bad magic", 8);
	expect_failure(BYTES(SYSPROF), "missing end byte", 15);
	expect_failure(BYTES(MEMPROF), "missing end byte", 15);
}

static void test_bad_items(void **state)
{
	(void)state;
	expect_failure(BYTES(SYSPROF "\x0d\x80"), "unknown state", 15);
	expect_failure(BYTES(SYSPROF "\x81"), "unknown state", 15);
	expect_failure(BYTES(SYSPROF "\x01\x04\x80"), "unknown frame header", 16);
	expect_failure(BYTES(SYSPROF "\x01\x81\x80"), "unknown frame header", 16);
	expect_failure(BYTES(SYSPROF "\x01\x00\x80"), "unknown frame header", 16);
	expect_failure(BYTES(MEMPROF "\x14\x80"), "unknown event header", 15);
	expect_failure(BYTES(MEMPROF "\x81"), "unknown event header", 15);
	expect_failure(BYTES(MEMPROF "\x01\x80"), "unknown allocation source", 15);
}

static void test_bad_numbers(void **state)
{
	(void)state;
	/* Eleven bytes; ten bytes that need 65 bits. */
	expect_failure(BYTES(SYSPROF "\x00\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00\x00\x80"),
		       "number too large", 16);
	expect_failure(BYTES(SYSPROF "\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02\x00\x80"),
		       "number too large", 16);
	expect_failure(BYTES(SYSPROF "\x00\x80"), "truncated item", 17);
}

static void test_bad_strings(void **state)
{
	(void)state;
	/* Longer than any stream; long and not there. */
	expect_failure(BYTES(TABLE "\x01\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x"),
		       "string too long", 9);
	expect_failure(BYTES(TABLE "\x01\x05\x80\x80\x80\x04x"), "truncated item", 14);
}

/** A stack longer than any VM's, in a file. */
static void test_too_many_frames(void **state)
{
	struct failure why = { 0 };
	enum format_stream_kind kind;
	struct seen seen = { 0 };
	static const struct format_visitor nothing;
	FILE *file = tmpfile();

	(void)state;
	fwrite(SYSPROF "\x00", 1, sizeof(SYSPROF), file);
	for (size_t i = 0; i < STREAM_FRAMES_MAX + 1; i++)
		putc(1, file);
	rewind(file);
	assert_int_equal(-1, format_read_stream(file, &nothing, &seen, &kind, &why));
	assert_string_equal("too many frames", why.step);
	assert_int_equal(sizeof(SYSPROF) + STREAM_FRAMES_MAX, why.address);
	fclose(file);
}

static const char sample_stream[] =
	TABLE "\x00\x90\x01\x02@f\x07\x01\x05\x01g\x02\x03\x90\x01\x09\x80"
	      "ljp\x02\0\0\0"
	      "\x01\x01\x21\x03\x02\x22\x03\x12\x80\x07\x00\x0b\x12\x01h\x09\x07\x21\x04\x80";
static const char memory_stream[] =
	TABLE "\x01\x05\x01g\x80ljm\x03\0\0\0"
	      "\x05\x10\x20\x0a\x30\x07\x11\x21\x0f\x40\x12\x22\x13\x23\x08\x10\x02@f\x01\x80";

static void check_truncations(const char *bytes, size_t len)
{
	struct failure why;
	struct seen seen;

	for (size_t cut = 0; cut < len; cut++) {
		memset(&why, 0, sizeof(why));
		assert_int_equal(-1, read_guarded(bytes, cut, &seen, &why));
		assert_int_equal(FAILURE_INVALID, why.kind);
		assert_int_equal(cut, why.address);
	}
}

static void test_every_truncation(void **state)
{
	(void)state;
	check_truncations(sample_stream, sizeof(sample_stream) - 1);
	check_truncations(memory_stream, sizeof(memory_stream) - 1);
}

/** Either another valid stream, or a failure with an offset in the file. */
static void check_corruptions(const char *bytes, size_t len)
{
	char copy[256];
	struct failure why;
	struct seen seen;

	assert_true(len <= sizeof(copy));
	for (size_t at = 0; at < len; at++) {
		for (int value = 0; value < 256; value++) {
			memcpy(copy, bytes, len);
			copy[at] = (char)value;
			memset(&why, 0, sizeof(why));
			if (read_guarded(copy, len, &seen, &why) == 0)
				continue;
			assert_int_equal(FAILURE_INVALID, why.kind);
			assert_non_null(why.step);
			assert_in_range(why.address, 0, len);
		}
	}
}

static void test_every_corruption(void **state)
{
	(void)state;
	check_corruptions(sample_stream, sizeof(sample_stream) - 1);
	check_corruptions(memory_stream, sizeof(memory_stream) - 1);
}

/** A real stream cut at each of its first bytes, its last ones, and in steps between. */
static void test_golden_truncations(void **state)
{
	FILE *file = fopen(TEST_DATA_DIR "/golden/gc64/sysprof_c_jiton.bin", "rb");
	static char bytes[1 << 20];
	static const struct format_visitor nothing;
	size_t len, cut = 0;

	(void)state;
	assert_non_null(file);
	len = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	while (cut < len) {
		enum format_stream_kind kind;
		struct failure why = { 0 };

		assert_int_equal(-1, format_read_bytes(bytes, cut, &nothing, NULL, &kind, &why));
		assert_int_equal(FAILURE_INVALID, why.kind);
		assert_int_equal(cut, why.address);
		cut += cut < 600 || cut + 600 > len ? 1 : 997;
	}
}

/* ---- The rest --------------------------------------------------------------------------- */

static int refuse(void *context, const struct format_raw_sample *raw, struct failure *why)
{
	(void)context;
	(void)raw;
	return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "enough");
}

/** A callback's failure ends the reading; a bound gets the item's offset. */
static void test_callback_failure(void **state)
{
	static const struct format_visitor refusing = { .sample = refuse };
	struct failure why = { 0 };
	enum format_stream_kind kind;

	(void)state;
	assert_int_equal(-1, format_read_bytes(BYTES(SYSPROF "\x00\x00\x00\x00\x80"), &refusing,
					       NULL, &kind, &why));
	assert_int_equal(FAILURE_LIMIT, why.kind);
	assert_int_equal(15, why.address);
}

static void test_failing_file(void **state)
{
	FILE *file = fopen("/", "r");
	struct failure why = { 0 };
	enum format_stream_kind kind;

	(void)state;
	assert_non_null(file);
	assert_int_equal(-1, format_read_stream(file, &visitor, NULL, &kind, &why));
	assert_int_equal(FAILURE_SYSTEM, why.kind);
	assert_int_equal(EISDIR, why.errnum);
	fclose(file);
}

static void test_descriptions(void **state)
{
	struct failure why = { .kind = FAILURE_INVALID, .address = 1234, .step = "truncated item" };
	char text[100], small[8];

	(void)state;
	format_describe_failure(&why, "x.bin", text, sizeof(text));
	assert_string_equal("x.bin: truncated item at byte 1234", text);
	format_describe_failure(&why, "x.bin", small, sizeof(small));
	assert_string_equal("x.bin: ", small);
	why = (struct failure){ .kind = FAILURE_SYSTEM, .errnum = EISDIR, .step = "read the file" };
	format_describe_failure(&why, "x", text, sizeof(text));
	assert_string_equal("x: cannot read the file: Is a directory", text);
}

/* Test vectors of RFC 4648, without padding. */
static void test_base64(void **state)
{
	static const char *const letters[] = { "",	 "Zg",	    "Zm8",     "Zm9v",
					       "Zm9vYg", "Zm9vYmE", "Zm9vYmFy" };
	char text[16];
	uint8_t bytes[16];

	(void)state;
	for (size_t len = 0; len <= 6; len++) {
		assert_int_equal(strlen(letters[len]), BASE64_LETTERS(len));
		base64_encode((const uint8_t *)"foobar", len, text);
		assert_memory_equal(letters[len], text, BASE64_LETTERS(len));
		assert_int_equal(len, base64_decode(letters[len], strlen(letters[len]), bytes));
		assert_memory_equal("foobar", bytes, len);
	}
	assert_int_equal(3, base64_decode("/+9/!AAAA", 9, bytes));
	assert_memory_equal("\xff\xef\x7f", bytes, 3);
	assert_int_equal(0, base64_decode("\0AAA", 4, bytes));
}

static void test_uleb(void **state)
{
	static const uint64_t values[] = {
		0, 1, 127, 128, 0x9650, UINT32_MAX, UINT64_MAX >> 1, UINT64_MAX
	};

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		uint8_t bytes[FORMAT_ULEB_MAX];
		size_t len = format_uleb_encode(values[i], bytes);
		struct format_uleb uleb = { 0 };

		for (size_t j = 0; j < len; j++)
			assert_int_equal(j + 1 < len ? FORMAT_ULEB_MORE : FORMAT_ULEB_DONE,
					 format_uleb_decode(&uleb, bytes[j]));
		assert_true(uleb.value == values[i]);
		assert_int_equal(len, uleb.len);
	}
	assert_int_equal(10, format_uleb_encode(UINT64_MAX, (uint8_t[FORMAT_ULEB_MAX]){ 0 }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_streams),
		cmocka_unit_test(test_reserved_bytes_are_ignored),
		cmocka_unit_test(test_table_headers),
		cmocka_unit_test(test_symbols),
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_padded_numbers),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_event_symbols),
		cmocka_unit_test(test_bad_prologues),
		cmocka_unit_test(test_bad_items),
		cmocka_unit_test(test_bad_numbers),
		cmocka_unit_test(test_bad_strings),
		cmocka_unit_test(test_too_many_frames),
		cmocka_unit_test(test_every_truncation),
		cmocka_unit_test(test_every_corruption),
		cmocka_unit_test(test_golden_truncations),
		cmocka_unit_test(test_callback_failure),
		cmocka_unit_test(test_failing_file),
		cmocka_unit_test(test_descriptions),
		cmocka_unit_test(test_uleb),
		cmocka_unit_test(test_base64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
