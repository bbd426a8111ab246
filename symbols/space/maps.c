/* SPDX-License-Identifier: MIT */
/* How do we parse a maps file? */
#include "symbols/space/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/array.h"

/** Longest line: two addresses, flags, offset, device, inode and an escaped PATH_MAX. */
#define LINE_MAX_BYTES 16640

/** The unread part of one line. */
struct cursor {
	const char *at, *end;
};

/** Read a number and its terminator. The end of the line counts as a space. */
static bool take_number(struct cursor *line, unsigned base, char terminator, uint64_t *ret_value)
{
	uint64_t value = 0;
	unsigned digits = 0;

	for (; line->at < line->end && *line->at != terminator; line->at++, digits++) {
		char c = *line->at;
		unsigned digit = c >= '0' && c <= '9'	? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
							: base;

		if (digit >= base || digits == 20 || value > (UINT64_MAX - digit) / base)
			return false;
		value = value * base + digit;
	}
	if (!digits || (line->at == line->end && terminator != ' '))
		return false;
	if (line->at < line->end)
		line->at++;
	*ret_value = value;
	return true;
}

static bool take_flag(struct cursor *line, char yes, char no, bool *ret_set)
{
	if (line->at == line->end || (*line->at != yes && *line->at != no))
		return false;
	*ret_set = *line->at++ == yes;
	return true;
}

static bool take_space(struct cursor *line)
{
	return line->at < line->end && *line->at++ == ' ';
}

static bool take_mapping(struct cursor *line, struct symbols_mapping *ret)
{
	uint64_t major, minor;

	if (!take_number(line, 16, '-', &ret->start) || !take_number(line, 16, ' ', &ret->end) ||
	    ret->start >= ret->end)
		return false;
	if (!take_flag(line, 'r', '-', &ret->readable) ||
	    !take_flag(line, 'w', '-', &ret->writable) ||
	    !take_flag(line, 'x', '-', &ret->executable) ||
	    !take_flag(line, 'p', 's', &ret->is_private) || !take_space(line))
		return false;
	if (!take_number(line, 16, ' ', &ret->offset) || !take_number(line, 16, ':', &major) ||
	    !take_number(line, 16, ' ', &minor) || major > UINT32_MAX || minor > UINT32_MAX)
		return false;
	ret->dev_major = (uint32_t)major;
	ret->dev_minor = (uint32_t)minor;
	return take_number(line, 10, ' ', &ret->inode);
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/** Undo the kernel's escape of a line feed (\012) in place; other bytes stay. */
static void unescape(char *path)
{
	char *to = path;

	for (const char *from = path; *from; to++) {
		if (from[0] == '\\' && is_octal(from[1]) && is_octal(from[2]) &&
		    is_octal(from[3])) {
			char c = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + from[3] - '0');

			*to = c ? c : '?';
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/** Parse one line. A NUL at @p end has replaced its line feed. */
static bool parse_line(char *start, char *end, struct symbols_mapping *ret)
{
	struct cursor line = { .at = start, .end = end };

	if (end - start > LINE_MAX_BYTES || memchr(start, '\0', (size_t)(end - start)))
		return false;
	if (!take_mapping(&line, ret))
		return false;
	while (line.at < line.end && *line.at == ' ')
		line.at++;
	ret->path = line.at;
	unescape(start + (line.at - start));
	return true;
}

static int parse(struct symbols_maps *maps, struct failure *why)
{
	char *end = maps->paths + maps->len;
	uint64_t last_end = 0;

	for (char *line = maps->paths; line < end;) {
		char *line_end = memchr(line, '\n', (size_t)(end - line));
		struct symbols_mapping *mapping = &maps->list[maps->count];

		if (!line_end)
			line_end = end;
		*line_end = '\0';
		if (!parse_line(line, line_end, mapping) || mapping->start < last_end)
			return failure_set(why, FAILURE_INVALID, 0, 0,
					   (uint64_t)(line - maps->paths), "read the memory map");
		last_end = mapping->end;
		maps->count++;
		line = line_end + 1;
	}
	return 0;
}

static size_t count_lines(const char *text, size_t len)
{
	size_t count = 1;

	for (size_t i = 0; i < len; i++)
		count += text[i] == '\n';
	return count;
}

int symbols_maps_init(const char *text, size_t len, struct symbols_maps *ret_maps,
		      struct failure *why)
{
	struct symbols_maps maps = { .len = len };
	size_t lines;

	if (len > SYMBOLS_MAPS_MAX_BYTES ||
	    (lines = count_lines(text, len)) > SYMBOLS_MAPS_MAX_COUNT)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "read the memory map");
	maps.text = malloc(len + 1);
	maps.paths = malloc(len + 1);
	maps.list = calloc(lines, sizeof(*maps.list));
	if (!maps.text || !maps.paths || !maps.list) {
		symbols_maps_deinit(&maps);
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "keep the memory map");
	}
	memcpy(maps.text, text, len);
	memcpy(maps.paths, text, len);
	maps.text[len] = maps.paths[len] = '\0';
	if (parse(&maps, why) < 0) {
		symbols_maps_deinit(&maps);
		return -1;
	}
	*ret_maps = maps;
	return 0;
}

void symbols_maps_deinit(struct symbols_maps *maps)
{
	free(maps->text);
	free(maps->paths);
	free(maps->list);
	*maps = (struct symbols_maps){ 0 };
}

/**
 * Read to the end into a growing buffer.
 * @return 0, or an errno; EFBIG above the limit.
 */
static int read_to_end(int fd, char **ret_text, size_t *ret_len)
{
	size_t size = (size_t)1 << 14, len = 0;
	char *text = malloc(size);

	while (text) {
		ssize_t got = read(fd, text + len, size - len);
		char *larger;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 || len > SYMBOLS_MAPS_MAX_BYTES) {
			int errnum = got < 0 ? errno : EFBIG;

			free(text);
			return errnum;
		}
		if (got == 0) {
			*ret_text = text;
			*ret_len = len;
			return 0;
		}
		len += (size_t)got;
		if (len < size)
			continue;
		larger = realloc(text, size *= 2);
		if (!larger)
			free(text);
		text = larger;
	}
	return ENOMEM;
}

int symbols_maps_read(const char *path, char **ret_text, size_t *ret_len, struct failure *why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int errnum;

	if (fd < 0)
		return failure_set_errno(why, errno == ENOENT ? ESRCH : errno, 0,
					 "open the memory map");
	errnum = read_to_end(fd, ret_text, ret_len);
	close(fd);
	if (errnum == EFBIG)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "read the memory map");
	return errnum ? failure_set_errno(why, errnum, 0, "read the memory map") : 0;
}

ptrdiff_t symbols_maps_find(const struct symbols_maps *maps, uint64_t address)
{
	size_t at = ARRAY_SEARCH(maps->count, i, maps->list[i].end <= address);

	return at < maps->count && maps->list[at].start <= address ? (ptrdiff_t)at : -1;
}
