/* SPDX-License-Identifier: MIT */
#include "format/xml.h"

#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"
#define ELLIPSIS    "\xe2\x80\xa6"

/** Bytes of the character at @p text, 1 where it has to be replaced. */
static size_t character_len(const unsigned char *text, bool *ret_valid)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t code = text[0];
	size_t len = code < 0x80 ? 1 : code < 0xc2 ? 0 : code < 0xe0 ? 2 : code < 0xf0 ? 3 : 4;

	*ret_valid = false;
	if (len == 0 || code > 0xf4)
		return 1;
	if (len > 1)
		code &= 0x7fu >> len;
	for (size_t i = 1; i < len; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 1;
		code = code << 6 | (text[i] & 0x3f);
	}
	if (code < least[len] || code < 0x20 || code > 0x10ffff ||
	    (code >= 0xd800 && code < 0xe000) || code == 0xfffe || code == 0xffff)
		return 1;
	*ret_valid = true;
	return len;
}

static size_t count_characters(const unsigned char *text)
{
	size_t count = 0;
	bool valid;

	for (; *text; text += character_len(text, &valid))
		count++;
	return count;
}

static void print_character(FILE *file, const unsigned char *text, size_t len)
{
	switch (*text) {
	case '&':
		fputs("&amp;", file);
		break;
	case '<':
		fputs("&lt;", file);
		break;
	case '>':
		fputs("&gt;", file);
		break;
	case '"':
		fputs("&quot;", file);
		break;
	default:
		fwrite(text, 1, len, file);
	}
}

void xml_print(FILE *file, const char *text, size_t characters)
{
	const unsigned char *at = (const unsigned char *)text;
	bool cut = count_characters(at) > characters, valid;

	for (size_t left = characters - (cut ? 1 : 0); *at && left > 0; left--) {
		size_t len = character_len(at, &valid);

		if (valid)
			print_character(file, at, len);
		else
			fputs(REPLACEMENT, file);
		at += len;
	}
	if (cut)
		fputs(ELLIPSIS, file);
}
