/* SPDX-License-Identifier: MIT */
/* How do we read bytes of a file or of a memory block? */
#include "symbols/elf/elf_bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int symbols_source_init_file(struct symbols_source *source, int fd, struct failure *why)
{
	struct stat status;

	*source = (struct symbols_source){ .fd = fd };
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size < 0) {
		symbols_source_deinit(source);
		return failure_set(why, FAILURE_INVALID, 0, 0, 0, "read a mapped file");
	}
	source->size = (uint64_t)status.st_size;
	source->device = status.st_dev;
	source->inode = status.st_ino;
	source->modified = status.st_mtim;
	return 0;
}

void symbols_source_init_memory(struct symbols_source *source, uint8_t *bytes, size_t size)
{
	*source = (struct symbols_source){ .fd = -1, .bytes = bytes, .size = size };
}

void symbols_source_deinit(struct symbols_source *source)
{
	if (source->fd >= 0)
		close(source->fd);
	free(source->bytes);
	*source = (struct symbols_source){ .fd = -1 };
}

bool symbols_source_unchanged(const struct symbols_source *source)
{
	struct stat status;

	if (source->fd < 0)
		return true;
	return fstat(source->fd, &status) == 0 && (uint64_t)status.st_size == source->size &&
	       status.st_mtim.tv_sec == source->modified.tv_sec &&
	       status.st_mtim.tv_nsec == source->modified.tv_nsec;
}

/**
 * Call pread() until @p len bytes are read or the file ends.
 * @return Bytes read.
 */
static size_t read_some(const struct symbols_source *source, uint64_t offset, uint8_t *bytes,
			size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t got = pread(source->fd, bytes + done, len - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return done;
}

bool symbols_source_read(const struct symbols_source *source, uint64_t offset, void *ret_bytes,
			 size_t len)
{
	if (offset > source->size || len > source->size - offset)
		return false;
	if (source->fd >= 0)
		return read_some(source, offset, ret_bytes, len) == len;
	if (len)
		memcpy(ret_bytes, source->bytes + offset, len);
	return true;
}

uint8_t *symbols_source_copy(const struct symbols_source *source, uint64_t offset, uint64_t len,
			     size_t max)
{
	uint8_t *bytes;

	if (len == 0 || len > max || offset > source->size || len > source->size - offset)
		return NULL;
	bytes = malloc(len);
	if (bytes && !symbols_source_read(source, offset, bytes, len)) {
		free(bytes);
		bytes = NULL;
	}
	return bytes;
}

size_t symbols_source_string(const struct symbols_source *source, uint64_t offset, uint64_t end,
			     char *ret_text, size_t size)
{
	uint64_t limit = end < source->size ? end : source->size;
	size_t len, want = size - 1;

	ret_text[0] = '\0';
	if (offset >= limit)
		return 0;
	if (want > limit - offset)
		want = limit - offset;
	if (source->fd >= 0)
		want = read_some(source, offset, (uint8_t *)ret_text, want);
	else
		memcpy(ret_text, source->bytes + offset, want);
	len = strnlen(ret_text, want);
	ret_text[len] = '\0';
	return len;
}
