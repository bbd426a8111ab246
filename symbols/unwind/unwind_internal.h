/* SPDX-License-Identifier: MIT */
/* Private to symbols: what does an unwinder keep, for unwind.c and libunwind_glue.c? */
#ifndef SYMBOLS_UNWIND_UNWIND_INTERNAL_H
#define SYMBOLS_UNWIND_UNWIND_INTERNAL_H

#include <libunwind.h>

#include "symbols/space/space_internal.h"
#include "symbols/unwind/eh_rule.h"

/** Cached locations in code, see location_of(). */
#define SYMBOLS_UNWIND_LOCATIONS 512
#if defined(__aarch64__)
/** A signal trampoline: mov x8, #139; svc #0. */
#define SYMBOLS_UNWIND_SIGRETURN ((unw_word_t)0xd4000001d2801168)
#endif

/** Unwind entries of one object at their target addresses. */
struct symbols_unwind_window {
	uint64_t start, end;
	const uint8_t *bytes;
	uint64_t drops; /**< The space's count of drops when the window was set. */
};

struct symbols_unwind_location {
	uint64_t pc;
	bool is_trampoline;
	bool knows_start, is_start; /**< No call precedes the address after this one. */
	bool has_rule;
	struct symbols_eh_rule rule;
};

struct symbols_unwinder {
	struct symbols_space *space;
	uint64_t generation; /**< The space's generation when the caches were filled. */
	unw_addr_space_t libunwind;
	unw_cursor_t cursor;
	struct attach_registers asked; /**< Registers that libunwind gets for the first frame. */
	struct attach_registers regs;  /**< Registers of the current frame. */
	const struct attach_reader *memory;
	struct symbols_unwind_window window; /**< Entries of the last object. */
	uint64_t plain_start, plain_end;     /**< The last mapping that has no unwind entries. */
	int32_t row[2];			     /**< The search table that libunwind gets. */
	bool searching;	  /**< In find_proc_info: libunwind reads only unwind entries. */
	bool interrupted; /**< The current frame's pc is no return address. */
	unsigned reads, steps;
	size_t program_bytes;  /**< Program bytes of the entries used since begin. */
	struct failure failed; /**< Failure of an accessor; kind NONE: none failed. */
	struct symbols_native_frame frame;
	struct symbols_unwind_location locations[SYMBOLS_UNWIND_LOCATIONS];
};

/** libunwind's access to a target; the context is a struct symbols_unwinder. */
extern unw_accessors_t symbols_unwind_accessors;

/** Find the checked entry for @p pc, its object's entries and the bias; moves the window. */
bool symbols_unwind_find_entry(struct symbols_unwinder *unwinder, uint64_t pc,
			       const struct symbols_eh **ret_eh, struct symbols_eh_entry *ret_entry,
			       uint64_t *ret_bias);

#endif
