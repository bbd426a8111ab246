/* SPDX-License-Identifier: MIT */
/* Which native functions of LuaJIT are in the files of all targets? */
#include "daemon/native/native_names.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/module.h"
#include "symbols/names.h"

enum {
	/* Files with LuaJIT that are remembered: some 100 KB each. */
	FILES_MAX = 64,
};

/** What is known of one file. */
struct known_file {
	struct symbols_file_id id;
	struct luastate_native *native; /* NULL: nothing could be found */
};

static struct known_file files[FILES_MAX];
static size_t file_count;

/** Where symbols of a module are looked up. */
struct symbol_lookup {
	struct symbols_space *space;
	uint64_t bias;
	char name[SYMBOLS_MODULE_NAME_MAX];
};

static const char *symbol_at(void *context, uint64_t address)
{
	struct symbol_lookup *lookup = context;

	return symbols_module_symbol(lookup->space, address + lookup->bias, lookup->name)
		       ? lookup->name
		       : NULL;
}

static bool is_same(const struct symbols_file_id *a, const struct symbols_file_id *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->modified.tv_sec == b->modified.tv_sec &&
	       a->modified.tv_nsec == b->modified.tv_nsec;
}

static struct known_file *find_file(const struct symbols_file_id *id)
{
	for (size_t i = 0; i < file_count; i++)
		if (is_same(&files[i].id, id))
			return &files[i];
	return NULL;
}

/* The file at an address of a target, if LuaJIT's functions in it are known. */
static const struct luastate_native *native_at(struct symbols_space *space, uint64_t address,
					       uint64_t *ret_bias)
{
	const struct known_file *file = NULL;
	struct symbols_file_id id;

	if (file_count && symbols_find_file(space, address, &id, ret_bias))
		file = find_file(&id);
	return file ? file->native : NULL;
}

/* ---- Learning --------------------------------------------------------------------------- */

/** A module in the words of luastate. */
struct view {
	struct luastate_module module;
	struct luastate_code_range *functions;
	struct luastate_module_part *parts;
};

static void free_view(struct view *view)
{
	free(view->functions);
	free(view->parts);
}

static bool make_view(const struct symbols_module *module, struct view *ret_view)
{
	struct view view = { .functions =
				     calloc(module->function_count + 1, sizeof(*view.functions)),
			     .parts = calloc(module->part_count + 1, sizeof(*view.parts)) };

	if (!view.functions || !view.parts) {
		free_view(&view);
		return false;
	}
	for (size_t i = 0; i < module->function_count; i++)
		view.functions[i] = (struct luastate_code_range){ module->functions[i].start,
								  module->functions[i].end };
	for (size_t i = 0; i < module->part_count; i++)
		view.parts[i] = (struct luastate_module_part){
			.start = module->parts[i].start,
			.bytes = module->parts[i].bytes,
			.len = module->parts[i].len,
			.executable = module->parts[i].executable,
		};
	view.module.functions = view.functions;
	view.module.function_count = module->function_count;
	view.module.parts = view.parts;
	view.module.part_count = module->part_count;
	*ret_view = view;
	return true;
}

/* @return false if something ran short, so that another attempt may succeed. */
static bool find_functions(struct symbols_space *space, uint64_t start, uint64_t end, uint64_t bias,
			   struct known_file *file)
{
	struct symbol_lookup lookup = { .space = space, .bias = bias };
	struct symbols_module module;
	struct failure why = { .kind = FAILURE_NO_MEMORY };
	struct view view;
	int result = -1;

	if (symbols_module_init(space, start, &module, &why) != 0)
		return !failure_is_shortage(&why);
	if (make_view(&module, &view)) {
		view.module.interpreter = (struct luastate_code_range){ start - bias, end - bias };
		view.module.symbol = symbol_at;
		view.module.context = &lookup;
		result = luastate_native_create(&view.module, &file->native, &why);
		free_view(&view);
	}
	symbols_module_deinit(&module);
	return result == 0 || !failure_is_shortage(&why);
}

void daemon_native_learn(struct symbols_space *space, uint64_t start, uint64_t end)
{
	struct symbols_file_id id;
	uint64_t bias;

	if (!symbols_find_file(space, start, &id, &bias) || find_file(&id) ||
	    file_count == FILES_MAX)
		return;
	files[file_count] = (struct known_file){ .id = id };
	if (find_functions(space, start, end, bias, &files[file_count]))
		file_count++;
}

/* ---- Looking up ------------------------------------------------------------------------- */

bool daemon_native_find(struct symbols_space *space, uint64_t address,
			struct luastate_native_function *ret_function)
{
	struct luastate_native_function function;
	uint64_t bias;
	const struct luastate_native *native = native_at(space, address, &bias);

	if (!native || !luastate_native_find(native, address - bias, &function))
		return false;
	function.start += bias;
	function.end += bias;
	*ret_function = function;
	return true;
}

bool daemon_native_is_vm(struct symbols_space *space, uint64_t address)
{
	uint64_t bias;
	const struct luastate_native *native = native_at(space, address, &bias);

	return native && luastate_native_is_vm(native, address - bias);
}

bool daemon_native_count(struct symbols_space *space, uint64_t address,
			 struct daemon_native_counts *ret_counts)
{
	struct daemon_native_counts counts = { 0 };
	uint64_t bias;
	const struct luastate_native *native = native_at(space, address, &bias);

	for (size_t i = 0; native && i < luastate_native_count(native); i++) {
		struct luastate_native_function function;
		struct symbols_function symbol;
		struct failure why;

		luastate_native_get(native, i, &function);
		counts.all++;
		if (symbols_find_function(space, function.start + bias, &symbol, &why) == 0 &&
		    symbol.is_symbol)
			counts.by_symbol++;
		else
			counts.by_how[function.how]++;
	}
	*ret_counts = counts;
	return counts.all > 0;
}
