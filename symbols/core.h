/* SPDX-License-Identifier: MIT */
/* What does a core file hold of a crashed or saved process? */
#ifndef SYMBOLS_CORE_H
#define SYMBOLS_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/space.h"

/** An open core file. */
struct symbols_core;

/** One thread of the core. */
struct symbols_core_thread {
	pid_t tid;
	int signal;	      /**< Signal that it got when the core was written, or 0. */
	uint64_t stack_limit; /**< First address after its stack's segment; 0: unknown. */
	struct attach_registers registers;
};

/**
 * Open a core file of the kernel or of gdb's gcore. A truncated file also opens, with the part that
 * is there.
 * @param why FAILURE_INVALID, with a step that names the problem (not a core file, another
 *        architecture); FAILURE_LIMIT; FAILURE_NO_MEMORY; else as failure_set_errno().
 * Source: core(5); elf(5); Linux 6.1, fs/binfmt_elf.c, elf_core_dump() and fill_files_note().
 */
int symbols_core_open(const char *path, struct symbols_core **ret_core, struct failure *why);
void symbols_core_close(struct symbols_core *core);

/** @return The process's pid; 0: unknown. */
pid_t symbols_core_pid(const struct symbols_core *core);
/** The kernel's name for the program: any bytes except NUL; "" if unknown. Borrowed until close. */
const char *symbols_core_name(const struct symbols_core *core);
/** Whether a part of the file is missing. */
bool symbols_core_is_truncated(const struct symbols_core *core);

/** Threads in the file's order. The kernel writes the crashed thread first. */
size_t symbols_core_thread_count(const struct symbols_core *core);
const struct symbols_core_thread *symbols_core_thread_get(const struct symbols_core *core,
							  size_t index);

/**
 * Create the address space of a core. We open mapped files by their paths, and use a file only if
 * its build-id is the core's, or if both have no build-id and the first page is the same.
 * @param sysroot Folder that contains the paths; NULL: this machine's root.
 * @param ret_space Borrows the core until destroyed; a core has one space at a time.
 * @param why As failure_set_errno() for @p sysroot; FAILURE_LIMIT, FAILURE_NO_MEMORY.
 */
int symbols_core_create_space(struct symbols_core *core, const char *sysroot,
			      struct symbols_space **ret_space, struct failure *why);

/** Reader of the memory. It reads the core first. For pages that were not saved because a file
 *  holds them, it reads the files of the core's space. Borrowed until close; for one thread at a
 *  time. */
const struct attach_reader *symbols_core_reader(struct symbols_core *core);

/**
 * Visit the runs of [start, end) that the core file itself holds, lowest first, without holes.
 * @param visit Returns true to continue.
 */
void symbols_core_each_saved(const struct symbols_core *core, uint64_t start, uint64_t end,
			     bool (*visit)(void *context, uint64_t start, uint64_t end),
			     void *context);

/**
 * Visit programs and libraries whose files are missing or differ from those that ran.
 * @param visit The path is borrowed until the space is destroyed.
 * @return Number of all programs and libraries whose first page is in the core. The kernel saves
 *         this page unless coredump_filter forbids it, core(5).
 */
size_t symbols_core_each_missing(struct symbols_core *core,
				 void (*visit)(void *context, const char *path), void *context);

#endif
