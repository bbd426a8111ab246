/* SPDX-License-Identifier: MIT */
/*
 * Names of functions by their definitions, which stand in the bytecode of the function that makes
 * them, the parent. A prototype does not refer to its parent, so that is looked for: on the stack,
 * where the parent runs, too, and then among all prototypes of the VM, for which the list of all
 * objects is walked. Of these the index keeps who may be a parent of whom: the same chunk, and the
 * lines. A parent whose constants have the function is asked for the names of all that it makes.
 *
 * The process runs meanwhile, so what was read may be another's: a name is believed where parent
 * and child are the same after reading.
 *
 * Walks cost processor time, so they are few: one when the first function is met whose parent does
 * not run, others when there are functions that were not known at the last one. There is some time
 * for them at the beginning, so that short recordings have names, and later a small part of what
 * goes by.
 *
 * Source: LuaJIT v2.1 src/lj_obj.h (GCproto), src/lj_parse.c (fs_finish, parse_body).
 */
#include <stdio.h>
#include <stdlib.h>

#include "luastate/definition_names.h"
#include "luastate/heap_list.h"

enum {
	PARENTS_MAX = 1 << 17,
	DEFINITIONS_MAX = 1 << 17,
	/* Of one walk, by the thread's own clock, as waiting for a processor does not count: some
	 * million objects. Also what may be saved up for walks, of each second so much. */
	WALK_NS = 100 * 1000 * 1000,
	SHARE = 50,
	/* Of one search for who holds functions: some ten thousand reads. */
	HOLDERS_NS = 20 * 1000 * 1000,
	/* Walks that came to no end, behind which a function's parent is given up. */
	TRIES = 3,
	/* Parents whose constants are looked through, in one sample: many only where chunks have
	 * no lines, so that each one may be it. */
	CANDIDATES = 4096,
	/* Functions that return functions that return functions. */
	RETURNED_MAX = 4,
	/* GCproto.flags, PROTO_CHILD: it makes functions. */
	FLAG_CHILD = 0x01,
};

/** A prototype that makes functions. */
struct state_parent {
	uint64_t G, address, chunkname;
	int64_t firstline, lastline;
	bool is_read; /* what it makes is known */
};

uint64_t names_now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct names_wanted wanted_of(const struct luastate_layout *layout, uint64_t address,
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

/* Whether a prototype may have made the function: its lines lie around it. Without lines, all are
 * 0. */
static bool surrounds(uint64_t chunkname, int64_t firstline, int64_t lastline,
		      const struct names_wanted *wanted)
{
	return chunkname == wanted->chunkname && firstline <= wanted->firstline &&
	       lastline >= wanted->firstline + wanted->numline;
}

static bool read_header(const struct names_search *search, uint64_t address, uint8_t *ret_header)
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

	if (!read_header(search, address, ret_header))
		return false;
	proto = wanted_of(layout, address, ret_header);
	if (state_read_object(layout, search->reader, proto.chunkname, state_gct(layout->tag_str),
			      name, (size_t)layout->GCstr_sizeof, &why) != 0)
		return false;
	proto.name_hash = state_u32(name, layout->GCstr_hash);
	proto.name_len = state_u32(name, layout->GCstr_len);
	*ret_proto = proto;
	return true;
}

/* ---- What a parent makes ---------------------------------------------------------------- */

/** Definitions of one parent, kept apart until it is seen to be the same still. */
struct batch {
	const struct names_search *search;
	struct names_wanted parent;
	struct state_definition **items;
	size_t count, room;
};

static void add_definition(void *context, const struct definition *definition)
{
	struct batch *batch = context;
	struct state_definition *item, **items;
	uint8_t header[STATE_OBJECT_MAX];
	struct names_wanted child;

	if (batch->count >= DEFINITIONS_MAX ||
	    !read_header(batch->search, definition->child, header))
		return;
	child = wanted_of(batch->search->layout, definition->child, header);
	if (!surrounds(batch->parent.chunkname, batch->parent.firstline,
		       batch->parent.firstline + batch->parent.numline, &child))
		return;
	if (batch->count == batch->room) {
		batch->room = batch->room ? 2 * batch->room : 16;
		items = reallocarray(batch->items, batch->room, sizeof(struct state_definition *));
		if (!items) {
			batch->room = batch->count;
			return;
		}
		batch->items = items;
	}
	child.name_hash = batch->parent.name_hash;
	child.name_len = batch->parent.name_len;
	item = names_create(&child);
	if (!item)
		return;
	item->parent = batch->parent.address;
	item->sample = batch->search->state->serial;
	item->fate = (uint8_t)definition->fate;
	if (definition->fate == DEFINITION_NAMED)
		strncpy(item->name, definition->name, sizeof(item->name) - 1);
	batch->items[batch->count++] = item;
}

struct state_definition *names_create(const struct names_wanted *wanted)
{
	struct state_definition *item = calloc(1, sizeof(*item));

	if (!item)
		return NULL;
	item->address = wanted->address;
	item->chunkname = wanted->chunkname;
	item->firstline = wanted->firstline;
	item->numline = wanted->numline;
	item->sizebc = wanted->sizebc;
	item->name_hash = wanted->name_hash;
	item->name_len = wanted->name_len;
	return item;
}

void names_keep(struct state_definition **table, struct state_definition *item)
{
	struct state_definition *old;

	HASH_FIND(hh, *table, &item->address, sizeof(item->address), old);
	if (old) {
		HASH_DEL(*table, old);
		free(old);
	}
	HASH_ADD(hh, *table, address, sizeof(item->address), item);
}

const struct state_definition *names_find(const struct state_definition *table,
					  const struct names_wanted *wanted)
{
	struct state_definition *item;

	HASH_FIND(hh, table, &wanted->address, sizeof(wanted->address), item);
	if (!item || item->chunkname != wanted->chunkname || item->firstline != wanted->firstline ||
	    item->numline != wanted->numline || item->sizebc != wanted->sizebc ||
	    item->name_hash != wanted->name_hash || item->name_len != wanted->name_len)
		return NULL;
	return item;
}

void names_clear(struct state_definition **table)
{
	struct state_definition *item, *next;

	HASH_ITER(hh, *table, item, next)
	{
		HASH_DEL(*table, item);
		free(item);
	}
}

static bool is_same_proto(const struct names_wanted *a, const struct names_wanted *b)
{
	return a->address == b->address && a->chunkname == b->chunkname &&
	       a->firstline == b->firstline && a->numline == b->numline && a->sizebc == b->sizebc &&
	       a->name_hash == b->name_hash && a->name_len == b->name_len;
}

/* Note what the functions are called that a prototype makes. @param only One of them, or 0. */
static void read_parent(const struct names_search *search, uint64_t address, uint64_t only)
{
	struct batch batch = { .search = search };
	uint8_t header[STATE_OBJECT_MAX];
	struct names_wanted after;
	struct failure why;
	bool same;

	if (HASH_COUNT(search->state->definitions) > DEFINITIONS_MAX)
		state_forget_definitions(search->state);
	if (!names_read_proto(search, address, header, &batch.parent))
		return;
	definition_visit(search->layout, search->reader, address, only, add_definition, &batch,
			 &why);
	same = names_read_proto(search, address, header, &after) &&
	       is_same_proto(&batch.parent, &after);
	for (size_t i = 0; i < batch.count; i++) {
		if (same)
			names_keep(&search->state->definitions, batch.items[i]);
		else
			free(batch.items[i]);
	}
	free(batch.items);
}

/* Other texts may be where the names were that were read for an earlier sample: then the parent is
 * asked again. */
static const struct state_definition *find_definition(const struct names_search *search,
						      const struct names_wanted *wanted)
{
	struct luastate *state = search->state;
	struct state_definition *item;
	uint64_t parent;

	HASH_FIND(hh, state->definitions, &wanted->address, sizeof(wanted->address), item);
	if (!item || item->sample == state->serial)
		return names_find(state->definitions, wanted);
	parent = item->parent;
	HASH_DEL(state->definitions, item);
	free(item);
	read_parent(search, parent, wanted->address);
	return names_find(state->definitions, wanted);
}

/* ---- All prototypes --------------------------------------------------------------------- */

/** A walk along the list of objects. */
struct walk_of_parents {
	struct heap_list list;
	struct luastate *state;
	uint64_t end_ns; /* of the thread's own time */
};

static void note_parent(void *context, uint64_t address, uint8_t gct)
{
	struct walk_of_parents *walk = context;
	const struct luastate_layout *layout = walk->list.layout;
	struct luastate *state = walk->state;
	uint8_t header[STATE_OBJECT_MAX];
	struct state_parent *parents = state->parents;
	struct names_wanted what;

	if (gct != state_gct(layout->tag_proto) ||
	    !heap_list_read(&walk->list, address, header, (size_t)layout->GCproto_sizeof) ||
	    !(header[layout->GCproto_flags] & FLAG_CHILD) || state->parent_count == PARENTS_MAX)
		return;
	if (state->parent_count == state->parent_room) {
		size_t room = state->parent_room ? 2 * state->parent_room : 256;

		parents = reallocarray(parents, room, sizeof(*parents));
		if (!parents)
			return;
		state->parents = parents;
		state->parent_room = room;
	}
	what = wanted_of(layout, address, header);
	parents[state->parent_count++] =
		(struct state_parent){ .G = walk->list.G,
				       .address = address,
				       .chunkname = what.chunkname,
				       .firstline = what.firstline,
				       .lastline = what.firstline + what.numline };
}

static bool is_over(void *context)
{
	const struct walk_of_parents *walk = context;

	return names_now_ns(CLOCK_THREAD_CPUTIME_ID) >= walk->end_ns;
}

static int compare(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/* By chunk, then the innermost first. */
static int by_place(const void *a, const void *b)
{
	const struct state_parent *x = a, *y = b;
	int order = (x->chunkname > y->chunkname) - (x->chunkname < y->chunkname);

	if (!order)
		order = compare(y->firstline, x->firstline);
	if (!order)
		order = compare(x->lastline, y->lastline);
	return order ? order : (x->address > y->address) - (x->address < y->address);
}

/* Several walks meet most prototypes several times. */
static void sort_parents(struct luastate *state)
{
	struct state_parent *parents = state->parents;
	size_t kept = 0;

	if (state->parent_count)
		qsort(parents, state->parent_count, sizeof(*parents), by_place);
	for (size_t i = 0; i < state->parent_count; i++)
		if (kept == 0 || parents[kept - 1].address != parents[i].address)
			parents[kept++] = parents[i];
	state->parent_count = kept;
}

static void forget_parents_of(struct luastate *state, uint64_t G)
{
	size_t kept = 0;

	for (size_t i = 0; i < state->parent_count; i++)
		if (state->parents[i].G != G)
			state->parents[kept++] = state->parents[i];
	state->parent_count = kept;
}

/* Whether there is time for a walk as long as the last one. */
static bool may_walk(struct luastate *state)
{
	uint64_t time_ns = names_now_ns(CLOCK_MONOTONIC);

	state->parents_left_ns += (time_ns - state->parents_now_ns) / SHARE;
	if (state->parents_left_ns > WALK_NS)
		state->parents_left_ns = WALK_NS;
	state->parents_now_ns = time_ns;
	return state->parents_left_ns >= state->parents_cost_ns;
}

static void spend(struct luastate *state, uint64_t cost_ns)
{
	state->parents_left_ns -=
		cost_ns < state->parents_left_ns ? cost_ns : state->parents_left_ns;
}

/* Make the index anew. */
static void walk_heap(const struct names_search *search)
{
	struct luastate *state = search->state;
	uint64_t begin_ns = names_now_ns(CLOCK_THREAD_CPUTIME_ID), cost_ns;
	struct walk_of_parents walk = { .state = state, .end_ns = begin_ns + WALK_NS };

	walk.list = (struct heap_list){ .layout = search->layout,
					.reader = search->reader,
					.G = search->G,
					.is_over = is_over,
					.visit = note_parent,
					.context = &walk };
	forget_parents_of(state, search->G);
	state->parents_whole = heap_list_walk(&walk.list);
	state->parents_serial++;
	state->parents_sample = state->serial;
	state->parents_G = search->G;
	sort_parents(state);
	cost_ns = names_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
	state->parents_cost_ns = cost_ns < WALK_NS ? cost_ns : WALK_NS;
	state->parents_left_ns -=
		cost_ns < state->parents_left_ns ? cost_ns : state->parents_left_ns;
}

/* ---- The parent ------------------------------------------------------------------------- */

static struct state_proto *proto_of(const struct luastate_frame *frame)
{
	return frame->function->kind == LUASTATE_LUA
		       ? (struct state_proto *)((char *)frame->function -
						offsetof(struct state_proto, function))
		       : NULL;
}

static const struct state_definition *search_stack(const struct names_search *search,
						   const struct names_wanted *wanted)
{
	const struct state_definition *found = find_definition(search, wanted);

	for (size_t i = 0; i < search->frame_count && !found; i++) {
		struct state_proto *proto = proto_of(&search->frames[i]);

		if (!proto || proto->is_read || proto->address == wanted->address ||
		    !surrounds(proto->chunkname, proto->firstline,
			       proto->firstline + proto->numline, wanted))
			continue;
		proto->is_read = true;
		read_parent(search, proto->address, 0);
		found = find_definition(search, wanted);
	}
	return found;
}

static const struct state_definition *search_index(const struct names_search *search,
						   const struct names_wanted *wanted)
{
	struct luastate *state = search->state;
	const struct state_definition *found = find_definition(search, wanted);
	uint8_t header[STATE_OBJECT_MAX];
	size_t low = 0, high = state->parent_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (state->parents[middle].chunkname < wanted->chunkname)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < state->parent_count && !found && state->candidates_left; low++) {
		struct state_parent *parent = &state->parents[low];

		if (parent->chunkname != wanted->chunkname)
			break;
		if (parent->is_read || parent->G != search->G ||
		    !surrounds(parent->chunkname, parent->firstline, parent->lastline, wanted))
			continue;
		state->candidates_left--;
		if (!read_header(search, parent->address, header) ||
		    !definition_refers(search->layout, search->reader, header, wanted->address))
			continue;
		parent->is_read = true;
		read_parent(search, parent->address, 0);
		found = find_definition(search, wanted);
	}
	return found;
}

/* By what is known. */
const struct state_definition *names_search_known(const struct names_search *search,
						  const struct names_wanted *wanted)
{
	const struct state_definition *found = search_stack(search, wanted);

	return found ? found : search_index(search, wanted);
}

/* What a function is called that its parent returns: by the parent's own name. */
static bool name_returned(const struct names_search *search,
			  const struct state_definition *definition, char *ret_name)
{
	static const char suffix[] = ".return";
	unsigned depth = 0;

	while (definition && definition->fate == DEFINITION_RETURNED && depth++ < RETURNED_MAX) {
		uint8_t header[STATE_OBJECT_MAX];
		struct names_wanted parent;

		if (!names_read_proto(search, definition->parent, header, &parent))
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

/* @return whether the function is the one that was looked for still. */
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

/* Of a function whose parent is gone, or was not found so far. */
static void take_held(const struct names_search *search, struct state_proto *proto,
		      const struct names_wanted *wanted, bool walks)
{
	struct luastate *state = search->state;
	const struct state_definition *held = names_find(state->held, wanted);
	uint64_t begin_ns = names_now_ns(CLOCK_THREAD_CPUTIME_ID);

	if (!held && walks && state->held_sample != state->serial) {
		state->held_sample = state->serial;
		names_search_holders(search, begin_ns + HOLDERS_NS);
		spend(state, names_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns);
		held = names_find(state->held, wanted);
	}
	if (held)
		take_name(search, proto, held->name, STATE_NAMED_BY_HOLDER);
}

/* Whether the index was made in this sample: it has all that the sample shows. */
static bool was_walked(const struct names_search *search)
{
	const struct luastate *state = search->state;

	return state->parents_serial && state->parents_sample == state->serial &&
	       state->parents_G == search->G;
}

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
	bool walks = search->walks && may_walk(state);

	/* What was looked for in vain is not found before the index is made anew. */
	if (search->walks && !walks && proto->parents_serial == state->parents_serial &&
	    state->parents_serial)
		return;
	found = names_search_known(search, &wanted);
	if (!found && search->walks && (walks || was_walked(search))) {
		if (!was_walked(search))
			walk_heap(search);
		found = search_index(search, &wanted);
		proto->parents_tries++;
		if ((state->parents_whole && state->candidates_left) ||
		    proto->parents_tries >= TRIES)
			proto->definition = STATE_DEFINITION_GONE;
	}
	if (found)
		take_definition(search, proto, found);
	else if (!proto->name_rank && (!search->walks || proto->parents_tries))
		take_held(search, proto, &wanted, walks || !search->walks);
	proto->parents_serial = state->parents_serial;
}

void state_define_frames(struct luastate *state, const struct luastate_memory *memory,
			 const struct luastate_layout *layout, uint64_t G,
			 const struct luastate_frame *frames, size_t count, size_t first)
{
	struct names_search search = {
		.state = state,
		.layout = layout,
		.reader = memory->live	  ? memory->live
			  : memory->later ? memory->later
					  : memory->any,
		.G = G,
		.frames = frames,
		.frame_count = count,
		.stopped = memory->stopped,
		.walks = true,
	};
	const struct state_proto *last = NULL;

	for (size_t i = first; i < count; i++) {
		struct state_proto *proto = proto_of(&frames[i]);

		if (!proto || proto == last)
			continue;
		last = proto;
		if (proto->definition == STATE_DEFINITION_UNKNOWN)
			define(&search, proto);
	}
}

void state_read_parent(struct luastate *state, const struct luastate_layout *layout,
		       const struct attach_reader *reader, uint64_t address)
{
	const struct names_search search = { .state = state, .layout = layout, .reader = reader };

	read_parent(&search, address, 0);
}

bool state_define_proto(struct luastate *state, const struct luastate_layout *layout,
			const struct attach_reader *reader, uint64_t G, struct state_proto *proto)
{
	const struct names_search search = {
		.state = state, .layout = layout, .reader = reader, .G = G
	};

	if (proto->definition == STATE_DEFINITION_UNKNOWN)
		define(&search, proto);
	return proto->definition == STATE_DEFINITION_FOUND;
}

/* ---- Lifetime --------------------------------------------------------------------------- */

void state_begin_definitions(struct luastate *state)
{
	state->candidates_left = CANDIDATES;
	if (state->thorough)
		state_forget_definitions(state);
}

void state_forget_definitions(struct luastate *state)
{
	struct state_proto *proto;

	names_clear(&state->definitions);
	for (size_t i = 0; i < state->parent_count; i++)
		state->parents[i].is_read = false;
	for (proto = state->protos; proto; proto = proto->hh.next)
		proto->is_read = false;
}

void state_free_definitions(struct luastate *state)
{
	state_forget_definitions(state);
	names_clear(&state->held);
	free(state->parents);
	state->parents = NULL;
	state->parent_count = state->parent_room = 0;
	state->parents_left_ns = state->parents_now_ns = state->parents_cost_ns = 0;
}
