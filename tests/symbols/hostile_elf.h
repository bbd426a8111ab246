/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SYMBOLS_HOSTILE_ELF_H
#define TESTS_SYMBOLS_HOSTILE_ELF_H

#include <stddef.h>
#include <stdint.h>

/** Largest file: what a vDSO may have. */
#define HOSTILE_ELF_MAX_BYTES ((size_t)1 << 16)

/**
 * Do with an ELF file of any content all that the module can do: name, list unwind entries, unwind.
 *
 * The file plays the vDSO of a recorded process, so that it needs no disk. Its stack holds words
 * that point into its code.
 */
void hostile_elf_exercise(const uint8_t *bytes, size_t len);

/** Ask an ELF file with the DWARF of types_fixture.c, damaged or not, for all its structures. */
void hostile_types_exercise(const uint8_t *bytes, size_t len);

#endif
