/* SPDX-License-Identifier: MIT */
/* How do the rules of a copy reach their surroundings in ljprof itself? */
#ifndef LUASTATE_BPF_NATIVE_H
#define LUASTATE_BPF_NATIVE_H

#include <string.h>

#include "attach/clock.h"
#include "attach/thread.h"

#define SUBPROGRAM static
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/** What one copy works with. */
struct luastate_copier {
	struct work work;
	struct attach_fetcher *fetcher; /* of the thread being copied; borrowed */
	const uint64_t *known;		/* LUASTATE_BPF_KNOWN entries; borrowed */
	/* The ranges of the copy's records, one after the other. */
	uint8_t *bytes;
	size_t len, size;
};

/** Call step() with 0 to count - 1, until it returns other than 0. */
static inline void repeat(uint32_t count, long (*step)(uint32_t i, void *context), void *context)
{
	for (uint32_t i = 0; i < count && step(i, context) == 0; i++)
		;
}

static uint64_t now_ns(void)
{
	return clock_now_ns();
}

static bool read_present(struct work *work, void *target, uint32_t len, uint64_t address)
{
	return attach_fetch(work->copier->fetcher, address, target, len);
}

static bool hand_over(struct work *work, uint64_t len)
{
	struct luastate_copier *copier = work->copier;

	if (copier->len + len > copier->size)
		return false;
	memcpy(copier->bytes + copier->len, work->record.bytes, len);
	copier->len += (len + 7) & ~(uint64_t)7; /* ranges begin at multiples of 8 */
	return true;
}

static uint64_t known_at(const struct work *work, uint32_t slot)
{
	return work->copier->known[slot];
}

#endif
