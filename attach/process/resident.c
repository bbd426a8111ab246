/* SPDX-License-Identifier: MIT */
/*
 * Which pages of a process are in memory?
 *
 * Reading a page that was never touched makes the kernel give the process page tables and a zero
 * page. Reading a page that is swapped out brings it in. A search through all memory must do
 * neither. It must also be fast if a process has reserved much more than it uses: mappings of many
 * TiB are ordinary.
 * Source: Linux Documentation/admin-guide/mm/pagemap.rst.
 */
#include "attach/process/resident.h"
#include "attach/process.h"
#include "attach/process/process_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
	ENTRIES = 4096,
	REGIONS = 512,
	/* Pages that one scan may report while it holds a lock of the target. */
	SCAN_PAGES = 1 << 18,
};

/* Address range that one call scans at most: page tables may exist for all of it, for zero pages.
 */
#define SCAN_BYTES ((uint64_t)4 << 30)

#define PAGE_PRESENT ((uint64_t)1 << 63)

/*
 * Constants of <linux/fs.h>, whose older versions lack them. Source: Linux 6.7,
 * include/uapi/linux/fs.h.
 */
enum { SCAN_IS_PRESENT = 1 << 3, SCAN_IS_ZERO = 1 << 5 };

struct scan_region {
	uint64_t start, end, categories;
};

struct scan_argument {
	uint64_t size, flags, start, end;
	uint64_t walk_end; /* set by the kernel: how far the scan came */
	uint64_t regions, region_count, max_pages;
	uint64_t inverted, all_of, any_of, returned; /* masks of categories */
};

#define PAGE_MAP_SCAN _IOWR('f', 16, struct scan_argument)

_Static_assert(sizeof(struct scan_argument) == 96, "the kernel's struct pm_scan_arg");

int resident_walk_init(struct resident_walk *walk, pid_t pid, struct failure *why)
{
	walk->pid = pid;
	walk->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	walk->start = 0;
	walk->fd = process_open(pid, "pagemap", O_RDONLY);
	return walk->fd < 0 ? failure_set_errno(why, errno, pid, "open the page map") : 0;
}

void resident_walk_deinit(struct resident_walk *walk)
{
	close(walk->fd);
}

/* @return whether to continue. */
static bool end_run(struct resident_walk *walk)
{
	uint64_t start = walk->start;

	walk->start = 0;
	return !start || walk->visit(walk->context, start, walk->end);
}

/* Add [start, end), which is in memory, to the current run, or report that run and start a new one.
 */
static bool take_run(struct resident_walk *walk, uint64_t start, uint64_t end)
{
	if (walk->start && walk->end != start && !end_run(walk))
		return false;
	if (!walk->start)
		walk->start = start;
	walk->end = end;
	return true;
}

/*
 * All pages below @at are scanned: report the finished run, or that nothing is in memory below @at.
 */
static bool come_to(struct resident_walk *walk, uint64_t at)
{
	if (walk->start && walk->end == at)
		return true; /* the next pages may belong to the run */
	return end_run(walk) && walk->visit(walk->context, at, at);
}

/* ---- One page map entry per page -------------------------------------------------------- */

/* @return the number of entries; 0 if the memory is gone; -1 on failure. */
static ssize_t read_entries(const struct resident_walk *walk, uint64_t address, uint64_t *entries,
			    size_t count, struct failure *why)
{
	ssize_t got = pread(walk->fd, entries, count * sizeof(*entries),
			    (off_t)(address / walk->page_bytes * sizeof(*entries)));

	if (got < 0)
		return failure_set_errno(why, errno, walk->pid, "read the page map");
	if ((size_t)got < sizeof(*entries))
		return failure_set(why, FAILURE_GONE, 0, walk->pid, address, "read the page map");
	return got / (ssize_t)sizeof(*entries);
}

int resident_walk_entries(struct resident_walk *walk, uint64_t start, uint64_t end,
			  struct failure *why)
{
	uint64_t entries[ENTRIES];

	for (uint64_t at = start; at < end;) {
		uint64_t pages = (end - at + walk->page_bytes - 1) / walk->page_bytes;
		ssize_t got = read_entries(walk, at, entries,
					   pages < ENTRIES ? (size_t)pages : ENTRIES, why);

		if (got < 0)
			return -1;
		for (ssize_t i = 0; i < got; i++, at += walk->page_bytes)
			if ((entries[i] & PAGE_PRESENT) &&
			    !take_run(walk, at, at + walk->page_bytes))
				return 0;
		if (!come_to(walk, at))
			return 0;
	}
	end_run(walk);
	return 0;
}

/* ---- One call for many pages ------------------------------------------------------------ */

int resident_walk_scan(struct resident_walk *walk, uint64_t start, uint64_t end,
		       struct failure *why)
{
	struct scan_region regions[REGIONS];
	uint64_t first;

	/* Linux before 6.15 does not report that the process is gone, so read an entry first. */
	if (read_entries(walk, start, &first, 1, why) < 0)
		return -1;
	for (uint64_t at = start; at < end;) {
		struct scan_argument scan = {
			.size = sizeof(scan),
			.start = at,
			.end = end - at < SCAN_BYTES ? end : at + SCAN_BYTES,
			.regions = (uint64_t)(uintptr_t)regions,
			.region_count = REGIONS,
			.max_pages = SCAN_PAGES,
			.inverted = SCAN_IS_ZERO,
			.all_of = SCAN_IS_PRESENT | SCAN_IS_ZERO,
			.returned = SCAN_IS_PRESENT,
		};
		int count = ioctl(walk->fd, PAGE_MAP_SCAN, &scan);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0 && at == start)
			return 1;
		if (count < 0)
			return failure_set_errno(why, errno, walk->pid, "scan the page map");
		for (int i = 0; i < count; i++)
			if (!take_run(walk, regions[i].start, regions[i].end))
				return 0;
		at = scan.walk_end > at && scan.walk_end < scan.end ? scan.walk_end : scan.end;
		if (!come_to(walk, at))
			return 0;
	}
	end_run(walk);
	return 0;
}

int attach_process_each_resident(const struct attach_process *process, uint64_t start, uint64_t end,
				 bool (*visit)(void *context, uint64_t start, uint64_t end),
				 void *context, struct failure *why)
{
	struct resident_walk walk = { .visit = visit, .context = context };
	int result;

	if (resident_walk_init(&walk, attach_process_pid(process), why) != 0)
		return -1;
	start -= start % walk.page_bytes;
	result = resident_walk_scan(&walk, start, end, why);
	if (result > 0)
		result = resident_walk_entries(&walk, start, end, why);
	resident_walk_deinit(&walk);
	return result;
}
