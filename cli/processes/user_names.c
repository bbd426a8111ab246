/* SPDX-License-Identifier: MIT */
/* What is a user called? */
#include "cli/processes/user_names.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "format/text.h"

enum { USER_BYTES = 33 };

/* Processes have few users, and asking for a name may take long. */
const char *user_names_of(uid_t uid)
{
	static char name[USER_BYTES];
	static uid_t known;
	const struct passwd *user;

	if (*name && uid == known)
		return name;
	user = getpwuid(uid);
	if (user)
		snprintf(name, sizeof(name), "%s", user->pw_name);
	else
		snprintf(name, sizeof(name), "%u", (unsigned)uid);
	format_clean_text(name, strlen(name));
	known = uid;
	return name;
}
