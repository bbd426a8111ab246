/* SPDX-License-Identifier: MIT */
/*
 * Which structures does a program have, by name?
 *
 * We list only types at the top level of a unit, because C has its types there. Two units may have
 * different types of the same name. So we read only units that define the caller's anchor, and give
 * no answer if these units differ.
 */

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#include "attach/hash.h"
#include "symbols/dwarf/types_internal.h"
#include "symbols/dwarf/die.h"
#include "symbols/dwarf/dwarf_file.h"
#include "symbols/elf/bytes.h"
#include "symbols/elf/debug_file.h"
#include "symbols/space/space_internal.h"

/** Names to list at most; the units of a LuaJIT have about 700. */
#define TYPES_MAX ((size_t)1 << 14)
/** Processor time for listing and all answers; Tarantool's 8 MiB take 0.1 s. */
#define WORK_MAX_NS 2000000000
/** Depth of units that import units; dwz writes one level. */
#define IMPORTS_MAX 4

enum kind { KIND_STRUCT, KIND_TYPEDEF, KIND_ENUM, KIND_COUNT };

struct type {
	const char *name; /**< Points into libdw's copy of the file. */
	Dwarf_Die die;
	uint64_t size;
	enum kind kind;
	bool ambiguous; /**< Another unit has a different type of this name. */
	UT_hash_handle hh;
};

struct symbols_types {
	struct symbols_dwarf file;
	struct type *list;
	size_t count;
	struct type *by_name[KIND_COUNT]; /**< Hash tables. */
	const char *anchor;
	struct symbols_die_time time;
};

/* ---- Listing ---------------------------------------------------------------------------- */

static struct type *find_type(const struct symbols_types *types, enum kind kind, const char *name)
{
	struct type *type;

	HASH_FIND_STR(types->by_name[kind], name, type);
	return type;
}

static void add(struct symbols_types *types, enum kind kind, const char *name, const Dwarf_Die *die)
{
	struct type *known = find_type(types, kind, name);
	uint64_t size = symbols_die_size(&types->time, die);

	if (!known && types->count < TYPES_MAX) {
		struct type *type = &types->list[types->count];

		*type = (struct type){ .name = name, .die = *die, .size = size, .kind = kind };
		HASH_ADD_KEYPTR(hh, types->by_name[kind], name, strlen(name), type);
		types->count += type->hh.tbl != NULL;
	} else if (known) {
		/* A type that is only declared so far may be complete in this unit. */
		if (known->size == SYMBOLS_DIE_SIZE_UNKNOWN) {
			known->die = *die;
			known->size = size;
		} else if (size != SYMBOLS_DIE_SIZE_UNKNOWN && size != known->size) {
			known->ambiguous = true;
		}
	}
}

/** List an enumeration by its name, or without one by its first constant's name. */
static void add_enumeration(struct symbols_types *types, Dwarf_Die *die)
{
	const char *name = symbols_die_name(die);
	Dwarf_Die child;

	if (!symbols_die_down(die, &child))
		return;
	if (!name)
		name = symbols_die_name(&child);
	if (name)
		add(types, KIND_ENUM, name, die);
}

static void add_type(struct symbols_types *types, Dwarf_Die *die)
{
	int tag = dwarf_tag(die);
	const char *name;

	if (tag == DW_TAG_enumeration_type) {
		add_enumeration(types, die);
		return;
	}
	if ((!symbols_die_is_struct(tag) && tag != DW_TAG_typedef) ||
	    symbols_die_is_declaration(die))
		return;
	name = symbols_die_name(die);
	if (name)
		add(types, symbols_die_is_struct(tag) ? KIND_STRUCT : KIND_TYPEDEF, name, die);
}

/**
 * Visit the top level of a unit and of the units that it imports.
 * @param visit Returns false to end.
 * @return false if it did.
 */
static bool each_type(struct symbols_types *types, Dwarf_Die *unit, unsigned depth,
		      bool (*visit)(struct symbols_types *types, Dwarf_Die *die))
{
	Dwarf_Die child, imported;

	if (!symbols_die_down(unit, &child))
		return true;
	do {
		if (dwarf_tag(&child) != DW_TAG_imported_unit) {
			if (!visit(types, &child))
				return false;
		} else if (depth < IMPORTS_MAX &&
			   symbols_die_follow(&child, DW_AT_import, &imported) &&
			   !each_type(types, &imported, depth + 1, visit)) {
			return false;
		}
	} while (symbols_die_next(&types->time, &child));
	return true;
}

static bool visit_to_add(struct symbols_types *types, Dwarf_Die *die)
{
	add_type(types, die);
	return true;
}

/** End the visits at the complete structure of the anchor's name. */
static bool visit_to_find(struct symbols_types *types, Dwarf_Die *die)
{
	const char *name;

	if (!symbols_die_is_struct(dwarf_tag(die)) || symbols_die_is_declaration(die))
		return true;
	name = symbols_die_name(die);
	return !name || strcmp(name, types->anchor) != 0;
}

static int list_types(struct symbols_types *types, struct failure *why)
{
	Dwarf *dwarf = types->file.dwarf;
	Dwarf_Off at = 0, next;
	size_t header;
	Dwarf_Die unit;

	while (!types->time.late &&
	       dwarf_nextcu(dwarf, at, &next, &header, NULL, NULL, NULL) == 0 && next > at) {
		if (dwarf_offdie(dwarf, at + header, &unit) &&
		    !each_type(types, &unit, 0, visit_to_find))
			each_type(types, &unit, 0, visit_to_add);
		at = next;
	}
	/* The other units could contradict the units that we have read. */
	if (types->time.late)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "list the structures in DWARF");
	if (types->count)
		return 0;
	return failure_set(why, FAILURE_NOT_FOUND, 0, 0, 0, "find a structure in DWARF");
}

/* ---- Create and destroy ----------------------------------------------------------------- */

/** Open the object's own DWARF, or the DWARF of its debug file. */
static int open_dwarf(struct symbols_space *space, const struct symbols_object *object,
		      struct symbols_dwarf *ret_dwarf, struct failure *why)
{
	struct symbols_elf debug;
	int result;

	if (object->elf.has_dwarf)
		return symbols_dwarf_init(&object->elf, &space->root, ret_dwarf, why);
	if (!symbols_debug_open(&space->root, &object->elf, object->path, SYMBOLS_DEBUG_TYPES,
				&debug))
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, 0, "find DWARF");
	result = symbols_dwarf_init(&debug, &space->root, ret_dwarf, why);
	symbols_elf_deinit(&debug);
	return result;
}

int symbols_types_create(struct symbols_space *space, uint64_t address, const char *anchor,
			 struct symbols_types **ret_types, struct failure *why)
{
	return symbols_types_create_within(space, address, anchor, WORK_MAX_NS, ret_types, why);
}

int symbols_types_create_within(struct symbols_space *space, uint64_t address, const char *anchor,
				uint64_t work_ns, struct symbols_types **ret_types,
				struct failure *why)
{
	uint64_t bias;
	struct symbols_object *object = symbols_space_object_at(space, address, &bias);
	struct symbols_types *types;

	if (!object)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, address, "find a mapped file");
	types = calloc(1, sizeof(*types));
	if (!types)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "keep types");
	types->anchor = anchor;
	symbols_die_allow(&types->time, work_ns);
	if (open_dwarf(space, object, &types->file, why) < 0) {
		free(types);
		return -1;
	}
	types->list = calloc(TYPES_MAX, sizeof(*types->list));
	if (!types->list)
		failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "keep types");
	else if (list_types(types, why) == 0) {
		*ret_types = types;
		return 0;
	}
	symbols_types_destroy(types);
	return -1;
}

void symbols_types_destroy(struct symbols_types *types)
{
	if (!types)
		return;
	symbols_dwarf_deinit(&types->file);
	for (int i = 0; i < KIND_COUNT; i++)
		HASH_CLEAR(hh, types->by_name[i]);
	free(types->list);
	free(types);
}

/* ---- Answers ---------------------------------------------------------------------------- */

bool symbols_types_are_late(const struct symbols_types *types)
{
	return types->time.late;
}

static int not_found(struct symbols_types *types, const char *step, struct failure *why)
{
	return failure_set(why, types->time.late ? FAILURE_LIMIT : FAILURE_NOT_FOUND, 0, 0, 0,
			   step);
}

/** Find a structure by its tag, else by a typedef. */
static int find_struct(struct symbols_types *types, const char *name, Dwarf_Die *ret_die,
		       uint64_t *ret_size, struct failure *why)
{
	const struct type *type = find_type(types, KIND_STRUCT, name);

	if (!type)
		type = find_type(types, KIND_TYPEDEF, name);
	if (!type)
		return not_found(types, "find a structure in DWARF", why);
	*ret_die = type->die;
	if (type->ambiguous || type->size == SYMBOLS_DIE_SIZE_UNKNOWN ||
	    !symbols_die_strip(ret_die) || !symbols_die_is_struct(dwarf_tag(ret_die)))
		return failure_set(why, FAILURE_INVALID, 0, 0, 0,
				   "find a unique structure in DWARF");
	*ret_size = type->size;
	return 0;
}

/** Read the offset of a member in its structure. */
static bool location_of(Dwarf_Die *member, uint64_t *ret_offset)
{
	Dwarf_Attribute attribute;
	Dwarf_Block block;
	struct symbols_bytes bytes;

	if (dwarf_attr(member, DW_AT_bit_size, &attribute) ||
	    dwarf_attr(member, DW_AT_data_bit_offset, &attribute))
		return false;
	if (symbols_die_number(member, DW_AT_data_member_location, ret_offset))
		return *ret_offset <= SYMBOLS_DIE_SIZE_MAX;
	*ret_offset = 0;
	if (!dwarf_attr(member, DW_AT_data_member_location, &attribute))
		return true; /* a member of a union */
	/* DWARF 2 has an expression here. */
	if (dwarf_formblock(&attribute, &block) != 0)
		return false;
	bytes = (struct symbols_bytes){ .start = block.data, .end = block.length };
	if (symbols_bytes_fixed(&bytes, 1) != DW_OP_plus_uconst)
		return false;
	*ret_offset = symbols_bytes_uleb(&bytes);
	return !bytes.failed && bytes.at == bytes.end && *ret_offset <= SYMBOLS_DIE_SIZE_MAX;
}

/**
 * Find the member @p name of a structure, also in its unnamed members.
 * @param ret_die The member's type.
 * @return 1 if found; 0 if not; -1 if it has no offset in bytes.
 */
static int find_member(struct symbols_types *types, Dwarf_Die *structure, const char *name,
		       size_t len, unsigned depth, Dwarf_Die *ret_die, uint64_t *ret_offset)
{
	Dwarf_Die child, type;

	if (depth == SYMBOLS_DIE_DEPTH_MAX || !symbols_die_down(structure, &child))
		return 0;
	do {
		const char *own =
			dwarf_tag(&child) == DW_TAG_member ? symbols_die_name(&child) : "";
		uint64_t offset;
		int found = own && strncmp(own, name, len) == 0 && !own[len];

		if ((!found && own) || !symbols_die_follow(&child, DW_AT_type, &type))
			continue;
		if (!location_of(&child, &offset)) {
			if (found)
				return -1;
			continue;
		}
		*ret_offset = offset;
		*ret_die = type;
		if (found)
			return 1;
		if (!symbols_die_strip(&type) || !symbols_die_is_struct(dwarf_tag(&type)))
			continue;
		found = find_member(types, &type, name, len, depth + 1, ret_die, ret_offset);
		*ret_offset += offset;
		if (found)
			return found;
	} while (symbols_die_next(&types->time, &child));
	return 0;
}

int symbols_types_find_member(struct symbols_types *types, const char *structure, const char *path,
			      uint64_t *ret_offset, uint64_t *ret_size, struct failure *why)
{
	uint64_t sum = 0, whole, size;
	Dwarf_Die die, type;

	if (find_struct(types, structure, &die, &whole, why) < 0)
		return -1;
	for (const char *part = path;; part++) {
		size_t len = strcspn(part, ".");
		uint64_t offset = 0;
		int found = find_member(types, &die, part, len, 0, &type, &offset);

		if (found < 0)
			return failure_set(why, FAILURE_INVALID, 0, 0, 0,
					   "find the offset of a bit field");
		if (found == 0)
			return not_found(types, "find a member in DWARF", why);
		sum += offset;
		part += len;
		if (!*part)
			break;
		die = type;
		if (!symbols_die_strip(&die))
			return not_found(types, "find a member in DWARF", why);
	}
	size = symbols_die_size(&types->time, &type);
	if (types->time.late)
		return not_found(types, "find a member in DWARF", why);
	if (size == SYMBOLS_DIE_SIZE_UNKNOWN || sum > whole || size > whole - sum)
		return failure_set(why, FAILURE_INVALID, 0, 0, 0, "find the offset of a member");
	*ret_offset = sum;
	*ret_size = size;
	return 0;
}

int symbols_types_find_size(struct symbols_types *types, const char *structure, uint64_t *ret_size,
			    struct failure *why)
{
	Dwarf_Die die;

	return find_struct(types, structure, &die, ret_size, why);
}

/** Compilers write constants of fixed length only if they are not negative, but libdw would extend
 *  their sign. */
static bool constant_of(Dwarf_Die *enumerator, int64_t *ret_value)
{
	Dwarf_Attribute attribute;
	Dwarf_Sword number;
	Dwarf_Word natural;
	unsigned form;

	if (!dwarf_attr(enumerator, DW_AT_const_value, &attribute))
		return false;
	form = dwarf_whatform(&attribute);
	if (form == DW_FORM_sdata || form == DW_FORM_implicit_const) {
		if (dwarf_formsdata(&attribute, &number) != 0)
			return false;
		*ret_value = number;
		return true;
	}
	if (dwarf_formudata(&attribute, &natural) != 0)
		return false;
	*ret_value = (int64_t)natural;
	return true;
}

/** Find a constant in one enumeration. */
static bool find_constant(struct symbols_types *types, const struct type *type, const char *name,
			  int64_t *ret_value)
{
	Dwarf_Die die = type->die, child;

	if (!symbols_die_down(&die, &child))
		return false;
	do {
		const char *own =
			dwarf_tag(&child) == DW_TAG_enumerator ? symbols_die_name(&child) : NULL;

		if (own && strcmp(own, name) == 0)
			return constant_of(&child, ret_value);
	} while (symbols_die_next(&types->time, &child));
	return false;
}

int symbols_types_find_enumerator(struct symbols_types *types, const char *name, int64_t *ret_value,
				  struct failure *why)
{
	for (size_t i = 0; i < types->count && !types->time.late; i++) {
		if (types->list[i].kind == KIND_ENUM &&
		    find_constant(types, &types->list[i], name, ret_value))
			return 0;
	}
	return not_found(types, "find a constant in DWARF", why);
}
