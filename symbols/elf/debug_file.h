/* SPDX-License-Identifier: MIT */
/* Separate debug files: where they may lie, and the proof that they belong to a file. */
#ifndef SYMBOLS_ELF_DEBUG_FILE_H
#define SYMBOLS_ELF_DEBUG_FILE_H

#include "symbols/elf/elf_file.h"
#include "symbols/elf/root.h"

/** What a debug file is wanted for; one that does not have it is passed over. */
enum symbols_debug_need { SYMBOLS_DEBUG_NAMES, SYMBOLS_DEBUG_TYPES };

/**
 * Find and open the separate debug file of @p elf.
 *
 * By build-id: in the folders of LJPROF_DEBUG_DIR, among the files that were fetched, then in
 * /usr/lib/debug of the target's root and of ours; the file must have the same build-id. Then by
 * .gnu_debuglink, beside the file and in /usr/lib/debug, in both roots; the file must have the
 * checksum.
 * @param path    Of the file in the target.
 * @param ret_elf Set on success.
 * Source: GDB manual, "Debugging Information in Separate Files".
 */
bool symbols_debug_open(const struct symbols_root *root, const struct symbols_elf *elf,
			const char *path, enum symbols_debug_need need,
			struct symbols_elf *ret_elf);

/**
 * Find and open the file that @p debug shares DWARF with, as its .gnu_debugaltlink says: by
 * build-id as above, then by the path in the section if it is an absolute one. The build-id must
 * fit. Source: GDB manual, "Debugging Information in Separate Files"; dwz(1).
 */
bool symbols_debug_open_alternate(const struct symbols_root *root, const struct symbols_elf *debug,
				  struct symbols_elf *ret_elf);

#endif
