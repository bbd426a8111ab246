/* SPDX-License-Identifier: MIT */
/*
 * What a few instructions tell about frames: calls, and functions that set up a frame pointer.
 * One implementation for each architecture.
 */
#ifndef SYMBOLS_NAMES_INSN_H
#define SYMBOLS_NAMES_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/reader.h"

/** Bytes before a return address that hold any form of call. */
#define SYMBOLS_CODE_CALL_BYTES 8
/** Bytes of a function's beginning in which it sets up its frame pointer, if it does. */
#define SYMBOLS_CODE_BEGIN_BYTES 64

/**
 * A return address without the signature that AArch64 may put into its upper bits.
 * Source: Arm Architecture Reference Manual, D8.8 "Pointer authentication"; addresses of user space
 * have 48 bits, but where a program asks for more.
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
	uint64_t target; /**< Where it is direct. */
};

/** Decode the call that ends at @p address. @param bytes The SYMBOLS_CODE_CALL_BYTES before it.
 *  @return false if there is none. */
bool symbols_code_call(const uint8_t *bytes, uint64_t address, struct symbols_code_call *ret_call);

/** Whether the instruction that ends where the SYMBOLS_CODE_CALL_BYTES do is a return or a jump by
 * a register: what follows it is reached from elsewhere only. */
bool symbols_code_never_goes_on(const uint8_t *bytes);

/** How a function begins; offsets from its start. */
struct symbols_code_begin {
	size_t saved;	    /**< Behind the instruction that saves the caller's frame pointer. */
	size_t ready;	    /**< Behind the one that sets its own: from here on it is valid. */
	uint64_t caller_sp; /**< Distance from the frame pointer to the caller's stack pointer; 0
				 where the instructions do not tell. */
};

/** Look for the instructions that set up a frame pointer. @return false if there are none. */
bool symbols_code_begin(const uint8_t *bytes, size_t len, struct symbols_code_begin *ret_begin);

/**
 * Distance from the stack pointer to the frame pointer in a function whose first instructions set
 * up a frame of fixed size. While both have that distance, the function has called nothing that has
 * not returned, so the frame is that of the code that runs.
 * @return false where the function begins in another way.
 */
bool symbols_code_frame_size(const uint8_t *bytes, size_t len, uint64_t *ret_size);

/** By how many bytes the first instructions of a function lower the stack pointer, one after the
 *  other. Only for AArch64: on x86-64 always 0. */
uint64_t symbols_code_lowers_sp(const uint8_t *bytes, size_t len);

/** Longest function that is looked at as a whole. */
#define SYMBOLS_CODE_LEAF_BYTES 4096

/**
 * Whether a whole function leaves alone what its caller needs: it moves no stack pointer and calls
 * nothing, so that the return address is in a register all the time. Never on x86-64.
 */
bool symbols_code_is_leaf(const uint8_t *bytes, size_t len);

/** Whether a return instruction is at @p bytes. */
bool symbols_code_is_return(const uint8_t *bytes, size_t len);

/** A stub that jumps to where a word in memory says, as in a PLT. */
struct symbols_code_stub {
	bool has_index;
	uint32_t index; /**< Of the relocation, where the stub pushes that for the loader. */
	uint64_t slot;	/**< Else the address of the word. */
};

/** Decode the stub at @p address, whose bytes these are. @return false if it is none. */
bool symbols_code_stub(const uint8_t *bytes, size_t len, uint64_t address,
		       struct symbols_code_stub *ret_stub);

#endif
