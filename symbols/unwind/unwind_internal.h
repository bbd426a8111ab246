/* SPDX-License-Identifier: MIT */
/* Shared by unwind.c, which walks, and libunwind_glue.c, which answers libunwind. */
#ifndef SYMBOLS_UNWIND_UNWIND_INTERNAL_H
#define SYMBOLS_UNWIND_UNWIND_INTERNAL_H

#include <libunwind.h>

#include "symbols/space/space_internal.h"

/** Remembered places in code, see location_of(). */
#define SYMBOLS_UNWIND_PLACES 512
#if defined(__aarch64__)
/** A signal trampoline: mov x8, #139; svc #0. */
#define SYMBOLS_UNWIND_SIGRETURN ((unw_word_t)0xd4000001d2801168)
#endif

/** Unwind entries of one object at their target addresses. */
struct symbols_unwind_window {
	uint64_t start, end;
	const uint8_t *bytes;
	uint64_t drops; /**< The space's count when it was set. */
};

struct symbols_unwind_location {
	uint64_t pc;
	bool is_trampoline;
	bool knows_start, is_start; /**< Nobody calls from before the place behind it. */
	bool has_rule;
	struct symbols_eh_rule rule;
};

struct symbols_unwinder {
	struct symbols_space *space;
	uint64_t generation; /**< Of the space, when the caches were filled. */
	unw_addr_space_t libunwind;
	unw_cursor_t cursor;
	struct attach_registers asked; /**< What libunwind gets as the first frame's. */
	struct attach_registers regs;  /**< Of the frame. */
	const struct attach_reader *memory;
	struct symbols_unwind_window window; /**< Of the object looked at last. */
	uint64_t plain_start, plain_end;     /**< The last mapping that has no unwind entries. */
	int32_t row[2];			     /**< The search table that libunwind gets. */
	bool searching;	  /**< In find_proc_info: only unwind entries are read. */
	bool interrupted; /**< The frame's pc is no return address. */
	unsigned reads, steps;
	size_t program_bytes;  /**< Of the entries that were looked at since begin. */
	struct failure failed; /**< What an accessor failed with; kind NONE if none did. */
	struct symbols_native_frame frame;
	struct symbols_unwind_location locations[SYMBOLS_UNWIND_PLACES];
};

/** How libunwind gets at a target; its context is a struct symbols_unwinder. */
extern unw_accessors_t symbols_unwind_accessors;

/** Find the checked entry for @p pc, its object's entries and bias; moves the window. */
bool symbols_unwind_find_entry(struct symbols_unwinder *unwinder, uint64_t pc,
			       const struct symbols_eh **ret_eh, struct symbols_eh_entry *ret_entry,
			       uint64_t *ret_bias);

#endif
