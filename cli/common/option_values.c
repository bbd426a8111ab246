/* SPDX-License-Identifier: MIT */
/* Which values do the arguments of options have, and which word is most like a wrong one? */
#include "cli/common/option_values.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/options.h"

enum {
	/* Linux, TASK_COMM_LEN, without the terminator. */
	COMMAND_MAX = 15,
	/* Longer words are not compared. */
	GUESS_MAX = 48,
};

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

void options_add_pid(const char *program, pid_t pid, struct options_pids *pids)
{
	for (size_t i = 0; i < pids->count; i++)
		if (pids->pids[i] == pid)
			return;
	pids->pids = one_more(program, pids->pids, pids->count, sizeof(*pids->pids));
	pids->pids[pids->count++] = pid;
}

bool options_time(const char *text, double unit_s, double min_s, double max_s, double *ret_seconds)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = { { "ms", 1e-3 }, { "s", 1 }, { "m", 60 }, { "h", 3600 } };
	char *end;
	double value = strtod(text, &end);

	if (end == text)
		return false;
	for (size_t i = 0; *end && i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].name) != 0)
			continue;
		unit_s = units[i].seconds;
		end += strlen(end);
	}
	value *= unit_s;
	/* Also rejects NaN. */
	if (*end || !(value >= min_s) || !(value <= max_s))
		return false;
	*ret_seconds = value;
	return true;
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

void options_names_deinit(struct options_names *names)
{
	for (size_t i = 0; i < names->exact_count; i++)
		free(names->exact[i]);
	free(names->exact);
	free(names->words);
	free(names->patterns);
	*names = (struct options_names){ 0 };
}

/* Put a name into a pattern, with all special characters quoted. @return Its end. */
static char *quote(char *to, const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (strchr("\\^$.[]|()*+?{}", name[i]))
			*to++ = '\\';
		*to++ = name[i];
	}
	return to;
}

void options_add_exact_name(const char *program, const char *name, struct options_names *names)
{
	size_t len = strlen(name);
	char *pattern = one_more(program, NULL, 4 * len + 8, 1), *to = pattern;

	*to++ = '^';
	*to++ = '(';
	to = quote(to, name, len);
	if (len > COMMAND_MAX) {
		*to++ = '|';
		to = quote(to, name, COMMAND_MAX);
	}
	memcpy(to, ")$", sizeof(")$"));
	names->exact = one_more(program, names->exact, names->exact_count, sizeof(*names->exact));
	names->words = one_more(program, names->words, names->exact_count, sizeof(*names->words));
	names->exact[names->exact_count] = pattern;
	names->words[names->exact_count++] = name;
	names->patterns =
		one_more(program, names->patterns, names->count, sizeof(*names->patterns));
	names->patterns[names->count++] = pattern;
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
		options_add_pid(program, (pid_t)number, pids);
		if (!list[len])
			return true;
	}
}

/* ---- Guesses ---------------------------------------------------------------------------- */

/* How many characters to insert, remove, replace or swap with the next one.
 * Source: optimal string alignment distance. */
static unsigned distance(const char *one, size_t one_len, const char *other, size_t other_len)
{
	unsigned rows[3][GUESS_MAX + 1], *older = rows[0], *last = rows[1], *now = rows[2], *spare;

	for (size_t k = 0; k <= other_len; k++)
		last[k] = (unsigned)k;
	for (size_t i = 1; i <= one_len; i++) {
		now[0] = (unsigned)i;
		for (size_t k = 1; k <= other_len; k++) {
			unsigned best = last[k - 1] + (one[i - 1] != other[k - 1]);

			best = last[k] + 1 < best ? last[k] + 1 : best;
			best = now[k - 1] + 1 < best ? now[k - 1] + 1 : best;
			if (i > 1 && k > 1 && one[i - 1] == other[k - 2] &&
			    one[i - 2] == other[k - 1] && older[k - 2] + 1 < best)
				best = older[k - 2] + 1;
			now[k] = best;
		}
		spare = older;
		older = last;
		last = now;
		now = spare;
	}
	return last[other_len];
}

void options_guess(const char *wrong, const char *right, struct options_guess *guess)
{
	size_t wrong_len = strlen(wrong), right_len = strlen(right);
	unsigned found;

	if (wrong_len < 2 || right_len < 2 || wrong_len > GUESS_MAX || right_len > GUESS_MAX)
		return;
	found = distance(wrong, wrong_len, right, right_len);
	/* One error in three characters. */
	if (3 * found > right_len + 1 || (guess->word && found >= guess->distance))
		return;
	*guess = (struct options_guess){ .word = right, .distance = found };
}
