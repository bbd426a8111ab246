/* SPDX-License-Identifier: MIT */
/* Which functions of known builds have the same instructions, operands apart, or are in the same
 * table?
 *
 * A compiler makes mostly the same instructions of one function in all versions of LuaJIT, with
 * other offsets and registers. The signatures are those of functions that are alone with theirs in
 * their own build, and of which no other build gives the signature to another function.
 */
#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "luastate/native/native.h"

/* signature_names, and signatures sorted by hash; each has the index of its name. call_lists, each
 * with a part of call_names, which are such indices plus one. */
#include "signatures.inc"

static const char *find_name(uint64_t hash)
{
	size_t count = sizeof(signatures) / sizeof(signatures[0]) - 1; /* the last one ends it */
	size_t at = ARRAY_SEARCH(count, i, signatures[i].hash < hash);

	return at < count && signatures[at].hash == hash ? signature_names[signatures[at].name]
							 : NULL;
}

/** A function of LuaJIT and its signature. */
struct own {
	uint64_t signature; /* first, for array_by_first_u64() */
	uint32_t function;
};

void native_take_signatures(struct native *native)
{
	struct own *own = calloc(native->count + 1, sizeof(*own));
	size_t count = 0;

	for (uint32_t i = 0; own && i < native->count; i++)
		if (native->functions[i].is_vm && native->functions[i].signature &&
		    native->functions[i].parent == NATIVE_NONE)
			own[count++] = (struct own){ native->functions[i].signature, i };
	if (count)
		qsort(own, count, sizeof(*own), array_by_first_u64);
	for (size_t i = 0; i < count; i++)
		if ((i == 0 || own[i - 1].signature != own[i].signature) &&
		    (i + 1 == count || own[i + 1].signature != own[i].signature))
			native_claim(native, own[i].function, find_name(own[i].signature),
				     LUASTATE_NATIVE_BY_SIGNATURE);
	free(own);
}

/* ---- Calls of compiled code ------------------------------------------------------------- */

/* Compiled code calls functions by a table of their addresses and flags: the number of arguments,
 * the type of the result, and how they are called. Equal flags of all functions show an equal
 * table. Source: LuaJIT v2.1 src/lj_ircall.h (CCallInfo, IRCALLDEF). */

enum {
	CALL_BYTES = 16,
	/* Lower byte of the flags: the number of arguments; no function in the table has more. */
	CALL_ARGUMENTS_MAX = 8,
};

/* Whether an address is in none of the known functions and not in data: that of a linkage table, or
 * in another file. */
static bool is_elsewhere(const struct native *native, uint64_t address)
{
	for (size_t i = 0; i < native->module->part_count; i++) {
		const struct luastate_module_part *part = &native->module->parts[i];

		if (!part->executable && address >= part->start &&
		    address - part->start < part->len)
			return false;
	}
	return native_function_at(native, address) == NATIVE_NONE;
}

/* Read an entry. @return false if it is none. */
static bool read_call(const struct native *native, uint64_t address, uint64_t *ret_function,
		      uint64_t *ret_flags)
{
	uint64_t function, flags;

	if (!native_read_u64(native, address, &function) ||
	    !native_read_u64(native, address + 8, &flags) || !flags || flags > UINT32_MAX ||
	    (flags & 0xff) > CALL_ARGUMENTS_MAX)
		return false;
	if (!function || native_function_at(native, function) == native->interpreter ||
	    is_elsewhere(native, function))
		function = 0;
	else if (native_function_from(native, function) == NATIVE_NONE)
		return false;
	*ret_function = function;
	*ret_flags = flags;
	return true;
}

/* Read a table, and keep it if it is the longest. @return The number of its entries. */
static size_t read_call_list(struct native *native, uint64_t address)
{
	uint64_t functions[NATIVE_CALLS_MAX], flags, hash = NATIVE_HASH_BEGIN;
	size_t count = 0;

	while (count < NATIVE_CALLS_MAX &&
	       read_call(native, address + CALL_BYTES * count, &functions[count], &flags)) {
		hash = native_hash(hash, flags, sizeof(uint32_t));
		count++;
	}
	if (count < NATIVE_CALLS_MIN || count <= native->calls.count)
		return count;
	memcpy(native->called, functions, count * sizeof(functions[0]));
	native->calls.flags = hash;
	native->calls.count = count;
	return count;
}

void native_take_call_list(struct native *native)
{
	size_t lists = sizeof(call_lists) / sizeof(call_lists[0]) - 1; /* the last one ends it */
	uint64_t ends[2] = { 0 }; /* of the last tables, at multiples of 16 and between them */

	for (size_t i = 0; i < native->reference_count; i++) {
		uint64_t address = native->references[i], *end = &ends[address / 8 % 2];

		/* What begins inside of a table is the shorter one. */
		if (address % 8 == 0 && address >= *end)
			*end = address + CALL_BYTES * read_call_list(native, address);
	}
	for (size_t i = 0; i < lists; i++) {
		if (call_lists[i].flags != native->calls.flags ||
		    call_lists[i].count != native->calls.count)
			continue;
		for (size_t k = 0; k < native->calls.count; k++) {
			uint16_t name = call_names[call_lists[i].first + k];

			if (name && native->called[k])
				native_claim(native,
					     native_function_from(native, native->called[k]),
					     signature_names[name - 1], LUASTATE_NATIVE_BY_TABLE);
		}
	}
}
