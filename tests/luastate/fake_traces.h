/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LUASTATE_FAKE_TRACES_H
#define TESTS_LUASTATE_FAKE_TRACES_H

/* A fake VM whose compiler has made something. */

#include "fake_trace.h"

enum {
	FAKE_TRACE_SLOTS = 8,
	FAKE_TRACES = 3,
	FAKE_EXITS = 3, /* of each trace */
	FAKE_IR = 4,	/* instructions of each trace: one, and one for each snapshot */
	FAKE_TRACE_PARAM = 100,
};

/**
 * Functions top, which calls mid by its name, mid, leaf, whose prototype is a constant of trace 1,
 * and used, whose closure is one; parent, not called here, has made used and named it.
 *
 *   trace 1   loop in line 12 of top, linked to itself; exit 1 in line 21 of mid, called from top
 *   trace 2   at exit 2 of that; goes to trace 1
 *   trace 3   stitched to trace 1; returns
 */
struct fake_traces {
	uint64_t top, mid, leaf, used, parent; /* prototypes */
	uint64_t table, traces[FAKE_TRACES + 1];
	uint64_t area;
};

void fake_traces_make(struct fake_vm *vm, struct fake_traces *ret_traces);

/** Address of instruction @p ref of a trace, of snapshot @p index, and of entry @p index of the
 * map.
 */
uint64_t fake_trace_ir(const struct fake_vm *vm, uint64_t trace, uint32_t ref);
uint64_t fake_trace_snap(const struct fake_vm *vm, uint64_t trace, uint32_t index);
uint64_t fake_trace_map(const struct fake_vm *vm, uint64_t trace, uint32_t index);

/** A penalty in one of the slots. */
void fake_penalty(struct fake_vm *vm, unsigned slot, uint64_t pc, unsigned value, unsigned reason);

#endif
