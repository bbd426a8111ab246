/* SPDX-License-Identifier: MIT */
/* Private to attach: which pages of a process are in memory, by either kernel interface? */
#ifndef ATTACH_PROCESS_RESIDENT_H
#define ATTACH_PROCESS_RESIDENT_H

#include "attach/failure.h"

/** A walk along a process's pages. */
struct resident_walk {
	int fd; /* its pagemap */
	pid_t pid;
	uint64_t page_bytes;
	bool (*visit)(void *context, uint64_t start, uint64_t end);
	void *context;
	uint64_t start, end; /* the current run; start 0: none */
};

/** @return 0, or -1 as attach_process_each_resident(). */
int resident_walk_init(struct resident_walk *walk, pid_t pid, struct failure *why);
void resident_walk_deinit(struct resident_walk *walk);

/**
 * Find pages by one system call for many pages, which costs nothing for holes. Leaves out pages
 * that were only read.
 * @return 0; 1 if the kernel has no such call; or -1.
 * Source: Linux 6.7, PAGEMAP_SCAN.
 */
int resident_walk_scan(struct resident_walk *walk, uint64_t start, uint64_t end,
		       struct failure *why);

/** Find pages by one page map entry per page, in memory or not. @return 0 or -1. */
int resident_walk_entries(struct resident_walk *walk, uint64_t start, uint64_t end,
			  struct failure *why);

#endif
