/* SPDX-License-Identifier: MIT */
/* Which labels do the call chains of a profile have? */
#ifndef FORMAT_REPORT_CALL_TREE_H
#define FORMAT_REPORT_CALL_TREE_H

#include "format/profile/profile_internal.h"
#include "format/report.h"

/** The name of a frame in reports, safe for a terminal. Frames with equal text and kind share a
 * label. */
struct call_tree_label {
	const char *text; /**< "main", "burn (@burn.lua:12)", "@burn.lua:12", "[gc]". */
	enum format_kind kind;
	const char *name;     /**< Name of the function, or NULL. */
	const char *location; /**< "@burn.lua:12", or NULL. */
	const char *note;     /**< "_[j]", the suffix of `text`, or NULL. */
	char *owned_text, *owned_location, *owned_name, *owned_note;
};

/** A chain of labels, root first. */
struct call_tree_chain {
	const uint32_t *labels;
	uint32_t len;
	uint32_t id; /**< Private: id of the profile's chain. */
	uint64_t count;
};

/** The chains of a sysprof profile: labels sorted by text, chains sorted by their labels. */
struct call_tree {
	struct call_tree_label *labels;
	uint32_t label_count;
	struct call_tree_chain *chains;
	uint32_t chain_count;
	uint64_t samples;
	uint32_t *pool;	    /* Labels of all chains. */
	uint32_t *chain_of; /* From the id of the profile's chain to the index in `chains`. */
};

/** @param lines FORMAT_LINES_LINE or FORMAT_LINES_FUNCTION. */
int call_tree_init(struct call_tree *call_tree, const struct format_profile *profile,
		   enum format_lines lines, enum format_annotate annotate, struct failure *why);
/** As call_tree_init(), with the annotations and roots of @p options. */
int call_tree_init_as(struct call_tree *call_tree, const struct format_profile *profile,
		      enum format_lines lines, const struct format_report_options *options,
		      struct failure *why);
/** As call_tree_init(), but functions with equal text share a label, which has the kind of one of
 * them. */
int call_tree_init_by_text(struct call_tree *call_tree, const struct format_profile *profile,
			   enum format_lines lines, struct failure *why);
void call_tree_deinit(struct call_tree *call_tree);

/** Bound of the labels of all chains, because roots for threads multiply the chains. Keeps
 * hostile files from filling the memory. */
#define CALL_TREE_LABELS_MAX (2u * PROFILE_FRAMES_MAX)

/** Samples of a label. */
struct call_tree_count {
	uint64_t self;	/**< Samples whose leaf it is. */
	uint64_t total; /**< Samples that contain it; each counts once. */
	uint32_t seen;	/**< Private: the last chain that counted for total, from 1. */
};

/** @return Counts by label; the caller frees them. NULL if memory runs out. */
struct call_tree_count *call_tree_count(const struct call_tree *call_tree);

/**
 * Which of two sorted lists of labels comes next, so that labels with equal texts meet. Kinds
 * distinguish labels within one profile; two profiles are joined only by text.
 * @return As strcmp().
 */
int call_tree_order(const struct call_tree *a, uint32_t i, const struct call_tree *b, uint32_t j);

/** @return 0, or -1 with FAILURE_NOT_FOUND if the profile has no call chains, such as a memory
 * profile. */
int call_tree_need_chains(const struct format_profile *profile, struct failure *why);

#endif
