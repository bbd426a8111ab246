/* SPDX-License-Identifier: MIT */
/* Preloaded into a command: print the options that it takes, and end. One a line: the letter or the
 * name with its dashes, and whether a value follows. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_letters(const char *letters)
{
	for (letters += strspn(letters, "+-:"); *letters; letters++)
		if (*letters != ':')
			printf("-%c %s\n", *letters, letters[1] == ':' ? "value" : "alone");
}

int getopt_long(int argc, char *const *argv, const char *letters, const struct option *longs,
		int *ret_index)
{
	(void)argc, (void)argv, (void)ret_index;
	print_letters(letters);
	for (; longs->name; longs++)
		printf("--%s %s\n", longs->name, longs->has_arg ? "value" : "alone");
	exit(fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS);
}
