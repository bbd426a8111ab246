/* SPDX-License-Identifier: MIT */
/*
 * Which names do functions get from their holders, if their parents are gone?
 *
 * A module's main chunk runs once, and is collected with its bytecode. The functions that it
 * defined live on in their holders. Local functions and the module's table are in upvalues of
 * functions, which still have the variables' names. The table is also among the loaded modules.
 *
 *   local function helper()       an upvalue of M.run, helper
 *   function M.run() helper()     in a table that is an upvalue of others, M, or loaded as "module"
 *
 * The search starts at functions on the stack and at the loaded modules. It visits the functions
 * and tables that they hold, and continues from these. A variable names functions of its own chunk
 * only, and only if the function that declares it is gone, too. If that function exists, the names
 * of all functions that it creates are known; the variable is then a parameter, or another name. A
 * variable that holds different functions in different closures is a parameter as well.
 *
 * Source: LuaJIT v2.1 src/lj_obj.h (GCfuncL, GCupval, GCproto.uv: PROTO_UV_LOCAL, GCtab, Node).
 */
#include "luastate/definition/holder_names.h"

#include <stdio.h>
#include <stdlib.h>

#include "attach/clock.h"
#include "luastate/definition/definition.h"
#include "luastate/definition/parents.h"
#include "luastate/function/library_names.h"
#include "luastate/layout/object.h"

enum {
	/* Maximum functions and tables to visit in one search. */
	ITEMS_MAX = 1 << 14,
	/* Larger tables contain data. */
	NODES_MAX = 1 << 10,
	UVINFO_MAX = 8192,
	/* Maximum nesting of tables that a variable holds. */
	DEPTH_MAX = 3,
	/* Maximum chain of upvalues of upvalues, up to the function that declares the variable. */
	NESTED_MAX = 16,
	HELD_MAX = 1 << 16,
	/* Names from a table's fields have lower ranks, see rank_of(). */
	RANK_VARIABLE = 3,
	UV_LOCAL = 0x8000,
	FFID_LUA = 0,
};

/** Names of a table's fields. */
struct table_name {
	char prefix[64];    /* "": only their keys */
	uint64_t chunkname; /* chunk of the functions that it may name; 0: any */
	unsigned depth;
};

/** A named function, by its address. */
struct state_held {
	struct names_wanted function;
	uint64_t variable; /* key of the variable that holds it; 0: a table holds it */
	uint8_t rank;
	char name[STATE_NAME_MAX];
	UT_hash_handle hh;
};

/** A function or a table. */
struct item {
	uint64_t address;
	bool is_table, is_again;
	struct table_name name;
	UT_hash_handle hh; /* in the table of visited items */
};

/** An upvalue of a prototype, and the function that it holds in the first closure. */
struct variable {
	uint64_t key; /* prototype and number */
	uint64_t proto;
	bool is_generic;
	UT_hash_handle hh;
};

/** A search. Items in `later` wait until `queue` is empty. */
struct holders {
	const struct names_search *search;
	struct item *met;
	/* An item may be queued a second time, see add_table(). */
	struct item *queue[2 * ITEMS_MAX], *later[ITEMS_MAX];
	size_t first, count, later_first, later_count;
	struct variable *variables;
	struct state_held *found;
	uint8_t dead; /* colour of dead objects */
};

/* ---- Named functions -------------------------------------------------------------------- */

static const struct state_held *find_held(const struct state_held *table,
					  const struct names_wanted *wanted)
{
	struct state_held *item;

	HASH_FIND(hh, table, &wanted->address, sizeof(wanted->address), item);
	return item && names_is_same(&item->function, wanted) ? item : NULL;
}

/* Replaces an older item. */
static void keep_held(struct state_held **table, struct state_held *item)
{
	struct state_held *old;

	HASH_FIND(hh, *table, &item->function.address, sizeof(item->function.address), old);
	if (old) {
		HASH_DEL(*table, old);
		free(old);
	}
	HASH_KEEP(*table, function.address, item);
}

const char *names_held_as(const struct luastate *state, const struct names_wanted *wanted)
{
	const struct state_held *item = find_held(state->held, wanted);

	return item ? item->name : NULL;
}

void names_forget_held(struct luastate *state)
{
	struct state_held *item, *next;

	HASH_ITER(hh, state->held, item, next)
	{
		HASH_DEL(state->held, item);
		free(item);
	}
}

/* ---- Visited items ---------------------------------------------------------------------- */

static struct item *meet(struct holders *holders, uint64_t address)
{
	struct item *item;

	HASH_FIND(hh, holders->met, &address, sizeof(address), item);
	if (item || !state_is_pointer(address) || HASH_COUNT(holders->met) >= ITEMS_MAX)
		return NULL;
	item = calloc(1, sizeof(*item));
	if (!item)
		return NULL;
	item->address = address;
	return HASH_KEEP(holders->met, address, item);
}

static void add_function(struct holders *holders, uint64_t address)
{
	struct item *item = meet(holders, address);

	if (item)
		holders->queue[holders->count++] = item;
}

/* Quality of a name from a table. A variable of the function's own chunk gives the same name as
 * the definition. */
static uint8_t rank_of(const struct table_name *name)
{
	return name->prefix[0] ? 1 + (name->chunkname != 0) : 0;
}

/* Visit a table again for a better name. */
static void rename_table(struct holders *holders, uint64_t address, const struct table_name *name)
{
	struct item *item;

	HASH_FIND(hh, holders->met, &address, sizeof(address), item);
	if (!item || !item->is_table || item->is_again || rank_of(name) < 2 ||
	    rank_of(&item->name) == 2)
		return;
	item->is_again = true;
	item->name = *name;
	holders->queue[holders->count++] = item;
}

static void add_table(struct holders *holders, uint64_t address, const struct table_name *name,
		      bool is_later)
{
	struct item *item = name->depth < DEPTH_MAX ? meet(holders, address) : NULL;

	if (!item) {
		rename_table(holders, address, name);
		return;
	}
	item->is_table = true;
	item->name = *name;
	if (is_later)
		holders->later[holders->later_count++] = item;
	else
		holders->queue[holders->count++] = item;
}

static struct item *take_item(struct holders *holders)
{
	if (holders->first < holders->count)
		return holders->queue[holders->first++];
	return holders->later_first < holders->later_count ? holders->later[holders->later_first++]
							   : NULL;
}

/* ---- Names ------------------------------------------------------------------------------ */

/* Read the prototype of a Lua function. */
static bool read_function(const struct holders *holders, uint64_t address, uint8_t *ret_header,
			  struct names_wanted *ret_proto)
{
	const struct luastate_layout *layout = holders->search->layout;
	uint8_t proto[STATE_OBJECT_MAX];
	struct failure why;
	uint64_t pc;

	if (state_read_object(layout, holders->search->reader, address, state_gct(layout->tag_func),
			      ret_header, (size_t)layout->GCfunc_header, &why) != 0 ||
	    ret_header[layout->GCfunc_ffid] != FFID_LUA ||
	    names_is_dead(holders->search, holders->dead, address, ret_header))
		return false;
	pc = state_ref(layout, ret_header, layout->GCfunc_pc);
	return state_is_pointer(pc) &&
	       names_read_proto(holders->search, pc - (uint64_t)layout->GCproto_sizeof, proto,
				ret_proto);
}

/*
 * Name a function, unless its name is at least as good.
 * @param chunkname Chunk of the variable; 0: any.
 * @param variable Its key; 0: the function is in a table.
 */
static void name_function(struct holders *holders, uint64_t address, uint64_t chunkname,
			  const char *name, uint8_t rank, uint64_t variable)
{
	uint8_t header[STATE_OBJECT_MAX];
	const struct state_held *known;
	struct names_wanted proto;
	struct state_held *item;

	if (!name[0] || !state_is_plain(name) || HASH_COUNT(holders->found) >= HELD_MAX ||
	    !read_function(holders, address, header, &proto) ||
	    (chunkname && proto.chunkname != chunkname))
		return;
	known = find_held(holders->found, &proto);
	if (known && known->rank >= rank)
		return;
	item = calloc(1, sizeof(*item));
	if (!item)
		return;
	item->function = proto;
	item->variable = variable;
	item->rank = rank;
	snprintf(item->name, sizeof(item->name), "%s", name);
	keep_held(&holders->found, item);
}

/* ---- Upvalues --------------------------------------------------------------------------- */

/** A closure whose upvalues are read. */
struct closure {
	struct names_wanted proto;
	uint8_t header[STATE_OBJECT_MAX]; /* GCproto */
	uint64_t uvptr;
	uint32_t upvalues;
	char names[UVINFO_MAX + 1]; /* one after another */
	size_t names_len;
};

static bool open_closure(const struct holders *holders, uint64_t address,
			 struct closure *ret_closure)
{
	const struct luastate_layout *layout = holders->search->layout;
	uint8_t header[STATE_OBJECT_MAX];
	uint64_t uvinfo, varinfo;
	struct failure why;

	if (!read_function(holders, address, header, &ret_closure->proto) ||
	    !names_read_proto(holders->search, ret_closure->proto.address, ret_closure->header,
			      &ret_closure->proto))
		return false;
	ret_closure->uvptr = address + (uint64_t)layout->GCfuncL_uvptr;
	ret_closure->upvalues = header[layout->GCfunc_nupvalues];
	uvinfo = state_ref(layout, ret_closure->header, layout->GCproto_uvinfo);
	varinfo = state_ref(layout, ret_closure->header, layout->GCproto_varinfo);
	ret_closure->names_len = 0;
	if (state_is_pointer(uvinfo) && varinfo > uvinfo && varinfo - uvinfo <= UVINFO_MAX &&
	    state_read(holders->search->reader, uvinfo, ret_closure->names,
		       (size_t)(varinfo - uvinfo), &why) == 0)
		ret_closure->names_len = (size_t)(varinfo - uvinfo);
	ret_closure->names[ret_closure->names_len] = '\0';
	return true;
}

static uint16_t read_uv(const struct names_search *search, const uint8_t *header, uint32_t index)
{
	uint64_t uv = state_ref(search->layout, header, search->layout->GCproto_uv);
	uint16_t entry = UV_LOCAL;
	struct failure why;

	if (index < header[search->layout->GCproto_sizeuv])
		state_read(search->reader, uv + 2 * (uint64_t)index, &entry, 2, &why);
	return entry;
}

/* Whether the function that declares a variable exists. The names of the functions that it
 * creates are then known. */
static bool has_function(const struct holders *holders, const struct closure *closure,
			 uint32_t index)
{
	const struct names_search *search = holders->search;
	struct names_wanted proto = closure->proto;
	uint8_t header[STATE_OBJECT_MAX];

	memcpy(header, closure->header, sizeof(header));
	for (unsigned i = 0; i < NESTED_MAX; i++) {
		const struct state_definition *definition = names_search_known(search, &proto);
		uint16_t entry = read_uv(search, header, index);

		if (!definition ||
		    !names_read_proto(search, definition->parent.address, header, &proto))
			return false;
		if (entry & UV_LOCAL)
			return true;
		index = entry & 0xff;
	}
	return true;
}

/* Note the function that a variable holds. @return the variable's key; 0 if it is known to be a
 * parameter. */
static uint64_t note_variable(struct holders *holders, const struct closure *closure,
			      uint32_t index, uint64_t function)
{
	uint64_t key = closure->proto.address | index % 8 | (uint64_t)(index / 8) << 56;
	uint8_t header[STATE_OBJECT_MAX];
	struct variable *variable;
	struct names_wanted proto;

	if (!read_function(holders, function, header, &proto))
		return 0;
	HASH_FIND(hh, holders->variables, &key, sizeof(key), variable);
	if (variable) {
		variable->is_generic |= variable->proto != proto.address;
		return variable->is_generic ? 0 : key;
	}
	variable = calloc(1, sizeof(*variable));
	if (!variable)
		return 0;
	variable->key = key;
	variable->proto = proto.address;
	return HASH_KEEP(holders->variables, key, variable) ? key : 0;
}

static bool read_upvalue(const struct holders *holders, const struct closure *closure,
			 uint32_t index, uint64_t *ret_value)
{
	const struct luastate_layout *layout = holders->search->layout;
	const struct attach_reader *reader = holders->search->reader;
	uint64_t upvalue, value;
	struct failure why;

	return state_read_ref(layout, reader, closure->uvptr + (uint64_t)layout->ref_size * index,
			      &upvalue, &why) == 0 &&
	       state_is_pointer(upvalue) &&
	       state_read_ref(layout, reader, upvalue + (uint64_t)layout->GCupval_v, &value,
			      &why) == 0 &&
	       state_is_pointer(value) && state_read(reader, value, ret_value, 8, &why) == 0;
}

static void look_into_upvalue(struct holders *holders, const struct closure *closure,
			      uint32_t index, const char *name)
{
	const struct luastate_layout *layout = holders->search->layout;
	uint64_t value, object;

	if (!read_upvalue(holders, closure, index, &value))
		return;
	object = state_object(layout, value);
	if (state_tag(layout, value) == layout->tag_func) {
		uint64_t source = note_variable(holders, closure, index, object);

		if (source && name[0] && !has_function(holders, closure, index))
			name_function(holders, object, closure->proto.chunkname, name,
				      RANK_VARIABLE, source);
		add_function(holders, object);
	} else if (state_tag(layout, value) == layout->tag_tab) {
		struct table_name table = { .chunkname = closure->proto.chunkname };

		if (strlen(name) < sizeof(table.prefix) && state_is_plain(name) &&
		    !has_function(holders, closure, index))
			strcpy(table.prefix, name);
		add_table(holders, object, &table, !table.prefix[0]);
	}
}

static void look_into_function(struct holders *holders, uint64_t address)
{
	struct closure *closure = malloc(sizeof(*closure));
	size_t at = 0;

	if (closure && open_closure(holders, address, closure)) {
		if (parents_is_one(holders->search->layout, closure->header))
			parents_add(holders->search->state, holders->search->G, &closure->proto);
		for (uint32_t i = 0; i < closure->upvalues; i++) {
			const char *name = closure->names + at;

			look_into_upvalue(holders, closure, i, name);
			if (at < closure->names_len)
				at += strlen(name) + 1;
			if (at > closure->names_len)
				at = closure->names_len;
		}
	}
	free(closure);
}

/* ---- Tables ----------------------------------------------------------------------------- */

/* Whether the first parameter is named "self", as in a method. */
static bool has_self(const struct holders *holders, uint64_t function)
{
	uint8_t header[STATE_OBJECT_MAX];
	struct names_wanted proto;

	return read_function(holders, function, header, &proto) &&
	       definition_has_self(holders->search->layout, holders->search->reader, proto.address);
}

/* Uses only the key if both do not fit. */
static void join(char *ret_name, const char *prefix, char dot, const char *key)
{
	size_t len = strlen(prefix);

	ret_name[0] = '\0';
	if (len && len + 1 + strlen(key) < STATE_NAME_MAX) {
		memcpy(ret_name, prefix, len);
		ret_name[len++] = dot;
		ret_name[len] = '\0';
	}
	strncat(ret_name, key, STATE_NAME_MAX - 1 - strlen(ret_name));
}

static void look_into_field(struct holders *holders, const struct table_name *table,
			    const char *key, uint64_t value)
{
	const struct luastate_layout *layout = holders->search->layout;
	uint64_t object = state_object(layout, value);
	char name[STATE_NAME_MAX];

	if (state_tag(layout, value) == layout->tag_func) {
		join(name, table->prefix, has_self(holders, object) ? ':' : '.', key);
		name_function(holders, object, table->chunkname, name, rank_of(table), 0);
		add_function(holders, object);
	} else if (state_tag(layout, value) == layout->tag_tab) {
		struct table_name inner = { .chunkname = table->chunkname,
					    .depth = table->depth + 1 };

		/* A program finds fields of this table as fields of the object. */
		if (strcmp(key, "__index") != 0 || table->prefix[0])
			join(name, table->prefix, '.', key);
		else
			name[0] = '\0';
		if (strlen(name) < sizeof(inner.prefix))
			strcpy(inner.prefix, name);
		add_table(holders, object, &inner, false);
	}
}

/* @return the table's nodes, NULL if it has none, or too many. */
static uint8_t *read_nodes(const struct holders *holders, const uint8_t *table, uint32_t *ret_count)
{
	const struct luastate_layout *layout = holders->search->layout;
	uint64_t node = state_ref(layout, table, layout->GCtab_node);
	uint32_t count = state_u32(table, layout->GCtab_hmask) + 1;
	uint8_t *nodes;
	struct failure why;

	if (count == 0 || count > NODES_MAX || !state_is_pointer(node))
		return NULL;
	nodes = malloc((size_t)count * (size_t)layout->Node_sizeof);
	if (nodes && state_read(holders->search->reader, node, nodes,
				(size_t)count * (size_t)layout->Node_sizeof, &why) != 0) {
		free(nodes);
		return NULL;
	}
	*ret_count = count;
	return nodes;
}

static bool is_interesting(const struct luastate_layout *layout, uint64_t value)
{
	return state_tag(layout, value) == layout->tag_func ||
	       state_tag(layout, value) == layout->tag_tab;
}

static void look_into_table(struct holders *holders, const struct item *item)
{
	const struct luastate_layout *layout = holders->search->layout;
	const struct table_name meta = { .chunkname = item->name.chunkname,
					 .depth = item->name.depth + 1 };
	uint8_t table[STATE_OBJECT_MAX], *nodes;
	struct failure why;
	uint32_t count = 0;

	if (state_read_object(layout, holders->search->reader, item->address,
			      state_gct(layout->tag_tab), table, (size_t)layout->GCtab_sizeof,
			      &why) != 0 ||
	    names_is_dead(holders->search, holders->dead, item->address, table))
		return;
	nodes = read_nodes(holders, table, &count);
	for (uint32_t i = 0; nodes && i < count; i++) {
		const uint8_t *node = nodes + (size_t)i * (size_t)layout->Node_sizeof;
		uint64_t key = state_u64(node, layout->Node_key),
			 value = state_u64(node, layout->Node_val);
		char text[STATE_NAME_MAX];

		if (state_tag(layout, key) == layout->tag_str && is_interesting(layout, value) &&
		    state_read_string(layout, holders->search->reader, state_object(layout, key),
				      text, sizeof(text), &why) == 0 &&
		    state_is_plain(text))
			look_into_field(holders, &item->name, text, value);
	}
	free(nodes);
	add_table(holders, state_ref(layout, table, layout->GCtab_metatable), &meta, true);
}

/* Add modules by their names, and globals by theirs. @param end_ns As for names_search_holders().
 */
static void add_modules(struct holders *holders, uint64_t end_ns)
{
	const struct names_search *search = holders->search;
	const struct luastate_layout *layout = search->layout;
	const struct luastate_vm vm = { .G = search->G, .layout = layout };
	const struct table_name modules = { .prefix = "" }, globals = { .prefix = "" };
	uint64_t clock_end_ns = clock_now_ns() + end_ns - clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t loaded = state_get_loaded(&vm, search->reader, NULL, clock_end_ns), value;

	if (state_tag(layout, loaded) != layout->tag_tab)
		return;
	value = state_table_get(layout, search->reader, state_object(layout, loaded), "_G",
				clock_end_ns);
	if (state_tag(layout, value) == layout->tag_tab)
		add_table(holders, state_object(layout, value), &globals, true);
	add_table(holders, state_object(layout, loaded), &modules, true);
}

/* ---- The search ------------------------------------------------------------------------- */

/* Add the class of an object whose method runs: the metatable of the value in the first slot. */
static void add_receiver(struct holders *holders, const struct luastate_frame *frame)
{
	const struct luastate_layout *layout = holders->search->layout;
	const struct table_name name = { .depth = 1 };
	uint8_t table[STATE_OBJECT_MAX];
	struct failure why;
	uint64_t value;

	if (frame->base && holders->search->stopped &&
	    state_read(holders->search->stopped, frame->base, &value, 8, &why) == 0 &&
	    state_tag(layout, value) == layout->tag_tab &&
	    state_read_object(layout, holders->search->reader, state_object(layout, value),
			      state_gct(layout->tag_tab), table, (size_t)layout->GCtab_sizeof,
			      &why) == 0)
		add_table(holders, state_ref(layout, table, layout->GCtab_metatable), &name, true);
}

static void add_frames(struct holders *holders)
{
	const struct names_search *search = holders->search;
	const struct luastate_frame *last = NULL;

	for (size_t i = 0; i < search->frame_count; i++) {
		const struct luastate_frame *frame = &search->frames[i];

		if (frame->function->kind != LUASTATE_LUA ||
		    (last && last->object == frame->object && last->object))
			continue;
		if (frame->object)
			add_function(holders, frame->object);
		add_receiver(holders, frame);
		last = frame;
	}
}

/* Drop names from variables that turned out to be parameters. Drop all names if the collector
 * finished a mark phase during the search. @return Whether it did not. */
static bool keep_found(struct holders *holders)
{
	struct state_held *item, *next;
	struct variable *variable;
	bool sure = names_dead_colour(holders->search) == holders->dead;

	HASH_ITER(hh, holders->found, item, next)
	{
		HASH_DEL(holders->found, item);
		HASH_FIND(hh, holders->variables, &item->variable, sizeof(item->variable),
			  variable);
		if (!sure || (item->variable && variable && variable->is_generic))
			free(item);
		else
			keep_held(&holders->search->state->held, item);
	}
	return sure;
}

static void free_holders(struct holders *holders)
{
	struct variable *variable, *next_variable;
	struct item *item, *next;

	HASH_ITER(hh, holders->variables, variable, next_variable)
	{
		HASH_DEL(holders->variables, variable);
		free(variable);
	}
	HASH_ITER(hh, holders->met, item, next)
	{
		HASH_DEL(holders->met, item);
		free(item);
	}
	free(holders);
}

bool names_search_holders(const struct names_search *search, uint64_t end_ns)
{
	struct holders *holders = calloc(1, sizeof(*holders));
	const struct item *item;
	bool sure;

	if (!holders)
		return true;
	if (HASH_COUNT(search->state->held) >= HELD_MAX)
		names_forget_held(search->state);
	holders->search = search;
	holders->dead = names_dead_colour(search);
	add_frames(holders);
	add_modules(holders, end_ns);
	while ((item = take_item(holders)) && clock_read_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns) {
		if (item->is_table)
			look_into_table(holders, item);
		else
			look_into_function(holders, item->address);
	}
	sure = keep_found(holders);
	parents_sort(search->state);
	free_holders(holders);
	return sure;
}
