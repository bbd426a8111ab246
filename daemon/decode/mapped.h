/* SPDX-License-Identifier: MIT */
/* Private to daemon: which part of which file an address lies in. */
#ifndef DAEMON_DECODE_MAPPED_H
#define DAEMON_DECODE_MAPPED_H

#include "daemon/decode/target.h"
#include "daemon/replay.h"
#include "symbols/names.h"

enum {
	/* Bytes of a path; the kernel shows no longer ones. Source: proc(5), Linux PATH_MAX. */
	MAPPED_PATH_MAX = 4096,
};

/** A mapping and its texts. */
struct target_mapped {
	struct format_mapping mapping;
	char path[MAPPED_PATH_MAX];
	char build_id[2 * SYMBOLS_BUILD_ID_MAX + 1];
};

/**
 * The mapping of a file, or of the vDSO, that @p address lies in: its path as in the process's
 * maps, without the mark of files that were deleted, and its build-id.
 * @param ret_mapped Its strings are in it.
 * @return What `mapping` holds then; NULL where there is none.
 */
const struct format_mapping *target_find_mapping(struct daemon_target *target, uint64_t address,
						 struct target_mapped *ret_mapped);

#endif
