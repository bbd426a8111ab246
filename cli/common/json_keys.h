/* SPDX-License-Identifier: MIT */
/* Keys of JSON objects, and texts in them. */
#ifndef CLI_COMMON_JSON_KEYS_H
#define CLI_COMMON_JSON_KEYS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_object;

/** A text of the process's, fit for a terminal and for JSON. @return Freed by the caller; NULL
 *  without memory. */
char *dump_text(const char *text);

void json_keys_add_number(struct json_object *object, const char *key, uint64_t value);
void json_keys_add_flag(struct json_object *object, const char *key, bool value);

/** A text of our own. */
void json_keys_add_word(struct json_object *object, const char *key, const char *word);

/** A text of the process's, as dump_text() leaves it, or null. */
void json_keys_add_text(struct json_object *object, const char *key, const char *text);

/** The same, as it is but for bytes that are no UTF-8; they become question marks. */
void json_keys_add_foreign(struct json_object *object, const char *key, const char *text);

/** With three digits behind the point. */
void json_keys_add_real(struct json_object *object, const char *key, double value);

/** Addresses are texts: numbers of 64 bits do not pass through all readers. */
void json_keys_add_address(struct json_object *object, const char *key, uint64_t address);

/** @return 0, or -1 where it did not arrive. */
int json_keys_print(FILE *file, struct json_object *object);

#endif
