/* SPDX-License-Identifier: MIT */
/* C functions that call Lua in each way that the API has, and those that stay for a while. */
#include "tests/live/cases/host.h"

#include <lauxlib.h>
#include <string.h>

enum { VMS = 3 };

/* VMs of a thread: the coroutine of each that runs or was left for another VM. */
static _Thread_local lua_State *vms[VMS + 1];

static int call_function(lua_State *L)
{
	lua_settop(L, 1);
	lua_call(L, 0, 0);
	return 0;
}

/* call(F): F below a C function. */
static int host_call(lua_State *L)
{
	shadow_push("C:host_call");
	call_function(L);
	shadow_pop(1);
	return 0;
}

static int host_pcall(lua_State *L)
{
	int ret;

	lua_settop(L, 1);
	shadow_push("C:host_pcall");
	ret = lua_pcall(L, 0, 0, 0);
	if (ret != 0)
		lua_pop(L, 1);
	shadow_pop(1);
	lua_pushboolean(L, ret == 0);
	return 1;
}

/* Lua three C frames deep: what an error must find its way through. */
static void host_nested_frame(lua_State *L, int depth)
{
	if (depth > 0) {
		shadow_push("N:host_nested_frame");
		host_nested_frame(L, depth - 1);
		shadow_pop(1);
		return;
	}
	shadow_push("N:host_nested_frame");
	lua_call(L, 0, 0);
	shadow_pop(1);
}

static int host_nested(lua_State *L)
{
	lua_settop(L, 1);
	shadow_push("C:host_nested");
	host_nested_frame(L, 2);
	shadow_pop(1);
	return 0;
}

static int host_cpcall_body(lua_State *L)
{
	shadow_push("C:host_cpcall_body");
	lua_getfield(L, LUA_REGISTRYINDEX, "host_body");
	lua_call(L, 0, 0);
	shadow_pop(1);
	return 0;
}

static int host_cpcall(lua_State *L)
{
	lua_settop(L, 1);
	lua_setfield(L, LUA_REGISTRYINDEX, "host_body");
	shadow_push("C:host_cpcall");
	if (lua_cpcall(L, host_cpcall_body, NULL) != 0)
		return lua_error(L);
	shadow_pop(1);
	return 0;
}

/* load(F): F is called by the parser to get the text of a chunk. */
static const char *host_reader(lua_State *L, void *data, size_t *ret_size)
{
	bool *read = data;

	*ret_size = 0;
	if (*read)
		return NULL;
	*read = true;
	shadow_push("N:host_reader");
	lua_pushvalue(L, 1);
	lua_call(L, 0, 0);
	shadow_pop(1);
	return NULL;
}

static int host_load(lua_State *L)
{
	bool read = false;

	lua_settop(L, 1);
	shadow_push("C:host_load");
	if (lua_load(L, host_reader, &read, "=empty") != 0)
		return lua_error(L);
	shadow_pop(1);
	return 0;
}

/* ---- Coroutines driven by C ------------------------------------------------------------- */

static int host_yield(lua_State *L)
{
	return lua_yield(L, 0);
}

/* resume(F): F is the body of a new coroutine, resumed until it ends. */
static int host_resume(lua_State *L)
{
	lua_State *thread = lua_newthread(L);
	int ret;

	lua_pushvalue(L, 1);
	lua_xmove(L, thread, 1);
	shadow_push("C:host_resume");
	do
		ret = lua_resume(thread, 0);
	while (ret == LUA_YIELD);
	shadow_pop(1);
	if (ret != 0)
		return luaL_error(L, "%s", lua_tostring(thread, -1));
	return 0;
}

/* ---- VMs -------------------------------------------------------------------------------- */

static int vm_number(lua_State *L)
{
	int number;

	lua_getfield(L, LUA_REGISTRYINDEX, "host_number");
	number = (int)lua_tointeger(L, -1);
	lua_pop(L, 1);
	return number;
}

/* other(NUMBER, NAME): function NAME of the scenario in another VM of this thread. */
static int host_other(lua_State *L)
{
	int own = vm_number(L), other = (int)luaL_checkinteger(L, 1);
	const char *name = luaL_checkstring(L, 2);
	lua_State *before;

	if (other < 0 || other >= VMS || other == own)
		return luaL_error(L, "no other VM");
	shadow_push("C:host_other");
	if (!vms[other])
		vms[other] = host_new_vm(other);
	before = vms[own];
	vms[own] = L;
	host_push_function(vms[other], name);
	lua_call(vms[other], 0, 0);
	vms[own] = before;
	shadow_pop(1);
	return 0;
}

/* fresh(NAME): the same in a VM that begins now and ends right afterwards. */
static int host_fresh(lua_State *L)
{
	int own = vm_number(L);
	lua_State *before = vms[own], *fresh;

	shadow_push("C:host_fresh");
	vms[own] = L;
	fresh = host_new_vm(VMS);
	host_push_function(fresh, luaL_checkstring(L, 1));
	lua_call(fresh, 0, 0);
	lua_close(fresh);
	vms[own] = before;
	shadow_pop(1);
	return 0;
}

/* number(): the VM's own. */
static int host_number(lua_State *L)
{
	lua_pushinteger(L, vm_number(L));
	return 1;
}

/* ---- Hooks ------------------------------------------------------------------------------ */

static void host_hook(lua_State *L, lua_Debug *activation)
{
	(void)activation;
	lua_sethook(L, NULL, 0, 0);
	shadow_push("N:host_hook");
	lua_getfield(L, LUA_REGISTRYINDEX, "host_hooked");
	lua_call(L, 0, 0);
	shadow_pop(1);
}

/* hook(F, KIND): a C hook calls F at the next instruction, line or call. */
static int host_set_hook(lua_State *L)
{
	const char *kind = luaL_checkstring(L, 2);
	int mask = *kind == 'l' ? LUA_MASKLINE : *kind == 'c' ? LUA_MASKCALL : LUA_MASKCOUNT;

	lua_settop(L, 1);
	lua_setfield(L, LUA_REGISTRYINDEX, "host_hooked");
	lua_sethook(L, host_hook, mask, mask == LUA_MASKCOUNT);
	return 0;
}

static void host_tiny_hook(lua_State *L, lua_Debug *activation)
{
	(void)L;
	(void)activation;
}

/* tiny_hook(): a C hook at each instruction, line and call. */
static int host_set_tiny_hook(lua_State *L)
{
	lua_sethook(L, host_tiny_hook, LUA_MASKCOUNT | LUA_MASKLINE | LUA_MASKCALL, 1);
	return 0;
}

/* ---- Leaves ----------------------------------------------------------------------------- */

static int host_spin(lua_State *L)
{
	(void)L;
	shadow_push("C:host_spin");
	shadow_record("");
	host_work(host_now_us() + host_stay_us);
	shadow_pop(1);
	return 0;
}

static _Thread_local uint64_t expires_us;

/* begin(): from now on expired() is false for as long as a leaf stays. */
static int host_begin(lua_State *L)
{
	(void)L;
	expires_us = host_now_us() + host_stay_us;
	return 0;
}

static int host_expired(lua_State *L)
{
	lua_pushboolean(L, host_now_us() >= expires_us);
	return 1;
}

static int host_nothing(lua_State *L)
{
	(void)L;
	return 0;
}

/* tiny(F): call F without a note in the shadow stack. */
static int host_tiny(lua_State *L)
{
	return call_function(L);
}

/* ---- Errors and growing stacks, without a note in the shadow stack
 * ---------------------------------- */

static int host_throw(lua_State *L)
{
	lua_pushnil(L);
	return lua_error(L);
}

static int host_throw_frame(lua_State *L, volatile int left)
{
	if (left > 1)
		return host_throw_frame(L, left - 1) + 1;
	return host_throw(L);
}

/* throw_deep(N): an error below N C frames. */
static int host_throw_deep(lua_State *L)
{
	return host_throw_frame(L, (int)luaL_checkinteger(L, 1)) + 1;
}

static int host_through_frame(lua_State *L)
{
	lua_call(L, 0, 0);
	return 1;
}

/* through(F): F below a C frame that an error goes through. */
static int host_through(lua_State *L)
{
	lua_settop(L, 1);
	return host_through_frame(L) - 1;
}

/* catch(F): call F in protected mode, as C does it. */
static int host_catch(lua_State *L)
{
	lua_settop(L, 1);
	if (lua_pcall(L, 0, 0, 0) != 0)
		lua_settop(L, 0);
	return 0;
}

static int host_catch_c(lua_State *L)
{
	if (lua_cpcall(L, host_throw, NULL) != 0)
		lua_settop(L, 0);
	return 0;
}

/* grow(N): make room for N values, and use it. */
static int host_grow(lua_State *L)
{
	int count = (int)luaL_checkinteger(L, 1);

	luaL_checkstack(L, count, "no room");
	for (int i = 0; i < count; i++)
		lua_pushnil(L);
	return 0;
}

/* ---- For ffi: plain C functions ---------------------------------------------------------------
 */

void host_ffi_spin(void);
void host_ffi_apply(void (*function)(void));

void host_ffi_spin(void)
{
	shadow_push("N:host_ffi_spin");
	shadow_record("");
	host_work(host_now_us() + host_stay_us);
	shadow_pop(1);
}

void host_ffi_apply(void (*function)(void))
{
	shadow_push("N:host_ffi_apply");
	function();
	shadow_pop(1);
}

const luaL_Reg host_calls[] = {
	{ "call", host_call },
	{ "pcall", host_pcall },
	{ "nested", host_nested },
	{ "cpcall", host_cpcall },
	{ "load", host_load },
	{ "yield", host_yield },
	{ "resume", host_resume },
	{ "other", host_other },
	{ "fresh", host_fresh },
	{ "number", host_number },
	{ "set_hook", host_set_hook },
	{ "spin", host_spin },
	{ "begin", host_begin },
	{ "expired", host_expired },
	{ "nothing", host_nothing },
	{ "tiny", host_tiny },
	{ "tiny_hook", host_set_tiny_hook },
	{ "throw", host_throw },
	{ "throw_deep", host_throw_deep },
	{ "through", host_through },
	{ "catch", host_catch },
	{ "catch_c", host_catch_c },
	{ "grow", host_grow },
	{ NULL, NULL },
};
