/* SPDX-License-Identifier: MIT */
/* Where is a file's debug file, by build-id or link, and does it belong to the file? */
#include "symbols/elf/debug_file.h"

#include <limits.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Where distributions put separate debug files. */
#define DEBUG_DIRECTORY "/usr/lib/debug"
/** More such folders, separated by colons. */
#define DEBUG_DIRECTORIES_VARIABLE "LJPROF_DEBUG_DIR"
/** Folders of the variable that we search. */
#define DIRECTORIES_MAX 32
/** Largest file whose checksum we compute: about 0.3 s. */
#define CHECKSUM_MAX_BYTES ((uint64_t)1 << 30)
/** ".build-id/xx/yyyy.debug" */
#define BUILD_ID_PATH_BYTES (2 * SYMBOLS_BUILD_ID_MAX + 32)

static const struct symbols_root own_root = { .fd = -1 };

struct build_id {
	uint8_t bytes[SYMBOLS_BUILD_ID_MAX];
	size_t len;
};

/** Open a descriptor as an ELF file; it may be -1. */
static bool take_file(int fd, struct symbols_elf *ret_elf)
{
	struct symbols_source source;

	return fd >= 0 && symbols_source_init_file(&source, fd, NULL) == 0 &&
	       symbols_elf_init(ret_elf, &source, NULL) == 0;
}

static bool has_need(const struct symbols_elf *elf, enum symbols_debug_need need)
{
	return need == SYMBOLS_DEBUG_TYPES ? elf->has_dwarf : elf->symtab.size != 0;
}

/* ---- By build-id ------------------------------------------------------------------------ */

/** take_file(), but accept only a file with this build-id that meets the need. */
static bool take_proven(int fd, const struct build_id *id, enum symbols_debug_need need,
			struct symbols_elf *ret_elf)
{
	if (!take_file(fd, ret_elf))
		return false;
	if (has_need(ret_elf, need) && ret_elf->build_id_len == id->len &&
	    memcmp(ret_elf->build_id, id->bytes, id->len) == 0)
		return true;
	symbols_elf_deinit(ret_elf);
	return false;
}

static void write_path(const struct build_id *id, char ret_path[BUILD_ID_PATH_BYTES])
{
	int len = snprintf(ret_path, BUILD_ID_PATH_BYTES, ".build-id/%02x/", id->bytes[0]);

	for (size_t i = 1; i < id->len; i++)
		len += snprintf(ret_path + len, BUILD_ID_PATH_BYTES - (size_t)len, "%02x",
				id->bytes[i]);
	snprintf(ret_path + len, BUILD_ID_PATH_BYTES - (size_t)len, ".debug");
}

/** Search the folders that the user named. */
static bool open_in_named(const char *path, const struct build_id *id, enum symbols_debug_need need,
			  struct symbols_elf *ret_elf)
{
	const char *at = getenv(DEBUG_DIRECTORIES_VARIABLE);
	char whole[PATH_MAX];

	for (unsigned i = 0; at && i < DIRECTORIES_MAX; i++) {
		size_t len = strcspn(at, ":");

		if (len && len + strlen(path) + 2 <= sizeof(whole)) {
			snprintf(whole, sizeof(whole), "%.*s/%s", (int)len, at, path);
			if (take_proven(symbols_root_open_own(whole), id, need, ret_elf))
				return true;
		}
		at = at[len] ? at + len + 1 : NULL;
	}
	return false;
}

/** Search the files that servers sent. */
static bool open_fetched(const struct symbols_root *root, const struct build_id *id,
			 enum symbols_debug_need need, struct symbols_elf *ret_elf)
{
	for (const struct symbols_fetched *file = root->fetched; file; file = file->next) {
		if (file->build_id_len == id->len &&
		    memcmp(file->build_id, id->bytes, id->len) == 0 &&
		    take_proven(symbols_root_open_own(file->path), id, need, ret_elf))
			return true;
	}
	return false;
}

static bool open_by_build_id(const struct symbols_root *root, const struct build_id *id,
			     enum symbols_debug_need need, struct symbols_elf *ret_elf)
{
	char path[BUILD_ID_PATH_BYTES], whole[sizeof(DEBUG_DIRECTORY) + BUILD_ID_PATH_BYTES];

	if (id->len < 2)
		return false;
	write_path(id, path);
	if (open_in_named(path, id, need, ret_elf) || open_fetched(root, id, need, ret_elf))
		return true;
	snprintf(whole, sizeof(whole), DEBUG_DIRECTORY "/%s", path);
	return take_proven(symbols_root_open(root, whole), id, need, ret_elf) ||
	       (root->fd >= 0 &&
		take_proven(symbols_root_open(&own_root, whole), id, need, ret_elf));
}

/* ---- By link ---------------------------------------------------------------------------- */

/** Whether the CRC-32 of a whole file is @p expected, the one in .gnu_debuglink. */
static bool checksum_is(const struct symbols_source *source, uint32_t expected)
{
	size_t size = (size_t)1 << 16;
	uint8_t *chunk = malloc(size);
	uint32_t sum = 0;
	uint64_t at = 0;

	while (chunk && at < source->size && source->size <= CHECKSUM_MAX_BYTES) {
		size_t len = source->size - at < size ? (size_t)(source->size - at) : size;

		if (!symbols_source_read(source, at, chunk, len))
			break;
		sum = lzma_crc32(chunk, len, sum);
		at += len;
	}
	free(chunk);
	return at == source->size && sum == expected;
}

/** Read .gnu_debuglink: a file name, padded to four bytes, and a checksum. */
static bool read_link(const struct symbols_elf *elf, char ret_name[NAME_MAX + 1],
		      uint32_t *ret_checksum)
{
	uint64_t end = elf->debuglink.offset + elf->debuglink.size;
	size_t len;

	if (elf->debuglink.size < 8 || elf->debuglink.size > NAME_MAX + 8)
		return false;
	len = symbols_source_string(&elf->source, elf->debuglink.offset, end, ret_name,
				    NAME_MAX + 1);
	if (!len || strchr(ret_name, '/') || !strcmp(ret_name, "..") || !strcmp(ret_name, "."))
		return false;
	return symbols_source_read(&elf->source, end - 4, ret_checksum, 4);
}

static bool open_by_link(const struct symbols_root *root, const struct symbols_elf *elf,
			 const char *path, enum symbols_debug_need need,
			 struct symbols_elf *ret_elf)
{
	static const char *const locations[][2] = { { "", "" },
						    { "", ".debug/" },
						    { DEBUG_DIRECTORY, "" } };
	const char *slash = strrchr(path, '/');
	char name[NAME_MAX + 1], try[PATH_MAX];
	uint32_t checksum;

	if (!slash || !read_link(elf, name, &checksum))
		return false;
	for (size_t i = 0; i < sizeof(locations) / sizeof(locations[0]); i++) {
		int len = snprintf(try, sizeof(try), "%s%.*s%s%s", locations[i][0],
				   (int)(slash + 1 - path), path, locations[i][1], name);

		if (len < 0 || (size_t)len >= sizeof(try) || !strcmp(try, path) ||
		    !take_file(symbols_root_open(root, try), ret_elf))
			continue;
		if (has_need(ret_elf, need) && checksum_is(&ret_elf->source, checksum))
			return true;
		symbols_elf_deinit(ret_elf);
	}
	return false;
}

bool symbols_debug_open(const struct symbols_root *root, const struct symbols_elf *elf,
			const char *path, enum symbols_debug_need need, struct symbols_elf *ret_elf)
{
	struct build_id id = { .len = elf->build_id_len };

	memcpy(id.bytes, elf->build_id, sizeof(id.bytes));
	return open_by_build_id(root, &id, need, ret_elf) ||
	       open_by_link(root, elf, path, need, ret_elf) ||
	       (root->fd >= 0 && open_by_link(&own_root, elf, path, need, ret_elf));
}

/* ---- The file that several debug files share -------------------------------------------- */

/** Read .gnu_debugaltlink: a path, then the build-id. */
static bool read_alternate(const struct symbols_elf *debug, char ret_path[PATH_MAX],
			   struct build_id *ret_id)
{
	const struct symbols_section *section = &debug->altlink;
	uint64_t end = section->offset + section->size;
	size_t len;

	if (section->size < 3 || section->size > PATH_MAX)
		return false;
	len = symbols_source_string(&debug->source, section->offset, end, ret_path, PATH_MAX);
	if (len + 1 >= section->size || section->size - len - 1 > sizeof(ret_id->bytes))
		return false;
	ret_id->len = section->size - len - 1;
	return symbols_source_read(&debug->source, section->offset + len + 1, ret_id->bytes,
				   ret_id->len);
}

bool symbols_debug_open_alternate(const struct symbols_root *root, const struct symbols_elf *debug,
				  struct symbols_elf *ret_elf)
{
	enum symbols_debug_need need = SYMBOLS_DEBUG_TYPES;
	char path[PATH_MAX];
	struct build_id id;

	if (!read_alternate(debug, path, &id))
		return false;
	return open_by_build_id(root, &id, need, ret_elf) ||
	       take_proven(symbols_root_open(root, path), &id, need, ret_elf) ||
	       (root->fd >= 0 &&
		take_proven(symbols_root_open(&own_root, path), &id, need, ret_elf));
}
