/* SPDX-License-Identifier: MIT */
/* How do we give libdw an ELF image that contains only the sections that describe types? */
#include "symbols/dwarf/dwarf_file.h"

#include <dwarf.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/elf/bytes.h"
#include "symbols/elf/debug_file.h"

/** All sections of one file, decompressed; Tarantool has 9 MiB. */
#define DWARF_MAX_BYTES ((uint64_t)64 << 20)
/** Units of one file: libdw keeps about 1 KiB for each. A program of 30 MiB had 700. */
#define UNITS_MAX 16384
/** Abbreviations of all units together. libdw keeps about 80 bytes for each, and stores a table
 *  again for each unit that shares it. A program of 30 MiB had 35,000. */
#define ABBREVIATIONS_MAX ((size_t)1 << 19)
/** Attributes of one abbreviation. libdw reads all of them at each access to an entry. Compilers
 *  write at most 30. */
#define ATTRIBUTES_MAX 256
/** Gap between sections; libdw reads no longer number or character at once. */
#define GAP_BYTES 16

/** Sections that libdw reads for types; .debug_info is first. */
static const char *const wanted_names[] = {
	".debug_info", ".debug_abbrev", ".debug_str", ".debug_line_str", ".debug_str_offsets",
};
enum { WANTED_COUNT = sizeof(wanted_names) / sizeof(wanted_names[0]), ABBREVIATIONS = 1 };

/** One section's bytes, owned. */
struct part {
	uint8_t *bytes;
	uint64_t len;
};

struct parts {
	struct part part[WANTED_COUNT];
	uint64_t total;
};

static void free_parts(struct parts *parts)
{
	for (size_t i = 0; i < WANTED_COUNT; i++)
		free(parts->part[i].bytes);
}

/* ---- Reading sections ------------------------------------------------------------------- */

static int wanted_index(const char *name)
{
	for (int i = 0; name && i < WANTED_COUNT; i++) {
		if (strcmp(name, wanted_names[i]) == 0)
			return i;
	}
	return -1;
}

/**
 * Count @p len bytes.
 * @return whether they are within the limit.
 */
static bool has_room(struct parts *parts, uint64_t len)
{
	if (len == 0 || len > DWARF_MAX_BYTES - parts->total)
		return false;
	parts->total += len;
	return true;
}

/** Copy a section that libelf decompresses. We have checked its size before libelf allocates. */
static uint8_t *decompress(Elf_Scn *section, uint64_t len)
{
	Elf_Data *data = elf_compress(section, 0, 0) > 0 ? elf_getdata(section, NULL) : NULL;
	uint8_t *bytes = data && data->d_size == len ? malloc(len) : NULL;

	if (bytes)
		memcpy(bytes, data->d_buf, len);
	return bytes;
}

static int take_part(const struct symbols_elf *elf, Elf_Scn *section, const GElf_Shdr *header,
		     struct parts *parts, int index, struct failure *why)
{
	struct part *part = &parts->part[index];
	GElf_Chdr compressed;

	part->len = header->sh_size;
	if (header->sh_flags & SHF_COMPRESSED) {
		if (header->sh_size > DWARF_MAX_BYTES || !gelf_getchdr(section, &compressed))
			return failure_set(why, FAILURE_INVALID, 0, 0, 0, "decompress DWARF");
		part->len = compressed.ch_size;
	}
	if (!has_room(parts, part->len))
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "load DWARF");
	part->bytes = header->sh_flags & SHF_COMPRESSED
			      ? decompress(section, part->len)
			      : symbols_source_copy(&elf->source, header->sh_offset, part->len,
						    DWARF_MAX_BYTES);
	return part->bytes ? 0 : failure_set(why, FAILURE_INVALID, 0, 0, 0, "load DWARF");
}

static int take_parts(const struct symbols_elf *elf, Elf *handle, struct parts *parts,
		      struct failure *why)
{
	Elf_Scn *section = NULL;
	size_t names = 0;

	if (elf_getshdrstrndx(handle, &names) < 0)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, 0, "find DWARF");
	while ((section = elf_nextscn(handle, section)) != NULL) {
		GElf_Shdr header;
		int index;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_PROGBITS ||
		    header.sh_size == 0)
			continue;
		index = wanted_index(elf_strptr(handle, names, header.sh_name));
		if (index >= 0 && !parts->part[index].bytes &&
		    take_part(elf, section, &header, parts, index, why) < 0)
			return -1;
	}
	if (!parts->part[0].bytes || !parts->part[ABBREVIATIONS].bytes)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, 0, "find DWARF");
	return 0;
}

static int read_parts(const struct symbols_elf *elf, struct parts *parts, struct failure *why)
{
	Elf *handle;
	int result = -1;

	elf_version(EV_CURRENT);
	handle = elf->source.fd >= 0 ? elf_begin(elf->source.fd, ELF_C_READ, NULL)
				     : elf_memory((char *)elf->source.bytes, elf->source.size);
	if (handle)
		result = take_parts(elf, handle, parts, why);
	else
		failure_set(why, FAILURE_INVALID, 0, 0, 0, "load DWARF");
	elf_end(handle);
	return result;
}

/* ---- The image -------------------------------------------------------------------------- */

/** Section headers of the image: the null header, the wanted sections, their names. */
#define IMAGE_SECTIONS (WANTED_COUNT + 2)

struct image {
	Elf64_Ehdr header;
	Elf64_Shdr sections[IMAGE_SECTIONS];
	char names[256];
};

static uint32_t add_name(struct image *image, size_t *used, const char *name)
{
	size_t at = *used, len = strlen(name) + 1;

	memcpy(image->names + at, name, len);
	*used += len;
	return (uint32_t)at;
}

/** Write the headers. @return Size of the whole image. */
static size_t lay_out(struct image *image, const struct parts *parts)
{
	size_t at = sizeof(*image), used = 1, count = 1;
	Elf64_Shdr *names = &image->sections[IMAGE_SECTIONS - 1];

	for (size_t i = 0; i < WANTED_COUNT; i++) {
		Elf64_Shdr *section = &image->sections[count];

		if (!parts->part[i].bytes)
			continue;
		*section = (Elf64_Shdr){ .sh_name = add_name(image, &used, wanted_names[i]),
					 .sh_type = SHT_PROGBITS,
					 .sh_offset = at,
					 .sh_size = parts->part[i].len,
					 .sh_addralign = 1 };
		at = (at + parts->part[i].len + GAP_BYTES + 7) & ~(size_t)7;
		count++;
	}
	/* Missing sections leave empty headers. */
	*names = (Elf64_Shdr){ .sh_name = add_name(image, &used, ".shstrtab"),
			       .sh_type = SHT_STRTAB,
			       .sh_offset = offsetof(struct image, names),
			       .sh_size = sizeof(image->names),
			       .sh_addralign = 1 };
	image->header = (Elf64_Ehdr){ .e_type = ET_DYN,
				      .e_machine = EM_X86_64,
				      .e_version = EV_CURRENT,
				      .e_shoff = offsetof(struct image, sections),
				      .e_ehsize = sizeof(Elf64_Ehdr),
				      .e_shentsize = sizeof(Elf64_Shdr),
				      .e_shnum = IMAGE_SECTIONS,
				      .e_shstrndx = IMAGE_SECTIONS - 1 };
	memcpy(image->header.e_ident, ELFMAG, SELFMAG);
	image->header.e_ident[EI_CLASS] = ELFCLASS64;
	image->header.e_ident[EI_DATA] = ELFDATA2LSB;
	image->header.e_ident[EI_VERSION] = EV_CURRENT;
	return at;
}

static int build_image(const struct parts *parts, struct symbols_dwarf *dwarf, struct failure *why)
{
	struct image image = { 0 };
	size_t len = lay_out(&image, parts);
	const Elf64_Shdr *section = &image.sections[1];

	dwarf->image = calloc(1, len);
	if (!dwarf->image)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "load DWARF");
	memcpy(dwarf->image, &image, sizeof(image));
	for (size_t i = 0; i < WANTED_COUNT; i++) {
		if (!parts->part[i].bytes)
			continue;
		memcpy(dwarf->image + section->sh_offset, parts->part[i].bytes, parts->part[i].len);
		section++;
	}
	dwarf->handle = elf_memory((char *)dwarf->image, len);
	dwarf->dwarf = dwarf->handle ? dwarf_begin_elf(dwarf->handle, DWARF_C_READ, NULL) : NULL;
	return dwarf->dwarf ? 0 : failure_set(why, FAILURE_INVALID, 0, 0, 0, "read DWARF");
}

/* ---- Limits ----------------------------------------------------------------------------- */

/**
 * Read one abbreviation after its code.
 * @return false if it is too long.
 * Source: DWARF 5, 7.5.3.
 */
static bool take_abbreviation(struct symbols_bytes *bytes)
{
	symbols_bytes_uleb(bytes); /* tag */
	symbols_bytes_fixed(bytes, 1);
	for (unsigned i = 0; i <= ATTRIBUTES_MAX; i++) {
		uint64_t name = symbols_bytes_uleb(bytes), form = symbols_bytes_uleb(bytes);

		if (form == DW_FORM_implicit_const)
			symbols_bytes_sleb(bytes);
		if ((!name && !form) || bytes->failed)
			return true;
	}
	return false;
}

/** Count the abbreviations of the table at @p offset, at most @p max; max if one is too long. */
static size_t count_abbreviations(const struct part *part, uint64_t offset, size_t max)
{
	struct symbols_bytes bytes = { .start = part->bytes, .at = offset, .end = part->len };
	size_t count = 0;

	if (offset >= part->len)
		return 0;
	while (count < max && symbols_bytes_uleb(&bytes) != 0 && !bytes.failed) {
		if (!take_abbreviation(&bytes))
			return max;
		count++;
	}
	return count;
}

/** Whether libdw's memory for units and abbreviations stays within the limits. */
static bool is_bounded(Dwarf *dwarf, const struct part *part)
{
	size_t room = ABBREVIATIONS_MAX, header;
	Dwarf_Off at = 0, next, table = 0, last = UINT64_MAX;
	size_t count = 0;

	for (unsigned i = 0; i < UNITS_MAX; i++) {
		if (dwarf_next_unit(dwarf, at, &next, &header, NULL, &table, NULL, NULL, NULL,
				    NULL) != 0 ||
		    next <= at)
			return true;
		if (table != last)
			count = count_abbreviations(part, table, room + 1);
		if (count > room)
			return false;
		room -= count;
		last = table;
		at = next;
	}
	return false;
}

/* ---- Opening ---------------------------------------------------------------------------- */

static int open_one(const struct symbols_elf *elf, struct symbols_dwarf *ret, struct failure *why)
{
	struct parts parts = { .total = 0 };
	int result = read_parts(elf, &parts, why);

	*ret = (struct symbols_dwarf){ 0 };
	if (result == 0)
		result = build_image(&parts, ret, why);
	if (result == 0 && !is_bounded(ret->dwarf, &parts.part[ABBREVIATIONS]))
		result = failure_set(why, FAILURE_LIMIT, 0, 0, 0, "read DWARF");
	free_parts(&parts);
	if (result < 0)
		symbols_dwarf_deinit(ret);
	return result;
}

static int open_alternate(const struct symbols_elf *elf, const struct symbols_root *root,
			  struct symbols_dwarf *dwarf, struct failure *why)
{
	struct symbols_elf shared;
	int result;

	if (!symbols_debug_open_alternate(root, elf, &shared))
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, 0, "find shared DWARF");
	dwarf->alternate = malloc(sizeof(*dwarf->alternate));
	result = dwarf->alternate ? open_one(&shared, dwarf->alternate, why)
				  : failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "load DWARF");
	symbols_elf_deinit(&shared);
	if (result < 0) {
		free(dwarf->alternate);
		dwarf->alternate = NULL;
		return -1;
	}
	dwarf_setalt(dwarf->dwarf, dwarf->alternate->dwarf);
	return 0;
}

int symbols_dwarf_init(const struct symbols_elf *elf, const struct symbols_root *root,
		       struct symbols_dwarf *ret_dwarf, struct failure *why)
{
	struct symbols_dwarf dwarf;

	if (!elf->has_dwarf)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, 0, "find DWARF");
	if (open_one(elf, &dwarf, why) < 0)
		return -1;
	if (elf->altlink.size && open_alternate(elf, root, &dwarf, why) < 0) {
		symbols_dwarf_deinit(&dwarf);
		return -1;
	}
	*ret_dwarf = dwarf;
	return 0;
}

void symbols_dwarf_deinit(struct symbols_dwarf *dwarf)
{
	if (dwarf->dwarf)
		dwarf_end(dwarf->dwarf);
	elf_end(dwarf->handle);
	free(dwarf->image);
	if (dwarf->alternate)
		symbols_dwarf_deinit(dwarf->alternate);
	free(dwarf->alternate);
	*dwarf = (struct symbols_dwarf){ 0 };
}
