/* SPDX-License-Identifier: MIT */
/* Which functions do LuaJIT's tables contain: those of its libraries, and the collector's?
 *
 * luaopen_string() and its like call lj_lib_register(L, "string", lj_lib_init_string,
 * lj_lib_cf_string). The second table has the C functions. The first says in which order they come,
 * and what Lua calls them:
 *
 *   ffid  opcode  size  { tag|length  name }*  END
 *
 * A tag says that a C function comes next, or that a built-in in assembler comes next, whose C
 * function is the next one or the last one. The tags above 0xc0 push strings and numbers and end
 * the table.
 *
 * Source: LuaJIT v2.1 src/lj_lib.h (LIBINIT_*), lj_lib.c (lj_lib_register, lib_read_lfunc),
 * lj_bcread.c (lj_bcread_proto), host/buildvm_lib.c.
 */
#include <stdio.h>
#include <string.h>

#include "luastate/native/native.h"

enum {
	TAG_C = 0x00,
	TAG_ASM = 0x40,
	TAG_ASM_SAME = 0x80,
	TAG_STRING = 0xc0,
	TAG_MASK = 0xc0,
	LENGTH_MASK = 0x3f,
	TAG_LUA = 0xf9,
	TAG_SET = 0xfa,
	TAG_NUMBER = 0xfb,
	TAG_COPY = 0xfc,
	TAG_LAST = 0xfd,
	TAG_FFID = 0xfe,
	TAG_END = 0xff,
	HEAD_BYTES = 3,
	/* The largest table of LuaJIT's libraries has some 700 bytes, the longest list 40
	 * functions.
	 */
	TABLE_MAX_BYTES = 4096,
	FUNCTIONS_MAX = 128,
	LIBRARY_NAME_MAX = 16,
	/* Libraries that must agree on lj_lib_register(). LuaJIT without any option registers 17.
	 */
	LIBRARIES_MIN = 5,
	FREE_FUNCTIONS = 9,
	FREE_STATE = 2, /* lj_state_free() calls lj_func_closeuv() */
	FREE_TRACE = 5, /* 0 without the compiler */
	FREE_CDATA = 6, /* 0 without the FFI */
};

/** One function in a table of names. */
struct entry {
	const char *name; /* not terminated */
	uint8_t len;	  /* 0: it is not registered under a name */
	bool has_c;	  /* a C function of its own is in the other table */
	bool is_asm;
};

/** One library as its tables show it. */
struct library {
	struct entry entries[FUNCTIONS_MAX];
	size_t count;
	uint8_t first_asm;  /* index of the first one in assembler */
	uint64_t functions; /* the table of C functions */
	const char *prefix; /* of the C functions' names */
	char prefix_text[LIBRARY_NAME_MAX + 2];
};

/** A cursor in a table of names; a read past the end fails for good. */
struct cursor {
	const uint8_t *bytes;
	size_t len, at;
	bool failed;
};

static uint8_t take_byte(struct cursor *cursor)
{
	if (cursor->at >= cursor->len) {
		cursor->failed = true;
		return 0;
	}
	return cursor->bytes[cursor->at++];
}

static void skip(struct cursor *cursor, uint64_t len)
{
	if (len > cursor->len - cursor->at)
		cursor->failed = true;
	else
		cursor->at += (size_t)len;
}

static uint32_t take_uleb(struct cursor *cursor)
{
	uint32_t value = 0;

	for (unsigned shift = 0; shift < 35; shift += 7) {
		uint32_t byte = take_byte(cursor);

		value |= (byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	cursor->failed = true;
	return 0;
}

/* ---- Functions in Lua ------------------------------------------------------------------- */

/* Constants of a dumped prototype that LuaJIT's libraries use: strings. */
static void skip_constant(struct cursor *cursor)
{
	enum { KGC_STR = 5 };
	uint32_t type = take_uleb(cursor);

	if (type < KGC_STR)
		cursor->failed = true;
	else
		skip(cursor, type - KGC_STR);
}

/* A number has 33 bits; the lowest one says that the high word follows. */
static void skip_number(struct cursor *cursor)
{
	bool is_wide = cursor->at < cursor->len && cursor->bytes[cursor->at] & 1;

	take_uleb(cursor);
	if (is_wide)
		take_uleb(cursor);
}

/* A name and a prototype without debug information. */
static void skip_lua(struct cursor *cursor)
{
	uint8_t upvalues;
	uint32_t constants, numbers, insns;

	skip(cursor, take_byte(cursor)); /* name */
	skip(cursor, 3);		 /* flags, parameters, slots */
	upvalues = take_byte(cursor);
	constants = take_uleb(cursor);
	numbers = take_uleb(cursor);
	insns = take_uleb(cursor);
	skip(cursor, 4 * (uint64_t)insns + 2 * (uint64_t)upvalues);
	for (uint32_t i = 0; i < constants && !cursor->failed; i++)
		skip_constant(cursor);
	for (uint32_t i = 0; i < numbers && !cursor->failed; i++)
		skip_number(cursor);
}

/* ---- Tables ----------------------------------------------------------------------------- */

static bool is_identifier(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!(text[i] >= 'a' && text[i] <= 'z') && !(text[i] >= 'A' && text[i] <= 'Z') &&
		    !(text[i] >= '0' && text[i] <= '9') && text[i] != '_')
			return false;
	return true;
}

static void take_function(struct cursor *cursor, uint8_t tag, struct library *library)
{
	struct entry entry = { .name = (const char *)cursor->bytes + cursor->at,
			       .len = tag & LENGTH_MASK,
			       .has_c = (tag & TAG_MASK) != TAG_ASM_SAME,
			       .is_asm = (tag & TAG_MASK) != TAG_C };

	skip(cursor, entry.len);
	if (cursor->failed || !is_identifier(entry.name, entry.len) ||
	    library->count == FUNCTIONS_MAX)
		cursor->failed = true;
	else
		library->entries[library->count++] = entry;
}

/* @return false at the end. */
static bool take_tag(struct cursor *cursor, struct library *library)
{
	uint8_t tag = take_byte(cursor);

	if ((tag & TAG_MASK) != TAG_STRING) {
		take_function(cursor, tag, library);
		return true;
	}
	switch (tag) {
	case TAG_END:
		return false;
	case TAG_LUA:
		skip_lua(cursor);
		break;
	case TAG_COPY:
		skip(cursor, 1);
		break;
	case TAG_NUMBER:
		skip(cursor, sizeof(double));
		break;
	case TAG_SET:
	case TAG_LAST:
	case TAG_FFID:
		break;
	default:
		skip(cursor, tag & LENGTH_MASK);
	}
	return true;
}

/* Read a table of names. @return false if it is none. */
static bool read_names(const struct native *native, uint64_t address, struct library *library)
{
	size_t len;
	const uint8_t *bytes = native_bytes(native, address, &len);
	struct cursor cursor = { .bytes = bytes,
				 .len = bytes && len < TABLE_MAX_BYTES ? len : TABLE_MAX_BYTES };

	if (!bytes || len < HEAD_BYTES)
		return false;
	library->first_asm = bytes[1];
	skip(&cursor, HEAD_BYTES);
	while (!cursor.failed && take_tag(&cursor, library))
		;
	return !cursor.failed && library->count > 0;
}

/* Whether each entry of the table of C functions is the beginning of a function. */
static bool has_functions(const struct native *native, const struct library *library)
{
	uint64_t at = library->functions, address;

	for (size_t i = 0; i < library->count; i++) {
		if (!library->entries[i].has_c)
			continue;
		if (!native_read_u64(native, at, &address) ||
		    native_function_from(native, address) == NATIVE_NONE)
			return false;
		at += sizeof(address);
	}
	return true;
}

/* ---- Names ------------------------------------------------------------------------------ */

static bool has_name(const struct library *library, const char *name)
{
	for (size_t i = 0; i < library->count; i++)
		if (library->entries[i].len == strlen(name) &&
		    memcmp(library->entries[i].name, name, library->entries[i].len) == 0)
			return true;
	return false;
}

/* Methods are registered without a library's name, and others by a name that the code has read
 * before. Source: LuaJIT v2.1 src/lib_base.c, lib_io.c, lib_jit.c, lib_ffi.c, lib_buffer.c
 * (LJ_LIB_REG). */
static const char *prefix_by_functions(const struct library *library)
{
	static const struct {
		const char *name, *other, *prefix;
	} known[] = {
		{ "setvbuf", "seek", "io_method_" },
		{ "putf", "putcdata", "buffer_method_" },
		{ "encode", "decode", "buffer_" },
		{ "traceinfo", "funcbc", "jit_util_" },
		{ "dumpstack", "start", "jit_profile_" },
		{ "__unm", "__concat", "ffi_meta_" },
		{ "assert", "rawequal", "" },
		{ "cdef", "typeof", "ffi_" },
		{ "free", "set", "ffi_callback_" },
		{ "__gc", "__newindex", "ffi_clib_" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (has_name(library, known[i].name) && has_name(library, known[i].other))
			return known[i].prefix;
	return NULL;
}

/* The library's name, with dots as the C functions' names have them. */
static void find_prefix(const struct native *native, uint64_t address, struct library *library)
{
	size_t len, at = 0;
	const char *name = (const char *)native_bytes(native, address, &len);

	if (!address || !name) {
		library->prefix = prefix_by_functions(library);
		return;
	}
	for (; at < LIBRARY_NAME_MAX && at < len && name[at]; at++)
		library->prefix_text[at] = name[at] == '.' ? '_' : name[at];
	if (at == 0 || at == LIBRARY_NAME_MAX || at == len ||
	    !is_identifier(library->prefix_text, at))
		return;
	library->prefix_text[at] = '_';
	library->prefix = strcmp(library->prefix_text, "_G_") == 0 ? "" : library->prefix_text;
}

static bool read_library(const struct native *native,
			 const struct native_registration *registration,
			 struct library *ret_library)
{
	struct library library = { .functions = registration->arguments[2] };

	if (!read_names(native, registration->arguments[1], &library) ||
	    !has_functions(native, &library))
		return false;
	*ret_library = library;
	find_prefix(native, registration->arguments[0], ret_library);
	return true;
}

/* The dispatch table has the built-ins in assembler in the order of the libraries. */
static void keep_builtin(struct native *native, const char *name, unsigned index)
{
	struct native_builtin *builtin = &native->builtins[native->builtin_count];

	if (native->builtin_count == NATIVE_BUILTINS_MAX || index >= NATIVE_BUILTINS_MAX ||
	    strlen(name) >= sizeof(builtin->name))
		return;
	strcpy(builtin->name, name);
	builtin->index = (uint8_t)index;
	native->builtin_count++;
}

static void name_functions(struct native *native, const struct library *library)
{
	uint64_t at = library->functions, address;
	unsigned index = library->first_asm;

	for (size_t i = 0; library->prefix && i < library->count; i++) {
		const struct entry *entry = &library->entries[i];
		char text[NATIVE_NAME_MAX + LIBRARY_NAME_MAX];
		size_t begin = (size_t)snprintf(text, sizeof(text), "lj_%s_",
						entry->is_asm ? "ffh" : "cf");

		snprintf(text + begin, sizeof(text) - begin, "%s%.*s", library->prefix,
			 (int)entry->len, entry->name);
		if (entry->is_asm)
			keep_builtin(native, entry->len ? text + begin : "", index++);
		if (!entry->has_c || !native_read_u64(native, at, &address))
			continue;
		if (entry->len)
			native_claim(native, native_function_from(native, address),
				     native_keep_name(native, text), LUASTATE_NATIVE_BY_TABLE);
		at += sizeof(address);
	}
}

/* The function that most libraries call with their tables; NATIVE_NONE: none is clearly it. */
static uint32_t find_register(const struct native *native)
{
	uint32_t best = NATIVE_NONE;
	size_t best_count = 0;

	for (size_t i = 0; i < native->registration_count; i++) {
		uint32_t callee = native->registrations[i].callee;
		size_t count = 0;

		for (size_t k = 0; k < native->registration_count; k++) {
			struct library library;

			if (native->registrations[k].callee == callee && callee != best)
				count += read_library(native, &native->registrations[k], &library);
		}
		if (count > best_count) {
			best = callee;
			best_count = count;
		}
	}
	return best_count >= LIBRARIES_MIN ? best : NATIVE_NONE;
}

void native_take_libraries(struct native *native)
{
	uint32_t callee = find_register(native);

	if (callee == NATIVE_NONE)
		return;
	native_claim(native, callee, "lj_lib_register", LUASTATE_NATIVE_BY_CALLS);
	for (size_t i = 0; i < native->registration_count; i++) {
		struct library library;

		if (native->registrations[i].callee == callee &&
		    read_library(native, &native->registrations[i], &library))
			name_functions(native, &library);
	}
}

/* ---- The collector -------------------------------------------------------------------- */

static bool calls(const struct native *native, uint32_t from, uint32_t to)
{
	const struct native_function *function = &native->functions[from];

	for (uint32_t i = 0; i < function->edge_count; i++)
		if (native->edges[function->first_edge + i].target == to &&
		    native->edges[function->first_edge + i].kind == NATIVE_EDGE_CALL)
			return true;
	return false;
}

/* The functions that free objects, by the objects' types. Source: LuaJIT v2.1 src/lj_gc.c,
 * gc_freefunc; lj_state.c, lj_state_free(). */
static const char *const free_names[FREE_FUNCTIONS] = {
	"lj_str_free",	 "lj_func_freeuv", "lj_state_free", "lj_func_freeproto", "lj_func_free",
	"lj_trace_free", "lj_cdata_free",  "lj_tab_free",   "lj_udata_free",
};

/* Read the table. @return false if one is no function, or occurs twice. */
static bool read_free_functions(const struct native *native, uint64_t address,
				uint32_t ret_functions[FREE_FUNCTIONS])
{
	for (unsigned i = 0; i < FREE_FUNCTIONS; i++) {
		uint64_t value;

		if (!native_read_u64(native, address + 8 * i, &value))
			return false;
		ret_functions[i] = native_function_from(native, value);
		if (ret_functions[i] == NATIVE_NONE &&
		    (value || (i != FREE_TRACE && i != FREE_CDATA)))
			return false;
		for (unsigned k = 0; k < i; k++)
			if (ret_functions[k] != NATIVE_NONE && ret_functions[k] == ret_functions[i])
				return false;
	}
	return true;
}

void native_take_free_functions(struct native *native, uint32_t closeuv)
{
	uint32_t functions[FREE_FUNCTIONS], found[FREE_FUNCTIONS];
	unsigned count = 0;

	if (closeuv == NATIVE_NONE)
		return;
	for (size_t i = 0; i < native->reference_count; i++) {
		uint64_t address = native->references[i];

		if (address % 8 || (i && native->references[i - 1] == address) ||
		    !read_free_functions(native, address, functions) ||
		    !calls(native, functions[FREE_STATE], closeuv))
			continue;
		memcpy(found, functions, sizeof(found));
		count++;
	}
	for (unsigned i = 0; count == 1 && i < FREE_FUNCTIONS; i++)
		if (found[i] != NATIVE_NONE)
			native_claim(native, found[i], free_names[i], LUASTATE_NATIVE_BY_TABLE);
}
