/* SPDX-License-Identifier: MIT */
/* Private to format: what does a profile consist of? */
#ifndef FORMAT_PROFILE_PROFILE_INTERNAL_H
#define FORMAT_PROFILE_PROFILE_INTERNAL_H

#include "format/memprof/heap.h"
#include "format/profile.h"
#include "format/profile/timeline.h"
#include "format/sysprof/symbol_encoding.h"

/** One frame of a chain. No padding: chains are compared as bytes. */
struct profile_frame {
	uint32_t function; /**< Id in the profile's function table. */
	uint32_t line;	   /**< 0 if unknown. */
};

/** Facts about a sample besides its chain; 0: unknown. No padding, as above. */
struct profile_labels {
	int32_t pid, tid;
	uint32_t thread, coroutine; /**< Id + 1 in `strings`. */
	uint32_t trace;	   /**< The running trace, or the trace that called the running code. */
	uint8_t state;	   /**< enum format_state + 1. */
	uint8_t is_asleep; /**< The thread waited. */
	uint8_t unused[2];
};

/** A distinct combination of chain and labels. */
struct profile_sample {
	uint32_t chain, labels; /**< Ids in `chains` and `labels`. */
};

struct format_profile {
	enum format_stream_kind kind;
	bool has_kind; /* The kind of the profile is known. */
	struct format_functions *functions;
	struct intern *function_keys;	  /* Same ids as `functions`. */
	struct format_mappings *mappings; /* One mapping per file: the first one met. */
	struct label_mark *marks;	  /* By function id: how the function runs. */
	uint32_t mark_capacity;
	struct intern *chains; /* Arrays of struct profile_frame, root first. */
	uint64_t *counts;      /* Samples by chain id. */
	uint32_t capacity;
	struct intern *strings; /* Texts of labels. */
	struct intern *labels;	/* struct profile_labels. */
	struct intern *keys;	/* struct profile_sample. */
	uint64_t *key_counts;	/* Samples by id in `keys`. */
	uint32_t key_capacity;
	uint64_t *plain_keys; /* By chain: the state of the last plain sample, and in the low half
				 its id in `keys` + 1. */
	uint32_t plain_capacity;
	uint64_t samples;    /* At most INT64_MAX. */
	uint64_t frames;     /* Sum over all distinct chains. */
	uint64_t text_bytes; /* Sum over all functions and labels. */
	/* 0 if unknown. */
	uint64_t period_ns;	     /* Nanoseconds per sample. */
	uint64_t time_ns;	     /* Start of the recording, since 1970. */
	uint64_t duration_ns;	     /* Length of the recording. */
	bool is_wall;		     /* The profile includes waiting threads. */
	struct format_text comments; /* Lines of text. */
	char unit[64];		     /* The counted unit if it is not samples: "bytes". */
	uint64_t states[FORMAT_STATE_COUNT];
	struct timeline timeline;		       /* The order of the samples, if requested. */
	struct heap heap;			       /* Memprof only. */
	void (*progress)(void *context, size_t bytes); /* NULL: no callback. */
	void *progress_context;
	/* For a memory profile as chains, by id in `keys`; otherwise NULL. */
	uint64_t (*memory_values)[FORMAT_MEMORY_COUNT];
	enum format_memory memory_shown; /* Which memory value `counts` holds. */
};

/** @return The frames of a chain, root first; borrowed from the profile. */
const struct profile_frame *profile_chain(const struct format_profile *profile, uint32_t chain,
					  size_t *ret_count);

/**
 * Find or add a function. Functions that are equal except for their code address, and run alike,
 * get the same id. A function in a file is identified by its offset there, not by its address: if a
 * library has another address in another process, each function is still one, at its address in the
 * first process. When the table is full (programs can load code without end), functions become
 * "[other]"; there is a compiled and an interpreted "[other]".
 * @param mark NULL for a function that is not compiled, and for a trace.
 * @param why FAILURE_LIMIT if there are too many names.
 */
int profile_add_function(struct format_profile *profile, const struct format_function *function,
			 const struct label_mark *mark, uint32_t *ret_id, struct failure *why);

/** @return @p line, or 0 if the function has no lines: "[other]" is many functions. */
uint32_t profile_line(const struct format_profile *profile, uint32_t function, uint32_t line);

/* Limits that keep hostile files from filling the memory. */
/** Distinct chains, and their frames: ten times the number in large recordings. */
#define PROFILE_CHAINS_MAX (1u << 20)
#define PROFILE_FRAMES_MAX (32u << 20)
/** Distinct labels, and distinct chains with labels. */
#define PROFILE_KEYS_MAX (1u << 21)
/** Functions, with both "[other]": many times the number in the largest programs. */
#define PROFILE_FUNCTIONS_MAX (1u << 19)
/** Bytes of all names and sources, including names of threads and coroutines. */
#define PROFILE_TEXT_MAX (256u << 20)

/**
 * Find or add a chain, and its combination with labels. Counts no sample.
 * @param frames Root first, copied.
 * @param ret_chain Id in `chains`.
 * @param ret_key Id in `keys`.
 * @return 0, or -1: FAILURE_LIMIT if there are too many, FAILURE_NO_MEMORY.
 */
int profile_find_sample(struct format_profile *profile, const struct profile_frame *frames,
			size_t frame_count, const struct profile_labels *labels,
			uint32_t *ret_chain, uint32_t *ret_key, struct failure *why);

/**
 * Count @p count samples that profile_find_sample() found. If the profile keeps the order, it is
 * the order of these calls.
 * @return 0, or -1: FAILURE_LIMIT if the sum is too large, FAILURE_NO_MEMORY.
 */
int profile_count_sample(struct format_profile *profile, uint32_t chain, uint32_t key,
			 uint64_t count, struct failure *why);

/**
 * Find and count a sample.
 * @param frames Root first.
 * @param labels NULL: all unknown.
 * @param why As for the two functions above.
 */
int profile_add_sample(struct format_profile *profile, const struct profile_frame *frames,
		       size_t frame_count, const struct profile_labels *labels, uint64_t count,
		       struct failure *why);

/** As format_profile_of_memory(). @param is_all Include chains without any of @p value. */
int profile_of_memory(const struct format_profile *memory, enum format_memory value, bool is_all,
		      struct format_profile **ret_profile, struct failure *why);

/** @return A distinct sample; ids are below intern_count(profile->keys). */
struct profile_sample profile_sample(const struct format_profile *profile, uint32_t id);

/** @return The labels with this id; borrowed. */
const struct profile_labels *profile_labels(const struct format_profile *profile, uint32_t id);

/** Find or add the text of a label. @param ret_id Id + 1. */
int profile_add_string(struct format_profile *profile, const char *text, uint32_t *ret_id,
		       struct failure *why);

/** @return The text of a label; NULL for 0. */
const char *profile_string(const struct format_profile *profile, uint32_t id);

/** A line of the comments: "NAME: TEXT", as the recorder writes it, or any text. */
struct profile_comment {
	const char *line; /**< Borrowed, not terminated. */
	size_t len;	  /**< Without its line feed; never 0. */
	size_t name_len;  /**< Length of the letters before a colon; 0: the line has no name. */
};

/** Get the next comment. @param at Position; 0 at first. @return false at the end. */
bool profile_next_comment(const struct format_profile *profile, size_t *at,
			  struct profile_comment *ret_comment);

#endif
