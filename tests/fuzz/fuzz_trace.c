/* SPDX-License-Identifier: MIT */
/* Stops in compiled code, and in code around it: the plan, and the walk with the frames that
 * snapshots tell. See walkers_fuzz(). */
#include "walkers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const unsigned situations[] = { STAGE_SCENE + 4, STAGE_SCENE + 8,
					       STAGE_PLAY + PLAY_TRACE, STAGE_PLAY + PLAY_LATE };

	walkers_fuzz(data, size, situations, sizeof(situations) / sizeof(situations[0]),
		     1u << WALKER_PLAN | 1u << WALKER_CFRAMES | 1u << WALKER_WALK);
	return 0;
}
