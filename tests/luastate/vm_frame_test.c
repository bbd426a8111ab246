/* SPDX-License-Identifier: MIT */
/* The interpreter's C frames, in all states in which a thread can be caught. */
#include "vm_frame_find.h"

/* What the callee-saved registers hold in the caller of the VM. */
enum { CALLER_RBP = 0xb9, CALLER_RBX = 0xb3, CALLER_R15 = 0x15, CALLER_R14 = 0x14 };

static void test_complete_frame(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t frame = fake_cframe(vm, vm->main, 0, 0);

	sample->regs.r[ATTACH_REG_RBX] = 0x4444;
	assert_int_equal(0, find(sample, vm->code + FAKE_AT_PLAIN, frame, true));
	expect_frame(sample, frame, vm->main);
	assert_int_equal(0x4444, sample->vm_frames[0].frame.r[STATE_REG_PC]);
	assert_true(sample->vm_frames[0].leaf);
	assert_false(sample->vm_frames[0].compiled);
	assert_int_equal(0, find(sample, vm->code + FAKE_AT_PLAIN, frame, false));
	expect_frame(sample, frame, vm->main);
	assert_int_equal(0x4444, sample->vm_frames[0].frame.r[STATE_REG_PC]);
	assert_false(sample->vm_frames[0].leaf);
}

static void test_outside_the_interpreter(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t frame = fake_cframe(vm, vm->main, 0, 0);

	expect_not_found(sample, vm->code - 1, frame);
	assert_int_equal(vm->code - 1, sample->why.address);
	expect_not_found(sample, vm->code + FAKE_CODE_BYTES, frame);
	expect_not_found(sample, 0, frame);
}

static void test_helpers(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t L = fake_coroutine(vm, 16), frame = fake_cframe(vm, L, 0, 0);

	set_current(vm, 0);
	fake_push(vm, vm->code + FAKE_AT_RETURN);
	for (int words = 1; words <= 8; words++) {
		assert_int_equal(0, find(sample, vm->code + FAKE_AT_HELPER, vm->sp, true));
		expect_frame(sample, frame, L);
		/* The next spilled word: a coroutine, which is no sign of a frame by itself. */
		fake_push(vm, words % 2 ? L : vm->main);
	}
	expect_not_found(sample, vm->code + FAKE_AT_HELPER, vm->sp);
}

/* ---- Entry and exit --------------------------------------------------------------------- */

/* The stack with @words of the saved registers pushed. */
static uint64_t push_saved(struct fake_vm *vm, uint64_t ret, int words)
{
	static const uint64_t saved[] = { CALLER_RBP, CALLER_RBX, CALLER_R15, CALLER_R14 };

	fake_push(vm, ret);
	for (int i = 0; i < words; i++)
		fake_push(vm, saved[i]);
	return vm->sp + 8 * (uint64_t)words + 8;
}

/* The registers hold the caller's values as long as those are not pushed, then the VM's. */
static void set_registers(struct attach_registers *regs, int words)
{
	regs->r[ATTACH_REG_RBP] = words >= 1 ? 0xdead : CALLER_RBP;
	regs->r[ATTACH_REG_RBX] = words >= 2 ? 0xdead : CALLER_RBX;
	regs->r[ATTACH_REG_R15] = words >= 3 ? 0xdead : CALLER_R15;
	regs->r[ATTACH_REG_R14] = words >= 4 ? 0xdead : CALLER_R14;
}

static void expect_partial(struct sample *sample, uint64_t pc, int words)
{
	struct fake_vm *vm = sample->vm;
	const struct luastate_vm_frame *found = &sample->vm_frames[0];
	uint64_t caller_sp = push_saved(vm, vm->host + FAKE_HOST_INDIRECT, words);

	set_registers(&sample->regs, words);
	assert_int_equal(0, find(sample, pc, vm->sp, true));
	assert_int_equal(0, found->L);
	assert_int_equal(vm->host + FAKE_HOST_INDIRECT, attach_pc(&found->caller));
	assert_int_equal(caller_sp, attach_sp(&found->caller));
	assert_int_equal(CALLER_RBP, found->caller.r[ATTACH_REG_RBP]);
	assert_int_equal(CALLER_RBX, found->caller.r[ATTACH_REG_RBX]);
	assert_int_equal(CALLER_R15, found->caller.r[ATTACH_REG_R15]);
	assert_int_equal(CALLER_R14, found->caller.r[ATTACH_REG_R14]);
	assert_true(found->leaf);
}

static void test_entry_sequence(void **state)
{
	struct sample *sample = *state;
	uint64_t pc = sample->vm->code + FAKE_AT_PROLOGUE;

	set_current(sample->vm, 0);
	expect_partial(sample, pc, 0);
	expect_partial(sample, pc + 1, 1);
	expect_partial(sample, pc + 2, 2);
	expect_partial(sample, pc + 4, 3);
	expect_partial(sample, pc + 6, 4);
}

static void test_exit_sequence(void **state)
{
	struct sample *sample = *state;
	uint64_t pc = sample->vm->code + FAKE_AT_EPILOGUE;

	set_current(sample->vm, 0);
	expect_partial(sample, pc + 4, 4);
	expect_partial(sample, pc + 6, 3);
	expect_partial(sample, pc + 8, 2);
	expect_partial(sample, pc + 9, 1);
	expect_partial(sample, pc + 10, 0);
}

/* Where the frame is whole, and where no instruction starts, the sequences say nothing. */
static void test_sequences_are_not_guessed(void **state)
{
	static const unsigned locations[] = { FAKE_AT_PROLOGUE + 3,  FAKE_AT_PROLOGUE + 5,
					      FAKE_AT_PROLOGUE + 7,  FAKE_AT_PROLOGUE + 10,
					      FAKE_AT_EPILOGUE,	     FAKE_AT_EPILOGUE + 3,
					      FAKE_AT_EPILOGUE + 5,  FAKE_AT_EPILOGUE + 7,
					      FAKE_AT_EPILOGUE + 11, FAKE_AT_PROLOGUE - 1,
					      FAKE_CODE_BYTES - 1,   0 };
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t frame = fake_cframe(vm, vm->main, 0, 0);

	for (size_t i = 0; i < sizeof(locations) / sizeof(locations[0]); i++) {
		assert_int_equal(0, find(sample, vm->code + locations[i], frame, true));
		expect_frame(sample, frame, vm->main);
	}
	/* A caller's frame stands behind a call, whatever its bytes look like. */
	assert_int_equal(0, find(sample, vm->code + FAKE_AT_PROLOGUE + 1, frame, false));
	expect_frame(sample, frame, vm->main);
}

static void test_sequence_on_an_unreadable_stack(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;

	assert_int_equal(-1,
			 find(sample, vm->code + FAKE_AT_PROLOGUE + 4, vm->native_end - 24, true));
	assert_int_equal(FAILURE_FAULT, sample->why.kind);
	assert_int_equal(vm->native_end, sample->why.address);
}

/* Complete, but in no chain yet or any more: believed by its return address. */
static void test_frame_that_is_not_linked(void **state)
{
	static const struct {
		unsigned ret;
		bool in_vm, valid;
	} rets[] = {
		{ FAKE_HOST_DIRECT, false, true },
		{ FAKE_HOST_INDIRECT, false, false },
		{ FAKE_HOST_OTHER, false, false },
		{ FAKE_AT_RETURN, true, true },
		{ FAKE_AT_RETURN + 1, true, false },
		{ FAKE_AT_PLAIN, true, false },
		{ 0, true, false }, /* its call would lie before the interpreter */
		{ 4, true, false },
	};
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t L = fake_coroutine(vm, 16), frame = fake_cframe(vm, L, 0, 0);

	fake_L_set(vm, L, vm->layout->lua_State_cframe, 0);
	set_current(vm, 0);
	for (size_t i = 0; i < sizeof(rets) / sizeof(rets[0]); i++) {
		uint64_t ret = (rets[i].in_vm ? vm->code : vm->host) + rets[i].ret;

		fake_put_u64(vm, fake_cframe_ret(vm, frame), ret);
		if (!rets[i].valid) {
			expect_not_found(sample, vm->code + FAKE_AT_PLAIN, frame);
			continue;
		}
		assert_int_equal(0, find(sample, vm->code + FAKE_AT_PLAIN, frame, true));
		assert_int_equal(0, sample->vm_frames[0].L);
		assert_int_equal(ret, sample->vm_frames[0].caller.r[ATTACH_REG_PC]);
		assert_int_equal(frame + (uint64_t)vm->layout->cframe_size,
				 sample->vm_frames[0].caller.r[ATTACH_REG_SP]);
	}
	fake_put_u64(vm, fake_cframe_ret(vm, frame), 0);
	expect_not_found(sample, vm->code + FAKE_AT_PLAIN, frame);
	fake_put_u64(vm, fake_cframe_ret(vm, frame), UINT64_MAX);
	expect_not_found(sample, vm->code + FAKE_AT_PLAIN, frame);
	fake_put_u64(vm, fake_cframe_ret(vm, frame), FAKE_END + 4);
	expect_not_found(sample, vm->code + FAKE_AT_PLAIN, frame);
}

static void expect_between(struct sample *sample, uint64_t pc, uint64_t frame)
{
	assert_int_equal(0, find(sample, pc, frame, true));
	assert_int_equal(0, sample->vm_frames[0].L);
	assert_int_equal(sample->vm->host + FAKE_HOST_INDIRECT,
			 attach_pc(&sample->vm_frames[0].caller));
	assert_int_equal(frame + (uint64_t)sample->vm->layout->cframe_size,
			 attach_sp(&sample->vm_frames[0].caller));
}

/* C functions that jump to the VM's code are returned to behind a call of themselves. */
static void test_frame_that_code_enters(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t L = fake_coroutine(vm, 16), frame = fake_cframe(vm, L, 0, 0);
	uint64_t entered = vm->code + FAKE_AT_PROLOGUE + 10;

	fake_L_set(vm, L, vm->layout->lua_State_cframe, 0);
	set_current(vm, 0);
	fake_put_u64(vm, fake_cframe_ret(vm, frame), vm->host + FAKE_HOST_INDIRECT);
	for (unsigned i = 0; i <= 76 - 10; i++)
		expect_between(sample, entered + i, frame);
	expect_not_found(sample, entered + 100, frame);
	fake_put_u64(vm, fake_cframe_ret(vm, frame), vm->host + FAKE_HOST_INDIRECT - 1);
	expect_not_found(sample, entered, frame);
}

static void test_frame_that_is_left(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t L = fake_coroutine(vm, 16), older = fake_cframe(vm, L, 0, 0);
	uint64_t frame = fake_cframe(vm, L, 0, 0), pc = vm->code + FAKE_AT_PLAIN;
	uint64_t prev = frame + (uint64_t)vm->layout->cframe_prev;
	uint64_t compiled_base = vm->G + (uint64_t)vm->layout->global_State_jit_base;

	fake_put_u64(vm, fake_cframe_ret(vm, frame), vm->host + FAKE_HOST_INDIRECT);
	set_current(vm, L);
	fake_L_set(vm, L, vm->layout->lua_State_cframe, older);
	expect_between(sample, pc, frame);
	/* One that is resumed has no older one. */
	fake_L_set(vm, L, vm->layout->lua_State_cframe, 0);
	expect_not_found(sample, pc, frame);
	fake_put_u64(vm, prev, 0);
	expect_between(sample, pc, frame);
	/* A trace is being left: old words. */
	fake_put_ref(vm, compiled_base, fake_L_get(vm, L, vm->layout->lua_State_base));
	expect_not_found(sample, pc, frame);
	fake_put_ref(vm, compiled_base, 0);
	/* Another one runs, or what seems to be the frame is returned to from nowhere. */
	set_current(vm, vm->main);
	expect_not_found(sample, pc, frame);
	set_current(vm, L);
	fake_put_u64(vm, fake_cframe_ret(vm, frame), vm->host + FAKE_HOST_INDIRECT - 1);
	expect_not_found(sample, pc, frame);
}

/* ---- Chains ----------------------------------------------------------------------------- */

static void test_chain_with_flags(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t L = fake_coroutine(vm, 16), frames[3];
	uint64_t prev = (uint64_t)vm->layout->cframe_prev;

	for (int i = 0; i < 3; i++) {
		frames[i] = fake_cframe(vm, L, 0, 0);
		fake_push(vm, 0);
	}
	fake_L_set(vm, L, vm->layout->lua_State_cframe, frames[2] | 1);
	fake_put_u64(vm, frames[2] + prev, frames[1] | 2);
	fake_put_u64(vm, frames[1] + prev, frames[0] | 3);
	set_current(vm, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(0, find(sample, vm->code + FAKE_AT_PLAIN, frames[i], i == 2));
		expect_frame(sample, frames[i], L);
	}
}

static void test_broken_chains(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t L = fake_coroutine(vm, 16), oldest = fake_cframe(vm, L, 0, 0);
	uint64_t middle = fake_cframe(vm, L, 0, 0), newest = fake_cframe(vm, L, 0, 0);
	const uint64_t links[] = {
		newest,		newest - 80, newest | 1, middle - 4,	       0,	  8,
		UINT64_MAX - 7, oldest + 8,  FAKE_END,	 vm->native_start - 8, middle | 4
	};

	set_current(vm, 0);
	fake_put_u64(vm, fake_cframe_ret(vm, oldest), 0);
	assert_int_equal(0, find(sample, vm->code + FAKE_AT_PLAIN, oldest, false));
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		fake_put_u64(vm, newest + (uint64_t)vm->layout->cframe_prev, links[i]);
		expect_not_found(sample, vm->code + FAKE_AT_PLAIN, oldest);
		assert_true(sample->vm->reads < 200);
	}
	/* A cycle over two frames. */
	fake_put_u64(vm, newest + (uint64_t)vm->layout->cframe_prev, middle);
	fake_put_u64(vm, middle + (uint64_t)vm->layout->cframe_prev, newest);
	expect_not_found(sample, vm->code + FAKE_AT_PLAIN, oldest);
	assert_true(sample->vm->reads < 200);
}

/* While the C unwinder runs the coroutine holds the oldest frames only. */
static void test_frames_that_an_error_released(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t L = fake_coroutine(vm, 16), frames[3];

	for (int i = 0; i < 3; i++)
		frames[i] = fake_cframe(vm, L, 0, 0);
	set_current(vm, 0);
	for (int i = 0; i < 3; i++) {
		fake_L_set(vm, L, vm->layout->lua_State_cframe, frames[i] | 2);
		for (int k = 0; k < 3; k++) {
			assert_int_equal(0,
					 find(sample, vm->code + FAKE_AT_PLAIN, frames[k], false));
			expect_frame(sample, frames[k], L);
		}
	}
	/* An interrupted one is being left. */
	fake_L_set(vm, L, vm->layout->lua_State_cframe, frames[0]);
	assert_int_equal(0, find(sample, vm->code + FAKE_AT_PLAIN, frames[2], true));
	assert_int_equal(0, sample->vm_frames[0].L);
	/* Links that lead elsewhere. */
	fake_put_u64(vm, frames[1] + (uint64_t)vm->layout->cframe_prev, frames[0] + 8);
	assert_int_equal(-1, find(sample, vm->code + FAKE_AT_PLAIN, frames[2], false));
	fake_put_u64(vm, frames[1] + (uint64_t)vm->layout->cframe_prev, frames[2]);
	assert_int_equal(-1, find(sample, vm->code + FAKE_AT_PLAIN, frames[2], false));
	assert_true(vm->reads < 200);
}

/* At its end lua_yield(), which VM code has called, has let go of them all; so has an error that
 * has reached the outermost protected call, with the status of one that runs. */
static void test_frame_below_a_yield(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t L = fake_coroutine(vm, 16), frame = fake_cframe(vm, L, 0, 0);

	set_current(vm, L);
	fake_L_set(vm, L, vm->layout->lua_State_cframe, 0);
	for (uint8_t status = 0; status < 2; status++) {
		fake_put_u8(vm, L + (uint64_t)vm->layout->GCobj_gct + 2, status);
		assert_int_equal(0, find(sample, vm->code + FAKE_AT_PLAIN, frame, false));
		expect_frame(sample, frame, L);
	}
	set_current(vm, vm->main);
	assert_int_equal(-1, find(sample, vm->code + FAKE_AT_PLAIN, frame, false));
	/* Links that lead elsewhere, and in a circle. */
	set_current(vm, L);
	fake_put_u64(vm, frame + (uint64_t)vm->layout->cframe_prev, frame + 8);
	assert_int_equal(-1, find(sample, vm->code + FAKE_AT_PLAIN, frame, false));
	fake_put_u64(vm, frame + (uint64_t)vm->layout->cframe_prev, frame);
	assert_int_equal(-1, find(sample, vm->code + FAKE_AT_PLAIN, frame, false));
	assert_true(vm->reads < 200);
}

/* A coroutine that an error has ended holds none at all. */
static void test_frames_of_a_failed_coroutine(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t L = fake_coroutine(vm, 16), frame = fake_cframe(vm, L, 0, 0);
	uint64_t status = L + (uint64_t)vm->layout->GCobj_gct + 2;

	set_current(vm, 0);
	fake_L_set(vm, L, vm->layout->lua_State_cframe, 0);
	for (uint8_t value = 0; value < 6; value++) {
		int found;

		fake_put_u8(vm, status, value);
		found = find(sample, vm->code + FAKE_AT_PLAIN, frame, false);
		assert_int_equal(value > 1 ? 0 : -1, found);
		if (found == 0)
			expect_frame(sample, frame, L);
	}
	fake_put_u64(vm, frame + (uint64_t)vm->layout->cframe_prev, frame + 8);
	assert_int_equal(-1, find(sample, vm->code + FAKE_AT_PLAIN, frame, false));
}

static void test_deep_chain(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t first = fake_cframe(vm, vm->main, 0, 0);

	for (int i = 0; i < 600; i++)
		fake_cframe(vm, vm->main, 0, 0);
	assert_int_equal(0, find(sample, vm->code + FAKE_AT_PLAIN, first, false));
	expect_frame(sample, first, vm->main);
}

/* A chain that climbs by one word forever, as far as there is memory. */
static void test_chain_that_climbs(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t prev = (uint64_t)vm->layout->cframe_prev, L = fake_coroutine(vm, 16);
	uint64_t frame = vm->native_end - (uint64_t)vm->layout->cframe_size;

	for (uint64_t at = vm->native_start; at < frame; at += 8)
		if (at + 8 + prev + 8 <= vm->native_end)
			fake_put_u64(vm, at + prev, at + 8);
	set_current(vm, 0);
	fake_L_set(vm, L, vm->layout->lua_State_cframe, vm->native_start);
	fake_put_ref(vm, frame + (uint64_t)vm->layout->cframe_L, L);
	find(sample, vm->code + FAKE_AT_PLAIN, frame, true);
	assert_true(vm->reads <= 10 * 8200);
}

/* A stack full of what looks like C frames, each of them above a chain of thousands. */
static void test_many_long_chains(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_memory memory = sample_memory(sample);
	uint64_t prev = (uint64_t)vm->layout->cframe_prev, L = fake_coroutine(vm, 16);
	uint64_t sp = vm->native_start + (vm->native_end - vm->native_start) / 2;
	const struct attach_registers frame = { .r[ATTACH_REG_SP] = sp };
	uint64_t L_at = 8 + (uint64_t)vm->layout->cframe_L;
	/* So that the words of one are none of another. */
	unsigned stride = L_at % 16 < 8 ? 24 : 16, shown = 0;

	for (uint64_t at = vm->native_start; at + 8 + prev < sp; at += 8)
		fake_put_u64(vm, at + prev, at + 8);
	fake_L_set(vm, L, vm->layout->lua_State_cframe, vm->native_start);
	for (uint64_t at = sp; at + 16 + (uint64_t)vm->layout->cframe_size <= vm->native_end;
	     at += stride, shown++) {
		fake_put_u64(vm, at, vm->code + FAKE_AT_PLAIN);
		fake_put_ref(vm, at + L_at, L);
	}
	assert_true(shown > 1000);
	luastate_begin_sample(sample->state, memory.any);
	vm->reads = 0;
	assert_int_equal(-1, luastate_find_vm_frame_above(sample->state, &memory, &frame,
							  vm->native_end, &sample->vm_frames[0],
							  &sample->why));
	assert_int_equal(FAILURE_LIMIT, sample->why.kind);
	assert_true(vm->reads > 100 * 1000 && vm->reads < 400 * 1000);
	/* The next sample begins anew. */
	sp = fake_cframe(vm, vm->main, 0, 0);
	assert_int_equal(-1, find(sample, vm->code + FAKE_AT_PLAIN, sp, true));
	assert_int_equal(FAILURE_LIMIT, sample->why.kind);
	luastate_begin_sample(sample->state, memory.any);
	assert_int_equal(0, find(sample, vm->code + FAKE_AT_PLAIN, sp, true));
}

/* Reads of a search that passes so many C frames of coroutines, none of which is a VM's. */
static uint64_t reads_past(struct sample *sample, unsigned count)
{
	struct fake_vm *vm = sample->vm;
	const struct luastate_memory memory = sample_memory(sample);
	struct attach_registers frame = { 0 };
	uint64_t limit = vm->sp;

	for (unsigned i = 0; i < count; i++) {
		uint64_t L = fake_coroutine(vm, 16);

		fake_cframe(vm, L, 0, 0);
		fake_push(vm, vm->code + FAKE_AT_PLAIN);
		fake_put_ref(vm, L + (uint64_t)vm->layout->lua_State_glref, vm->native_start);
	}
	frame.r[ATTACH_REG_SP] = vm->sp;
	luastate_begin_sample(sample->state, memory.any);
	vm->reads = 0;
	assert_int_equal(-1, luastate_find_vm_frame_above(sample->state, &memory, &frame, limit,
							  &sample->vm_frames[0], &sample->why));
	assert_int_equal(FAILURE_NOT_FOUND, sample->why.kind);
	return vm->reads;
}

/* To try all layouts takes many reads: it is done for some coroutines of a sample, not for all. */
static void test_many_unknown_coroutines(void **state)
{
	struct sample *sample = *state;
	uint64_t none, some, many, again;

	set_current(sample->vm, 0);
	none = reads_past(sample, 0);
	some = reads_past(sample, 8);
	many = reads_past(sample, 64);
	assert_true(some > none + 8 * 8);
	print_message("%u reads for 8, %u for 64\n", (unsigned)some, (unsigned)many);
	/* Eight times as many, were it done for all. */
	assert_true(many < 6 * some);
	/* The next sample begins anew. */
	again = reads_past(sample, 8);
	assert_true(again > none + 8 * 8 && again < 2 * some);
}

/* Each frame in another compiler's code has that code searched: not without end. */
static void test_much_code_of_others(void **state)
{
	enum { FRAMES = 100 * 1000 };
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_memory memory = sample_memory(sample);
	const uint64_t code = 1 << 20;

	assert_non_null(luastate_vm_of(sample->state, memory.any, vm->main, &sample->why));
	luastate_begin_sample(sample->state, memory.any);
	vm->reads = 0;
	for (uint64_t i = 0; i < FRAMES; i++)
		assert_null(luastate_compiled_by(sample->state, &memory, code + i));
	assert_true(vm->reads > 0 && vm->reads < FRAMES);
	/* The next sample begins anew. */
	luastate_begin_sample(sample->state, memory.any);
	vm->reads = 0;
	assert_null(luastate_compiled_by(sample->state, &memory, code));
	assert_true(vm->reads > 0);
}

/* ---- The newest frame of a current coroutine -------------------------------------------- */

static int find_trace(struct sample *sample, uint64_t sp)
{
	const struct luastate_memory memory = sample_memory(sample);

	sample->why = (struct failure){ 0 };
	sample->regs.r[ATTACH_REG_SP] = sp;
	return luastate_find_trace_vm_frame(sample->state, &memory, &sample->regs, true,
					    &sample->vm_frames[0], &sample->why);
}

static void test_frame_under_a_trace(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t frame = fake_cframe(vm, vm->main, 0, 0);
	uint64_t jit_base = vm->G + (uint64_t)vm->layout->global_State_jit_base;

	fake_L_set(vm, vm->main, vm->layout->lua_State_cframe, frame | 1);
	/* No trace runs. */
	assert_int_equal(-1, find_trace(sample, frame));
	assert_int_equal(FAILURE_NOT_FOUND, sample->why.kind);
	fake_put_ref(vm, jit_base, fake_L_get(vm, vm->main, vm->layout->lua_State_base));
	assert_int_equal(0, find_trace(sample, frame));
	expect_frame(sample, frame, vm->main);
	assert_true(sample->vm_frames[0].compiled);
	assert_int_equal(0, find_trace(sample, frame - 8192));
	expect_frame(sample, frame, vm->main);
	assert_int_equal(-1, find_trace(sample, frame - 8200));
	assert_int_equal(FAILURE_NOT_FOUND, sample->why.kind);
	assert_int_equal(-1, find_trace(sample, frame + 8));
	set_current(vm, 0);
	assert_int_equal(-1, find_trace(sample, frame));
	set_current(vm, FAKE_END - 40);
	assert_int_equal(-1, find_trace(sample, frame));
	set_current(vm, vm->main);
	fake_L_set(vm, vm->main, vm->layout->lua_State_cframe, 0);
	assert_int_equal(-1, find_trace(sample, frame));
	assert_int_equal(-1, find_trace(sample, 0));
	assert_int_equal(-1, find_trace(sample, UINT64_MAX));
}

/* No frame is found above a limit, though less than a word is below it. */
static void test_limit_within_a_word(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_memory memory = sample_memory(sample);
	uint64_t frame = fake_cframe(vm, vm->main, 0, 0);
	struct attach_registers below = { .r[ATTACH_REG_SP] = frame - 63 };
	struct luastate_vm_frame *found = &sample->vm_frames[0];

	fake_put_ref(vm, vm->G + (uint64_t)vm->layout->global_State_jit_base,
		     fake_L_get(vm, vm->main, vm->layout->lua_State_base));
	fake_push(vm, 0);
	assert_int_equal(0, luastate_find_vm_frame_above(sample->state, &memory, &below, frame + 8,
							 found, &sample->why));
	expect_frame(sample, frame, vm->main);
	assert_int_equal(-1, luastate_find_vm_frame_above(sample->state, &memory, &below,
							  frame - 60, found, &sample->why));
	assert_int_equal(FAILURE_NOT_FOUND, sample->why.kind);
}

/* The exit handler saves all registers below its frame. */
static void test_interpreter_code_far_below_its_frame(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t frame = fake_cframe(vm, vm->main, 0, 0);

	assert_int_equal(0, find(sample, vm->code + FAKE_AT_PLAIN, frame - 400, true));
	expect_frame(sample, frame, vm->main);
	assert_false(sample->vm_frames[0].compiled);
	set_current(vm, 0);
	expect_not_found(sample, vm->code + FAKE_AT_PLAIN, frame - 400);
}

/* It calls the compiler through C frames below itself. */
static void test_newer_frames_below_the_exit_handler(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t frame = fake_cframe(vm, vm->main, 0, 0), below;

	fake_push(vm, 0);
	below = fake_cframe(vm, vm->main, 0, 0);
	assert_int_equal(0, find(sample, vm->code + FAKE_AT_PLAIN, below + 8, true));
	expect_frame(sample, frame, vm->main);
}

static void test_stacks_that_cannot_be_read(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const uint64_t sps[] = {
		0, 8, vm->native_end, UINT64_MAX, UINT64_MAX - 7, UINT64_MAX - 64, UINT64_MAX - 100
	};

	for (size_t i = 0; i < sizeof(sps) / sizeof(sps[0]); i++) {
		assert_int_equal(-1, find(sample, vm->code + FAKE_AT_PLAIN, sps[i], true));
		assert_int_equal(FAILURE_FAULT, sample->why.kind);
		assert_int_equal(sps[i], sample->why.address);
	}
	assert_int_equal(-1, find(sample, vm->code + FAKE_AT_PLAIN, vm->native_end - 72, true));
	assert_int_equal(FAILURE_FAULT, sample->why.kind);
	assert_int_equal(vm->native_end, sample->why.address);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_complete_frame),
		SAMPLE_TEST(test_outside_the_interpreter),
		SAMPLE_TEST(test_helpers),
		SAMPLE_TEST(test_entry_sequence),
		SAMPLE_TEST(test_exit_sequence),
		SAMPLE_TEST(test_sequences_are_not_guessed),
		SAMPLE_TEST(test_sequence_on_an_unreadable_stack),
		SAMPLE_TEST(test_frame_that_is_not_linked),
		SAMPLE_TEST(test_frame_that_code_enters),
		SAMPLE_TEST(test_frame_that_is_left),
		SAMPLE_TEST(test_frame_below_a_yield),
		SAMPLE_TEST(test_chain_with_flags),
		SAMPLE_TEST(test_broken_chains),
		SAMPLE_TEST(test_frames_that_an_error_released),
		SAMPLE_TEST(test_frames_of_a_failed_coroutine),
		SAMPLE_TEST(test_deep_chain),
		SAMPLE_TEST(test_chain_that_climbs),
		SAMPLE_TEST(test_many_long_chains),
		SAMPLE_TEST(test_many_unknown_coroutines),
		SAMPLE_TEST(test_much_code_of_others),
		SAMPLE_TEST(test_frame_under_a_trace),
		SAMPLE_TEST(test_limit_within_a_word),
		SAMPLE_TEST(test_interpreter_code_far_below_its_frame),
		SAMPLE_TEST(test_newer_frames_below_the_exit_handler),
		SAMPLE_TEST(test_stacks_that_cannot_be_read),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
