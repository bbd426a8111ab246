/* SPDX-License-Identifier: MIT */
/* Private to daemon: ids of functions. */
#ifndef DAEMON_DECODE_FUNCTION_IDS_H
#define DAEMON_DECODE_FUNCTION_IDS_H

#include "attach/thread.h"
#include "daemon/decode/target.h"
#include "daemon/replay.h"
#include "luastate/stack.h"

/** Id of the native function that holds @p address, announced on first sight. */
int target_native_id(struct daemon_target *target, uint64_t address, uint32_t *ret_id,
		     uint64_t *ret_start, struct failure *why);

/** A guest function as it is announced. Strings are borrowed from luastate and from the space. */
void target_describe_guest(struct daemon_target *target, const struct luastate_function *function,
			   struct format_function *ret_function);

/** Id of a guest function; announced anew once its name is known. */
int target_guest_id(struct daemon_target *target, struct luastate_function *function,
		    uint32_t *ret_id, struct failure *why);

/** Id of the pseudo function for an activity of the VM, such as "[gc sweep]"; not for none. */
int target_vm_work_id(struct daemon_target *target, const struct luastate_vm_work *work,
		      uint32_t *ret_id, struct failure *why);

/** Id of the pseudo function for what a thread waits in, such as "[epoll_wait]". */
int target_sleep_id(struct daemon_target *target, const struct attach_sleep *sleep,
		    uint32_t *ret_id, struct failure *why);

/** Id of the pseudo function for a mark, such as "[frames left out]". */
int target_placeholder_id(struct daemon_target *target, enum target_placeholder mark,
			  uint32_t *ret_id, struct failure *why);

/** The maps changed: addresses are looked up anew. Functions keep their ids. */
void target_native_forget(struct daemon_target *target);
void target_native_free(struct daemon_target *target);

/** Announce all functions anew, under new ids, when they are met again. */
void target_announce_anew(struct daemon_target *target);

#endif
