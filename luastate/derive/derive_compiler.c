/* SPDX-License-Identifier: MIT */
/* At which offsets are the members of jit_State?
 *
 * Source: LuaJIT v2.1 src/lj_jit.h (jit_State, JIT_PARAMDEF), src/lj_trace.c (trace_findfree),
 * src/lj_mcode.c.
 */
#include "luastate/derive/derive.h"

#include "luastate/arch/arch.h"
#include "luastate/layout/fields.h"

enum {
	CODE_MAX = 1 << 22,
};

bool derive_read_J(const struct derive *derive, int32_t at, void *ret_bytes, size_t len)
{
	struct failure why;

	return at >= 0 && at < STATE_DISTANCE_MAX &&
	       state_read(derive->reader,
			  derive->G + (uint64_t)derive->layout.global_State_to_J + (uint64_t)at,
			  ret_bytes, len, &why) == 0;
}

/* The size of the table of traces. It is 0 if there is no table. */
static bool is_table_size(const struct derive *derive, int32_t at)
{
	const struct luastate_layout *layout = &derive->layout;
	uint64_t table = 0;
	uint32_t size = 0;
	uint8_t slot[8];
	struct failure why;

	if (!derive_read_J(derive, at, &size, 4) ||
	    !derive_read_J(derive, layout->jit_State_trace, &table, 8))
		return false;
	if (!table)
		return size == 0;
	/* The table grows by doubling. */
	return size > 1 && size <= DERIVE_TRACES_MAX && (size & (size - 1)) == 0 &&
	       state_read(derive->reader, table + (uint64_t)layout->ref_size * (size - 1), slot,
			  (size_t)layout->ref_size, &why) == 0;
}

/* The number from which the search for a free trace number starts. */
static bool is_free_number(const struct derive *derive, int32_t at)
{
	uint32_t number = 0, size = 0;

	return derive_read_J(derive, at, &number, 4) &&
	       derive_read_J(derive, derive->layout.jit_State_sizetrace, &size, 4) &&
	       number <= size && at != derive->layout.jit_State_sizetrace;
}

/* The compiler's parameters are found by five consecutive ones that nobody changes: tryside,
 * instunroll, loopunroll, callunroll, recunroll. Before these are maxtrace, maxrecord, maxirconst,
 * maxside, maxsnap, in some builds minstitch (a small number), hotloop and hotexit. */
static void find_params(struct derive *derive)
{
	static const int32_t known[] = { 4, 4, 15, 3, 2 };
	enum { BEFORE = 7, PIECE = 2048, SNAPSHOTS_MIN = 50 };
	const struct luastate_layout *layout = &derive->layout;
	int32_t end = layout->global_State_to_dispatch - layout->global_State_to_J;
	int32_t words[PIECE / 4], step = PIECE - 64;

	for (int32_t at = layout->jit_State_trace; at < end; at += step) {
		size_t len = end - at < PIECE ? (size_t)(end - at) : PIECE;

		if (!derive_read_J(derive, at, words, len))
			return;
		for (size_t i = 3; i + 5 <= len / 4; i++) {
			int32_t location = at + 4 * ((int32_t)i - BEFORE);

			if (memcmp(&words[i], known, sizeof(known)) != 0)
				continue;
			if (words[i - 3] < SNAPSHOTS_MIN)
				location -= 4;
			derive_note(derive, DERIVE_FIELD(jit_State_param), location);
			return;
		}
	}
}

/* An area of machine code has five consecutive members: its start, top and bottom of its free part,
 * its size, and the size of all areas. */
static void find_area(struct derive *derive)
{
	int32_t start = derive->layout.jit_State_exitno;
	uint64_t words[24];

	if (!derive_read_J(derive, (start + 8) & ~7, words, sizeof(words)))
		return;
	for (size_t i = 0; i + 5 <= sizeof(words) / sizeof(words[0]); i++) {
		uint64_t area = words[i], size = words[i + 3];
		int32_t at = ((start + 8) & ~7) + 8 * (int32_t)i;

		if (!state_is_pointer(area) || area % 4096 != 0 || size == 0 || size % 4096 != 0 ||
		    size > CODE_MAX || words[i + 1] - area > size || words[i + 2] - area > size ||
		    words[i + 2] > words[i + 1] || words[i + 4] < size || words[i + 4] % size != 0)
			continue;
		derive_note(derive, DERIVE_FIELD(jit_State_mcarea), at);
		derive_note(derive, DERIVE_FIELD(jit_State_mctop), at + 8);
		derive_note(derive, DERIVE_FIELD(jit_State_mcbot), at + 16);
		derive_note(derive, DERIVE_FIELD(jit_State_szmcarea), at + 24);
		derive_note(derive, DERIVE_FIELD(jit_State_szallmcarea), at + 32);
		return;
	}
}

/* Groups of exit stubs on x86-64: addresses of machine code, from the first entry on without gaps.
 */
static bool are_stubs(const struct derive *derive, int32_t at)
{
	uint64_t groups[STATE_STUB_GROUPS], nearest = UINT64_MAX;
	bool ended = false;

	if (at % 8 != 0 || !derive_read_J(derive, at, groups, sizeof(groups)) || !groups[0])
		return false;
	for (size_t i = 0; i < STATE_STUB_GROUPS; i++) {
		if (groups[i] && (ended || !state_is_pointer(groups[i])))
			return false;
		ended = !groups[i];
	}
	for (size_t i = 0; i < derive->trace_count; i++) {
		uint64_t mcode = derive_u64(&derive->traces[i], derive->layout.GCtrace_mcode);
		uint64_t distance = mcode > groups[0] ? mcode - groups[0] : groups[0] - mcode;

		nearest = distance < nearest ? distance : nearest;
	}
	return nearest < CODE_MAX;
}

void derive_compiler(struct derive *derive)
{
	derive_pick(derive, "jit_State.", DERIVE_FIELD(jit_State_freetrace), 4, is_free_number);
	find_params(derive);
	find_area(derive);
	if (STATE_STUBS_SHARED && derive->trace_count &&
	    state_field_value(derive->row, DERIVE_FIELD(jit_State_exitstubgroup)) != LAYOUT_ABSENT)
		derive_pick(derive, "jit_State.", DERIVE_FIELD(jit_State_exitstubgroup), 8,
			    are_stubs);
	derive_fill(derive, "jit_State.");
}

void derive_trace_table(struct derive *derive)
{
	derive_pick(derive, "jit_State.", DERIVE_FIELD(jit_State_sizetrace), 4, is_table_size);
}
