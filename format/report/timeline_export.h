/* SPDX-License-Identifier: MIT */
/* What the formats that chart time have in common. */
#ifndef FORMAT_REPORT_TIMELINE_EXPORT_H
#define FORMAT_REPORT_TIMELINE_EXPORT_H

#include "format/data/map.h"
#include "format/json.h"
#include "format/report/call_tree.h"
#include "format/report/chart.h"

/** What the forms that chart time have in common: samples by thread, and their chains as labels. */
struct timeline_export {
	const struct format_profile *profile;
	struct chart chart;
	struct call_tree call_tree;
	struct json_out json;
	char *quoted;	   /* Text and file of each label as JSON, behind each other. */
	size_t *quoted_at; /* Two a label, and the end. */
	const char *title;
	struct format_text text;
};

struct stack_node {
	uint32_t parent; /**< Id + 1; 0: none. */
	uint32_t label;	 /**< Index in the fold, or what its user takes for roots. */
};

/** A call tree that grows with the chains that are met: each distinct beginning of one is a node.
 */
struct stacks {
	struct stack_node *nodes;
	uint32_t count, capacity;
	struct format_addrmap ids;    /* Of nodes. */
	struct format_addrmap leaves; /* Nodes by root and chain. */
};

/** @param file Borrowed, for `json`. @return As of a report's print(). */
int timeline_export_init(struct timeline_export *timeline_export,
			 const struct format_profile *profile,
			 const struct format_report_options *options, FILE *file,
			 struct failure *why);

/** Refuse a profile of bytes, of which nothing has a time. @return 0, or -1 with FAILURE_DENIED. */
int timeline_export_need_samples(const struct format_profile *profile, struct failure *why);

/** @return @p result, or -1 where memory was missing while the JSON was written. */
int timeline_export_done(struct timeline_export *timeline_export, int result, struct failure *why);

/** The chain of an event, an index in the fold. */
uint32_t timeline_export_chain(const struct timeline_export *timeline_export,
			       const struct chart_event *event);

const struct profile_labels *timeline_export_labels(const struct timeline_export *timeline_export,
						    const struct chart_event *event);

/** What people call a thread: "nginx [4711]", "[4711] worker [4712]", or "all samples". Borrowed
 *  until the next call; NULL without memory. */
const char *timeline_export_track_name(struct timeline_export *timeline_export, uint32_t track);

/** File and line of a label's place. @param ret_len Of the file. @param ret_line 0: none. @return
 *  NULL where it has none. Borrowed. */
const char *timeline_export_location(const struct call_tree_label *label, size_t *ret_len,
				     uint64_t *ret_line);

/** Text, and file of the place as a text or null, of a label by its number. */
void timeline_export_put_text(struct timeline_export *timeline_export, uint32_t label);
void timeline_export_put_file(struct timeline_export *timeline_export, uint32_t label);

/** What the compiler or the collector does in that state: "gc", "jit record", …; NULL: neither. */
const char *timeline_export_phase(uint8_t state);

/** All 0 is an empty tree. */
void stacks_deinit(struct stacks *stacks);

/** @param root Id + 1 of a node that the chain stands on; 0: none. @param ret_node Id + 1 of its
 *  last one. */
int stacks_find(struct stacks *stacks, const struct call_tree *call_tree, uint32_t root,
		uint32_t chain, uint32_t *ret_node, struct failure *why);

/** @param ret_node Id + 1. */
int stacks_add(struct stacks *stacks, struct stack_node node, uint32_t *ret_node,
	       struct failure *why);
/** The same for the chain of an event, by its key. @param nodes By id of the profile's `keys`; 0
 * where it was not looked for yet. */
int timeline_export_node(const struct timeline_export *timeline_export,
			 const struct chart_event *event, uint32_t root, struct stacks *stacks,
			 uint32_t *nodes, struct failure *why);
uint32_t stacks_count(const struct stacks *stacks);

/** @param node Id + 1. */
struct stack_node stacks_node(const struct stacks *stacks, uint32_t node);

#endif
