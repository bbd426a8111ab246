/* SPDX-License-Identifier: MIT */
/* Is LuaJIT in a process, by the files that it has mapped? */
#include "daemon/list/luajit_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/array.h"
#include "attach/hash.h"
#include "attach/process.h"
#include "daemon/decode/mapped.h"
#include "luastate/vm.h"
#include "symbols/space.h"
#include "symbols/unwind.h"

enum {
	/* Ten times the largest maps file that the kernel's default limit of mappings allows. */
	MAPS_MAX_BYTES = 64 << 20,
	READ_BYTES = 32 << 10,
	/* More files with code than the largest machines run. */
	FILES_MAX = 1 << 18,
};

/** Identity of a file in maps; no padding. Some file systems number files anew in each subvolume,
 * so the path counts, too. */
struct file_key {
	uint64_t inode, path_hash;
	uint32_t major, minor;
};

struct file {
	struct file_key key;
	UT_hash_handle hh;
	bool has_luajit;
};

struct luajit_files {
	struct file *known;
	char *maps; /* text of the process */
	size_t maps_size;
	struct file_key *unknown; /* files of the process */
	size_t unknown_size;
};

struct luajit_files *luajit_files_create(void)
{
	return calloc(1, sizeof(struct luajit_files));
}

void luajit_files_destroy(struct luajit_files *files)
{
	struct file *file, *next;

	if (!files)
		return;
	HASH_ITER(hh, files->known, file, next)
	{
		HASH_DEL(files->known, file);
		free(file);
	}
	free(files->maps);
	free(files->unknown);
	free(files);
}

static const struct file *find(const struct luajit_files *files, const struct file_key *key)
{
	struct file *file;

	HASH_FIND(hh, files->known, key, sizeof(*key), file);
	return file;
}

/* Without memory, the file is searched again. */
static void add(struct luajit_files *files, const struct file_key *key, bool has_luajit)
{
	struct file *file;

	if (HASH_COUNT(files->known) >= FILES_MAX || find(files, key))
		return;
	file = malloc(sizeof(*file));
	if (!file)
		return;
	*file = (struct file){ .key = *key, .has_luajit = has_luajit };
	HASH_KEEP(files->known, key, file);
}

/* ---- Maps ------------------------------------------------------------------------------- */

/* Read the maps of a process as text. @return 0, or -1 with errno. */
static int read_maps(struct luajit_files *files, pid_t pid)
{
	size_t used = 0;
	char path[32];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	do {
		if (!ARRAY_RESERVE(files->maps, files->maps_size, used + READ_BYTES + 1)) {
			close(fd);
			errno = ENOMEM;
			return -1;
		}
		got = read(fd, files->maps + used, READ_BYTES);
		used += got > 0 ? (size_t)got : 0;
	} while ((got > 0 && used < MAPS_MAX_BYTES) || (got < 0 && errno == EINTR));
	close(fd);
	files->maps[used] = '\0';
	return got < 0 ? -1 : 0;
}

static struct file_key make_key(uint64_t inode, uint32_t major, uint32_t minor, const char *path,
				size_t len)
{
	return (struct file_key){
		.inode = inode, .path_hash = hash_bytes(path, len), .major = major, .minor = minor
	};
}

/* Read a line of maps. @return Whether it shows code of a file. */
static bool take_line(const char *line, size_t len, struct file_key *ret_key)
{
	const char *flags = memchr(line, ' ', len);
	uint64_t major, minor, inode;
	char *at;

	/* "START-END r-xp OFFSET MAJOR:MINOR INODE PATH" */
	if (!flags || (size_t)(line + len - flags) < sizeof(" r-xp ") || flags[3] != 'x')
		return false;
	strtoull(flags + sizeof(" r-xp"), &at, 16);
	major = strtoull(at, &at, 16);
	if (*at != ':')
		return false;
	minor = strtoull(at + 1, &at, 16);
	inode = strtoull(at, &at, 10);
	at += strspn(at, " ");
	if (!inode || at >= line + len)
		return false;
	*ret_key = make_key(inode, (uint32_t)major, (uint32_t)minor, at, (size_t)(line + len - at));
	return true;
}

/* Judge the known files of the maps, and list the others. @return Whether one has LuaJIT. */
static bool judge_known(struct luajit_files *files, size_t *ret_unknown)
{
	size_t unknown = 0, len;

	for (const char *line = files->maps; *line; line += len + (line[len] == '\n')) {
		const struct file *file;
		struct file_key key;

		len = strcspn(line, "\n");
		if (!take_line(line, len, &key))
			continue;
		file = find(files, &key);
		if (file && file->has_luajit)
			return true;
		if (!file && ARRAY_RESERVE(files->unknown, files->unknown_size, unknown + 1))
			files->unknown[unknown++] = key;
	}
	*ret_unknown = unknown;
	return false;
}

/* ---- Files ------------------------------------------------------------------------------ */

static bool note_interpreter(void *context, const struct symbols_unwind_entry *entry)
{
	const struct luastate_unwind_rule rule = { .start = entry->start,
						   .end = entry->end,
						   .cfa_register = entry->cfa_register,
						   .cfa_offset = entry->cfa_offset,
						   .saved_offset = entry->saved_offset };
	bool *found = context;

	*found |= entry->constant && luastate_is_interpreter(&rule);
	return !*found;
}

/** What the search of a process has found. */
struct finding {
	bool has_luajit;
	bool lacks_luajit; /* A file that cannot be opened seems to be LuaJIT. */
};

/* Search a file that a process has mapped. @return 0 or -1. */
static int search_file(struct luajit_files *files, struct symbols_space *space, size_t index,
		       struct finding *finding, struct failure *why)
{
	const struct symbols_mapping *mapping = symbols_space_get(space, index);
	struct file_key key = make_key(mapping->inode, mapping->dev_major, mapping->dev_minor,
				       mapping->path, strlen(mapping->path));
	const struct file *known = find(files, &key);
	bool found = false;

	if (known) {
		finding->has_luajit |= known->has_luajit;
		return 0;
	}
	if (symbols_each_unwind_entry_in(space, index, LUASTATE_INTERPRETER_MIN_BYTES,
					 note_interpreter, &found, why) != 0)
		return -1;
	finding->has_luajit |= found;
	if (symbols_space_lacks_file(space, index))
		finding->lacks_luajit |= mapped_is_missing_luajit(space, index);
	else
		add(files, &key, found);
	return 0;
}

static int search_files(struct luajit_files *files, struct symbols_space *space,
			struct finding *finding, struct failure *why)
{
	for (size_t i = 0; i < symbols_space_count(space); i++) {
		const struct symbols_mapping *mapping = symbols_space_get(space, i);

		if (mapping->executable && mapping->inode &&
		    search_file(files, space, i, finding, why) != 0)
			return -1;
	}
	return 0;
}

static int examine(struct luajit_files *files, pid_t pid, struct finding *finding,
		   struct failure *why)
{
	struct attach_process *process;
	struct symbols_space *space = NULL;
	int ret;

	if (attach_process_open_to_read(pid, &process, why) != 0)
		return -1;
	ret = symbols_space_create(process, &space, why);
	if (ret == 0)
		ret = symbols_space_refresh(space, why);
	if (ret == 0)
		ret = search_files(files, space, finding, why);
	symbols_space_destroy(space);
	attach_process_close(process);
	return ret;
}

enum luajit_answer luajit_files_ask(struct luajit_files *files, pid_t pid, struct failure *why)
{
	struct finding finding = { 0 };
	size_t unknown;

	if (read_maps(files, pid) != 0) {
		if (errno == ENOENT || errno == ESRCH)
			return LUAJIT_NONE;
		failure_set_errno(why, errno, pid, "trace the process");
		return LUAJIT_DENIED;
	}
	if (judge_known(files, &unknown))
		return LUAJIT_FOUND;
	if (!unknown)
		return LUAJIT_NONE;
	if (examine(files, pid, &finding, why) != 0)
		return why->kind == FAILURE_GONE || why->kind == FAILURE_NOT_FOUND ? LUAJIT_NONE
										   : LUAJIT_DENIED;
	if (finding.has_luajit)
		return LUAJIT_FOUND;
	if (finding.lacks_luajit) {
		failure_set(why, FAILURE_SYSTEM, EPERM, pid, 0,
			    "open the LuaJIT library, which was replaced or removed,");
		return LUAJIT_MISSING;
	}
	for (size_t i = 0; i < unknown; i++)
		add(files, &files->unknown[i], false);
	return LUAJIT_NONE;
}
