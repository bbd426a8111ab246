/* SPDX-License-Identifier: MIT */
/* What do a VM's collector and compiler do? A few reads of the global state and the compiler's
 * state show it.
 *
 * Builds of Tarantool that count allocated bytes also count aborted traces, 24 bytes behind
 * jit_State.szallmcarea.
 * Source: LuaJIT v2.1 src/lj_obj.h (GCState), src/lj_jit.h (jit_State, HotPenalty);
 * tarantool/luajit 5f6775ae src/lj_jit.h (tracenum, nsnaprestore, ntraceabort).
 */
#include "luastate/vm_stats.h"

#include <stdlib.h>

#include "luastate/layout/object.h"
#include "luastate/state/state.h"

enum {
	ABORTS_BEHIND = 24,
	PENALTY_SLOTS = 64,
	/* maxtrace is at most 65535 (TraceNo1). */
	SLOTS_MAX = 65536,
};

struct luastate_stats_delta {
	uint64_t *slots; /* the last table of traces */
	uint32_t slot_count;
	uint8_t penalties[PENALTY_SLOTS * STATE_OBJECT_MAX];
	bool has_slots, has_penalties;
	uint64_t created, aborted;
};

struct luastate_stats_delta *luastate_stats_delta_create(void)
{
	return calloc(1, sizeof(struct luastate_stats_delta));
}

void luastate_stats_delta_destroy(struct luastate_stats_delta *delta)
{
	if (delta)
		free(delta->slots);
	free(delta);
}

/* The arguments of a reading's steps. */
struct reading {
	const struct attach_reader *reader;
	const struct luastate_layout *layout;
	uint64_t G, J;
};

static int read_at(const struct reading *reading, uint64_t base, int32_t offset, void *ret_bytes,
		   size_t len, struct failure *why)
{
	if (offset == LAYOUT_ABSENT)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, base, "find a member of the VM");
	return state_read(reading->reader, base + (uint64_t)offset, ret_bytes, len, why);
}

/* ---- The collector ---------------------------------------------------------------------- */

static int read_heap(const struct reading *reading, struct luastate_vm_stats *out,
		     struct failure *why)
{
	const struct luastate_layout *layout = reading->layout;
	uint8_t sums[16];
	uint32_t settings[2];

	/* The threshold follows the sum, and the pause follows the step's multiplier. */
	if (read_at(reading, reading->G, layout->global_State_gc_total, sums,
		    2 * (size_t)layout->ref_size, why) != 0 ||
	    read_at(reading, reading->G, layout->global_State_gc_state, &out->gc_phase, 1, why) !=
		    0 ||
	    read_at(reading, reading->G, layout->global_State_gc_stepmul, settings,
		    sizeof(settings), why) != 0)
		return -1;
	out->heap_bytes = state_ref(layout, sums, 0);
	out->threshold_bytes = state_ref(layout, sums, layout->ref_size);
	out->step_multiplier = settings[0];
	out->pause = settings[1];
	if (layout->global_State_gc_allocated == LAYOUT_ABSENT)
		return 0;
	out->has_allocated = read_at(reading, reading->G, layout->global_State_gc_allocated,
				     &out->allocated_bytes, sizeof(out->allocated_bytes), why) == 0;
	return 0;
}

/* ---- The compiler ----------------------------------------------------------------------- */

/* Count the traces, and those that are new since the last look. Misses a trace that came and went
 * in between, and one with its predecessor's number and address. */
static void compare_slots(struct luastate_stats_delta *delta, const struct luastate_layout *layout,
			  const uint8_t *bytes, uint32_t count, struct luastate_vm_stats *out)
{
	uint64_t *slots = calloc((size_t)count + 1, sizeof(*slots));

	for (uint32_t i = 1; i < count; i++) {
		uint64_t trace = state_ref(layout, bytes, (int32_t)i * layout->ref_size);
		uint64_t before = i < delta->slot_count ? delta->slots[i] : 0;

		out->traces += trace != 0;
		delta->created += delta->has_slots && trace && trace != before;
		if (slots)
			slots[i] = trace;
	}
	delta->has_slots = slots != NULL;
	free(delta->slots);
	delta->slots = slots;
	delta->slot_count = slots ? count : 0;
}

static int read_traces(const struct reading *reading, struct luastate_stats_delta *delta,
		       struct luastate_vm_stats *out, struct failure *why)
{
	const struct luastate_layout *layout = reading->layout;
	uint8_t pointer[8] = { 0 }, *bytes;
	uint32_t count;
	uint64_t table;
	int ret;

	if (read_at(reading, reading->J, layout->jit_State_trace, pointer, (size_t)layout->ref_size,
		    why) != 0 ||
	    read_at(reading, reading->J, layout->jit_State_sizetrace, &count, sizeof(count), why) !=
		    0)
		return -1;
	table = state_ref(layout, pointer, 0);
	if (count > SLOTS_MAX)
		return failure_set(why, FAILURE_INVALID, 0, 0, reading->J, "read the traces");
	if (count == 0 || !state_is_pointer(table)) {
		compare_slots(delta, layout, pointer, 0, out);
		return 0;
	}
	bytes = malloc((size_t)count * (size_t)layout->ref_size);
	if (!bytes)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "read the traces");
	ret = state_read(reading->reader, table, bytes, (size_t)count * (size_t)layout->ref_size,
			 why);
	if (ret == 0)
		compare_slots(delta, layout, bytes, count, out);
	free(bytes);
	return ret;
}

/* An abort changes the penalty of the bytecode where recording began: a new slot, or a larger
 * value. Aborts of side traces change nothing. */
static void compare_penalties(struct luastate_stats_delta *delta, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < PENALTY_SLOTS && delta->has_penalties; i++)
		delta->aborted += memcmp(bytes + i * size, delta->penalties + i * size, size) != 0;
	memcpy(delta->penalties, bytes, PENALTY_SLOTS * size);
	delta->has_penalties = true;
}

static void read_aborts(const struct reading *reading, struct luastate_stats_delta *delta,
			struct luastate_vm_stats *out)
{
	const struct luastate_layout *layout = reading->layout;
	size_t size = (size_t)layout->HotPenalty_sizeof;
	uint8_t bytes[PENALTY_SLOTS * STATE_OBJECT_MAX];
	struct failure why;

	if (out->has_allocated && layout->jit_State_szallmcarea != LAYOUT_ABSENT &&
	    read_at(reading, reading->J, layout->jit_State_szallmcarea + ABORTS_BEHIND,
		    &out->aborted, sizeof(out->aborted), &why) == 0) {
		out->is_counted = true;
		return;
	}
	if (size > 0 && size <= STATE_OBJECT_MAX &&
	    read_at(reading, reading->J, layout->jit_State_penalty, bytes, PENALTY_SLOTS * size,
		    &why) == 0)
		compare_penalties(delta, bytes, size);
	out->aborted = delta->aborted;
}

static int read_compiler(const struct reading *reading, struct luastate_stats_delta *delta,
			 struct luastate_vm_stats *out, struct failure *why)
{
	const struct luastate_layout *layout = reading->layout;
	uint64_t top, bottom, all;
	uint32_t flags;

	if (!state_has_compiler(layout))
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, reading->G, "find the compiler");
	if (read_at(reading, reading->J, layout->jit_State_flags, &flags, sizeof(flags), why) !=
		    0 ||
	    read_at(reading, reading->J, layout->jit_State_mctop, &top, sizeof(top), why) != 0 ||
	    read_at(reading, reading->J, layout->jit_State_mcbot, &bottom, sizeof(bottom), why) !=
		    0 ||
	    read_at(reading, reading->J, layout->jit_State_szallmcarea, &all, sizeof(all), why) !=
		    0 ||
	    read_traces(reading, delta, out, why) != 0)
		return -1;
	out->jit_on = flags & 1;
	/* Only the newest area has free space. */
	out->mcode_bytes = top >= bottom && top - bottom <= all ? all - (top - bottom) : all;
	read_aborts(reading, delta, out);
	out->created = delta->created;
	return 0;
}

int luastate_read_vm_stats(const struct luastate *state, const struct attach_reader *reader,
			   uint64_t G, struct luastate_stats_delta *delta,
			   struct luastate_vm_stats *ret_stats, struct failure *why)
{
	const struct luastate_vm *vm = state_vm_by_G(state, G);
	struct luastate_vm_stats stats = { 0 };
	struct reading reading = { .reader = reader, .G = G };
	struct failure ignored;

	if (!vm)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, G, "find the VM");
	reading.layout = vm->layout;
	reading.J = G + (uint64_t)(int64_t)vm->layout->global_State_to_J;
	if (read_heap(&reading, &stats, why) != 0)
		return -1;
	stats.has_traces = read_compiler(&reading, delta, &stats, &ignored) == 0;
	*ret_stats = stats;
	return 0;
}
