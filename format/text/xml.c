/* SPDX-License-Identifier: MIT */
/* How is foreign text printed as XML content? */
#include "format/text/xml.h"

#include <string.h>

#include "format/text.h"

#define REPLACEMENT "\xef\xbf\xbd"
#define ELLIPSIS    "\xe2\x80\xa6"

/** @return Bytes of the character at @p text; 1 if it must be replaced. */
static size_t character_len(const unsigned char *text, bool *ret_valid)
{
	uint32_t code = 0;
	size_t len =
		format_text_character((const char *)text, strnlen((const char *)text, 4), &code);

	*ret_valid = len && code >= 0x20 && code != 0xfffe && code != 0xffff;
	return *ret_valid ? len : 1;
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
