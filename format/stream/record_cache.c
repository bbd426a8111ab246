/* SPDX-License-Identifier: MIT */
/* How are records found by their hash? */
#include "format/stream/record_cache.h"

#include <stdlib.h>

#include "attach/hash.h"

enum {
	/* With fewer samples, a cache is not worth its memory. */
	SEEN_MIN = 128,
	/* Slots that one hash may use. */
	BUCKET = 4,
	BUCKETS = 1 << 16,
};

void record_cache_deinit(struct record_cache *record_cache)
{
	free(record_cache->slots);
	*record_cache = (struct record_cache){ 0 };
}

static struct cached_record *bucket_of(const struct record_cache *record_cache)
{
	return &record_cache->slots[record_cache->hash[1] % BUCKETS * BUCKET];
}

static void make_slots(struct record_cache *record_cache)
{
	/* If memory runs out, work without a cache. */
	record_cache->slots = calloc((size_t)BUCKETS * BUCKET, sizeof(*record_cache->slots));
}

const struct cached_record *record_cache_find(struct record_cache *record_cache,
					      const uint8_t *bytes, size_t len, uint64_t generation)
{
	struct cached_record *bucket;

	if (!record_cache->slots && ++record_cache->seen == SEEN_MIN)
		make_slots(record_cache);
	if (!record_cache->slots)
		return NULL;
	hash_bytes_wide(bytes, len, record_cache->hash);
	bucket = bucket_of(record_cache);
	for (size_t i = 0; i < BUCKET; i++)
		if (bucket[i].hash == record_cache->hash[0] &&
		    bucket[i].hash_more == record_cache->hash[1] >> 32 &&
		    bucket[i].generation == generation + 1)
			return &bucket[i];
	return NULL;
}

void record_cache_put(struct record_cache *record_cache, uint64_t generation,
		      const struct cached_record *cached_record)
{
	struct cached_record *bucket, *location;

	if (!record_cache->slots)
		return;
	bucket = location = bucket_of(record_cache);
	/* Replace an entry of old symbols if there is one, otherwise any entry. */
	for (size_t i = 0; i < BUCKET; i++)
		if (bucket[i].generation < location->generation)
			location = &bucket[i];
	if (location->generation == generation + 1)
		location = &bucket[record_cache->hash[0] % BUCKET];
	*location = *cached_record;
	location->hash = record_cache->hash[0];
	location->hash_more = (uint32_t)(record_cache->hash[1] >> 32);
	location->generation = generation + 1;
}
