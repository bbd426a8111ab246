/* SPDX-License-Identifier: MIT */
/* How do keys get into JSON objects, with texts of targets made safe? */
#include "cli/common/json_keys.h"

#include <inttypes.h>
#include <json.h>
#include <stdlib.h>
#include <string.h>

#include "format/text.h"

void json_keys_add_number(struct json_object *object, const char *key, uint64_t value)
{
	json_object_object_add(object, key, json_object_new_uint64(value));
}

void json_keys_add_flag(struct json_object *object, const char *key, bool value)
{
	json_object_object_add(object, key, json_object_new_boolean(value));
}

void json_keys_add_word(struct json_object *object, const char *key, const char *word)
{
	json_object_object_add(object, key, json_object_new_string(word));
}

void json_keys_add_text(struct json_object *object, const char *key, const char *text)
{
	char *copy = text ? format_clean_copy(text) : NULL;

	json_object_object_add(object, key, copy ? json_object_new_string(copy) : NULL);
	free(copy);
}

void json_keys_add_foreign(struct json_object *object, const char *key, const char *text)
{
	char *copy = text ? strdup(text) : NULL;

	if (copy)
		format_clean_utf8(copy, strlen(copy));
	json_object_object_add(object, key, copy ? json_object_new_string(copy) : NULL);
	free(copy);
}

void json_keys_add_real(struct json_object *object, const char *key, double value)
{
	char text[48];

	snprintf(text, sizeof(text), "%.3f", value);
	json_object_object_add(object, key, json_object_new_double_s(value, text));
}

void json_keys_add_address(struct json_object *object, const char *key, uint64_t address)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, address);
	json_keys_add_word(object, key, text);
}

int json_keys_print(FILE *file, struct json_object *object)
{
	const char *text = json_object_to_json_string_ext(
		object, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE);

	return text && fputs(text, file) >= 0 && fputc('\n', file) != EOF ? 0 : -1;
}
