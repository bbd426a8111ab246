/* SPDX-License-Identifier: MIT */
/* Which relocation does a stub of a procedure linkage table use? */
#include "symbols/names/plt.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "symbols/names/insn.h"

/** Relocations that we read in a section; and those that we keep of an object because they name a
 *  symbol: 1 MiB. The largest programs import some thousand functions. */
#define RELOCATIONS_MAX ((uint64_t)1 << 18)
#define SLOTS_MAX	((size_t)1 << 16)
/** Relocations read at a time: 24 KiB. */
#define CHUNK_RELOCATIONS 1024
/** Stub sizes that we accept. */
#define STUB_MIN_BYTES 8
#define STUB_MAX_BYTES 64
/** Four instructions, not counting a landing pad before them. */
#define UNSIZED_STUB_BYTES 16
/** Appended to the function's name. */
#define SUFFIX "@plt"

/** Find a stub in a section without an entry size, as on AArch64, whose first stub has another size
 *  than the rest. The instructions show where the stub begins. */
static bool find_unsized_stub(const struct symbols_elf *elf, uint64_t vaddr, uint64_t *ret_start,
			      uint64_t *ret_end)
{
	struct symbols_code_stub stub;
	uint8_t bytes[UNSIZED_STUB_BYTES];

	for (uint64_t start = vaddr & ~(uint64_t)3; start + sizeof(bytes) > vaddr; start -= 4) {
		if (!symbols_elf_read(elf, start, bytes, sizeof(bytes)) ||
		    !symbols_code_stub(bytes, sizeof(bytes), start, &stub))
			continue;
		*ret_start = start;
		*ret_end = start + sizeof(bytes);
		return true;
	}
	return false;
}

/** Find the stub that contains @p vaddr. */
static bool find_stub(const struct symbols_elf *elf, uint64_t vaddr, uint64_t *ret_start,
		      uint64_t *ret_end)
{
	for (unsigned i = 0; i < SYMBOLS_PLT_SECTIONS; i++) {
		const struct symbols_section *section = &elf->plt[i];
		uint64_t into = vaddr - section->vaddr, size = section->entry_size;

		if (into < section->size && size == 0)
			return find_unsized_stub(elf, vaddr, ret_start, ret_end);
		if (into >= section->size || size < STUB_MIN_BYTES || size > STUB_MAX_BYTES)
			continue;
		*ret_start = vaddr - into % size;
		*ret_end = *ret_start + size;
		return true;
	}
	return false;
}

/** Read the name of a symbol by its index. */
static bool name_of(const struct symbols_elf *elf, uint64_t index, char *ret_text)
{
	Elf64_Sym symbol;

	return index && index < elf->dynsym.size / sizeof(symbol) &&
	       symbols_source_read(&elf->source, elf->dynsym.offset + index * sizeof(symbol),
				   &symbol, sizeof(symbol)) &&
	       symbols_source_string(&elf->source, elf->dynstr.offset + symbol.st_name,
				     elf->dynstr.offset + elf->dynstr.size, ret_text,
				     SYMBOLS_NAME_MAX_BYTES - (sizeof(SUFFIX) - 1)) > 0;
}

/* ---- Words that stubs read -------------------------------------------------------------- */

/** Keep the relocations of one section that name a symbol. */
static void take_section(const struct symbols_elf *elf, const struct symbols_section *section,
			 Elf64_Rela *chunk, struct symbols_plt *plt)
{
	uint64_t count = section->size / sizeof(*chunk);

	if (count > RELOCATIONS_MAX)
		count = RELOCATIONS_MAX;
	for (uint64_t at = 0; at < count && plt->count < SLOTS_MAX; at += CHUNK_RELOCATIONS) {
		size_t some =
			count - at < CHUNK_RELOCATIONS ? (size_t)(count - at) : CHUNK_RELOCATIONS;

		if (!symbols_source_read(&elf->source, section->offset + at * sizeof(*chunk), chunk,
					 some * sizeof(*chunk)))
			break;
		for (size_t i = 0; i < some && plt->count < SLOTS_MAX; i++) {
			if (!ELF64_R_SYM(chunk[i].r_info))
				continue;
			plt->slots[plt->count] = (struct symbols_plt_slot){
				.vaddr = chunk[i].r_offset,
				.symbol = (uint32_t)ELF64_R_SYM(chunk[i].r_info),
				.order = (uint32_t)plt->count,
			};
			plt->count++;
		}
	}
}

static int compare_slots(const void *left, const void *right)
{
	const struct symbols_plt_slot *a = left, *b = right;

	if (a->vaddr != b->vaddr)
		return a->vaddr < b->vaddr ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/**
 * Read all relocations, those of .plt first.
 * @return false when out of memory.
 */
static bool read_slots(const struct symbols_elf *elf, struct symbols_plt *plt)
{
	Elf64_Rela *chunk = malloc(CHUNK_RELOCATIONS * sizeof(*chunk));
	struct symbols_plt_slot *fitting;

	plt->slots = malloc(SLOTS_MAX * sizeof(*plt->slots));
	if (!chunk || !plt->slots) {
		free(chunk);
		symbols_plt_deinit(plt);
		return false;
	}
	take_section(elf, &elf->plt_relocations, chunk, plt);
	take_section(elf, &elf->relocations, chunk, plt);
	free(chunk);
	fitting = realloc(plt->slots, (plt->count + 1) * sizeof(*plt->slots));
	if (fitting)
		plt->slots = fitting;
	qsort(plt->slots, plt->count, sizeof(*plt->slots), compare_slots);
	plt->is_read = true;
	return true;
}

/** Find the symbol whose address is in the word at @p vaddr; the first of several. */
static bool find_slot(const struct symbols_plt *plt, uint64_t vaddr, uint64_t *ret_symbol)
{
	size_t first = ARRAY_SEARCH(plt->count, i, plt->slots[i].vaddr < vaddr);

	if (first == plt->count || plt->slots[first].vaddr != vaddr)
		return false;
	*ret_symbol = plt->slots[first].symbol;
	return true;
}

/** Find the symbol of relocation @p index, which stubs for lazy binding push. */
static bool find_index(const struct symbols_elf *elf, uint64_t index, uint64_t *ret_symbol)
{
	Elf64_Rela relocation;

	if (index >= elf->plt_relocations.size / sizeof(relocation) ||
	    !symbols_source_read(&elf->source,
				 elf->plt_relocations.offset + index * sizeof(relocation),
				 &relocation, sizeof(relocation)))
		return false;
	*ret_symbol = ELF64_R_SYM(relocation.r_info);
	return true;
}

bool symbols_plt_find(struct symbols_plt *plt, const struct symbols_elf *elf, uint64_t vaddr,
		      uint64_t *ret_start, uint64_t *ret_end, char *ret_text)
{
	uint8_t bytes[STUB_MAX_BYTES];
	struct symbols_code_stub stub;
	uint64_t start, end, symbol;

	if (!find_stub(elf, vaddr, &start, &end) ||
	    !symbols_elf_read(elf, start, bytes, end - start) ||
	    !symbols_code_stub(bytes, end - start, start, &stub))
		return false;
	if (stub.has_index ? !find_index(elf, stub.index, &symbol)
			   : (!plt->is_read && !read_slots(elf, plt)) ||
				     !find_slot(plt, stub.slot, &symbol))
		return false;
	if (!name_of(elf, symbol, ret_text))
		return false;
	strcat(ret_text, SUFFIX);
	*ret_start = start;
	*ret_end = end;
	return true;
}

void symbols_plt_deinit(struct symbols_plt *plt)
{
	free(plt->slots);
	*plt = (struct symbols_plt){ 0 };
}
