/* SPDX-License-Identifier: MIT */
/* Private to daemon: a core file as a target. */
#ifndef DAEMON_SNAPSHOT_CORE_TARGET_H
#define DAEMON_SNAPSHOT_CORE_TARGET_H

#include "daemon/decode/target.h"

/** A core file, opened, with a target over it. */
struct daemon_core;

/**
 * Open a core file and find its interpreters.
 * @param sysroot As symbols_core_create_space().
 * @param listener Of what is decoded; copied.
 * @param ret_core Set where the end is DAEMON_END_STOPPED; release with daemon_core_close().
 * @param ret_text Message for people where it is not.
 * @return DAEMON_END_STOPPED; DAEMON_END_EARLY where there is no such file, DAEMON_END_DENIED where
 *         it may not be read, DAEMON_END_SYSTEM where it is no core file, or something else failed.
 */
enum daemon_end daemon_core_open(const char *path, const char *sysroot,
				 const struct target_listener *listener,
				 struct daemon_core **ret_core, char *ret_text, size_t len);
void daemon_core_close(struct daemon_core *core);

/** Decodes and searches as that of a process; target_reader() reads all memory of the core. Valid
 *  until close. Nothing in it changes: it has no process, no threads and is never refreshed. */
struct daemon_target *daemon_core_target(struct daemon_core *core);

/** The process's number, 0 if unknown. */
pid_t daemon_core_pid(const struct daemon_core *core);
/** The kernel's name for its program, "" if unknown. What a terminal might obey is replaced by '?',
 * as in struct attach_names. */
const char *daemon_core_name(const struct daemon_core *core);
/** Whether a part of the file is missing. */
bool daemon_core_is_truncated(const struct daemon_core *core);

size_t daemon_core_thread_count(const struct daemon_core *core);
const struct symbols_core_thread *daemon_core_thread(const struct daemon_core *core, size_t index);

/**
 * Prepare the decoding of a thread by target_decode(): its registers go into the image, which is
 * cleared, and the readers are set to the core.
 * @param image Borrowed; one serves all threads.
 */
void daemon_core_take_thread(struct daemon_core *core, size_t index, struct attach_image *image,
			     struct luastate_memory *ret_memory);

/** Say why no VM was found: no LuaJIT, or the files are not there, or the core is cut off. */
void daemon_core_tell_no_vm(struct daemon_core *core, char *ret_text, size_t len);

#endif
