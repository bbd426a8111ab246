/* SPDX-License-Identifier: MIT */
/*
 * How do we open the DWARF of one ELF file with libdw, and trust neither?
 *
 * libdw does not see the file. It gets a small ELF image that we write, with only the sections that
 * describe types. We check their sizes. Zero bytes follow each section, so a string without an end
 * ends there. So libdw has no path to follow, opens no further file by itself, and cannot read
 * bytes that we did not count.
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
	struct symbols_dwarf *alternate; /**< From .gnu_debugaltlink; NULL: none. */
};

/**
 * Open the DWARF of @p elf, and the file with which it shares DWARF. The caller may close @p elf
 * afterwards.
 * @param ret_dwarf Set on success; release with symbols_dwarf_deinit().
 * @param why FAILURE_NOT_FOUND (no DWARF, or parts are missing), FAILURE_LIMIT, FAILURE_INVALID,
 *        FAILURE_NO_MEMORY.
 * Source: DWARF 5, 7.5; ELF gABI, "Section Compression".
 */
int symbols_dwarf_init(const struct symbols_elf *elf, const struct symbols_root *root,
		       struct symbols_dwarf *ret_dwarf, struct failure *why);
void symbols_dwarf_deinit(struct symbols_dwarf *dwarf);

#endif
