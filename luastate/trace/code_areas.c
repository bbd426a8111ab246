/* SPDX-License-Identifier: MIT */
/*
 * Which areas of machine code did a VM have when a thread was stopped or copied?
 *
 * Each area begins with a link to the next older one. A new area becomes the head of that chain. A
 * flush of all traces frees all areas at once; from then on, the memory may hold anything.
 *
 * The VM notes the head, the head's size and the total size of all areas. The copy has these
 * numbers. The links do not change, so they may be read later: a chain is the one of the copy if
 * its sizes add up to the total.
 *
 *   jit_State   mcarea, szmcarea, szallmcarea       area   | next | size | code ...
 *
 * Source: LuaJIT v2.1 src/lj_mcode.c (MCLink, mcode_allocarea, lj_mcode_free), src/lj_jit.h.
 */
#include "luastate/trace/code_areas.h"

#include <stdlib.h>

#include "attach/array.h"
#include "luastate/trace/trace.h"

enum {
	/* With the usual 64 KiB per area, this is 256 MiB of machine code. */
	AREAS_MAX = 4096,
	/* Limit of one area's size; sizemcode is some KiB. */
	AREA_BYTES_MAX = 1 << 30,
	/* The members are next to each other in all builds so far. */
	NOTED_BYTES_MAX = 256,
	LINK_WORDS = 2,
};

/** [start, end) */
struct area {
	uint64_t start, end;
};

/** The areas of a VM. */
struct trace_areas {
	uint64_t G;
	uint64_t head, total; /* as the VM noted them; head 0: unknown */
	struct area *areas;   /* sorted by start */
	size_t count;
	unsigned serial; /* sample in which the chain was last followed */
	UT_hash_handle hh;
};

/** The numbers that a VM notes about its areas. */
struct noted {
	uint64_t head, size, total;
};

uint32_t areas_noted_end(const struct luastate_layout *layout)
{
	const struct {
		int32_t offset, size;
	} members[] = {
		{ layout->jit_State_exitno, 4 },
		{ layout->jit_State_mcarea, 8 },
		{ layout->jit_State_szmcarea, 8 },
		{ layout->jit_State_szallmcarea, 8 },
	};
	int32_t start = layout->jit_State_parent, end = start + 4;

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		int32_t offset = members[i].offset, member_end = offset + members[i].size;

		/* Offsets of absent members are lower. */
		if (offset > start && member_end - start <= NOTED_BYTES_MAX && member_end > end)
			end = member_end;
	}
	return (uint32_t)end;
}

static bool read_noted(const struct luastate_vm *vm, const struct attach_reader *reader,
		       struct noted *ret_noted)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t J = vm->G + (uint64_t)layout->global_State_to_J;
	struct failure why;

	return state_has_compiler(layout) && layout->jit_State_mcarea != LAYOUT_ABSENT &&
	       layout->jit_State_szmcarea != LAYOUT_ABSENT &&
	       layout->jit_State_szallmcarea != LAYOUT_ABSENT &&
	       state_read(reader, J + (uint64_t)layout->jit_State_mcarea, &ret_noted->head, 8,
			  &why) == 0 &&
	       state_read(reader, J + (uint64_t)layout->jit_State_szmcarea, &ret_noted->size, 8,
			  &why) == 0 &&
	       state_read(reader, J + (uint64_t)layout->jit_State_szallmcarea, &ret_noted->total, 8,
			  &why) == 0 &&
	       state_is_pointer(ret_noted->head) && ret_noted->size > 0 &&
	       ret_noted->size <= ret_noted->total;
}

/* ---- Chains ----------------------------------------------------------------------------- */

/** Areas read so far, newest first. */
struct chain {
	struct area areas[AREAS_MAX];
	size_t count;
	uint64_t total;
};

/* The walk ends at an area that is unmapped, or whose memory has another owner now. */
static bool read_link(const struct attach_reader *reader, uint64_t address, struct chain *chain,
		      uint64_t *ret_next)
{
	uint64_t link[LINK_WORDS];
	struct failure why;

	if (chain->count == AREAS_MAX || !state_is_pointer(address) ||
	    state_read(reader, address, link, sizeof(link), &why) != 0 || link[1] < sizeof(link) ||
	    link[1] > AREA_BYTES_MAX)
		return false;
	chain->areas[chain->count++] = (struct area){ address, address + link[1] };
	chain->total += link[1];
	*ret_next = link[0];
	return true;
}

/*
 * Follow the chain to its end, or to the known head, so that the sizes add up to the noted total.
 * @param ret_joins Whether the chain ends at the known areas.
 */
static bool walk_chain(struct luastate *state, const struct trace_areas *known,
		       const struct attach_reader *reader, const struct noted *noted,
		       struct chain *chain, bool *ret_joins)
{
	uint64_t at = noted->head;

	chain->count = 0;
	chain->total = 0;
	while (at && trace_charge(state, 1)) {
		*ret_joins = known->head && at == known->head &&
			     chain->total + known->total == noted->total;
		if (*ret_joins)
			return true;
		if (!read_link(reader, at, chain, &at) || chain->total > noted->total ||
		    (chain->count == 1 && chain->total != noted->size))
			return false;
	}
	return at == 0 && chain->total == noted->total;
}

/* For links that cannot be read any more: accept a new head before the known areas, or a head
 * that is the only area. */
static bool guess_chain(const struct trace_areas *known, const struct noted *noted,
			struct chain *chain, bool *ret_joins)
{
	chain->areas[0] = (struct area){ noted->head, noted->head + noted->size };
	chain->count = 1;
	*ret_joins = known->head && noted->size + known->total == noted->total;
	return *ret_joins || noted->size == noted->total;
}

/* @param joins Keep the known areas, too. */
static bool keep_chain(struct trace_areas *known, const struct noted *noted,
		       const struct chain *chain, bool joins)
{
	size_t kept = joins ? known->count : 0, count = kept + chain->count;
	struct area *areas = count <= AREAS_MAX
				     ? reallocarray(known->areas, count ? count : 1, sizeof(*areas))
				     : NULL;

	if (!areas)
		return false;
	memcpy(areas + kept, chain->areas, chain->count * sizeof(*areas));
	qsort(areas, count, sizeof(*areas), array_by_first_u64);
	known->areas = areas;
	known->count = count;
	known->head = noted->head;
	known->total = noted->total;
	return true;
}

/* @return whether the known areas are the noted ones. */
static bool update(struct luastate *state, struct trace_areas *known,
		   const struct attach_reader *reader, const struct noted *noted)
{
	bool is_same = known->head == noted->head && known->total == noted->total;
	bool joins = false, found;
	struct chain *chain;

	/* Follow the chain once per sample. */
	if (known->serial == state->serial || (is_same && !state->thorough))
		return is_same;
	known->serial = state->serial;
	if (state->thorough)
		known->head = 0;
	chain = malloc(sizeof(*chain));
	found = chain &&
		(walk_chain(state, known, reader, noted, chain, &joins) ||
		 guess_chain(known, noted, chain, &joins)) &&
		keep_chain(known, noted, chain, joins);
	free(chain);
	return found;
}

/* ---- Lookup ----------------------------------------------------------------------------- */

void areas_free_all(struct luastate *state)
{
	struct trace_areas *item, *next;

	HASH_ITER(hh, state->areas, item, next)
	{
		HASH_DEL(state->areas, item);
		free(item->areas);
		free(item);
	}
}

static struct trace_areas *areas_of(struct luastate *state, uint64_t G)
{
	struct trace_areas *item;

	HASH_FIND(hh, state->areas, &G, sizeof(G), item);
	if (item)
		return item;
	/* Areas of VMs that are gone use up the table. */
	if (HASH_COUNT(state->areas) >= STATE_VMS_MAX)
		areas_free_all(state);
	item = calloc(1, sizeof(*item));
	if (!item)
		return NULL;
	item->G = G;
	return HASH_KEEP(state->areas, G, item);
}

static bool has_area_at(const struct trace_areas *known, uint64_t pc)
{
	size_t at = ARRAY_SEARCH(known->count, i, known->areas[i].end <= pc);

	return at < known->count && known->areas[at].start <= pc;
}

enum areas_answer areas_have(struct luastate *state, const struct luastate_vm *vm,
			     const struct attach_reader *reader, uint64_t pc)
{
	struct trace_areas *known;
	struct noted noted;
	bool is_known;

	if (!read_noted(vm, reader, &noted))
		return AREAS_UNKNOWN;
	known = areas_of(state, vm->G);
	is_known = known && update(state, known, reader, &noted);
	if (pc - noted.head < noted.size)
		return AREAS_HAVE;
	if (!is_known)
		return AREAS_UNKNOWN;
	return has_area_at(known, pc) ? AREAS_HAVE : AREAS_LACK;
}
