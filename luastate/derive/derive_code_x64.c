/* SPDX-License-Identifier: MIT */
/* What does the interpreter's code on x86-64 show of LuaJIT's structures?
 *
 * The code is written in assembler, so compilers and their options do not change it; these
 * instruction patterns are the same in all builds since 2017. Unless a comment says otherwise, r14
 * is DISPATCH, rbp the coroutine, rbx the bytecode's PC behind the instruction, rdx BASE and rsp
 * the C frame.
 *
 * Source: LuaJIT v2.1 src/vm_x64.dasc, vm_x86.dasc.
 */
#include "luastate/derive/derive.h"

#include <stdlib.h>

#include "luastate/arch/insn_x64.h"

enum {
	/* Limit of an interpreter's instructions; 17 KiB of code have some 4,300. */
	INSNS_MAX = 32768,
	/* Instructions from the set-up of DISPATCH to the completed C frame. */
	ENTRY_INSNS = 14,
	/* Instructions from an exit's beginning to the loads of the coroutine and its base. */
	EXIT_INSNS = 48,
	/* Instructions between the load of a C function's address and its call. */
	CALL_INSNS = 14,
	CONDITION_AE = 3,
	CONDITION_A = 7,
	NODE_BYTES = 24,
	SHIFTS_OF_TAGS = 20, /* sar reg, 47: only GC64 has more of them */
	VMSTATE_LAST = -20,  /* ~LJ_VMST_* are small numbers */
};

/** All instructions, and the facts that are known so far. */
struct sweep {
	const struct insn *insns;
	size_t count;
	int32_t to_dispatch, vmstate;
	uint8_t ref;
	struct derive_reading *reading;
};

#define VOTE(sweep, member, value) \
	derive_vote(&(sweep)->reading->votes[DERIVE_FIELD(member)], (value))

/* Whether an instruction of a kind has a memory operand with this base register. */
static bool is_of(const struct insn *insn, uint8_t kind, uint8_t base)
{
	return insn->kind == kind && insn->has_mem && insn->base == base &&
	       insn->index == INSN_NO_REG;
}

static bool is_member(const struct insn *insn, uint8_t kind)
{
	return insn->kind == kind && insn->has_mem && insn->base != INSN_NO_REG &&
	       insn->index == INSN_NO_REG && insn->base != INSN_R14 && insn->base != INSN_RSP;
}

/* The next instruction of a kind within some instructions, or NULL. */
static const struct insn *next_of(const struct sweep *sweep, size_t from, size_t within,
				  uint8_t kind, uint8_t base, uint8_t reg)
{
	for (size_t i = from; i < sweep->count && i < from + within; i++)
		if (is_of(&sweep->insns[i], kind, base) && sweep->insns[i].reg == reg)
			return &sweep->insns[i];
	return NULL;
}

/* The instruction at an index; behind the last one it is INSN_OTHER. */
static const struct insn *insn_at(const struct sweep *sweep, size_t i)
{
	static const struct insn none = { .reg = INSN_NO_REG,
					  .base = INSN_NO_REG,
					  .index = INSN_NO_REG };

	return i < sweep->count ? &sweep->insns[i] : &none;
}

static bool is_add_dispatch(const struct insn *insn)
{
	return insn->kind == INSN_ALU_IMM && insn->op == INSN_ADD && !insn->has_mem &&
	       insn->base == INSN_R14 && insn->imm > 0;
}

/* ---- Where the dispatch table is -------------------------------------------------------- */

/* mov r14, [L+glref]; ...; add r14, G2DISP. A callback has g in rbp: it computes lea r14,
 * [rbp+G2DISP], and loads the C types. */
static void read_dispatch(struct sweep *sweep)
{
	for (size_t i = 0; i < sweep->count; i++) {
		const struct insn *insn = &sweep->insns[i];

		if (is_member(insn, INSN_LOAD) && insn->reg == INSN_R14 && insn->size == sweep->ref)
			for (size_t k = i + 1; k <= i + 5; k++)
				if (is_add_dispatch(insn_at(sweep, k))) {
					VOTE(sweep, lua_State_glref, insn->disp);
					VOTE(sweep, global_State_to_dispatch,
					     insn_at(sweep, k)->imm);
					break;
				}
		if (is_of(insn, INSN_LEA, INSN_RBP) && insn->reg == INSN_R14) {
			VOTE(sweep, global_State_to_dispatch, insn->disp);
			insn = insn_at(sweep, i + 1);
			if (is_of(insn, INSN_LOAD, INSN_RBP))
				VOTE(sweep, global_State_ctype_state, insn->disp);
		}
	}
}

/* ---- Members of global_State ------------------------------------------------------------ */

static bool is_state_store(const struct sweep *sweep, const struct insn *insn)
{
	return is_of(insn, INSN_STORE_IMM, INSN_R14) && insn->size == 4 && insn->imm < 0 &&
	       insn->imm >= VMSTATE_LAST &&
	       (!sweep->vmstate || insn->disp + sweep->to_dispatch == sweep->vmstate);
}

/* After an entry's "add r14", the current coroutine and the state are stored. */
static void read_entry(struct sweep *sweep, size_t i)
{
	for (size_t k = i + 1; k < i + ENTRY_INSNS; k++) {
		const struct insn *insn = insn_at(sweep, k);

		if (insn->kind == INSN_CALL_MEM || insn->kind == INSN_CALL)
			break;
		if (is_of(insn, INSN_STORE, INSN_R14) && insn->reg == INSN_RBP)
			VOTE(sweep, global_State_cur_L, insn->disp + sweep->to_dispatch);
		if (is_state_store(sweep, insn)) {
			VOTE(sweep, vmst_interp, ~insn->imm);
			break;
		}
	}
}

/* A call of a C function sets the state before it, and the current coroutine after it. */
static void read_c_call(struct sweep *sweep, size_t i)
{
	const struct insn *call = &sweep->insns[i];

	for (size_t k = i; k-- > 0 && k + 3 > i;)
		if (is_state_store(sweep, &sweep->insns[k]))
			VOTE(sweep, vmst_cfunc, ~sweep->insns[k].imm);
	for (size_t k = i + 1; k < i + 4; k++)
		if (is_of(insn_at(sweep, k), INSN_STORE, INSN_R14) &&
		    insn_at(sweep, k)->reg == INSN_RBP)
			VOTE(sweep, global_State_cur_L,
			     insn_at(sweep, k)->disp + sweep->to_dispatch);
	if (call->has_mem || call->base == INSN_RCX)
		return;
	for (size_t k = i; k-- > 0 && k + CALL_INSNS > i;)
		if (is_of(&sweep->insns[k], INSN_LOAD, INSN_RBP) &&
		    sweep->insns[k].reg == call->base) {
			VOTE(sweep, GCfuncC_f, sweep->insns[k].disp);
			break;
		}
}

/* mov ecx, [vmstate]; mov [vmstate], ~EXIT; mov [exitno], eax; mov [parent], ecx; ...; then loads
 * of the coroutine and its base. */
static void read_exit(struct sweep *sweep, size_t i)
{
	const struct insn *number = &sweep->insns[i], *state = insn_at(sweep, i + 1);
	const struct insn *first = insn_at(sweep, i + 2), *second = insn_at(sweep, i + 3), *load;

	if (!is_state_store(sweep, state) || state->disp != number->disp || number->size != 4 ||
	    !is_of(first, INSN_STORE, INSN_R14) || !is_of(second, INSN_STORE, INSN_R14))
		return;
	VOTE(sweep, vmst_exit, ~state->imm);
	if (second->reg != number->reg) {
		const struct insn *other = first;

		first = second;
		second = other;
	}
	VOTE(sweep, jit_State_exitno, first->disp + sweep->to_dispatch);
	VOTE(sweep, jit_State_parent, second->disp + sweep->to_dispatch);
	load = next_of(sweep, i, EXIT_INSNS, INSN_LOAD, INSN_R14, INSN_RBP);
	if (load)
		VOTE(sweep, global_State_cur_L, load->disp + sweep->to_dispatch);
	load = next_of(sweep, i, EXIT_INSNS, INSN_LOAD, INSN_R14, INSN_RDX);
	if (load)
		VOTE(sweep, global_State_jit_base, load->disp + sweep->to_dispatch);
}

/* mov r, [J.trace]; mov r2, [r+r2*size]; mov r2, [r2+mcode]; ...; jmp r2. A 32-bit load instead
 * reads the instruction with which the trace began. */
static void read_trace(struct sweep *sweep, size_t i)
{
	const struct insn *table = &sweep->insns[i], *trace = insn_at(sweep, i + 1);
	const struct insn *member = insn_at(sweep, i + 2), *base;

	if (trace->kind != INSN_LOAD || trace->base != table->reg || trace->index != trace->reg ||
	    trace->scale != sweep->ref || trace->disp != 0 || member->kind != INSN_LOAD ||
	    member->base != trace->reg || member->index != INSN_NO_REG)
		return;
	VOTE(sweep, jit_State_trace, table->disp + sweep->to_dispatch);
	if (member->size == 4) {
		VOTE(sweep, GCtrace_startins, member->disp);
		return;
	}
	VOTE(sweep, GCtrace_mcode, member->disp);
	sweep->reading->has_compiler = true;
	base = next_of(sweep, i, 8, INSN_STORE, INSN_R14, INSN_RDX);
	if (base)
		VOTE(sweep, global_State_jit_base, base->disp + sweep->to_dispatch);
}

/* A write barrier puts a table into a list: mov r, [grayagain]; mov [grayagain], table; mov
 * [table+gclist], r. */
static void read_barrier(struct sweep *sweep, size_t i)
{
	const struct insn *load = &sweep->insns[i];

	for (size_t k = i + 1; k < i + 3; k++) {
		const struct insn *store = insn_at(sweep, k), *link = insn_at(sweep, k + 1);

		if (is_of(store, INSN_STORE, INSN_R14) && store->disp == load->disp &&
		    is_of(link, INSN_STORE, store->reg) && link->reg == load->reg)
			derive_vote(&sweep->reading->gc_grayagain, load->disp + sweep->to_dispatch);
	}
}

/* lea rdi, [J], beside mov [J.L], rbp, before a call. */
static void read_compiler(struct sweep *sweep, size_t i)
{
	for (size_t k = i >= 3 ? i - 3 : 0; k <= i + 3; k++) {
		const struct insn *store = insn_at(sweep, k);

		if (!is_of(store, INSN_STORE, INSN_R14) || store->reg != INSN_RBP)
			continue;
		VOTE(sweep, global_State_to_J, sweep->insns[i].disp + sweep->to_dispatch);
		VOTE(sweep, jit_State_L, store->disp - sweep->insns[i].disp);
	}
}

static void read_global(struct sweep *sweep)
{
	for (size_t i = 0; i < sweep->count; i++) {
		const struct insn *insn = &sweep->insns[i], *next = insn_at(sweep, i + 1);

		if (is_add_dispatch(insn))
			read_entry(sweep, i);
		else if (insn->kind == INSN_CALL_MEM && !insn->has_mem)
			read_c_call(sweep, i);
		else if (is_of(insn, INSN_STORE_IMM, INSN_R14) && insn->imm == 0 &&
			 insn->size == sweep->ref)
			VOTE(sweep, global_State_jit_base, insn->disp + sweep->to_dispatch);
		else if (is_of(insn, INSN_LEA, INSN_R14) && insn->reg == INSN_RDI)
			read_compiler(sweep, i);
		if (!is_of(insn, INSN_LOAD, INSN_R14))
			continue;
		if (is_of(next, INSN_ALU_LOAD, INSN_R14) && next->op == INSN_CMP &&
		    next->reg == insn->reg)
			derive_vote(&sweep->reading->gc_total, insn->disp + sweep->to_dispatch);
		read_exit(sweep, i);
		read_barrier(sweep, i);
		read_trace(sweep, i);
	}
}

/* The state is the member that is stored most often. It is found first, because stores of small
 * numbers to other members look alike. */
static bool read_vmstate(struct sweep *sweep)
{
	struct derive_votes *votes = &sweep->reading->votes[DERIVE_FIELD(global_State_vmstate)];

	for (size_t i = 0; i < sweep->count; i++) {
		const struct insn *insn = &sweep->insns[i];

		if (is_state_store(sweep, insn))
			derive_vote(votes, insn->disp + sweep->to_dispatch);
	}
	return derive_winner(votes, &sweep->vmstate);
}

/* ---- Members of lua_State --------------------------------------------------------------- */

static void read_coroutine_at(struct sweep *sweep, size_t i)
{
	const struct insn *insn = &sweep->insns[i], *next = insn_at(sweep, i + 1);

	if (is_of(insn, INSN_STORE, INSN_RBP) && insn->reg == INSN_RSP && insn->size == 8)
		VOTE(sweep, lua_State_cframe, insn->disp);
	if (is_of(insn, INSN_STORE, INSN_RBP) && insn->size == 1)
		VOTE(sweep, lua_State_status, insn->disp);
	if (is_of(insn, INSN_ALU_STORE, INSN_RBP) && insn->op == INSN_CMP && insn->size == 1)
		VOTE(sweep, lua_State_status, insn->disp);
	if (is_of(insn, INSN_ALU_LOAD, INSN_RBP) && insn->op == INSN_CMP &&
	    next->kind == INSN_BRANCH && next->op == CONDITION_A)
		VOTE(sweep, lua_State_maxstack, insn->disp);
	/* Without GC64 the lower half of a value is the whole pointer. */
	if ((insn->kind == INSN_CALL || insn->kind == INSN_CALL_MEM) &&
	    is_of(next, INSN_LOAD, INSN_RBP) && next->reg == INSN_RDX && next->size == sweep->ref)
		VOTE(sweep, lua_State_base, next->disp);
	if (insn->kind == INSN_NEG && !insn->has_mem && is_of(next, INSN_ALU_LOAD, INSN_RBP) &&
	    next->op == INSN_ADD && next->reg == insn->base)
		VOTE(sweep, lua_State_top, next->disp);
	if (is_of(insn, INSN_LOAD, INSN_RBP) && is_of(next, INSN_ALU_LOAD, INSN_RBP) &&
	    next->op == INSN_SUB && next->reg == insn->reg) {
		VOTE(sweep, lua_State_stack, insn->disp);
		VOTE(sweep, lua_State_top, next->disp);
	}
	if (is_of(insn, INSN_LOAD, INSN_RSP) && insn->reg == INSN_RBP && insn->size == sweep->ref)
		VOTE(sweep, cframe_L, insn->disp);
	if (is_of(insn, INSN_STORE, INSN_RSP) && insn->reg == INSN_RBX && insn->size == sweep->ref)
		VOTE(sweep, cframe_pc, insn->disp);
}

/* ---- Members of functions, tables and traces -------------------------------------------- */

/* A prototype's members are right below its bytecode; rbx points behind the first instruction. */
static void read_proto_at(struct sweep *sweep, size_t i)
{
	const struct insn *insn = &sweep->insns[i], *next = insn_at(sweep, i + 1);

	if (is_of(insn, INSN_LOAD, INSN_RBX) && insn->reg == INSN_R15 && insn->size == sweep->ref &&
	    insn->disp < 0)
		derive_vote(&sweep->reading->k_before_end, 4 + insn->disp);
	if (is_of(insn, INSN_EXTEND, INSN_RBX) && insn->size == 1 && insn->disp < -16)
		derive_vote(&sweep->reading->numparams_before_end, 4 + insn->disp);
	if (is_member(insn, INSN_LOAD) && insn->reg == INSN_RBX && insn->size == sweep->ref &&
	    is_of(next, INSN_LOAD, INSN_RBX) && next->size == 4 && next->disp == 0)
		VOTE(sweep, GCfunc_pc, insn->disp);
}

static void read_upvalue_at(struct sweep *sweep, size_t i)
{
	const struct insn *insn = &sweep->insns[i], *next = insn_at(sweep, i + 1);

	if (insn->kind == INSN_LOAD && insn->base == INSN_RBP && insn->reg == INSN_RBP &&
	    insn->index != INSN_NO_REG && insn->scale == sweep->ref && insn->disp > 0) {
		VOTE(sweep, GCfuncL_uvptr, insn->disp);
		if (is_of(next, INSN_LOAD, INSN_RBP) && next->size == sweep->ref)
			VOTE(sweep, GCupval_v, next->disp);
	}
	if (is_of(insn, INSN_ALU_IMM, INSN_RBP) && insn->op == INSN_CMP && insn->size == 1 &&
	    insn->imm == 0)
		VOTE(sweep, GCupval_closed, insn->disp);
}

static void read_table_at(struct sweep *sweep, size_t i)
{
	const struct insn *insn = &sweep->insns[i], *next = insn_at(sweep, i + 1);
	const struct insn *third = insn_at(sweep, i + 2), *fourth = insn_at(sweep, i + 3);

	if (is_member(insn, INSN_LOAD) && insn->size == 4 && is_member(next, INSN_ALU_LOAD) &&
	    next->op == INSN_AND && third->kind == INSN_IMUL_IMM && third->imm == NODE_BYTES &&
	    is_of(fourth, INSN_ALU_LOAD, insn->base) && fourth->op == INSN_ADD) {
		VOTE(sweep, GCtab_hmask, insn->disp);
		VOTE(sweep, GCstr_hash, next->disp);
		VOTE(sweep, GCtab_node, fourth->disp);
		VOTE(sweep, Node_sizeof, third->imm);
	}
	if (is_member(insn, INSN_ALU_LOAD) && insn->op == INSN_CMP && insn->size == 4 &&
	    next->kind == INSN_BRANCH && next->op == CONDITION_AE)
		for (size_t k = i + 2; k < i + 5; k++)
			if (is_of(insn_at(sweep, k), INSN_ALU_LOAD, insn->base) &&
			    insn_at(sweep, k)->op == INSN_ADD) {
				VOTE(sweep, GCtab_asize, insn->disp);
				VOTE(sweep, GCtab_array, insn_at(sweep, k)->disp);
				break;
			}
	if (is_member(insn, INSN_LOAD) && insn->size == sweep->ref)
		for (size_t k = i + 1; k < i + 4; k++)
			if (is_of(insn_at(sweep, k), INSN_TEST_IMM, insn->reg) &&
			    insn_at(sweep, k)->size == 1 && insn->reg != insn->base) {
				VOTE(sweep, GCtab_metatable, insn->disp);
				break;
			}
	if (is_member(insn, INSN_TO_FLOAT))
		VOTE(sweep, GCstr_len, insn->disp);
	if (is_member(insn, INSN_EXTEND) && insn->size == 2 &&
	    is_of(next, INSN_EXTEND, insn->base) && next->size == 2 && next->disp != insn->disp) {
		VOTE(sweep, GCtrace_traceno, insn->disp);
		VOTE(sweep, GCtrace_link, next->disp);
	}
}

/* ---- The whole -------------------------------------------------------------------------- */

static size_t decode_all(const struct state_interpreter *interpreter, struct insn *ret_insns)
{
	size_t len = (size_t)(interpreter->end - interpreter->start), count = 0;

	for (size_t at = 0; at < len && count < INSNS_MAX;) {
		struct insn *insn = &ret_insns[count];

		if (!insn_decode(interpreter->code + at, len - at, insn)) {
			at++;
			continue;
		}
		insn->at = (uint32_t)at;
		at += insn->len;
		count++;
	}
	return count;
}

/* With GC64, tags are in the upper 17 bits of a value. */
static bool uses_gc64(const struct sweep *sweep)
{
	size_t shifts = 0;

	for (size_t i = 0; i < sweep->count; i++)
		shifts += sweep->insns[i].kind == INSN_SAR && sweep->insns[i].size == 8 &&
			  sweep->insns[i].imm == 47;
	return shifts > SHIFTS_OF_TAGS;
}

bool derive_read_code(const struct state_interpreter *interpreter,
		      struct derive_reading *ret_reading)
{
	struct insn *insns = malloc(INSNS_MAX * sizeof(*insns));
	struct sweep sweep = { .insns = insns, .reading = ret_reading };
	bool good = false;

	memset(ret_reading, 0, sizeof(*ret_reading));
	if (!insns)
		return false;
	sweep.count = decode_all(interpreter, insns);
	ret_reading->gc64 = uses_gc64(&sweep);
	sweep.ref = ret_reading->gc64 ? 8 : 4;
	read_dispatch(&sweep);
	if (derive_winner(&ret_reading->votes[DERIVE_FIELD(global_State_to_dispatch)],
			  &sweep.to_dispatch) &&
	    read_vmstate(&sweep)) {
		read_global(&sweep);
		for (size_t i = 0; i < sweep.count; i++) {
			read_coroutine_at(&sweep, i);
			read_proto_at(&sweep, i);
			read_upvalue_at(&sweep, i);
			read_table_at(&sweep, i);
		}
		good = true;
	}
	free(insns);
	return good;
}
