/* SPDX-License-Identifier: MIT */
/* Private to daemon: which id has each function? */
#ifndef DAEMON_DECODE_FUNCTION_IDS_H
#define DAEMON_DECODE_FUNCTION_IDS_H

#include "attach/thread.h"
#include "daemon/decode/target.h"
#include "daemon/replay.h"
#include "luastate/stack.h"

/** Get the id of the native function at @p address; announced on first use. */
int target_native_id(struct daemon_target *target, uint64_t address, uint32_t *ret_id,
		     uint64_t *ret_start, struct failure *why);

/** Describe a Lua function as it is announced. Strings are borrowed from luastate and from the
 * space. */
void target_describe_guest(struct daemon_target *target, const struct luastate_function *function,
			   struct format_function *ret_function);

/** Get the id of a Lua function; announced again when its name becomes known. */
int target_guest_id(struct daemon_target *target, struct luastate_function *function,
		    uint32_t *ret_id, struct failure *why);

/** Get the id of the pseudo function for VM work, such as "[gc sweep]". @p work must not be
 * none. */
int target_vm_work_id(struct daemon_target *target, const struct luastate_vm_work *work,
		      uint32_t *ret_id, struct failure *why);

/** Get the id of the pseudo function for a thread's wait, such as "[epoll_wait]". */
int target_sleep_id(struct daemon_target *target, const struct attach_sleep *sleep,
		    uint32_t *ret_id, struct failure *why);

/** Get the id of the pseudo function for a placeholder frame, such as "[frames left out]". */
int target_placeholder_id(struct daemon_target *target, enum target_placeholder mark,
			  uint32_t *ret_id, struct failure *why);

/** Forget addresses, because the maps changed. Functions keep their ids. */
void target_native_forget(struct daemon_target *target);
void target_native_free(struct daemon_target *target);

/** Announce all functions again with new ids when they are next used. */
void target_announce_anew(struct daemon_target *target);

#endif
