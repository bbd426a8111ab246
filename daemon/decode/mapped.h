/* SPDX-License-Identifier: MIT */
/* Private to daemon: which part of which file is mapped at an address? */
#ifndef DAEMON_DECODE_MAPPED_H
#define DAEMON_DECODE_MAPPED_H

#include "daemon/decode/target.h"
#include "daemon/replay.h"
#include "symbols/names.h"

enum {
	/* Bytes of a path; the kernel does not show longer ones. Source: proc(5), Linux
	 * PATH_MAX. */
	MAPPED_PATH_MAX = 4096,
};

/** A mapping and its strings. */
struct target_mapped {
	struct format_mapping mapping;
	char path[MAPPED_PATH_MAX];
	char build_id[2 * SYMBOLS_BUILD_ID_MAX + 1];
};

/**
 * Find the mapping of a file, or of the vDSO, at @p address: its path as in the process's maps
 * without " (deleted)", and its build-id.
 * @param ret_mapped Holds the strings.
 * @return Its member `mapping`; NULL if there is no such mapping.
 */
const struct format_mapping *target_find_mapping(struct daemon_target *target, uint64_t address,
						 struct target_mapped *ret_mapped);

/**
 * Whether a file of code that cannot be opened seems to be LuaJIT, by its name. Many programs go on
 * with other libraries that an upgrade has replaced.
 * Stopped window: no. May open the file.
 * @param index As for symbols_space_get().
 */
bool mapped_is_missing_luajit(struct symbols_space *space, size_t index);

/**
 * Append a hint to a message that a process has no LuaJIT, if the library may only be out of reach.
 * Stopped window: no. May open files.
 * @param text A terminated string in @p len bytes; remains one. The path in it is safe for a
 *        terminal.
 */
void mapped_add_hint(struct symbols_space *space, char *text, size_t len);

#endif
