/* SPDX-License-Identifier: MIT */
/* What does a process do now, and what is it made of? */
#ifndef DAEMON_DUMP_H
#define DAEMON_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "daemon/record.h"
#include "format/sample.h"

/**
 * Describe what is visible of LuaJIT in a process: its code, its VMs with their layouts and
 * invariants, and the threads that run Lua. Stops each running thread once to read its stack.
 * @param out Where the text goes.
 * @param ret_text Message for people if the end is not DAEMON_END_STOPPED.
 * @return DAEMON_END_STOPPED if the process has a VM of a known build, DAEMON_END_NO_VM if not, or
 * how opening the process failed.
 */
enum daemon_end daemon_explain(pid_t pid, FILE *out, char *ret_text, size_t len);

/* ---- JIT reports ------------------------------------------------------------------------ */

struct luastate_jit_report;

/** One VM of a dump. */
struct daemon_dump_vm {
	char version[64]; /**< jit.version; "" if the VM has no readable one. */
	char layout[160]; /**< Text of luastate_describe_layout(). */
	struct luastate_jit_report *report;
};

/** All VMs of a process or a core file. */
struct daemon_dump {
	const char *core;  /**< Path of the core file, borrowed; NULL for a process. */
	pid_t pid;	   /**< 0 if unknown, which happens only for a core file. */
	char name[64];	   /**< The kernel's name for its program. */
	bool is_truncated; /**< A part of the core file is missing. */
	struct daemon_dump_vm *vms;
	size_t count;
	bool has_all_vms; /**< All memory was searched for VMs; there are no others. */
	size_t unread;	  /**< VMs that ended before they were read. */
	bool ended; /**< Its program ended during the read: the last report may be incomplete. */
};

/**
 * Read the JIT reports of all VMs of a process with luastate_jit_report_read(). Stops no thread.
 * Searches all memory of the process for VMs, for 10 s at most, and searches once more if no VM's
 * traces could be read.
 * @param ret_dump Set if the end is DAEMON_END_STOPPED; release with daemon_dump_deinit().
 * @param ret_text Message for people otherwise.
 * @return DAEMON_END_STOPPED, DAEMON_END_NO_VM, DAEMON_END_EARLY if the program ended before a VM
 * was read, or how opening the process failed.
 */
enum daemon_end daemon_dump_traces(pid_t pid, struct daemon_dump *ret_dump, char *ret_text,
				   size_t len);
/**
 * Read the JIT reports from a core file, as the kernel or gcore writes it.
 * @param path Borrowed until the dump is released.
 * @param sysroot Folder that holds the mapped files; NULL: this machine's root.
 * @return DAEMON_END_STOPPED, DAEMON_END_NO_VM, DAEMON_END_EARLY if the file does not exist,
 * DAEMON_END_DENIED if it may not be read, DAEMON_END_SYSTEM if it is not a core file.
 */
enum daemon_end daemon_dump_core_traces(const char *path, const char *sysroot,
					struct daemon_dump *ret_dump, char *ret_text, size_t len);
void daemon_dump_deinit(struct daemon_dump *dump);

/* ---- Stacks ----------------------------------------------------------------------------- */

struct luastate_variables;
struct luastate_values_options;

/** One frame of a merged stack. The texts come from the process: escape them for a terminal or for
 * JSON. */
struct daemon_frame {
	enum format_kind kind;
	char *name; /**< Function, or VM work such as "[gc sweep]"; NULL: unknown. */
	/** Lua and traces: the chunk's name as the VM stores it. Native and C functions: base name
	 * of their file. NULL: unknown. */
	char *source;
	uint32_t line;	    /**< Line that runs or waits; 0: unknown, or none. */
	int64_t first_line; /**< Line of the function's definition, as in struct format_function. */
	/** Native: pc or return address. Lua: address of the bytecode. Others: address of the
	 * function. */
	uint64_t pc;
	uint32_t trace;	  /**< Compiled: the trace that runs it; else 0. */
	bool approximate; /**< Compiled: probable, not proven. */
	/** Variables of a Lua function; NULL: not requested, or not readable. */
	struct luastate_variables *variables;
};

/** Native and Lua frames of one thread or coroutine, leaf first. All zero: empty. */
struct daemon_stack {
	struct daemon_frame *frames;
	size_t count;
	enum daemon_outcome outcome; /**< Whether the chain is full, or why not. */
	enum format_state state;     /**< State of the VM. */
	enum format_compiled compiled;
	uint32_t trace; /**< Trace that runs; 0: none. */
	uint64_t G, L;	/**< VM and coroutine of the newest Lua frames; 0: no Lua. */
};

void daemon_stack_deinit(struct daemon_stack *stack);

/** What a thread is doing. */
enum daemon_doing {
	DAEMON_RUNNING, /**< Or it waits for a processor. */
	DAEMON_WAITING, /**< In a system call, or for memory. */
	DAEMON_STOPPED, /**< By a signal such as SIGSTOP. */
	DAEMON_SAVED,	/**< In a core file, which records no more than a system call. */
};

/**
 * Name a system call of this architecture. Only one thread may call it.
 * @return Static; NULL if there is no call with this number. Source:
 * seccomp_syscall_resolve_num_arch(3).
 */
const char *daemon_call_name(int64_t number);

/** One thread of a process. */
struct daemon_thread {
	pid_t tid;
	char name[32]; /**< The kernel's name; any bytes. "" in a core file, which has no names. */
	enum daemon_doing doing;
	/** WAITING: the call's number, -1 for memory. SAVED: the call that the thread was in, -1
	 * for none or unknown; always -1 on AArch64. Else -1. */
	int64_t syscall;
	unsigned stops; /**< How many times the dump stopped the thread. */
	struct daemon_stack stack;
};

/** A VM with frames on these stacks. */
struct daemon_stack_vm {
	uint64_t G;
	char version[64]; /**< jit.version; "" if the VM has no readable one. */
	char layout[160]; /**< Text of luastate_describe_layout(). */
};

/** The stacks of a process or a core file. */
struct daemon_stacks {
	const char *core;  /**< Path of the core file, borrowed; NULL for a process. */
	bool is_truncated; /**< A part of the core file is missing. */
	pid_t pid;	   /**< 0 if unknown, which happens only for a core file. */
	char name[64];	   /**< The kernel's name for its program. */
	struct daemon_stack_vm *vms;
	size_t vm_count;
	struct daemon_thread *threads; /**< Threads with Lua on their stacks, or all threads. */
	size_t count;
	size_t others;	   /**< Threads without Lua that were left out. */
	size_t unread;	   /**< Threads whose stacks could not be read. */
	bool ended;	   /**< Its program ended during the read. */
	uint64_t pause_ns; /**< Duration of the freeze; 0: no freeze was necessary. */
	size_t frozen;	   /**< Threads that were frozen. */
	/* Why the stacks may not be one consistent snapshot: */
	/** The allowed pause was too short to copy everything, so some stacks were read later, or
	 * before. */
	bool is_late;
	bool is_huge;	   /**< The stacks and values exceed the limit of a copy. */
	bool has_woken;	   /**< Threads ran while memory was copied. */
	bool is_exhausted; /**< Some values were left out: budget exhausted. */
	/** Why threads could not be frozen, for people. "": they were, no freeze was necessary, or
	 * they did not stop in time (is_late). */
	char not_frozen[512];
};

/** Which stacks and variables to show. */
struct daemon_stacks_options {
	bool all_threads; /**< Include threads that run no Lua. */
	/** Budget of variables for all threads together; NULL: read no variables. */
	const struct luastate_values_options *values;
	/** Longest freeze; 0: 50 ms. Unused for a core file. */
	uint64_t max_pause_ns;
};

/**
 * Read the stacks of all threads of a process as one consistent snapshot.
 *
 * A running thread is stopped for some 50 us. If the stop shows that more memory is necessary, the
 * thread is stopped again, DAEMON_STOPS_MAX times at most; the best read counts. A sleeping thread
 * is read in place, which interrupts none of its system calls. Its registers are then unknown: a
 * placeholder frame replaces the frames that only the registers lead to. No thread stays stopped or
 * attached.
 *
 * If several threads run Lua, or if variables are read, the stops only show which memory is
 * necessary. That memory is copied while all threads are frozen, and decoded after they run again.
 * @param ret_stacks Set if the end is DAEMON_END_STOPPED; release with daemon_stacks_deinit().
 * @param ret_text Message for people otherwise.
 * @return DAEMON_END_STOPPED, DAEMON_END_NO_VM if there is no known LuaJIT, DAEMON_END_EARLY if the
 * program ended before a stack was read, or how opening the process failed.
 */
enum daemon_end daemon_dump_stacks(pid_t pid, const struct daemon_stacks_options *options,
				   struct daemon_stacks *ret_stacks, char *ret_text, size_t len);
/**
 * Read the stacks from a core file: a consistent snapshot with all registers. Threads keep the
 * file's order, which begins with the thread that crashed. Searches all memory of the core for VMs,
 * for 10 s at most.
 * @param path Borrowed until the stacks are released.
 * @param sysroot As for daemon_dump_core_traces().
 * @return As daemon_dump_core_traces().
 */
enum daemon_end daemon_dump_core_stacks(const char *path, const char *sysroot,
					const struct daemon_stacks_options *options,
					struct daemon_stacks *ret_stacks, char *ret_text,
					size_t len);
void daemon_stacks_deinit(struct daemon_stacks *stacks);

/** Most stops of one thread. If a stack is deeper than predicted, the next stop copies twice the
 * depth. */
enum { DAEMON_STOPS_MAX = 12 };

/* ---- Coroutines ------------------------------------------------------------------------- */

/** One coroutine. */
struct daemon_coroutine {
	uint64_t L;
	/** Static: "suspended", "running", "normal" or "dead", as coroutine.status() returns;
	 * "idle" for a main coroutine that runs nothing; "unknown" for a coroutine that the VM is
	 * just creating. */
	const char *status;
	bool is_main;
	bool is_started; /**< If false, its stack is the function that it will begin with. */
	/** Index in daemon_coroutines.stacks; coroutines with equal stacks share one. */
	size_t stack;
};

/** The coroutines of one VM. */
struct daemon_coroutine_vm {
	uint64_t G;
	char version[64];		     /**< jit.version; "" if the VM has no readable one. */
	char layout[160];		     /**< Text of luastate_describe_layout(). */
	struct daemon_coroutine *coroutines; /**< The main one first, then the oldest. */
	size_t count;
	uint64_t objects;  /**< Heap objects that were visited. */
	bool is_truncated; /**< The list of objects was not followed to its end. */
};

/** The coroutines of all VMs of a process or a core file. */
struct daemon_coroutines {
	const char *core; /**< Path of the core file, borrowed; NULL for a process. */
	pid_t pid;	  /**< 0 if unknown, which happens only for a core file. */
	char name[64];	  /**< The kernel's name for its program. */
	struct daemon_coroutine_vm *vms;
	size_t count;
	struct daemon_stack *stacks;
	size_t stack_count;
	bool has_all_vms;  /**< All memory was searched for VMs; there are no others. */
	uint64_t pause_ns; /**< Duration of the freeze; 0: no freeze was necessary. */
	size_t frozen;	   /**< Threads that were frozen. */
	uint64_t copied_bytes;
	/* Why coroutines may be missing, or may not be one consistent snapshot: */
	/** The allowed pause was too short to copy everything, so a part was read later. */
	bool is_late;
	bool is_huge;		/**< The heap exceeds the limit of a copy. */
	bool has_woken;		/**< Threads ran while memory was copied. */
	bool is_truncated;	/**< More coroutines exist than can be listed. */
	bool is_exhausted;	/**< Some values were left out: budget exhausted. */
	bool is_core_truncated; /**< A part of the core file is missing. */
};

/** How to read coroutines. */
struct daemon_coroutine_options {
	uint64_t max_pause_ns; /**< Longest freeze; 0: 50 ms. */
	size_t max_bytes;      /**< Most bytes to copy; 0: 1 GiB. */
	/** Budget of variables for all coroutines together; NULL: read no variables. With
	 * variables, coroutines never share a stack. */
	const struct luastate_values_options *values;
};

/**
 * Read the coroutines of all VMs of a process as one consistent snapshot.
 *
 * A walk of the heap while the process runs shows which memory holds coroutines. That memory is
 * copied while all threads are frozen, and walked after they run again. Searches all memory for
 * VMs, for 10 s at most.
 * @param ret_coroutines Set if the end is DAEMON_END_STOPPED; release with
 * daemon_coroutines_deinit().
 * @param ret_text Message for people otherwise.
 * @return As daemon_dump_traces().
 */
enum daemon_end daemon_dump_coroutines(pid_t pid, const struct daemon_coroutine_options *options,
				       struct daemon_coroutines *ret_coroutines, char *ret_text,
				       size_t len);
/**
 * Read the coroutines from a core file, without a freeze or a copy.
 * @param path Borrowed until the coroutines are released.
 * @param sysroot As for daemon_dump_core_traces().
 * @param values As in struct daemon_coroutine_options.
 * @return As daemon_dump_core_traces().
 */
enum daemon_end daemon_dump_core_coroutines(const char *path, const char *sysroot,
					    const struct luastate_values_options *values,
					    struct daemon_coroutines *ret_coroutines,
					    char *ret_text, size_t len);
void daemon_coroutines_deinit(struct daemon_coroutines *coroutines);

#endif
