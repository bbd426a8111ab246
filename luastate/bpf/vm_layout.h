/* SPDX-License-Identifier: MIT */
/* Where do the parts of a VM lie? Seen by the compiler for the kernel's machine too. */
#ifndef LUASTATE_BPF_VM_LAYOUT_H
#define LUASTATE_BPF_VM_LAYOUT_H

#include <stdint.h>

/** Where the parts of one VM's state lie; offsets and sizes in bytes. */
struct luastate_bpf_vm {
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

#endif
