/* SPDX-License-Identifier: MIT */
/* At which offsets are the parts of a VM? The BPF compiler reads this header too. */
#ifndef LUASTATE_BPF_VM_LAYOUT_H
#define LUASTATE_BPF_VM_LAYOUT_H

#include <stdint.h>

/** The offsets of one VM's parts; offsets and sizes in bytes. */
struct luastate_bpf_vm {
	uint64_t G;	     /**< Address of the global state. */
	uint64_t code_start; /**< The interpreter's code, up to code_end. */
	uint64_t code_end;
	uint64_t register_offset; /**< From G to the value in VM code's register. */
	uint32_t global_size;	  /**< Bytes to copy from G on. */
	uint32_t ref_size;	  /**< Size of a reference: 4 or 8. */
	/* Offsets from G. */
	uint32_t current, state, compiled_base, traces, trace_count, parent;
	uint32_t parent_size; /**< Bytes to copy from parent on. */
	int32_t state_exit;   /**< VM state in an exit of trace number parent. */
	uint32_t trace_size;  /**< Size of a trace's header; 0: no traces. */
	/* For a VM that is not in the plan: bytes to copy from G on, the offset of the registry,
	 * and the size of its table. */
	uint32_t whole_size, registry, table_size;
	/* Size of a coroutine, and offsets in it. */
	uint32_t thread_size, global, stack, base, limit, vm_frame;
	uint32_t thread_type; /**< Offset of a byte that is always thread_type_value. */
	uint32_t thread_type_value;
	/* Offsets in a C frame of the interpreter. */
	uint32_t frame_thread, frame_previous;
	/**
	 * On x86-64 the distance from a return address's slot up to its frame; on AArch64 the
	 * distance from a frame pointer down to its frame.
	 */
	uint32_t frame_distance;
	uint32_t function_size; /**< Bytes to copy of a function. */
	int32_t function_tag;	/**< In a 64-bit slot's upper 17 bits; 0: no tags. */
	/* Offsets in a function: its bytecode's address, and a byte that is 0 if the function has a
	 * prototype. The prototype is right below the bytecode. */
	uint32_t function_code, function_kind;
	uint32_t proto_size;	  /**< Size of a prototype's header; 0: do not copy prototypes. */
	uint32_t proto_bytes;	  /**< Offset in it of its whole size. */
	uint32_t proto_name;	  /**< Offset in it of its chunk's name. */
	uint32_t proto_lines;	  /**< Offset of its lines' address; they reach to its end. */
	uint32_t lines_size;	  /**< Bytes of the line numbers that are compared. */
	uint32_t proto_line;	  /**< Offset in it of its first line. */
	uint32_t proto_constants; /**< Offset of the end of its references to objects. */
	uint32_t proto_constant_count;
	uint32_t string_size; /**< Size of a string's header. */
	uint32_t string_hash; /**< Offset in it of the hash. */
};

#endif
