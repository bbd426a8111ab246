/* SPDX-License-Identifier: MIT */
/*
 * Programs that copies by the kernel have least of.
 *
 * Usage: kernel_target KIND SECONDS
 *
 *   vms      64 VMs, which work in turns on one thread
 *   nested   C functions of one VM run another one, from the interpreter and from compiled code
 *   fibers   coroutines, each with a C stack of its own, and switches between them in C
 *   deep     recursion: of Lua, of Lua and C in turns, and of C
 *   load     chunks are loaded, run and collected all the time
 *
 * Prints "ready" when all VMs are there, and ends after that number of seconds.
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

enum { VMS = 64, FIBERS = 8, FIBER_BYTES = 256 << 10, DEEP_BYTES = 1024 };

static const char work_code[] =
	"local function burn(n) local x = 0.5 for i = 1, n do x = (x * x + i) % 1000.25 end "
	"return x end\n"
	"function work(n) local x = burn(n or 2000) return x end\n"
	"function plain(n) local x = burn(n or 2000) return x end\n"
	"jit.off(plain) jit.off(burn)\n"
	"local function hot(n) local x = 0.5 for i = 1, n do x = (x * x + i) % 1000.25 end "
	"return x end\n"
	"function work(n) local x = hot(n or 2000) return x end\n";

/* Calls by the interface of C functions, which the compiler leaves and enters again, and by the
 * FFI, which it compiles. */
static const char nested_code[] =
	"local ffi = require('ffi')\n"
	"local call = ffi.cast('double (*)(double)', inner_address)\n"
	"local function by_ffi(n) local x = 0 for i = 1, n do x = x + call(i) end return x end\n"
	"local function by_c(n) local x = 0 for i = 1, n do x = x + inner(i) end return x end\n"
	"function round() local x = by_ffi(300) local y = by_c(300) return x + y end\n";

static const char fiber_code[] =
	"local function leaf(n) local x = 0.5 for i = 1, n do x = (x * x + i) % 1000.25 end "
	"return x end\n"
	"function fiber() while true do local x = leaf(20000) switch() x = plain(2000) switch() "
	"end end\n";

static const char deep_code[] =
	"local function burn(n) local x = 0.5 for i = 1, n do x = (x * x + i) % 1000.25 end "
	"return x end\n"
	"jit.off(burn)\n"
	"local function lua(n, a, b, c) if n == 0 then return burn(20000) end\n"
	"  local x = lua(n - 1, a, b, c) return x end\n"
	"jit.off(lua)\n"
	"local function both(n) if n == 0 then return burn(20000) end\n"
	"  local x = again(n - 1) return x end\n"
	"jit.off(both)\n"
	"_G.both = both\n"
	"function deep() local x = lua(1500, 1, 2, 3) local y = both(100) local z = native(100)\n"
	"  return x + y + z end\n"
	"function leaf() local x = burn(20000) return x end\n";

static const char load_code[] =
	"local text = {}\n"
	"for i = 1, 16 do text[i] = 'local n = ... local function f' .. i .. '(m) local x = 0.5 '\n"
	"  .. 'for i = 1, m do x = (x * x + i) % 1000.25 end return x end '\n"
	"  .. 'local s = 0 for i = 1, 4 do s = s + f' .. i .. '(n) end return s' end\n"
	"local count = 0\n"
	"function round()\n"
	"  for i = 1, 16 do\n"
	"    local chunk = loadstring(text[i], '=chunk' .. count)\n"
	"    count = count + 1\n"
	"    local x = chunk(500)\n"
	"    chunk = nil\n"
	"    collectgarbage()\n"
	"  end\n"
	"end\n";

static lua_State *inner_state;
static time_t end;

static bool is_over(void)
{
	return time(NULL) >= end;
}

static void check(lua_State *L, int status)
{
	if (status == 0)
		return;
	fprintf(stderr, "%s\n", lua_tostring(L, -1));
	exit(1);
}

static void run(lua_State *L, const char *code, const char *name)
{
	check(L, luaL_loadbuffer(L, code, strlen(code), name) || lua_pcall(L, 0, 0, 0));
}

static lua_State *new_vm(const char *name)
{
	lua_State *L = luaL_newstate();

	if (!L)
		exit(1);
	luaL_openlibs(L);
	run(L, work_code, name);
	return L;
}

static void call(lua_State *L, const char *function)
{
	lua_getglobal(L, function);
	check(L, lua_pcall(L, 0, 0, 0));
}

static void say_ready(void)
{
	puts("ready");
	fflush(stdout);
}

static void call_until_over(lua_State *L, const char *function)
{
	say_ready();
	while (!is_over())
		call(L, function);
}

/* ---- VMs -------------------------------------------------------------------------------- */

static void run_vms(void)
{
	lua_State *states[VMS];
	char name[32];

	for (int i = 0; i < VMS; i++) {
		snprintf(name, sizeof(name), "=vm%d", i);
		states[i] = new_vm(name);
	}
	say_ready();
	for (unsigned i = 0; !is_over(); i++)
		for (int k = 0; k < 10; k++)
			call(states[i % VMS], i % 3 ? "work" : "plain");
}

/* ---- Nested ----------------------------------------------------------------------------- */

static double run_inner(double n)
{
	call(inner_state, (long)n % 8 ? "work" : "plain");
	return n;
}

static int inner(lua_State *L)
{
	lua_pushnumber(L, run_inner(luaL_checknumber(L, 1)));
	return 1;
}

static void run_nested(void)
{
	lua_State *L = new_vm("=outer");

	inner_state = new_vm("=inner");
	lua_register(L, "inner", inner);
	lua_pushlightuserdata(L, (void *)run_inner);
	lua_setglobal(L, "inner_address");
	run(L, nested_code, "=nested");
	call_until_over(L, "round");
}

/* ---- Fibers ----------------------------------------------------------------------------- */

static struct {
	ucontext_t context;
	lua_State *L;
} fibers[FIBERS];
static ucontext_t main_context;
static int current;

static int switch_fiber(lua_State *L)
{
	int from = current;

	(void)L;
	if (is_over()) {
		setcontext(&main_context);
		exit(1);
	}
	current = (current + 1) % FIBERS;
	swapcontext(&fibers[from].context, &fibers[current].context);
	return 0;
}

static void run_fiber(void)
{
	lua_State *L = fibers[current].L;

	lua_getglobal(L, "fiber");
	check(L, lua_pcall(L, 0, 0, 0));
}

static void run_fibers(void)
{
	lua_State *L = new_vm("=main");

	lua_register(L, "switch", switch_fiber);
	run(L, fiber_code, "=fiber");
	for (int i = 0; i < FIBERS; i++) {
		ucontext_t *context = &fibers[i].context;

		fibers[i].L = lua_newthread(L);
		getcontext(context);
		context->uc_stack.ss_sp = malloc(FIBER_BYTES);
		context->uc_stack.ss_size = FIBER_BYTES;
		makecontext(context, run_fiber, 0);
	}
	say_ready();
	swapcontext(&main_context, &fibers[0].context);
}

/* ---- Deep ------------------------------------------------------------------------------- */

static int again(lua_State *L)
{
	lua_getglobal(L, "both");
	lua_pushvalue(L, 1);
	lua_call(L, 1, 1);
	return 1;
}

static int __attribute__((noinline)) recurse(lua_State *L, int n)
{
	volatile char room[DEEP_BYTES];

	room[0] = (char)n;
	if (n > 0)
		return recurse(L, n - 1) + room[0] - (char)n;
	lua_getglobal(L, "leaf");
	lua_call(L, 0, 1);
	return 1;
}

static int native(lua_State *L)
{
	return recurse(L, (int)luaL_checkinteger(L, 1));
}

static void run_deep(void)
{
	lua_State *L = new_vm("=main");

	lua_register(L, "again", again);
	lua_register(L, "native", native);
	run(L, deep_code, "=deep");
	call_until_over(L, "deep");
}

/* ---- Chunks ----------------------------------------------------------------------------- */

static void run_load(void)
{
	lua_State *L = new_vm("=main");

	run(L, load_code, "=load");
	call_until_over(L, "round");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} kinds[] = {
		{ "vms", run_vms },   { "nested", run_nested }, { "fibers", run_fibers },
		{ "deep", run_deep }, { "load", run_load },
	};

	if (argc != 3)
		return 2;
	end = time(NULL) + atoi(argv[2]);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(argv[1], kinds[i].name) == 0) {
			kinds[i].run();
			return 0;
		}
	return 2;
}
