/* SPDX-License-Identifier: MIT */
/* What is mapped where in a target, and from which files? */
#ifndef SYMBOLS_SPACE_H
#define SYMBOLS_SPACE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/image.h"
#include "attach/process.h"

/** The mappings of one target and the ELF objects behind them. */
struct symbols_space;

/** One line of /proc/PID/maps. Source: proc(5). */
struct symbols_mapping {
	uint64_t start, end; /**< [start, end). */
	uint64_t offset;     /**< Offset in the file. */
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	bool readable, writable, executable, is_private;
	const char *path; /**< As the kernel prints it; "" if anonymous; borrowed until refresh. */
};

/**
 * Read the maps of a live process. We open an object on its first use: through map_files if the
 * kernel permits it, else through /proc/PID/root, and only if device and inode match.
 * @param process Borrowed until destroy.
 */
int symbols_space_create(struct attach_process *process, struct symbols_space **ret_space,
			 struct failure *why);

/** Create a space from the text of a maps file, for a recorded image. We open objects by path on
 *  this machine, and use a file only if its device, inode or build-id matches. Hostile text is
 *  FAILURE_INVALID. */
int symbols_space_create_recorded(const char *maps, size_t len, struct symbols_space **ret_space,
				  struct failure *why);
void symbols_space_destroy(struct symbols_space *space);

/**
 * Give a recorded space the image's memory. The space reads the vDSO there, and build-ids, which
 * prove files whose device and inode differ on this machine.
 * @param memory Borrowed until destroy.
 */
void symbols_space_set_memory(struct symbols_space *space, const struct attach_reader *memory);

/**
 * Add to an image what symbols_space_set_memory() needs later: the vDSO, and the build-ids of the
 * objects opened so far.
 * @param why FAILURE_LIMIT, FAILURE_NO_MEMORY.
 */
int symbols_space_add_evidence(struct symbols_space *space, struct attach_image *image,
			       struct failure *why);

/** Read the maps again. If they changed, the generation advances, and the space drops what it
 *  derived from unmapped objects. For live spaces only. */
int symbols_space_refresh(struct symbols_space *space, struct failure *why);
uint64_t symbols_space_generation(const struct symbols_space *space);

size_t symbols_space_count(const struct symbols_space *space);
const struct symbols_mapping *symbols_space_get(const struct symbols_space *space, size_t index);
/** @return The mapping that holds @p address, or NULL. */
const struct symbols_mapping *symbols_space_find(const struct symbols_space *space,
						 uint64_t address);
/**
 * Whether the file that a mapping of a live process shows cannot be opened: it may not be read, or
 * it was replaced or removed. Then CAP_CHECKPOINT_RESTORE opens it, which root has. Tries to open
 * it. Stopped window: no. Source: proc(5), /proc/pid/map_files.
 */
bool symbols_space_lacks_file(struct symbols_space *space, size_t index);
/** The maps as text, to keep with an image; borrowed until refresh. */
const char *symbols_space_text(const struct symbols_space *space, size_t *ret_len);

/**
 * Fetch debug files of mapped, stripped objects that have none on this machine, from the debuginfod
 * servers in the environment variable DEBUGINFOD_URLS. The objects then have names and types.
 * Blocks, so call it before sampling.
 * @param spaces We ask once for a file that several spaces need, and give it to all of them.
 * @param limit_ms For all files together; up to 2 s more if a server delays us.
 * @param stop Ends the call early when set, without a failure; may be NULL.
 * @param ret_count Fetched files; always set.
 * @param why FAILURE_NOT_FOUND (no DEBUGINFOD_URLS, or no libdebuginfod.so.1), FAILURE_TIMEOUT
 *        (files that came in time count), FAILURE_SYSTEM, FAILURE_NO_MEMORY.
 */
int symbols_fetch_debug(struct symbols_space *const *spaces, size_t count, unsigned limit_ms,
			const volatile sig_atomic_t *stop, size_t *ret_count, struct failure *why);

#endif
