/* SPDX-License-Identifier: MIT */
/* What the sampler's BPF program hands over. Seen by the compiler for the
 * kernel's machine too. */
#ifndef ATTACH_BPF_PROGRAM_H
#define ATTACH_BPF_PROGRAM_H

#include "attach/sampler_plan.h"

enum {
	/* Powers of 2. */
	SAMPLER_BYTES = 65536,
	SAMPLER_PIECE = 16384,
	/* Records of one thread at one tick: room for the deepest Lua stack, and 1 MiB of native
	 * stack. */
	SAMPLER_PARTS = 32,
#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)
	SAMPLER_REGISTERS = 21,
#else
	SAMPLER_REGISTERS = 34,
#endif
};

/** In front of the bytes of a range, which end with padding to a multiple of 8. */
struct sampler_range {
	uint64_t start;
	uint32_t len;
	uint32_t unused;
};

/** One thread at one tick, or a part of that; of the bytes only the first len are handed over: one
 *  range behind the other. Parts of others may come in between, but not of the same processor. */
struct sampler_record {
	uint64_t cookie;
	uint64_t time_ns, took_ns;	       /* CLOCK_MONOTONIC */
	uint64_t lost;			       /* as the plan has it at this tick */
	uint64_t registers[SAMPLER_REGISTERS]; /* as the kernel keeps them: struct pt_regs */
	uint32_t len;
	uint16_t is_truncated; /* as there are bounds, it may lack the end of a stack, a coroutine
				* or a function */
	uint16_t is_late;      /* the same, as its time was over */
	uint32_t processor;
	uint16_t part;	   /* from 0 on */
	uint16_t has_more; /* another part follows, with what this one does not tell yet */
	/* Those behind SAMPLER_BYTES are slack for the last range. */
	uint8_t bytes[SAMPLER_BYTES + sizeof(struct sampler_range) + SAMPLER_PIECE];
};

#endif
