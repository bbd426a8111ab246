/* SPDX-License-Identifier: MIT */
/* What do the formats that chart time have in common? */
#ifndef FORMAT_REPORT_TIMELINE_EXPORT_H
#define FORMAT_REPORT_TIMELINE_EXPORT_H

#include "format/data/map.h"
#include "format/json.h"
#include "format/report/call_tree.h"
#include "format/report/chart.h"

/** Common data of the formats that chart time: samples by thread, and their chains as labels. */
struct timeline_export {
	const struct format_profile *profile;
	struct chart chart;
	struct call_tree call_tree;
	struct json_out json;
	char *quoted;	   /* Text and file of each label as JSON, concatenated. */
	size_t *quoted_at; /* Two offsets per label, and the end. */
	const char *title;
	struct format_text text;
};

struct stack_node {
	uint32_t parent; /**< Id + 1; 0: none. */
	uint32_t label;	 /**< Label id, or a number for a root that the caller chose. */
};

/** A growing call tree: each distinct prefix of a chain is a node. */
struct stacks {
	struct stack_node *nodes;
	uint32_t count, capacity;
	struct format_addrmap ids;    /* Ids of nodes. */
	struct format_addrmap leaves; /* Nodes by root and chain. */
};

/** @param file Borrowed, for `json`. @return As for a report's print(). */
int timeline_export_init(struct timeline_export *timeline_export,
			 const struct format_profile *profile,
			 const struct format_report_options *options, FILE *file,
			 struct failure *why);

/** Reject a profile of bytes, which has no times. @return 0, or -1 with FAILURE_DENIED. */
int timeline_export_need_samples(const struct format_profile *profile, struct failure *why);

/** @return @p result, or -1 if memory ran out while the JSON was written. */
int timeline_export_done(struct timeline_export *timeline_export, int result, struct failure *why);

/** @return The chain of an event, an index in the call tree. */
uint32_t timeline_export_chain(const struct timeline_export *timeline_export,
			       const struct chart_event *event);

const struct profile_labels *timeline_export_labels(const struct timeline_export *timeline_export,
						    const struct chart_event *event);

/** @return The name of a thread for people: "nginx [4711]", "[4711] worker [4712]", or "all
 * samples". Borrowed until the next call; NULL if memory runs out. */
const char *timeline_export_track_name(struct timeline_export *timeline_export, uint32_t track);

/**
 * Get file and line of a label's location.
 * @param ret_len Length of the file's name.
 * @param ret_line 0: no line.
 * @return The file's name, borrowed, not terminated; NULL if there is none.
 */
const char *timeline_export_location(const struct call_tree_label *label, size_t *ret_len,
				     uint64_t *ret_line);

/** Write a label's text, or the file of its location (null if there is none). */
void timeline_export_put_text(struct timeline_export *timeline_export, uint32_t label);
void timeline_export_put_file(struct timeline_export *timeline_export, uint32_t label);

/** @return VM work of the compiler or collector in this state: "gc", "jit record", …; NULL for
 * other states. */
const char *timeline_export_phase(uint8_t state);

/** All 0 is an empty tree. */
void stacks_deinit(struct stacks *stacks);

/**
 * Find or add the nodes of a chain.
 * @param root Id + 1 of the node above the chain; 0: none.
 * @param ret_node Id + 1 of the chain's last node.
 */
int stacks_find(struct stacks *stacks, const struct call_tree *call_tree, uint32_t root,
		uint32_t chain, uint32_t *ret_node, struct failure *why);

/** Find or add one node. @param ret_node Id + 1. */
int stacks_add(struct stacks *stacks, struct stack_node node, uint32_t *ret_node,
	       struct failure *why);
/**
 * As stacks_find(), for the chain of an event.
 * @param nodes Cache by id in the profile's `keys`; 0: not yet known.
 */
int timeline_export_node(const struct timeline_export *timeline_export,
			 const struct chart_event *event, uint32_t root, struct stacks *stacks,
			 uint32_t *nodes, struct failure *why);
uint32_t stacks_count(const struct stacks *stacks);

/** @param node Id + 1. */
struct stack_node stacks_node(const struct stacks *stacks, uint32_t node);

#endif
