/* SPDX-License-Identifier: MIT */
/* What does a core file hold of a process that has crashed? */
#ifndef SYMBOLS_CORE_H
#define SYMBOLS_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/space.h"

/** A core file: what a process was when it crashed, or when it was saved. */
struct symbols_core;

/** One of its threads. */
struct symbols_core_thread {
	pid_t tid;
	int signal;	      /**< That it got when it was saved, 0 if none. */
	uint64_t stack_limit; /**< First address behind the memory that its stack is in, 0 unknown.
			       */
	struct attach_registers registers;
};

/**
 * Open a core file, as the kernel or gdb's gcore writes it. One that was cut off is opened, too,
 * and has what is there.
 * @param why FAILURE_INVALID, with a step that says what is wrong (no core file, of another
 *            architecture); FAILURE_LIMIT; FAILURE_NO_MEMORY; else as failure_set_errno().
 * Source: core(5); elf(5); Linux 6.1, fs/binfmt_elf.c, elf_core_dump() and fill_files_note().
 */
int symbols_core_open(const char *path, struct symbols_core **ret_core, struct failure *why);
void symbols_core_close(struct symbols_core *core);

/** @return The process's number, 0 if unknown. */
pid_t symbols_core_pid(const struct symbols_core *core);
/** The kernel's name for its program, "" if unknown; any bytes but NUL. Borrowed until close. */
const char *symbols_core_name(const struct symbols_core *core);
/** Whether a part of the file is missing. */
bool symbols_core_is_truncated(const struct symbols_core *core);

/** Threads in the file's order: the kernel writes the one that crashed first. */
size_t symbols_core_thread_count(const struct symbols_core *core);
const struct symbols_core_thread *symbols_core_thread_get(const struct symbols_core *core,
							  size_t index);

/**
 * The address space of a core. Mapped files are looked for by their paths and taken only if their
 * build-ids are those in the core, or if they have none and begin with the same headers.
 * @param sysroot Folder in which the paths are looked up; NULL: this machine's root.
 * @param ret_space The core is borrowed until it is destroyed; it has one at a time.
 * @param why As failure_set_errno() for @p sysroot; FAILURE_LIMIT, FAILURE_NO_MEMORY.
 */
int symbols_core_create_space(struct symbols_core *core, const char *sysroot,
			      struct symbols_space **ret_space, struct failure *why);

/** Reader over the memory: what the core holds, and behind that what the files of the core's space
 *  hold of pages that were not saved because they are in the files. Borrowed until close; for one
 *  thread at a time. */
const struct attach_reader *symbols_core_reader(struct symbols_core *core);

/**
 * Visit the runs of [start, end) that the core file itself holds, from the lowest, without holes.
 * @param visit Returns true to go on.
 */
void symbols_core_each_saved(const struct symbols_core *core, uint64_t start, uint64_t end,
			     bool (*visit)(void *context, uint64_t start, uint64_t end),
			     void *context);

/**
 * Programs and libraries whose files were not found, or are others than those that ran.
 * @param visit The path is borrowed until the space is destroyed.
 * @return How many programs and libraries there are in all. Those are not known of which the core
 *         has not the first page; the kernel saves it unless coredump_filter forbids it, core(5).
 */
size_t symbols_core_each_missing(struct symbols_core *core,
				 void (*visit)(void *context, const char *path), void *context);

#endif
