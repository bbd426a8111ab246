/* SPDX-License-Identifier: MIT */
#include "luastate/arch/arch.h"
#include "fake_trace.h"

enum {
	FAKE_PAGE_BYTES = 4096,
	FAKE_HEAD_BYTES = 11,
	/* Three constants that each trace has: nil, false, true. */
	FAKE_PRIMITIVES = 3,
};

static uint64_t instruction(unsigned op, unsigned type, uint32_t low)
{
	return low | (uint64_t)type << 32 | (uint64_t)op << 40;
}

void fake_tracing_init(struct fake_tracing *tracing, uint32_t number, uint64_t proto,
		       unsigned start, uint64_t mcode)
{
	memset(tracing, 0, sizeof(*tracing));
	tracing->number = number;
	tracing->proto = proto;
	tracing->start = start;
	tracing->mcode = mcode;
	tracing->szmcode = 200;
	tracing->linktype = 1;
	for (unsigned i = 0; i < FAKE_PRIMITIVES; i++)
		tracing->constants[tracing->constant_count++] = instruction(FAKE_IR_KPRI, i, 0);
	tracing->ins[tracing->ins_count++] = instruction(FAKE_IR_BASE, 0, 0);
	fake_tracing_ins(tracing, FAKE_IR_NOP, 0, 0);
}

static uint32_t add_constant(struct fake_tracing *tracing, uint64_t word)
{
	MUST(tracing->constant_count < FAKE_TRACE_CONSTANTS);
	tracing->constants[tracing->constant_count++] = word;
	return FAKE_REF_BASE - tracing->constant_count;
}

/* The instruction comes before its 64 bits. */
uint32_t fake_tracing_object(const struct fake_vm *vm, struct fake_tracing *tracing,
			     uint64_t object, unsigned type)
{
	if (!vm->layout->gc64)
		return add_constant(tracing, instruction(FAKE_IR_KGC, type, (uint32_t)object));
	add_constant(tracing, object);
	return add_constant(tracing, instruction(FAKE_IR_KGC, type, 0));
}

uint32_t fake_tracing_number(struct fake_tracing *tracing, uint64_t value)
{
	add_constant(tracing, value);
	return add_constant(tracing, instruction(FAKE_IR_KNUM, FAKE_IRT_NUM, 0));
}

void fake_tracing_ins(struct fake_tracing *tracing, unsigned op, unsigned op1, unsigned op2)
{
	MUST(tracing->ins_count < FAKE_TRACE_INS);
	tracing->ins[tracing->ins_count++] = instruction(op, 0, op1 | op2 << 16);
}

/* ---- Snapshots -------------------------------------------------------------------------- */

static unsigned frame_slots(const struct fake_vm *vm)
{
	return vm->layout->gc64 ? 2 : 1;
}

static void put_word(struct fake_tracing *tracing, uint32_t word)
{
	MUST(tracing->map_count < FAKE_TRACE_MAP);
	tracing->map[tracing->map_count++] = word;
}

void fake_snap_slot(struct fake_tracing *tracing, unsigned slot, uint32_t flags, uint32_t ref)
{
	put_word(tracing, slot << 24 | flags | ref);
	tracing->snapshots[tracing->snapshot_count].nent++;
}

void fake_snap_begin(const struct fake_vm *vm, struct fake_tracing *tracing, uint32_t offset)
{
	MUST(tracing->snapshot_count < FAKE_TRACE_SNAPSHOTS);
	tracing->snapshots[tracing->snapshot_count] =
		(struct fake_snapshot){ .mapofs = tracing->map_count,
					.ref = FAKE_REF_BASE + tracing->ins_count,
					.offset = offset };
	tracing->base = frame_slots(vm);
	tracing->link_count = 0;
}

/* Without GC64 links stand behind the slots, the topmost frame's first. */
void fake_snap_end(const struct fake_vm *vm, struct fake_tracing *tracing, uint64_t pc)
{
	if (vm->layout->gc64) {
		uint64_t position = pc << 8 | (tracing->base - 2);

		put_word(tracing, (uint32_t)position);
		put_word(tracing, (uint32_t)(position >> 32));
	} else {
		put_word(tracing, (uint32_t)pc);
		while (tracing->link_count)
			put_word(tracing, tracing->links[--tracing->link_count]);
	}
	tracing->snapshot_count++;
	fake_tracing_ins(tracing, FAKE_IR_NOP, 0, 0);
}

/* A link, or a continuation's position. */
static void put_link(const struct fake_vm *vm, struct fake_tracing *tracing, uint64_t link)
{
	MUST(tracing->link_count < FAKE_TRACE_LINKS);
	if (!vm->layout->gc64)
		tracing->links[tracing->link_count++] = (uint32_t)link;
}

static void put_frame(const struct fake_vm *vm, struct fake_tracing *tracing, unsigned above,
		      uint64_t function, uint64_t link)
{
	uint32_t ref = function ? fake_tracing_object(vm, tracing, function, FAKE_IRT_FUNC)
				: FAKE_REF_LOADED;

	tracing->base += above;
	put_link(vm, tracing, link);
	if (vm->layout->gc64) {
		fake_snap_slot(tracing, tracing->base - 2, 0, ref);
		fake_snap_slot(tracing, tracing->base - 1, FAKE_SNAP_FRAME,
			       fake_tracing_number(tracing, link));
	} else {
		fake_snap_slot(tracing, tracing->base - 1, FAKE_SNAP_FRAME, ref);
	}
}

void fake_snap_call(const struct fake_vm *vm, struct fake_tracing *tracing, uint64_t function,
		    uint64_t ret)
{
	uint32_t call = fake_get_u32(vm, ret - 4);

	put_frame(vm, tracing, frame_slots(vm) + (call >> 8 & 0xff), function, ret);
}

void fake_snap_delta(const struct fake_vm *vm, struct fake_tracing *tracing, uint64_t function,
		     unsigned gap, unsigned type)
{
	unsigned above = frame_slots(vm) + gap;

	put_frame(vm, tracing, above, function, 8 * above | type);
}

void fake_snap_cont(const struct fake_vm *vm, struct fake_tracing *tracing, uint64_t function,
		    unsigned gap, uint64_t pc)
{
	unsigned above = 2 * frame_slots(vm) + gap;
	unsigned cont = tracing->base + above - frame_slots(vm) - 1;

	put_link(vm, tracing, pc);
	if (vm->layout->gc64)
		fake_snap_slot(tracing, cont - 1, 0, fake_tracing_number(tracing, vm->code));
	fake_snap_slot(tracing, cont, FAKE_SNAP_CONT, fake_tracing_number(tracing, pc));
	put_frame(vm, tracing, above, function, 8 * above | FAKE_LINK_CONT);
}

void fake_snap_replace(const struct fake_vm *vm, struct fake_tracing *tracing, uint64_t function)
{
	uint32_t ref = fake_tracing_object(vm, tracing, function, FAKE_IRT_FUNC);

	fake_snap_slot(tracing, 0, vm->layout->gc64 ? 0 : FAKE_SNAP_FRAME, ref);
	if (vm->layout->gc64)
		fake_snap_slot(tracing, 1, FAKE_SNAP_FRAME | FAKE_SNAP_NORESTORE, FAKE_REF_NIL);
}

/* ---- Machine code ----------------------------------------------------------------------- */

uint64_t fake_code_area(struct fake_vm *vm, size_t len)
{
	uint64_t area = fake_alloc(vm, len + FAKE_PAGE_BYTES);

	area = (area + FAKE_PAGE_BYTES - 1) & ~(uint64_t)(FAKE_PAGE_BYTES - 1);
	memset(fake_at(vm, area, len), 0x90, len);
	return area;
}

static uint64_t stub_groups(const struct fake_vm *vm)
{
	return fake_member(vm->G,
			   vm->layout->global_State_to_J + vm->layout->jit_State_exitstubgroup);
}

uint64_t fake_stubs(struct fake_vm *vm)
{
	uint64_t stubs = fake_alloc(vm, FAKE_STUBS * FAKE_STUB_BYTES);

	for (uint64_t i = 0; i < STATE_STUB_GROUPS; i++)
		fake_put_u64(vm, stub_groups(vm) + 8 * i,
			     i < FAKE_STUBS / 32 ? stubs + 32 * FAKE_STUB_BYTES * i : 0);
	return stubs;
}

void fake_put_guard(struct fake_vm *vm, uint64_t address, uint64_t target)
{
	static const uint8_t jne[] = { 0x0f, 0x85 };

	fake_put(vm, address, jne, sizeof(jne));
	fake_put_u32(vm, address + 2, (uint32_t)(target - address - FAKE_GUARD_BYTES));
}

/* The store of the trace's number. Source: LuaJIT v2.1 src/lj_emit_x86.h, emit_setvmstate. */
static void put_head(struct fake_vm *vm, uint64_t address, uint32_t number)
{
	static const uint8_t gc64[] = { 0x41, 0xc7, 0x86 }, gc32[] = { 0xc7, 0x04, 0x25 };
	const struct luastate_layout *layout = vm->layout;
	uint64_t operand = layout->gc64 ? (uint64_t)(int64_t)(layout->global_State_vmstate -
							      layout->global_State_to_dispatch)
					: fake_member(vm->G, layout->global_State_vmstate);

	fake_put(vm, address, layout->gc64 ? gc64 : gc32, 3);
	fake_put_u32(vm, address + 3, (uint32_t)operand);
	fake_put_u32(vm, address + 7, number);
}

static void put_code(struct fake_vm *vm, const struct fake_tracing *tracing)
{
	uint64_t stubs = fake_get_u64(vm, stub_groups(vm)), head = tracing->mcode;

	memset(fake_at(vm, tracing->mcode, tracing->szmcode), 0x90, tracing->szmcode);
	if (tracing->stack_check && stubs) {
		fake_put_guard(vm, head, stubs + FAKE_STUB_BYTES * tracing->stack_check);
		head += FAKE_GUARD_BYTES;
	}
	if (tracing->szmcode >= FAKE_HEAD_BYTES + (head - tracing->mcode))
		put_head(vm, head, tracing->number);
	for (uint32_t i = 1; stubs && i < tracing->snapshot_count; i++) {
		uint32_t offset = tracing->snapshots[i].offset;

		if (offset >= FAKE_HEAD_BYTES + FAKE_GUARD_BYTES && offset <= tracing->szmcode)
			fake_put_guard(vm, tracing->mcode + offset - FAKE_GUARD_BYTES,
				       stubs + FAKE_STUB_BYTES * (i - 1));
	}
}

/* ---- The trace -------------------------------------------------------------------------- */

void fake_trace_table(struct fake_vm *vm, uint32_t size)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t J = fake_member(vm->G, layout->global_State_to_J);

	fake_put_u64(vm, fake_member(J, layout->jit_State_trace),
		     fake_alloc(vm, (size_t)layout->ref_size * size));
	fake_put_u32(vm, fake_member(J, layout->jit_State_sizetrace), size);
	fake_put_u32(vm, fake_member(J, layout->jit_State_freetrace), size);
}

void fake_trace_enter(struct fake_vm *vm, uint32_t number, uint64_t trace)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t J = fake_member(vm->G, layout->global_State_to_J);
	uint64_t table = fake_get_u64(vm, fake_member(J, layout->jit_State_trace));

	MUST(number < fake_get_u32(vm, fake_member(J, layout->jit_State_sizetrace)));
	fake_put_ref(vm, table + (uint64_t)layout->ref_size * number, trace);
}

/** Where the parts are, as distances from the header. */
struct locations {
	size_t constants, ins, snapshots, map, end;
};

static struct locations lay_out(const struct luastate_layout *layout,
				const struct fake_tracing *tracing)
{
	struct locations locations = { .constants =
					       ((size_t)layout->GCtrace_sizeof + 7) & ~(size_t)7 };

	locations.ins = locations.constants + 8 * (size_t)tracing->constant_count;
	locations.snapshots = locations.ins + 8 * (size_t)tracing->ins_count;
	locations.map = locations.snapshots +
			(size_t)layout->SnapShot_sizeof * (size_t)tracing->snapshot_count;
	locations.end = locations.map + 4 * (size_t)tracing->map_count;
	return locations;
}

/* Source: LuaJIT v2.1 src/lj_jit.h, SnapShot. Of 8 bytes it has two 16-bit members first. */
static void put_snapshots(struct fake_vm *vm, const struct fake_tracing *tracing, uint64_t at)
{
	const struct luastate_layout *layout = vm->layout;

	for (uint32_t i = 0; i < tracing->snapshot_count; i++) {
		const struct fake_snapshot *snapshot = &tracing->snapshots[i];

		if (layout->SnapShot_ref == 2)
			fake_put_u16(vm, at, snapshot->mapofs);
		else
			fake_put_u32(vm, at, snapshot->mapofs);
		fake_put_u16(vm, fake_member(at, layout->SnapShot_ref), snapshot->ref);
		if (layout->SnapShot_mcofs != LAYOUT_ABSENT)
			fake_put_u16(vm, fake_member(at, layout->SnapShot_mcofs), snapshot->offset);
		fake_put_u8(vm, fake_member(at, layout->SnapShot_nent), (uint8_t)snapshot->nent);
		fake_put_u8(vm, fake_member(at, layout->SnapShot_count), 0);
		at += (uint64_t)layout->SnapShot_sizeof;
	}
}

static void put_header(struct fake_vm *vm, const struct fake_tracing *tracing, uint64_t trace,
		       const struct locations *locations)
{
	const struct luastate_layout *layout = vm->layout;

	fake_put_u8(vm, fake_member(trace, layout->GCobj_gct),
		    (uint8_t)state_gct(layout->tag_trace));
	fake_put_u32(vm, fake_member(trace, layout->GCtrace_nins),
		     FAKE_REF_BASE + tracing->ins_count);
	fake_put_u32(vm, fake_member(trace, layout->GCtrace_nk),
		     FAKE_REF_BASE - tracing->constant_count);
	fake_put_u16(vm, fake_member(trace, layout->GCtrace_nsnap), tracing->snapshot_count);
	if (layout->SnapShot_ref == 2)
		fake_put_u16(vm, fake_member(trace, layout->GCtrace_nsnapmap), tracing->map_count);
	else
		fake_put_u32(vm, fake_member(trace, layout->GCtrace_nsnapmap), tracing->map_count);
	fake_put_u64(vm, fake_member(trace, layout->GCtrace_snap), trace + locations->snapshots);
	fake_put_u64(vm, fake_member(trace, layout->GCtrace_snapmap), trace + locations->map);
	fake_put_u64(vm, fake_member(trace, layout->GCtrace_ir),
		     trace + locations->ins - 8 * (uint64_t)FAKE_REF_BASE);
	fake_put_ref(vm, fake_member(trace, layout->GCtrace_startpt), tracing->proto);
	fake_put_ref(vm, fake_member(trace, layout->GCtrace_startpc),
		     fake_pc(vm, tracing->proto, tracing->start));
	fake_put_u64(vm, fake_member(trace, layout->GCtrace_mcode), tracing->mcode);
	fake_put_u32(vm, fake_member(trace, layout->GCtrace_szmcode), tracing->szmcode);
	fake_put_u32(vm, fake_member(trace, layout->GCtrace_mcloop), tracing->mcloop);
	fake_put_u16(vm, fake_member(trace, layout->GCtrace_traceno), tracing->number);
	fake_put_u16(vm, fake_member(trace, layout->GCtrace_root), tracing->root);
	fake_put_u32(vm, fake_member(trace, layout->GCtrace_startins), tracing->startins);
	fake_put_u16(vm, fake_member(trace, layout->GCtrace_link), tracing->link);
	fake_put_u16(vm, fake_member(trace, layout->GCtrace_nchild), tracing->children);
	fake_put_u8(vm, fake_member(trace, layout->GCtrace_linktype), (uint8_t)tracing->linktype);
}

void fake_tracing_put_at(struct fake_vm *vm, struct fake_tracing *tracing, uint64_t address)
{
	const struct locations locations = lay_out(vm->layout, tracing);

	tracing->ins[0] =
		instruction(FAKE_IR_BASE, 0, tracing->parent | (uint32_t)tracing->exit << 16);
	for (uint32_t i = 0; i < tracing->constant_count; i++)
		fake_put_u64(vm, address + locations.ins - 8 * ((uint64_t)i + 1),
			     tracing->constants[i]);
	fake_put(vm, address + locations.ins, tracing->ins, 8 * (size_t)tracing->ins_count);
	put_snapshots(vm, tracing, address + locations.snapshots);
	fake_put(vm, address + locations.map, tracing->map, 4 * (size_t)tracing->map_count);
	put_header(vm, tracing, address, &locations);
	if (fake_offset(vm, tracing->mcode) < FAKE_BYTES)
		put_code(vm, tracing);
	tracing->address = address;
	fake_trace_enter(vm, tracing->number, address);
}

uint64_t fake_tracing_put(struct fake_vm *vm, struct fake_tracing *tracing)
{
	const struct locations locations = lay_out(vm->layout, tracing);
	size_t size = (size_t)vm->layout->GCtrace_sizeof;

	fake_tracing_put_at(vm, tracing, fake_alloc_struct(vm, size, locations.end - size));
	return tracing->address;
}
