/* SPDX-License-Identifier: MIT */
/* Where do a program's structures have their members, by its debug information? */
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
 * DWARF is taken from the file itself, or from its debug file: by build-id in the folders of the
 * environment variable LJPROF_DEBUG_DIR (separated by colons, each holds .build-id/xx/yyyy.debug)
 * and in /usr/lib/debug, else by .gnu_debuglink. DWARF that is shared between debug files
 * (.gnu_debugaltlink) is found by build-id, or by its path if that is absolute.
 * It is read whole into memory, at most 64 MiB, until the types are destroyed; listing and all
 * answers take at most 2 s of processor time, else they fail.
 * @param anchor Name of a structure. Only compile units that define it count: another unit's
 *               structures may have the same names. Borrowed during the call.
 * @param ret_types Set on success; independent of the space.
 * @param why FAILURE_NOT_FOUND (no DWARF, or no unit with the anchor), FAILURE_LIMIT (also where
 *            not all could be listed in time), FAILURE_INVALID, FAILURE_NO_MEMORY.
 * Source: DWARF 5, chapters 5 and 7.
 */
int symbols_types_create(struct symbols_space *space, uint64_t address, const char *anchor,
			 struct symbols_types **ret_types, struct failure *why);
void symbols_types_destroy(struct symbols_types *types);

/** Whether time was over at some answer: then what is missing may be there. */
bool symbols_types_are_late(const struct symbols_types *types);

/**
 * Where a member lies in a structure or union, which is named by its tag or by a typedef.
 * @param path Member, or members of members by dots ("gc.total"). Members of unnamed structures and
 *             unions count as those of the structure around them.
 * @param ret_offset,ret_size In bytes; a member of open length has size 0.
 * @param why FAILURE_NOT_FOUND; FAILURE_INVALID for a bit field and where units differ;
 *            FAILURE_LIMIT.
 */
int symbols_types_find_member(struct symbols_types *types, const char *structure, const char *path,
			      uint64_t *ret_offset, uint64_t *ret_size, struct failure *why);

/** Size of a structure or union in bytes. Errors as above. */
int symbols_types_find_size(struct symbols_types *types, const char *structure, uint64_t *ret_size,
			    struct failure *why);

/** Value of a constant of any enumeration. Errors as above. */
int symbols_types_find_enumerator(struct symbols_types *types, const char *name, int64_t *ret_value,
				  struct failure *why);

#endif
