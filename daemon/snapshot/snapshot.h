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
struct moment;

/** When and how much. */
struct moment_options {
	uint64_t max_pause_ns; /**< For which threads are held, all holds together; 0: 50 ms. */
	size_t max_bytes;      /**< To copy; 0: 1 GiB. */
	size_t beside_bytes;   /**< Of that, what no look has met. */
};

/** @param target Borrowed until destroy. @return NULL without memory. */
struct moment *moment_create(struct daemon_target *target, const struct moment_options *options);
void moment_destroy(struct moment *moment);

/** Begin a look. Reads the process while it runs, each page once in a look, as far as there is room
 *  for them; what is read will be copied. */
const struct attach_reader *moment_look(struct moment *moment);

/** Have a range copied, as far as it is in memory. */
void moment_note(struct moment *moment, uint64_t start, uint64_t end);

/** Have the native stack around @p sp copied. */
void moment_note_stack(struct moment *moment, uint64_t sp);

/**
 * Hold the process and copy, again where threads woke meanwhile. May be called again: what was
 * missing is copied then, too, and what was copied before is forgotten.
 * @param why As attach_hold(); FAILURE_LIMIT where no time is left.
 */
int moment_hold(struct moment *moment, struct failure *why);

/** Whether another hold is likely to show what the last one did not, in the time that is left. */
bool moment_may_hold(const struct moment *moment);

/** What became of the last hold that came about, with no threads where the last call failed; its
 *  pause is that of all, also of those that failed. Borrowed until the next. */
const struct attach_hold *moment_held(const struct moment *moment);
size_t moment_copied_bytes(const struct moment *moment);
/** More was wanted than may be copied. */
bool moment_is_huge(const struct moment *moment);

/** What was copied in the last hold, and nothing else. */
const struct attach_reader *moment_copy(struct moment *moment);

/** The same, and what it lacks from the process that runs again. */
const struct attach_reader *moment_memory(struct moment *moment);

/** The same for what lives longer, functions and names: that it came later is no news. */
const struct attach_reader *moment_any(struct moment *moment);

/** Whether moment_memory() had to read something later since this was asked last. */
bool moment_take_late(struct moment *moment);

#endif
