/* SPDX-License-Identifier: MIT */
/* Which user and groups do /etc/passwd and /etc/group name? For statically linked programs. */

/* These functions replace those of the C library in a program that is linked statically. The
 * library's load modules for other sources of users, such as LDAP, from the host. Such a module
 * belongs to the host's C library, and its code may crash next to ours. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** As many groups as the kernel accepts. Source: Linux include/uapi/linux/limits.h. */
#define GROUPS_MAX 65536

struct passwd *getpwuid(uid_t uid)
{
	FILE *file = fopen("/etc/passwd", "re");
	struct passwd *user = NULL;

	if (!file)
		return NULL;
	do
		user = fgetpwent(file);
	while (user && user->pw_uid != uid);
	fclose(file);
	return user;
}

static bool has_member(const struct group *group, const char *name)
{
	for (char **member = group->gr_mem; *member; member++)
		if (strcmp(*member, name) == 0)
			return true;
	return false;
}

/** Read the further groups of a user. @return How many @p groups has then, at most GROUPS_MAX. */
static size_t read_groups(const char *name, gid_t groups[GROUPS_MAX], size_t count)
{
	FILE *file = fopen("/etc/group", "re");
	const struct group *group;

	if (!file)
		return count;
	while (count < GROUPS_MAX && (group = fgetgrent(file)) != NULL)
		if (has_member(group, name))
			groups[count++] = group->gr_gid;
	fclose(file);
	return count;
}

int initgroups(const char *name, gid_t gid)
{
	gid_t *groups = calloc(GROUPS_MAX, sizeof(*groups));
	int result;

	if (!groups)
		return -1;
	groups[0] = gid;
	result = setgroups(read_groups(name, groups, 1), groups);
	free(groups);
	return result;
}
