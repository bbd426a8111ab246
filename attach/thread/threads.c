/* SPDX-License-Identifier: MIT */
/* Which threads has a process, and what do they do, seen without stopping them? */
#include "attach/array.h"
#include "attach/process/process_internal.h"
#include "attach/thread/processor_turns.h"
#include "attach/thread/thread_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	/* Far more than any LuaJIT host runs; bounds what a hostile target makes us allocate. */
	THREADS_MAX = 32768,
};

struct attach_threads {
	struct attach_process *process;
	int task_fd;	/* of /proc/PID/task, whose link count gives the number of threads */
	nlink_t listed; /* the link count at the last listing */
	struct attach_thread **items;
	size_t count, size;
	void (*forget)(void *context, struct attach_thread *thread); /* may be NULL */
	void *context;
};

static void free_thread(const struct attach_threads *threads, struct attach_thread *thread)
{
	if (threads->forget)
		threads->forget(threads->context, thread);
	if (thread->syscall_fd >= 0)
		close(thread->syscall_fd);
	turn_end(thread);
	free(thread);
}

void attach_threads_destroy(struct attach_threads *threads)
{
	if (!threads)
		return;
	for (size_t i = 0; i < threads->count; i++)
		free_thread(threads, threads->items[i]);
	free(threads->items);
	if (threads->task_fd >= 0)
		close(threads->task_fd);
	free(threads);
}

void attach_threads_on_forget(struct attach_threads *threads,
			      void (*forget)(void *context, struct attach_thread *thread),
			      void *context)
{
	threads->forget = forget;
	threads->context = context;
}

static nlink_t count_links(const struct attach_threads *threads)
{
	struct stat status;

	return threads->task_fd >= 0 && fstat(threads->task_fd, &status) == 0 ? status.st_nlink : 0;
}

bool attach_threads_changed(const struct attach_threads *threads)
{
	return count_links(threads) != threads->listed;
}

static int open_syscall_file(pid_t pid, pid_t tid)
{
	char name[32];

	snprintf(name, sizeof(name), "task/%d/syscall", (int)tid);
	return process_open(pid, name, O_RDONLY);
}

static struct attach_thread *find_thread(struct attach_threads *threads, pid_t tid)
{
	for (size_t i = 0; i < threads->count; i++)
		if (threads->items[i]->tid == tid)
			return threads->items[i];
	return NULL;
}

static int add_thread(struct attach_threads *threads, pid_t tid, struct failure *why)
{
	struct attach_thread *thread;
	int fd;

	if (threads->count >= THREADS_MAX)
		return failure_set(why, FAILURE_LIMIT, 0, tid, 0, "follow one more thread");
	if (!ARRAY_RESERVE(threads->items, threads->size, threads->count + 1))
		return failure_set_errno(why, ENOMEM, tid, "follow one more thread");
	fd = open_syscall_file(threads->process->pid, tid);
	if (fd < 0 && (errno == ENOENT || errno == ESRCH))
		return 0; /* the thread has just ended */
	if (fd < 0)
		return failure_set_errno(why, errno, tid, "follow one more thread");
	thread = calloc(1, sizeof(*thread));
	if (!thread) {
		close(fd);
		return failure_set_errno(why, ENOMEM, tid, "follow one more thread");
	}
	thread->tid = tid;
	thread->syscall_fd = fd;
	thread->stack_limit =
		tid == threads->process->pid ? process_stack_start(threads->process) : 0;
	threads->items[threads->count++] = thread;
	return 0;
}

static void drop_ended(struct attach_threads *threads)
{
	size_t kept = 0;

	for (size_t i = 0; i < threads->count; i++) {
		struct attach_thread *thread = threads->items[i];

		/* Reap a thread that we still trace before we drop it. */
		if (attach_thread_state(thread, NULL, NULL) == ATTACH_EXITED &&
		    attach_thread_settle(thread) == 0)
			free_thread(threads, thread);
		else
			threads->items[kept++] = thread;
	}
	threads->count = kept;
}

void attach_threads_note_exec(struct attach_threads *threads)
{
	struct attach_thread *thread = find_thread(threads, threads->process->pid);

	if (thread)
		thread->stack_limit = process_stack_start(threads->process);
}

int attach_threads_refresh(struct attach_threads *threads, struct failure *why)
{
	char path[64];
	struct dirent *entry;
	DIR *dir;
	int ret = 0;

	/* Count before the listing: the next call then notices a thread that starts in between. */
	threads->listed = count_links(threads);
	drop_ended(threads);
	attach_threads_note_exec(threads);
	snprintf(path, sizeof(path), "/proc/%d/task", (int)threads->process->pid);
	dir = opendir(path);
	if (!dir)
		return failure_set_errno(why, errno == ENOENT ? ESRCH : errno,
					 threads->process->pid, "list the threads");
	while (ret == 0 && (entry = readdir(dir)) != NULL) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid > 0 && !find_thread(threads, tid))
			ret = add_thread(threads, tid, why);
	}
	closedir(dir);
	return ret;
}

int attach_threads_create(struct attach_process *process, struct attach_threads **ret_threads,
			  struct failure *why)
{
	struct attach_threads *threads = calloc(1, sizeof(*threads));

	if (!threads)
		return failure_set_errno(why, ENOMEM, process->pid, "list the threads");
	threads->process = process;
	threads->task_fd = process_open(process->pid, "task", O_PATH | O_DIRECTORY);
	if (attach_threads_refresh(threads, why) != 0) {
		attach_threads_destroy(threads);
		return -1;
	}
	*ret_threads = threads;
	return 0;
}

size_t attach_threads_count(const struct attach_threads *threads)
{
	return threads->count;
}

struct attach_thread *attach_threads_get(struct attach_threads *threads, size_t index)
{
	return threads->items[index];
}

/*
 * The file contains "running", or "NUMBER ARGS… SP PC", or "-1 SP PC" for a thread that sleeps
 * outside a system call. We want the first and the last two words. If the file is unreadable
 * although the thread has not ended, we assume that the thread runs; a stop then shows the truth.
 */
enum attach_thread_state process_thread_sleep(const struct attach_thread *thread,
					      struct attach_sleep *ret_sleep)
{
	char text[256], *pc, *sp;
	ssize_t len;

	if (thread->syscall_fd < 0)
		return ATTACH_EXITED;
	do {
		len = pread(thread->syscall_fd, text, sizeof(text) - 1, 0);
	} while (len < 0 && errno == EINTR);
	if (len <= 0)
		return len < 0 && errno != ESRCH ? ATTACH_RUNNING : ATTACH_EXITED;
	text[len] = '\0';
	if (strncmp(text, "running", 7) == 0)
		return ATTACH_RUNNING;
	*ret_sleep = (struct attach_sleep){ .syscall = strtoll(text, NULL, 10) };
	pc = strrchr(text, ' ');
	if (!pc)
		return ATTACH_BLOCKED;
	*pc++ = '\0';
	ret_sleep->pc = strtoull(pc, NULL, 16);
	sp = strrchr(text, ' ');
	if (sp)
		ret_sleep->sp = strtoull(sp + 1, NULL, 16);
	return ATTACH_BLOCKED;
}

enum attach_thread_state attach_thread_state(struct attach_thread *thread, uint64_t *ret_sp,
					     uint64_t *ret_pc)
{
	struct attach_sleep sleep;
	enum attach_thread_state activity = process_thread_sleep(thread, &sleep);

	if (activity == ATTACH_BLOCKED && ret_sp)
		*ret_sp = sleep.sp;
	if (activity == ATTACH_BLOCKED && ret_pc)
		*ret_pc = sleep.pc;
	return activity;
}
