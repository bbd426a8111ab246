/* SPDX-License-Identifier: MIT */
/* Which source file has a chunk of a process? */
#ifndef CLI_TOP_SOURCE_TOP_SOURCE_H
#define CLI_TOP_SOURCE_TOP_SOURCE_H

#include <stddef.h>
#include <sys/types.h>

enum {
	/* No person reads larger source files; the rest is left out. */
	TOP_SOURCE_MAX_BYTES = 1024 * 1024,
};

/** A text and its lines. */
struct top_source {
	char *bytes;
	size_t len;
	size_t *starts; /**< Offsets of lines 1, 2, …; line_count of them, then len. */
	size_t line_count;
};

/**
 * Open the file that a chunk was loaded from, as the process sees it: in its root, and relative to
 * its working directory. The target chooses the name, so links cannot leave its root. Only a
 * regular file is opened, because a pipe or device could block the caller. Root opens the file with
 * the rights of the process's real user and groups. Any other caller opens it with its own user's
 * rights, without its capabilities for tracing.
 * @param chunk As the VM stores it. There is a file only for "@" and a path.
 * @param ret_why Set on failure: a few words for people, static.
 * @return The descriptor, or -1.
 * Source: open(2), openat2(2), proc(5), capabilities(7).
 */
int top_source_open(pid_t pid, const char *chunk, const char **ret_why);

/**
 * Read a text of at most TOP_SOURCE_MAX_BYTES.
 * @param fd Stays open.
 * @param ret_source Set on success; release with top_source_deinit().
 * @return 0, or -1 with @p ret_why set.
 */
int top_source_load(int fd, struct top_source *ret_source, const char **ret_why);
void top_source_deinit(struct top_source *source);

/**
 * Get one line, with tabs expanded to 8 columns, otherwise as in the file.
 * @param line From 1.
 * @return Terminated, freed by the caller; NULL if there is no such line, or if memory is out.
 */
char *top_source_line(const struct top_source *source, size_t line);

#endif
