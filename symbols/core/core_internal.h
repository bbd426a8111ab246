/* SPDX-License-Identifier: MIT */
/* A core file: segments of memory, notes about the process. */
#ifndef SYMBOLS_CORE_CORE_INTERNAL_H
#define SYMBOLS_CORE_CORE_INTERNAL_H

#include "symbols/core.h"
#include "symbols/elf/elf_bytes.h"
#include "symbols/space/maps.h"

/** Threads that are kept; each has some notes, so that the kernel's own limit is far away. */
#define SYMBOLS_CORE_THREADS_MAX ((size_t)1 << 16)
/** Notes that are looked at: six for each thread and some for the process. */
#define SYMBOLS_CORE_NOTES_MAX ((size_t)1 << 20)

/** A page of the core file, kept: what is read of a VM lies close together. */
#define SYMBOLS_CORE_PAGE_BYTES 4096
#define SYMBOLS_CORE_PAGES	256

/** Memory of one mapping; ascending, without overlaps. */
struct symbols_core_segment {
	uint64_t start, end; /**< [start, end). */
	uint64_t offset;     /**< In the core file. */
	uint64_t saved;	     /**< Bytes from start that the core file is said to hold, */
	uint64_t there;	     /**< and those that it holds. */
	bool readable, writable, executable;
};

/** What is mapped from a file; ascending, without overlaps. */
struct symbols_core_file {
	uint64_t start, end; /**< [start, end). */
	uint64_t offset;     /**< In the file. */
	const char *path;    /**< Any bytes but NUL. */
	unsigned number; /**< From 1; mappings of one file that follow each other have the same. */
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
	uint64_t vdso; /**< Address, 0 if unknown. */
	pid_t pid;
	char name[64];
	bool is_truncated;
	struct symbols_space *space; /**< Borrowed; NULL without. */
	struct attach_reader own,
		whole; /**< Over the core file; and over mapped files behind it. */
	uint64_t pages[SYMBOLS_CORE_PAGES]; /**< Number of the page in the slot + 1. */
	uint8_t bytes[SYMBOLS_CORE_PAGES][SYMBOLS_CORE_PAGE_BYTES];
};

/** Take what is known from the notes in [offset, offset + size) of the file.
 *  @param why FAILURE_NO_MEMORY. */
int symbols_core_take_notes(struct symbols_core *core, uint64_t offset, uint64_t size,
			    struct failure *why);

/** @return Index of the segment that holds @p address, or -1. */
ptrdiff_t symbols_core_find_segment(const struct symbols_core *core, uint64_t address);

/** Copy bytes of a page that was not saved from the file that is mapped there.
 *  @return How many could be copied, at most @p len. */
size_t symbols_core_copy_mapped(struct symbols_core *core, uint64_t address, void *ret_bytes,
				size_t len);

#endif
