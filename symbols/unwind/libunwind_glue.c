/* SPDX-License-Identifier: MIT */
/* Which registers, unwind entries and memory does libunwind get? */
#include "symbols/unwind/unwind_internal.h"

#include <string.h>

/** Words that libunwind may read in one step; entries have at most a few hundred bytes. */
#define READS_PER_STEP_MAX 65536
/** Where libunwind finds the table of one row: above all user addresses. */
#define ROW_ADDRESS ((unw_word_t)0xffffffffffffe000)

/**
 * libunwind's own search in a table in the remote format, which its other accessors also use. Its
 * header declares the function only for accessors inside libunwind.
 * Source: libunwind 1.6.2, src/dwarf/Gfind_proc_info-lsb.c.
 */
int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *info,
				       unw_proc_info_t *proc, int need_unwind_info, void *arg);

static void set_window(struct symbols_unwinder *unwinder, const struct symbols_eh *eh,
		       uint64_t bias)
{
	unwinder->window = (struct symbols_unwind_window){ .start = eh->vaddr + bias,
							   .end = eh->vaddr + bias + eh->len,
							   .bytes = eh->bytes,
							   .drops = unwinder->space->eh_drops };
}

/** Read the word at @p address if it overlaps the window; bytes outside the window are 0. */
static bool read_window(const struct symbols_unwinder *unwinder, uint64_t address,
			unw_word_t *ret_word)
{
	const struct symbols_unwind_window *window = &unwinder->window;
	size_t from = 0, to = sizeof(*ret_word);

	/* The space may have dropped the window's object. */
	if (window->drops != unwinder->space->eh_drops ||
	    address + sizeof(*ret_word) <= window->start || address >= window->end ||
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

/**
 * Move the window to the object at @p address.
 * @return false if it has no unwind entries there.
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
	eh = object ? symbols_space_eh(unwinder->space, object) : NULL;
	if (!eh) {
		unwinder->plain_start = mapping->start;
		unwinder->plain_end = mapping->end;
		return false;
	}
	set_window(unwinder, eh, bias);
	return true;
}

#if defined(__x86_64__)
static bool asks_for_trampoline(const struct symbols_unwinder *unwinder, uint64_t address,
				unw_word_t *ret_word)
{
	(void)unwinder, (void)address, (void)ret_word;
	return false;
}
#elif defined(__aarch64__)
/* libunwind reads the code to see whether it is a signal trampoline. If it can read none, it
 * assumes a jump to a bad address. If there is no entry, it looks for a stub of two words. We
 * answer from what we know about the location. */
static bool asks_for_trampoline(const struct symbols_unwinder *unwinder, uint64_t address,
				unw_word_t *ret_word)
{
	uint64_t into = address + 1 - unwinder->frame.pc; /* a call: one byte before */

	if (unwinder->searching || (into > 1 && into != 8 && into != 9))
		return false;
	*ret_word = unwinder->frame.is_signal ? SYMBOLS_UNWIND_SIGRETURN : 0;
	return true;
}
#endif

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
	if (asks_for_trampoline(unwinder, address, word))
		return 0;
	if (read_window(unwinder, address, word))
		return 0;
	if (unwinder->searching) {
		/* A pointer to a personality routine, which we never call. */
		*word = 0;
		return 0;
	}
	/* A cached rule may have its expression in another object's entries. */
	if (move_window(unwinder, address) && read_window(unwinder, address, word))
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
	/* libunwind numbers the general registers as DWARF does. */
	if (write || reg < 0 || reg >= ATTACH_REG_COUNT)
		return -UNW_EBADREG;
	*value = unwinder->asked.r[reg];
	return 0;
}

static int access_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *value, int write,
			void *context)
{
	(void)as, (void)reg, (void)value, (void)write, (void)context;
	return -UNW_EBADREG;
}

bool symbols_unwind_find_entry(struct symbols_unwinder *unwinder, uint64_t pc,
			       const struct symbols_eh **ret_eh, struct symbols_eh_entry *ret_entry,
			       uint64_t *ret_bias)
{
	struct symbols_object *object = symbols_space_object_at(unwinder->space, pc, ret_bias);
	const struct symbols_eh *eh = object ? symbols_space_eh(unwinder->space, object) : NULL;

	if (!eh || !symbols_eh_find(eh, pc - *ret_bias, ret_entry))
		return false;
	*ret_eh = eh;
	set_window(unwinder, eh, *ret_bias);
	unwinder->program_bytes += ret_entry->code_end - ret_entry->code_start +
				   ret_entry->cie_code_end - ret_entry->cie_code_start;
	return symbols_eh_check(eh, ret_entry);
}

static int no_entry(struct symbols_unwinder *unwinder, uint64_t pc)
{
	failure_set(&unwinder->failed, FAILURE_NOT_FOUND, 0, 0, pc, "find unwind information");
	return -UNW_EUNSPEC; /* not UNW_ENOINFO: see unwind.c */
}

static int find_proc_info(unw_addr_space_t as, unw_word_t pc, unw_proc_info_t *proc,
			  int need_unwind_info, void *context)
{
	struct symbols_unwinder *unwinder = context;
	const struct symbols_eh *eh;
	struct symbols_eh_entry entry;
	unw_dyn_info_t info = { .format = UNW_INFO_FORMAT_REMOTE_TABLE };
	uint64_t bias;
	int64_t distance;
	int result;

	if (!symbols_unwind_find_entry(unwinder, pc, &eh, &entry, &bias))
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
	return -UNW_ENOINFO; /* no code is registered with libunwind */
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

unw_accessors_t symbols_unwind_accessors = {
	.find_proc_info = find_proc_info,
	.put_unwind_info = put_unwind_info,
	.get_dyn_info_list_addr = get_dyn_info_list_addr,
	.access_mem = access_mem,
	.access_reg = access_reg,
	.access_fpreg = access_fpreg,
	.resume = resume,
	.get_proc_name = get_proc_name,
};
