/* SPDX-License-Identifier: MIT */
/* How is foreign text printed as code in Markdown? */
#include "format/text/markdown.h"

#include <string.h>

#include "format/text.h"

#define REPLACEMENT "\xef\xbf\xbd"
#define ELLIPSIS    "\xe2\x80\xa6"

/** @return Bytes of the character at @p text, at least 1. */
static size_t character_len(const char *text, size_t len, bool *ret_valid)
{
	uint32_t code;
	size_t found = format_text_character(text, len, &code);

	*ret_valid = found > 0;
	return found ? found : 1;
}

/** @return Bytes of the first @p characters. @param ret_cut Whether there are more. */
static size_t cut(const char *text, size_t characters, bool *ret_cut)
{
	size_t len = strlen(text), at = 0, last = 0, count = 0;
	bool valid;

	for (; at < len && count < characters; count++) {
		last = at;
		at += character_len(text + at, len - at, &valid);
	}
	*ret_cut = at < len;
	return *ret_cut ? last : at;
}

/** @return One more than the longest run of backticks. */
static size_t fence_of(const char *text, size_t len)
{
	size_t run = 0, longest = 0;

	for (size_t i = 0; i < len; i++) {
		run = text[i] == '`' ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest + 1;
}

static void print_fence(FILE *file, size_t len)
{
	while (len-- > 0)
		putc('`', file);
}

static void print_characters(FILE *file, const char *text, size_t len)
{
	bool valid;

	for (size_t at = 0, size; at < len; at += size) {
		size = character_len(text + at, len - at, &valid);
		if (!valid)
			fputs(REPLACEMENT, file);
		else if ((unsigned char)text[at] < ' ' || text[at] == '\x7f')
			putc(' ', file);
		else
			fwrite(text + at, 1, size, file);
	}
}

static bool is_blank(char byte)
{
	return (unsigned char)byte <= ' ' || byte == '\x7f';
}

/** Whether a reader strips a blank from both ends: only if the text has other characters too. */
static bool is_stripped(const char *text, size_t len)
{
	bool more = false;

	for (size_t i = 0; i < len; i++)
		more |= !is_blank(text[i]);
	return more && is_blank(text[0]) && is_blank(text[len - 1]);
}

/** Print a text without bars. */
static void print_piece(FILE *file, const char *text, size_t len)
{
	size_t fence = fence_of(text, len);
	/* Readers strip this blank; it separates a backtick in the text from the fence. */
	bool pads = text[0] == '`' || text[len - 1] == '`' || is_stripped(text, len);
	const char *pad = pads ? " " : "";

	print_fence(file, fence);
	fputs(pad, file);
	print_characters(file, text, len);
	fputs(pad, file);
	print_fence(file, fence);
}

void markdown_print_code(FILE *file, const char *text, size_t characters)
{
	bool is_truncated;
	size_t len = cut(text, characters, &is_truncated);

	for (size_t at = 0, piece; at < len; at += piece) {
		const char *bar = memchr(text + at, '|', len - at);

		piece = bar ? (size_t)(bar - text) - at : len - at;
		if (piece)
			print_piece(file, text + at, piece);
		if (bar)
			fputs("&#124;", file);
		piece += bar ? 1 : 0;
	}
	if (is_truncated)
		fputs(ELLIPSIS, file);
}
