/* SPDX-License-Identifier: MIT */
/*
 * Which constants do the stream formats have, for reader and writer?
 * Source of all facts: tarantool/luajit b52fe979, src/lj_symtab.c, src/lj_sysprof.c,
 * src/lj_memprof.c with their headers, and its parsers tools/utils, tools/sysprof, tools/memprof.
 */
#ifndef FORMAT_SYSPROF_STREAM_FORMAT_H
#define FORMAT_SYSPROF_STREAM_FORMAT_H

#include "format/stream.h"

#define STREAM_SYMTAB_MAGIC  "ljs"
#define STREAM_SYSPROF_MAGIC "ljp"
#define STREAM_MEMPROF_MAGIC "ljm"
#define STREAM_MAGIC_LEN     3
#define STREAM_RESERVED_LEN  3

/* Tarantool's parser accepts only these versions. */
#define STREAM_SYMTAB_VERSION  3
#define STREAM_SYSPROF_VERSION 2
#define STREAM_MEMPROF_VERSION 3

/** Ends a table, a Lua stack, a stream. */
#define STREAM_END 0x80

/** Symbol kinds: the enum's values in a table, and these values plus 10 between sysprof's items. */
#define STREAM_SYMTAB_KIND_MASK	   0x03
#define STREAM_SYSPROF_SYMBOL_BASE 10

enum { STREAM_FRAME_LUA = 1, STREAM_FRAME_CFUNC = 2, STREAM_FRAME_BUILTIN = 3 };

enum { STREAM_EVENT_SYMBOL = 0, STREAM_EVENT_ALLOC, STREAM_EVENT_FREE, STREAM_EVENT_REALLOC };

enum {
	STREAM_SOURCE_INTERNAL = 1,
	STREAM_SOURCE_LUA = 2,
	STREAM_SOURCE_CFUNC = 3,
	STREAM_SOURCE_TRACE = 4
};

#define STREAM_EVENT_KIND(header)   ((header)&0x03)
#define STREAM_EVENT_SOURCE(header) (((header) >> 2) & 0x07)
#define STREAM_EVENT_HEADER_MAX	    ((STREAM_SOURCE_TRACE << 2) | STREAM_EVENT_REALLOC)

/** Longest string: the read buffer of Tarantool's parser, so it reads no longer one. Chunk names
 * can be whole source texts. */
#define STREAM_STRING_MAX (10u << 20)

/** Most frames of one stack. A Lua stack has at most 65,500 slots (LUAI_MAXSTACK of LuaJIT), two
 * per frame; native stacks of default size hold fewer frames. */
#define STREAM_FRAMES_MAX (1u << 16)

#endif
