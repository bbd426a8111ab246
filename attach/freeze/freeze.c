/* SPDX-License-Identifier: MIT */
/* How do we copy memory while the freezer (freezer.c) keeps a process frozen? */
#include "attach/freeze/freeze_internal.h"
#include "attach/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/image/bulk_copy.h"
#include "attach/process/process_internal.h"

enum {
	MIN_PAUSE_NS = 1000 * 1000,
	/* Fifths of the pause for stopping and copying; the rest is for letting go. */
	COPY_FIFTHS = 4,
	/* A freezer that neither answers nor ends gets no processor. */
	ANSWER_MS = 10 * 1000,
};

/** A freeze, as the freezer's parent sees it. */
struct parent {
	struct freeze_shared *shared;
	pid_t freezer;
	int end;
};

/* @return the freezer's message; 0: it ended. */
static char hear(const struct parent *parent)
{
	struct pollfd end = { .fd = parent->end, .events = POLLIN };
	char word = 0;
	int ready;

	do {
		ready = poll(&end, 1, ANSWER_MS);
	} while (ready < 0 && errno == EINTR);
	return ready > 0 && read(parent->end, &word, 1) == 1 ? word : 0;
}

static void end_freezer(struct parent *parent)
{
	close(parent->end);
	kill(parent->freezer, SIGKILL);
	while (waitpid(parent->freezer, NULL, 0) < 0 && errno == EINTR)
		;
}

static int start_freezer(struct parent *parent, struct attach_threads *threads,
			 uint64_t max_pause_ns, struct failure *why)
{
	pid_t self = getpid();
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return failure_set_errno(why, errno, 0, "freeze the process");
	parent->freezer = fork();
	if (parent->freezer < 0) {
		int errnum = errno;

		close(ends[0]);
		close(ends[1]);
		return failure_set_errno(why, errnum, 0, "freeze the process");
	}
	if (parent->freezer == 0) {
		close(ends[0]);
		freezer_run(threads, self, max_pause_ns, ends[1], parent->shared);
	}
	close(ends[1]);
	parent->end = ends[0];
	return 0;
}

/* Report why no thread could be stopped. */
static int check_stops(const struct freeze_shared *shared, struct failure *why)
{
	bool any = false;

	for (size_t i = 0; i < shared->count; i++)
		any |= shared->threads[i].seen.is_stopped || shared->threads[i].seen.is_asleep;
	if (any || shared->count == 0)
		return 0;
	if (shared->why.kind != FAILURE_NONE) {
		*why = shared->why;
		return -1;
	}
	return failure_set(why, FAILURE_TIMEOUT, 0, 0, 0, "stop the threads");
}

static int copy_frozen(struct parent *parent, const struct attach_process *process,
		       uint64_t max_pause_ns, struct attach_copy *copy,
		       struct attach_freeze *freeze, struct failure *why)
{
	uint64_t begin_ns;
	char word = FREEZE_DONE;
	int ret;

	if (hear(parent) != FREEZE_STOPPED)
		return failure_set(why, FAILURE_TIMEOUT, 0, process->pid, 0, "stop the threads");
	if (check_stops(parent->shared, why) != 0)
		return -1;
	begin_ns = parent->shared->begin_ns ? parent->shared->begin_ns : clock_now_ns();
	ret = copy_read(copy, process, begin_ns + max_pause_ns / 5 * COPY_FIFTHS, &freeze->unread,
			why);
	freeze->is_truncated = ret > 0;
	/* If the freezer was ended, it let the threads go at an unknown time. */
	if (send(parent->end, &word, 1, MSG_NOSIGNAL) != 1 || hear(parent) != FREEZE_DONE)
		freeze->is_truncated = true;
	return ret < 0 ? -1 : 0;
}

/* Call after the freezer has ended. */
static uint64_t pause_of(const struct freeze_shared *shared, uint64_t ended_ns)
{
	if (!shared->begin_ns)
		return 0;
	return (shared->release_ns ? shared->release_ns : ended_ns) - shared->begin_ns;
}

static int tell(const struct freeze_shared *shared, struct attach_freeze *freeze,
		struct failure *why)
{
	freeze->threads = calloc(shared->count + 1, sizeof(*freeze->threads));
	if (!freeze->threads)
		return failure_set_errno(why, ENOMEM, 0, "freeze the process");
	for (size_t i = 0; i < shared->count; i++) {
		const struct freeze_thread *thread = &shared->threads[i];
		struct attach_frozen_thread *seen;

		if (thread->is_ended)
			continue;
		seen = &freeze->threads[freeze->thread_count++];
		*seen = thread->seen;
		seen->is_unknown = !seen->is_stopped && !seen->is_asleep;
		freeze->stopped_count += seen->is_stopped;
		freeze->woken += seen->woke || seen->is_unknown;
	}
	freeze->woken += shared->is_incomplete;
	freeze->is_full = shared->is_full;
	return 0;
}

static int freeze_process(struct attach_process *process, struct attach_threads *threads,
			  struct freeze_shared *shared, uint64_t max_pause_ns,
			  struct attach_copy *copy, struct attach_freeze *freeze,
			  struct failure *why)
{
	struct parent parent = { .shared = shared };
	int ret;

	if (start_freezer(&parent, threads, max_pause_ns, why) != 0)
		return -1;
	ret = copy_frozen(&parent, process, max_pause_ns, copy, freeze, why);
	end_freezer(&parent);
	freeze->pause_ns = pause_of(shared, clock_now_ns());
	copy_finish(copy);
	return ret == 0 ? tell(shared, freeze, why) : -1;
}

int attach_freeze(struct attach_process *process, uint64_t max_pause_ns, struct attach_copy *copy,
		  struct attach_freeze *ret_freeze, struct failure *why)
{
	struct attach_threads *threads = NULL;
	struct attach_freeze freeze = { 0 };
	struct freeze_shared *shared;
	int ret;

	ret_freeze->pause_ns = 0;
	if (max_pause_ns < MIN_PAUSE_NS)
		max_pause_ns = MIN_PAUSE_NS;
	if (copy_prepare(copy, why) != 0 || attach_threads_create(process, &threads, why) != 0)
		return -1;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED) {
		ret = failure_set_errno(why, errno, 0, "freeze the process");
	} else {
		ret = freeze_process(process, threads, shared, max_pause_ns, copy, &freeze, why);
		munmap(shared, sizeof(*shared));
	}
	attach_threads_destroy(threads);
	if (ret == 0)
		*ret_freeze = freeze;
	else
		ret_freeze->pause_ns = freeze.pause_ns;
	return ret;
}

void attach_freeze_deinit(struct attach_freeze *freeze)
{
	free(freeze->threads);
	*freeze = (struct attach_freeze){ 0 };
}
