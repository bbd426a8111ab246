/* SPDX-License-Identifier: MIT */
/* Memory profiles: events by location, what is still allocated, and several of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "chains.h"
#include "format/memprof/allocation_map.h"
#include "format/memprof/heap.h"
#include "format/sysprof/stream_format.h"

/* ---- Blocks ----------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005 + 1442695040888963407;
	return *state >> 33;
}

/** Against an array that has an element for each address. */
static void test_blocks(void **state)
{
	enum { ADDRESSES = 3000, STEPS = 60000 };
	static struct allocation expected[ADDRESSES];
	static bool is_there[ADDRESSES];
	uint64_t random = 1, sum = 0, found = 0;
	struct allocations allocations = { 0 };
	struct allocation allocation;
	uint32_t count = 0, slot = 0;

	(void)state;
	assert_false(allocation_map_take(&allocations, 0, &allocation));
	assert_false(allocation_map_next(&allocations, &slot, &allocation));
	for (int i = 0; i < STEPS; i++) {
		uint64_t index = next_random(&random) % ADDRESSES;

		if (next_random(&random) % 2) {
			allocation = (struct allocation){ .size = next_random(&random),
							  .location = (uint32_t)i };
			assert_int_equal(
				0, allocation_map_put(&allocations, index << 12, allocation, NULL));
			count += !is_there[index];
			expected[index] = allocation;
			is_there[index] = true;
		} else {
			assert_int_equal(
				is_there[index],
				allocation_map_take(&allocations, index << 12, &allocation));
			if (is_there[index]) {
				assert_int_equal(expected[index].size, allocation.size);
				assert_int_equal(expected[index].location, allocation.location);
				count--;
			}
			is_there[index] = false;
		}
		assert_int_equal(count, allocations.count);
	}
	for (int i = 0; i < ADDRESSES; i++)
		sum += is_there[i] ? expected[i].size : 0;
	for (slot = 0; allocation_map_next(&allocations, &slot, &allocation); count--)
		found += allocation.size;
	assert_int_equal(0, count);
	assert_int_equal(sum, found);
	allocation_map_deinit(&allocations);
}

/** More than may be kept are refused, and the rest stays as it is. */
static void test_many_blocks(void **state)
{
	struct allocations allocations = { .slots_max = 4096 };
	struct allocation allocation = { .size = 1 };
	struct failure why = { 0 };
	uint64_t address = 0;

	(void)state;
	while (allocation_map_put(&allocations, address, allocation, &why) == 0)
		address += 16;
	assert_int_equal(FAILURE_LIMIT, why.kind);
	assert_int_equal(4096 / 8 * 7, allocations.count);
	assert_true(allocation_map_take(&allocations, 0, &allocation));
	assert_int_equal(0, allocation_map_put(&allocations, 0, allocation, &why));
	allocation_map_deinit(&allocations);
}

/* ---- Streams ---------------------------------------------------------------------------- */

#define SOURCE "return {}\n\nreturn 1"

/** One run of a program: where its code lies, and the numbers of its traces, differ each time. */
struct run {
	uint64_t base, trace;
	const char *source; /* Of a chunk that is no file. */
};

static FILE *open_run(const struct run *run, struct format_sink **ret_sink)
{
	const struct format_symbol symbols[] = {
		{ .kind = FORMAT_SYMBOL_LUA,
		  .address = run->base,
		  .name = "@a.lua",
		  .name_len = 6 },
		{ .kind = FORMAT_SYMBOL_LUA,
		  .address = run->base + 8,
		  .name = run->source,
		  .name_len = strlen(run->source) },
		{ .kind = FORMAT_SYMBOL_C,
		  .address = run->base + 16,
		  .name = "new",
		  .name_len = 3 },
		{ .kind = FORMAT_SYMBOL_TRACE,
		  .trace = run->trace,
		  .address = run->base,
		  .line = 3 },
	};
	FILE *file = tmpfile();

	assert_int_equal(0, format_sink_create(dup(fileno(file)), ret_sink, NULL));
	assert_int_equal(0, format_put_symtab_prologue(*ret_sink, NULL));
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
		assert_int_equal(0, format_put_symtab_symbol(*ret_sink, &symbols[i], NULL));
	assert_int_equal(0, format_put_symtab_end(*ret_sink, NULL));
	assert_int_equal(0, format_put_prologue(*ret_sink, FORMAT_STREAM_MEMPROF, NULL));
	return file;
}

static void put_event(struct format_sink *sink, struct format_raw_event event)
{
	assert_int_equal(0, format_put_event(sink, &event, NULL));
}

/** Allocate with a line, a trace, a C function and the VM itself; grow and free some. */
static FILE *write_run(const struct run *run)
{
	const struct format_raw_event line = { .source = STREAM_SOURCE_LUA,
					       .address = run->base,
					       .line = 7 };
	const struct format_raw_event alias = { .source = STREAM_SOURCE_LUA,
						.address = run->base + 8,
						.line = 3 };
	const struct format_raw_event native = { .source = STREAM_SOURCE_CFUNC,
						 .address = run->base + 17 };
	const struct format_raw_event trace = { .source = STREAM_SOURCE_TRACE,
						.address = run->trace };
	struct format_sink *sink;
	FILE *file = open_run(run, &sink);
	struct format_raw_event event = line;

	event.kind = STREAM_EVENT_ALLOC;
	for (uint64_t i = 0; i < 3; i++) {
		event.new_address = 0x1000 + i;
		event.new_size = 100;
		put_event(sink, event);
	}
	event = trace;
	event.kind = STREAM_EVENT_REALLOC;
	event.old_address = 0x1000;
	event.old_size = 100;
	event.new_address = 0x2000;
	event.new_size = 1536;
	put_event(sink, event);
	event = native;
	event.kind = STREAM_EVENT_FREE;
	event.old_address = 0x1001;
	event.old_size = 100;
	put_event(sink, event);
	event = alias;
	event.kind = STREAM_EVENT_ALLOC;
	event.new_address = 0x3000;
	event.new_size = 20;
	put_event(sink, event);
	/* Of before the profile. */
	event = (struct format_raw_event){ .kind = STREAM_EVENT_FREE,
					   .source = STREAM_SOURCE_INTERNAL,
					   .old_address = 0x9000,
					   .old_size = 5 };
	put_event(sink, event);
	assert_int_equal(0, format_sink_commit(sink, "\x80", 1, true, NULL));
	format_sink_destroy(sink);
	rewind(file);
	return file;
}

static char *print(const struct format_profile *profile, const char *report,
		   const struct format_report_options *options)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_int_equal(0, format_report_find(report)->print(profile, options, out, NULL));
	fclose(out);
	return text;
}

static void expect(const struct format_profile *profile, const char *report,
		   struct format_report_options options, const char *expected)
{
	char *text = print(profile, report, &options);

	assert_string_equal(expected, text);
	free(text);
}

static struct format_profile *read_runs(const struct run *runs, size_t count)
{
	struct format_profile *profile = format_profile_create(NULL);
	struct failure why = { 0 };

	for (size_t i = 0; i < count; i++) {
		FILE *file = write_run(&runs[i]);

		assert_int_equal(0, format_profile_add(profile, file, &why));
		fclose(file);
	}
	return profile;
}

static void test_one(void **state)
{
	const struct run run = { 0x41000000, 5, SOURCE };
	struct format_profile *profile = read_runs(&run, 1);
	const struct format_report_options options = { 0 };
	struct failure why = { 0 };

	(void)state;
	expect(profile, "top", options,
	       "ALLOCATIONS\n"
	       "@a.lua:7: 3 events\t+300B\t-0B\n"
	       "function_alias_1:3: 1 events\t+20B\t-0B\n\n"
	       "REALLOCATIONS\n"
	       "TRACE [5] started at @a.lua:3: 1 events\t+1536B\t-100B\n"
	       "\tOverrides:\n\t\t@a.lua:7\n\n\n"
	       "DEALLOCATIONS\n"
	       "INTERNAL: 1 events\t+0B\t-5B\n"
	       "new:0x41000010: 1 events\t+0B\t-100B\n"
	       "\tOverrides:\n\t\t@a.lua:7\n\n\n"
	       "HEAP SUMMARY:\n"
	       "@a.lua:7 holds 1636B: 4 allocs, 2 frees\n"
	       "function_alias_1:3 holds 20B: 1 allocs, 0 frees\n\n"
	       "ALIASES:\nfunction_alias_1:\n1\t| return {}\n3\t| return 1\n\n\n");
	expect(profile, "top",
	       (struct format_report_options){ .leak_only = true, .human_readable = true },
	       "HEAP SUMMARY:\n"
	       "@a.lua:7 holds 1.60KiB: 4 allocs, 2 frees\n"
	       "function_alias_1:3 holds 20B: 1 allocs, 0 frees\n\n"
	       "ALIASES:\nfunction_alias_1:\n1\t| return {}\n3\t| return 1\n\n\n");
	/* What was grown is held by who has grown it. */
	expect(profile, "leaks", options,
	       "1656B in 3 blocks are still allocated\n\n"
	       "       BYTES      %    BLOCKS  LOCATION\n"
	       "        1536  92.75         1  TRACE [5] started at @a.lua:3\n"
	       "         100   6.04         1  @a.lua:7\n"
	       "          20   1.21         1  function_alias_1:3\n\n"
	       "ALIASES:\nfunction_alias_1:\n1\t| return {}\n3\t| return 1\n\n\n");
	expect(profile, "counters", options,
	       "allocs 4\nreallocs 1\nfrees 2\nallocated_bytes 1856\nfreed_bytes 205\n"
	       "held_blocks 3\nheld_bytes 1656\n");
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "svg" : "folded";

		assert_int_equal(-1,
				 format_report_find(name)->print(profile, &options, stderr, &why));
		assert_int_equal(FAILURE_NOT_FOUND, why.kind);
	}
	format_profile_destroy(profile);
}

/** Runs of one program add up, whatever their addresses; blocks of one are not those of another,
 *  which has the same addresses for them. */
static void test_several(void **state)
{
	const struct run runs[] = {
		{ 0x41000000, 5, SOURCE },
		{ 0x52000000, 8, "other\nsource\n" },
		{ 0x41000000, 9, SOURCE },
	};
	struct format_profile *profile = read_runs(runs, 3);

	(void)state;
	expect(profile, "top", (struct format_report_options){ 0 },
	       "ALLOCATIONS\n"
	       "@a.lua:7: 9 events\t+900B\t-0B\n"
	       "function_alias_1:3: 2 events\t+40B\t-0B\n"
	       "function_alias_2:3: 1 events\t+20B\t-0B\n\n"
	       "REALLOCATIONS\n"
	       "TRACE started at @a.lua:3: 3 events\t+4608B\t-300B\n"
	       "\tOverrides:\n\t\t@a.lua:7\n\n\n"
	       "DEALLOCATIONS\n"
	       "INTERNAL: 3 events\t+0B\t-15B\n"
	       "new: 3 events\t+0B\t-300B\n"
	       "\tOverrides:\n\t\t@a.lua:7\n\n\n"
	       "HEAP SUMMARY:\n"
	       "@a.lua:7 holds 4908B: 12 allocs, 6 frees\n"
	       "function_alias_1:3 holds 40B: 2 allocs, 0 frees\n"
	       "function_alias_2:3 holds 20B: 1 allocs, 0 frees\n\n"
	       "ALIASES:\nfunction_alias_1:\n1\t| return {}\n3\t| return 1\n\n\n"
	       "function_alias_2:\n1\t| other\n2\t| source\n\n\n");
	expect(profile, "counters", (struct format_report_options){ 0 },
	       "allocs 12\nreallocs 3\nfrees 6\nallocated_bytes 5568\nfreed_bytes 615\n"
	       "held_blocks 9\nheld_bytes 4968\n");
	format_profile_destroy(profile);
}

/** Locations as chains of one frame, with bytes or blocks for samples. */
static void test_chains(void **state)
{
	const struct run runs[] = {
		{ 0x41000000, 5, SOURCE },
		{ 0x52000000, 8, SOURCE },
	};
	static const char *const expected[][FORMAT_MEMORY_COUNT] = {
		{ "@a.lua:7 100\nreturn {}  return 1:3 20\ntrace 5 @ a.lua:3_[j] 1536\n",
		  "@a.lua:7 1\nreturn {}  return 1:3 1\ntrace 5 @ a.lua:3_[j] 1\n",
		  "@a.lua:7 300\nreturn {}  return 1:3 20\ntrace 5 @ a.lua:3_[j] 1536\n",
		  "@a.lua:7 3\nreturn {}  return 1:3 1\ntrace 5 @ a.lua:3_[j] 1\n" },
		/* Of several runs a trace is the line where it starts. */
		{ "@a.lua:3_[j] 3072\n@a.lua:7 200\nreturn {}  return 1:3 40\n",
		  "@a.lua:3_[j] 2\n@a.lua:7 2\nreturn {}  return 1:3 2\n",
		  "@a.lua:3_[j] 3072\n@a.lua:7 600\nreturn {}  return 1:3 40\n",
		  "@a.lua:3_[j] 2\n@a.lua:7 6\nreturn {}  return 1:3 2\n" },
	};

	(void)state;
	for (size_t count = 1; count <= 2; count++) {
		struct format_profile *profile = read_runs(runs, count), *chains;

		for (int value = 0; value < FORMAT_MEMORY_COUNT; value++) {
			bool is_space = value == FORMAT_MEMORY_INUSE_SPACE ||
					value == FORMAT_MEMORY_ALLOC_SPACE;

			assert_int_equal(0, format_profile_of_memory(profile,
								     (enum format_memory)value,
								     &chains, NULL));
			assert_string_equal(is_space ? "bytes" : "objects",
					    format_profile_unit(chains));
			assert_false(format_profile_has_samples(chains));
			expect(chains, "folded",
			       (struct format_report_options){ .annotate = FORMAT_ANNOTATE_JIT },
			       expected[count - 1][value]);
			format_profile_destroy(chains);
		}
		format_profile_destroy(profile);
	}
	assert_string_equal("alloc_space", format_memory_name(FORMAT_MEMORY_ALLOC_SPACE));
	assert_null(format_memory_name(FORMAT_MEMORY_COUNT));
}

/** A number of a trace, or an address, can mean one thing and then another. */
static void test_new_meaning(void **state)
{
	const struct run run = { 0x41000000, 5, SOURCE };
	const struct format_symbol later = {
		.kind = FORMAT_SYMBOL_TRACE, .trace = 5, .address = run.base, .line = 9
	};
	struct format_raw_event event = { .kind = STREAM_EVENT_ALLOC,
					  .source = STREAM_SOURCE_TRACE,
					  .address = 5,
					  .new_address = 1,
					  .new_size = UINT64_MAX };
	struct format_profile *profile;
	struct format_sink *sink;
	struct failure why = { 0 };
	FILE *file = open_run(&run, &sink);

	(void)state;
	put_event(sink, event);
	event.new_address = 2;
	put_event(sink, event);
	assert_int_equal(0, format_put_event_symbol(sink, &later, NULL));
	event.new_size = 3;
	put_event(sink, event);
	assert_int_equal(0, format_sink_commit(sink, "\x80", 1, true, NULL));
	format_sink_destroy(sink);
	rewind(file);
	assert_int_equal(0, format_profile_read(file, &profile, &why));
	/* Sums stay at the most that can be counted; what is new at an address stands for what was
	 * there. */
	expect(profile, "leaks", (struct format_report_options){ .human_readable = true },
	       "17179869184.00GiB in 2 blocks are still allocated\n\n"
	       "       BYTES      %    BLOCKS  LOCATION\n"
	       "17179869184.00GiB 100.00         1  TRACE [5] started at @a.lua:3\n"
	       "          3B   0.00         1  TRACE [5] started at @a.lua:9\n\n"
	       "ALIASES:\nfunction_alias_1:\n1\t| return {}\n3\t| return 1\n\n\n");
	format_profile_destroy(profile);
	fclose(file);
}

/** C functions, code without a symbol, traces without a start, and the VM itself. */
static void test_other_locations(void **state)
{
	static const struct format_raw_event events[] = {
		{ .source = STREAM_SOURCE_CFUNC, .address = 0x41000011 },
		{ .source = STREAM_SOURCE_CFUNC, .address = 0x10 },
		{ .source = STREAM_SOURCE_TRACE, .address = 77 },
		{ .source = STREAM_SOURCE_INTERNAL },
	};
	const struct run run = { 0x41000000, 5, SOURCE };
	struct format_profile *profile, *chains;
	struct format_sink *sink;
	FILE *file = open_run(&run, &sink);
	struct failure why = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		struct format_raw_event event = events[i];

		event.kind = STREAM_EVENT_ALLOC;
		event.new_address = i;
		event.new_size = i + 1;
		put_event(sink, event);
	}
	assert_int_equal(0, format_sink_commit(sink, "\x80", 1, true, NULL));
	format_sink_destroy(sink);
	rewind(file);
	assert_int_equal(0, format_profile_read(file, &profile, &why));
	expect(profile, "top", (struct format_report_options){ .leak_only = true },
	       "HEAP SUMMARY:\n"
	       "INTERNAL holds 4B: 1 allocs, 0 frees\n"
	       "TRACE [77] holds 3B: 1 allocs, 0 frees\n"
	       "CFUNC 0x10 holds 2B: 1 allocs, 0 frees\n"
	       "new:0x41000010 holds 1B: 1 allocs, 0 frees\n\n"
	       "ALIASES:\nfunction_alias_1:\n1\t| return {}\n3\t| return 1\n\n\n");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(0, format_profile_of_memory(profile, FORMAT_MEMORY_INUSE_SPACE,
							     &chains, &why));
		expect(chains, "folded", (struct format_report_options){ 0 },
		       i ? "CFUNC 0x10 4\n[internal] 8\n[trace] 6\nnew 2\n"
			 : "CFUNC 0x10 2\n[internal] 4\nnew 1\ntrace 77 3\n");
		format_profile_destroy(chains);
		rewind(file);
		if (i == 0)
			assert_int_equal(0, format_profile_add(profile, file, &why));
	}
	format_profile_destroy(profile);
	fclose(file);
}

/** Calls of samples have no heap. */
static void test_no_memory_profile(void **state)
{
	static const char folded[] = "main;work 3\n";
	const struct format_report_options options = { 0 };
	FILE *file = fmemopen((void *)(uintptr_t)folded, strlen(folded), "r");
	struct format_profile *profile;
	struct failure why = { 0 };

	(void)state;
	assert_int_equal(0, format_profile_read(file, &profile, &why));
	assert_int_equal(-1, format_report_find("leaks")->print(profile, &options, stderr, &why));
	assert_int_equal(FAILURE_NOT_FOUND, why.kind);
	format_profile_destroy(profile);
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks),	    cmocka_unit_test(test_many_blocks),
		cmocka_unit_test(test_one),	    cmocka_unit_test(test_several),
		cmocka_unit_test(test_chains),	    cmocka_unit_test(test_other_locations),
		cmocka_unit_test(test_new_meaning), cmocka_unit_test(test_no_memory_profile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
