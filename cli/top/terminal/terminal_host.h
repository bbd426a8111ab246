/* SPDX-License-Identifier: MIT */
/* What does ljtop take from the host: which character set do the terminal and the screen have? */
#ifndef CLI_TOP_TERMINAL_TERMINAL_HOST_H
#define CLI_TOP_TERMINAL_TERMINAL_HOST_H

/** Choose the character set that the environment names (LC_ALL, LC_CTYPE, LANG). Without one that
 *  works here it is ASCII. */
void terminal_host_choose_charset(void);

#endif
