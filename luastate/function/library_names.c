/* SPDX-License-Identifier: MIT */
/*
 * Which names do the target's own tables give to built-ins and C functions?
 *
 * The registry's _LOADED table holds the modules. The function under "gsub" in the module "string"
 * is string.gsub, whatever its number is in this build.
 *
 * Source: LuaJIT v2.1 src/lj_obj.h (GCtab, Node), src/lib_package.c (_LOADED).
 */
#include "luastate/function/library_names.h"

#include <stdio.h>
#include <stdlib.h>

#include "attach/clock.h"
#include "luastate/layout/object.h"

enum {
	TABLES_MAX = 4096,
	/* Slots of all tables. Each slot may cost one or two reads. */
	SEARCH_SLOTS_MAX = 1 << 18,
	TABLE_DEPTH = 2, /* package.loaded -> module -> function */
	/* package.loaded -> module -> object -> its methods, by __index or a metatable */
	OBJECT_DEPTH = 4,
	/* Larger tables contain data. */
	OBJECT_SLOTS_MAX = 4096,
	/* Time limit of one search. The clock is read every SEARCH_CLOCK_SLOTS slots. */
	SEARCH_NS = 100 * 1000 * 1000,
	SEARCH_CLOCK_SLOTS = 64,
	/* Pause until the next search: at least a second, or NAMES_REST times the duration of
	 * the last search. The pause doubles after each search that found nothing new, up to
	 * NAMES_DOUBLINGS times. */
	NAMES_INTERVAL_NS = 1000 * 1000 * 1000,
	NAMES_REST = 50,
	NAMES_DOUBLINGS = 4,
};

/** A search through tables. The limits apply to the whole search. */
struct search {
	struct luastate *state;
	const struct luastate_layout *layout;
	const struct attach_reader *reader;
	unsigned tables_left, slots_left;
	uint64_t end_ns;
	bool builtin; /* the first pass: LuaJIT's own libraries only */
	bool objects; /* the last pass: also methods of objects in modules, and of metatables */
};

/*
 * Built-ins that no module's table holds. LuaJIT numbers built-ins in the order of the libraries'
 * definitions. The functions of a line therefore come directly before a function whose number is
 * known: from the tables, or from a line above. The order is the same since 2.1.0-beta3 in all
 * three forks. Source: src/lib_base.c, lib_string.c, lib_io.c, lib_ffi.c, lib_buffer.c (LJLIB_CF,
 * LJLIB_ASM) of LuaJIT v2.1 1ee778a4, openresty/luajit2 15f58c96, tarantool/luajit b52fe979, and
 * all their ancestors since 2017. Names are those of jit.vmdef, by src/host/buildvm_lib.c.
 */
static const struct {
	const char *known, *prefix, *hidden[18];
} hidden_before[] = {
	{ "ipairs", "", { "ipairs_aux" } },
	{ "coroutine.wrap", "coroutine.", { "wrap_aux" } },
	{ "string.gmatch", "string.", { "gmatch_aux" } },
	{ "io.open",
	  "io.method.",
	  { "close", "read", "write", "flush", "seek", "setvbuf", "lines", "__gc", "__tostring" } },
	{ "ffi.cdef", "ffi.callback.", { "free", "set" } },
	{ "ffi.callback.free", "ffi.clib.", { "__index", "__newindex", "__gc" } },
	{ "ffi.clib.__index",
	  "ffi.meta.",
	  { "__index", "__newindex", "__eq", "__len", "__lt", "__le", "__concat", "__call", "__add",
	    "__sub", "__mul", "__div", "__mod", "__pow", "__unm", "__tostring", "__pairs",
	    "__ipairs" } },
	{ "string.buffer.new",
	  "buffer.method.",
	  { "free", "reset", "skip", "set", "put", "putf", "get", "putcdata", "reserve", "commit",
	    "ref", "encode", "decode", "__gc", "__tostring", "__len" } },
};

/* Objects in modules' tables, and the prefix for the functions of their metatables. */
static const struct {
	const char *module, *key, *prefix;
} objects[] = {
	{ "io", "stdout", "io.method" },
	{ "ffi", "C", "ffi.clib" },
};

static const char *const builtin_modules[] = {
	"_G",	    "string",  "table",	      "math",	   "coroutine",	  "io",
	"os",	    "bit",     "jit",	      "ffi",	   "debug",	  "package",
	"jit.util", "jit.opt", "jit.profile", "table.new", "table.clear", "string.buffer"
};

static bool is_builtin(const char *module)
{
	for (size_t i = 0; i < sizeof(builtin_modules) / sizeof(builtin_modules[0]); i++)
		if (strcmp(module, builtin_modules[i]) == 0)
			return true;
	return false;
}

static void join_name(char *ret_name, const char *module, const char *key)
{
	if (strcmp(module, "_G") == 0)
		snprintf(ret_name, STATE_NAME_MAX, "%s", key);
	else if (strcmp(key, "") == 0)
		snprintf(ret_name, STATE_NAME_MAX, "%s", module);
	else
		snprintf(ret_name, STATE_NAME_MAX, "%.63s.%.63s", module, key);
}

static void add_cname(struct luastate *state, uint64_t address, const char *name)
{
	struct state_cname *item;

	HASH_FIND(hh, state->cnames, &address, sizeof(address), item);
	if (item || HASH_COUNT(state->cnames) >= STATE_FUNCTIONS_MAX)
		return;
	item = calloc(1, sizeof(*item));
	if (!item)
		return;
	item->address = address;
	snprintf(item->name, sizeof(item->name), "%s", name);
	HASH_KEEP(state->cnames, address, item);
}

static void note_function(struct search *search, uint64_t address, const char *module,
			  const char *key)
{
	const struct luastate_layout *layout = search->layout;
	uint8_t bytes[STATE_OBJECT_MAX];
	char name[STATE_NAME_MAX];
	struct failure why;
	uint8_t ffid;

	if (state_read_object(layout, search->reader, address, state_gct(layout->tag_func), bytes,
			      (size_t)layout->GCfunc_header, &why) != 0)
		return;
	ffid = bytes[layout->GCfunc_ffid];
	join_name(name, module, key);
	if (ffid > 1 && search->builtin) {
		if (!search->state->ff_names[ffid][0])
			memcpy(search->state->ff_names[ffid], name, sizeof(name));
	} else if (ffid == 1) {
		add_cname(search->state, state_u64(bytes, layout->GCfuncC_f), name);
	}
}

static void search_table(struct search *search, uint64_t address, const char *module, int depth);

/* The name of a table in a table. A program finds the fields of its __index in the first one. */
static const char *join_path(char ret_path[STATE_NAME_MAX], const char *module, const char *key)
{
	if (strcmp(key, "__index") == 0)
		snprintf(ret_path, STATE_NAME_MAX, "%s", module);
	else
		join_name(ret_path, *module ? module : "_G", key);
	return ret_path;
}

/* Name the methods in the metatable of a library's object. */
static void search_object(struct search *search, uint64_t address, const char *module,
			  const char *key, int depth)
{
	char path[STATE_NAME_MAX];
	const struct luastate_layout *layout = search->layout;
	uint8_t bytes[STATE_OBJECT_MAX];
	struct failure why;

	if (search->objects &&
	    state_read_object(layout, search->reader, address, state_gct(layout->tag_udata), bytes,
			      (size_t)layout->GCudata_sizeof, &why) == 0)
		search_table(search, state_ref(layout, bytes, layout->GCudata_metatable),
			     join_path(path, module, key), depth + 1);
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		if (strcmp(module, objects[i].module) == 0 && strcmp(key, objects[i].key) == 0 &&
		    state_read_object(layout, search->reader, address, state_gct(layout->tag_udata),
				      bytes, (size_t)layout->GCudata_sizeof, &why) == 0)
			search_table(search, state_ref(layout, bytes, layout->GCudata_metatable),
				     objects[i].prefix, TABLE_DEPTH - 1);
}

static void visit(struct search *search, uint64_t key, uint64_t value, const char *module,
		  int depth)
{
	const struct luastate_layout *layout = search->layout;
	char name[64], path[STATE_NAME_MAX];
	struct failure why;

	if (state_tag(layout, key) != layout->tag_str ||
	    (state_tag(layout, value) != layout->tag_func &&
	     state_tag(layout, value) != layout->tag_tab &&
	     state_tag(layout, value) != layout->tag_udata))
		return;
	if (state_read_string(layout, search->reader, state_object(layout, key), name, sizeof(name),
			      &why) != 0)
		return;
	for (const char *c = name; *c; c++)
		if ((unsigned char)*c <= 32 || *c == ';')
			return;
	if (depth == 0 && search->builtin != is_builtin(name))
		return;
	if (state_tag(layout, value) == layout->tag_func)
		note_function(search, state_object(layout, value), depth ? module : name,
			      depth ? name : "");
	else if (state_tag(layout, value) == layout->tag_udata)
		search_object(search, state_object(layout, value), module, name, depth);
	else if (depth + 1 < (search->objects ? OBJECT_DEPTH : TABLE_DEPTH))
		search_table(search, state_object(layout, value), join_path(path, module, name),
			     depth + 1);
}

static void search_table(struct search *search, uint64_t address, const char *module, int depth)
{
	const struct luastate_layout *layout = search->layout;
	uint8_t bytes[STATE_OBJECT_MAX], *nodes;
	struct failure why;
	uint64_t node;
	uint32_t count;

	if (search->tables_left == 0 || depth >= OBJECT_DEPTH)
		return;
	search->tables_left--;
	if (state_read_object(layout, search->reader, address, state_gct(layout->tag_tab), bytes,
			      (size_t)layout->GCtab_sizeof, &why) != 0)
		return;
	if (search->objects && depth > 0 &&
	    state_is_pointer(state_ref(layout, bytes, layout->GCtab_metatable)))
		search_table(search, state_ref(layout, bytes, layout->GCtab_metatable), module,
			     depth + 1);
	node = state_ref(layout, bytes, layout->GCtab_node);
	count = state_u32(bytes, layout->GCtab_hmask) + 1;
	if (count == 0 || count > STATE_TABLE_SLOTS_MAX || count > search->slots_left ||
	    (search->objects && count > OBJECT_SLOTS_MAX) || !state_is_pointer(node))
		return;
	search->slots_left -= count;
	nodes = malloc((size_t)count * (size_t)layout->Node_sizeof);
	if (!nodes)
		return;
	if (state_read(search->reader, node, nodes, (size_t)count * (size_t)layout->Node_sizeof,
		       &why) == 0)
		for (uint32_t i = 0; i < count && search->slots_left; i++) {
			const uint8_t *item = nodes + (size_t)i * (size_t)layout->Node_sizeof;

			if (i % SEARCH_CLOCK_SLOTS == 0 && clock_now_ns() >= search->end_ns)
				search->slots_left = 0;
			visit(search, state_u64(item, layout->Node_key),
			      state_u64(item, layout->Node_val), module, depth);
		}
	free(nodes);
}

static int find_ffid(const struct luastate *state, const char *name)
{
	for (int id = 2; id < STATE_FFIDS; id++)
		if (strcmp(state->ff_names[id], name) == 0)
			return id;
	return 0;
}

/* Name all functions of a line, or none if another function has one of their numbers. */
static void name_hidden(struct luastate *state)
{
	for (size_t i = 0; i < sizeof(hidden_before) / sizeof(hidden_before[0]); i++) {
		char names[18][STATE_NAME_MAX];
		int id = find_ffid(state, hidden_before[i].known), count = 0;
		bool free = true;

		for (; count < 18 && hidden_before[i].hidden[count]; count++)
			snprintf(names[count], STATE_NAME_MAX, "%s%s", hidden_before[i].prefix,
				 hidden_before[i].hidden[count]);
		if (id - count < 2)
			continue;
		for (int k = 0; k < count; k++) {
			const char *present = state->ff_names[id - count + k];

			free &= !present[0] || strcmp(present, names[k]) == 0;
		}
		for (int k = 0; k < count && free; k++)
			memcpy(state->ff_names[id - count + k], names[k], STATE_NAME_MAX);
	}
}

uint64_t state_get_loaded(const struct luastate_vm *vm, const struct attach_reader *reader,
			  const char *module, uint64_t end_ns)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t registry, loaded;
	struct failure why;

	if (state_read(reader, vm->G + (uint64_t)layout->global_State_registrytv, &registry, 8,
		       &why) != 0)
		return 0;
	loaded = state_table_get(layout, reader, state_object(layout, registry), "_LOADED", end_ns);
	if (state_tag(layout, loaded) != layout->tag_tab || !module)
		return module ? 0 : loaded;
	return state_table_get(layout, reader, state_object(layout, loaded), module, end_ns);
}

static int search_modules(struct luastate *state, const struct attach_reader *reader,
			  const struct luastate_vm *vm, uint64_t end_ns, struct failure *why)
{
	const struct luastate_layout *layout = vm->layout;
	struct search search = { .state = state,
				 .layout = layout,
				 .reader = reader,
				 .tables_left = TABLES_MAX,
				 .slots_left = SEARCH_SLOTS_MAX,
				 .end_ns = end_ns };
	uint64_t loaded = state_get_loaded(vm, reader, NULL, end_ns), registry;

	if (state_tag(layout, loaded) != layout->tag_tab)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, vm->G, "find the loaded modules");
	search.builtin = true;
	search_table(&search, state_object(layout, loaded), "", 0);
	search.builtin = false;
	search_table(&search, state_object(layout, loaded), "", 0);
	name_hidden(state);
	search.objects = true;
	search.tables_left = TABLES_MAX;
	search_table(&search, state_object(layout, loaded), "", 0);
	/* Metatables have their names there. Source: LuaJIT v2.1 src/lib_aux.c, luaL_newmetatable.
	 */
	if (state_read(reader, vm->G + (uint64_t)layout->global_State_registrytv, &registry, 8,
		       why) == 0)
		search_table(&search, state_object(layout, registry), "", 0);
	return 0;
}

static unsigned count_names(const struct luastate *state)
{
	unsigned count = HASH_COUNT(state->cnames);

	for (int id = 0; id < STATE_FFIDS; id++)
		count += state->ff_names[id][0] != '\0';
	return count;
}

int luastate_load_names(struct luastate *state, const struct attach_reader *reader, uint64_t G,
			struct failure *why)
{
	const struct luastate_vm *vm = state_vm_by_G(state, G);
	uint64_t begin_ns = clock_now_ns(), rest_ns;
	unsigned before = count_names(state);
	int ret;

	if (!vm)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, G, "find the VM");
	ret = search_modules(state, reader, vm, begin_ns + SEARCH_NS, why);
	state->names_doublings = count_names(state) > before ? 0 : state->names_doublings + 1;
	if (state->names_doublings > NAMES_DOUBLINGS)
		state->names_doublings = NAMES_DOUBLINGS;
	rest_ns = (clock_now_ns() - begin_ns) * NAMES_REST;
	if (rest_ns < NAMES_INTERVAL_NS)
		rest_ns = NAMES_INTERVAL_NS;
	state->names_due_ns = begin_ns + (rest_ns << state->names_doublings);
	return ret;
}

void state_load_names(struct luastate *state, const struct attach_reader *reader, uint64_t G)
{
	struct failure why;

	if (clock_now_ns() >= state->names_due_ns)
		luastate_load_names(state, reader, G, &why);
}

void state_free_names(struct luastate *state)
{
	struct state_cname *item, *next;

	HASH_ITER(hh, state->cnames, item, next)
	{
		HASH_DEL(state->cnames, item);
		free(item);
	}
	memset(state->ff_names, 0, sizeof(state->ff_names));
	state->names_due_ns = 0;
	state->names_doublings = 0;
}
