/* SPDX-License-Identifier: MIT */
/* What do our pprof profiles say besides the format's own fields? */
#ifndef FORMAT_PPROF_PPROF_H
#define FORMAT_PPROF_PPROF_H

/*
 * Conventions of our pprof profiles; our reader understands them. Source of the format:
 * format/pprof/pprof.proto.
 *
 * name         as in folded chains; a Lua function has the location of its definition
 * system_name  the kind, followed by "[trace N]" if compiled; for native code its name
 * filename     for Lua functions and traces: the chunk's name, without "@"
 * address      for native code: the start of the function in the memory of the process, because
 *              samples are by function. (Go and perf_to_profile have one location per pc, and for
 *              callers the return address less one; then nearly all chains would be distinct.)
 * mapping      one per part of a file with native code, at its address in the first process met;
 *              for code in no file, one by its name
 * labels       of samples, below
 * order        the order in which the samples came: strings that nothing refers to, each with
 *              PPROF_ORDER and base64. Their bytes, one after the other, are a packed timeline
 *              (format/profile/timeline.h) in which a sample is known by its place in the file,
 *              from 0. Other readers see no such strings. Programs that add up or filter profiles
 *              drop them, or they no longer fit the samples; then our reader ignores them.
 */
#define PPROF_SAMPLES	  "samples"
#define PPROF_COUNT	  "count"
#define PPROF_VALUES	  "values" /* of a profile that does not count samples; its unit tells what */
#define PPROF_CPU	  "cpu"
#define PPROF_WALL	  "wall"
#define PPROF_NANOSECONDS "nanoseconds"

#define PPROF_ORDER "ljprof order: "

#define PPROF_PID	"pid"
#define PPROF_TID	"tid"
#define PPROF_THREAD	"thread"
#define PPROF_COROUTINE "coroutine"
#define PPROF_STATE	"vmstate"
#define PPROF_TRACE	"trace"
#define PPROF_WAITS	"waits"

/** By enum format_kind. */
#define PPROF_KIND_WORDS                                                     \
	{                                                                    \
		"", "lua", "fast", "c", "trace", "activity", "process", "vm" \
	}

/** Longest file name, in bytes. */
#define PPROF_FILE_MAX 256

#endif
