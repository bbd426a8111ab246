/* SPDX-License-Identifier: MIT */
/* What are LuaJIT's built-in functions called, by number? */
#ifndef FORMAT_TEXT_BUILTIN_NAMES_H
#define FORMAT_TEXT_BUILTIN_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Smallest number that stands for one function. */
#define FORMAT_FFNAME_FIRST 2

/** @return The reference build's name of fast function @p number, or NULL. */
const char *format_ffname_of(uint64_t number);

/** Find the number of a name such as "string.gsub" in the reference build. */
bool format_ffname_find(const char *name, uint64_t *ret_number);

#endif
