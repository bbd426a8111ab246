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

/* ---- Registers -------------------------------------------------------------------------- */

/** DWARF numbers of the registers that other modules name (System V ABI, AMD64, figure 3.36). */
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
};

/** General registers of a stopped thread, indexed by DWARF number. */
struct attach_registers {
	uint64_t r[ATTACH_REG_COUNT];
	int64_t syscall; /**< Number of the system call that the thread is in, or -1. */
};

static inline uint64_t attach_pc(const struct attach_registers *regs)
{
	return regs->r[ATTACH_REG_RIP];
}

static inline uint64_t attach_sp(const struct attach_registers *regs)
{
	return regs->r[ATTACH_REG_RSP];
}

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
void attach_process_close(struct attach_process *process);
pid_t attach_process_pid(const struct attach_process *process);

/** Reader over the live process (process_vm_readv). Borrowed, valid until close. The bytes are
 *  those of a moment while threads run; check what is read. */
const struct attach_reader *attach_process_reader(struct attach_process *process);

/** What has become of a process since attach_process_open() or attach_process_note_exec(). */
enum attach_fate {
	ATTACH_FATE_SAME,
	ATTACH_FATE_EXEC,  /**< Another program runs in it. */
	ATTACH_FATE_ENDED, /**< Gone, or a zombie. */
};

/** Two reads in /proc, about 20 us. Source: proc(5), status and stat. */
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

/* ---- Threads ---------------------------------------------------------------------------- */

/** What a thread is doing, without touching it. Source: proc(5), /proc/PID/task/TID/syscall. */
enum attach_activity {
	ATTACH_RUNNING,
	ATTACH_BLOCKED, /**< In a system call or otherwise asleep: never interrupted. */
	ATTACH_EXITED,
};

struct attach_thread {
	pid_t tid;
	int syscall_fd;	      /**< Kept open: 1.4 us a look. */
	bool stop_pending;    /**< Still ours: an interrupt has not been answered yet, or the
				   thread was killed while it stood. */
	uint64_t stack_limit; /**< Main thread: first address behind its frames; else 0. */
	void *data;	      /**< Free for the caller; NULL at first. */
};

/** Live list of a process's threads, refreshed on request; entries keep their address. */
struct attach_threads;
int attach_threads_create(struct attach_process *process, struct attach_threads **ret_threads,
			  struct failure *why);
/** @param forget Called for a thread that has ended, before its entry goes; may be NULL. */
void attach_threads_destroy(struct attach_threads *threads, void (*forget)(struct attach_thread *));
int attach_threads_refresh(struct attach_threads *threads, void (*forget)(struct attach_thread *),
			   struct failure *why);
size_t attach_threads_count(const struct attach_threads *threads);
struct attach_thread *attach_threads_get(struct attach_threads *threads, size_t index);

/**
 * Look at a thread without stopping it.
 * @param ret_sp,ret_pc Set where blocked; may be NULL.
 */
enum attach_activity attach_thread_activity(struct attach_thread *thread, uint64_t *ret_sp,
					    uint64_t *ret_pc);

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

/** Reader over the image's ranges; reads may span adjoining ranges. */
const struct attach_reader *attach_image_reader(struct attach_image *image);

/** Reader that looks into the image first and then into @p behind (may be NULL), keeping what it
 *  fetched there in the image if @p keep, as far as there is room. Borrowed; one per image. */
const struct attach_reader *attach_image_reader_behind(struct attach_image *image,
						       const struct attach_reader *behind,
						       bool keep);

/** A named text or number block kept with an image, such as the target's maps. */
int attach_image_set_note(struct attach_image *image, const char *name, const void *bytes,
			  size_t len, struct failure *why);
const void *attach_image_note(const struct attach_image *image, const char *name, size_t *ret_len);

/** Write an image to a new file at @p path. Errors: FAILURE_SYSTEM. */
int attach_image_save(const struct attach_image *image, const char *path, struct failure *why);

/** Read an image from hostile bytes. FAILURE_INVALID has the byte offset in `address`. */
int attach_image_load(const void *bytes, size_t len, struct attach_image **ret_image,
		      struct failure *why);
int attach_image_load_file(const char *path, struct attach_image **ret_image, struct failure *why);

/** Sizes that bound every image, so that hostile or huge targets cost a bounded copy. */
#define ATTACH_IMAGE_MAX_BYTES ((size_t)16 << 20)

/* ---- The stop --------------------------------------------------------------------------- */

/**
 * Decides what a stop reads. Called with the registers filled and the ranges of the earlier rounds
 * read; asks for more with attach_image_want(). Stopped window: yes, so it only computes addresses.
 * @return true while another round is wanted.
 */
struct attach_planner {
	bool (*plan)(void *context, struct attach_image *image, unsigned round);
	void *context;
};

/** Times of one stop in nanoseconds. */
struct attach_timing {
	uint64_t stopped_ns; /**< From before the interrupt to after the detach: what the target may
				feel at most. */
	uint64_t stop_ns;    /**< Part of it until the thread stood. */
};

/**
 * Stop one thread, fill the image, let it go.
 *
 * Seize, interrupt, wait (bounded spin, then block), registers, bulk reads, detach. Nobody is
 * attached afterwards, whatever the result. Signals that arrive while the thread stands are
 * delivered by the detach; a thread in a group stop stays in it.
 * Stopped window: the middle part.
 * @param why FAILURE_GONE, FAILURE_BUSY, FAILURE_DENIED, FAILURE_TIMEOUT, FAILURE_FAULT.
 * Source: ptrace(2), process_vm_readv(2).
 */
int attach_capture(struct attach_process *process, struct attach_thread *thread,
		   const struct attach_planner *planner, struct attach_image *image,
		   struct attach_timing *ret_timing, struct failure *why);

/**
 * Read the ranges asked for since the last read, with the threads running; one system call for
 * most. A range that cannot be read stays empty. @return 0, or -1 with FAILURE_GONE.
 */
int attach_process_fetch(const struct attach_process *process, struct attach_image *image,
			 struct failure *why);

/** Let go of a thread that answered an interrupt too late, or reap one that was killed while it
 *  stood (stop_pending). @return 0 once nothing is
 *  pending, -1 while it still is. Never blocks. */
int attach_thread_settle(struct attach_thread *thread);

#endif
