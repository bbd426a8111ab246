/* SPDX-License-Identifier: MIT */
/* JSON that is too long to be held. What is short is json-c's. */
#ifndef FORMAT_JSON_H
#define FORMAT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/**
 * JSON that is too long to be held: profiles have hundreds of MB, as objects of json-c ten times as
 * much. It is written piece by piece; commas come by themselves. Texts are json-c's; numbers are
 * whole, or decimal fractions made of whole ones, so that no locale matters.
 */
struct json_out {
	FILE *file;	/**< Borrowed; its errors are left to the caller's ferror(). */
	uint64_t first; /**< By depth: nothing is in that object or array yet. */
	unsigned depth;
	bool has_key;	/**< A value belongs to the key that was just written. */
	bool breaks;	/**< See json_out_break(). */
	bool is_script; /**< It stands in a script element, whose end no text may be. */
	bool failed;	/**< Memory was missing. */
};

/** Begin an object or an array, at most 64 within each other. */
void json_out_open(struct json_out *json, char bracket);
void json_out_close(struct json_out *json, char bracket);
/** @param key One of ours: nothing in it needs a backslash. */
void json_out_key(struct json_out *json, const char *key);
/** @param text May be no UTF-8; NULL is null. */
void json_out_text(struct json_out *json, const char *text);
/** The same of text that no zero ends. */
void json_out_part(struct json_out *json, const char *text, size_t len);
void json_out_number(struct json_out *json, uint64_t value);
void json_out_signed(struct json_out *json, int64_t value);
/** Nanoseconds as milliseconds, or as microseconds, with what is behind the point. */
void json_out_ms(struct json_out *json, uint64_t ns);
void json_out_us(struct json_out *json, uint64_t ns);
void json_out_bool(struct json_out *json, bool value);
void json_out_null(struct json_out *json);
/** A key with its value. */
void json_out_key_text(struct json_out *json, const char *key, const char *text);
void json_out_key_number(struct json_out *json, const char *key, uint64_t value);
/** A value that is JSON already. */
void json_out_raw(struct json_out *json, const char *text, size_t len);
/** A line's end, where a reader's eyes want it. */
void json_out_line(struct json_out *json);
/** The next key or value begins a line, behind its comma. */
void json_out_break(struct json_out *json);

#endif
