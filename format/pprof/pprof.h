/* SPDX-License-Identifier: MIT */
/* What our profiles in pprof's form say besides its fields. */
#ifndef FORMAT_PPROF_PPROF_H
#define FORMAT_PPROF_PPROF_H

/*
 * What our profiles in pprof's form say, and our reader finds again. Source of the form:
 * format/pprof/pprof.proto.
 *
 *  name         as in folded chains, with the place where a Lua function is defined
 *  system_name  what kind it is, and "[trace N]" behind it where it is compiled; native code: its
 *		 name
 *  filename     of Lua functions and traces: the chunk's name, without "@"
 *  address      of native code: where its function begins in the memory of the process, as the
 *		 samples are of functions. (Go and perf_to_profile have one location for each pc, of
 *		 callers the return address less one; those would make all chains distinct.)
 *  mapping      one for each part of a file with native code, where the first process has it that
 *		 was met; for what is in no file, one by its name
 *  labels       of samples, below
 */
#define PPROF_SAMPLES	  "samples"
#define PPROF_COUNT	  "count"
#define PPROF_VALUES	  "values" /* of a profile of something else, as its unit tells */
#define PPROF_CPU	  "cpu"
#define PPROF_WALL	  "wall"
#define PPROF_NANOSECONDS "nanoseconds"

#define PPROF_PID	"pid"
#define PPROF_TID	"tid"
#define PPROF_THREAD	"thread"
#define PPROF_COROUTINE "coroutine"
#define PPROF_STATE	"vmstate"
#define PPROF_TRACE	"trace"
#define PPROF_WAITS	"waits"

/** By enum format_kind. */
#define PPROF_KIND_WORDS                                               \
	{                                                              \
		"", "lua", "fast", "c", "trace", "activity", "process" \
	}

/** Bytes of a file's name. */
#define PPROF_FILE_MAX 256

#endif
