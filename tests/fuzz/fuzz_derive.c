/* SPDX-License-Identifier: MIT */
/* Layouts that are derived from memory made to look like a VM's. */
#include "hostile_derive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	hostile_derive(data, size);
	return 0;
}
