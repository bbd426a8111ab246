/* SPDX-License-Identifier: MIT */
/* Private to daemon: a recording. */
#ifndef DAEMON_RECORDER_RECORDER_H
#define DAEMON_RECORDER_RECORDER_H

#include "attach/bpf.h"
#include "daemon/decode/target.h"
#include "daemon/recorder/traces.h"
#include "daemon/tick_clock.h"
#include "daemon/writer/writer.h"

enum {
	/* More processes than anyone reads a profile of; bounds descriptors and memory. */
	RECORDER_TARGETS_MAX = 2048,
};

/** One process of a recording. */
struct recorder_target {
	struct recorder *recorder;
	pid_t pid;
	struct attach_process *process; /* NULL where we may not look into it */
	struct daemon_target *target;	/* NULL while no LuaJIT is known in it */
	size_t listed;			/* index in the stats' list, or SIZE_MAX */
	bool awaits_vm;			/* a command that was just started */
	bool had_exec;			/* runs another program than at first */
	bool lost_thread;		/* by an exec: the main thread may be another one */
	uint64_t exec_ns;		/* when the last one was seen */
	uint64_t maps_ns;		/* not before: at maps, for a sample outside of them */
	bool has_root;
	uint32_t root; /* function of its root frame */

	uint64_t refresh_ns; /* when to look at maps and threads again */
	uint64_t threads_ns; /* not before: at the list of threads */
	bool thread_ended;   /* another may have taken its place in their number */
	uint64_t begun_ns;   /* with a sampler: when threads that had begun were last looked for */
	uint64_t search_ns;  /* not before: for a VM in memory */
	uint64_t more_ns;    /* not before: for more VMs in memory */
	uint64_t more_interval_ns; /* grows while there are none; 0: none was missed yet */
	uint64_t look_ns;	   /* not before: for LuaJIT in a process without */
	uint64_t look_interval_ns;
};

struct finder;

/** How samples are taken, as far as the rest of a recording needs it. */
struct recorder_sampling {
	/** Take the copies that were made so far, as what they are of is about to be forgotten.
	 *  @return false where the recording ends. With a sampler alone. */
	bool (*take)(struct recorder *recorder);
	/** A process runs another program: its threads have no more samples as they were. */
	void (*end_process)(struct recorder_target *of);
	/** A listener for the end of threads: what is still owed is reported. @param context A
	 *  recorder_target. */
	void (*forget)(void *context, struct attach_thread *thread);
};

struct recorder {
	const struct daemon_options *options;
	struct daemon_stats *stats;
	enum daemon_end end;
	char *text; /* the caller's message buffer */
	size_t text_len;

	struct recorder_target **targets; /* living ones; those without LuaJIT too */
	size_t target_count;
	uint32_t weight;   /* of the tick: that many periods have passed since the last */
	size_t pending;	   /* threads under an interrupt that they have not answered */
	uint64_t tick_ns;  /* when we woke for this one */
	bool is_tick_late; /* which was not in time */
	uint64_t woke_ns;  /* when we woke for a thread that stood; 0: we did not */
	uint32_t next_function;
	struct finder *finder;
	struct traces *traces;		    /* index of the stats' list */
	bool was_vain;			    /* a command had no LuaJIT some time after it began */
	bool reported_full;		    /* that there are more processes than can be followed */
	struct attach_image *image, *after; /* what a stop read, and what was read right after it */
	struct output_file outputs[DAEMON_OUTPUTS_MAX];
	size_t output_count; /* that are open */
	bool writing;	     /* the writer runs */
	struct writer writer;

	const struct recorder_sampling *sampling;
	struct attach_sampler *sampler; /* NULL: threads are stopped for their samples */
	struct opener *opener;		/* with a sampler: has the right to open its events */
	size_t stopped_threads;		/* with a sampler: those that are stopped all the same */
	bool reported_refused;		/* with a sampler: that the kernel does not copy one */
	bool reported_slow;		/* with a sampler: that the kernel leaves out ticks */
	uint64_t begun_ns;	 /* with a sampler: less than a tick, of threads that had begun */
	uint64_t unsettled_ns;	 /* with a sampler: until then something new is learned */
	uint64_t new_threads_ns; /* with a sampler: until then new threads are looked for often */
	uint64_t after_ns;	 /* with a sampler: when reading into the image "after" began */
	pid_t after_pid;	 /* and of which process */

	struct live_channel *live_channel; /* NULL: a recording, not a watch */

	uint64_t wait_ns;	   /* until when a process with a VM is waited for */
	uint64_t begin_ns, end_ns; /* of the loop; 0 before it */
	uint64_t over_ns;	   /* with a sampler: when it was first seen to be over */
	uint64_t flush_ns, lost_ns, image_number;
};

/* ---- Processes -------------------------------------------------------------------------- */

/** Its entry in the list of processes; NULL where that was full. */
struct daemon_process *recorder_listed(struct recorder *recorder, const struct recorder_target *of);

/** Announce a function and number it; a target's listener. @param context The recorder. */
int recorder_announce(void *context, const struct format_function *function, uint32_t *ret_id,
		      struct failure *why);

/** Note what a process is called now, and what it is, for the summary. */
void recorder_note_name(struct recorder *recorder, struct recorder_target *of);
void recorder_note_kind(struct recorder *recorder, struct recorder_target *of,
			enum daemon_process_kind kind);

/** @return Whether something is so of one process at least. */
bool recorder_any(const struct recorder *recorder, bool (*is_so)(const struct recorder_target *of));
bool entry_is_open(const struct recorder_target *of);
bool entry_has_luajit(const struct recorder_target *of);
bool entry_has_vm(const struct recorder_target *of);

/** Whether one process was asked for, and no others can come. */
bool recorder_is_single(const struct recorder *recorder);

/* ---- Samples ---------------------------------------------------------------------------- */

/** Whether one of the recording's limits is reached, which the stats then tell. */
bool recorder_is_at_limit(struct recorder *recorder);

/** Hand over a sample: to the writer, or to the watch as long as there is room. */
int recorder_put_sample(struct recorder *recorder, const struct format_sample *sample,
			struct failure *why);

/* ---- Messages --------------------------------------------------------------------------- */

/** Tell the user something that does not end the recording. */
void recorder_notice(struct recorder *recorder, const char *text);

/** Set the end and its text. @return -1. */
int recorder_end_with(struct recorder *recorder, enum daemon_end end, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** The end where no process is left. @param lost They go on without LuaJIT. */
void recorder_end_all(struct recorder *recorder, bool lost);

#endif
