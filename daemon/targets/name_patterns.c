/* SPDX-License-Identifier: MIT */
/* Does the name of a process match a pattern? */
#include "daemon/targets/name_patterns.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>

struct name_patterns {
	size_t count;
	regex_t list[];
};

int name_patterns_create(const char *const *names, size_t count,
			 struct name_patterns **ret_patterns, struct failure *why)
{
	struct name_patterns *patterns =
		calloc(1, sizeof(*patterns) + count * sizeof(patterns->list[0]));

	if (!patterns)
		return failure_set_errno(why, ENOMEM, 0, "find processes");
	for (size_t i = 0; i < count; i++) {
		if (regcomp(&patterns->list[i], names[i], REG_EXTENDED | REG_NOSUB)) {
			name_patterns_destroy(patterns);
			return failure_set(why, FAILURE_INVALID, 0, 0, i,
					   "understand a regular expression");
		}
		patterns->count++;
	}
	*ret_patterns = patterns;
	return 0;
}

void name_patterns_destroy(struct name_patterns *patterns)
{
	if (!patterns)
		return;
	for (size_t i = 0; i < patterns->count; i++)
		regfree(&patterns->list[i]);
	free(patterns);
}

bool name_patterns_match(const struct name_patterns *patterns, const struct attach_names *names)
{
	for (size_t i = 0; i < patterns->count; i++)
		if (regexec(&patterns->list[i], names->command, 0, NULL, 0) == 0 ||
		    (names->program[0] &&
		     regexec(&patterns->list[i], names->program, 0, NULL, 0) == 0))
			return true;
	return false;
}
