/* SPDX-License-Identifier: MIT */
/* A process that we look at. Holds no attachment: only descriptors of /proc. */
#include "attach/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

int process_read_file(pid_t pid, const char *name, char *ret_text, size_t size)
{
	char path[64];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
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

	/* /proc/TID is there for each thread, though not listed. */
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

/*
 * Start of the main stack's arguments and of the program text: both move with every exec. Fields 26
 * and 28 of /proc/PID/stat, behind the command name, which may hold anything but ends at the last
 * parenthesis. Source: proc(5).
 */
static int read_program_id(pid_t pid, struct program_id *ret_id)
{
	char text[1024];
	const char *at;
	unsigned long long code = 0, stack = 0;

	if (process_read_file(pid, "stat", text, sizeof(text)) != 0)
		return -1;
	at = strrchr(text, ')');
	for (int field = 2; at && field < 28; field++) {
		at = strchr(at + 1, ' ');
		if (at && field + 1 == 26)
			code = strtoull(at + 1, NULL, 10);
		if (at && field + 1 == 28)
			stack = strtoull(at + 1, NULL, 10);
	}
	if (!at)
		return -1;
	*ret_id = (struct program_id){ .text_start = code, .stack_start = stack };
	return 0;
}

/* What the process is, from its status: anything that has no memory to look at is refused. */
static int check_kind(pid_t pid, struct failure *why)
{
	char status[4096], value[64];

	if (process_read_file(pid, "status", status, sizeof(status)) != 0)
		return failure_set(why, FAILURE_GONE, errno, pid, 0, "find the process");
	if (process_status_field(status, "Tgid", value, sizeof(value)) &&
	    strtol(value, NULL, 10) != pid)
		return failure_set(why, FAILURE_NOT_FOUND, 0, pid,
				   (uint64_t)strtol(value, NULL, 10), PROCESS_IS_THREAD);
	if (process_status_field(status, "State", value, sizeof(value)) &&
	    (value[0] == 'Z' || value[0] == 'X'))
		return failure_set(why, FAILURE_NOT_FOUND, 0, pid, 0, PROCESS_IS_ZOMBIE);
	/* Not by VmSize in status, which a long list of groups may push out of our buffer. */
	if (process_read_file(pid, "statm", value, sizeof(value)) == 0 &&
	    strtol(value, NULL, 10) == 0)
		return failure_set(why, FAILURE_NOT_FOUND, 0, pid, 0, PROCESS_IS_KERNEL);
	if (process_status_field(status, "TracerPid", value, sizeof(value)) &&
	    strtol(value, NULL, 10) != 0)
		return failure_set(why, FAILURE_BUSY, 0, pid, (uint64_t)strtol(value, NULL, 10),
				   "trace the process");
	return 0;
}

/* Opening mem needs the very permission that ptrace needs, and stops nobody. */
static int check_access(pid_t pid, struct failure *why)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
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
		ssize_t part = process_vm_readv(process->pid, &local, 1, &remote, 1, 0);

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

int attach_process_open(pid_t pid, struct attach_process **ret_process, struct failure *why)
{
	struct attach_process *process;

	if (pid <= 0)
		return failure_set(why, FAILURE_GONE, ESRCH, pid, 0, "find the process");
	if (check_kind(pid, why) != 0 || check_access(pid, why) != 0)
		return -1;
	process = calloc(1, sizeof(*process));
	if (!process)
		return failure_set_errno(why, ENOMEM, pid, "open the process");
	process->pid = pid;
	process->reader = (struct attach_reader){ .read = live_read, .self = process };
	attach_process_note_exec(process);
	*ret_process = process;
	return 0;
}

void attach_process_close(struct attach_process *process)
{
	free(process);
}

pid_t attach_process_pid(const struct attach_process *process)
{
	return process->pid;
}

const struct attach_reader *attach_process_reader(struct attach_process *process)
{
	return &process->reader;
}

void attach_process_note_exec(struct attach_process *process)
{
	if (read_program_id(process->pid, &process->program) != 0)
		process->program = (struct program_id){ 0 };
}

enum attach_fate attach_process_fate(struct attach_process *process)
{
	char status[4096], value[64];
	struct program_id now;

	if (process_read_file(process->pid, "status", status, sizeof(status)) != 0 ||
	    (process_status_field(status, "State", value, sizeof(value)) &&
	     (value[0] == 'Z' || value[0] == 'X')))
		return ATTACH_FATE_ENDED;
	if (read_program_id(process->pid, &now) != 0)
		return ATTACH_FATE_ENDED;
	if (now.text_start != process->program.text_start ||
	    now.stack_start != process->program.stack_start)
		return ATTACH_FATE_EXEC;
	return ATTACH_FATE_SAME;
}

uint64_t process_stack_start(const struct attach_process *process)
{
	return process->program.stack_start;
}
