/* SPDX-License-Identifier: MIT */
/* Private to symbols: the simple rules of unwind entries. */
#ifndef SYMBOLS_UNWIND_EH_RULE_H
#define SYMBOLS_UNWIND_EH_RULE_H

#include "symbols/elf/eh_frame.h"

/** Rule for the caller's registers, with a CFA that is a register plus an offset. */
struct symbols_eh_rule {
	int cfa_register;
	int64_t cfa_offset;
	bool is_root; /**< The return address is undefined, so there is no caller. */
	/** Distance of the saved register from the CFA. INT64_MIN: not saved, so the register has
	 *  the callee's value. A rule of this form loses no register. */
	int64_t saved_offset[ATTACH_REG_COUNT];
};

/**
 * Decode the rule at link-time address @p vaddr of an entry that passed symbols_eh_check().
 * @return false if the rule has another form.
 */
bool symbols_eh_rule_at(const struct symbols_eh *eh, const struct symbols_eh_entry *entry,
			uint64_t vaddr, struct symbols_eh_rule *ret_rule);

#endif
