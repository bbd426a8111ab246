/* SPDX-License-Identifier: MIT */
/*
 * Counts by key, with a window over the last refreshes, in bounded memory.
 *
 * An entry is found by its key, plain bytes without padding, and numbered 0, 1, … . The table is
 * ours, as entries get other numbers and keys where some are folded. What a refresh adds is kept as
 * a list of differences until it leaves the window, so that a refresh costs what was touched, not
 * what there is.
 */
#ifndef FORMAT_LIVE_LIVE_TABLE_H
#define FORMAT_LIVE_LIVE_TABLE_H

#include "attach/failure.h"

/** Samples of one entry. `other` are those that were folded into it, in trees. */
struct live_count {
	uint64_t self, guest, total, other;
	uint32_t window_self, window_guest, window_total, window_other;
	uint32_t seen;	 /**< The refresh in which it was counted last. */
	uint32_t serial; /**< The sample that counted for its total last. */
	uint32_t delta;	 /**< In the list of this refresh: index + 1, or 0. */
};

/** What one refresh added to an entry; also what live_table_add() adds. */
struct live_delta {
	uint32_t id, self, guest, total, other;
};

/** What one refresh added. */
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

/** Marks an entry that live_table_keep() removed. */
#define LIVE_GONE UINT32_MAX

/** @param window Refreshes; 0: the table has none. @return 0, or -1 with FAILURE_NO_MEMORY. */
int live_table_init(struct live_table *table, size_t key_len, uint32_t max, uint32_t window,
		    struct failure *why);
void live_table_deinit(struct live_table *table);

/** @return The entry, or LIVE_GONE. */
uint32_t live_table_find(const struct live_table *table, const void *key);

/** The entry, made where there is none and the table has room. @param ret_id LIVE_GONE where it has
 *  not. @return 0, or -1 with FAILURE_NO_MEMORY. */
int live_table_put(struct live_table *table, const void *key, uint32_t *ret_id,
		   struct failure *why);

const void *live_table_key(const struct live_table *table, uint32_t id);

/** Give an entry another key, which no entry has. */
void live_table_rename(struct live_table *table, uint32_t id, const void *key);

/** Count. @return 0, or -1 with FAILURE_NO_MEMORY. */
int live_table_add(struct live_table *table, const struct live_delta *add, struct failure *why);

/** Move the window on. */
void live_table_refresh(struct live_table *table);

/** All counts to zero; entries stay. */
void live_table_reset(struct live_table *table);

/**
 * Choose what is to go where the table is full: the part that was seen longest ago and least. Of
 * two entries of which one is counted whenever the other is, the later one goes first.
 * @param first Entries before this one stay.
 * @param part One in this many goes, at least one.
 * @param ret_gone By entry; the caller's, of table->count.
 * @return 0, or -1 with FAILURE_NO_MEMORY.
 */
int live_table_choose(const struct live_table *table, uint32_t first, uint32_t part, bool *ret_gone,
		      struct failure *why);

/**
 * Renumber the entries. Entries with the same new number are added up.
 * @param keys By new number; copied.
 * @param map By old number: the new one.
 * @param into How the counts of an entry go into the new one: all of them, without the total (it is
 * part of the new one's already), or as `other`.
 */
enum live_into { LIVE_INTO_ALL, LIVE_INTO_INNER, LIVE_INTO_OTHER, LIVE_INTO_NOTHING };
void live_table_renumber(struct live_table *table, const void *keys, uint32_t count,
			 const uint32_t *map, const uint8_t *into);

/** Fold entries into entry 0. @param gone By entry. @param ret_map By old number: the new one; the
 *  caller's, of table->count. @return 0, or -1 with FAILURE_NO_MEMORY. */
int live_table_fold(struct live_table *table, const bool *gone, uint32_t *ret_map,
		    struct failure *why);

#endif
