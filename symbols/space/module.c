/* SPDX-License-Identifier: MIT */
/* How do we copy a mapped file's code and data, as the loader leaves them? */
#include "symbols/module.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "symbols/space/space_internal.h"

/** Data to copy; the largest programs with LuaJIT have 10 MiB. */
#define DATA_MAX_BYTES ((uint64_t)32 << 20)
/** Unwind entries to list. LuaJIT has 1,300; smaller functions than 64 bytes on average would be
 *  unusual. */
#define FUNCTIONS_MAX ((size_t)1 << 16)
/** Relocations to apply; the largest programs have some hundred thousand. */
#define RELOCATIONS_MAX ((uint64_t)1 << 18)
/** Relocations read at a time: 24 KiB. */
#define CHUNK_RELOCATIONS 1024

/* Relocations that store an address. Source: System V ABI for AMD64 and for AArch64. */
#if defined(__x86_64__)
#define RELOCATION_RELATIVE R_X86_64_RELATIVE
#define RELOCATION_SYMBOL   R_X86_64_64
#define RELOCATION_SLOT	    R_X86_64_GLOB_DAT
#elif defined(__aarch64__)
#define RELOCATION_RELATIVE R_AARCH64_RELATIVE
#define RELOCATION_SYMBOL   R_AARCH64_ABS64
#define RELOCATION_SLOT	    R_AARCH64_GLOB_DAT
#endif

bool symbols_find_file(struct symbols_space *space, uint64_t address,
		       struct symbols_file_id *ret_id, uint64_t *ret_bias)
{
	uint64_t bias = 0;
	const struct symbols_object *object = symbols_space_object_at(space, address, &bias);

	if (!object || object->elf.source.fd < 0)
		return false;
	*ret_id = (struct symbols_file_id){ .device = object->elf.source.device,
					    .inode = object->elf.source.inode,
					    .size = object->elf.source.size,
					    .modified = object->elf.source.modified };
	*ret_bias = bias;
	return true;
}

/* ---- Functions -------------------------------------------------------------------------- */

static bool is_in_plt(const struct symbols_elf *elf, uint64_t vaddr)
{
	for (unsigned i = 0; i < SYMBOLS_PLT_SECTIONS; i++)
		if (vaddr - elf->plt[i].vaddr < elf->plt[i].size)
			return true;
	return false;
}

static bool list_functions(const struct symbols_eh *eh, const struct symbols_elf *elf, uint64_t low,
			   uint64_t high, struct symbols_module *module)
{
	size_t first =
		ARRAY_SEARCH(eh->count, i, eh->base + (uint64_t)(int64_t)eh->rows[i].start < low);
	uint64_t end = low;
	size_t room = 0;

	for (size_t i = first; i < eh->count && module->function_count < FUNCTIONS_MAX; i++) {
		struct symbols_eh_entry entry;

		if (!symbols_eh_entry_at(eh, i, &entry) || entry.start < end ||
		    entry.end <= entry.start || is_in_plt(elf, entry.start))
			continue;
		if (entry.end > high)
			break;
		if (!ARRAY_RESERVE(module->functions, room, module->function_count + 1))
			return false;
		module->functions[module->function_count++] =
			(struct symbols_module_function){ entry.start, entry.end };
		end = entry.end;
	}
	return true;
}

/* ---- Parts ------------------------------------------------------------------------------ */

static int copy_part(const struct symbols_elf *elf, uint64_t offset, uint64_t len,
		     struct symbols_module_part *part, struct failure *why)
{
	part->bytes = malloc(len);
	if (!part->bytes)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "copy a mapped file");
	if (!symbols_source_read(&elf->source, offset, part->bytes, len)) {
		free(part->bytes);
		return failure_set(why, FAILURE_INVALID, 0, 0, offset, "copy a mapped file");
	}
	part->len = len;
	return 0;
}

/* @param low, high What to copy of code. */
static int copy_parts(const struct symbols_elf *elf, uint64_t low, uint64_t high,
		      struct symbols_module *module, struct failure *why)
{
	uint64_t left = DATA_MAX_BYTES;

	module->parts = calloc(elf->load_count + 1, sizeof(*module->parts));
	if (!module->parts)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "copy a mapped file");
	for (unsigned i = 0; i < elf->load_count && left; i++) {
		const struct symbols_load *load = &elf->loads[i];
		struct symbols_module_part *part = &module->parts[module->part_count];
		uint64_t start = load->vaddr, end = load->vaddr + load->filesz;

		if (load->executable) {
			start = start > low ? start : low;
			end = end < high ? end : high;
		}
		if (start >= end)
			continue;
		end = end - start < left ? end : start + left;
		left -= end - start;
		part->start = start;
		part->executable = load->executable;
		if (copy_part(elf, load->offset + (start - load->vaddr), end - start, part, why) <
		    0)
			return -1;
		module->part_count++;
	}
	return 0;
}

/* ---- Relocations ------------------------------------------------------------------------ */

static void store_word(struct symbols_module *module, uint64_t vaddr, uint64_t value)
{
	for (size_t i = 0; i < module->part_count; i++) {
		struct symbols_module_part *part = &module->parts[i];

		if (!part->executable && part->len >= sizeof(value) && vaddr >= part->start &&
		    vaddr - part->start <= part->len - sizeof(value))
			memcpy(part->bytes + (vaddr - part->start), &value, sizeof(value));
	}
}

/* The value of a symbol that the file itself defines; 0: another file does. */
static uint64_t symbol_value(const struct symbols_elf *elf, uint64_t index)
{
	Elf64_Sym symbol;

	if (index >= elf->dynsym.size / sizeof(symbol) ||
	    !symbols_source_read(&elf->source, elf->dynsym.offset + index * sizeof(symbol), &symbol,
				 sizeof(symbol)) ||
	    symbol.st_shndx == SHN_UNDEF)
		return 0;
	return symbol.st_value;
}

static void apply_relocation(const struct symbols_elf *elf, const Elf64_Rela *relocation,
			     struct symbols_module *module)
{
	uint64_t type = ELF64_R_TYPE(relocation->r_info), value = 0;

	if (type == RELOCATION_SYMBOL || type == RELOCATION_SLOT) {
		value = symbol_value(elf, ELF64_R_SYM(relocation->r_info));
		if (!value)
			return;
	} else if (type != RELOCATION_RELATIVE) {
		return;
	}
	store_word(module, relocation->r_offset, value + (uint64_t)relocation->r_addend);
}

static void apply_relocations(const struct symbols_elf *elf, struct symbols_module *module)
{
	uint64_t count = elf->relocations.size / sizeof(Elf64_Rela);
	Elf64_Rela *chunk = malloc(CHUNK_RELOCATIONS * sizeof(*chunk));

	if (count > RELOCATIONS_MAX)
		count = RELOCATIONS_MAX;
	for (uint64_t at = 0; chunk && at < count; at += CHUNK_RELOCATIONS) {
		size_t some =
			count - at < CHUNK_RELOCATIONS ? (size_t)(count - at) : CHUNK_RELOCATIONS;

		if (!symbols_source_read(&elf->source,
					 elf->relocations.offset + at * sizeof(*chunk), chunk,
					 some * sizeof(*chunk)))
			break;
		for (size_t i = 0; i < some; i++)
			apply_relocation(elf, &chunk[i], module);
	}
	free(chunk);
}

/* ---- Symbols ---------------------------------------------------------------------------- */

bool symbols_module_symbol(struct symbols_space *space, uint64_t address,
			   char ret_name[SYMBOLS_MODULE_NAME_MAX])
{
	uint64_t bias = 0;
	struct symbols_object *object = symbols_space_object_at(space, address, &bias);
	const struct symbols_names *names = object ? symbols_space_names(space, object) : NULL;
	char text[SYMBOLS_NAME_MAX_BYTES];
	struct symbols_name name;
	size_t at;

	if (!names)
		return false;
	at = ARRAY_SEARCH(names->count, i, names->list[i].start < address - bias);
	for (; at < names->count && names->list[at].start == address - bias; at++)
		if (names->list[at].binding != SYMBOLS_LOCAL)
			break;
	if (at == names->count || names->list[at].start != address - bias ||
	    !symbols_names_find(names, NULL, address - bias, &name, text))
		return false;
	text[SYMBOLS_MODULE_NAME_MAX - 1] = '\0';
	strcpy(ret_name, text);
	return true;
}

/* ---- Modules ---------------------------------------------------------------------------- */

int symbols_module_init(struct symbols_space *space, uint64_t address,
			struct symbols_module *ret_module, struct failure *why)
{
	struct symbols_module module = { 0 };
	uint64_t bias = 0, vaddr, low, high;
	struct symbols_object *object = symbols_space_object_at(space, address, &bias);
	const struct symbols_eh *eh = object ? symbols_space_eh(space, object) : NULL;

	if (!eh)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, address,
				   "find a file's unwind entries");
	vaddr = address - bias;
	low = vaddr < SYMBOLS_MODULE_CODE_BYTES ? 0 : vaddr - SYMBOLS_MODULE_CODE_BYTES;
	high = vaddr + SYMBOLS_MODULE_CODE_BYTES;
	if (!list_functions(eh, &object->elf, low, high, &module)) {
		symbols_module_deinit(&module);
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, address,
				   "list a file's functions");
	}
	if (copy_parts(&object->elf, low, high, &module, why) < 0) {
		symbols_module_deinit(&module);
		return -1;
	}
	apply_relocations(&object->elf, &module);
	*ret_module = module;
	return 0;
}

void symbols_module_deinit(struct symbols_module *module)
{
	for (size_t i = 0; i < module->part_count; i++)
		free(module->parts[i].bytes);
	free(module->parts);
	free(module->functions);
	*module = (struct symbols_module){ 0 };
}
