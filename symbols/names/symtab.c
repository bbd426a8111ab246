/* SPDX-License-Identifier: MIT */
/* Which symbol of a file is the best name for an address? */
#include "symbols/names/symtab.h"

#include <elf.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "symbols/elf/debug_file.h"

/** Symbols read at a time: 48 KiB. */
#define CHUNK_SYMBOLS 2048
/** Symbols to read of one table; the largest programs have two million. */
#define TABLE_MAX_SYMBOLS ((uint64_t)1 << 22)
/** Size of decompressed .gnu_debugdata; libc has about 200 KiB. */
#define MINI_MAX_BYTES ((size_t)8 << 20)
/** Memory for the decompression: the dictionary of "xz -6". */
#define MINI_MEMORY_BYTES ((uint64_t)24 << 20)
/** Entries to check before the nearest one: nested labels within one function. */
#define LOOK_BACK_MAX 64
/** Aliases of one address whose names we compare. */
#define ALIASES_MAX 16

/** How far we trust a symbol. */
enum {
	CLASS_FUNCTION,		/**< A function with a size. */
	CLASS_FUNCTION_NO_SIZE, /**< Assembly without .size. */
	CLASS_LABEL,		/**< No type, but a size. */
	CLASS_LABEL_NO_SIZE,
};

/** One symbol table with its strings. */
struct table {
	const struct symbols_elf *elf;
	const struct symbols_section *symbols, *strings;
};

/** Tables by index: the own .symtab and .dynsym, then the extra file's .symtab. */
enum { TABLE_OWN, TABLE_OWN_DYNAMIC, TABLE_EXTRA, TABLE_COUNT };

static bool get_table(const struct symbols_names *names, unsigned index, struct table *ret)
{
	ret->elf = index == TABLE_EXTRA ? names->extra : names->own;
	if (!ret->elf)
		return false;
	ret->symbols = index == TABLE_OWN_DYNAMIC ? &ret->elf->dynsym : &ret->elf->symtab;
	ret->strings = index == TABLE_OWN_DYNAMIC ? &ret->elf->dynstr : &ret->elf->symstr;
	return ret->symbols->size && ret->strings->size;
}

/** Read a name without its version; link editors write "name@@VERSION" into .symtab. */
static size_t text_of(const struct table *table, uint32_t offset, char *ret_text)
{
	size_t len = symbols_source_string(&table->elf->source, table->strings->offset + offset,
					   table->strings->offset + table->strings->size, ret_text,
					   SYMBOLS_NAME_MAX_BYTES);
	char *version = len > 1 ? memchr(ret_text + 1, '@', len - 1) : NULL;

	if (!version)
		return len;
	*version = '\0';
	return (size_t)(version - ret_text);
}

/**
 * Visit all symbols of a table.
 * @param visit Returns false to end.
 */
static void each_symbol(const struct table *table,
			bool (*visit)(void *context, const Elf64_Sym *symbol), void *context)
{
	Elf64_Sym *chunk = malloc(CHUNK_SYMBOLS * sizeof(*chunk));
	uint64_t count = table->symbols->size / sizeof(*chunk);

	if (count > TABLE_MAX_SYMBOLS)
		count = TABLE_MAX_SYMBOLS;
	for (uint64_t at = 0; chunk && at < count; at += CHUNK_SYMBOLS) {
		size_t some = count - at < CHUNK_SYMBOLS ? (size_t)(count - at) : CHUNK_SYMBOLS;

		if (!symbols_source_read(&table->elf->source,
					 table->symbols->offset + at * sizeof(*chunk), chunk,
					 some * sizeof(*chunk)))
			break;
		for (size_t i = 0; i < some; i++) {
			if (!visit(context, &chunk[i])) {
				free(chunk);
				return;
			}
		}
	}
	free(chunk);
}

/* ---- Collecting ------------------------------------------------------------------------- */

struct collector {
	struct symbols_names *names;
	struct table table;
	uint8_t index;
	bool no_memory;
};

static int compare_section(const void *key, const void *member)
{
	uint32_t index = *(const uint32_t *)key;
	const struct symbols_code_section *section = member;

	return (index > section->index) - (index < section->index);
}

/** @return The code section number @p index if it contains @p address, else NULL. */
static const struct symbols_code_section *code_section(const struct symbols_elf *elf,
						       uint32_t index, uint64_t address)
{
	const struct symbols_code_section *section =
		elf->code_count ? bsearch(&index, elf->code, elf->code_count, sizeof(*elf->code),
					  compare_section)
				: NULL;

	return section && address >= section->start && address < section->end ? section : NULL;
}

static uint8_t binding_of(const Elf64_Sym *symbol)
{
	switch (ELF64_ST_BIND(symbol->st_info)) {
	case STB_GLOBAL:
	case STB_GNU_UNIQUE:
		return 0;
	case STB_WEAK:
		return 1;
	default:
		return SYMBOLS_LOCAL;
	}
}

/**
 * Whether a symbol only separates code from data, as "$x" and "$d" do on AArch64.
 * Source: ELF for the Arm 64-bit Architecture, 5.5 "Symbol table", mapping symbols.
 */
static bool is_mapping(const struct collector *collector, const Elf64_Sym *symbol)
{
	const struct table *table = &collector->table;
	char text[3] = "";

	return ELF64_ST_BIND(symbol->st_info) == STB_LOCAL && symbol->st_size == 0 &&
	       symbols_source_read(&table->elf->source, table->strings->offset + symbol->st_name,
				   text, sizeof(text)) &&
	       text[0] == '$' && (text[1] == 'x' || text[1] == 'd') &&
	       (text[2] == 0 || text[2] == '.');
}

/**
 * Decide whether a symbol names code.
 * @return false if it does not; else its class and end are set.
 */
static bool judge(const struct collector *collector, const Elf64_Sym *symbol, uint8_t *ret_class,
		  uint64_t *ret_end)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);
	bool is_function = type == STT_FUNC || type == STT_GNU_IFUNC;
	const struct symbols_load *load =
		symbols_elf_load_at(collector->names->own, symbol->st_value);
	const struct symbols_code_section *section =
		code_section(collector->table.elf, symbol->st_shndx, symbol->st_value);

	if (symbol->st_shndx == SHN_UNDEF || !symbol->st_name || !load || !load->executable)
		return false;
	if (!is_function && (type != STT_NOTYPE || !section || is_mapping(collector, symbol)))
		return false;
	*ret_end = symbol->st_size ? symbol->st_value + symbol->st_size
		   : section	   ? section->end
				   : symbol->st_value + 1;
	if (*ret_end <= symbol->st_value || *ret_end > load->vaddr + load->memsz)
		return false;
	*ret_class = is_function ? (symbol->st_size ? CLASS_FUNCTION : CLASS_FUNCTION_NO_SIZE)
				 : (symbol->st_size ? CLASS_LABEL : CLASS_LABEL_NO_SIZE);
	return true;
}

static bool collect(void *context, const Elf64_Sym *symbol)
{
	struct collector *collector = context;
	struct symbols_names *names = collector->names;
	uint64_t end;
	uint8_t class;

	if (!judge(collector, symbol, &class, &end))
		return true;
	if (!ARRAY_RESERVE(names->list, names->room, names->count + 1)) {
		collector->no_memory = true;
		return false;
	}
	names->list[names->count++] = (struct symbols_name){
		.start = symbol->st_value,
		.end = end,
		.text = symbol->st_name,
		.table = collector->index,
		.class = class,
		.binding = binding_of(symbol),
	};
	return names->count < SYMBOLS_MAX_FUNCTIONS;
}

static bool is_sized(const struct symbols_name *name)
{
	return name->class == CLASS_FUNCTION || name->class == CLASS_LABEL;
}

static int compare_names(const void *left, const void *right)
{
	const struct symbols_name *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->class != b->class)
		return a->class < b->class ? -1 : 1;
	if (a->binding != b->binding)
		return a->binding < b->binding ? -1 : 1;
	return (a->text > b->text) - (a->text < b->text);
}

/** Sort the symbols, and end those without a size at the next symbol. */
static void finish(struct symbols_names *names)
{
	struct symbols_name *list = names->list, *fitted;
	uint64_t next = UINT64_MAX;

	if (!names->count)
		return;
	qsort(list, names->count, sizeof(*list), compare_names);
	for (size_t i = names->count; i-- > 0;) {
		if (i + 1 < names->count && list[i + 1].start != list[i].start)
			next = list[i + 1].start;
		if (!is_sized(&list[i]) && list[i].end > next)
			list[i].end = next;
	}
	fitted = realloc(list, names->count * sizeof(*list));
	if (fitted)
		names->list = fitted;
	names->room = names->count;
}

/* ---- Other files ------------------------------------------------------------------------ */

/**
 * Decompress an xz stream of at most @p max bytes.
 * @return Owned bytes, or NULL.
 */
static uint8_t *decompress(uint8_t *packed, size_t len, size_t max, size_t *ret_len)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	size_t size = len * 4 < max ? len * 4 : max;
	uint8_t *bytes = malloc(size);
	lzma_ret result = lzma_stream_decoder(&stream, MINI_MEMORY_BYTES, 0);

	stream.next_in = packed;
	stream.avail_in = len;
	stream.next_out = bytes;
	stream.avail_out = bytes ? size : 0;
	while (result == LZMA_OK && bytes) {
		uint8_t *larger;

		result = lzma_code(&stream, LZMA_FINISH);
		if (result != LZMA_OK || stream.avail_out)
			break;
		larger = size < max ? realloc(bytes, size * 2 < max ? size * 2 : max) : NULL;
		if (!larger)
			break;
		bytes = larger;
		stream.next_out = bytes + size;
		size = size * 2 < max ? size * 2 : max;
		stream.avail_out = size - (size_t)stream.total_out;
	}
	*ret_len = (size_t)stream.total_out;
	lzma_end(&stream);
	if (result != LZMA_STREAM_END) {
		free(bytes);
		return NULL;
	}
	return bytes;
}

/**
 * Open the compressed symbols that distributions put into stripped files (.gnu_debugdata).
 * Source: GDB manual, "MiniDebugInfo".
 */
static bool open_mini(const struct symbols_elf *elf, struct symbols_elf *ret_elf)
{
	struct symbols_source source;
	size_t packed_len = elf->debugdata.size, len;
	uint8_t *packed = symbols_source_copy(&elf->source, elf->debugdata.offset, packed_len,
					      MINI_MAX_BYTES);
	uint8_t *bytes = packed ? decompress(packed, packed_len, MINI_MAX_BYTES, &len) : NULL;

	free(packed);
	if (!bytes)
		return false;
	symbols_source_init_memory(&source, bytes, len);
	return symbols_elf_init(ret_elf, &source, NULL) == 0;
}

static int open_extra(struct symbols_names *names, const char *path,
		      const struct symbols_root *root, struct failure *why)
{
	struct symbols_elf extra, *kept;

	if (names->own->symtab.size)
		return 0;
	names->is_whole = symbols_debug_open(root, names->own, path, SYMBOLS_DEBUG_NAMES, &extra);
	if (!names->is_whole && !open_mini(names->own, &extra))
		return 0;
	kept = malloc(sizeof(*kept));
	if (!kept) {
		symbols_elf_deinit(&extra);
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "keep a debug file");
	}
	*kept = extra;
	names->extra = kept;
	return 0;
}

int symbols_names_init(struct symbols_names *names, const struct symbols_elf *elf, const char *path,
		       const struct symbols_root *root, struct failure *why)
{
	*names = (struct symbols_names){ .own = elf };
	if (open_extra(names, path, root, why) < 0)
		return -1;
	for (uint8_t i = 0; i < TABLE_COUNT; i++) {
		struct collector collector = { .names = names, .index = i };

		/* .symtab contains all of .dynsym; .gnu_debugdata contains only the others. */
		if ((i == TABLE_OWN_DYNAMIC && (elf->symtab.size || names->is_whole)) ||
		    !get_table(names, i, &collector.table))
			continue;
		each_symbol(&collector.table, collect, &collector);
		if (collector.no_memory) {
			symbols_names_deinit(names);
			return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "keep the symbols");
		}
	}
	finish(names);
	return 0;
}

void symbols_names_deinit(struct symbols_names *names)
{
	if (names->extra)
		symbols_elf_deinit(names->extra);
	free(names->extra);
	free(names->list);
	*names = (struct symbols_names){ 0 };
}

/* ---- Looking up ------------------------------------------------------------------------- */

/** Whether no unwind entry separates @p vaddr from the start of a symbol without a size. */
static bool same_entry(const struct symbols_eh *eh, uint64_t start, uint64_t vaddr)
{
	struct symbols_eh_entry at_start, at_vaddr;
	bool has_start, has_vaddr;

	if (!eh || start == vaddr)
		return true;
	has_start = symbols_eh_find(eh, start, &at_start);
	has_vaddr = symbols_eh_find(eh, vaddr, &at_vaddr);
	return has_start == has_vaddr && (!has_start || at_start.vaddr == at_vaddr.vaddr);
}

/** Find the best symbol that contains @p vaddr: by class, then by the nearest start. */
static const struct symbols_name *find_best(const struct symbols_names *names,
					    const struct symbols_eh *eh, uint64_t vaddr)
{
	const struct symbols_name *best = NULL;
	size_t end = ARRAY_SEARCH(names->count, i, names->list[i].start <= vaddr);

	for (size_t i = end; i > 0 && end - i < LOOK_BACK_MAX; i--) {
		const struct symbols_name *name = &names->list[i - 1];

		if (vaddr >= name->end ||
		    (best && (name->class > best->class ||
			      (name->class == best->class && name->start != best->start))))
			continue;
		/* At one address the symbol that sorts first is the best, so the last one seen
		 * wins. */
		if (is_sized(name) || same_entry(eh, name->start, vaddr))
			best = name;
	}
	return best;
}

/** Whether name @p a is the plainer one: fewer leading underscores, then shorter. */
static bool is_plainer(const char *a, const char *b)
{
	size_t under_a = strspn(a, "_"), under_b = strspn(b, "_");
	size_t len_a = strlen(a), len_b = strlen(b);

	if (under_a != under_b)
		return under_a < under_b;
	return len_a != len_b ? len_a < len_b : strcmp(a, b) < 0;
}

bool symbols_names_find(const struct symbols_names *names, const struct symbols_eh *eh,
			uint64_t vaddr, struct symbols_name *ret_name, char *ret_text)
{
	const struct symbols_name *best = find_best(names, eh, vaddr);
	const struct symbols_name *list_end = names->list + names->count;
	struct table table;
	char text[SYMBOLS_NAME_MAX_BYTES];
	const struct symbols_name *found = NULL;

	/* Aliases are adjacent: of those with equal class and binding, use the plainest name. */
	for (const struct symbols_name *name = best; name && name < list_end; name++) {
		if (name->start != best->start || name->class != best->class ||
		    name->binding != best->binding || name - best == ALIASES_MAX)
			break;
		if (vaddr >= name->end || !get_table(names, name->table, &table) ||
		    !text_of(&table, name->text, text))
			continue;
		if (!found || is_plainer(text, ret_text)) {
			found = name;
			strcpy(ret_text, text);
		}
	}
	if (found)
		*ret_name = *found;
	return found;
}

struct wanted {
	struct table table;
	const char *name;
	uint64_t vaddr;
	bool found;
};

static bool match(void *context, const Elf64_Sym *symbol)
{
	struct wanted *wanted = context;
	char text[SYMBOLS_NAME_MAX_BYTES];

	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= SHN_LORESERVE ||
	    ELF64_ST_TYPE(symbol->st_info) > STT_FUNC ||
	    !text_of(&wanted->table, symbol->st_name, text) || strcmp(text, wanted->name) != 0)
		return true;
	wanted->vaddr = symbol->st_value;
	wanted->found = true;
	return false;
}

bool symbols_names_find_address(const struct symbols_names *names, const char *name,
				uint64_t *ret_vaddr)
{
	struct wanted wanted = { .name = name };

	for (unsigned i = 0; i < TABLE_COUNT && !wanted.found; i++) {
		if (get_table(names, i, &wanted.table))
			each_symbol(&wanted.table, match, &wanted);
	}
	if (wanted.found)
		*ret_vaddr = wanted.vaddr;
	return wanted.found;
}
