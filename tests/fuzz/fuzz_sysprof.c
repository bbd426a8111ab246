/* SPDX-License-Identifier: MIT */
#include "fuzz_streams.h"

/** Our writer's first number for a compiled function, 12288. */
#define COMPILED "\x80\x60"

/** A sysprof stream behind a table that makes addresses 1 to 5 trigger, drop, and name things, and
 *  has a compiled function. */
static const char numbers[] = "ljs\x03\0\0\0"
			      "\x01\x00\x06ljprof"
			      "\x01\x01\x08lua_call\x01\x02\x0alua_cpcall\x01\x03\x04main"
			      "\x00\x04\x06@a.lua\x05\x01\x05\x11trace 7 @ a.lua:5"
			      "\x00" COMPILED "\x06@a.lua\x05\x01" COMPILED "\x0b"
			      "f[trace ~7]\x80ljp\x02\0\0\0";

/** The same as version 0.1.0 wrote it: its addresses of compiled functions begin at 2^52 + 2^40. */
#define OLD_COMPILED "\x80\x80\x80\x80\x80\xa0\x80\x08"
static const char addresses[] = "ljs\x03\0\0\0"
				"\x01\x01\x08lua_call\x01\x02\x0alua_cpcall\x01\x03\x04main"
				"\x00\x04\x06@a.lua\x05\x01\x05\x12[trace 7 @a.lua:5]"
				"\x00" OLD_COMPILED "\x06@a.lua\x05\x01" OLD_COMPILED "\x0b"
				"f[trace ~7]\x80ljp\x02\0\0\0";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	/* A stream ends in a byte that is even. */
	if (len > 0 && bytes[len - 1] & 1)
		fuzz_stream(addresses, sizeof(addresses) - 1, bytes, len);
	else
		fuzz_stream(numbers, sizeof(numbers) - 1, bytes, len);
	return 0;
}
