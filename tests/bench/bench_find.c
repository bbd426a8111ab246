/* SPDX-License-Identifier: MIT */
/*
 * How long it takes to find a VM in a process with a large heap. The hard case of it: the VM's
 * memory is the program's own heap, behind everything else in it.
 */
#include "tests/bench/bench.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	HEAP_MIB = 2048,
	/* The heap, its page tables, and what else runs. */
	AVAILABLE_MIN_MIB = 4096,
	ROUNDS = 3,
	READY_MAX_MS = 60 * 1000,
	RANGES_MAX = 4096,
	PIECE_BYTES = 1 << 20,
};

/** Resident memory that a search would read. */
struct ranges {
	struct {
		uint64_t start, end;
	} items[RANGES_MAX];
	size_t count;
};

unsigned long bench_available_mib(void)
{
	FILE *file = fopen("/proc/meminfo", "r");
	unsigned long kib = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %lu", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib / 1024;
}

/** A process with a large heap, and a socket that leads to its input and output. */
struct find_target {
	pid_t pid;
	int fd;
};

static void end_target(struct find_target *target)
{
	bench_end_target(target->pid);
	close(target->fd);
}

/* Until it has done what it was started for, or told to do. */
static void wait_for(struct find_target *target)
{
	struct pollfd ready = { .fd = target->fd, .events = POLLIN };
	char byte;

	if (poll(&ready, 1, READY_MAX_MS) == 1 && read(target->fd, &byte, 1) == 1)
		return;
	fprintf(stderr, "bench: find_target does not get ready\n");
	end_target(target);
	exit(1);
}

static void go_on(struct find_target *target)
{
	if (write(target->fd, ".", 1) != 1)
		perror("bench: find_target");
	wait_for(target);
}

static struct find_target start_target(void)
{
	struct find_target target;
	char mib[16];
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
		exit(1);
	snprintf(mib, sizeof(mib), "%d", HEAP_MIB);
	target = (struct find_target){ .pid = fork(), .fd = fds[0] };
	if (target.pid < 0)
		exit(1);
	if (target.pid == 0) {
		dup2(fds[1], STDIN_FILENO);
		dup2(fds[1], STDOUT_FILENO);
		execl(BENCH_FIND_TARGET, "find_target", mib, BENCH_LUA, "600", (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	wait_for(&target);
	return target;
}

/* ---- By scan ---------------------------------------------------------------------------- */

static bool add_range(void *context, uint64_t start, uint64_t end)
{
	struct ranges *ranges = context;

	if (ranges->count == RANGES_MAX)
		return false;
	ranges->items[ranges->count].start = start;
	ranges->items[ranges->count++].end = end;
	return true;
}

static void list_ranges(const struct daemon_target *target, struct ranges *ret_ranges)
{
	struct failure why;

	ret_ranges->count = 0;
	for (size_t i = 0; i < symbols_space_count(target->space); i++) {
		const struct symbols_mapping *mapping = symbols_space_get(target->space, i);

		if (mapping->readable && mapping->writable && !mapping->inode)
			attach_process_each_resident(target->process, mapping->start, mapping->end,
						     add_range, ret_ranges, &why);
	}
}

static uint64_t bytes_of(const struct ranges *ranges)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < ranges->count; i++)
		sum += ranges->items[i].end - ranges->items[i].start;
	return sum;
}

/* The plainest way to have all these bytes here once. @return how long it took. */
static uint64_t read_plainly(pid_t pid, const struct ranges *ranges, uint8_t *piece)
{
	uint64_t begin_ns = bench_now_ns();

	for (size_t i = 0; i < ranges->count; i++)
		for (uint64_t at = ranges->items[i].start; at < ranges->items[i].end;
		     at += PIECE_BYTES) {
			uint64_t rest = ranges->items[i].end - at;
			size_t len = rest < PIECE_BYTES ? (size_t)rest : PIECE_BYTES;
			struct iovec local = { piece, len }, remote = { NULL, len };

			memcpy(&remote.iov_base, &at, sizeof(at));
			if (process_vm_readv(pid, &local, 1, &remote, 1, 0) != (ssize_t)len)
				return 0;
		}
	return bench_now_ns() - begin_ns;
}

/** One look at a process that nothing is known of. */
struct look {
	bool opened, found;
	uint64_t whole_ns, scan_ns; /* from the start; of the search for a VM alone */
	uint64_t plain_ns, bytes;   /* the same memory, read plainly */
};

static void look_at(pid_t pid, uint8_t *piece, struct look *ret_look)
{
	struct daemon_target *target;
	static struct ranges ranges;
	uint64_t begin_ns = bench_now_ns(), scan_ns;
	struct failure why;

	*ret_look = (struct look){ 0 };
	if (bench_open_target(pid, &target, &why) != 0)
		return;
	if (luastate_has_interpreter(target->lua)) {
		scan_ns = bench_now_ns();
		ret_look->found = target_find_vm(target, &why) == 0;
		ret_look->whole_ns = bench_now_ns() - begin_ns;
		ret_look->scan_ns = bench_now_ns() - scan_ns;
		list_ranges(target, &ranges);
		ret_look->plain_ns = read_plainly(pid, &ranges, piece);
		ret_look->bytes = bytes_of(&ranges);
		ret_look->opened = ret_look->plain_ns > 0;
	}
	bench_close_target(target);
}

static void find_sleeping(pid_t pid, uint8_t *piece)
{
	const char *what = "VM found in 2 GiB of heap by scan, with nothing on a stack";
	uint64_t whole_ns[ROUNDS];
	bool ok = true;
	double whole;

	for (size_t i = 0; i < ROUNDS; i++) {
		struct look look;

		look_at(pid, piece, &look);
		whole_ns[i] = look.whole_ns;
		ok = ok && look.opened && look.found;
	}
	whole = (double)bench_quantile(whole_ns, ROUNDS, 0.5) / 1e9;
	if (ok)
		bench_result(what, "<= 1.5 s", whole <= 1.5, "%.2f s median of %d", whole, ROUNDS);
	else
		bench_result(what, "<= 1.5 s", false, "not found");
}

static void search_in_vain(pid_t pid, uint8_t *piece)
{
	const char *what = "speed of a scan that finds nothing, ratio to plain process_vm_readv";
	uint64_t scan_ns[ROUNDS], plain_ns[ROUNDS];
	double scan, plain;
	struct look look;
	bool ok = true;

	for (size_t i = 0; i < ROUNDS; i++) {
		look_at(pid, piece, &look);
		scan_ns[i] = look.scan_ns;
		plain_ns[i] = look.plain_ns;
		ok = ok && look.opened && !look.found && look.bytes >> 20 >= HEAP_MIB;
	}
	/* Bytes in a nanosecond are GB in a second. */
	scan = (double)look.bytes / (double)bench_quantile(scan_ns, ROUNDS, 0.5);
	plain = (double)look.bytes / (double)bench_quantile(plain_ns, ROUNDS, 0.5);
	if (ok)
		bench_result(what, ">= 0.5", scan >= 0.5 * plain,
			     "%.2f (%.2f GB/s to %.2f GB/s, %.2f GiB, medians of %d)", scan / plain,
			     scan, plain, (double)look.bytes / (1 << 30), ROUNDS);
	else
		bench_result(what, ">= 0.5", false, "not measured");
}

/* ---- Where Lua runs --------------------------------------------------------------------- */

static void find_running(pid_t pid)
{
	const char *what = "VM found in 2 GiB of heap where Lua runs (whole process of ljrecord)";
	uint64_t median_ns = bench_first_sample_ns(pid, "stop", ROUNDS);

	if (median_ns != UINT64_MAX)
		bench_result(what, "<= 150 ms", median_ns <= 150000000u, "%.1f ms median of %d",
			     (double)median_ns / 1e6, ROUNDS);
	else
		bench_result(what, "<= 150 ms", false, "no sample");
}

void bench_find(void)
{
	const char *what = "VM found in 2 GiB of heap";
	unsigned long mib = bench_available_mib();
	struct find_target target;
	uint8_t *piece;

	if (!*BENCH_FIND_TARGET) {
		bench_skip(what, "measured", "no headers of LuaJIT to build the target with");
		return;
	}
	if (mib < AVAILABLE_MIN_MIB) {
		bench_skip(what, "measured", "%lu MiB of memory are available, %d are needed", mib,
			   AVAILABLE_MIN_MIB);
		return;
	}
	piece = malloc(PIECE_BYTES);
	if (!piece)
		exit(1);
	memset(piece, 1, PIECE_BYTES); /* its pages are there */
	target = start_target();
	search_in_vain(target.pid, piece);
	go_on(&target);
	find_sleeping(target.pid, piece);
	go_on(&target);
	find_running(target.pid);
	end_target(&target);
	free(piece);
}
