/* SPDX-License-Identifier: MIT */
/*
 * Where in memory are the VMs of a process or core file?
 *
 * A search runs if no VM is known, or if code runs that belongs to no known VM. It may have to read
 * all memory, so it stops on request and continues at the next call.
 */
#include "attach/clock.h"
#include "daemon/decode/target.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "daemon/tick_clock.h"
#include "luastate/explain.h"

enum {
	/* Bytes between two checks of the time: some milliseconds of reading. */
	PIECE_BYTES = 4 << 20,
	/* Pieces overlap because a VM may begin in the last words of one; any size greater than
	 * these works. */
	OVERLAP_BYTES = 4096,
	/* The threads' stacks use at most 1/STACKS_PART of the time. */
	STACKS_PART = 2,
	/* A VM that changes at a look may not fit then, for instance while its stack is moved: that
	 * takes microseconds, or as long as its thread waits for a processor. Each nap is twice as
	 * long as the one before. */
	LOOKS = 6,
	LOOK_NAP_NS = 1000 * 1000,
};

void target_limit_search(struct daemon_target *target, const volatile sig_atomic_t *stop,
			 uint64_t end_ns)
{
	target->search.stop = stop;
	target->search.end_ns = end_ns;
}

/* @param end_ns 0: no end. @return Whether the search must stop. */
static bool is_over(const struct target_search *search, uint64_t end_ns)
{
	return (search->stop && *search->stop) || (end_ns && clock_now_ns() >= end_ns);
}

/* ---- Stacks ----------------------------------------------------------------------------- */

static size_t count_threads(const struct daemon_target *target)
{
	return target->core ? symbols_core_thread_count(target->core)
			    : attach_threads_count(target->threads);
}

/* Get the start and the limit of a thread's stack. A running thread's stack pointer is unknown
 * without a stop. */
static bool stack_of(const struct daemon_target *target, size_t index, uint64_t *ret_sp,
		     uint64_t *ret_limit)
{
	struct attach_thread *thread;

	if (target->core) {
		const struct symbols_core_thread *of_core =
			symbols_core_thread_get(target->core, index);

		*ret_sp = attach_sp(&of_core->registers);
		*ret_limit = of_core->stack_limit;
		return true;
	}
	thread = attach_threads_get(target->threads, index);
	*ret_limit = thread->stack_limit;
	return attach_thread_state(thread, ret_sp, NULL) == ATTACH_BLOCKED;
}

static bool find_on_stack_of(struct daemon_target *target, size_t index, struct failure *why)
{
	uint64_t sp = 0, limit;

	return stack_of(target, index, &sp, &limit) && sp &&
	       luastate_find_on_stack(target->lua, target_reader(target), sp, limit, why);
}

/* Search all threads' stacks, or as many as time permits; the next search begins with the
 * others. */
static bool find_on_stacks(struct daemon_target *target, struct failure *why)
{
	struct target_search *search = &target->search;
	size_t count = count_threads(target);
	uint64_t now_ns = clock_now_ns(), end_ns = 0;

	if (search->end_ns)
		end_ns = search->end_ns < now_ns ? now_ns
						 : now_ns + (search->end_ns - now_ns) / STACKS_PART;
	for (size_t i = 0; i < count; i++) {
		size_t index = search->thread++ % count;

		if (find_on_stack_of(target, index, why))
			return true;
		if (is_over(search, end_ns)) {
			search->cut |= i + 1 < count;
			break;
		}
	}
	return false;
}

void target_note_unwind_gap(struct daemon_target *target)
{
	struct symbols_native_frame frame;
	const struct symbols_mapping *mapping;

	symbols_unwind_frame(target->unwinder, &frame);
	mapping = symbols_space_find(target->space, frame.pc);
	if (!mapping && !target->unmapped_pc)
		target->unmapped_pc = frame.pc;
	if (target->gap_sp)
		return;
	/* The maps may have been read before the machine code was allocated. */
	if (!mapping || (mapping->inode == 0 && mapping->path[0] == '\0'))
		target->gap_sp = frame.sp;
}

const struct luastate_vm *target_find_gap_vm(struct daemon_target *target,
					     const struct attach_reader *reader,
					     uint64_t stack_limit)
{
	struct failure why;

	return luastate_find_on_stack(target->lua, reader, target->gap_sp, stack_limit, &why);
}

/* ---- Memory ----------------------------------------------------------------------------- */

/** A search through one mapping. */
struct scan {
	struct daemon_target *target;
	struct attach_reader reader; /* of the target, while time is left */
	bool found, over;
	bool advanced; /* a piece was searched completely in this call */
};

/* A hostile process can make every word look like a VM until it is checked closely. */
static int read_in_time(void *self, struct remote_addr address, void *ret_bytes, size_t len,
			struct failure *why)
{
	const struct scan *scan = self;

	if (is_over(&scan->target->search, scan->target->search.end_ns))
		return failure_set(why, FAILURE_TIMEOUT, 0, 0, 0, "search memory");
	return attach_read(target_reader(scan->target), address, ret_bytes, len, why);
}

/* Search [start, end). @return Whether a VM was found; if all are wanted, the search continues. */
static bool find_in_piece(struct scan *scan, uint64_t start, uint64_t end, struct failure *why)
{
	const struct target_search *search = &scan->target->search;
	struct luastate *lua = scan->target->lua;

	for (;;) {
		const struct luastate_vm *vm =
			luastate_find_in_range(lua, &scan->reader, start, end, why);

		if (!vm)
			return false;
		if (!search->all || luastate_vm_count(lua) >= LUASTATE_VMS_MAX)
			return true;
		start = vm->main_thread + 8;
	}
}

static bool search_run(void *context, uint64_t start, uint64_t end)
{
	struct scan *scan = context;
	struct target_search *search = &scan->target->search;
	struct failure why = { 0 };

	for (uint64_t at = start; at < end; at += PIECE_BYTES) {
		uint64_t len = end - at;

		if (len > PIECE_BYTES + OVERLAP_BYTES)
			len = PIECE_BYTES + OVERLAP_BYTES;
		search->at = at;
		scan->over = is_over(search, search->end_ns);
		if (scan->over)
			return false;
		scan->found = find_in_piece(scan, at, at + len, &why);
		if (scan->found || why.kind == FAILURE_GONE)
			return false;
		scan->over = is_over(search, search->end_ns);
		/* If a piece takes longer than a whole call, skip it. */
		if (scan->over && scan->advanced)
			return false;
		scan->advanced = true;
	}
	search->at = end;
	scan->over = is_over(search, search->end_ns);
	return !scan->over;
}

static int by_size(const void *a, const void *b)
{
	const struct symbols_mapping *const *x = a, *const *y = b;
	uint64_t m = (*x)->end - (*x)->start, n = (*y)->end - (*y)->start;

	if (m != n)
		return m < n ? -1 : 1;
	return (*x)->start < (*y)->start ? -1 : (*x)->start > (*y)->start;
}

/* Small mappings first: LuaJIT's own allocator uses pieces of 128 KiB. @return The list, freed by
 * the caller; NULL if memory is out. */
static const struct symbols_mapping **list_writable(const struct daemon_target *target,
						    size_t *ret_count)
{
	size_t count = symbols_space_count(target->space), used = 0;
	const struct symbols_mapping **mappings = calloc(count + 1, sizeof(*mappings));

	for (size_t i = 0; mappings && i < count; i++) {
		const struct symbols_mapping *mapping = symbols_space_get(target->space, i);

		if (mapping->readable && mapping->writable && !mapping->inode)
			mappings[used++] = mapping;
	}
	if (mappings)
		qsort(mappings, used, sizeof(*mappings), by_size);
	*ret_count = used;
	return mappings;
}

/* Where the search continues in a mapping; its end if it was already searched. */
static uint64_t resume_at(const struct target_search *search, const struct symbols_mapping *mapping)
{
	uint64_t size = mapping->end - mapping->start;

	if (size != search->size)
		return size < search->size ? mapping->end : mapping->start;
	if (mapping->start != search->start)
		return mapping->start < search->start ? mapping->end : mapping->start;
	return search->at;
}

/* @return false if the process is gone. */
static bool search_mapping(struct scan *scan, const struct symbols_mapping *mapping,
			   struct failure *why)
{
	struct target_search *search = &scan->target->search;
	uint64_t at = resume_at(search, mapping);

	if (at >= mapping->end)
		return true;
	search->size = mapping->end - mapping->start;
	search->start = mapping->start;
	search->at = at;
	if (scan->target->core) {
		symbols_core_each_saved(scan->target->core, at, mapping->end, search_run, scan);
		return true;
	}
	return attach_process_each_resident(scan->target->process, at, mapping->end, search_run,
					    scan, why) == 0 ||
	       why->kind != FAILURE_GONE;
}

static bool find_in_memory(struct daemon_target *target, struct failure *why)
{
	struct target_search *search = &target->search;
	struct scan scan = { .target = target, .reader.read = read_in_time };
	size_t count;
	const struct symbols_mapping **mappings = list_writable(target, &count);

	if (!mappings)
		return false;
	scan.reader.self = &scan;
	for (size_t i = 0; i < count && !scan.found && !scan.over; i++)
		if (!search_mapping(&scan, mappings[i], why))
			break;
	free(mappings);
	search->cut |= scan.over;
	if (!scan.over)
		search->size = search->start = search->at = 0;
	return scan.found;
}

/* ---- Another look ----------------------------------------------------------------------- */

/* Look once at what fitted no layout before. @return Whether a VM was found. */
static bool look_again(struct daemon_target *target)
{
	const uint64_t *refused;
	struct failure why;
	bool found = false;

	for (size_t i = 0; i < luastate_refused(target->lua, &refused);) {
		if (!luastate_vm_of(target->lua, target_reader(target), refused[i], &why))
			i++;
		else if (target->search.all) /* it is refused no longer */
			found = true;
		else
			return true;
	}
	return found;
}

/* Whether a nap ends after that time. @param end_ns 0: no end. */
static bool is_later(uint64_t end_ns, uint64_t nap_ns)
{
	return end_ns && clock_now_ns() + nap_ns > end_ns;
}

/* Look several times, while time is left. @return Whether a VM was found. */
static bool find_refused(struct daemon_target *target)
{
	const struct target_search *search = &target->search;
	struct timespec nap = { .tv_nsec = LOOK_NAP_NS };
	const uint64_t *refused;
	bool found = false;

	for (unsigned look = 0; look < LOOKS && !target->core; look++) {
		if (!luastate_refused(target->lua, &refused) || is_over(search, search->end_ns) ||
		    is_later(search->end_ns, (uint64_t)nap.tv_nsec))
			break;
		nanosleep(&nap, NULL);
		nap.tv_nsec *= 2;
		found |= look_again(target);
		if (found && !search->all)
			break;
	}
	return found;
}

/* @return Whether the maximum number of VMs is known. */
static bool find_all_in_memory(struct daemon_target *target, struct failure *why)
{
	struct target_search *search = &target->search;
	bool full;

	search->cut = false;
	search->all = true;
	full = luastate_has_interpreter(target->lua) && find_in_memory(target, why);
	if (!full)
		find_refused(target);
	search->all = false;
	return full;
}

bool target_find_all_vms(struct daemon_target *target)
{
	struct target_search *search = &target->search;
	struct failure why = { 0 };

	search->size = search->start = search->at = 0;
	/* More VMs than the maximum count as an incomplete search. */
	return !find_all_in_memory(target, &why) && !search->cut && why.kind != FAILURE_GONE;
}

bool target_find_more_vms(struct daemon_target *target)
{
	size_t known = luastate_vm_count(target->lua);
	struct failure why;

	/* One VM more than the maximum would make all others unknown. */
	if (known >= LUASTATE_VMS_MAX)
		return false;
	find_all_in_memory(target, &why);
	return luastate_vm_count(target->lua) != known;
}

int target_find_vm(struct daemon_target *target, struct failure *why)
{
	if (luastate_vm_count(target->lua) > 0)
		return 0;
	target->search.cut = false;
	if (luastate_has_interpreter(target->lua) &&
	    (find_on_stacks(target, why) || find_in_memory(target, why) || find_refused(target)))
		return 0;
	return failure_set(why, target->search.cut ? FAILURE_TIMEOUT : FAILURE_NOT_FOUND, 0,
			   target->core ? symbols_core_pid(target->core)
					: attach_process_pid(target->process),
			   0, "find a LuaJIT VM");
}
