/* SPDX-License-Identifier: MIT */
/* Private to luastate: which Lua values are there, read within a budget? */
#ifndef LUASTATE_VALUES_VALUES_H
#define LUASTATE_VALUES_VALUES_H

#include "luastate/state/state.h"
#include "luastate/variables.h"

enum {
	/* Maximum slots of a table to read for its count. More would cost more than the count is
	 * worth. */
	VALUES_TABLE_SLOTS = 1 << 15,
	/* Maximum entries to keep of one table, whatever the request. */
	VALUES_ENTRIES_MAX = 1 << 16,
	/* lj_def.h: LJ_MAX_ABITS 28 at most, LJ_MAX_HBITS 26. */
	VALUES_ARRAY_MAX = 1 << 28,
	VALUES_HASH_MAX = 1 << 26,
	/* Longest text other than a string: names and types, as CTREPR_MAX in lj_ctype.c. */
	VALUES_TEXT_MAX = 512,
};

/** Memory of the values. All blocks are freed together. */
struct values_block {
	struct values_block *next;
};

struct luastate_values_store {
	struct values_block *blocks;
};

/** The part of a stack whose slots a trace keeps in registers: [start, end). */
struct values_stale {
	uint64_t start, end;
};

/** The table of C types. */
struct values_ctypes {
	bool looked_for;
	uint64_t table; /* 0 if there is none */
	uint32_t top;
};

/** State of reading values. */
struct values {
	struct luastate *state;
	const struct luastate_vm *vm;
	const struct luastate_layout *layout;
	const struct luastate_memory *memory;
	struct luastate_values_options *options;
	struct luastate_values_store *store;
	struct values_stale stale;
	struct values_ctypes ctypes;
	bool names_loaded;
	unsigned depth; /* number of tables around the value */
	uint64_t path[LUASTATE_VALUES_DEPTH_MAX];
};

/** Allocate zeroed memory that lives as long as the store. @return NULL if the budget is
 * exhausted, or when out of memory. */
void *values_alloc(struct values *values, size_t len);
char *values_copy_text(struct values *values, const char *text);

/** Read within the budget. The data may be slightly newer than the stop. */
bool values_read(struct values *values, uint64_t address, void *ret_bytes, size_t len);
/** Read an object's head, if its type matches the tag. */
bool values_read_object(struct values *values, uint64_t address, int32_t tag, void *ret_bytes,
			int32_t len);

/** Decode a TValue. */
void values_decode(struct values *values, uint64_t tvalue, struct luastate_value *ret_value);

/** Decode the table at @p address (values_table.c). */
void values_decode_table(struct values *values, uint64_t address, struct luastate_value *ret_value);

/** A short string under a string key of a table, NULL if there is none. */
const char *values_table_text(struct values *values, uint64_t address, const char *key);

/** Decode the cdata object at @p address (values_cdata.c). */
void values_decode_cdata(struct values *values, uint64_t address, struct luastate_value *ret_value);

/** Read a string object's text, terminated, cut to @p size - 1 bytes. @return false if the object
 * is no string. */
bool values_read_text(struct values *values, uint64_t address, char *ret_text, size_t size);

#endif
