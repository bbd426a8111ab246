/* SPDX-License-Identifier: MIT */
/* Where is the separate debug file of an ELF file, and what proves that it belongs to the file? */
#ifndef SYMBOLS_ELF_DEBUG_FILE_H
#define SYMBOLS_ELF_DEBUG_FILE_H

#include "symbols/elf/elf_file.h"
#include "symbols/elf/root.h"

/** Purpose of a debug file. We skip a file without this content. */
enum symbols_debug_need { SYMBOLS_DEBUG_NAMES, SYMBOLS_DEBUG_TYPES };

/**
 * Find and open the separate debug file of @p elf.
 *
 * We search first by build-id: in the folders of LJPROF_DEBUG_DIR, among the fetched files, then in
 * /usr/lib/debug of the target's root and of ours. The file must have the same build-id. Then we
 * search by .gnu_debuglink, beside the file and in /usr/lib/debug, in both roots. The file must
 * have the link's checksum.
 * @param path Path of @p elf in the target.
 * @param ret_elf Set on success.
 * Source: GDB manual, "Debugging Information in Separate Files".
 */
bool symbols_debug_open(const struct symbols_root *root, const struct symbols_elf *elf,
			const char *path, enum symbols_debug_need need,
			struct symbols_elf *ret_elf);

/**
 * Find and open the file with which @p debug shares DWARF, by its .gnu_debugaltlink. We search by
 * build-id as symbols_debug_open() does, then by the section's path if that is absolute. The
 * build-id must match.
 * Source: GDB manual, "Debugging Information in Separate Files"; dwz(1).
 */
bool symbols_debug_open_alternate(const struct symbols_root *root, const struct symbols_elf *debug,
				  struct symbols_elf *ret_elf);

#endif
