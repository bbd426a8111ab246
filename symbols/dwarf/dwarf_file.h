/* SPDX-License-Identifier: MIT */
/*
 * The DWARF of one ELF file, opened with libdw.
 *
 * libdw does not see the file. It gets a small ELF image that we write: only sections that describe
 * types, of sizes that we checked, each followed by zero bytes, so that a string which does not end
 * in its section ends behind it. So libdw has no path to follow, opens no further file by itself,
 * and cannot read what was not counted.
 */
#ifndef SYMBOLS_DWARF_DWARF_FILE_H
#define SYMBOLS_DWARF_DWARF_FILE_H

#include <elfutils/libdw.h>

#include "symbols/elf/elf_file.h"
#include "symbols/elf/root.h"

struct symbols_dwarf {
	uint8_t *image;
	Elf *handle;
	Dwarf *dwarf;
	struct symbols_dwarf *alternate; /**< Of .gnu_debugaltlink; NULL if none. */
};

/**
 * Open the DWARF of @p elf, which may be closed afterwards, with the file that it shares.
 * @param ret_dwarf Set on success; release with symbols_dwarf_deinit().
 * @param why       FAILURE_NOT_FOUND (no DWARF, or not all of it), FAILURE_LIMIT, FAILURE_INVALID,
 *                  FAILURE_NO_MEMORY.
 * Source: DWARF 5, 7.5; ELF gABI, "Section Compression".
 */
int symbols_dwarf_init(const struct symbols_elf *elf, const struct symbols_root *root,
		       struct symbols_dwarf *ret_dwarf, struct failure *why);
void symbols_dwarf_deinit(struct symbols_dwarf *dwarf);

#endif
