/* SPDX-License-Identifier: MIT */
/* An address in a target, which cannot be taken for a pointer of ours. */
#ifndef ATTACH_REMOTE_ADDR_H
#define ATTACH_REMOTE_ADDR_H

#include <stdint.h>

/**
 * An address in the target's address space.
 *
 * A type of its own, so that the compiler rejects its use as one of our pointers.
 */
struct remote_addr {
	uint64_t value;
};

/** Make a remote address from a number. */
static inline struct remote_addr remote_addr_make(uint64_t value)
{
	return (struct remote_addr){ .value = value };
}

/** The address @p offset bytes above @p base; wraps like the target's own arithmetic. */
static inline struct remote_addr remote_addr_add(struct remote_addr base, int64_t offset)
{
	return (struct remote_addr){ .value = base.value + (uint64_t)offset };
}

#endif
