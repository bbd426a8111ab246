/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_FRAME_POINTER_H
#define SYMBOLS_FRAME_POINTER_H

#include "symbols/space.h"

/**
 * Find the caller of a frame without an unwind entry by its frame pointer.
 * @param regs Of the frame.
 * @param interrupted Its pc is no return address: the function may be at its beginning or its end.
 * @param stack Where the stack is read.
 * @param ret_caller Set on success: pc, sp and frame pointer; all else is 0.
 * @return 1, or 0 where the frame pointer and the return address are 0: the first function. -1 as
 *         symbols_unwind_step_frame_pointer().
 */
int symbols_frame_pointer_step(struct symbols_space *space, const struct attach_registers *regs,
			       bool interrupted, const struct attach_reader *stack,
			       struct attach_registers *ret_caller, struct failure *why);

#endif
