/* SPDX-License-Identifier: MIT */
/* What do the symbols of a stream mean at this record? */
#ifndef FORMAT_STREAM_STREAM_SYMBOLS_H
#define FORMAT_STREAM_STREAM_SYMBOLS_H

#include "attach/hash.h"
#include "format/data/map.h"
#include "format/stream.h"

/** A Lua function as the stream knows it. */
struct symtab_proto {
	uint32_t chunk; /* Id in `strings`. */
	uint64_t line;
};

struct symtab_trace {
	uint64_t proto, line;
};

/**
 * The symbols of a stream as of the record last read. A later record replaces an earlier one with
 * the same key, as in the reference parser, so names are to be resolved sample by sample.
 */
struct symtab {
	struct intern *strings;
	struct format_addrmap protos;  /* Address to index in `proto_list`. */
	struct format_addrmap natives; /* Address to id of the name. */
	struct format_addrmap traces;  /* Number to index in `trace_list`. */
	struct symtab_proto *proto_list;
	struct symtab_trace *trace_list;
	size_t proto_count, proto_capacity, trace_count, trace_capacity;
	uint64_t generation; /* Grows with each record. */
	bool numbered;	     /* Addresses are numbers, see symbol_encoding.h. */
	uint64_t text_bytes; /* Of all names. */
	char *cut;	     /* A long name, as it is kept. */
};

/** Of longer names the begin is kept, with a hash of all. Of ours none is as long; source texts
 * that stand for a chunk's name can be, and of these no more is shown either. */
#define SYMTAB_NAME_MAX 8192

/** Bytes of all names. */
#define SYMTAB_TEXT_MAX (256u << 20)

int symtab_init(struct symtab *symtab, struct failure *why);
void symtab_deinit(struct symtab *symtab);
/** @param why FAILURE_NO_MEMORY, or FAILURE_LIMIT where there are more names than are kept. */
int symtab_add(struct symtab *symtab, const struct format_symbol *symbol, struct failure *why);

/** @return The prototype with just this address, or NULL. */
const struct symtab_proto *symtab_find_proto(const struct symtab *symtab, uint64_t address);
/** @return The prototype nearest at or below, or NULL. */
const struct symtab_proto *symtab_find_proto_below(const struct symtab *symtab, uint64_t address,
						   uint64_t *ret_address);
const struct symtab_trace *symtab_find_trace(const struct symtab *symtab, uint64_t number);

/** Name of the C symbol nearest at or below, without any bound, as the reference does; or NULL. */
const char *symtab_find_native(const struct symtab *symtab, uint64_t address, uint64_t *ret_start,
			       size_t *ret_len);

/** Name of the C symbol at just this address, or NULL where there is none or an empty one. */
const char *symtab_find_native_at(const struct symtab *symtab, uint64_t address, size_t *ret_len);

const char *symtab_string(const struct symtab *symtab, uint32_t id, size_t *ret_len);

#endif
