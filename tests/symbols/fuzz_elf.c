/* SPDX-License-Identifier: MIT */
#include "hostile_elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	hostile_elf_exercise(data, size);
	return 0;
}
