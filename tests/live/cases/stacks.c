/* SPDX-License-Identifier: MIT */
/* Native stacks out of the ordinary: deep ones, stacks of their own, signal handlers. */
#include "tests/live/cases/host.h"

#include <dlfcn.h>
#include <lauxlib.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

enum {
	DEEP = 10000,
	CONTEXT_BYTES = 256 * 1024,
	ALTERNATE_BYTES = 64 * 1024,
};

/* ---- Deep native recursion --------------------------------------------------------------------
 */

static int host_deep_frame(lua_State *L, volatile int left)
{
	if (left > 1)
		return host_deep_frame(L, left - 1) + 1;
	lua_call(L, 0, 0);
	return 1;
}

/* deep(F): F below 10,000 C frames. */
static int host_deep(lua_State *L)
{
	int depth;

	lua_settop(L, 1);
	shadow_push("C:host_deep");
	shadow_push_many("N:host_deep_frame", DEEP);
	depth = host_deep_frame(L, DEEP);
	shadow_pop(2);
	lua_pushinteger(L, depth);
	return 1;
}

/* ---- Stacks of their own -----------------------------------------------------------------------
 */

struct switched {
	ucontext_t outside, inside;
	lua_State *L;
};

/* The entry gets ints only (makecontext(3)); a thread has one switch at a time. */
static _Thread_local struct switched *entered;

static void host_context_entry(void)
{
	struct switched *switched = entered;

	/* Leave once and come back: a stack that was put aside. */
	swapcontext(&switched->inside, &switched->outside);
	shadow_push("N:host_context_entry");
	lua_call(switched->L, 0, 0);
	shadow_pop(1);
}

static void *new_stack(void)
{
	void *stack = mmap(NULL, CONTEXT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	if (stack == MAP_FAILED)
		abort();
	/* The first access takes time: here, and not in code that cannot be unwound. */
	*((volatile char *)stack + CONTEXT_BYTES - 1) = 0;
	return stack;
}

static void run_switched(struct switched *switched)
{
	void *stack = new_stack();

	getcontext(&switched->inside);
	switched->inside.uc_stack.ss_sp = stack;
	switched->inside.uc_stack.ss_size = CONTEXT_BYTES;
	switched->inside.uc_link = &switched->outside;
	makecontext(&switched->inside, host_context_entry, 0);
	entered = switched;
	swapcontext(&switched->outside, &switched->inside);
	swapcontext(&switched->outside, &switched->inside);
	munmap(stack, CONTEXT_BYTES);
}

/* context(F): F in a coroutine of its own on a native stack of its own. */
static int host_context(lua_State *L)
{
	struct switched switched = { .L = lua_newthread(L) };

	lua_pushvalue(L, 1);
	lua_xmove(L, switched.L, 1);
	shadow_push("C:host_context");
	shadow_push("^");
	run_switched(&switched);
	shadow_pop(2);
	return 0;
}

/* context_same(F): the coroutine that runs goes on, on another native stack. */
static int host_context_same(lua_State *L)
{
	struct switched switched = { .L = L };

	lua_settop(L, 1);
	shadow_push("C:host_context_same");
	shadow_push("%");
	run_switched(&switched);
	shadow_pop(2);
	return 0;
}

/*
 * Boost's coroutines, through the two functions of libboost_context that they are made of: without
 * unwind entries, and the first function returns into the middle of one of them.
 * Source: Boost 1.74, boost/context/detail/fcontext.hpp.
 */
struct boost_transfer {
	void *from, *data;
};

typedef void *boost_make(void *stack_end, size_t size, void (*entry)(struct boost_transfer));
typedef struct boost_transfer boost_jump(void *to, void *data);

struct boosted {
	lua_State *L;
	boost_make *make;
	boost_jump *jump;
};

static void host_boost_entry(struct boost_transfer transfer)
{
	struct boosted *boosted = transfer.data;

	transfer = boosted->jump(transfer.from, NULL);
	shadow_push("N:host_boost_entry");
	lua_call(boosted->L, 0, 0);
	shadow_pop(1);
	boosted->jump(transfer.from, NULL);
	abort(); /* nobody comes back */
}

static void run_boosted(struct boosted *boosted)
{
	char *stack = new_stack();
	void *context = boosted->make(stack + CONTEXT_BYTES, CONTEXT_BYTES, host_boost_entry);

	context = boosted->jump(context, boosted).from;
	boosted->jump(context, NULL);
	munmap(stack, CONTEXT_BYTES);
}

/* context_boost(F): as context(F), by Boost's way. */
static int host_context_boost(lua_State *L)
{
	struct boosted boosted = {
		.L = lua_newthread(L),
		.make = (boost_make *)dlsym(RTLD_DEFAULT, "make_fcontext"),
		.jump = (boost_jump *)dlsym(RTLD_DEFAULT, "jump_fcontext"),
	};

	if (!boosted.make || !boosted.jump)
		return luaL_error(L, "libboost_context is not loaded");
	lua_pushvalue(L, 1);
	lua_xmove(L, boosted.L, 1);
	shadow_push("C:host_context_boost");
	shadow_push("^");
	run_boosted(&boosted);
	shadow_pop(2);
	return 0;
}

/* ---- Signals
 * -------------------------------------------------------------------------------------- */

static volatile sig_atomic_t handled;

static void host_on_signal(int number)
{
	(void)number;
	host_work(host_now_us() + host_stay_us);
	handled = 1;
}

/* arm(MICROSECONDS, ALTERNATE): one SIGALRM then, its handler on the alternate stack or not. */
static int host_arm(lua_State *L)
{
	static char alternate[ALTERNATE_BYTES];
	const stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	struct sigaction action = { .sa_handler = host_on_signal };
	struct itimerval timer = { .it_value.tv_usec = luaL_checkinteger(L, 1) };

	action.sa_flags = lua_toboolean(L, 2) ? SA_ONSTACK : 0;
	handled = 0;
	if (sigaltstack(&stack, NULL) != 0 || sigaction(SIGALRM, &action, NULL) != 0 ||
	    setitimer(ITIMER_REAL, &timer, NULL) != 0)
		return luaL_error(L, "no timer");
	return 0;
}

static int host_handled(lua_State *L)
{
	lua_pushboolean(L, handled);
	return 1;
}

/* wait(): C code until the handler has run. */
static int host_wait(lua_State *L)
{
	volatile unsigned x = 1;

	(void)L;
	shadow_push("C:host_wait");
	shadow_record("");
	while (!handled)
		x = x * 31 + 7;
	shadow_pop(1);
	return 0;
}

/* raise(): a handler entered from a system call. */
static int host_raise(lua_State *L)
{
	(void)L;
	shadow_push("C:host_raise");
	shadow_record("");
	raise(SIGALRM);
	shadow_pop(1);
	return 0;
}

/* ---- Leaves in code of others
 * ---------------------------------------------------------------------- */

/* vdso(): the clock without a system call. */
static int host_vdso(lua_State *L)
{
	uint64_t until_us = host_now_us() + host_stay_us;
	struct timespec now;

	(void)L;
	shadow_push("C:host_vdso");
	shadow_record("");
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000 < until_us);
	shadow_pop(1);
	return 0;
}

const luaL_Reg host_stacks[] = {
	{ "deep", host_deep },
	{ "context", host_context },
	{ "context_same", host_context_same },
	{ "context_boost", host_context_boost },
	{ "arm", host_arm },
	{ "handled", host_handled },
	{ "wait", host_wait },
	{ "raise", host_raise },
	{ "vdso", host_vdso },
	{ NULL, NULL },
};
