/* SPDX-License-Identifier: MIT */
/* Private to daemon: one target and the decoding of its images. */
#ifndef DAEMON_TARGET_H
#define DAEMON_TARGET_H

#include "attach/attach.h"
#include "daemon/daemon.h"
#include "luastate/luastate.h"
#include "symbols/symbols.h"

enum {
	/* Native frames of one chain; the kernel's default 8 MiB stack holds more, but no reader of
	 * a profile follows them. */
	TARGET_NATIVE_MAX = 2048,
	TARGET_CFRAMES_MAX = 512,
	TARGET_FRAMES_MAX = TARGET_NATIVE_MAX + LUASTATE_FRAMES_MAX + 2,
};

/** Note "origin" of a saved image: which program it is of. */
struct daemon_image_origin {
	uint64_t pid, main_thread;
};

/** Receives each new function before the first sample that refers to it. */
struct target_listener {
	int (*function)(void *context, uint32_t id, const struct format_function *function,
			struct failure *why);
	void *context;
};

/** Native functions by their start. */
struct target_native;

/** One step of the native walk: a native frame, or an interpreter's C frame. */
struct target_item {
	bool is_vm;
	unsigned cframe; /* is_vm: index */
	uint32_t function;
	uint64_t pc, start;
};

struct daemon_target {
	struct attach_process *process; /* NULL in a replay */
	struct attach_threads *threads;
	struct symbols_space *space;
	struct symbols_unwinder *unwinder;
	struct luastate *lua;
	uint64_t generation; /* of the maps, when interpreters were looked for */
	struct target_native *natives;
	struct target_listener listener;
	uint32_t next_id;
	uint32_t pseudo_ids[FORMAT_STATE_COUNT]; /* id + 1 */

	/* Of the sample being decoded. */
	struct target_item items[TARGET_NATIVE_MAX];
	size_t item_count;
	struct luastate_cframe cframes[TARGET_CFRAMES_MAX];
	size_t cframe_count;
	struct luastate_chain chain;
	struct format_frame frames[TARGET_FRAMES_MAX];
	bool is_native[TARGET_FRAMES_MAX]; /* by frame; pseudo frames count as such */
	uint64_t native_ns, stack_top;
};

/** Take over @p process. */
int target_create(struct attach_process *process, const struct target_listener *listener,
		  struct daemon_target **ret_target, struct failure *why);
void target_destroy(struct daemon_target *target);

/** Read maps and threads anew; look for interpreters where the maps changed. */
int target_refresh(struct daemon_target *target, struct failure *why);

/** Look for a VM: on the threads' stacks, then in writable memory. @return 0 if one is known. */
int target_find_vm(struct daemon_target *target, struct failure *why);

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
