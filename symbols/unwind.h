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

/** Rule of one unwind entry that holds for its whole range: all registers at fixed distances below
 *  a CFA that is a register plus an offset. */
struct symbols_unwind_entry {
	uint64_t start, end; /**< [start, end), target addresses. */
	int cfa_register;    /**< DWARF number. */
	int64_t cfa_offset;  /**< CFA = cfa_register + cfa_offset. */
	/** Register n is saved at CFA + saved_offset[n]; INT64_MIN where it is not saved. */
	int64_t saved_offset[ATTACH_REG_COUNT];
	bool constant; /**< The same rule holds at the first and the last address of the range. */
};

/**
 * Visit the unwind entries of code that finds its frame made: a register besides the return address
 * is saved at its first instruction already. Compilers write such code rarely, assemblers of
 * interpreters do.
 *
 * Each entry is visited in each executable file mapping in which it begins. A file is read once,
 * however often it is mapped, until it is unmapped; bounds on that keep files that were made to
 * take long from doing so, and entries with programs of more than 256 bytes are passed over, and
 * what cannot be opened.
 * @param min_len Of the code, in bytes.
 * @param visit Returns true to go on.
 * @param why FAILURE_NO_MEMORY; FAILURE_SYSTEM where nothing was found, but descriptors or memory
 *            lacked to open all files. Those are tried again at the next call.
 * Source: LSB 5.0 core, 10.6 (.eh_frame, .eh_frame_hdr); DWARF 5, 6.4 (the rules).
 */
int symbols_each_unwind_entry(struct symbols_space *space, uint64_t min_len,
			      bool (*visit)(void *context,
					    const struct symbols_unwind_entry *entry),
			      void *context, struct failure *why);

/** Copy bytes of a mapped file as the file has them (program text, read-only data).
 *  FAILURE_FAULT if @p address is not backed by a readable file or by the vDSO. */
int symbols_read_file_bytes(struct symbols_space *space, uint64_t address, void *ret_bytes,
			    size_t len, struct failure *why);

/* ---- Unwinding -------------------------------------------------------------------------- */

/** Native unwinder of one space: by simple rules, and by libunwind's remote interface over our own
 *  accessors where rules are not. */
struct symbols_unwinder;

int symbols_unwinder_create(struct symbols_space *space, struct symbols_unwinder **ret_unwinder,
			    struct failure *why);
void symbols_unwinder_destroy(struct symbols_unwinder *unwinder);

/** One native frame. */
struct symbols_native_frame {
	uint64_t pc;	       /**< Interrupted pc of the leaf, else the return address. */
	uint64_t sp;	       /**< Stack pointer in this frame. */
	bool is_signal;	       /**< A signal trampoline: the next frame's pc was interrupted. */
	bool by_frame_pointer; /**< Found by symbols_unwind_step_frame_pointer(), not by a rule. */
};

/**
 * Set the unwinder to the registers' frame.
 * @param memory Where the stack is read; borrowed until the next begin.
 */
void symbols_unwind_begin(struct symbols_unwinder *unwinder, const struct attach_registers *regs,
			  const struct attach_reader *memory);

/** The same for a frame that waits for a call to return: the pc in @p regs is a return address,
 *  so the rules of the call before it hold. For going on behind frames that the caller crossed. */
void symbols_unwind_begin_caller(struct symbols_unwinder *unwinder,
				 const struct attach_registers *regs,
				 const struct attach_reader *memory);

/** The frame that the unwinder stands at. */
void symbols_unwind_frame(const struct symbols_unwinder *unwinder,
			  struct symbols_native_frame *ret_frame);

/** All registers in the frame that the unwinder stands at, as far as they are known: those that a
 *  call may destroy have the values of the last frame that was interrupted. */
void symbols_unwind_registers(const struct symbols_unwinder *unwinder,
			      struct attach_registers *ret_registers);

/**
 * Go to the caller.
 * @return 1 if there is one, 0 at the stack's first function (its entry says so, or its return
 *         address is 0 or the beginning of a function that nobody called, as coroutine libraries
 *         prepare it), or -1: FAILURE_FAULT (the stack is
 *         not in @p memory), FAILURE_NOT_FOUND (code without unwind information), FAILURE_LIMIT,
 *         FAILURE_INVALID (the stack leads nowhere, or the maps were refreshed since begin). The
 *         unwinder then still stands at the frame before.
 */
int symbols_unwind_step(struct symbols_unwinder *unwinder, struct failure *why);

/**
 * Go to the caller of a frame in code without an unwind entry, by the function's frame pointer; for
 * use after symbols_unwind_step() failed with FAILURE_NOT_FOUND.
 *
 * The caller is believed only if its address lies behind a call, and only where the instructions of
 * the function say where it is kept: at the function's begin and end, and where it has set up its
 * frame pointer. Where several callers are possible there is no answer. Afterwards only the
 * frame's pc, sp and frame pointer are known; its other registers are 0.
 * @return 1 with by_frame_pointer set in the frame, 0 at the thread's first function (frame pointer
 *         and return address are 0), or -1: FAILURE_NOT_FOUND, FAILURE_LIMIT, FAILURE_INVALID. The
 *         unwinder then still stands at the frame before.
 */
int symbols_unwind_step_frame_pointer(struct symbols_unwinder *unwinder, struct failure *why);

/**
 * Learn the frame pointer of the frame that the unwinder stands at, where it is unknown, as in a
 * thread that sleeps, and symbols_unwind_step() needs it; for a next step.
 *
 * The size of the frame, as the function's first instructions tell it, or else the only word below
 * @p limit that a direct call of the function leaves behind, show where it points. A frame that
 * changes its size may have neither, so what comes of it shall be checked where there is a way.
 * @param limit First address behind the caller's return address at most.
 * @return 0, or -1: FAILURE_NOT_FOUND. The unwinder then still stands at the same frame.
 */
int symbols_unwind_find_frame_pointer(struct symbols_unwinder *unwinder, uint64_t limit,
				      struct failure *why);

#endif
