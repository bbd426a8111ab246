/* SPDX-License-Identifier: MIT */

/* Core files made by hand: what they hold, what files hold for them, and broken ones. */

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "made_core.h"
#include "symbols/core.h"
#include "symbols/names.h"
#include "symbols/space/maps.h"
#include "symbols/unwind.h"
#include "tests/rounds.h"

#define CODE  ((uint64_t)0x555555554000)
#define HEAP  ((uint64_t)0x555555600000)
#define STACK ((uint64_t)0x7ffffff00000)
#define VDSO  ((uint64_t)0x7fffffff0000)

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/core_test.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/program", folder);
	unlink(path);
	return rmdir(folder);
}

/** Put a program into the folder. */
static void put_program(const uint8_t *id, uint8_t fill)
{
	struct made_bytes program = { 0 };
	char path[128];
	FILE *file;

	made_program(&program, id, fill);
	snprintf(path, sizeof(path), "%s/program", folder);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(program.bytes, 1, program.len, file), program.len);
	assert_int_equal(fclose(file), 0);
	made_free(&program);
}

static int open_bytes(const void *bytes, size_t len, struct symbols_core **ret_core,
		      struct failure *why)
{
	char path[64];
	int fd = made_open(bytes, len, path);
	int result = symbols_core_open(path, ret_core, why);

	close(fd);
	return result;
}

static struct symbols_core *open_made(const struct made_core *made)
{
	struct symbols_core *core;
	struct failure why;

	assert_int_equal(open_bytes(made->file.bytes, made->file.len, &core, &why), 0);
	return core;
}

static struct symbols_space *make_space(struct symbols_core *core, const char *sysroot)
{
	struct symbols_space *space;
	struct failure why;

	assert_int_equal(symbols_core_create_space(core, sysroot, &space, &why), 0);
	return space;
}

static void assert_memory(struct symbols_core *core, uint64_t address, size_t len)
{
	uint8_t bytes[4 * MADE_PAGE];
	struct failure why;

	assert_int_equal(
		attach_read(symbols_core_reader(core), remote_addr_make(address), bytes, len, &why),
		0);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(bytes[i], made_byte(address + i));
}

static void assert_fault(struct symbols_core *core, uint64_t address, size_t len, uint64_t at)
{
	uint8_t bytes[4 * MADE_PAGE];
	struct failure why;

	assert_int_equal(
		attach_read(symbols_core_reader(core), remote_addr_make(address), bytes, len, &why),
		-1);
	assert_int_equal(why.kind, FAILURE_FAULT);
	assert_int_equal(why.address, at);
}

/* ---- What a core holds ------------------------------------------------------------------ */

static void test_memory(void **state)
{
	const struct made_segment segments[] = {
		{ HEAP, 2 * MADE_PAGE, 2 * MADE_PAGE, PF_R | PF_W, NULL },
		{ HEAP + 2 * MADE_PAGE, MADE_PAGE, MADE_PAGE, PF_R, NULL },
		{ STACK, 2 * MADE_PAGE, 100, PF_R | PF_W, NULL },
	};
	struct made_core made = { 0 };
	struct symbols_core *core;

	(void)state;
	made_finish(&made, segments, 3);
	core = open_made(&made);
	assert_false(symbols_core_is_truncated(core));
	assert_memory(core, HEAP, 8);
	assert_memory(core, HEAP + 2 * MADE_PAGE - 3, 8);
	assert_memory(core, HEAP, 3 * MADE_PAGE);
	assert_memory(core, STACK + 92, 8);
	assert_fault(core, HEAP - 8, 8, HEAP - 8);
	assert_fault(core, HEAP + 3 * MADE_PAGE - 8, 16, HEAP + 3 * MADE_PAGE);
	assert_fault(core, STACK + 96, 8, STACK + 100);
	assert_fault(core, UINT64_MAX - 3, 8, UINT64_MAX - 3);
	symbols_core_close(core);
	made_core_free(&made);
}

static void test_threads(void **state)
{
	const struct made_segment segments[] = { { STACK, MADE_PAGE, 0, PF_R | PF_W, NULL } };
	struct made_core made = { 0 };
	struct symbols_core *core;

	(void)state;
	made_process(&made, 4711, "lua\n it");
	made_thread(&made, 4712, 11, CODE + 5, STACK + 64);
	/* Notes of other kinds, and of others with the same numbers, are passed over. */
	made_note(&made, NT_FPREGSET, "floats", 6);
	made_thread(&made, 4711, 0, CODE + 6, HEAP);
	made_finish(&made, segments, 1);
	core = open_made(&made);
	assert_int_equal(symbols_core_pid(core), 4711);
	assert_string_equal(symbols_core_name(core), "lua\n it");
	assert_int_equal(symbols_core_thread_count(core), 2);
	assert_int_equal(symbols_core_thread_get(core, 0)->tid, 4712);
	assert_int_equal(symbols_core_thread_get(core, 0)->signal, 11);
	assert_int_equal(symbols_core_thread_get(core, 0)->stack_limit, STACK + MADE_PAGE);
	assert_int_equal(attach_pc(&symbols_core_thread_get(core, 0)->registers), CODE + 5);
	assert_int_equal(attach_sp(&symbols_core_thread_get(core, 0)->registers), STACK + 64);
	assert_int_equal(symbols_core_thread_get(core, 0)->registers.syscall, -1);
	assert_int_equal(symbols_core_thread_get(core, 1)->tid, 4711);
	assert_int_equal(symbols_core_thread_get(core, 1)->stack_limit, 0);
	assert_null(symbols_core_thread_get(core, 2));
	symbols_core_close(core);
	made_core_free(&made);
}

static void assert_mapping(const struct symbols_space *space, size_t index, uint64_t start,
			   uint64_t end, const char *flags, uint64_t offset, const char *path)
{
	const struct symbols_mapping *mapping = symbols_space_get(space, index);

	assert_non_null(mapping);
	assert_int_equal(mapping->start, start);
	assert_int_equal(mapping->end, end);
	assert_int_equal(mapping->readable, flags[0] == 'r');
	assert_int_equal(mapping->writable, flags[1] == 'w');
	assert_int_equal(mapping->executable, flags[2] == 'x');
	assert_int_equal(mapping->offset, offset);
	assert_string_equal(mapping->path, path);
}

/* Segments with and without files, files without segments as gdb leaves them, and all borders. */
static void test_maps(void **state)
{
	const struct made_file files[] = {
		{ CODE, CODE + MADE_PAGE, 0, "/program" },
		{ CODE + MADE_PAGE, CODE + 3 * MADE_PAGE, 1, "/program" },
		{ CODE + 3 * MADE_PAGE, CODE + 4 * MADE_PAGE, 0, " /line\nfeed\\101" },
	};
	const struct made_segment segments[] = {
		{ CODE, MADE_PAGE, 0, PF_R, NULL },
		{ CODE + 2 * MADE_PAGE, 2 * MADE_PAGE, 0, PF_R | PF_W, NULL },
		{ HEAP, MADE_PAGE, 0, PF_R | PF_W | PF_X, NULL },
		{ VDSO, MADE_PAGE, 0, PF_R | PF_X, NULL },
	};
	struct made_core made = { 0 };
	struct symbols_space *space;
	struct symbols_core *core;

	(void)state;
	made_auxv(&made, VDSO);
	made_files(&made, files, 3);
	made_finish(&made, segments, 4);
	core = open_made(&made);
	space = make_space(core, NULL);
	assert_int_equal(symbols_space_count(space), 6);
	assert_mapping(space, 0, CODE, CODE + MADE_PAGE, "r--", 0, "/program");
	assert_mapping(space, 1, CODE + MADE_PAGE, CODE + 2 * MADE_PAGE, "r-x", MADE_PAGE,
		       "/program");
	assert_mapping(space, 2, CODE + 2 * MADE_PAGE, CODE + 3 * MADE_PAGE, "rw-", 2 * MADE_PAGE,
		       "/program");
	assert_mapping(space, 3, CODE + 3 * MADE_PAGE, CODE + 4 * MADE_PAGE, "rw-", 0,
		       " /line\nfeed\\101");
	assert_mapping(space, 4, HEAP, HEAP + MADE_PAGE, "rwx", 0, "");
	assert_mapping(space, 5, VDSO, VDSO + MADE_PAGE, "r-x", 0, "[vdso]");
	/* One file, and another one. */
	assert_int_equal(symbols_space_get(space, 0)->inode, symbols_space_get(space, 2)->inode);
	assert_int_not_equal(symbols_space_get(space, 0)->inode,
			     symbols_space_get(space, 3)->inode);
	assert_int_equal(symbols_space_get(space, 4)->inode, 0);
	symbols_space_destroy(space);
	symbols_core_close(core);
	made_core_free(&made);
}

struct runs {
	size_t count;
	uint64_t start[8], end[8];
};

static bool note_run(void *context, uint64_t start, uint64_t end)
{
	struct runs *runs = context;

	runs->start[runs->count] = start;
	runs->end[runs->count++] = end;
	return runs->count < 8;
}

/* The kernel leaves holes for pages that were never touched. */
static void test_holes(void **state)
{
	const struct made_segment segments[] = {
		{ HEAP, 64 * MADE_PAGE, 64 * MADE_PAGE, PF_R | PF_W, NULL },
		{ STACK, 2 * MADE_PAGE, MADE_PAGE, PF_R | PF_W, NULL },
	};
	struct made_core made = { 0 };
	struct symbols_core *core;
	struct runs runs = { 0 };
	uint64_t saved = 0;
	struct failure why;
	char path[64];
	int fd;

	(void)state;
	made_finish(&made, segments, 2);
	fd = made_open(made.file.bytes, made.file.len, path);
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 16 * MADE_PAGE,
				   32 * MADE_PAGE),
			 0);
	assert_int_equal(symbols_core_open(path, &core, &why), 0);
	symbols_core_each_saved(core, HEAP + 8, STACK + 100, note_run, &runs);
	assert_int_equal(runs.count, 3);
	assert_int_equal(runs.start[0], HEAP + 8);
	assert_int_equal(runs.end[1], HEAP + 64 * MADE_PAGE);
	assert_int_equal(runs.start[2], STACK);
	assert_int_equal(runs.end[2], STACK + 100);
	for (size_t i = 0; i < 2; i++)
		saved += runs.end[i] - runs.start[i];
	assert_int_equal(saved, 32 * MADE_PAGE - 8);
	symbols_core_close(core);
	close(fd);
	made_core_free(&made);
}

/* ---- What files hold for it ------------------------------------------------------------- */

/** A core whose program has its first page saved, as the kernel does it, and the second not. */
static struct symbols_core *open_program(const uint8_t *id, uint64_t code_saved)
{
	const struct made_file files[] = {
		{ CODE, CODE + MADE_PAGE, 0, "/program" },
		{ CODE + MADE_PAGE, CODE + 2 * MADE_PAGE, 1, "/program" },
	};
	struct made_bytes program = { 0 };
	struct made_core made = { 0 };
	struct symbols_core *core;

	made_program(&program, id, 0x11);
	made_files(&made, files, 2);
	{
		const struct made_segment segments[] = {
			{ CODE, MADE_PAGE, MADE_PAGE, PF_R, program.bytes },
			{ CODE + MADE_PAGE, MADE_PAGE, code_saved, PF_R | PF_X, NULL },
		};

		made_finish(&made, segments, 2);
	}
	core = open_made(&made);
	made_core_free(&made);
	made_free(&program);
	return core;
}

static void note_missing(void *context, const char *path)
{
	size_t *count = context;

	assert_string_equal(path, "/program");
	++*count;
}

static void assert_program(const uint8_t *in_core, const uint8_t *in_file, bool proven)
{
	struct symbols_core *core = open_program(in_core, 0);
	struct symbols_space *space = make_space(core, folder);
	size_t missing = 0;
	uint8_t bytes[64];
	struct failure why;

	put_program(in_file, 0x22);
	if (proven) {
		/* Across the border: the core's page, then the file's. */
		assert_int_equal(attach_read(symbols_core_reader(core),
					     remote_addr_make(CODE + MADE_PAGE - 32), bytes,
					     sizeof(bytes), &why),
				 0);
		assert_int_equal(bytes[31], 0);
		assert_int_equal(bytes[32], 0x22);
		assert_int_equal(symbols_read_file_bytes(space, CODE + MADE_PAGE, bytes, 1, &why),
				 0);
	} else {
		assert_fault(core, CODE + MADE_PAGE + 8, 8, CODE + MADE_PAGE + 8);
		assert_int_equal(symbols_read_file_bytes(space, CODE + MADE_PAGE, bytes, 1, &why),
				 -1);
	}
	assert_int_equal(symbols_core_each_missing(core, note_missing, &missing), 1);
	assert_int_equal(missing, proven ? 0 : 1);
	symbols_space_destroy(space);
	symbols_core_close(core);
}

static void test_files(void **state)
{
	uint8_t other[20] = { 9 };

	(void)state;
	assert_program(made_build_id, made_build_id, true);
	assert_program(made_build_id, other, false);
	/* Without a build-id the headers tell, which another program has not alike. */
	assert_program(NULL, NULL, true);
	assert_program(NULL, other, false);
	assert_program(other, NULL, false);
}

static void test_no_file(void **state)
{
	struct symbols_core *core = open_program(made_build_id, 0);
	struct symbols_space *space;
	struct failure why;
	size_t missing = 0;

	(void)state;
	/* Nothing is behind it without a space, or where the folder has no such file. */
	assert_fault(core, CODE + MADE_PAGE, 8, CODE + MADE_PAGE);
	assert_int_equal(symbols_core_create_space(core, "/no/such/folder", &space, &why), -1);
	assert_int_equal(why.errnum, ENOENT);
	space = make_space(core, "/proc/self/fdinfo");
	assert_fault(core, CODE + MADE_PAGE, 8, CODE + MADE_PAGE);
	symbols_core_each_missing(core, note_missing, &missing);
	assert_int_equal(missing, 1);
	symbols_space_destroy(space);
	symbols_core_close(core);
}

/* What was saved and is cut off may have been changed: the file does not stand in for it. */
static void test_cut_program(void **state)
{
	struct symbols_core *whole = open_program(made_build_id, MADE_PAGE), *core;
	struct made_bytes program = { 0 };
	const struct made_file files[] = {
		{ CODE, CODE + MADE_PAGE, 0, "/program" },
		{ CODE + MADE_PAGE, CODE + 2 * MADE_PAGE, 1, "/program" },
	};
	struct made_core made = { 0 };
	struct symbols_space *space;
	struct failure why;

	(void)state;
	assert_memory(whole, CODE + MADE_PAGE, MADE_PAGE);
	symbols_core_close(whole);
	made_program(&program, made_build_id, 0x11);
	put_program(made_build_id, 0x11);
	made_files(&made, files, 2);
	{
		const struct made_segment segments[] = {
			{ CODE, MADE_PAGE, MADE_PAGE, PF_R, program.bytes },
			{ CODE + MADE_PAGE, MADE_PAGE, MADE_PAGE, PF_R | PF_X, NULL },
		};

		made_finish(&made, segments, 2);
	}
	assert_int_equal(open_bytes(made.file.bytes, made.file.len - 16, &core, &why), 0);
	space = make_space(core, folder);
	assert_true(symbols_core_is_truncated(core));
	assert_memory(core, CODE + MADE_PAGE, MADE_PAGE - 16);
	assert_fault(core, CODE + 2 * MADE_PAGE - 32, 32, CODE + 2 * MADE_PAGE - 16);
	symbols_space_destroy(space);
	symbols_core_close(core);
	made_core_free(&made);
	made_free(&program);
}

/* ---- Broken ones ------------------------------------------------------------------------ */

static void ignore_missing(void *context, const char *path)
{
	(void)context, (void)path;
}

/** All that can be asked of a core. */
static void exercise(struct symbols_core *core)
{
	struct symbols_function function;
	struct symbols_space *space;
	struct runs runs = { 0 };
	uint8_t bytes[64];
	struct failure why;

	symbols_core_each_saved(core, 0, UINT64_MAX, note_run, &runs);
	if (symbols_core_create_space(core, folder, &space, &why) < 0)
		return;
	for (size_t i = 0; i < symbols_space_count(space); i++) {
		const struct symbols_mapping *mapping = symbols_space_get(space, i);

		attach_read(symbols_core_reader(core), remote_addr_make(mapping->start), bytes,
			    sizeof(bytes), &why);
		attach_read(symbols_core_reader(core), remote_addr_make(mapping->end - 32), bytes,
			    sizeof(bytes), &why);
		assert_int_equal(symbols_find_function(space, mapping->start, &function, &why), 0);
	}
	symbols_core_each_missing(core, ignore_missing, NULL);
	symbols_space_destroy(space);
}

static void make_all(struct made_core *made)
{
	const struct made_file files[] = { { CODE, CODE + MADE_PAGE, 0, "/program" } };
	const struct made_segment segments[] = {
		{ CODE, MADE_PAGE, 64, PF_R, NULL },
		{ STACK, MADE_PAGE, 64, PF_R | PF_W, NULL },
	};

	made_process(made, 4711, "luajit");
	made_thread(made, 4711, 6, CODE, STACK);
	made_auxv(made, VDSO);
	made_files(made, files, 1);
	made_finish(made, segments, 2);
}

static void test_each_cut(void **state)
{
	struct made_core made = { 0 };
	struct symbols_core *core;
	struct failure why;

	(void)state;
	make_all(&made);
	for (size_t len = made.file.len % test_stride(1); len <= made.file.len;
	     len += test_stride(1)) {
		int result = open_bytes(made.file.bytes, len, &core, &why);

		if (len < sizeof(Elf64_Ehdr)) {
			assert_int_equal(result, -1);
			assert_int_equal(why.kind, FAILURE_INVALID);
			continue;
		}
		assert_int_equal(result, 0);
		assert_int_equal(symbols_core_is_truncated(core), len < made.file.len);
		exercise(core);
		symbols_core_close(core);
	}
	made_core_free(&made);
}

/* Each byte of headers and notes as it never should be. */
static void test_each_byte(void **state)
{
	static const uint8_t values[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };
	struct made_core made = { 0 };
	struct symbols_core *core;
	struct failure why;

	(void)state;
	make_all(&made);
	for (size_t i = 0; i < made.file.len - 128; i += test_stride(1)) {
		uint8_t kept = made.file.bytes[i];

		for (size_t k = 0; k < sizeof(values); k++) {
			made.file.bytes[i] = values[k];
			if (open_bytes(made.file.bytes, made.file.len, &core, &why) == 0) {
				exercise(core);
				symbols_core_close(core);
			}
		}
		made.file.bytes[i] = kept;
	}
	made_core_free(&made);
}

static void refuse(struct made_core *made, enum failure_kind kind, const char *part)
{
	struct symbols_core *core;
	struct failure why;

	assert_int_equal(open_bytes(made->file.bytes, made->file.len, &core, &why), -1);
	assert_int_equal(why.kind, kind);
	assert_non_null(strstr(why.step, part));
}

static void test_refused(void **state)
{
	struct made_core made = { 0 };
	Elf64_Ehdr *header;
	struct symbols_core *core;
	struct failure why;

	(void)state;
	make_all(&made);
	header = (Elf64_Ehdr *)(void *)made.file.bytes;
	header->e_type = ET_DYN;
	refuse(&made, FAILURE_INVALID, "not a core file");
	header->e_type = ET_CORE;
	header->e_ident[EI_CLASS] = ELFCLASS32;
	refuse(&made, FAILURE_INVALID, "32-bit");
	header->e_ident[EI_CLASS] = ELFCLASS64;
	header->e_machine = EM_RISCV;
	refuse(&made, FAILURE_INVALID, "another architecture");
	made.file.bytes[0] = '#';
	refuse(&made, FAILURE_INVALID, "not a core file");
	made_core_free(&made);
	assert_int_equal(symbols_core_open("/no/such/core", &core, &why), -1);
	assert_int_equal(why.errnum, ENOENT);
	assert_int_equal(symbols_core_open("/tmp", &core, &why), -1);
	assert_int_equal(why.kind, FAILURE_INVALID);
	assert_int_equal(symbols_core_open("/dev/null", &core, &why), -1);
	assert_int_equal(why.kind, FAILURE_INVALID);
}

/* The kernel counts more than 65534 segments elsewhere. */
static void test_many_segments(void **state)
{
	Elf64_Shdr section = { .sh_info = 3 };
	struct made_core made = { 0 };
	struct symbols_core *core;
	Elf64_Ehdr *header;

	(void)state;
	make_all(&made);
	header = (Elf64_Ehdr *)(void *)made.file.bytes;
	header->e_phnum = PN_XNUM;
	header->e_shoff = made.file.len;
	made_append(&made.file, &section, sizeof(section));
	core = open_made(&made);
	assert_false(symbols_core_is_truncated(core));
	assert_memory(core, STACK, 64);
	symbols_core_close(core);
	section.sh_info = UINT32_MAX;
	memcpy(made.file.bytes + made.file.len - sizeof(section), &section, sizeof(section));
	refuse(&made, FAILURE_LIMIT, "too many segments");
	made_core_free(&made);
}

static void test_overlaps(void **state)
{
	const struct made_segment segments[] = {
		{ STACK, MADE_PAGE, 64, PF_R, NULL },
		{ HEAP + MADE_PAGE, 2 * MADE_PAGE, 64, PF_R, NULL },
		{ HEAP, 2 * MADE_PAGE, 64, PF_R | PF_W, NULL },
		{ UINT64_MAX - 4095, 2 * MADE_PAGE, 64, PF_R, NULL },
		{ CODE, 0, 0, PF_R, NULL },
	};
	const struct made_file files[] = {
		{ CODE, CODE + 2 * MADE_PAGE, 0, "/first" },
		{ CODE + MADE_PAGE, CODE + 3 * MADE_PAGE, 0, "/second" },
		{ CODE + 4 * MADE_PAGE, CODE + 3 * MADE_PAGE, 0, "/third" },
		{ CODE + 5 * MADE_PAGE, CODE + 6 * MADE_PAGE, UINT64_MAX / 2, "/fourth" },
	};
	struct made_core made = { 0 };
	struct symbols_space *space;
	struct symbols_core *core;

	(void)state;
	made_files(&made, files, 4);
	made_finish(&made, segments, 5);
	core = open_made(&made);
	space = make_space(core, folder);
	assert_int_equal(symbols_space_count(space), 3);
	assert_mapping(space, 0, CODE, CODE + 2 * MADE_PAGE, "r-x", 0, "/first");
	assert_mapping(space, 1, HEAP, HEAP + 2 * MADE_PAGE, "rw-", 0, "");
	assert_mapping(space, 2, STACK, STACK + MADE_PAGE, "r--", 0, "");
	symbols_space_destroy(space);
	symbols_core_close(core);
	made_core_free(&made);
}

static void test_wild_notes(void **state)
{
	const uint64_t counts[] = { 1, UINT64_MAX, UINT64_MAX / 24, (uint64_t)1 << 32 };

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		const uint64_t list[] = { counts[i], MADE_PAGE };
		struct made_core made = { 0 };
		struct symbols_core *core;
		struct symbols_space *space;

		made_note(&made, NT_FILE, list, sizeof(list));
		made_note(&made, NT_FILE, list, 3);
		made_note(&made, NT_PRSTATUS, list, sizeof(list));
		made_note(&made, NT_PRPSINFO, NULL, 0);
		made_note(&made, NT_AUXV, list, 15);
		made_thread(&made, 1, 0, 0, UINT64_MAX);
		made_finish(&made, NULL, 0);
		core = open_made(&made);
		assert_int_equal(symbols_core_thread_count(core), 1);
		space = make_space(core, NULL);
		assert_int_equal(symbols_space_count(space), 0);
		symbols_space_destroy(space);
		symbols_core_close(core);
		made_core_free(&made);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),	      cmocka_unit_test(test_threads),
		cmocka_unit_test(test_maps),	      cmocka_unit_test(test_holes),
		cmocka_unit_test(test_files),	      cmocka_unit_test(test_no_file),
		cmocka_unit_test(test_cut_program),   cmocka_unit_test(test_each_cut),
		cmocka_unit_test(test_each_byte),     cmocka_unit_test(test_refused),
		cmocka_unit_test(test_many_segments), cmocka_unit_test(test_overlaps),
		cmocka_unit_test(test_wild_notes),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
