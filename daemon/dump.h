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
 * Tell what can be seen of LuaJIT in a process: its code, VMs with their layouts and invariants,
 * the threads that run Lua. Stops running threads once each, for a look at their stacks.
 * @param out Where the text goes.
 * @param ret_text Message for people where the end is not DAEMON_END_STOPPED.
 * @return DAEMON_END_STOPPED if a VM of a known build is there, DAEMON_END_NO_VM if not, or how
 *         opening the process failed.
 */
enum daemon_end daemon_explain(pid_t pid, FILE *out, char *ret_text, size_t len);

/* ---- What the compiler has made --------------------------------------------------------- */

struct luastate_jit_report;

/** One VM of a dump. */
struct daemon_dump_vm {
	char version[64]; /**< jit.version; "" where the VM does not tell it. */
	char layout[160]; /**< As luastate_describe_layout() has it. */
	struct luastate_jit_report *report;
};

/** All VMs of a process or of a core. */
struct daemon_dump {
	const char *core;  /**< Path of the core file, borrowed; NULL of a process. */
	pid_t pid;	   /**< 0 if unknown, which only a core's can be. */
	char name[64];	   /**< The kernel's name for its program. */
	bool is_truncated; /**< A part of the core file is missing. */
	struct daemon_dump_vm *vms;
	size_t count;
	bool is_buffered; /**< All memory was searched for VMs; there are no others. */
	size_t unread;	  /**< VMs that were gone before they were read. */
	bool ended; /**< Its program ended meanwhile: of what was read last, parts may lack. */
};

/**
 * Read what the compilers of all VMs of a process have made, luastate_jit_report_read(). Stops
 * nothing; searches all memory of the process for VMs, 10 s at most, and once more where the traces
 * of all that it found could not be read.
 * @param ret_dump Set where the end is DAEMON_END_STOPPED; release with daemon_dump_deinit().
 * @param ret_text Message for people where it is not.
 * @return DAEMON_END_STOPPED, DAEMON_END_NO_VM, DAEMON_END_EARLY where its program ended before a
 * VM of it was read, or how opening the process failed.
 */
enum daemon_end daemon_dump_traces(pid_t pid, struct daemon_dump *ret_dump, char *ret_text,
				   size_t len);
/**
 * The same for a core file, as the kernel or gcore writes it.
 * @param path Kept in the dump.
 * @param sysroot Folder in which the files are looked up that were mapped; NULL: this machine's
 * root.
 * @return DAEMON_END_STOPPED, DAEMON_END_NO_VM, DAEMON_END_EARLY where there is no such file,
 * DAEMON_END_DENIED where it may not be read, DAEMON_END_SYSTEM where it is no core file.
 */
enum daemon_end daemon_dump_core_traces(const char *path, const char *sysroot,
					struct daemon_dump *ret_dump, char *ret_text, size_t len);
void daemon_dump_deinit(struct daemon_dump *dump);

/* ---- Stacks ----------------------------------------------------------------------------- */

struct luastate_variables;
struct luastate_values_options;

/** One frame of a merged stack. Texts are the process's: not yet fit for a terminal or for JSON. */
struct daemon_frame {
	enum format_kind kind;
	char *name;	    /**< Function, or activity such as "[gc sweep]"; NULL unknown. */
	char *source;	    /**< Lua and traces: the chunk's name as the VM stores it; native and C
			       functions: base name of their file. NULL unknown. */
	uint32_t line;	    /**< That runs or waits; 0 unknown, or none. */
	int64_t first_line; /**< Where the function is defined, as in struct format_function. */
	/** Native: pc or return address; Lua: bytecode; else of the function. */
	uint64_t pc;
	uint32_t trace;	  /**< Compiled: the trace that runs it; else 0. */
	bool approximate; /**< Compiled: near the truth, not proven. */
	/** Of a Lua function, where they were asked for and could be read; else NULL. */
	struct luastate_variables *variables;
};

/** Native and Lua frames of one thread or coroutine, leaf first. All zero is an empty one. */
struct daemon_stack {
	struct daemon_frame *frames;
	size_t count;
	enum daemon_outcome outcome; /**< Whether it is whole, or why not. */
	enum format_state state;     /**< Of the VM. */
	enum format_compiled compiled;
	uint32_t trace; /**< That runs, 0 none. */
	uint64_t G, L;	/**< VM and coroutine of the newest Lua frames; 0: no Lua. */
};

void daemon_stack_deinit(struct daemon_stack *stack);

/** What a thread is doing. */
enum daemon_doing {
	DAEMON_RUNNING, /**< Or it waits for a processor. */
	DAEMON_WAITING, /**< In a system call, or for memory. */
	DAEMON_STOPPED, /**< By a signal such as SIGSTOP. */
	DAEMON_SAVED,	/**< In a core, which does not tell it, but for a system call. */
};

/** Name of a system call of this architecture. Of one thread only. @return Static; NULL for a
 * number that is none. Source: seccomp_syscall_resolve_num_arch(3). */
const char *daemon_call_name(int64_t number);

/** One thread of a process. */
struct daemon_thread {
	pid_t tid;
	char name[32]; /**< The kernel's; any bytes. "" in a core, which has none. */
	enum daemon_doing doing;
	/** WAITING: the call's number, -1 for memory. SAVED: the call that it was in, -1 for none
	 * or unknown, as always on AArch64. Else -1. */
	int64_t syscall;
	unsigned stops; /**< How often it was stopped for this. */
	struct daemon_stack stack;
};

/** A VM that stacks are of. */
struct daemon_stack_vm {
	uint64_t G;
	char version[64]; /**< jit.version; "" where the VM does not tell it. */
	char layout[160]; /**< As luastate_describe_layout() has it. */
};

/** The stacks of a process or of a core. */
struct daemon_stacks {
	const char *core;  /**< Path of the core file, borrowed; NULL of a process. */
	bool is_truncated; /**< A part of the core file is missing. */
	pid_t pid;	   /**< 0 if unknown, which only a core's can be. */
	char name[64];	   /**< The kernel's name for its program. */
	struct daemon_stack_vm *vms;
	size_t vm_count;
	struct daemon_thread *threads; /**< Those with Lua on their stacks, or all. */
	size_t count;
	size_t others;	   /**< Threads without Lua that were left out. */
	size_t unread;	   /**< Threads whose stacks could not be read. */
	bool ended;	   /**< Its program ended meanwhile. */
	uint64_t pause_ns; /**< For which threads were held; 0: none had to be. */
	size_t held;	   /**< Threads. */
	/* Why some are not of the same moment as others: */
	bool is_late; /**< Not all could be copied in the pause allowed, so some was read later, or
			   before. */
	bool is_huge; /**< There is more than may be copied. */
	bool has_woken;	   /**< Threads ran while memory was copied. */
	bool is_exhausted; /**< Values were left out, as there are more than are read. */
	char unheld[512];  /**< Why threads could not be held, for people; "" where they were, or
			      had not to be, or did not stand in time, which is late. */
};

/** What to show of stacks. */
struct daemon_stacks_options {
	bool all_threads; /**< Those too that run no Lua. */
	/** Of variables, for all threads together; NULL: none are read. */
	const struct luastate_values_options *values;
	/** For which threads are held; 0: 50 ms. A core has no use for it. */
	uint64_t max_pause_ns;
};

/**
 * Read the stack of each thread of a process, all as of one moment.
 *
 * A thread that runs is stopped for some 50 us, again where that showed that more has to be copied,
 * DAEMON_STOPS_MAX times at most; the best of these is taken. One that sleeps is read in place,
 * so that no system call of the target is interrupted: frames that only its registers lead to are
 * missing then, with a mark in their place. Nothing stays stopped or attached.
 *
 * Where several threads run Lua, or with variables, that shows what is needed: it is copied while
 * all threads are held, and read from the copy after they were let go.
 * @param ret_stacks Set where the end is DAEMON_END_STOPPED; release with daemon_stacks_deinit().
 * @param ret_text Message for people where it is not.
 * @return DAEMON_END_STOPPED, DAEMON_END_NO_VM where there is no LuaJIT that is known,
 * DAEMON_END_EARLY where its program ended before a stack was read, or how opening the process
 * failed.
 */
enum daemon_end daemon_dump_stacks(pid_t pid, const struct daemon_stacks_options *options,
				   struct daemon_stacks *ret_stacks, char *ret_text, size_t len);
/**
 * The same for a core file: all threads as of one moment, in the file's order, which has the one
 * first that crashed. Their registers are all there. Searches all memory of the core for VMs, 10 s
 * at most.
 * @param path Kept in the stacks.
 * @param sysroot As daemon_dump_core_traces().
 * @return As daemon_dump_core_traces().
 */
enum daemon_end daemon_dump_core_stacks(const char *path, const char *sysroot,
					const struct daemon_stacks_options *options,
					struct daemon_stacks *ret_stacks, char *ret_text,
					size_t len);
void daemon_stacks_deinit(struct daemon_stacks *stacks);

/** Stops of one thread at most. A stack that is deeper than was thought is copied to twice the
 * depth in the next one. */
enum { DAEMON_STOPS_MAX = 12 };

/* ---- Coroutines ------------------------------------------------------------------------- */

/** One coroutine. */
struct daemon_coroutine {
	uint64_t L;
	/** Static: "suspended", "running", "normal" or "dead", as coroutine.status() says; "idle"
	 * for a main coroutine of which nothing runs; "unknown" for one in the making. */
	const char *status;
	bool is_main;
	bool is_started; /**< Else its stack is the function that it will begin with. */
	size_t stack;	 /**< In daemon_coroutines.stacks: equal stacks are one. */
};

/** The coroutines of one VM. */
struct daemon_coroutine_vm {
	uint64_t G;
	char version[64];		     /**< jit.version; "" where the VM does not tell it. */
	char layout[160];		     /**< As luastate_describe_layout() has it. */
	struct daemon_coroutine *coroutines; /**< The main one first, then the oldest. */
	size_t count;
	uint64_t objects;  /**< Of its heap, that were looked at. */
	bool is_truncated; /**< The list of objects was not followed to its end. */
};

/** The coroutines of all VMs of a process or of a core. */
struct daemon_coroutines {
	const char *core; /**< Path of the core file, borrowed; NULL of a process. */
	pid_t pid;	  /**< 0 if unknown, which only a core's can be. */
	char name[64];	  /**< The kernel's name for its program. */
	struct daemon_coroutine_vm *vms;
	size_t count;
	struct daemon_stack *stacks;
	size_t stack_count;
	bool is_buffered;  /**< All memory was searched for VMs; there are no others. */
	uint64_t pause_ns; /**< For which threads were held; 0: none had to be. */
	size_t held;	   /**< Threads. */
	uint64_t copied_bytes;
	/* Why some may be missing, or not of the same moment as others: */
	bool is_late; /**< Not all could be copied in the pause allowed, so some was read later. */
	bool is_huge; /**< The heap is larger than what may be copied. */
	bool has_woken;	   /**< Threads ran while memory was copied. */
	bool is_truncated; /**< There are more than can be listed. */
	bool is_exhausted; /**< Values were left out, as there are more than are read. */
	bool is_core_cut;  /**< A part of the core file is missing. */
};

/** How to read coroutines. */
struct daemon_coroutine_options {
	uint64_t max_pause_ns; /**< For which threads are held; 0: 50 ms. */
	size_t max_bytes;      /**< To copy; 0: 1 GiB. */
	/** Of variables, for all coroutines together; NULL: none are read. Equal stacks with
	 * variables are not one. */
	const struct luastate_values_options *values;
};

/**
 * Read the coroutines of all VMs of a process, all as of one moment.
 *
 * A look over its heap while it runs shows which memory they are in; that is copied while all
 * threads are held, and walked after they were let go. Searches all memory for VMs, 10 s at most.
 * @param ret_coroutines Set where the end is DAEMON_END_STOPPED; release with
 *                       daemon_coroutines_deinit().
 * @param ret_text Message for people where it is not.
 * @return As daemon_dump_traces().
 */
enum daemon_end daemon_dump_coroutines(pid_t pid, const struct daemon_coroutine_options *options,
				       struct daemon_coroutines *ret_coroutines, char *ret_text,
				       size_t len);
/**
 * The same for a core file: nothing is held or copied.
 * @param path Kept in the coroutines.
 * @param sysroot As daemon_dump_core_traces().
 * @param values As in struct daemon_coroutine_options.
 * @return As daemon_dump_core_traces().
 */
enum daemon_end daemon_dump_core_coroutines(const char *path, const char *sysroot,
					    const struct luastate_values_options *values,
					    struct daemon_coroutines *ret_coroutines,
					    char *ret_text, size_t len);
void daemon_coroutines_deinit(struct daemon_coroutines *coroutines);

#endif
