/* SPDX-License-Identifier: MIT */
/* How is the terminal opened and restored with ncurses? */
#include "cli/top/terminal/top_terminal.h"

#include <errno.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#include "cli/top/terminal/terminal_host.h"

enum {
	/* A terminal sends the bytes of a key at once; nothing follows an Escape that a person
	 * types. */
	ESCAPE_MS = 25,
	/* Sequences that restore a screen are short. */
	RESTORE_MAX = 128,
	/* Parts of the bar of states. */
	PARTS = TOP_LOOK_PART_7 - TOP_LOOK_PART_0 + 1,
};

/* Data for the crash handler, which may call no library. */
static struct {
	volatile sig_atomic_t is_open;
	struct termios modes;
	char bytes[RESTORE_MAX];
	size_t len;
} restore;

static SCREEN *screen;

/* SIGQUIT is Ctrl-\, which requests a core file. */
static const int crashes[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGQUIT };

const char *top_terminal_refuse(void)
{
	const char *name = getenv("TERM");
	int found;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return "this is not a terminal: try --batch";
	if (!name || !*name)
		return "TERM does not say which terminal this is: try --batch";
	if (strcmp(name, "dumb") == 0)
		return "a dumb terminal (TERM) has no screen: try --batch";
	if (setupterm(name, STDOUT_FILENO, &found) != OK)
		return "the terminal (TERM) is not known: try --batch";
	name = cursor_address ? NULL : "the terminal (TERM) has no screen: try --batch";
	del_curterm(cur_term);
	return name;
}

/* ---- Restoring -------------------------------------------------------------------------- */

/* Note a sequence without its delays, which no terminal needs today. */
static void note_sequence(const char *sequence)
{
	size_t len = sequence ? strcspn(sequence, "$") : 0;

	if (len > sizeof(restore.bytes) - restore.len)
		return;
	memcpy(restore.bytes + restore.len, sequence ? sequence : "", len);
	restore.len += len;
}

static void note_restore(void)
{
	restore.len = 0;
	/* Harmless without a mouse. Source: XTerm Control Sequences, "Mouse Tracking". */
	note_sequence("\033[?1000l\033[?1006l");
	note_sequence(exit_attribute_mode);
	note_sequence(cursor_normal);
	note_sequence(keypad_local);
	note_sequence(exit_ca_mode);
	note_sequence("\r\n");
}

/* Async-signal-safe. */
static void on_crash(int number)
{
	if (restore.is_open) {
		restore.is_open = 0;
		if (write(STDOUT_FILENO, restore.bytes, restore.len) < 0) {
			/* Nobody can see the terminal. */
		}
		tcsetattr(STDIN_FILENO, TCSANOW, &restore.modes);
	}
	/* Because of SA_RESETHAND, this time it ends us. */
	raise(number);
}

static void catch_crashes(void)
{
	struct sigaction action = { .sa_handler = on_crash, .sa_flags = SA_RESETHAND | SA_NODEFER };
	struct sigaction before;

	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		/* Keep a sanitizer's handler, which says more. */
		if (sigaction(crashes[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
			sigaction(crashes[i], &action, NULL);
}

void top_terminal_close(void)
{
	if (!restore.is_open)
		return;
	endwin();
	restore.is_open = 0;
	delscreen(screen);
	screen = NULL;
}

/* ---- Opening ---------------------------------------------------------------------------- */

static attr_t coloured(short pair, short text, short ground)
{
	init_pair(pair, text, ground);
	return COLOR_PAIR(pair);
}

static void choose_looks(struct top_terminal *terminal)
{
	/* Both inactive parts are white; their letters differ. */
	static const short parts[PARTS] = { COLOR_BLUE,	   COLOR_GREEN, COLOR_YELLOW, COLOR_RED,
					    COLOR_MAGENTA, COLOR_CYAN,	COLOR_WHITE,  COLOR_WHITE };
	attr_t *looks = terminal->looks;

	looks[TOP_LOOK_PLAIN] = A_NORMAL;
	looks[TOP_LOOK_DIM] = A_DIM;
	looks[TOP_LOOK_TITLE] = A_BOLD;
	looks[TOP_LOOK_HEAD] = A_REVERSE;
	looks[TOP_LOOK_MARKED] = A_REVERSE | A_BOLD;
	looks[TOP_LOOK_SELECTED] = A_REVERSE;
	looks[TOP_LOOK_HOT] = A_BOLD;
	looks[TOP_LOOK_WARM] = A_NORMAL;
	looks[TOP_LOOK_NOTE] = A_REVERSE | A_BOLD;
	for (size_t i = 0; i < PARTS; i++) {
		looks[TOP_LOOK_PART_0 + i] = i % 2 ? A_REVERSE : A_NORMAL;
		looks[TOP_LOOK_STATE_0 + i] = A_NORMAL;
	}
	if (!terminal->colour)
		return;
	looks[TOP_LOOK_HEAD] = coloured(1, COLOR_BLACK, COLOR_GREEN);
	looks[TOP_LOOK_MARKED] = coloured(2, COLOR_BLACK, COLOR_CYAN);
	looks[TOP_LOOK_SELECTED] = coloured(2, COLOR_BLACK, COLOR_CYAN);
	looks[TOP_LOOK_HOT] = coloured(3, COLOR_RED, -1) | A_BOLD;
	looks[TOP_LOOK_WARM] = coloured(4, COLOR_YELLOW, -1);
	looks[TOP_LOOK_NOTE] = coloured(5, COLOR_WHITE, COLOR_RED) | A_BOLD;
	for (size_t i = 0; i < PARTS; i++) {
		looks[TOP_LOOK_PART_0 + i] = coloured((short)(6 + i), COLOR_BLACK, parts[i]);
		looks[TOP_LOOK_STATE_0 + i] = coloured((short)(6 + PARTS + i), parts[i], -1);
	}
}

static void choose_modes(void)
{
	/* Ctrl-C arrives as a signal, which also ends code that reads no keys. */
	cbreak();
	noecho();
	nonl();
	intrflush(stdscr, FALSE);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
}

/* Report presses at once; we detect double clicks ourselves. */
static void take_mouse(void)
{
	mouseinterval(0);
	mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
}

int top_terminal_open(bool takes_mouse, struct top_terminal *ret_terminal, const char **ret_why)
{
	const char *no_colour = getenv("NO_COLOR");
	static bool is_registered;

	terminal_host_choose_charset();
	if (tcgetattr(STDIN_FILENO, &restore.modes) != 0) {
		*ret_why = "cannot read the terminal's modes: try --batch";
		return -1;
	}
	set_escdelay(ESCAPE_MS);
	screen = newterm(NULL, stdout, stdin);
	if (!screen) {
		*ret_why = "the terminal (TERM) is not known: try --batch";
		return -1;
	}
	note_restore();
	restore.is_open = 1;
	catch_crashes();
	if (!is_registered)
		is_registered = atexit(top_terminal_close) == 0;
	choose_modes();
	if (takes_mouse)
		take_mouse();
	ret_terminal->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	ret_terminal->colour = !(no_colour && *no_colour) && has_colors() && start_color() == OK &&
			       use_default_colors() == OK;
	choose_looks(ret_terminal);
	return 0;
}

/* ---- Keys ------------------------------------------------------------------------------- */

int top_terminal_key(int timeout_ms)
{
	struct pollfd wait = { .fd = STDIN_FILENO, .events = POLLIN };
	int key = wgetch(stdscr), ret;

	if (key != ERR)
		return key;
	ret = poll(&wait, 1, timeout_ms);
	if (ret > 0 && wait.revents & (POLLHUP | POLLERR | POLLNVAL))
		return KEY_EXIT;
	if (ret == 0)
		return ERR;
	/* A signal may have brought a new size of the terminal. */
	return wgetch(stdscr);
}
