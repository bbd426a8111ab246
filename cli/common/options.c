/* SPDX-License-Identifier: MIT */
/* What the command lines share. */
#include "cli/common/options.h"

#include <errno.h>
#include <getopt.h>
#include <regex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/stdio_setup.h"

/* What getopt_long() gives for an option: this and its index, else its letter. */
enum { CHOICE_FIRST = 256 };

enum { RATE_MAX = 10000 };

int options_refuse(const char *program, const char *text, const char *argument)
{
	fprintf(stderr, "%s: %s%s%s: try %s --help\n", program, text, argument ? " " : "",
		argument ? argument : "", program);
	return EXIT_USAGE;
}

/* The table as getopt_long() wants it. */
static void list_choices(const struct options *options, struct option *ret_longs, char *ret_letters)
{
	/* Stop at a command; tell a missing argument apart. */
	*ret_letters++ = '+';
	*ret_letters++ = ':';
	for (size_t i = 0; i < options->count; i++) {
		const struct choice *choice = &options->choices[i];

		ret_longs[i] = (struct option){ .name = choice->name,
						.has_arg = choice->is_alone ? no_argument
									    : required_argument,
						.val = CHOICE_FIRST + (int)i };
		if (!choice->letter)
			continue;
		*ret_letters++ = choice->letter;
		if (!choice->is_alone)
			*ret_letters++ = ':';
	}
	ret_longs[options->count] = (struct option){ 0 };
	*ret_letters = '\0';
}

static const struct choice *find_choice(const struct options *options, int option)
{
	for (size_t i = 0; i < options->count; i++)
		if (option == CHOICE_FIRST + (int)i || option == options->choices[i].letter)
			return &options->choices[i];
	return NULL;
}

int options_parse(const struct options *options, int argc, char **argv, struct arguments *arguments,
		  int *ret_first)
{
	struct option longs[OPTIONS_MAX + 1];
	char letters[2 * OPTIONS_MAX + 3];
	int option;

	stdio_occupy_files();
	opterr = 0; /* one line of ours instead of two */
	list_choices(options, longs, letters);
	while ((option = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		const struct choice *choice = find_choice(options, option);

		if (option == ':')
			return options_refuse(options->program, "an argument is missing behind",
					      argv[optind - 1]);
		if (!choice)
			return options_refuse(options->program, "unknown option", argv[optind - 1]);
		if (!choice->take(arguments, optarg))
			return options_refuse(options->program, choice->refused, optarg);
	}
	*ret_first = optind;
	return -1;
}

int options_exit_code(enum daemon_end end)
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

/* ---- Values ----------------------------------------------------------------------------- */

bool options_number(const char *text, long min, long max, long *ret_value)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text || *end || value < min || value > max)
		return false;
	*ret_value = value;
	return true;
}

void *options_one_more(const char *program, void *items, size_t count, size_t size)
{
	void *larger = reallocarray(items, count + 1, size);

	if (larger)
		return larger;
	fprintf(stderr, "%s: out of memory\n", program);
	exit(EXIT_SYSTEM);
}

/* Once, however often it is given. */
static void add_pid(const char *program, pid_t pid, pid_t **pids, size_t *count)
{
	for (size_t i = 0; i < *count; i++)
		if ((*pids)[i] == pid)
			return;
	*pids = options_one_more(program, *pids, *count, sizeof(**pids));
	(*pids)[(*count)++] = pid;
}

bool options_seconds(const char *text, double min, double max, double *ret_value)
{
	char *end;
	double value = strtod(text, &end);

	/* Nor is what is no number. */
	if (end == text || *end || !(value >= min) || !(value <= max))
		return false;
	*ret_value = value;
	return true;
}

bool options_time(const char *text, double min_s, double max_s, double *ret_seconds)
{
	static const struct {
		char letter;
		double seconds;
	} units[] = { { '\0', 1 }, { 's', 1 }, { 'm', 60 }, { 'h', 3600 } };
	char *end;
	double value = strtod(text, &end);

	if (end == text || (*end && end[1]))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (units[i].letter != *end)
			continue;
		value *= units[i].seconds;
		/* Nor is what is no number. */
		if (!(value >= min_s) || !(value <= max_s))
			return false;
		*ret_seconds = value;
		return true;
	}
	return false;
}

bool options_size(const char *text, uint64_t *ret_bytes)
{
	static const char units[] = "KMG";
	const char *unit;
	unsigned shift = 0;
	uint64_t value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	/* A sign is none. */
	if (errno || *text < '0' || *text > '9' || (*end && end[1]))
		return false;
	unit = *end ? strchr(units, *end) : NULL;
	if (*end && !unit)
		return false;
	if (unit)
		shift = 10 * (unsigned)(unit - units + 1);
	if (value == 0 || value > UINT64_MAX >> shift)
		return false;
	*ret_bytes = value << shift;
	return true;
}

bool options_capture(const char *text, enum daemon_capture *ret_capture)
{
	static const char *const names[] = {
		[DAEMON_CAPTURE_STOP] = "stop",
		[DAEMON_CAPTURE_KERNEL] = "kernel",
		[DAEMON_CAPTURE_AUTO] = "auto",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) != 0)
			continue;
		*ret_capture = (enum daemon_capture)i;
		return true;
	}
	return false;
}

bool options_rate(const char *text, unsigned *ret_rate_hz)
{
	long number;

	if (!options_number(text, 1, RATE_MAX, &number))
		return false;
	*ret_rate_hz = (unsigned)number;
	return true;
}

bool options_add_name(const char *program, const char *pattern, const char ***names, size_t *count)
{
	regex_t regex;

	/* An empty one matches every process: more likely a variable that is not set. */
	if (!*pattern || regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) != 0)
		return false;
	regfree(&regex);
	*names = options_one_more(program, *names, *count, sizeof(**names));
	(*names)[(*count)++] = pattern;
	return true;
}

bool options_add_pids(const char *program, const char *list, pid_t **pids, size_t *count)
{
	char text[16];
	size_t len;
	long number;

	for (;; list += len + 1) {
		len = strcspn(list, ",");
		if (len >= sizeof(text))
			return false;
		memcpy(text, list, len);
		text[len] = '\0';
		if (!options_number(text, 1, INT32_MAX, &number))
			return false;
		add_pid(program, (pid_t)number, pids, count);
		if (!list[len])
			return true;
	}
}
