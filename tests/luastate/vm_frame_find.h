/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LUASTATE_CFRAME_FIND_H
#define TESTS_LUASTATE_CFRAME_FIND_H

/* A C frame is looked for, in the place of a sample's first, and compared. Includes cmocka. */

#include "sample.h"

static inline int find_in(struct sample *sample, const struct luastate_memory *memory, uint64_t pc,
			  uint64_t sp, bool leaf)
{
	struct luastate_vm_frame *found = &sample->vm_frames[0];

	memset(found, 0xee, sizeof(*found));
	sample->why = (struct failure){ 0 };
	sample->vm->reads = 0;
	sample->regs.r[ATTACH_REG_PC] = pc;
	sample->regs.r[ATTACH_REG_SP] = sp;
	return luastate_find_vm_frame(sample->state, memory, &sample->regs, leaf, found,
				      &sample->why);
}

static inline int find(struct sample *sample, uint64_t pc, uint64_t sp, bool leaf)
{
	const struct luastate_memory memory = sample_memory(sample);

	return find_in(sample, &memory, pc, sp, leaf);
}

static inline void expect_not_found(struct sample *sample, uint64_t pc, uint64_t sp)
{
	assert_int_equal(-1, find(sample, pc, sp, true));
	assert_int_equal(FAILURE_NOT_FOUND, sample->why.kind);
}

static inline void set_current(struct fake_vm *vm, uint64_t L)
{
	fake_put_ref(vm, vm->G + (uint64_t)vm->layout->global_State_cur_L, L);
}

/* The fake frame's own contents, as fake_cframe() writes them. */
static inline void expect_frame(struct sample *sample, uint64_t frame, uint64_t L)
{
	const struct luastate_vm_frame *found = &sample->vm_frames[0];

	assert_int_equal(frame, found->address);
	assert_int_equal(L, found->L);
	assert_int_equal(sample->vm->host + FAKE_HOST_DIRECT, attach_pc(&found->caller));
	assert_int_equal(frame + (uint64_t)sample->vm->layout->cframe_size,
			 attach_sp(&found->caller));
	assert_int_equal(0x6666, found->caller.r[ATTACH_REG_RBP]);
	assert_int_equal(0x3333, found->caller.r[ATTACH_REG_RBX]);
	assert_int_equal(0x1414, found->caller.r[ATTACH_REG_R14]);
	assert_int_equal(0x1515, found->caller.r[ATTACH_REG_R15]);
}

#endif
