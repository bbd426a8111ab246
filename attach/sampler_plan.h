/* SPDX-License-Identifier: MIT */
/*
 * What the kernel copies of a thread, and the form of its copies. Seen by the compiler for
 * the kernel's machine too: fixed types alone.
 */
#ifndef ATTACH_SAMPLER_PLAN_H
#define ATTACH_SAMPLER_PLAN_H

#include <stdint.h>

enum {
	ATTACH_SAMPLER_VMS = 4,
	ATTACH_SAMPLER_STACKS = 120,
	/* VMs that may run compiled code below what the thread is in. */
	ATTACH_SAMPLER_OTHERS = 128,
	/* A VM's index in the plan is kept in the lower bits of an address. */
	ATTACH_SAMPLER_VM_MASK = ATTACH_SAMPLER_VMS - 1,
	ATTACH_SAMPLER_EXTRAS = 24,
	/* A table of prototypes that need not be copied whole: by a hash of their addresses. A
	 * power of 2. */
	ATTACH_SAMPLER_KNOWN = 8192,
	/* Threads at a time. */
	ATTACH_SAMPLER_THREADS_LOG2 = 10,
	ATTACH_SAMPLER_THREADS = 1 << ATTACH_SAMPLER_THREADS_LOG2,
};

/** Where the parts of one VM's state lie; offsets and sizes in bytes. */
struct attach_sampler_vm {
	uint64_t G;	     /**< Its global state. */
	uint64_t code_start; /**< Of its interpreter. */
	uint64_t code_end;
	uint64_t register_offset; /**< From G to what VM code has in its register for it. */
	uint32_t global_size;	  /**< Copied from G on. */
	uint32_t ref_size;	  /**< Of a reference: 4 or 8. */
	/* From G on. */
	uint32_t current, state, compiled_base, traces, trace_count, parent;
	uint32_t parent_size; /**< Copied from parent on. */
	int32_t state_exit;   /**< While a trace is left, whose number is parent's. */
	uint32_t trace_size;  /**< Of a trace's header. */
	/* Of a VM that is not in the plan so much is copied from G on; and the registry's table. */
	uint32_t whole_size, registry, table_size;
	/* In a coroutine. */
	uint32_t thread_size, global, stack, base, limit, vm_frame;
	uint32_t thread_type; /**< A byte that is always thread_type_value. */
	uint32_t thread_type_value;
	/* In a C frame of the interpreter. */
	uint32_t frame_thread, frame_previous;
	/** From the place of a return address up to its frame; on AArch64 from a frame pointer down
	 * to its frame. */
	uint32_t frame_distance;
	uint32_t function_size; /**< Copied of a function. */
	int32_t function_tag;	/**< Of 64-bit slots, in the upper 17 bits; 0: slots have none. */
	/* In a function: where its code begins, and a byte that is 0 if it has a prototype, which
	 * then lies in front of the code. */
	uint32_t function_code, function_kind;
	uint32_t proto_size;	  /**< Of a prototype's header. */
	uint32_t proto_bytes;	  /**< In it: the size of the whole. */
	uint32_t proto_name;	  /**< In it: its chunk's name. */
	uint32_t proto_lines;	  /**< In it: where its lines are, which reach to its end. */
	uint32_t lines_size;	  /**< Of which so much is compared. */
	uint32_t proto_line;	  /**< In it: its first line. */
	uint32_t proto_constants; /**< In it: where references to objects end. */
	uint32_t proto_constant_count;
	uint32_t string_size; /**< Of a string's header. */
	uint32_t string_hash; /**< In it. */
};

/** Memory that copies lacked so far. */
struct attach_sampler_extra {
	uint64_t start;
	uint32_t size;
	uint32_t unused;
};

/**
 * What is copied of one thread at each of its ticks. The kernel's side may read it while it is
 * written: what it copies then is of no use, but harmless.
 */
struct attach_sampler_plan {
	uint64_t cookie;       /**< That of the thread whose plan it is. */
	uint64_t native_end;   /**< Of the native stack's part that is copied; 0: a first guess. */
	uint64_t native_limit; /**< First address behind the native stack; 0: unknown. */
	uint64_t rest_ns;      /**< Nothing is copied before this time. */
	uint64_t salt;	       /**< Of the process, for the table of prototypes. */
	/** Of the timer, if that is less than what lies between two copies; 0: each of its ticks is
	 * one of ours. */
	uint64_t tick_ns;
	uint64_t period_ns; /**< Between two copies, with tick_ns. */
	uint64_t budget_ns; /**< A copy that takes longer ends there, and is cut. */
	uint32_t stack_count, vm_count, extra_count, other_count;
	/** Not 0: it may be in a VM that is not in the plan, as its registers and others tell. */
	uint32_t roams, unused;
	/* Written by the kernel's side: ticks at which it rested, those for which there was no
	 * room, and with tick_ns what has passed since the last copy. */
	uint64_t skipped, lost, passed_ns;
	struct attach_sampler_vm vms[ATTACH_SAMPLER_VMS];
	/** Coroutines that are copied in any case, each with the index of its VM in its lower bits.
	 */
	uint64_t stacks[ATTACH_SAMPLER_STACKS];
	/** Global states of VMs that are copied where they run compiled code on this thread's
	 * native stack, each with the index of a VM like it in its lower bits. */
	uint64_t others[ATTACH_SAMPLER_OTHERS];
	struct attach_sampler_extra extras[ATTACH_SAMPLER_EXTRAS];
};

/**
 * What stands for a prototype in the table of those that are known: another one at the same address
 * has another key, most likely.
 * @param name_hash Of its chunk's name. @param bytes, line As it says itself.
 */
static inline uint64_t attach_sampler_known_key(uint64_t salt, uint64_t proto, uint32_t name_hash,
						uint32_t bytes, uint32_t line)
{
	return (proto ^ salt) + name_hash * 0x9e3779b97f4a7c15 +
	       (((uint64_t)bytes << 32) + line) * 0xd6e8feb86659fd93;
}

/** The place of a prototype in the table: processes that were forked have it at the same address.
 */
static inline uint32_t attach_sampler_known_slot(uint64_t salt, uint64_t proto)
{
	return (uint32_t)((proto ^ salt) * 0x9e3779b97f4a7c15 >> 40) % ATTACH_SAMPLER_KNOWN;
}

#endif
