/* SPDX-License-Identifier: MIT */
/* Which readers add a file to a profile? */
#ifndef FORMAT_READ_PROFILE_READER_H
#define FORMAT_READ_PROFILE_READER_H

#include "format/file/gzip_read.h"
#include "format/profile/profile_internal.h"

/** Add a sysprof or memprof stream and set the profile's kind. On failure, this reader and the
 * others may have added a part. */
int profile_read_stream(struct format_profile *profile, struct unpack *unpack, struct failure *why);

/** Add a pprof profile. */
int profile_read_pprof(struct format_profile *profile, struct unpack *unpack, struct failure *why);

/** Add folded chains, one per line. */
int profile_read_folded(struct format_profile *profile, struct unpack *unpack, struct failure *why);

#endif
