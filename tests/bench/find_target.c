/* SPDX-License-Identifier: MIT */
/*
 * A process with a large heap, in which a VM is to be found: find_target MIB SCRIPT [ARGUMENT]. The
 * heap's blocks are full of numbers and of pointers into the heap, no page is like another, and the
 * VM's own memory comes behind all of it. Each byte of its input takes it further, and it answers
 * with one when it is there: first it has LuaJIT's code only, then a Lua state and no Lua on any
 * stack, then it runs the script. It ends with its input.
 */
#include <lauxlib.h>
#include <lualib.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	BLOCK_BYTES = 64 * 1024, /* from the heap, not a mapping each */
	BLOCK_WORDS = BLOCK_BYTES / sizeof(uint64_t),
};

/* The last block: whoever learns of it may read it, so that it is really filled. */
static uint64_t *volatile filled;

/* xorshift64: the same heap each time, but for where it lies. */
static uint64_t next_number(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static int fill_heap(size_t bytes)
{
	uint64_t state = 1, first = 0;

	mallopt(M_MMAP_THRESHOLD, 2 * BLOCK_BYTES);
	for (size_t done = 0; done < bytes; done += BLOCK_BYTES) {
		uint64_t *block = malloc(BLOCK_BYTES);

		if (!block)
			return -1;
		first = first ? first : (uint64_t)(uintptr_t)block;
		for (size_t i = 0; i < BLOCK_WORDS; i += 2) {
			block[i] = next_number(&state);
			block[i + 1] = first + block[i] % (done + BLOCK_BYTES) / 8 * 8;
		}
		filled = block;
	}
	return 0;
}

static void *allocate(void *context, void *block, size_t old_bytes, size_t bytes)
{
	(void)context;
	(void)old_bytes;
	if (bytes)
		return realloc(block, bytes);
	free(block);
	return NULL;
}

static int run(lua_State *L, int argc, char **argv)
{
	lua_newtable(L);
	for (int i = 0; i < argc; i++) {
		lua_pushstring(L, argv[i]);
		lua_rawseti(L, -2, i);
	}
	lua_setglobal(L, "arg");
	if (luaL_dofile(L, argv[0]) == 0)
		return 0;
	fprintf(stderr, "%s\n", lua_tostring(L, -1));
	return 1;
}

/* @return whether to go on. */
static bool tell_and_wait(void)
{
	putchar('.');
	fflush(stdout);
	return getchar() != EOF;
}

int main(int argc, char **argv)
{
	lua_State *L;

	if (argc < 3 || fill_heap((size_t)atol(argv[1]) << 20) != 0)
		return 1;
	if (!tell_and_wait())
		return 0;
	L = lua_newstate(allocate, NULL);
	if (!L)
		return 1;
	luaL_openlibs(L);
	if (!tell_and_wait())
		return 0;
	putchar('.');
	fflush(stdout);
	return run(L, argc - 2, argv + 2);
}
