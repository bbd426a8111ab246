/* SPDX-License-Identifier: MIT */

/*
 * Native unwinding through libunwind's remote interface.
 *
 * libunwind asks for three things, and each has its own source:
 *
 *   registers       the caller's copy; never written
 *   unwind entries  our private copy of .eh_frame, checked before libunwind sees it
 *   everything else the caller's memory reader, which holds the stack
 *
 * An entry is looked up here and handed to libunwind as a search table of one row, which it reads
 * at an address that no user space has. So libunwind never searches in foreign tables, and files
 * without a table work alike.
 *
 * Where there is no entry, unw_step() of 1.6.2 guesses by rbp or by what looks like a PLT stub, if
 * find_proc_info reports UNW_ENOINFO. It does not for any other error, so we give another one: a
 * frame that is reported was derived, not guessed.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/code.h"
#include "symbols/frame_pointer.h"
#include "symbols/unwind.h"

/** Frames of one walk; beyond it the copied stack would have to be larger than any copy. */
#define STEPS_MAX 16384
/** Unwind programs that are looked through in one walk: some 30 ms. Compilers write some ten bytes
 * for a frame, and libunwind remembers the rules of places. */
#define PROGRAMS_MAX_BYTES ((size_t)4 << 20)
/** Whether calls push the return address, so that each frame has one word at least. */
#if defined(__x86_64__)
#define CALLS_PUSH true
/** Whether a step succeeds although something could not be read: code, to see if it is a stub. */
#define READS_MAY_FAIL true
#else
#define CALLS_PUSH     false
#define READS_MAY_FAIL false
#endif

/* ---- Architectures ---------------------------------------------------------------------- */

/*
 * Where the frame's pc is in the cursor. On AArch64 libunwind 1.6.2 leaves UNW_AARCH64_PC as it
 * was, but for signal frames, and unw_get_reg() gives the pc for X30.
 */
#if defined(__x86_64__)
static bool steps_from_trampoline(struct symbols_unwinder *unwinder)
{
	return unw_is_signal_frame(&unwinder->cursor) > 0;
}

static unw_regnum_t pc_register(const struct symbols_unwinder *unwinder)
{
	(void)unwinder;
	return ATTACH_REG_PC;
}
#elif defined(__aarch64__)
static bool steps_from_trampoline(struct symbols_unwinder *unwinder)
{
	return unwinder->frame.is_signal;
}

static unw_regnum_t pc_register(const struct symbols_unwinder *unwinder)
{
	return unwinder->steps == 0 || unwinder->interrupted ? UNW_AARCH64_PC : UNW_AARCH64_X30;
}
#endif

/* ---- Frames ----------------------------------------------------------------------------- */

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
	memset(unwinder->places, 0, sizeof(unwinder->places));
	unwinder->window = (struct symbols_unwind_window){ 0 };
	unwinder->plain_start = unwinder->plain_end = 0;
	unwinder->generation = generation;
}

/** Whether no call returns to @p pc: a function begins there, or code without an entry that is not
 *  reached from before it either. */
static bool is_start(struct symbols_unwinder *unwinder, uint64_t pc)
{
	uint8_t bytes[SYMBOLS_CODE_CALL_BYTES];
	struct symbols_code_call call;
	struct symbols_eh_entry entry;
	struct failure why;
	uint64_t bias;
	bool has_entry = symbols_unwind_find_entry(unwinder, pc, &entry, &bias);

	if (has_entry && (entry.start + bias != pc || entry.is_signal))
		return false;
	if (symbols_read_file_bytes(unwinder->space, pc - sizeof(bytes), bytes, sizeof(bytes),
				    &why) < 0)
		return has_entry;
	return !symbols_code_call(bytes, pc, &call) &&
	       (has_entry || symbols_code_never_goes_on(bytes));
}

/**
 * Whether the code at @p pc, or at the return address behind it, is a signal trampoline. On AArch64
 * it is in the vDSO, which has no unwind entries before Linux 6.10, so there the code tells, too.
 */
static bool is_trampoline(struct symbols_unwinder *unwinder, uint64_t pc)
{
	struct symbols_eh_entry entry;
	uint64_t bias;

	if (symbols_unwind_find_entry(unwinder, pc, &entry, &bias))
		return entry.is_signal;
#if defined(__aarch64__)
	unw_word_t code;
	struct failure why;

	return symbols_read_file_bytes(unwinder->space, (pc + 3) & ~(uint64_t)3, &code,
				       sizeof(code), &why) == 0 &&
	       code == SYMBOLS_UNWIND_SIGRETURN;
#else
	return false;
#endif
}

/** What is known of the code at @p pc, or of a return address behind it. */
static const struct symbols_unwind_place *place_of(struct symbols_unwinder *unwinder, uint64_t pc)
{
	struct symbols_unwind_place *slot =
		&unwinder->places[pc * 0x9e3779b97f4a7c15 >> 32 & (SYMBOLS_UNWIND_PLACES - 1)];

	if (slot->pc != pc) {
		slot->is_trampoline = is_trampoline(unwinder, pc);
		slot->is_start = !slot->is_trampoline && is_start(unwinder, pc + 1);
		slot->pc = pc;
	}
	return slot;
}

static uint64_t register_of(struct symbols_unwinder *unwinder, unw_regnum_t reg)
{
	unw_word_t value;

	return unw_get_reg(&unwinder->cursor, reg, &value) == 0 ? value : 0;
}

/**
 * Read the frame that the cursor stands at.
 * @param before 1 where its pc is a return address. It is then looked up at the byte before, as
 *               libunwind does it; a trampoline's entry starts early for that reason.
 * @return Whether the pc was signed.
 */
static bool take_frame(struct symbols_unwinder *unwinder, unsigned before)
{
	struct symbols_native_frame *frame = &unwinder->frame;
	uint64_t pc;

	unwinder->reads = 0;
	unwinder->interrupted = before == 0;
	pc = register_of(unwinder, pc_register(unwinder));
	frame->pc = symbols_code_address(pc);
	frame->sp = register_of(unwinder, ATTACH_REG_SP);
	frame->is_signal = frame->pc && place_of(unwinder, frame->pc - before)->is_trampoline;
	frame->by_frame_pointer = false;
	return frame->pc != pc;
}

static int begin_at(struct symbols_unwinder *unwinder, const struct attach_registers *regs,
		    const struct attach_reader *memory, struct failure *why)
{
	unwinder->regs = *regs;
	unwinder->memory = memory;
	unwinder->steps = 0;
	unwinder->failed.kind = FAILURE_NONE;
	if (unw_init_remote(&unwinder->cursor, unwinder->libunwind, unwinder) < 0)
		return failure_set(why, FAILURE_INVALID, 0, 0, 0, "begin to unwind");
	take_frame(unwinder, 0);
	return 0;
}

int symbols_unwind_begin(struct symbols_unwinder *unwinder, const struct attach_registers *regs,
			 const struct attach_reader *memory, struct failure *why)
{
	follow_generation(unwinder);
	unwinder->program_bytes = 0;
	return begin_at(unwinder, regs, memory, why);
}

int symbols_unwind_begin_caller(struct symbols_unwinder *unwinder,
				const struct attach_registers *regs,
				const struct attach_reader *memory, struct failure *why)
{
	struct attach_registers call = *regs;

	/* libunwind takes the first pc for an interrupted one. Any address within the call
	 * instruction has the rules that hold there. */
	call.r[ATTACH_REG_PC]--;
	if (begin_at(unwinder, &call, memory, why) < 0)
		return -1;
	unwinder->frame.pc++;
	unwinder->interrupted = false;
	return 0;
}

void symbols_unwind_frame(const struct symbols_unwinder *unwinder,
			  struct symbols_native_frame *ret_frame)
{
	*ret_frame = unwinder->frame;
}

#if defined(__aarch64__)
/** The link register, which unw_get_reg() does not give: it takes X30 for the pc. Of a frame that
 *  was not interrupted it is lost. */
static uint64_t link_of(struct symbols_unwinder *unwinder)
{
	unw_save_loc_t place;
	struct failure why;
	uint64_t value;

	if (unwinder->steps == 0)
		return unwinder->regs.r[ATTACH_REG_LR];
	if (unwinder->interrupted &&
	    unw_get_save_loc(&unwinder->cursor, UNW_AARCH64_X30, &place) == 0 &&
	    place.type == UNW_SLT_MEMORY &&
	    attach_read(unwinder->memory, remote_addr_make(place.u.addr), &value, sizeof(value),
			&why) == 0)
		return value;
	return register_of(unwinder, UNW_AARCH64_X30);
}
#endif

void symbols_unwind_registers(struct symbols_unwinder *unwinder,
			      struct attach_registers *ret_registers)
{
	/* Registers may be saved far up the stack: read each where the cursor has it. */
	unwinder->reads = 0;
	ret_registers->syscall = -1;
	for (int i = 0; i < ATTACH_REG_COUNT; i++)
		ret_registers->r[i] = register_of(unwinder, i);
#if defined(__aarch64__)
	ret_registers->r[ATTACH_REG_LR] = link_of(unwinder);
#endif
	ret_registers->r[ATTACH_REG_PC] = unwinder->frame.pc;
	ret_registers->r[ATTACH_REG_SP] = unwinder->frame.sp;
}

/** Set the cursor to a caller's registers in the course of a walk. */
static int go_on_at(struct symbols_unwinder *unwinder, const struct attach_registers *regs,
		    struct failure *why)
{
	unsigned steps = unwinder->steps;

	if (symbols_unwind_begin_caller(unwinder, regs, unwinder->memory, why) < 0)
		return -1;
	unwinder->steps = steps;
	return 1;
}

/** Enter the frame once more, by its plain return address: libunwind would look up the signed one.
 */
static int enter_again(struct symbols_unwinder *unwinder, struct failure *why)
{
	struct attach_registers regs;

	symbols_unwind_registers(unwinder, &regs);
	return go_on_at(unwinder, &regs, why);
}

/** Take over the frame that unw_step() went to. @return As symbols_unwind_step(). */
static int enter_frame(struct symbols_unwinder *unwinder, struct failure *why)
{
	struct symbols_native_frame last = unwinder->frame;
	bool was_signal = steps_from_trampoline(unwinder);
	bool was_interrupted = unwinder->interrupted;
	bool is_signed, is_end;
	uint64_t sp;

	unwinder->steps++;
	is_signed = take_frame(unwinder, was_signal ? 0 : 1);
	sp = unwinder->frame.sp;
	/* Who makes a stack for a coroutine lets its first function return to 0, or to a place
	 * that nobody called from: the first instruction of a function (glibc's makecontext(),
	 * libcoro), or one behind a jump in hand-written code (Boost's make_fcontext()). */
	is_end = unwinder->frame.pc == 0 ||
		 (!was_signal && place_of(unwinder, unwinder->frame.pc - 1)->is_start);
	/* Callers lie above. Only the frame that a signal interrupted may lie anywhere, and an
	 * interrupted function may have no frame where calls push nothing. */
	if (!is_end &&
	    (sp > last.sp || was_signal || (sp == last.sp && was_interrupted && !CALLS_PUSH)))
		return is_signed ? enter_again(unwinder, why) : 1;
	unwinder->frame = last;
	unwinder->interrupted = was_interrupted;
	return is_end ? 0 : failure_set(why, FAILURE_INVALID, 0, 0, sp, "unwind the stack");
}

/** Whether a result of unw_step() that is no error is what it says. On AArch64 libunwind 1.6.2 has
 *  such results for some failures, too: 0, which means the end, and 1 where it guessed. */
static bool is_true(const struct symbols_unwinder *unwinder)
{
	return READS_MAY_FAIL || unwinder->failed.kind == FAILURE_NONE;
}

int symbols_unwind_step(struct symbols_unwinder *unwinder, struct failure *why)
{
	const struct symbols_native_frame *frame = &unwinder->frame;
	int result;

	if (unwinder->steps == STEPS_MAX || unwinder->program_bytes > PROGRAMS_MAX_BYTES)
		return failure_set(why, FAILURE_LIMIT, 0, 0, frame->sp, "unwind the stack");
	if (unwinder->generation != symbols_space_generation(unwinder->space))
		return failure_set(why, FAILURE_INVALID, 0, 0, frame->pc,
				   "unwind after the mappings changed");
	unwinder->reads = 0;
	unwinder->failed.kind = FAILURE_NONE;
	result = unw_step(&unwinder->cursor);
	if (result >= 0 && is_true(unwinder))
		return result > 0 ? enter_frame(unwinder, why) : 0;
	if (unwinder->failed.kind == FAILURE_NONE)
		return failure_set(why, FAILURE_INVALID, 0, 0, frame->pc, "unwind the stack");
	if (why)
		*why = unwinder->failed;
	return -1;
}

int symbols_unwind_step_frame_pointer(struct symbols_unwinder *unwinder, struct failure *why)
{
	struct symbols_native_frame last = unwinder->frame;
	struct attach_registers regs, caller;
	int result;

	if (unwinder->steps == STEPS_MAX || unwinder->program_bytes > PROGRAMS_MAX_BYTES)
		return failure_set(why, FAILURE_LIMIT, 0, 0, last.sp, "unwind the stack");
	if (unwinder->generation != symbols_space_generation(unwinder->space))
		return failure_set(why, FAILURE_INVALID, 0, 0, last.pc,
				   "unwind after the mappings changed");
	symbols_unwind_registers(unwinder, &regs);
	result = symbols_frame_pointer_step(unwinder->space, &regs, unwinder->interrupted,
					    unwinder->memory, &caller, why);
	if (result <= 0)
		return result;
	unwinder->steps++;
	if (go_on_at(unwinder, &caller, why) < 0)
		return -1;
	unwinder->frame.by_frame_pointer = true;
	return 1;
}

int symbols_unwind_find_frame_pointer(struct symbols_unwinder *unwinder, uint64_t limit,
				      struct failure *why)
{
	struct symbols_native_frame frame = unwinder->frame;
	struct attach_registers regs;
	uint64_t pointer;
	int result;

	symbols_unwind_registers(unwinder, &regs);
	if (symbols_frame_pointer_find(unwinder->space, &regs, unwinder->interrupted,
				       unwinder->memory, limit, &pointer, why) != 0)
		return -1;
	regs.r[SYMBOLS_FRAME_POINTER] = pointer;
	if (!unwinder->interrupted)
		return go_on_at(unwinder, &regs, why) < 0 ? -1 : 0;
	result = begin_at(unwinder, &regs, unwinder->memory, why);
	unwinder->frame = frame;
	return result;
}
