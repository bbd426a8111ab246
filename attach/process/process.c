/* SPDX-License-Identifier: MIT */
/* Which program runs in a process, and may we read it? */
#include "attach/process/process_internal.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

int process_open(pid_t pid, const char *name, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return open(path, flags | O_CLOEXEC);
}

int process_read_file(pid_t pid, const char *name, char *ret_text, size_t size)
{
	int fd = process_open(pid, name, O_RDONLY);
	ssize_t len;

	if (fd < 0)
		return -1;
	do {
		len = read(fd, ret_text, size - 1);
	} while (len < 0 && errno == EINTR);
	close(fd);
	if (len < 0)
		return -1;
	ret_text[len] = '\0';
	return 0;
}

bool process_status_field(const char *status, const char *field, char *ret_value, size_t size)
{
	size_t field_len = strlen(field);

	for (const char *line = status; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, field, field_len) == 0 && line[field_len] == ':') {
			const char *value = line + field_len + 1;
			size_t len;

			value += strspn(value, " \t");
			len = strcspn(value, "\n");
			snprintf(ret_value, size, "%.*s", (int)len, value);
			return true;
		}
		if (*line == '\0')
			break;
	}
	return false;
}

pid_t attach_tracer_of(pid_t pid, pid_t tid)
{
	char name[32], status[4096], value[32];

	snprintf(name, sizeof(name), "task/%d/status", (int)tid);
	if (process_read_file(pid, name, status, sizeof(status)) != 0 ||
	    !process_status_field(status, "TracerPid", value, sizeof(value)))
		return 0;
	return (pid_t)strtol(value, NULL, 10);
}

bool process_thread_is_traced(pid_t tid)
{
	char status[4096], value[32];

	/* /proc/TID exists for each thread, although /proc does not list it. */
	return process_read_file(tid, "status", status, sizeof(status)) != 0 ||
	       !process_status_field(status, "TracerPid", value, sizeof(value)) ||
	       strtol(value, NULL, 10) != 0;
}

bool process_thread_ended(pid_t pid, pid_t tid)
{
	char name[32], status[4096], value[64];

	snprintf(name, sizeof(name), "task/%d/status", (int)tid);
	if (process_read_file(pid, name, status, sizeof(status)) != 0)
		return errno == ENOENT || errno == ESRCH;
	return process_status_field(status, "State", value, sizeof(value)) &&
	       (value[0] == 'Z' || value[0] == 'X');
}

void process_clean_text(char *text)
{
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
			*c = '?';
}

/* ---- Reading /proc ---------------------------------------------------------------------- */

/*
 * Fields of /proc/PID/stat by their numbers in proc(5). The command is in parentheses and may
 * contain any bytes, so the last ')' ends it.
 */
enum {
	STAT_PARENT = 4,
	STAT_FLAGS = 9,
	STAT_THREADS = 20,
	STAT_START_TICKS = 22,
	STAT_SIZE = 23,
	STAT_TEXT_START = 26,
	STAT_STACK_START = 28,
	STAT_PROCESSOR = 39,
	STAT_LAST = STAT_PROCESSOR,
};

/* PF_KTHREAD. Source: Linux include/linux/sched.h, the same since 2.6.27. */
#define KERNEL_THREAD 0x00200000u

int process_read_stat(pid_t pid, struct process_stat *ret_stat)
{
	uint64_t fields[STAT_LAST + 1] = { 0 };
	struct process_stat got = { 0 };
	char text[1024], *begin, *at;

	if (process_read_file(pid, "stat", text, sizeof(text)) != 0)
		return -1;
	begin = strchr(text, '(');
	at = strrchr(text, ')');
	if (!begin || !at || at < begin || at[1] != ' ' || !at[2])
		return -1;
	snprintf(got.command, sizeof(got.command), "%.*s", (int)(at - begin - 1), begin + 1);
	process_clean_text(got.command);
	got.state = at[2];
	at += 2;
	for (int field = STAT_PARENT; field <= STAT_LAST; field++) {
		at = strchr(at, ' ');
		if (!at)
			return -1;
		fields[field] = strtoull(++at, NULL, 10);
	}
	got.parent = (pid_t)fields[STAT_PARENT];
	got.is_kernel = (fields[STAT_FLAGS] & KERNEL_THREAD) != 0;
	got.threads = (long)fields[STAT_THREADS];
	got.start_ticks = fields[STAT_START_TICKS];
	got.size_bytes = fields[STAT_SIZE];
	got.text_start = fields[STAT_TEXT_START];
	got.stack_start = fields[STAT_STACK_START];
	got.processor = (int)fields[STAT_PROCESSOR];
	*ret_stat = got;
	return 0;
}

/* A zombie, or a thread about to be one: the kernel shows a size of 0 for a thread that has given
 * its memory back. The start of the text is then also 0, but an exec shows 0 too until the new
 * program is mapped (Linux fs/proc/array.c, do_task_stat(); fs/binfmt_elf.c, load_elf_binary()). */
static bool is_dead(const struct process_stat *stat)
{
	return stat->state == 'Z' || stat->state == 'X' || stat->size_bytes == 0;
}

/* Find a live thread other than the main one, which has left. @return its id, or 0. */
static pid_t find_live_thread(pid_t pid)
{
	char path[64];
	pid_t found = 0;
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir)) != NULL) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		struct process_stat stat;

		if (tid > 0 && tid != pid && process_read_stat(tid, &stat) == 0 && !is_dead(&stat))
			found = tid;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* ---- Opening ---------------------------------------------------------------------------- */

/* A process that we may not see counts as gone. A shortage of our own is a different failure. */
static int find_failure(pid_t pid, int errnum, struct failure *why)
{
	struct failure found;

	failure_set_errno(&found, errnum, pid, "find the process");
	if (!failure_is_shortage(&found))
		failure_set(&found, FAILURE_GONE, errnum, pid, 0, "find the process");
	if (why)
		*why = found;
	return -1;
}

/* Read the kind of process from its status. We refuse a process without memory that we can read. */
static int check_kind(pid_t pid, pid_t *ret_memory_id, struct failure *why)
{
	char status[4096], value[64];
	struct process_stat stat;
	pid_t memory_id = pid;

	errno = 0;
	if (process_read_file(pid, "status", status, sizeof(status)) != 0 ||
	    process_read_stat(pid, &stat) != 0)
		return find_failure(pid, errno, why);
	if (process_status_field(status, "Tgid", value, sizeof(value)) &&
	    strtol(value, NULL, 10) != pid)
		return failure_set(why, FAILURE_NOT_FOUND, 0, pid,
				   (uint64_t)strtol(value, NULL, 10), PROCESS_IS_THREAD);
	if (stat.state == 'Z' || stat.state == 'X')
		memory_id = stat.threads > 1 ? find_live_thread(pid) : 0;
	if (!memory_id)
		return failure_set(why, FAILURE_NOT_FOUND, 0, pid, 0, PROCESS_IS_ZOMBIE);
	if (stat.is_kernel)
		return failure_set(why, FAILURE_NOT_FOUND, 0, pid, 0, PROCESS_IS_KERNEL);
	/* A process that is ending loses its memory first. VmSize in status shows this too, but a
	 * long list of groups may push it out of our buffer. */
	if (process_read_file(memory_id, "statm", value, sizeof(value)) == 0 &&
	    strtol(value, NULL, 10) == 0)
		return failure_set(why, FAILURE_GONE, ESRCH, pid, 0, "find the process");
	*ret_memory_id = memory_id;
	return 0;
}

static int check_tracer(pid_t pid, struct failure *why)
{
	pid_t tracer = attach_tracer_of(pid, pid);

	return tracer ? failure_set(why, FAILURE_BUSY, 0, pid, (uint64_t)tracer,
				    "trace the process")
		      : 0;
}

/* The kernel runs 32-bit programs too, but their registers and stacks differ. */
static int check_class(pid_t pid, struct failure *why)
{
	int fd = process_open(pid, "exe", O_RDONLY | O_NONBLOCK | O_NOCTTY);
	unsigned char ident[EI_NIDENT] = { 0 };
	ssize_t len;

	if (fd < 0)
		return 0; /* attach_read_registers() checks again */
	len = read(fd, ident, sizeof(ident));
	close(fd);
	if (len == (ssize_t)sizeof(ident) && memcmp(ident, ELFMAG, SELFMAG) == 0 &&
	    ident[EI_CLASS] == ELFCLASS32)
		return failure_set(why, FAILURE_NOT_FOUND, 0, pid, 0, PROCESS_IS_32_BIT);
	return 0;
}

/* Opening mem needs the same permission as ptrace, and stops no thread. */
static int check_access(pid_t pid, struct failure *why)
{
	int fd = process_open(pid, "mem", O_RDONLY);

	if (fd < 0)
		return failure_set_errno(why, errno == ENOENT ? ESRCH : errno, pid,
					 "trace the process");
	close(fd);
	return 0;
}

static int live_read(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		     struct failure *why)
{
	const struct attach_process *process = self;
	uint8_t *to = ret_bytes;

	while (len > 0) {
		struct iovec local = { .iov_base = to, .iov_len = len };
		struct iovec remote = { .iov_base = (void *)(uintptr_t)address.value,
					.iov_len = len };
		ssize_t part = process_vm_readv(process->memory_id, &local, 1, &remote, 1, 0);

		if (part < 0 && errno == EINTR)
			continue;
		if (part < 0 && errno == EFAULT)
			return failure_set(why, FAILURE_FAULT, errno, process->pid, address.value,
					   "read memory");
		if (part < 0)
			return failure_set_errno(why, errno, process->pid, "read memory");
		if (part == 0)
			return failure_set(why, FAILURE_FAULT, 0, process->pid, address.value,
					   "read memory");
		to += part;
		len -= (size_t)part;
		address.value += (uint64_t)part;
	}
	return 0;
}

static int open_process(pid_t pid, bool for_stops, struct attach_process **ret_process,
			struct failure *why)
{
	struct attach_process *process;
	pid_t memory_id;

	if (pid <= 0)
		return failure_set(why, FAILURE_GONE, ESRCH, pid, 0, "find the process");
	if (check_kind(pid, &memory_id, why) != 0 || (for_stops && check_tracer(pid, why) != 0) ||
	    check_access(memory_id, why) != 0 || check_class(memory_id, why) != 0)
		return -1;
	process = calloc(1, sizeof(*process));
	if (!process)
		return failure_set_errno(why, ENOMEM, pid, "open the process");
	process->pid = pid;
	process->memory_id = memory_id;
	process->reader = (struct attach_reader){ .read = live_read, .self = process };
	attach_process_note_exec(process);
	*ret_process = process;
	return 0;
}

int attach_process_open(pid_t pid, struct attach_process **ret_process, struct failure *why)
{
	return open_process(pid, true, ret_process, why);
}

int attach_process_open_to_read(pid_t pid, struct attach_process **ret_process, struct failure *why)
{
	return open_process(pid, false, ret_process, why);
}

void attach_process_close(struct attach_process *process)
{
	free(process);
}

pid_t attach_process_pid(const struct attach_process *process)
{
	return process->memory_id;
}

const struct attach_reader *attach_process_reader(struct attach_process *process)
{
	return &process->reader;
}

/* ---- Program and end -------------------------------------------------------------------- */

/* Address of the random bytes that the kernel gave the program; 0: unknown. */
static uint64_t find_random(const struct attach_process *process)
{
	int fd = process_open(process->memory_id, "auxv", O_RDONLY);
	Elf64_auxv_t entries[64];
	ssize_t len;

	if (fd < 0)
		return 0;
	len = read(fd, entries, sizeof(entries));
	close(fd);
	for (size_t i = 0; len > 0 && i < (size_t)len / sizeof(entries[0]); i++)
		if (entries[i].a_type == AT_RANDOM)
			return entries[i].a_un.a_val;
	return 0;
}

static int read_random(const struct attach_process *process, uint64_t address,
		       uint8_t ret_bytes[PROCESS_RANDOM_BYTES], struct failure *why)
{
	return attach_read(&process->reader, remote_addr_make(address), ret_bytes,
			   PROCESS_RANDOM_BYTES, why);
}

void attach_process_note_exec(struct attach_process *process)
{
	struct program_id program = { 0 };
	struct process_stat stat;
	struct failure why;

	/* A main thread that has left shows no addresses. */
	if (process_read_stat(process->memory_id, &stat) == 0) {
		program.text_start = stat.text_start;
		program.stack_start = stat.stack_start;
	}
	if (process_read_stat(process->pid, &stat) == 0)
		process->start_ticks = stat.start_ticks;
	program.random_address = find_random(process);
	if (program.random_address &&
	    read_random(process, program.random_address, program.random, &why) != 0)
		program.random_address = 0;
	process->program = program;
}

/* Whether another program runs at the same addresses, which happens without randomisation. */
static bool has_other_random(const struct attach_process *process)
{
	uint8_t random[PROCESS_RANDOM_BYTES];
	struct failure why;

	if (!process->program.random_address)
		return false;
	if (read_random(process, process->program.random_address, random, &why) != 0)
		return why.kind == FAILURE_FAULT;
	return memcmp(random, process->program.random, sizeof(random)) != 0;
}

/* The main thread has left: read the memory through a live thread. */
static bool follow_live_thread(struct attach_process *process)
{
	struct process_stat stat;
	pid_t tid;

	if (process->memory_id != process->pid &&
	    process_read_stat(process->memory_id, &stat) == 0 && !is_dead(&stat))
		return true;
	tid = find_live_thread(process->pid);
	if (tid)
		process->memory_id = tid;
	return tid != 0;
}

/* Read the state of a process, also if its main thread has left while others run. */
static bool read_state(struct attach_process *process, struct process_stat *ret_stat)
{
	if (process_read_stat(process->pid, ret_stat) != 0 ||
	    ret_stat->start_ticks != process->start_ticks)
		return false; /* or another process has the pid now */
	if (is_dead(ret_stat))
		return ret_stat->threads > 1 && follow_live_thread(process) &&
		       process_read_stat(process->memory_id, ret_stat) == 0 && !is_dead(ret_stat);
	/* An exec in another thread makes that thread the main one. */
	process->memory_id = process->pid;
	return true;
}

/* A shortage of our own, such as descriptors, says nothing about the process. */
static bool is_lack_of_ours(int errnum)
{
	struct failure why;

	failure_set_errno(&why, errnum, 0, "find the process");
	return failure_is_shortage(&why);
}

enum attach_fate attach_process_fate(struct attach_process *process)
{
	struct process_stat stat;

	errno = 0;
	/* Read twice: a thread that calls exec takes over the main thread's id, perhaps between our
	 * reads. */
	if (!read_state(process, &stat) && !read_state(process, &stat))
		return is_lack_of_ours(errno) ? ATTACH_FATE_SAME : ATTACH_FATE_ENDED;
	if (stat.text_start != process->program.text_start ||
	    stat.stack_start != process->program.stack_start || has_other_random(process))
		return ATTACH_FATE_EXEC;
	return ATTACH_FATE_SAME;
}

uint64_t process_stack_start(const struct attach_process *process)
{
	return process->program.stack_start;
}
