/* SPDX-License-Identifier: MIT */
/* How do formats that are not streams collect the samples of a recording? */
#ifndef FORMAT_PROFILE_AGGREGATOR_H
#define FORMAT_PROFILE_AGGREGATOR_H

#include "format/profile.h"
#include "format/profile/profile_internal.h"

/** Finished samples, added up. Distinct samples bound the memory, not the number of samples. */
struct aggregator {
	struct format_profile *profile;
	const struct format_functions *functions; /* The functions of the samples' ids. */
	bool first_lines;
	/* From function, trace and whether that is approximate to its id in the profile. */
	struct format_addrmap ids;
	/* The same of Lua functions, as a list: the function's id, then the one in the profile. */
	uint32_t (*lua)[2];
	size_t lua_count, lua_capacity;
	struct profile_frame *frames;
	size_t capacity;
	struct format_text text, location;
	uint64_t start_ns;
};

/** @param functions Borrowed until aggregator_deinit(). */
int aggregator_init(struct aggregator *aggregator, const struct format_functions *functions,
		    const struct format_options *options, struct failure *why);
void aggregator_deinit(struct aggregator *aggregator);
int aggregator_sample(struct aggregator *aggregator, const struct format_sample *sample,
		      struct failure *why);
/**
 * Give Lua functions the names that they got during the recording: the first samples of a function
 * may be taken before its name is found. Call it before the profile is written.
 */
int aggregator_take_names(struct aggregator *aggregator, struct failure *why);
/** Add lines to the profile's comments. */
int aggregator_add_notes(struct aggregator *aggregator, const char *text, struct failure *why);

#endif
