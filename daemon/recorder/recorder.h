/* SPDX-License-Identifier: MIT */
/* Private to daemon: a recording. */
#ifndef DAEMON_RECORDER_RECORDER_H
#define DAEMON_RECORDER_RECORDER_H

#include "daemon/tick_clock.h"
#include "daemon/targets/finder.h"
#include "daemon/decode/target.h"
#include "daemon/recorder/traces.h"
#include "daemon/writer/writer.h"
#include "attach/bpf.h"

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
	uint64_t begun_ns;   /* with a tap: when threads that had begun were last looked for */
	uint64_t search_ns;  /* not before: for a VM in memory */
	uint64_t more_ns;    /* not before: for more VMs in memory */
	uint64_t more_interval_ns; /* grows while there are none; 0: none was missed yet */
	uint64_t look_ns;	   /* not before: for LuaJIT in a process without */
	uint64_t look_interval_ns;
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
	bool told_full;			    /* that there are more processes than can be followed */
	struct attach_image *image, *after; /* what a stop read, and what was read right after it */
	struct output_file outputs[DAEMON_OUTPUTS_MAX];
	size_t output_count; /* that are open */
	bool writing;	     /* the writer runs */
	struct writer writer;

	struct attach_tap *tap;	 /* NULL: threads are stopped for their samples */
	struct opener *opener;	 /* with a tap: has the right to open its events */
	size_t stopped_threads;	 /* with a tap: those that are stopped all the same */
	bool told_refused;	 /* with a tap: that the kernel does not copy one */
	bool told_slow;		 /* with a tap: that the kernel leaves out ticks */
	uint64_t begun_ns;	 /* with a tap: less than a tick, of threads that had begun */
	uint64_t unsettled_ns;	 /* with a tap: until then something new is learned */
	uint64_t new_threads_ns; /* with a tap: until then new threads are looked for often */
	uint64_t after_ns;	 /* with a tap: when reading into the image "after" began */
	pid_t after_pid;	 /* and of which process */

	struct feed *feed; /* NULL: a recording, not a watch */

	uint64_t wait_ns;	   /* until when a process with a VM is waited for */
	uint64_t begin_ns, end_ns; /* of the loop; 0 before it */
	uint64_t over_ns;	   /* with a tap: when it was first seen to be over */
	uint64_t flush_ns, lost_ns, image_number;
};

/* ---- Processes -------------------------------------------------------------------------- */

/** Open the processes that were asked for. @return 0, or -1 with the end and its text set. */
int recorder_open_processes(struct recorder *recorder);

/** Find a VM in one of them. @return 0, or -1 with the end and its text set. */
int recorder_find_vms(struct recorder *recorder);

/** Look at those processes anew for which it is time, and for new ones. @return false where the
 *  recording ends. */
bool recorder_refresh(struct recorder *recorder, uint64_t now_ns);

/** Let go of all of them. */
void recorder_close_processes(struct recorder *recorder);

/** Give up on one process. */
void recorder_deny(struct recorder *recorder, struct recorder_target *of,
		   const struct failure *why);

/** Its entry in the list of processes; NULL where that was full. */
struct daemon_process *recorder_listed(struct recorder *recorder, const struct recorder_target *of);

/**
 * A thread is in memory that no map of its process shows: look at once whether it runs another
 * program, or has mapped something, so that its sample is taken for what it is. Reads /proc, seldom
 * enough; no thread stands meanwhile.
 * @param tid The thread's. @param pc, sp Its registers.
 * @return Whether it runs another program, so that nothing that was known holds.
 */
bool recorder_follow_maps(struct recorder *recorder, struct recorder_target *of, pid_t tid,
			  uint64_t pc, uint64_t sp);

/** Have maps and threads read anew before long. */
void recorder_refresh_soon(struct recorder_target *of, uint64_t now_ns);

/** Search the process's memory for a VM, if none is known and the last search was not just now. */
void recorder_search_vm(struct recorder *recorder, struct recorder_target *of, uint64_t now_ns);

/** Search it for more VMs than are known, where code was met that may be one's: at first one second
 *  after that, then once a second, ever more rarely where there are none. */
void recorder_search_more(struct recorder *recorder, struct recorder_target *of, uint64_t now_ns);

/** Announce a function and number it; a target's listener. @param context The recorder. */
int recorder_announce(void *context, const struct format_function *function, uint32_t *ret_id,
		      struct failure *why);

/* ---- Samples ---------------------------------------------------------------------------- */

/** Sample each thread of interest once. @return false where the recording ends. */
bool recorder_tick(struct recorder *recorder);

/** List a process's threads anew where there seem to be others. @return Whether the list is that of
 *  now: listing takes a part of our time at most. */
bool recorder_list_threads(struct recorder_target *of);

/** Whether one of the recording's limits is reached, which the stats then tell. */
bool recorder_is_at_limit(struct recorder *recorder);

/** Sample the threads that stand by now though they did not when they were asked to. @return false
 *  where the recording ends. */
bool recorder_take_pending(struct recorder *recorder);

/** Find a VM in a process, stopping running threads for a look at their stacks where that is
 *  needed. */
int recorder_find_vm(struct recorder *recorder, struct recorder_target *of, struct failure *why);

/** The last tick is over: tell the outcome of threads that have not stood until now. */
void recorder_end_ticks(struct recorder *recorder);

/** Wait until no thread of the process is under an interrupt of ours. @return whether none is. */
bool recorder_settle(struct recorder_target *of);

/** The same for all processes: before anything that may take longer than a sample. */
void recorder_settle_all(struct recorder *recorder);

/** Hand over a sample: to the writer, or to the watch as long as there is room. */
int recorder_put_sample(struct recorder *recorder, const struct format_sample *sample,
			struct failure *why);

#endif
