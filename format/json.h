/* SPDX-License-Identifier: MIT */
/* How is JSON written that is too long to keep in memory? */
#ifndef FORMAT_JSON_H
#define FORMAT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** JSON written piece by piece. Profiles have hundreds of megabytes, and json-c's objects need
 * ten times as much; json-c writes only short JSON. Commas are automatic. json-c quotes texts.
 * Numbers are integers, or decimal fractions built from integers, so the locale has no effect. */
struct json_out {
	FILE *file;	/**< Borrowed; the caller checks ferror(). */
	uint64_t first; /**< By depth: this object or array is still empty. */
	unsigned depth;
	bool has_key;	/**< The next value belongs to the key just written. */
	bool breaks;	/**< See json_out_break(). */
	bool is_script; /**< The JSON is inside a script element, and no text may end that element.
			 */
	bool failed;	/**< Memory ran out. */
};

/** Begin an object or an array; at most 64 are nested. */
void json_out_open(struct json_out *json, char bracket);
void json_out_close(struct json_out *json, char bracket);
/** @param key A constant of ours that needs no quoting. */
void json_out_key(struct json_out *json, const char *key);
/** @param text May not be UTF-8; NULL is null. */
void json_out_text(struct json_out *json, const char *text);
/** The same for text that is not terminated. */
void json_out_part(struct json_out *json, const char *text, size_t len);
void json_out_number(struct json_out *json, uint64_t value);
void json_out_signed(struct json_out *json, int64_t value);
/** Write nanoseconds as milliseconds or microseconds, with decimals. */
void json_out_ms(struct json_out *json, uint64_t ns);
void json_out_us(struct json_out *json, uint64_t ns);
void json_out_bool(struct json_out *json, bool value);
void json_out_null(struct json_out *json);
/** Write a key and its value. */
void json_out_key_text(struct json_out *json, const char *key, const char *text);
void json_out_key_number(struct json_out *json, const char *key, uint64_t value);
/** Write a value that already is JSON. */
void json_out_raw(struct json_out *json, const char *text, size_t len);
/** End the line, for people who read the file. */
void json_out_line(struct json_out *json);
/** Begin a line before the next key or value, after its comma. */
void json_out_break(struct json_out *json);

#endif
