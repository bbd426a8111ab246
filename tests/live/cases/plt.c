/* SPDX-License-Identifier: MIT */
/* Calls of an empty function in another library, through the procedure linkage table. */
#include <lauxlib.h>

#include "tests/live/cases/host.h"

int plt_spin(lua_State *L);
void far_function(void);

/* Make the processor wait for the jump in the table and then for its target, so that samples find
 * it at both. */
static void forget(void)
{
#ifdef __x86_64__
	__asm__ volatile("clflush far_function@PLT(%rip)\n\tclflush far_function@GOTPCREL(%rip)");
#endif
}

int plt_spin(lua_State *L)
{
	uint64_t until_us = host_now_us() + host_stay_us;

	(void)L;
	shadow_push("C:plt_spin");
	shadow_record("N:far_function");
	while (host_now_us() < until_us)
		for (int i = 0; i < 100; i++) {
			forget();
			far_function();
		}
	shadow_pop(1);
	return 0;
}
