/* SPDX-License-Identifier: MIT */
/*
 * Which simple rule do call frame instructions give at an address?
 *
 * libdw could interpret them too, but it allocates by the register numbers that it reads: fuzzing
 * made it allocate 700 MB for a file of 16 KB. The tests compare this interpreter with libdw for
 * every entry of the C library.
 */

#include "symbols/unwind/eh_rule.h"

#include <dwarf.h>

#include "symbols/elf/bytes.h"

/** States that DW_CFA_remember_state may keep; compilers nest at most two. */
#define STATES_MAX 8

/** The rules at one address. */
struct state {
	struct symbols_eh_rule rule;
	bool cfa_is_complex;
	uint64_t complex; /**< Bit n: register n has a rule of another form. */
};

struct machine {
	const struct symbols_eh_entry *entry;
	struct symbols_bytes bytes;
	struct state now, initial, kept[STATES_MAX];
	unsigned kept_count;
	uint64_t at, until; /**< Link-time addresses: of the current row, and the wanted one. */
	bool failed;
};

static uint64_t take_register(struct machine *machine)
{
	uint64_t number = symbols_bytes_uleb(&machine->bytes);

	if (number >= SYMBOLS_EH_REGISTERS) {
		machine->failed = true;
		return 0;
	}
	return number;
}

/* Skip registers that we do not need, such as vectors. */
static void set_saved(struct machine *machine, uint64_t number, int64_t offset)
{
	if (number >= ATTACH_REG_COUNT)
		return;
	machine->now.complex &= ~((uint64_t)1 << number);
	machine->now.rule.saved_offset[number] = offset;
	if (number == SYMBOLS_EH_RETURN_ADDRESS)
		machine->now.rule.is_root = false;
}

static void set_complex(struct machine *machine, uint64_t number)
{
	if (number >= ATTACH_REG_COUNT)
		return;
	machine->now.complex |= (uint64_t)1 << number;
	machine->now.rule.saved_offset[number] = INT64_MIN;
}

static void restore(struct machine *machine, uint64_t number)
{
	if (number >= ATTACH_REG_COUNT)
		return;
	set_saved(machine, number, machine->initial.rule.saved_offset[number]);
	machine->now.complex |= machine->initial.complex & (uint64_t)1 << number;
	if (number == SYMBOLS_EH_RETURN_ADDRESS)
		machine->now.rule.is_root = machine->initial.rule.is_root;
}

/** Multiply by the entry's data alignment; wraps as other readers' unsigned arithmetic does. */
static int64_t factored(const struct machine *machine, uint64_t number)
{
	return (int64_t)(number * (uint64_t)machine->entry->data_align);
}

static void advance(struct machine *machine, uint64_t steps)
{
	machine->at += steps * machine->entry->code_align;
}

static void skip_block(struct machine *machine)
{
	symbols_bytes_skip(&machine->bytes, symbols_bytes_uleb(&machine->bytes));
}

static void set_cfa(struct machine *machine, uint64_t number, int64_t offset)
{
	machine->now.cfa_is_complex = false;
	machine->now.rule.cfa_register = (int)number;
	machine->now.rule.cfa_offset = offset;
}

/**
 * Run an instruction that sets the CFA.
 * @return false if @p op is another one.
 */
static bool run_cfa(struct machine *machine, uint64_t op)
{
	struct symbols_bytes *bytes = &machine->bytes;
	struct symbols_eh_rule *rule = &machine->now.rule;
	uint64_t number;

	switch (op) {
	case DW_CFA_def_cfa:
		number = take_register(machine);
		set_cfa(machine, number, (int64_t)symbols_bytes_uleb(bytes));
		return true;
	case DW_CFA_def_cfa_sf:
		number = take_register(machine);
		set_cfa(machine, number, factored(machine, (uint64_t)symbols_bytes_sleb(bytes)));
		return true;
	case DW_CFA_def_cfa_register:
		rule->cfa_register = (int)take_register(machine);
		return true;
	case DW_CFA_def_cfa_offset:
		rule->cfa_offset = (int64_t)symbols_bytes_uleb(bytes);
		return true;
	case DW_CFA_def_cfa_offset_sf:
		rule->cfa_offset = factored(machine, (uint64_t)symbols_bytes_sleb(bytes));
		return true;
	case DW_CFA_def_cfa_expression:
		machine->now.cfa_is_complex = true;
		skip_block(machine);
		return true;
	default:
		return false;
	}
}

/**
 * Run an instruction that sets the rule of one register.
 * @return false if @p op is another one.
 */
static bool run_register(struct machine *machine, uint64_t op)
{
	struct symbols_bytes *bytes = &machine->bytes;
	uint64_t number;

	if (op < DW_CFA_offset_extended ||
	    (op > DW_CFA_register && op != DW_CFA_expression && op != DW_CFA_val_expression &&
	     op != DW_CFA_offset_extended_sf && op != DW_CFA_GNU_negative_offset_extended))
		return false;
	number = take_register(machine);
	if (op == DW_CFA_offset_extended)
		set_saved(machine, number, factored(machine, symbols_bytes_uleb(bytes)));
	else if (op == DW_CFA_offset_extended_sf)
		set_saved(machine, number, factored(machine, (uint64_t)symbols_bytes_sleb(bytes)));
	else if (op == DW_CFA_GNU_negative_offset_extended)
		set_saved(machine, number, factored(machine, -symbols_bytes_uleb(bytes)));
	else if (op == DW_CFA_restore_extended)
		restore(machine, number);
	else if (op == DW_CFA_same_value ||
		 (op == DW_CFA_undefined && number == SYMBOLS_EH_RETURN_ADDRESS))
		set_saved(machine, number, INT64_MIN);
	else /* also a register whose value is lost: it differs from the callee's value */
		set_complex(machine, number);
	if (op == DW_CFA_undefined && number == SYMBOLS_EH_RETURN_ADDRESS)
		machine->now.rule.is_root = true;
	if (op == DW_CFA_register)
		take_register(machine);
	else if (op == DW_CFA_expression || op == DW_CFA_val_expression)
		skip_block(machine);
	return true;
}

static void run_other(struct machine *machine, uint64_t op)
{
	switch (op) {
	case DW_CFA_nop:
		return;
	case DW_CFA_advance_loc1:
		advance(machine, symbols_bytes_fixed(&machine->bytes, 1));
		return;
	case DW_CFA_advance_loc2:
		advance(machine, symbols_bytes_fixed(&machine->bytes, 2));
		return;
	case DW_CFA_advance_loc4:
		advance(machine, symbols_bytes_fixed(&machine->bytes, 4));
		return;
	case DW_CFA_GNU_args_size:
		symbols_bytes_uleb(&machine->bytes);
		return;
	case DW_CFA_remember_state:
		if (machine->kept_count == STATES_MAX)
			machine->failed = true;
		else
			machine->kept[machine->kept_count++] = machine->now;
		return;
	case DW_CFA_restore_state:
		if (machine->kept_count == 0)
			machine->failed = true;
		else
			machine->now = machine->kept[--machine->kept_count];
		return;
	default:
		machine->failed = true;
	}
}

/** Run a program up to the row that contains `until`. */
static void run(struct machine *machine, size_t start, size_t end)
{
	struct symbols_bytes *bytes = &machine->bytes;

	bytes->at = start;
	bytes->end = end;
	while (bytes->at < bytes->end && machine->at <= machine->until && !machine->failed) {
		uint64_t op = symbols_bytes_fixed(bytes, 1), low = op & 0x3f;

		if ((op & 0xc0) == DW_CFA_advance_loc)
			advance(machine, low);
		else if ((op & 0xc0) && low >= SYMBOLS_EH_REGISTERS)
			machine->failed = true;
		else if ((op & 0xc0) == DW_CFA_offset)
			set_saved(machine, low, factored(machine, symbols_bytes_uleb(bytes)));
		else if ((op & 0xc0) == DW_CFA_restore)
			restore(machine, low);
		else if (!run_cfa(machine, op) && !run_register(machine, op))
			run_other(machine, op);
		machine->failed |= bytes->failed;
	}
}

bool symbols_eh_rule_at(const struct symbols_eh *eh, const struct symbols_eh_entry *entry,
			uint64_t vaddr, struct symbols_eh_rule *ret_rule)
{
	struct machine machine = { .entry = entry,
				   .bytes = { .start = eh->bytes },
				   .at = entry->start,
				   .until = vaddr,
				   .now.cfa_is_complex = true };

	for (unsigned i = 0; i < ATTACH_REG_COUNT; i++)
		machine.now.rule.saved_offset[i] = INT64_MIN;
	run(&machine, entry->cie_code_start, entry->cie_code_end);
	machine.initial = machine.now;
	run(&machine, entry->code_start, entry->code_end);
	if (machine.failed || machine.now.cfa_is_complex || machine.now.complex)
		return false;
	*ret_rule = machine.now.rule;
	return true;
}
