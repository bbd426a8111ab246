/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LUASTATE_FAKE_TRACE_H
#define TESTS_LUASTATE_FAKE_TRACE_H

/*
 * Traces with content: constants, instructions, snapshots and machine code with guards.
 *
 * A trace is described in a struct, then put into the VM's memory. Where snapshots begin is both in
 * their own numbers, as far as the layout has them, and in the guards of the machine code: each
 * snapshot's last guard ends where the next one begins.
 */
#include "fake_vm.h"

enum {
	FAKE_TRACE_CONSTANTS = 26000, /* 8 bytes each */
	FAKE_TRACE_SNAPSHOTS = 6400,
	FAKE_TRACE_MAP = 26000,
	FAKE_TRACE_INS = 6464,
	FAKE_TRACE_LINKS = 512,
	FAKE_TRACE_CODE = 4096, /* bytes of a trace's machine code at most */
	FAKE_REF_BASE = 0x8000,
	FAKE_REF_NIL = 0x7fff,
	FAKE_REF_LOADED = 0x8001, /* a slot that no constant fills */
	FAKE_GUARD_BYTES = 6,
	FAKE_STUB_BYTES = 4,
	FAKE_STUBS = 64,
};

/** Opcodes and types. Source: LuaJIT v2.1 src/lj_ir.h. */
enum {
	FAKE_IR_RETF = 11,
	FAKE_IR_NOP = 12,
	FAKE_IR_BASE = 13,
	FAKE_IR_KPRI = 22,
	FAKE_IR_KGC = 24,
	FAKE_IR_KNUM = 28,
	FAKE_IRT_PROTO = 7,
	FAKE_IRT_FUNC = 8,
	FAKE_IRT_NUM = 14,
	FAKE_SNAP_FRAME = 0x010000,
	FAKE_SNAP_CONT = 0x020000,
	FAKE_SNAP_NORESTORE = 0x040000,
};

struct fake_snapshot {
	uint32_t mapofs, ref, offset;
	unsigned nent;
};

/** A trace in the making, and where it is. */
struct fake_tracing {
	uint32_t number;
	uint64_t proto; /**< It starts in. */
	unsigned start; /**< Index of its first instruction there. */
	uint64_t mcode;
	uint32_t szmcode, mcloop;
	uint32_t parent, exit, root; /**< Of a side trace. */
	uint32_t startins, linktype, link, children;
	uint32_t stack_check; /**< Exit of a check in front of the trace's head; 0: none. */

	uint64_t constants[FAKE_TRACE_CONSTANTS]; /**< From the highest reference down. */
	uint32_t constant_count;
	uint64_t ins[FAKE_TRACE_INS]; /**< From FAKE_REF_BASE on. */
	uint32_t ins_count;
	struct fake_snapshot snapshots[FAKE_TRACE_SNAPSHOTS];
	uint32_t snapshot_count;
	uint32_t map[FAKE_TRACE_MAP];
	uint32_t map_count;

	/* The snapshot in the making. */
	unsigned base;
	uint32_t links[FAKE_TRACE_LINKS];
	uint32_t link_count;

	uint64_t address; /**< GCtrace, once it is put. */
};

/** Begin trace @p number, which starts at an instruction of a prototype. */
void fake_tracing_init(struct fake_tracing *tracing, uint32_t number, uint64_t proto,
		       unsigned start, uint64_t mcode);

/** Constants. @return Their references. */
uint32_t fake_tracing_object(const struct fake_vm *vm, struct fake_tracing *tracing,
			     uint64_t object, unsigned type);
uint32_t fake_tracing_number(struct fake_tracing *tracing, uint64_t value);

/** An instruction. */
void fake_tracing_ins(struct fake_tracing *tracing, unsigned op, unsigned op1, unsigned op2);

/**
 * Begin a snapshot that holds from an offset in the machine code on. Its lowest frame is the one on
 * the stack; calls are then added upwards.
 */
void fake_snap_begin(const struct fake_vm *vm, struct fake_tracing *tracing, uint32_t offset);
/** The topmost frame is at @p pc; the snapshot is done. */
void fake_snap_end(const struct fake_vm *vm, struct fake_tracing *tracing, uint64_t pc);
/** A call from Lua that returns to @p ret. @param function 0: none that is a constant. */
void fake_snap_call(const struct fake_vm *vm, struct fake_tracing *tracing, uint64_t function,
		    uint64_t ret);
/** A frame with a distance for its link, @p gap slots above the one below. */
void fake_snap_delta(const struct fake_vm *vm, struct fake_tracing *tracing, uint64_t function,
		     unsigned gap, unsigned type);
/** A metamethod's; @p pc is where the caller goes on. */
void fake_snap_cont(const struct fake_vm *vm, struct fake_tracing *tracing, uint64_t function,
		    unsigned gap, uint64_t pc);
/** A tail call has put @p function in the lowest frame's place. */
void fake_snap_replace(const struct fake_vm *vm, struct fake_tracing *tracing, uint64_t function);
/** The lowest frame's function was loaded from the stack or specialised. */
void fake_snap_slot(struct fake_tracing *tracing, unsigned slot, uint32_t flags, uint32_t ref);

/** Memory for machine code that begins at a page's start, filled with nops. */
uint64_t fake_code_area(struct fake_vm *vm, size_t len);
/** Exit stubs of all traces. @return The first one's address. */
uint64_t fake_stubs(struct fake_vm *vm);
/** A table of traces. */
void fake_trace_table(struct fake_vm *vm, uint32_t size);
/** Put a trace in memory and in the table. @return The GCtrace. */
uint64_t fake_tracing_put(struct fake_vm *vm, struct fake_tracing *tracing);
/** Likewise in the place of another one that has its size at least. */
void fake_tracing_put_at(struct fake_vm *vm, struct fake_tracing *tracing, uint64_t address);
/** The table's entry. */
void fake_trace_enter(struct fake_vm *vm, uint32_t number, uint64_t trace);
/** A conditional branch. */
void fake_put_guard(struct fake_vm *vm, uint64_t address, uint64_t target);

#endif
