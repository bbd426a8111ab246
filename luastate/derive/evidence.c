/* SPDX-License-Identifier: MIT */
/* What is known of a structure's members, and at which offsets may the unknown ones be? */
#include "luastate/derive/derive.h"

#include "luastate/layout/fields.h"

enum {
	/* Each of the seven structures has fewer fields. */
	MEMBERS_MAX = 64,
};

/* ---- Fields ----------------------------------------------------------------------------- */

bool derive_is_seen(const struct derive *derive, size_t field)
{
	return derive->source[field] == DERIVE_BY_VM || derive->source[field] == DERIVE_BY_CODE ||
	       derive->source[field] == DERIVE_BY_BOTH;
}

bool derive_is_known(const struct derive *derive, size_t field)
{
	return derive_is_seen(derive, field) || derive->source[field] == DERIVE_BY_ROW ||
	       derive->source[field] == DERIVE_GUESSED;
}

void derive_note(struct derive *derive, size_t field, int32_t value)
{
	uint8_t *source = &derive->source[field];

	if (*source == DERIVE_DOUBTFUL)
		return;
	if (*source == DERIVE_BY_CODE || *source == DERIVE_BY_BOTH)
		*source = state_field_value(&derive->layout, field) == value ? DERIVE_BY_BOTH
									     : DERIVE_DOUBTFUL;
	else
		*source = DERIVE_BY_VM;
	if (*source != DERIVE_DOUBTFUL)
		*state_field_at(&derive->layout, field) = value;
}

void derive_note_absent(struct derive *derive, size_t field)
{
	derive->source[field] = DERIVE_ABSENT;
	*state_field_at(&derive->layout, field) = LAYOUT_ABSENT;
}

bool derive_is_own(const struct derive *derive, uint64_t address)
{
	const struct luastate_layout *layout = &derive->layout;

	return address - derive->G <
	       (uint64_t)layout->global_State_to_bcff + 4 * (uint64_t)layout->GG_NUM_ASMFF;
}

const char *derive_evidence(uint8_t source)
{
	static const char *const texts[] = {
		[DERIVE_UNKNOWN] = "nothing shows it",
		[DERIVE_GUESSED] = "a guess from the nearest build",
		[DERIVE_BY_ROW] = "by the members around it",
		[DERIVE_BY_VM] = "by live objects",
		[DERIVE_BY_CODE] = "by the interpreter's code",
		[DERIVE_BY_BOTH] = "by the interpreter's code and live objects",
		[DERIVE_ABSENT] = "this build does not have it",
		[DERIVE_DOUBTFUL] = "the evidence is contradictory",
	};

	return source < sizeof(texts) / sizeof(texts[0]) ? texts[source] : "";
}

/* ---- Members between seen ones ---------------------------------------------------------- */

bool derive_is_member(size_t field, const char *structure)
{
	return strncmp(state_fields[field].name, structure, strlen(structure)) == 0;
}

/* The row's members of a structure, sorted by offset. @return their number. */
static size_t sort_members(const struct derive *derive, const char *structure,
			   uint8_t ret_members[MEMBERS_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < state_field_count && count < MEMBERS_MAX; i++) {
		size_t at = count;

		if (!derive_is_member(i, structure) ||
		    state_field_value(derive->row, i) == LAYOUT_ABSENT ||
		    derive->source[i] == DERIVE_ABSENT)
			continue;
		for (; at > 0 && state_field_value(derive->row, ret_members[at - 1]) >
					 state_field_value(derive->row, i);
		     at--)
			ret_members[at] = ret_members[at - 1];
		ret_members[at] = (uint8_t)i;
		count++;
	}
	return count;
}

static int32_t shift_of(const struct derive *derive, size_t field)
{
	return state_field_value(&derive->layout, field) - state_field_value(derive->row, field);
}

bool derive_range(const struct derive *derive, const char *structure, size_t field,
		  int32_t *ret_least, int32_t *ret_most)
{
	uint8_t members[MEMBERS_MAX];
	size_t count = sort_members(derive, structure, members), at = 0;
	int32_t before = 0, after;
	bool is_bounded = false;

	while (at < count && members[at] != field)
		at++;
	for (size_t i = 0; i < at; i++)
		if (derive_is_seen(derive, members[i]))
			before = shift_of(derive, members[i]);
	after = before;
	for (size_t i = count; i-- > at + 1;)
		if (derive_is_seen(derive, members[i])) {
			after = shift_of(derive, members[i]);
			is_bounded = true;
		}
	*ret_least = before < after ? before : after;
	*ret_most = before < after ? after : before;
	return is_bounded;
}

void derive_fill(struct derive *derive, const char *structure)
{
	for (size_t i = 0; i < state_field_count; i++) {
		int32_t least, most;

		/* Neighbours alone do not prove that an optional field exists. */
		if (!derive_is_member(i, structure) || derive->source[i] != DERIVE_UNKNOWN ||
		    state_may_lack(state_fields[i].name))
			continue;
		if (state_field_value(derive->row, i) == LAYOUT_ABSENT) {
			derive_note_absent(derive, i);
			continue;
		}
		/* Behind the last seen member, nothing shows whether members were inserted. */
		if (!derive_range(derive, structure, i, &least, &most) || least != most)
			continue;
		*state_field_at(&derive->layout, i) = state_field_value(derive->row, i) + least;
		derive->source[i] = DERIVE_BY_ROW;
	}
}

void derive_guess_beside(struct derive *derive, size_t field, size_t neighbour, int32_t bytes,
			 derive_test *holds)
{
	int32_t value = state_field_value(&derive->layout, neighbour) +
			state_field_value(derive->row, field) -
			state_field_value(derive->row, neighbour);

	/* Round up to the alignment that compilers use. */
	value = (value + bytes - 1) / bytes * bytes;
	if (derive_is_known(derive, field) || derive->source[field] == DERIVE_ABSENT ||
	    !derive_is_seen(derive, neighbour) || !holds(derive, value))
		return;
	*state_field_at(&derive->layout, field) = value;
	derive->source[field] = DERIVE_GUESSED;
}

/* ---- Places that pass a test ------------------------------------------------------------ */

/** How far from the row's offset a member is searched for, in this order. */
enum width {
	MOVED, /* by the distances that its neighbours have moved */
	GAP,   /* anywhere between its neighbours */
	ABOUT, /* anywhere between its second neighbours: it may have changed places with a
		  neighbour */
	NEAR,  /* anywhere within DERIVE_SHIFT_MAX */
	WIDTHS,
};

/** A range of offsets, both ends included. */
struct span {
	int32_t first, last;
};

/* The index of the n-th seen member before or behind index @at, or @count. */
static size_t find_seen(const struct derive *derive, const uint8_t *members, size_t count,
			size_t at, int direction, unsigned seen)
{
	for (size_t i = at + (size_t)direction; i < count; i += (size_t)direction)
		if (derive_is_seen(derive, members[i]) && --seen == 0)
			return i;
	return count;
}

/* The gap between the n-th seen members before and behind a field. @return false if one of them is
 * missing. */
static bool find_gap(const struct derive *derive, const char *structure, size_t field,
		     unsigned seen, struct span *ret_span)
{
	uint8_t members[MEMBERS_MAX];
	size_t count = sort_members(derive, structure, members), at = 0, before, behind;

	while (at < count && members[at] != field)
		at++;
	before = find_seen(derive, members, count, at, -1, seen);
	behind = find_seen(derive, members, count, at, 1, seen);
	if (before == count || behind == count)
		return false;
	/* A member is at most as long as in the row. */
	ret_span->first = state_field_value(&derive->layout, members[before]) +
			  state_field_value(derive->row, members[before + 1]) -
			  state_field_value(derive->row, members[before]);
	ret_span->last = state_field_value(&derive->layout, members[behind]) - 1;
	return true;
}

/* Whether no other member was seen at an offset. */
static bool is_free(const struct derive *derive, const char *structure, int32_t location)
{
	for (size_t i = 0; i < state_field_count; i++)
		if (derive_is_seen(derive, i) &&
		    state_field_value(&derive->layout, i) == location &&
		    derive_is_member(i, structure))
			return false;
	return location >= 0;
}

static bool find_span(const struct derive *derive, const char *structure, size_t field,
		      enum width width, struct span *ret_span)
{
	int32_t least = -DERIVE_SHIFT_MAX, most = DERIVE_SHIFT_MAX,
		location = state_field_value(derive->row, field);

	if (width == GAP || width == ABOUT)
		return find_gap(derive, structure, field, width == GAP ? 1 : 2, ret_span);
	if (width == MOVED)
		derive_range(derive, structure, field, &least, &most);
	*ret_span = (struct span){ location + least, location + most };
	return true;
}

/* The first offset to try: the row's alignment, or the natural one if the span is a gap. */
static int32_t first_of(const struct span *span, enum width width, int32_t step)
{
	return width == GAP || width == ABOUT ? (span->first + step - 1) / step * step
					      : span->first;
}

/* Note the result of a search: a single match shows the member, several nearby matches do not. */
static void settle(struct derive *derive, size_t field, unsigned count, enum width width,
		   int32_t found)
{
	if (count == 1)
		derive_note(derive, field, found);
	else if ((count == 0 || width != MOVED) && derive->source[field] == DERIVE_UNKNOWN)
		derive->source[field] = DERIVE_DOUBTFUL;
}

void derive_pick(struct derive *derive, const char *structure, size_t field, int32_t step,
		 derive_test *holds)
{
	enum width width, used = MOVED;
	int32_t found = 0;
	unsigned count = 0;

	if ((derive->source[field] != DERIVE_UNKNOWN && derive->source[field] != DERIVE_GUESSED) ||
	    state_field_value(derive->row, field) == LAYOUT_ABSENT)
		return;
	for (width = MOVED; width < WIDTHS && count == 0; width++) {
		struct span span;

		if (!find_span(derive, structure, field, width, &span))
			continue;
		used = width;
		for (int32_t at = first_of(&span, width, step); at <= span.last; at += step)
			if (is_free(derive, structure, at) && holds(derive, at)) {
				found = at;
				count++;
			}
	}
	settle(derive, field, count, used, found);
}

/* @return how many pairs of offsets share the best result. */
static unsigned try_pairs(struct derive *derive, const char *structure, const struct span spans[2],
			  enum width width, int32_t step, derive_test_of_two *holds,
			  int32_t ret_found[2])
{
	unsigned count = 0;
	size_t best = 1;

	for (int32_t a = first_of(&spans[0], width, step); a <= spans[0].last; a += step)
		for (int32_t b = first_of(&spans[1], width, step); b <= spans[1].last; b += step) {
			size_t own = a != b && is_free(derive, structure, a) &&
						     is_free(derive, structure, b)
					     ? holds(derive, a, b)
					     : 0;

			if (own < best)
				continue;
			count = own > best ? 1 : count + 1;
			best = own;
			ret_found[0] = a;
			ret_found[1] = b;
		}
	return count;
}

void derive_pick_two(struct derive *derive, const char *structure, const size_t fields[2],
		     int32_t step, derive_test_of_two *holds)
{
	enum width width, used = MOVED;
	int32_t found[2] = { 0 };
	unsigned count = 0;

	for (unsigned i = 0; i < 2; i++)
		if (derive->source[fields[i]] != DERIVE_UNKNOWN ||
		    state_field_value(derive->row, fields[i]) == LAYOUT_ABSENT)
			return;
	for (width = MOVED; width < WIDTHS && count == 0; width++) {
		struct span spans[2];

		if (!find_span(derive, structure, fields[0], width, &spans[0]) ||
		    !find_span(derive, structure, fields[1], width, &spans[1]))
			continue;
		used = width;
		count = try_pairs(derive, structure, spans, width, step, holds, found);
	}
	for (unsigned i = 0; i < 2; i++)
		settle(derive, fields[i], count, used, found[i]);
}
