/* SPDX-License-Identifier: MIT */
/* What is mapped where in a target, and which files are behind it? */
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
	uint64_t offset;     /**< In the file. */
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	bool readable, writable, executable, is_private;
	const char *path; /**< As the kernel prints it, "" if anonymous; borrowed until refresh. */
};

/**
 * Read the maps of a live process. Objects are opened on first use, through map_files where the
 * kernel lets us, else through /proc/PID/root, and then only if device and inode fit.
 * @param process Borrowed until destroy.
 */
int symbols_space_create(struct attach_process *process, struct symbols_space **ret_space,
			 struct failure *why);

/** A space from the text of a maps file, for a recorded image: objects are looked up by path on
 *  this machine and taken only if device, inode or build-id fit; hostile text is FAILURE_INVALID.
 */
int symbols_space_create_recorded(const char *maps, size_t len, struct symbols_space **ret_space,
				  struct failure *why);
void symbols_space_destroy(struct symbols_space *space);

/** Give a recorded space the image's memory: the vDSO is read there, and build-ids, which prove
 *  files whose device and inode are other ones here. @param memory Borrowed until destroy. */
void symbols_space_set_memory(struct symbols_space *space, const struct attach_reader *memory);

/** Put into an image what its recorded space needs for that: the build-ids of the objects opened so
 *  far, and the vDSO. @param why FAILURE_LIMIT, FAILURE_NO_MEMORY. */
int symbols_space_add_evidence(struct symbols_space *space, struct attach_image *image,
			       struct failure *why);

/** Read the maps again. The generation advances where they changed; what was derived from objects
 *  that are no longer mapped is dropped. Live spaces only. */
int symbols_space_refresh(struct symbols_space *space, struct failure *why);
uint64_t symbols_space_generation(const struct symbols_space *space);

size_t symbols_space_count(const struct symbols_space *space);
const struct symbols_mapping *symbols_space_get(const struct symbols_space *space, size_t index);
/** @return The mapping that holds @p address, or NULL. */
const struct symbols_mapping *symbols_space_find(const struct symbols_space *space,
						 uint64_t address);
/** The maps as text, for an image; borrowed until refresh. */
const char *symbols_space_text(const struct symbols_space *space, size_t *ret_len);

/**
 * Fetch debug files of stripped objects that are mapped now and have none on this machine, from the
 * debuginfod servers that the environment variable DEBUGINFOD_URLS names. They serve names and
 * types from then on. Blocks; so it is for the time before anything is sampled.
 * @param spaces What several have is asked for once, and all get it.
 * @param limit_ms For all together; up to 2 s more where a server holds us up.
 * @param stop Ends it early when set, without a failure; NULL without.
 * @param ret_count Files that came; set in any case.
 * @param why FAILURE_NOT_FOUND (no DEBUGINFOD_URLS, or no libdebuginfod.so.1), FAILURE_TIMEOUT
 * (those that came in time count), FAILURE_SYSTEM, FAILURE_NO_MEMORY.
 */
int symbols_fetch_debug(struct symbols_space *const *spaces, size_t count, unsigned limit_ms,
			const volatile sig_atomic_t *stop, size_t *ret_count, struct failure *why);

#endif
