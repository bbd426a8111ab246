/* SPDX-License-Identifier: MIT */
/* How does VM code look on x86-64, with GC64 (vm_x64.dasc) and without (vm_x86.dasc)?
 *
 * Its C frame ("Stack layout while in interpreter"):
 *
 *   CFA-8    return address
 *   CFA-16   rbp
 *   CFA-24   rbx
 *   CFA-32   r15
 *   CFA-40   r14
 *   CFA-48   SAVE_CFRAME, link to the previous C frame
 *   ...      SAVE_PC, SAVE_L, SAVE_ERRF, SAVE_NRES
 *   rsp      temporaries                                 <- rsp while in the interpreter
 *
 * It has 80 bytes, or 96 in Tarantool since 111d377d, because sysprof keeps more in it.
 *
 * Source: LuaJIT v2.1 src/vm_x64.dasc, src/vm_x86.dasc, saveregs, restoreregs, ins_NEXT, ins_call,
 * ins_callt, emit_asm_debug(); tarantool/luajit src/vm_x64.dasc.
 */
#include "luastate/arch/arch.h"

#include <immintrin.h>

#include "luastate/layout/object.h"

const char state_arch_name[] = "x64";
const unsigned state_arch_helper_bytes = 64;

enum {
	/* Words that one step of pass_by_fours() compares. */
	PASS_WORDS = 16,
	SHAPE_SIZE_MAINLINE = 80,
	SHAPE_SIZE_TARANTOOL = 96,
	SAVED_BYTES = 40, /* return address and four registers */
	PREV_FROM_CFA = -48,
	PROLOGUE_LEN = 10,
	EPILOGUE_LEN = 10,
};

/* Saved registers from the return address down. */
static const int saved_order[4] = { ATTACH_REG_RBP, ATTACH_REG_RBX, ATTACH_REG_R15,
				    ATTACH_REG_R14 };

uint32_t state_arch_register_offset(const struct luastate_layout *layout)
{
	return (uint32_t)layout->global_State_to_dispatch;
}

struct state_frame_shape state_arch_shape(const struct luastate_unwind_rule *rule)
{
	const int64_t *saved = rule->saved_offset;
	struct state_frame_shape shape = { 0 };

	if (rule->cfa_register != ATTACH_REG_RSP ||
	    (rule->cfa_offset != SHAPE_SIZE_MAINLINE && rule->cfa_offset != SHAPE_SIZE_TARANTOOL))
		return shape;
	for (int i = 0; i < 4; i++)
		if (saved[saved_order[i]] != -16 - 8 * i)
			return shape;
	shape.size = (int32_t)rule->cfa_offset;
	shape.prev = shape.size + PREV_FROM_CFA;
	return shape;
}

void state_arch_restore(const struct luastate_layout *layout, const uint8_t *bytes,
			uint64_t frame_address, struct attach_registers *registers)
{
	for (int i = 0; i < 4; i++)
		registers->r[saved_order[i]] = state_u64(bytes, layout->cframe_size - 16 - 8 * i);
	registers->r[ATTACH_REG_PC] = state_u64(bytes, layout->cframe_size - 8);
	registers->r[ATTACH_REG_SP] = frame_address + (uint64_t)layout->cframe_size;
}

uint64_t state_arch_frame_shown(const struct state_interpreter *interpreter, uint64_t address,
				uint64_t word)
{
	return word >= interpreter->start && word < interpreter->end ? address + 8 : 0;
}

uint32_t state_arch_frame_distance(const struct state_interpreter *interpreter)
{
	(void)interpreter;
	return 8;
}

uint64_t state_arch_next_shown(const struct state_interpreter *interpreter, uint64_t address,
			       const void *words, size_t count, size_t *at)
{
	for (size_t i = *at; i < count; i++) {
		uint64_t frame = state_arch_frame_shown(interpreter, address + 8 * i,
							state_u64(words, 8 * i));

		if (frame) {
			*at = i + 1;
			return frame;
		}
	}
	*at = count;
	return 0;
}

uint64_t state_arch_word_below(const struct attach_registers *registers)
{
	(void)registers;
	return 0; /* calls push the return address */
}

/* ---- Machine code of traces ------------------------------------------------------------- */

enum {
	/* Size of an area of machine code (sizemcode). */
	AREA_BYTES = 65536,
	STUBS_PER_GROUP = 32,
	STUB_BYTES = 4,
	/* Code at a group's end, to which all its stubs jump: push, mov without GC64, jmp. */
	GROUP_END_BYTES = 16,
};

/* The instruction by which a trace notes its number: "mov dword [DISPATCH+vmstate], number", or
 * with an absolute address without GC64. Source: LuaJIT v2.1 src/lj_emit_x86.h, emit_setvmstate. */
static size_t make_head(const struct luastate_layout *layout, uint64_t G, uint8_t *ret_bytes)
{
	static const uint8_t gc64[] = { 0x41, 0xc7, 0x86 }, gc32[] = { 0xc7, 0x04, 0x25 };
	int32_t operand = layout->gc64
				  ? layout->global_State_vmstate - layout->global_State_to_dispatch
				  : (int32_t)(G + (uint64_t)layout->global_State_vmstate);

	memcpy(ret_bytes, layout->gc64 ? gc64 : gc32, 3);
	memcpy(ret_bytes + 3, &operand, 4);
	return 7;
}

/* The trace number in the last head of some code, or 0. */
static uint32_t number_in(const uint8_t *code, size_t len, const uint8_t *head, size_t head_len)
{
	uint32_t number = 0;

	for (size_t i = 0; i + head_len + 4 <= len; i++)
		if (memcmp(code + i, head, head_len) == 0)
			memcpy(&number, code + i + head_len, 4);
	return number;
}

/* Searches backwards, because a trace's head is before the position. The code before the head
 * belongs to another trace, see state_arch_head_end(). */
uint32_t state_arch_trace_at(const struct luastate_layout *layout, uint64_t G,
			     const struct attach_reader *reader, uint64_t pc)
{
	enum { STEP = 2048 };
	uint8_t code[STEP + 16], head[8];
	size_t head_len = make_head(layout, G, head);
	uint32_t number = 0;
	struct failure why;

	for (uint64_t end = pc; !number && pc - end < AREA_BYTES && end > STEP; end -= STEP) {
		/* A head that begins before the end may extend behind it. */
		size_t len = STEP + head_len + 3;

		if (state_read(reader, end - STEP, code, len, &why) != 0) {
			/* The area begins inside this piece. */
			uint64_t page = (end - 1) & ~(uint64_t)4095;

			len = page > end - STEP ? (size_t)(end - page) + head_len + 3 : 0;
			if (!len || state_read(reader, page, code, len, &why) != 0)
				return 0;
			return number_in(code, len, head, head_len);
		}
		number = number_in(code, len, head, head_len);
	}
	return number;
}

/* Source: LuaJIT v2.1 src/lj_asm.c, asm_head_side; src/lj_asm_x86.h, asm_stack_check. */
size_t state_arch_head_end(const struct luastate_layout *layout, uint64_t G, const uint8_t *code,
			   size_t len, uint32_t *ret_number)
{
	uint8_t head[8];
	size_t head_len = make_head(layout, G, head);

	for (size_t i = 0; i + head_len + 4 <= len; i++) {
		if (memcmp(code + i, head, head_len) != 0)
			continue;
		memcpy(ret_number, code + i + head_len, 4);
		return i + head_len + 4;
	}
	return 0;
}

bool state_arch_read_stubs(const struct luastate_layout *layout, const struct attach_reader *reader,
			   uint64_t G, uint64_t mcode, uint32_t szmcode,
			   struct state_stubs *ret_stubs)
{
	uint64_t at =
		G + (uint64_t)layout->global_State_to_J + (uint64_t)layout->jit_State_exitstubgroup;
	struct failure why;

	(void)mcode, (void)szmcode;
	return state_has_compiler(layout) &&
	       state_read(reader, at, ret_stubs->group, sizeof(ret_stubs->group), &why) == 0;
}

bool state_arch_exit_of(const struct state_stubs *stubs, uint64_t pc, uint32_t *ret_exit)
{
	for (unsigned i = 0; i < STATE_STUB_GROUPS; i++) {
		uint64_t distance = pc - stubs->group[i];

		if (!stubs->group[i] || distance >= STUBS_PER_GROUP * STUB_BYTES)
			continue;
		*ret_exit = i * STUBS_PER_GROUP + (uint32_t)distance / STUB_BYTES;
		return true;
	}
	return false;
}

/* Source: LuaJIT v2.1 src/vm_x64.dasc, vm_x86.dasc (BC_JLOOP: sub rsp, 16), src/lj_asm.c
 * (asm_head_root). */
bool state_arch_is_return_slot(uint64_t address, uint64_t vm_frame, uint32_t spadjust)
{
	return address + 8 + spadjust + 16 == vm_frame;
}

bool state_arch_in_stubs(const struct state_stubs *stubs, uint64_t pc)
{
	for (unsigned i = 0; i < STATE_STUB_GROUPS; i++)
		if (stubs->group[i] &&
		    pc - stubs->group[i] < STUBS_PER_GROUP * STUB_BYTES + GROUP_END_BYTES)
			return true;
	return false;
}

/* mov [DISPATCH+jit_base], reg; with an absolute address without GC64. Source: LuaJIT v2.1
 * src/lj_emit_x86.h, emit_setgl. */
size_t state_arch_base_store_at(const struct luastate_layout *layout, uint64_t G,
				const uint8_t *code, size_t len)
{
	int32_t operand = layout->gc64
				  ? layout->global_State_jit_base - layout->global_State_to_dispatch
				  : (int32_t)(G + (uint64_t)layout->global_State_jit_base);
	size_t rex = layout->gc64 || (len > 0 && code[0] == 0x44) ? 1 : 0;
	size_t size = layout->gc64 ? 7 : rex + 7;

	if (len < size || (layout->gc64 && (code[0] & 0xfb) != 0x49) || code[rex] != 0x89 ||
	    (code[rex + 1] & 0xc7) != (layout->gc64 ? 0x86 : 0x04) ||
	    (!layout->gc64 && code[rex + 2] != 0x25) || memcmp(code + size - 4, &operand, 4) != 0)
		return 0;
	return size;
}

/* jcc rel32 and jmp rel32. */
size_t state_arch_branch_at(const uint8_t *code, size_t len, uint64_t address, uint64_t *ret_target)
{
	size_t size = len >= 6 && code[0] == 0x0f && (code[1] & 0xf0) == 0x80 ? 6
		      : len >= 5 && code[0] == 0xe9			      ? 5
									      : 0;
	int32_t distance;

	if (!size)
		return 0;
	memcpy(&distance, code + size - 4, 4);
	*ret_target = address + size + (uint64_t)(int64_t)distance;
	return size;
}

/* RA and RC. Source: LuaJIT v2.1 src/vm_x64.dasc, vm_x86.dasc, vm_exit_handler. */
bool state_arch_holds_exit(const struct attach_registers *registers, uint32_t trace, uint32_t exit)
{
	return registers->r[ATTACH_REG_RCX] == trace && registers->r[ATTACH_REG_RAX] == exit;
}

/* ---- Entry and exit --------------------------------------------------------------------- */

enum {
	/* Bytes from the entry sequence to the store of L->cframe: about 64 in lj_vm_cpcall, the
	 * longest, and 12 more in Tarantool's fork. */
	ENTRY_MAX = 96,
	LINK_STORE_LEN = 4,
	CALL_MAX = 7, /* call [reg + reg * scale + disp32] */
};

/* push rbp; push rbx; push r15; push r14; sub rsp, 40. An FFI callback from C code has already
 * pushed rbp when it arrives here. */
static const uint8_t prologue[PROLOGUE_LEN] = { 0x55, 0x53, 0x41, 0x57, 0x41,
						0x56, 0x48, 0x83, 0xec, 0 };
/* add rsp, 40; pop r14; pop r15; pop rbx; pop rbp */
static const uint8_t epilogue[EPILOGUE_LEN] = { 0x48, 0x83, 0xc4, 0,	0x41,
						0x5e, 0x41, 0x5f, 0x5b, 0x5d };

/* Words between sp and the return address, by the distance of pc from a sequence's start; -1 where
 * no instruction starts or the unwind table's rule holds. */
static const int8_t prologue_words[PROLOGUE_LEN + 1] = { 0, 1, 2, -1, 3, -1, 4, -1, -1, -1, -1 };
static const int8_t epilogue_words[EPILOGUE_LEN + 1] = { -1, -1, -1, -1, 4, -1, 3, -1, 2, 1, 0 };

/* @return the number of words, or -1. */
static int sequence_words(const struct state_interpreter *interpreter, uint64_t pc)
{
	uint8_t entry[PROLOGUE_LEN], exit[EPILOGUE_LEN];

	memcpy(entry, prologue, sizeof(entry));
	memcpy(exit, epilogue, sizeof(exit));
	entry[9] = exit[3] = (uint8_t)(interpreter->shape.size - SAVED_BYTES);
	for (unsigned i = 0; i <= PROLOGUE_LEN; i++)
		if (prologue_words[i] >= 0 &&
		    (state_code_is(interpreter, pc - i, entry, PROLOGUE_LEN) ||
		     (i > 0 &&
		      state_code_is(interpreter, pc - i + 1, entry + 1, PROLOGUE_LEN - 1))))
			return prologue_words[i];
	for (unsigned i = 0; i <= EPILOGUE_LEN; i++)
		if (epilogue_words[i] >= 0 &&
		    state_code_is(interpreter, pc - i, exit, EPILOGUE_LEN))
			return epilogue_words[i];
	return -1;
}

int state_arch_restore_partial(const struct state_interpreter *interpreter,
			       const struct attach_reader *stopped,
			       const struct attach_registers *registers,
			       struct attach_registers *ret_caller, struct failure *why)
{
	int words = sequence_words(interpreter, attach_pc(registers));
	uint64_t stack[5], sp = attach_sp(registers);

	if (words < 0)
		return 0;
	if (state_read(stopped, sp, stack, 8u * ((unsigned)words + 1), why) != 0)
		return -1;
	*ret_caller = *registers;
	for (int i = 0; i < words; i++)
		ret_caller->r[saved_order[i]] = stack[words - 1 - i];
	ret_caller->r[ATTACH_REG_PC] = stack[words];
	ret_caller->r[ATTACH_REG_SP] = sp + 8u * ((unsigned)words + 1);
	return 1;
}

/* mov L:RB->cframe, reg; reg is rsp, or rsp with flags. */
static bool is_link_store(const struct luastate_layout *layout, const uint8_t *code)
{
	return (code[0] & 0xfb) == 0x48 && code[1] == 0x89 && (code[2] & 0xc7) == 0x45 &&
	       code[3] == layout->lua_State_cframe;
}

bool state_arch_is_entering(const struct state_interpreter *interpreter,
			    const struct luastate_layout *layout, uint64_t pc)
{
	uint8_t entry[PROLOGUE_LEN];
	uint64_t offset = pc - interpreter->start;

	memcpy(entry, prologue, sizeof(entry));
	entry[9] = (uint8_t)(interpreter->shape.size - SAVED_BYTES);
	for (unsigned i = LINK_STORE_LEN; i <= ENTRY_MAX && i <= offset; i++) {
		if (is_link_store(layout, interpreter->code + offset - i))
			return false;
		if (state_code_is(interpreter, pc - i, entry, PROLOGUE_LEN))
			return i >= PROLOGUE_LEN;
	}
	return false;
}

/* Length of "call r/m64" by its second and third byte, 0 if it is another instruction. */
static unsigned indirect_call_len(uint8_t modrm, uint8_t sib)
{
	unsigned mode = modrm >> 6, operand = modrm & 7;
	unsigned len = 2 + (mode != 3 && operand == 4);

	if ((modrm & 0x38) != 0x10)
		return 0;
	if (mode == 1)
		return len + 1;
	if (mode == 2 || (mode == 0 && (operand == 5 || (operand == 4 && (sib & 7) == 5))))
		return len + 4;
	return len;
}

bool state_arch_follows_call(const struct attach_reader *reader, uint64_t ret)
{
	uint8_t code[CALL_MAX + 1] = { 0 };
	struct failure why;

	if (!state_is_pointer(ret) || state_read(reader, ret - CALL_MAX, code, CALL_MAX, &why) != 0)
		return false;
	if (code[CALL_MAX - 5] == 0xe8)
		return true;
	for (unsigned i = 0; i + 2 <= CALL_MAX; i++)
		if (code[i] == 0xff && indirect_call_len(code[i + 1], code[i + 2]) == CALL_MAX - i)
			return true;
	return false;
}

uint64_t state_arch_vm_call_target(const struct luastate *state, const struct attach_reader *reader,
				   uint64_t ret)
{
	const struct state_interpreter *interpreter = state_interpreter_at(state, ret);
	uint8_t call[5];
	int32_t distance;
	struct failure why;

	if (!state_is_pointer(ret))
		return 0;
	if (interpreter && ret - interpreter->start >= 5)
		memcpy(call, interpreter->code + (ret - interpreter->start) - 5, 5);
	else if (state_read(reader, ret - 5, call, 5, &why) != 0)
		return 0;
	memcpy(&distance, call + 1, 4);
	ret += (uint64_t)(int64_t)distance;
	return call[0] == 0xe8 && luastate_in_interpreter(state, ret) ? ret : 0;
}

/* ---- Helpers called by C ---------------------------------------------------------------- */

enum {
	HELPER_LEN = 256, /* the longest helper is far shorter */
};

/* Whether @pc is close behind the called address. Targets that begin like the entry points are
 * excluded, because these make a C frame. */
static bool is_in_helper(const struct state_interpreter *interpreter, uint64_t target, uint64_t pc)
{
	return target >= interpreter->start && target <= pc && pc - target < HELPER_LEN &&
	       !state_code_is(interpreter, target, prologue, PROLOGUE_LEN - 1);
}

bool state_arch_restore_helper(const struct luastate *state, const struct luastate_memory *memory,
			       const struct attach_registers *registers,
			       struct attach_registers *ret_caller)
{
	uint64_t sp = attach_sp(registers), pc = attach_pc(registers), words[2];
	const struct state_interpreter *interpreter = state_interpreter_at(state, pc);
	struct failure why;

	if (state_read(memory->stopped, sp, words, sizeof(words), &why) != 0)
		return false;
	/* lj_vm_cpuid pushes rbx, the other helpers push nothing. */
	for (unsigned pushed = 0; pushed < 2; pushed++) {
		uint64_t target;

		if (luastate_in_interpreter(state, words[pushed]))
			return false;
		target = state_arch_vm_call_target(state, memory->any, words[pushed]);
		if (!target || !is_in_helper(interpreter, target, pc))
			continue;
		*ret_caller = *registers;
		if (pushed)
			ret_caller->r[ATTACH_REG_RBX] = words[0];
		ret_caller->r[ATTACH_REG_PC] = words[pushed];
		ret_caller->r[ATTACH_REG_SP] = sp + 8 * (pushed + 1);
		return true;
	}
	return false;
}

/* ---- Moments ---------------------------------------------------------------------------- */

/** The instructions of one value model. */
struct dialect {
	/* ins_NEXT: mov eax, [rbx]; movzx ecx, ah; movzx ebp, al; add PC, 4 */
	uint8_t next[12];
	size_t next_len;
	/* mov [BASE-8], PC and mov PC, LFUNC:RB->pc */
	uint8_t store_link[4], load_pc[4];
	size_t store_link_len, load_pc_len;
};

static const struct dialect dialects[] = {
	/* With GC64: PC has 64 bits. */
	{ .next = { 0x8b, 0x03, 0x0f, 0xb6, 0xcc, 0x0f, 0xb6, 0xe8, 0x48, 0x83, 0xc3, 0x04 },
	  .next_len = 12,
	  .store_link = { 0x48, 0x89, 0x5a, 0xf8 },
	  .store_link_len = 4,
	  .load_pc = { 0x48, 0x8b, 0x5d, 0x20 },
	  .load_pc_len = 4 },
	/* Without GC64: PC has 32 bits. */
	{ .next = { 0x8b, 0x03, 0x0f, 0xb6, 0xcc, 0x0f, 0xb6, 0xe8, 0x83, 0xc3, 0x04 },
	  .next_len = 11,
	  .store_link = { 0x89, 0x5a, 0xfc },
	  .store_link_len = 3,
	  .load_pc = { 0x8b, 0x5d, 0x10 },
	  .load_pc_len = 3 },
};

enum state_moment state_arch_moment(const struct state_interpreter *interpreter, uint64_t pc)
{
	static const unsigned next_starts[] = { 0, 2, 5, 8 };

	for (size_t k = 0; k < sizeof(dialects) / sizeof(dialects[0]); k++) {
		const struct dialect *dialect = &dialects[k];

		if (interpreter->layout && interpreter->layout->gc64 != (k == 0))
			continue;
		if (state_code_is(interpreter, pc, dialect->store_link, dialect->store_link_len))
			return STATE_MOMENT_STORE_LINK;
		if (state_code_is(interpreter, pc, dialect->load_pc, dialect->load_pc_len))
			return STATE_MOMENT_LOAD_PC;
		for (size_t i = 0; i < sizeof(next_starts) / sizeof(next_starts[0]); i++)
			if (state_code_is(interpreter, pc - next_starts[i], dialect->next,
					  dialect->next_len))
				return STATE_MOMENT_NEXT;
	}
	return STATE_MOMENT_PLAIN;
}

/* BASE is another frame's only while the link is stored, and STATE_MOMENT_STORE_LINK shows that. */
uint64_t state_arch_base(const struct state_interpreter *interpreter,
			 const struct attach_registers *registers)
{
	(void)interpreter;
	return registers->r[STATE_REG_BASE];
}

/* ---- Search ----------------------------------------------------------------------------- */

/* AVX2 cannot compare unsigned 64-bit numbers, so both sides are shifted down by 2^63. */
__attribute__((target("avx2"))) static size_t pass_by_fours(const uint8_t *words, size_t count,
							    uint64_t least, uint64_t range)
{
	const __m256i step = _mm256_set1_epi64x(4 * 8);
	const __m256i end = _mm256_set1_epi64x((long long)((range + 1) ^ (uint64_t)INT64_MIN));
	__m256i base =
		_mm256_add_epi64(_mm256_set1_epi64x((long long)(least ^ (uint64_t)INT64_MIN)),
				 _mm256_set_epi64x(24, 16, 8, 0));
	size_t passed = 0;

	for (; passed + PASS_WORDS <= count; passed += PASS_WORDS) {
		__m256i any = _mm256_setzero_si256();

		for (size_t i = 0; i < PASS_WORDS; i += 4) {
			__m256i four = _mm256_loadu_si256(
				(const __m256i_u *)(const void *)(words + 8 * (passed + i)));

			any = _mm256_or_si256(
				any, _mm256_cmpgt_epi64(end, _mm256_sub_epi64(four, base)));
			base = _mm256_add_epi64(base, step);
		}
		if (!_mm256_testz_si256(any, any))
			break;
	}
	return passed;
}

size_t state_arch_pass(const uint8_t *words, size_t count, uint64_t least, uint64_t range)
{
	return __builtin_cpu_supports("avx2") ? pass_by_fours(words, count, least, range) : 0;
}
