/* SPDX-License-Identifier: MIT */
/* Who called a function that has no unwind entry? */
#ifndef SYMBOLS_UNWIND_FRAME_POINTER_H
#define SYMBOLS_UNWIND_FRAME_POINTER_H

#include "symbols/space/space_internal.h"

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

/**
 * Find the frame pointer of a frame of which only pc and sp are known.
 * @param regs,interrupted,stack As of symbols_frame_pointer_step().
 * @param limit The frame ends below.
 * @param ret_pointer Set on success.
 * @return 0, or -1 as symbols_unwind_find_frame_pointer().
 */
int symbols_frame_pointer_find(struct symbols_space *space, const struct attach_registers *regs,
			       bool interrupted, const struct attach_reader *stack, uint64_t limit,
			       uint64_t *ret_pointer, struct failure *why);

/** DWARF number of the frame pointer. */
#if defined(__x86_64__)
#define SYMBOLS_FRAME_POINTER ATTACH_REG_RBP
#else
#define SYMBOLS_FRAME_POINTER ATTACH_REG_FP
#endif

#endif
