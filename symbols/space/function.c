/* SPDX-License-Identifier: MIT */
/* What is the name of an address: symbol, linkage table, or file and offset? */
#include "symbols/space/space_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "attach/hash.h"
#include "symbols/names/demangle.h"

/** Bytes of names that one space keeps. A target that invents code addresses without end, such as
 *  another compiler's output, must not make us grow without end. */
#define STRINGS_MAX_BYTES ((size_t)8 << 20)

/** Shown if the space keeps no more names. */
#define NO_ROOM "[more names than kept]"

/** @return The space's copy of a text; equal texts have one copy. */
static const char *keep_text(struct symbols_space *space, const char *text)
{
	size_t len = strlen(text);
	struct failure why;
	uint32_t id;

	if (!intern_find(space->strings, text, len, &id)) {
		if (space->string_bytes + len + 1 > STRINGS_MAX_BYTES ||
		    intern_put(space->strings, text, len, &id, &why) != 0)
			return NO_ROOM;
		space->string_bytes += len + 1;
	}
	return intern_get(space->strings, id, NULL);
}

/** Keep the name of a symbol, as its program's source has it. */
static const char *keep_symbol(struct symbols_space *space, const char *symbol)
{
	char text[SYMBOLS_NAME_MAX_BYTES];

	return keep_text(space, symbols_demangle(symbol, text, sizeof(text)) ? text : symbol);
}

/** Base name of a mapped file, or the kernel's name of the mapping. */
static const char *module_of(struct symbols_space *space, const struct symbols_mapping *mapping)
{
	static const char deleted[] = " (deleted)";
	char text[256];
	const char *path = mapping ? mapping->path : "[unmapped]", *slash;
	size_t len;

	if (!*path)
		path = "[anon]";
	slash = path[0] == '[' ? NULL : strrchr(path, '/');
	snprintf(text, sizeof(text), "%s", slash && slash[1] ? slash + 1 : path);
	len = strlen(text);
	if (len >= sizeof(deleted) && !strcmp(text + len - (sizeof(deleted) - 1), deleted))
		text[len - (sizeof(deleted) - 1)] = '\0';
	return keep_text(space, text);
}

/** Name a function without a symbol by the @p offset of its start. */
static void set_offset_name(struct symbols_space *space, struct symbols_function *function,
			    uint64_t offset)
{
	char text[300];

	snprintf(text, sizeof(text), "%s+0x%" PRIx64, function->module, offset);
	function->name = keep_text(space, text);
}

static int name_in_object(struct symbols_space *space, struct symbols_object *object, uint64_t bias,
			  uint64_t address, struct symbols_function *function, struct failure *why)
{
	const struct symbols_names *names = symbols_space_names(space, object);
	const struct symbols_eh *eh = symbols_space_eh(space, object);
	struct symbols_name name;
	struct symbols_eh_entry entry;
	char text[SYMBOLS_NAME_MAX_BYTES];

	if (!names)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, address, "load symbols");
	if (symbols_names_find(names, eh, address - bias, &name, text)) {
		function->start = name.start + bias;
		function->end = name.end + bias;
		function->is_symbol = true;
		function->name = keep_symbol(space, text);
		return 0;
	}
	if (symbols_plt_find(&object->plt, &object->elf, address - bias, &name.start, &name.end,
			     text)) {
		function->start = name.start + bias;
		function->end = name.end + bias;
		function->is_symbol = true;
		function->name = keep_text(space, text);
		return 0;
	}
	if (eh && symbols_eh_find(eh, address - bias, &entry)) {
		function->start = entry.start + bias;
		function->end = entry.end + bias;
	}
	set_offset_name(space, function, function->start - bias);
	return 0;
}

static int find_function(struct symbols_space *space, uint64_t address,
			 struct symbols_function *function, struct failure *why)
{
	const struct symbols_mapping *mapping = symbols_space_find(space, address);
	uint64_t bias = 0;
	struct symbols_object *object = symbols_space_object_at(space, address, &bias);

	*function = (struct symbols_function){ .start = address, .end = address + 1 };
	function->module = module_of(space, mapping);
	if (object)
		return name_in_object(space, object, bias, address, function, why);
	/* Code outside files: one function per mapping, because we know no smaller parts. */
	if (mapping && !mapping->inode) {
		function->start = mapping->start;
		function->end = mapping->end;
		function->name = keep_text(space, function->module);
		return 0;
	}
	/* Without the file we use the file offset, which equals the link-time address in most
	 * files. */
	set_offset_name(space, function,
			mapping && mapping->inode ? address - mapping->start + mapping->offset
						  : address);
	return 0;
}

int symbols_find_function(struct symbols_space *space, uint64_t address,
			  struct symbols_function *ret_function, struct failure *why)
{
	struct symbols_cached *cached =
		&space->cache[hash_spread(address) >> 32 & (SYMBOLS_CACHE_SLOTS - 1)];
	struct symbols_function function;

	if (cached->generation != space->generation || cached->address != address) {
		if (find_function(space, address, &function, why) < 0)
			return -1;
		cached->generation = space->generation;
		cached->address = address;
		cached->function = function;
	}
	*ret_function = cached->function;
	return 0;
}

int symbols_find_address(struct symbols_space *space, const char *name, uint64_t *ret_address,
			 struct failure *why)
{
	const struct symbols_object *last = NULL;

	for (size_t i = 0; i < space->maps.count; i++) {
		struct symbols_object *object;
		const struct symbols_names *names;
		uint64_t bias, vaddr;

		if (!space->maps.list[i].executable)
			continue;
		object = symbols_space_bind(space, i, &bias);
		if (!object || object == last)
			continue;
		last = object;
		names = symbols_space_names(space, object);
		if (names && symbols_names_find_address(names, name, &vaddr)) {
			*ret_address = vaddr + bias;
			return 0;
		}
	}
	return failure_set(why, FAILURE_NOT_FOUND, 0, 0, 0, "find a symbol");
}
