/* SPDX-License-Identifier: MIT */
/* Private to daemon: how does a recording start? */
#ifndef DAEMON_RECORD_STARTUP_H
#define DAEMON_RECORD_STARTUP_H

#include "daemon/recorder/recorder.h"

/**
 * Open the requested processes.
 * @return 0, or -1 with the end and its text set.
 */
int recorder_open_processes(struct recorder *recorder);

/**
 * Find a VM in one of them.
 * @return 0, or -1 with the end and its text set.
 */
int recorder_find_vms(struct recorder *recorder);

#endif
