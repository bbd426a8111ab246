/* SPDX-License-Identifier: MIT */
/* Who called a function without an unwind entry, by frame pointer and instructions? */
/*
 * The locations of the caller of a function without an unwind entry that keeps a frame pointer:
 *
 *              x86-64                        AArch64
 *   entry      [sp] = return address         x30 = return address
 *   saved      [sp] = caller's rbp           (one instruction saves both)
 *              [sp + 8] = return address
 *   ready      [rbp] = caller's rbp          [x29] = caller's x29
 *              [rbp + 8] = return address    [x29 + 8] = return address
 *   return     as at entry                   as at entry
 *   leaf       (calls push)                  as at entry, throughout a function that calls nothing
 *                                            and has no frame: stubs, and the vDSO, which has no
 *                                            unwind entries there
 *
 * On x86-64 the caller's stack pointer is after the return address. On AArch64 the two saved words
 * are at the lower end of the frame, and the first instructions show its size.
 *
 * The function's own instructions before and at the pc show which location applies. A function may
 * have no frame pointer at all: then rbp is its caller's, and following it would skip the caller.
 * So we follow a frame pointer only if the function sets one up before the pc, and accept a return
 * address only after a call. If more than one caller remains possible, we give no answer.
 */
#include "symbols/unwind/frame_pointer.h"

#include <string.h>

#include "symbols/names/insn.h"

#if defined(__x86_64__)
/** A call itself moves the stack pointer. */
#define CALLS_MOVE_SP true
#else
#define CALLS_MOVE_SP false
#endif

/** The caller's frame pointer and the return address. */
#define SAVED_BYTES (2 * sizeof(uint64_t))

/** A possible caller. */
struct candidate {
	bool plausible, is_end;
	uint64_t pc, sp, frame_pointer;
	struct symbols_code_call call;
};

/** The frame, and the known properties of its function. */
struct frame {
	struct symbols_space *space;
	const struct attach_reader *stack;
	const struct symbols_mapping *stack_mapping;
	uint64_t pc, sp, frame_pointer, link;
	uint64_t lowered; /**< How far sp has moved while the function sets up its frame, if calls
			     push nothing. */
	bool interrupted;
	uint64_t start; /**< Start of the function; 0: unknown. */
	bool has_begin, is_leaf;
	struct symbols_code_begin begin;
	uint8_t here[8]; /**< Instructions at the pc. */
	size_t here_len;
};

/* ---- Code ------------------------------------------------------------------------------- */

/**
 * Copy up to @p len bytes of code.
 * @return Number of bytes.
 */
static size_t read_code(struct symbols_space *space, uint64_t address, void *ret_bytes, size_t len)
{
	const struct symbols_mapping *mapping = symbols_space_find(space, address);
	struct failure why;

	if (!mapping || !mapping->executable)
		return 0;
	if (len > mapping->end - address)
		len = mapping->end - address;
	if (symbols_read_file_bytes(space, address, ret_bytes, len, &why) == 0 ||
	    (!mapping->inode && space->memory &&
	     attach_read(space->memory, remote_addr_make(address), ret_bytes, len, &why) == 0))
		return len;
	return 0;
}

static bool find_begin(struct symbols_space *space, uint64_t start,
		       struct symbols_code_begin *ret_begin)
{
	uint8_t bytes[SYMBOLS_CODE_BEGIN_BYTES];

	return symbols_code_begin(bytes, read_code(space, start, bytes, sizeof(bytes)), ret_begin);
}

/** Whether @p pc follows a call. */
static bool find_call(struct symbols_space *space, uint64_t pc, struct symbols_code_call *ret_call)
{
	uint8_t bytes[SYMBOLS_CODE_CALL_BYTES];

	return pc >= sizeof(bytes) &&
	       read_code(space, pc - sizeof(bytes), bytes, sizeof(bytes)) == sizeof(bytes) &&
	       symbols_code_call(bytes, pc, ret_call);
}

/** Whether a call through a stub, or by a register, may lead to the function. */
static bool may_lead_to(const struct frame *frame, const struct symbols_code_call *call)
{
	struct symbols_code_stub stub;
	uint8_t bytes[24];

	return !call->is_direct || call->target == frame->start ||
	       symbols_code_stub(bytes, read_code(frame->space, call->target, bytes, sizeof(bytes)),
				 call->target, &stub);
}

static bool leads_to(const struct frame *frame, const struct candidate *candidate)
{
	return frame->start && candidate->call.is_direct && candidate->call.target == frame->start;
}

/* ---- Candidates ------------------------------------------------------------------------- */

static bool read_words(const struct frame *frame, uint64_t address, uint64_t *ret_words, size_t len)
{
	const struct symbols_mapping *mapping = frame->stack_mapping;
	struct failure why;

	return mapping && address >= mapping->start && address < mapping->end &&
	       len <= mapping->end - address && address % sizeof(*ret_words) == 0 &&
	       attach_read(frame->stack, remote_addr_make(address), ret_words, len, &why) == 0;
}

static void judge(const struct frame *frame, struct candidate *candidate)
{
	candidate->plausible = candidate->sp >= frame->sp &&
			       find_call(frame->space, candidate->pc, &candidate->call);
}

/** Caller if the frame pointer is the function's own. */
static void try_ready(const struct frame *frame, uint64_t caller_sp, struct candidate *ret)
{
	uint64_t words[2];

	*ret = (struct candidate){ 0 };
	if (!caller_sp || frame->frame_pointer < frame->sp ||
	    !read_words(frame, frame->frame_pointer, words, sizeof(words)))
		return;
	*ret = (struct candidate){ .frame_pointer = words[0],
				   .pc = symbols_code_address(words[1]),
				   .sp = frame->frame_pointer + caller_sp };
	ret->is_end = words[0] == 0 && words[1] == 0;
	/* A caller's frame is above. A value elsewhere may be no frame pointer, because some code
	 * uses the register for something else. */
	if (words[0] > frame->stack_mapping->start && words[0] <= frame->frame_pointer)
		return;
	judge(frame, ret);
}

#if defined(__x86_64__)

/** Caller if the function has saved nothing yet, or restored everything. */
static void try_entry(const struct frame *frame, struct candidate *ret)
{
	*ret = (struct candidate){ .frame_pointer = frame->frame_pointer, .sp = frame->sp + 8 };
	if (read_words(frame, frame->sp, &ret->pc, sizeof(ret->pc)))
		judge(frame, ret);
}

/** Caller if the function has saved the frame pointer and not set up its own. */
static void try_saved(const struct frame *frame, struct candidate *ret)
{
	uint64_t words[2];

	*ret = (struct candidate){ .frame_pointer = frame->frame_pointer, .sp = frame->sp + 16 };
	if (!read_words(frame, frame->sp, words, sizeof(words)) || words[0] != frame->frame_pointer)
		return;
	ret->pc = words[1];
	judge(frame, ret);
}

#else

static void try_entry(const struct frame *frame, struct candidate *ret)
{
	*ret = (struct candidate){ .frame_pointer = frame->frame_pointer,
				   .sp = frame->sp + frame->lowered,
				   .pc = frame->link };
	judge(frame, ret);
}

/** The registers are as at entry, except sp, which moves before the registers are saved or with
 *  them. */
static void try_saved(const struct frame *frame, struct candidate *ret)
{
	try_entry(frame, ret);
}

#endif

/* ---- Choosing --------------------------------------------------------------------------- */

/** Choose for a function with a known start that sets up a frame pointer. */
static bool choose_known(const struct frame *frame, struct candidate *ret)
{
	uint64_t at = frame->pc - frame->start;
	struct candidate entry;

	if (!frame->interrupted ||
	    (at >= frame->begin.ready && !symbols_code_is_return(frame->here, frame->here_len))) {
		try_ready(frame, frame->begin.caller_sp, ret);
		if (at < frame->begin.ready || !(ret->plausible || ret->is_end))
			return false;
		if (!frame->interrupted || leads_to(frame, ret))
			return true;
		/* A return path that never saved anything may follow the instructions that save. */
		try_entry(frame, &entry);
		return !entry.plausible || entry.pc == ret->pc || /* still in its register */
		       !may_lead_to(frame, &entry.call);
	}
	if (at >= frame->begin.saved && at < frame->begin.ready)
		try_saved(frame, ret);
	else
		try_entry(frame, ret);
	return ret->plausible;
}

/** Choose for a function with a known start that sets up no frame pointer: only its ends are
 *  certain. */
static bool choose_without(const struct frame *frame, struct candidate *ret)
{
	if (!frame->interrupted)
		return false;
	try_entry(frame, ret);
	return ret->plausible && (leads_to(frame, ret) || frame->pc == frame->start ||
				  symbols_code_is_return(frame->here, frame->here_len));
}

/** Whether the frame belongs to the function at @p target, and to none that it called. */
static bool is_frame_of(const struct frame *frame, uint64_t target)
{
	uint8_t bytes[SYMBOLS_CODE_BEGIN_BYTES];
	uint64_t size;

	return symbols_code_frame_size(bytes, read_code(frame->space, target, bytes, sizeof(bytes)),
				       &size) &&
	       frame->frame_pointer - frame->sp == size;
}

/** Choose for a function without a known start: the call before the return address shows the start.
 *  A frame of another size belongs to the caller, and the function itself has none. */
static bool choose_unknown(const struct frame *frame, struct candidate *ret)
{
	struct symbols_code_begin begin;

	if (frame->interrupted && symbols_code_is_return(frame->here, frame->here_len)) {
		try_entry(frame, ret);
		return ret->plausible;
	}
	try_ready(frame, SAVED_BYTES, ret);
	if (!ret->plausible || !ret->call.is_direct || !is_frame_of(frame, ret->call.target) ||
	    (frame->interrupted && !CALLS_MOVE_SP) ||
	    !find_begin(frame->space, ret->call.target, &begin) || !begin.caller_sp)
		return false;
	ret->sp = frame->frame_pointer + begin.caller_sp;
	return true;
}

/** Choose for a leaf function: its return address is always in a register. */
static bool choose_leaf(const struct frame *frame, struct candidate *ret)
{
	try_entry(frame, ret);
	return frame->interrupted && ret->plausible;
}

static bool is_leaf(const struct frame *frame, const struct symbols_function *function)
{
	uint8_t bytes[SYMBOLS_CODE_LEAF_BYTES];
	uint64_t len = function->end - function->start;

	return frame->interrupted && len <= sizeof(bytes) &&
	       read_code(frame->space, function->start, bytes, len) == len &&
	       symbols_code_is_leaf(bytes, len);
}

/** How far sp has moved while the function sets up its frame. Later we use the frame pointer, and
 *  at a return sp is back. */
static uint64_t lowered_so_far(const struct frame *frame)
{
	uint8_t bytes[SYMBOLS_CODE_BEGIN_BYTES];
	uint64_t at = frame->pc - frame->start;

	if (!frame->has_begin || at >= frame->begin.ready)
		return 0;
	return symbols_code_lowers_sp(bytes, read_code(frame->space, frame->start, bytes, at));
}

static void read_function(struct frame *frame)
{
	uint64_t within = frame->interrupted ? frame->pc : frame->pc - 1;
	struct symbols_function function;
	struct failure why;

	if (symbols_find_function(frame->space, within, &function, &why) == 0 &&
	    function.is_symbol) {
		frame->start = function.start;
		frame->has_begin = find_begin(frame->space, frame->start, &frame->begin);
		frame->is_leaf = is_leaf(frame, &function);
		frame->lowered = lowered_so_far(frame);
	}
	frame->here_len = read_code(frame->space, frame->pc, frame->here, sizeof(frame->here));
}

int symbols_frame_pointer_step(struct symbols_space *space, const struct attach_registers *regs,
			       bool interrupted, const struct attach_reader *stack,
			       struct attach_registers *ret_caller, struct failure *why)
{
	struct frame frame = { .space = space,
			       .stack = stack,
			       .stack_mapping = symbols_space_find(space, attach_sp(regs)),
			       .pc = attach_pc(regs),
			       .sp = attach_sp(regs),
			       .frame_pointer = regs->r[SYMBOLS_FRAME_POINTER],
			       .interrupted = interrupted };
	struct candidate caller;
	bool found;

#if defined(__aarch64__)
	frame.link = symbols_code_address(regs->r[ATTACH_REG_LR]);
#endif
	read_function(&frame);
	if (!frame.here_len)
		found = false;
	else if (frame.is_leaf)
		found = choose_leaf(&frame, &caller);
	else if (!frame.start)
		found = choose_unknown(&frame, &caller);
	else
		found = frame.has_begin ? choose_known(&frame, &caller)
					: choose_without(&frame, &caller);
	if (!found)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, frame.pc,
				   "find the caller by the frame pointer");
	if (caller.is_end)
		return 0;
	/* A leaf without a frame cannot save registers that calls preserve, so it still holds the
	 * caller's. */
	*ret_caller = (struct attach_registers){ .syscall = -1 };
	if (frame.is_leaf)
		*ret_caller = *regs;
	ret_caller->r[ATTACH_REG_PC] = caller.pc;
	ret_caller->r[ATTACH_REG_SP] = caller.sp;
	ret_caller->r[SYMBOLS_FRAME_POINTER] = caller.frame_pointer;
	return 1;
}

/* ---- Unknown registers ------------------------------------------------------------------ */

/** Bytes above the stack pointer that we search in a frame of unknown size, and words that we read
 *  at once. */
enum { FIND_BYTES = 65536, FIND_WORDS = 64 };

/** Find the start of the frame's function, also by its unwind entry alone. */
static bool find_start(struct frame *frame)
{
	struct symbols_function function;
	struct failure why;
	uint64_t within = frame->interrupted ? frame->pc : frame->pc - 1;

	if (symbols_find_function(frame->space, within, &function, &why) != 0 ||
	    function.end <= function.start + 1)
		return false;
	frame->start = function.start;
	frame->has_begin = find_begin(frame->space, frame->start, &frame->begin);
	return true;
}

/** Find the frame pointer of a frame of fixed size by its distance from sp, if a caller follows. */
static bool find_by_size(const struct frame *frame, uint64_t *ret_pointer)
{
	uint8_t bytes[SYMBOLS_CODE_BEGIN_BYTES];
	struct symbols_code_call call;
	uint64_t size, words[2];

	if (!frame->has_begin || frame->pc - frame->start < frame->begin.ready ||
	    !symbols_code_frame_size(
		    bytes, read_code(frame->space, frame->start, bytes, sizeof(bytes)), &size) ||
	    !read_words(frame, frame->sp + size, words, sizeof(words)) ||
	    !find_call(frame->space, symbols_code_address(words[1]), &call) ||
	    !may_lead_to(frame, &call))
		return false;
	*ret_pointer = frame->sp + size;
	return true;
}

/** Find the frame pointer of a frame of any size by the only word that a direct call of the
 *  function can have pushed. */
static bool find_by_call(const struct frame *frame, uint64_t limit, uint64_t *ret_pointer)
{
	struct candidate caller = { 0 };
	uint64_t words[FIND_WORDS], found = 0;

	if (limit > frame->sp + FIND_BYTES)
		limit = frame->sp + FIND_BYTES;
	for (uint64_t at = frame->sp + 8; at < limit; at += sizeof(words)) {
		size_t len = limit - at < sizeof(words) ? (size_t)(limit - at) & ~(size_t)7
							: sizeof(words);

		if (!len || !read_words(frame, at, words, len))
			break;
		for (size_t i = 0; i < len / 8; i++) {
			if (!find_call(frame->space, symbols_code_address(words[i]),
				       &caller.call) ||
			    !leads_to(frame, &caller))
				continue;
			if (found)
				return false;
			found = at + 8 * i - 8;
		}
	}
	*ret_pointer = found;
	return found != 0;
}

int symbols_frame_pointer_find(struct symbols_space *space, const struct attach_registers *regs,
			       bool interrupted, const struct attach_reader *stack, uint64_t limit,
			       uint64_t *ret_pointer, struct failure *why)
{
	struct frame frame = { .space = space,
			       .stack = stack,
			       .stack_mapping = symbols_space_find(space, attach_sp(regs)),
			       .pc = attach_pc(regs),
			       .sp = attach_sp(regs),
			       .interrupted = interrupted };

	if (find_start(&frame) &&
	    (find_by_size(&frame, ret_pointer) || find_by_call(&frame, limit, ret_pointer)))
		return 0;
	return failure_set(why, FAILURE_NOT_FOUND, 0, 0, frame.pc, "find the frame pointer");
}
