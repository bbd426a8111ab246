/* SPDX-License-Identifier: MIT */
/* How does a core file serve as a target? */
#include "daemon/snapshot/core_target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct daemon_core {
	struct symbols_core *file;
	struct daemon_target *target;
	char *path; /* as the user gave it */
	char name[64];
};

/* ---- Open and close --------------------------------------------------------------------- */

/* The program chooses its name, so it may hold any bytes. */
static void take_name(struct daemon_core *core)
{
	snprintf(core->name, sizeof(core->name), "%s", symbols_core_name(core->file));
	for (char *at = core->name; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
}

static enum daemon_end tell_failure(const char *path, const struct failure *why, char *ret_text,
				    size_t len)
{
	snprintf(ret_text, len, "%s: cannot %s%s%s", path, why->step, why->errnum ? ": " : "",
		 why->errnum ? strerror(why->errnum) : "");
	if (why->errnum == ENOENT || why->errnum == ENOTDIR)
		return DAEMON_END_EARLY;
	return why->kind == FAILURE_DENIED ? DAEMON_END_DENIED : DAEMON_END_SYSTEM;
}

static int open_file(struct daemon_core *core, const char *path, struct failure *why)
{
	core->path = strdup(path);
	return core->path ? symbols_core_open(path, &core->file, why)
			  : failure_set_errno(why, ENOMEM, 0, "read it");
}

enum daemon_end daemon_core_open(const char *path, const char *sysroot,
				 const struct target_listener *listener,
				 struct daemon_core **ret_core, char *ret_text, size_t len)
{
	struct daemon_core *core = calloc(1, sizeof(*core));
	enum daemon_end end = DAEMON_END_STOPPED;
	struct failure why;

	if (!core)
		failure_set_errno(&why, ENOMEM, 0, "read it");
	if (!core || open_file(core, path, &why) != 0) {
		end = tell_failure(path, &why, ret_text, len);
	} else if (target_create_core(core->file, sysroot, listener, &core->target, &why) != 0) {
		/* The folder of the mapped files may be missing, which is another error. */
		tell_failure(sysroot ? sysroot : path, &why, ret_text, len);
		end = DAEMON_END_SYSTEM;
	}
	if (end != DAEMON_END_STOPPED) {
		daemon_core_close(core);
		return end;
	}
	take_name(core);
	*ret_core = core;
	return end;
}

void daemon_core_close(struct daemon_core *core)
{
	if (!core)
		return;
	target_destroy(core->target);
	symbols_core_close(core->file);
	free(core->path);
	free(core);
}

/* ---- Queries ---------------------------------------------------------------------------- */

struct daemon_target *daemon_core_target(struct daemon_core *core)
{
	return core->target;
}

pid_t daemon_core_pid(const struct daemon_core *core)
{
	return symbols_core_pid(core->file);
}

const char *daemon_core_name(const struct daemon_core *core)
{
	return core->name;
}

bool daemon_core_is_truncated(const struct daemon_core *core)
{
	return symbols_core_is_truncated(core->file);
}

size_t daemon_core_thread_count(const struct daemon_core *core)
{
	return symbols_core_thread_count(core->file);
}

const struct symbols_core_thread *daemon_core_thread(const struct daemon_core *core, size_t index)
{
	return symbols_core_thread_get(core->file, index);
}

void daemon_core_take_thread(struct daemon_core *core, size_t index, struct attach_image *image,
			     struct luastate_memory *ret_memory)
{
	const struct attach_reader *reader = target_reader(core->target);

	attach_image_clear(image);
	*attach_image_registers(image) = daemon_core_thread(core, index)->registers;
	*ret_memory = (struct luastate_memory){ .stopped = reader, .any = reader };
}

/* ---- Messages --------------------------------------------------------------------------- */

/** Files that were not found. */
struct missing {
	char path[256]; /* of the first one */
	size_t count;
};

static void note_missing(void *context, const char *path)
{
	struct missing *missing = context;

	if (missing->count++ > 0)
		return;
	snprintf(missing->path, sizeof(missing->path), "%s", path);
	for (char *at = missing->path; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?';
}

void daemon_core_tell_no_vm(struct daemon_core *core, char *ret_text, size_t len)
{
	const char *what =
		luastate_has_interpreter(core->target->lua) ? "no known LuaJIT VM" : "no LuaJIT";
	const char *cut = daemon_core_is_truncated(core) ? ", which is incomplete" : "";
	struct missing missing = { .count = 0 };
	size_t programs = symbols_core_each_missing(core->file, note_missing, &missing);

	if (missing.count)
		snprintf(ret_text, len,
			 "%s in %s%s, but %zu of its files %s missing or changed, such as %s: give "
			 "--sysroot, the folder with the files that ran",
			 what, core->path, cut, missing.count, missing.count == 1 ? "is" : "are",
			 missing.path);
	else if (!programs && symbols_space_count(core->target->space) && !*cut)
		snprintf(ret_text, len,
			 "%s in %s, which names no program: it was saved without the "
			 "first pages of files, see coredump_filter in core(5)",
			 what, core->path);
	else
		snprintf(ret_text, len, "%s in %s%s", what, core->path, cut);
}
