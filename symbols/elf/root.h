/* SPDX-License-Identifier: MIT */
/* In which root directory, perhaps a container's, are a target's files? */
#ifndef SYMBOLS_ELF_ROOT_H
#define SYMBOLS_ELF_ROOT_H

#include <stdint.h>
#include <sys/types.h>

#include "attach/failure.h"

/** A file from a debuginfod server. */
struct symbols_fetched {
	struct symbols_fetched *next;
	uint8_t build_id[64];
	size_t build_id_len;
	char *path; /**< Path on this machine. */
};

struct symbols_root {
	int fd;	   /**< O_PATH descriptor of the target's root directory; -1: our own root. */
	pid_t pid; /**< For /proc/PID/map_files; 0: the target does not run. */
	struct symbols_fetched *fetched; /**< Owned. */
};

/** The root of a live process; our own root if the target's cannot be opened. */
void symbols_root_init_live(struct symbols_root *root, pid_t pid);
/** The root for a recorded image. */
void symbols_root_init_recorded(struct symbols_root *root);
/**
 * The root for a core file: the folder @p path, which contains copies of the target's files.
 * @param why As failure_set_errno().
 */
int symbols_root_init_folder(struct symbols_root *root, const char *path, struct failure *why);
void symbols_root_deinit(struct symbols_root *root);

/**
 * Open a regular file by its path in the target. We follow links only inside its root, and open
 * only regular files, because opening a device may have effects. A file with a lease fails at once.
 * @return A descriptor, or -1 with errno set.
 * Source: openat2(2), RESOLVE_IN_ROOT.
 */
int symbols_root_open(const struct symbols_root *root, const char *path);

/**
 * Open a regular file of this machine, by any path that open(2) accepts.
 * @return A descriptor, or -1.
 */
int symbols_root_open_own(const char *path);

/**
 * Open the file behind a mapping through map_files, which the kernel allows with
 * CAP_CHECKPOINT_RESTORE only (before Linux 5.9: CAP_SYS_ADMIN).
 * @return A descriptor, or -1.
 */
int symbols_root_open_mapping(const struct symbols_root *root, uint64_t start, uint64_t end);

/** Open the target's program, also if its file was replaced or removed. Source: proc(5),
 * /proc/pid/exe. @return A descriptor, or -1. */
int symbols_root_open_program(const struct symbols_root *root);

#endif
