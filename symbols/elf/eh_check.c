/* SPDX-License-Identifier: MIT */
/* Is a program of unwind instructions safe for libunwind? */
#include "symbols/elf/eh_frame.h"

#include <dwarf.h>

#include "symbols/elf/bytes.h"

/** Program of one entry; the longest one in a C++ library of 100 MB had 9 KB. */
#define PROGRAM_MAX_BYTES ((size_t)1 << 16)
/** Depth of DW_CFA_remember_state; compilers nest at most two. */
#define STATES_MAX 32
/** Length of an expression; those for the PLT and for signal frames have about ten bytes. */
#define EXPRESSION_MAX_BYTES 64

static void take_register(struct symbols_bytes *bytes)
{
	if (symbols_bytes_uleb(bytes) >= SYMBOLS_EH_REGISTERS)
		bytes->failed = true;
}

/** Check one operation. Jumps, calls and divisions fail. The rest only goes forward, so it ends. */
static void take_operation(struct symbols_bytes *bytes)
{
	uint64_t op = symbols_bytes_fixed(bytes, 1);

	if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
		return;
	if (op >= DW_OP_breg0 && op <= DW_OP_breg31 && op < DW_OP_breg0 + SYMBOLS_EH_REGISTERS) {
		symbols_bytes_uleb(bytes);
		return;
	}
	switch (op) {
	case DW_OP_const1u:
	case DW_OP_const1s:
		symbols_bytes_skip(bytes, 1);
		return;
	case DW_OP_const2u:
	case DW_OP_const2s:
		symbols_bytes_skip(bytes, 2);
		return;
	case DW_OP_const4u:
	case DW_OP_const4s:
		symbols_bytes_skip(bytes, 4);
		return;
	case DW_OP_addr:
	case DW_OP_const8u:
	case DW_OP_const8s:
		symbols_bytes_skip(bytes, 8);
		return;
	case DW_OP_constu:
	case DW_OP_consts:
	case DW_OP_plus_uconst:
		symbols_bytes_uleb(bytes);
		return;
	case DW_OP_deref:
	case DW_OP_dup:
	case DW_OP_drop:
	case DW_OP_over:
	case DW_OP_swap:
	case DW_OP_and:
	case DW_OP_or:
	case DW_OP_xor:
	case DW_OP_not:
	case DW_OP_neg:
	case DW_OP_plus:
	case DW_OP_minus:
	case DW_OP_mul:
	case DW_OP_shl:
	case DW_OP_shr:
	case DW_OP_eq:
	case DW_OP_ge:
	case DW_OP_gt:
	case DW_OP_le:
	case DW_OP_lt:
	case DW_OP_ne:
	case DW_OP_nop:
		return;
	default:
		bytes->failed = true;
	}
}

static void take_expression(struct symbols_bytes *bytes)
{
	uint64_t len = symbols_bytes_uleb(bytes);
	struct symbols_bytes inner = *bytes;

	symbols_bytes_skip(bytes, len);
	if (bytes->failed || len > EXPRESSION_MAX_BYTES) {
		bytes->failed = true;
		return;
	}
	inner.end = bytes->at;
	while (inner.at < inner.end && !inner.failed)
		take_operation(&inner);
	bytes->failed = inner.failed;
}

/** What the programs have done so far. */
struct program {
	bool has_cfa;
	bool is_common; /**< The program is the common part's, so it runs before the first row. */
	unsigned states;
};

/** Check at the begin of a row and when one is kept: it needs a CFA, because libunwind has no
 *  default. */
static void need_cfa(struct symbols_bytes *bytes, const struct program *program)
{
	if (!program->has_cfa || program->is_common)
		bytes->failed = true;
}

/**
 * DW_CFA_AARCH64_negate_ra_state toggles whether the return address is signed. libunwind 1.6.2
 * rejects it, and we recognise signed addresses by their bits, so our copy replaces it by a
 * no-operation.
 * Source: DWARF for the Arm 64-bit Architecture, "Call frame instructions".
 */
static bool forget_signature(const struct symbols_eh *eh, struct symbols_bytes *bytes)
{
#if defined(__aarch64__)
	uint8_t *op = &eh->bytes[bytes->at - 1];

	if (*op == DW_CFA_GNU_window_save) { /* the same number */
		*op = DW_CFA_nop;
		return true;
	}
#else
	(void)eh, (void)bytes;
#endif
	return false;
}

/** Check one instruction whose operation is in the low six bits. */
static void take_extended(struct symbols_bytes *bytes, uint64_t op, struct program *program)
{
	switch (op) {
	case DW_CFA_nop:
		return;
	case DW_CFA_advance_loc1:
	case DW_CFA_advance_loc2:
	case DW_CFA_advance_loc4:
		need_cfa(bytes, program);
		symbols_bytes_skip(bytes, (uint64_t)1 << (op - DW_CFA_advance_loc1));
		return;
	case DW_CFA_restore_extended:
	case DW_CFA_undefined:
	case DW_CFA_same_value:
	case DW_CFA_def_cfa_register:
		take_register(bytes);
		return;
	case DW_CFA_register:
		take_register(bytes);
		take_register(bytes);
		return;
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
		program->has_cfa = true;
		/* fall through */
	case DW_CFA_offset_extended:
	case DW_CFA_offset_extended_sf:
	case DW_CFA_GNU_negative_offset_extended:
		take_register(bytes);
		/* fall through */
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_GNU_args_size:
		symbols_bytes_uleb(bytes);
		return;
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		take_register(bytes);
		take_expression(bytes);
		return;
	case DW_CFA_def_cfa_expression:
		program->has_cfa = true;
		take_expression(bytes);
		return;
	case DW_CFA_remember_state:
		need_cfa(bytes, program);
		bytes->failed |= ++program->states > STATES_MAX;
		return;
	case DW_CFA_restore_state:
		bytes->failed |= program->states-- == 0;
		return;
	default: /* also DW_CFA_set_loc and DW_CFA_val_offset, which libunwind misreads */
		bytes->failed = true;
	}
}

static bool check_program(const struct symbols_eh *eh, size_t start, size_t end,
			  struct program *program)
{
	struct symbols_bytes bytes = { .start = eh->bytes, .at = start, .end = end };

	if (end - start > PROGRAM_MAX_BYTES)
		return false;
	program->states = 0;
	while (bytes.at < bytes.end && !bytes.failed) {
		uint64_t op = symbols_bytes_fixed(&bytes, 1);

		switch (op & 0xc0) {
		case DW_CFA_advance_loc:
			need_cfa(&bytes, program);
			break;
		case DW_CFA_offset:
			symbols_bytes_uleb(&bytes);
			/* fall through */
		case DW_CFA_restore:
			bytes.failed |= (op & 0x3f) >= SYMBOLS_EH_REGISTERS;
			break;
		default:
			if (bytes.failed || !forget_signature(eh, &bytes))
				take_extended(&bytes, op, program);
		}
	}
	return !bytes.failed;
}

bool symbols_eh_check(const struct symbols_eh *eh, const struct symbols_eh_entry *entry)
{
	struct program program = { .is_common = true };

	if (entry->return_column != SYMBOLS_EH_RETURN_ADDRESS ||
	    !check_program(eh, entry->cie_code_start, entry->cie_code_end, &program))
		return false;
	program.is_common = false;
	return check_program(eh, entry->code_start, entry->code_end, &program) && program.has_cfa;
}
