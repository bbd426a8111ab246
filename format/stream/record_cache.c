/* SPDX-License-Identifier: MIT */
/* Records by their hash. */
#include "format/stream/record_cache.h"

#include <stdlib.h>

#include "format/data/hash.h"

enum {
	/* Of fewer samples it does not matter how they are read. */
	SEEN_MIN = 128,
	/* Slots that a hash may be in. */
	BUCKET = 4,
	BUCKETS = 1 << 16,
};

void repeats_deinit(struct repeats *repeats)
{
	free(repeats->slots);
	*repeats = (struct repeats){ 0 };
}

static struct repeat *bucket_of(const struct repeats *repeats)
{
	return &repeats->slots[repeats->hash[1] % BUCKETS * BUCKET];
}

static void make_slots(struct repeats *repeats)
{
	hash_init();
	/* Without memory it goes without. */
	repeats->slots = calloc((size_t)BUCKETS * BUCKET, sizeof(*repeats->slots));
}

const struct repeat *repeats_find(struct repeats *repeats, const uint8_t *bytes, size_t len,
				  uint64_t generation)
{
	struct repeat *bucket;

	if (!repeats->slots && ++repeats->seen == SEEN_MIN)
		make_slots(repeats);
	if (!repeats->slots)
		return NULL;
	hash_bytes_wide(bytes, len, repeats->hash);
	bucket = bucket_of(repeats);
	for (size_t i = 0; i < BUCKET; i++)
		if (bucket[i].hash == repeats->hash[0] &&
		    bucket[i].hash_more == repeats->hash[1] >> 32 &&
		    bucket[i].generation == generation + 1)
			return &bucket[i];
	return NULL;
}

void repeats_put(struct repeats *repeats, uint64_t generation, const struct repeat *repeat)
{
	struct repeat *bucket, *place;

	if (!repeats->slots)
		return;
	bucket = place = bucket_of(repeats);
	/* One that nobody will find any more gives way, or any one. */
	for (size_t i = 0; i < BUCKET; i++)
		if (bucket[i].generation < place->generation)
			place = &bucket[i];
	if (place->generation == generation + 1)
		place = &bucket[repeats->hash[0] % BUCKET];
	*place = *repeat;
	place->hash = repeats->hash[0];
	place->hash_more = (uint32_t)(repeats->hash[1] >> 32);
	place->generation = generation + 1;
}
