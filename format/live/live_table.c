/* SPDX-License-Identifier: MIT */
/* How does a table count by key, with a window, in bounded memory? */
#include "format/live/live_table.h"

#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "attach/hash.h"

enum {
	SIZE_FIRST = 64,
	/* At least this many slots per entry, so that searches are short. */
	SLOTS_PER_ENTRY = 2,
};

/* ---- Keys ------------------------------------------------------------------------------- */

const void *live_table_key(const struct live_table *table, uint32_t id)
{
	return table->keys + id * table->key_len;
}

/* @return The slot of a key, or the free slot for it. */
static uint32_t *slot_of(const struct live_table *table, const void *key)
{
	uint32_t mask = table->slot_count - 1;
	uint32_t at = (uint32_t)hash_words(key, table->key_len, 0) & mask;

	while (table->slots[at] &&
	       memcmp(live_table_key(table, table->slots[at] - 1), key, table->key_len) != 0)
		at = (at + 1) & mask;
	return &table->slots[at];
}

static void index_all(struct live_table *table)
{
	memset(table->slots, 0, table->slot_count * sizeof(*table->slots));
	for (uint32_t id = 0; id < table->count; id++)
		*slot_of(table, live_table_key(table, id)) = id + 1;
}

static int grow(struct live_table *table, struct failure *why)
{
	uint32_t size = table->size ? 2 * table->size : SIZE_FIRST;
	uint8_t *keys = reallocarray(table->keys, size, table->key_len);
	struct live_count *counts;
	uint32_t *slots;

	if (keys)
		table->keys = keys;
	counts = reallocarray(table->counts, size, sizeof(*counts));
	if (counts)
		table->counts = counts;
	slots = calloc((size_t)size * SLOTS_PER_ENTRY, sizeof(*slots));
	if (!keys || !counts || !slots) {
		free(slots);
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "count samples");
	}
	free(table->slots);
	table->slots = slots;
	table->slot_count = size * SLOTS_PER_ENTRY;
	table->size = size;
	index_all(table);
	return 0;
}

int live_table_init(struct live_table *table, size_t key_len, uint32_t max, uint32_t window,
		    struct failure *why)
{
	*table = (struct live_table){ .key_len = key_len, .max = max, .window = window };
	if (window)
		table->ring = calloc(window + 1, sizeof(*table->ring));
	if (window && !table->ring)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "count samples");
	return grow(table, why);
}

void live_table_deinit(struct live_table *table)
{
	for (uint32_t i = 0; table->ring && i <= table->window; i++)
		free(table->ring[i].items);
	free(table->ring);
	free(table->keys);
	free(table->counts);
	free(table->slots);
	memset(table, 0, sizeof(*table));
}

uint32_t live_table_find(const struct live_table *table, const void *key)
{
	uint32_t found = *slot_of(table, key);

	return found ? found - 1 : LIVE_GONE;
}

int live_table_put(struct live_table *table, const void *key, uint32_t *ret_id, struct failure *why)
{
	uint32_t id = live_table_find(table, key);

	if (id == LIVE_GONE && table->count < table->max) {
		if (table->count == table->size && grow(table, why) != 0)
			return -1;
		id = table->count++;
		memcpy(table->keys + id * table->key_len, key, table->key_len);
		table->counts[id] = (struct live_count){ .seen = table->refresh };
		*slot_of(table, key) = id + 1;
	}
	*ret_id = id;
	return 0;
}

void live_table_rename(struct live_table *table, uint32_t id, const void *key)
{
	memcpy(table->keys + id * table->key_len, key, table->key_len);
	index_all(table);
}

/* ---- Counts ----------------------------------------------------------------------------- */

static struct live_deltas *current(struct live_table *table)
{
	return &table->ring[table->refresh % (table->window + 1)];
}

/* The entry's item in the list of this refresh. */
static struct live_delta *delta_of(struct live_table *table, uint32_t id)
{
	struct live_deltas *deltas = current(table);
	struct live_count *count = &table->counts[id];

	if (count->delta)
		return &deltas->items[count->delta - 1];
	if (!ARRAY_RESERVE(deltas->items, deltas->size, deltas->count + 1))
		return NULL;
	deltas->items[deltas->count] = (struct live_delta){ .id = id };
	count->delta = (uint32_t)++deltas->count;
	return &deltas->items[count->delta - 1];
}

int live_table_add(struct live_table *table, const struct live_delta *add, struct failure *why)
{
	struct live_count *count = &table->counts[add->id];
	struct live_delta *delta = table->window ? delta_of(table, add->id) : NULL;

	count->self += add->self;
	count->guest += add->guest;
	count->total += add->total;
	count->other += add->other;
	count->seen = table->refresh;
	if (!table->window)
		return 0;
	if (!delta)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "count samples");
	delta->self += add->self;
	delta->guest += add->guest;
	delta->total += add->total;
	delta->other += add->other;
	count->window_self += add->self;
	count->window_guest += add->guest;
	count->window_total += add->total;
	count->window_other += add->other;
	return 0;
}

static void take_back(struct live_table *table, struct live_deltas *deltas)
{
	for (size_t i = 0; i < deltas->count; i++) {
		const struct live_delta *delta = &deltas->items[i];
		struct live_count *count = &table->counts[delta->id];

		count->window_self -= delta->self;
		count->window_guest -= delta->guest;
		count->window_total -= delta->total;
		count->window_other -= delta->other;
	}
	/* One busy refresh must not keep its memory forever. */
	free(deltas->items);
	*deltas = (struct live_deltas){ 0 };
}

void live_table_refresh(struct live_table *table)
{
	struct live_deltas *deltas;

	if (table->window) {
		deltas = current(table);
		for (size_t i = 0; i < deltas->count; i++)
			table->counts[deltas->items[i].id].delta = 0;
	}
	table->refresh++;
	if (table->window)
		take_back(table, current(table));
}

void live_table_reset(struct live_table *table)
{
	for (uint32_t i = 0; table->ring && i <= table->window; i++) {
		free(table->ring[i].items);
		table->ring[i] = (struct live_deltas){ 0 };
	}
	for (uint32_t id = 0; id < table->count; id++)
		table->counts[id] = (struct live_count){ .seen = table->counts[id].seen };
}

/* ---- Folding ---------------------------------------------------------------------------- */

struct candidate {
	double warmth;
	uint32_t id;
};

static int compare_candidates(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	if (a->warmth < b->warmth || a->warmth > b->warmth)
		return a->warmth < b->warmth ? -1 : 1;
	return a->id > b->id ? -1 : 1;
}

int live_table_choose(const struct live_table *table, uint32_t first, uint32_t part, bool *ret_gone,
		      struct failure *why)
{
	uint32_t count = table->count > first ? table->count - first : 0;
	struct candidate *candidates = calloc((size_t)count + 1, sizeof(*candidates));

	if (!candidates)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "count samples");
	memset(ret_gone, 0, table->count * sizeof(*ret_gone));
	for (uint32_t i = 0; i < count; i++) {
		const struct live_count *entry = &table->counts[first + i];

		candidates[i] = (struct candidate){
			.id = first + i,
			.warmth = (double)entry->total / (1.0 + table->refresh - entry->seen),
		};
	}
	qsort(candidates, count, sizeof(*candidates), compare_candidates);
	for (uint32_t i = 0; i < count && (i == 0 || i < count / part); i++)
		ret_gone[candidates[i].id] = true;
	free(candidates);
	return 0;
}

static void merge_count(struct live_count *to, const struct live_count *from, enum live_into into)
{
	if (from->seen > to->seen)
		to->seen = from->seen;
	if (into == LIVE_INTO_OTHER) {
		to->other += from->total;
		to->window_other += from->window_total;
	}
	if (into == LIVE_INTO_OTHER || into == LIVE_INTO_NOTHING)
		return;
	to->self += from->self;
	to->guest += from->guest;
	to->other += from->other;
	to->window_self += from->window_self;
	to->window_guest += from->window_guest;
	to->window_other += from->window_other;
	if (into == LIVE_INTO_INNER)
		return;
	to->total += from->total;
	to->window_total += from->window_total;
}

static void merge_delta(struct live_delta *delta, enum live_into into)
{
	if (into == LIVE_INTO_OTHER)
		delta->other = delta->total;
	if (into == LIVE_INTO_NOTHING)
		delta->other = 0;
	if (into == LIVE_INTO_OTHER || into == LIVE_INTO_NOTHING)
		delta->self = delta->guest = 0;
	if (into != LIVE_INTO_ALL)
		delta->total = 0;
}

void live_table_renumber(struct live_table *table, const void *keys, uint32_t count,
			 const uint32_t *map, const uint8_t *into)
{
	/* A new number is never larger than the old one, so entries only move down. */
	uint32_t made = 0;

	for (uint32_t id = 0; id < table->count; id++) {
		struct live_count from = table->counts[id];

		from.delta = 0; /* a list may have several items of one entry; do not add to any of
				   them */
		if (map[id] == made) {
			table->counts[made] = (struct live_count){ 0 };
			made++;
		}
		merge_count(&table->counts[map[id]], &from, (enum live_into)into[id]);
	}
	for (uint32_t i = 0; table->ring && i <= table->window; i++)
		for (size_t k = 0; k < table->ring[i].count; k++) {
			struct live_delta *delta = &table->ring[i].items[k];

			merge_delta(delta, (enum live_into)into[delta->id]);
			delta->id = map[delta->id];
		}
	memcpy(table->keys, keys, count * table->key_len);
	table->count = count;
	index_all(table);
}

int live_table_fold(struct live_table *table, const bool *gone, uint32_t *ret_map,
		    struct failure *why)
{
	uint8_t *keys = calloc(table->count, table->key_len);
	uint8_t *into = calloc(table->count, sizeof(*into));
	uint32_t count = 0;

	if (!keys || !into) {
		free(keys);
		free(into);
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "count samples");
	}
	for (uint32_t id = 0; id < table->count; id++) {
		into[id] = LIVE_INTO_ALL;
		ret_map[id] = gone[id] && id > 0 ? 0 : count++;
		if (ret_map[id] || id == 0)
			memcpy(keys + ret_map[id] * table->key_len, live_table_key(table, id),
			       table->key_len);
	}
	live_table_renumber(table, keys, count, ret_map, into);
	free(keys);
	free(into);
	return 0;
}
