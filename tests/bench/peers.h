/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BENCH_PEERS_H
#define TESTS_BENCH_PEERS_H

/* Profilers that people would use instead of ljrecord, and ljrecord, all used in the same way. */

#include <stdbool.h>
#include <sys/types.h>

/** All files of the programs that are profiled begin so. */
#define PEER_MARKER "bench_works.lua"

enum { PEER_PATH_BYTES = 256 };

/** What one run of a profiler cost and gave; 0: it does not tell. */
struct peer_run {
	double cpu_s;	       /**< Processor time, until its samples can be read by people. */
	double bytes, samples; /**< Of its file; in it. */
	double reported;       /**< Ticks that ljreport prints. */
	double whole;	       /**< Samples whose chain goes down to the program's main(). */
	double packed_bytes;   /**< Of its file where that is compressed. */
	double lua_frames;    /**< With a file and a line or name of the program, in all samples. */
	double rss_mib;	      /**< Peak of its largest process. */
	double first_ms;      /**< From its start to its first sample. */
	double stopped_us[3]; /**< p50, p99 and maximum of how long a sample stops the program, or
				   the kernel copies it. */
};

/** A profiler of a running process. */
struct peer {
	const char *name;
	bool is_sampler; /**< Goes on until a signal ends it; else one look at a process. */
	/** Become the profiler. Never returns. @param rate Samples in a second, as text. */
	void (*exec)(const char *pid, const char *rate, const char *folder);
	/** What its file says, which is removed. @return false where it has none. */
	bool (*digest)(const char *folder, struct peer_run *run);
};

extern const struct peer peer_ljrecord, peer_perf, peer_eu_stack, peer_gdb;
/** peer_ljrecord stops the program; this one has the kernel copy it, as ljrecord does by itself. */
extern const struct peer peer_ljrecord_kernel;
/** ljtop by kernel samples, which prints plain screens. */
extern const struct peer peer_ljtop;
/** No profiler: the kernel's timer of the program's main thread, whose interrupts do nothing. */
extern const struct peer peer_timer;
/** No profiler: at each tick it seizes the program, runs or not, interrupts, looks until it stands,
 *  reads its registers and detaches. Its samples are stops. */
extern const struct peer peer_bare_stop;

/** Whether its program is installed. */
bool peer_is_there(const struct peer *peer);

/** Whether the kernel copies threads for ljrecord, at all rates. */
bool peer_has_copies(void);

/** Start a profiler with no output. @param folder For its file. @return its pid. */
pid_t peer_start(const struct peer *peer, pid_t target, unsigned rate_hz, const char *folder);

/** End a sampler, or wait for the end of another, and remove its file, in any case.
 *  @param ret_run What it cost and gave, or NULL. @return false where it failed. */
bool peer_end(const struct peer *peer, pid_t pid, const char *folder, struct peer_run *ret_run);

/** LuaJIT's own profiler writes a text of its own. @return whether it is there. */
bool peer_digest_jit_p(const char *path, double samples, struct peer_run *run);

#endif
