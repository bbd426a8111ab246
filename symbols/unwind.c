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
#include <libunwind.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/space.h"

/** Frames of one walk; beyond it the copied stack would have to be larger than any copy. */
#define STEPS_MAX 16384
/** Words that libunwind may read in one step; entries have at most a few hundred bytes. */
#define READS_PER_STEP_MAX 65536
/** Where libunwind finds the table of one row: above every user address. */
#define ROW_ADDRESS ((unw_word_t)0xffffffffffffe000)
/** Remembered return addresses, see is_trampoline(). */
#define TRAMPOLINE_SLOTS 256

/** libunwind's own search in a table in the remote format, which its other accessors use too. Its
 *  header declares it only to accessors inside libunwind.
 *  Source: libunwind 1.6.2, src/dwarf/Gfind_proc_info-lsb.c. */
int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *info,
				       unw_proc_info_t *proc, int need_unwind_info, void *arg);

/** Unwind entries of one object at their target addresses. */
struct window {
	uint64_t start, end;
	const uint8_t *bytes;
};

struct trampoline_slot {
	uint64_t pc;
	bool is_trampoline;
};

struct symbols_unwinder {
	struct symbols_space *space;
	uint64_t generation; /**< Of the space, when the caches were filled. */
	unw_addr_space_t libunwind;
	unw_cursor_t cursor;
	struct attach_registers regs;
	const struct attach_reader *memory;
	struct window window;		 /**< Of the object looked at last. */
	uint64_t plain_start, plain_end; /**< The last mapping that has no unwind entries. */
	int32_t row[2];			 /**< At ROW_ADDRESS. */
	bool searching;			 /**< In find_proc_info: only unwind entries are read. */
	unsigned reads, steps;
	struct failure failed; /**< What an accessor failed with; kind NONE if none did. */
	struct symbols_native_frame frame;
	struct trampoline_slot trampolines[TRAMPOLINE_SLOTS];
};

/* ---- Accessors -------------------------------------------------------------------------- */

/** The word at @p address where it touches the window; bytes outside it are 0. */
static bool read_window(const struct window *window, uint64_t address, unw_word_t *ret_word)
{
	size_t from = 0, to = sizeof(*ret_word);

	if (address + sizeof(*ret_word) <= window->start || address >= window->end ||
	    address + sizeof(*ret_word) < address)
		return false;
	*ret_word = 0;
	if (address < window->start)
		from = window->start - address;
	if (window->end - address < to)
		to = window->end - address;
	memcpy((uint8_t *)ret_word + from, window->bytes + (address + from - window->start),
	       to - from);
	return true;
}

/** Move the window to the object at @p address. @return false if it has no unwind entries there.
 */
static bool move_window(struct symbols_unwinder *unwinder, uint64_t address)
{
	const struct symbols_mapping *mapping;
	const struct symbols_eh *eh;
	struct symbols_object *object;
	uint64_t bias;

	if (address >= unwinder->plain_start && address < unwinder->plain_end)
		return false;
	mapping = symbols_space_find(unwinder->space, address);
	if (!mapping)
		return false;
	object =
		mapping->writable ? NULL : symbols_space_object_at(unwinder->space, address, &bias);
	eh = object ? symbols_object_eh(object) : NULL;
	if (!eh) {
		unwinder->plain_start = mapping->start;
		unwinder->plain_end = mapping->end;
		return false;
	}
	unwinder->window = (struct window){ .start = eh->vaddr + bias,
					    .end = eh->vaddr + bias + eh->len,
					    .bytes = eh->bytes };
	return true;
}

static int access_mem(unw_addr_space_t as, unw_word_t address, unw_word_t *word, int write,
		      void *context)
{
	struct symbols_unwinder *unwinder = context;

	(void)as;
	if (write)
		return -UNW_EINVAL;
	if (++unwinder->reads > READS_PER_STEP_MAX) {
		failure_set(&unwinder->failed, FAILURE_LIMIT, 0, 0, address, "unwind the stack");
		return -UNW_EINVAL;
	}
	if (address == ROW_ADDRESS) {
		memcpy(word, unwinder->row, sizeof(*word));
		return 0;
	}
	if (read_window(&unwinder->window, address, word))
		return 0;
	if (unwinder->searching) {
		/* The pointer to a personality routine, which nobody calls here. */
		*word = 0;
		return 0;
	}
	/* A cached rule may have its expression in another object's entries. */
	if (move_window(unwinder, address) && read_window(&unwinder->window, address, word))
		return 0;
	if (attach_read(unwinder->memory, remote_addr_make(address), word, sizeof(*word),
			&unwinder->failed) < 0)
		return -UNW_EINVAL;
	return 0;
}

static int access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *value, int write,
		      void *context)
{
	struct symbols_unwinder *unwinder = context;

	(void)as;
	/* libunwind's numbers of the general registers are DWARF's. */
	if (write || reg < 0 || reg >= ATTACH_REG_COUNT)
		return -UNW_EBADREG;
	*value = unwinder->regs.r[reg];
	return 0;
}

static int access_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *value, int write,
			void *context)
{
	(void)as, (void)reg, (void)value, (void)write, (void)context;
	return -UNW_EBADREG;
}

/** Find the checked entry for @p pc and the object's bias; moves the window. */
static bool find_entry(struct symbols_unwinder *unwinder, uint64_t pc,
		       struct symbols_eh_entry *ret_entry, uint64_t *ret_bias)
{
	struct symbols_object *object = symbols_space_object_at(unwinder->space, pc, ret_bias);
	const struct symbols_eh *eh = object ? symbols_object_eh(object) : NULL;

	if (!eh || !symbols_eh_find(eh, pc - *ret_bias, ret_entry))
		return false;
	unwinder->window = (struct window){ .start = eh->vaddr + *ret_bias,
					    .end = eh->vaddr + *ret_bias + eh->len,
					    .bytes = eh->bytes };
	return symbols_eh_check(eh, ret_entry);
}

static int no_entry(struct symbols_unwinder *unwinder, uint64_t pc)
{
	failure_set(&unwinder->failed, FAILURE_NOT_FOUND, 0, 0, pc, "find unwind information");
	return -UNW_EUNSPEC; /* not UNW_ENOINFO: see above */
}

static int find_proc_info(unw_addr_space_t as, unw_word_t pc, unw_proc_info_t *proc,
			  int need_unwind_info, void *context)
{
	struct symbols_unwinder *unwinder = context;
	struct symbols_eh_entry entry;
	unw_dyn_info_t info = { .format = UNW_INFO_FORMAT_REMOTE_TABLE };
	uint64_t bias;
	int64_t distance;
	int result;

	if (!find_entry(unwinder, pc, &entry, &bias))
		return no_entry(unwinder, pc);
	distance = (int64_t)(entry.start - entry.vaddr);
	if (distance != (int32_t)distance)
		return no_entry(unwinder, pc);
	/* One row of two 32-bit distances from segbase: code and entry. */
	unwinder->row[0] = (int32_t)distance;
	unwinder->row[1] = 0;
	info.start_ip = entry.start + bias;
	info.end_ip = entry.end + bias;
	info.u.rti.segbase = entry.vaddr + bias;
	info.u.rti.table_data = ROW_ADDRESS;
	info.u.rti.table_len = 1;
	unwinder->searching = true;
	result = UNW_OBJ(dwarf_search_unwind_table)(as, pc, &info, proc, need_unwind_info, context);
	unwinder->searching = false;
	return result < 0 ? no_entry(unwinder, pc) : 0;
}

static void put_unwind_info(unw_addr_space_t as, unw_proc_info_t *proc, void *context)
{
	(void)as, (void)proc, (void)context;
}

static int get_dyn_info_list_addr(unw_addr_space_t as, unw_word_t *address, void *context)
{
	(void)as, (void)address, (void)context;
	return -UNW_ENOINFO; /* no code registered with libunwind */
}

static int get_proc_name(unw_addr_space_t as, unw_word_t pc, char *name, size_t len,
			 unw_word_t *offset, void *context)
{
	(void)as, (void)pc, (void)name, (void)len, (void)offset, (void)context;
	return -UNW_ENOINFO;
}

static int resume(unw_addr_space_t as, unw_cursor_t *cursor, void *context)
{
	(void)as, (void)cursor, (void)context;
	return -UNW_EINVAL;
}

/* ---- Frames ----------------------------------------------------------------------------- */

int symbols_unwinder_create(struct symbols_space *space, struct symbols_unwinder **ret_unwinder,
			    struct failure *why)
{
	static unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.put_unwind_info = put_unwind_info,
		.get_dyn_info_list_addr = get_dyn_info_list_addr,
		.access_mem = access_mem,
		.access_reg = access_reg,
		.access_fpreg = access_fpreg,
		.resume = resume,
		.get_proc_name = get_proc_name,
	};
	struct symbols_unwinder *unwinder = calloc(1, sizeof(*unwinder));

	if (unwinder)
		unwinder->libunwind = unw_create_addr_space(&accessors, 0);
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
	memset(unwinder->trampolines, 0, sizeof(unwinder->trampolines));
	unwinder->window = (struct window){ 0 };
	unwinder->plain_start = unwinder->plain_end = 0;
	unwinder->generation = generation;
}

/** Whether the code at @p pc is a signal trampoline. */
static bool is_trampoline(struct symbols_unwinder *unwinder, uint64_t pc)
{
	struct trampoline_slot *slot =
		&unwinder->trampolines[pc * 0x9e3779b97f4a7c15 >> 32 & (TRAMPOLINE_SLOTS - 1)];
	struct symbols_eh_entry entry;
	uint64_t bias;

	if (slot->pc != pc) {
		slot->is_trampoline = find_entry(unwinder, pc, &entry, &bias) && entry.is_signal;
		slot->pc = pc;
	}
	return slot->is_trampoline;
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
 */
static void take_frame(struct symbols_unwinder *unwinder, unsigned before)
{
	struct symbols_native_frame *frame = &unwinder->frame;

	unwinder->reads = 0;
	frame->pc = register_of(unwinder, UNW_X86_64_RIP);
	frame->sp = register_of(unwinder, UNW_X86_64_RSP);
	frame->rbx = register_of(unwinder, UNW_X86_64_RBX);
	frame->rbp = register_of(unwinder, UNW_X86_64_RBP);
	frame->r12 = register_of(unwinder, UNW_X86_64_R12);
	frame->r13 = register_of(unwinder, UNW_X86_64_R13);
	frame->is_signal = frame->pc && is_trampoline(unwinder, frame->pc - before);
}

int symbols_unwind_begin(struct symbols_unwinder *unwinder, const struct attach_registers *regs,
			 const struct attach_reader *memory, struct failure *why)
{
	follow_generation(unwinder);
	unwinder->regs = *regs;
	unwinder->memory = memory;
	unwinder->steps = 0;
	unwinder->failed.kind = FAILURE_NONE;
	if (unw_init_remote(&unwinder->cursor, unwinder->libunwind, unwinder) < 0)
		return failure_set(why, FAILURE_INVALID, 0, 0, 0, "begin to unwind");
	take_frame(unwinder, 0);
	return 0;
}

int symbols_unwind_begin_caller(struct symbols_unwinder *unwinder,
				const struct attach_registers *regs,
				const struct attach_reader *memory, struct failure *why)
{
	struct attach_registers call = *regs;

	/* libunwind takes the first pc for an interrupted one. Any address within the call
	 * instruction has the rules that hold there. */
	call.r[ATTACH_REG_RIP]--;
	if (symbols_unwind_begin(unwinder, &call, memory, why) < 0)
		return -1;
	unwinder->frame.pc++;
	return 0;
}

void symbols_unwind_frame(const struct symbols_unwinder *unwinder,
			  struct symbols_native_frame *ret_frame)
{
	*ret_frame = unwinder->frame;
}

/** Take over the frame that unw_step() went to. @return As symbols_unwind_step(). */
static int enter_frame(struct symbols_unwinder *unwinder, struct failure *why)
{
	struct symbols_native_frame last = unwinder->frame;
	bool was_signal = unw_is_signal_frame(&unwinder->cursor) > 0;
	uint64_t sp;
	bool is_end;

	unwinder->steps++;
	take_frame(unwinder, was_signal ? 0 : 1);
	sp = unwinder->frame.sp;
	/* Callers lie above. Only the frame that a signal interrupted may lie anywhere. */
	if (unwinder->frame.pc && (sp > last.sp || was_signal))
		return 1;
	is_end = unwinder->frame.pc == 0;
	unwinder->frame = last;
	return is_end ? 0 : failure_set(why, FAILURE_INVALID, 0, 0, sp, "unwind the stack");
}

int symbols_unwind_step(struct symbols_unwinder *unwinder, struct failure *why)
{
	const struct symbols_native_frame *frame = &unwinder->frame;
	int result;

	if (unwinder->steps == STEPS_MAX)
		return failure_set(why, FAILURE_LIMIT, 0, 0, frame->sp, "unwind the stack");
	if (unwinder->generation != symbols_space_generation(unwinder->space))
		return failure_set(why, FAILURE_INVALID, 0, 0, frame->pc,
				   "unwind after the mappings changed");
	unwinder->reads = 0;
	unwinder->failed.kind = FAILURE_NONE;
	result = unw_step(&unwinder->cursor);
	if (result > 0)
		return enter_frame(unwinder, why);
	if (result == 0)
		return 0;
	if (unwinder->failed.kind == FAILURE_NONE)
		return failure_set(why, FAILURE_INVALID, 0, 0, frame->pc, "unwind the stack");
	if (why)
		*why = unwinder->failed;
	return -1;
}
