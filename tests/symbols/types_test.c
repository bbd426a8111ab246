/* SPDX-License-Identifier: MIT */

/* Structures from DWARF against what the compiler says of the same structures. */

#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbols/dwarf/types_internal.h"
#include "symbols/elf/elf_file.h"
#include "types_fixture.h"

#define ANCHOR	    "fixture_state"
#define DEBUG_PATHS "LJPROF_DEBUG_DIR"

/** Debian's Tarantool, not stripped, with DWARF: installed, or only unpacked (scripts/deps). */
static const char *const tarantools[] = { "/usr/bin/tarantool", TYPES_TARANTOOL };

/** One opened file. */
struct opened {
	struct symbols_space *space;
	struct symbols_types *types;
};

/** A recorded space that has the code of @p path mapped at a page of its own. */
static struct symbols_space *map_file(const char *path, uint64_t *ret_address)
{
	struct symbols_source source;
	struct symbols_elf elf;
	struct symbols_space *space;
	struct failure why;
	struct stat status;
	char text[512];
	unsigned i = 0;

	assert_int_equal(symbols_source_init_file(&source, open(path, O_RDONLY), &why), 0);
	assert_int_equal(symbols_elf_init(&elf, &source, &why), 0);
	assert_int_equal(stat(path, &status), 0);
	while (i < elf.load_count && !elf.loads[i].executable)
		i++;
	assert_true(i < elf.load_count);
	*ret_address = 0x7f0000000000;
	snprintf(text, sizeof(text),
		 "%" PRIx64 "-%" PRIx64 " r-xp %08" PRIx64 " %02x:%02x %lu %s\n", *ret_address,
		 *ret_address + 0x1000, elf.loads[i].offset & ~(uint64_t)4095, major(status.st_dev),
		 minor(status.st_dev), status.st_ino, path);
	symbols_elf_deinit(&elf);
	assert_int_equal(symbols_space_create_recorded(text, strlen(text), &space, &why), 0);
	return space;
}

static int open_types(struct opened *opened, const char *path, const char *anchor,
		      struct failure *why)
{
	uint64_t address;
	int result;

	opened->space = map_file(path, &address);
	result = symbols_types_create(opened->space, address, anchor, &opened->types, why);
	if (result < 0)
		symbols_space_destroy(opened->space);
	return result;
}

static void close_types(struct opened *opened)
{
	symbols_types_destroy(opened->types);
	symbols_space_destroy(opened->space);
}

static void check_member(struct symbols_types *types, const char *structure, const char *path,
			 uint64_t offset, uint64_t size)
{
	uint64_t found_offset = 0, found_size = 0;
	struct failure why = { 0 };
	int result =
		symbols_types_find_member(types, structure, path, &found_offset, &found_size, &why);

	if (result < 0 || found_offset != offset || found_size != size)
		print_message("%s.%s: %d (%d), %lu and %lu for %lu and %lu\n", structure, path,
			      result, why.kind, found_offset, found_size, offset, size);
	assert_int_equal(result, 0);
	assert_int_equal(found_offset, offset);
	assert_int_equal(found_size, size);
}

static void check_none(struct symbols_types *types, const char *structure, const char *path,
		       enum failure_kind kind)
{
	uint64_t offset, size;
	struct failure why = { 0 };

	assert_int_equal(symbols_types_find_member(types, structure, path, &offset, &size, &why),
			 -1);
	assert_int_equal(why.kind, kind);
}

#define CHECK(types, type, member)                                         \
	check_member(types, #type, #member, offsetof(struct type, member), \
		     sizeof(((struct type *)NULL)->member))

static void check_fixture(struct symbols_types *types)
{
	uint64_t size;
	int64_t value;

	CHECK(types, fixture_state, kind);
	CHECK(types, fixture_state, marked);
	CHECK(types, fixture_state, later);
	CHECK(types, fixture_state, gc);
	CHECK(types, fixture_state, gc.total);
	CHECK(types, fixture_state, gc.phase);
	CHECK(types, fixture_state, gc.deep.next);
	CHECK(types, fixture_state, gc.deep.grid);
	CHECK(types, fixture_state, number);
	CHECK(types, fixture_state, real);
	CHECK(types, fixture_state, node);
	CHECK(types, fixture_state, node.high);
	CHECK(types, fixture_state, node.parts.bytes);
	CHECK(types, fixture_state, state);
	CHECK(types, fixture_state, call);
	check_member(types, "fixture_state", "tail", offsetof(struct fixture_state, tail), 0);
	check_member(types, "fixture_node", "low", 0, 4);
	check_member(types, "fixture_state_t", "gc.phase", offsetof(struct fixture_state, gc.phase),
		     1);
	check_member(types, "fixture_unnamed", "state", offsetof(fixture_unnamed, state), 8);
	check_member(types, "fixture_again", "state", offsetof(fixture_again, state), 8);
	/* Complete in one unit, declared in the other. */
	check_member(types, "fixture_later", "value", 24, 2);

	assert_int_equal(symbols_types_find_size(types, "fixture_state", &size, NULL), 0);
	assert_int_equal(size, sizeof(struct fixture_state));
	assert_int_equal(symbols_types_find_size(types, "fixture_again", &size, NULL), 0);
	assert_int_equal(size, sizeof(fixture_again));

	assert_int_equal(symbols_types_find_enumerator(types, "FIXTURE_SWEEP", &value, NULL), 0);
	assert_int_equal(value, FIXTURE_SWEEP);
	assert_int_equal(symbols_types_find_enumerator(types, "FIXTURE_NEGATIVE", &value, NULL), 0);
	assert_int_equal(value, FIXTURE_NEGATIVE);
	assert_int_equal(symbols_types_find_enumerator(types, "FIXTURE_LIMIT", &value, NULL), 0);
	assert_int_equal(value, FIXTURE_LIMIT);
}

static void check_refused(struct symbols_types *types)
{
	struct failure why;
	uint64_t size;
	int64_t value;

	check_none(types, "fixture_state", "flag", FAILURE_INVALID);
	check_none(types, "fixture_state", "rest", FAILURE_INVALID);
	check_none(types, "fixture_state", "none", FAILURE_NOT_FOUND);
	check_none(types, "fixture_state", "", FAILURE_NOT_FOUND);
	check_none(types, "fixture_state", "gc.", FAILURE_NOT_FOUND);
	check_none(types, "fixture_state", ".gc", FAILURE_NOT_FOUND);
	check_none(types, "fixture_state", "ki", FAILURE_NOT_FOUND);
	check_none(types, "fixture_state", "kind.kind", FAILURE_NOT_FOUND);
	/* A pointer leads elsewhere. */
	check_none(types, "fixture_state", "later.value", FAILURE_NOT_FOUND);
	check_none(types, "fixture_none", "kind", FAILURE_NOT_FOUND);
	/* Two units with the anchor disagree. */
	check_none(types, "fixture_twice", "one", FAILURE_INVALID);
	assert_int_equal(symbols_types_find_size(types, "fixture_twice", &size, &why), -1);
	assert_int_equal(symbols_types_find_size(types, "int32_t", &size, &why), -1);
	assert_int_equal(why.kind, FAILURE_INVALID);
	assert_int_equal(symbols_types_find_enumerator(types, "FIXTURE_NONE", &value, &why), -1);
	assert_int_equal(why.kind, FAILURE_NOT_FOUND);
	/* Without the anchor a unit does not count. */
	check_member(types, "fixture_foreign", "own", 0, 4);
	check_none(types, "fixture_foreign_only", "own", FAILURE_NOT_FOUND);
}

/** In the file itself, as each compiler option writes it. */
static void test_own_file(void **state)
{
	static const char *const files[] = { TYPES_FIXTURES };
	struct opened opened;
	struct failure why;

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		print_message("%s\n", strrchr(files[i], '/') + 1);
		assert_int_equal(open_types(&opened, files[i], ANCHOR, &why), 0);
		check_fixture(opened.types);
		check_refused(opened.types);
		close_types(&opened);
	}
}

/** Where time is over there is no answer, not even a part of one. */
static void test_late(void **state)
{
	struct symbols_types *types = NULL;
	struct failure why = { 0 };
	uint64_t address, size;
	struct symbols_space *space = map_file(TYPES_FIXTURE, &address);

	(void)state;
	assert_int_equal(symbols_types_create_within(space, address, ANCHOR, 0, &types, &why), -1);
	/* However much time there is, it ends anywhere or suffices for all. */
	for (uint64_t ns = 0;
	     symbols_types_create_within(space, address, ANCHOR, ns, &types, &why) < 0;
	     ns += 5000) {
		assert_int_equal(why.kind, FAILURE_LIMIT);
		assert_null(types);
		assert_true(ns < 2000000000);
	}
	assert_int_equal(symbols_types_find_size(types, "fixture_state", &size, &why), 0);
	assert_int_equal(symbols_types_find_size(types, "fixture_foreign", &size, &why), 0);
	assert_int_equal(symbols_types_find_size(types, "fixture_again", &size, &why), 0);
	symbols_types_destroy(types);
	symbols_space_destroy(space);
}

/** Others' work on the same processor takes nothing from ours, and answers share the time. */
static void test_time_of_processor(void **state)
{
	const struct timespec rest = { .tv_nsec = 400000000 };
	struct symbols_types *types;
	struct failure why = { 0 };
	uint64_t address, offset, size;
	struct symbols_space *space = map_file(TYPES_FIXTURE, &address);
	unsigned asked = 0;

	(void)state;
	assert_int_equal(
		symbols_types_create_within(space, address, ANCHOR, 300000000, &types, &why), 0);
	nanosleep(&rest, NULL);
	check_member(types, "fixture_state", "gc.phase", offsetof(struct fixture_state, gc.phase),
		     1);
	assert_false(symbols_types_are_late(types));
	while (asked < 100000000 && symbols_types_find_member(types, "fixture_state", "gc.phase",
							      &offset, &size, &why) == 0)
		asked++;
	assert_int_equal(why.kind, FAILURE_LIMIT);
	assert_true(symbols_types_are_late(types));
	symbols_types_destroy(types);
	symbols_space_destroy(space);
}

static void test_without(void **state)
{
	struct opened opened;
	struct failure why;

	(void)state;
	unsetenv(DEBUG_PATHS);
	assert_int_equal(open_types(&opened, TYPES_STRIPPED, ANCHOR, &why), -1);
	assert_int_equal(why.kind, FAILURE_NOT_FOUND);
	/* DWARF, but no unit with the anchor. */
	assert_int_equal(open_types(&opened, TYPES_FIXTURE, "no_such_anchor", &why), -1);
	assert_int_equal(why.kind, FAILURE_NOT_FOUND);
}

/* ---- Separate files --------------------------------------------------------------------- */

static char folder[] = "symbols_types_test.XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf ./%s", folder);
	return system(command);
}

/** Path by the build-id of @p of, below the folder; its directories are made. */
static void build_id_path(const char *of, char *ret_path, size_t size)
{
	struct symbols_source source;
	struct symbols_elf elf;
	struct failure why;
	size_t len;

	assert_int_equal(symbols_source_init_file(&source, open(of, O_RDONLY), &why), 0);
	assert_int_equal(symbols_elf_init(&elf, &source, &why), 0);
	assert_true(elf.build_id_len >= 8);
	len = (size_t)snprintf(ret_path, size, "%s/.build-id", folder);
	mkdir(ret_path, 0755);
	len += (size_t)snprintf(ret_path + len, size - len, "/%02x", elf.build_id[0]);
	mkdir(ret_path, 0755);
	len += (size_t)snprintf(ret_path + len, size - len, "/");
	for (size_t i = 1; i < elf.build_id_len; i++)
		len += (size_t)snprintf(ret_path + len, size - len, "%02x", elf.build_id[i]);
	snprintf(ret_path + len, size - len, ".debug");
	symbols_elf_deinit(&elf);
}

static void test_by_build_id(void **state)
{
	struct opened opened;
	struct failure why;
	char path[512], paths[512];

	(void)state;
	build_id_path(TYPES_STRIPPED, path, sizeof(path));
	assert_int_equal(symlink(TYPES_DEBUG, path), 0);
	snprintf(paths, sizeof(paths), "/no/such/folder::%s", folder);
	setenv(DEBUG_PATHS, paths, 1);
	assert_int_equal(open_types(&opened, TYPES_STRIPPED, ANCHOR, &why), 0);
	check_fixture(opened.types);
	check_refused(opened.types);
	close_types(&opened);
	/* Its place is right, but it is another file's. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(UNWIND_TARGET, path), 0);
	assert_int_equal(open_types(&opened, TYPES_STRIPPED, ANCHOR, &why), -1);
	assert_int_equal(why.kind, FAILURE_NOT_FOUND);
	assert_int_equal(unlink(path), 0);
	unsetenv(DEBUG_PATHS);
}

static void test_by_link(void **state)
{
	struct opened opened;
	struct failure why;

	(void)state;
	assert_int_equal(open_types(&opened, TYPES_LINKED, ANCHOR, &why), 0);
	check_fixture(opened.types);
	close_types(&opened);
}

/** DWARF in a file that two debug files share, which dwz made; found by build-id. */
static void test_shared(void **state)
{
#ifdef TYPES_DWZ
	struct opened opened;
	struct failure why;
	char path[512];

	(void)state;
	unsetenv(DEBUG_PATHS);
	assert_int_equal(open_types(&opened, TYPES_DWZ, ANCHOR, &why), -1);
	assert_int_equal(why.kind, FAILURE_NOT_FOUND);
	build_id_path(TYPES_DWZ_SHARED, path, sizeof(path));
	assert_int_equal(symlink(TYPES_DWZ_SHARED, path), 0);
	setenv(DEBUG_PATHS, folder, 1);
	assert_int_equal(open_types(&opened, TYPES_DWZ, ANCHOR, &why), 0);
	check_fixture(opened.types);
	check_refused(opened.types);
	close_types(&opened);
	assert_int_equal(unlink(path), 0);
	unsetenv(DEBUG_PATHS);
#else
	(void)state;
	print_message("no dwz here\n");
	skip();
#endif
}

/* ---- A real one ------------------------------------------------------------------------- */

/** Offsets in Tarantool's LuaJIT for x86-64 without GC64, which its sources give (lj_obj.h,
 *  lj_jit.h of tarantool/luajit at the commit of Tarantool 2.6.0). */
static void test_tarantool(void **state)
{
	static const struct {
		const char *structure, *member;
		uint64_t offset, size;
	} expected[] = {
		{ "lua_State", "gct", 5, 1 },
		{ "lua_State", "status", 7, 1 },
		{ "lua_State", "glref", 8, 4 },
		{ "lua_State", "base", 16, 8 },
		{ "lua_State", "maxstack", 32, 4 },
		{ "lua_State", "stack", 36, 4 },
		{ "lua_State", "env", 44, 4 },
		{ "lua_State", "cframe", 48, 8 },
		{ "lua_State", "stacksize", 56, 4 },
		{ "global_State", "strhash", 0, 8 },
		{ "global_State", "strmask", 8, 4 },
		{ "global_State", "gc", 64, 56 },
		{ "global_State", "gc.total", 64, 4 },
		{ "global_State", "gc.state", 73, 1 },
		{ "global_State", "gc.mmudata", 100, 4 },
		{ "global_State", "tmpbuf.b", 132, 4 },
		{ "global_State", "strempty", 140, 16 },
		{ "global_State", "mainthref", 160, 4 },
		{ "global_State", "vmstate", 120, 4 },
		{ "global_State", "cur_L", 280, 4 },
		{ "global_State", "jit_base", 284, 4 },
		{ "global_State", "gcroot", 292, 152 },
		{ "GG_State", "g", 64, 448 },
		{ "GG_State", "J", 512, 2568 },
		{ "GG_State", "hotcount", 3080, 128 },
		{ "GG_State", "dispatch", 3208, 1944 },
		{ "GG_State", "bcff", 5152, 228 },
		{ "jit_State", "cur", 0, 96 },
		{ "jit_State", "L", 104, 8 },
		{ "jit_State", "trace", 368, 8 },
		{ "jit_State", "sizetrace", 380, 4 },
		{ "jit_State", "exitstubgroup", 1672, 128 },
		{ "jit_State", "mcarea", 2504, 8 },
		{ "jit_State", "prev_line", 2560, 4 },
		{ "GCtrace", "nins", 8, 4 },
		{ "GCtrace", "snap", 32, 8 },
		{ "GCtrace", "spadjust", 78, 2 },
		{ "GCtrace", "traceno", 80, 2 },
		{ "SnapShot", "mapofs", 0, 4 },
		{ "SnapShot", "nent", 8, 1 },
		{ "GCproto", "sizebc", 8, 4 },
		{ "GCproto", "k", 16, 4 },
		{ "GCproto", "trace", 38, 2 },
		{ "GCproto", "chunkname", 40, 4 },
		{ "GCproto", "lineinfo", 52, 4 },
		{ "GCproto", "varinfo", 60, 4 },
		{ "GCfuncL", "uvptr", 20, 4 },
		{ "GCfuncC", "f", 24, 8 },
		{ "GCfuncC", "upvalue", 32, 8 },
		{ "GCstr", "hash", 8, 4 },
		{ "GCstr", "len", 12, 4 },
	};
	struct opened opened;
	struct failure why;
	const char *path = tarantools[access(tarantools[0], R_OK) != 0];
	uint64_t size;
	int64_t value;

	(void)state;
	if (access(path, R_OK) != 0) {
		print_message("no %s here\n", path);
		skip();
	}
	assert_int_equal(open_types(&opened, path, "global_State", &why), 0);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		check_member(opened.types, expected[i].structure, expected[i].member,
			     expected[i].offset, expected[i].size);
	assert_int_equal(symbols_types_find_size(opened.types, "lua_State", &size, &why), 0);
	assert_int_equal(size, 64);
	assert_int_equal(
		symbols_types_find_enumerator(opened.types, "LJ_VMST_INTERP", &value, &why), 0);
	assert_int_equal(value, 0);
	check_none(opened.types, "lua_State", "exdata", FAILURE_NOT_FOUND);
	close_types(&opened);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_file),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_time_of_processor),
		cmocka_unit_test(test_without),
		cmocka_unit_test(test_by_build_id),
		cmocka_unit_test(test_by_link),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_tarantool),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
