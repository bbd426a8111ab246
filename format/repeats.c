/* SPDX-License-Identifier: MIT */
#include "format/repeats.h"

#include <stdlib.h>

#include "format/hash.h"

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

static struct repeat *bucket_of(const struct repeats *repeats, const uint64_t hash[2])
{
	return &repeats->slots[hash[1] % BUCKETS * BUCKET];
}

const struct repeat *repeats_find(const struct repeats *repeats, const uint8_t *bytes, size_t len,
				  uint64_t generation)
{
	struct repeat *bucket;
	uint64_t hash[2];

	if (!repeats->slots)
		return NULL;
	hash_bytes_wide(bytes, len, hash);
	bucket = bucket_of(repeats, hash);
	for (size_t i = 0; i < BUCKET; i++)
		if (bucket[i].hash == hash[0] && bucket[i].hash_more == hash[1] >> 32 &&
		    bucket[i].generation == generation + 1)
			return &bucket[i];
	return NULL;
}

void repeats_put(struct repeats *repeats, const uint8_t *bytes, size_t len, uint64_t generation,
		 const struct repeat *repeat)
{
	struct repeat *bucket, *place;
	uint64_t hash[2];

	if (!repeats->slots && ++repeats->seen < SEEN_MIN)
		return;
	if (!repeats->slots)
		repeats->slots = calloc((size_t)BUCKETS * BUCKET, sizeof(*repeats->slots));
	if (!repeats->slots)
		return; /* It goes without. */
	hash_bytes_wide(bytes, len, hash);
	bucket = place = bucket_of(repeats, hash);
	/* One that nobody will find any more gives way, or any one. */
	for (size_t i = 0; i < BUCKET; i++)
		if (bucket[i].generation < place->generation)
			place = &bucket[i];
	if (place->generation == generation + 1)
		place = &bucket[hash[0] % BUCKET];
	*place = *repeat;
	place->hash = hash[0];
	place->hash_more = (uint32_t)(hash[1] >> 32);
	place->generation = generation + 1;
}
