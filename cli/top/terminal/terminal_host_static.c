/* SPDX-License-Identifier: MIT */
/* What does a statically linked ljtop know of terminals and character sets, without the host's
 * files? */
#define NCURSES_INTERNALS
#include "cli/top/terminal/terminal_host.h"

#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <term.h>
#include <unistd.h>

#include "terminals.h"

/* The C library's name for the locale that every language shares. */
#define UTF8_LOCALE "C.UTF-8"
/* Where the package has that locale, from the folder of the programs. */
#define LOCALE_FOLDER "../lib/ljprof/locale"

/* ---- Terminals -------------------------------------------------------------------------- */

/* What _nc_read_termtype() returns. Source: ncurses, include/tic.h, TGETENT_YES. */
enum { ENTRY_READ = 1 };

const TERMTYPE2 *_nc_fallback2(const char *name);

/* ncurses calls this for a terminal that no file of the host describes. Its own function has a
 * table, which is empty on Debian. Source: ncurses, ncurses/tinfo/lib_setup.c. */
const TERMTYPE2 *_nc_fallback2(const char *name)
{
	static TERMTYPE2 type;

	for (size_t i = 0; i < sizeof(terminals) / sizeof(terminals[0]); i++) {
		char *bytes;
		int result;

		if (strcmp(terminals[i].name, name) != 0)
			continue;
		bytes = malloc(terminals[i].size);
		if (!bytes)
			return NULL;
		memcpy(bytes, terminals[i].bytes, terminals[i].size);
		result = _nc_read_termtype(&type, bytes, (int)terminals[i].size);
		free(bytes);
		return result == ENTRY_READ ? &type : NULL;
	}
	return NULL;
}

/* ---- Character sets --------------------------------------------------------------------- */

static const char *named_locale(void)
{
	static const char *const variables[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *value = getenv(variables[i]);

		if (value && *value)
			return value;
	}
	return "";
}

/* Prefer the package's own locale: its form is certain to be the one of this C library. */
static void add_package_locale(void)
{
	char path[PATH_MAX + sizeof(LOCALE_FOLDER)];
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);
	char *slash;

	if (len <= 0)
		return;
	path[len] = '\0';
	slash = strrchr(path, '/');
	if (!slash)
		return;
	strcpy(slash + 1, LOCALE_FOLDER);
	if (access(path, X_OK) == 0)
		setenv("LOCPATH", path, 1);
}

/* For other character sets the C library would load a module of the host's C library, whose code
 * may crash next to ours. */
void terminal_host_choose_charset(void)
{
	const char *name = named_locale();

	if (!strcasestr(name, "utf-8") && !strcasestr(name, "utf8"))
		return;
	add_package_locale();
	if (setlocale(LC_CTYPE, UTF8_LOCALE))
		return;
	/* A program without its package, on a host that has locales of the same form. */
	unsetenv("LOCPATH");
	setlocale(LC_CTYPE, UTF8_LOCALE);
}
