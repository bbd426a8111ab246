/* SPDX-License-Identifier: MIT */
/* What do the commands that read processes share? */
#include "cli/common/recording.h"

const struct options_word recording_captures[] = {
	{ "auto",
	  "kernel if possible, with root, Linux 5.17 and without --wall, else stop (default); "
	  "threads whose copies are too incomplete are stopped, too",
	  DAEMON_CAPTURE_AUTO },
	{ "kernel", "the kernel copies each running thread at its ticks; no thread is stopped",
	  DAEMON_CAPTURE_KERNEL },
	{ "stop", "stop each thread for some tens of microseconds", DAEMON_CAPTURE_STOP },
	{ 0 },
};

int recording_exit_code(enum daemon_end end)
{
	switch (end) {
	case DAEMON_END_STOPPED:
	case DAEMON_END_TARGET:
		return EXIT_PROFILE;
	case DAEMON_END_DENIED:
		return EXIT_DENIED;
	case DAEMON_END_NO_VM:
		return EXIT_NO_LUAJIT;
	case DAEMON_END_OUTPUT:
		return EXIT_OUTPUT;
	case DAEMON_END_EARLY:
		return EXIT_ENDED;
	case DAEMON_END_EMPTY:
		return EXIT_EMPTY;
	case DAEMON_END_SYSTEM:
		break;
	}
	return EXIT_SYSTEM;
}
