/* SPDX-License-Identifier: MIT */

/*
 * A program whose stacks have known shapes: argument 1 names one. It prints "ready" and then works
 * until it is killed. Its own functions keep their frames: nothing is inlined or a tail call.
 */

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static volatile uint64_t sink;

static NOINLINE uint64_t target_spin(uint64_t seed)
{
	char text[64];

	for (int i = 0; i < 50; i++) {
		seed = seed * 6364136223846793005 + 1442695040888963407;
		memset(text, (int)seed, sizeof(text));
		seed += (uint64_t)text[seed & 63];
	}
	return seed;
}

static NOINLINE uint64_t target_odd(unsigned depth, uint64_t seed);

/** Many live values, so that all callee-saved registers are pushed. */
static NOINLINE uint64_t target_even(unsigned depth, uint64_t seed)
{
	uint64_t a = seed ^ 1, b = seed + 2, c = seed * 3, d = seed / 5, e = seed - 7;
	uint64_t below = depth ? target_odd(depth - 1, a) : target_spin(b);

	return below + a + b * c + d + e;
}

/** A frame of variable size: its CFA hangs on rbp also without frame pointers. */
static NOINLINE uint64_t target_odd(unsigned depth, uint64_t seed)
{
	size_t size = 16 + (seed & 127);
	volatile uint8_t *block = __builtin_alloca(size);
	uint64_t below;

	block[0] = (uint8_t)seed;
	block[size - 1] = (uint8_t)depth;
	below = depth ? target_even(depth - 1, seed + 1) : target_spin(seed);
	return below + block[0] + block[size - 1];
}

static int target_compare(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	sink = target_spin(*a);
	return (*a > *b) - (*a < *b);
}

static NOINLINE void target_sort(void)
{
	uint64_t values[64];

	for (size_t i = 0; i < 64; i++)
		values[i] = target_spin(i + sink);
	qsort(values, 64, sizeof(values[0]), target_compare);
	sink = values[0];
}

static NOINLINE void target_clock(void)
{
	struct timespec now;

	for (int i = 0; i < 64; i++) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		sink += (uint64_t)now.tv_nsec;
	}
}

static void target_handler(int number)
{
	sink = target_even(6, sink + (uint64_t)number);
}

static NOINLINE void target_signal(void)
{
	raise(SIGUSR1);
	sink++;
}

static NOINLINE void target_deep(void)
{
	sink = target_even(20, sink);
}

static NOINLINE void target_work(const char *shape)
{
	for (;;) {
		if (strcmp(shape, "sort") == 0)
			target_sort();
		else if (strcmp(shape, "clock") == 0)
			target_clock();
		else if (strcmp(shape, "signal") == 0 || strcmp(shape, "altstack") == 0)
			target_signal();
		else
			target_deep();
	}
}

static void *target_thread(void *shape)
{
	puts("ready");
	fflush(stdout);
	target_work(shape);
	return NULL;
}

int main(int argc, char **argv)
{
	static uint8_t other_stack[1 << 16];
	const char *shape = argc > 1 ? argv[1] : "deep";
	struct sigaction action = { .sa_handler = target_handler };
	stack_t other = { .ss_sp = other_stack, .ss_size = sizeof(other_stack) };
	pthread_t thread;

	if (strcmp(shape, "altstack") == 0) {
		action.sa_flags = SA_ONSTACK;
		sigaltstack(&other, NULL);
	}
	sigaction(SIGUSR1, &action, NULL);
	if (strcmp(shape, "thread") != 0)
		target_thread(argv[1]);
	if (pthread_create(&thread, NULL, target_thread, argv[1]) != 0)
		return 1;
	pthread_join(thread, NULL);
	return 0;
}
