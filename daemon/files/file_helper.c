/* SPDX-License-Identifier: MIT */
/* How does a separate process create, name and remove the files of a recording? */
#include "daemon/files/file_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/helper.h"
#include "daemon/rights/sandbox.h"

enum {
	/* Most files with the same name and second; more would be a loop, not a recording. */
	NUMBERS_MAX = 1000,
	/* ".ljrecord-PID-NUMBER.tmp", "-20261122T235959_NUMBER" */
	NAME_MORE = 48,
};

enum request_kind { REQUEST_BEGIN, REQUEST_FINISH };

struct request {
	uint32_t kind, output;
	int64_t time_s;
};

/** The answer to REQUEST_BEGIN carries the descriptor. */
struct answer {
	int32_t errnum;
};

/** An existing file of a series. */
struct kept {
	char name[NAME_MAX + NAME_MORE];
	dev_t device;
	ino_t inode;
};

/** What the helper knows of one output. */
struct placed {
	const struct output_file *file;
	char temporary[NAME_MAX + NAME_MORE]; /* "": there is none */
	int64_t time_s;
	struct kept *kept; /* ring buffer */
	size_t first, count;
};

struct placing {
	int fd;
	bool is_series;
	unsigned keep;
	struct placed outputs[DAEMON_OUTPUTS_MAX];
	size_t count;
};

/* ---- Names ------------------------------------------------------------------------------ */

/* "out-20261122T235959.pb.gz", in UTC; adds "_1" if that name exists. */
static bool series_name(const struct placed *placed, unsigned number, char *ret_name, size_t len)
{
	const struct output_file *file = placed->file;
	const time_t time_s = (time_t)placed->time_s;
	char stamp[32], more[16] = "";
	struct tm parts;

	if (!gmtime_r(&time_s, &parts) ||
	    strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%S", &parts) == 0)
		return false;
	if (number)
		snprintf(more, sizeof(more), "_%u", number);
	return snprintf(ret_name, len, "%.*s-%s%s%s", (int)file->stem_len, file->name, stamp, more,
			file->name + file->stem_len) <= NAME_MAX;
}

static int make_file(int folder_fd, const char *name, mode_t mode)
{
	return openat(folder_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

/* @return The descriptor, or -1 with errno. */
static int make_temporary(struct placed *placed)
{
	char *name = placed->temporary;
	int fd = -1;

	for (unsigned number = 0; number < NUMBERS_MAX; number++) {
		snprintf(name, sizeof(placed->temporary), "%.*s.ljrecord-%d-%u.tmp",
			 NAME_MAX - NAME_MORE, placed->file->name, (int)getpid(), number);
		fd = make_file(placed->file->folder_fd, name, placed->file->replaces ? 0600 : 0644);
		if (fd >= 0 || errno != EEXIST)
			break;
	}
	if (fd < 0)
		*name = '\0';
	return fd;
}

static void remove_temporary(struct placed *placed)
{
	if (*placed->temporary)
		unlinkat(placed->file->folder_fd, placed->temporary, 0);
	*placed->temporary = '\0';
}

/* Give the new file the owner and mode of the file that it replaces. */
static void take_after(const struct output_file *file, int fd)
{
	mode_t mode = file->mode;
	struct stat status;

	if (!file->replaces || fstat(fd, &status) != 0)
		return;
	/* If the owner cannot be set, give no rights to other users. */
	if ((status.st_uid != file->uid || status.st_gid != file->gid) &&
	    fchown(fd, file->uid, file->gid) != 0)
		mode &= 0600;
	if (fchmod(fd, mode) != 0)
		return; /* keep the mode of creation, which is for the owner only */
}

/* ---- Series ----------------------------------------------------------------------------- */

/* Remove a file, unless another file has its name now. */
static void remove_kept(int folder_fd, const struct kept *kept)
{
	struct stat status;

	if (fstatat(folder_fd, kept->name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
	    status.st_dev == kept->device && status.st_ino == kept->inode)
		unlinkat(folder_fd, kept->name, 0);
}

/* Note a new file of the series, and remove the oldest one. */
static void note_kept(const struct placing *placing, struct placed *placed, const char *name)
{
	int folder_fd = placed->file->folder_fd;
	struct stat status;
	struct kept *kept;

	if (!placing->keep || fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
		return;
	if (placed->count == placing->keep) {
		remove_kept(folder_fd, &placed->kept[placed->first]);
		placed->first = (placed->first + 1) % placing->keep;
		placed->count--;
	}
	kept = &placed->kept[(placed->first + placed->count++) % placing->keep];
	snprintf(kept->name, sizeof(kept->name), "%s", name);
	kept->device = status.st_dev;
	kept->inode = status.st_ino;
}

/* Rename a file, but never replace another one. */
static int rename_new(int folder_fd, const char *from, const char *to)
{
	struct stat status;

	if (renameat2(folder_fd, from, folder_fd, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	/* The file system does not support RENAME_NOREPLACE. */
	if (fstatat(folder_fd, to, &status, AT_SYMLINK_NOFOLLOW) == 0) {
		errno = EEXIST;
		return -1;
	}
	return renameat(folder_fd, from, folder_fd, to);
}

/* Give the temporary file, or a new empty file, the next free name of the series. @return The
 * descriptor of the new file, or 0, or -1 with errno. */
static int name_in_series(const struct placing *placing, struct placed *placed)
{
	char name[NAME_MAX + NAME_MORE];
	int ret = -1;

	for (unsigned number = 0; number < NUMBERS_MAX; number++) {
		if (!series_name(placed, number, name, sizeof(name))) {
			errno = ENAMETOOLONG;
			return -1;
		}
		ret = *placed->temporary
			      ? rename_new(placed->file->folder_fd, placed->temporary, name)
			      : make_file(placed->file->folder_fd, name, 0644);
		if (ret >= 0 || errno != EEXIST)
			break;
	}
	if (ret >= 0)
		note_kept(placing, placed, name);
	return ret;
}

/* ---- Requests --------------------------------------------------------------------------- */

/* @return The descriptor, or -1 with errno. */
static int begin_file(const struct placing *placing, struct placed *placed, int64_t time_s)
{
	int fd;

	remove_temporary(placed);
	placed->time_s = time_s;
	if (placing->is_series && !placed->file->format->is_buffered)
		return name_in_series(placing, placed);
	fd = make_temporary(placed);
	if (fd >= 0)
		take_after(placed->file, fd);
	return fd;
}

/* @return 0, or -1 with errno. */
static int finish_file(const struct placing *placing, struct placed *placed)
{
	int folder_fd = placed->file->folder_fd, ret, errnum;

	if (!*placed->temporary)
		return 0; /* it has its name */
	if (placing->is_series)
		ret = name_in_series(placing, placed);
	else
		ret = renameat(folder_fd, placed->temporary, folder_fd, placed->file->name);
	errnum = errno;
	if (ret < 0)
		remove_temporary(placed);
	*placed->temporary = '\0';
	errno = errnum;
	return ret;
}

static void send_answer(int socket, int errnum, int fd)
{
	struct answer answer = { .errnum = errnum };

	/* If the recorder does not receive it, no further request comes, either. */
	helper_send(socket, &answer, sizeof(answer), &fd, fd >= 0);
}

/* @return Whether the request is valid. */
static bool answer_request(struct placing *placing, const struct request *request)
{
	struct placed *placed;
	int ret, errnum;

	if (request->output >= placing->count ||
	    placing->outputs[request->output].file->folder_fd < 0)
		return false;
	placed = &placing->outputs[request->output];
	switch (request->kind) {
	case REQUEST_BEGIN:
		ret = begin_file(placing, placed, request->time_s);
		errnum = ret < 0 ? errno : 0;
		send_answer(placing->fd, errnum, ret);
		if (ret >= 0)
			close(ret);
		return true;
	case REQUEST_FINISH:
		ret = finish_file(placing, placed);
		send_answer(placing->fd, ret < 0 ? errno : 0, -1);
		return true;
	default:
		return false;
	}
}

static void serve(struct placing *placing)
{
	struct request request;
	ssize_t len;

	do {
		len = recv(placing->fd, &request, sizeof(request), 0);
	} while ((len < 0 && errno == EINTR) ||
		 (len == sizeof(request) && answer_request(placing, &request)));
	for (size_t i = 0; i < placing->count; i++)
		remove_temporary(&placing->outputs[i]);
}

static _Noreturn void run_file_helper(struct placing *placing)
{
	/* For writing to another user's folder, keeping a file's owner, and replacing a file in a
	 * folder such as /tmp: rights of root, or granted to ljrecord. */
	static const int needed[] = { CAP_DAC_OVERRIDE, CAP_CHOWN, CAP_FOWNER };
	int fds[DAEMON_OUTPUTS_MAX + 1];
	size_t count = placing->count;

	prctl(PR_SET_NAME, "ljprof-files", 0, 0, 0);
	for (size_t i = 0; i < count; i++)
		fds[i] = placing->outputs[i].file->folder_fd;
	fds[count++] = placing->fd;
	sandbox_close_others(fds, count);
	sandbox_keep_capabilities(needed, sizeof(needed) / sizeof(needed[0]));
	serve(placing);
	_exit(0);
}

/* ---- The recorder's side ---------------------------------------------------------------- */

static int prepare(struct placing *placing, const struct output_file *files, struct failure *why)
{
	for (size_t i = 0; i < placing->count; i++) {
		placing->outputs[i].file = &files[i];
		if (!placing->keep || files[i].folder_fd < 0)
			continue;
		placing->outputs[i].kept = calloc(placing->keep, sizeof(struct kept));
		if (!placing->outputs[i].kept)
			return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0,
					   "start the file helper");
	}
	return 0;
}

static void release(struct placing *placing)
{
	for (size_t i = 0; i < placing->count; i++)
		free(placing->outputs[i].kept);
}

int file_helper_start(const struct output_file *files, size_t count, bool is_series, unsigned keep,
		      struct file_helper *ret_helper, struct failure *why)
{
	struct placing placing = { .is_series = is_series, .keep = keep, .count = count };
	int fds[2], errnum;
	pid_t pid;

	if (prepare(&placing, files, why) != 0) {
		release(&placing);
		return -1;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
		errnum = errno;
		release(&placing);
		return failure_set_errno(why, errnum, 0, "start the file helper");
	}
	placing.fd = fds[1];
	pid = fork();
	if (pid == 0)
		run_file_helper(&placing);
	errnum = errno;
	release(&placing);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return failure_set_errno(why, errnum, 0, "start the file helper");
	}
	*ret_helper = (struct file_helper){ .pid = pid, .fd = fds[0] };
	return 0;
}

void file_helper_stop(struct file_helper *file_helper)
{
	close(file_helper->fd);
	while (waitpid(file_helper->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* @param ret_fd Descriptor in the answer, or -1; may be NULL. */
static int ask(const struct file_helper *file_helper, const struct request *request, int *ret_fd,
	       struct failure *why)
{
	struct answer answer;
	ssize_t len;
	int fd;

	if (send(file_helper->fd, request, sizeof(*request), MSG_NOSIGNAL) != sizeof(*request))
		return failure_set_errno(why, errno, 0, "name the output");
	len = helper_receive(file_helper->fd, &answer, sizeof(answer), &fd, 1, 0);
	if (len != sizeof(answer))
		return failure_set_errno(why, len < 0 ? errno : EPIPE, 0, "name the output");
	if (answer.errnum)
		return failure_set_errno(why, answer.errnum, 0, "name the output");
	if (!ret_fd)
		return 0;
	if (fd < 0)
		return failure_set_errno(why, EMFILE, 0, "open the output");
	*ret_fd = fd;
	return 0;
}

int file_helper_begin(const struct file_helper *file_helper, size_t output, int64_t time_s,
		      int *ret_fd, struct failure *why)
{
	const struct request request = { .kind = REQUEST_BEGIN,
					 .output = (uint32_t)output,
					 .time_s = time_s };

	return ask(file_helper, &request, ret_fd, why);
}

int file_helper_finish(const struct file_helper *file_helper, size_t output, struct failure *why)
{
	const struct request request = { .kind = REQUEST_FINISH, .output = (uint32_t)output };

	return ask(file_helper, &request, NULL, why);
}
