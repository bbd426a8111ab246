/* SPDX-License-Identifier: MIT */
/* Which headers, sections and notes has an ELF file? */
#include "symbols/elf/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/** Largest table of section names that we accept; a few hundred bytes in practice. */
#define SECTION_NAMES_MAX_BYTES ((uint64_t)1 << 20)
/** Bytes of notes in which we search the build-id. */
#define NOTES_MAX_BYTES ((size_t)1 << 16)
/** We do not profile code of other machines. */
#if defined(__x86_64__)
#define ELF_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define ELF_MACHINE EM_AARCH64
#endif

/** The kernel maps files in pages. */
#define PAGE_BYTES ((uint64_t)4096)

/**
 * Check the numbers of headers and the size of the section name table, because libelf allocates
 * memory by them.
 */
static bool plausible(const struct symbols_source *source)
{
	Elf64_Ehdr header;
	Elf64_Shdr names;

	if (!symbols_source_read(source, 0, &header, sizeof(header)))
		return false;
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
	    header.e_machine != ELF_MACHINE)
		return false;
	if (header.e_phnum > SYMBOLS_MAX_PROGRAM_HEADERS ||
	    (header.e_phnum && header.e_phentsize != sizeof(Elf64_Phdr)) ||
	    header.e_shnum > SYMBOLS_MAX_SECTIONS || (header.e_shoff && !header.e_shnum))
		return false;
	if (!header.e_shnum)
		return true;
	if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shstrndx >= header.e_shnum)
		return false;
	return symbols_source_read(source, header.e_shoff + header.e_shstrndx * sizeof(names),
				   &names, sizeof(names)) &&
	       names.sh_size <= SECTION_NAMES_MAX_BYTES;
}

static void take_segments(struct symbols_elf *elf, Elf *handle)
{
	size_t count = 0;

	if (elf_getphdrnum(handle, &count) < 0)
		return;
	for (size_t i = 0; i < count && i < SYMBOLS_MAX_PROGRAM_HEADERS; i++) {
		GElf_Phdr header;

		if (!gelf_getphdr(handle, (int)i, &header))
			return;
		if (header.p_type == PT_GNU_EH_FRAME)
			elf->eh_frame_hdr = (struct symbols_section){ .vaddr = header.p_vaddr,
								      .offset = header.p_offset,
								      .size = header.p_filesz };
		if (header.p_type != PT_LOAD || elf->load_count == SYMBOLS_MAX_LOADS ||
		    header.p_vaddr + header.p_memsz < header.p_vaddr ||
		    header.p_offset + header.p_filesz < header.p_offset ||
		    header.p_filesz > header.p_memsz)
			continue;
		elf->loads[elf->load_count++] =
			(struct symbols_load){ .offset = header.p_offset,
					       .vaddr = header.p_vaddr,
					       .filesz = header.p_filesz,
					       .memsz = header.p_memsz,
					       .executable = header.p_flags & PF_X };
	}
}

/** Take the build-id from a block of notes at @p vaddr. */
static bool take_build_id(struct symbols_elf *elf, const uint8_t *notes, size_t len, uint64_t vaddr)
{
	size_t at = 0;

	while (len - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		size_t name = at + sizeof(note), description, end;

		memcpy(&note, notes + at, sizeof(note));
		if (note.n_namesz > len || note.n_descsz > len)
			return false;
		description = name + ((note.n_namesz + 3) & ~(size_t)3);
		end = description + ((note.n_descsz + 3) & ~(size_t)3);
		if (end > len)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof("GNU") &&
		    memcmp(notes + name, "GNU", sizeof("GNU")) == 0 && note.n_descsz > 0 &&
		    note.n_descsz <= sizeof(elf->build_id)) {
			memcpy(elf->build_id, notes + description, note.n_descsz);
			elf->build_id_len = note.n_descsz;
			elf->build_id_vaddr = vaddr + description;
			return true;
		}
		at = end;
	}
	return false;
}

static void find_build_id(struct symbols_elf *elf, uint64_t vaddr, uint64_t offset, uint64_t size)
{
	uint8_t *notes;

	if (elf->build_id_len)
		return;
	notes = symbols_source_copy(&elf->source, offset, size, NOTES_MAX_BYTES);
	if (notes)
		take_build_id(elf, notes, size, vaddr);
	free(notes);
}

/** @return Where to store a section of this name, or NULL. */
static struct symbols_section *location_by_name(struct symbols_elf *elf, const char *name)
{
	const struct {
		const char *name;
		struct symbols_section *section;
	} wanted[] = {
		{ ".eh_frame", &elf->eh_frame },	{ ".plt", &elf->plt[0] },
		{ ".plt.sec", &elf->plt[1] },		{ ".plt.got", &elf->plt[2] },
		{ ".rela.plt", &elf->plt_relocations }, { ".rela.dyn", &elf->relocations },
		{ ".gnu_debuglink", &elf->debuglink },	{ ".gnu_debugaltlink", &elf->altlink },
		{ ".gnu_debugdata", &elf->debugdata },
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (strcmp(name, wanted[i].name) == 0)
			return wanted[i].section;
	}
	return NULL;
}

static bool take_code_section(struct symbols_elf *elf, const GElf_Shdr *header, size_t index)
{
	struct symbols_code_section *grown;

	if (!(header->sh_flags & SHF_EXECINSTR) ||
	    header->sh_addr + header->sh_size <= header->sh_addr)
		return true;
	grown = realloc(elf->code, (elf->code_count + 1) * sizeof(*grown));
	if (!grown)
		return false;
	elf->code = grown;
	grown[elf->code_count++] =
		(struct symbols_code_section){ .start = header->sh_addr,
					       .end = header->sh_addr + header->sh_size,
					       .index = (uint32_t)index };
	return true;
}

static bool take_section(struct symbols_elf *elf, const GElf_Shdr *header, const char *name)
{
	struct symbols_section *location = name ? location_by_name(elf, name) : NULL;

	if (header->sh_type == SHT_SYMTAB)
		location = &elf->symtab;
	else if (header->sh_type == SHT_DYNSYM)
		location = &elf->dynsym;
	else if (header->sh_type == SHT_NOTE)
		find_build_id(elf, header->sh_addr, header->sh_offset, header->sh_size);
	else if (header->sh_type == SHT_PROGBITS && name && strcmp(name, ".debug_info") == 0)
		elf->has_dwarf = header->sh_size > 0;
	/* A separate debug file keeps the headers of sections whose contents it does not have. */
	if (!location || location->size || header->sh_type == SHT_NOBITS ||
	    header->sh_flags & SHF_COMPRESSED)
		return true;
	*location = (struct symbols_section){ .vaddr = header->sh_addr,
					      .offset = header->sh_offset,
					      .size = header->sh_size,
					      .entry_size = header->sh_entsize,
					      .link = header->sh_link };
	return true;
}

static void take_strings(Elf *handle, const struct symbols_section *table,
			 struct symbols_section *ret_strings)
{
	GElf_Shdr header;
	Elf_Scn *section = table->size ? elf_getscn(handle, table->link) : NULL;

	if (section && gelf_getshdr(section, &header) && header.sh_type == SHT_STRTAB)
		*ret_strings = (struct symbols_section){ .offset = header.sh_offset,
							 .size = header.sh_size };
}

static bool take_sections(struct symbols_elf *elf, Elf *handle)
{
	size_t names = 0;
	Elf_Scn *section = NULL;

	if (elf_getshdrstrndx(handle, &names) < 0)
		return true;
	while ((section = elf_nextscn(handle, section)) != NULL) {
		GElf_Shdr header;

		if (!gelf_getshdr(section, &header))
			continue;
		if (!take_section(elf, &header, elf_strptr(handle, names, header.sh_name)) ||
		    !take_code_section(elf, &header, elf_ndxscn(section)))
			return false;
	}
	take_strings(handle, &elf->symtab, &elf->symstr);
	take_strings(handle, &elf->dynsym, &elf->dynstr);
	return true;
}

/** Files without section headers still have their notes in a segment. */
static void take_note_segments(struct symbols_elf *elf, Elf *handle)
{
	size_t count = 0;

	if (elf->build_id_len || elf_getphdrnum(handle, &count) < 0)
		return;
	for (size_t i = 0; i < count && i < SYMBOLS_MAX_PROGRAM_HEADERS; i++) {
		GElf_Phdr header;

		if (gelf_getphdr(handle, (int)i, &header) && header.p_type == PT_NOTE)
			find_build_id(elf, header.p_vaddr, header.p_offset, header.p_filesz);
	}
}

int symbols_elf_init(struct symbols_elf *elf, struct symbols_source *source, struct failure *why)
{
	Elf *handle = NULL;
	bool complete = false;
	int errnum;

	*elf = (struct symbols_elf){ .source = *source };
	*source = (struct symbols_source){ .fd = -1 };
	errno = 0;
	elf_version(EV_CURRENT);
	if (plausible(&elf->source))
		handle = elf->source.fd >= 0
				 ? elf_begin(elf->source.fd, ELF_C_READ, NULL)
				 : elf_memory((char *)elf->source.bytes, elf->source.size);
	if (handle && elf_kind(handle) == ELF_K_ELF && gelf_getclass(handle) == ELFCLASS64) {
		take_segments(elf, handle);
		complete = take_sections(elf, handle);
		take_note_segments(elf, handle);
	}
	errnum = errno; /* libelf keeps malloc()'s errno */
	elf_end(handle);
	if (complete)
		return 0;
	symbols_elf_deinit(elf);
	return failure_set(why, errnum == ENOMEM ? FAILURE_NO_MEMORY : FAILURE_INVALID, 0, 0, 0,
			   "read a mapped file's headers");
}

void symbols_elf_deinit(struct symbols_elf *elf)
{
	symbols_source_deinit(&elf->source);
	free(elf->code);
	*elf = (struct symbols_elf){ .source.fd = -1 };
}

const struct symbols_load *symbols_elf_load_at_offset(const struct symbols_elf *elf,
						      uint64_t offset, bool executable)
{
	const struct symbols_load *found = NULL;

	for (unsigned i = 0; i < elf->load_count; i++) {
		const struct symbols_load *load = &elf->loads[i];

		if (offset < (load->offset & -PAGE_BYTES) || offset >= load->offset + load->filesz)
			continue;
		/* Two segments may share a page of the file: the flags distinguish them. */
		if (load->executable == executable)
			return load;
		found = load;
	}
	return found;
}

const struct symbols_load *symbols_elf_load_at(const struct symbols_elf *elf, uint64_t vaddr)
{
	for (unsigned i = 0; i < elf->load_count; i++) {
		const struct symbols_load *load = &elf->loads[i];

		if (vaddr >= load->vaddr && vaddr - load->vaddr < load->memsz)
			return load;
	}
	return NULL;
}

bool symbols_elf_read(const struct symbols_elf *elf, uint64_t vaddr, void *ret_bytes, size_t len)
{
	const struct symbols_load *load = symbols_elf_load_at(elf, vaddr);
	uint64_t into = load ? vaddr - load->vaddr : 0;

	if (!load || into > load->filesz || len > load->filesz - into)
		return false;
	return symbols_source_read(&elf->source, load->offset + into, ret_bytes, len);
}
