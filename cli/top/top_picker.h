/* SPDX-License-Identifier: MIT */
/* Which process does a user choose on the full screen? */
#ifndef CLI_TOP_TOP_PICKER_H
#define CLI_TOP_TOP_PICKER_H

#include "cli/common/option_values.h"
#include "daemon/list.h"

/**
 * Show the list until the user chooses or leaves, or stop_requested is set. Restores the terminal.
 * @param list Replaced if the user asks for a new one.
 * @param ret_text Set on failure: a few words for people, static.
 * @return -1 if processes were chosen, else the exit code.
 */
int top_picker_run(struct daemon_list *list, struct options_pids *pids, const char **ret_text);

#endif
