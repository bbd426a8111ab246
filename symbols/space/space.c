/* SPDX-License-Identifier: MIT */
/* How do mappings and their objects follow a target's changes? */
#include "symbols/space/space_internal.h"
#include "attach/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/** Changes of the maps that an unmapped object survives. So a program that loads and unloads a
 *  library in a loop finds it still open. */
#define UNMAPPED_MAX 8

/** Attempts to read maps that are complete and consistent. */
#define READ_TRIES 10

/** Rest before the second attempt; each later rest doubles, 10 ms in all. Otherwise a program that
 *  calls exec again and again could keep step with the attempts. */
#define FIRST_REST_NS 20000

/* ---- Create and destroy ----------------------------------------------------------------- */

/* Threads and other users get the other half of the descriptors. */
static unsigned most_objects(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 2 >= SYMBOLS_MAX_OBJECTS)
		return SYMBOLS_MAX_OBJECTS;
	return (unsigned)(limit.rlim_cur / 2);
}

static struct symbols_space *allocate(struct failure *why)
{
	struct symbols_space *space = calloc(1, sizeof(*space));

	if (space) {
		space->root.fd = -1;
		space->generation = 1;
		space->object_max = most_objects();
		space->strings = intern_create();
	}
	if (!space || !space->strings) {
		free(space);
		failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "keep an address space");
		return NULL;
	}
	return space;
}

/** Replace the space's mappings by those of a maps text. */
static int take_maps(struct symbols_space *space, const char *text, size_t len, struct failure *why)
{
	struct symbols_maps maps;
	struct symbols_binding *bindings;

	if (symbols_maps_init(text, len, &maps, why) < 0)
		return -1;
	bindings = calloc(maps.count + 1, sizeof(*bindings));
	if (!bindings) {
		symbols_maps_deinit(&maps);
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "keep an address space");
	}
	symbols_maps_deinit(&space->maps);
	free(space->bindings);
	space->maps = maps;
	space->bindings = bindings;
	return 0;
}

/**
 * Read the live maps once, and use them if they differ.
 *
 * The maps are empty for a process that has given its memory back. They are also empty if an exec
 * happens between open and read, because an open file shows the memory of the old program. If the
 * exec happens between two reads, the end is missing until the next refresh. The kernel writes some
 * 4 KiB at a time; between two of them the target may map and merge, and lines then overlap.
 * @return 1 if they differ, 0 if not, or -1: FAILURE_GONE if they are empty, FAILURE_INVALID if
 *         they overlap.
 * Source: Linux 6.1, fs/proc/task_mmu.c, proc_maps_open(), m_start().
 */
static int try_update(struct symbols_space *space, struct failure *why)
{
	char path[64], *text;
	size_t len;
	int result = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)attach_process_pid(space->process));
	if (symbols_maps_read(path, &text, &len, why) < 0)
		return -1;
	if (len == 0)
		result = failure_set(why, FAILURE_GONE, 0, 0, 0, "read the memory map");
	else if (!space->maps.text || len != space->maps.len ||
		 memcmp(text, space->maps.text, len) != 0)
		result = take_maps(space, text, len, why) < 0 ? -1 : 1;
	free(text);
	return result;
}

/** Whether another attempt may succeed. */
static bool is_passing(const struct symbols_space *space, const struct failure *why)
{
	return why->kind == FAILURE_INVALID ||
	       (why->kind == FAILURE_GONE &&
		attach_process_fate(space->process) != ATTACH_FATE_ENDED);
}

/**
 * Read the live maps until they are complete and consistent.
 * @return As try_update().
 */
static int update(struct symbols_space *space, struct failure *why)
{
	struct failure reason = { 0 };
	int result = try_update(space, &reason);

	for (unsigned i = 1; i < READ_TRIES && result < 0 && is_passing(space, &reason); i++) {
		struct timespec rest = { .tv_nsec = (long)FIRST_REST_NS << (i - 1) };

		nanosleep(&rest, NULL);
		result = try_update(space, &reason);
	}
	if (result < 0 && why) {
		*why = reason;
		why->tid = attach_process_pid(space->process);
	}
	return result;
}

int symbols_space_create(struct attach_process *process, struct symbols_space **ret_space,
			 struct failure *why)
{
	struct symbols_space *space = allocate(why);

	if (!space)
		return -1;
	space->process = process;
	space->memory = attach_process_reader(process);
	symbols_root_init_live(&space->root, attach_process_pid(process));
	if (update(space, why) < 0) {
		symbols_space_destroy(space);
		return -1;
	}
	*ret_space = space;
	return 0;
}

int symbols_space_create_recorded(const char *maps, size_t len, struct symbols_space **ret_space,
				  struct failure *why)
{
	struct symbols_space *space = allocate(why);

	if (!space)
		return -1;
	symbols_root_init_recorded(&space->root);
	if (take_maps(space, maps, len, why) < 0) {
		symbols_space_destroy(space);
		return -1;
	}
	*ret_space = space;
	return 0;
}

void symbols_space_set_memory(struct symbols_space *space, const struct attach_reader *memory)
{
	space->memory = memory;
}

void symbols_space_destroy(struct symbols_space *space)
{
	struct symbols_object *object, *next;

	if (!space)
		return;
	HASH_ITER(hh, space->objects, object, next)
	{
		HASH_DEL(space->objects, object);
		symbols_object_destroy(object);
	}
	free(space->bindings);
	symbols_maps_deinit(&space->maps);
	symbols_root_deinit(&space->root);
	intern_destroy(space->strings);
	free(space);
}

/* ---- Refresh ---------------------------------------------------------------------------- */

static struct symbols_object *find_object(const struct symbols_space *space,
					  const struct symbols_object_key *key)
{
	struct symbols_object *object;

	HASH_FIND(hh, space->objects, key, sizeof(*key), object);
	return object;
}

/**
 * Open the object that a mapping shows.
 * @return NULL, and why: the file is missing, or there is no room for it.
 */
static struct symbols_object *add_object(struct symbols_space *space,
					 const struct symbols_mapping *mapping, struct failure *why)
{
	const struct symbols_opener opener = { .root = &space->root,
					       .memory = space->memory,
					       .headers_prove = space->headers_prove };
	struct symbols_object *object;

	if (HASH_COUNT(space->objects) >= space->object_max) {
		failure_set(&space->shortage, FAILURE_LIMIT, 0, 0, 0, "keep all mapped files open");
		return NULL;
	}
	if (symbols_object_create(mapping, &opener, &object, why) != 0)
		return NULL;
	HASH_ADD(hh, space->objects, key, sizeof(object->key), object);
	if (object->hh.tbl)
		return object;
	symbols_object_destroy(object);
	failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "keep a mapped file");
	return NULL;
}

static void mark_mapped(struct symbols_space *space)
{
	uint64_t last = 0;

	for (struct symbols_object *object = space->objects; object; object = object->hh.next)
		object->unmapped++;
	for (size_t i = 0; i < space->maps.count; i++) {
		const struct symbols_mapping *mapping = &space->maps.list[i];
		struct symbols_object_key key;
		struct symbols_object *object;

		if ((mapping->inode == last && last) || !symbols_object_key(mapping, &key))
			continue;
		last = mapping->inode;
		object = find_object(space, &key);
		if (object)
			object->unmapped = 0;
	}
}

/** Drop objects that were unmapped long ago, or whose file has changed. */
static void drop_objects(struct symbols_space *space)
{
	struct symbols_object *object, *next;

	HASH_ITER(hh, space->objects, object, next)
	{
		if (object->unmapped <= UNMAPPED_MAX &&
		    symbols_source_unchanged(&object->elf.source))
			continue;
		HASH_DEL(space->objects, object);
		symbols_object_destroy(object);
	}
}

int symbols_space_refresh(struct symbols_space *space, struct failure *why)
{
	int changed = space->process ? update(space, why) : 0;

	if (changed <= 0)
		return changed;
	space->generation++;
	mark_mapped(space);
	drop_objects(space);
	return 0;
}

/* ---- Queries ---------------------------------------------------------------------------- */

uint64_t symbols_space_generation(const struct symbols_space *space)
{
	return space->generation;
}

size_t symbols_space_count(const struct symbols_space *space)
{
	return space->maps.count;
}

const struct symbols_mapping *symbols_space_get(const struct symbols_space *space, size_t index)
{
	return index < space->maps.count ? &space->maps.list[index] : NULL;
}

const struct symbols_mapping *symbols_space_find(const struct symbols_space *space,
						 uint64_t address)
{
	ptrdiff_t index = symbols_maps_find(&space->maps, address);

	return index < 0 ? NULL : &space->maps.list[index];
}

const char *symbols_space_text(const struct symbols_space *space, size_t *ret_len)
{
	*ret_len = space->maps.len;
	return space->maps.text;
}

bool symbols_space_lacks_file(struct symbols_space *space, size_t index)
{
	uint64_t bias;

	symbols_space_bind(space, index, &bias);
	return space->process && space->bindings[index].is_missing;
}

static bool note_shortage(struct symbols_space *space, const struct failure *why)
{
	if (!failure_is_shortage(why))
		return false;
	space->shortage = *why;
	return true;
}

struct symbols_object *symbols_space_bind(struct symbols_space *space, size_t index,
					  uint64_t *ret_bias)
{
	const struct symbols_mapping *mapping = &space->maps.list[index];
	struct symbols_binding *binding = &space->bindings[index];

	if (!binding->tried) {
		struct failure why = { .kind = FAILURE_NONE };
		struct symbols_object_key key;
		struct symbols_object *object = NULL;

		if (symbols_object_key(mapping, &key)) {
			object = find_object(space, &key);
			object = object ? object : add_object(space, mapping, &why);
		}
		binding->tried = !note_shortage(space, &why);
		binding->is_missing = !object && why.kind == FAILURE_NOT_FOUND;
		if (object && symbols_object_bias(&object->elf, mapping, &binding->bias))
			binding->object = object;
	}
	*ret_bias = binding->bias;
	return binding->object;
}

struct symbols_object *symbols_space_object_at(struct symbols_space *space, uint64_t address,
					       uint64_t *ret_bias)
{
	ptrdiff_t index = symbols_maps_find(&space->maps, address);

	return index < 0 ? NULL : symbols_space_bind(space, (size_t)index, ret_bias);
}

/** Drop unwind entries to make room for those of @p object, which were just loaded. */
static void drop_oldest_eh(struct symbols_space *space, const struct symbols_object *object)
{
	size_t kept = 0;

	for (struct symbols_object *each = space->objects; each; each = each->hh.next)
		kept += symbols_object_eh_size(each);
	while (kept > SYMBOLS_EH_KEPT_BYTES) {
		struct symbols_object *oldest = NULL;

		for (struct symbols_object *each = space->objects; each; each = each->hh.next)
			if (each != object && symbols_object_eh_size(each) &&
			    (!oldest || each->eh_used < oldest->eh_used))
				oldest = each;
		if (!oldest)
			break;
		kept -= symbols_object_eh_size(oldest);
		symbols_object_drop_eh(oldest);
		space->eh_drops++;
	}
}

const struct symbols_eh *symbols_space_eh(struct symbols_space *space,
					  struct symbols_object *object)
{
	bool was_tried = object->eh_tried;
	struct failure why;
	const struct symbols_eh *eh = symbols_object_eh(object, &why);

	note_shortage(space, &why);
	object->eh_used = ++space->eh_clock;
	if (!was_tried && eh)
		drop_oldest_eh(space, object);
	return eh;
}

static size_t size_of_names(const struct symbols_space *space)
{
	size_t size = 0;

	for (const struct symbols_object *each = space->objects; each; each = each->hh.next)
		size += each->names.count * sizeof(*each->names.list);
	return size;
}

const struct symbols_names *symbols_space_names(struct symbols_space *space,
						struct symbols_object *object)
{
	const struct symbols_names *names;
	uint64_t begin_ns;

	if (!object->names_tried)
		object->names_tried = space->names_ns > SYMBOLS_NAMES_LOAD_NS ||
				      size_of_names(space) > SYMBOLS_NAMES_KEPT_BYTES;
	if (object->names_tried)
		return &object->names;
	begin_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	names = symbols_object_names(object, &space->root);
	space->names_ns += clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
	return names;
}

int symbols_read_file_bytes(struct symbols_space *space, uint64_t address, void *ret_bytes,
			    size_t len, struct failure *why)
{
	uint64_t bias = 0;
	struct symbols_object *object = symbols_space_object_at(space, address, &bias);

	if (!object || !symbols_elf_read(&object->elf, address - bias, ret_bytes, len))
		return failure_set(why, FAILURE_FAULT, 0, 0, address, "read a mapped file");
	return 0;
}

size_t symbols_find_build_id(struct symbols_space *space, uint64_t address,
			     uint8_t ret_id[SYMBOLS_BUILD_ID_MAX])
{
	uint64_t bias = 0;
	const struct symbols_object *object = symbols_space_object_at(space, address, &bias);

	if (!object)
		return 0;
	memcpy(ret_id, object->elf.build_id, object->elf.build_id_len);
	return object->elf.build_id_len;
}

int symbols_space_add_evidence(struct symbols_space *space, struct attach_image *image,
			       struct failure *why)
{
	const struct symbols_object *last = NULL;

	for (size_t i = 0; i < space->maps.count; i++) {
		const struct symbols_binding *binding = &space->bindings[i];

		if (!binding->object || binding->object == last)
			continue;
		last = binding->object;
		if (symbols_object_add_evidence(last, binding->bias, image, why) < 0)
			return -1;
	}
	return 0;
}
