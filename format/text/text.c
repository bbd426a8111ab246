/* SPDX-License-Identifier: MIT */
/* How do texts grow, and how is foreign text made safe to show? */
#include "format/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/array.h"

void format_describe_failure(const struct failure *why, const char *file, char *ret_text,
			     size_t len)
{
	char reason[256];

	if (why->kind == FAILURE_INVALID || (why->kind == FAILURE_LIMIT && why->address)) {
		snprintf(ret_text, len, "%s: %s at byte %llu", file, why->step,
			 (unsigned long long)why->address);
	} else if (why->kind == FAILURE_LIMIT) {
		snprintf(ret_text, len, "%s: %s", file, why->step);
	} else {
		failure_describe(why, reason, sizeof(reason));
		snprintf(ret_text, len, "%s: %s", file, reason);
	}
}

void format_text_deinit(struct format_text *text)
{
	free(text->bytes);
	memset(text, 0, sizeof(*text));
}

void format_text_clear(struct format_text *text)
{
	text->len = 0;
	text->broken = false;
	if (text->bytes)
		text->bytes[0] = '\0';
}

/** @return Room for @p len bytes and a terminator; NULL if the text is broken. */
static char *reserve(struct format_text *text, size_t len)
{
	if (text->broken || len > SIZE_MAX / 4)
		return NULL;
	if (!ARRAY_RESERVE(text->bytes, text->capacity, text->len + len + 1)) {
		text->broken = true;
		return NULL;
	}
	return text->bytes + text->len;
}

void format_text_add(struct format_text *text, const void *bytes, size_t len)
{
	char *end = reserve(text, len);

	if (!end)
		return;
	if (len)
		memcpy(end, bytes, len);
	end[len] = '\0';
	text->len += len;
}

void format_text_add_string(struct format_text *text, const char *string)
{
	format_text_add(text, string, strlen(string));
}

void format_text_addf(struct format_text *text, const char *layout, ...)
{
	va_list args;
	char *end;
	int len;

	va_start(args, layout);
	len = vsnprintf(NULL, 0, layout, args);
	va_end(args);
	end = len < 0 ? NULL : reserve(text, (size_t)len);
	if (!end)
		return;
	va_start(args, layout);
	vsnprintf(end, (size_t)len + 1, layout, args);
	va_end(args);
	text->len += (size_t)len;
}

void format_text_add_line(struct format_text *text, const char *bytes, size_t len)
{
	size_t start = text->len;

	format_text_add(text, bytes, len);
	if (text->broken)
		return;
	for (char *c = text->bytes + start; c < text->bytes + text->len; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = ' ';
}

size_t format_text_character(const char *text, size_t len, uint32_t *ret_code)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *bytes = (const unsigned char *)text;
	uint32_t code = len ? bytes[0] : 0x80;
	size_t size = code < 0x80 ? 1 : code < 0xc2 ? 0 : code < 0xe0 ? 2 : code < 0xf0 ? 3 : 4;

	if (size == 0 || size > len || code > 0xf4)
		return 0;
	if (size > 1)
		code &= 0x7fu >> size;
	for (size_t i = 1; i < size; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (bytes[i] & 0x3f);
	}
	if (code < least[size] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	*ret_code = code;
	return size;
}

/** Whether a terminal obeys a character instead of showing it. Source: ECMA-48, C0 and C1 sets;
 * Unicode 15, 23.2, characters that change the order of the shown text. */
static bool is_obeyed(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x202a && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069);
}

void format_clean_text(char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		uint32_t code = 0;
		size_t size = format_text_character(text + at, len - at, &code);
		/* A byte that is not UTF-8 counts by its own value, as in terminals without
		 * UTF-8. */
		bool blank = is_obeyed(size ? code : (unsigned char)text[at]);

		size = size ? size : 1;
		if (blank)
			memset(text + at, ' ', size);
		at += size;
	}
}

void format_clean_utf8(char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		uint32_t code;
		size_t size = format_text_character(text + at, len - at, &code);

		if (size == 0)
			text[at] = '?';
		at += size ? size : 1;
	}
}

char *format_clean_copy(const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return NULL;
	format_clean_utf8(copy, strlen(copy));
	format_clean_text(copy, strlen(copy));
	return copy;
}

size_t format_text_cut(const char *text, size_t len, size_t max)
{
	size_t cut = len < max ? len : max;

	/* A character has at most three bytes after its first byte. */
	for (size_t back = 0; cut < len && cut > 0 && back < 3; back++) {
		if (((unsigned char)text[cut] & 0xc0) != 0x80)
			return cut;
		cut--;
	}
	return cut;
}

void format_text_add_shown(struct format_text *text, const char *bytes, size_t len)
{
	size_t start = text->len;

	format_text_add(text, bytes, len);
	if (!text->broken)
		format_clean_text(text->bytes + start, len);
}

int format_text_take(struct format_text *text, const char **ret_string, struct failure *why)
{
	format_text_add(text, "", 0);
	if (text->broken)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold a text");
	*ret_string = text->bytes;
	return 0;
}
