/* SPDX-License-Identifier: MIT */
/* Who called this native frame? */
#ifndef SYMBOLS_UNWIND_H
#define SYMBOLS_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/space.h"

/* ---- Unwind entries --------------------------------------------------------------------- */

/** Rule of an unwind entry: the CFA is a register plus an offset, and registers are saved at fixed
 *  distances from it. */
struct symbols_unwind_entry {
	uint64_t start, end; /**< [start, end), target addresses. */
	int cfa_register;    /**< DWARF number of the register. */
	int64_t cfa_offset;  /**< CFA = cfa_register + cfa_offset. */
	/** Register n is saved at CFA + saved_offset[n]; INT64_MIN: not saved. */
	int64_t saved_offset[ATTACH_REG_COUNT];
	bool constant; /**< The same rule holds at the first and the last address of the range. */
};

/**
 * Visit the unwind entries of code whose frame already exists: its first instruction has a saved
 * register besides the return address. Compilers rarely write such code; assemblers of interpreters
 * do.
 *
 * We visit each entry in each executable file mapping in which it begins. We read a file once, even
 * if it is mapped often, until it is unmapped. Bounds limit the time for hostile files. We skip
 * entries with programs of more than 256 bytes, and files that we cannot open.
 * @param min_len Minimum length of the code, in bytes.
 * @param visit Returns true to continue.
 * @param why FAILURE_NO_MEMORY; FAILURE_SYSTEM if nothing was found and we lacked descriptors or
 *        memory to open all files. The next call tries these files again.
 * Source: LSB 5.0 core, 10.6 (.eh_frame, .eh_frame_hdr); DWARF 5, 6.4 (the rules).
 */
int symbols_each_unwind_entry(struct symbols_space *space, uint64_t min_len,
			      bool (*visit)(void *context,
					    const struct symbols_unwind_entry *entry),
			      void *context, struct failure *why);

/**
 * Visit these entries of one mapping only.
 * @param index As for symbols_space_get().
 */
int symbols_each_unwind_entry_in(struct symbols_space *space, size_t index, uint64_t min_len,
				 bool (*visit)(void *context,
					       const struct symbols_unwind_entry *entry),
				 void *context, struct failure *why);

/**
 * Copy bytes of a mapped file from the file (program text, read-only data). FAILURE_FAULT if no
 * readable file, nor the vDSO, is at @p address.
 */
int symbols_read_file_bytes(struct symbols_space *space, uint64_t address, void *ret_bytes,
			    size_t len, struct failure *why);

/* ---- Unwinding -------------------------------------------------------------------------- */

/** Native unwinder of one space. It steps by simple rules. For other rules it uses libunwind's
 *  remote interface with our own accessors. */
struct symbols_unwinder;

int symbols_unwinder_create(struct symbols_space *space, struct symbols_unwinder **ret_unwinder,
			    struct failure *why);
void symbols_unwinder_destroy(struct symbols_unwinder *unwinder);

/** One native frame. */
struct symbols_native_frame {
	uint64_t pc;	/**< Interrupted pc of the innermost frame, else the return address. */
	uint64_t sp;	/**< Stack pointer in this frame. */
	bool is_signal; /**< A signal trampoline: a signal interrupted the next frame. */
	bool by_frame_pointer; /**< Found by symbols_unwind_step_frame_pointer(), not by a rule. */
};

/**
 * Start at the frame of @p regs.
 * @param memory Reader of the stack; borrowed until the next begin.
 */
void symbols_unwind_begin(struct symbols_unwinder *unwinder, const struct attach_registers *regs,
			  const struct attach_reader *memory);

/**
 * Start at a frame that waits for a call to return. The pc in @p regs is a return address, so the
 * rules of the call before it apply. Used to continue after frames that the caller has skipped.
 */
void symbols_unwind_begin_caller(struct symbols_unwinder *unwinder,
				 const struct attach_registers *regs,
				 const struct attach_reader *memory);

/** Get the current frame. */
void symbols_unwind_frame(const struct symbols_unwinder *unwinder,
			  struct symbols_native_frame *ret_frame);

/** Get all known registers of the current frame. Registers that a call may destroy have the values
 *  of the last interrupted frame. */
void symbols_unwind_registers(const struct symbols_unwinder *unwinder,
			      struct attach_registers *ret_registers);

/**
 * Step to the caller.
 * @return 1 if there is a caller. 0 at the stack's first function: its entry says so, or its return
 *         address is 0 or the beginning of a function that nobody called, as coroutine libraries
 *         prepare it. -1: FAILURE_FAULT (the stack is not in @p memory), FAILURE_NOT_FOUND (code
 *         without unwind information), FAILURE_LIMIT, FAILURE_INVALID (the stack is not plausible,
 *         or the maps were refreshed since begin). The current frame is then unchanged.
 */
int symbols_unwind_step(struct symbols_unwinder *unwinder, struct failure *why);

/**
 * Step to the caller of a frame in code without an unwind entry, by the function's frame pointer.
 * Use it after symbols_unwind_step() failed with FAILURE_NOT_FOUND.
 *
 * We accept a caller only if its address follows a call, and only if the function's instructions
 * say where the address is: at the function's begin and end, and after it has set up its frame
 * pointer. If several callers are possible, the step fails. Afterwards only pc, sp and frame
 * pointer are known; the other registers are 0.
 * @return 1, with by_frame_pointer set in the frame; 0 at the thread's first function (frame
 *         pointer and return address are 0); or -1: FAILURE_NOT_FOUND, FAILURE_LIMIT,
 *         FAILURE_INVALID. The current frame is then unchanged.
 */
int symbols_unwind_step_frame_pointer(struct symbols_unwinder *unwinder, struct failure *why);

/**
 * Find the unknown frame pointer of the current frame, as of a sleeping thread, so that
 * symbols_unwind_step() can use it.
 *
 * Two things show where it points: the size of the frame, by the function's first instructions; or
 * else the only word below @p limit that a direct call of the function can have pushed. A frame of
 * variable size may have neither, so callers should check the result if they can.
 * @param limit First address after the caller's return address, at most.
 * @return 0, or -1: FAILURE_NOT_FOUND. The current frame is then unchanged.
 */
int symbols_unwind_find_frame_pointer(struct symbols_unwinder *unwinder, uint64_t limit,
				      struct failure *why);

#endif
