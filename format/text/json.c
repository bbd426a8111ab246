/* SPDX-License-Identifier: MIT */
/* How is JSON written piece by piece? */
#include "format/json.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "format/text.h"

/* Only one thread writes a file; a lock per character would take longer than the rest. */
static void put(struct json_out *json, char character)
{
	putc_unlocked(character, json->file);
}

static void put_string(struct json_out *json, const char *text)
{
	while (*text)
		put(json, *text++);
}

/** Write the comma that a value may need before it. */
static void lead(struct json_out *json)
{
	uint64_t bit = json->depth ? (uint64_t)1 << (json->depth - 1) : 0;

	if (!json->has_key && bit && !(json->first & bit))
		put(json, ',');
	if (json->breaks)
		put(json, '\n');
	json->first &= ~bit;
	json->has_key = json->breaks = false;
}

void json_out_open(struct json_out *json, char bracket)
{
	lead(json);
	put(json, bracket);
	json->depth++;
	json->first |= (uint64_t)1 << (json->depth - 1);
}

void json_out_close(struct json_out *json, char bracket)
{
	put(json, bracket);
	json->depth--;
}

/**
 * Print a text that is safe inside a script element: "<" begins no tag there, and U+2028 and U+2029
 * end no line.
 * Source: HTML Living Standard, 4.12.1.3, restrictions for contents of script elements.
 */
static void put_harmless(struct json_out *json, const char *text)
{
	static const char separator[] = "\xe2\x80";

	while (*text) {
		size_t len = strcspn(text, "<>&\xe2");

		fwrite(text, 1, len, json->file);
		text += len;
		if (!*text)
			break;
		if (strncmp(text, separator, 2) == 0 && (text[2] == '\xa8' || text[2] == '\xa9')) {
			put_string(json, text[2] == '\xa8' ? "\\u2028" : "\\u2029");
			text += 3;
			continue;
		}
		if (*text == '\xe2')
			put(json, *text);
		else
			fprintf(json->file, "\\u%04x", (unsigned)*text);
		text++;
	}
}

static void put_text(struct json_out *json, const char *text, size_t len)
{
	int flags = json->is_script ? JSON_C_TO_STRING_PLAIN : JSON_C_TO_STRING_NOSLASHESCAPE;
	char *copy = strndup(text, len);
	struct json_object *object = NULL;

	if (copy) {
		format_clean_utf8(copy, strlen(copy));
		object = json_object_new_string(copy);
	}
	if (!object)
		json->failed = true;
	else if (json->is_script)
		put_harmless(json, json_object_to_json_string_ext(object, flags));
	else
		fputs(json_object_to_json_string_ext(object, flags), json->file);
	json_object_put(object);
	free(copy);
}

void json_out_key(struct json_out *json, const char *key)
{
	lead(json);
	put(json, '"');
	put_string(json, key);
	put_string(json, "\":");
	json->has_key = true;
}

void json_out_text(struct json_out *json, const char *text)
{
	if (!text) {
		json_out_null(json);
		return;
	}
	json_out_part(json, text, strlen(text));
}

void json_out_part(struct json_out *json, const char *text, size_t len)
{
	lead(json);
	put_text(json, text, len);
}

void json_out_number(struct json_out *json, uint64_t value)
{
	lead(json);
	fprintf(json->file, "%" PRIu64, value);
}

void json_out_signed(struct json_out *json, int64_t value)
{
	lead(json);
	fprintf(json->file, "%" PRId64, value);
}

void json_out_ms(struct json_out *json, uint64_t ns)
{
	lead(json);
	fprintf(json->file, "%" PRIu64 ".%06" PRIu64, ns / 1000000, ns % 1000000);
}

void json_out_us(struct json_out *json, uint64_t ns)
{
	lead(json);
	fprintf(json->file, "%" PRIu64 ".%03" PRIu64, ns / 1000, ns % 1000);
}

void json_out_bool(struct json_out *json, bool value)
{
	lead(json);
	fputs(value ? "true" : "false", json->file);
}

void json_out_null(struct json_out *json)
{
	lead(json);
	fputs("null", json->file);
}

void json_out_key_text(struct json_out *json, const char *key, const char *text)
{
	json_out_key(json, key);
	json_out_text(json, text);
}

void json_out_key_number(struct json_out *json, const char *key, uint64_t value)
{
	json_out_key(json, key);
	json_out_number(json, value);
}

void json_out_raw(struct json_out *json, const char *text, size_t len)
{
	lead(json);
	fwrite(text, 1, len, json->file);
}

void json_out_line(struct json_out *json)
{
	put(json, '\n');
}

void json_out_break(struct json_out *json)
{
	json->breaks = true;
}
