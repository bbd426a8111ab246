/* SPDX-License-Identifier: MIT */
/* Private to luastate: reading what is in memory, and nothing that was swapped out. */
#ifndef LUASTATE_STATE_PRESENT_H
#define LUASTATE_STATE_PRESENT_H

#include "luastate/state/state.h"

/** A reader in front of another one. */
struct present_reader {
	struct attach_reader reader;
	const struct luastate *state;
	const struct attach_reader *behind;
};

/**
 * Reader that fails with FAILURE_FAULT where a page is not in memory.
 * @param reader Made ready; lives as long as what is returned.
 * @param behind Borrowed.
 * @return @p behind itself where nobody tells which pages are there.
 */
const struct attach_reader *present_reader_init(struct present_reader *reader,
						struct luastate *state,
						const struct attach_reader *behind);
void present_free(struct luastate *state);

#endif
