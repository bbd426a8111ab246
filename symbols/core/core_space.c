/* SPDX-License-Identifier: MIT */
/* What is the address space of a core, and which files are mapped in it? */
#include "symbols/core/core_internal.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/space/space_internal.h"

/*
 * A core does not name the device and inode of a mapped file. We number the files and give them a
 * device that does not exist. So only a build-id can prove a file that we find by path.
 */
#define NO_DEVICE "ffffffff:ffffffff"

/** Adjacent mappings of one file; link editors make 2 to 6 segments. */
#define MAPPINGS_MAX 64

/* ---- Maps ------------------------------------------------------------------------------- */

/** A part of the address space: of a segment, of a mapped file, or of both. */
struct piece {
	uint64_t start, end;
	const struct symbols_core_segment *segment; /**< NULL: none. */
	const struct symbols_core_file *file;	    /**< NULL: none. */
};

/** Escape line feeds as the kernel does. Also escape bytes that a reader would take for an escape
 *  or would skip. */
static void print_path(FILE *text, const char *path)
{
	for (const char *at = path; *at; at++) {
		if (*at == '\n' || *at == '\\' || (*at == ' ' && at == path))
			fprintf(text, "\\%03o", (unsigned)*at);
		else
			fputc(*at, text);
	}
}

/** gdb leaves out memory that only its file holds: code or constants. We print it as executable, so
 *  that we read it as code, and search it for nothing else. */
static void print_piece(FILE *text, const struct symbols_core *core, const struct piece *piece)
{
	const struct symbols_core_segment *segment = piece->segment;
	const struct symbols_core_file *file = piece->file;

	fprintf(text, "%" PRIx64 "-%" PRIx64 " %c%c%cp ", piece->start, piece->end,
		!segment || segment->readable ? 'r' : '-', segment && segment->writable ? 'w' : '-',
		!segment || segment->executable ? 'x' : '-');
	if (file) {
		fprintf(text, "%" PRIx64 " " NO_DEVICE " %u ",
			file->offset + (piece->start - file->start), file->number);
		print_path(text, file->path);
	} else {
		fprintf(text, "0 0:0 0%s",
			core->vdso && piece->start == core->vdso ? " [vdso]" : "");
	}
	fputc('\n', text);
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/**
 * Find the next piece from *at on, and advance *at.
 * @return false at the end.
 */
static bool next_piece(const struct symbols_core *core, size_t *segment_at, size_t *file_at,
		       uint64_t *at, struct piece *ret)
{
	const struct symbols_core_segment *segment;
	const struct symbols_core_file *file;
	uint64_t of_segment, of_file;

	while (*segment_at < core->segment_count && core->segments[*segment_at].end <= *at)
		++*segment_at;
	while (*file_at < core->file_count && core->files[*file_at].end <= *at)
		++*file_at;
	segment = *segment_at < core->segment_count ? &core->segments[*segment_at] : NULL;
	file = *file_at < core->file_count ? &core->files[*file_at] : NULL;
	if (!segment && !file)
		return false;
	of_segment = segment ? later(*at, segment->start) : UINT64_MAX;
	of_file = file ? later(*at, file->start) : UINT64_MAX;
	*ret = (struct piece){ .start = of_segment < of_file ? of_segment : of_file };
	ret->segment = ret->start == of_segment ? segment : NULL;
	ret->file = ret->start == of_file ? file : NULL;
	/* A piece ends where its segment or file ends, or where the other one begins. */
	ret->end = ret->segment ? segment->end : of_segment;
	if (file && ret->end > (ret->file ? file->end : of_file))
		ret->end = ret->file ? file->end : of_file;
	*at = ret->end;
	return true;
}

static int print_maps(const struct symbols_core *core, char **ret_text, size_t *ret_len,
		      struct failure *why)
{
	FILE *text = open_memstream(ret_text, ret_len);
	size_t segment = 0, file = 0;
	struct piece piece;
	uint64_t at = 0;
	bool fits = true;

	if (!text)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "keep the core's memory map");
	while (fits && next_piece(core, &segment, &file, &at, &piece)) {
		print_piece(text, core, &piece);
		fits = ftello(text) <= (off_t)SYMBOLS_MAPS_MAX_BYTES;
	}
	if (fclose(text) == 0 && fits)
		return 0;
	free(*ret_text);
	return failure_set(why, fits ? FAILURE_NO_MEMORY : FAILURE_LIMIT, 0, 0, 0,
			   "keep the core's memory map");
}

int symbols_core_create_space(struct symbols_core *core, const char *sysroot,
			      struct symbols_space **ret_space, struct failure *why)
{
	struct symbols_space *space;
	char *text = NULL;
	size_t len = 0;
	int result;

	if (print_maps(core, &text, &len, why) < 0)
		return -1;
	result = symbols_space_create_recorded(text, len, &space, why);
	free(text);
	if (result < 0)
		return -1;
	if (sysroot && symbols_root_init_folder(&space->root, sysroot, why) < 0) {
		symbols_space_destroy(space);
		return -1;
	}
	/* Use the core's own bytes alone, because a file cannot prove itself. */
	symbols_space_set_memory(space, &core->own);
	space->headers_prove = true;
	core->space = space;
	*ret_space = space;
	return 0;
}

/* ---- Mapped files ----------------------------------------------------------------------- */

/** Find the file of a mapping. If the mapping begins in a page that two segments of the file share,
 *  it does not show where the file begins; another mapping of the file then does. */
static const struct symbols_object *object_of(struct symbols_space *space, size_t index)
{
	const struct symbols_mapping *mapping = symbols_space_get(space, index);
	struct symbols_object *object;
	uint64_t bias;
	size_t first = index;

	while (first > 0 && index - first < MAPPINGS_MAX &&
	       symbols_space_get(space, first - 1)->inode == mapping->inode)
		first--;
	object = symbols_space_bind(space, first, &bias);
	return object ? object : symbols_space_bind(space, index, &bias);
}

/** Number of bytes of [address, address + len) that the core leaves to a file. Bytes that were
 *  saved but truncated may differ from the file's, so they do not count. */
static size_t unsaved(const struct symbols_core *core, uint64_t address, size_t len)
{
	ptrdiff_t index = symbols_core_find_segment(core, address);
	const struct symbols_core_segment *segment;

	if (index < 0)
		return len;
	segment = &core->segments[index];
	if (address - segment->start < segment->saved)
		return 0;
	return len < segment->end - address ? len : (size_t)(segment->end - address);
}

size_t symbols_core_copy_mapped(struct symbols_core *core, uint64_t address, void *ret_bytes,
				size_t len)
{
	const struct symbols_mapping *mapping;
	const struct symbols_object *object;
	uint64_t offset;
	ptrdiff_t index;

	len = unsaved(core, address, len);
	index = core->space && len ? symbols_maps_find(&core->space->maps, address) : -1;
	mapping = index < 0 ? NULL : symbols_space_get(core->space, (size_t)index);
	object = mapping && mapping->inode ? object_of(core->space, (size_t)index) : NULL;
	if (!object)
		return 0;
	offset = mapping->offset + (address - mapping->start);
	if (len > mapping->end - address)
		len = (size_t)(mapping->end - address);
	if (offset >= object->elf.source.size)
		return 0;
	if (len > object->elf.source.size - offset)
		len = (size_t)(object->elf.source.size - offset);
	return symbols_source_read(&object->elf.source, offset, ret_bytes, len) ? len : 0;
}

/** Whether a program or library is mapped, by its first page in the core. */
static bool is_program(struct symbols_core *core, const struct symbols_mapping *mapping)
{
	char magic[SELFMAG];
	struct failure why;

	return mapping->inode && mapping->offset == 0 &&
	       attach_read(&core->own, remote_addr_make(mapping->start), magic, sizeof(magic),
			   &why) == 0 &&
	       memcmp(magic, ELFMAG, sizeof(magic)) == 0;
}

size_t symbols_core_each_missing(struct symbols_core *core,
				 void (*visit)(void *context, const char *path), void *context)
{
	size_t count = core->space ? symbols_space_count(core->space) : 0, programs = 0;

	for (size_t i = 0; i < count; i++) {
		const struct symbols_mapping *mapping = symbols_space_get(core->space, i);

		if (!is_program(core, mapping))
			continue;
		programs++;
		if (!object_of(core->space, i))
			visit(context, mapping->path);
	}
	return programs;
}
