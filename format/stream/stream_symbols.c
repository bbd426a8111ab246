/* SPDX-License-Identifier: MIT */
/* How do the symbols of a stream change while it is read? */
#include "format/stream/stream_symbols.h"
#include "format/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "format/sysprof/symbol_encoding.h"

int symtab_init(struct symtab *symtab, struct failure *why)
{
	memset(symtab, 0, sizeof(*symtab));
	symtab->strings = intern_create();
	if (!symtab->strings)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the symbols");
	return 0;
}

void symtab_deinit(struct symtab *symtab)
{
	free(symtab->cut);
	intern_destroy(symtab->strings);
	format_addrmap_deinit(&symtab->protos);
	format_addrmap_deinit(&symtab->natives);
	format_addrmap_deinit(&symtab->traces);
	free(symtab->proto_list);
	free(symtab->trace_list);
	memset(symtab, 0, sizeof(*symtab));
}

/**
 * Find the index of @p key, or give it the next index.
 * @param has_room Whether a new index is allowed.
 */
static int find_or_append(struct format_addrmap *map, uint64_t key, bool has_room, size_t *count,
			  uint64_t *ret_index, struct failure *why)
{
	if (format_addrmap_get(map, key, ret_index))
		return 0;
	if (!has_room)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the symbols");
	if (format_addrmap_set(map, key, *count, why))
		return -1;
	*ret_index = (*count)++;
	return 0;
}

static int put_name(struct symtab *symtab, const char *name, size_t len, uint32_t *ret_id,
		    struct failure *why)
{
	uint32_t known = intern_count(symtab->strings);
	const char *kept = name;

	if (len > SYMTAB_NAME_MAX) {
		size_t begin = format_text_cut(name, len, SYMTAB_NAME_MAX - 17);

		if (!symtab->cut)
			symtab->cut = malloc(SYMTAB_NAME_MAX + 1);
		if (!symtab->cut)
			return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the symbols");
		memcpy(symtab->cut, name, begin);
		/* The hash distinguishes long names that are cut. */
		len = begin + (size_t)snprintf(symtab->cut + begin, 18, " %016" PRIx64,
					       hash_lasting(name, len));
		kept = symtab->cut;
	}
	if (intern_put(symtab->strings, kept, len, ret_id, why))
		return -1;
	if (*ret_id == known)
		symtab->text_bytes += len;
	if (symtab->text_bytes > SYMTAB_TEXT_MAX)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "more names than can be kept");
	return 0;
}

static int add_proto(struct symtab *symtab, const struct format_symbol *symbol, struct failure *why)
{
	uint32_t chunk;
	uint64_t index;

	if (put_name(symtab, symbol->name, symbol->name_len, &chunk, why) ||
	    find_or_append(&symtab->protos, symbol->address,
			   ARRAY_RESERVE(symtab->proto_list, symtab->proto_capacity,
					 symtab->proto_count + 1),
			   &symtab->proto_count, &index, why))
		return -1;
	symtab->proto_list[index] = (struct symtab_proto){ .chunk = chunk, .line = symbol->line };
	return 0;
}

static int add_trace(struct symtab *symtab, const struct format_symbol *symbol, struct failure *why)
{
	uint64_t index;

	if (find_or_append(&symtab->traces, symbol->trace,
			   ARRAY_RESERVE(symtab->trace_list, symtab->trace_capacity,
					 symtab->trace_count + 1),
			   &symtab->trace_count, &index, why))
		return -1;
	symtab->trace_list[index] =
		(struct symtab_trace){ .proto = symbol->address, .line = symbol->line };
	return 0;
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
	if (symtab->numbered && symbol->address == SYMBOL_MODULE_ADDRESS)
		symtab->module = name + 1;
	return format_addrmap_set(&symtab->natives, symbol->address,
				  (uint64_t)symtab->module << 32 | name, why);
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
	return intern_get(symtab->strings, id, ret_len);
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

const char *symtab_find_module_at(const struct symtab *symtab, uint64_t address)
{
	uint64_t name;
	size_t len;

	if (!format_addrmap_get(&symtab->natives, address, &name) || !(name >> 32))
		return NULL;
	return symtab_string(symtab, (uint32_t)(name >> 32) - 1, &len);
}
