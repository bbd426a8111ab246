/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_SYMBOLS_H
#define SYMBOLS_SYMBOLS_H

/*
 * What is this native address, and who called it?
 *
 * The target is seen through its maps, its mapped files and attach's remote reader. Nothing here
 * runs while a thread is stopped.
 */

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/attach.h"

/* ---- Address space ---------------------------------------------------------------------- */

/** The mappings of one target and the ELF objects behind them. */
struct symbols_space;

/** One line of /proc/PID/maps. Source: proc(5). */
struct symbols_mapping {
	uint64_t start, end; /**< [start, end). */
	uint64_t offset;     /**< In the file. */
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	bool readable, writable, executable, is_private;
	const char *path; /**< As the kernel prints it, "" if anonymous; borrowed until refresh. */
};

/**
 * Read the maps of a live process. Objects are opened on first use, through map_files where the
 * kernel lets us, else through /proc/PID/root, and then only if device and inode fit.
 * @param process Borrowed until destroy.
 */
int symbols_space_create(struct attach_process *process, struct symbols_space **ret_space,
			 struct failure *why);

/** A space from the text of a maps file, for a recorded image: objects are looked up by path on
 *  this machine and taken only if device, inode or build-id fit; hostile text is FAILURE_INVALID.
 */
int symbols_space_create_recorded(const char *maps, size_t len, struct symbols_space **ret_space,
				  struct failure *why);
void symbols_space_destroy(struct symbols_space *space);

/** Give a recorded space the image's memory: the vDSO is read there, and build-ids, which prove
 *  files whose device and inode are other ones here. @param memory Borrowed until destroy. */
void symbols_space_set_memory(struct symbols_space *space, const struct attach_reader *memory);

/** Put into an image what its recorded space needs for that: the build-ids of the objects opened so
 *  far, and the vDSO. @param why FAILURE_LIMIT, FAILURE_NO_MEMORY. */
int symbols_space_add_evidence(struct symbols_space *space, struct attach_image *image,
			       struct failure *why);

/** Read the maps again. The generation advances where they changed; what was derived from objects
 *  that are no longer mapped is dropped. Live spaces only. */
int symbols_space_refresh(struct symbols_space *space, struct failure *why);
uint64_t symbols_space_generation(const struct symbols_space *space);

size_t symbols_space_count(const struct symbols_space *space);
const struct symbols_mapping *symbols_space_get(const struct symbols_space *space, size_t index);
/** @return The mapping that holds @p address, or NULL. */
const struct symbols_mapping *symbols_space_find(const struct symbols_space *space,
						 uint64_t address);
/** The maps as text, for an image; borrowed until refresh. */
const char *symbols_space_text(const struct symbols_space *space, size_t *ret_len);

/**
 * Fetch debug files of stripped objects that are mapped now and have none on this machine, from the
 * debuginfod servers that the environment variable DEBUGINFOD_URLS names. They serve names and
 * types from then on. Blocks; so it is for the time before anything is sampled.
 * @param spaces What several have is asked for once, and all get it.
 * @param limit_ms For all together; up to 2 s more where a server holds us up.
 * @param stop Ends it early when set, without a failure; NULL without.
 * @param ret_count Files that came; set in any case.
 * @param why FAILURE_NOT_FOUND (no DEBUGINFOD_URLS, or no libdebuginfod.so.1), FAILURE_TIMEOUT
 * (those that came in time count), FAILURE_SYSTEM, FAILURE_NO_MEMORY.
 */
int symbols_fetch_debug(struct symbols_space *const *spaces, size_t count, unsigned limit_ms,
			const volatile sig_atomic_t *stop, size_t *ret_count, struct failure *why);

/* ---- Core files ------------------------------------------------------------------------- */

/** A core file: what a process was when it crashed, or when it was saved. */
struct symbols_core;

/** One of its threads. */
struct symbols_core_thread {
	pid_t tid;
	int signal;	      /**< That it got when it was saved, 0 if none. */
	uint64_t stack_limit; /**< First address behind the memory that its stack is in, 0 unknown.
			       */
	struct attach_registers registers;
};

/**
 * Open a core file, as the kernel or gdb's gcore writes it. One that was cut off is opened, too,
 * and has what is there.
 * @param why FAILURE_INVALID, with a step that says what is wrong (no core file, of another
 *            architecture); FAILURE_LIMIT; FAILURE_NO_MEMORY; else as failure_set_errno().
 * Source: core(5); elf(5); Linux 6.1, fs/binfmt_elf.c, elf_core_dump() and fill_files_note().
 */
int symbols_core_open(const char *path, struct symbols_core **ret_core, struct failure *why);
void symbols_core_close(struct symbols_core *core);

/** @return The process's number, 0 if unknown. */
pid_t symbols_core_pid(const struct symbols_core *core);
/** The kernel's name for its program, "" if unknown; any bytes but NUL. Borrowed until close. */
const char *symbols_core_name(const struct symbols_core *core);
/** Whether a part of the file is missing. */
bool symbols_core_is_cut(const struct symbols_core *core);

/** Threads in the file's order: the kernel writes the one that crashed first. */
size_t symbols_core_thread_count(const struct symbols_core *core);
const struct symbols_core_thread *symbols_core_thread_get(const struct symbols_core *core,
							  size_t index);

/**
 * The address space of a core. Mapped files are looked for by their paths and taken only if their
 * build-ids are those in the core, or if they have none and begin with the same headers.
 * @param sysroot Folder in which the paths are looked up; NULL: this machine's root.
 * @param ret_space The core is borrowed until it is destroyed; it has one at a time.
 * @param why As failure_set_errno() for @p sysroot; FAILURE_LIMIT, FAILURE_NO_MEMORY.
 */
int symbols_core_create_space(struct symbols_core *core, const char *sysroot,
			      struct symbols_space **ret_space, struct failure *why);

/** Reader over the memory: what the core holds, and behind that what the files of the core's space
 *  hold of pages that were not saved because they are in the files. Borrowed until close; for one
 *  thread at a time. */
const struct attach_reader *symbols_core_reader(struct symbols_core *core);

/**
 * Visit the runs of [start, end) that the core file itself holds, from the lowest, without holes.
 * @param visit Returns true to go on.
 */
void symbols_core_each_saved(const struct symbols_core *core, uint64_t start, uint64_t end,
			     bool (*visit)(void *context, uint64_t start, uint64_t end),
			     void *context);

/**
 * Programs and libraries whose files were not found, or are others than those that ran.
 * @param visit The path is borrowed until the space is destroyed.
 * @return How many programs and libraries there are in all. Those are not known of which the core
 *         has not the first page; the kernel saves it unless coredump_filter forbids it, core(5).
 */
size_t symbols_core_each_missing(struct symbols_core *core,
				 void (*visit)(void *context, const char *path), void *context);

/* ---- Names ------------------------------------------------------------------------------ */

/** A native function. Strings are borrowed until the space is destroyed. */
struct symbols_function {
	uint64_t start;	    /**< First address: of the symbol, else of the unwind entry, else the
				 address itself. */
	uint64_t end;	    /**< First address behind it; start + 1 where unknown. */
	const char *name;   /**< Symbol, else "module+0xOFFSET" of `start`. */
	const char *module; /**< Base name of the file, "[vdso]", "[anon]", … */
	bool is_symbol;	    /**< The name is a symbol. */
};

/**
 * Name the function at @p address. Always gives an answer: an address past a symbol's end is
 * "module+0x…", never the neighbour's name. For a return address pass it minus one.
 * @return 0, or -1 with FAILURE_NO_MEMORY.
 */
int symbols_find_function(struct symbols_space *space, uint64_t address,
			  struct symbols_function *ret_function, struct failure *why);

/** Look up an exported or local symbol by name in all mapped objects; first match.
 *  @return 0, or -1 with FAILURE_NOT_FOUND. */
int symbols_find_address(struct symbols_space *space, const char *name, uint64_t *ret_address,
			 struct failure *why);

/** Bytes of a build-id: 20 in practice (SHA-1). */
#define SYMBOLS_BUILD_ID_MAX 64

/**
 * The build-id of the file that is mapped at @p address, or of the vDSO: its note NT_GNU_BUILD_ID.
 * @return Its bytes; 0: it has none, or the file was not found.
 */
size_t symbols_find_build_id(struct symbols_space *space, uint64_t address,
			     uint8_t ret_id[SYMBOLS_BUILD_ID_MAX]);

/* ---- Types ------------------------------------------------------------------------------ */

/** Structures of one mapped program or library, from its DWARF. */
struct symbols_types;

/**
 * List the types of the object mapped at @p address.
 *
 * DWARF is taken from the file itself, or from its debug file: by build-id in the folders of the
 * environment variable LJPROF_DEBUG_DIR (separated by colons, each holds .build-id/xx/yyyy.debug)
 * and in /usr/lib/debug, else by .gnu_debuglink. DWARF that is shared between debug files
 * (.gnu_debugaltlink) is found by build-id, or by its path if that is absolute.
 * It is read whole into memory, at most 64 MiB, until the types are destroyed; listing and all
 * answers take at most 2 s of processor time, else they fail.
 * @param anchor Name of a structure. Only compile units that define it count: another unit's
 *               structures may have the same names. Borrowed during the call.
 * @param ret_types Set on success; independent of the space.
 * @param why FAILURE_NOT_FOUND (no DWARF, or no unit with the anchor), FAILURE_LIMIT (also where
 *            not all could be listed in time), FAILURE_INVALID, FAILURE_NO_MEMORY.
 * Source: DWARF 5, chapters 5 and 7.
 */
int symbols_types_create(struct symbols_space *space, uint64_t address, const char *anchor,
			 struct symbols_types **ret_types, struct failure *why);
void symbols_types_destroy(struct symbols_types *types);

/** Whether time was over at some answer: then what is missing may be there. */
bool symbols_types_are_late(const struct symbols_types *types);

/**
 * Where a member lies in a structure or union, which is named by its tag or by a typedef.
 * @param path Member, or members of members by dots ("gc.total"). Members of unnamed structures and
 *             unions count as those of the structure around them.
 * @param ret_offset,ret_size In bytes; a member of open length has size 0.
 * @param why FAILURE_NOT_FOUND; FAILURE_INVALID for a bit field and where units differ;
 *            FAILURE_LIMIT.
 */
int symbols_types_find_member(struct symbols_types *types, const char *structure, const char *path,
			      uint64_t *ret_offset, uint64_t *ret_size, struct failure *why);

/** Size of a structure or union in bytes. Errors as above. */
int symbols_types_find_size(struct symbols_types *types, const char *structure, uint64_t *ret_size,
			    struct failure *why);

/** Value of a constant of any enumeration. Errors as above. */
int symbols_types_find_enumerator(struct symbols_types *types, const char *name, int64_t *ret_value,
				  struct failure *why);

/* ---- Unwind entries --------------------------------------------------------------------- */

/** Rule of one unwind entry that holds for its whole range: all registers at fixed distances below
 *  a CFA that is a register plus an offset. */
struct symbols_unwind_entry {
	uint64_t start, end; /**< [start, end), target addresses. */
	int cfa_register;    /**< DWARF number. */
	int64_t cfa_offset;  /**< CFA = cfa_register + cfa_offset. */
	/** Register n is saved at CFA + saved_offset[n]; INT64_MIN where it is not saved. */
	int64_t saved_offset[ATTACH_REG_COUNT];
	bool constant; /**< The same rule holds at the first and the last address of the range. */
};

/**
 * Visit the unwind entries of code that finds its frame made: a register besides the return address
 * is saved at its first instruction already. Compilers write such code rarely, assemblers of
 * interpreters do.
 *
 * Each entry is visited in each executable file mapping in which it begins. A file is read once,
 * however often it is mapped, until it is unmapped; bounds on that keep files that were made to
 * take long from doing so, and entries with programs of more than 256 bytes are passed over, and
 * what cannot be opened.
 * @param min_len Of the code, in bytes.
 * @param visit Returns true to go on.
 * @param why FAILURE_NO_MEMORY; FAILURE_SYSTEM where nothing was found, but descriptors or memory
 *            lacked to open all files. Those are tried again at the next call.
 * Source: LSB 5.0 core, 10.6 (.eh_frame, .eh_frame_hdr); DWARF 5, 6.4 (the rules).
 */
int symbols_each_unwind_entry(struct symbols_space *space, uint64_t min_len,
			      bool (*visit)(void *context,
					    const struct symbols_unwind_entry *entry),
			      void *context, struct failure *why);

/** Copy bytes of a mapped file as the file has them (program text, read-only data).
 *  FAILURE_FAULT if @p address is not backed by a readable file or by the vDSO. */
int symbols_read_file_bytes(struct symbols_space *space, uint64_t address, void *ret_bytes,
			    size_t len, struct failure *why);

/* ---- Unwinding -------------------------------------------------------------------------- */

/** Native unwinder of one space: by simple rules, and by libunwind's remote interface over our own
 *  accessors where rules are not. */
struct symbols_unwinder;

int symbols_unwinder_create(struct symbols_space *space, struct symbols_unwinder **ret_unwinder,
			    struct failure *why);
void symbols_unwinder_destroy(struct symbols_unwinder *unwinder);

/** One native frame. */
struct symbols_native_frame {
	uint64_t pc;	       /**< Interrupted pc of the leaf, else the return address. */
	uint64_t sp;	       /**< Stack pointer in this frame. */
	bool is_signal;	       /**< A signal trampoline: the next frame's pc was interrupted. */
	bool by_frame_pointer; /**< Found by symbols_unwind_step_frame_pointer(), not by a rule. */
};

/**
 * Set the unwinder to the registers' frame.
 * @param memory Where the stack is read; borrowed until the next begin.
 */
void symbols_unwind_begin(struct symbols_unwinder *unwinder, const struct attach_registers *regs,
			  const struct attach_reader *memory);

/** The same for a frame that waits for a call to return: the pc in @p regs is a return address,
 *  so the rules of the call before it hold. For going on behind frames that the caller crossed. */
void symbols_unwind_begin_caller(struct symbols_unwinder *unwinder,
				 const struct attach_registers *regs,
				 const struct attach_reader *memory);

/** The frame that the unwinder stands at. */
void symbols_unwind_frame(const struct symbols_unwinder *unwinder,
			  struct symbols_native_frame *ret_frame);

/** All registers in the frame that the unwinder stands at, as far as they are known: those that a
 *  call may destroy have the values of the last frame that was interrupted. */
void symbols_unwind_registers(const struct symbols_unwinder *unwinder,
			      struct attach_registers *ret_registers);

/**
 * Go to the caller.
 * @return 1 if there is one, 0 at the stack's first function (its entry says so, or its return
 *         address is 0 or the beginning of a function that nobody called, as coroutine libraries
 *         prepare it), or -1: FAILURE_FAULT (the stack is
 *         not in @p memory), FAILURE_NOT_FOUND (code without unwind information), FAILURE_LIMIT,
 *         FAILURE_INVALID (the stack leads nowhere, or the maps were refreshed since begin). The
 *         unwinder then still stands at the frame before.
 */
int symbols_unwind_step(struct symbols_unwinder *unwinder, struct failure *why);

/**
 * Go to the caller of a frame in code without an unwind entry, by the function's frame pointer; for
 * use after symbols_unwind_step() failed with FAILURE_NOT_FOUND.
 *
 * The caller is believed only if its address lies behind a call, and only where the instructions of
 * the function say where it is kept: at the function's begin and end, and where it has set up its
 * frame pointer. Where several callers are possible there is no answer. Afterwards only the
 * frame's pc, sp and frame pointer are known; its other registers are 0.
 * @return 1 with by_frame_pointer set in the frame, 0 at the thread's first function (frame pointer
 *         and return address are 0), or -1: FAILURE_NOT_FOUND, FAILURE_LIMIT, FAILURE_INVALID. The
 *         unwinder then still stands at the frame before.
 */
int symbols_unwind_step_frame_pointer(struct symbols_unwinder *unwinder, struct failure *why);

/**
 * Learn the frame pointer of the frame that the unwinder stands at, where it is unknown, as in a
 * thread that sleeps, and symbols_unwind_step() needs it; for a next step.
 *
 * The size of the frame, as the function's first instructions tell it, or else the only word below
 * @p limit that a direct call of the function leaves behind, show where it points. A frame that
 * changes its size may have neither, so what comes of it shall be checked where there is a way.
 * @param limit First address behind the caller's return address at most.
 * @return 0, or -1: FAILURE_NOT_FOUND. The unwinder then still stands at the same frame.
 */
int symbols_unwind_find_frame_pointer(struct symbols_unwinder *unwinder, uint64_t limit,
				      struct failure *why);

#endif
