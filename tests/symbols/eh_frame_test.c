/* SPDX-License-Identifier: MIT */

/* Our reading of .eh_frame against libdw's, for every entry of the C library, and hostile entries.
 */

#include "symbols/elf/eh_frame.h"
#include "symbols/unwind/eh_rule.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void open_elf(struct symbols_elf *elf, const char *path)
{
	struct symbols_source source;
	struct failure why;

	assert_int_equal(symbols_source_init_file(&source, open(path, O_RDONLY), &why), 0);
	assert_int_equal(symbols_elf_init(elf, &source, &why), 0);
}

static const char *libc_path(void)
{
	Dl_info info;

	assert_true(dladdr((void *)(uintptr_t)strtoul, &info));
	return info.dli_fname;
}

/** libdw's rule at @p vaddr in our terms. @return false where it is of another form. */
static bool tarantool_rule(Dwarf_Frame *frame, struct symbols_eh_rule *ret)
{
	Dwarf_Op *ops, memory[3];
	size_t count;

	if (dwarf_frame_cfa(frame, &ops, &count) != 0 || count != 1 || ops[0].atom != DW_OP_bregx)
		return false;
	ret->cfa_register = (int)ops[0].number;
	ret->cfa_offset = (int64_t)ops[0].number2;
	for (int i = 0; i < ATTACH_REG_COUNT; i++) {
		assert_int_equal(dwarf_frame_register(frame, i, memory, &ops, &count), 0);
		ret->saved_offset[i] = INT64_MIN;
		/* Without operations a register has no value, or the same as in the callee. */
		if (i == SYMBOLS_EH_RETURN_ADDRESS)
			ret->is_root = count == 0 && ops == memory;
		if (count == 0 ||
		    (count == 2 && ops[1].atom == DW_OP_stack_value && i == ATTACH_REG_SP))
			continue;
		if (ops[0].atom != DW_OP_call_frame_cfa || count > 2 ||
		    (count == 2 && ops[1].atom != DW_OP_plus_uconst))
			return false;
		ret->saved_offset[i] = count == 2 ? (int64_t)ops[1].number : 0;
	}
	return true;
}

/** Places whose frames have no caller. */
static size_t roots;

/** Compare the rule at @p vaddr. @return Whether it is simple. */
static bool check_rule(Dwarf_CFI *cfi, const struct symbols_eh *eh,
		       const struct symbols_eh_entry *entry, uint64_t vaddr)
{
	struct symbols_eh_rule expected, rule;
	Dwarf_Frame *frame;
	bool simple;

	assert_int_equal(dwarf_cfi_addrframe(cfi, vaddr, &frame), 0);
	simple = tarantool_rule(frame, &expected);
	free(frame);
	assert_int_equal(symbols_eh_rule_at(eh, entry, vaddr, &rule), simple);
	if (simple) {
		assert_int_equal(rule.cfa_register, expected.cfa_register);
		assert_int_equal(rule.cfa_offset, expected.cfa_offset);
		assert_int_equal(rule.is_root, expected.is_root);
		roots += rule.is_root;
		assert_memory_equal(rule.saved_offset, expected.saved_offset,
				    sizeof(rule.saved_offset));
	}
	return simple;
}

static void check_file(const char *path, bool with_table)
{
	struct symbols_elf elf;
	struct symbols_eh eh;
	struct failure why;
	int fd = open(path, O_RDONLY);
	Elf *handle;
	Dwarf_CFI *cfi;
	size_t checked = 0, locations = 0, simple = 0;

	roots = 0;

	elf_version(EV_CURRENT);
	handle = elf_begin(fd, ELF_C_READ, NULL);
	cfi = dwarf_getcfi_elf(handle);
	assert_non_null(cfi);
	open_elf(&elf, path);
	if (!with_table)
		elf.eh_frame_hdr.size = 0;
	assert_int_equal(symbols_eh_init(&eh, &elf, &why), 0);
	for (size_t i = 0; i < eh.count; i++) {
		struct symbols_eh_entry entry, found;
		uint64_t step;

		assert_true(symbols_eh_entry_at(&eh, i, &entry));
		assert_true(symbols_eh_find(&eh, entry.end - 1, &found));
		assert_int_equal(found.vaddr, entry.vaddr);
		if (!symbols_eh_check(&eh, &entry))
			continue;
		checked++;
		step = (entry.end - entry.start) / 16 + 1;
		for (uint64_t at = entry.start; at < entry.end; at += step, locations++)
			simple += check_rule(cfi, &eh, &entry, at);
		simple += check_rule(cfi, &eh, &entry, entry.end - 1);
		locations++;
	}
	print_message("%s: %zu entries, %zu fit for libunwind; %zu places, %zu simple rules, %zu "
		      "without a caller\n",
		      path, eh.count, checked, locations, simple, roots);
	assert_true(eh.count > 5);
	assert_true(roots > 0);
	/* Every entry that a compiler wrote passes. */
	assert_true(checked * 1000 >= eh.count * 999);
	symbols_eh_deinit(&eh);
	symbols_elf_deinit(&elf);
	dwarf_cfi_end(cfi);
	elf_end(handle);
	close(fd);
}

static void test_libc(void **state)
{
	(void)state;
	check_file(libc_path(), true);
}

static void test_without_table(void **state)
{
	(void)state;
	check_file(libc_path(), false);
	check_file(UNWIND_TARGET, false);
}

/** Copy @p path, change rows of its table and load it. */
static void load_changed(const char *path, int32_t (*change)(size_t row, int32_t start),
			 struct symbols_eh *ret_eh)
{
	char name[] = "symbols_eh_frame_test.XXXXXX", command[512];
	int fd = mkstemp(name);
	struct symbols_source source;
	struct symbols_elf elf;
	struct failure why;

	assert_true(fd >= 0);
	snprintf(command, sizeof(command), "cat %s >%s", path, name);
	assert_int_equal(system(command), 0);
	unlink(name);
	assert_int_equal(symbols_source_init_file(&source, dup(fd), &why), 0);
	assert_int_equal(symbols_elf_init(&elf, &source, &why), 0);
	/* A head of 12 bytes, then rows of a start and an entry. */
	for (size_t i = 0; i < (elf.eh_frame_hdr.size - 12) / 8; i++) {
		off_t at = (off_t)(elf.eh_frame_hdr.offset + 12 + i * 8);
		int32_t start;

		assert_int_equal(pread(fd, &start, sizeof(start), at), sizeof(start));
		start = change(i, start);
		assert_int_equal(pwrite(fd, &start, sizeof(start), at), sizeof(start));
	}
	assert_int_equal(symbols_eh_init(ret_eh, &elf, &why), 0);
	symbols_elf_deinit(&elf);
	close(fd);
}

static int32_t keep(size_t row, int32_t start)
{
	(void)row;
	return start;
}

static int32_t alternate(size_t row, int32_t start)
{
	(void)start;
	return row % 2 ? INT32_MAX : INT32_MIN;
}

static int32_t same(size_t row, int32_t start)
{
	(void)row;
	(void)start;
	return 4096;
}

/** Rows out of order are not believed, but made anew from the entries. */
static void test_rows_out_of_order(void **state)
{
	int32_t (*const changes[])(size_t, int32_t) = { alternate, same };
	struct symbols_eh honest, eh;

	(void)state;
	load_changed(libc_path(), keep, &honest);
	for (size_t k = 0; k < sizeof(changes) / sizeof(changes[0]); k++) {
		load_changed(libc_path(), changes[k], &eh);
		assert_int_equal(eh.count, honest.count);
		for (size_t i = 0; i < eh.count; i++)
			assert_int_equal(eh.base + (uint64_t)eh.rows[i].start,
					 honest.base + (uint64_t)honest.rows[i].start);
		symbols_eh_deinit(&eh);
	}
	symbols_eh_deinit(&honest);
}

static void test_program(void **state)
{
	(void)state;
	check_file(UNWIND_TARGET, true);
}

/* ---- Hostile entries -------------------------------------------------------------------- */

/** One .eh_frame with a common part and an entry for [0x1000, 0x1100). */
struct made {
	uint8_t bytes[512];
	size_t len;
	struct symbols_eh eh;
	struct symbols_eh_row row;
};

static void put(struct made *made, const void *bytes, size_t len)
{
	memcpy(made->bytes + made->len, bytes, len);
	made->len += len;
}

static void put32(struct made *made, uint32_t value)
{
	put(made, &value, sizeof(value));
}

/** Build it from the programs of the common part and of the entry. */
static void make(struct made *made, uint8_t return_column, const void *common, size_t common_len,
		 const void *program, size_t program_len)
{
	static const uint8_t head[] = { 1, 'z', 'R', 0, 1, 0x78 };
	uint8_t tail[] = { return_column, 1, 0x03 /* udata4 */ };

	*made = (struct made){ 0 };
	put32(made, (uint32_t)(4 + sizeof(head) + sizeof(tail) + common_len));
	put32(made, 0);
	put(made, head, sizeof(head));
	put(made, tail, sizeof(tail));
	put(made, common, common_len);
	made->row.entry = (int32_t)made->len;
	put32(made, (uint32_t)(4 + 8 + 1 + program_len));
	put32(made, (uint32_t)made->len);
	put32(made, 0x1000);
	put32(made, 0x100);
	put(made, "", 1);
	put(made, program, program_len);
	made->row.start = 0x1000;
	made->eh = (struct symbols_eh){
		.bytes = made->bytes, .len = made->len, .rows = &made->row, .count = 1
	};
}

/* CFA = rsp + 8, return address at CFA - 8. */
#define COMMON "\x0c\x07\x08\x90\x01"

static bool passes(const char *common, size_t common_len, const char *program, size_t len)
{
	struct made made;
	struct symbols_eh_entry entry;

	make(&made, SYMBOLS_EH_RETURN_ADDRESS, common, common_len, program, len);
	assert_true(symbols_eh_find(&made.eh, 0x10ff, &entry));
	assert_int_equal(entry.start, 0x1000);
	assert_int_equal(entry.end, 0x1100);
	return symbols_eh_check(&made.eh, &entry);
}

#define PASSES(program)		passes(COMMON, sizeof(COMMON) - 1, program, sizeof(program) - 1)
#define PASSES_WITH(c, program) passes(c, sizeof(c) - 1, program, sizeof(program) - 1)

static void test_check(void **state)
{
	(void)state;
	assert_true(PASSES(""));
	assert_true(PASSES("\x41\x0e\x10\x86\x02\x41\x0d\x06")); /* push rbp; mov rsp, rbp */
	assert_true(PASSES("\x0a\x41\x0e\x10\x0b"));
	assert_true(PASSES("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22")); /* a PLT */
	assert_true(PASSES("\x10\x06\x02\x77\x28"));  /* rbp in a signal frame */
	assert_true(PASSES_WITH("", "\x0c\x07\x08")); /* the entry itself defines the CFA */

	assert_false(PASSES_WITH("", ""));		   /* no CFA at all */
	assert_false(PASSES_WITH("", "\x41\x0c\x07\x08")); /* none in the first row */
	assert_false(PASSES_WITH("", "\x0a\x0c\x07\x08\x0b"));
	assert_false(PASSES("\x05\x60\x01")); /* register 96 */
#if defined(__x86_64__)
	assert_false(PASSES("\x91\x01")); /* register 17 */
#endif
	assert_false(PASSES("\x05\x80\x80\x01\x01"));	  /* register 16384 */
	assert_false(PASSES("\x09\x06\x7f"));		  /* saved in register 127 */
	assert_false(PASSES("\x0b"));			  /* restore without remember */
	assert_false(PASSES("\x14\x06\x02"));		  /* val_offset: libunwind misreads it */
	assert_false(PASSES("\x01\x00\x00\x00\x00"));	  /* set_loc */
	assert_false(PASSES("\x0f\x03\x2f\xfd\xff"));	  /* skip -3: endless */
	assert_false(PASSES("\x0f\x04\x30\x30\x1b\x00")); /* a division that may trap */
	assert_false(PASSES("\x0f\x7f\x30"));		  /* longer than the entry */
	assert_false(PASSES("\x10\x06\x01\x77"));	  /* operand behind its end */
	assert_false(PASSES("\x0e"));			  /* operand missing */
	assert_false(PASSES("\x0e\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
	assert_false(PASSES("\x3f"));
}

static void test_return_column(void **state)
{
	struct made made;
	struct symbols_eh_entry entry;

	(void)state;
	make(&made, 200, COMMON, sizeof(COMMON) - 1, "", 0);
	assert_true(symbols_eh_find(&made.eh, 0x1000, &entry));
	assert_false(symbols_eh_check(&made.eh, &entry));
}

/** @return Whether what the program says at its end is a rule, in which registers keep the values
 * of the callee unless they are saved. */
static bool is_simple(const char *program, struct symbols_eh_rule *ret_rule)
{
	struct made made;
	struct symbols_eh_entry entry;

	make(&made, SYMBOLS_EH_RETURN_ADDRESS, COMMON, sizeof(COMMON) - 1, program,
	     strlen(program));
	assert_true(symbols_eh_find(&made.eh, 0x10ff, &entry));
	return symbols_eh_rule_at(&made.eh, &entry, 0x10ff, ret_rule);
}

/** A register that is lost has no value of its callee's, but the frame without a caller is known by
 *  what it loses. */
static void test_lost(void **state)
{
	const char root[] = { 0x07, SYMBOLS_EH_RETURN_ADDRESS, '\0' };
	struct symbols_eh_rule rule;

	(void)state;
	assert_true(is_simple("\x83\x02", &rule)); /* saved */
	assert_int_equal(-16, rule.saved_offset[3]);
	assert_false(rule.is_root);
	assert_true(is_simple("\x08\x03", &rule)); /* the same value */
	assert_int_equal(INT64_MIN, rule.saved_offset[3]);
	assert_false(is_simple("\x07\x03", &rule));    /* lost */
	assert_true(is_simple("\x07\x03\xc3", &rule)); /* and restored */
	assert_true(is_simple(root, &rule));
	assert_true(rule.is_root);
}

/** Any damage gives an error or another entry, and never a read outside the bytes. */
static void test_damage(void **state)
{
	struct made made;

	(void)state;
	make(&made, 16, COMMON, sizeof(COMMON) - 1, "\x41\x0e\x10\x86\x02", 5);
	for (size_t at = 0; at < made.len; at++) {
		for (unsigned value = 0; value < 256; value++) {
			/* A copy of its own, so that a reader past its end is seen. */
			uint8_t *copy = malloc(made.len);
			struct symbols_eh eh = made.eh;
			struct symbols_eh_entry entry;

			assert_non_null(copy);
			memcpy(copy, made.bytes, made.len);
			copy[at] = (uint8_t)value;
			eh.bytes = copy;
			if (symbols_eh_find(&eh, 0x1004, &entry))
				symbols_eh_check(&eh, &entry);
			free(copy);
		}
	}
	for (size_t len = 0; len < made.len; len++) {
		struct symbols_eh_entry entry;

		made.eh.len = len;
		assert_false(symbols_eh_find(&made.eh, 0x1004, &entry));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_libc),
		cmocka_unit_test(test_without_table),
		cmocka_unit_test(test_rows_out_of_order),
		cmocka_unit_test(test_program),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_return_column),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
