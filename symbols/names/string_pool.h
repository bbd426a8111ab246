/* SPDX-License-Identifier: MIT */
/* Texts that live as long as a space. */
#ifndef SYMBOLS_NAMES_STRING_POOL_H
#define SYMBOLS_NAMES_STRING_POOL_H

#include <stddef.h>

/** Names that one space keeps. A target that makes up code addresses without end (another
 *  compiler's output) must not make us grow with it. */
#define SYMBOLS_STRINGS_MAX_BYTES ((size_t)8 << 20)

/** Strings that live as long as the pool; equal strings are one pointer. */
struct symbols_strings;

struct symbols_strings *symbols_strings_create(void);
void symbols_strings_destroy(struct symbols_strings *strings);

/** @return The pool's copy of @p text, or NULL without memory or above the limit. */
const char *symbols_strings_intern(struct symbols_strings *strings, const char *text);

#endif
