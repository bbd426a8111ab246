/* SPDX-License-Identifier: MIT */
/* Which pages are in memory: a mapping with pages of all kinds, and one that is nearly all hole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/process/resident.h"
#include "children.h"
#include "attach/process.h"

enum { PAGES = 9000, RUNS_MAX = 8, HOLE_BITS = 45 };

/** What a walk told. */
struct told {
	struct {
		uint64_t start, end;
	} runs[RUNS_MAX];
	size_t count, empty;
	size_t empty_max; /* ends the walk then */
};

static bool visit(void *context, uint64_t start, uint64_t end)
{
	struct told *told = context;

	assert_true(start <= end);
	if (start == end)
		return ++told->empty < told->empty_max;
	assert_true(told->count < RUNS_MAX);
	told->runs[told->count].start = start;
	told->runs[told->count++].end = end;
	return true;
}

typedef int way(struct resident_walk *walk, uint64_t start, uint64_t end, struct failure *why);

/* @return what the walk returned. */
static int walk(way *by, pid_t pid, const void *start, uint64_t len, struct told *told,
		struct failure *why)
{
	struct resident_walk walk = { .visit = visit, .context = told };
	uint64_t at = (uint64_t)(uintptr_t)start;
	int ret;

	assert_int_equal(0, resident_walk_init(&walk, pid, why));
	ret = by(&walk, at, at + len, why);
	resident_walk_deinit(&walk);
	return ret;
}

static bool can_scan(void)
{
	struct told told = { .empty_max = SIZE_MAX };
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct failure why;

	if (walk(resident_walk_scan, getpid(), (void *)page, page, &told, &why) == 0)
		return true;
	print_message("skipped: this kernel has no PAGEMAP_SCAN\n");
	return false;
}

static uint8_t *reserve(uint64_t len)
{
	void *memory = mmap(NULL, len, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	madvise(memory, len, MADV_NOHUGEPAGE);
	return memory;
}

/* Pages 1 to 2, 4095 to 4097 across two reads of the page map, and the last are written, 5 and 6
 * only read. */
static uint8_t *make_pages(uint64_t page)
{
	static const unsigned written[] = { 1, 2, 4095, 4096, 4097, PAGES - 1 };
	uint8_t *memory = reserve(PAGES * page);

	assert_non_null(memory);
	for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++)
		memory[written[i] * page] = 1;
	for (unsigned i = 5; i < 7; i++)
		assert_int_equal(0, *(volatile uint8_t *)(memory + i * page));
	return memory;
}

static void assert_run(const struct told *told, size_t index, const uint8_t *memory, uint64_t page,
		       unsigned first, unsigned end)
{
	assert_true(index < told->count);
	assert_int_equal((uintptr_t)memory + first * page, told->runs[index].start);
	assert_int_equal((uintptr_t)memory + end * page, told->runs[index].end);
}

static void test_entries(void **state)
{
	struct told told = { .empty_max = SIZE_MAX };
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory = make_pages(page);
	struct failure why;

	(void)state;
	assert_int_equal(0,
			 walk(resident_walk_entries, getpid(), memory, PAGES * page, &told, &why));
	assert_int_equal(4, told.count);
	assert_run(&told, 0, memory, page, 1, 3);
	assert_run(&told, 1, memory, page, 5, 7); /* by their numbers like any others */
	assert_run(&told, 2, memory, page, 4095, 4098);
	assert_run(&told, 3, memory, page, PAGES - 1, PAGES);
	munmap(memory, PAGES * page);
}

static void test_scan(void **state)
{
	struct told told = { .empty_max = SIZE_MAX };
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory;
	struct failure why;

	(void)state;
	if (!can_scan())
		return;
	memory = make_pages(page);
	assert_int_equal(0, walk(resident_walk_scan, getpid(), memory, PAGES * page, &told, &why));
	assert_int_equal(3, told.count);
	assert_run(&told, 0, memory, page, 1, 3);
	assert_run(&told, 1, memory, page, 4095, 4098);
	assert_run(&told, 2, memory, page, PAGES - 1, PAGES);
	munmap(memory, PAGES * page);
}

/** Runs of one page, each behind a hole of one. */
struct every_other {
	uint64_t next, page;
	unsigned count;
};

static bool take_every_other(void *context, uint64_t start, uint64_t end)
{
	struct every_other *told = context;

	if (start == end)
		return true;
	assert_int_equal(told->next, start);
	assert_int_equal(told->page, end - start);
	told->next += 2 * told->page;
	told->count++;
	return true;
}

/* More runs than one call returns. */
static void test_many_runs(void **state)
{
	way *const ways[] = { resident_walk_scan, resident_walk_entries };
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory = reserve(PAGES * page);
	uint64_t at = (uint64_t)(uintptr_t)memory;
	struct failure why;

	(void)state;
	assert_non_null(memory);
	for (unsigned i = 0; i < PAGES; i += 2)
		memory[i * page] = 1;
	for (size_t i = can_scan() ? 0 : 1; i < 2; i++) {
		struct every_other told = { .next = at, .page = page };
		struct resident_walk walk = { .visit = take_every_other, .context = &told };

		assert_int_equal(0, resident_walk_init(&walk, getpid(), &why));
		assert_int_equal(0, ways[i](&walk, at, at + PAGES * page, &why));
		assert_int_equal(PAGES / 2, told.count);
		resident_walk_deinit(&walk);
	}
	munmap(memory, PAGES * page);
}

/* 32 TiB with one page in memory: one walk sees it in next to no time, the other can be ended. */
static void test_hole(void **state)
{
	uint64_t len = (uint64_t)1 << HOLE_BITS, page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct told told = { .empty_max = SIZE_MAX };
	uint8_t *memory = reserve(len);
	uint64_t begin_ns;
	struct failure why;

	(void)state;
	if (!memory) {
		print_message("skipped: 32 TiB cannot be reserved here\n");
		return;
	}
	memory[len / 2] = 1;
	if (can_scan()) {
		begin_ns = child_now_ns();
		assert_int_equal(0, walk(resident_walk_scan, getpid(), memory, len, &told, &why));
		/* Some milliseconds; by numbers it takes more than a minute. */
		assert_true(child_now_ns() - begin_ns < 5000000000u);
		assert_int_equal(1, told.count);
		assert_int_equal((uintptr_t)memory + len / 2, told.runs[0].start);
		assert_int_equal(told.runs[0].start + page, told.runs[0].end);
		assert_true(told.empty > 1000);
	}
	told = (struct told){ .empty_max = 3 };
	assert_int_equal(0, walk(resident_walk_entries, getpid(), memory, len, &told, &why));
	assert_int_equal(3, told.empty);
	munmap(memory, len);
}

static void wait_for_end(void *argument)
{
	(void)argument;
	pause();
}

static void test_gone(void **state)
{
	way *const ways[] = { resident_walk_scan, resident_walk_entries };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct told told = { .empty_max = SIZE_MAX };
		struct resident_walk walk = { .visit = visit, .context = &told };
		uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
		pid_t pid = child_start(wait_for_end, NULL);
		struct failure why;

		assert_int_equal(0, resident_walk_init(&walk, pid, &why));
		child_end(pid);
		assert_int_equal(-1, ways[i](&walk, page, 1000 * page, &why));
		assert_int_equal(FAILURE_GONE, why.kind);
		assert_int_equal(pid, why.tid);
		assert_int_equal(0, told.count);
		resident_walk_deinit(&walk);
	}
}

/* The way that the kernel has, from an address within a page. */
static void test_process(void **state)
{
	struct told told = { .empty_max = SIZE_MAX };
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory = make_pages(page);
	struct attach_process *process;
	struct failure why;

	(void)state;
	assert_int_equal(0, attach_process_open(getpid(), &process, &why));
	assert_int_equal(0, attach_process_each_resident(process, (uintptr_t)memory + 2 * page + 8,
							 (uintptr_t)memory + 3 * page + 8, visit,
							 &told, &why));
	assert_int_equal(1, told.count);
	assert_run(&told, 0, memory, page, 2, 3);
	attach_process_close(process);
	munmap(memory, PAGES * page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entries),	  cmocka_unit_test(test_scan),
		cmocka_unit_test(test_many_runs), cmocka_unit_test(test_hole),
		cmocka_unit_test(test_gone),	  cmocka_unit_test(test_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
