/* SPDX-License-Identifier: MIT */
#ifndef FORMAT_PROFILE_H
#define FORMAT_PROFILE_H

#include "format/heap.h"
#include "format/names.h"

/** One frame of a chain. No padding: chains are compared by their bytes. */
struct profile_frame {
	uint32_t function; /**< Id in the profile's function table. */
	uint32_t line;	   /**< 0 where there is none. */
};

struct format_profile {
	enum format_stream_kind kind;
	struct format_functions *functions;
	struct format_intern *function_keys; /* Same ids as `functions`. */
	struct names_mark *marks;	     /* By function: how it runs. */
	uint32_t mark_capacity;
	struct format_intern *chains; /* Arrays of struct profile_frame, root first. */
	uint64_t *counts;	      /* Samples by chain id. */
	uint32_t capacity;
	uint64_t samples;
	uint64_t states[FORMAT_STATE_COUNT];
	struct heap heap; /* Memprof only. */
};

/** @return The frames of a chain, root first; borrowed from the profile. */
const struct profile_frame *profile_chain(const struct format_profile *profile, uint32_t chain,
					  size_t *ret_count);

/** Find or add a function; equal ones (all but the address of code) that run alike get the same id.
 *  @param mark NULL for one that is not compiled. */
int profile_add_function(struct format_profile *profile, const struct format_function *function,
			 const struct names_mark *mark, uint32_t *ret_id, struct failure *why);

/** Count @p count samples of a chain. @param frames Root first. */
int profile_add_chain(struct format_profile *profile, const struct profile_frame *frames,
		      size_t frame_count, uint64_t count, struct failure *why);

#endif
