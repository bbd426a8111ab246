/* SPDX-License-Identifier: MIT */
/* What is the name of a native address? */
#ifndef SYMBOLS_NAMES_H
#define SYMBOLS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/space.h"

/** A native function. Strings are borrowed until the space is destroyed. */
struct symbols_function {
	uint64_t start;	    /**< First address: of the symbol, else of the unwind entry, else the
			       address itself. */
	uint64_t end;	    /**< First address after it; start + 1 if unknown. */
	const char *name;   /**< Symbol, else "module+0xOFFSET" of `start`. */
	const char *module; /**< Base name of the file, "[vdso]", "[anon]", … */
	bool is_symbol;	    /**< Whether the name is a symbol. */
};

/**
 * Name the function at @p address. Always gives an answer: an address after a symbol's end is
 * "module+0x…", never the neighbour's name. For a return address, pass the address minus one.
 * @return 0, or -1 with FAILURE_NO_MEMORY.
 */
int symbols_find_function(struct symbols_space *space, uint64_t address,
			  struct symbols_function *ret_function, struct failure *why);

/**
 * Find an exported or local symbol by name in all mapped objects; returns the first match.
 * @return 0, or -1 with FAILURE_NOT_FOUND.
 */
int symbols_find_address(struct symbols_space *space, const char *name, uint64_t *ret_address,
			 struct failure *why);

/** Bytes of a build-id: 20 in practice (SHA-1). */
#define SYMBOLS_BUILD_ID_MAX 64

/**
 * Find the build-id (the note NT_GNU_BUILD_ID) of the file mapped at @p address, or of the vDSO.
 * @return Number of its bytes; 0: no build-id, or the file was not found.
 */
size_t symbols_find_build_id(struct symbols_space *space, uint64_t address,
			     uint8_t ret_id[SYMBOLS_BUILD_ID_MAX]);

#endif
