/* SPDX-License-Identifier: MIT */
/* Private to daemon: what do we know of one target, and how are its images decoded? */
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
	TARGET_VM_FRAMES_MAX = LUASTATE_VM_FRAMES_MAX,
	/* Frames kept at each end of a chain that is too long, with a placeholder between the
	 * ends. */
	TARGET_END_FRAMES = 3072,
	TARGET_FRAMES_MAX = 2 * TARGET_END_FRAMES + 1,
};

/** Note "origin" of a saved image: the program that it belongs to. */
struct daemon_image_origin {
	uint64_t pid, main_thread;
};

/** Receives each new function before the first sample that refers to it, and numbers it. Targets
 * with the same listener share its numbers. */
struct target_listener {
	int (*function)(void *context, const struct format_function *function, uint32_t *ret_id,
			struct failure *why);
	void *context;
};

/** System calls that have names and their own frames: more than any architecture has; x86-64's
 * other ABI begins there. */
enum { TARGET_CALLS_MAX = 512 };

/** Native functions by their start. */
struct target_native;

/** Exits of traces that have their own name. */
struct target_exit;

/** Placeholder frames, which say what is missing in a chain. */
enum target_placeholder {
	TARGET_PLACEHOLDER_GAP, /* frames are missing: code without unwind information */
	TARGET_PLACEHOLDER_CUT, /* frames were left out: the chain is too long */
	/* frames may be missing: a sleeping thread's registers are unknown */
	TARGET_PLACEHOLDER_UNKNOWN,
	TARGET_PLACEHOLDER_LOST, /* a coroutine's frames are missing: it was inconsistent */
	TARGET_PLACEHOLDER_COUNT,
};

/** One step of the native walk. */
enum target_step { TARGET_NATIVE, TARGET_VM_FRAME, TARGET_GAP };

struct target_item {
	enum target_step step;
	unsigned vm_frame; /* TARGET_VM_FRAME: index */
	uint32_t function;
	uint64_t pc, start;
};

/** File and offset that an interpreter's code is mapped from. */
struct target_code {
	uint64_t inode, offset;
	uint32_t dev_major, dev_minor;
};

/** When searches for a VM stop, and where the last one stopped. */
struct target_search {
	const volatile sig_atomic_t *stop; /* searches stop when this is set; may be NULL */
	uint64_t end_ns;		   /* and at this time; 0: never */
	bool cut;			   /* stopped before all memory was searched */
	bool all;			   /* continues after the first VM */
	size_t thread;			   /* next one to search */
	/* The mapping to continue with, in the order of the search, and the address in it; all 0:
	 * the first. */
	uint64_t size, start, at;
};

struct daemon_target {
	struct attach_process *process; /* NULL in a replay, and for a core file */
	struct attach_threads *threads;
	struct symbols_core *core; /* borrowed; NULL except for a core file */
	struct symbols_space *space;
	struct symbols_unwinder *unwinder;
	struct luastate *lua;
	uint64_t generation; /* of the maps, when interpreters were searched */
	struct target_native *natives;
	struct target_listener listener;
	struct target_code code[LUASTATE_INTERPRETERS_MAX]; /* of the interpreters, by index */
	uint64_t code_hash; /* of the executable mappings of files */
	uint64_t code_ns;   /* earliest next search for interpreters */
	bool code_due;
	struct target_search search;
	bool skips_debug; /* no debug information: it takes too long */
	/* Pseudo functions: id + 1. */
	uint32_t gc_ids[LUASTATE_GC_PHASES], vm_work_ids[LUASTATE_VM_WORKS];
	struct target_exit *exits;
	uint32_t announcement; /* advances when all functions must be announced again */
	uint32_t placeholder_ids[TARGET_PLACEHOLDER_COUNT], stopped_id, blocked_id,
		call_ids[TARGET_CALLS_MAX];

	/* The image is that of a sleeping thread, so only pc and sp are known. */
	bool lacks_registers;
	/* The image's sleep, for the frame that names it; NULL: none. */
	const struct attach_sleep *sleep;
	unsigned pointer_finds; /* frame pointers searched in it */

	/* State of the sample that is being decoded. */
	struct target_item items[TARGET_NATIVE_MAX];
	size_t item_count;
	struct luastate_vm_frame vm_frames[TARGET_VM_FRAMES_MAX];
	size_t vm_frame_count;
	struct luastate_chain chain;
	struct format_frame frames[TARGET_FRAMES_MAX + 1]; /* one more for the process's frame */
	struct format_frame rotated[TARGET_END_FRAMES];
	uint32_t guests[TARGET_FRAMES_MAX]; /* by frame: index in the Lua chain + 1, or 0 */
	uint32_t rotated_guests[TARGET_END_FRAMES];
	bool is_native[TARGET_FRAMES_MAX]; /* by frame; true for pseudo frames */
	struct format_coroutine coroutines[FORMAT_COROUTINES_MAX];
	uint64_t gap_sp;      /* of the first unwind gap in anonymous memory; 0: none */
	uint64_t unmapped_pc; /* of the first unwind gap outside of all known maps; 0: none */
	size_t work;	      /* index of the VM work; SIZE_MAX: none */
	uint64_t native_ns, stack_top;
	bool is_stack_cut; /* a walk reached memory that was not copied, or a limit */
};

/** Open a process as attach_process_open() does. If another recorder traces it, wait up to half a
 * second for a time between its ticks. */
int target_open_process(pid_t pid, struct attach_process **ret_process, struct failure *why);

/** Which end follows from a failure to open a process. */
enum daemon_end target_end_of_failure(const struct failure *why);

/** @param process Borrowed until destroy; NULL in a replay. */
int target_create(struct attach_process *process, const struct target_listener *listener,
		  struct daemon_target **ret_target, struct failure *why);
void target_destroy(struct daemon_target *target);

/**
 * Create a target for a core file, with its space and interpreters.
 * @param core Borrowed until destroy.
 * @param sysroot As for symbols_core_create_space().
 */
int target_create_core(struct symbols_core *core, const char *sysroot,
		       const struct target_listener *listener, struct daemon_target **ret_target,
		       struct failure *why);

/** Reads all memory of a process or a core file; NULL in a replay. */
const struct attach_reader *target_reader(const struct daemon_target *target);

/** Refresh maps and threads. While no interpreter is known, search new code for one. */
int target_refresh(struct daemon_target *target, struct failure *why);
/** Refresh only the maps, not the threads. */
int target_refresh_maps(struct daemon_target *target, struct failure *why);

/** Whether code was mapped or unmapped since interpreters were searched, and another search is due;
 * searches use at most 1/20 of the time. */
bool target_has_new_code(const struct daemon_target *target, uint64_t now_ns);

/** Find interpreters in new code, and drop those that are gone; the others stay unchanged. Needs
 * some milliseconds, and much longer with debug information, so no stop may be pending. */
void target_take_new_code(struct daemon_target *target);

/** Refresh the list of threads. */
void target_refresh_threads(struct daemon_target *target);

/**
 * Limit later searches, which have no limit at first.
 * @param stop Borrowed, or NULL.
 * @param end_ns By clock_now_ns(); 0: never.
 */
void target_limit_search(struct daemon_target *target, const volatile sig_atomic_t *stop,
			 uint64_t end_ns);

/**
 * Search for a VM: on the threads' stacks, then in writable memory, small mappings first. The next
 * call continues a search that stopped early.
 * @param why FAILURE_NOT_FOUND; FAILURE_TIMEOUT if it stopped early.
 * @return 0 if a VM is known.
 */
int target_find_vm(struct daemon_target *target, struct failure *why);

/**
 * Search memory for all VMs, from where the last search stopped. This also finds a VM that runs
 * only compiled code, so that no thread is ever seen in its interpreter.
 * @return Whether it found new ones.
 */
bool target_find_more_vms(struct daemon_target *target);

/** Note where the native walk stopped, if that is anonymous memory: it may be machine code of an
 * unknown VM. */
void target_note_unwind_gap(struct daemon_target *target);

/**
 * Search the thread's stack above the unwind gap, gap_sp, for the VM of that code.
 * @param reader The image of the stop, then the live process.
 * @return The nearest VM, new or known, borrowed; NULL if there is none.
 */
const struct luastate_vm *target_find_gap_vm(struct daemon_target *target,
					     const struct attach_reader *reader,
					     uint64_t stack_limit);

/**
 * Search memory for all VMs, including those in which nothing runs.
 * @return Whether all memory was searched; false if there are too many VMs.
 */
bool target_find_all_vms(struct daemon_target *target);

/** Find the interpreters in the mapped files. */
int target_find_interpreters(struct daemon_target *target, struct failure *why);

/**
 * Decode an image into a sample.
 * @param memory What the stop copied, alone and with the live process behind it.
 * @param ret_sample Its state, frames and fullness are set; frames are valid until the next call.
 */
int target_decode(struct daemon_target *target, struct attach_image *image,
		  const struct luastate_memory *memory, struct format_sample *ret_sample,
		  enum daemon_outcome *ret_outcome, struct failure *why);

/** The native walk of the image that was decoded last. @param sp Of its leaf. */
static inline struct luastate_native_walk target_native_walk(const struct daemon_target *target,
							     enum luastate_reach reach, uint64_t sp)
{
	return (struct luastate_native_walk){ .vm_frames = target->vm_frames,
					      .vm_frame_count = target->vm_frame_count,
					      .top = target->stack_top,
					      .reach = reach,
					      .sp = sp };
}

#endif
