/* SPDX-License-Identifier: MIT */
/* Private to symbols: who called a function that has no unwind entry? */
#ifndef SYMBOLS_UNWIND_FRAME_POINTER_H
#define SYMBOLS_UNWIND_FRAME_POINTER_H

#include "symbols/space/space_internal.h"

/**
 * Find the caller of a frame without an unwind entry by its frame pointer.
 * @param regs Registers of the frame.
 * @param interrupted The frame's pc is no return address: the function may be at its beginning or
 *        its end.
 * @param stack Reader of the stack.
 * @param ret_caller Set on success: pc, sp and frame pointer; the others are 0, except below a leaf
 *        function on AArch64.
 * @return 1; 0 at the first function, where frame pointer and return address are 0; -1 as
 *         symbols_unwind_step_frame_pointer().
 */
int symbols_frame_pointer_step(struct symbols_space *space, const struct attach_registers *regs,
			       bool interrupted, const struct attach_reader *stack,
			       struct attach_registers *ret_caller, struct failure *why);

/**
 * Find the frame pointer of a frame with known pc and sp only.
 * @param regs,interrupted,stack As for symbols_frame_pointer_step().
 * @param limit The frame ends below this address.
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
