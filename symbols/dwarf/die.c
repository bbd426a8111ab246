/* SPDX-License-Identifier: MIT */
/* How do we read attributes of DWARF entries within bounds? */
#include "symbols/dwarf/die.h"
#include "attach/clock.h"

#include <dwarf.h>
#include <string.h>
#include <time.h>

void symbols_die_allow(struct symbols_die_time *time, uint64_t ns)
{
	time->wall_ns = clock_read_ns(CLOCK_MONOTONIC) + ns;
	time->cpu_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
	time->late = false;
}

bool symbols_die_down(Dwarf_Die *parent, Dwarf_Die *ret_child)
{
	return dwarf_child(parent, ret_child) == 0;
}

bool symbols_die_next(struct symbols_die_time *time, Dwarf_Die *die)
{
	if (clock_read_ns(CLOCK_MONOTONIC) >= time->wall_ns &&
	    clock_read_ns(CLOCK_THREAD_CPUTIME_ID) >= time->cpu_ns)
		time->late = true;
	return !time->late && dwarf_siblingof(die, die) == 0;
}

/* libdw's other functions for this would follow references to further entries. */
const char *symbols_die_name(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *name =
		dwarf_attr(die, DW_AT_name, &attribute) ? dwarf_formstring(&attribute) : NULL;

	return name && strnlen(name, SYMBOLS_DIE_NAME_MAX + 1) <= SYMBOLS_DIE_NAME_MAX ? name
										       : NULL;
}

bool symbols_die_number(Dwarf_Die *die, unsigned what, uint64_t *ret_number)
{
	Dwarf_Attribute attribute;
	Dwarf_Word number;

	if (!dwarf_attr(die, what, &attribute) || dwarf_formudata(&attribute, &number) != 0)
		return false;
	*ret_number = number;
	return true;
}

bool symbols_die_follow(Dwarf_Die *die, unsigned what, Dwarf_Die *ret_die)
{
	Dwarf_Attribute attribute;
	Dwarf_Die found;

	if (!dwarf_attr(die, what, &attribute) || !dwarf_formref_die(&attribute, &found))
		return false;
	*ret_die = found;
	return true;
}

bool symbols_die_is_struct(int tag)
{
	return tag == DW_TAG_structure_type || tag == DW_TAG_union_type;
}

bool symbols_die_is_declaration(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;

	return dwarf_attr(die, DW_AT_declaration, &attribute) != NULL;
}

bool symbols_die_strip(Dwarf_Die *die)
{
	for (unsigned i = 0; i < SYMBOLS_DIE_DEPTH_MAX; i++) {
		switch (dwarf_tag(die)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
			if (!symbols_die_follow(die, DW_AT_type, die))
				return false;
			break;
		default:
			return true;
		}
	}
	return false;
}

/* Number of elements of an array: the product of its dimensions; 0 if its length is open. */
static uint64_t elements_of(struct symbols_die_time *time, Dwarf_Die *array)
{
	uint64_t product = 1;
	Dwarf_Die child;

	if (!symbols_die_down(array, &child))
		return SYMBOLS_DIE_SIZE_UNKNOWN;
	do {
		uint64_t count;

		if (dwarf_tag(&child) != DW_TAG_subrange_type)
			continue;
		if (!symbols_die_number(&child, DW_AT_count, &count))
			count = symbols_die_number(&child, DW_AT_upper_bound, &count) ? count + 1
										      : 0;
		if (count > SYMBOLS_DIE_SIZE_MAX || product * count > SYMBOLS_DIE_SIZE_MAX)
			return SYMBOLS_DIE_SIZE_UNKNOWN;
		product *= count;
	} while (symbols_die_next(time, &child));
	return time->late ? SYMBOLS_DIE_SIZE_UNKNOWN : product;
}

uint64_t symbols_die_size(struct symbols_die_time *time, const Dwarf_Die *type)
{
	Dwarf_Die die = *type;
	uint64_t size, elements = 1;

	for (unsigned i = 0; i < SYMBOLS_DIE_DEPTH_MAX && symbols_die_strip(&die); i++) {
		int tag = dwarf_tag(&die);

		if (symbols_die_number(&die, DW_AT_byte_size, &size))
			return size > SYMBOLS_DIE_SIZE_MAX || size * elements > SYMBOLS_DIE_SIZE_MAX
				       ? SYMBOLS_DIE_SIZE_UNKNOWN
				       : size * elements;
		if (tag == DW_TAG_pointer_type)
			return 8 * elements;
		if (tag != DW_TAG_array_type)
			break;
		size = elements_of(time, &die);
		if (size == SYMBOLS_DIE_SIZE_UNKNOWN || size * elements > SYMBOLS_DIE_SIZE_MAX ||
		    !symbols_die_follow(&die, DW_AT_type, &die))
			break;
		elements *= size;
	}
	return SYMBOLS_DIE_SIZE_UNKNOWN;
}
