/* SPDX-License-Identifier: MIT */

/* A library whose symbols have every shape that symtab.c tells apart. */

#define EXPORT __attribute__((visibility("default"), noinline))

int fixture_data = 7;
static volatile int sink;

static __attribute__((noinline, used)) int fixture_static(int value)
{
	sink += value;
	return sink * 3;
}

EXPORT int fixture_global(int value)
{
	return fixture_static(value) + fixture_data;
}

EXPORT int fixture_plain(int value)
{
	return fixture_static(value + 1) ^ 5;
}
extern __typeof__(fixture_plain) __fixture_plain __attribute__((alias("fixture_plain")));
static __typeof__(fixture_plain) plain_ __attribute__((alias("fixture_plain"), used));

EXPORT int fixture_strong(int value)
{
	return fixture_static(value + 2) ^ 6;
}
extern __typeof__(fixture_strong) weak_ __attribute__((alias("fixture_strong"), weak));

static __typeof__(fixture_global) *choose(void)
{
	return fixture_global;
}
EXPORT int fixture_ifunc(int value) __attribute__((ifunc("choose")));

/* The link editor writes its version behind its name. */
EXPORT int fixture_versioned_(int value)
{
	return fixture_static(value + 3) ^ 7;
}
__asm__(".symver fixture_versioned_, fixture_versioned@@FIXTURE_1");

/* Hand-written code: no sizes, no types, and an unwind entry without a symbol. */
__asm__(".text\n"
	".p2align 6\n"
	".globl fixture_no_size\n"
	".type fixture_no_size, @function\n"
	"fixture_no_size:\n"
	"	nop\n"
	"	nop\n"
	"	ret\n"
	".p2align 4\n"
	".Lhidden:\n"
	"	.cfi_startproc\n"
	"	nop\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".p2align 4\n"
	".globl fixture_outer\n"
	".type fixture_outer, @function\n"
	"fixture_outer:\n"
	"	nop\n"
	"	nop\n"
	"fixture_inner:\n"
	"	nop\n"
	"	ret\n"
	".size fixture_outer, . - fixture_outer\n"
	".section .text.label, \"ax\", @progbits\n"
	".p2align 4\n"
	"fixture_label:\n"
	"	nop\n"
	"	ret\n"
	".text\n");
