/* SPDX-License-Identifier: MIT */
/* Private to daemon: how do we get a consistent snapshot of a process's memory and registers? */
#ifndef DAEMON_SNAPSHOT_SNAPSHOT_H
#define DAEMON_SNAPSHOT_SNAPSHOT_H

#include "attach/freeze.h"
#include "daemon/decode/target.h"

/**
 * Consistent snapshot of a process.
 *
 * The structures to walk may be large, and change all the time, so they are walked twice. A first
 * walk of the running process shows which pages they are on. These pages are copied while all
 * threads are frozen, and also as many neighbouring pages as time permits, because new objects are
 * there. A second walk reads the copy. If the copy lacks a page, the page is read from the running
 * process, and that is noted.
 */
struct snapshot;

/** Limits of a snapshot. */
struct snapshot_options {
	uint64_t max_pause_ns; /**< Sum of all freezes; 0: 50 ms. */
	size_t max_bytes;      /**< Most bytes to copy; 0: 1 GiB. */
	size_t beside_bytes;   /**< Part of max_bytes for pages that no walk has read. */
};

/**
 * Create a snapshot without contents.
 * @param target Borrowed until destroy.
 * @return NULL if memory is out.
 */
struct snapshot *snapshot_create(struct daemon_target *target,
				 const struct snapshot_options *options);
void snapshot_destroy(struct snapshot *snapshot);

/** Begin a walk of the running process. The reader reads each page once per walk, up to max_bytes.
 * These pages will be copied. */
const struct attach_reader *snapshot_live(struct snapshot *snapshot);

/** Also copy the resident part of a range. */
void snapshot_note(struct snapshot *snapshot, uint64_t start, uint64_t end);

/** Also copy the native stack around @p sp. */
void snapshot_note_stack(struct snapshot *snapshot, uint64_t sp);

/**
 * Freeze the process and copy; again if threads woke meanwhile. Another call also copies what was
 * missing, and forgets the earlier copy.
 * @param why As attach_freeze(); FAILURE_LIMIT if no time is left.
 */
int snapshot_take(struct snapshot *snapshot, struct failure *why);

/** Whether another freeze is likely to add something, in the time that is left. */
bool snapshot_may_take(const struct snapshot *snapshot);

/** The outcome of the last successful freeze, borrowed until the next; without threads if the last
 * call failed. Its pause is the sum of all freezes, including failed ones. */
const struct attach_freeze *snapshot_freeze(const struct snapshot *snapshot);
size_t snapshot_copied_bytes(const struct snapshot *snapshot);
/** Whether the ranges to copy exceeded the limit. */
bool snapshot_is_huge(const struct snapshot *snapshot);

/** Reads only the copy of the last freeze. */
const struct attach_reader *snapshot_copy(struct snapshot *snapshot);

/** Reads the copy of the last freeze, and what it lacks from the running process. */
const struct attach_reader *snapshot_memory(struct snapshot *snapshot);

/** Like snapshot_memory(), for functions and names. They live longer, so late reads are not
 * noted. */
const struct attach_reader *snapshot_any(struct snapshot *snapshot);

/** Whether snapshot_memory() read something late since the last call. */
bool snapshot_take_late(struct snapshot *snapshot);

#endif
