/* SPDX-License-Identifier: MIT */
#include "symbols/names/symtab.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/** One loaded file with its names. */
struct loaded {
	struct symbols_elf elf;
	struct symbols_eh eh;
	struct symbols_names names;
};

static const struct symbols_root own_root = { .fd = -1 };

static void open_elf(struct symbols_elf *elf, const char *path)
{
	struct symbols_source source;
	struct failure why;

	assert_int_equal(symbols_source_init_file(&source, open(path, O_RDONLY), &why), 0);
	assert_int_equal(symbols_elf_init(elf, &source, &why), 0);
}

static void load(struct loaded *loaded, const char *file, const char *path,
		 const struct symbols_root *root)
{
	struct failure why;

	open_elf(&loaded->elf, file);
	assert_int_equal(symbols_eh_init(&loaded->eh, &loaded->elf, &why), 0);
	assert_int_equal(symbols_names_init(&loaded->names, &loaded->elf, path, root, &why), 0);
}

static void unload(struct loaded *loaded)
{
	symbols_names_deinit(&loaded->names);
	symbols_eh_deinit(&loaded->eh);
	symbols_elf_deinit(&loaded->elf);
}

/** Name at a link-time address, "" where there is none. */
static const char *name_at(const struct loaded *loaded, uint64_t vaddr)
{
	static char text[SYMBOLS_NAME_MAX_BYTES];
	struct symbols_name name;

	if (!symbols_names_find(&loaded->names, &loaded->eh, vaddr, &name, text))
		return "";
	assert_true(vaddr >= name.start && vaddr < name.end);
	return text;
}

/** Address of a symbol of the unstripped library. */
static uint64_t address_of(const char *name)
{
	struct loaded whole;
	uint64_t vaddr = 0;

	load(&whole, FIXTURE, "", &own_root);
	assert_true(symbols_names_find_address(&whole.names, name, &vaddr));
	unload(&whole);
	return vaddr;
}

static void test_plain_names(void **state)
{
	struct loaded whole;
	uint64_t vaddr;

	(void)state;
	load(&whole, FIXTURE, "", &own_root);
	assert_string_equal(name_at(&whole, address_of("fixture_global")), "fixture_global");
	assert_string_equal(name_at(&whole, address_of("fixture_global") + 1), "fixture_global");
	assert_string_equal(name_at(&whole, address_of("fixture_static")), "fixture_static");
	/* An indirect function's symbol names its resolver. */
	assert_string_not_equal(name_at(&whole, address_of("choose")), "");
	/* Data has an address, but is no function. */
	assert_true(symbols_names_find_address(&whole.names, "fixture_data", &vaddr));
	assert_string_equal(name_at(&whole, vaddr), "");
	assert_false(symbols_names_find_address(&whole.names, "no_such_symbol", &vaddr));
	assert_string_equal(name_at(&whole, 0), "");
	assert_string_equal(name_at(&whole, UINT64_MAX), "");
	unload(&whole);
}

/** Past a symbol's end there is no name, up to the next symbol. */
static void test_sizes_are_respected(void **state)
{
	static const char *const names[] = { "fixture_static", "fixture_global", "fixture_plain",
					     "fixture_strong" };
	struct loaded whole;

	(void)state;
	load(&whole, FIXTURE, "", &own_root);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct symbols_name name;
		char text[SYMBOLS_NAME_MAX_BYTES];

		assert_true(symbols_names_find(&whole.names, &whole.eh, address_of(names[i]), &name,
					       text));
		assert_string_equal(name_at(&whole, name.end - 1), names[i]);
		/* The fixture's functions are aligned to 64 bytes and shorter than that. */
		assert_true(name.end % 64 != 0);
		assert_string_equal(name_at(&whole, name.end), "");
		assert_string_equal(name_at(&whole, (name.end | 63)), "");
	}
	unload(&whole);
}

static void test_aliases(void **state)
{
	struct loaded whole;

	(void)state;
	load(&whole, FIXTURE, "", &own_root);
	assert_string_equal(name_at(&whole, address_of("fixture_versioned")), "fixture_versioned");
	/* __fixture_plain is as global, plain_ is shorter but local. */
	assert_string_equal(name_at(&whole, address_of("__fixture_plain")), "fixture_plain");
	assert_string_equal(name_at(&whole, address_of("weak_")), "fixture_strong");
	unload(&whole);
}

static void test_code_without_sizes(void **state)
{
	uint64_t no_size = address_of("fixture_no_size"), label = address_of("fixture_label");
	struct loaded whole;

	(void)state;
	load(&whole, FIXTURE, "", &own_root);
	assert_string_equal(name_at(&whole, no_size), "fixture_no_size");
	assert_string_equal(name_at(&whole, no_size + 2), "fixture_no_size");
	/* The code behind it has an unwind entry of its own: another function. */
	assert_string_equal(name_at(&whole, no_size + 16), "");
	assert_string_equal(name_at(&whole, no_size + 17), "");
	/* A label inside a function is not its name. */
	assert_string_equal(name_at(&whole, address_of("fixture_inner")), "fixture_outer");
	assert_string_equal(name_at(&whole, address_of("fixture_inner") + 1), "fixture_outer");
	assert_string_equal(name_at(&whole, label), "fixture_label");
	assert_string_equal(name_at(&whole, label + 1), "fixture_label");
	unload(&whole);
}

static void test_stripped(void **state)
{
	struct loaded stripped;

	(void)state;
	load(&stripped, FIXTURE_STRIPPED, "", &own_root);
	assert_int_equal(stripped.elf.symtab.size, 0);
	assert_string_equal(name_at(&stripped, address_of("fixture_global")), "fixture_global");
	assert_string_equal(name_at(&stripped, address_of("fixture_static")), "");
	unload(&stripped);
}

static void test_mini_debug_information(void **state)
{
	struct loaded mini;

	(void)state;
	load(&mini, FIXTURE_MINI, "", &own_root);
	assert_non_null(mini.names.extra);
	assert_string_equal(name_at(&mini, address_of("fixture_static")), "fixture_static");
	assert_string_equal(name_at(&mini, address_of("fixture_global")), "fixture_global");
	unload(&mini);
}

/* ---- Separate debug files --------------------------------------------------------------- */

/** A root directory of its own, below the build directory. */
static char root_path[] = "symbols_symtab_test.XXXXXX";

static void copy_into_root(const char *from, const char *to)
{
	char path[512], chunk[4096];
	FILE *in = fopen(from, "rb"), *out;
	size_t len;

	snprintf(path, sizeof(path), "%s/%s", root_path, to);
	for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	out = fopen(path, "wb");
	assert_non_null(in);
	assert_non_null(out);
	while ((len = fread(chunk, 1, sizeof(chunk), in)) > 0)
		assert_int_equal(fwrite(chunk, 1, len, out), len);
	fclose(in);
	assert_int_equal(fclose(out), 0);
}

static int make_root(void **state)
{
	(void)state;
	return mkdtemp(root_path) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf ./%s", root_path);
	return system(command);
}

static struct symbols_root open_root(void)
{
	struct symbols_root root = { .fd = open(root_path, O_PATH | O_DIRECTORY) };

	assert_true(root.fd >= 0);
	return root;
}

static void check_debug_file(const char *file, const char *path, const char *expected)
{
	struct symbols_root root = open_root();
	struct loaded linked;

	load(&linked, file, path, &root);
	assert_string_equal(name_at(&linked, address_of("fixture_static")), expected);
	assert_string_equal(name_at(&linked, address_of("fixture_global")), "fixture_global");
	unload(&linked);
	symbols_root_deinit(&root);
}

static void test_debug_link(void **state)
{
	static const char *const locations[] = { "opt/lib/fixture.debug",
						 "opt/lib/.debug/fixture.debug",
						 "usr/lib/debug/opt/lib/fixture.debug" };
	char path[256];

	(void)state;
	check_debug_file(FIXTURE_LINKED, "/opt/lib/fixture_linked.so", "");
	for (size_t i = 0; i < sizeof(locations) / sizeof(locations[0]); i++) {
		copy_into_root(FIXTURE_DEBUG, locations[i]);
		check_debug_file(FIXTURE_LINKED, "/opt/lib/fixture_linked.so", "fixture_static");
		snprintf(path, sizeof(path), "%s/%s", root_path, locations[i]);
		/* Another checksum: not the file's debug information. */
		assert_int_equal(truncate(path, 4000), 0);
		check_debug_file(FIXTURE_LINKED, "/opt/lib/fixture_linked.so", "");
		assert_int_equal(unlink(path), 0);
	}
}

static void build_id_path(const char *file, char *ret_path, size_t size)
{
	struct symbols_elf elf;
	size_t len = (size_t)snprintf(ret_path, size, "usr/lib/debug/.build-id/");

	open_elf(&elf, file);
	assert_true(elf.build_id_len >= 8);
	for (size_t i = 0; i < elf.build_id_len; i++)
		len += (size_t)snprintf(ret_path + len, size - len, i ? "%02x" : "%02x/",
					elf.build_id[i]);
	snprintf(ret_path + len, size - len, ".debug");
	symbols_elf_deinit(&elf);
}

static void test_build_id_directory(void **state)
{
	char path[256], whole[512];

	(void)state;
	build_id_path(FIXTURE_STRIPPED, path, sizeof(path));
	check_debug_file(FIXTURE_STRIPPED, "/opt/lib/fixture.so", "");
	copy_into_root(FIXTURE_DEBUG, path);
	check_debug_file(FIXTURE_STRIPPED, "/opt/lib/fixture.so", "fixture_static");
	snprintf(whole, sizeof(whole), "%s/%s", root_path, path);
	assert_int_equal(unlink(whole), 0);
	/* A file in the right place with another build-id. */
	copy_into_root(UNWIND_TARGET, path);
	check_debug_file(FIXTURE_STRIPPED, "/opt/lib/fixture.so", "");
	assert_int_equal(unlink(whole), 0);
	/* Links stay inside the root; devices and pipes are not opened. */
	assert_int_equal(symlink("/etc/passwd", whole), 0);
	check_debug_file(FIXTURE_STRIPPED, "/opt/lib/fixture.so", "");
	assert_int_equal(unlink(whole), 0);
	assert_int_equal(mkfifo(whole, 0600), 0);
	check_debug_file(FIXTURE_STRIPPED, "/opt/lib/fixture.so", "");
}

/** A link to an absolute path leads to the root's file, not to ours. */
static void test_links_stay_in_the_root(void **state)
{
	struct symbols_root root = open_root();
	char path[128];
	int fd;

	(void)state;
	copy_into_root(FIXTURE_DEBUG, "inside");
	snprintf(path, sizeof(path), "%s/link", root_path);
	assert_int_equal(symlink("/../../inside", path), 0);
	fd = symbols_root_open(&root, "/link");
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(symbols_root_open(&root, "/etc/passwd"), -1);
	assert_int_equal(symbols_root_open(&root, "relative"), -1);
	assert_int_equal(symbols_root_open(&root, ""), -1);
	symbols_root_deinit(&root);
}

/** They look regular. A debug file may be wanted at any path of our own root. */
static void test_kernels_files(void **state)
{
	struct symbols_root own = { .fd = -1 };

	(void)state;
	assert_int_equal(symbols_root_open(&own, "/proc/self/maps"), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(symbols_root_open_own("/proc/version"), -1);
	assert_int_equal(errno, EINVAL);
}

/** Whoever owns a file may hold a lease on it; an open would wait for it, 45 s by default. */
static void test_leased_file(void **state)
{
	char path[] = "symbols_symtab_test.XXXXXX";
	int owner = mkstemp(path), fd;
	struct timespec begin, end;

	(void)state;
	assert_true(owner >= 0);
	signal(SIGIO, SIG_IGN);
	if (fcntl(owner, F_SETLEASE, F_WRLCK) != 0) {
		unlink(path);
		print_message("no leases on this file system\n");
		skip();
	}
	clock_gettime(CLOCK_MONOTONIC, &begin);
	fd = symbols_root_open_own(path);
	clock_gettime(CLOCK_MONOTONIC, &end);
	unlink(path);
	assert_int_equal(fd, -1);
	assert_true(end.tv_sec - begin.tv_sec < 3);
	close(owner);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_names),
		cmocka_unit_test(test_sizes_are_respected),
		cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_code_without_sizes),
		cmocka_unit_test(test_stripped),
		cmocka_unit_test(test_mini_debug_information),
		cmocka_unit_test(test_debug_link),
		cmocka_unit_test(test_build_id_directory),
		cmocka_unit_test(test_links_stay_in_the_root),
		cmocka_unit_test(test_kernels_files),
		cmocka_unit_test(test_leased_file),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
