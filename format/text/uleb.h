/* SPDX-License-Identifier: MIT */
/* How do streams store numbers of variable length? */
#ifndef FORMAT_TEXT_ULEB_H
#define FORMAT_TEXT_ULEB_H

#include <stddef.h>
#include <stdint.h>

/** Bytes that 64 bits need at 7 bits per byte. */
#define FORMAT_ULEB_MAX 10

/**
 * Encode @p value in its shortest form.
 * @return Number of bytes stored, 1 to FORMAT_ULEB_MAX.
 * Source: DWARF 5, section 7.6.
 */
size_t format_uleb_encode(uint64_t value, uint8_t ret_bytes[FORMAT_ULEB_MAX]);

/** A number that is decoded byte by byte; all zero at first. */
struct format_uleb {
	uint64_t value;
	unsigned len;
};

enum format_uleb_step { FORMAT_ULEB_MORE, FORMAT_ULEB_DONE, FORMAT_ULEB_TOO_LARGE };

/** Add the next byte. Padded numbers are valid up to FORMAT_ULEB_MAX bytes. A longer number, or
 * one with more than 64 bits, is too large. */
enum format_uleb_step format_uleb_decode(struct format_uleb *uleb, uint8_t byte);

#endif
