/* SPDX-License-Identifier: MIT */
/* Which part of which file is mapped at an address, and which build-id has the file? */
#include "daemon/decode/mapped.h"

#include "format/text.h"

#include <stdio.h>
#include <string.h>

static void copy_path(const char *path, char ret_path[MAPPED_PATH_MAX])
{
	static const char deleted[] = " (deleted)";
	size_t mark = sizeof(deleted) - 1, len;

	snprintf(ret_path, MAPPED_PATH_MAX, "%s", path);
	len = strlen(ret_path);
	if (len > mark && strcmp(ret_path + len - mark, deleted) == 0)
		ret_path[len - mark] = '\0';
}

const struct format_mapping *target_find_mapping(struct daemon_target *target, uint64_t address,
						 struct target_mapped *ret_mapped)
{
	const struct symbols_mapping *mapping = symbols_space_find(target->space, address);
	uint8_t build_id[SYMBOLS_BUILD_ID_MAX];
	size_t len;

	if (!mapping || (!mapping->inode && strcmp(mapping->path, "[vdso]") != 0))
		return NULL;
	copy_path(mapping->path, ret_mapped->path);
	len = symbols_find_build_id(target->space, address, build_id);
	for (size_t i = 0; i < len; i++)
		snprintf(ret_mapped->build_id + 2 * i, 3, "%02x", build_id[i]);
	ret_mapped->mapping =
		(struct format_mapping){ .start = mapping->start,
					 .limit = mapping->end,
					 .offset = mapping->offset,
					 .path = ret_mapped->path,
					 .build_id = len ? ret_mapped->build_id : NULL };
	return &ret_mapped->mapping;
}

bool mapped_is_missing_luajit(struct symbols_space *space, size_t index)
{
	const struct symbols_mapping *mapping = symbols_space_get(space, index);
	const char *slash = strrchr(mapping->path, '/');

	return mapping->executable && slash && strstr(slash, "lua") &&
	       symbols_space_lacks_file(space, index);
}

void mapped_add_hint(struct symbols_space *space, char *text, size_t len)
{
	size_t used = strlen(text);

	for (size_t i = 0; i < symbols_space_count(space); i++)
		if (mapped_is_missing_luajit(space, i)) {
			char path[MAPPED_PATH_MAX];

			copy_path(symbols_space_get(space, i)->path, path);
			format_clean_text(path, strlen(path)); /* a target chooses it */
			snprintf(
				text + used, len - used,
				" (%s was replaced or removed while it ran: only root can open it)",
				path);
			return;
		}
}
