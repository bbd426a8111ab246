/* SPDX-License-Identifier: MIT */
/* How are numbers coded with 7 bits per byte? */
#include "format/text/uleb.h"

size_t format_uleb_encode(uint64_t value, uint8_t ret_bytes[FORMAT_ULEB_MAX])
{
	size_t len = 0;

	while (value >= 0x80) {
		ret_bytes[len++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	ret_bytes[len++] = (uint8_t)value;
	return len;
}

enum format_uleb_step format_uleb_decode(struct format_uleb *uleb, uint8_t byte)
{
	/* The tenth byte has room only for the top bit. */
	if (uleb->len == FORMAT_ULEB_MAX - 1 && byte > 1)
		return FORMAT_ULEB_TOO_LARGE;
	uleb->value |= (uint64_t)(byte & 0x7f) << (7 * uleb->len);
	uleb->len++;
	return byte & 0x80 ? FORMAT_ULEB_MORE : FORMAT_ULEB_DONE;
}
