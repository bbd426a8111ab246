/* SPDX-License-Identifier: MIT */
/*
 * The readers of profiles, each of which adds what it reads to a profile. On failure a part may
 * have been added.
 */
#ifndef FORMAT_READ_PROFILE_READER_H
#define FORMAT_READ_PROFILE_READER_H

#include "format/file/gzip_read.h"
#include "format/profile/profile_internal.h"

/** A sysprof or memprof stream; sets the profile's kind. */
int profile_read_stream(struct format_profile *profile, struct unpack *unpack, struct failure *why);

/** A profile in pprof's form. */
int profile_read_pprof(struct format_profile *profile, struct unpack *unpack, struct failure *why);

/** Folded chains, one in a line. */
int profile_read_folded(struct format_profile *profile, struct unpack *unpack, struct failure *why);

#endif
