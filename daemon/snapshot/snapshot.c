/* SPDX-License-Identifier: MIT */
/* Holding a process while the pages that a walk needs are copied. */
#include "daemon/snapshot/snapshot.h"

#include <stdlib.h>

enum {
	MAX_PAUSE_MS = 50,
	MAX_BYTES = 1 << 30,
	MS_NS = 1000 * 1000,
	/* Of the native stack around a place: a stop's copy of a stack is as large. */
	STACK_BELOW_BYTES = 128 << 10,
	STACK_ABOVE_BYTES = 16 << 10,
	/* Threads that wake while they are not held are met again in the next hold; a process that
	 * is busy all the time would have us try for ever. */
	HOLDS = 3,
};

struct moment {
	struct daemon_target *target;
	struct moment_options options;
	struct attach_pages *pages; /* of the looks */
	struct attach_copy *copy;
	struct attach_hold hold;
	struct attach_reader memory, any;
	uint64_t paused_ns; /* in all holds */
	unsigned holds;
	bool is_huge, is_late;
};

static int read_any(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		    struct failure *why)
{
	struct moment *moment = self;

	if (attach_read(attach_copy_reader(moment->copy), address, ret_bytes, len, why) == 0)
		return 0;
	return attach_read(attach_process_reader(moment->target->process), address, ret_bytes, len,
			   why);
}

static int read_memory(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		       struct failure *why)
{
	struct moment *moment = self;

	if (attach_read(attach_copy_reader(moment->copy), address, ret_bytes, len, why) == 0)
		return 0;
	if (attach_read(attach_process_reader(moment->target->process), address, ret_bytes, len,
			why) != 0)
		return -1;
	/* The next hold copies it. */
	attach_pages_note(moment->pages, address.value, address.value + len);
	moment->is_late = true;
	return 0;
}

struct moment *moment_create(struct daemon_target *target, const struct moment_options *options)
{
	struct moment *moment = calloc(1, sizeof(*moment));

	if (!moment)
		return NULL;
	moment->target = target;
	moment->options = *options;
	if (moment->options.max_pause_ns == 0)
		moment->options.max_pause_ns = (uint64_t)MAX_PAUSE_MS * MS_NS;
	if (moment->options.max_bytes == 0)
		moment->options.max_bytes = MAX_BYTES;
	moment->memory = (struct attach_reader){ read_memory, moment };
	moment->any = (struct attach_reader){ read_any, moment };
	moment->pages = attach_pages_create(attach_process_reader(target->process),
					    moment->options.max_bytes / ATTACH_PAGE_BYTES);
	moment->copy = attach_copy_create(moment->options.max_bytes);
	if (moment->pages && moment->copy)
		return moment;
	moment_destroy(moment);
	return NULL;
}

void moment_destroy(struct moment *moment)
{
	if (!moment)
		return;
	attach_hold_deinit(&moment->hold);
	attach_pages_destroy(moment->pages);
	attach_copy_destroy(moment->copy);
	free(moment);
}

/* ---- The look --------------------------------------------------------------------------- */

const struct attach_reader *moment_look(struct moment *moment)
{
	attach_pages_forget(moment->pages);
	return attach_pages_reader(moment->pages);
}

static bool note_run(void *context, uint64_t start, uint64_t end)
{
	return attach_pages_note(context, start, end);
}

void moment_note(struct moment *moment, uint64_t start, uint64_t end)
{
	struct failure why;

	start &= ~(uint64_t)(ATTACH_PAGE_BYTES - 1);
	if (start < end)
		attach_process_each_resident(moment->target->process, start, end, note_run,
					     moment->pages, &why);
}

void moment_note_stack(struct moment *moment, uint64_t sp)
{
	const struct symbols_mapping *mapping = symbols_space_find(moment->target->space, sp);

	if (mapping)
		moment_note(moment,
			    sp - mapping->start > STACK_BELOW_BYTES ? sp - STACK_BELOW_BYTES
								    : mapping->start,
			    mapping->end - sp > STACK_ABOVE_BYTES ? sp + STACK_ABOVE_BYTES
								  : mapping->end);
}

/* ---- What to copy ----------------------------------------------------------------------- */

/** Wishes in the making. */
struct wishes {
	struct moment *moment;
	struct attach_copy *copy;
	const uint64_t *pages; /* of the look, ascending */
	size_t count, next;    /* the next one to pass */
	uint64_t beside_bytes; /* that are left */
};

/* @return Whether there was room. */
static bool want(const struct wishes *wishes, uint64_t start, uint64_t end)
{
	struct failure why;

	if (start >= end || attach_copy_want(wishes->copy, start, end, &why) == 0)
		return true;
	wishes->moment->is_huge = true;
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

/* Pages in memory beside those that were met: new objects are there. */
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
	const struct daemon_target *target = wishes->moment->target;
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

/* Anew for each hold: there is more to copy then. @return NULL without memory. */
static struct attach_copy *choose(struct moment *moment)
{
	struct wishes wishes = { .moment = moment, .beside_bytes = moment->options.beside_bytes };

	wishes.copy = attach_copy_create(moment->options.max_bytes);
	if (!wishes.copy)
		return NULL;
	wishes.pages = attach_pages_list(moment->pages, &wishes.count);
	if (want_met(&wishes))
		want_mappings(&wishes);
	return wishes.copy;
}

/* ---- The hold --------------------------------------------------------------------------- */

static uint64_t left_ns(const struct moment *moment)
{
	return moment->options.max_pause_ns > moment->paused_ns
		       ? moment->options.max_pause_ns - moment->paused_ns
		       : 0;
}

bool moment_may_hold(const struct moment *moment)
{
	uint64_t last_ns = moment->holds ? moment->paused_ns / moment->holds : 0;

	return moment->holds < HOLDS && left_ns(moment) > 2 * last_ns;
}

/* What is there already stays where another hold fails. */
static int hold(struct moment *moment, struct failure *why)
{
	struct attach_hold held = { 0 };
	struct attach_copy *copy;
	int ret;

	if (left_ns(moment) == 0)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "hold a process again");
	copy = choose(moment);
	if (!copy)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold a process");
	ret = attach_hold(moment->target->process, left_ns(moment), copy, &held, why);
	moment->holds++;
	moment->paused_ns += held.pause_ns;
	if (ret == 0) {
		attach_hold_deinit(&moment->hold);
		moment->hold = held;
		attach_copy_destroy(moment->copy);
		moment->copy = copy;
	} else {
		attach_copy_destroy(copy);
	}
	moment->hold.pause_ns = moment->paused_ns;
	return ret;
}

/* Nobody needs what an earlier call has copied, which may be large. */
static int forget(struct moment *moment, struct failure *why)
{
	struct attach_copy *copy = attach_copy_create(moment->options.max_bytes);

	if (!copy)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold a process");
	attach_copy_destroy(moment->copy);
	moment->copy = copy;
	attach_hold_deinit(&moment->hold);
	moment->hold.pause_ns = moment->paused_ns;
	return 0;
}

/* Threads that woke have run while memory was copied: a hold without such is better. */
int moment_hold(struct moment *moment, struct failure *why)
{
	bool any = false;

	if (forget(moment, why) != 0)
		return -1;
	do {
		if (hold(moment, why) == 0)
			any = true;
		else if (why->kind != FAILURE_TIMEOUT)
			break;
	} while ((!any || moment->hold.woken) && moment_may_hold(moment));
	if (!any)
		return -1;
	moment->is_late = false;
	return 0;
}

const struct attach_hold *moment_held(const struct moment *moment)
{
	return &moment->hold;
}

size_t moment_copied_bytes(const struct moment *moment)
{
	return attach_copy_bytes(moment->copy);
}

bool moment_is_huge(const struct moment *moment)
{
	return moment->is_huge;
}

/* ---- What was copied -------------------------------------------------------------------- */

const struct attach_reader *moment_copy(struct moment *moment)
{
	return attach_copy_reader(moment->copy);
}

const struct attach_reader *moment_memory(struct moment *moment)
{
	return &moment->memory;
}

const struct attach_reader *moment_any(struct moment *moment)
{
	return &moment->any;
}

bool moment_take_late(struct moment *moment)
{
	bool was_late = moment->is_late;

	moment->is_late = false;
	return was_late;
}
