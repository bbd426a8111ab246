/* SPDX-License-Identifier: MIT */
/*
 * Which names do functions get from their definitions?
 *
 * A definition is in the bytecode of the function that creates the function, its parent. A
 * prototype does not refer to its parent, so this file searches for it: first on the stack, where
 * the parent may run, then among all prototypes of the VM, along the list of all objects. An index
 * keeps the possible parents, by chunk and lines. If a parent's constants contain the function, its
 * bytecode gives the names of all functions that it creates.
 *
 * The process runs meanwhile, so a read may return another object's data. A name counts only if
 * parent and child are unchanged after the read.
 *
 * Source: LuaJIT v2.1 src/lj_obj.h (GCproto), src/lj_parse.c (fs_finish, parse_body).
 */
#include "luastate/definition/definition_names.h"

#include <stdio.h>
#include <stdlib.h>

#include "attach/array.h"
#include "attach/clock.h"
#include "luastate/definition/definition.h"
#include "luastate/definition/holder_names.h"
#include "luastate/definition/parents.h"
#include "luastate/function/proto.h"
#include "luastate/layout/object.h"
#include "luastate/state/present.h"
#include "luastate/vm/vm_internal.h"

enum {
	DEFINITIONS_MAX = 1 << 17,
	/* A heap of some hundred thousand objects. A walk takes some milliseconds. */
	LARGE_BYTES = 32 << 20,
	/* Time limit of one search for holders of functions: some ten thousand reads. */
	HOLDERS_NS = 20 * 1000 * 1000,
	/* Time limit of one search without walks. Reading a parent takes some microseconds; forged
	 * ones have megabytes each. */
	READ_NS = 100 * 1000 * 1000,
	/* Number of incomplete walks after which the search for a function's parent ends. */
	TRIES = 8,
	/* Number of searches for holders without results, after which no other follows. */
	HOLDERS_TRIES = 16,
	/* Maximum chain of functions that return functions. */
	RETURNED_MAX = 4,
};

struct names_wanted names_wanted_of(const struct luastate_layout *layout, uint64_t address,
				    const uint8_t *header)
{
	return (struct names_wanted){
		.address = address,
		.chunkname = state_ref(layout, header, layout->GCproto_chunkname),
		.firstline = (int32_t)state_u32(header, layout->GCproto_firstline),
		.numline = state_u32(header, layout->GCproto_numline),
		.sizebc = state_u32(header, layout->GCproto_sizebc),
	};
}

/* Whether a prototype may have created the function, because its lines enclose the function's.
 * Without line information, all lines are 0. */
bool names_surround(uint64_t chunkname, int64_t firstline, int64_t lastline,
		    const struct names_wanted *wanted)
{
	return chunkname == wanted->chunkname && firstline <= wanted->firstline &&
	       lastline >= wanted->firstline + wanted->numline;
}

bool names_read_header(const struct names_search *search, uint64_t address, uint8_t *ret_header)
{
	const struct luastate_layout *layout = search->layout;
	struct failure why;

	return state_read_object(layout, search->reader, address, state_gct(layout->tag_proto),
				 ret_header, (size_t)layout->GCproto_sizeof, &why) == 0;
}

bool names_read_proto(const struct names_search *search, uint64_t address, uint8_t *ret_header,
		      struct names_wanted *ret_proto)
{
	const struct luastate_layout *layout = search->layout;
	uint8_t name[STATE_OBJECT_MAX];
	struct names_wanted proto;
	struct failure why;

	if (!names_read_header(search, address, ret_header))
		return false;
	proto = names_wanted_of(layout, address, ret_header);
	if (state_read_object(layout, search->reader, proto.chunkname, state_gct(layout->tag_str),
			      name, (size_t)layout->GCstr_sizeof, &why) != 0)
		return false;
	proto.name_hash = state_u32(name, layout->GCstr_hash);
	proto.name_len = state_u32(name, layout->GCstr_len);
	*ret_proto = proto;
	return true;
}

/* The white that is not the current one, or both whites if the current one is unknown. */
uint8_t names_dead_colour(const struct names_search *search)
{
	const struct luastate_layout *layout = search->layout;
	struct failure why;
	uint8_t white;

	if (layout->global_State_gc_state == LAYOUT_ABSENT ||
	    state_read(search->reader,
		       search->G +
			       (uint64_t)(layout->global_State_gc_state + STATE_WHITE_FROM_STATE),
		       &white, 1, &why) != 0)
		return STATE_WHITES;
	white &= STATE_WHITES;
	return white && white != STATE_WHITES ? white ^ STATE_WHITES : STATE_WHITES;
}

/* Whether an object is a frame's function or its prototype. */
static bool is_running(const struct names_search *search, uint64_t address)
{
	for (size_t i = 0; i < search->frame_count; i++) {
		const struct state_proto *proto = state_proto_of(search->frames[i].function);

		if (proto && (proto->address == address || search->frames[i].object == address))
			return true;
	}
	return false;
}

bool names_is_dead(const struct names_search *search, uint8_t colour, uint64_t address,
		   const uint8_t *header)
{
	return (header[search->layout->GCobj_gct + STATE_MARKED_FROM_TYPE] & colour) &&
	       (colour != STATE_WHITES || !is_running(search, address));
}

/* ---- Definitions of a parent ------------------------------------------------------------ */

/** Definitions of one parent, kept apart until the parent is known to be unchanged. */
struct batch {
	const struct names_search *search;
	struct names_wanted parent;
	struct state_definition **items;
	size_t count, room;
};

static void add_definition(void *context, const struct definition *definition)
{
	struct batch *batch = context;
	struct state_definition *item;
	uint8_t header[STATE_OBJECT_MAX];
	struct names_wanted child;

	if (batch->count >= DEFINITIONS_MAX ||
	    !names_read_header(batch->search, definition->child, header))
		return;
	child = names_wanted_of(batch->search->layout, definition->child, header);
	if (!names_surround(batch->parent.chunkname, batch->parent.firstline,
			    batch->parent.firstline + batch->parent.numline, &child))
		return;
	if (!ARRAY_RESERVE(batch->items, batch->room, batch->count + 1))
		return;
	child.name_hash = batch->parent.name_hash;
	child.name_len = batch->parent.name_len;
	item = calloc(1, sizeof(*item));
	if (!item)
		return;
	item->function = child;
	item->parent = batch->parent;
	item->sample = batch->search->state->serial;
	item->fate = (uint8_t)definition->fate;
	if (definition->fate == DEFINITION_NAMED)
		strncpy(item->name, definition->name, sizeof(item->name) - 1);
	batch->items[batch->count++] = item;
}

static void keep(struct state_definition **table, struct state_definition *item)
{
	struct state_definition *old;

	HASH_FIND(hh, *table, &item->function.address, sizeof(item->function.address), old);
	if (old) {
		HASH_DEL(*table, old);
		free(old);
	}
	HASH_KEEP(*table, function.address, item);
}

bool names_is_same(const struct names_wanted *a, const struct names_wanted *b)
{
	return a->address == b->address && a->chunkname == b->chunkname &&
	       a->firstline == b->firstline && a->numline == b->numline && a->sizebc == b->sizebc &&
	       a->name_hash == b->name_hash && a->name_len == b->name_len;
}

static struct state_definition *find(const struct luastate *state,
				     const struct names_wanted *wanted)
{
	struct state_definition *item;

	HASH_FIND(hh, state->definitions, &wanted->address, sizeof(wanted->address), item);
	return item && names_is_same(&item->function, wanted) ? item : NULL;
}

void names_charge_reading(const struct names_search *search, uint64_t begin_ns)
{
	if (search->walks)
		budget_charge(&search->state->read_time,
			      clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns);
}

bool names_may_read(const struct names_search *search)
{
	return search->walks ? search->state->read_time.left_ns > 0
			     : clock_read_ns(CLOCK_THREAD_CPUTIME_ID) < search->end_ns;
}

/* Note the names of functions that a prototype creates. @param only One of them, or 0 for all.
 * @return whether there was time for it. */
static bool read_parent(const struct names_search *search, uint64_t address, uint64_t only)
{
	struct batch batch = { .search = search };
	uint8_t header[STATE_OBJECT_MAX];
	uint64_t begin_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	uint8_t dead = names_dead_colour(search);
	struct names_wanted after;
	struct failure why;
	bool same;

	if (!names_may_read(search))
		return false;
	if (HASH_COUNT(search->state->definitions) > DEFINITIONS_MAX)
		state_forget_definitions(search->state);
	if (!names_read_proto(search, address, header, &batch.parent) ||
	    names_is_dead(search, dead, address, header)) {
		search->state->unsure_serial = search->state->parents_serial;
		return true;
	}
	definition_visit(search->layout, search->reader, address, only, add_definition, &batch,
			 &why);
	same = names_read_proto(search, address, header, &after) &&
	       names_is_same(&batch.parent, &after) &&
	       !names_is_dead(search, dead, address, header) && names_dead_colour(search) == dead;
	if (!same)
		search->state->unsure_serial = search->state->parents_serial;
	for (size_t i = 0; i < batch.count; i++) {
		if (same)
			keep(&search->state->definitions, batch.items[i]);
		else
			free(batch.items[i]);
	}
	free(batch.items);
	names_charge_reading(search, begin_ns);
	return true;
}

/* Whether a prototype that was read for an earlier sample is still there. Bytecode never changes.
 */
static bool is_unchanged(const struct names_search *search, const struct names_wanted *proto)
{
	uint8_t header[STATE_OBJECT_MAX], dead = names_dead_colour(search);
	struct names_wanted now;

	return names_read_proto(search, proto->address, header, &now) &&
	       names_is_same(proto, &now) && !names_is_dead(search, dead, proto->address, header);
}

/* A name that was read for an earlier sample counts while its parent is unchanged. The parent of
 * another function that was at this address may be freed by now. */
static const struct state_definition *find_definition(const struct names_search *search,
						      const struct names_wanted *wanted)
{
	struct luastate *state = search->state;
	struct state_definition *item;
	uint64_t parent;

	HASH_FIND(hh, state->definitions, &wanted->address, sizeof(wanted->address), item);
	if (!item || item->sample == state->serial)
		return find(state, wanted);
	parent = names_is_same(&item->function, wanted) ? item->parent.address : 0;
	if (parent && !names_may_read(search))
		return NULL;
	if (parent && is_unchanged(search, &item->parent)) {
		item->sample = state->serial;
		return item;
	}
	HASH_DEL(state->definitions, item);
	free(item);
	if (!parent)
		return NULL;
	read_parent(search, parent, wanted->address);
	return find(state, wanted);
}

/* ---- The parent ------------------------------------------------------------------------- */

static const struct state_definition *search_stack(const struct names_search *search,
						   const struct names_wanted *wanted)
{
	const struct state_definition *found = find_definition(search, wanted);

	for (size_t i = 0; i < search->frame_count && !found; i++) {
		struct state_proto *proto = state_proto_of(search->frames[i].function);

		if (!proto || proto->is_read || proto->address == wanted->address ||
		    !names_surround(proto->chunkname, proto->firstline,
				    proto->firstline + proto->numline, wanted))
			continue;
		proto->is_read = read_parent(search, proto->address, 0);
		found = find_definition(search, wanted);
	}
	return found;
}

static const struct state_definition *search_index(const struct names_search *search,
						   const struct names_wanted *wanted)
{
	const struct state_definition *found = find_definition(search, wanted);
	uint64_t parent;

	while (!found && (parent = parents_find(search, wanted))) {
		read_parent(search, parent, 0);
		found = find_definition(search, wanted);
	}
	return found;
}

/* Search the stack and the index. */
const struct state_definition *names_search_known(const struct names_search *search,
						  const struct names_wanted *wanted)
{
	const struct state_definition *found = search_stack(search, wanted);

	return found ? found : search_index(search, wanted);
}

/* Name a function that its parent returns, by the parent's own name. */
static bool name_returned(const struct names_search *search,
			  const struct state_definition *definition, char *ret_name)
{
	static const char suffix[] = ".return";
	unsigned depth = 0;

	while (definition && definition->fate == DEFINITION_RETURNED && depth++ < RETURNED_MAX) {
		uint8_t header[STATE_OBJECT_MAX];
		struct names_wanted parent;

		if (!names_read_proto(search, definition->parent.address, header, &parent))
			return false;
		definition = names_search_known(search, &parent);
	}
	if (!definition || definition->fate != DEFINITION_NAMED ||
	    strlen(definition->name) + depth * strlen(suffix) >= STATE_NAME_MAX)
		return false;
	strcpy(ret_name, definition->name);
	while (depth--)
		strcat(ret_name, suffix);
	return true;
}

/* ---- Functions -------------------------------------------------------------------------- */

/* @return whether the prototype is still the same function's. */
static bool take_name(const struct names_search *search, struct state_proto *proto,
		      const char *name, uint8_t rank)
{
	if (!state_is_same_proto(search->state, search->layout, search->reader, proto->address))
		return false;
	if (!name[0])
		return true;
	proto->name_rank = rank;
	if (proto->function.name && strcmp(proto->name, name) == 0)
		return true;
	snprintf(proto->name, sizeof(proto->name), "%s", name);
	proto->function.name = proto->name;
	proto->function.name_serial++;
	return true;
}

static void take_definition(const struct names_search *search, struct state_proto *proto,
			    const struct state_definition *definition)
{
	char name[STATE_NAME_MAX] = "";

	if (definition->fate == DEFINITION_NAMED)
		strcpy(name, definition->name);
	else if (definition->fate == DEFINITION_RETURNED)
		name_returned(search, definition, name);
	if (take_name(search, proto, name, STATE_NAMED_BY_DEFINITION))
		proto->definition = STATE_DEFINITION_FOUND;
}

/* Search for the holder of a function whose parent is unknown. On the way, note parents. */
static const struct state_definition *ask_holders(const struct names_search *search,
						  struct state_proto *proto,
						  const struct names_wanted *wanted)
{
	struct luastate *state = search->state;
	const char *held = names_held_as(state, wanted);
	const struct state_definition *found;
	uint64_t begin_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);

	if (!held && state->held_sample != state->serial) {
		int64_t left_ns = state->read_time.left_ns;

		state->held_sample = state->serial;
		state->held_is_sure = names_search_holders(search, begin_ns + HOLDERS_NS);
		/* Includes the time to read parents during the search. */
		state->read_time.left_ns = left_ns;
		names_spend(&state->read_time, clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns);
		held = names_held_as(state, wanted);
	}
	found = search_index(search, wanted);
	/* There may have been no time to read its known parent. A holder's name would then
	 * replace the function's own. */
	if (!found && !names_may_read(search))
		return NULL;
	if (!found && !held && !state->held_is_sure && ++proto->holders_tries < HOLDERS_TRIES)
		return NULL;
	proto->is_asked = true;
	if (!found && held)
		take_name(search, proto, held, STATE_NAMED_BY_HOLDER);
	return found;
}

/* Walk all objects to find the parent. */
static const struct state_definition *walk_for(const struct names_search *search,
					       struct state_proto *proto,
					       const struct names_wanted *wanted)
{
	const struct luastate *state = search->state;
	const struct state_definition *found;
	bool saw_all;

	if (!parents_were_walked(search))
		parents_walk(search);
	found = search_index(search, wanted);
	if (!found && !names_may_read(search))
		return NULL;
	proto->parents_tries++;
	/* One that the collector coloured meanwhile may be its parent. */
	saw_all = state->parents_whole && state->candidates_left &&
		  state->unsure_serial != state->parents_serial;
	proto->is_orphan = !found && (saw_all || proto->parents_tries >= TRIES);
	return found;
}

/* Try each method once there is time for it. A parent that was not found is searched for again
 * only with a new index. */
static void define(const struct names_search *search, struct state_proto *proto)
{
	const struct names_wanted wanted = { .address = proto->address,
					     .chunkname = proto->chunkname,
					     .firstline = proto->firstline,
					     .numline = proto->numline,
					     .sizebc = proto->sizebc,
					     .name_hash = proto->identity.name_hash,
					     .name_len = proto->identity.name_len };
	struct luastate *state = search->state;
	const struct state_definition *found;
	bool may_read = !search->walks || names_may_spend(&state->read_time);
	bool asks = search->asks_holders && !proto->is_asked && may_read;
	bool walks = search->walks && !proto->is_orphan &&
		     (names_may_spend(&state->walk_time) || parents_were_walked(search));

	if (search->walks && !asks && !walks && state->parents_serial &&
	    proto->parents_serial == state->parents_serial)
		return;
	found = names_search_known(search, &wanted);
	/* In a large VM a walk along all objects takes longer than a search for holders. */
	if (!found && asks && search->walks &&
	    state_heap_bytes(search->layout, search->reader, search->G) > LARGE_BYTES)
		found = ask_holders(search, proto, &wanted);
	if (!found && walks && !proto->name_rank)
		found = walk_for(search, proto, &wanted);
	/* While the parent may be there, a holder's name could replace the function's own: no
	 * second search then. */
	if (!found && asks && names_may_read(search) && !proto->is_asked &&
	    (!search->walks || (proto->holders_tries ? proto->is_orphan : proto->parents_tries)))
		found = ask_holders(search, proto, &wanted);
	/* A search without enough time shows nothing. */
	if (!found && !names_may_read(search))
		return;
	if (found)
		take_definition(search, proto, found);
	else if (proto->name_rank || (proto->is_orphan && proto->is_asked))
		proto->definition = STATE_DEFINITION_GONE;
	proto->parents_serial = state->parents_serial;
}

/* Name the function in the VM of the frame's coroutine. */
static void define_frame(struct names_search *search, const struct luastate_memory *memory,
			 const struct luastate_frame *frame, struct state_proto *proto)
{
	struct failure why;
	const struct luastate_vm *vm =
		state_sample_vm_of(search->state, memory->any, frame->coroutine, &why);

	if (!vm)
		return;
	search->layout = vm->layout;
	search->G = vm->G;
	define(search, proto);
}

void state_define_frames(struct luastate *state, const struct luastate_memory *memory,
			 const struct luastate_frame *frames, size_t count)
{
	const struct attach_reader *now = memory->live	  ? memory->live
					  : memory->later ? memory->later
							  : memory->any;
	struct present_reader present;
	struct names_search search = {
		.state = state,
		.reader = memory->is_kept ? memory->any : present_reader_init(&present, state, now),
		.frames = frames,
		.frame_count = count,
		.stopped = memory->stopped,
		.walks = !memory->is_kept,
		.asks_holders = !memory->is_kept,
	};
	const struct state_proto *last = NULL;

	if (!search.walks)
		search.end_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) + READ_NS;
	for (size_t i = 0; i < count; i++) {
		struct state_proto *proto = state_proto_of(frames[i].function);

		if (proto && proto != last && proto->definition == STATE_DEFINITION_UNKNOWN)
			define_frame(&search, memory, &frames[i], proto);
		last = proto;
	}
}

static struct names_search search_of(const struct state_view *view)
{
	return (struct names_search){ .state = view->state,
				      .layout = view->layout,
				      .reader = view->memory->any,
				      .G = view->G,
				      .end_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) + READ_NS };
}

void state_read_parent(const struct state_view *view, uint64_t address)
{
	const struct names_search search = search_of(view);

	read_parent(&search, address, 0);
}

bool state_define_proto(const struct state_view *view, struct state_proto *proto, bool may_read)
{
	struct names_search search = search_of(view);

	search.asks_holders = true;
	if (!may_read)
		search.end_ns = 0;
	if (proto->definition == STATE_DEFINITION_UNKNOWN)
		define(&search, proto);
	return proto->definition == STATE_DEFINITION_FOUND;
}

/* ---- Lifetime --------------------------------------------------------------------------- */

void state_begin_definitions(struct luastate *state)
{
	parents_begin_sample(state);
	if (state->thorough)
		state_forget_definitions(state);
}

void state_forget_definitions(struct luastate *state)
{
	struct state_definition *item, *next;
	struct state_proto *proto;

	HASH_ITER(hh, state->definitions, item, next)
	{
		HASH_DEL(state->definitions, item);
		free(item);
	}
	parents_forget_read(state);
	for (proto = state->protos; proto; proto = proto->hh.next)
		proto->is_read = false;
}

void state_free_definitions(struct luastate *state)
{
	state_forget_definitions(state);
	names_forget_held(state);
	parents_free(state);
	present_free(state);
}
