/* SPDX-License-Identifier: MIT */
/*
 * A server with many threads: some sleep and have nothing to do with Lua, others have a Lua state
 * each, in which they work for a while by turns with a nap. Naps are of random length, from half of
 * the given one to one and a half: equal ones would keep step with a sampler's ticks, so that one
 * worker were met by many of them and another by none.
 *
 * Usage: crowd_target SLEEPERS WORKERS WORK_US NAP_US SECONDS
 *
 * Worker N runs the chunk "=workerN". Prints "ready" once all threads are there, and the processor
 * time that the workers have used at the end.
 */
#include <lauxlib.h>
#include <lualib.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 1024, STACK_BYTES = 256 * 1024 };

static const char code[] = "jit.off()\n"
			   "function work() local x = 0.5 for i = 1, 1000 do x = (x * x + i) % "
			   "1000.25 end return x end\n";

static pthread_barrier_t all_there;
static time_t stop;
static int work_us, nap_us;
static uint64_t used_ns[THREADS_MAX];

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void *sleep_long(void *unused)
{
	(void)unused;
	pthread_barrier_wait(&all_there);
	while (time(NULL) < stop)
		poll(NULL, 0, 1000);
	return NULL;
}

static void *work_and_nap(void *number)
{
	const size_t index = (size_t)number;
	unsigned random = (unsigned)index + 1;
	lua_State *L = luaL_newstate();
	char name[32];

	snprintf(name, sizeof(name), "=worker%zu", index);
	luaL_openlibs(L);
	if (luaL_loadbuffer(L, code, sizeof(code) - 1, name) != 0 || lua_pcall(L, 0, 0, 0) != 0)
		exit(1);
	pthread_barrier_wait(&all_there);
	while (time(NULL) < stop) {
		uint64_t end_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 1000u * (unsigned)work_us;

		do {
			lua_getglobal(L, "work");
			lua_call(L, 0, 0);
		} while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns);
		if (nap_us)
			usleep((unsigned)nap_us / 2 + (unsigned)rand_r(&random) % (unsigned)nap_us);
	}
	used_ns[index] = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	lua_close(L);
	return NULL;
}

int main(int argc, char **argv)
{
	static pthread_t threads[THREADS_MAX];
	size_t sleepers, count = 0;
	pthread_attr_t attributes;
	uint64_t sum_ns = 0;

	if (argc != 6)
		return 2;
	sleepers = strtoul(argv[1], NULL, 10);
	count = sleepers + strtoul(argv[2], NULL, 10);
	work_us = atoi(argv[3]);
	nap_us = atoi(argv[4]);
	if (count >= THREADS_MAX)
		return 2;
	pthread_barrier_init(&all_there, NULL, (unsigned)count + 1);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	stop = time(NULL) + atoi(argv[5]);
	for (size_t i = 0; i < count; i++)
		if (pthread_create(&threads[i], &attributes,
				   i < sleepers ? sleep_long : work_and_nap,
				   (void *)(i - (i < sleepers ? 0 : sleepers))) != 0)
			return 1;
	pthread_barrier_wait(&all_there);
	puts("ready");
	fflush(stdout);
	for (size_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < count - sleepers; i++)
		sum_ns += used_ns[i];
	printf("USED %.3f\n", (double)sum_ns / 1e9);
	return 0;
}
