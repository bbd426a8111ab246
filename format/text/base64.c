/* SPDX-License-Identifier: MIT */
/* How are bytes written as letters, and read back? */
#include "format/text/base64.h"

#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const uint8_t *bytes, size_t len, char *ret_letters)
{
	uint32_t bits = 0;
	unsigned count = 0;

	for (size_t i = 0; i < len; i++) {
		bits = bits << 8 | bytes[i];
		for (count += 8; count >= 6; count -= 6)
			*ret_letters++ = alphabet[bits >> (count - 6) & 63];
	}
	if (count > 0)
		*ret_letters = alphabet[bits << (6 - count) & 63];
}

size_t base64_decode(const char *letters, size_t len, uint8_t *ret_bytes)
{
	uint32_t bits = 0;
	unsigned count = 0;
	size_t bytes = 0;

	for (size_t i = 0; i < len; i++) {
		const char *letter = letters[i] ? strchr(alphabet, letters[i]) : NULL;

		if (!letter)
			break;
		bits = bits << 6 | (uint32_t)(letter - alphabet);
		count += 6;
		if (count >= 8) {
			count -= 8;
			ret_bytes[bytes++] = (uint8_t)(bits >> count);
		}
	}
	return bytes;
}
