/* SPDX-License-Identifier: MIT */
/*
 * Entries of DWARF ("debugging information entries"), with bounds on what damaged ones can cost.
 * Source: DWARF 5, sections 2, 5 and 7.5.
 */
#ifndef SYMBOLS_DWARF_DIE_H
#define SYMBOLS_DWARF_DIE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

/** Longer names are passed over. */
#define SYMBOLS_DIE_NAME_MAX 255
/** Typedefs and qualifiers behind each other, arrays of arrays, nested unnamed members. */
#define SYMBOLS_DIE_DEPTH_MAX 16
/** Larger structures are not believed. */
#define SYMBOLS_DIE_SIZE_MAX ((uint64_t)1 << 30)
/** Of a type whose size is not told. */
#define SYMBOLS_DIE_SIZE_UNKNOWN UINT64_MAX

/**
 * How long walks may take: time of the processor that this thread spends, so that a busy machine
 * gives the answers that an idle one gives. Steps are no measure: libdw itself goes over all that
 * is below an entry, at a cost that a damaged file decides.
 */
struct symbols_die_time {
	uint64_t wall_ns, cpu_ns; /**< The latter cannot come before the former, which is cheaper to
				       look at. */
	bool late;		  /**< A walk has ended early. */
};

/** Begin walks of at most @p ns in all. */
void symbols_die_allow(struct symbols_die_time *time, uint64_t ns);

/** Go to the first child. @return false if there is none. */
bool symbols_die_down(Dwarf_Die *parent, Dwarf_Die *ret_child);

/** Go to the next one. @return false if there is none, or when it has taken too long. */
bool symbols_die_next(struct symbols_die_time *time, Dwarf_Die *die);

/** @return NULL if there is none, or it is too long. */
const char *symbols_die_name(Dwarf_Die *die);

/** Read the attribute @p what, a number. @return false if there is none such. */
bool symbols_die_number(Dwarf_Die *die, unsigned what, uint64_t *ret_number);

/** Go to the entry that the attribute @p what refers to. @param ret_die May be @p die. */
bool symbols_die_follow(Dwarf_Die *die, unsigned what, Dwarf_Die *ret_die);

/** Whether a tag is that of a structure or a union. */
bool symbols_die_is_struct(int tag);

/** Whether the type is complete elsewhere only. */
bool symbols_die_is_declaration(Dwarf_Die *die);

/** Go through names and qualifiers of a type to the type itself. */
bool symbols_die_strip(Dwarf_Die *die);

/** @return Bytes, or SYMBOLS_DIE_SIZE_UNKNOWN. */
uint64_t symbols_die_size(struct symbols_die_time *time, const Dwarf_Die *type);

#endif
