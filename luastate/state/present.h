/* SPDX-License-Identifier: MIT */
/* How is memory read that is not swapped out? Private to luastate. */
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
 * Start a reader that fails with FAILURE_FAULT if a page is not in memory.
 * @param reader Must live as long as the returned reader.
 * @param behind Borrowed.
 * @return The reader; @p behind itself if nobody reports which pages are present.
 */
const struct attach_reader *present_reader_init(struct present_reader *reader,
						struct luastate *state,
						const struct attach_reader *behind);
void present_free(struct luastate *state);

#endif
