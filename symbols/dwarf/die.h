/* SPDX-License-Identifier: MIT */
/*
 * How do we read DWARF entries ("debugging information entries"), if damaged ones may cost only
 * bounded time?
 * Source: DWARF 5, sections 2, 5 and 7.5.
 */
#ifndef SYMBOLS_DWARF_DIE_H
#define SYMBOLS_DWARF_DIE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

/** We skip longer names. */
#define SYMBOLS_DIE_NAME_MAX 255
/** Nested typedefs and qualifiers, arrays of arrays, nested unnamed members. */
#define SYMBOLS_DIE_DEPTH_MAX 16
/** We reject larger structures. */
#define SYMBOLS_DIE_SIZE_MAX ((uint64_t)1 << 30)
/** Size of a type that states none. */
#define SYMBOLS_DIE_SIZE_UNKNOWN UINT64_MAX

/**
 * Time limit of walks. It counts the thread's processor time, so a busy machine gives the same
 * answers as an idle one. We do not count steps: libdw itself walks over all entries below an
 * entry, and a damaged file decides how long this takes.
 */
struct symbols_die_time {
	uint64_t wall_ns, cpu_ns; /**< End of the limit on two clocks. The processor time cannot
				     reach its end first, and the wall clock is cheaper to read. */
	bool late;		  /**< A walk has ended early. */
};

/** Start a time limit of @p ns for all following walks. */
void symbols_die_allow(struct symbols_die_time *time, uint64_t ns);

/** Go to the first child. @return false if there is none. */
bool symbols_die_down(Dwarf_Die *parent, Dwarf_Die *ret_child);

/**
 * Go to the next sibling.
 * @return false if there is none, or if the time is over.
 */
bool symbols_die_next(struct symbols_die_time *time, Dwarf_Die *die);

/** @return NULL if it has no name or the name is too long. */
const char *symbols_die_name(Dwarf_Die *die);

/**
 * Read the attribute @p what, a number.
 * @return false if there is none.
 */
bool symbols_die_number(Dwarf_Die *die, unsigned what, uint64_t *ret_number);

/**
 * Go to the entry to which the attribute @p what refers.
 * @param ret_die May be @p die.
 */
bool symbols_die_follow(Dwarf_Die *die, unsigned what, Dwarf_Die *ret_die);

/** Whether a tag is a structure's or a union's. */
bool symbols_die_is_struct(int tag);

/** Whether the entry is a declaration, and the complete type is elsewhere. */
bool symbols_die_is_declaration(Dwarf_Die *die);

/** Go through typedefs and qualifiers to the type itself. */
bool symbols_die_strip(Dwarf_Die *die);

/** @return Bytes, or SYMBOLS_DIE_SIZE_UNKNOWN. */
uint64_t symbols_die_size(struct symbols_die_time *time, const Dwarf_Die *type);

#endif
