/* SPDX-License-Identifier: MIT */
/* How are bytes written as letters? Source: RFC 4648, section 4. */
#ifndef FORMAT_TEXT_BASE64_H
#define FORMAT_TEXT_BASE64_H

#include <stddef.h>
#include <stdint.h>

/** Letters of @p len bytes, if that is a multiple of 3, or without padding. */
#define BASE64_LETTERS(len) (((len)*4 + 2) / 3)

/**
 * Encode bytes, without padding.
 * @param ret_letters BASE64_LETTERS(@p len) letters, not terminated.
 */
void base64_encode(const uint8_t *bytes, size_t len, char *ret_letters);

/**
 * Decode letters up to the first that is none of the alphabet.
 * @param ret_bytes At most @p len * 3 / 4 bytes.
 * @return The number of bytes.
 */
size_t base64_decode(const char *letters, size_t len, uint8_t *ret_bytes);

#endif
