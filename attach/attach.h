/* SPDX-License-Identifier: MIT */
#ifndef ATTACH_ATTACH_H
#define ATTACH_ATTACH_H

/*
 * Hold a thread, copy what is needed, let go.
 *
 * This module knows ptrace, process_vm_readv and /proc, and nothing of ELF or Lua.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/failure.h"
#include "attach/remote_addr.h"
#include "attach/bpf/sampler_plan.h"

/* ---- Registers -------------------------------------------------------------------------- */

/*
 * Registers that other modules name, by their DWARF numbers. ATTACH_REG_PC, ATTACH_REG_SP and
 * ATTACH_REG_COUNT exist on each architecture; the pc of AArch64 has no DWARF number and gets the
 * one behind sp.
 * Source: System V ABI, AMD64, figure 3.36; DWARF for the Arm 64-bit Architecture, section 4.1.
 */
#if defined(__x86_64__)
enum attach_register {
	ATTACH_REG_RAX = 0,
	ATTACH_REG_RDX = 1,
	ATTACH_REG_RCX = 2,
	ATTACH_REG_RBX = 3,
	ATTACH_REG_RSI = 4,
	ATTACH_REG_RDI = 5,
	ATTACH_REG_RBP = 6,
	ATTACH_REG_RSP = 7,
	ATTACH_REG_R14 = 14,
	ATTACH_REG_R15 = 15,
	ATTACH_REG_RIP = 16,
	ATTACH_REG_COUNT = 17,
	ATTACH_REG_SP = ATTACH_REG_RSP,
	ATTACH_REG_PC = ATTACH_REG_RIP,
};
#elif defined(__aarch64__)
enum attach_register {
	ATTACH_REG_X0 = 0,
	ATTACH_REG_X19 = 19,
	ATTACH_REG_X20 = 20,
	ATTACH_REG_X21 = 21,
	ATTACH_REG_X22 = 22,
	ATTACH_REG_FP = 29,
	ATTACH_REG_LR = 30,
	ATTACH_REG_SP = 31,
	ATTACH_REG_PC = 32,
	ATTACH_REG_COUNT = 33,
};
#else
#error "ljprof runs on x86-64 and AArch64"
#endif

/** General registers of a stopped thread or of a frame, indexed by DWARF number. */
struct attach_registers {
	uint64_t r[ATTACH_REG_COUNT];
	int64_t syscall; /**< Number of the system call that the thread is in, or -1. Always -1 on
			      AArch64, whose kernel forgets the number before the thread stands. */
};

static inline uint64_t attach_pc(const struct attach_registers *regs)
{
	return regs->r[ATTACH_REG_PC];
}

static inline uint64_t attach_sp(const struct attach_registers *regs)
{
	return regs->r[ATTACH_REG_SP];
}

/**
 * Take registers from a block as the kernel writes it into a core file and into PTRACE_GETREGSET's.
 * @param why FAILURE_INVALID where @p len is not that of this architecture's block.
 * Source: struct user_regs_struct of <sys/user.h>; core(5).
 */
int attach_decode_registers(const void *bytes, size_t len, struct attach_registers *ret_registers,
			    struct failure *why);

/* ---- Remote reader ---------------------------------------------------------------------- */

/**
 * A source of target memory: the live process, a recorded image, or one behind the other.
 *
 * read() copies exactly @p len bytes or fails and leaves @p ret_bytes undefined:
 * FAILURE_FAULT with the first unreadable address, or FAILURE_GONE.
 */
struct attach_reader {
	int (*read)(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		    struct failure *why);
	void *self;
};

static inline int attach_read(const struct attach_reader *reader, struct remote_addr address,
			      void *ret_bytes, size_t len, struct failure *why)
{
	return reader->read(reader->self, address, ret_bytes, len, why);
}

/**
 * Copy a NUL-terminated string of at most @p size - 1 bytes; longer ones are cut.
 * @return 0, or -1 as attach_read().
 */
int attach_read_string(const struct attach_reader *reader, struct remote_addr address,
		       char *ret_text, size_t size, struct failure *why);

/* ---- Live process ----------------------------------------------------------------------- */

/** A process that we look at; holds descriptors of its /proc entries, no trace attachment. */
struct attach_process;

/**
 * Open process @p pid and check that we may trace it; stops nothing.
 *
 * @param why FAILURE_GONE (no such process), FAILURE_NOT_FOUND (a kernel thread or a zombie: no
 *            memory to look at; `step` tells which), FAILURE_DENIED (permission), FAILURE_BUSY
 *            (traced by the process whose pid is in `address`).
 * Source: proc(5), ptrace(2) "Ptrace access mode checking".
 */
int attach_process_open(pid_t pid, struct attach_process **ret_process, struct failure *why);

/** The same for a process whose threads are not to be stopped: a tracer is not in the way of that.
 */
int attach_process_open_to_read(pid_t pid, struct attach_process **ret_process,
				struct failure *why);
void attach_process_close(struct attach_process *process);

/** The id under which /proc shows the process's memory: its pid, or where the main thread has left
 *  with pthread_exit() and others run on, that of one of these. */
pid_t attach_process_pid(const struct attach_process *process);

/** Reader over the live process (process_vm_readv). Borrowed, valid until close. The bytes are
 *  those of a moment while threads run; check what is read. */
const struct attach_reader *attach_process_reader(struct attach_process *process);

/**
 * Visit the runs of pages in [start, end) that are in memory, from the lowest: reading others would
 * make the process larger, or swap. Where the kernel tells them (Linux 6.7), pages are left out
 * that were read but never written.
 * @param visit Gets whole pages, and once in a while an empty range: nothing more is in memory
 *              below it. Returns true to go on. A hole of 1 TiB costs some ten microseconds, before
 *              Linux 6.7 some seconds.
 * @param why FAILURE_GONE, FAILURE_DENIED, FAILURE_SYSTEM.
 * Source: Linux Documentation/admin-guide/mm/pagemap.rst. Stopped window: no.
 */
int attach_process_each_resident(const struct attach_process *process, uint64_t start, uint64_t end,
				 bool (*visit)(void *context, uint64_t start, uint64_t end),
				 void *context, struct failure *why);

/** What has become of a process since attach_process_open() or attach_process_note_exec(). */
enum attach_fate {
	ATTACH_FATE_SAME,
	ATTACH_FATE_EXEC,  /**< Another program runs in it. */
	ATTACH_FATE_ENDED, /**< Gone, or a zombie. */
};

/**
 * One read in /proc and one of memory, about 15 us. An exec shows in the addresses of text and
 * stack, which address space randomisation moves, and in the kernel's random bytes for the program
 * otherwise. A process whose main thread alone has left goes on.
 * Source: proc(5), stat; getauxval(3), AT_RANDOM.
 */
enum attach_fate attach_process_fate(struct attach_process *process);

/** Take the program that runs now as the known one. */
void attach_process_note_exec(struct attach_process *process);

/** Process that traces @p tid, 0 if none or unknown. Source: proc(5), status, TracerPid. */
pid_t attach_tracer_of(pid_t pid, pid_t tid);

/**
 * Explain a refusal or a strange process in the user's terms: Yama's setting, another user, another
 * tracer, a kernel thread, a zombie, with what to do about it.
 * @param ret_text Always terminated.
 */
void attach_explain(pid_t pid, const struct failure *why, char *ret_text, size_t len);

/* ---- Finding processes ------------------------------------------------------------------ */

/** Names of a process. Bytes that a terminal might obey are replaced by '?'. */
struct attach_names {
	char command[64];  /**< The kernel's name for it, at most 15 characters long. */
	char program[256]; /**< Base name of its executable; "" where that cannot be seen. */
};

/** Numbers of all processes that /proc shows, ascending.
 *  @param ret_pids Freed by the caller. Source: proc(5). */
int attach_list_processes(pid_t **ret_pids, size_t *ret_count, struct failure *why);

/** @return The parent's pid, 0 if there is none, or if @p pid is gone. Source: proc(5), stat. */
pid_t attach_parent_of(pid_t pid);

/** @return The pid of the process that leads the session of @p pid, also where that has ended; 0 if
 * it is in another pid namespace, or if @p pid is gone. Source: setsid(2). */
pid_t attach_session_of(pid_t pid);

/** @return Whether there is such a process. Source: proc(5), comm and exe. */
bool attach_names_of(pid_t pid, struct attach_names *ret_names);

/**
 * Processes that have the number @p inner in a pid namespace below ours: in a container, mostly.
 * @param ret_pids Their numbers here, ascending, at most @p size.
 * @return How many there are.
 * Source: proc(5), status, NSpid.
 */
size_t attach_find_inner(pid_t inner, pid_t *ret_pids, size_t size);

/** Whether /proc shows the pid namespace that this process is in; unshare(1) without --mount-proc
 *  leaves another one there, whose numbers mean other processes to ptrace. */
bool attach_proc_is_ours(void);

/* ---- Threads ---------------------------------------------------------------------------- */

/** What a thread is doing, without touching it. Source: proc(5), /proc/PID/task/TID/syscall. */
enum attach_activity {
	ATTACH_RUNNING,
	ATTACH_BLOCKED, /**< In a system call or otherwise asleep: never interrupted. */
	ATTACH_EXITED,
};

/** What the kernel's scheduler has counted of a thread. */
struct attach_schedule {
	uint64_t ran_ns;    /**< On a processor; of one that runs: until its last clock tick. */
	uint64_t waited_ns; /**< For a processor, in waits that have ended. */
	uint64_t runs;	    /**< How often it was given one. */
};

/** What attach_capture() keeps of a thread's turns on processors. */
struct attach_turn {
	struct attach_schedule before; /**< At the interrupt. */
	bool is_known;		       /**< It could be read. */
	bool is_late;		       /**< It did not stand at once. */
	bool is_ours;		       /**< Its turn was on the caller's processor then. */
	uint64_t own_waited_ns;	       /**< What the caller had waited for processors by then. */
	uint64_t ran_ns; /**< The processor time that it had used when it stood; 0: it is
			      not known. */
};

struct attach_thread {
	pid_t tid;
	int syscall_fd;	       /**< Kept open: 1.4 us a look. */
	int schedule_fd;       /**< Kept open, too; 0: not yet, -1: cannot be. */
	bool stop_pending;     /**< Still ours: an interrupt has not been answered yet, or the
				    thread was killed while it stood. */
	uint64_t interrupt_ns; /**< When an interrupt was sent that has not been answered, or 0. */
	uint64_t patience_ns;  /**< Longest wait of attach_capture(); 0: 100 ms. */
	bool shares_processor; /**< Ran on ours when it was stopped last. */
	uint64_t tick_ns;      /**< Of processor time: when the caller woke for it. 0: of wall clock
				    time, at which a thread that waits for a processor counts. */
	bool is_tick_late;     /**< The caller was to wake earlier. */
	uint64_t woke_ns; /**< When the caller woke as threads stood that had stop_pending; 0: it
			       did not sleep. */
	struct attach_turn turn;
	uint64_t stack_limit; /**< Main thread: first address behind its frames; else 0. */
	void *data;	      /**< Free for the caller; NULL at first. */
	uint64_t stood_ns;    /**< When it stood last, CLOCK_MONOTONIC; 0: it never has. */
	struct attach_registers registers; /**< Then those of its last stop. */
};

/** Live list of a process's threads, refreshed on request; entries keep their address. */
struct attach_threads;
int attach_threads_create(struct attach_process *process, struct attach_threads **ret_threads,
			  struct failure *why);
void attach_threads_destroy(struct attach_threads *threads);
int attach_threads_refresh(struct attach_threads *threads, struct failure *why);
/** After attach_process_note_exec(): the main thread's stack lies elsewhere. Reads nothing. */
void attach_threads_note_exec(struct attach_threads *threads);
/** @param forget Called for each thread before its entry goes: it has ended, or the list is
 *  destroyed. */
void attach_threads_on_forget(struct attach_threads *threads,
			      void (*forget)(void *context, struct attach_thread *thread),
			      void *context);
/** Whether there are more or fewer threads than at the last refresh; less than 1 us. One that has
 *  ended while another began is not seen here. Source: proc_task_getattr() of Linux, st_nlink. */
bool attach_threads_changed(const struct attach_threads *threads);
size_t attach_threads_count(const struct attach_threads *threads);
struct attach_thread *attach_threads_get(struct attach_threads *threads, size_t index);

/**
 * Look at a thread without stopping it.
 * @param ret_sp,ret_pc Set where blocked; may be NULL.
 */
enum attach_activity attach_thread_activity(struct attach_thread *thread, uint64_t *ret_sp,
					    uint64_t *ret_pc);

/** A thread that does not run, as the kernel shows it. */
struct attach_sleep {
	int64_t syscall; /**< Number of the system call that it waits in; -1: in none. */
	uint64_t sp, pc;
	uint64_t runs;	 /**< How often it was given a processor, before it was seen asleep. */
	bool is_stopped; /**< By a signal such as SIGSTOP. */
};

/**
 * attach_thread_activity(), with all that is to be seen of a thread that does not run; some 15 us.
 * One that cannot be seen well enough to tell later whether it has slept on counts as running.
 * @param ret_sleep Set where blocked.
 * Source: proc(5), syscall and status.
 */
enum attach_activity attach_thread_look(const struct attach_process *process,
					struct attach_thread *thread,
					struct attach_sleep *ret_sleep);

/**
 * Whether a thread is in the same sleep as at an earlier look; some 5 us.
 *
 * Stopped window: no, it stops nothing.
 * @param sleep As attach_thread_look() or attach_capture_asleep() gave it.
 * Source: proc(5), syscall; Linux, Documentation/scheduler/sched-stats.rst.
 */
bool attach_thread_sleeps_on(const struct attach_thread *thread, const struct attach_sleep *sleep);

/** The kernel's name of a thread, as its program has set it: any bytes. "" where it has ended.
 *  Source: proc(5), comm. */
void attach_thread_name(const struct attach_process *process, pid_t tid, char *ret_name,
			size_t size);

/* ---- Images ----------------------------------------------------------------------------- */

/**
 * What one stop read: registers and ranges of memory. Every walk works on images alone.
 * An image is reused from stop to stop, so that the steady state allocates nothing.
 */
struct attach_image;

struct attach_image *attach_image_create(void);
void attach_image_destroy(struct attach_image *image);
/** Forget the ranges; keep the memory. */
void attach_image_clear(struct attach_image *image);

struct attach_registers *attach_image_registers(struct attach_image *image);

/** Ask for [address, address+len) in the next round; at most ATTACH_IMAGE_MAX_BYTES in all.
 *  Ranges may overlap. @return 0, or -1 with FAILURE_LIMIT or FAILURE_NO_MEMORY. */
int attach_image_want(struct attach_image *image, struct remote_addr address, size_t len,
		      struct failure *why);

/** Add bytes that are known already. */
int attach_image_add(struct attach_image *image, struct remote_addr address, const void *bytes,
		     size_t len, struct failure *why);

/** The part of [address, address+len) that one range of the image holds from @p address on.
 *  @return Borrowed bytes, or NULL; *ret_len is what is there, at most @p len. */
const void *attach_image_peek(const struct attach_image *image, struct remote_addr address,
			      size_t len, size_t *ret_len);

/** Put the ranges that are there in order, so that one of many is found as fast as one of few; what
 *  is added later is found, too. It changes nothing else. Allocates where there are more than
 * before, and takes some 100 us for 1000 ranges: no thread should stand meanwhile. */
void attach_image_order(struct attach_image *image);

/** Reader over the image's ranges; reads may span adjoining ranges. */
const struct attach_reader *attach_image_reader(struct attach_image *image);

/** Reader that looks into the image first and then into @p behind (may be NULL), keeping what it
 *  fetched there in the image if @p keep, as far as there is room. Borrowed; one per image. */
const struct attach_reader *attach_image_reader_behind(struct attach_image *image,
						       const struct attach_reader *behind,
						       bool keep);

/** The next range that was asked for and is not there, or not all of it. @param at 0 at first.
 *  @return false behind the last. */
bool attach_image_next_missing(const struct attach_image *image, size_t *at, uint64_t *ret_start,
			       uint64_t *ret_size);

/** A named text or number block kept with an image, such as the target's maps. */
int attach_image_set_note(struct attach_image *image, const char *name, const void *bytes,
			  size_t len, struct failure *why);
const void *attach_image_note(const struct attach_image *image, const char *name, size_t *ret_len);

/** Write an image to a new file at @p path, which only its owner may read. Errors: FAILURE_SYSTEM.
 */
int attach_image_save(const struct attach_image *image, const char *path, struct failure *why);

/** Read an image from hostile bytes. FAILURE_INVALID has the byte offset in `address`; an image
 *  that another architecture wrote is refused. */
int attach_image_load(const void *bytes, size_t len, struct attach_image **ret_image,
		      struct failure *why);
int attach_image_load_file(const char *path, struct attach_image **ret_image, struct failure *why);

/** Sizes that bound every image, so that hostile or huge targets cost a bounded copy. */
#define ATTACH_IMAGE_MAX_BYTES ((size_t)16 << 20)

/* ---- The stop --------------------------------------------------------------------------- */

/**
 * Read the registers of a thread that is traced by us and stands.
 *
 * Stopped window: yes, one system call.
 * @param why FAILURE_GONE, FAILURE_INVALID (a 32-bit process).
 * Source: ptrace(2), PTRACE_GETREGSET; struct user_regs_struct of <sys/user.h>.
 */
int attach_read_registers(pid_t tid, struct attach_registers *ret_registers, struct failure *why);

/**
 * Whether the stop that took @p regs woke the thread from a system call, as happens to one that
 * goes to sleep between our look and the stop. The kernel restarts most calls by itself, and others
 * as the stop has asked for; on AArch64 some report EINTR.
 *
 * Stopped window: no, it may read code.
 * Source: linux/errno.h; Linux 6.1, arch/x86/kernel/signal.c, arch_do_signal_or_restart(), and
 * arch/arm64/kernel/signal.c, do_signal().
 */
bool attach_was_interrupted(const struct attach_reader *reader,
			    const struct attach_registers *regs);

/**
 * Decides what a stop reads. Called with the registers filled and the ranges of the earlier rounds
 * read; asks for more with attach_image_want(). Stopped window: yes, so it only computes addresses.
 * @return true while another round is wanted.
 */
struct attach_planner {
	bool (*plan)(void *context, struct attach_image *image, unsigned round);
	void *context;
	bool rehearses; /**< May be called before the stop as well, with the registers of the last.
			 */
};

/** Times of one stop in nanoseconds. */
struct attach_timing {
	uint64_t stopped_ns; /**< From before the interrupt to after the detach: what the target may
				feel at most. Not the time that the caller is without a processor
				in the detach, as most often the target has it then. */
	uint64_t stop_ns;    /**< Part of it until the thread stood. */
	uint64_t waited_ns;  /**< Part of that in which it waited for a processor. */
};

/**
 * Stop one thread, fill the image, let it go.
 *
 * Seize, interrupt, wait (bounded spin, then block), registers, bulk reads, detach. Nobody is
 * attached afterwards, whatever the result. Where the planner rehearses, the plan and the reads are
 * done once before, while the thread runs: half of what they take in a stop is cache misses. Not so
 * within 2 ms of when it stood last.
 * Signals that arrive while the thread stands are delivered by the detach; a thread in a group stop
 * stays in it. A thread that does not stand in time, because it waits for a processor, stays under
 * the interrupt (stop_pending): SIGCHLD tells when it stands, and the next call goes on where this
 * one ended. Where that does not come within 10 ms of when it stands, a handler of SIGRTMIN lets go
 * of it, and the call fails with FAILURE_TIMEOUT. Stopped window: the middle part.
 * @param ret_timing Set on success, and with FAILURE_UNSCHEDULED.
 * @param why FAILURE_GONE, FAILURE_BUSY, FAILURE_DENIED, FAILURE_TIMEOUT, FAILURE_FAULT;
 * FAILURE_UNSCHEDULED where thread->tick_ns is set and it waited for a processor then.
 * Source: ptrace(2), process_vm_readv(2).
 */
int attach_capture(struct attach_process *process, struct attach_thread *thread,
		   const struct attach_planner *planner, struct attach_image *image,
		   struct attach_timing *ret_timing, struct failure *why);

/**
 * Fill the image of a thread that sleeps, without waking it: what the planner asks for is read as
 * it lies, and the thread is looked at again afterwards, so that all of it is of one moment as far
 * as no other thread writes there. Of the registers only pc and sp are known; the others are 0.
 * Stopped window: no.
 * @param ret_sleep Set on success.
 * @param why FAILURE_TIMEOUT where it runs, or ran meanwhile; FAILURE_GONE; FAILURE_SYSTEM.
 */
int attach_capture_asleep(const struct attach_process *process, struct attach_thread *thread,
			  const struct attach_planner *planner, struct attach_image *image,
			  struct attach_sleep *ret_sleep, struct failure *why);

/**
 * Read the ranges asked for since the last read, with the threads running; one system call for
 * most. A range that cannot be read stays empty. @return 0, or -1 with FAILURE_GONE or
 * FAILURE_SYSTEM.
 */
int attach_process_fetch(const struct attach_process *process, struct attach_image *image,
			 struct failure *why);

/**
 * Read what the scheduler has counted for the thread, in less than 1 us. Stopped window: may be.
 * Keeps the file open in @p thread, until that is freed.
 * @return false where the kernel does not count, or the thread is gone; @p ret_schedule is not set.
 * Source: Linux, Documentation/scheduler/sched-stats.rst, /proc/PID/schedstat.
 */
bool attach_thread_schedule(struct attach_thread *thread, struct attach_schedule *ret_schedule);

/** Whether a thread under an interrupt stands by now, or has ended; reaps nothing. */
bool attach_thread_stands(const struct attach_thread *thread);

/** Let go of a thread that answered an interrupt too late, or reap one that was killed while it
 *  stood (stop_pending). @return 0 once nothing is
 *  pending, -1 while it still is. Never blocks. */
int attach_thread_settle(struct attach_thread *thread);

/* ---- Without a stop --------------------------------------------------------------------- */

/**
 * Copies of threads that run on. At each tick of a thread's processor time the kernel runs a
 * program of ours (BPF) in the timer's interrupt, which copies registers and memory as the thread's
 * plan says. Nobody is stopped, traced or woken, and a thread that sleeps has no ticks. Memory that
 * is paged out is left out.
 *
 * Needs Linux 5.17, CAP_BPF and CAP_PERFMON, or root. Stopped window: none; the copy itself takes
 * the thread some microseconds.
 */
struct attach_tap;

/**
 * Load the kernel's side, and try it on the caller. Nothing is mapped yet, so that a child of the
 * caller has no copies.
 * @param rate_hz Ticks a second of processor time.
 * @param why FAILURE_DENIED; FAILURE_LIMIT where the kernel allows too few samples a second, with
 *            what kernel.perf_event_max_sample_rate has to be as the address; FAILURE_SYSTEM with
 *            ENOSYS where ljprof was built without, else with what the kernel says.
 */
int attach_tap_create(unsigned rate_hz, struct attach_tap **ret_tap, struct failure *why);
/** With all its threads: none of them is copied any more. */
void attach_tap_destroy(struct attach_tap *tap);

/** What an event is opened for. */
struct attach_tap_request {
	pid_t pid, tid;
	uint64_t period_ns; /**< Processor time between two ticks. */
	uint64_t cookie;    /**< What the kernel's side knows the thread by. */
};

/** An event of a thread's processor time, and the kernel's side bound to it; not enabled yet. */
struct attach_tap_event {
	int event_fd, link_fd;
};

/** The cookie of an event that is none of a thread's. */
#define ATTACH_TAP_NO_COOKIE UINT64_MAX

/**
 * Open an event with the rights of the caller. Keeps nothing of the thread waiting.
 * @param program_fd attach_tap_program().
 * @param ret_event Release with attach_tap_close_event().
 * @param why FAILURE_GONE, FAILURE_DENIED, FAILURE_SYSTEM. @return 0 or -1.
 * Source: perf_event_open(2); Linux v5.15, kernel/bpf/syscall.c, bpf_perf_link_attach().
 */
int attach_tap_open_event(int program_fd, const struct attach_tap_request *request,
			  struct attach_tap_event *ret_event, struct failure *why);
/** Its thread has no ticks any more, unless another process has descriptors of it too. */
void attach_tap_close_event(const struct attach_tap_event *event);

/** What came of a request; the event is open where why.kind is FAILURE_NONE. */
struct attach_tap_answer {
	uint64_t cookie; /**< Of the request. */
	struct attach_tap_event event;
	struct failure why;
};

/** Who opens events for a tap, where not its own process does: many may be asked for before the
 * first one is there. */
struct attach_tap_opener {
	/** Ask for an event; does not wait. @param why FAILURE_TIMEOUT: too many are asked for, and
	 *  it is to be asked for again later. FAILURE_SYSTEM. @return 0 or -1. */
	int (*ask)(void *context, const struct attach_tap_request *request, struct failure *why);
	/** The next answer. Waits for it up to a time of CLOCK_MONOTONIC.
	 *  @param ret_answer Its event is the caller's.
	 *  @return 1; 0 where there is none yet; -1, with @p why, where none will come. */
	int (*take)(void *context, uint64_t until_ns, struct attach_tap_answer *ret_answer,
		    struct failure *why);
	void *context;
};

/** The program that runs at each tick. Borrowed. */
int attach_tap_program(const struct attach_tap *tap);

/** Map what the kernel's side shares, once, before threads are added; until then there are no
 * copies.
 *  @param opener Copied; NULL: this process opens events itself.
 *  @param why FAILURE_NO_MEMORY, FAILURE_SYSTEM. @return 0 or -1. */
int attach_tap_begin(struct attach_tap *tap, const struct attach_tap_opener *opener,
		     struct failure *why);

/**
 * Copy a thread from now on, for the first time after a random part of the period. It runs on
 * meanwhile, and is neither stopped nor woken. Does not wait: with an opener the event is asked
 * for, and the copies begin with attach_tap_take_events().
 * @param context What take() is given for it.
 * A copy takes some microseconds, and ends after a millisecond or the plan's budget, as interrupts
 * of the processor wait for it.
 * @param first The plan to begin with; its cookie, counts and other times do not matter.
 * @param ret_plan Borrowed until attach_tap_remove(); to be changed at any time.
 * @param why FAILURE_GONE, FAILURE_DENIED, FAILURE_LIMIT, FAILURE_SYSTEM; FAILURE_TIMEOUT: the
 *            opener is asked for too many already, and this one is to be added later.
 */
int attach_tap_add(struct attach_tap *tap, pid_t pid, pid_t tid, void *context,
		   const struct attach_tap_plan *first, struct attach_tap_plan **ret_plan,
		   struct failure *why);

/** A thread has no event, and is to be removed. @param thread The context of attach_tap_add().
 *  @param why As there; FAILURE_TIMEOUT: nothing came of it within a second. */
typedef void attach_tap_refused(void *context, void *thread, const struct failure *why);

/** Begin the copies of threads whose events are there by now. Waits for those that are not up to
 *  a time of CLOCK_MONOTONIC; 0: not at all. @return How many are still asked for. */
size_t attach_tap_take_events(struct attach_tap *tap, uint64_t until_ns,
			      attach_tap_refused *refused, void *context);

/** Copy it no more; copies that were not taken are forgotten. */
void attach_tap_remove(struct attach_tap *tap, struct attach_tap_plan *plan);

/** Make no more copies of the threads that are there; those that were made stay to be drained. No
 *  thread needs to be stopped. */
void attach_tap_end(struct attach_tap *tap);

/** The table of prototypes that need not be copied whole, ATTACH_TAP_KNOWN keys at their places:
 *  attach_tap_known_key(). Borrowed; all 0 at first. */
uint64_t *attach_tap_known(struct attach_tap *tap);

/** How a copy was made. */
struct attach_tap_timing {
	uint64_t time_ns; /**< Of the tick, by CLOCK_MONOTONIC. */
	uint64_t took_ns; /**< What the thread waited for it, but for the interrupt itself. */
	uint64_t lost;	  /**< Ticks of the thread before this one for which there was no room. */
	uint32_t changed; /**< Ticks that are lost behind it, as its timer was changed. */
	/** It may lack the end of a stack, a coroutine or a function: there are bounds. */
	bool is_cut;
	/** The same, as its time was over: by chance, where the machine was held up. */
	bool is_late;
};

/** Takes a copy. @param thread The context of attach_tap_add(). @return false: the copies behind
 *  this one stay for the next time. */
typedef bool attach_tap_take(void *context, void *thread, const struct attach_tap_timing *timing);

/**
 * Take all copies that were made since the last time, in the order of their ticks; most often none
 * that are made meanwhile.
 * @param image Holds each of them in turn.
 * @return false where @p take did.
 */
bool attach_tap_drain(struct attach_tap *tap, struct attach_image *image, attach_tap_take *take,
		      void *context);

/** Whether the last drain found more than half of the room full. */
bool attach_tap_is_filling(const struct attach_tap *tap);

/** Whether the kernel allows too few samples a second by now, as it was seen with the last copies:
 *  it looks every thousand ticks. Ticks are lost then that no plan counts. */
bool attach_tap_is_slowed(const struct attach_tap *tap);

/* ---- The whole process ------------------------------------------------------------------ */

/**
 * A large copy of memory: ranges of a process, read in one go while it is held.
 *
 * An image is for what one stop reads; this is for a heap. All room is taken before the hold, so
 * that reading costs nothing but reading.
 */
struct attach_copy;

/** @param max_bytes Of all ranges; more are refused. @return NULL when out of memory. */
struct attach_copy *attach_copy_create(size_t max_bytes);
void attach_copy_destroy(struct attach_copy *copy);

/**
 * Ask for [start, end); what is asked for first is read first. Ranges must not overlap.
 * @param why FAILURE_LIMIT (only what has room is wanted then), FAILURE_NO_MEMORY.
 * @return 0 or -1.
 */
int attach_copy_want(struct attach_copy *copy, uint64_t start, uint64_t end, struct failure *why);

/** Bytes that were read. */
size_t attach_copy_bytes(const struct attach_copy *copy);

/** Reader over what was read; FAILURE_FAULT elsewhere. Borrowed. */
const struct attach_reader *attach_copy_reader(struct attach_copy *copy);

/**
 * A reader that reads whole pages of another one, keeps some for a while, and notes which: what a
 * look over a process that runs has touched is what to copy of it.
 */
struct attach_pages;

enum { ATTACH_PAGE_BYTES = 4096 };

/** @param behind Borrowed. @param max_pages Noted at most; reads of others fail with FAILURE_LIMIT.
 *  @return NULL when out of memory. */
struct attach_pages *attach_pages_create(const struct attach_reader *behind, size_t max_pages);
void attach_pages_destroy(struct attach_pages *pages);
const struct attach_reader *attach_pages_reader(struct attach_pages *pages);

/** Forget what was kept of pages, which is read anew then; what was noted stays. */
void attach_pages_forget(struct attach_pages *pages);

/** Note the pages of [start, end) without reading them. @return false where there is no room. */
bool attach_pages_note(struct attach_pages *pages, uint64_t start, uint64_t end);

/** Numbers of all pages noted, ascending; borrowed until the next read or note. NULL when out of
 *  memory, or there is none. */
const uint64_t *attach_pages_list(struct attach_pages *pages, size_t *ret_count);

/** A thread during a hold. */
struct attach_held_thread {
	pid_t tid;
	bool stands;			   /**< Stopped by us: all registers are known. */
	bool is_asleep;			   /**< Not stopped, as it slept. */
	int64_t syscall;		   /**< In which it is asleep; -1: in none. */
	bool woke;			   /**< Was asleep, and ran before all was copied. */
	bool is_unknown;		   /**< Ran on: it did not stand in time. */
	uint64_t sp, pc;		   /**< Unless unknown. */
	struct attach_registers registers; /**< Where it stands. */
};

/** What became of a hold. */
struct attach_hold {
	struct attach_held_thread *threads;
	size_t thread_count;
	size_t stood; /**< Threads that were stopped. */
	size_t woken; /**< Threads that ran meanwhile, as they woke or did not stand in time. */
	uint64_t pause_ns; /**< From when the first thread stood to the release of the last; 0 where
				none had to be stopped. */
	bool is_full;	   /**< There were more threads than can be held: they ran on. */
	bool is_cut;	   /**< Time was over, or the hold ended early: not all was copied. */
	size_t unread;	   /**< Ranges of which parts could not be read: unmapped meanwhile. */
};

/**
 * Stop all running threads of a process, copy memory, let all go.
 *
 * Threads that are blocked are not interrupted, which would end their system calls with EINTR; they
 * may wake, which is noticed: they are stopped then, and counted. What is held is held by a process
 * of its own that a timer ends at @p max_pause_ns, and our end ends it too: the kernel then lets
 * all threads run, with the signals that came meanwhile. So nothing that happens to us or to the
 * copying makes the pause longer. A thread in a group stop stays in it.
 * @param max_pause_ns  From when the first thread stands; at least 1 ms. Four fifths are for
 * copying.
 * @param copy     Its ranges are read, those asked for first first; anew each time.
 * @param ret_hold Set on success; release with attach_hold_deinit(). On failure its pause alone is
 * set, as threads may have stood nevertheless.
 * @param why FAILURE_GONE, FAILURE_DENIED, FAILURE_BUSY, FAILURE_TIMEOUT (the time was over before
 * the threads stood), FAILURE_NO_MEMORY, FAILURE_SYSTEM.
 * @return 0, also where the copy is cut; or -1.
 * Source: ptrace(2); setitimer(2); Linux 6.1, kernel/ptrace.c, exit_ptrace(), __ptrace_unlink().
 */
int attach_hold(struct attach_process *process, uint64_t max_pause_ns, struct attach_copy *copy,
		struct attach_hold *ret_hold, struct failure *why);
void attach_hold_deinit(struct attach_hold *hold);

#endif
