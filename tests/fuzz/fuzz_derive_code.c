/* SPDX-License-Identifier: MIT */
/* What any bytes show when they are read as an interpreter's code. */
#include "hostile_derive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	hostile_derive_code(data, size);
	return 0;
}
