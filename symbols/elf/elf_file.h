/* SPDX-License-Identifier: MIT */
/* What do we keep of an ELF file's headers? */
#ifndef SYMBOLS_ELF_ELF_FILE_H
#define SYMBOLS_ELF_ELF_FILE_H

#include "symbols/elf/elf_bytes.h"
#include "symbols/names.h"

/** PT_LOAD entries to keep; link editors write 2 to 6. */
#define SYMBOLS_MAX_LOADS 64
/** Section headers that we accept; only object files with one section per function have more. */
#define SYMBOLS_MAX_SECTIONS	    8192
#define SYMBOLS_MAX_PROGRAM_HEADERS 256

struct symbols_load {
	uint64_t offset, vaddr, filesz, memsz;
	bool executable;
};

/** Sections of stubs: .plt, .plt.sec and .plt.got. */
#define SYMBOLS_PLT_SECTIONS 3

/** A section; size 0: none. */
struct symbols_section {
	uint64_t vaddr, offset, size, entry_size;
	uint32_t link;
};

/** A section that contains code, for labels without a type or size. */
struct symbols_code_section {
	uint64_t start, end; /**< Link-time addresses [start, end). */
	uint32_t index;
};

struct symbols_elf {
	struct symbols_source source;
	struct symbols_load loads[SYMBOLS_MAX_LOADS];
	unsigned load_count;
	struct symbols_section eh_frame_hdr, eh_frame;
	struct symbols_section symtab, symstr, dynsym, dynstr;
	struct symbols_section plt[SYMBOLS_PLT_SECTIONS], plt_relocations, relocations;
	struct symbols_section debuglink, altlink, debugdata;
	bool has_dwarf;			   /**< The file has .debug_info, perhaps compressed. */
	struct symbols_code_section *code; /**< By index. */
	unsigned code_count;
	uint8_t build_id[SYMBOLS_BUILD_ID_MAX];
	size_t build_id_len;
	uint64_t build_id_vaddr; /**< Address of the build-id's bytes in the mapped program. */
};

/**
 * Read the headers of a 64-bit ELF file with libelf.
 * @param source Owned by @p elf from now on, also on failure.
 * @param why FAILURE_INVALID, FAILURE_NO_MEMORY.
 * Source: ELF-64 Object File Format 1.5; LSB 5.0 core, 10.6 (PT_GNU_EH_FRAME).
 */
int symbols_elf_init(struct symbols_elf *elf, struct symbols_source *source, struct failure *why);
void symbols_elf_deinit(struct symbols_elf *elf);

/** @return The PT_LOAD of a mapping with file offset @p offset, or NULL. */
const struct symbols_load *symbols_elf_load_at_offset(const struct symbols_elf *elf,
						      uint64_t offset, bool executable);
/** @return The PT_LOAD that contains link-time address @p vaddr, or NULL. */
const struct symbols_load *symbols_elf_load_at(const struct symbols_elf *elf, uint64_t vaddr);

/**
 * Copy file bytes by link-time address.
 * @return false if they are not in the file.
 */
bool symbols_elf_read(const struct symbols_elf *elf, uint64_t vaddr, void *ret_bytes, size_t len);

#endif
