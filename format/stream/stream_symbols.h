/* SPDX-License-Identifier: MIT */
/* What do the symbols of a stream mean at a record? */
#ifndef FORMAT_STREAM_STREAM_SYMBOLS_H
#define FORMAT_STREAM_STREAM_SYMBOLS_H

#include "attach/hash.h"
#include "format/data/map.h"
#include "format/stream.h"

/** A Lua function in a stream. */
struct symtab_proto {
	uint32_t chunk; /* Id in `strings`. */
	uint64_t line;
};

struct symtab_trace {
	uint64_t proto, line;
};

/** The symbols of a stream at the last record read. A later record replaces an earlier one with
 * the same key, as in Tarantool's parser, so names must be resolved sample by sample. */
struct symtab {
	struct intern *strings;
	struct format_addrmap protos; /* From address to index in `proto_list`. */
	/* From address to id of the name, and in the high half `module`. */
	struct format_addrmap natives;
	struct format_addrmap traces; /* From number to index in `trace_list`. */
	struct symtab_proto *proto_list;
	struct symtab_trace *trace_list;
	size_t proto_count, proto_capacity, trace_count, trace_capacity;
	uint64_t generation; /* Increases with each record. */
	bool numbered;	     /* Addresses are numbers; see symbol_encoding.h. */
	uint32_t module;     /* Of the symbols that follow: id + 1 in `strings`; 0: unknown. */
	uint64_t text_bytes; /* Sum over all names. */
	char *cut;	     /* Buffer for a shortened name. */
};

/** A longer name keeps only its beginning and a hash of all. Our names are shorter, but a chunk
 * name may be a whole source text; reports show no more of it either. */
#define SYMTAB_NAME_MAX 8192

/** Bound of the bytes of all names. */
#define SYMTAB_TEXT_MAX (256u << 20)

int symtab_init(struct symtab *symtab, struct failure *why);
void symtab_deinit(struct symtab *symtab);
/** @param why FAILURE_NO_MEMORY, or FAILURE_LIMIT if there are too many names. */
int symtab_add(struct symtab *symtab, const struct format_symbol *symbol, struct failure *why);

/** @return The prototype at exactly this address, or NULL. */
const struct symtab_proto *symtab_find_proto(const struct symtab *symtab, uint64_t address);
/** @return The nearest prototype at or below the address, or NULL. */
const struct symtab_proto *symtab_find_proto_below(const struct symtab *symtab, uint64_t address,
						   uint64_t *ret_address);
const struct symtab_trace *symtab_find_trace(const struct symtab *symtab, uint64_t number);

/** @return Name of the nearest C symbol at or below the address, at any distance as in
 * Tarantool's parser; or NULL. */
const char *symtab_find_native(const struct symtab *symtab, uint64_t address, uint64_t *ret_start,
			       size_t *ret_len);

/** @return Name of the C symbol at exactly this address; NULL if there is none or the name is
 * empty. */
const char *symtab_find_native_at(const struct symtab *symtab, uint64_t address, size_t *ret_len);

/** @return What the stream says of the module of the C symbol at exactly this address, as in
 * symbol_encoding.h; NULL: nothing. */
const char *symtab_find_module_at(const struct symtab *symtab, uint64_t address);

const char *symtab_string(const struct symtab *symtab, uint32_t id, size_t *ret_len);

#endif
