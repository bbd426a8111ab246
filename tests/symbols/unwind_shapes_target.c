/* SPDX-License-Identifier: MIT */

/*
 * A program whose stack lies in unusual places: argument 1 names the shape. It prints "ready" and
 * then works until it is killed. The outermost function of the program in each shape is
 * shapes_bottom().
 */

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#define NOINLINE    __attribute__((noinline))
#define STACK_BYTES ((size_t)1 << 20)
#define TOWER	    10000

static volatile uint64_t sink;

/** Calls into another file, through a stub; in the vDSO; and computes. */
static NOINLINE uint64_t shapes_work(uint64_t seed)
{
	struct timespec now;
	char text[32];

	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(text, sizeof(text), "%u", (unsigned)seed);
	return seed * 6364136223846793005 + (uint64_t)text[0] + (uint64_t)now.tv_nsec;
}

static NOINLINE uint64_t shapes_tower(unsigned depth, uint64_t seed)
{
	if (depth)
		return shapes_tower(depth - 1, seed + depth) + 1;
	for (int i = 0; i < 1000; i++)
		seed += shapes_work(seed);
	return seed;
}

static unsigned floors = 3;

static NOINLINE void shapes_bottom(void)
{
	for (;;)
		sink += shapes_tower(floors, sink);
}

static void *new_stack(void)
{
	void *stack =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stack == MAP_FAILED)
		exit(1);
	return stack;
}

/** makecontext(): glibc's first function of a context has an entry without a return address. */
static void run_context(void)
{
	static ucontext_t here, there;

	getcontext(&there);
	there.uc_stack.ss_sp = new_stack();
	there.uc_stack.ss_size = STACK_BYTES;
	there.uc_link = &here;
	makecontext(&there, shapes_bottom, 0);
	swapcontext(&here, &there);
}

/* As Boost ends one: with code that no call is before, without an unwind entry. */
#if defined(__x86_64__)
__asm__(".text\n"
	".type shapes_make, @function\n"
	"shapes_make:\n"
	"	jmp *%rbx\n"
	"shapes_finish:\n"
	"	ud2\n"
	".size shapes_make, . - shapes_make\n");
#else
__asm__(".text\n"
	".globl shapes_finish\n"
	".type shapes_make, @function\n"
	"shapes_make:\n"
	"	ret\n"
	"shapes_finish:\n"
	"	brk 1\n"
	".size shapes_make, . - shapes_make\n");
#endif
extern char shapes_finish[];

/** As libraries of coroutines do it: a stack with a return address of their own at its end. */
static void run_coroutine(const char *finish)
{
	uint64_t *top = (uint64_t *)((char *)new_stack() + STACK_BYTES);

#if defined(__x86_64__)
	top[-1] = (uint64_t)(uintptr_t)finish;
	__asm__ volatile("mov %0, %%rsp\n\txor %%ebp, %%ebp\n\tjmp *%1"
			 :
			 : "r"(&top[-1]), "r"(shapes_bottom)
			 : "memory");
#else
	__asm__ volatile("mov sp, %0\n\tmov x29, xzr\n\tmov x30, %2\n\tbr %1"
			 :
			 : "r"(top), "r"(shapes_bottom), "r"(finish)
			 : "memory");
#endif
}

/* As libcoro starts one where backtraces shall end: code that says there is no caller. */
#if defined(__x86_64__)
__asm__(".text\n"
	".type shapes_startup, @function\n"
	"shapes_startup:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined rip\n"
	"	call *%rbx\n"
	"	ud2\n"
	"	.cfi_endproc\n"
	".size shapes_startup, . - shapes_startup\n"
	/* The same without an unwind entry. */
	".type shapes_bare, @function\n"
	"shapes_bare:\n"
	"	call *%rbx\n"
	"	ud2\n"
	".size shapes_bare, . - shapes_bare\n");
#else
__asm__(".text\n"
	".globl shapes_startup\n" /* ld 2.40 gives local symbols of a section one GOT slot */
	".type shapes_startup, @function\n"
	"shapes_startup:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined x30\n"
	"	blr x19\n"
	"	brk 1\n"
	"	.cfi_endproc\n"
	".size shapes_startup, . - shapes_startup\n"
	".globl shapes_bare\n"
	".type shapes_bare, @function\n"
	"shapes_bare:\n"
	"	blr x19\n"
	"	brk 1\n"
	".size shapes_bare, . - shapes_bare\n");
#endif
extern char shapes_startup[], shapes_bare[];

static void run_startup(const char *startup)
{
	char *top = (char *)new_stack() + STACK_BYTES;

	memset(top - 64, 0x5a, 64); /* what is there is no frame */
#if defined(__x86_64__)
	__asm__ volatile("mov %0, %%rsp\n\tmov %2, %%rbx\n\tjmp *%1"
			 :
			 : "r"(top - 64), "r"(startup), "r"(shapes_bottom)
			 : "memory", "rbx");
#else
	__asm__ volatile("mov sp, %0\n\tmov x19, %2\n\tbr %1"
			 :
			 : "r"(top - 64), "r"(startup), "r"(shapes_bottom)
			 : "memory", "x19");
#endif
}

static void handler(int number)
{
	(void)number;
	shapes_bottom();
}

static char *signal_stack;

static NOINLINE void shapes_raise(void)
{
	stack_t other = { .ss_sp = signal_stack, .ss_size = STACK_BYTES };
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };

	sigaltstack(&other, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	sink++;
}

/** A handler on its own stack, which lies below or above the one that it interrupts. */
static void run_signal(int is_above)
{
	static ucontext_t here, there;
	char *stacks = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stacks == MAP_FAILED)
		exit(1);
	signal_stack = stacks + (is_above ? STACK_BYTES : 0);
	getcontext(&there);
	there.uc_stack.ss_sp = stacks + (is_above ? 0 : STACK_BYTES);
	there.uc_stack.ss_size = STACK_BYTES;
	there.uc_link = &here;
	makecontext(&there, shapes_raise, 0);
	swapcontext(&here, &there);
}

int main(int argc, char **argv)
{
	const char *shape = argc > 1 ? argv[1] : "";

	puts("ready");
	fflush(stdout);
	if (strcmp(shape, "context") == 0)
		run_context();
	else if (strcmp(shape, "coroutine") == 0)
		run_coroutine(NULL);
	else if (strcmp(shape, "finish") == 0)
		run_coroutine(shapes_finish);
	else if (strcmp(shape, "startup") == 0)
		run_startup(shapes_startup);
	else if (strcmp(shape, "bare") == 0)
		run_startup(shapes_bare);
	else if (strcmp(shape, "below") == 0 || strcmp(shape, "above") == 0)
		run_signal(strcmp(shape, "above") == 0);
	else if (strcmp(shape, "tower") == 0)
		floors = TOWER;
	shapes_bottom();
	return 0;
}
