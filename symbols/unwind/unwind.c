/* SPDX-License-Identifier: MIT */
/*
 * Native unwinding.
 *
 * A step by a rule of the simple form, a CFA that is a register plus an offset and registers that
 * are saved at distances from it, is made here; those are all but a few in a thousand. All others
 * are libunwind's, through its remote interface. It asks for three things, and each has its own
 * source:
 *
 *   registers       those of the frame that it steps from
 *   unwind entries  our private copy of .eh_frame, checked before libunwind sees it
 *   everything else the caller's memory reader, which holds the stack
 *
 * An entry is looked up here and handed to libunwind as a search table of one row, which it reads
 * at an address that no user space has. So libunwind never searches in foreign tables, and files
 * without a table work alike. It begins anew at each of its steps: nothing of it outlasts one.
 *
 * Where there is no entry, unw_step() of 1.6.2 guesses by rbp or by what looks like a PLT stub, if
 * find_proc_info reports UNW_ENOINFO. It does not for any other error, so we give another one: a
 * frame that is reported was derived, not guessed.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/hash.h"
#include "symbols/unwind/unwind_internal.h"
#include "symbols/names/insn.h"
#include "symbols/unwind/frame_pointer.h"

enum {
	/* Frames of one walk; beyond it the copied stack would have to be larger than any copy. */
	STEPS_MAX = 16384,
	/* Unwind programs that are looked through in one walk: some 30 ms. Compilers write some ten
	 * bytes for a frame, and the rules of places are remembered. */
	PROGRAMS_MAX_BYTES = 4 << 20,
	/* What a frame saves is read in one go if it lies together so closely: return address and
	 * preserved registers. */
	SAVED_MAX_BYTES = 256,
};

/** Whether calls push the return address, so that each frame has one word at least. */
#if defined(__x86_64__)
#define CALLS_PUSH true
/** Whether a step succeeds although something could not be read: code, to see if it is a stub. */
#define READS_MAY_FAIL true
#else
#define CALLS_PUSH     false
#define READS_MAY_FAIL false
#endif

/* ---- What is known of code -------------------------------------------------------------- */

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

/** Forget what was derived from mappings that are no longer there. */
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

/** The rule that holds at @p pc, if it is one that a step can be made by. */
static bool find_rule(const struct symbols_eh *eh, const struct symbols_eh_entry *entry,
		      uint64_t vaddr, struct symbols_eh_rule *ret_rule)
{
	return !entry->is_signal && symbols_eh_rule_at(eh, entry, vaddr, ret_rule) &&
	       ret_rule->cfa_register < ATTACH_REG_COUNT &&
	       ret_rule->saved_offset[ATTACH_REG_SP] == INT64_MIN;
}

/** Whether no call returns to @p pc: a function begins there, or code without an entry that is not
 *  reached from before it either. */
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
 * Whether the code at @p pc, or at the return address behind it, is a signal trampoline, though it
 * has no unwind entry: on AArch64 it is in the vDSO, which has none before Linux 6.10.
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

/** What is known of the code at @p pc, or of a return address behind it. */
static struct symbols_unwind_location *location_of(struct symbols_unwinder *unwinder, uint64_t pc)
{
	struct symbols_unwind_location *location =
		&unwinder->locations[hash_spread(pc) >> 32 & (SYMBOLS_UNWIND_PLACES - 1)];
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

/** Whether nobody can have called from before the return address @p pc. */
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

/** Stand at a frame. @param interrupted Its pc is no return address. */
static void stand_at(struct symbols_unwinder *unwinder, const struct attach_registers *regs,
		     bool interrupted)
{
	struct symbols_native_frame *frame = &unwinder->frame;
	uint64_t pc = symbols_code_address(attach_pc(regs));

	unwinder->regs = *regs;
	unwinder->regs.r[ATTACH_REG_PC] = pc;
	unwinder->interrupted = interrupted;
	/* A return address is looked up at the byte before; a trampoline's entry starts early for
	 * that reason. */
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

/** Go on to the caller that a step has found. @return As symbols_unwind_step(). */
static int enter_caller(struct symbols_unwinder *unwinder, const struct attach_registers *caller,
			struct failure *why)
{
	const struct symbols_native_frame *last = &unwinder->frame;
	uint64_t pc = symbols_code_address(attach_pc(caller)), sp = attach_sp(caller);

	unwinder->steps++;
	/* Who makes a stack for a coroutine lets its first function return to 0, or to a place
	 * that nobody called from: the first instruction of a function (glibc's makecontext(),
	 * libcoro), or one behind a jump in hand-written code (Boost's make_fcontext()). */
	if (pc == 0 || (!last->is_signal && has_no_call(unwinder, pc)))
		return 0;
	/* Callers lie above. Only the frame that a signal interrupted may lie anywhere, and an
	 * interrupted function may have no frame where calls push nothing. */
	if (sp <= last->sp && !last->is_signal &&
	    !(sp == last->sp && unwinder->interrupted && !CALLS_PUSH))
		return failure_set(why, FAILURE_INVALID, 0, 0, sp, "unwind the stack");
	stand_at(unwinder, caller, last->is_signal);
	return 1;
}

/* ---- Steps by a rule -------------------------------------------------------------------- */

/** What a frame has saved, below its CFA. */
struct saved {
	uint64_t cfa;
	int64_t low; /**< Distance of the first byte; 0: they are read one by one. */
	uint8_t bytes[SAVED_MAX_BYTES];
};

/** Read it in one go, if that can be done. */
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

/** Where the return address is: in memory, or in the link register of a frame that was interrupted.
 */
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
		caller.r[i] = 0; /* as what is not known otherwise */
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
/* libunwind 1.6.2 leaves UNW_AARCH64_PC as it was, but for signal frames, and unw_get_reg() gives
 * the pc for X30; then the frame's own X30 is where the signal frame saved it. */
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

/** Whether a result of unw_step() that is no error is what it says. On AArch64 libunwind 1.6.2 has
 *  such results for some failures, too: 0, which means the end, and 1 where it guessed. */
static bool is_true(const struct symbols_unwinder *unwinder)
{
	return READS_MAY_FAIL || unwinder->failed.kind == FAILURE_NONE;
}

/** Begin at the frame and step. @return As unw_step(). */
static int run_libunwind(struct symbols_unwinder *unwinder)
{
	int result;

	/* libunwind takes the first pc for an interrupted one. Any address within the call
	 * instruction has the rules that hold there. */
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
		/* Registers may be saved far up the stack: read each where the cursor has it. */
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

/** Whether the walk may go on. */
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
