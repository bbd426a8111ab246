/* SPDX-License-Identifier: MIT */
/* How do we read a target's memory and registers, from any source? */
#ifndef ATTACH_READER_H
#define ATTACH_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/failure.h"

/* ---- Addresses -------------------------------------------------------------------------- */

/**
 * An address in the target's address space. The compiler rejects it in place of one of our own
 * pointers.
 */
struct remote_addr {
	uint64_t value;
};

/** Make a remote address from a number. */
static inline struct remote_addr remote_addr_make(uint64_t value)
{
	return (struct remote_addr){ .value = value };
}

/** The address @p offset bytes above @p base; wraps as the target's own arithmetic does. */
static inline struct remote_addr remote_addr_add(struct remote_addr base, int64_t offset)
{
	return (struct remote_addr){ .value = base.value + (uint64_t)offset };
}

/* ---- Registers -------------------------------------------------------------------------- */

/*
 * Registers that other modules name, by their DWARF numbers. ATTACH_REG_PC, ATTACH_REG_SP and
 * ATTACH_REG_COUNT exist on each architecture. AArch64's pc has no DWARF number, so we use the
 * number after sp.
 * Source: System V ABI, AMD64, figure 3.36; DWARF for the Arm 64-bit Architecture, section 4.1.
 */
#if defined(__x86_64__)
enum attach_register {
	ATTACH_REG_RAX = 0,
	ATTACH_REG_RDX = 1,
	ATTACH_REG_RCX = 2,
	ATTACH_REG_RBX = 3,
	ATTACH_REG_RSI = 4,
	ATTACH_REG_RDI = 5,
	ATTACH_REG_RBP = 6,
	ATTACH_REG_RSP = 7,
	ATTACH_REG_R14 = 14,
	ATTACH_REG_R15 = 15,
	ATTACH_REG_RIP = 16,
	ATTACH_REG_COUNT = 17,
	ATTACH_REG_SP = ATTACH_REG_RSP,
	ATTACH_REG_PC = ATTACH_REG_RIP,
};
#elif defined(__aarch64__)
enum attach_register {
	ATTACH_REG_X0 = 0,
	ATTACH_REG_X19 = 19,
	ATTACH_REG_X20 = 20,
	ATTACH_REG_X21 = 21,
	ATTACH_REG_X22 = 22,
	ATTACH_REG_FP = 29,
	ATTACH_REG_LR = 30,
	ATTACH_REG_SP = 31,
	ATTACH_REG_PC = 32,
	ATTACH_REG_COUNT = 33,
};
#else
#error "ljprof runs on x86-64 and AArch64"
#endif

/** General registers of a stopped thread or of a frame, indexed by DWARF number. */
struct attach_registers {
	uint64_t r[ATTACH_REG_COUNT];
	int64_t syscall; /**< Number of the system call that the thread is in, or -1. Always -1 on
			    AArch64, whose kernel forgets the number before the thread stops. */
};

static inline uint64_t attach_pc(const struct attach_registers *regs)
{
	return regs->r[ATTACH_REG_PC];
}

static inline uint64_t attach_sp(const struct attach_registers *regs)
{
	return regs->r[ATTACH_REG_SP];
}

/**
 * Decode registers from the block that the kernel writes into a core file and for PTRACE_GETREGSET.
 * @param why FAILURE_INVALID if @p len is not the size of this architecture's block.
 * Source: struct user_regs_struct of <sys/user.h>; core(5).
 */
int attach_decode_registers(const void *bytes, size_t len, struct attach_registers *ret_registers,
			    struct failure *why);

/* ---- Remote reader ---------------------------------------------------------------------- */

/**
 * A source of target memory: the live process, a recorded image, or an image backed by another
 * source.
 *
 * read() copies exactly @p len bytes. On failure @p ret_bytes is undefined and *why is
 * FAILURE_FAULT with the first unreadable address, or FAILURE_GONE.
 */
struct attach_reader {
	int (*read)(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		    struct failure *why);
	void *self;
};

static inline int attach_read(const struct attach_reader *reader, struct remote_addr address,
			      void *ret_bytes, size_t len, struct failure *why)
{
	return reader->read(reader->self, address, ret_bytes, len, why);
}

/**
 * Copy a NUL-terminated string of at most @p size - 1 bytes; a longer one is truncated.
 * @return 0, or -1 as attach_read().
 */
int attach_read_string(const struct attach_reader *reader, struct remote_addr address,
		       char *ret_text, size_t size, struct failure *why);

#endif
