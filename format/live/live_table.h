/* SPDX-License-Identifier: MIT */
/*
 * How are samples counted by key, with a window over the last refreshes, in bounded memory?
 *
 * Keys are plain bytes without padding. Entries have the numbers 0, 1, …. The table is our own,
 * because folding gives entries new numbers and keys. Each refresh has a list of what it added,
 * until it leaves the window. So a refresh costs time for the entries that it touched, not for all
 * entries.
 */
#ifndef FORMAT_LIVE_LIVE_TABLE_H
#define FORMAT_LIVE_LIVE_TABLE_H

#include "attach/failure.h"

/** Samples of one entry. In trees, `other` has the samples folded into it. */
struct live_count {
	uint64_t self, guest, total, other;
	uint32_t window_self, window_guest, window_total, window_other;
	uint32_t seen;	 /**< The last refresh that counted it. */
	uint32_t serial; /**< The last sample that counted in its total. */
	uint32_t delta;	 /**< Index + 1 in the list of this refresh, or 0. */
};

/** What a refresh, or one call of live_table_add(), adds to an entry. */
struct live_delta {
	uint32_t id, self, guest, total, other;
};

/** All that one refresh added. */
struct live_deltas {
	struct live_delta *items;
	size_t count, size;
};

struct live_table {
	size_t key_len;
	uint32_t max; /**< Entries; at least 2. */
	uint32_t count, size;
	uint8_t *keys;
	struct live_count *counts;
	uint32_t *slots; /**< Open addressing: entry + 1, or 0. */
	uint32_t slot_count;
	struct live_deltas *ring; /**< By refresh; NULL without a window. */
	uint32_t window, refresh;
};

/** Instead of an entry: none, or removed by folding. */
#define LIVE_GONE UINT32_MAX

/** @param window Number of refreshes; 0: no window. @return 0, or -1 with FAILURE_NO_MEMORY. */
int live_table_init(struct live_table *table, size_t key_len, uint32_t max, uint32_t window,
		    struct failure *why);
void live_table_deinit(struct live_table *table);

/** @return The entry, or LIVE_GONE. */
uint32_t live_table_find(const struct live_table *table, const void *key);

/**
 * Find or add an entry.
 * @param ret_id LIVE_GONE if the table has no room.
 * @return 0, or -1 with FAILURE_NO_MEMORY.
 */
int live_table_put(struct live_table *table, const void *key, uint32_t *ret_id,
		   struct failure *why);

const void *live_table_key(const struct live_table *table, uint32_t id);

/** Give an entry a new key, which no other entry may have. */
void live_table_rename(struct live_table *table, uint32_t id, const void *key);

/** Add to an entry's counts. @return 0, or -1 with FAILURE_NO_MEMORY. */
int live_table_add(struct live_table *table, const struct live_delta *add, struct failure *why);

/** Move the window by one refresh. */
void live_table_refresh(struct live_table *table);

/** Set all counts to zero; entries stay. */
void live_table_reset(struct live_table *table);

/**
 * Choose cold entries of a full table: few samples, long ago. If one entry is counted whenever
 * another is, the later one is chosen first.
 * @param first Entries before this one stay.
 * @param part One in this many is chosen, at least one.
 * @param ret_gone By entry; the caller provides table->count elements.
 * @return 0, or -1 with FAILURE_NO_MEMORY.
 */
int live_table_choose(const struct live_table *table, uint32_t first, uint32_t part, bool *ret_gone,
		      struct failure *why);

/**
 * Renumber the entries. Counts of entries with the same new number are added.
 * @param keys By new number; copied.
 * @param map From old to new number.
 * @param into How an entry's counts join the new entry: all counts, all but the total (the new
 * entry's total already includes it), or as `other`.
 */
enum live_into { LIVE_INTO_ALL, LIVE_INTO_INNER, LIVE_INTO_OTHER, LIVE_INTO_NOTHING };
void live_table_renumber(struct live_table *table, const void *keys, uint32_t count,
			 const uint32_t *map, const uint8_t *into);

/**
 * Fold entries into entry 0.
 * @param gone By entry.
 * @param ret_map From old to new number; the caller provides table->count elements.
 * @return 0, or -1 with FAILURE_NO_MEMORY.
 */
int live_table_fold(struct live_table *table, const bool *gone, uint32_t *ret_map,
		    struct failure *why);

#endif
