/* SPDX-License-Identifier: MIT */
/* What are the names of LuaJIT's built-ins, by number? */
#ifndef FORMAT_TEXT_BUILTIN_NAMES_H
#define FORMAT_TEXT_BUILTIN_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Smallest number that means one function. */
#define FORMAT_FFNAME_FIRST 2

/** @return The name of built-in @p number in the reference build, or NULL. */
const char *format_ffname_of(uint64_t number);

/** Find the number of a built-in such as "string.gsub" in the reference build. */
bool format_ffname_find(const char *name, uint64_t *ret_number);

#endif
