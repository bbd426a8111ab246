/* SPDX-License-Identifier: MIT */
#include "cli/top_source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/text.h"

enum { TAB_COLUMNS = 8 };

static int fail(const char **ret_why, const char *why)
{
	*ret_why = why;
	return -1;
}

static const char *describe(int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
		return "there is no such file";
	case EACCES:
	case EPERM:
		return "not permitted";
	case ESRCH:
		return "the process has ended";
	case ELOOP:
	case EXDEV:
		return "its path leads out of the process's root";
	case ENOSYS:
		return "needs Linux 5.6 or later";
	default:
		return "it cannot be opened";
	}
}

/* What a link in /proc leads to. @return false where that does not fit. */
static bool read_link(pid_t pid, const char *which, char *ret_path)
{
	char name[64];
	ssize_t len;

	snprintf(name, sizeof(name), "/proc/%d/%s", (int)pid, which);
	len = readlink(name, ret_path, PATH_MAX);
	if (len <= 0 || len >= PATH_MAX)
		return false;
	ret_path[len] = '\0';
	return true;
}

/* The path below the process's root. A working directory is told from where we stand: below the
 * root's own path, which is "/" also for a root of another mount namespace. */
static bool make_path(pid_t pid, const char *name, char *ret_path)
{
	char root[PATH_MAX], folder[PATH_MAX];
	const char *inside = folder;
	size_t len;

	if (name[0] == '/')
		return snprintf(ret_path, PATH_MAX, "%s", name) < PATH_MAX;
	if (!read_link(pid, "root", root) || !read_link(pid, "cwd", folder))
		return false;
	len = strlen(root);
	if (strcmp(root, "/") != 0 && strncmp(folder, root, len) == 0 &&
	    (folder[len] == '/' || !folder[len]))
		inside = folder + len;
	return snprintf(ret_path, PATH_MAX, "%s/%s", inside, name) < PATH_MAX;
}

/* Opens nothing yet but the name. */
static int find_file(pid_t pid, const char *name, const char **ret_why)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	char path[PATH_MAX], root_name[64];
	long fd;
	int root;

	if (!make_path(pid, name, path))
		return fail(ret_why, "its path is not known");
	snprintf(root_name, sizeof(root_name), "/proc/%d/root", (int)pid);
	root = open(root_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return fail(ret_why, errno == ENOENT ? describe(ESRCH) : describe(errno));
	fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (fd < 0)
		fail(ret_why, describe(errno));
	close(root);
	return (int)fd;
}

/* The very file that was looked at, and only if it is one. */
static int open_regular(int found, const char **ret_why)
{
	struct stat status;
	char name[64];
	int fd;

	if (fstat(found, &status) != 0 || !S_ISREG(status.st_mode))
		return fail(ret_why, "it is no regular file");
	snprintf(name, sizeof(name), "/proc/self/fd/%d", found);
	fd = open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? fail(ret_why, describe(errno)) : fd;
}

static int read_bytes(int fd, struct top_source *source, const char **ret_why)
{
	size_t capacity = 64 * 1024;
	ssize_t got = 1;

	source->bytes = malloc(capacity);
	while (source->bytes && got > 0 && source->len < TOP_SOURCE_MAX_BYTES) {
		if (source->len == capacity) {
			char *larger = realloc(source->bytes, 2 * capacity);

			if (!larger)
				return fail(ret_why, "out of memory");
			source->bytes = larger;
			capacity *= 2;
		}
		got = read(fd, source->bytes + source->len, capacity - source->len);
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got > 0)
			source->len += (size_t)got;
	}
	if (!source->bytes)
		return fail(ret_why, "out of memory");
	return got < 0 ? fail(ret_why, "it cannot be read") : 0;
}

static int find_lines(struct top_source *source, const char **ret_why)
{
	size_t count = 0, at = 0;

	for (size_t i = 0; i < source->len; i++)
		count += source->bytes[i] == '\n';
	if (source->len && source->bytes[source->len - 1] != '\n')
		count++;
	source->starts = calloc(count + 1, sizeof(*source->starts));
	if (!source->starts)
		return fail(ret_why, "out of memory");
	for (size_t i = 0; i < count; i++) {
		const char *end = memchr(source->bytes + at, '\n', source->len - at);

		source->starts[i] = at;
		at = end ? (size_t)(end - source->bytes) + 1 : source->len;
	}
	source->starts[count] = source->len;
	source->line_count = count;
	return 0;
}

int top_source_open(pid_t pid, const char *chunk, const char **ret_why)
{
	int found, fd;

	if (!chunk || chunk[0] != '@' || !chunk[1])
		return fail(ret_why, "it was not loaded from a file");
	found = find_file(pid, chunk + 1, ret_why);
	if (found < 0)
		return -1;
	fd = open_regular(found, ret_why);
	close(found);
	return fd;
}

int top_source_load(int fd, struct top_source *ret_source, const char **ret_why)
{
	struct top_source source = { 0 };
	int ret = read_bytes(fd, &source, ret_why);

	if (ret == 0)
		ret = find_lines(&source, ret_why);
	if (ret == 0)
		*ret_source = source;
	else
		top_source_deinit(&source);
	return ret;
}

void top_source_deinit(struct top_source *source)
{
	free(source->bytes);
	free(source->starts);
	memset(source, 0, sizeof(*source));
}

char *top_source_line(const struct top_source *source, size_t line)
{
	struct format_text text = { 0 };
	size_t column = 0;

	if (line == 0 || line > source->line_count)
		return NULL;
	for (size_t at = source->starts[line - 1]; at < source->starts[line]; at++) {
		char c = source->bytes[at];
		size_t blanks = c == '\t' ? TAB_COLUMNS - column % TAB_COLUMNS : 0;

		if (c == '\n' || c == '\r')
			continue;
		if (blanks)
			format_text_addf(&text, "%*s", (int)blanks, "");
		else
			format_text_add(&text, c ? &c : "?", 1);
		/* Bytes behind the first of a character have no column of their own. */
		column += blanks ? blanks : ((unsigned char)c & 0xc0) != 0x80;
	}
	format_text_add(&text, "", 0);
	if (!text.broken)
		return text.bytes;
	format_text_deinit(&text);
	return NULL;
}
