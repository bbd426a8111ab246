/* SPDX-License-Identifier: MIT */
/* Numbers of variable length, as streams have them. */
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

/** A number that is being decoded byte by byte; starts as all zero. */
struct format_uleb {
	uint64_t value;
	unsigned len;
};

enum format_uleb_step { FORMAT_ULEB_MORE, FORMAT_ULEB_DONE, FORMAT_ULEB_TOO_LARGE };

/**
 * Take the next byte. Padded forms are fine up to FORMAT_ULEB_MAX bytes; a longer one, or one that
 * needs more than 64 bits, is too large.
 */
enum format_uleb_step format_uleb_decode(struct format_uleb *uleb, uint8_t byte);

#endif
