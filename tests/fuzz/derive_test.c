/* SPDX-License-Identifier: MIT */
/* The same without a fuzzer: VMs as they are, and some thousand that are changed. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "hostile_derive.h"

enum {
	ROUNDS = 4000,
	VMS = 8,
	BYTES = 64,
	/* Of some searches together: what is saved up at first, and one more. */
	USED_MAX_MS = 700,
};

/* @return whether all took no more than they may. */
static bool is_bounded(void)
{
	int64_t used_ns[2];
	bool good = true;

	hostile_derive_slowly(used_ns);
	for (size_t i = 0; i < 2; i++) {
		int used_ms = (int)(used_ns[i] / 1000000);

		printf("searches of what is no VM took %d ms\n", used_ms);
		good &= used_ms <= USED_MAX_MS;
	}
	return good;
}

int main(void)
{
	uint8_t data[BYTES] = { 0 };
	unsigned as_they_are = 0, changed = 0;
	uint32_t seed = 1;

	for (unsigned i = 0; i < VMS; i++) {
		data[0] = (uint8_t)i;
		data[1] = data[3] = 255; /* no vote is another */
		as_they_are += (unsigned)hostile_derive(data, 6);
	}
	for (unsigned i = 0; i < ROUNDS; i++) {
		for (size_t k = 0; k < BYTES; k++) {
			seed = seed * 1664525 + 1013904223;
			data[k] = (uint8_t)(seed >> 24);
		}
		changed += (unsigned)hostile_derive(data, 6 + i % (BYTES - 6));
	}
	printf("%u of %u VMs as they are, %u of %u that are changed have a layout\n", as_they_are,
	       VMS, changed, ROUNDS);
	return as_they_are == VMS && is_bounded() ? 0 : 1;
}
