/* SPDX-License-Identifier: MIT */
/*
 * Which prototype may have created a function?
 *
 * The index has the prototypes of a VM that create functions, by chunk and lines. A walk along the
 * list of all objects fills it.
 *
 * Walks cost processor time, so there are few. The first takes place when a sample meets a function
 * whose parent does not run. Others follow when a sample meets functions that the last walk did
 * not. A budget allows some time at the beginning, so that short recordings have names, and later a
 * small share of the elapsed time.
 *
 * Source: LuaJIT v2.1 src/lj_obj.h (GCproto, PROTO_CHILD).
 */
#include "luastate/definition/parents.h"

#include <stdlib.h>

#include "attach/array.h"
#include "attach/clock.h"
#include "luastate/definition/definition.h"
#include "luastate/function/proto.h"
#include "luastate/state/heap_list.h"

enum {
	PARENTS_MAX = 1 << 17,
	/* Limit of one walk: some million objects. It is processor time of the thread, because
	 * time spent waiting for a processor does not count. Also the maximum to save up, at one
	 * part in SHARE of the elapsed time. */
	WALK_NS = 100 * 1000 * 1000,
	SHARE = 50,
	/* Limit on parents to check in one sample, and on reads of their constants. Many are
	 * needed only if chunks have no lines, because each prototype may then be the parent. */
	CANDIDATES = 4096,
};

/** A prototype that creates functions. */
struct state_parent {
	uint64_t G, address, chunkname;
	int64_t firstline, lastline;
	uint32_t name_hash, name_len; /* of the chunk's name */
	bool is_read;		      /* its definitions are known */
};

/* ---- Processor time --------------------------------------------------------------------- */

bool names_may_spend(struct state_budget *budget)
{
	return budget_allows(budget, WALK_NS, SHARE);
}

void names_spend(struct state_budget *budget, uint64_t cost_ns)
{
	budget_charge(budget, cost_ns);
	budget->cost_ns = cost_ns < WALK_NS ? cost_ns : WALK_NS;
}

/* ---- The index -------------------------------------------------------------------------- */

/** A walk along the list of objects. */
struct walk_of_parents {
	struct heap_list list;
	struct luastate *state;
	uint64_t end_ns; /* processor time of the thread */
};

void parents_add(struct luastate *state, uint64_t G, const struct names_wanted *parent)
{
	if (state->parent_count == PARENTS_MAX ||
	    !ARRAY_RESERVE(state->parents, state->parent_room, state->parent_count + 1))
		return;
	state->parents[state->parent_count++] =
		(struct state_parent){ .G = G,
				       .address = parent->address,
				       .chunkname = parent->chunkname,
				       .name_hash = parent->name_hash,
				       .name_len = parent->name_len,
				       .firstline = parent->firstline,
				       .lastline = parent->firstline + parent->numline };
}

bool parents_is_one(const struct luastate_layout *layout, const uint8_t *header)
{
	return header[layout->GCproto_flags] & STATE_PROTO_CHILD;
}

static bool note_parent(void *context, uint64_t address, const uint8_t *start)
{
	struct walk_of_parents *walk = context;
	const struct luastate_layout *layout = walk->list.layout;
	uint8_t header[STATE_OBJECT_MAX], name[STATE_OBJECT_MAX];
	struct names_wanted what;

	if (start[layout->GCobj_gct] != state_gct(layout->tag_proto) ||
	    !heap_list_read(&walk->list, address, header, (size_t)layout->GCproto_sizeof) ||
	    !parents_is_one(layout, header))
		return true;
	what = names_wanted_of(layout, address, header);
	if (!heap_list_read(&walk->list, what.chunkname, name, (size_t)layout->GCstr_sizeof))
		return true;
	what.name_hash = state_u32(name, layout->GCstr_hash);
	what.name_len = state_u32(name, layout->GCstr_len);
	parents_add(walk->state, walk->list.G, &what);
	return true;
}

static bool is_over(void *context)
{
	const struct walk_of_parents *walk = context;

	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID) >= walk->end_ns;
}

static int compare(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/* Order by chunk, then innermost first. */
static int by_location(const void *a, const void *b)
{
	const struct state_parent *x = a, *y = b;
	int order = (x->chunkname > y->chunkname) - (x->chunkname < y->chunkname);

	if (!order)
		order = compare(y->firstline, x->firstline);
	if (!order)
		order = compare(x->lastline, y->lastline);
	return order ? order : (x->address > y->address) - (x->address < y->address);
}

/* Several walks meet most prototypes several times; keep one of each. */
void parents_sort(struct luastate *state)
{
	struct state_parent *parents = state->parents;
	size_t kept = 0;

	if (state->parent_count)
		qsort(parents, state->parent_count, sizeof(*parents), by_location);
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

/* Fill the index again. */
void parents_walk(const struct names_search *search)
{
	struct luastate *state = search->state;
	uint64_t begin_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID), cost_ns;
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
	parents_sort(state);
	cost_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
	names_spend(&state->walk_time, cost_ns);
}

bool parents_were_walked(const struct names_search *search)
{
	const struct luastate *state = search->state;

	return state->parents_serial && state->parents_sample == state->serial &&
	       state->parents_G == search->G;
}

/* The first parent of a chunk. */
static size_t first_of(const struct luastate *state, uint64_t chunkname)
{
	return ARRAY_SEARCH(state->parent_count, i, state->parents[i].chunkname < chunkname);
}

/* If the parent was freed, another chunk's name may be at that address. */
static bool may_have_made(const struct names_search *search, const struct state_parent *parent,
			  const struct names_wanted *wanted)
{
	return !parent->is_read && parent->G == search->G &&
	       parent->name_hash == wanted->name_hash && parent->name_len == wanted->name_len &&
	       names_surround(parent->chunkname, parent->firstline, parent->lastline, wanted);
}

static bool has_made(const struct names_search *search, const struct state_parent *parent,
		     const struct names_wanted *wanted)
{
	uint8_t header[STATE_OBJECT_MAX];

	search->state->candidates_left--;
	return names_read_header(search, parent->address, header) &&
	       definition_refers(search->layout, search->reader, parent->address, header,
				 wanted->address, &search->state->candidates_left);
}

uint64_t parents_find(const struct names_search *search, const struct names_wanted *wanted)
{
	struct luastate *state = search->state;
	uint64_t begin_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID), found = 0;

	if (!names_may_read(search))
		state->candidates_left = 0;
	for (size_t i = first_of(state, wanted->chunkname);
	     !found && i < state->parent_count && state->candidates_left; i++) {
		struct state_parent *parent = &state->parents[i];

		if (parent->chunkname != wanted->chunkname)
			break;
		if (!may_have_made(search, parent, wanted) || !has_made(search, parent, wanted))
			continue;
		parent->is_read = true;
		found = parent->address;
	}
	names_charge_reading(search, begin_ns);
	return found;
}

/* ---- Lifetime --------------------------------------------------------------------------- */

void parents_begin_sample(struct luastate *state)
{
	state->candidates_left = CANDIDATES;
}

void parents_forget_read(struct luastate *state)
{
	for (size_t i = 0; i < state->parent_count; i++)
		state->parents[i].is_read = false;
}

void parents_free(struct luastate *state)
{
	free(state->parents);
	state->parents = NULL;
	state->parent_count = state->parent_room = 0;
	state->walk_time = state->read_time = (struct state_budget){ 0 };
}
