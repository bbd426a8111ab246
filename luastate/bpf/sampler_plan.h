/* SPDX-License-Identifier: MIT */
/* What does the kernel copy of a thread? The BPF compiler reads this header too. */
#ifndef LUASTATE_BPF_SAMPLER_PLAN_H
#define LUASTATE_BPF_SAMPLER_PLAN_H

#include <stdint.h>

#include "attach/bpf_program.h"
#include "luastate/bpf/vm_layout.h"

enum {
	LUASTATE_BPF_VMS = 4,
	LUASTATE_BPF_STACKS = 120,
	/* VMs that may run compiled code on the thread's native stack. */
	LUASTATE_BPF_OTHERS = 128,
	/* The lower bits of an address hold a VM's index in the plan. */
	LUASTATE_BPF_VM_MASK = LUASTATE_BPF_VMS - 1,
	LUASTATE_BPF_EXTRAS = 24,
	/* Entries of the table of known prototypes, by a hash of their addresses. A power of 2. */
	LUASTATE_BPF_KNOWN = 8192,
};

/* What a copy by the kernel and a stop assume in the same way. */
enum {
	/* First guess of the native stack's bytes that hold the frames. */
	LUASTATE_NATIVE_FIRST = 16384,
	/* An interrupted frame, on another stack than its signal handler's, is at most this far
	 * below the newest C frame. Whole pages. */
	LUASTATE_OTHER_STACK_BELOW = 8192,
	/* Largest distance between two linked C frames of one native stack. */
	LUASTATE_FRAME_DISTANCE_MAX = 64 << 20,
	/* Without GC64, all objects are below this address, and tags and most numbers are above it.
	 */
	LUASTATE_LOW_MEMORY_END = 0x7fffffff,
};

/** A range of memory that earlier copies lacked. */
struct luastate_bpf_extra {
	uint64_t start;
	uint32_t size;
	uint32_t unused;
};

/** What is copied of one thread at each of its ticks. */
struct luastate_bpf_plan {
	struct attach_sampler_plan head; /**< First: the loader knows only this member. */
	uint64_t native_end;   /**< End of the copied part of the native stack; 0: unknown. */
	uint64_t native_limit; /**< First address above the native stack; 0: unknown. */
	uint64_t salt;	       /**< The process's salt for the table of known prototypes. */
	uint32_t stack_count, vm_count, extra_count, other_count;
	/** roams: not 0 if registers and the list of others may show a VM that is not in vms. */
	uint32_t roams, unused;
	struct luastate_bpf_vm vms[LUASTATE_BPF_VMS];
	/** Coroutines that each copy has. The lower bits hold the index of the coroutine's VM. */
	uint64_t stacks[LUASTATE_BPF_STACKS];
	/**
	 * Global states of VMs, copied only if they run compiled code on this thread's native
	 * stack. The lower bits hold the index of a VM with the same layout.
	 */
	uint64_t others[LUASTATE_BPF_OTHERS];
	struct luastate_bpf_extra extras[LUASTATE_BPF_EXTRAS];
};

/**
 * The key of a known prototype in the table. Another prototype at the same address most likely has
 * another key.
 * @param name_hash Hash of its chunk's name, as LuaJIT has it.
 * @param bytes, line Size and first line, as its header has them.
 */
static inline uint64_t luastate_bpf_known_key(uint64_t salt, uint64_t proto, uint32_t name_hash,
					      uint32_t bytes, uint32_t line)
{
	return (proto ^ salt) + name_hash * 0x9e3779b97f4a7c15 +
	       (((uint64_t)bytes << 32) + line) * 0xd6e8feb86659fd93;
}

/**
 * The index of a prototype in the table. The salt keeps forked processes apart, because they have
 * the prototype at the same address.
 */
static inline uint32_t luastate_bpf_known_slot(uint64_t salt, uint64_t proto)
{
	return (uint32_t)((proto ^ salt) * 0x9e3779b97f4a7c15 >> 40) % LUASTATE_BPF_KNOWN;
}

#endif
