/* SPDX-License-Identifier: MIT */
/* Members of a structure: what is known of them, and where they may lie by what is known of others.
 */
#include "luastate/derive.h"

enum {
	/* Seven structures have less fields each. */
	MEMBERS_MAX = 64,
};

/* ---- Fields ------------------------------------------------------------------------------ */

int32_t *derive_at(struct luastate_layout *layout, size_t field)
{
	return &layout->lua_State_sizeof + field;
}

int32_t derive_value(const struct luastate_layout *layout, size_t field)
{
	return *(&layout->lua_State_sizeof + field);
}

bool derive_is_seen(const struct derive *derive, size_t field)
{
	return derive->source[field] == DERIVE_BY_VM || derive->source[field] == DERIVE_BY_CODE ||
	       derive->source[field] == DERIVE_BY_BOTH;
}

void derive_note(struct derive *derive, size_t field, int32_t value)
{
	uint8_t *source = &derive->source[field];

	if (*source == DERIVE_DOUBTFUL)
		return;
	if (*source == DERIVE_BY_CODE || *source == DERIVE_BY_BOTH)
		*source = derive_value(&derive->layout, field) == value ? DERIVE_BY_BOTH
									: DERIVE_DOUBTFUL;
	else
		*source = DERIVE_BY_VM;
	if (*source != DERIVE_DOUBTFUL)
		*derive_at(&derive->layout, field) = value;
}

void derive_note_absent(struct derive *derive, size_t field)
{
	derive->source[field] = DERIVE_ABSENT;
	*derive_at(&derive->layout, field) = LAYOUT_ABSENT;
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
		[DERIVE_BY_ROW] = "as the members around it",
		[DERIVE_BY_VM] = "by live objects",
		[DERIVE_BY_CODE] = "by the interpreter's code",
		[DERIVE_BY_BOTH] = "by the interpreter's code and live objects",
		[DERIVE_ABSENT] = "this build has none",
		[DERIVE_DOUBTFUL] = "what shows it is contradictory",
	};

	return source < sizeof(texts) / sizeof(texts[0]) ? texts[source] : "";
}

/* ---- What lies between ------------------------------------------------------------------- */

bool derive_is_member(size_t field, const char *structure)
{
	return strncmp(state_fields[field].name, structure, strlen(structure)) == 0;
}

/* The members of a structure that the row has, in its order. @return their number. */
static size_t sort_members(const struct derive *derive, const char *structure,
			   uint8_t ret_members[MEMBERS_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < state_field_count && count < MEMBERS_MAX; i++) {
		size_t at = count;

		if (!derive_is_member(i, structure) ||
		    derive_value(derive->row, i) == LAYOUT_ABSENT ||
		    derive->source[i] == DERIVE_ABSENT)
			continue;
		for (; at > 0 && derive_value(derive->row, ret_members[at - 1]) >
					 derive_value(derive->row, i);
		     at--)
			ret_members[at] = ret_members[at - 1];
		ret_members[at] = (uint8_t)i;
		count++;
	}
	return count;
}

static int32_t shift_of(const struct derive *derive, size_t field)
{
	return derive_value(&derive->layout, field) - derive_value(derive->row, field);
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

		if (!derive_is_member(i, structure) || derive->source[i] != DERIVE_UNKNOWN)
			continue;
		if (derive_value(derive->row, i) == LAYOUT_ABSENT) {
			derive_note_absent(derive, i);
			continue;
		}
		/* At the end of a structure nothing shows what has been put before. */
		if (!derive_range(derive, structure, i, &least, &most) || least != most)
			continue;
		*derive_at(&derive->layout, i) = derive_value(derive->row, i) + least;
		derive->source[i] = DERIVE_BY_ROW;
	}
}

void derive_beside(struct derive *derive, size_t field, size_t neighbour, int32_t bytes,
		   derive_test *holds)
{
	int32_t value = derive_value(&derive->layout, neighbour) +
			derive_value(derive->row, field) - derive_value(derive->row, neighbour);

	/* Aligned, as compilers do. */
	value = (value + bytes - 1) / bytes * bytes;
	if (derive_is_known(derive, field) || derive->source[field] == DERIVE_ABSENT ||
	    !derive_is_seen(derive, neighbour) || !holds(derive, value))
		return;
	*derive_at(&derive->layout, field) = value;
	derive->source[field] = DERIVE_BY_ROW;
	derive->is_provisional = true;
}

void derive_pick(struct derive *derive, const char *structure, size_t field, int32_t step,
		 derive_test *holds)
{
	int32_t least, most, place = derive_value(derive->row, field), found = 0;
	unsigned count = 0;
	bool is_wide = false;

	if (derive->source[field] != DERIVE_UNKNOWN || place == LAYOUT_ABSENT)
		return;
	derive_range(derive, structure, field, &least, &most);
	for (unsigned wide = 0; wide < 2 && count == 0; wide++) {
		is_wide = wide;
		if (wide) {
			least = -DERIVE_SHIFT_MAX;
			most = DERIVE_SHIFT_MAX;
		}
		for (int32_t shift = least; shift <= most; shift += step)
			if (place + shift >= 0 && holds(derive, place + shift)) {
				found = place + shift;
				count++;
			}
	}
	if (count == 1)
		derive_note(derive, field, found);
	else if (count == 0 || is_wide)
		derive->source[field] = DERIVE_DOUBTFUL;
}

void derive_pick_two(struct derive *derive, const char *structure, const size_t fields[2],
		     int32_t step, derive_test_of_two *holds)
{
	int32_t least[2], most[2], place[2], found[2] = { 0 };
	unsigned count = 0;
	bool is_wide = false;

	for (unsigned i = 0; i < 2; i++) {
		place[i] = derive_value(derive->row, fields[i]);
		if (derive->source[fields[i]] != DERIVE_UNKNOWN || place[i] == LAYOUT_ABSENT)
			return;
		derive_range(derive, structure, fields[i], &least[i], &most[i]);
	}
	for (unsigned wide = 0; wide < 2 && count == 0; wide++) {
		is_wide = wide;
		for (unsigned i = 0; i < 2 && wide; i++) {
			least[i] = -DERIVE_SHIFT_MAX;
			most[i] = DERIVE_SHIFT_MAX;
		}
		for (int32_t a = place[0] + least[0]; a <= place[0] + most[0]; a += step)
			for (int32_t b = place[1] + least[1]; b <= place[1] + most[1]; b += step)
				if (a >= 0 && b >= 0 && a != b && holds(derive, a, b)) {
					found[0] = a;
					found[1] = b;
					count++;
				}
	}
	for (unsigned i = 0; i < 2; i++) {
		if (count == 1)
			derive_note(derive, fields[i], found[i]);
		else if (count == 0 || is_wide)
			derive->source[fields[i]] = DERIVE_DOUBTFUL;
	}
}
