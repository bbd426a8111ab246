/* SPDX-License-Identifier: MIT */
/* Private to daemon: what does a recording know? */
#ifndef DAEMON_RECORDER_RECORDER_H
#define DAEMON_RECORDER_RECORDER_H

#include "attach/bpf.h"
#include "daemon/decode/target.h"
#include "daemon/recorder/traces.h"
#include "daemon/tick_clock.h"
#include "daemon/writer/writer.h"

enum {
	/* More processes than anyone reads a profile of; limits descriptors and memory. */
	RECORDER_TARGETS_MAX = 2048,
};

/** One process of a recording. */
struct recorder_target {
	struct recorder *recorder;
	pid_t pid;
	struct attach_process *process; /* NULL: we may not read it */
	struct daemon_target *target;	/* NULL: no LuaJIT is known in it yet */
	size_t listed;			/* index in the stats' list, or SIZE_MAX */
	bool awaits_vm;			/* a command that just started */
	bool had_exec;			/* runs another program than at first */
	bool lost_thread;		/* by an exec: the main thread may be another one */
	uint64_t exec_ns;		/* when the last exec was seen */
	/* earliest next read of maps for a sample outside of them */
	uint64_t maps_ns;
	bool has_root;
	uint32_t root; /* function of its root frame */

	uint64_t refresh_ns; /* earliest next refresh of maps and threads */
	uint64_t threads_ns; /* earliest next list of threads */
	/* another thread may have replaced it, with the same number of threads */
	bool thread_ended;
	uint64_t begun_ns;	   /* with a sampler: when new threads were last searched */
	uint64_t search_ns;	   /* earliest next search for a VM in memory */
	uint64_t more_ns;	   /* earliest next search for more VMs in memory */
	uint64_t more_interval_ns; /* grows while searches find none; 0: none was missed yet */
	uint64_t poll_ns;	   /* earliest next probe for LuaJIT in a process without */
	uint64_t poll_interval_ns;
};

struct finder;

/** How samples are taken, as an interface for the rest of a recording. */
struct recorder_sampling {
	/**
	 * Receive the copies made so far, before the recorder forgets their threads. Only with a
	 * sampler.
	 * @return false if the recording ends.
	 */
	bool (*take)(struct recorder *recorder);
	/** The process runs another program: its threads get no more samples for the old one. */
	void (*end_process)(struct recorder_target *of);
	/**
	 * Listener for the end of threads: reports the pending ticks.
	 * @param context A recorder_target.
	 */
	void (*forget)(void *context, struct attach_thread *thread);
};

struct recorder {
	const struct daemon_options *options;
	struct daemon_stats *stats;
	enum daemon_end end;
	char *text; /* the caller's message buffer */
	size_t text_len;

	struct recorder_target **targets; /* living processes, including those without LuaJIT */
	size_t target_count;
	uint32_t weight;   /* of the tick: periods since the previous tick */
	size_t pending;	   /* threads that have not answered an interrupt */
	uint64_t tick_ns;  /* when we woke for this tick */
	bool is_tick_late; /* we woke late for this tick */
	uint64_t woke_ns;  /* when we woke for a thread that had stopped; 0: we did not */
	uint32_t next_function;
	struct finder *finder;
	struct traces *traces; /* index of the stats' list */
	bool was_vain;	       /* a command had no LuaJIT some time after its start */
	bool reported_full;    /* reported: more processes than can be followed */
	/* memory read by a stop, and memory read right after it */
	struct attach_image *image, *after;
	struct stop_copier *stop_copier;
	struct output_file outputs[DAEMON_OUTPUTS_MAX];
	size_t output_count; /* open ones */
	bool writing;	     /* the writer runs */
	struct writer writer;

	const struct recorder_sampling *sampling;
	struct attach_sampler *sampler; /* NULL: threads are stopped for their samples */
	struct opener *opener;		/* with a sampler: has the right to open its events */
	size_t stopped_threads;		/* with a sampler: threads that are stopped nevertheless */
	/* with a sampler, reported: the kernel does not copy a thread */
	bool reported_refused;
	bool reported_slow; /* with a sampler, reported: the kernel leaves out ticks */
	/* with a sampler: run time of new threads, less than a tick, for a later sample */
	uint64_t begun_ns;
	uint64_t unsettled_ns; /* with a sampler: end of the time of frequent drains after news */
	/* with a sampler: end of the time of frequent searches for threads */
	uint64_t new_threads_ns;
	uint64_t after_ns; /* with a sampler: when reading into the image "after" began */
	pid_t after_pid;   /* process of the image "after" */

	struct live_channel *live_channel; /* NULL: a recording, not a live session */

	uint64_t wait_ns;	   /* how long to wait for a process with a VM */
	uint64_t begin_ns, end_ns; /* of the loop; 0 before it */
	uint64_t over_ns;	   /* with a sampler: when the end was first noticed */
	uint64_t flush_ns, lost_ns, image_number;
};

/* ---- Processes -------------------------------------------------------------------------- */

/** Its entry in the list of processes; NULL if the list was full. */
struct daemon_process *recorder_listed(struct recorder *recorder, const struct recorder_target *of);

/**
 * Announce a function and number it; listener of a target.
 * @param context The recorder.
 */
int recorder_announce(void *context, const struct format_function *function, uint32_t *ret_id,
		      struct failure *why);

/** Note the current name and kind of a process for the summary. */
void recorder_note_name(struct recorder *recorder, struct recorder_target *of);
void recorder_note_kind(struct recorder *recorder, struct recorder_target *of,
			enum daemon_process_kind kind);

/** @return Whether @p is_so is true for at least one process. */
bool recorder_any(const struct recorder *recorder, bool (*is_so)(const struct recorder_target *of));
bool entry_is_open(const struct recorder_target *of);
bool entry_has_luajit(const struct recorder_target *of);
bool entry_has_vm(const struct recorder_target *of);

/** Whether exactly one process was requested, and no others can come. */
bool recorder_is_single(const struct recorder *recorder);

/* ---- Samples ---------------------------------------------------------------------------- */

/** Whether the recording has reached a limit; if so, the stats say which. */
bool recorder_is_at_limit(struct recorder *recorder);

/** Pass a sample to the writer, or to the live session if its queue has room. */
int recorder_put_sample(struct recorder *recorder, const struct format_sample *sample,
			struct failure *why);

/* ---- Messages --------------------------------------------------------------------------- */

/** Report a message to the user that does not end the recording. */
void recorder_notice(struct recorder *recorder, const char *text);

/**
 * Set the end and its text.
 * @return -1.
 */
int recorder_end_with(struct recorder *recorder, enum daemon_end end, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * Set the end for a recording without living processes.
 * @param lost The processes run other programs, without LuaJIT.
 */
void recorder_end_all(struct recorder *recorder, bool lost);

#endif
