/* SPDX-License-Identifier: MIT */
/*
 * A process in whose memory a VM is searched: search_target MIB TIB [vm]. It has so much heap in
 * use, so much address space reserved and not used, and, on request, a VM behind its heap, of which
 * nothing is on a stack. It says when it is ready and ends with its input.
 */
#include <lauxlib.h>
#include <lualib.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCK_BYTES = 64 * 1024 };

static void *allocate(void *context, void *block, size_t old_bytes, size_t bytes)
{
	(void)context;
	(void)old_bytes;
	if (bytes)
		return realloc(block, bytes);
	free(block);
	return NULL;
}

static int fill_heap(size_t bytes)
{
	static void *volatile filled;

	mallopt(M_MMAP_THRESHOLD, 4 * BLOCK_BYTES);
	for (size_t done = 0; done < bytes; done += BLOCK_BYTES) {
		filled = malloc(BLOCK_BYTES);
		if (!filled)
			return -1;
		memset(filled, 0x55, BLOCK_BYTES);
	}
	return 0;
}

static int reserve(unsigned long tib)
{
	for (unsigned long i = 0; i < tib; i++)
		if (mmap(NULL, (size_t)1 << 40, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
			return -1;
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 3 || fill_heap(strtoul(argv[1], NULL, 10) << 20) != 0)
		return 1;
	if (argc > 3)
		luaL_openlibs(lua_newstate(allocate, NULL));
	puts(reserve(strtoul(argv[2], NULL, 10)) == 0 ? "ready" : "ready, but little is reserved");
	fflush(stdout);
	getchar();
	return 0;
}
