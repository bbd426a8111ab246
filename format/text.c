/* SPDX-License-Identifier: MIT */
#include "format/text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

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

/** @return Where @p len bytes may be stored, terminator included in the room; NULL if broken. */
static char *reserve(struct format_text *text, size_t len)
{
	size_t capacity = text->capacity ? text->capacity : 64;
	char *bytes;

	if (text->broken || len > SIZE_MAX / 4)
		return NULL;
	while (capacity - text->len <= len)
		capacity *= 2;
	if (capacity != text->capacity) {
		bytes = realloc(text->bytes, capacity);
		if (!bytes) {
			text->broken = true;
			return NULL;
		}
		text->bytes = bytes;
		text->capacity = capacity;
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

int format_text_take(struct format_text *text, const char **ret_string, struct failure *why)
{
	format_text_add(text, "", 0);
	if (text->broken)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold a text");
	*ret_string = text->bytes;
	return 0;
}
