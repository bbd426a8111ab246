/* SPDX-License-Identifier: MIT */
#include "symbols/root.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <limits.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/** Where distributions put separate debug files. */
#define DEBUG_DIRECTORY "/usr/lib/debug"
/** Largest file that is read through for a checksum: about 0.3 s. */
#define CHECKSUM_MAX_BYTES ((uint64_t)1 << 30)

void symbols_root_init_live(struct symbols_root *root, pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	root->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	root->pid = pid;
}

void symbols_root_init_recorded(struct symbols_root *root)
{
	*root = (struct symbols_root){ .fd = -1 };
}

void symbols_root_deinit(struct symbols_root *root)
{
	if (root->fd >= 0)
		close(root->fd);
	*root = (struct symbols_root){ .fd = -1 };
}

/** Turn an O_PATH descriptor of a regular file into one for reading; takes @p fd over. */
static int reopen_regular(int fd)
{
	struct stat status;
	char path[64];
	int opened = -1;

	if (fd < 0)
		return -1;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		opened = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	}
	close(fd);
	return opened;
}

int symbols_root_open(const struct symbols_root *root, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	int fd;

	if (path[0] != '/')
		return -1;
	if (root->fd < 0)
		return reopen_regular(open(path, O_PATH | O_CLOEXEC));
	fd = (int)syscall(SYS_openat2, root->fd, path, &how, sizeof(how));
	/* Linux before 5.6, and sandboxes that do not know the call. Links to absolute paths then
	 * lead out of the root, and what they lead to fails the identity check. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = openat(root->fd, path + 1, O_PATH | O_CLOEXEC);
	return reopen_regular(fd);
}

int symbols_root_open_mapping(const struct symbols_root *root, uint64_t start, uint64_t end)
{
	char path[96];

	if (!root->pid)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)root->pid,
		 start, end);
	return reopen_regular(open(path, O_PATH | O_CLOEXEC));
}

/** Open the ELF file at @p path in the target's root or in ours. */
static bool open_elf(const struct symbols_root *root, const char *path, struct symbols_elf *ret_elf)
{
	struct symbols_source source;
	int fd = symbols_root_open(root, path);

	if (fd < 0 || symbols_source_init_file(&source, fd, NULL) < 0)
		return false;
	return symbols_elf_init(ret_elf, &source, NULL) == 0;
}

static bool open_by_build_id(const struct symbols_root *root, const struct symbols_elf *elf,
			     struct symbols_elf *ret_elf)
{
	char path[sizeof(DEBUG_DIRECTORY) + 2 * SYMBOLS_BUILD_ID_MAX + 32];
	int len =
		snprintf(path, sizeof(path), DEBUG_DIRECTORY "/.build-id/%02x/", elf->build_id[0]);

	if (elf->build_id_len < 2)
		return false;
	for (size_t i = 1; i < elf->build_id_len; i++)
		len += snprintf(path + len, sizeof(path) - (size_t)len, "%02x", elf->build_id[i]);
	snprintf(path + len, sizeof(path) - (size_t)len, ".debug");
	if (!open_elf(root, path, ret_elf))
		return false;
	if (ret_elf->symtab.size && ret_elf->build_id_len == elf->build_id_len &&
	    memcmp(ret_elf->build_id, elf->build_id, elf->build_id_len) == 0)
		return true;
	symbols_elf_deinit(ret_elf);
	return false;
}

/** CRC-32 of a whole file, as .gnu_debuglink has it. */
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
			 const char *path, struct symbols_elf *ret_elf)
{
	static const char *const places[][2] = { { "", "" },
						 { "", ".debug/" },
						 { DEBUG_DIRECTORY, "" } };
	const char *slash = strrchr(path, '/');
	char name[NAME_MAX + 1], try[PATH_MAX];
	uint32_t checksum;

	if (!slash || !read_link(elf, name, &checksum))
		return false;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int len = snprintf(try, sizeof(try), "%s%.*s%s%s", places[i][0],
				   (int)(slash + 1 - path), path, places[i][1], name);

		if (len < 0 || (size_t)len >= sizeof(try) || !strcmp(try, path) ||
		    !open_elf(root, try, ret_elf))
			continue;
		if (ret_elf->symtab.size && checksum_is(&ret_elf->source, checksum))
			return true;
		symbols_elf_deinit(ret_elf);
	}
	return false;
}

bool symbols_root_open_debug(const struct symbols_root *root, const struct symbols_elf *elf,
			     const char *path, struct symbols_elf *ret_elf)
{
	static const struct symbols_root ours = { .fd = -1 };

	if (open_by_build_id(root, elf, ret_elf) || open_by_link(root, elf, path, ret_elf))
		return true;
	return root->fd >= 0 &&
	       (open_by_build_id(&ours, elf, ret_elf) || open_by_link(&ours, elf, path, ret_elf));
}
