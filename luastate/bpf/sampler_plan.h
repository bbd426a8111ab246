/* SPDX-License-Identifier: MIT */
/* What does the kernel copy of a thread? Seen by the compiler for the kernel's machine too. */
#ifndef LUASTATE_BPF_SAMPLER_PLAN_H
#define LUASTATE_BPF_SAMPLER_PLAN_H

#include <stdint.h>

#include "attach/bpf_program.h"
#include "luastate/bpf/vm_layout.h"

enum {
	LUASTATE_BPF_VMS = 4,
	LUASTATE_BPF_STACKS = 120,
	/* VMs that may run compiled code below what the thread is in. */
	LUASTATE_BPF_OTHERS = 128,
	/* A VM's index in the plan is kept in the lower bits of an address. */
	LUASTATE_BPF_VM_MASK = LUASTATE_BPF_VMS - 1,
	LUASTATE_BPF_EXTRAS = 24,
	/* A table of prototypes that need not be copied whole: by a hash of their addresses. A
	 * power of 2. */
	LUASTATE_BPF_KNOWN = 8192,
};

/** Memory that copies lacked so far. */
struct luastate_bpf_extra {
	uint64_t start;
	uint32_t size;
	uint32_t unused;
};

/** What is copied of one thread at each of its ticks. */
struct luastate_bpf_plan {
	struct attach_sampler_plan head; /**< First: the loader knows no more of it. */
	uint64_t native_end;   /**< Of the native stack's part that is copied; 0: a first guess. */
	uint64_t native_limit; /**< First address behind the native stack; 0: unknown. */
	uint64_t salt;	       /**< Of the process, for the table of prototypes. */
	uint32_t stack_count, vm_count, extra_count, other_count;
	/** Not 0: it may be in a VM that is not in the plan, as its registers and others tell. */
	uint32_t roams, unused;
	struct luastate_bpf_vm vms[LUASTATE_BPF_VMS];
	/** Coroutines that are copied in any case, each with the index of its VM in its lower bits.
	 */
	uint64_t stacks[LUASTATE_BPF_STACKS];
	/** Global states of VMs that are copied where they run compiled code on this thread's
	 * native stack, each with the index of a VM like it in its lower bits. */
	uint64_t others[LUASTATE_BPF_OTHERS];
	struct luastate_bpf_extra extras[LUASTATE_BPF_EXTRAS];
};

/**
 * What stands for a prototype in the table of those that are known: another one at the same address
 * has another key, most likely.
 * @param name_hash Of its chunk's name. @param bytes, line As it says itself.
 */
static inline uint64_t luastate_bpf_known_key(uint64_t salt, uint64_t proto, uint32_t name_hash,
					      uint32_t bytes, uint32_t line)
{
	return (proto ^ salt) + name_hash * 0x9e3779b97f4a7c15 +
	       (((uint64_t)bytes << 32) + line) * 0xd6e8feb86659fd93;
}

/** The place of a prototype in the table: processes that were forked have it at the same address.
 */
static inline uint32_t luastate_bpf_known_slot(uint64_t salt, uint64_t proto)
{
	return (uint32_t)((proto ^ salt) * 0x9e3779b97f4a7c15 >> 40) % LUASTATE_BPF_KNOWN;
}

#endif
