/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FORMAT_PPROF_FILE_H
#define TESTS_FORMAT_PPROF_FILE_H

#include "format/report.h"
#include "pprof.pb-c.h"

/* Profiles in pprof's form, written by us and decoded as a reader does that knows nothing of us.
 * Both functions fail the running cmocka test on any error. */

/** A temporary file, at its beginning; to be closed. */
FILE *pprof_file_print(const struct format_profile *profile);

/** The whole file, whatever its position, which is the beginning afterwards; to be freed. */
Pprof__Profile *pprof_file_decode(FILE *file);

#endif
