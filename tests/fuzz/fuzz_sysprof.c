/* SPDX-License-Identifier: MIT */
#include "fuzz_streams.h"

/** Our writer's first number for a compiled function, 12288. */
#define COMPILED "\x80\x60"

/** A sysprof stream behind a table that makes addresses 1 to 5 trigger, drop, and name things, and
 *  has a compiled function. */
static const char prologue[] = "ljs\x03\0\0\0"
			       "\x01\x00\x06ljprof"
			       "\x01\x01\x08lua_call\x01\x02\x0alua_cpcall\x01\x03\x04main"
			       "\x00\x04\x06@a.lua\x05\x01\x05\x11trace 7 @ a.lua:5"
			       "\x00" COMPILED "\x06@a.lua\x05\x01" COMPILED "\x0b"
			       "f[trace ~7]\x80ljp\x02\0\0\0";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	fuzz_stream(prologue, sizeof(prologue) - 1, bytes, len);
	return 0;
}
