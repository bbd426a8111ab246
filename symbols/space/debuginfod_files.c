/* SPDX-License-Identifier: MIT */
/* Which debug files do we fetch, and how do we keep them? */

#include <stdlib.h>
#include <string.h>

#include "symbols/elf/debug_file.h"
#include "symbols/space/debuginfod.h"
#include "symbols/space/space_internal.h"

/** Files to ask for; a server answers some tens a second. */
#define FETCHES_MAX 256

/** Whether a debug file would add names or types. */
static bool is_wanted(const struct symbols_space *space, const struct symbols_object *object)
{
	struct symbols_elf debug;

	if (object->key.vdso_start || object->elf.symtab.size || object->elf.build_id_len < 2)
		return false;
	if (!symbols_debug_open(&space->root, &object->elf, object->path, SYMBOLS_DEBUG_NAMES,
				&debug))
		return true;
	symbols_elf_deinit(&debug);
	return false;
}

/** Files to ask for, for all spaces together. */
struct wanted {
	struct symbols_fetch list[FETCHES_MAX];
	size_t count;
};

static bool is_listed(const struct wanted *wanted, const struct symbols_elf *elf)
{
	for (size_t i = 0; i < wanted->count; i++)
		if (wanted->list[i].build_id_len == elf->build_id_len &&
		    memcmp(wanted->list[i].build_id, elf->build_id, elf->build_id_len) == 0)
			return true;
	return false;
}

static void list_wanted(struct symbols_space *space, const struct symbols_fetch_end *end,
			struct wanted *wanted)
{
	const struct symbols_object *last = NULL;
	uint64_t bias;

	for (size_t i = 0; i < space->maps.count && wanted->count < FETCHES_MAX; i++) {
		const struct symbols_object *object =
			space->maps.list[i].executable ? symbols_space_bind(space, i, &bias) : NULL;

		if (!object || object == last)
			continue;
		if (symbols_fetch_is_over(end))
			break;
		last = object;
		if (!is_listed(wanted, &object->elf) && is_wanted(space, object))
			wanted->list[wanted->count++] =
				(struct symbols_fetch){ .build_id = object->elf.build_id,
							.build_id_len = object->elf.build_id_len };
	}
}

/**
 * Keep one fetched file.
 * @return false when out of memory.
 */
static bool keep(struct symbols_root *root, const struct symbols_fetch *fetch)
{
	struct symbols_fetched *file = calloc(1, sizeof(*file));

	_Static_assert(sizeof(file->build_id) == SYMBOLS_BUILD_ID_MAX, "the same build-ids");
	if (!file)
		return false;
	file->path = strdup(fetch->path);
	if (!file->path) {
		free(file);
		return false;
	}
	memcpy(file->build_id, fetch->build_id, fetch->build_id_len);
	file->build_id_len = fetch->build_id_len;
	file->next = root->fetched;
	root->fetched = file;
	return true;
}

static bool has_object(const struct symbols_space *space, const struct symbols_fetch *fetch)
{
	for (const struct symbols_object *object = space->objects; object; object = object->hh.next)
		if (object->elf.build_id_len == fetch->build_id_len &&
		    memcmp(object->elf.build_id, fetch->build_id, fetch->build_id_len) == 0)
			return true;
	return false;
}

/**
 * Give a space the files for its objects.
 * @return false when out of memory.
 */
static bool take_files(struct symbols_space *space, const struct wanted *wanted)
{
	bool kept = true, any = false;

	for (size_t i = 0; i < wanted->count && kept; i++) {
		if (!wanted->list[i].path || !has_object(space, &wanted->list[i]))
			continue;
		kept = keep(&space->root, &wanted->list[i]);
		any = true;
	}
	if (!any)
		return kept;
	/* Earlier lookups did not know these files. */
	for (struct symbols_object *object = space->objects; object; object = object->hh.next)
		symbols_object_drop_names(object);
	memset(space->cache, 0, sizeof(space->cache));
	return kept;
}

int symbols_fetch_debug(struct symbols_space *const *spaces, size_t count, unsigned limit_ms,
			const volatile sig_atomic_t *stop, size_t *ret_count, struct failure *why)
{
	struct symbols_fetch_end end;
	struct wanted wanted = { .count = 0 };
	int result;

	*ret_count = 0;
	if (!symbols_fetch_is_asked_for())
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, 0, "find DEBUGINFOD_URLS");
	symbols_fetch_begin(limit_ms, stop, &end);
	for (size_t i = 0; i < count; i++)
		list_wanted(spaces[i], &end, &wanted);
	result = symbols_fetch(wanted.list, wanted.count, &end, why);
	for (size_t i = 0; i < count; i++)
		if (!take_files(spaces[i], &wanted))
			result = failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "keep debug files");
	for (size_t i = 0; i < wanted.count; i++) {
		*ret_count += wanted.list[i].path != NULL;
		free(wanted.list[i].path);
	}
	if (result == 0 && symbols_fetch_is_over(&end) && !(stop && *stop))
		return failure_set(why, FAILURE_TIMEOUT, 0, 0, 0, "fetch debug files in time");
	return result;
}
