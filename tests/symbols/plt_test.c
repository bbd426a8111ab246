/* SPDX-License-Identifier: MIT */

/* Names of stubs in a made-up file with very many relocations. */

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "symbols/names/plt.h"

#define STUBS	   100
#define STUB_BYTES 16
/** Address and offset of the page with stubs, and in it the words that they read. */
#define PAGE  0x1000
#define WORDS 0x800
/** Relocations without a symbol before the others. */
#define RELATIVE  200000
#define RELOCATED (RELATIVE + STUBS / 2 + 1)

struct made {
	uint8_t head[PAGE], page[PAGE];
	Elf64_Sym symbols[STUBS + 2];
	char names[STUBS + 2][8];
	Elf64_Rela relocations[RELOCATED];
};

static void put_stub(uint8_t *page, uint32_t at, uint32_t word)
{
#if defined(__x86_64__)
	uint32_t distance = word - (at + 6);

	memcpy(page + at, "\xff\x25", 2); /* jmp *word(%rip) */
	memcpy(page + at + 2, &distance, sizeof(distance));
#elif defined(__aarch64__)
	const uint32_t code[] = { 0x90000010,		       /* adrp x16, this page */
				  0xf9400211 | word / 8 << 10, /* ldr x17, [x16, #word] */
				  0x91000210 | word << 10,     /* add x16, x16, #word */
				  0xd61f0220 };		       /* br x17 */

	memcpy(page + at, code, sizeof(code));
#endif
}

/** A file in which every other stub's word has a relocation, the last two of them the same. */
static void make(struct symbols_elf *elf)
{
	struct made *made = calloc(1, sizeof(*made));
	size_t count = RELATIVE;

	assert_non_null(made);
	for (unsigned i = 0; i < STUBS; i++) {
		put_stub(made->page, i * STUB_BYTES, WORDS + i * 8);
		snprintf(made->names[i + 1], sizeof(made->names[0]), "f%u", i);
		made->symbols[i + 1].st_name = (i + 1) * sizeof(made->names[0]);
		if (i % 2 == 0)
			made->relocations[count++] =
				(Elf64_Rela){ .r_offset = PAGE + WORDS + i * 8,
					      .r_info = ELF64_R_INFO(i + 1, 7) };
	}
	made->relocations[count] = made->relocations[count - 1];
	made->relocations[count].r_info = ELF64_R_INFO(1, 7);
	*elf = (struct symbols_elf){ 0 };
	symbols_source_init_memory(&elf->source, (uint8_t *)made, sizeof(*made));
	elf->loads[0] = (struct symbols_load){
		.vaddr = 0, .memsz = 2 * PAGE, .filesz = 2 * PAGE, .executable = true
	};
	elf->load_count = 1;
	elf->plt[0] = (struct symbols_section){
		.vaddr = PAGE, .offset = PAGE, .size = STUBS * STUB_BYTES, .entry_size = STUB_BYTES
	};
	elf->dynsym.offset = offsetof(struct made, symbols);
	elf->dynsym.size = sizeof(made->symbols);
	elf->dynstr.offset = offsetof(struct made, names);
	elf->dynstr.size = sizeof(made->names);
	elf->relocations.offset = offsetof(struct made, relocations);
	elf->relocations.size = sizeof(made->relocations);
}

static void check_stub(struct symbols_plt *plt, const struct symbols_elf *elf, unsigned i)
{
	char text[SYMBOLS_NAME_MAX_BYTES] = "", expected[16];
	uint64_t start = 0, end = 0;
	bool found = symbols_plt_find(plt, elf, PAGE + i * STUB_BYTES + 4, &start, &end, text);

	snprintf(expected, sizeof(expected), "f%u@plt", i);
	assert_int_equal(found, i % 2 == 0);
	if (!found)
		return;
	assert_string_equal(text, expected);
	assert_int_equal(start, PAGE + i * STUB_BYTES);
	assert_int_equal(end, start + STUB_BYTES);
}

/** The relocations are read once, so that it does not matter how many addresses are asked for. */
static void test_many_relocations(void **state)
{
	struct symbols_plt plt = { 0 };
	struct timespec begin, end;
	struct symbols_elf elf;

	(void)state;
	make(&elf);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	for (unsigned i = 0; i < STUBS * 3000; i++)
		check_stub(&plt, &elf, i % STUBS);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	/* Going through them for each would take half a minute. */
	assert_true(end.tv_sec - begin.tv_sec < 5);
	assert_int_equal(plt.count, STUBS / 2 + 1);
	symbols_plt_deinit(&plt);
	symbols_elf_deinit(&elf);
}

/** Sections that are not in the file. */
static void test_damage(void **state)
{
	struct symbols_plt plt = { 0 };
	char text[SYMBOLS_NAME_MAX_BYTES];
	struct symbols_elf elf;
	uint64_t start, end;

	(void)state;
	make(&elf);
	elf.relocations.offset = UINT64_MAX - 64;
	assert_false(symbols_plt_find(&plt, &elf, PAGE, &start, &end, text));
	symbols_plt_deinit(&plt);
	elf.relocations.offset = offsetof(struct made, relocations);
	elf.dynsym.offset = UINT64_MAX - 64;
	assert_false(symbols_plt_find(&plt, &elf, PAGE, &start, &end, text));
	symbols_plt_deinit(&plt);
	symbols_elf_deinit(&elf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_relocations),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
