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
#include <stdlib.h>

#include "luastate/definition.h"
#include "luastate/heap_list.h"

enum {
	PARENTS_MAX = 1 << 17,
	DEFINITIONS_MAX = 1 << 17,
	/* Of one walk, by the thread's own clock, as waiting for a processor does not count: some
	 * million objects. Also what may be saved up for walks, of each second so much. */
	WALK_NS = 100 * 1000 * 1000,
	SHARE = 50,
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

/** A function by its parent. */
struct state_definition {
	uint64_t address, parent, chunkname;
	int64_t firstline;
	uint32_t numline, sizebc;
	uint8_t fate; /* enum definition_fate */
	char name[STATE_NAME_MAX];
	UT_hash_handle hh;
};

/** What tells which function is looked for. */
struct wanted {
	uint64_t address, chunkname;
	int64_t firstline;
	uint32_t numline, sizebc;
};

/** Where it is looked for. */
struct search {
	struct luastate *state;
	const struct luastate_layout *layout;
	const struct attach_reader *reader; /* the process as it is now */
	uint64_t G;
	const struct luastate_frame *frames; /* that may be of parents */
	size_t frame_count;
	bool walks; /* the list of objects may be walked */
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct wanted wanted_of(const struct luastate_layout *layout, uint64_t address,
			       const uint8_t *header)
{
	return (struct wanted){
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
		      const struct wanted *wanted)
{
	return chunkname == wanted->chunkname && firstline <= wanted->firstline &&
	       lastline >= wanted->firstline + wanted->numline;
}

static bool read_header(const struct search *search, uint64_t address, uint8_t *ret_header)
{
	const struct luastate_layout *layout = search->layout;
	struct failure why;

	return state_read_object(layout, search->reader, address, state_gct(layout->tag_proto),
				 ret_header, (size_t)layout->GCproto_sizeof, &why) == 0;
}

/* ---- What a parent makes ---------------------------------------------------------------- */

/** Definitions of one parent, kept apart until it is seen to be the same still. */
struct batch {
	const struct search *search;
	struct wanted parent;
	struct state_definition **items;
	size_t count, room;
};

static void add_definition(void *context, const struct definition *definition)
{
	struct batch *batch = context;
	struct state_definition *item, **items;
	uint8_t header[STATE_OBJECT_MAX];
	struct wanted child;

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
	item = calloc(1, sizeof(*item));
	if (!item)
		return;
	item->address = child.address;
	item->parent = batch->parent.address;
	item->chunkname = child.chunkname;
	item->firstline = child.firstline;
	item->numline = child.numline;
	item->sizebc = child.sizebc;
	item->fate = (uint8_t)definition->fate;
	if (definition->fate == DEFINITION_NAMED)
		strncpy(item->name, definition->name, sizeof(item->name) - 1);
	batch->items[batch->count++] = item;
}

static void keep_definition(struct luastate *state, struct state_definition *item)
{
	struct state_definition *old;

	HASH_FIND(hh, state->definitions, &item->address, sizeof(item->address), old);
	if (old) {
		HASH_DEL(state->definitions, old);
		free(old);
	}
	HASH_ADD(hh, state->definitions, address, sizeof(item->address), item);
}

static bool is_same_wanted(const struct wanted *a, const struct wanted *b)
{
	return a->address == b->address && a->chunkname == b->chunkname &&
	       a->firstline == b->firstline && a->numline == b->numline && a->sizebc == b->sizebc;
}

/* Note what all functions are called that a prototype makes. */
static void read_parent(const struct search *search, uint64_t address)
{
	struct batch batch = { .search = search };
	uint8_t header[STATE_OBJECT_MAX];
	struct wanted after;
	struct failure why;

	if (HASH_COUNT(search->state->definitions) > DEFINITIONS_MAX)
		state_forget_definitions(search->state);
	if (!read_header(search, address, header))
		return;
	batch.parent = wanted_of(search->layout, address, header);
	definition_visit(search->layout, search->reader, address, add_definition, &batch, &why);
	if (!read_header(search, address, header))
		memset(header, 0, sizeof(header));
	after = wanted_of(search->layout, address, header);
	for (size_t i = 0; i < batch.count; i++) {
		if (is_same_wanted(&batch.parent, &after))
			keep_definition(search->state, batch.items[i]);
		else
			free(batch.items[i]);
	}
	free(batch.items);
}

static const struct state_definition *find_definition(const struct luastate *state,
						      const struct wanted *wanted)
{
	struct state_definition *item;

	HASH_FIND(hh, state->definitions, &wanted->address, sizeof(wanted->address), item);
	if (!item || item->chunkname != wanted->chunkname || item->firstline != wanted->firstline ||
	    item->numline != wanted->numline || item->sizebc != wanted->sizebc)
		return NULL;
	return item;
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
	struct wanted what;

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

	return now_ns(CLOCK_THREAD_CPUTIME_ID) >= walk->end_ns;
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
	uint64_t time_ns = now_ns(CLOCK_MONOTONIC);

	state->parents_left_ns += (time_ns - state->parents_now_ns) / SHARE;
	if (state->parents_left_ns > WALK_NS)
		state->parents_left_ns = WALK_NS;
	state->parents_now_ns = time_ns;
	return state->parents_left_ns >= state->parents_cost_ns;
}

/* Make the index anew. */
static void walk_heap(const struct search *search)
{
	struct luastate *state = search->state;
	uint64_t begin_ns = now_ns(CLOCK_THREAD_CPUTIME_ID), cost_ns;
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
	cost_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
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

static const struct state_definition *search_stack(const struct search *search,
						   const struct wanted *wanted)
{
	const struct state_definition *found = find_definition(search->state, wanted);

	for (size_t i = 0; i < search->frame_count && !found; i++) {
		struct state_proto *proto = proto_of(&search->frames[i]);

		if (!proto || proto->is_read || proto->address == wanted->address ||
		    !surrounds(proto->chunkname, proto->firstline,
			       proto->firstline + proto->numline, wanted))
			continue;
		proto->is_read = true;
		read_parent(search, proto->address);
		found = find_definition(search->state, wanted);
	}
	return found;
}

static const struct state_definition *search_index(const struct search *search,
						   const struct wanted *wanted)
{
	struct luastate *state = search->state;
	const struct state_definition *found = find_definition(state, wanted);
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
		read_parent(search, parent->address);
		found = find_definition(state, wanted);
	}
	return found;
}

/* By what is known. */
static const struct state_definition *search_known(const struct search *search,
						   const struct wanted *wanted)
{
	const struct state_definition *found = search_stack(search, wanted);

	return found ? found : search_index(search, wanted);
}

/* What a function is called that its parent returns: by the parent's own name. */
static bool name_returned(const struct search *search, const struct state_definition *definition,
			  char *ret_name)
{
	static const char suffix[] = ".return";
	unsigned depth = 0;

	while (definition && definition->fate == DEFINITION_RETURNED && depth++ < RETURNED_MAX) {
		uint8_t header[STATE_OBJECT_MAX];
		struct wanted parent;

		if (!read_header(search, definition->parent, header))
			return false;
		parent = wanted_of(search->layout, definition->parent, header);
		definition = search_known(search, &parent);
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

static void take_definition(const struct search *search, struct state_proto *proto,
			    const struct state_definition *definition)
{
	char name[STATE_NAME_MAX] = "";

	if (definition->fate == DEFINITION_NAMED)
		strcpy(name, definition->name);
	else if (definition->fate == DEFINITION_RETURNED)
		name_returned(search, definition, name);
	if (!state_is_same_proto(search->state, search->layout, search->reader, proto->address))
		return;
	proto->definition = STATE_DEFINITION_FOUND;
	if (!name[0])
		return;
	proto->name_rank = STATE_NAMED_BY_DEFINITION;
	if (proto->function.name && strcmp(proto->name, name) == 0)
		return;
	memcpy(proto->name, name, sizeof(name));
	proto->function.name = proto->name;
	proto->function.name_serial++;
}

/* Whether the index was made in this sample: it has all that the sample shows. */
static bool was_walked(const struct search *search)
{
	const struct luastate *state = search->state;

	return state->parents_serial && state->parents_sample == state->serial &&
	       state->parents_G == search->G;
}

static void define(const struct search *search, struct state_proto *proto)
{
	const struct wanted wanted = { .address = proto->address,
				       .chunkname = proto->chunkname,
				       .firstline = proto->firstline,
				       .numline = proto->numline,
				       .sizebc = proto->sizebc };
	struct luastate *state = search->state;
	const struct state_definition *found;
	bool walks = search->walks && may_walk(state);

	/* What was looked for in vain is not found before the index is made anew. */
	if (search->walks && !walks && proto->parents_serial == state->parents_serial &&
	    state->parents_serial)
		return;
	found = search_known(search, &wanted);
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
	proto->parents_serial = state->parents_serial;
}

void state_define_frames(struct luastate *state, const struct luastate_memory *memory,
			 const struct luastate_layout *layout, uint64_t G,
			 const struct luastate_frame *frames, size_t count, size_t first)
{
	struct search search = {
		.state = state,
		.layout = layout,
		.reader = memory->live	  ? memory->live
			  : memory->later ? memory->later
					  : memory->any,
		.G = G,
		.frames = frames,
		.frame_count = count,
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
	const struct search search = { .state = state, .layout = layout, .reader = reader };

	read_parent(&search, address);
}

bool state_define_proto(struct luastate *state, const struct luastate_layout *layout,
			const struct attach_reader *reader, uint64_t G, struct state_proto *proto)
{
	const struct search search = { .state = state, .layout = layout, .reader = reader, .G = G };

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
	struct state_definition *item, *next;
	struct state_proto *proto;

	HASH_ITER(hh, state->definitions, item, next)
	{
		HASH_DEL(state->definitions, item);
		free(item);
	}
	for (size_t i = 0; i < state->parent_count; i++)
		state->parents[i].is_read = false;
	for (proto = state->protos; proto; proto = proto->hh.next)
		proto->is_read = false;
}

void state_free_definitions(struct luastate *state)
{
	state_forget_definitions(state);
	free(state->parents);
	state->parents = NULL;
	state->parent_count = state->parent_room = 0;
	state->parents_left_ns = state->parents_now_ns = state->parents_cost_ns = 0;
}
