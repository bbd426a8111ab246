/* SPDX-License-Identifier: MIT */
/* The symbols of a stream as they come and change. */
#include "format/stream/stream_symbols.h"
#include "format/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/sysprof/symbol_encoding.h"

int symtab_init(struct symtab *symtab, struct failure *why)
{
	memset(symtab, 0, sizeof(*symtab));
	symtab->strings = format_intern_create();
	if (!symtab->strings)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the symbols");
	return 0;
}

void symtab_deinit(struct symtab *symtab)
{
	free(symtab->cut);
	format_intern_destroy(symtab->strings);
	format_addrmap_deinit(&symtab->protos);
	format_addrmap_deinit(&symtab->natives);
	format_addrmap_deinit(&symtab->traces);
	free(symtab->proto_list);
	free(symtab->trace_list);
	memset(symtab, 0, sizeof(*symtab));
}

/** Find @p key's element of a list, or append one for it. */
static int find_or_append(struct format_addrmap *map, uint64_t key, void **list, size_t *count,
			  size_t *capacity, size_t size, size_t *ret_index, struct failure *why)
{
	uint64_t present;

	if (format_addrmap_get(map, key, &present)) {
		*ret_index = (size_t)present;
		return 0;
	}
	if (*count == *capacity) {
		size_t wanted = *capacity ? 2 * *capacity : 64;
		void *grown = reallocarray(*list, wanted, size);

		if (!grown)
			return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the symbols");
		*list = grown;
		*capacity = wanted;
	}
	if (format_addrmap_set(map, key, *count, why))
		return -1;
	*ret_index = (*count)++;
	return 0;
}

/** FNV-1a: what is behind the part that is kept tells long names apart. */
static uint64_t hash_name(const char *name, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)name[i]) * 0x100000001b3;
	return hash;
}

static int put_name(struct symtab *symtab, const char *name, size_t len, uint32_t *ret_id,
		    struct failure *why)
{
	uint32_t known = format_intern_count(symtab->strings);
	const char *kept = name;

	if (len > SYMTAB_NAME_MAX) {
		size_t begin = format_text_cut(name, len, SYMTAB_NAME_MAX - 17);

		if (!symtab->cut)
			symtab->cut = malloc(SYMTAB_NAME_MAX + 1);
		if (!symtab->cut)
			return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the symbols");
		memcpy(symtab->cut, name, begin);
		len = begin + (size_t)snprintf(symtab->cut + begin, 18, " %016" PRIx64,
					       hash_name(name, len));
		kept = symtab->cut;
	}
	if (format_intern_put(symtab->strings, kept, len, ret_id, why))
		return -1;
	if (*ret_id == known)
		symtab->text_bytes += len;
	if (symtab->text_bytes > SYMTAB_TEXT_MAX)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "more names than can be kept");
	return 0;
}

static int add_proto(struct symtab *symtab, const struct format_symbol *symbol, struct failure *why)
{
	void *list = symtab->proto_list;
	uint32_t chunk;
	size_t index;
	int result;

	if (put_name(symtab, symbol->name, symbol->name_len, &chunk, why))
		return -1;
	result = find_or_append(&symtab->protos, symbol->address, &list, &symtab->proto_count,
				&symtab->proto_capacity, sizeof(*symtab->proto_list), &index, why);
	symtab->proto_list = list;
	if (result == 0)
		symtab->proto_list[index] =
			(struct symtab_proto){ .chunk = chunk, .line = symbol->line };
	return result;
}

static int add_trace(struct symtab *symtab, const struct format_symbol *symbol, struct failure *why)
{
	void *list = symtab->trace_list;
	size_t index;
	int result;

	result = find_or_append(&symtab->traces, symbol->trace, &list, &symtab->trace_count,
				&symtab->trace_capacity, sizeof(*symtab->trace_list), &index, why);
	symtab->trace_list = list;
	if (result == 0)
		symtab->trace_list[index] =
			(struct symtab_trace){ .proto = symbol->address, .line = symbol->line };
	return result;
}

static bool is_writer(const struct format_symbol *symbol)
{
	return symbol->kind == FORMAT_SYMBOL_C && symbol->address == SYMBOL_WRITER_ADDRESS &&
	       symbol->name_len == strlen(SYMBOL_WRITER) &&
	       memcmp(symbol->name, SYMBOL_WRITER, symbol->name_len) == 0;
}

int symtab_add(struct symtab *symtab, const struct format_symbol *symbol, struct failure *why)
{
	uint32_t name;

	if (symtab->generation++ == 0)
		symtab->numbered = is_writer(symbol);
	if (symbol->kind == FORMAT_SYMBOL_LUA)
		return add_proto(symtab, symbol, why);
	if (symbol->kind == FORMAT_SYMBOL_TRACE)
		return add_trace(symtab, symbol, why);
	if (put_name(symtab, symbol->name, symbol->name_len, &name, why))
		return -1;
	return format_addrmap_set(&symtab->natives, symbol->address, name, why);
}

const struct symtab_proto *symtab_find_proto(const struct symtab *symtab, uint64_t address)
{
	uint64_t index;

	if (!format_addrmap_get(&symtab->protos, address, &index))
		return NULL;
	return &symtab->proto_list[index];
}

const struct symtab_proto *symtab_find_proto_below(const struct symtab *symtab, uint64_t address,
						   uint64_t *ret_address)
{
	uint64_t index;

	if (!format_addrmap_floor(&symtab->protos, address, ret_address, &index))
		return NULL;
	return &symtab->proto_list[index];
}

const struct symtab_trace *symtab_find_trace(const struct symtab *symtab, uint64_t number)
{
	uint64_t index;

	if (!format_addrmap_get(&symtab->traces, number, &index))
		return NULL;
	return &symtab->trace_list[index];
}

const char *symtab_string(const struct symtab *symtab, uint32_t id, size_t *ret_len)
{
	return format_intern_get(symtab->strings, id, ret_len);
}

const char *symtab_find_native(const struct symtab *symtab, uint64_t address, uint64_t *ret_start,
			       size_t *ret_len)
{
	uint64_t name;

	if (!format_addrmap_floor(&symtab->natives, address, ret_start, &name))
		return NULL;
	return symtab_string(symtab, (uint32_t)name, ret_len);
}

const char *symtab_find_native_at(const struct symtab *symtab, uint64_t address, size_t *ret_len)
{
	uint64_t name;

	if (!format_addrmap_get(&symtab->natives, address, &name))
		return NULL;
	symtab_string(symtab, (uint32_t)name, ret_len);
	return *ret_len ? symtab_string(symtab, (uint32_t)name, ret_len) : NULL;
}
