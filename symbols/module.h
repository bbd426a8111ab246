/* SPDX-License-Identifier: MIT */
/* What is in one mapped file: its functions, its code and its data? */
#ifndef SYMBOLS_MODULE_H
#define SYMBOLS_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "symbols/space.h"

/** Code to copy before and behind an address. LuaJIT has half a MiB. */
#define SYMBOLS_MODULE_CODE_BYTES ((uint64_t)1 << 20)

/** The code [start, end) of one unwind entry; link-time addresses. */
struct symbols_module_function {
	uint64_t start, end;
};

/** A copied part of a file. Pointers in its data have the values that the loader gives them, less
 *  the bias. */
struct symbols_module_part {
	uint64_t start; /**< Link-time address of the first byte. */
	uint8_t *bytes;
	size_t len;
	bool executable;
};

/** What tells a file from others, and from other contents of the same file. */
struct symbols_file_id {
	uint64_t device, inode, size;
	struct timespec modified;
};

struct symbols_module {
	struct symbols_module_function *functions; /**< Ascending; they do not overlap. */
	size_t function_count;
	struct symbols_module_part *parts;
	size_t part_count;
};

/**
 * Find the file mapped at @p address.
 * @param ret_bias Target address = link-time address + bias.
 * @return false if there is none, as for the vDSO.
 */
bool symbols_find_file(struct symbols_space *space, uint64_t address,
		       struct symbols_file_id *ret_id, uint64_t *ret_bias);

/**
 * Copy code and data of the file mapped at @p address. Code is copied and its functions are listed
 * up to SYMBOLS_MODULE_CODE_BYTES from the address, without the linkage table. Stopped window: no,
 * it reads the file: some MiB.
 * @param ret_module Set on success; release with symbols_module_deinit().
 * @param why FAILURE_NOT_FOUND (no file, or it has no unwind entries), FAILURE_NO_MEMORY,
 *        FAILURE_INVALID (the file cannot be read).
 */
int symbols_module_init(struct symbols_space *space, uint64_t address,
			struct symbols_module *ret_module, struct failure *why);
void symbols_module_deinit(struct symbols_module *module);

/** Bytes of a symbol's name to copy, with the end. */
#define SYMBOLS_MODULE_NAME_MAX 128

/**
 * Find the symbol that begins at @p address and that other files see, too. Its name may be cut.
 * @return false if there is none.
 */
bool symbols_module_symbol(struct symbols_space *space, uint64_t address,
			   char ret_name[SYMBOLS_MODULE_NAME_MAX]);

#endif
