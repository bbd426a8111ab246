/* SPDX-License-Identifier: MIT */
/* Which import does a stub of the linkage table call? */
#ifndef SYMBOLS_NAMES_PLT_H
#define SYMBOLS_NAMES_PLT_H

#include "symbols/elf/elf_file.h"

/** A word that contains the address of a symbol at run time. */
struct symbols_plt_slot {
	uint64_t vaddr;
	uint32_t symbol; /**< Index in the dynamic symbols. */
	uint32_t order;	 /**< Position in the file. */
};

/** The words of one file, read at the first lookup. Initialise with zeros. */
struct symbols_plt {
	struct symbols_plt_slot *slots; /**< Ascending by address. */
	size_t count;
	bool is_read;
};

void symbols_plt_deinit(struct symbols_plt *plt);

/**
 * Name the stub at link-time address @p vaddr, which calls a function of another file:
 * "malloc@plt", by the relocation of the word that the stub reads. A section's common first stub
 * has no name.
 * @param plt Of the same file.
 * @param ret_start,ret_end The stub's [start, end).
 * @param ret_text At least SYMBOLS_NAME_MAX_BYTES.
 * @return false if there is no named stub.
 * Source: System V ABI, AMD64, 5.2.2 "Procedure Linkage Table"; ELF for the Arm 64-bit
 * Architecture.
 */
bool symbols_plt_find(struct symbols_plt *plt, const struct symbols_elf *elf, uint64_t vaddr,
		      uint64_t *ret_start, uint64_t *ret_end, char *ret_text);

#endif
