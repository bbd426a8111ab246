/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_ROOT_H
#define SYMBOLS_ROOT_H

/* Where a target's files are looked up: its root directory, which may be a container's. */

#include <sys/types.h>

#include "symbols/elf_file.h"

struct symbols_root {
	int fd;	   /**< O_PATH descriptor of the target's root directory, or -1: ours. */
	pid_t pid; /**< For /proc/PID/map_files; 0 if the target is not running. */
};

/** The root of a live process; ours where its root cannot be opened. */
void symbols_root_init_live(struct symbols_root *root, pid_t pid);
/** The root for a recorded image. */
void symbols_root_init_recorded(struct symbols_root *root);
void symbols_root_deinit(struct symbols_root *root);

/**
 * Open a regular file by its path in the target. Links are followed inside its root only, and
 * nothing but a regular file is opened, because opening a device may have effects.
 * @return A descriptor, or -1.
 * Source: openat2(2), RESOLVE_IN_ROOT.
 */
int symbols_root_open(const struct symbols_root *root, const char *path);

/** Open the file behind a mapping through map_files. @return A descriptor, or -1. */
int symbols_root_open_mapping(const struct symbols_root *root, uint64_t start, uint64_t end);

/**
 * Find and open the separate debug file of @p elf: by build-id, then by .gnu_debuglink with its
 * checksum, in the target's root and then in ours.
 * @param path   Of the file in the target.
 * @param ret_elf Set on success.
 * Source: GDB manual, "Debugging Information in Separate Files".
 */
bool symbols_root_open_debug(const struct symbols_root *root, const struct symbols_elf *elf,
			     const char *path, struct symbols_elf *ret_elf);

#endif
