/* SPDX-License-Identifier: MIT */
#include "fuzz_streams.h"

/** A symbol table that has begun. */
static const char prologue[] = "ljs\x03\0\0\0";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	fuzz_stream(prologue, sizeof(prologue) - 1, bytes, len);
	return 0;
}
