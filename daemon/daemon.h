/* SPDX-License-Identifier: MIT */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

/*
 * When is what sampled?
 *
 * The recorder: a loop that stops threads at the ticks of a clock, merges native and guest frames
 * into one chain, and hands finished samples to a writer process.
 */

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "attach/failure.h"
#include "format/format.h"

/** How much of each sample is kept. Source: Tarantool's sysprof RFC, "modes". */
enum daemon_mode {
	DAEMON_MODE_DEFAULT,   /**< Counters of VM states only: samples without frames. */
	DAEMON_MODE_LEAF,      /**< The leaf frame of each of the two stacks. */
	DAEMON_MODE_CALLGRAPH, /**< Whole chains. */
};

/** What became of a tick of a thread: each has one of these. */
enum daemon_outcome {
	DAEMON_FULL = 0,    /**< A chain from the leaf to the thread's first function. */
	DAEMON_TORN,	    /**< Partial: the VM was in a state that cannot be walked. */
	DAEMON_TRUNCATED,   /**< Partial: a stack is longer than what was copied. */
	DAEMON_UNWOUND,	    /**< Partial: native code without unwind information. */
	DAEMON_NO_VM,	    /**< No VM frame on the native stack. */
	DAEMON_IDLE,	    /**< Blocked: not interrupted, and not in the profile. */
	DAEMON_ASLEEP,	    /**< Blocked: its stack is read without a stop. */
	DAEMON_UNSCHEDULED, /**< Ready to run, but without a processor. */
	DAEMON_RESTED,	    /**< Not looked at, as it has never run Lua: it is from time to time. */
	DAEMON_EXITED,	    /**< Thread ended. */
	DAEMON_BUSY,	    /**< Held by another tracer. */
	DAEMON_FAILED,	    /**< Not stopped or not read. */
	DAEMON_OUTCOME_COUNT,
};

/** Word for an outcome, as used in summaries and in JSON ("full", "torn", …). */
const char *daemon_outcome_name(enum daemon_outcome outcome);

/** Whether the walk came to the thread's first function, through Lua or without any. That a
 * chain is too long to be kept whole is another thing: its sample is not full, and one through Lua
 * is DAEMON_TRUNCATED. It cannot fail; stopped window: no. */
bool daemon_outcome_reaches_root(enum daemon_outcome outcome);

/** Times in nanoseconds in buckets of 1/16 octave: quantiles within 5 %, in constant memory. */
struct daemon_histogram {
	uint64_t count, max_ns, sum_ns;
	uint32_t buckets[64 * 16];
};

void daemon_histogram_add(struct daemon_histogram *histogram, uint64_t ns);
/** @param q In [0, 1]. @return 0 for an empty histogram. */
uint64_t daemon_histogram_quantile(const struct daemon_histogram *histogram, double q);

/** What a process turned out to be. */
enum daemon_process_kind {
	DAEMON_PROCESS_LUAJIT,	  /**< Holds LuaJIT's code. */
	DAEMON_PROCESS_NO_LUAJIT, /**< Has none so far, and is not stopped. */
	DAEMON_PROCESS_DENIED,	  /**< Not permitted, or held by another tracer. */
	DAEMON_PROCESS_KIND_COUNT,
};

/** One process of a recording. */
struct daemon_process {
	pid_t pid;
	char name[64]; /**< The kernel's name for its last program. */
	enum daemon_process_kind kind;
	bool ended;
	uint64_t samples;
	uint64_t outcomes[DAEMON_OUTCOME_COUNT];
};

/** Processes that a recording lists; those beyond are recorded, but counted together only. */
enum { DAEMON_PROCESSES_LISTED = 1024 };

/** One trace of a recording. */
struct daemon_trace {
	int32_t pid;
	uint32_t number;
	char *chunk;  /**< Where it starts; the name as the VM stores it, or NULL. */
	int64_t line; /**< 0 unknown. */
	uint64_t samples[FORMAT_COMPILED_COUNT];
};

/** Traces that a recording lists; samples of those beyond are counted together only. */
enum { DAEMON_TRACES_LISTED = 4096 };

/** What a recording was stopped by, beside its duration. */
enum daemon_limit { DAEMON_LIMIT_NONE, DAEMON_LIMIT_SAMPLES, DAEMON_LIMIT_BYTES };

/** Outputs of one recording. */
enum { DAEMON_OUTPUTS_MAX = 16 };

/** One output. */
struct daemon_output {
	const char *path; /**< Or "-" for standard output. */
	const struct format_writer_ops *format;
	bool gzip; /**< Compressed, beside what the format itself does. */
};

/** What became of one output. */
struct daemon_output_result {
	int32_t errnum; /**< Why it failed; 0: it is complete. */
	uint32_t files; /**< That are complete. */
	uint64_t bytes; /**< In all its files. */
};

/** How a thread's registers and memory are taken. */
enum daemon_capture {
	DAEMON_CAPTURE_STOP, /**< It is stopped for some tens of microseconds. */
	/** The kernel copies them at ticks of its processor time. Asked for, it means that no
	 * thread is ever stopped. */
	DAEMON_CAPTURE_KERNEL,
	/** The kernel, where that is permitted and possible, but for threads that wait and for
	 * images that are saved. Single threads may be stopped: see enum daemon_reason. */
	DAEMON_CAPTURE_AUTO,
};

/** Why a thread was stopped although the kernel copies others. */
enum daemon_reason {
	DAEMON_REASON_SEARCH,  /**< For a look at its stack, before copies begin. */
	DAEMON_REASON_REFUSED, /**< The kernel does not copy this thread. */
	DAEMON_REASON_LARGE,   /**< Its stacks are larger than a copy. */
	DAEMON_REASON_PARTIAL, /**< Too many chains of its copies were not whole. */
	DAEMON_REASON_SLOWED,  /**< The kernel allows fewer samples by now: for all threads. */
	DAEMON_REASON_COUNT,
};

/** Word for a reason, as used in JSON ("search", "refused", …). */
const char *daemon_reason_name(enum daemon_reason reason);

/** The same in words for people. */
const char *daemon_reason_text(enum daemon_reason reason);

/** What was stopped for one reason. */
struct daemon_stopped {
	uint64_t threads, stops;
	uint64_t samples; /**< Ticks that the samples from these stops stand for. */
};

/** A thread that was stopped for one reason. */
struct daemon_stopped_thread {
	pid_t pid, tid;
	enum daemon_reason reason;
	char name[32]; /**< The kernel's; any bytes. */
	uint64_t samples;
};

/** Threads with reasons that a recording lists; those beyond are counted together only. */
enum { DAEMON_STOPPED_LISTED = 64 };

/** Numbers of a finished or running recording. */
struct daemon_stats {
	uint64_t samples; /**< Ticks that the profile stands for. */
	uint64_t records; /**< Samples that were handed over, each for one or more ticks. */
	uint64_t states[FORMAT_STATE_COUNT]; /**< Where the thread ran. */
	uint64_t compiled[FORMAT_COMPILED_COUNT];
	uint64_t outcomes[DAEMON_OUTCOME_COUNT];
	uint64_t ticks, late_ticks, missed_ticks;
	uint64_t merged_ticks; /**< Of those missed: the next look stands for them, too. */
	/** Ticks of all threads, with those that were merged: the sum of all outcomes. */
	uint64_t thread_ticks;
	uint64_t asleep_full; /**< Of DAEMON_ASLEEP: with a chain to the thread's first function. */
	uint64_t interrupted_calls; /**< Threads that entered a system call just before the stop;
				       most calls begin again. */
	uint64_t frames, native_frames;
	uint64_t decode_ns; /**< Unwinding, walking and naming, all samples. */
	uint64_t native_ns; /**< Part of it: native unwinding. */
	uint64_t cpu_ns;    /**< Processor time of the recorder, writer not included. */
	uint64_t elapsed_ns, first_sample_ns;
	/** In the order of the options' outputs. */
	struct daemon_output_result outputs[DAEMON_OUTPUTS_MAX];
	enum daemon_limit limit;
	uint64_t dropped; /**< Samples that a watch did not take in time. */
	/** From the interrupt to the release, which holds what a thread waited for a processor; and
	 * the part of it in which the thread stood still for us. */
	struct daemon_histogram stopped, held;
	/** What the kernel took for each of its copies, the interrupt itself not included. */
	struct daemon_histogram copied;
	uint64_t late_copies; /**< That ended early, as their time was over. */
	/** With copies by the kernel: processor time that threads used, as far as it was looked at,
	 * which it is where they have ticks without copies. */
	uint64_t ran_ns;
	enum daemon_capture capture; /**< What was done, never DAEMON_CAPTURE_AUTO. */
	/** With DAEMON_CAPTURE_KERNEL: what was stopped all the same; the threads in the order in
	 * which that began. */
	struct daemon_stopped reasons[DAEMON_REASON_COUNT];
	struct daemon_stopped_thread stopped_threads[DAEMON_STOPPED_LISTED];
	size_t stopped_thread_count;
	/** In the order in which they were found; freed by daemon_stats_deinit(). */
	struct daemon_process *processes;
	size_t process_count;
	uint64_t unlisted_processes; /**< Found when the list was full. */
	/** In the order in which they were met; freed by daemon_stats_deinit(). */
	struct daemon_trace *traces;
	size_t trace_count, trace_size;
	uint64_t unlisted_trace_samples; /**< Of traces that are not in the list. */
};

void daemon_stats_deinit(struct daemon_stats *stats);

/** What to record. Strings are borrowed. */
struct daemon_options {
	const pid_t *pids; /**< Processes that are to be recorded. */
	size_t pid_count;
	/** And those whose command or program matches one of these POSIX extended regular
	 * expressions, when the recording begins or later. */
	const char *const *names;
	size_t name_count;
	/** So long a process with a VM is waited for, where none is there; 0: not. */
	double wait_s;
	bool children;			     /**< And all their descendants, those of later too. */
	bool process_root;		     /**< Each chain begins with a frame for its process. */
	const struct daemon_output *outputs; /**< All with the same samples. */
	size_t output_count;		     /**< At most DAEMON_OUTPUTS_MAX. */
	/** Each output is a series of files, one for so many seconds, with the time at which it
	 * begins before the end of its name; 0: one file. */
	double rotate_s;
	unsigned keep; /**< Of each series, the newest ones; 0: all. */
	/** A signal that the caller has blocked: when it comes, what was recorded so far is to be
	 * in the outputs; of a series new files begin. 0: none. */
	int snapshot_signal;
	/** Stop when so many samples were taken, or so much of an output was written; 0: no limit.
	 */
	uint64_t limit_samples, limit_bytes;
	struct format_options format_options;
	enum daemon_mode mode;
	enum daemon_capture capture;
	unsigned rate_hz;	 /**< 1 to 10000. */
	bool wall;		 /**< Threads that wait are sampled, too. */
	double duration_s;	 /**< 0: until stopped. */
	const char *save_images; /**< Folder for images of all stops, or NULL. */
	bool debuginfod;	 /**< Fetch debug files before the recording begins. */
	bool await_vm;		 /**< pids[0] is a command just started: wait for its VM. */
	int go_fd;		 /**< Written to and closed once the recorder is ready, or -1. */
	int failed_fd; /**< Has something to read if the command could not be run, or -1. */
	/** Samples go to a watch over this socket, not to an output; private to daemon. */
	bool feeds;
	int feed_fd;
	const volatile sig_atomic_t *stop; /**< Set to end the recording. */
	/** Called about four times a second; may be NULL. */
	void (*progress)(void *context, const struct daemon_stats *stats);
	/** Called with one line about a process that is left out while others are recorded. */
	void (*notice)(void *context, const char *text);
	void *context;
};

/** How a recording ended; each but the first two is an error. */
enum daemon_end {
	DAEMON_END_STOPPED, /**< Asked to, or the duration is over. */
	DAEMON_END_TARGET,  /**< All processes have ended, or run other programs; the profile is
				 whole. */
	DAEMON_END_DENIED,  /**< Not permitted, or traced by another process. */
	DAEMON_END_NO_VM,   /**< No LuaJIT in any process. */
	DAEMON_END_OUTPUT,  /**< The output failed; what was written is readable. */
	DAEMON_END_EARLY,   /**< No such process, or all ended before the first sample. */
	DAEMON_END_SYSTEM,  /**< Something else failed. */
	DAEMON_END_EMPTY,   /**< A command has run and ended, and the profile has no sample. */
};

/**
 * Record until asked to stop, until the duration is over, or until something ends it.
 *
 * At each tick the kernel copies all threads of all processes that run, or they are looked at and
 * stopped; nothing stays stopped or attached. A process that cannot be recorded ends the recording
 * only if no other is left.
 * @param ret_stats Filled in any case; release with daemon_stats_deinit().
 * @param ret_text Message for people where the end is not DAEMON_END_STOPPED; @p len bytes.
 */
enum daemon_end daemon_record(const struct daemon_options *options, struct daemon_stats *ret_stats,
			      char *ret_text, size_t len);

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

struct luastate_catalogue;

/** One VM of a dump. */
struct daemon_dump_vm {
	char version[64]; /**< jit.version; "" where the VM does not tell it. */
	char layout[160]; /**< As luastate_describe_layout() has it. */
	struct luastate_catalogue *catalogue;
};

/** All VMs of a process or of a core. */
struct daemon_dump {
	const char *core; /**< Path of the core file, borrowed; NULL of a process. */
	pid_t pid;	  /**< 0 if unknown, which only a core's can be. */
	char name[64];	  /**< The kernel's name for its program. */
	bool is_cut;	  /**< A part of the core file is missing. */
	struct daemon_dump_vm *vms;
	size_t count;
	bool is_whole; /**< All memory was searched for VMs; there are no others. */
	size_t unread; /**< VMs that were gone before they were read. */
	bool ended;    /**< Its program ended meanwhile: of what was read last, parts may lack. */
};

/**
 * Read what the compilers of all VMs of a process have made, luastate_catalogue_read(). Stops
 * nothing; searches all memory of the process for VMs, 10 s at most.
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

/** Name of a system call of this architecture. @return Static; NULL for a number that is none, or
 * of a call that nobody waits in. Source: syscalls(2). */
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
	const char *core; /**< Path of the core file, borrowed; NULL of a process. */
	bool is_cut;	  /**< A part of the core file is missing. */
	pid_t pid;	  /**< 0 if unknown, which only a core's can be. */
	char name[64];	  /**< The kernel's name for its program. */
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
	bool has_woken;	  /**< Threads ran while memory was copied. */
	bool is_spent;	  /**< Values were left out, as there are more than are read. */
	char unheld[512]; /**< Why threads could not be held, for people; "" where they were, or
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
 * DAEMON_STOPS_MAX times at most; the best of these is taken. One that sleeps is read as it lies,
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
/* ---- Watching --------------------------------------------------------------------------- */

/*
 * A live view: the sampler is a process of its own, with the privileges; the caller, which has the
 * terminal, gives up its own. Samples come over a socket. The sampler never waits for the caller:
 * what that does not take in time is dropped, and counted.
 *
 *	daemon_watch_start()	forks the sampler; gives up privileges
 *	loop: poll() for daemon_watch_fd() and keys
 *		daemon_watch_take()	counts what has come; never waits
 *		each delay: daemon_watch_refresh(), then draw from
 *			daemon_watch_profile()	the tables, format_live_query() ...
 *			daemon_watch_vitals()	the header
 *			daemon_watch_history()	the sparklines
 *	daemon_watch_destroy()	ends the sampler
 */
struct daemon_watch;

/** What a VM is and does, a few times a second. */
struct daemon_vm {
	pid_t pid;
	uint64_t G;	  /**< Address of its global_State. */
	char version[64]; /**< jit.version, fit for a terminal; "" unknown. */
	char layout[160]; /**< As luastate_describe_layout() has it. */
	bool has_heap;
	uint64_t heap_bytes, threshold_bytes; /**< In use; at which the collector works on. */
	unsigned gc_phase; /**< enum luastate_gc_phase; daemon_gc_phase_name(). */
	bool has_pace;
	uint32_t pause, step_multiplier; /**< collectgarbage("setpause"), ("setstepmul"), in %. */
	bool has_allocated; /**< Its build counts what is allocated; Tarantool's does. */
	uint64_t allocated_bytes;
	bool has_traces;
	bool jit_on;
	uint64_t traces, mcode_bytes; /**< Live traces; machine code areas in use. */
	/** Since the watch began: what was seen of them, so at least so many. Builds that count
	 * aborts (is_counted) tell all. */
	bool is_counted;
	uint64_t created, aborted;
};

/** What the header shows. */
struct daemon_vitals {
	unsigned rate_hz;
	uint64_t elapsed_ns; /**< Of the sampling. */
	uint64_t samples, states[FORMAT_STATE_COUNT], outcomes[DAEMON_OUTCOME_COUNT];
	uint64_t compiled[FORMAT_COMPILED_COUNT];
	uint64_t ticks, late_ticks, missed_ticks;
	uint64_t stopped_p50_ns, stopped_p99_ns, stopped_max_ns;
	enum daemon_capture capture; /**< As in struct daemon_stats, and so are both of these. */
	struct daemon_stopped reasons[DAEMON_REASON_COUNT];
	uint64_t copied_p99_ns;
	uint64_t cpu_ns;		  /**< Of the sampler. */
	uint64_t own_cpu_ns;		  /**< Of this process. */
	uint64_t dropped;		  /**< Samples that were not taken in time. */
	struct daemon_process *processes; /**< Names are fit for a terminal. */
	size_t process_count;
	uint64_t *start_ns; /**< By process: when it began, by CLOCK_BOOTTIME; 0 unknown. */
	uint64_t unlisted_processes;
	struct daemon_vm *vms;
	size_t vm_count;
	char notice[512];      /**< The newest; "" none. */
	uint64_t notice_count; /**< Advances with each. */
	bool ended;	       /**< The sampler has ended; what was sampled stays. */
	enum daemon_end end;   /**< And how. */
	char text[512];	       /**< For people; "" where it was asked to. */
};

/** One refresh in the history: what happened since the one before. */
struct daemon_moment {
	uint64_t time_ns; /**< CLOCK_MONOTONIC. */
	uint64_t span_ns;
	uint32_t samples, states[FORMAT_STATE_COUNT], outcomes[DAEMON_OUTCOME_COUNT];
	uint64_t heap_bytes, allocated_bytes; /**< All VMs: in use; allocated meanwhile. */
	uint64_t traces, mcode_bytes, created, aborted;
	uint64_t sampler_cpu_ns, own_cpu_ns;
	bool has_allocated;
};

/** Refreshes that the history holds. */
enum { DAEMON_HISTORY = 600 };

/** "pause", "propagate", "atomic", "sweep string", "sweep", "finalize"; "?" for what is none. */
const char *daemon_gc_phase_name(unsigned phase);

/**
 * Begin to watch. Returns at once; whether the processes can be sampled comes with the vitals.
 * @param options Of these, output, format, progress, notice and go_fd do not count. With names, a
 * watch goes on where no process is left, for those that come later. Borrowed for the call.
 * @param live Borrowed for the call; may be NULL.
 * @return 0, or -1: the sampler could not be started.
 */
int daemon_watch_start(const struct daemon_options *options, const struct format_live_options *live,
		       struct daemon_watch **ret_watch, struct failure *why);

/** End the sampler, which lets go of all threads first. */
void daemon_watch_destroy(struct daemon_watch *watch);

/** To be polled for input; -1 once the sampler has ended. */
int daemon_watch_fd(const struct daemon_watch *watch);

/** Count what has come. Never waits, and returns after some milliseconds where much is there.
 *  @return 1 where there may be more at once, else 0; -1 with FAILURE_NO_MEMORY. */
int daemon_watch_take(struct daemon_watch *watch, struct failure *why);

/** A refresh: moves the window on, adds to the history. */
int daemon_watch_refresh(struct daemon_watch *watch, struct failure *why);

/** The tables; borrowed. */
struct format_live *daemon_watch_profile(struct daemon_watch *watch);

/** The newest numbers; borrowed until the next daemon_watch_take(). */
const struct daemon_vitals *daemon_watch_vitals(const struct daemon_watch *watch);

/** The last refreshes. @param age 0 is the newest. @return NULL behind the oldest. Borrowed. */
const struct daemon_moment *daemon_watch_history(const struct daemon_watch *watch, size_t age);

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
	uint64_t objects; /**< Of its heap, that were looked at. */
	bool is_cut;	  /**< The list of objects was not followed to its end. */
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
	bool is_whole;	   /**< All memory was searched for VMs; there are no others. */
	uint64_t pause_ns; /**< For which threads were held; 0: none had to be. */
	size_t held;	   /**< Threads. */
	uint64_t copied_bytes;
	/* Why some may be missing, or not of the same moment as others: */
	bool is_late; /**< Not all could be copied in the pause allowed, so some was read later. */
	bool is_huge; /**< The heap is larger than what may be copied. */
	bool has_woken;	  /**< Threads ran while memory was copied. */
	bool is_cut;	  /**< There are more than can be listed. */
	bool is_spent;	  /**< Values were left out, as there are more than are read. */
	bool is_core_cut; /**< A part of the core file is missing. */
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

/* ---- Decoding on its own, for images ---------------------------------------------------- */

/** Names of functions and the state of one target's decoding. */
struct daemon_target;
struct attach_image;

/** Decode a saved image: the same code as while recording. The sample's frames are valid until the
 *  next call. @param ret_functions Table of the functions that frames refer to. */
struct daemon_replay;
int daemon_replay_create(struct daemon_replay **ret_replay, struct failure *why);
void daemon_replay_destroy(struct daemon_replay *replay);
int daemon_replay_image(struct daemon_replay *replay, struct attach_image *image,
			struct format_sample *ret_sample, enum daemon_outcome *ret_outcome,
			struct failure *why);
const struct format_functions *daemon_replay_functions(const struct daemon_replay *replay);

#endif
