/* SPDX-License-Identifier: MIT */
/*
 * Which function symbols has an object, in its own tables and in its separate debug file?
 *
 * We keep only addresses and read a name from its file on demand. So a debug file of any size costs
 * 24 bytes per function.
 */
#ifndef SYMBOLS_NAMES_SYMTAB_H
#define SYMBOLS_NAMES_SYMTAB_H

#include "symbols/elf/eh_frame.h"
#include "symbols/elf/elf_file.h"
#include "symbols/elf/root.h"

/** Functions to keep per object: 6 MiB. The largest programs have twice as many; their remaining
 *  functions are named by their unwind entries. */
#define SYMBOLS_MAX_FUNCTIONS ((size_t)1 << 18)

struct symbols_name {
	uint64_t start, end; /**< Link-time addresses [start, end). */
	uint32_t text;	     /**< Offset in the string table. */
	uint8_t table;	     /**< Index of its table; see symtab.c. */
	uint8_t class;	     /**< See symtab.c; lower is better. */
	uint8_t binding;     /**< 0 global, 1 weak, SYMBOLS_LOCAL. */
};

/** The binding of symbols that only their own file sees. */
#define SYMBOLS_LOCAL 2

struct symbols_names {
	struct symbols_name *list; /**< Sorted by start. */
	size_t count, room;
	const struct symbols_elf *own;
	struct symbols_elf *extra; /**< Debug file or decompressed .gnu_debugdata; NULL: none. */
	bool is_whole; /**< The extra file also contains the symbols of the own tables. */
};

/**
 * Collect the names of @p elf. An object without symbols is no failure.
 * @param elf Borrowed until deinit.
 * @param path Path of the file in the target, for .gnu_debuglink; "" if unknown.
 * @param why FAILURE_NO_MEMORY.
 */
int symbols_names_init(struct symbols_names *names, const struct symbols_elf *elf, const char *path,
		       const struct symbols_root *root, struct failure *why);
void symbols_names_deinit(struct symbols_names *names);

/**
 * Find the function at link-time address @p vaddr.
 *
 * A symbol without a size extends to the next symbol or the end of its section, but not beyond its
 * unwind entry. Code between two labels with an unwind entry of its own is another function.
 * @param eh May be NULL.
 * @param ret_text At least SYMBOLS_NAME_MAX_BYTES.
 */
bool symbols_names_find(const struct symbols_names *names, const struct symbols_eh *eh,
			uint64_t vaddr, struct symbols_name *ret_name, char *ret_text);

/** Find a defined symbol of any kind by name. */
bool symbols_names_find_address(const struct symbols_names *names, const char *name,
				uint64_t *ret_vaddr);

#endif
