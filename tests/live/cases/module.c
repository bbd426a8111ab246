/* SPDX-License-Identifier: MIT */
/*
 * A C module, built several times: without unwind tables, with and without frame pointers. PREFIX
 * is its functions' prefix.
 */
#include <lauxlib.h>

#include "tests/live/cases/host.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b)  JOIN2(a, b)
#define TEXT2(a)    #a
#define TEXT(a)	    TEXT2(a)
#define NAME(name)  JOIN(PREFIX, name)

int NAME(call)(lua_State *L);
int NAME(spin)(lua_State *L);
int NAME(inner)(lua_State *L, volatile int results);

int NAME(inner)(lua_State *L, volatile int results)
{
	shadow_push("N:" TEXT(PREFIX) "inner");
	lua_call(L, 0, results);
	shadow_pop(1);
	return results;
}

int NAME(call)(lua_State *L)
{
	int results;

	lua_settop(L, 1);
	shadow_push("C:" TEXT(PREFIX) "call");
	results = NAME(inner)(L, 0);
	shadow_pop(1);
	return results;
}

int NAME(spin)(lua_State *L)
{
	uint64_t until_us = host_now_us() + host_stay_us;
	volatile unsigned x = 1;

	(void)L;
	shadow_push("C:" TEXT(PREFIX) "spin");
	shadow_record("");
	while (host_now_us() < until_us)
		for (int i = 0; i < 20000; i++)
			x = x * 31 + 7;
	shadow_pop(1);
	return 0;
}
