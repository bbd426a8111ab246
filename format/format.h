/* SPDX-License-Identifier: MIT */
#ifndef FORMAT_FORMAT_H
#define FORMAT_FORMAT_H

/*
 * Profiles as values and as bytes.
 *
 * This module sees finished samples only: it knows neither processes nor LuaJIT's structures.
 * Nothing here runs while a target is stopped.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "attach/failure.h"

/* ---- The sample ------------------------------------------------------------------------- */

/**
 * What the VM was doing, in the numbering of a sysprof stream's sample header.
 * Source: tarantool/luajit b52fe979, src/lj_obj.h (LJ_VMST_*) and src/lj_sysprof.h.
 * Mainline's single state C is FORMAT_STATE_CFUNC; its INTERP stays FORMAT_STATE_INTERP.
 */
enum format_state {
	FORMAT_STATE_INTERP = 0,
	FORMAT_STATE_LFUNC = 1,
	FORMAT_STATE_FFUNC = 2,
	FORMAT_STATE_CFUNC = 3,
	FORMAT_STATE_GC = 4,
	FORMAT_STATE_EXIT = 5,
	FORMAT_STATE_RECORD = 6,
	FORMAT_STATE_OPT = 7,
	FORMAT_STATE_ASM = 8,
	FORMAT_STATE_TRACE = 9,
	FORMAT_STATE_COUNT = 10,
};

/** Upper-case name of a state as the reference's counters spell it ("INTERP", …, "TRACE"). */
const char *format_state_name(enum format_state state);

/** What kind of code a function is. */
enum format_kind {
	FORMAT_KIND_NATIVE = 0, /**< Machine code that is no Lua C function. */
	FORMAT_KIND_LUA,	/**< Lua function in bytecode. */
	FORMAT_KIND_FAST,	/**< Function of LuaJIT's built-in libraries. */
	FORMAT_KIND_CFUNC,	/**< lua_CFunction of an application or module. */
	FORMAT_KIND_TRACE,	/**< Compiled trace. */
	FORMAT_KIND_PSEUDO,	/**< Not code but an activity, such as "[gc sweep]". */
	FORMAT_KIND_PROCESS,	/**< Not code but the process that the chain is of. */
	FORMAT_KIND_COUNT,
};

/**
 * Where in the memory of a process a part of a file lies, that holds code.
 * Address a in it is that at `offset` + a - `start` in the file.
 */
struct format_mapping {
	uint64_t start, limit; /**< [start, limit); both 0: unknown. */
	uint64_t offset;       /**< In the file. */
	const char *path;      /**< As the process knows it, "[vdso]"; never NULL. */
	const char *build_id;  /**< In hexadecimal digits, or NULL. */
};

/**
 * A function that frames refer to by its id. All strings are borrowed for the call only.
 *
 *  kind     address                    name                          source      first_line
 *  NATIVE   start of the function      symbol, or "module+0xOFFSET"  module      0
 *  LUA      the prototype (GCproto)    from a call site, or NULL     chunk name  as in GCproto
 *  FAST     a unique code address      "string.gsub"                 NULL        0
 *  CFUNC    the lua_CFunction          symbol or table name          NULL        0
 *  TRACE    the trace number           NULL                          chunk name  start line
 *  PSEUDO   0                          "[gc sweep]"                  NULL        0
 *  PROCESS  the pid                    "nginx [4711]"                NULL        0
 *
 * Chains of several processes may be mixed: addresses are those of the sample's own process, and
 * two processes can have different functions at the same one. A chunk name is as the VM stores it
 * ("@file.lua", "=name", or source text). first_line is -1 for built-in functions in bytecode and 0
 * for a main chunk.
 */
struct format_function {
	enum format_kind kind;
	uint64_t address;
	const char *name;
	const char *source;
	int64_t first_line;
	/** TRACE: the prototype in which it starts, 0 if unknown, and that one's first line. */
	uint64_t proto;
	int64_t proto_line;
	/** NATIVE and CFUNC: what `address` lies in, or NULL. Borrowed for the call only. */
	const struct format_mapping *mapping;
	/** The same: its source file where that is known, as profiles of others tell it, with
	 * first_line then; or NULL. */
	const char *file;
};

/** One frame of a sample. */
struct format_frame {
	uint64_t address;  /**< NATIVE: the pc; LUA: address of the current bytecode; else as in
				the function. */
	uint32_t function; /**< Id given by format_functions_add(). */
	uint32_t line;	   /**< Current line; 0 where there is none. */
	uint32_t
		trace; /**< LUA and FAST: the trace whose machine code runs it; 0 if interpreted. */
	bool approximate; /**< The frame is near the truth, not proven. */
};

/** How well the place of compiled code is known in a sample. */
enum format_compiled {
	FORMAT_COMPILED_NONE = 0,    /**< No compiled code runs. */
	FORMAT_COMPILED_EXACT,	     /**< A chain down to the inlined leaf. */
	FORMAT_COMPILED_APPROXIMATE, /**< The same, but the leaf's frames may be the next ones. */
	FORMAT_COMPILED_TRACE,	     /**< Only the trace is known: its leaf is a TRACE frame. */
	FORMAT_COMPILED_COUNT,
};

/** In place of an id: no function. */
#define FORMAT_NO_FUNCTION UINT32_MAX

/** A coroutine on a call chain. */
struct format_coroutine {
	uint64_t address; /**< Its lua_State. */
	/** Id of the function at its root: what it began with, or what that has called by a tail
	 * call. FORMAT_NO_FUNCTION: unknown, or of the main one, which begins anew with each call
	 * from C. */
	uint32_t function;
	bool is_main; /**< Of its VM. */
};

/** Coroutines that one sample tells of: the newest ones. */
enum { FORMAT_COROUTINES_MAX = 32 };

/**
 * One call chain. `frames` run from leaf to root and are borrowed, as `coroutines` are.
 * `trace` is the number of the running trace where state is FORMAT_STATE_TRACE, or where compiled
 * code called what runs now.
 */
struct format_sample {
	uint64_t time_ns; /**< CLOCK_MONOTONIC. */
	int32_t pid, tid;
	const char *thread;	 /**< Its name, or NULL; any bytes. */
	enum format_state state; /**< The VM's true state. */
	uint32_t trace;
	/** With `trace`: that trace as a function, or FORMAT_NO_FUNCTION if its start is unknown.
	 */
	uint32_t trace_function;
	enum format_compiled compiled;
	uint32_t weight; /**< Ticks that this sample stands for; 1 unless ticks were merged. */
	/** Bytes in use by the VM's collector when the thread was stopped; 0: not known. */
	uint64_t heap_bytes;
	bool full;	/**< The chain reaches from the leaf to the thread's first function. */
	bool is_asleep; /**< The thread did not run: it waited in a system call, or for memory. */
	const struct format_frame *frames;
	uint32_t frame_count;
	const struct format_coroutine
		*coroutines; /**< Newest first, FORMAT_COROUTINES_MAX at most. */
	uint32_t coroutine_count;
};

/* ---- Function table --------------------------------------------------------------------- */

/** Functions by id, in the order of their first appearance. Owns copies of all strings. */
struct format_functions;

struct format_functions *format_functions_create(void);
void format_functions_destroy(struct format_functions *functions);

/** Store a copy of @p function under the next id (0, 1, …). No search for equals.
 *  @return 0, or -1 with FAILURE_NO_MEMORY or FAILURE_LIMIT. */
int format_functions_add(struct format_functions *functions, const struct format_function *function,
			 uint32_t *ret_id, struct failure *why);

/** @return The function, borrowed until the table is destroyed; NULL for an unknown id. */
const struct format_function *format_functions_get(const struct format_functions *functions,
						   uint32_t id);
uint32_t format_functions_count(const struct format_functions *functions);

/* ---- Sinks: where bytes of a profile go ------------------------------------------------- */

/**
 * Output file whose content is readable after every commit, whatever ends the writer.
 *
 * Bytes are buffered; a commit writes them with a trailer behind (the format's end mark). On a
 * regular file the new bytes are put behind the old trailer's first byte before that byte itself is
 * replaced, so that at any instant the file is a complete profile. A full disk leaves the last
 * committed state. On pipes and devices bytes are written in order and the trailer only at close.
 */
struct format_sink;

/** Take over @p fd (closed by format_sink_destroy()). */
int format_sink_create(int fd, struct format_sink **ret_sink, struct failure *why);
/** One for whole files, each with a descriptor of its own. */
int format_sink_create_idle(struct format_sink **ret_sink, struct failure *why);
/** Write the next whole file to @p fd, which is taken over on success; the one before is closed. */
int format_sink_aim(struct format_sink *sink, int fd, struct failure *why);
/** Have the file be gzip's, before anything is put. It is whole at any instant for ljreport; gzip
 *  may find half a member behind its end. */
void format_sink_compress(struct format_sink *sink);
void format_sink_destroy(struct format_sink *sink);
int format_sink_put(struct format_sink *sink, const void *bytes, size_t len, struct failure *why);
/** @param final Also write the trailer where it was held back. */
int format_sink_commit(struct format_sink *sink, const void *trailer, size_t len, bool final,
		       struct failure *why);
/** Bytes committed so far, trailer included. */
uint64_t format_sink_bytes(const struct format_sink *sink);
/** Write a whole file in order, in place of putting and committing. @return NULL without memory. */
FILE *format_sink_file(struct format_sink *sink, struct failure *why);
/** It is complete. @param file Closed. @return 0, or -1 where not all of it was written. */
int format_sink_file_done(struct format_sink *sink, FILE *file, struct failure *why);

/* ---- Writers ---------------------------------------------------------------------------- */

/** How much detail of a chain a writer keeps. */
struct format_options {
	bool first_lines; /**< Guest frames carry the function's first line, not the current. */
	/** Sysprof: a sample in state TRACE has its trace alone, as the reference writes it. */
	bool trace_records;
	bool gzip; /**< The file is compressed, beside what the format itself does. */
	/* What the recording says of itself; 0: nothing. */
	uint64_t period_ns; /**< Of a tick. */
	uint64_t start_ns;  /**< Its begin, CLOCK_MONOTONIC. */
	uint64_t time_ns;   /**< The same since 1970. */
	bool is_wall;	    /**< Threads that wait are in it. */
};

/** One output format of the recorder. `self` is what open() returned. */
struct format_writer_ops {
	const char *name;	 /**< As typed by the user, "sysprof". */
	const char *description; /**< One line for --help. */
	/** Ends of file names that tell the format, blanks between; "" none. */
	const char *suffixes;
	bool is_packed; /**< Its files are compressed in any case. */
	bool is_whole;	/**< Written when the recording ends; a part of it is of no use. */
	/** @param functions Borrowed until close; grows while samples arrive. */
	int (*open)(struct format_sink *sink, const struct format_functions *functions,
		    const struct format_options *options, void **ret_self, struct failure *why);
	int (*sample)(void *self, const struct format_sample *sample, struct failure *why);
	/** Lines about the recording, each with its line feed: comments for people. Before the last
	 * commit. NULL: the format has no place for them. */
	int (*account)(void *self, const char *text, struct failure *why);
	/** Make everything so far readable. */
	int (*commit)(void *self, bool final, struct failure *why);
	void (*close)(void *self);
};

/** All output formats, ended by a NULL entry. */
extern const struct format_writer_ops *const format_writers[];
const struct format_writer_ops *format_writer_find(const char *name);

/** The format that a file's name tells, "out.pb.gz", also with ".gz" behind. @return NULL: none. */
const struct format_writer_ops *format_writer_for(const char *path);

/** How much of a file's name stands before what tells its format, or else before its last dot:
 *  "out" of "out.pb.gz", "out.folded.gz" and "out.dat". */
size_t format_stem_len(const char *path);

/* ---- Streams, record by record ---------------------------------------------------------- */

enum format_stream_kind { FORMAT_STREAM_SYSPROF, FORMAT_STREAM_MEMPROF };

/** One frame of a Lua stack in a sysprof stream. */
struct format_lua_frame {
	uint8_t kind;	  /**< 1 Lua, 2 C, 3 fast function. */
	uint64_t address; /**< Prototype, C function, or fast-function id. */
	uint64_t line;	  /**< Kind 1 only. */
};

/** One sysprof sample as it lies in the stream, both stacks leaf first. */
struct format_raw_sample {
	enum format_state state;
	uint64_t trace, trace_proto, trace_line; /**< State TRACE only. */
	const struct format_lua_frame *lua;
	size_t lua_count;
	const uint64_t *host;
	size_t host_count;
	bool is_offered; /**< The visitor was asked about its record just before. */
};

/** One memprof event. */
struct format_raw_event {
	uint8_t kind;	  /**< 1 alloc, 2 free, 3 realloc. */
	uint8_t source;	  /**< 1 internal, 2 Lua function, 3 C function, 4 trace. */
	uint64_t address; /**< Prototype, C function or trace number. */
	uint64_t line;	  /**< Source 2 only. */
	uint64_t old_address, old_size, new_address, new_size;
};

/** Symbol records; strings are borrowed for the call and not terminated. In streams of ours
 * addresses are numbers: format/sysprof/symbol_encoding.h. */
struct format_symbol {
	enum { FORMAT_SYMBOL_LUA, FORMAT_SYMBOL_C, FORMAT_SYMBOL_TRACE } kind;
	uint64_t address; /**< Prototype, C address; for a trace its start prototype. */
	uint64_t trace;	  /**< Trace number. */
	uint64_t line;	  /**< First line (Lua), start line (trace). */
	const char *name; /**< Chunk name or C symbol. */
	size_t name_len;
};

/** What a reader calls for each record in stream order; NULL members are skipped.
 *  A callback that returns non-zero ends the reading with that value's failure. */
struct format_visitor {
	int (*symbol)(void *context, const struct format_symbol *symbol, struct failure *why);
	int (*sample)(void *context, const struct format_raw_sample *sample, struct failure *why);
	int (*event)(void *context, const struct format_raw_event *event, struct failure *why);
	/** Of a sample that is not decoded yet: its record, borrowed for the call. Whoever knows
	 * these bytes from an earlier sample sets @p ret_done, and is spared the other call. */
	int (*repeat)(void *context, const uint8_t *bytes, size_t len, bool *ret_done,
		      struct failure *why);
};

/**
 * Read one whole stream (symtab and its sysprof or memprof part).
 * @param why On failure FAILURE_INVALID with the byte offset in `address`, or FAILURE_SYSTEM.
 */
int format_read_stream(FILE *file, const struct format_visitor *visitor, void *context,
		       enum format_stream_kind *ret_kind, struct failure *why);

/** The same over bytes in memory. */
int format_read_bytes(const void *bytes, size_t len, const struct format_visitor *visitor,
		      void *context, enum format_stream_kind *ret_kind, struct failure *why);

/** Record-level writers: append one record's bytes to the sink. */
int format_put_prologue(struct format_sink *sink, enum format_stream_kind kind,
			struct failure *why);
int format_put_symtab_prologue(struct format_sink *sink, struct failure *why);
int format_put_symtab_symbol(struct format_sink *sink, const struct format_symbol *symbol,
			     struct failure *why);
int format_put_symtab_end(struct format_sink *sink, struct failure *why);
int format_put_symbol(struct format_sink *sink, const struct format_symbol *symbol,
		      struct failure *why);
int format_put_sample(struct format_sink *sink, const struct format_raw_sample *sample,
		      struct failure *why);
/** For memprof: a symbol update and an event. */
int format_put_event_symbol(struct format_sink *sink, const struct format_symbol *symbol,
			    struct failure *why);
int format_put_event(struct format_sink *sink, const struct format_raw_event *event,
		     struct failure *why);

/**
 * Describe why @p file could not be read, in one line such as "FILE: truncated item at byte 1234".
 * @param ret_text Always terminated; at most @p len bytes are written.
 */
void format_describe_failure(const struct failure *why, const char *file, char *ret_text,
			     size_t len);

/**
 * Make foreign text fit for a terminal, in place: blanks for what that would obey. These are
 * control characters, those of 8 bits too, also where the text is no UTF-8, and characters that
 * turn the direction of writing. All other bytes stay.
 */
void format_clean_text(char *text, size_t len);

/** Make text fit for JSON, in place: a question mark for each byte that is no UTF-8. */
void format_clean_utf8(char *text, size_t len);

/** How much of a text of @p len bytes to show where there is room for @p max: no more, and no part
 * of a character of UTF-8. */
size_t format_text_cut(const char *text, size_t len, size_t max);

/* ---- Profiles: a stream summed up ------------------------------------------------------- */

/**
 * Distinct call chains with their counts (sysprof and others), or allocations by location
 * (memprof). Memory is bounded by the distinct functions, chains and locations, not by the length
 * of the stream.
 */
struct format_profile;

/** @return An empty profile, or NULL with FAILURE_NO_MEMORY. */
struct format_profile *format_profile_create(struct failure *why);

/** Have it keep the order of the samples that are added from now on, for a report that
 *  `needs_order`, and for comparing and for rules: without it samples that are alike count as much
 * as others. Some bytes more for each. */
void format_profile_keep_order(struct format_profile *profile);
/** Be told how reading goes on: with how many more bytes of the file, as they lie there, for each
 *  64 KiB or less. @param progress NULL: no more. */
void format_profile_set_progress(struct format_profile *profile,
				 void (*progress)(void *context, size_t bytes), void *context);

/**
 * Add a file to a profile: a sysprof or memprof stream, a profile in pprof's form, or folded
 * chains; its first bytes tell which. gzip may have compressed it.
 * Times add up only where all files have the same period.
 * @param why As of format_read_stream(), FAILURE_NO_MEMORY, FAILURE_LIMIT with the offset, or
 * FAILURE_DENIED for what does not add up: a memory profile and another one, samples and other
 * values. A part of the file may have been added then.
 */
int format_profile_add(struct format_profile *profile, FILE *file, struct failure *why);

/** Whether it counts samples: else no share of it is a matter of chance. */
bool format_profile_has_samples(const struct format_profile *profile);

/** What it counts: "samples", "bytes". Borrowed. */
const char *format_profile_unit(const struct format_profile *profile);

/** Read one file. @param why As of format_profile_add(). */
int format_profile_read(FILE *file, struct format_profile **ret_profile, struct failure *why);
void format_profile_destroy(struct format_profile *profile);
enum format_stream_kind format_profile_kind(const struct format_profile *profile);

/** Which Lua frames count as the same. */
enum format_lines {
	FORMAT_LINES_DEFAULT, /**< The report's own choice. */
	FORMAT_LINES_LINE,    /**< Those on the same line of the same function. */
	FORMAT_LINES_FUNCTION /**< Those of the same function; shown with its first line. */
};

/** What frames have behind their names. Which Lua frames are compiled only streams of our own tell.
 */
enum format_annotate {
	FORMAT_ANNOTATE_NONE,
	FORMAT_ANNOTATE_JIT, /**< "_[j]", by which flame graph tools colour them; "~_[j]" where the
				  frame is approximate. */
	FORMAT_ANNOTATE_TRACE, /**< " [trace 12]", or " [trace ~12]". */
	FORMAT_ANNOTATE_KIND,  /**< Compiled ones as JIT; "_[l]" other Lua, "_[b]" built-in, "_[c]"
				    C function, "_[a]" activity, "_[p]" process; native nothing. */
};

/** What frames are put before all others, where the profile tells it. Bits. */
enum {
	FORMAT_ROOTS_PROCESS = 1, /**< "process [4711]", where chains do not begin with it. */
	FORMAT_ROOTS_THREAD = 2,  /**< "worker [4712]". */
};

/** What is counted of a memory profile where it is shown as call chains. */
enum format_memory {
	FORMAT_MEMORY_INUSE_SPACE, /**< Bytes that are still allocated in the end. */
	FORMAT_MEMORY_INUSE_OBJECTS,
	FORMAT_MEMORY_ALLOC_SPACE, /**< Bytes that were allocated, or reallocated. */
	FORMAT_MEMORY_ALLOC_OBJECTS,
	FORMAT_MEMORY_COUNT,
};

/** "inuse_space", as Go's heap profiles have it; NULL for any other. */
const char *format_memory_name(enum format_memory value);

/** A memory profile as chains of one frame, the location, in bytes or objects; empty of another
 *  profile. @param ret_profile To be destroyed. */
int format_profile_of_memory(const struct format_profile *memory, enum format_memory value,
			     struct format_profile **ret_profile, struct failure *why);

struct format_report_options {
	const char *title; /**< May be NULL. */
	enum format_lines lines;
	enum format_annotate annotate;
	unsigned roots;		   /**< Of call chains, as lines and pictures show them. */
	enum format_memory memory; /**< What pprof shows first of a memory profile. */
	bool leak_only;		   /**< Of a memory profile: its heap alone, and not its events. */
	bool human_readable;	   /**< Sizes as "1.5KiB". */
};

/** One report of a profile. */
struct format_report_ops {
	const char *name;	 /**< As typed by the user, "folded". */
	const char *description; /**< One line for --help. */
	bool is_binary;		 /**< Nothing for a terminal. */
	bool is_packed;		 /**< Compressed in any case. */
	bool needs_order;	 /**< It charts time: see format_profile_keep_order(). */
	/** Prints a memory profile as such; others its format_profile_of_memory(). */
	bool takes_memory;
	/** @return 0, or -1: FAILURE_NOT_FOUND where the report needs call chains, or a memory
	 *	    profile, and it has none; FAILURE_NO_MEMORY. Errors of @p file are left to the
	 *caller's ferror(). */
	int (*print)(const struct format_profile *profile,
		     const struct format_report_options *options, FILE *file, struct failure *why);
	/** What is different in @p profile from @p base; NULL: this report has no such form. */
	int (*diff)(const struct format_profile *base, const struct format_profile *profile,
		    const struct format_report_options *options, FILE *file, struct failure *why);
};

/** All reports, ended by a NULL entry. */
extern const struct format_report_ops *const format_reports[];
const struct format_report_ops *format_report_find(const char *name);

/** The report that a file's name tells by its end, "out.svg", also with ".gz" behind.
 *  @return NULL: none. */
const struct format_report_ops *format_report_for(const char *path);

/* ---- Budgets ---------------------------------------------------------------------------- */

/**
 * Rules that a profile has to keep, and whether it does.
 *
 *	self>5%		no function itself has more of all samples
 *	total>30%	no function has more, with all that it calls
 *	func:NAME>10%	that function with all that it calls; NAME may have * and ?
 *	gc>15%		the garbage collector
 *	compiled<80%	machine code of traces has no less
 *	+2%		no function has gained so many percent of all samples, itself or in all;
 *			also self+2%, total+2%, func:NAME+2%, gc+2%, compiled-2%
 *
 * A rule is broken only where that is certain: where all of the interval of what was measured lies
 * beyond the bound. In one of a hundred judgements at most chance breaks any.
 */
struct format_budget;

/** How a rule was kept. */
struct format_verdict {
	const char *rule; /**< As it was given. */
	bool failed;
	bool is_unmatched; /**< It is about a function that neither profile has. */
	char *reason;	   /**< One line: what broke it; "" where nothing did. */
};

/** @return NULL without memory. */
struct format_budget *format_budget_create(void);
void format_budget_destroy(struct format_budget *budget);

/** @param why FAILURE_INVALID where it is no rule, FAILURE_LIMIT, FAILURE_NO_MEMORY. */
int format_budget_add(struct format_budget *budget, const char *text, struct failure *why);

/** One rule in a line; # begins a comment. @param why With the number of the line in `address`. */
int format_budget_read(struct format_budget *budget, FILE *file, struct failure *why);

/** Whether a rule is about changes. */
bool format_budget_needs_base(const struct format_budget *budget);

/**
 * @param base NULL: there is none, and no rule needs it.
 * @param lines LINE: the rules are about lines, not functions.
 * @param ret_failed Rules that are broken.
 * @return 0, or -1: FAILURE_NOT_FOUND where the profile does not have what a rule is about,
 *	   FAILURE_NO_MEMORY.
 */
int format_budget_judge(struct format_budget *budget, const struct format_profile *base,
			const struct format_profile *profile, enum format_lines lines,
			size_t *ret_failed, struct failure *why);

/** Write the last judgement as CI servers read it. Source: the JUnit XML format as Jenkins and
 * GitLab document it. @param name What was judged. Errors of @p file are left to the caller's
 * ferror(). */
void format_budget_print_junit(const struct format_budget *budget, const char *name, FILE *file);

/** The same as a Markdown table, for pages of CI jobs. Nothing that names have takes effect there.
 */
void format_budget_print_markdown(const struct format_budget *budget, FILE *file);

/** @return Of the last judgement, in the order of the rules; before it rules alone. Borrowed until
 * the next rule or judgement. */
const struct format_verdict *format_budget_verdicts(const struct format_budget *budget,
						    size_t *ret_count);

/* ---- Live profiles: samples summed up while they come ----------------------------------- */

/**
 * What a live view shows: samples by function, by line, by module, by trace, by coroutine and by
 * thread, and all call chains as one tree. Fed by one caller, in one thread; never looks at a
 * process.
 *
 * Memory is bounded whatever comes: where a table is full, the cold part of it, what was seen
 * longest ago and least, folds into "[other]", the entry with id FORMAT_LIVE_OTHER in each table,
 * and is counted (format_live_folded()). Counts of what stays are exact.
 */
struct format_live;

/** Bounds; 0 is the default. */
struct format_live_options {
	uint32_t functions_max; /**< Distinct functions, 16384; at least 16. */
	uint32_t lines_max;	/**< Distinct lines, 32768; at least 16. */
	uint32_t nodes_max;	/**< Frames of distinct chains, 131072; at least 64. */
	uint32_t window;	/**< Refreshes that the window spans, 10; at most 600. */
};

int format_live_create(const struct format_live_options *options, struct format_live **ret_live,
		       struct failure *why);
void format_live_destroy(struct format_live *live);

/** Say which function samples mean by @p id. Equal ones, announced under several ids, are one; a
 *  Lua function that was announced without its name takes it. The id may be any number, also one
 *  that meant another function before. @return 0, or -1 with FAILURE_NO_MEMORY. */
int format_live_function(struct format_live *live, uint32_t id,
			 const struct format_function *function, struct failure *why);

/** Count a sample. Frames whose ids were not announced, or were forgotten, count as "[other]".
 *  @return 0, or -1 with FAILURE_NO_MEMORY: the sample is then counted in part. */
int format_live_sample(struct format_live *live, const struct format_sample *sample,
		       struct failure *why);

/** One refresh of the screen is over: the window moves on. @return 0, or -1 with FAILURE_NO_MEMORY.
 */
int format_live_refresh(struct format_live *live, struct failure *why);

/** Count from zero. Functions keep their ids. */
void format_live_reset(struct format_live *live);

/** Samples so far; in the window: of the refreshes that it spans, the unfinished one included. */
uint64_t format_live_samples(const struct format_live *live);
uint64_t format_live_window_samples(const struct format_live *live);

/** What was folded into "[other]" since the beginning. */
struct format_live_folded {
	uint64_t functions, lines, nodes;
};

struct format_live_folded format_live_folded(const struct format_live *live);

/** Whether functions were forgotten since the last call: their ids are to be announced anew where
 *  they are met again. */
bool format_live_take_forgotten(struct format_live *live);

/** Id of "[other]" in each table. */
enum { FORMAT_LIVE_OTHER = 0 };

/** Samples of something. A function that calls itself counts once per sample in totals. */
struct format_live_count {
	uint64_t self;	/**< It is the leaf. */
	uint64_t guest; /**< It is the leafmost frame that is not native: its own samples, with
			     those of native code that it calls. 0 for native code. */
	uint64_t total; /**< It is in the chain. */
	uint64_t window_self, window_guest, window_total; /**< The same, in the window. */
};

/** One row of a table. Texts are fit for a terminal, and valid until the rows are released or the
 *  profile takes another function. */
struct format_live_row {
	/** FUNCTIONS, LINES: stays what it is until format_live_take_forgotten() tells. */
	uint32_t id;
	uint32_t function; /**< Id of the function; LINES too. */
	enum format_kind kind;
	const char *name;   /**< "burn_heavy", "lj_gc_step", "[gc sweep]", "trace 12"; file or
			       library of a MODULES row. Never NULL, may be "". */
	const char *place;  /**< "burn.lua:12", where the function begins, or the line; "" where
			       there is none. */
	const char *module; /**< File of a Lua function, library or program of a native one, or
			       "". */
	const char *chunk;  /**< Lua: the chunk name as the VM stores it, not fit for a terminal; or
			       NULL. */
	uint32_t line;	    /**< LINES: the line. FUNCTIONS: the first line. Else 0. */
	/** THREADS; PROCESSES, TRACES and COROUTINES have pid alone. Else 0. */
	int32_t pid, tid;
	uint64_t coroutine; /**< COROUTINES: its lua_State; else 0. */
	uint32_t trace;	    /**< TRACES: its number. */
	/** TRACES: how well the place in it was known, counts since the beginning. */
	uint64_t compiled[FORMAT_COMPILED_COUNT];
	struct format_live_count count;
};

enum format_live_view {
	FORMAT_LIVE_FUNCTIONS,
	FORMAT_LIVE_LINES, /**< Lines of Lua functions; other functions as they are. */
	FORMAT_LIVE_MODULES,
	FORMAT_LIVE_TRACES, /**< self and guest: a trace runs, or what it calls. */
	/** self and guest: it runs; total: or what it has resumed does. The function is the one
	 * that it began with: as addresses are used again, both tell it from others. The main one
	 * of a VM has the name "main", one of which that is not known "?". */
	FORMAT_LIVE_COROUTINES,
	FORMAT_LIVE_THREADS,
	FORMAT_LIVE_PROCESSES,
	FORMAT_LIVE_VIEW_COUNT,
};

/** What rows are sorted by, the most first; equal ones by the other counts, then in the order in
 *  which they were met. With natives left out, guest stands for self. */
enum format_live_order {
	FORMAT_LIVE_SELF,
	FORMAT_LIVE_TOTAL,
	FORMAT_LIVE_WINDOW_SELF,
	FORMAT_LIVE_WINDOW_TOTAL,
	FORMAT_LIVE_NAME, /**< From A to Z. */
	FORMAT_LIVE_ORDER_COUNT,
};

/** What is asked for. */
struct format_live_query {
	enum format_live_view view;
	enum format_live_order order;
	bool no_natives;    /**< Leave out native functions. */
	const char *filter; /**< Only what has this in name or place, in any case; NULL or "": all.
			     */
	int32_t pid, tid;   /**< Only samples of this process, or thread; 0: of all. From the tree,
			       where some chains may be folded. */
};

struct format_live_rows {
	struct format_live_row *rows;
	size_t count;
	/** The sums over the process or thread that was asked for, or all. */
	uint64_t samples, window_samples;
	char *texts; /**< Of the rows; private. */
};

/** @param ret_rows Release with format_live_rows_deinit(). @return 0, or -1 with FAILURE_NO_MEMORY.
 */
int format_live_query(const struct format_live *live, const struct format_live_query *query,
		      struct format_live_rows *ret_rows, struct failure *why);
void format_live_rows_deinit(struct format_live_rows *rows);

/** Direct callers of a function, or what it calls. `total` counts the samples with such a call;
 *  `self` those in which the callee is the leaf. Of @p query all but the view counts.
 *  @param function Id of a FUNCTIONS row. */
int format_live_callers(const struct format_live *live, uint32_t function,
			const struct format_live_query *query, struct format_live_rows *ret_rows,
			struct failure *why);
int format_live_callees(const struct format_live *live, uint32_t function,
			const struct format_live_query *query, struct format_live_rows *ret_rows,
			struct failure *why);

/** No node. */
#define FORMAT_LIVE_NO_NODE UINT32_MAX

/** One frame of the call tree. The first node is the root: all samples. */
struct format_live_node {
	struct format_live_row row; /**< As of FUNCTIONS; the root has the name "all". */
	uint64_t key;		    /**< The same in each tree that has this chain of functions. */
	uint32_t parent, depth;
	uint32_t first_child, next; /**< Children, sorted as was asked for. */
	uint32_t child_count;
};

/** A call tree by functions; parents before children. */
struct format_live_tree {
	struct format_live_node *nodes;
	size_t count;
};

/** @param query All but the view; a filter keeps chains through what fits.
 *  @param ret_tree Release with format_live_tree_deinit(). */
int format_live_tree(const struct format_live *live, const struct format_live_query *query,
		     struct format_live_tree *ret_tree, struct failure *why);
void format_live_tree_deinit(struct format_live_tree *tree);

/** The name of a writer or report in which a live profile can be written, "sysprof" or any of
 *  format_reports[]; these have no times. @return Whether it is one. */
bool format_live_can_write(const char *format);

/**
 * Write what was sampled so far. Chains that were folded have "[other]" in place of their frames.
 * @param title For those that have one; may be NULL.
 * @param fd Taken over, and closed.
 * @return 0, or -1: FAILURE_NOT_FOUND (no such format), FAILURE_NO_MEMORY, or of the file.
 */
int format_live_write(const struct format_live *live, const char *format, const char *title, int fd,
		      struct failure *why);

#endif
