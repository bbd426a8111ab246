/* SPDX-License-Identifier: MIT */
/* Which evidence names LuaJIT's native functions, and what do we keep of it? */
#include "luastate/native_names.h"

#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "luastate/native/native.h"

/** What is kept: LuaJIT's functions, the interpreter among them. */
struct luastate_native {
	struct luastate_code_range interpreter;
	struct luastate_native_function *functions;
	size_t count;
	char **names;
	size_t name_count;
	struct luastate_native_calls calls;
	uint64_t called[]; /* the functions of calls */
};

/* ---- Evidence --------------------------------------------------------------------------- */

void native_claim(struct native *native, uint32_t index, const char *name,
		  enum luastate_native_how how)
{
	struct native_function *function = &native->functions[index];

	if (!name || function->is_disputed || index == native->interpreter)
		return;
	function->is_certain |= how != LUASTATE_NATIVE_BY_SIGNATURE;
	if (!function->name) {
		function->name = name;
		function->how = (uint8_t)how;
	} else if (strcmp(function->name, name) != 0) {
		function->name = NULL;
		function->how = LUASTATE_NATIVE_UNNAMED;
		function->is_disputed = true;
	}
}

const char *native_keep_name(struct native *native, const char *name)
{
	char *copy = strdup(name);

	if (copy && !ARRAY_RESERVE(native->names, native->name_room, native->name_count + 1)) {
		free(copy);
		return NULL;
	}
	if (copy)
		native->names[native->name_count++] = copy;
	return copy;
}

static int compare_names(const void *left, const void *right)
{
	const struct native_function *const *a = left, *const *b = right;

	return strcmp((*a)->name, (*b)->name);
}

/* Whether functions with one name are copies of one function that a compiler made; only signatures
 * know copies. */
static bool are_copies(struct native_function *const *named, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (named[i]->how != LUASTATE_NATIVE_BY_SIGNATURE)
			return count == 1;
	return true;
}

/* A name that tables or calls give to a function is wrong where another function has it, too.
 * @return false when out of memory. */
static bool drop_twins(struct native *native)
{
	struct native_function **named =
		calloc(native->count + 1, sizeof(struct native_function *));
	size_t count = 0;

	if (!named)
		return false;
	for (size_t i = 0; i < native->count; i++)
		if (native->functions[i].name && native->functions[i].parent == NATIVE_NONE)
			named[count++] = &native->functions[i];
	if (count)
		qsort(named, count, sizeof(struct native_function *), compare_names);
	for (size_t i = 0, next; i < count; i = next) {
		for (next = i + 1; next < count && !strcmp(named[i]->name, named[next]->name);)
			next++;
		for (size_t k = i; k < next && !are_copies(named + i, next - i); k++)
			named[k]->is_disputed = true;
	}
	for (size_t i = 0; i < count; i++) {
		if (!named[i]->is_disputed)
			continue;
		named[i]->name = NULL;
		named[i]->how = LUASTATE_NATIVE_UNNAMED;
	}
	free(named);
	return true;
}

/* A cold part has the name of its function. */
static void name_parts(struct native *native)
{
	for (size_t i = 0; i < native->count; i++) {
		struct native_function *part = &native->functions[i];

		if (part->parent == NATIVE_NONE)
			continue;
		part->name = native->functions[part->parent].name;
		part->how = native->functions[part->parent].how;
	}
}

/* ---- Results ---------------------------------------------------------------------------- */

static bool begin(struct native *native, const struct luastate_module *module)
{
	*native = (struct native){ .module = module,
				   .functions = calloc(module->function_count + 1,
						       sizeof(*native->functions)),
				   .interpreter = NATIVE_NONE };
	if (!native->functions)
		return false;
	for (size_t i = 0; i < module->function_count; i++) {
		const struct luastate_code_range *range = &module->functions[i];

		if (range->end <= range->start ||
		    (native->count && range->start < native->functions[native->count - 1].end))
			continue;
		if (range->start == module->interpreter.start)
			native->interpreter = (uint32_t)native->count;
		native->functions[native->count++] = (struct native_function){
			.start = range->start, .end = range->end, .parent = NATIVE_NONE
		};
	}
	return true;
}

static void end(struct native *native)
{
	for (size_t i = 0; i < native->name_count; i++)
		free(native->names[i]);
	free(native->names);
	free(native->functions);
	free(native->edges);
	free(native->references);
}

/* Keep LuaJIT's functions. The names now belong to the result. */
static struct luastate_native *keep(struct native *native)
{
	size_t list_bytes = native->calls.count * sizeof(native->called[0]);
	struct luastate_native *kept = calloc(1, sizeof(*kept) + list_bytes);

	if (!kept)
		return NULL;
	memcpy(kept->called, native->called, list_bytes);
	kept->calls = native->calls;
	kept->functions = calloc(native->count + 1, sizeof(*kept->functions));
	if (!kept->functions) {
		free(kept);
		return NULL;
	}
	kept->interpreter = native->module->interpreter;
	for (size_t i = 0; i < native->count; i++) {
		const struct native_function *function = &native->functions[i];

		if (function->is_vm && i != native->interpreter)
			kept->functions[kept->count++] = (struct luastate_native_function){
				.start = function->start,
				.end = function->end,
				.name = function->name,
				.how = function->how,
				.signature = function->signature,
				.is_cold = function->parent != NATIVE_NONE,
			};
	}
	kept->names = native->names;
	kept->name_count = native->name_count;
	native->names = NULL;
	native->name_count = 0;
	return kept;
}

int luastate_native_create(const struct luastate_module *module,
			   struct luastate_native **ret_native, struct failure *why)
{
	struct native *native = malloc(sizeof(*native));
	struct luastate_native *kept = NULL;

	if (!native || !begin(native, module)) {
		free(native);
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "list native functions");
	}
	if (native->interpreter == NATIVE_NONE) {
		end(native);
		free(native);
		return failure_set(why, FAILURE_INVALID, 0, 0, module->interpreter.start,
				   "find the interpreter's unwind entry");
	}
	if (native_read_functions(native)) {
		native_take_libraries(native);
		native_take_calls(native);
		native_take_call_list(native);
		native_take_span(native);
		native_take_signatures(native);
		if (drop_twins(native)) {
			name_parts(native);
			kept = keep(native);
		}
	}
	end(native);
	free(native);
	if (!kept)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "name native functions");
	*ret_native = kept;
	return 0;
}

void luastate_native_destroy(struct luastate_native *native)
{
	if (!native)
		return;
	for (size_t i = 0; i < native->name_count; i++)
		free(native->names[i]);
	free(native->names);
	free(native->functions);
	free(native);
}

/* ---- Lookups ---------------------------------------------------------------------------- */

static const struct luastate_native_function *find(const struct luastate_native *native,
						   uint64_t address)
{
	size_t end = ARRAY_SEARCH(native->count, i, native->functions[i].start <= address);

	return end && address < native->functions[end - 1].end ? &native->functions[end - 1] : NULL;
}

bool luastate_native_is_vm(const struct luastate_native *native, uint64_t address)
{
	return (address >= native->interpreter.start && address < native->interpreter.end) ||
	       find(native, address);
}

bool luastate_native_find(const struct luastate_native *native, uint64_t address,
			  struct luastate_native_function *ret_function)
{
	const struct luastate_native_function *function = find(native, address);

	if (function)
		*ret_function = *function;
	return function;
}

size_t luastate_native_count(const struct luastate_native *native)
{
	return native->count;
}

void luastate_native_get(const struct luastate_native *native, size_t index,
			 struct luastate_native_function *ret_function)
{
	*ret_function = native->functions[index];
}

void luastate_native_get_calls(const struct luastate_native *native,
			       struct luastate_native_calls *ret_calls)
{
	*ret_calls = native->calls;
	ret_calls->functions = native->called;
}
