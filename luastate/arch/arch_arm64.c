/* SPDX-License-Identifier: MIT */
/* How does VM code look on AArch64, which always has GC64 (vm_arm64.dasc)?
 *
 * Its C frame of 208 bytes ("Stack layout while in interpreter"), since 421c4c79 (2021-09-20):
 *
 *   sp+200   lr: return address
 *   sp+192   fp of the caller          <- fp
 *   sp+184   x19, below it x20 to x28
 *   sp+104   d8, below it d9 to d15
 *   sp+32    SAVE_NRES, SAVE_ERRF, SAVE_MULTRES; sp+24 temporary
 *   sp+16    SAVE_L
 *   sp+8     SAVE_PC
 *   sp       SAVE_CFRAME, link to the previous C frame     <- sp while in the interpreter
 *
 * and before:
 *
 *   sp+176   SAVE_L
 *   sp+168   SAVE_PC
 *   sp+160   SAVE_CFRAME
 *   sp+96    d8 to d15 upwards
 *   sp+16    x19 to x28 upwards
 *   sp+8     lr
 *   sp       fp of the caller          <- fp, sp
 *
 * A call leaves its return address in lr, so VM code's own helpers do not move sp. Callees keep the
 * VM's fp: in the register, or in the frame of a function that uses the register otherwise.
 *
 * Source: LuaJIT v2.1 src/vm_arm64.dasc, saveregs, restoreregs, ins_NEXT, ins_call, ins_callt,
 * BC_CALL, BC_ITERC, BC_RET, vm_call_dispatch, emit_asm_debug().
 */
#include "luastate/arch/arch.h"

#include "luastate/layout/object.h"

const char state_arch_name[] = "arm64";
const unsigned state_arch_helper_bytes = 0;

enum {
	FRAME_SIZE = 208,
	SAVED_FIRST = 19, /* x19 to x28 are saved */
	SAVED_LAST = 28,
	ENTRY_LEN = 12, /* words of the longest sequences below */
	EXIT_LEN = 12,
	/* Registers that VM code uses for a short time. */
	REG_OLD_BASE = 17,   /* RB, at calls: BASE of the caller */
	REG_FRAME_START = 2, /* CARG3, at returns: BASE - 16 of the returning function */
	/* Instructions from the preparation of a call to the store of its link, and of a return. */
	CALL_LEN = 32,
	RETURN_LEN = 28,
	/* Instructions from the entry sequence to the store of L->cframe. */
	ENTRY_MAX = 24,
	/* The longest helper, vm_next, is shorter. */
	HELPER_BYTES = 160,
	/* Maximum distance of a C frame from words of the same native stack. */
	STACK_MAX = 64 << 20,
};

/** One arrangement of the C frame. */
struct arrangement {
	int32_t prev; /* CFRAME_OFS_PREV, which identifies the arrangement of a row */
	int32_t fp, lr, first, step; /* offsets; first: x19, step: to the next register */
	/* Entry and exit sequences. fp is the VM's from instruction fp_moved on; all registers are
	 * the caller's from sp_back on. */
	uint32_t entry[ENTRY_LEN], exit[EXIT_LEN];
	unsigned entry_len, fp_moved, exit_len, sp_back;
};

static const struct arrangement arrangements[] = {
	{ .prev = 0,
	  .fp = 192,
	  .lr = 200,
	  .first = 184,
	  .step = -8,
	  .entry = { 0xd10343ff,   /* sub sp, sp, #208 */
		     0xa90c7bfd,   /* stp fp, lr, [sp, #192] */
		     0x910303fd,   /* add fp, sp, #192 */
		     0xa90b4ff4,   /* stp x20, x19, [sp, #176] */
		     0x6d0623e9,   /* stp d9, d8, [sp, #96] */
		     0xa90a57f6,   /* stp x22, x21, [sp, #160] */
		     0x6d052beb,   /* stp d11, d10, [sp, #80] */
		     0xa9095ff8,   /* stp x24, x23, [sp, #144] */
		     0x6d0433ed,   /* stp d13, d12, [sp, #64] */
		     0xa90867fa,   /* stp x26, x25, [sp, #128] */
		     0x6d033bef,   /* stp d15, d14, [sp, #48] */
		     0xa9076ffc }, /* stp x28, x27, [sp, #112] */
	  .entry_len = 12,
	  .fp_moved = 3,
	  .exit = { 0xa94b4ff4,	  /* ldp x20, x19, [sp, #176] */
		    0x6d4623e9,	  /* ldp d9, d8, [sp, #96] */
		    0xa94a57f6,	  /* ldp x22, x21, [sp, #160] */
		    0x6d452beb,	  /* ldp d11, d10, [sp, #80] */
		    0xa9495ff8,	  /* ldp x24, x23, [sp, #144] */
		    0x6d4433ed,	  /* ldp d13, d12, [sp, #64] */
		    0xa94867fa,	  /* ldp x26, x25, [sp, #128] */
		    0x6d433bef,	  /* ldp d15, d14, [sp, #48] */
		    0xa9476ffc,	  /* ldp x28, x27, [sp, #112] */
		    0xa94c7bfd,	  /* ldp fp, lr, [sp, #192] */
		    0x910343ff,	  /* add sp, sp, #208 */
		    0xd65f03c0 }, /* ret */
	  .exit_len = 12,
	  .sp_back = 11 },
	{ .prev = 160,
	  .fp = 0,
	  .lr = 8,
	  .first = 16,
	  .step = 8,
	  .entry = { 0xa9b37bfd,   /* stp fp, lr, [sp, #-208]! */
		     0x910003fd,   /* add fp, sp, #0 */
		     0xa90153f3,   /* stp x19, x20, [sp, #16] */
		     0x6d0627e8,   /* stp d8, d9, [sp, #96] */
		     0xa9025bf5,   /* stp x21, x22, [sp, #32] */
		     0x6d072fea,   /* stp d10, d11, [sp, #112] */
		     0xa90363f7,   /* stp x23, x24, [sp, #48] */
		     0x6d0837ec,   /* stp d12, d13, [sp, #128] */
		     0xa9046bf9,   /* stp x25, x26, [sp, #64] */
		     0x6d093fee,   /* stp d14, d15, [sp, #144] */
		     0xa90573fb }, /* stp x27, x28, [sp, #80] */
	  .entry_len = 11,
	  .fp_moved = 2,
	  .exit = { 0xa94153f3,	  /* ldp x19, x20, [sp, #16] */
		    0x6d4627e8,	  /* ldp d8, d9, [sp, #96] */
		    0xa9425bf5,	  /* ldp x21, x22, [sp, #32] */
		    0x6d472fea,	  /* ldp d10, d11, [sp, #112] */
		    0xa94363f7,	  /* ldp x23, x24, [sp, #48] */
		    0x6d4837ec,	  /* ldp d12, d13, [sp, #128] */
		    0xa9446bf9,	  /* ldp x25, x26, [sp, #64] */
		    0x6d493fee,	  /* ldp d14, d15, [sp, #144] */
		    0xa94573fb,	  /* ldp x27, x28, [sp, #80] */
		    0xa8cd7bfd,	  /* ldp fp, lr, [sp], #208 */
		    0xd65f03c0 }, /* ret */
	  .exit_len = 11,
	  .sp_back = 10 },
};

enum { ARRANGEMENTS = sizeof(arrangements) / sizeof(arrangements[0]) };

static const struct arrangement *arrangement_of(int32_t prev)
{
	return &arrangements[prev == arrangements[1].prev];
}

/* Whether an unwind rule saves the registers where the arrangement does. */
static bool has_saved(const struct arrangement *arrangement, const int64_t *saved)
{
	for (int n = SAVED_FIRST; n <= SAVED_LAST; n++)
		if (saved[n] !=
		    arrangement->first + arrangement->step * (n - SAVED_FIRST) - FRAME_SIZE)
			return false;
	return saved[ATTACH_REG_FP] == arrangement->fp - FRAME_SIZE &&
	       saved[ATTACH_REG_LR] == arrangement->lr - FRAME_SIZE;
}

uint32_t state_arch_register_offset(const struct luastate_layout *layout)
{
	(void)layout;
	return 0;
}

struct state_frame_shape state_arch_shape(const struct luastate_unwind_rule *rule)
{
	struct state_frame_shape shape = { 0 };

	for (unsigned i = 0; i < ARRANGEMENTS; i++) {
		const struct arrangement *arrangement = &arrangements[i];
		/* The rule uses fp since bfcb74ed (2021-10-17). */
		bool by_fp = rule->cfa_register == ATTACH_REG_FP &&
			     rule->cfa_offset == FRAME_SIZE - arrangement->fp;
		bool by_sp = rule->cfa_register == ATTACH_REG_SP && rule->cfa_offset == FRAME_SIZE;

		if ((by_fp || by_sp) && has_saved(arrangement, rule->saved_offset)) {
			shape.size = FRAME_SIZE;
			shape.prev = arrangement->prev;
		}
	}
	return shape;
}

static void restore(const struct arrangement *arrangement, const uint8_t *bytes,
		    uint64_t frame_address, struct attach_registers *registers)
{
	uint64_t *r = registers->r;

	for (int n = SAVED_FIRST; n <= SAVED_LAST; n++)
		r[n] = state_u64(bytes, arrangement->first + arrangement->step * (n - SAVED_FIRST));
	r[ATTACH_REG_FP] = state_u64(bytes, arrangement->fp);
	r[ATTACH_REG_LR] = state_u64(bytes, arrangement->lr);
	r[ATTACH_REG_PC] = r[ATTACH_REG_LR];
	r[ATTACH_REG_SP] = frame_address + FRAME_SIZE;
}

void state_arch_restore(const struct luastate_layout *layout, const uint8_t *bytes,
			uint64_t frame_address, struct attach_registers *registers)
{
	restore(arrangement_of(layout->cframe_prev), bytes, frame_address, registers);
}

uint64_t state_arch_frame_shown(const struct state_interpreter *interpreter, uint64_t address,
				uint64_t word)
{
	if (word % 16 != 0 || word <= address || word - address > STACK_MAX)
		return 0;
	return word - (uint64_t)arrangement_of(interpreter->shape.prev)->fp;
}

uint32_t state_arch_frame_distance(const struct state_interpreter *interpreter)
{
	return (uint32_t)arrangement_of(interpreter->shape.prev)->fp;
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
	return registers->r[ATTACH_REG_FP];
}

/* ---- Entry and exit --------------------------------------------------------------------- */

/* The index of the instruction at @pc in a sequence, or -1. */
static int position_in(const struct state_interpreter *interpreter, uint64_t pc,
		       const uint32_t *sequence, unsigned len)
{
	for (unsigned i = 0; i < len; i++)
		if (state_code_is(interpreter, pc - 4 * (uint64_t)i, (const uint8_t *)sequence,
				  4 * (size_t)len))
			return (int)i;
	return -1;
}

/* In the entry sequence all registers are the caller's, except sp, and fp from fp_moved on. */
static int restore_entry(const struct arrangement *arrangement, int at,
			 const struct attach_reader *stopped, struct attach_registers *registers,
			 struct failure *why)
{
	uint64_t sp = attach_sp(registers);

	registers->r[ATTACH_REG_PC] = registers->r[ATTACH_REG_LR];
	if (at == 0)
		return 1;
	registers->r[ATTACH_REG_SP] = sp + FRAME_SIZE;
	if ((unsigned)at >= arrangement->fp_moved &&
	    state_read(stopped, sp + (uint64_t)arrangement->fp, &registers->r[ATTACH_REG_FP], 8,
		       why) != 0)
		return -1;
	return 1;
}

/* In the exit sequence the frame is complete until sp moves. */
static int restore_exit(const struct arrangement *arrangement, int at,
			const struct attach_reader *stopped, struct attach_registers *registers,
			struct failure *why)
{
	uint8_t bytes[FRAME_SIZE];

	if ((unsigned)at >= arrangement->sp_back) {
		registers->r[ATTACH_REG_PC] = registers->r[ATTACH_REG_LR];
		return 1;
	}
	if (state_read(stopped, attach_sp(registers), bytes, sizeof(bytes), why) != 0)
		return -1;
	restore(arrangement, bytes, attach_sp(registers), registers);
	return 1;
}

int state_arch_restore_partial(const struct state_interpreter *interpreter,
			       const struct attach_reader *stopped,
			       const struct attach_registers *registers,
			       struct attach_registers *ret_caller, struct failure *why)
{
	const struct arrangement *arrangement = arrangement_of(interpreter->shape.prev);
	struct attach_registers caller = *registers;
	uint64_t pc = attach_pc(registers);
	int at = position_in(interpreter, pc, arrangement->entry, arrangement->entry_len);
	int ret = 0;

	if (at >= 0)
		ret = restore_entry(arrangement, at, stopped, &caller, why);
	else if ((at = position_in(interpreter, pc, arrangement->exit, arrangement->exit_len)) >= 0)
		ret = restore_exit(arrangement, at, stopped, &caller, why);
	if (ret > 0)
		*ret_caller = caller;
	return ret;
}

/* str reg, [L, #cframe]; L is not sp. */
static bool is_link_store(const struct luastate_layout *layout, uint32_t ins)
{
	return (ins & 0xfffffc00) == (0xf9000000 | (uint32_t)layout->lua_State_cframe / 8 << 10) &&
	       (ins & 0x3e0) != 0x3e0;
}

bool state_arch_is_entering(const struct state_interpreter *interpreter,
			    const struct luastate_layout *layout, uint64_t pc)
{
	const struct arrangement *arrangement = arrangement_of(interpreter->shape.prev);
	const uint8_t *code = interpreter->code + (pc - interpreter->start);
	uint64_t most = (pc - interpreter->start) / 4;

	for (unsigned i = 1; i <= arrangement->entry_len + ENTRY_MAX && i <= most; i++) {
		uint32_t ins;

		memcpy(&ins, code - 4 * (size_t)i, 4);
		if (is_link_store(layout, ins))
			return false;
		if (state_code_is(interpreter, pc - 4 * (uint64_t)i,
				  (const uint8_t *)arrangement->entry,
				  4 * (size_t)arrangement->entry_len))
			return i >= arrangement->entry_len;
	}
	return false;
}

bool state_arch_follows_call(const struct attach_reader *reader, uint64_t ret)
{
	uint32_t ins;
	struct failure why;

	return state_is_pointer(ret) && ret % 4 == 0 &&
	       state_read(reader, ret - 4, &ins, 4, &why) == 0 &&
	       (ins >> 26 == 0x25 /* bl */ || (ins & 0xfffffc1f) == 0xd63f0000 /* blr */);
}

/* The signed distance of b and bl: 26 bits, times 4. */
static uint64_t branch_distance(uint32_t ins)
{
	return (uint64_t)((int64_t)((uint64_t)ins << 38) >> 36);
}

uint64_t state_arch_vm_call_target(const struct luastate *state, const struct attach_reader *reader,
				   uint64_t ret)
{
	const struct state_interpreter *interpreter = state_interpreter_at(state, ret - 4);
	uint32_t call;
	struct failure why;

	if (!state_is_pointer(ret) || ret % 4 != 0)
		return 0;
	if (interpreter && ret <= interpreter->end)
		memcpy(&call, interpreter->code + (ret - 4 - interpreter->start), 4);
	else if (state_read(reader, ret - 4, &call, 4, &why) != 0)
		return 0;
	ret += branch_distance(call) - 4;
	return call >> 26 == 0x25 /* bl */ && luastate_in_interpreter(state, ret) ? ret : 0;
}

/* Helpers push nothing, and keep their return address in lr until they call. */
bool state_arch_restore_helper(const struct luastate *state, const struct luastate_memory *memory,
			       const struct attach_registers *registers,
			       struct attach_registers *ret_caller)
{
	uint64_t pc = attach_pc(registers), ret = registers->r[ATTACH_REG_LR];
	const struct state_interpreter *interpreter = state_interpreter_at(state, pc);
	const struct arrangement *arrangement;
	uint64_t target;

	if (!interpreter || luastate_in_interpreter(state, ret))
		return false;
	arrangement = arrangement_of(interpreter->shape.prev);
	target = state_arch_vm_call_target(state, memory->any, ret);
	/* The target must be no entry point, which makes a C frame. lr must still be the helper's
	 * return address. */
	if (target < interpreter->start || target > pc || pc - target >= HELPER_BYTES ||
	    position_in(interpreter, target, arrangement->entry, arrangement->entry_len) == 0)
		return false;
	*ret_caller = *registers;
	ret_caller->r[ATTACH_REG_PC] = ret;
	return true;
}

/* ---- Traces ----------------------------------------------------------------------------- */

enum {
	INS_EXIT_STUB = 0xf90003fe,    /* str lr, [sp] */
	INS_EXIT_CALL = 0xd63f03c0,    /* blr lr, after a load of lr, if bl does not reach */
	INS_TRACE_NUMBER = 0x52800000, /* movz w0, #number */
	/* Longest machine code of a trace: jit.opt's maxmcode is 512 KB, sizemcode 64 KB. */
	TRACE_CODE_MAX = 512 << 10,
	TRACE_EXITS_MAX = 65536,
};

/* CARG2w and CARG1w. Source: LuaJIT v2.1 src/vm_arm64.dasc, vm_exit_handler. */
bool state_arch_holds_exit(const struct attach_registers *registers, uint32_t trace, uint32_t exit)
{
	return registers->r[ATTACH_REG_X0 + 1] == trace && registers->r[ATTACH_REG_X0] == exit;
}

/* The trace number in the exit stubs at @words, 0 if there are no stubs. */
static uint32_t number_in_stub(const uint32_t *words)
{
	uint32_t number;

	if (words[0] != INS_EXIT_STUB)
		return 0;
	if (words[1] >> 26 == 0x25) /* bl */
		number = words[2];
	else if (words[2] == INS_EXIT_CALL)
		number = words[3];
	else
		return 0;
	return (number & 0xffe0001f) == INS_TRACE_NUMBER ? number >> 5 & 0xffff : 0;
}

/* A trace's exit stubs follow its code, and pass its number to the exit handler:
 *   str lr, [sp]; bl ->vm_exit_handler; movz w0, #number; bl ...
 * Source: LuaJIT v2.1 src/lj_asm_arm64.h, asm_exitstub_setup(). */
uint32_t state_arch_trace_at(const struct luastate_layout *layout, uint64_t G,
			     const struct attach_reader *reader, uint64_t pc)
{
	enum { WORDS = 256, STUB = 4 };
	uint32_t words[WORDS];
	struct failure why;

	(void)layout, (void)G;
	pc &= ~(uint64_t)3;
	for (uint64_t at = pc; at < pc + TRACE_CODE_MAX;) {
		size_t count = WORDS;

		/* The area of machine code may end earlier. */
		while (count >= STUB && state_read(reader, at, words, 4 * count, &why) != 0)
			count /= 2;
		if (count < STUB)
			break;
		for (size_t i = 0; i + STUB <= count; i++) {
			uint32_t number = number_in_stub(words + i);

			if (number)
				return number;
		}
		at += 4 * (count - STUB + 1);
	}
	return 0;
}

/* A failed stack check leaves through an extra stub behind the trace's own stubs
 * (EXITSTATE_CHECKEXIT). */
size_t state_arch_head_end(const struct luastate_layout *layout, uint64_t G, const uint8_t *code,
			   size_t len, uint32_t *ret_number)
{
	(void)layout, (void)G, (void)code, (void)len, (void)ret_number;
	return 0;
}

/* A trace's machine code is followed by nops, perhaps; str lr, [sp]; bl, or ldr lr and blr; movz;
 * then a bl for each exit.
 * Source: LuaJIT v2.1 src/lj_target_arm64.h, exitstub_trace_addr_(). */
bool state_arch_read_stubs(const struct luastate_layout *layout, const struct attach_reader *reader,
			   uint64_t G, uint64_t mcode, uint32_t szmcode,
			   struct state_stubs *ret_stubs)
{
	enum { WORDS = 8 };
	uint32_t words[WORDS] = { 0 };
	size_t i = 0;
	struct failure why;

	(void)layout, (void)G;
	memset(ret_stubs, 0, sizeof(*ret_stubs));
	/* At least four words are there: the stubs of a trace with one exit, at the end of an area.
	 */
	if (state_read(reader, mcode + szmcode, words, sizeof(words), &why) != 0 &&
	    state_read(reader, mcode + szmcode, words, sizeof(words) / 2, &why) != 0)
		return false;
	while (i < 4 && words[i] == 0xd503201f)
		i++;
	if (words[i + 1] >> 28 == 0xf)
		i++; /* ldr lr */
	ret_stubs->group[0] = mcode + szmcode + 4 * (i + 3);
	return true;
}

bool state_arch_exit_of(const struct state_stubs *stubs, uint64_t pc, uint32_t *ret_exit)
{
	uint64_t distance = pc - stubs->group[0];

	if (!stubs->group[0] || distance >= 4 * (uint64_t)TRACE_EXITS_MAX)
		return false;
	*ret_exit = (uint32_t)(distance / 4);
	return true;
}

/* The callee saves its return address somewhere in its own frame, below the trace's spill slots. */
bool state_arch_is_return_slot(uint64_t address, uint64_t vm_frame, uint32_t spadjust)
{
	return address + 8 + spadjust <= vm_frame;
}

bool state_arch_in_stubs(const struct state_stubs *stubs, uint64_t pc)
{
	(void)stubs, (void)pc;
	return false;
}

/* str xN, [GL, #jit_base]. Source: LuaJIT v2.1 src/lj_emit_arm64.h, emit_setgl. */
size_t state_arch_base_store_at(const struct luastate_layout *layout, uint64_t G,
				const uint8_t *code, size_t len)
{
	uint32_t ins, store = 0xf90002c0 | (uint32_t)layout->global_State_jit_base / 8 << 10;

	(void)G;
	if (len < 4)
		return 0;
	memcpy(&ins, code, 4);
	return (ins & ~(uint32_t)0x1f) == store ? 4 : 0;
}

/* The distance of a conditional branch: a signed number of instructions in @bits bits from bit 5
 * on. */
static uint64_t short_distance(uint32_t ins, unsigned bits)
{
	uint32_t field = ins >> 5 & (((uint32_t)1 << bits) - 1);

	return (uint64_t)((int64_t)((uint64_t)field << (64 - bits)) >> (64 - bits)) * 4;
}

/* b.cond, cbz and cbnz, tbz and tbnz, b. Source: Arm ARM, C4.1.65 "Branches". */
size_t state_arch_branch_at(const uint8_t *code, size_t len, uint64_t address, uint64_t *ret_target)
{
	uint32_t ins;

	if (len < 4)
		return 0;
	memcpy(&ins, code, 4);
	if ((ins & 0xff000010) == 0x54000000 || (ins & 0x7e000000) == 0x34000000)
		*ret_target = address + short_distance(ins, 19);
	else if ((ins & 0x7e000000) == 0x36000000)
		*ret_target = address + short_distance(ins, 14);
	else if ((ins & 0xfc000000) == 0x14000000)
		*ret_target = address + branch_distance(ins);
	else
		return 0;
	return 4;
}

/* ---- Moments ---------------------------------------------------------------------------- */

enum {
	INS_NEXT = 0xb84046b0,	      /* ldr w16, [PC], #4 */
	INS_STORE_LINK = 0xf81f8275,  /* str PC, [BASE, #-8] */
	INS_LOAD_PC = 0xf9401055,     /* ldr PC, [CARG3, #32]: GCfuncL.pc */
	INS_KEEP_BASE = 0xd1004262,   /* sub CARG3, BASE, #16 */
	INS_LOAD_RESULT = 0xf8408768, /* ldr TMP0, [RA], #8 */
	INS_STORE_NIL = 0xf81e827a,   /* str TISNIL, [BASE, #-24] */
	INS_TAKE_BASE = 0xaa0303f3,   /* mov BASE, CARG4 */
};

static bool code_at(const struct state_interpreter *interpreter, uint64_t pc, uint32_t *ret_ins)
{
	if (pc < interpreter->start || pc + 4 > interpreter->end)
		return false;
	memcpy(ret_ins, interpreter->code + (pc - interpreter->start), 4);
	return true;
}

static bool is_at(const struct state_interpreter *interpreter, uint64_t pc, uint32_t wanted)
{
	uint32_t ins;

	return code_at(interpreter, pc, &ins) && ins == wanted;
}

/* The instruction that may follow @pc, as if conditions failed; 0 if unknown. */
static uint64_t next_of(uint64_t pc, uint32_t ins)
{
	if (ins >> 26 == 0x05) /* b */
		return pc + branch_distance(ins);
	return (ins & 0xfe1ffc1f) == 0xd61f0000 /* br, ret */ ? 0 : pc + 4;
}

/* Whether an instruction sets x@n. Data processing and loads have the register in the same bits.
 * Source: Arm Architecture Reference Manual, C4.1, A64 instruction set encoding. */
static bool sets(uint32_t ins, unsigned n)
{
	bool branch = (ins & 0x1c000000) == 0x14000000;
	bool pair = (ins & 0x3a000000) == 0x28000000;
	bool single = !pair && (ins & 0x0a000000) == 0x08000000;

	if (branch || (pair && !(ins & 0x00400000)) || (single && !(ins & 0x00c00000)))
		return false;
	return (ins & 31) == n;
}

/* Whether an instruction begins to prepare a call: it copies BASE to another register, or replaces
 * BASE by the callee's. An addition to BASE does not count, because it follows a copy. */
static bool begins_call(uint32_t ins)
{
	bool adds = (ins & 0x1f000000) == 0x11000000 || (ins & 0x1f200000) == 0x0b000000;

	return sets(ins, REG_OLD_BASE) || (sets(ins, STATE_REG_BASE) && !adds);
}

/* Whether a call is being prepared: BASE is already the callee's or about to be, and the callee's
 * link is not stored yet. */
static bool is_calling(const struct state_interpreter *interpreter, uint64_t pc)
{
	uint32_t ins;

	for (unsigned i = 0; i < CALL_LEN && code_at(interpreter, pc, &ins); i++) {
		if (ins == INS_STORE_LINK)
			return true;
		if (begins_call(ins))
			return false;
		pc = next_of(pc, ins);
	}
	return false;
}

/* Whether results are being moved down with BASE as the pointer. This begins with
 *   sub CARG3, BASE, #16; b.eq; ldr TMP0, [RA], #8
 * and ends where BASE becomes the caller's. A loop behind it fills up with nil and jumps back. */
static bool is_returning(const struct state_interpreter *interpreter, uint64_t pc)
{
	bool filling = is_at(interpreter, pc, INS_STORE_NIL) ||
		       is_at(interpreter, pc + 4, INS_STORE_NIL) ||
		       is_at(interpreter, pc + 8, INS_STORE_NIL) ||
		       is_at(interpreter, pc - 4, INS_STORE_NIL);
	bool taken = false;

	for (uint64_t at = pc - 4; at + 4 * RETURN_LEN >= pc; at -= 4) {
		if (is_at(interpreter, at, INS_KEEP_BASE) &&
		    is_at(interpreter, at + 8, INS_LOAD_RESULT))
			return !taken || filling;
		taken |= is_at(interpreter, at, INS_TAKE_BASE);
	}
	return false;
}

uint64_t state_arch_base(const struct state_interpreter *interpreter,
			 const struct attach_registers *registers)
{
	uint64_t pc = attach_pc(registers);

	if (is_calling(interpreter, pc))
		return registers->r[REG_OLD_BASE];
	if (is_returning(interpreter, pc))
		return registers->r[REG_FRAME_START] + 16;
	return registers->r[STATE_REG_BASE];
}

/* There is no STATE_MOMENT_STORE_LINK, because state_arch_base() returns the caller's base until
 * the link is stored. */
enum state_moment state_arch_moment(const struct state_interpreter *interpreter, uint64_t pc)
{
	if (is_at(interpreter, pc, INS_LOAD_PC))
		return STATE_MOMENT_LOAD_PC;
	return is_at(interpreter, pc, INS_NEXT) ? STATE_MOMENT_NEXT : STATE_MOMENT_PLAIN;
}

size_t state_arch_pass(const uint8_t *words, size_t count, uint64_t least, uint64_t range)
{
	(void)words;
	(void)count;
	(void)least;
	(void)range;
	return 0;
}
