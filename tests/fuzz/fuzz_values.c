/* SPDX-License-Identifier: MIT */
/* Variables of frames, and values of all types. See walkers_fuzz(). */
#include "walkers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const unsigned situations[] = { STAGE_VALUES, STAGE_SCENE + 3, STAGE_SCENE + 8,
					       STAGE_PLAY + PLAY_CALLBACK };

	walkers_fuzz(data, size, situations, sizeof(situations) / sizeof(situations[0]),
		     1u << WALKER_WALK | 1u << WALKER_VARIABLES);
	return 0;
}
