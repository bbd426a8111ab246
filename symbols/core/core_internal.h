/* SPDX-License-Identifier: MIT */
/* Private to symbols: what do we keep of a core file? */
#ifndef SYMBOLS_CORE_CORE_INTERNAL_H
#define SYMBOLS_CORE_CORE_INTERNAL_H

#include "symbols/core.h"
#include "symbols/elf/elf_bytes.h"
#include "symbols/space/maps.h"

/** Threads to keep at most. Each has several notes, so the kernel's own limit is far away. */
#define SYMBOLS_CORE_THREADS_MAX ((size_t)1 << 16)
/** Notes to read at most: six for each thread, and some for the process. */
#define SYMBOLS_CORE_NOTES_MAX ((size_t)1 << 20)

/** Cached pages of the core file: the parts of a VM are close to each other. */
#define SYMBOLS_CORE_PAGE_BYTES 4096
#define SYMBOLS_CORE_PAGES	256

/** Memory of one mapping. Segments ascend without overlaps. */
struct symbols_core_segment {
	uint64_t start, end; /**< [start, end). */
	uint64_t offset;     /**< Offset in the core file. */
	uint64_t saved;	     /**< Bytes from start that the headers promise. */
	uint64_t there;	     /**< Bytes from start that the file holds. */
	bool readable, writable, executable;
};

/** A mapping of a file. These ascend without overlaps. */
struct symbols_core_file {
	uint64_t start, end; /**< [start, end). */
	uint64_t offset;     /**< Offset in the file. */
	const char *path;    /**< Any bytes except NUL. */
	unsigned number;     /**< From 1; adjacent mappings of one file have the same number. */
};

struct symbols_core {
	struct symbols_source source;
	struct symbols_core_segment *segments;
	size_t segment_count;
	struct symbols_core_file *files;
	size_t file_count;
	uint8_t *file_note; /**< Holds the paths. */
	struct symbols_core_thread *threads;
	size_t thread_count, thread_room, note_count;
	uint64_t vdso; /**< Address; 0: unknown. */
	pid_t pid;
	char name[64];
	bool is_truncated;
	struct symbols_space *space; /**< Borrowed; may be NULL. */
	struct attach_reader own,
		whole; /**< Readers of the core file; and of the core file, then of mapped files. */
	uint64_t pages[SYMBOLS_CORE_PAGES]; /**< For each slot: page number + 1; 0: empty. */
	uint8_t bytes[SYMBOLS_CORE_PAGES][SYMBOLS_CORE_PAGE_BYTES];
};

/**
 * Read the notes in [offset, offset + size) of the file into @p core.
 * @param why FAILURE_NO_MEMORY.
 */
int symbols_core_take_notes(struct symbols_core *core, uint64_t offset, uint64_t size,
			    struct failure *why);

/** @return Index of the segment that holds @p address, or -1. */
ptrdiff_t symbols_core_find_segment(const struct symbols_core *core, uint64_t address);

/**
 * Copy bytes of a page that was not saved from the file that is mapped there.
 * @return Number of bytes, at most @p len.
 */
size_t symbols_core_copy_mapped(struct symbols_core *core, uint64_t address, void *ret_bytes,
				size_t len);

#endif
