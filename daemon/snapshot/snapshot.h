/* SPDX-License-Identifier: MIT */
/* Private to daemon: a process's memory and registers as of one moment. */
#ifndef DAEMON_SNAPSHOT_SNAPSHOT_H
#define DAEMON_SNAPSHOT_SNAPSHOT_H

#include "attach/freeze.h"
#include "daemon/decode/target.h"

/**
 * What is walked may be large, and changes all the time. So it is walked twice: a look at the
 * process that runs tells which pages it is on. These are copied while all threads are held, with
 * as much of what is beside them as there is time for, as new objects are there. Then the copy is
 * walked. A page that it lacks is read from the process that runs again, which is noted.
 */
struct snapshot;

/** When and how much. */
struct snapshot_options {
	uint64_t max_pause_ns; /**< For which threads are held, all holds together; 0: 50 ms. */
	size_t max_bytes;      /**< To copy; 0: 1 GiB. */
	size_t beside_bytes;   /**< Of that, what no look has met. */
};

/** @param target Borrowed until destroy. @return NULL without memory. */
struct snapshot *snapshot_create(struct daemon_target *target,
				 const struct snapshot_options *options);
void snapshot_destroy(struct snapshot *snapshot);

/** Begin a look. Reads the process while it runs, each page once in a look, as far as there is room
 *  for them; what is read will be copied. */
const struct attach_reader *snapshot_live(struct snapshot *snapshot);

/** Have a range copied, as far as it is in memory. */
void snapshot_note(struct snapshot *snapshot, uint64_t start, uint64_t end);

/** Have the native stack around @p sp copied. */
void snapshot_note_stack(struct snapshot *snapshot, uint64_t sp);

/**
 * Hold the process and copy, again where threads woke meanwhile. May be called again: what was
 * missing is copied then, too, and what was copied before is forgotten.
 * @param why As attach_freeze(); FAILURE_LIMIT where no time is left.
 */
int snapshot_take(struct snapshot *snapshot, struct failure *why);

/** Whether another hold is likely to show what the last one did not, in the time that is left. */
bool snapshot_may_take(const struct snapshot *snapshot);

/** The outcome of the last freeze that succeeded, with no threads if the last call failed; its
 *  pause is that of all freezes, including failed ones. Borrowed until the next. */
const struct attach_freeze *snapshot_freeze(const struct snapshot *snapshot);
size_t snapshot_copied_bytes(const struct snapshot *snapshot);
/** More was wanted than may be copied. */
bool snapshot_is_huge(const struct snapshot *snapshot);

/** What was copied in the last hold, and nothing else. */
const struct attach_reader *snapshot_copy(struct snapshot *snapshot);

/** The same, and what it lacks from the process that runs again. */
const struct attach_reader *snapshot_memory(struct snapshot *snapshot);

/** The same for what lives longer, functions and names: that it came later is no news. */
const struct attach_reader *snapshot_any(struct snapshot *snapshot);

/** Whether snapshot_memory() had to read something later since this was asked last. */
bool snapshot_take_late(struct snapshot *snapshot);

#endif
