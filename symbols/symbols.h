/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_SYMBOLS_H
#define SYMBOLS_SYMBOLS_H

/*
 * What is this native address, and who called it?
 *
 * The target is seen through its maps, its mapped files and attach's remote reader. Nothing here
 * runs while a thread is stopped.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/attach.h"

/* ---- Address space ---------------------------------------------------------------------- */

/** The mappings of one target and the ELF objects behind them. */
struct symbols_space;

/** One line of /proc/PID/maps. Source: proc(5). */
struct symbols_mapping {
	uint64_t start, end; /**< [start, end). */
	uint64_t offset;     /**< In the file. */
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	bool readable, writable, executable, is_private;
	const char *path; /**< As the kernel prints it, "" if anonymous; borrowed until refresh. */
};

/**
 * Read the maps of a live process. Objects are opened on first use, through map_files where the
 * kernel lets us, else through /proc/PID/root, and then only if device and inode fit.
 * @param process Borrowed until destroy.
 */
int symbols_space_create(struct attach_process *process, struct symbols_space **ret_space,
			 struct failure *why);

/** A space from the text of a maps file, for a recorded image: objects are looked up by path on
 *  this machine and taken only if device, inode or build-id fit; hostile text is FAILURE_INVALID.
 */
int symbols_space_create_recorded(const char *maps, size_t len, struct symbols_space **ret_space,
				  struct failure *why);
void symbols_space_destroy(struct symbols_space *space);

/** Give a recorded space the image's memory: the vDSO is read there, and build-ids, which prove
 *  files whose device and inode are other ones here. @param memory Borrowed until destroy. */
void symbols_space_set_memory(struct symbols_space *space, const struct attach_reader *memory);

/** Put into an image what its recorded space needs for that: the build-ids of the objects opened so
 *  far, and the vDSO. @param why FAILURE_LIMIT, FAILURE_NO_MEMORY. */
int symbols_space_add_evidence(struct symbols_space *space, struct attach_image *image,
			       struct failure *why);

/** Read the maps again. The generation advances where they changed; what was derived from objects
 *  that are no longer mapped is dropped. Live spaces only. */
int symbols_space_refresh(struct symbols_space *space, struct failure *why);
uint64_t symbols_space_generation(const struct symbols_space *space);

size_t symbols_space_count(const struct symbols_space *space);
const struct symbols_mapping *symbols_space_get(const struct symbols_space *space, size_t index);
/** @return The mapping that holds @p address, or NULL. */
const struct symbols_mapping *symbols_space_find(const struct symbols_space *space,
						 uint64_t address);
/** The maps as text, for an image; borrowed until refresh. */
const char *symbols_space_text(const struct symbols_space *space, size_t *ret_len);

/* ---- Names ------------------------------------------------------------------------------ */

/** A native function. Strings are borrowed until the space is destroyed. */
struct symbols_function {
	uint64_t start;	    /**< First address: of the symbol, else of the unwind entry, else the
				 address itself. */
	uint64_t end;	    /**< First address behind it; start + 1 where unknown. */
	const char *name;   /**< Symbol, else "module+0xOFFSET" of `start`. */
	const char *module; /**< Base name of the file, "[vdso]", "[anon]", … */
	bool is_symbol;	    /**< The name is a symbol. */
};

/**
 * Name the function at @p address. Always gives an answer: an address past a symbol's end is
 * "module+0x…", never the neighbour's name. For a return address pass it minus one.
 * @return 0, or -1 with FAILURE_NO_MEMORY.
 */
int symbols_find_function(struct symbols_space *space, uint64_t address,
			  struct symbols_function *ret_function, struct failure *why);

/** Look up an exported or local symbol by name in all mapped objects; first match.
 *  @return 0, or -1 with FAILURE_NOT_FOUND. */
int symbols_find_address(struct symbols_space *space, const char *name, uint64_t *ret_address,
			 struct failure *why);

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
 * Visit the unwind entries of all executable file mappings that are at least @p min_len bytes long.
 * @param visit Returns true to go on.
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

/** Native unwinder of one space: libunwind's remote interface over our own accessors. */
struct symbols_unwinder;

int symbols_unwinder_create(struct symbols_space *space, struct symbols_unwinder **ret_unwinder,
			    struct failure *why);
void symbols_unwinder_destroy(struct symbols_unwinder *unwinder);

/** One native frame. */
struct symbols_native_frame {
	uint64_t pc; /**< Interrupted pc of the leaf, else the return address. */
	uint64_t sp; /**< Stack pointer in this frame. */
	/** Callee-saved registers in this frame that a walk needs to go on elsewhere. */
	uint64_t rbx, rbp, r12, r13;
	bool is_signal; /**< A signal trampoline: the next frame's pc was interrupted. */
};

/**
 * Set the unwinder to the registers' frame.
 * @param memory Where the stack is read; borrowed until the next begin.
 */
int symbols_unwind_begin(struct symbols_unwinder *unwinder, const struct attach_registers *regs,
			 const struct attach_reader *memory, struct failure *why);

/** The same for a frame that waits for a call to return: the pc in @p regs is a return address,
 *  so the rules of the call before it hold. For going on behind frames that the caller crossed. */
int symbols_unwind_begin_caller(struct symbols_unwinder *unwinder,
				const struct attach_registers *regs,
				const struct attach_reader *memory, struct failure *why);

/** The frame that the unwinder stands at. */
void symbols_unwind_frame(const struct symbols_unwinder *unwinder,
			  struct symbols_native_frame *ret_frame);

/**
 * Go to the caller.
 * @return 1 if there is one, 0 at the thread's first function (its entry says so, or its return
 *         address is 0, as coroutine libraries leave it), or -1: FAILURE_FAULT (the stack is
 *         not in @p memory), FAILURE_NOT_FOUND (code without unwind information), FAILURE_LIMIT,
 *         FAILURE_INVALID (the stack leads nowhere, or the maps were refreshed since begin). The
 *         unwinder then still stands at the frame before.
 */
int symbols_unwind_step(struct symbols_unwinder *unwinder, struct failure *why);

#endif
