/* SPDX-License-Identifier: MIT */
/* Private to format: the inside of a profile. */
#ifndef FORMAT_PROFILE_PROFILE_INTERNAL_H
#define FORMAT_PROFILE_PROFILE_INTERNAL_H

#include "format/memprof/heap.h"
#include "format/profile.h"
#include "format/profile/timeline.h"
#include "format/sysprof/symbol_encoding.h"

/** One frame of a chain. No padding: chains are compared by their bytes. */
struct profile_frame {
	uint32_t function; /**< Id in the profile's function table. */
	uint32_t line;	   /**< 0 where there is none. */
};

/** What is known of a sample besides its chain; all 0: nothing. No padding, as above. */
struct profile_labels {
	int32_t pid, tid;
	uint32_t thread, coroutine; /**< Id + 1 in `strings`. */
	uint32_t trace;		    /**< That runs, or that called what runs. */
	uint8_t state;		    /**< enum format_state + 1. */
	uint8_t is_asleep;	    /**< It waited and did not run. */
	uint8_t unused[2];
};

/** Samples that have all in common. */
struct profile_sample {
	uint32_t chain, labels; /**< Ids in `chains` and `labels`. */
};

struct format_profile {
	enum format_stream_kind kind;
	bool has_kind; /* Something was read. */
	struct format_functions *functions;
	struct intern *function_keys; /* Same ids as `functions`. */
	struct format_mappings
		*mappings;	  /* Files that functions are in, each where it was met first. */
	struct label_mark *marks; /* By function: how it runs. */
	uint32_t mark_capacity;
	struct intern *chains; /* Arrays of struct profile_frame, root first. */
	uint64_t *counts;      /* Samples by chain id. */
	uint32_t capacity;
	struct intern *strings; /* Of labels. */
	struct intern *labels;	/* struct profile_labels. */
	struct intern *keys;	/* struct profile_sample. */
	uint64_t *key_counts;	/* Samples by id of these. */
	uint32_t key_capacity;
	uint64_t *plain_keys; /* By chain: state of the last sample without other labels,
				 and below that id + 1 of these. */
	uint32_t plain_capacity;
	uint64_t samples;    /* At most INT64_MAX. */
	uint64_t frames;     /* Of all distinct chains. */
	uint64_t text_bytes; /* Of all functions and labels. */
	/* 0 where it is not known. */
	uint64_t period_ns;	     /* Of a sample. */
	uint64_t time_ns;	     /* When the recording began, since 1970. */
	uint64_t duration_ns;	     /* How long it went on. */
	bool is_wall;		     /* Samples of threads that waited are in it. */
	struct format_text comments; /* Lines. */
	char unit[64];		     /* What is counted where that is not samples: "bytes". */
	uint64_t states[FORMAT_STATE_COUNT];
	struct timeline timeline; /* The order of the samples, where that was asked for. */
	struct heap heap;	  /* Memprof only. */
	void (*progress)(void *context, size_t bytes); /* NULL: reading is not told. */
	void *progress_context;
	/* Of a memory profile as chains, by id of `keys`; else NULL. */
	uint64_t (*memory_values)[FORMAT_MEMORY_COUNT];
	enum format_memory memory_shown; /* Which of them are `counts`. */
};

/** @return The frames of a chain, root first; borrowed from the profile. */
const struct profile_frame *profile_chain(const struct format_profile *profile, uint32_t chain,
					  size_t *ret_count);

/** Find or add a function; equal ones (all but the address of code) that run alike get the same id.
 *  Those for which there is no room, as a program that loads code all the time may have, are all
 *  "[other]": one that is compiled, and one that is not.
 *  Of those in a file the place in it tells, and not the address: of a library that is elsewhere in
 *  another process each function is one, where it was in the first process.
 *  @param mark NULL for one that is not compiled, and for a trace, which is by its kind.
 *  @param why  FAILURE_LIMIT where there are more names than are kept. */
int profile_add_function(struct format_profile *profile, const struct format_function *function,
			 const struct label_mark *mark, uint32_t *ret_id, struct failure *why);

/** @return @p line of a frame of a function, 0 where that has none: "[other]" is many. */
uint32_t profile_line(const struct format_profile *profile, uint32_t function, uint32_t line);

/* Limits that keep hostile files from filling the memory. */
/** Distinct chains, and their frames: ten times what large recordings have. */
#define PROFILE_CHAINS_MAX (1u << 20)
#define PROFILE_FRAMES_MAX (32u << 20)
/** Distinct labels, and chains with labels. */
#define PROFILE_KEYS_MAX (1u << 21)
/** Functions: many times what the largest programs have, "[other]" among them, twice. */
#define PROFILE_FUNCTIONS_MAX (1u << 19)
/** Bytes of all names and sources, of threads and coroutines too. */
#define PROFILE_TEXT_MAX (256u << 20)

/** Find or add what samples have in common: a chain, and it with labels. Nothing is counted.
 *  @param frames Root first, copied. @param ret_chain Id in `chains`. @param ret_key In `keys`.
 *  @return 0, or -1: FAILURE_LIMIT where there are more than are kept, FAILURE_NO_MEMORY. */
int profile_find_sample(struct format_profile *profile, const struct profile_frame *frames,
			size_t frame_count, const struct profile_labels *labels,
			uint32_t *ret_chain, uint32_t *ret_key, struct failure *why);

/** Count @p count samples of what profile_find_sample() found, in the order of the calls where
 *  that is kept. @return 0, or -1: FAILURE_LIMIT where there are more than can be counted,
 *  FAILURE_NO_MEMORY. */
int profile_count_sample(struct format_profile *profile, uint32_t chain, uint32_t key,
			 uint64_t count, struct failure *why);

/** Both. @param why FAILURE_LIMIT where there are more samples than can be
 * counted, or more chains than are kept. @param frames Root first. @param labels NULL: nothing is
 * known. */
int profile_add_sample(struct format_profile *profile, const struct profile_frame *frames,
		       size_t frame_count, const struct profile_labels *labels, uint64_t count,
		       struct failure *why);

/** As format_profile_of_memory(). @param is_all Also chains that have nothing of @p value. */
int profile_of_memory(const struct format_profile *memory, enum format_memory value, bool is_all,
		      struct format_profile **ret_profile, struct failure *why);

/** @return One of the distinct samples, of intern_count(profile->keys). */
struct profile_sample profile_sample(const struct format_profile *profile, uint32_t id);

/** @return The labels with that id; borrowed. */
const struct profile_labels *profile_labels(const struct format_profile *profile, uint32_t id);

/** Number of a label's text. @param ret_id Id + 1. */
int profile_add_string(struct format_profile *profile, const char *text, uint32_t *ret_id,
		       struct failure *why);

/** @return The text of a label; NULL for 0. */
const char *profile_string(const struct format_profile *profile, uint32_t id);

/** A line of the comments: "NAME: TEXT", as the recorder's are, or any other. */
struct profile_comment {
	const char *line; /**< Borrowed, not ended by a zero. */
	size_t len;	  /**< Without its line feed; never 0. */
	size_t name_len;  /**< Of the letters before a colon; 0: it has no name. */
};

/** The comments one after the other. @param at Where it goes on; 0 at first. @return False at the
 *  end. */
bool profile_next_comment(const struct format_profile *profile, size_t *at,
			  struct profile_comment *ret_comment);

#endif
