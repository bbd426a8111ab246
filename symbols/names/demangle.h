/* SPDX-License-Identifier: MIT */
/* Which C++ name has a symbol? */
#ifndef SYMBOLS_NAMES_DEMANGLE_H
#define SYMBOLS_NAMES_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/**
 * Decode the symbol of a C++ function, as _ZN4core4loop3runEv to core::loop::run. The result has no
 * parameters. Symbols come from foreign files: a longer result is cut, and a symbol that repeats
 * more of itself than compilers' symbols do is not decoded.
 * @param ret_text Set on success, at most @p size bytes with its end.
 * @return false if it is no such symbol.
 * Source: Itanium C++ ABI, 5.1 (mangling).
 */
bool symbols_demangle(const char *symbol, char *ret_text, size_t size);

#endif
