/* SPDX-License-Identifier: MIT */
/* At which offsets are the members of SnapShot, and how long is the map that snapshots share?
 *
 * All builds have one of few forms; the contents of live snapshots show which one.
 *
 * Source: LuaJIT v2.1 src/lj_jit.h (SnapShot), src/lj_snap.c (snapshot_stack), src/lj_asm.c
 * (asm_snap_fixup_mcofs).
 */
#include "luastate/derive/derive.h"

#include "luastate/arch/arch.h"
#include "luastate/layout/fields.h"
#include "luastate/state/invariants.h"

enum {
	/* Snapshots of a trace that are examined. */
	SNAPSHOTS_LOOKED = 64,
	SNAPSHOT_MAX = DERIVE_SNAPSHOT_MAX,
	TAIL_MAX = 64,	 /* the jump at a trace's end may get shorter when it is linked */
	LINKS_MAX = 128, /* frame links of one snapshot */
};

/* The index in the map where a snapshot's part begins. */
static uint32_t snapshot_start(const struct luastate_layout *layout, const uint8_t *bytes)
{
	return layout->SnapShot_ref == 2 ? state_u32(bytes, 0) & 0xffff : state_u32(bytes, 0);
}

/* Whether two neighbouring snapshots are consistent. A snapshot's part of the map has its entries,
 * and with GC64 two more words; without GC64 one more word, and the links of its frames. */
static bool is_snapshot(const struct luastate_layout *layout, const uint8_t *bytes,
			const uint8_t *next, uint32_t nins, uint32_t szmcode)
{
	uint32_t mapofs =
		layout->SnapShot_ref == 2 ? state_u32(bytes, 0) & 0xffff : state_u32(bytes, 0);
	uint32_t next_mapofs =
		layout->SnapShot_ref == 2 ? state_u32(next, 0) & 0xffff : state_u32(next, 0);
	uint32_t ref = state_u32(bytes, layout->SnapShot_ref) & 0xffff;
	uint32_t next_ref = state_u32(next, layout->SnapShot_ref) & 0xffff;
	uint32_t nent = bytes[layout->SnapShot_nent], len = next_mapofs - mapofs;

	if (ref < TRACE_REF_BASE || ref > next_ref || next_ref > nins || len > UINT16_MAX ||
	    (layout->gc64 ? len != nent + 2 : len < nent + 1))
		return false;
	if (layout->SnapShot_mcofs != LAYOUT_ABSENT) {
		uint32_t mcofs = state_u32(bytes, layout->SnapShot_mcofs) & 0xffff;
		uint32_t next_mcofs = state_u32(next, layout->SnapShot_mcofs) & 0xffff;

		return mcofs <= next_mcofs && next_mcofs <= szmcode + TAIL_MAX;
	}
	return true;
}

/* Whether all snapshots of a trace fit a layout. */
static bool snapshots_fit(const struct derive *derive, const struct luastate_layout *layout,
			  const struct derive_object *trace)
{
	const struct luastate_layout *own = &derive->layout;
	uint32_t count = derive_u16(trace, own->GCtrace_nsnap);
	size_t size = (size_t)own->SnapShot_sizeof;
	uint8_t bytes[SNAPSHOTS_LOOKED * SNAPSHOT_MAX + 8] = { 0 };
	struct failure why;

	if (count > SNAPSHOTS_LOOKED)
		count = SNAPSHOTS_LOOKED;
	if (state_read(derive->reader, derive_u64(trace, own->GCtrace_snap), bytes, size * count,
		       &why) != 0)
		return false;
	for (size_t i = 0; i + 1 < count; i++)
		if (!is_snapshot(layout, bytes + size * i, bytes + size * (i + 1),
				 derive_u32(trace, own->GCtrace_nins),
				 derive_u32(trace, own->GCtrace_szmcode))) {
			return false;
		}
	return true;
}

static bool all_snapshots_fit(const struct derive *derive, const struct luastate_layout *layout)
{
	size_t good = 0;

	if (layout->SnapShot_sizeof != derive->layout.SnapShot_sizeof)
		return false;
	for (size_t i = 0; i < derive->trace_count; i++)
		good += snapshots_fit(derive, layout, &derive->traces[i]);
	/* Some traces may be released while they are read. */
	return 8 * good >= 7 * derive->trace_count;
}

/* Find the row whose form the snapshots have; the nearest row is tried first. */
static void find_row(struct derive *derive)
{
	const struct luastate_layout *found =
		all_snapshots_fit(derive, derive->row) ? derive->row : NULL;

	for (size_t i = luastate_layout_count; i-- > 0 && !found;)
		if (strcmp(luastate_layouts[i].arch, state_arch_name) == 0 &&
		    luastate_layouts[i].gc64 == derive->layout.gc64 &&
		    all_snapshots_fit(derive, &luastate_layouts[i]))
			found = &luastate_layouts[i];
	for (size_t i = 0; i < state_field_count; i++) {
		if (!derive_is_member(i, "SnapShot.") || i == DERIVE_FIELD(SnapShot_sizeof))
			continue;
		if (!found)
			derive->source[i] = DERIVE_DOUBTFUL;
		else if (state_field_value(found, i) == LAYOUT_ABSENT)
			derive_note_absent(derive, i);
		else
			derive_note(derive, i, state_field_value(found, i));
	}
}

/* The map ends where the last snapshot's part ends. */
static bool is_map_size(const struct derive *derive, int32_t at)
{
	const struct luastate_layout *layout = &derive->layout;
	size_t good = 0;

	if (at <= layout->GCobj_gct || at % 4 != 0 || at + 4 > layout->GCtrace_sizeof)
		return false;
	for (size_t i = 0; i < derive->trace_count; i++) {
		const struct derive_object *trace = &derive->traces[i];
		uint32_t last = derive_u16(trace, layout->GCtrace_nsnap) - 1,
			 size = derive_u32(trace, at);
		uint8_t bytes[SNAPSHOT_MAX + 8] = { 0 };
		uint32_t used;
		struct failure why;

		if (state_read(derive->reader,
			       derive_u64(trace, layout->GCtrace_snap) +
				       (uint64_t)last * (uint64_t)layout->SnapShot_sizeof,
			       bytes, (size_t)layout->SnapShot_sizeof, &why) != 0)
			continue;
		used = snapshot_start(layout, bytes) + bytes[layout->SnapShot_nent];
		good += layout->gc64 ? size == used + 2 : size > used && size - used < LINKS_MAX;
	}
	return 8 * good >= 7 * derive->trace_count;
}

void derive_snapshots(struct derive *derive)
{
	find_row(derive);
	derive_pick(derive, "GCtrace.", DERIVE_FIELD(GCtrace_nsnapmap), 4, is_map_size);
}
