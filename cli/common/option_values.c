/* SPDX-License-Identifier: MIT */
/* Which values do the arguments of options have? */
#include "cli/common/option_values.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/options.h"

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

/* Make room for one item after @p count items; exit if memory is out. */
static void *one_more(const char *program, void *items, size_t count, size_t size)
{
	void *larger = reallocarray(items, count + 1, size);

	if (larger)
		return larger;
	fprintf(stderr, "%s: out of memory\n", program);
	exit(EXIT_SYSTEM);
}

/* Add a pid, unless the list has it. */
static void add_pid(const char *program, pid_t pid, struct options_pids *pids)
{
	for (size_t i = 0; i < pids->count; i++)
		if (pids->pids[i] == pid)
			return;
	pids->pids = one_more(program, pids->pids, pids->count, sizeof(*pids->pids));
	pids->pids[pids->count++] = pid;
}

bool options_seconds(const char *text, double min, double max, double *ret_value)
{
	char *end;
	double value = strtod(text, &end);

	/* Also rejects NaN. */
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
		/* Also rejects NaN. */
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
	/* Rejects a sign. */
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

bool options_add_name(const char *program, const char *pattern, struct options_names *names)
{
	regex_t regex;

	/* An empty pattern matches every process: more likely an unset variable. */
	if (!*pattern || regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) != 0)
		return false;
	regfree(&regex);
	names->patterns =
		one_more(program, names->patterns, names->count, sizeof(*names->patterns));
	names->patterns[names->count++] = pattern;
	return true;
}

bool options_add_pids(const char *program, const char *list, struct options_pids *pids)
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
		add_pid(program, (pid_t)number, pids);
		if (!list[len])
			return true;
	}
}
