/* SPDX-License-Identifier: MIT */
/* Which of a file's functions are LuaJIT's?
 *
 * A linker puts the functions of LuaJIT's objects one after the other. Those between two functions
 * that are certainly LuaJIT's are LuaJIT's too, unless symbols show other code there. Compilers
 * put seldom used parts of functions elsewhere; only jumps of their functions lead there.
 */
#include <string.h>

#include "luastate/native/native.h"

enum {
	/* Functions that must be certain; fewer show no span. */
	CERTAIN_MIN = 16,
	/* Percent of the file's code that the span must have if the file is LuaJIT's alone. */
	WHOLE_PERCENT = 90,
	/* Global functions with other names than LuaJIT's that a fork has; LuaTeX's has four. Other
	 * code in a span would show more. */
	FOREIGN_MAX = 8,
	/* Calls of functions of other files that show that the C library is not in this one. */
	IMPORTS_MIN = 32,
	/* Bytes between the span and a function that it calls. */
	GAP_MAX = 64 * 1024,
	GROWTHS_MAX = 64,
};

/** The span: functions from first to last. */
struct span {
	size_t first, last;
};

/* Whether a global symbol of LuaJIT has this name. Source: LuaJIT v2.1 src/lua.h, lauxlib.h,
 * lualib.h, luajit.h, lj_def.h, lj_ffrecord.c, lj_crecord.h; tarantool/luajit src/lmisclib.h. */
static bool is_own_symbol(const char *name)
{
	static const char *const prefixes[] = { "lua_",	 "luaL_", "luaopen_", "luaJIT_",
						"luaM_", "lj_",	  "recff_" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

/* Take functions with symbols of others out of the span. @return whether there are few of them. */
static bool take_out_foreign(struct native *native, const struct span *span)
{
	unsigned count = 0;

	for (size_t i = span->first; native->module->symbol && i <= span->last; i++) {
		const char *name =
			native->module->symbol(native->module->context, native->functions[i].start);

		native->functions[i].is_foreign = name && !is_own_symbol(name);
		count += native->functions[i].is_foreign;
	}
	return count <= FOREIGN_MAX;
}

/* Whether functions are nearly all code of the file, as in the program luajit. */
static bool is_whole(const struct native *native, const struct span *span)
{
	uint64_t size = native->functions[span->last].end - native->functions[span->first].start;
	uint64_t all = 0;

	for (size_t i = 0; i < native->module->part_count; i++)
		if (native->module->parts[i].executable)
			all += native->module->parts[i].len;
	return size * 100 >= all * WHOLE_PERCENT;
}

/* ---- Cold parts ------------------------------------------------------------------------- */

static void find_called(struct native *native)
{
	for (size_t i = 0; i < native->edge_count; i++) {
		const struct native_edge *edge = &native->edges[i];

		if (edge->target != NATIVE_NONE &&
		    (edge->kind == NATIVE_EDGE_CALL || edge->kind == NATIVE_EDGE_ADDRESS))
			native->functions[edge->target].is_called = true;
	}
}

/* Whether a function jumps into the middle of another, which only its own parts do. */
static bool jumps_into(const struct native *native, uint32_t from, uint32_t to)
{
	const struct native_function *function = &native->functions[from];

	for (uint32_t i = 0; i < function->edge_count; i++) {
		const struct native_edge *edge = &native->edges[function->first_edge + i];

		if (edge->target == to && edge->into &&
		    (edge->kind == NATIVE_EDGE_JUMP || edge->kind == NATIVE_EDGE_BRANCH))
			return true;
	}
	return false;
}

/* Whether @p part is a part of @p index, which jumps to it. Parts come before the functions. */
static bool is_part(const struct native *native, uint32_t part, uint32_t index)
{
	const struct native_function *function = &native->functions[index];

	return !native->functions[part].is_certain && !native->functions[part].is_called &&
	       (function->is_certain || function->is_called || part < index) &&
	       (jumps_into(native, part, index) || jumps_into(native, index, part));
}

/* Find the parts to which a function jumps. What belongs to several functions is no part. */
static void find_parts(struct native *native, uint32_t index)
{
	const struct native_function *function = &native->functions[index];

	for (uint32_t i = 0; i < function->edge_count; i++) {
		const struct native_edge *edge = &native->edges[function->first_edge + i];
		struct native_function *part;

		if (edge->target == NATIVE_NONE ||
		    (edge->kind != NATIVE_EDGE_JUMP && edge->kind != NATIVE_EDGE_BRANCH) ||
		    edge->target == native->interpreter || edge->target == index)
			continue;
		part = &native->functions[edge->target];
		if (part->parent == index || !is_part(native, edge->target, index))
			continue;
		if (part->parent == NATIVE_NONE)
			part->parent = index;
		else
			part->is_disputed = true;
	}
}

static void take_parts(struct native *native)
{
	find_called(native);
	for (uint32_t i = 0; i < native->count; i++)
		if (native->functions[i].is_vm && i != native->interpreter)
			find_parts(native, i);
	for (uint32_t i = 0; i < native->count; i++) {
		struct native_function *part = &native->functions[i];

		if (part->parent == NATIVE_NONE)
			continue;
		if (part->is_disputed || native->functions[part->parent].parent != NATIVE_NONE)
			part->parent = NATIVE_NONE;
		else
			part->is_vm = true;
	}
}

/* ---- The span --------------------------------------------------------------------------- */

/* Whether LuaJIT's functions call functions of other files. Then the C library is not in this file,
 * and all that they call in it is LuaJIT's. */
static bool imports(const struct native *native, const struct span *span)
{
	size_t count = 0;

	for (size_t i = span->first; i <= span->last; i++)
		for (uint32_t k = 0; k < native->functions[i].edge_count; k++)
			count += native->edges[native->functions[i].first_edge + k].target ==
				 NATIVE_NONE;
	return count >= IMPORTS_MIN;
}

/* Take in what a function in the span calls right outside of it. @return whether it grew. */
static bool grow_by(const struct native *native, const struct native_function *function,
		    struct span *span)
{
	struct span grown = *span;

	for (uint32_t i = 0; i < function->edge_count; i++) {
		size_t target = native->edges[function->first_edge + i].target;

		if (target == NATIVE_NONE)
			continue;
		if (target < grown.first &&
		    native->functions[grown.first].start - native->functions[target].end <= GAP_MAX)
			grown.first = target;
		if (target > grown.last &&
		    native->functions[target].start - native->functions[grown.last].end <= GAP_MAX)
			grown.last = target;
	}
	if (grown.first == span->first && grown.last == span->last)
		return false;
	*span = grown;
	return true;
}

static void grow(const struct native *native, struct span *span)
{
	bool has_grown = imports(native, span);

	for (unsigned i = 0; has_grown && i < GROWTHS_MAX; i++) {
		has_grown = false;
		for (size_t k = span->first; k <= span->last; k++)
			has_grown |= grow_by(native, &native->functions[k], span);
	}
}

void native_take_span(struct native *native)
{
	struct span span = { native->interpreter, native->interpreter };
	size_t certain = 0;

	for (size_t i = 0; i < native->count; i++) {
		if (!native->functions[i].is_certain)
			continue;
		native->functions[i].is_vm = true;
		span.first = i < span.first ? i : span.first;
		span.last = i > span.last ? i : span.last;
		certain++;
	}
	native->functions[native->interpreter].is_vm = true;
	if (certain < CERTAIN_MIN || !take_out_foreign(native, &span))
		return;
	grow(native, &span);
	if (is_whole(native, &span))
		span = (struct span){ 0, native->count - 1 };
	if (!take_out_foreign(native, &span))
		return;
	for (size_t i = span.first; i <= span.last; i++)
		native->functions[i].is_vm |= !native->functions[i].is_foreign;
	take_parts(native);
}
