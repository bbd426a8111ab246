/* SPDX-License-Identifier: MIT */
/* What does the host's C library know of character sets? */
#include "cli/top/terminal/terminal_host.h"

#include <locale.h>

void terminal_host_choose_charset(void)
{
	setlocale(LC_CTYPE, "");
}
