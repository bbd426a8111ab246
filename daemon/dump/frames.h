/* SPDX-License-Identifier: MIT */
/* Private to daemon: how do frames outlive the decoding of one image? */
#ifndef DAEMON_DUMP_FRAMES_H
#define DAEMON_DUMP_FRAMES_H

#include "daemon/decode/target.h"
#include "daemon/dump.h"
#include "luastate/variables.h"

enum {
	/* Most bytes of a name or source: a chunk loaded from a string has its whole text as its
	 * name. */
	FRAMES_TEXT_MAX_BYTES = 1024,
};

/**
 * Listener of a target that keeps functions in a table.
 * @param context A format_functions.
 */
int frames_keep_function(void *context, const struct format_function *function, uint32_t *ret_id,
			 struct failure *why);

/**
 * Make a frame of a Lua stack. Its name comes from luastate, or is the symbol of a C function.
 * @param ret_frame Set on success; release with frames_deinit_frame().
 * @param why FAILURE_NO_MEMORY.
 */
int frames_of_guest(struct daemon_target *target, const struct luastate_frame *frame,
		    struct daemon_frame *ret_frame, struct failure *why);
void frames_deinit_frame(struct daemon_frame *frame);

/**
 * Copy the result of target_decode() before the next image is decoded.
 * @param functions Functions that the target's listener has numbered.
 * @param reader memory->any of that call.
 * @param ret_stack Set on success; release with daemon_stack_deinit().
 * @param why FAILURE_NO_MEMORY; FAILURE_INVALID for an unknown function.
 */
int frames_copy_stack(struct daemon_target *target, const struct format_functions *functions,
		      const struct attach_reader *reader, const struct format_sample *sample,
		      enum daemon_outcome outcome, struct daemon_stack *ret_stack,
		      struct failure *why);

/**
 * Read the variables of the Lua frames of a stack that was just copied, before the next image is
 * decoded. A frame whose variables are unreadable gets none.
 * @param memory As for target_decode().
 * @param options The rest of the budget is updated.
 */
void frames_read_variables(struct daemon_target *target, const struct luastate_memory *memory,
			   struct luastate_values_options *options, struct daemon_stack *stack);

#endif
