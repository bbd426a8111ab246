/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LIVE_CASES_HOST_H
#define TESTS_LIVE_CASES_HOST_H

/*
 * A program that keeps a record of its own call stack.
 *
 * Each function of a scenario, in Lua or C, pushes itself to its thread's shadow stack before it
 * calls on and pops itself afterwards; a leaf writes the stack to the record and stays for a while.
 * A frame is written as check.lua reads it: "L@CHUNK:LINE:NAME", "F:NAME" a function of LuaJIT's
 * libraries, "C:NAME" a lua_CFunction, "N:NAME" other native code.
 */

#include <lauxlib.h>
#include <stdbool.h>
#include <stdint.h>

/** Run the scenarios of a case. @param arguments SCRIPT CASE SECONDS SEED RECORD THREADS.
 *  @return Exit code. */
typedef int host_run_function(char **arguments);
host_run_function host_run;

void shadow_push(const char *text);
/** @p count equal frames, one above the other. */
void shadow_push_many(const char *text, unsigned count);
void shadow_pop(unsigned count);
/** Write the stack as it is now, once for each scenario; @p patterns as host.record() takes them.
 */
void shadow_record(const char *patterns);

/** How long a leaf of this scenario stays, in microseconds. */
extern _Thread_local unsigned host_stay_us;
uint64_t host_now_us(void);
/** Busy until @p until_us. Has no frame of interest of its own. */
void host_work(uint64_t until_us);

/** Functions that scenarios call, in calls.c and stacks.c; each ended by a NULL name. */
extern const luaL_Reg host_calls[], host_stacks[];

/** A new VM with the host's functions. */
lua_State *host_new_vm(int number);
/** Push function @p name of the running scenario, compiled in the VM of @p L. */
void host_push_function(lua_State *L, const char *name);

#endif
