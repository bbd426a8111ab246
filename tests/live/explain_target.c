/* SPDX-License-Identifier: MIT */
/*
 * A host whose VMs can be damaged from outside: what the tests of --explain and of builds that are
 * not known look at.
 *
 * Usage: explain_target LIBRARY THREADS
 * Loads that LuaJIT library. Each thread has a VM that spins in interpreted code, without a call or
 * an allocation, so that it needs nothing of its VM but the bytecode and the stack. With 0 threads
 * there is one VM and nothing runs in it. Prints "ready" for each VM, then obeys lines of standard
 * input, and answers each with "done":
 *   write ADDRESS BYTES VALUE  the low bytes of a number
 *   swap ADDRESS               two neighbouring words of 8 bytes, as if their members were declared
 *                              in the other order
 */
#include "lua_library.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS_MAX = 8 };

static const char code[] = "jit.off() local x = 0.5\n"
			   "io.write('ready\\n') io.flush() collectgarbage('stop')\n"
			   "while true do for i = 1, 10000 do x = (x * x + i) % 1000.25 end end\n";

static struct lua_library lua;

static void *open_vm(void)
{
	void *L = lua_library_open(&lua);

	if (lua.load_string(L, code) != 0)
		lua_library_die("the program is wrong");
	return L;
}

static void *spin(void *unused)
{
	(void)unused;
	lua.call(open_vm(), 0, 0, 0);
	lua_library_die("the program ended");
}

static void start(int threads)
{
	pthread_t thread;

	if (threads == 0) {
		open_vm();
		puts("ready");
	}
	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread, NULL, spin, NULL) != 0)
			lua_library_die("no thread");
}

static void swap(uint64_t *word)
{
	uint64_t first = word[0];

	word[0] = word[1];
	word[1] = first;
}

static void obey(const char *line)
{
	uint64_t address, value;
	unsigned bytes;

	if (sscanf(line, "write %" SCNx64 " %u %" SCNx64, &address, &bytes, &value) == 3 &&
	    bytes <= sizeof(value))
		memcpy((void *)(uintptr_t)address, &value, bytes);
	else if (sscanf(line, "swap %" SCNx64, &address) == 1)
		swap((uint64_t *)(uintptr_t)address);
	else
		lua_library_die("not understood");
	puts("done");
}

int main(int argc, char **argv)
{
	char line[128];
	int threads = argc == 3 ? atoi(argv[2]) : -1;

	if (threads < 0 || threads > THREADS_MAX)
		lua_library_die("usage: explain_target LIBRARY THREADS");
	setvbuf(stdout, NULL, _IOLBF, 0);
	lua = lua_library_load(argv[1]);
	start(threads);
	while (fgets(line, sizeof(line), stdin))
		obey(line);
	return 0;
}
