/* SPDX-License-Identifier: MIT */
/* Private to daemon: what dumps of live processes share. */
#ifndef DAEMON_DUMP_DUMP_INTERNAL_H
#define DAEMON_DUMP_DUMP_INTERNAL_H

#include "daemon/decode/target.h"

/** A target's listener when nothing is decoded, so there are no functions to announce. */
int target_ignore_function(void *context, const struct format_function *function, uint32_t *ret_id,
			   struct failure *why);

/**
 * Search a live process for all VMs, and once more from the beginning if there is none, for 10 s at
 * most.
 * @return Whether all memory was searched.
 */
bool target_search_vms(struct daemon_target *target);

/** Say why no VM of a process was read: @p end is DAEMON_END_NO_VM, DAEMON_END_EARLY or
 * DAEMON_END_SYSTEM. */
void target_tell_end(const struct daemon_target *target, pid_t pid, enum daemon_end end,
		     char *ret_text, size_t len);

#endif
