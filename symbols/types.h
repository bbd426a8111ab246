/* SPDX-License-Identifier: MIT */
/* At which offsets are the members of a program's structures, by its debug information? */
#ifndef SYMBOLS_TYPES_H
#define SYMBOLS_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/space.h"

/** Structures of one mapped program or library, from its DWARF. */
struct symbols_types;

/**
 * List the types of the object mapped at @p address.
 *
 * We read DWARF from the file itself or from its debug file. We search the debug file by build-id
 * in the folders of the environment variable LJPROF_DEBUG_DIR (separated by colons, each holds
 * .build-id/xx/yyyy.debug) and in /usr/lib/debug, then by .gnu_debuglink. We find DWARF that
 * several debug files share (.gnu_debugaltlink) by build-id, or by its path if that is absolute.
 * The DWARF stays in memory, at most 64 MiB, until the types are destroyed. Listing and all answers
 * take at most 2 s of processor time; beyond this they fail.
 * @param anchor Name of a structure. We read only compile units that define it, because other units
 *        may use the same names for other structures. Borrowed during the call.
 * @param ret_types Set on success; independent of the space.
 * @param why FAILURE_NOT_FOUND (no DWARF, or no unit with the anchor), FAILURE_LIMIT (also if the
 *        listing takes too long), FAILURE_INVALID, FAILURE_NO_MEMORY.
 * Source: DWARF 5, chapters 5 and 7.
 */
int symbols_types_create(struct symbols_space *space, uint64_t address, const char *anchor,
			 struct symbols_types **ret_types, struct failure *why);
void symbols_types_destroy(struct symbols_types *types);

/** Whether an answer ran out of time. Something that it did not find may then exist. */
bool symbols_types_are_late(const struct symbols_types *types);

/**
 * Find the offset of a member in a structure or union, named by its tag or a typedef.
 * @param path Member, or nested members with dots ("gc.total"). Members of unnamed structures and
 *        unions count as members of the structure around them.
 * @param ret_offset,ret_size In bytes; the size of a flexible array member is 0.
 * @param why FAILURE_NOT_FOUND; FAILURE_INVALID for a bit field and if units differ; FAILURE_LIMIT.
 */
int symbols_types_find_member(struct symbols_types *types, const char *structure, const char *path,
			      uint64_t *ret_offset, uint64_t *ret_size, struct failure *why);

/** Find the size of a structure or union, in bytes. Errors as symbols_types_find_member(). */
int symbols_types_find_size(struct symbols_types *types, const char *structure, uint64_t *ret_size,
			    struct failure *why);

/** Find the value of a constant of any enumeration. Errors as symbols_types_find_member(). */
int symbols_types_find_enumerator(struct symbols_types *types, const char *name, int64_t *ret_value,
				  struct failure *why);

#endif
