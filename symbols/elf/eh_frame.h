/* SPDX-License-Identifier: MIT */
/*
 * Which unwind entries has an ELF file?
 *
 * We keep a private copy of .eh_frame and a sorted table of its entries. libunwind reads the copy
 * afterwards, so an entry cannot change after its check. libunwind 1.6.2 trusts register numbers,
 * return-address columns and expressions (an endless loop of DW_OP_skip, a division that traps), so
 * it gets an entry only after symbols_eh_check().
 */
#ifndef SYMBOLS_ELF_EH_FRAME_H
#define SYMBOLS_ELF_EH_FRAME_H

#include "attach/reader.h"
#include "symbols/elf/elf_file.h"

/** Largest .eh_frame (and table) that we load; a browser engine has about 10 MiB. */
#define SYMBOLS_EH_MAX_BYTES ((size_t)16 << 20)

/** Addresses of code and entry, relative to the table's base. */
struct symbols_eh_row {
	int32_t start;
	int32_t entry;
};

struct symbols_eh {
	uint64_t vaddr; /**< Link-time address of the first byte. */
	uint8_t *bytes;
	size_t len;
	uint64_t base;
	struct symbols_eh_row *rows; /**< Ascending by start. */
	size_t count;
};

/** One decoded entry (FDE) with its common part (CIE); byte ranges index symbols_eh.bytes. */
struct symbols_eh_entry {
	uint64_t start, end; /**< Code, link-time addresses [start, end). */
	uint64_t vaddr;	     /**< Link-time address of the entry itself. */
	size_t code_start, code_end;
	size_t cie_code_start, cie_code_end;
	uint64_t code_align;
	int64_t data_align;
	uint64_t return_column;
	bool is_signal; /**< Augmentation 'S': a signal trampoline. */
};

/**
 * Load the unwind entries of @p elf.
 * @param ret_eh Set on success; release with symbols_eh_deinit().
 * @param why    FAILURE_NOT_FOUND, FAILURE_LIMIT, FAILURE_INVALID, FAILURE_NO_MEMORY.
 * Source: LSB 5.0 core, 10.6 (.eh_frame, .eh_frame_hdr).
 */
int symbols_eh_init(struct symbols_eh *ret_eh, const struct symbols_elf *elf, struct failure *why);
void symbols_eh_deinit(struct symbols_eh *eh);

/** Decode the entry of one row. */
bool symbols_eh_entry_at(const struct symbols_eh *eh, size_t row, struct symbols_eh_entry *ret);

/** Find the entry whose code contains link-time address @p vaddr. */
bool symbols_eh_find(const struct symbols_eh *eh, uint64_t vaddr, struct symbols_eh_entry *ret);

/** Whether the programs of the entry keep the rules that libunwind assumes. */
bool symbols_eh_check(const struct symbols_eh *eh, const struct symbols_eh_entry *entry);

/**
 * DWARF registers that programs may name, and the number of the return address. On x86-64 these are
 * the general registers and the return address. AArch64 also has vector registers, which callees
 * save.
 */
#if defined(__x86_64__)
#define SYMBOLS_EH_REGISTERS	  17
#define SYMBOLS_EH_RETURN_ADDRESS 16
#elif defined(__aarch64__)
#define SYMBOLS_EH_REGISTERS	  96
#define SYMBOLS_EH_RETURN_ADDRESS 30
#endif

#endif
