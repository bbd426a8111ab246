/* SPDX-License-Identifier: MIT */
/* Private to daemon: one target and the decoding of its images. */
#ifndef DAEMON_DECODE_TARGET_H
#define DAEMON_DECODE_TARGET_H

#include "attach/thread.h"
#include "daemon/record.h"
#include "daemon/replay.h"
#include "luastate/luastate.h"
#include "luastate/stack.h"
#include "symbols/core.h"
#include "symbols/unwind.h"

enum {
	/* Native frames of one chain; the kernel's default 8 MiB stack may hold more. */
	TARGET_NATIVE_MAX = 16384,
	TARGET_CFRAMES_MAX = LUASTATE_CFRAMES_MAX,
	/* Frames kept of each end of a chain that is too long, with a mark between them. */
	TARGET_END_FRAMES = 3072,
	TARGET_FRAMES_MAX = 2 * TARGET_END_FRAMES + 1,
};

/** Note "origin" of a saved image: which program it is of. */
struct daemon_image_origin {
	uint64_t pid, main_thread;
};

/** Receives each new function before the first sample that refers to it, and numbers it. Targets
 *  that share a listener share its numbers. */
struct target_listener {
	int (*function)(void *context, const struct format_function *function, uint32_t *ret_id,
			struct failure *why);
	void *context;
};

/** System calls that have a frame of their own name. */
enum { TARGET_CALLS_MAX = 512 };

/** Native functions by their start. */
struct target_native;

/** Exits of traces with a name of their own. */
struct target_exit;

/** Pseudo frames that say why a chain is as it is. */
enum target_placeholder {
	TARGET_PLACEHOLDER_GAP,	    /* frames are missing here: code without unwind information */
	TARGET_PLACEHOLDER_CUT,	    /* frames were left out here: the chain is too long */
	TARGET_PLACEHOLDER_UNKNOWN, /* frames may be missing here: a sleeping thread's registers are
				unknown */
	TARGET_PLACEHOLDER_LOST, /* a coroutine's frames are missing here: it could not be walked */
	TARGET_PLACEHOLDER_COUNT,
};

/** One step of the native walk. */
enum target_step { TARGET_NATIVE, TARGET_CFRAME, TARGET_GAP };

struct target_item {
	enum target_step step;
	unsigned vm_frame; /* TARGET_CFRAME: index */
	uint32_t function;
	uint64_t pc, start;
};

/** From where in which file an interpreter's code is mapped. */
struct target_code {
	uint64_t inode, offset;
	uint32_t dev_major, dev_minor;
};

/** When searches for a VM give way, and where the last one did. */
struct target_search {
	const volatile sig_atomic_t *stop; /* gives way once this is set; may be NULL */
	uint64_t end_ns;		   /* and then; 0: never */
	bool cut;			   /* gave way before all was looked at */
	bool all;			   /* goes on behind the first VM */
	size_t thread;			   /* to look at next */
	/* The mapping to go on with, in the order in which they are searched, and the place in it;
	 * all 0: the first. */
	uint64_t size, start, at;
};

struct daemon_target {
	struct attach_process *process; /* NULL in a replay, and of a core */
	struct attach_threads *threads;
	struct symbols_core *core; /* borrowed; NULL but of a core */
	struct symbols_space *space;
	struct symbols_unwinder *unwinder;
	struct luastate *lua;
	uint64_t generation; /* of the maps, when interpreters were looked for */
	struct target_native *natives;
	struct target_listener listener;
	struct target_code code[LUASTATE_INTERPRETERS_MAX]; /* of the interpreters, by index */
	uint64_t code_hash; /* of the executable mappings of files */
	uint64_t code_ns;   /* not before: to look for interpreters again */
	bool code_due;
	struct target_search search;
	/* Pseudo functions: id + 1. */
	uint32_t gc_ids[LUASTATE_GC_PHASES], vm_work_ids[LUASTATE_ACTIVITIES];
	struct target_exit *exits;
	uint32_t announcement; /* advances when all functions are to be announced anew */
	uint32_t placeholder_ids[TARGET_PLACEHOLDER_COUNT], stopped_id, blocked_id,
		call_ids[TARGET_CALLS_MAX];

	/* Of the image to be decoded: of a thread that sleeps, so that only pc and sp are known. */
	bool lacks_registers;
	/* The sleep it was taken in, for a frame that says so; NULL: in none, or without one. */
	const struct attach_sleep *sleep;
	unsigned pointer_finds; /* frame pointers that were looked for in it */

	/* Of the sample being decoded. */
	struct target_item items[TARGET_NATIVE_MAX];
	size_t item_count;
	struct luastate_vm_frame vm_frames[TARGET_CFRAMES_MAX];
	size_t vm_frame_count;
	struct luastate_chain chain;
	struct format_frame frames[TARGET_FRAMES_MAX + 1]; /* and the process at the root */
	struct format_frame rotated[TARGET_END_FRAMES];
	uint32_t guests[TARGET_FRAMES_MAX]; /* by frame: index in the guest chain + 1, or 0 */
	uint32_t rotated_guests[TARGET_END_FRAMES];
	bool is_native[TARGET_FRAMES_MAX]; /* by frame; pseudo frames count as such */
	struct format_coroutine coroutines[FORMAT_COROUTINES_MAX];
	uint64_t gap_sp; /* of the first gap in anonymous memory; 0: there is none */
	size_t work;	 /* index of the VM's activity; SIZE_MAX: none */
	uint64_t native_ns, stack_top;
	bool is_stack_cut; /* a walk came to where nothing was copied, or to a bound */
};

/** Open a process, also where another recorder is at it: half a second is waited for a moment
 * between its ticks. As attach_process_open(). */
int target_open_process(pid_t pid, struct attach_process **ret_process, struct failure *why);

/** Look for all VMs of a live process, and if there is none once more from the beginning, for 10 s
 * at most. @return Whether all memory was looked at. */
bool target_search_vms(struct daemon_target *target);

/** Tell why no VM of a process was read: @p end is DAEMON_END_NO_VM, DAEMON_END_EARLY or
 *  DAEMON_END_SYSTEM. */
void target_tell_end(const struct daemon_target *target, pid_t pid, enum daemon_end end,
		     char *ret_text, size_t len);

/** How something ends for which a process could not be opened. */
enum daemon_end target_end_of_failure(const struct failure *why);

/** @param process Borrowed until destroy; NULL in a replay. */
int target_create(struct attach_process *process, const struct target_listener *listener,
		  struct daemon_target **ret_target, struct failure *why);
void target_destroy(struct daemon_target *target);

/** A target over a core file: its space, and its interpreters. @param core Borrowed until destroy.
 *  @param sysroot As symbols_core_create_space(). */
int target_create_core(struct symbols_core *core, const char *sysroot,
		       const struct target_listener *listener, struct daemon_target **ret_target,
		       struct failure *why);

/** All memory of a process or of a core; NULL in a replay. */
const struct attach_reader *target_reader(const struct daemon_target *target);

/** Read maps and threads anew; look for interpreters, while none is known, where code was mapped.
 */
int target_refresh(struct daemon_target *target, struct failure *why);
/** The same without its threads: what is known of these stays where it is. */
int target_refresh_maps(struct daemon_target *target, struct failure *why);

/** Whether code was mapped or unmapped since interpreters were found, and it is time to look at it:
 *  looks take a twentieth of the time at most. */
bool target_has_new_code(const struct daemon_target *target, uint64_t now_ns);

/** Find interpreters in that code and drop those that are no longer there; the others stay as they
 *  are. Takes some milliseconds, much more where there is debug information: nothing may be
 * pending. */
void target_take_new_code(struct daemon_target *target);

/** List the threads anew. */
void target_refresh_threads(struct daemon_target *target);

/** Say when searches give way from now on; at first they do not. @param stop Borrowed, or NULL.
 *  @param end_ns By clock_now_ns(); 0: never. */
void target_limit_search(struct daemon_target *target, const volatile sig_atomic_t *stop,
			 uint64_t end_ns);

/**
 * Look for a VM: on the threads' stacks, then in writable memory, small mappings first. A search
 * that gave way is gone on with by the next one.
 * @param why FAILURE_NOT_FOUND; FAILURE_TIMEOUT where it gave way.
 * @return 0 if one is known.
 */
int target_find_vm(struct daemon_target *target, struct failure *why);

/** Look for all VMs in memory, from where the last search gave way. Of one that runs compiled code
 *  only, no thread is seen in the interpreter. @return Whether there are others than before. */
bool target_find_more_vms(struct daemon_target *target);

/** Note where the native walk cannot go on: in anonymous memory, that may be machine code of a VM
 *  that is not known. */
void target_note_unwind_gap(struct daemon_target *target);

/** Look for that VM on the thread's stack above such a gap, gap_sp.
 *  @param reader The image of the stop, with the live process behind it.
 *  @return The nearest one, known before or not, borrowed; NULL where there is none. */
const struct luastate_vm *target_find_gap_vm(struct daemon_target *target,
					     const struct attach_reader *reader,
					     uint64_t stack_limit);

/** Look for all VMs in memory, also those in which nothing runs, and which nobody knows of.
 *  @return Whether all memory was looked at; false also where there are more than can be known. */
bool target_find_all_vms(struct daemon_target *target);

/** Find the interpreters in the mapped files. */
int target_find_interpreters(struct daemon_target *target, struct failure *why);

/**
 * Turn an image into a sample.
 * @param memory What the stop copied, and the same with the live process behind it.
 * @param ret_sample State, frames and fullness are set; frames are valid until the next call.
 */
int target_decode(struct daemon_target *target, struct attach_image *image,
		  const struct luastate_memory *memory, struct format_sample *ret_sample,
		  enum daemon_outcome *ret_outcome, struct failure *why);

#endif
