/* SPDX-License-Identifier: MIT */
/* Replaces itself again and again: as small as a program can be, so that it does so often. */
#include <sys/syscall.h>

_Noreturn void _start(void);

/* execve() of itself, without arguments. What the compiler may think of the stack is not so here.
 */
_Noreturn void _start(void)
{
	static const char path[] = "/proc/self/exe";

	for (;;) {
#if defined(__x86_64__)
		long number = SYS_execve;

		__asm__ volatile("syscall"
				 : "+a"(number)
				 : "D"(path), "S"(0L), "d"(0L)
				 : "rcx", "r11", "memory");
#elif defined(__aarch64__)
		register const char *x0 __asm__("x0") = path;
		register long x1 __asm__("x1") = 0, x2 __asm__("x2") = 0;
		register long x8 __asm__("x8") = SYS_execve;

		__asm__ volatile("svc 0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x8) : "memory");
#endif
	}
}
