/* SPDX-License-Identifier: MIT */
/*
 * How do we read foreign bytes with a cursor that cannot leave them?
 *
 * A read past the end sets `failed` and gives 0, so a decoder checks once, at its end.
 */
#ifndef SYMBOLS_ELF_BYTES_H
#define SYMBOLS_ELF_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct symbols_bytes {
	const uint8_t *start;
	size_t at, end; /**< Offsets from start. */
	bool failed;
};

static inline uint64_t symbols_bytes_fixed(struct symbols_bytes *bytes, size_t size)
{
	uint64_t value = 0;

	if (bytes->failed || size > bytes->end - bytes->at) {
		bytes->failed = true;
		return 0;
	}
	memcpy(&value, bytes->start + bytes->at, size); /* little-endian, as the file is */
	bytes->at += size;
	return value;
}

static inline void symbols_bytes_skip(struct symbols_bytes *bytes, uint64_t size)
{
	if (bytes->failed || size > bytes->end - bytes->at)
		bytes->failed = true;
	else
		bytes->at += size;
}

/** Read a LEB128 number of at most ten bytes. */
static inline uint64_t symbols_bytes_uleb(struct symbols_bytes *bytes)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 70; shift += 7) {
		uint64_t byte = symbols_bytes_fixed(bytes, 1);

		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	bytes->failed = true;
	return 0;
}

static inline int64_t symbols_bytes_sleb(struct symbols_bytes *bytes)
{
	size_t start = bytes->at;
	uint64_t value = symbols_bytes_uleb(bytes);
	unsigned bits = 7 * (unsigned)(bytes->at - start);

	if (bits && bits < 64 && value >> (bits - 1) & 1)
		value |= UINT64_MAX << bits;
	return (int64_t)value;
}

#endif
