/* SPDX-License-Identifier: MIT */
/* How does the sampler's BPF program put a record together from copied ranges? */
#ifndef LUASTATE_BPF_COPY_BPF_H
#define LUASTATE_BPF_COPY_BPF_H

#include <stdbool.h>

#include "luastate/bpf/sampler_plan.h"

enum {
	SEEN_TRIED = 4,
	NEW_VMS = 2,   /* unknown VMs in one copy */
	OTHER_VMS = 8, /* VMs in one copy from the plan's list of others */
	FUNCTIONS = 8, /* last copied functions, which are not copied again; a power of 2 */
	PAGE = 4096,
	POINTER_MIN = 4096,
	/* The number of reads bounds the time of a copy. The size of a record does not: some reads
	 * only inspect memory, and failed reads, which take many times as long, add no bytes. A
	 * record that is full of functions needs a quarter of READS. */
	FAILED_READS = 64,
	PIECE_READS = 32, /* time of one read of a whole piece, in reads */
	/* A record beyond this size is handed over, and the next part begins. */
	PART_BYTES = ATTACH_SAMPLER_BYTES / 2,
};

/* What a stop may copy where the kernel may not. */
enum {
#if defined(__bpf__)
	STACKS = 128, /* coroutines in one copy */
	SEEN = 256,   /* entries of the hash table of coroutines, a power of 2 */
	READS = 16384,
	LARGE_MAX = 1 << 20,   /* one range */
	NATIVE_MIDDLE = 32768, /* copy_deep_native() copies what is deeper */
	NATIVE_WORDS = 2048,   /* searched for the interpreter's C frames */
	STACK_TOP = 8192,      /* the stack's end, which is searched for functions */
	STACK_SLOTS = 512,     /* searched for functions in one stack */
	RECORD_SLOTS = 2048,   /* searched in all stacks of one copy */
#else
	STACKS = 256,
	SEEN = 1024,
	READS = 65536,
	LARGE_MAX = 4 << 20,
	NATIVE_MIDDLE = 3 * ATTACH_SAMPLER_PIECE,
	NATIVE_WORDS = NATIVE_MIDDLE / 8,
	STACK_TOP = 16384,
	STACK_SLOTS = 2048,
	RECORD_SLOTS = 16384,
#endif
};

/** The end of user space. */
#if defined(__TARGET_ARCH_x86)
#define POINTER_END ((uint64_t)1 << 47)
#else
#define POINTER_END ((uint64_t)1 << 48)
#endif

/**
 * Force the compiler to use the bounded value itself: it might otherwise recompute the value, and
 * the verifier would not know its bound.
 */
#define hold(value) __asm__ volatile("" : "+r"(value))

/** A coroutine to copy. */
struct stack {
	uint64_t L, G;
	uint32_t vm, unused;
};

/** A coroutine, and the time of the copy that added it. */
struct seen {
	uint64_t L, time_ns;
};

/** The end of the stack that was copied last, where its newest frames are. */
struct top {
	uint64_t start, used_end; /* used_end 0: could not be copied */
	uint64_t base;		  /* L->base, at or below used_end */
	uint64_t offset;	  /* of its bytes in the record */
};

/** A processor's work space for a record. */
struct work {
	struct attach_sampler_record record;
	struct stack stacks[STACKS];
	struct seen seen[SEEN];		/* by a hash of L */
	uint32_t has_more_seen, unused; /* some coroutine found no entry in seen */
	struct top top;
	uint32_t stack_count, native_offset, native_len, new_count, other_count, is_lost;
	uint64_t new_vms[NEW_VMS], other_vms[OTHER_VMS];
	uint32_t has_range, last_range;
	uint64_t native_start, native_end, last_name;
	uint32_t slots_left, function_count, reads_left;
	uint64_t end_ns;	       /* the copy ends at this time */
	uint64_t current_G, current_L; /* the last VM that current_of() read, and its coroutine */
	uint64_t functions[FUNCTIONS];
#if !defined(__bpf__)
	struct luastate_copier *copier;
#endif
};

/* What the rules below call: how user memory is read, and where records go. */
#if defined(__bpf__)
#include "luastate/bpf/kernel.bpf.h"
#else
#include "luastate/bpf/native.h"
#endif

static bool is_pointer(uint64_t value)
{
	return value >= POINTER_MIN && value < POINTER_END;
}

static void spend(struct work *work, uint32_t reads)
{
	work->reads_left = work->reads_left > reads ? work->reads_left - reads : 0;
}

/* End the copy if its time is over. Long steps call this between reads. */
static void look_at_clock(struct work *work)
{
	if (now_ns() < work->end_ns)
		return;
	work->reads_left = 0;
	work->record.is_late = 1;
}

/* All reads of user memory are made and counted here. @return false if some bytes are not present,
 * or no reads are left. */
static bool read_user(struct work *work, void *target, uint32_t len, uint64_t address)
{
	if (!work->reads_left)
		return false;
	spend(work, 1);
	if (read_present(work, target, len, address))
		return true;
	spend(work, FAILED_READS);
	return false;
}

/* @return 0 if the word is not present. */
static uint64_t read_word(struct work *work, uint64_t address, uint32_t size)
{
	uint64_t word = 0;

	if (size == 4)
		read_user(work, &word, 4, address);
	else
		read_user(work, &word, 8, address);
	return word;
}

/* Copy at most a piece with one read. @return whether all of it is present. */
SUBPROGRAM int copy_piece(struct work *work, uint64_t start, uint64_t len)
{
	struct attach_sampler_record *record;
	struct attach_sampler_range *range;
	uint64_t at, last;

	if (!work)
		return 0;
	record = &work->record;
	at = record->len;
	last = work->last_range;
	hold(at);
	hold(last);
	if (at >= ATTACH_SAMPLER_BYTES || last >= ATTACH_SAMPLER_BYTES ||
	    len > ATTACH_SAMPLER_PIECE || !is_pointer(start))
		return 0;
	hold(len);
	if (len == 0)
		return 0;
	range = (struct attach_sampler_range *)(record->bytes + (last & ~(uint64_t)7));
	/* Bytes that continue the last range extend it. */
	if (work->has_range && range->start + range->len == start &&
	    last + sizeof(*range) + range->len == at) {
		if (!read_user(work, record->bytes + at, len, start))
			return 0;
		range->len += len;
		record->len = at + len;
		return 1;
	}
	range = (struct attach_sampler_range *)(record->bytes + (at & ~(uint64_t)7));
	if (!read_user(work, range + 1, len, start))
		return 0;
	range->start = start;
	range->len = len;
	range->unused = 0;
	work->has_range = 1;
	work->last_range = at;
	record->len = at + sizeof(*range) + len;
	return 1;
}

/* Ranges begin at multiples of 8. */
static void align(struct work *work)
{
	work->record.len = (work->record.len + 7) & ~7u;
}

/* Copy the present part of a range: in pieces, and page by page from the first piece that is not
 * wholly present. */
SUBPROGRAM int copy(struct work *work, uint64_t start, uint64_t size)
{
	uint64_t left = size;

	if (!work)
		return 0;
	align(work);
	work->has_range = 0; /* the copy starts with a head of its own */
	for (int i = 0; i < 4 && left; i++) {
		uint32_t part = left < ATTACH_SAMPLER_PIECE ? (uint32_t)left : ATTACH_SAMPLER_PIECE;

		if (!copy_piece(work, start, part))
			break;
		start += part;
		left -= part;
	}
	for (int i = 0; i < 2 * ATTACH_SAMPLER_PIECE / PAGE && left; i++) {
		uint32_t part = PAGE - (start & (PAGE - 1));

		if (left < part)
			part = (uint32_t)left;
		if (!copy_piece(work, start, part))
			break;
		start += part;
		left -= part;
	}
	return left == 0;
}

/* How many bytes of the record's ranges there are. */
static uint64_t record_len(const struct work *work)
{
	uint64_t len = work->record.len;

	hold(len);
	return len < sizeof(work->record.bytes) ? len : sizeof(work->record.bytes);
}

/* Hand over the record so far, and start another part. Offsets into the record become invalid. */
SUBPROGRAM int flush(struct work *work)
{
	uint64_t len;

	if (!work || work->record.part >= ATTACH_SAMPLER_PARTS - 1)
		return 0;
	len = record_len(work);
	work->record.has_more = 1;
	if (!hand_over(work, len)) {
		work->is_lost = 1;
		work->reads_left = 0;
	}
	work->record.has_more = 0;
	work->record.part++;
	work->record.len = work->has_range = work->last_range = 0;
	return 1;
}

/** A range that may need several parts. */
struct large {
	struct work *work;
	uint64_t start, left;
	uint32_t step;
};

static long copy_step(uint32_t i, void *context)
{
	struct large *large = context;
	struct work *work = large->work;
	uint64_t part = large->step;

	(void)i;
	if (!large->left)
		return 1;
	if (work->record.len > ATTACH_SAMPLER_BYTES - ATTACH_SAMPLER_PIECE)
		flush(work);
	if (part == PAGE)
		part -= large->start & (PAGE - 1);
	if (part > large->left)
		part = large->left;
	spend(work, PIECE_READS);
	look_at_clock(work);
	if (!copy_piece(work, large->start, part))
		return 1;
	large->start += part;
	large->left -= part;
	return 0;
}

/* Copy the present part of a range of up to 1 MiB. @return whether all of it is present. */
SUBPROGRAM int copy_large(struct work *work, uint64_t start, uint64_t size)
{
	struct large large = {
		.work = work, .start = start, .left = size, .step = ATTACH_SAMPLER_PIECE
	};

	if (!work)
		return 0;
	align(work);
	work->has_range = 0;
	repeat(LARGE_MAX / ATTACH_SAMPLER_PIECE, copy_step, &large);
	/* Copy the pages of the first piece that is not wholly present. */
	large.step = PAGE;
	repeat(ATTACH_SAMPLER_PIECE / PAGE + 1, copy_step, &large);
	return large.left == 0;
}

static uint64_t copied_word(const struct work *work, uint64_t at)
{
	hold(at);
	if (at >= ATTACH_SAMPLER_BYTES)
		return 0;
	return *(const uint64_t *)(work->record.bytes + (at & (ATTACH_SAMPLER_BYTES - 8)));
}

/* A field of copied bytes; saves a second read. */
static uint64_t copied_field(const struct work *work, uint64_t at, uint32_t size)
{
	hold(at);
	if (at >= ATTACH_SAMPLER_BYTES + ATTACH_SAMPLER_PIECE - 8)
		return 0;
	if (size == 4)
		return *(const uint32_t *)(work->record.bytes + (at & ~(uint64_t)3));
	return *(const uint64_t *)(work->record.bytes + (at & ~(uint64_t)7));
}

static uint8_t copied_byte(const struct work *work, uint64_t at)
{
	hold(at);
	return at < ATTACH_SAMPLER_BYTES + ATTACH_SAMPLER_PIECE ? work->record.bytes[at] : 0;
}

/** A walk over copied words. */
struct scan {
	struct work *work;
	const struct luastate_bpf_plan *plan;
	const struct luastate_bpf_vm *vm;
	uint64_t start;		/* address of the first word in the thread */
	uint32_t offset, count; /* offset in the record, number of words */
	uint32_t index;		/* of the VM */
};

#endif
