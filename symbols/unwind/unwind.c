/* SPDX-License-Identifier: MIT */
/*
 * How do we step from native frame to native frame?
 *
 * Simple rules have a CFA that is a register plus an offset, and registers saved at distances from
 * it. We make these steps here; all but a few in a thousand are simple. libunwind makes the others
 * through its remote interface. It asks for three things, and each has its own source:
 *
 *   registers       the registers of the frame from which it steps
 *   unwind entries  our private copy of .eh_frame, checked before libunwind sees it
 *   everything else the caller's memory reader, which holds the stack
 *
 * We look up the entry and give it to libunwind as a search table of one row. libunwind reads this
 * row at an address above user space. So libunwind never searches foreign tables, and files without
 * a table work alike. It starts anew at each of its steps, and keeps no state between them.
 *
 * If there is no entry and find_proc_info reports UNW_ENOINFO, unw_step() of 1.6.2 guesses by rbp
 * or by code that looks like a PLT stub. It does not guess after other errors, so we return another
 * one: we report only frames that were derived, not guessed.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/hash.h"
#include "symbols/unwind/unwind_internal.h"
#include "symbols/names/insn.h"
#include "symbols/unwind/frame_pointer.h"

enum {
	/* Frames of one walk. More would need a larger stack than any copy has. */
	STEPS_MAX = 16384,
	/* Bytes of unwind programs that one walk runs: some 30 ms. Compilers write some ten bytes
	 * for a frame, and we cache rules by location. */
	PROGRAMS_MAX_BYTES = 4 << 20,
	/* We read the saved registers of a frame in one go if they are this close together: return
	 * address and preserved registers. */
	SAVED_MAX_BYTES = 256,
};

/** Whether calls push the return address, so each frame has at least one word. */
#if defined(__x86_64__)
#define CALLS_PUSH true
/** Whether a step succeeds if libunwind could not read something: code, to check for a stub. */
#define READS_MAY_FAIL true
#else
#define CALLS_PUSH     false
#define READS_MAY_FAIL false
#endif

/* ---- Create and destroy ----------------------------------------------------------------- */

int symbols_unwinder_create(struct symbols_space *space, struct symbols_unwinder **ret_unwinder,
			    struct failure *why)
{
	struct symbols_unwinder *unwinder = calloc(1, sizeof(*unwinder));

	if (unwinder)
		unwinder->libunwind = unw_create_addr_space(&symbols_unwind_accessors, 0);
	if (!unwinder || !unwinder->libunwind) {
		free(unwinder);
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "create an unwinder");
	}
	unw_set_caching_policy(unwinder->libunwind, UNW_CACHE_GLOBAL);
	unwinder->space = space;
	*ret_unwinder = unwinder;
	return 0;
}

void symbols_unwinder_destroy(struct symbols_unwinder *unwinder)
{
	if (!unwinder)
		return;
	unw_destroy_addr_space(unwinder->libunwind);
	free(unwinder);
}

/* ---- Known locations in code ------------------------------------------------------------ */

/** Forget what we derived from mappings that no longer exist. */
static void follow_generation(struct symbols_unwinder *unwinder)
{
	uint64_t generation = symbols_space_generation(unwinder->space);

	if (unwinder->generation == generation)
		return;
	unw_flush_cache(unwinder->libunwind, 0, 0);
	memset(unwinder->locations, 0, sizeof(unwinder->locations));
	unwinder->window = (struct symbols_unwind_window){ 0 };
	unwinder->plain_start = unwinder->plain_end = 0;
	unwinder->generation = generation;
}

/**
 * Find the rule at @p vaddr.
 * @return false if we cannot step by it.
 */
static bool find_rule(const struct symbols_eh *eh, const struct symbols_eh_entry *entry,
		      uint64_t vaddr, struct symbols_eh_rule *ret_rule)
{
	return !entry->is_signal && symbols_eh_rule_at(eh, entry, vaddr, ret_rule) &&
	       ret_rule->cfa_register < ATTACH_REG_COUNT &&
	       ret_rule->saved_offset[ATTACH_REG_SP] == INT64_MIN;
}

/**
 * Whether no call returns to @p pc: a function begins there, or code without an entry that the code
 * before it never reaches.
 */
static bool is_start(struct symbols_unwinder *unwinder, uint64_t pc)
{
	uint8_t bytes[SYMBOLS_CODE_CALL_BYTES];
	struct symbols_code_call call;
	struct symbols_eh_entry entry;
	struct failure why;
	const struct symbols_eh *eh;
	uint64_t bias;
	bool has_entry = symbols_unwind_find_entry(unwinder, pc, &eh, &entry, &bias);

	if (has_entry && (entry.start + bias != pc || entry.is_signal))
		return false;
	if (symbols_read_file_bytes(unwinder->space, pc - sizeof(bytes), bytes, sizeof(bytes),
				    &why) < 0)
		return has_entry;
	return !symbols_code_call(bytes, pc, &call) &&
	       (has_entry || symbols_code_never_goes_on(bytes));
}

/**
 * Whether the code at @p pc, or at the return address after it, is a signal trampoline without an
 * unwind entry. On AArch64 the trampoline is in the vDSO, which has no entry for it before Linux
 * 6.10.
 */
static bool is_plain_trampoline(struct symbols_unwinder *unwinder, uint64_t pc)
{
#if defined(__aarch64__)
	unw_word_t code;
	struct failure why;

	return symbols_read_file_bytes(unwinder->space, (pc + 3) & ~(uint64_t)3, &code,
				       sizeof(code), &why) == 0 &&
	       code == SYMBOLS_UNWIND_SIGRETURN;
#else
	(void)unwinder, (void)pc;
	return false;
#endif
}

/** Get what we know of the code at @p pc, or of a return address after it. */
static struct symbols_unwind_location *location_of(struct symbols_unwinder *unwinder, uint64_t pc)
{
	struct symbols_unwind_location *location =
		&unwinder->locations[hash_spread(pc) >> 32 & (SYMBOLS_UNWIND_LOCATIONS - 1)];
	const struct symbols_eh *eh;
	struct symbols_eh_entry entry;
	uint64_t bias;

	if (location->pc == pc)
		return location;
	*location = (struct symbols_unwind_location){ .pc = pc };
	if (symbols_unwind_find_entry(unwinder, pc, &eh, &entry, &bias)) {
		location->is_trampoline = entry.is_signal;
		location->has_rule = find_rule(eh, &entry, pc - bias, &location->rule);
	} else {
		location->is_trampoline = is_plain_trampoline(unwinder, pc);
	}
	return location;
}

/** Whether no call can be before the return address @p pc. */
static bool has_no_call(struct symbols_unwinder *unwinder, uint64_t pc)
{
	struct symbols_unwind_location *location = location_of(unwinder, pc - 1);

	if (!location->knows_start) {
		location->is_start = !location->is_trampoline && is_start(unwinder, pc);
		location->knows_start = true;
	}
	return location->is_start;
}

/* ---- Frames ----------------------------------------------------------------------------- */

/**
 * Make a frame the current one.
 * @param interrupted Its pc is no return address.
 */
static void stand_at(struct symbols_unwinder *unwinder, const struct attach_registers *regs,
		     bool interrupted)
{
	struct symbols_native_frame *frame = &unwinder->frame;
	uint64_t pc = symbols_code_address(attach_pc(regs));

	unwinder->regs = *regs;
	unwinder->regs.r[ATTACH_REG_PC] = pc;
	unwinder->interrupted = interrupted;
	/* We look up a return address at the byte before. A trampoline's entry starts early for
	 * this reason. */
	*frame = (struct symbols_native_frame){
		.pc = pc,
		.sp = attach_sp(regs),
		.is_signal = pc && location_of(unwinder, interrupted ? pc : pc - 1)->is_trampoline,
	};
}

void symbols_unwind_begin(struct symbols_unwinder *unwinder, const struct attach_registers *regs,
			  const struct attach_reader *memory)
{
	follow_generation(unwinder);
	unwinder->memory = memory;
	unwinder->program_bytes = 0;
	unwinder->steps = 0;
	stand_at(unwinder, regs, true);
}

void symbols_unwind_begin_caller(struct symbols_unwinder *unwinder,
				 const struct attach_registers *regs,
				 const struct attach_reader *memory)
{
	unwinder->memory = memory;
	unwinder->steps = 0;
	stand_at(unwinder, regs, false);
}

void symbols_unwind_frame(const struct symbols_unwinder *unwinder,
			  struct symbols_native_frame *ret_frame)
{
	*ret_frame = unwinder->frame;
}

void symbols_unwind_registers(const struct symbols_unwinder *unwinder,
			      struct attach_registers *ret_registers)
{
	*ret_registers = unwinder->regs;
	ret_registers->syscall = -1;
}

/**
 * Continue at the caller that a step has found.
 * @return As symbols_unwind_step().
 */
static int enter_caller(struct symbols_unwinder *unwinder, const struct attach_registers *caller,
			struct failure *why)
{
	const struct symbols_native_frame *last = &unwinder->frame;
	uint64_t pc = symbols_code_address(attach_pc(caller)), sp = attach_sp(caller);

	unwinder->steps++;
	/* Code that makes a stack for a coroutine lets its first function return to 0, or to an
	 * address that no call precedes: the first instruction of a function (glibc's
	 * makecontext(), libcoro), or one after a jump in hand-written code (Boost's
	 * make_fcontext()). */
	if (pc == 0 || (!last->is_signal && has_no_call(unwinder, pc)))
		return 0;
	/* Callers are above. Only a frame that a signal interrupted may be anywhere. An interrupted
	 * function may have no frame if calls push nothing. */
	if (sp <= last->sp && !last->is_signal &&
	    !(sp == last->sp && unwinder->interrupted && !CALLS_PUSH))
		return failure_set(why, FAILURE_INVALID, 0, 0, sp, "unwind the stack");
	stand_at(unwinder, caller, last->is_signal);
	return 1;
}

/* ---- Steps by a rule -------------------------------------------------------------------- */

/** The bytes that a frame has saved, below its CFA. */
struct saved {
	uint64_t cfa;
	int64_t low; /**< Distance of the first byte from the CFA; 0: read each register alone. */
	uint8_t bytes[SAVED_MAX_BYTES];
};

/** Read all saved registers in one go, if possible. */
static void read_saved(const struct symbols_unwinder *unwinder, const struct symbols_eh_rule *rule,
		       uint64_t cfa, struct saved *ret_saved)
{
	struct failure why;
	int64_t low = 0, high = INT64_MIN;

	for (int i = 0; i < ATTACH_REG_COUNT; i++) {
		int64_t at = rule->saved_offset[i];

		if (at == INT64_MIN)
			continue;
		low = at < low ? at : low;
		high = at > high ? at : high;
	}
	ret_saved->cfa = cfa;
	ret_saved->low = 0;
	if (low >= -SAVED_MAX_BYTES && high <= -(int64_t)sizeof(uint64_t) &&
	    attach_read(unwinder->memory, remote_addr_make(cfa + (uint64_t)low), ret_saved->bytes,
			(size_t)-low, &why) == 0)
		ret_saved->low = low;
}

static int get_saved(const struct symbols_unwinder *unwinder, const struct saved *saved, int64_t at,
		     uint64_t *ret_value, struct failure *why)
{
	if (saved->low) {
		memcpy(ret_value, saved->bytes + (at - saved->low), sizeof(*ret_value));
		return 0;
	}
	return attach_read(unwinder->memory, remote_addr_make(saved->cfa + (uint64_t)at), ret_value,
			   sizeof(*ret_value), why);
}

/** Whether the return address is available: in memory, or in the link register of an interrupted
 *  frame. */
static bool has_return_address(const struct symbols_unwinder *unwinder,
			       const struct symbols_eh_rule *rule)
{
	return rule->saved_offset[SYMBOLS_EH_RETURN_ADDRESS] != INT64_MIN ||
	       (!CALLS_PUSH && unwinder->interrupted);
}

static int step_by_rule(struct symbols_unwinder *unwinder, const struct symbols_eh_rule *rule,
			struct failure *why)
{
	struct attach_registers caller = unwinder->regs;
	struct failure reason;
	struct saved saved;
	uint64_t cfa = caller.r[rule->cfa_register] + (uint64_t)rule->cfa_offset;

	read_saved(unwinder, rule, cfa, &saved);
	for (int i = 0; i < ATTACH_REG_COUNT; i++) {
		int64_t at = rule->saved_offset[i];
		bool is_return = i == SYMBOLS_EH_RETURN_ADDRESS;

		if (at == INT64_MIN)
			continue;
		if (get_saved(unwinder, &saved, at, &caller.r[i], is_return ? why : &reason) == 0)
			continue;
		if (is_return)
			return -1;
		caller.r[i] = 0; /* 0 means unknown, as elsewhere */
	}
	caller.r[ATTACH_REG_PC] = caller.r[SYMBOLS_EH_RETURN_ADDRESS];
	caller.r[ATTACH_REG_SP] = cfa;
	return enter_caller(unwinder, &caller, why);
}

/* ---- libunwind's steps ------------------------------------------------------------------ */

static uint64_t register_of(struct symbols_unwinder *unwinder, unw_regnum_t reg)
{
	unw_word_t value;

	return unw_get_reg(&unwinder->cursor, reg, &value) == 0 ? value : 0;
}

#if defined(__x86_64__)
static void read_return(struct symbols_unwinder *unwinder, struct attach_registers *caller)
{
	(void)unwinder, (void)caller;
}
#elif defined(__aarch64__)
/* libunwind 1.6.2 does not update UNW_AARCH64_PC, except for signal frames, and unw_get_reg()
 * returns the pc for X30. The frame's own X30 is then where the signal frame saved it. */
static void read_return(struct symbols_unwinder *unwinder, struct attach_registers *caller)
{
	uint64_t *link = &caller->r[ATTACH_REG_LR];
	unw_save_loc_t location;
	struct failure why;

	*link = register_of(unwinder, UNW_AARCH64_X30);
	caller->r[ATTACH_REG_PC] =
		unwinder->frame.is_signal ? register_of(unwinder, UNW_AARCH64_PC) : *link;
	if (unwinder->frame.is_signal &&
	    unw_get_save_loc(&unwinder->cursor, UNW_AARCH64_X30, &location) == 0 &&
	    location.type == UNW_SLT_MEMORY)
		attach_read(unwinder->memory, remote_addr_make(location.u.addr), link,
			    sizeof(*link), &why);
}
#endif

/** Whether a result of unw_step() that reports no error is right. On AArch64 libunwind 1.6.2 also
 *  returns 0 (the end) and 1 (a guess) for some failures. */
static bool is_true(const struct symbols_unwinder *unwinder)
{
	return READS_MAY_FAIL || unwinder->failed.kind == FAILURE_NONE;
}

/**
 * Start libunwind at the current frame, and step.
 * @return As unw_step().
 */
static int run_libunwind(struct symbols_unwinder *unwinder)
{
	int result;

	/* libunwind takes the first pc for an interrupted one. All addresses within a call
	 * instruction have the same rules. */
	unwinder->asked = unwinder->regs;
	unwinder->asked.r[ATTACH_REG_PC] -= !unwinder->interrupted;
	unwinder->reads = 0;
	unwinder->failed.kind = FAILURE_NONE;
	result = unw_init_remote(&unwinder->cursor, unwinder->libunwind, unwinder);
	return result < 0 ? result : unw_step(&unwinder->cursor);
}

static int step_by_libunwind(struct symbols_unwinder *unwinder, struct failure *why)
{
	int result = run_libunwind(unwinder);
	struct attach_registers caller = unwinder->regs;

	if (result >= 0 && is_true(unwinder)) {
		if (result == 0)
			return 0;
		/* Registers may be saved far up the stack: read each where the cursor found it. */
		unwinder->reads = 0;
		for (int i = 0; i < ATTACH_REG_COUNT; i++)
			caller.r[i] = register_of(unwinder, i);
		read_return(unwinder, &caller);
		return enter_caller(unwinder, &caller, why);
	}
	if (unwinder->failed.kind == FAILURE_NONE)
		return failure_set(why, FAILURE_INVALID, 0, 0, unwinder->frame.pc,
				   "unwind the stack");
	if (why)
		*why = unwinder->failed;
	return -1;
}

/* ---- Steps ------------------------------------------------------------------------------ */

/** Check the limits of the walk. */
static int check_walk(const struct symbols_unwinder *unwinder, struct failure *why)
{
	if (unwinder->steps == STEPS_MAX || unwinder->program_bytes > PROGRAMS_MAX_BYTES)
		return failure_set(why, FAILURE_LIMIT, 0, 0, unwinder->frame.sp,
				   "unwind the stack");
	if (unwinder->generation != symbols_space_generation(unwinder->space))
		return failure_set(why, FAILURE_INVALID, 0, 0, unwinder->frame.pc,
				   "unwind after the mappings changed");
	return 0;
}

int symbols_unwind_step(struct symbols_unwinder *unwinder, struct failure *why)
{
	const struct symbols_unwind_location *location;
	uint64_t pc = unwinder->frame.pc;

	if (check_walk(unwinder, why) < 0)
		return -1;
	location = location_of(unwinder, unwinder->interrupted ? pc : pc - 1);
	if (!location->has_rule)
		return step_by_libunwind(unwinder, why);
	if (location->rule.is_root)
		return 0;
	return has_return_address(unwinder, &location->rule)
		       ? step_by_rule(unwinder, &location->rule, why)
		       : step_by_libunwind(unwinder, why);
}

int symbols_unwind_step_frame_pointer(struct symbols_unwinder *unwinder, struct failure *why)
{
	struct attach_registers caller;
	int result;

	if (check_walk(unwinder, why) < 0)
		return -1;
	result = symbols_frame_pointer_step(unwinder->space, &unwinder->regs, unwinder->interrupted,
					    unwinder->memory, &caller, why);
	if (result <= 0)
		return result;
	unwinder->steps++;
	stand_at(unwinder, &caller, false);
	unwinder->frame.by_frame_pointer = true;
	return 1;
}

int symbols_unwind_find_frame_pointer(struct symbols_unwinder *unwinder, uint64_t limit,
				      struct failure *why)
{
	uint64_t pointer;

	if (symbols_frame_pointer_find(unwinder->space, &unwinder->regs, unwinder->interrupted,
				       unwinder->memory, limit, &pointer, why) != 0)
		return -1;
	unwinder->regs.r[SYMBOLS_FRAME_POINTER] = pointer;
	return 0;
}
