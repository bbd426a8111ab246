/* SPDX-License-Identifier: MIT */
/* How do we copy the pages that a walk needs while a process is frozen? */
#include "daemon/snapshot/snapshot.h"

#include <stdlib.h>

enum {
	MAX_PAUSE_MS = 50,
	MAX_BYTES = 1 << 30,
	MS_NS = 1000 * 1000,
	/* Bytes of the native stack to copy around an address; as many as a stop copies. */
	STACK_BELOW_BYTES = 128 << 10,
	STACK_ABOVE_BYTES = 16 << 10,
	/* A thread that woke while it was not frozen is included in the next freeze. A process that
	 * is always busy would have us freeze it again and again. */
	FREEZES_MAX = 3,
};

struct snapshot {
	struct daemon_target *target;
	struct snapshot_options options;
	struct attach_pages *pages; /* pages that walks have read */
	struct attach_copy *copy;
	struct attach_freeze freeze;
	struct attach_reader memory, any;
	uint64_t paused_ns; /* in all freezes */
	unsigned freezes;
	bool is_huge, is_late;
};

static int read_any(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		    struct failure *why)
{
	struct snapshot *snapshot = self;

	if (attach_read(attach_copy_reader(snapshot->copy), address, ret_bytes, len, why) == 0)
		return 0;
	return attach_read(attach_process_reader(snapshot->target->process), address, ret_bytes,
			   len, why);
}

static int read_memory(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		       struct failure *why)
{
	struct snapshot *snapshot = self;

	if (attach_read(attach_copy_reader(snapshot->copy), address, ret_bytes, len, why) == 0)
		return 0;
	if (attach_read(attach_process_reader(snapshot->target->process), address, ret_bytes, len,
			why) != 0)
		return -1;
	/* The next freeze copies it. */
	attach_pages_note(snapshot->pages, address.value, address.value + len);
	snapshot->is_late = true;
	return 0;
}

struct snapshot *snapshot_create(struct daemon_target *target,
				 const struct snapshot_options *options)
{
	struct snapshot *snapshot = calloc(1, sizeof(*snapshot));

	if (!snapshot)
		return NULL;
	snapshot->target = target;
	snapshot->options = *options;
	if (snapshot->options.max_pause_ns == 0)
		snapshot->options.max_pause_ns = (uint64_t)MAX_PAUSE_MS * MS_NS;
	if (snapshot->options.max_bytes == 0)
		snapshot->options.max_bytes = MAX_BYTES;
	snapshot->memory = (struct attach_reader){ read_memory, snapshot };
	snapshot->any = (struct attach_reader){ read_any, snapshot };
	snapshot->pages = attach_pages_create(attach_process_reader(target->process),
					      snapshot->options.max_bytes / ATTACH_PAGE_BYTES);
	snapshot->copy = attach_copy_create(snapshot->options.max_bytes);
	if (snapshot->pages && snapshot->copy)
		return snapshot;
	snapshot_destroy(snapshot);
	return NULL;
}

void snapshot_destroy(struct snapshot *snapshot)
{
	if (!snapshot)
		return;
	attach_freeze_deinit(&snapshot->freeze);
	attach_pages_destroy(snapshot->pages);
	attach_copy_destroy(snapshot->copy);
	free(snapshot);
}

/* ---- The walk of the running process ---------------------------------------------------- */

const struct attach_reader *snapshot_live(struct snapshot *snapshot)
{
	attach_pages_forget(snapshot->pages);
	return attach_pages_reader(snapshot->pages);
}

static bool note_run(void *context, uint64_t start, uint64_t end)
{
	return attach_pages_note(context, start, end);
}

void snapshot_note(struct snapshot *snapshot, uint64_t start, uint64_t end)
{
	struct failure why;

	start &= ~(uint64_t)(ATTACH_PAGE_BYTES - 1);
	if (start < end)
		attach_process_each_resident(snapshot->target->process, start, end, note_run,
					     snapshot->pages, &why);
}

void snapshot_note_stack(struct snapshot *snapshot, uint64_t sp)
{
	const struct symbols_mapping *mapping = symbols_space_find(snapshot->target->space, sp);

	if (mapping)
		snapshot_note(snapshot,
			      sp - mapping->start > STACK_BELOW_BYTES ? sp - STACK_BELOW_BYTES
								      : mapping->start,
			      mapping->end - sp > STACK_ABOVE_BYTES ? sp + STACK_ABOVE_BYTES
								    : mapping->end);
}

/* ---- What to copy ----------------------------------------------------------------------- */

/** Ranges to copy, while they are being chosen. */
struct wishes {
	struct snapshot *snapshot;
	struct attach_copy *copy;
	const uint64_t *pages; /* pages that walks have read, ascending */
	size_t count, next;    /* next: index of the first page not passed yet */
	uint64_t beside_bytes; /* that remain */
};

/* @return Whether there was room. */
static bool want(const struct wishes *wishes, uint64_t start, uint64_t end)
{
	struct failure why;

	if (start >= end || attach_copy_want(wishes->copy, start, end, &why) == 0)
		return true;
	wishes->snapshot->is_huge = true;
	return false;
}

static bool want_met(struct wishes *wishes)
{
	for (size_t i = 0; i < wishes->count; i++) {
		uint64_t start = wishes->pages[i] * ATTACH_PAGE_BYTES;

		if (!want(wishes, start, start + ATTACH_PAGE_BYTES))
			return false;
	}
	return true;
}

/* Also copy resident pages that no walk has read, because new objects are there. */
static bool want_beside(void *context, uint64_t start, uint64_t end)
{
	struct wishes *wishes = context;

	while (start < end) {
		uint64_t met, stop;

		while (wishes->next < wishes->count &&
		       wishes->pages[wishes->next] * ATTACH_PAGE_BYTES < start)
			wishes->next++;
		met = wishes->next < wishes->count ? wishes->pages[wishes->next] * ATTACH_PAGE_BYTES
						   : UINT64_MAX;
		stop = met < end ? met : end;
		if (stop - start > wishes->beside_bytes)
			stop = start + wishes->beside_bytes / ATTACH_PAGE_BYTES * ATTACH_PAGE_BYTES;
		if (stop > start && !want(wishes, start, stop))
			return false;
		wishes->beside_bytes -= stop - start;
		if (wishes->beside_bytes < ATTACH_PAGE_BYTES)
			return false;
		start = met < end ? met + ATTACH_PAGE_BYTES : end;
	}
	return true;
}

static size_t count_met(const struct wishes *wishes, const struct symbols_mapping *mapping)
{
	size_t count = 0;

	for (size_t i = 0; i < wishes->count; i++) {
		uint64_t at = wishes->pages[i] * ATTACH_PAGE_BYTES;

		count += at >= mapping->start && at < mapping->end;
		if (at >= mapping->end)
			break;
	}
	return count;
}

static void want_mappings(struct wishes *wishes)
{
	const struct daemon_target *target = wishes->snapshot->target;
	struct failure why;

	for (size_t i = 0; i < symbols_space_count(target->space); i++) {
		const struct symbols_mapping *mapping = symbols_space_get(target->space, i);

		if (!mapping->writable || mapping->inode || wishes->beside_bytes == 0 ||
		    count_met(wishes, mapping) == 0)
			continue;
		wishes->next = 0;
		attach_process_each_resident(target->process, mapping->start, mapping->end,
					     want_beside, wishes, &why);
	}
}

/* Choose again before each freeze, because there is more to copy. @return NULL if memory is out. */
static struct attach_copy *choose(struct snapshot *snapshot)
{
	struct wishes wishes = { .snapshot = snapshot,
				 .beside_bytes = snapshot->options.beside_bytes };

	wishes.copy = attach_copy_create(snapshot->options.max_bytes);
	if (!wishes.copy)
		return NULL;
	wishes.pages = attach_pages_list(snapshot->pages, &wishes.count);
	if (want_met(&wishes))
		want_mappings(&wishes);
	return wishes.copy;
}

/* ---- The freeze ------------------------------------------------------------------------- */

static uint64_t left_ns(const struct snapshot *snapshot)
{
	return snapshot->options.max_pause_ns > snapshot->paused_ns
		       ? snapshot->options.max_pause_ns - snapshot->paused_ns
		       : 0;
}

bool snapshot_may_take(const struct snapshot *snapshot)
{
	uint64_t last_ns = snapshot->freezes ? snapshot->paused_ns / snapshot->freezes : 0;

	return snapshot->freezes < FREEZES_MAX && left_ns(snapshot) > 2 * last_ns;
}

/* If this freeze fails, the copy of the last one remains. */
static int freeze(struct snapshot *snapshot, struct failure *why)
{
	struct attach_freeze taken = { 0 };
	struct attach_copy *copy;
	int ret;

	if (left_ns(snapshot) == 0)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "freeze a process again");
	copy = choose(snapshot);
	if (!copy)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "freeze a process");
	ret = attach_freeze(snapshot->target->process, left_ns(snapshot), copy, &taken, why);
	snapshot->freezes++;
	snapshot->paused_ns += taken.pause_ns;
	if (ret == 0) {
		attach_freeze_deinit(&snapshot->freeze);
		snapshot->freeze = taken;
		attach_copy_destroy(snapshot->copy);
		snapshot->copy = copy;
	} else {
		attach_copy_destroy(copy);
	}
	snapshot->freeze.pause_ns = snapshot->paused_ns;
	return ret;
}

/* Free the copy of an earlier call, which may be large. */
static int forget(struct snapshot *snapshot, struct failure *why)
{
	struct attach_copy *copy = attach_copy_create(snapshot->options.max_bytes);

	if (!copy)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "freeze a process");
	attach_copy_destroy(snapshot->copy);
	snapshot->copy = copy;
	attach_freeze_deinit(&snapshot->freeze);
	snapshot->freeze.pause_ns = snapshot->paused_ns;
	return 0;
}

/* Threads that woke ran while memory was copied, so try a freeze without such threads. */
int snapshot_take(struct snapshot *snapshot, struct failure *why)
{
	bool any = false;

	if (forget(snapshot, why) != 0)
		return -1;
	do {
		if (freeze(snapshot, why) == 0)
			any = true;
		else if (why->kind != FAILURE_TIMEOUT)
			break;
	} while ((!any || snapshot->freeze.woken) && snapshot_may_take(snapshot));
	if (!any)
		return -1;
	snapshot->is_late = false;
	return 0;
}

const struct attach_freeze *snapshot_freeze(const struct snapshot *snapshot)
{
	return &snapshot->freeze;
}

size_t snapshot_copied_bytes(const struct snapshot *snapshot)
{
	return attach_copy_bytes(snapshot->copy);
}

bool snapshot_is_huge(const struct snapshot *snapshot)
{
	return snapshot->is_huge;
}

/* ---- Copied memory ---------------------------------------------------------------------- */

const struct attach_reader *snapshot_copy(struct snapshot *snapshot)
{
	return attach_copy_reader(snapshot->copy);
}

const struct attach_reader *snapshot_memory(struct snapshot *snapshot)
{
	return &snapshot->memory;
}

const struct attach_reader *snapshot_any(struct snapshot *snapshot)
{
	return &snapshot->any;
}

bool snapshot_take_late(struct snapshot *snapshot)
{
	bool was_late = snapshot->is_late;

	snapshot->is_late = false;
	return was_late;
}
