/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_HOSTILE_DERIVE_H
#define TESTS_FUZZ_HOSTILE_DERIVE_H

#include <stddef.h>
#include <stdint.h>

/**
 * Derive a layout from a fake VM that some bytes have changed, with a reading of the interpreter's
 * code that they have changed, too. Ends the program if a layout is found that is not within its
 * bounds, or if the search takes more reads than it may.
 * @return whether a layout was found.
 */
int hostile_derive(const uint8_t *data, size_t size);

/** The same of a VM that is as it was, by what some bytes show when they are read as an
 *  interpreter's code. The first of them chooses the VM. */
int hostile_derive_code(const uint8_t *data, size_t size);

/** Search what is no VM's over and over, where each read takes long: one for which that is seen
 *  soon, and one that agrees up to the last test. @param ret_used_ns Processor time of each,
 * without the part of the time that searches may take in the long run. */
void hostile_derive_slowly(int64_t ret_used_ns[2]);

#endif
