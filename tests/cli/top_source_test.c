/* SPDX-License-Identifier: MIT */
/* Source files by names that a process tells. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/top/source/source_helper.h"

static char folder[] = "/tmp/ljprof-source-XXXXXX";
static struct source_helper *helper;

static void write_text(const char *name, const char *text, size_t len)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(len, write(fd, text, len));
	close(fd);
}

static int begin(void **state)
{
	static const char text[] = "first\n\tsecond\r\n\xc3\xa4\tthird \33[31m\n\nlast";

	(void)state;
	if (!mkdtemp(folder) || chdir(folder) != 0)
		return -1;
	helper = source_helper_create(NULL, 0);
	if (!helper)
		return -1;
	write_text("a.lua", text, sizeof(text) - 1);
	write_text("empty.lua", "", 0);
	return mkfifo("pipe.lua", 0600) | mkdir("sub", 0700) | symlink("a.lua", "link.lua") |
	       symlink("loop.lua", "loop.lua") | symlink("/dev/null", "device.lua") |
	       symlink("/proc/self/root/etc/passwd", "magic.lua");
}

static int end(void **state)
{
	static const char *const names[] = { "a.lua",	 "empty.lua",  "pipe.lua",  "link.lua",
					     "loop.lua", "device.lua", "magic.lua", "large.lua",
					     "new.bin",	 "other.bin" };

	(void)state;
	source_helper_destroy(helper);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(names[i]);
	rmdir("sub");
	return chdir("/") | rmdir(folder);
}

/* On a busy machine the helper may answer later than a screen waits for it. */
static int read_patiently(struct source_helper *from, pid_t pid, const char *chunk,
			  struct top_source *ret_source, const char **ret_why)
{
	for (unsigned i = 0; i < 100; i++) {
		if (source_helper_read(from, pid, chunk, ret_source, ret_why) == 0)
			return 0;
		if (strcmp(*ret_why, "it takes too long to open it") != 0)
			return -1;
	}
	return -1;
}

/* @return Freed by the caller. */
static char *line_of(const char *chunk, size_t line)
{
	struct top_source source;
	const char *why = "";
	char *text;

	if (read_patiently(helper, getpid(), chunk, &source, &why) != 0)
		fail_msg("%s: %s", chunk, why);
	text = top_source_line(&source, line);
	top_source_deinit(&source);
	return text;
}

static void assert_line(const char *wanted, const char *chunk, size_t line)
{
	char *text = line_of(chunk, line);

	assert_non_null(text);
	assert_string_equal(wanted, text);
	free(text);
}

static void test_lines(void **state)
{
	char chunk[128];

	(void)state;
	assert_line("first", "@a.lua", 1);
	assert_line("        second", "@a.lua", 2);
	assert_line("\xc3\xa4       third \33[31m", "@a.lua", 3);
	assert_line("", "@a.lua", 4);
	assert_line("last", "@a.lua", 5);
	assert_null(line_of("@a.lua", 0));
	assert_null(line_of("@a.lua", 6));
	assert_null(line_of("@empty.lua", 1));
	snprintf(chunk, sizeof(chunk), "@%s/./sub/../a.lua", folder);
	assert_line("first", chunk, 1);
	assert_line("first", "@./a.lua", 1);
	assert_line("first", "@sub/../link.lua", 1);
}

/* What the process's user may not read is not opened for whoever asks, root or not. */
static void test_rights(void **state)
{
	enum { NOBODY = 65534 };
	int ready[2], go[2];
	struct top_source source;
	const char *why = "";
	char path[256];
	pid_t pid;
	char byte;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(0, pipe(ready) | pipe(go) | chmod(folder, 0755) | chmod("a.lua", 0644) |
				    chmod("empty.lua", 0600));
	pid = fork();
	if (pid == 0) {
		close(go[1]); /* so that our end ends it */
		if (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0 ||
		    write(ready[1], "r", 1) != 1 || read(go[0], &byte, 1) != 1)
			_exit(1);
		_exit(0);
	}
	assert_int_equal(1, read(ready[0], &byte, 1));
	snprintf(path, sizeof(path), "@%s/a.lua", folder);
	assert_int_equal(0, read_patiently(helper, pid, path, &source, &why));
	top_source_deinit(&source);
	snprintf(path, sizeof(path), "@%s/empty.lua", folder);
	assert_int_equal(-1, read_patiently(helper, pid, path, &source, &why));
	assert_string_equal("not permitted", why);
	/* Everybody may read these by their modes, and sees other things than root does. */
	assert_int_equal(-1, read_patiently(helper, pid, "@/proc/1/maps", &source, &why));
	assert_string_equal("it is not a regular file", why);
	assert_int_equal(-1, read_patiently(helper, pid, "@/proc/kallsyms", &source, &why));
	snprintf(path, sizeof(path), "@%s/empty.lua", folder);
	/* And its own rights are back. */
	assert_int_equal(0, read_patiently(helper, getpid(), path, &source, &why));
	top_source_deinit(&source);
	assert_int_equal(1, write(go[1], "g", 1));
	assert_int_equal(pid, waitpid(pid, NULL, 0));
	close(ready[0]), close(ready[1]), close(go[0]), close(go[1]);
}

/* @return Whether the effective capability is gone. */
static bool drop_capability(unsigned capability)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &head, data) != 0)
		return false;
	data[CAP_TO_INDEX(capability)].effective &= ~CAP_TO_MASK(capability);
	return syscall(SYS_capset, &head, data) == 0;
}

/* Exit code: 0 good, 1 wrong, 77 not possible here. */
static int open_without_groups(pid_t other)
{
	struct source_helper *poor;
	struct top_source source;
	const char *why = "";
	char path[256];
	int ret;

	if (!drop_capability(CAP_SETGID))
		return 77;
	poor = source_helper_create(NULL, 0);
	if (!poor)
		return 77;
	snprintf(path, sizeof(path), "@%s/a.lua", folder);
	ret = read_patiently(poor, other, path, &source, &why) == 0 ||
	      strcmp(why, "cannot use its user's rights") != 0;
	ret |= read_patiently(poor, getpid(), path, &source, &why) != 0;
	if (ret == 0)
		top_source_deinit(&source);
	source_helper_destroy(poor);
	return ret;
}

/* Root that may not take groups on, as in some containers, has its own processes at least. */
static void test_poor_root(void **state)
{
	int ready[2], status;
	pid_t other, pid;
	char byte;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(0, pipe(ready));
	other = fork();
	if (other == 0) {
		if (setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0 &&
		    write(ready[1], "r", 1) == 1)
			pause();
		_exit(1);
	}
	/* Not before it has become another user, or it would be one of ours. */
	assert_int_equal(1, read(ready[0], &byte, 1));
	pid = fork();
	if (pid == 0)
		_exit(open_without_groups(other));
	assert_int_equal(pid, waitpid(pid, &status, 0));
	close(ready[0]), close(ready[1]);
	kill(other, SIGKILL);
	assert_int_equal(other, waitpid(other, NULL, 0));
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(0, WEXITSTATUS(status));
}

/* Exit code: 0 good, 1 wrong, 77 not possible here. */
static int open_with_capabilities(void)
{
	enum { NOBODY = 65534 };
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
	struct source_helper *traces;
	struct top_source source;
	const char *why = "";
	char path[256];
	int ret = 0;

	data[0].effective = data[0].permitted = CAP_TO_MASK(CAP_DAC_READ_SEARCH) |
						CAP_TO_MASK(CAP_DAC_OVERRIDE) |
						CAP_TO_MASK(CAP_SYS_PTRACE);
	if (prctl(PR_SET_KEEPCAPS, 1) != 0 || setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 ||
	    setuid(NOBODY) != 0 || syscall(SYS_capset, &head, data) != 0)
		return 77;
	traces = source_helper_create(NULL, 0);
	if (!traces)
		return 77;
	snprintf(path, sizeof(path), "@%s/empty.lua", folder);
	/* Twice, as the capabilities come back. */
	for (int i = 0; i < 2; i++)
		ret |= read_patiently(traces, getppid(), path, &source, &why) == 0 ||
		       strcmp(why, "not permitted") != 0;
	snprintf(path, sizeof(path), "@%s/a.lua", folder);
	ret |= read_patiently(traces, getppid(), path, &source, &why) != 0;
	if (ret == 0)
		top_source_deinit(&source);
	source_helper_destroy(traces);
	return ret;
}

/* Capabilities for tracing open no files that the user may not read. */
static void test_capabilities(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(0, chmod(folder, 0755) | chmod("a.lua", 0644) | chmod("empty.lua", 0600));
	pid = fork();
	if (pid == 0)
		_exit(open_with_capabilities());
	assert_int_equal(pid, waitpid(pid, &status, 0));
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(0, WEXITSTATUS(status));
}

/* A program that runs with root's rights for a user, who chooses its names. */
static void test_set_uid_program(void **state)
{
	enum { NOBODY = 65534 };
	int ready[2];
	struct top_source source;
	const char *why = "";
	char path[256], byte;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(0, pipe(ready) | chmod(folder, 0755) | chmod("a.lua", 0644) |
				    chmod("empty.lua", 0600));
	pid = fork();
	if (pid == 0) {
		if (setgroups(0, NULL) == 0 && setresgid(NOBODY, 0, 0) == 0 &&
		    setresuid(NOBODY, 0, 0) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
		    write(ready[1], "r", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(1, read(ready[0], &byte, 1));
	snprintf(path, sizeof(path), "@%s/empty.lua", folder);
	assert_int_equal(-1, read_patiently(helper, pid, path, &source, &why));
	assert_string_equal("not permitted", why);
	snprintf(path, sizeof(path), "@%s/a.lua", folder);
	assert_int_equal(0, read_patiently(helper, pid, path, &source, &why));
	top_source_deinit(&source);
	close(ready[0]), close(ready[1]);
	kill(pid, SIGKILL);
	assert_int_equal(pid, waitpid(pid, NULL, 0));
}

static void test_refused(void **state)
{
	static const struct {
		const char *chunk, *why;
	} cases[] = {
		{ "=stdin", "it was not loaded from a file" },
		{ "return 1", "it was not loaded from a file" },
		{ "@", "it was not loaded from a file" },
		{ "", "it was not loaded from a file" },
		{ "@none.lua", "there is no such file" },
		{ "@a.lua/x", "there is no such file" },
		{ "@pipe.lua", "it is not a regular file" }, /* and nobody waits for a writer */
		{ "@device.lua", "it is not a regular file" },
		{ "@/dev/zero", "it is not a regular file" },
		{ "@sub", "it is not a regular file" },
		{ "@loop.lua", "its path leads out of the process's root" },
		{ "@magic.lua", "its path leads out of the process's root" },
	};
	struct top_source source;
	char large[8192];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *why = "";

		assert_int_equal(-1,
				 read_patiently(helper, getpid(), cases[i].chunk, &source, &why));
		assert_string_equal(cases[i].why, why);
	}
	for (size_t len = 100; len < sizeof(large); len += 1000) {
		const char *why = "";

		memset(large, 'x', len);
		large[0] = '@';
		large[len] = '\0';
		assert_int_equal(-1, read_patiently(helper, getpid(), large, &source, &why));
		assert_string_not_equal("", why);
	}
}

static void test_process(void **state)
{
	struct top_source source;
	const char *why = "";

	(void)state;
	/* No process has this number: kernel/pid.h, PID_MAX_LIMIT. */
	assert_int_equal(-1, read_patiently(helper, 1 << 23, "@/a.lua", &source, &why));
	assert_string_equal("the process has ended", why);
}

static void test_large(void **state)
{
	struct top_source source;
	const char *why = "";
	int fd = open("large.lua", O_WRONLY | O_CREAT, 0600);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(0, ftruncate(fd, (off_t)1 << 32));
	close(fd);
	assert_int_equal(0, read_patiently(helper, getpid(), "@large.lua", &source, &why));
	assert_int_equal(TOP_SOURCE_MAX_BYTES, source.len);
	assert_int_equal(1, source.line_count);
	top_source_deinit(&source);
}

static void test_made(void **state)
{
	int errnum = 0, fd = source_helper_create_file(helper, "new.bin", &errnum);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(3, write(fd, "new", 3));
	close(fd);
	assert_int_equal(-1, source_helper_create_file(helper, "new.bin", &errnum));
	assert_int_equal(EEXIST, errnum);
	/* Nor through a link, and links to nowhere make no file. */
	assert_int_equal(-1, source_helper_create_file(helper, "link.lua", &errnum));
	assert_int_equal(EEXIST, errnum);
	assert_int_equal(-1, source_helper_create_file(helper, "", &errnum));
	assert_int_equal(ENOENT, errnum);
	assert_int_equal(-1, source_helper_create_file(helper, "..", &errnum));
	assert_int_equal(EEXIST, errnum);
	fd = source_helper_create_file(helper, "sub/../other.bin", &errnum);
	assert_true(fd >= 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_process),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_made),
		cmocka_unit_test(test_rights),
		cmocka_unit_test(test_poor_root),
		cmocka_unit_test(test_capabilities),
		cmocka_unit_test(test_set_uid_program),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
