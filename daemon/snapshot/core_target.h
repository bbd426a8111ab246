/* SPDX-License-Identifier: MIT */
/* Private to daemon: how does a core file serve as a target? */
#ifndef DAEMON_SNAPSHOT_CORE_TARGET_H
#define DAEMON_SNAPSHOT_CORE_TARGET_H

#include "daemon/decode/target.h"

/** An open core file with its target. */
struct daemon_core;

/**
 * Open a core file and find its interpreters.
 * @param sysroot As for symbols_core_create_space().
 * @param listener Receives decoded functions; copied.
 * @param ret_core Set if the end is DAEMON_END_STOPPED; release with daemon_core_close().
 * @param ret_text Message for people otherwise.
 * @return DAEMON_END_STOPPED; DAEMON_END_EARLY if the file does not exist, DAEMON_END_DENIED if it
 * may not be read, DAEMON_END_SYSTEM if it is not a core file, or for any other failure.
 */
enum daemon_end daemon_core_open(const char *path, const char *sysroot,
				 const struct target_listener *listener,
				 struct daemon_core **ret_core, char *ret_text, size_t len);
void daemon_core_close(struct daemon_core *core);

/** The target, valid until close. It decodes and searches like a process, and target_reader() reads
 * all memory of the core. It never changes: it has no process and no threads, and is never
 * refreshed. */
struct daemon_target *daemon_core_target(struct daemon_core *core);

/** The process's pid, 0 if unknown. */
pid_t daemon_core_pid(const struct daemon_core *core);
/** The kernel's name for its program, "" if unknown. Bytes that could control a terminal are
 * replaced by '?', as in struct attach_names. */
const char *daemon_core_name(const struct daemon_core *core);
/** Whether a part of the file is missing. */
bool daemon_core_is_truncated(const struct daemon_core *core);

size_t daemon_core_thread_count(const struct daemon_core *core);
const struct symbols_core_thread *daemon_core_thread(const struct daemon_core *core, size_t index);

/**
 * Prepare a thread for target_decode(): clear the image, put the thread's registers into it, and
 * set the readers to the core.
 * @param image Borrowed; one image serves all threads.
 */
void daemon_core_take_thread(struct daemon_core *core, size_t index, struct attach_image *image,
			     struct luastate_memory *ret_memory);

/** Say why no VM was found: no LuaJIT, missing files, or a truncated core. */
void daemon_core_tell_no_vm(struct daemon_core *core, char *ret_text, size_t len);

#endif
