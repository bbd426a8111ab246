/* SPDX-License-Identifier: MIT */
/* How is the source file of a chunk found and read inside of the target's root? */
#include "cli/top/source/top_source.h"

#include <cap-ng.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include "attach/array.h"
#include "attach/process.h"
#include "format/text.h"

enum {
	TAB_COLUMNS = 8,
	READ_BYTES = 64 * 1024,
};

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
	case EINVAL:
		return "it is not a regular file";
	case ENOSYS:
		return "needs Linux 5.6 or later";
	default:
		return "it cannot be opened";
	}
}

/* Read a link in /proc. @return false if its target does not fit. */
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

/* Make the path below the process's root. The link to the working directory is relative to our
 * root, so remove the path of the process's root; that path is "/" also for a root of another mount
 * namespace. */
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

/* ---- Rights ----------------------------------------------------------------------------- */

static int open_file(int root, const char *path, const char **ret_why)
{
	int fd = attach_root_open_file(root, path);

	return fd < 0 ? fail(ret_why, describe(errno)) : fd;
}

/* Open files with these rights from now on. Linux ties the capabilities for files to user 0.
 * Source: setfsuid(2), capabilities(7). @return false if that is not possible. */
static bool become(const struct attach_identity *identity)
{
	if (setgroups(identity->group_count, identity->groups) != 0)
		return false;
	setfsgid(identity->gid);
	setfsuid(identity->uid);
	return (uid_t)setfsuid((uid_t)-1) == identity->uid &&
	       (gid_t)setfsgid((gid_t)-1) == identity->gid;
}

/* User 0 of a container may lack the right to change its groups, and need not. */
static bool is_same(const struct attach_identity *a, const struct attach_identity *b)
{
	return a->uid == b->uid && a->gid == b->gid && a->group_count == b->group_count &&
	       memcmp(a->groups, b->groups, a->group_count * sizeof(a->groups[0])) == 0;
}

static int read_bytes(int fd, struct top_source *source, const char **ret_why)
{
	size_t room = 0;
	ssize_t got = 1;

	while (got > 0 && source->len < TOP_SOURCE_MAX_BYTES) {
		if (!ARRAY_RESERVE(source->bytes, room, source->len + READ_BYTES))
			return fail(ret_why, "out of memory");
		got = read(fd, source->bytes + source->len, room - source->len);
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got > 0)
			source->len += (size_t)got;
	}
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

/* A user other than root has capabilities for tracing, not for reading other users' files. */
static int open_as_user(int root, const char *path, const char **ret_why)
{
	static const unsigned rights[] = { CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH };
	bool had[2], any = false;
	int fd;

	if (capng_get_caps_process() != 0)
		return fail(ret_why, describe(EPERM));
	for (size_t i = 0; i < 2; i++) {
		had[i] = capng_have_capability(CAPNG_EFFECTIVE, rights[i]);
		any |= had[i];
		capng_update(CAPNG_DROP, CAPNG_EFFECTIVE, rights[i]);
	}
	if (any && capng_apply(CAPNG_SELECT_CAPS) != 0)
		return fail(ret_why, describe(EPERM));
	fd = open_file(root, path, ret_why);
	for (size_t i = 0; i < 2; i++)
		if (had[i])
			capng_update(CAPNG_ADD, CAPNG_EFFECTIVE, rights[i]);
	if (any)
		capng_apply(CAPNG_SELECT_CAPS); /* else we have fewer rights than before */
	return fd;
}

/* The process chooses the name, and the caller may be compromised. So open the file with no more
 * rights than the process's user has; if we are not root, with no more than our own user has. */
static int open_as_process(pid_t pid, int root, const char *path, const char **ret_why)
{
	struct attach_identity own, other;
	int fd = -1;

	if (geteuid() != 0)
		return open_as_user(root, path, ret_why);
	if (!attach_identity_of(pid, &other))
		return fail(ret_why, describe(ESRCH));
	if (!attach_identity_of(getpid(), &own))
		return fail(ret_why, describe(EPERM));
	/* Restore the identity that files were opened with; a set-uid program of ours got it from
	 * its file. */
	own.uid = (uid_t)setfsuid((uid_t)-1);
	own.gid = (gid_t)setfsgid((gid_t)-1);
	if (is_same(&own, &other))
		return open_file(root, path, ret_why);
	/* If we may not set groups, we could not restore them. */
	if (setgroups(own.group_count, own.groups) != 0)
		return fail(ret_why, "cannot use its user's rights");
	if (become(&other))
		fd = open_file(root, path, ret_why);
	else
		fail(ret_why, "cannot use its user's rights");
	if (!become(&own))
		abort(); /* the identity would be undefined */
	return fd;
}

int top_source_open(pid_t pid, const char *chunk, const char **ret_why)
{
	char path[PATH_MAX];
	int root, fd;

	if (!chunk || chunk[0] != '@' || !chunk[1])
		return fail(ret_why, "it was not loaded from a file");
	if (!make_path(pid, chunk + 1, path))
		return fail(ret_why, "its path is not known");
	root = attach_root_open(pid);
	if (root < 0)
		return fail(ret_why, describe(errno == ENOENT ? ESRCH : errno));
	fd = open_as_process(pid, root, path, ret_why);
	close(root);
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
		/* Continuation bytes of UTF-8 have no column. */
		column += blanks ? blanks : ((unsigned char)c & 0xc0) != 0x80;
	}
	format_text_add(&text, "", 0);
	if (!text.broken)
		return text.bytes;
	format_text_deinit(&text);
	return NULL;
}
