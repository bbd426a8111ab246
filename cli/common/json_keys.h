/* SPDX-License-Identifier: MIT */
/* How do keys get into JSON objects, with texts of targets made safe? */
#ifndef CLI_COMMON_JSON_KEYS_H
#define CLI_COMMON_JSON_KEYS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_object;

void json_keys_add_number(struct json_object *object, const char *key, uint64_t value);
void json_keys_add_flag(struct json_object *object, const char *key, bool value);

/** Add a text of our own. */
void json_keys_add_word(struct json_object *object, const char *key, const char *word);

/** Add a text of the process, cleaned by format_clean_copy(), or null. */
void json_keys_add_text(struct json_object *object, const char *key, const char *text);

/** Add a text with invalid UTF-8 replaced by question marks, otherwise unchanged. */
void json_keys_add_foreign(struct json_object *object, const char *key, const char *text);

/** Add a number with three decimals. */
void json_keys_add_real(struct json_object *object, const char *key, double value);

/** Add an address as a text, because not all JSON readers keep 64-bit numbers. */
void json_keys_add_address(struct json_object *object, const char *key, uint64_t address);

/** @return 0, or -1 if writing failed. */
int json_keys_print(FILE *file, struct json_object *object);

#endif
