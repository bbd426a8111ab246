/* SPDX-License-Identifier: MIT */
/* All coroutines of a VM along the list of all objects, and the names of functions from tables. See
 * walkers_fuzz(). */
#include "walkers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const unsigned situations[] = { STAGE_COROUTINES, STAGE_VALUES,
					       STAGE_PLAY + PLAY_CALLBACK, STAGE_PLAY + PLAY_C };

	walkers_fuzz(data, size, situations, sizeof(situations) / sizeof(situations[0]),
		     1u << WALKER_COROUTINES | 1u << WALKER_NAMES | 1u << WALKER_VM_STATS);
	return 0;
}
