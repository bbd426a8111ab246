/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_STREAMS_H
#define TESTS_FUZZ_STREAMS_H

#include <stddef.h>
#include <stdint.h>

/**
 * Read a stream, print all reports of it into nothing, and write its records again.
 * @param prologue Put before inputs that do not begin with "ljs", so that a fuzzer gets past it.
 */
void fuzz_stream(const char *prologue, size_t prologue_len, const uint8_t *bytes, size_t len);

#endif
