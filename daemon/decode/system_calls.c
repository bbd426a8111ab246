/* SPDX-License-Identifier: MIT */
/* Names of the system calls that threads wait in. */
#include "daemon/dump.h"

#include <stddef.h>
#include <sys/syscall.h>

/* Those that may take long. Architectures and kernel headers differ in which of them they have.
 * Source: syscalls(2). */
static const struct {
	int64_t number;
	const char *name;
} calls[] = {
#ifdef SYS_accept
	{ SYS_accept, "accept" },
#endif
	{ SYS_accept4, "accept4" },
	{ SYS_clock_nanosleep, "clock_nanosleep" },
	{ SYS_clone, "clone" },
	{ SYS_close, "close" },
	{ SYS_connect, "connect" },
#ifdef SYS_copy_file_range
	{ SYS_copy_file_range, "copy_file_range" },
#endif
#ifdef SYS_dup2
	{ SYS_dup2, "dup2" },
#endif
	{ SYS_dup3, "dup3" },
	{ SYS_epoll_pwait, "epoll_pwait" },
#ifdef SYS_epoll_pwait2
	{ SYS_epoll_pwait2, "epoll_pwait2" },
#endif
#ifdef SYS_epoll_wait
	{ SYS_epoll_wait, "epoll_wait" },
#endif
	{ SYS_exit_group, "exit_group" },
	{ SYS_fallocate, "fallocate" },
	{ SYS_fcntl, "fcntl" },
	{ SYS_fdatasync, "fdatasync" },
	{ SYS_flock, "flock" },
	{ SYS_fsync, "fsync" },
	{ SYS_ftruncate, "ftruncate" },
	{ SYS_futex, "futex" },
#ifdef SYS_futex_wait
	{ SYS_futex_wait, "futex_wait" },
#endif
#ifdef SYS_futex_waitv
	{ SYS_futex_waitv, "futex_waitv" },
#endif
	{ SYS_getdents64, "getdents64" },
	{ SYS_getrandom, "getrandom" },
	{ SYS_io_getevents, "io_getevents" },
#ifdef SYS_io_pgetevents
	{ SYS_io_pgetevents, "io_pgetevents" },
#endif
#ifdef SYS_io_uring_enter
	{ SYS_io_uring_enter, "io_uring_enter" },
#endif
	{ SYS_ioctl, "ioctl" },
	{ SYS_madvise, "madvise" },
	{ SYS_mmap, "mmap" },
	{ SYS_mprotect, "mprotect" },
	{ SYS_mq_timedreceive, "mq_timedreceive" },
	{ SYS_mq_timedsend, "mq_timedsend" },
	{ SYS_msgrcv, "msgrcv" },
	{ SYS_msgsnd, "msgsnd" },
	{ SYS_munmap, "munmap" },
	{ SYS_nanosleep, "nanosleep" },
#ifdef SYS_newfstatat
	{ SYS_newfstatat, "newfstatat" },
#endif
#ifdef SYS_open
	{ SYS_open, "open" },
#endif
	{ SYS_openat, "openat" },
#ifdef SYS_openat2
	{ SYS_openat2, "openat2" },
#endif
#ifdef SYS_pause
	{ SYS_pause, "pause" },
#endif
#ifdef SYS_poll
	{ SYS_poll, "poll" },
#endif
	{ SYS_ppoll, "ppoll" },
	{ SYS_pread64, "pread64" },
	{ SYS_preadv, "preadv" },
#ifdef SYS_preadv2
	{ SYS_preadv2, "preadv2" },
#endif
	{ SYS_pselect6, "pselect6" },
	{ SYS_pwrite64, "pwrite64" },
	{ SYS_pwritev, "pwritev" },
#ifdef SYS_pwritev2
	{ SYS_pwritev2, "pwritev2" },
#endif
	{ SYS_read, "read" },
	{ SYS_readv, "readv" },
	{ SYS_recvfrom, "recvfrom" },
	{ SYS_recvmmsg, "recvmmsg" },
	{ SYS_recvmsg, "recvmsg" },
#ifdef SYS_renameat
	{ SYS_renameat, "renameat" },
#endif
	{ SYS_restart_syscall, "restart_syscall" },
	{ SYS_rt_sigsuspend, "rt_sigsuspend" },
	{ SYS_rt_sigtimedwait, "rt_sigtimedwait" },
	{ SYS_sched_yield, "sched_yield" },
#ifdef SYS_select
	{ SYS_select, "select" },
#endif
	{ SYS_semop, "semop" },
	{ SYS_semtimedop, "semtimedop" },
#ifdef SYS_sendfile
	{ SYS_sendfile, "sendfile" },
#endif
	{ SYS_sendmmsg, "sendmmsg" },
	{ SYS_sendmsg, "sendmsg" },
	{ SYS_sendto, "sendto" },
	{ SYS_splice, "splice" },
#ifdef SYS_stat
	{ SYS_stat, "stat" },
#endif
#ifdef SYS_statx
	{ SYS_statx, "statx" },
#endif
	{ SYS_sync, "sync" },
	{ SYS_sync_file_range, "sync_file_range" },
	{ SYS_syncfs, "syncfs" },
	{ SYS_tee, "tee" },
#ifdef SYS_unlink
	{ SYS_unlink, "unlink" },
#endif
	{ SYS_unlinkat, "unlinkat" },
#ifdef SYS_vfork
	{ SYS_vfork, "vfork" },
#endif
	{ SYS_vmsplice, "vmsplice" },
	{ SYS_wait4, "wait4" },
	{ SYS_waitid, "waitid" },
	{ SYS_write, "write" },
	{ SYS_writev, "writev" },
};

const char *daemon_call_name(int64_t number)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].number == number)
			return calls[i].name;
	return NULL;
}
