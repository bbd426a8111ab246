/* SPDX-License-Identifier: MIT */
/* Private to daemon: is LuaJIT in a process, by the files that it has mapped? */
#ifndef DAEMON_LIST_LUAJIT_FILES_H
#define DAEMON_LIST_LUAJIT_FILES_H

#include <stdint.h>
#include <sys/types.h>

#include "attach/failure.h"

/** Files that were searched for LuaJIT. Processes share most of their files, so each is searched
 * only once. */
struct luajit_files;

/** @return NULL when out of memory. */
struct luajit_files *luajit_files_create(void);
void luajit_files_destroy(struct luajit_files *files);

enum luajit_answer {
	LUAJIT_FOUND,
	LUAJIT_NONE,   /**< Also for a kernel thread, a zombie, and a process that has ended. */
	LUAJIT_DENIED, /**< The process could not be read, or memory or descriptors ran out. */
	/** A file that has "lua" in its name cannot be opened. Other such files count as ones
	 * without LuaJIT. */
	LUAJIT_MISSING,
};

/**
 * Search the files of a process that are not yet known. Reads /proc and files; stops no thread.
 * @param why Set for LUAJIT_DENIED and LUAJIT_MISSING.
 */
enum luajit_answer luajit_files_ask(struct luajit_files *files, pid_t pid, struct failure *why);

#endif
