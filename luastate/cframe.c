/* SPDX-License-Identifier: MIT */
/*
 * The interpreter's C frames on the native stack, x86-64.
 *
 * The unwind table gives one rule for all VM code, which is wrong by a few words in three places:
 * in helpers that VM code enters by call, in the entry sequence before the frame is complete, and
 * in the exit sequence behind its release. A frame is believed when its coroutine's chain of C
 * frames (L->cframe, SAVE_CFRAME) holds it, or when its return address follows a call into VM code.
 *
 * Source: LuaJIT v2.1 src/vm_x64.dasc, saveregs, restoreregs, vm_call, vm_resume, vm_cpcall.
 */
#include "luastate/state.h"

enum {
	CFRAME_FLAGS = 3, /* CFRAME_RESUME, CFRAME_UNWIND_FF in a link's low bits */
	/* A helper called by VM code pushes its return address and at most some spilled words. */
	HELPER_BYTES = 64,
	/* Spill slots of a trace, the exit handler's register area, or the C unwinder's contexts.
	 */
	NEWEST_BYTES = 8192,
	/* LuaJIT itself stops at LUAI_MAXCSTACK nested C calls. */
	CHAIN_MAX = 8000,
	PROLOGUE_LEN = 10,
	EPILOGUE_LEN = 10,
};

/* push rbp; push rbx; push r15; push r14; sub rsp, 40 */
static const uint8_t prologue[PROLOGUE_LEN] = { 0x55, 0x53, 0x41, 0x57, 0x41,
						0x56, 0x48, 0x83, 0xec, 0x28 };
/* add rsp, 40; pop r14; pop r15; pop rbx; pop rbp */
static const uint8_t epilogue[EPILOGUE_LEN] = { 0x48, 0x83, 0xc4, 0x28, 0x41,
						0x5e, 0x41, 0x5f, 0x5b, 0x5d };

/* Words between sp and the return address, by the distance of pc from a sequence's start; -1 where
 * no instruction starts or the rule of the unwind table holds. */
static const int8_t prologue_words[PROLOGUE_LEN + 1] = { 0, 1, 2, -1, 3, -1, 4, -1, -1, -1, -1 };
static const int8_t epilogue_words[EPILOGUE_LEN + 1] = { -1, -1, -1, -1, 4, -1, 3, -1, 2, 1, 0 };

static bool code_is(const struct state_interpreter *interpreter, uint64_t at, const uint8_t *bytes,
		    size_t len)
{
	return at >= interpreter->start && at + len <= interpreter->end &&
	       memcmp(interpreter->code + (at - interpreter->start), bytes, len) == 0;
}

/* Saved words that are on the stack while @words of them are; the order is rbp, rbx, r15, r14 from
 * the return address down. */
static const int saved_order[4] = { ATTACH_REG_RBP, ATTACH_REG_RBX, ATTACH_REG_R15,
				    ATTACH_REG_R14 };

static int read_partial(const struct attach_reader *reader, uint64_t sp, int words,
			const struct attach_registers *regs, struct luastate_cframe *ret_cframe,
			struct failure *why)
{
	uint64_t stack[5], ret_at = sp + 8u * (unsigned)words;

	if (state_read(reader, sp, stack, 8u * ((unsigned)words + 1), why) != 0)
		return -1;
	memset(ret_cframe, 0, sizeof(*ret_cframe));
	for (int i = 0; i < 4; i++)
		ret_cframe->saved[saved_order[i]] =
			i < words ? stack[words - 1 - i] : regs->r[saved_order[i]];
	ret_cframe->ret = stack[words];
	ret_cframe->sp = ret_at + 8;
	ret_cframe->address = sp;
	ret_cframe->leaf = true;
	return 0;
}

/* Is the leaf inside an entry or exit sequence? Returns the words on the stack or -1. */
static int sequence_words(const struct state_interpreter *interpreter, uint64_t pc)
{
	for (unsigned i = 0; i <= PROLOGUE_LEN; i++)
		if (prologue_words[i] >= 0 && code_is(interpreter, pc - i, prologue, PROLOGUE_LEN))
			return prologue_words[i];
	for (unsigned i = 0; i <= EPILOGUE_LEN; i++)
		if (epilogue_words[i] >= 0 && code_is(interpreter, pc - i, epilogue, EPILOGUE_LEN))
			return epilogue_words[i];
	return -1;
}

/* Fill a frame from the 80 bytes at @address. */
static int read_full(const struct luastate_layout *layout, const struct attach_reader *reader,
		     uint64_t address, struct luastate_cframe *ret_cframe, struct failure *why)
{
	uint8_t bytes[STATE_OBJECT_MAX];

	if (state_read(reader, address, bytes, (size_t)layout->cframe_size, why) != 0)
		return -1;
	memset(ret_cframe, 0, sizeof(*ret_cframe));
	ret_cframe->address = address;
	ret_cframe->L = state_u64(bytes, layout->cframe_L);
	ret_cframe->ret = state_u64(bytes, layout->cframe_ret);
	ret_cframe->sp = address + (uint64_t)layout->cframe_size;
	ret_cframe->saved[ATTACH_REG_RBP] = state_u64(bytes, layout->cframe_rbp);
	ret_cframe->saved[ATTACH_REG_RBX] = state_u64(bytes, layout->cframe_rbx);
	ret_cframe->saved[ATTACH_REG_R14] = state_u64(bytes, layout->cframe_r14);
	ret_cframe->saved[ATTACH_REG_R15] = state_u64(bytes, layout->cframe_r15);
	return 0;
}

/* Whether the chain of the coroutine @L holds the frame; chains ascend towards the root. */
static bool is_linked(const struct luastate_vm *vm, const struct attach_reader *reader, uint64_t L,
		      uint64_t frame)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t link, previous = 0;
	struct failure why;

	if (state_read(reader, L + (uint64_t)layout->lua_State_cframe, &link, 8, &why) != 0)
		return false;
	for (int i = 0; i < CHAIN_MAX; i++) {
		link &= ~(uint64_t)CFRAME_FLAGS;
		if (link == frame)
			return true;
		if (link == 0 || link > frame || link <= previous)
			return false;
		previous = link;
		if (state_read(reader, link + (uint64_t)layout->cframe_prev, &link, 8, &why) != 0)
			return false;
	}
	return false;
}

/* The address behind a direct call into VM code. A leaf frame that is complete but not in a chain
 * is just being entered or left. */
static bool returns_from_vm_call(const struct luastate *state, const struct attach_reader *reader,
				 uint64_t ret)
{
	const struct state_interpreter *interpreter = state_interpreter_at(state, ret);
	uint8_t call[5];
	int32_t distance;
	struct failure why;

	if (!state_is_pointer(ret))
		return false;
	if (interpreter && ret - interpreter->start >= 5)
		memcpy(call, interpreter->code + (ret - interpreter->start) - 5, 5);
	else if (state_read(reader, ret - 5, call, 5, &why) != 0)
		return false;
	memcpy(&distance, call + 1, 4);
	return call[0] == 0xe8 && luastate_in_interpreter(state, ret + (uint64_t)(int64_t)distance);
}

/*
 * The newest linked frame at or above @sp of the VMs' current coroutines. For code that runs far
 * below its frame: traces with their spill slots, the exit handler, which saves all registers
 * there, and the C unwinder, which is about to let go of the frames between.
 */
static int find_newest(struct luastate *state, const struct attach_reader *reader, uint64_t sp,
		       bool compiled, struct luastate_cframe *ret_cframe, struct failure *why)
{
	for (size_t i = 0; i < state->vm_count; i++) {
		const struct luastate_vm *vm = &state->vms[i];
		uint64_t L, frame, base;

		/* From a trace's entry to its exit the base of its start is kept here. */
		if (compiled &&
		    (state_read(reader, vm->G + (uint64_t)vm->layout->global_State_jit_base, &base,
				8, why) != 0 ||
		     base == 0))
			continue;
		if (state_read(reader, vm->G + (uint64_t)vm->layout->global_State_cur_L, &L, 8,
			       why) != 0)
			continue;
		L = state_object(L);
		if (state_read(reader, L + (uint64_t)vm->layout->lua_State_cframe, &frame, 8,
			       why) != 0)
			continue;
		frame &= ~(uint64_t)CFRAME_FLAGS;
		if (frame >= sp && frame - sp <= NEWEST_BYTES)
			return read_full(vm->layout, reader, frame, ret_cframe, why);
	}
	return failure_set(why, FAILURE_NOT_FOUND, 0, 0, sp, "find the interpreter's frame");
}

static int find_complete(struct luastate *state, const struct luastate_memory *memory, uint64_t sp,
			 bool leaf, struct luastate_cframe *ret_cframe, struct failure *why)
{
	const struct luastate_layout *layout = &luastate_layouts[0];
	const struct attach_reader *reader = memory->stopped;

	for (uint64_t frame = sp; frame <= sp + HELPER_BYTES; frame += 8) {
		const struct luastate_vm *vm;

		if (read_full(layout, reader, frame, ret_cframe, why) != 0)
			break;
		if (!state_is_pointer(ret_cframe->L) || ret_cframe->L % 8 != 0)
			continue;
		vm = luastate_vm_of(state, memory->any, ret_cframe->L, why);
		if (vm && is_linked(vm, reader, ret_cframe->L, frame))
			return 0;
	}
	if (read_full(layout, reader, sp, ret_cframe, why) != 0)
		return -1;
	/* Only the leaf can be between two states. */
	if (leaf && returns_from_vm_call(state, memory->any, ret_cframe->ret)) {
		ret_cframe->L = 0;
		return 0;
	}
	return find_newest(state, reader, sp, false, ret_cframe, why);
}

int luastate_find_cframe(struct luastate *state, const struct luastate_memory *memory, uint64_t pc,
			 uint64_t sp, uint64_t rbx, const struct attach_registers *regs,
			 struct luastate_cframe *ret_cframe, struct failure *why)
{
	const struct state_interpreter *interpreter = state_interpreter_at(state, pc);

	if (!interpreter)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, pc, "find the interpreter");
	if (regs) {
		int words = sequence_words(interpreter, pc);

		if (words >= 0)
			return read_partial(memory->stopped, sp, words, regs, ret_cframe, why);
	}
	if (find_complete(state, memory, sp, regs != NULL, ret_cframe, why) != 0)
		return -1;
	ret_cframe->leaf = regs != NULL;
	ret_cframe->pc = rbx;
	return 0;
}

int luastate_find_trace_cframe(struct luastate *state, const struct luastate_memory *memory,
			       uint64_t sp, struct luastate_cframe *ret_cframe, struct failure *why)
{
	if (find_newest(state, memory->stopped, sp, true, ret_cframe, why) != 0)
		return -1;
	ret_cframe->compiled = true;
	return 0;
}
