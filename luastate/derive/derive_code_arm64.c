/* SPDX-License-Identifier: MIT */
/* What does the interpreter's code on AArch64 show of LuaJIT's structures?
 *
 * The code is written in assembler, so compilers and their options do not change it. x22 is the
 * global state, x23 the coroutine, x21 the bytecode's PC behind the instruction, x19 BASE, x26 -1,
 * and sp the C frame.
 *
 * Source: LuaJIT v2.1 src/vm_arm64.dasc; encodings: Arm Architecture Reference Manual, C4.1 (loads
 * and stores, data processing), C6.2.
 */
#include "luastate/derive/derive.h"

enum {
	REG_BASE = 19,
	REG_KBASE = 20,
	REG_PC = 21,
	REG_G = 22,
	REG_L = 23,
	REG_MINUS_ONE = 26,
	REG_SP = 31, /* as a base; as a value it reads as zero */
	/* Instructions from an entry's load of the global state to the completed C frame. */
	ENTRY_INSNS = 24,
	EXIT_INSNS = 24,
	CALL_INSNS = 14,
	SHIFTS_OF_TAGS = 20,
};

enum kind {
	OTHER,
	LOAD,
	STORE,
	LOAD_PAIR,
	STORE_PAIR,
	LOAD_INDEXED,  /* base and a scaled register */
	STORE_INDEXED, /* base and a register */
	ADD_IMM,
	ADD_OPCODE, /* add reg, base, opcode * 8 */
	SET,	    /* a constant */
	COMPARE,
	SUBTRACT,
	CALL,
	CALL_REG,
	JUMP_REG,
	BRANCH_HI,
	SHIFT_TAG, /* asr reg, reg, 47 */
};

/** One instruction. */
struct insn {
	uint8_t kind, size, reg, other, base; /* other: of a pair, or the index */
	int32_t value;			      /* displacement or constant */
};

/* Decode a load or store of one register at base + displacement. */
static bool decode_access(uint32_t ins, struct insn *insn)
{
	uint32_t size = ins >> 30, load = ins >> 22 & 3;

	if ((ins & 0x3f000000) == 0x39000000 && load <= 1) { /* unsigned offset, scaled */
		insn->kind = load ? LOAD : STORE;
		insn->value = (int32_t)((ins >> 10 & 0xfff) << size);
	} else if ((ins & 0x3f200c00) == 0x38000000 && load <= 1) { /* signed offset */
		insn->kind = load ? LOAD : STORE;
		insn->value = (int32_t)(ins << 11) >> 23;
	} else if ((ins & 0x3f200c00) == 0x38000400 && load == 1) { /* ldr w, [base], 4 */
		insn->kind = LOAD;
		insn->value = 0;
	} else if ((ins & 0x3f200c00) == 0x38200800 && load <= 1) { /* register offset */
		insn->kind = load ? LOAD_INDEXED : STORE_INDEXED;
		insn->other = ins >> 16 & 31;
	} else {
		return false;
	}
	insn->size = (uint8_t)(1 << size);
	return true;
}

static void decode_arithmetic(uint32_t ins, struct insn *insn)
{
	if ((ins & 0xff800000) == 0x91000000) {
		insn->kind = ADD_IMM;
		insn->value = (int32_t)(ins >> 10 & 0xfff) << (ins >> 22 & 1 ? 12 : 0);
	} else if ((ins & 0xffe0fc00) == 0x8b200c00) { /* uxtb 3 */
		insn->kind = ADD_OPCODE;
	} else if ((ins & 0xffe00000) == 0x52800000) { /* movz w */
		insn->kind = SET;
		insn->value = (int32_t)(ins >> 5 & 0xffff);
	} else if ((ins & 0xffe00000) == 0x12800000) { /* movn w */
		insn->kind = SET;
		insn->value = ~(int32_t)(ins >> 5 & 0xffff);
	} else if ((ins & 0xffe0fc1f) == 0xeb00001f) { /* cmp x, x */
		insn->kind = COMPARE;
		insn->other = ins >> 16 & 31;
	} else if ((ins & 0xffe0fc00) == 0xcb000000) {
		insn->kind = SUBTRACT;
		insn->other = ins >> 16 & 31;
	} else if ((ins & 0xfffffc00) == 0x936ffc00) {
		insn->kind = SHIFT_TAG;
	}
}

static void decode(uint32_t ins, struct insn *insn)
{
	*insn = (struct insn){ .reg = ins & 31, .base = ins >> 5 & 31 };
	if (decode_access(ins, insn))
		return;
	if ((ins & 0xffc00000) == 0xa9400000 || (ins & 0xffc00000) == 0xa9000000) {
		insn->kind = ins & 0x00400000 ? LOAD_PAIR : STORE_PAIR;
		insn->size = 8;
		insn->other = ins >> 10 & 31;
		insn->value = ((int32_t)(ins << 10) >> 25) * 8;
	} else if ((ins & 0xfc000000) == 0x94000000) {
		insn->kind = CALL;
	} else if ((ins & 0xfffffc1f) == 0xd63f0000) {
		insn->kind = CALL_REG;
	} else if ((ins & 0xfffffc1f) == 0xd61f0000) {
		insn->kind = JUMP_REG;
	} else if ((ins & 0xff00001f) == 0x54000008) {
		insn->kind = BRANCH_HI;
	} else {
		decode_arithmetic(ins, insn);
	}
}

/* ---- Looking ---------------------------------------------------------------------------- */

/** All instructions, and the facts that are known so far. */
struct sweep {
	const uint8_t *code;
	size_t count;
	int32_t vmstate, last; /* see find_last() */
	struct derive_reading *reading;
};

#define VOTE(sweep, member, number) \
	derive_vote(&(sweep)->reading->votes[DERIVE_FIELD(member)], (number))

/* The instruction at an index; outside the code it is OTHER. */
static struct insn insn_at(const struct sweep *sweep, size_t i)
{
	struct insn insn = { 0 };
	uint32_t ins;

	if (i < sweep->count) {
		memcpy(&ins, sweep->code + 4 * i, 4);
		decode(ins, &insn);
	}
	return insn;
}

/* Whether an instruction loads or stores by a base register. A displacement that is too large for
 * an instruction is in a register, which was set before. */
static bool is_access(const struct sweep *sweep, size_t i, uint8_t kind, uint8_t base,
		      struct insn *ret_insn)
{
	*ret_insn = insn_at(sweep, i);
	if (ret_insn->base != base)
		return false;
	if (ret_insn->kind == kind)
		return true;
	if (kind != STORE || ret_insn->kind != STORE_INDEXED)
		return false;
	for (size_t k = i; k-- > 0 && k + 4 > i;) {
		struct insn set = insn_at(sweep, k);

		if (set.kind == SET && set.reg == ret_insn->other) {
			ret_insn->value = set.value;
			return true;
		}
	}
	return false;
}

/* The constant that an earlier instruction set a register to, or INT32_MAX. */
static int32_t constant_of(const struct sweep *sweep, size_t i, uint8_t reg)
{
	if (reg == REG_MINUS_ONE)
		return -1;
	for (size_t k = i; k-- > 0 && k + 16 > i;) {
		struct insn set = insn_at(sweep, k);

		if (set.kind == SET && set.reg == reg)
			return set.value;
	}
	return INT32_MAX;
}

/* ---- Members of global_State ------------------------------------------------------------ */

static void read_opcode_jump(struct sweep *sweep, size_t i)
{
	struct insn add = insn_at(sweep, i), load;

	for (size_t k = i + 1; k < i + 5; k++)
		if (is_access(sweep, k, LOAD, add.reg, &load) && load.size == 8) {
			VOTE(sweep, global_State_to_dispatch, load.value);
			return;
		}
}

/* An entry loads the global state from the coroutine, and makes this the current coroutine. */
static void read_entry(struct sweep *sweep, size_t i)
{
	struct insn store;

	for (size_t k = i + 1; k < i + ENTRY_INSNS; k++) {
		if (insn_at(sweep, k).kind == CALL_REG || insn_at(sweep, k).kind == CALL)
			return;
		if (is_access(sweep, k, STORE, REG_G, &store) && store.reg == REG_L &&
		    store.size == 8) {
			VOTE(sweep, global_State_cur_L, store.value);
			return;
		}
	}
}

/* A call of a C function sets the state before it, and the current coroutine after it. */
static void read_c_call(struct sweep *sweep, size_t i)
{
	struct insn call = insn_at(sweep, i), insn;

	for (size_t k = i + 1; k < i + 5; k++)
		if (is_access(sweep, k, STORE, REG_G, &insn) && insn.reg == REG_L)
			VOTE(sweep, global_State_cur_L, insn.value);
	for (size_t k = i; k-- > 0 && k + 3 > i;)
		if (is_access(sweep, k, STORE, REG_G, &insn) && insn.value == sweep->vmstate &&
		    constant_of(sweep, k, insn.reg) != INT32_MAX)
			VOTE(sweep, vmst_cfunc, ~constant_of(sweep, k, insn.reg));
	for (size_t k = i; k-- > 0 && k + CALL_INSNS > i;) {
		insn = insn_at(sweep, k);
		if (insn.kind == LOAD && insn.size == 8 && insn.reg == call.base &&
		    insn.base != REG_G && insn.base != REG_L) {
			VOTE(sweep, GCfuncC_f, insn.value);
			return;
		}
	}
}

/* An exit loads the current coroutine and its base, and stores the numbers of exit and trace. */
static void read_exit(struct sweep *sweep, size_t i)
{
	struct insn insn = insn_at(sweep, i);

	VOTE(sweep, global_State_cur_L, insn.value);
	for (size_t k = i + 1; k < i + EXIT_INSNS; k++) {
		if (is_access(sweep, k, LOAD, REG_G, &insn) && insn.reg == REG_BASE)
			VOTE(sweep, global_State_jit_base, insn.value);
		if (!is_access(sweep, k, STORE, REG_G, &insn) || insn.size != 4)
			continue;
		if (insn.value == sweep->vmstate && constant_of(sweep, k, insn.reg) < -1)
			VOTE(sweep, vmst_exit, ~constant_of(sweep, k, insn.reg));
		else if (insn.reg == 0)
			VOTE(sweep, jit_State_exitno, insn.value);
		else if (insn.reg == 1)
			VOTE(sweep, jit_State_parent, insn.value);
	}
}

/* ldr r, [J.trace]; ldr r2, [r, number]; ldr r3, [r2+mcode]; ...; br r3. A 32-bit load instead
 * reads the instruction with which the trace began. */
static void read_trace(struct sweep *sweep, size_t i)
{
	struct insn table = insn_at(sweep, i), trace = { 0 }, insn;
	size_t k = i + 1;

	for (; k < i + 4 && !(trace.kind == LOAD_INDEXED && trace.base == table.reg); k++)
		trace = insn_at(sweep, k);
	if (trace.kind != LOAD_INDEXED || trace.base != table.reg)
		return;
	for (size_t at = k; at < k + 4; at++) {
		if (!is_access(sweep, at, LOAD, trace.reg, &insn))
			continue;
		VOTE(sweep, jit_State_trace, table.value);
		if (insn.size == 4) {
			VOTE(sweep, GCtrace_startins, insn.value);
		} else if (insn.size == 8) {
			VOTE(sweep, GCtrace_mcode, insn.value);
			sweep->reading->has_compiler = true;
		}
		return;
	}
}

/* add x0, J, beside str L, [J.L], before a call. The compiler's state is the last structure that is
 * passed this way. */
static void read_compiler(struct sweep *sweep, size_t i)
{
	struct insn J = insn_at(sweep, i), store;

	for (size_t k = i >= 6 ? i - 6 : 0; k <= i + 6 && J.value == sweep->last; k++)
		if (is_access(sweep, k, STORE, REG_G, &store) && store.reg == REG_L &&
		    store.size == 8 && store.value > J.value) {
			VOTE(sweep, global_State_to_J, J.value);
			VOTE(sweep, jit_State_L, store.value - J.value);
		}
}

/* The largest displacement from the global state that is passed to C code. */
static int32_t find_last(const struct sweep *sweep)
{
	int32_t last = 0;

	for (size_t i = 0; i < sweep->count; i++) {
		struct insn insn = insn_at(sweep, i);

		if (insn.kind == ADD_IMM && insn.reg == 0 && insn.base == REG_G &&
		    insn.value > last)
			last = insn.value;
	}
	return last;
}

/* A write barrier puts a table into a list. */
static void read_barrier(struct sweep *sweep, size_t i)
{
	struct insn load = insn_at(sweep, i), store, link;

	for (size_t k = i + 1; k < i + 5; k++) {
		if (!is_access(sweep, k, STORE, REG_G, &store) || store.value != load.value ||
		    store.size != 8)
			continue;
		for (size_t at = k + 1; at < k + 4; at++)
			if (is_access(sweep, at, STORE, store.reg, &link) && link.reg == load.reg)
				derive_vote(&sweep->reading->gc_grayagain, load.value);
	}
}

static void read_global_at(struct sweep *sweep, size_t i)
{
	struct insn insn = insn_at(sweep, i), next = insn_at(sweep, i + 1);

	if (insn.kind == ADD_OPCODE && insn.base == REG_G)
		read_opcode_jump(sweep, i);
	else if (insn.kind == LOAD && insn.reg == REG_G && insn.size == 8 && insn.base == REG_L) {
		VOTE(sweep, lua_State_glref, insn.value);
		read_entry(sweep, i);
	} else if (insn.kind == CALL_REG) {
		read_c_call(sweep, i);
	} else if (insn.kind == ADD_IMM && insn.reg == 0 && insn.base == REG_G) {
		read_compiler(sweep, i);
	} else if (insn.kind == LOAD_PAIR && insn.base == REG_G) {
		derive_vote(&sweep->reading->gc_total, insn.value);
	} else if (insn.kind == STORE && insn.base == REG_G && insn.size == 8 &&
		   insn.reg == REG_SP) {
		VOTE(sweep, global_State_jit_base, insn.value);
	} else if (insn.kind == LOAD && insn.size == 8 && insn.reg == REG_PC && insn.base == 10 &&
		   next.reg == REG_G) {
		/* A callback has the global state in x10: mov x22, x10. */
		VOTE(sweep, global_State_ctype_state, insn.value);
	}
	if (insn.kind != LOAD || insn.base != REG_G || insn.size != 8)
		return;
	if (insn.reg == REG_L)
		read_exit(sweep, i);
	read_trace(sweep, i);
	read_barrier(sweep, i);
}

static bool read_vmstate(struct sweep *sweep)
{
	struct derive_votes *votes = &sweep->reading->votes[DERIVE_FIELD(global_State_vmstate)];
	struct insn store;

	for (size_t i = 0; i < sweep->count; i++)
		if (is_access(sweep, i, STORE, REG_G, &store) && store.size == 4 &&
		    store.reg == REG_MINUS_ONE)
			derive_vote(votes, store.value);
	VOTE(sweep, vmst_interp, 0);
	return derive_winner(votes, &sweep->vmstate);
}

/* ---- Members of lua_State --------------------------------------------------------------- */

/* Whether a register holds the C frame's address, perhaps with a flag. */
static bool is_frame(const struct sweep *sweep, size_t i, uint8_t reg)
{
	for (size_t k = i; k-- > 0 && k + 10 > i;) {
		struct insn add = insn_at(sweep, k);

		if (add.kind == ADD_IMM && add.reg == reg)
			return add.base == REG_SP && add.value <= 1;
	}
	return false;
}

/* ldr r, [L+stack]; ldr r2, [L+top]; sub r, r, r2. */
static void read_stack(struct sweep *sweep, size_t i)
{
	struct insn sub = insn_at(sweep, i), load;
	int32_t stack = -1, top = -1;

	for (size_t k = i; k-- > 0 && k + 10 > i;) {
		load = insn_at(sweep, k);
		if (load.kind != LOAD || load.size != 8 || (load.base != REG_L && load.base != 0))
			continue;
		if (load.reg == sub.base && stack < 0)
			stack = load.value;
		if (load.reg == sub.other && top < 0)
			top = load.value;
	}
	if (stack < 0 || top < 0 || sub.reg != sub.base)
		return;
	/* The C frame keeps the difference. */
	for (size_t k = i + 1; k < i + 3; k++)
		if (is_access(sweep, k, STORE, REG_SP, &load) && load.reg == sub.reg &&
		    load.size == 4) {
			VOTE(sweep, lua_State_stack, stack);
			VOTE(sweep, lua_State_top, top);
		}
}

static void read_coroutine_at(struct sweep *sweep, size_t i)
{
	struct insn insn = insn_at(sweep, i);

	if (insn.base == REG_L && insn.kind == STORE && insn.size == 8 && insn.reg == REG_BASE)
		VOTE(sweep, lua_State_base, insn.value);
	if (insn.base == REG_L && insn.kind == LOAD && insn.size == 8 && insn.reg == REG_BASE)
		VOTE(sweep, lua_State_base, insn.value);
	if (insn.base == REG_L && (insn.kind == LOAD_PAIR || insn.kind == STORE_PAIR) &&
	    insn.reg == REG_BASE) {
		VOTE(sweep, lua_State_base, insn.value);
		VOTE(sweep, lua_State_top, insn.value + 8);
	}
	if (insn.base == REG_L && insn.kind == STORE && insn.size == 8 &&
	    is_frame(sweep, i, insn.reg))
		VOTE(sweep, lua_State_cframe, insn.value);
	if (insn.base == REG_L && insn.kind == STORE && insn.size == 1)
		VOTE(sweep, lua_State_status, insn.value);
	if (insn.base == REG_L && insn.kind == LOAD && insn.size == 8)
		for (size_t k = i + 1; k < i + 6; k++)
			if (insn_at(sweep, k).kind == COMPARE &&
			    insn_at(sweep, k).other == insn.reg &&
			    (insn_at(sweep, k + 1).kind == BRANCH_HI ||
			     insn_at(sweep, k + 2).kind == BRANCH_HI)) {
				VOTE(sweep, lua_State_maxstack, insn.value);
				break;
			}
	if (insn.kind == SUBTRACT)
		read_stack(sweep, i);
	if (insn.kind == LOAD && insn.base == REG_SP && insn.reg == REG_L && insn.size == 8)
		VOTE(sweep, cframe_L, insn.value);
	if (insn.kind == STORE && insn.base == REG_SP && insn.reg == REG_PC && insn.size == 8)
		VOTE(sweep, cframe_pc, insn.value);
}

/* ---- Members of functions and traces ---------------------------------------------------- */

/* A prototype's members are right below its bytecode. */
static void read_function_at(struct sweep *sweep, size_t i)
{
	struct insn insn = insn_at(sweep, i), next = insn_at(sweep, i + 1);

	if (insn.kind == LOAD && insn.size == 8 && insn.reg == REG_KBASE && insn.base == REG_PC)
		derive_vote(&sweep->reading->k_before_end, 4 + insn.value);
	if (insn.kind == LOAD && insn.size == 1 && insn.base == REG_PC && insn.value < -16)
		derive_vote(&sweep->reading->numparams_before_end, 4 + insn.value);
	if (insn.kind == LOAD && insn.size == 8 && insn.reg == REG_PC && insn.base != REG_L &&
	    insn.base != REG_G && next.kind == LOAD && next.size == 4 && next.base == REG_PC &&
	    next.value == 0)
		VOTE(sweep, GCfunc_pc, insn.value);
	if (insn.kind == LOAD && insn.size == 2 && next.kind == LOAD && next.size == 2 &&
	    insn.base == next.base && insn.value != next.value && insn.base != REG_PC) {
		VOTE(sweep, GCtrace_traceno, insn.value);
		VOTE(sweep, GCtrace_link, next.value);
	}
}

bool derive_read_code(const struct state_interpreter *interpreter,
		      struct derive_reading *ret_reading)
{
	struct sweep sweep = { .code = interpreter->code,
			       .count = (size_t)(interpreter->end - interpreter->start) / 4,
			       .reading = ret_reading };
	size_t shifts = 0;
	int32_t unused;

	memset(ret_reading, 0, sizeof(*ret_reading));
	if (!read_vmstate(&sweep))
		return false;
	sweep.last = find_last(&sweep);
	for (size_t i = 0; i < sweep.count; i++) {
		shifts += insn_at(&sweep, i).kind == SHIFT_TAG;
		read_global_at(&sweep, i);
		read_coroutine_at(&sweep, i);
		read_function_at(&sweep, i);
	}
	/* AArch64 has no other value model, so other code is not LuaJIT's. */
	ret_reading->gc64 = shifts > SHIFTS_OF_TAGS;
	return ret_reading->gc64 &&
	       derive_winner(&ret_reading->votes[DERIVE_FIELD(global_State_to_dispatch)], &unused);
}
