/* SPDX-License-Identifier: MIT */
/*
 * How is an image written as a file?
 *
 * All numbers are little-endian with 64 bits:
 *
 *   "LJIMAGE2"
 *   architecture, as ELF numbers it (e_machine)
 *   register count, the registers by DWARF number, system call number
 *   range count,    then per range  address, length, bytes
 *   note count,     then per note   16 bytes of name, length, bytes
 *
 * The earlier version "LJIMAGE1" has no architecture field; it is always x86-64.
 */
#include "attach/image/image_internal.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char image_magic[8] = { 'L', 'J', 'I', 'M', 'A', 'G', 'E', '2' };
static const char image_magic_1[8] = { 'L', 'J', 'I', 'M', 'A', 'G', 'E', '1' };

#if defined(__x86_64__)
#define IMAGE_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define IMAGE_MACHINE EM_AARCH64
#endif

static void put_u64(FILE *file, uint64_t value)
{
	uint8_t bytes[8];

	for (int i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
	fwrite(bytes, 1, sizeof(bytes), file);
}

static void put_content(FILE *file, const struct attach_image *image)
{
	uint64_t ranges = 0;

	fwrite(image_magic, 1, sizeof(image_magic), file);
	put_u64(file, IMAGE_MACHINE);
	put_u64(file, ATTACH_REG_COUNT);
	for (int i = 0; i < ATTACH_REG_COUNT; i++)
		put_u64(file, image->registers.r[i]);
	put_u64(file, (uint64_t)image->registers.syscall);
	for (size_t i = 0; i < image->range_count; i++)
		ranges += image->ranges[i].len != 0;
	put_u64(file, ranges);
	for (size_t i = 0; i < image->range_count; i++) {
		const struct image_range *range = &image->ranges[i];

		if (range->len == 0)
			continue;
		put_u64(file, range->start);
		put_u64(file, range->len);
		fwrite(image->arena + range->offset, 1, range->len, file);
	}
	put_u64(file, image->note_count);
	for (size_t i = 0; i < image->note_count; i++) {
		fwrite(image->notes[i].name, 1, IMAGE_NOTE_NAME, file);
		put_u64(file, image->notes[i].len);
		fwrite(image->notes[i].bytes, 1, image->notes[i].len, file);
	}
}

/* Only those who may read the target may read its memory. */
static FILE *create_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	if (!file && fd >= 0)
		close(fd);
	return file;
}

int attach_image_save(const struct attach_image *image, const char *path, struct failure *why)
{
	FILE *file = create_file(path);
	int error;

	if (!file)
		return failure_set_errno(why, errno, 0, "create an image file");
	put_content(file, image);
	error = ferror(file) ? errno : 0;
	if (fclose(file) != 0 && !error)
		error = errno;
	if (!error)
		return 0;
	unlink(path); /* an incomplete image cannot be read */
	return failure_set_errno(why, error, 0, "write an image file");
}

/* Hostile bytes, and the read position. */
struct source {
	const uint8_t *bytes;
	size_t len, pos;
};

static int bad_image(const struct source *source, struct failure *why, const char *step)
{
	return failure_set(why, FAILURE_INVALID, 0, 0, source->pos, step);
}

static int get_bytes(struct source *source, size_t len, const uint8_t **ret_bytes,
		     struct failure *why)
{
	if (len > source->len - source->pos)
		return bad_image(source, why, "read an image that ends early");
	*ret_bytes = source->bytes + source->pos;
	source->pos += len;
	return 0;
}

static int get_u64(struct source *source, uint64_t *ret_value, struct failure *why)
{
	const uint8_t *bytes = NULL;
	uint64_t value = 0;

	if (get_bytes(source, 8, &bytes, why) != 0)
		return -1;
	for (int i = 7; i >= 0; i--)
		value = value << 8 | bytes[i];
	*ret_value = value;
	return 0;
}

/* Registers and their roles differ by architecture, and we are built for one. */
static int check_machine(struct source *source, uint64_t machine, struct failure *why)
{
	switch (machine) {
	case IMAGE_MACHINE:
		return 0;
#if !defined(__x86_64__)
	case EM_X86_64:
		return bad_image(source, why, "read an image of an x86-64 process");
#endif
#if !defined(__aarch64__)
	case EM_AARCH64:
		return bad_image(source, why, "read an image of an AArch64 process");
#endif
	default:
		return bad_image(source, why, "read an image of an unknown architecture");
	}
}

/* Read the magic and the architecture. */
static int get_head(struct source *source, struct failure *why)
{
	const uint8_t *magic = NULL;
	uint64_t machine = EM_X86_64;

	if (get_bytes(source, sizeof(image_magic), &magic, why) != 0)
		return -1;
	if (memcmp(magic, image_magic, sizeof(image_magic)) == 0) {
		if (get_u64(source, &machine, why) != 0)
			return -1;
	} else if (memcmp(magic, image_magic_1, sizeof(image_magic_1)) != 0) {
		source->pos = 0;
		return bad_image(source, why, "read a file that is no image");
	}
	return check_machine(source, machine, why);
}

static int get_registers(struct source *source, struct attach_image *image, struct failure *why)
{
	uint64_t count, value;

	if (get_u64(source, &count, why) != 0)
		return -1;
	if (count != ATTACH_REG_COUNT)
		return bad_image(source, why, "read an image with other registers");
	for (int i = 0; i < ATTACH_REG_COUNT; i++)
		if (get_u64(source, &image->registers.r[i], why) != 0)
			return -1;
	if (get_u64(source, &value, why) != 0)
		return -1;
	image->registers.syscall = (int64_t)value;
	return 0;
}

static int get_ranges(struct source *source, struct attach_image *image, struct failure *why)
{
	uint64_t count, start, len;
	const uint8_t *bytes = NULL;

	if (get_u64(source, &count, why) != 0)
		return -1;
	if (count > ATTACH_IMAGE_MAX_RANGES)
		return bad_image(source, why, "read an image with too many ranges");
	while (count--) {
		if (get_u64(source, &start, why) != 0 || get_u64(source, &len, why) != 0 ||
		    get_bytes(source, len, &bytes, why) != 0)
			return -1;
		if (start + len < start)
			return bad_image(source, why, "read an image range that wraps");
		if (attach_image_add(image, remote_addr_make(start), bytes, len, why) != 0)
			return -1;
	}
	attach_image_order(image);
	return 0;
}

static int get_notes(struct source *source, struct attach_image *image, struct failure *why)
{
	const uint8_t *name = NULL, *bytes = NULL;
	char text[IMAGE_NOTE_NAME + 1] = "";
	uint64_t count, len;

	if (get_u64(source, &count, why) != 0)
		return -1;
	if (count > IMAGE_NOTES)
		return bad_image(source, why, "read an image with too many notes");
	while (count--) {
		if (get_bytes(source, IMAGE_NOTE_NAME, &name, why) != 0 ||
		    get_u64(source, &len, why) != 0 || get_bytes(source, len, &bytes, why) != 0)
			return -1;
		memcpy(text, name, IMAGE_NOTE_NAME - 1);
		if (attach_image_set_note(image, text, bytes, len, why) != 0)
			return -1;
	}
	return 0;
}

int attach_image_load(const void *bytes, size_t len, struct attach_image **ret_image,
		      struct failure *why)
{
	struct source source = { .bytes = bytes, .len = len };
	struct attach_image *image;

	if (get_head(&source, why) != 0)
		return -1;
	image = attach_image_create();
	if (!image)
		return failure_set_errno(why, ENOMEM, 0, "load an image");
	if (get_registers(&source, image, why) != 0 || get_ranges(&source, image, why) != 0 ||
	    get_notes(&source, image, why) != 0) {
		attach_image_destroy(image);
		return -1;
	}
	*ret_image = image;
	return 0;
}

int attach_image_load_file(const char *path, struct attach_image **ret_image, struct failure *why)
{
	const size_t size = ATTACH_IMAGE_MAX_BYTES * 2;
	FILE *file = fopen(path, "re");
	uint8_t *bytes;
	size_t len;
	int ret;

	if (!file)
		return failure_set_errno(why, errno, 0, "open an image file");
	bytes = malloc(size);
	if (!bytes) {
		fclose(file);
		return failure_set_errno(why, ENOMEM, 0, "load an image");
	}
	len = fread(bytes, 1, size, file);
	fclose(file);
	ret = attach_image_load(bytes, len, ret_image, why);
	free(bytes);
	return ret;
}
