/* SPDX-License-Identifier: MIT */
/* Source files of a process. */
#ifndef CLI_TOP_SOURCE_TOP_SOURCE_H
#define CLI_TOP_SOURCE_TOP_SOURCE_H

#include <stddef.h>
#include <sys/types.h>

enum {
	/* Larger files are no source that a person reads; the rest is left out. */
	TOP_SOURCE_MAX_BYTES = 1024 * 1024,
};

/** A text and where its lines are. */
struct top_source {
	char *bytes;
	size_t len;
	size_t *starts; /**< Where line 1, 2, … begins; line_count of them, and then len. */
	size_t line_count;
};

/**
 * Open the file that a chunk was loaded from, as the process sees it: by its root, and by its
 * working directory where the name is relative. The name is the target's word: links lead nowhere
 * out of its root, and nothing but a regular file is opened, so that neither a pipe nor a device
 * can hold the caller up. Root opens it with the rights of the process's real user and groups, any
 * other caller with its own user's, whatever capabilities it has to trace.
 * @param chunk As the VM stores it. "@" and a path, else there is no file.
 * @param ret_why Set on failure: a few words for people, static.
 * @return The descriptor, or -1.
 * Source: open(2), openat2(2), proc(5), capabilities(7).
 */
int top_source_open(pid_t pid, const char *chunk, const char **ret_why);

/**
 * Read a text, TOP_SOURCE_MAX_BYTES at most.
 * @param fd Stays open.
 * @param ret_source Set on success; release with top_source_deinit().
 * @return 0, or -1 with @p ret_why set.
 */
int top_source_load(int fd, struct top_source *ret_source, const char **ret_why);
void top_source_deinit(struct top_source *source);

/** One line, freed by the caller: terminated, tabs expanded to 8 columns, otherwise as it is in the
 *  file. @param line From 1. @return NULL where there is none, or no memory. */
char *top_source_line(const struct top_source *source, size_t line);

#endif
