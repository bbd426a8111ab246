/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "symbols/space/maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbols_maps maps;
	struct failure why;

	if (symbols_maps_init((const char *)data, size, &maps, &why) < 0)
		return 0;
	for (size_t i = 0; i < maps.count; i++) {
		if (symbols_maps_find(&maps, maps.list[i].start) != (ptrdiff_t)i ||
		    symbols_maps_find(&maps, maps.list[i].end - 1) != (ptrdiff_t)i)
			abort();
	}
	symbols_maps_deinit(&maps);
	return 0;
}
