/* SPDX-License-Identifier: MIT */
/* Private to attach: the two ways to learn which pages of a process are in memory. */
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
	uint64_t start, end; /* of the run found so far; start 0: none */
};

/** @return 0, or -1 as attach_process_each_resident(). */
int resident_walk_init(struct resident_walk *walk, pid_t pid, struct failure *why);
void resident_walk_deinit(struct resident_walk *walk);

/** By one system call for many pages, which costs nothing for holes. Pages that were only read are
 *  left out. @return 0, 1 where the kernel has no such call, or -1. Source: Linux 6.7,
 * PAGEMAP_SCAN.
 */
int resident_walk_scan(struct resident_walk *walk, uint64_t start, uint64_t end,
		       struct failure *why);

/** By one number for each page, in memory or not. @return 0, or -1. */
int resident_walk_entries(struct resident_walk *walk, uint64_t start, uint64_t end,
			  struct failure *why);

#endif
