/* SPDX-License-Identifier: MIT */
/*
 * What do a few instructions say about frames: calls, and functions that set up a frame pointer?
 *
 * Each architecture has its own implementation.
 */
#ifndef SYMBOLS_NAMES_INSN_H
#define SYMBOLS_NAMES_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/reader.h"

/** Bytes before a return address that hold any form of call. */
#define SYMBOLS_CODE_CALL_BYTES 8
/** Bytes at a function's beginning in which it sets up its frame pointer, if at all. */
#define SYMBOLS_CODE_BEGIN_BYTES 64

/**
 * A return address without the signature that AArch64 may put into its upper bits.
 * Source: Arm Architecture Reference Manual, D8.8 "Pointer authentication"; user addresses have 48
 * bits, unless a program asks for more.
 */
static inline uint64_t symbols_code_address(uint64_t signed_address)
{
#if defined(__aarch64__)
	return signed_address & (((uint64_t)1 << 48) - 1);
#else
	return signed_address;
#endif
}

/** A call instruction. */
struct symbols_code_call {
	bool is_direct;
	uint64_t target; /**< Set if the call is direct. */
};

/**
 * Decode the call that ends at @p address.
 * @param bytes The SYMBOLS_CODE_CALL_BYTES before @p address.
 * @return false if there is none.
 */
bool symbols_code_call(const uint8_t *bytes, uint64_t address, struct symbols_code_call *ret_call);

/** Whether a return or a jump by a register ends at the end of the SYMBOLS_CODE_CALL_BYTES. Then
 *  only a jump from elsewhere reaches the next instruction. */
bool symbols_code_never_goes_on(const uint8_t *bytes);

/** How a function begins; offsets from its start. */
struct symbols_code_begin {
	size_t saved; /**< After the instruction that saves the caller's frame pointer. */
	size_t ready; /**< After the instruction that sets its own; from here on it is valid. */
	uint64_t caller_sp; /**< Distance from the frame pointer to the caller's stack pointer; 0:
			       the instructions do not show it. */
};

/**
 * Find the instructions that set up a frame pointer.
 * @return false if there are none.
 */
bool symbols_code_begin(const uint8_t *bytes, size_t len, struct symbols_code_begin *ret_begin);

/**
 * Distance from the stack pointer to the frame pointer in a function whose first instructions set
 * up a frame of fixed size. While the two registers have this distance, each call of the function
 * has returned, so the frame belongs to the code that runs.
 * @return false if the function begins otherwise.
 */
bool symbols_code_frame_size(const uint8_t *bytes, size_t len, uint64_t *ret_size);

/**
 * By how many bytes the first instructions of a function lower the stack pointer, up to @p len. For
 * AArch64; always 0 on x86-64.
 */
uint64_t symbols_code_lowers_sp(const uint8_t *bytes, size_t len);

/** Longest function that we read as a whole. */
#define SYMBOLS_CODE_LEAF_BYTES 4096

/**
 * Whether a function changes no register that its caller needs. It does not move the stack pointer
 * and calls nothing, so the return address is always in a register. Always false on x86-64.
 */
bool symbols_code_is_leaf(const uint8_t *bytes, size_t len);

/** Whether a return instruction is at @p bytes. */
bool symbols_code_is_return(const uint8_t *bytes, size_t len);

/** A stub that jumps to the address in a memory word, as in a PLT. */
struct symbols_code_stub {
	bool has_index;
	uint32_t index; /**< Index of the relocation, if the stub pushes it for the loader. */
	uint64_t slot;	/**< Otherwise the address of the word. */
};

/**
 * Decode the stub with these bytes at @p address.
 * @return false if it is not a stub.
 */
bool symbols_code_stub(const uint8_t *bytes, size_t len, uint64_t address,
		       struct symbols_code_stub *ret_stub);

#endif
