/* SPDX-License-Identifier: MIT */
/* A hash table of allocated blocks by address. */
#include "format/memprof/allocation_map.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define SLOTS_FIRST 1024

void blocks_deinit(struct blocks *blocks)
{
	free(blocks->addresses);
	free(blocks->sizes);
	free(blocks->places);
	memset(blocks, 0, sizeof(*blocks));
}

/** Where an address is looked for first. */
static uint32_t slot_of(const struct blocks *blocks, uint64_t address)
{
	uint64_t mixed = (address + blocks->key[1]) * blocks->key[0];

	mixed ^= mixed >> 32;
	mixed *= blocks->key[1];
	return (uint32_t)(mixed >> 32) & (blocks->slots - 1);
}

/** @return The slot of an address, or the free one where it belongs. */
static uint32_t find(const struct blocks *blocks, uint64_t address)
{
	uint32_t slot = slot_of(blocks, address);

	while (blocks->places[slot] && blocks->addresses[slot] != address)
		slot = (slot + 1) & (blocks->slots - 1);
	return slot;
}

static void choose_key(uint64_t key[2])
{
	if (getrandom(key, 2 * sizeof(*key), GRND_NONBLOCK) < 0) {
		/* Without entropy any other one does as well as none. */
		key[0] = 0x9e3779b97f4a7c15;
		key[1] = 0xbf58476d1ce4e5b9;
	}
	key[0] |= 1;
	key[1] |= 1;
}

/** Have twice as many slots. */
static int grow(struct blocks *blocks, struct failure *why)
{
	struct blocks wider = { .slots = blocks->slots ? 2 * blocks->slots : SLOTS_FIRST,
				.slots_max = blocks->slots_max };

	if (wider.slots > (blocks->slots_max ? blocks->slots_max : BLOCKS_SLOTS_MAX))
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0,
				   "more blocks of memory than can be kept");
	wider.addresses = malloc(wider.slots * sizeof(*wider.addresses));
	wider.sizes = malloc(wider.slots * sizeof(*wider.sizes));
	wider.places = calloc(wider.slots, sizeof(*wider.places));
	if (!wider.addresses || !wider.sizes || !wider.places) {
		blocks_deinit(&wider);
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the blocks of memory");
	}
	choose_key(wider.key);
	for (uint32_t i = 0; i < blocks->slots; i++) {
		uint32_t slot;

		if (!blocks->places[i])
			continue;
		slot = find(&wider, blocks->addresses[i]);
		wider.addresses[slot] = blocks->addresses[i];
		wider.sizes[slot] = blocks->sizes[i];
		wider.places[slot] = blocks->places[i];
	}
	wider.count = blocks->count;
	blocks_deinit(blocks);
	*blocks = wider;
	return 0;
}

int blocks_put(struct blocks *blocks, uint64_t address, struct block block, struct failure *why)
{
	uint32_t slot;

	if (blocks->count >= blocks->slots / 8 * 7 && grow(blocks, why))
		return -1;
	slot = find(blocks, address);
	if (!blocks->places[slot])
		blocks->count++;
	blocks->addresses[slot] = address;
	blocks->sizes[slot] = block.size;
	blocks->places[slot] = block.place + 1;
	return 0;
}

/** Free a slot, and move what is behind it to where a search without it comes along. */
static void free_slot(struct blocks *blocks, uint32_t hole)
{
	uint32_t mask = blocks->slots - 1, slot = hole;

	for (;;) {
		slot = (slot + 1) & mask;
		if (!blocks->places[slot])
			break;
		/* It may stay where its own first slot is behind the hole. */
		if (((slot - slot_of(blocks, blocks->addresses[slot])) & mask) <
		    ((slot - hole) & mask))
			continue;
		blocks->addresses[hole] = blocks->addresses[slot];
		blocks->sizes[hole] = blocks->sizes[slot];
		blocks->places[hole] = blocks->places[slot];
		hole = slot;
	}
	blocks->places[hole] = 0;
	blocks->count--;
}

bool blocks_take(struct blocks *blocks, uint64_t address, struct block *ret_block)
{
	uint32_t slot = blocks->slots ? find(blocks, address) : 0;

	if (!blocks->slots || !blocks->places[slot])
		return false;
	*ret_block =
		(struct block){ .size = blocks->sizes[slot], .place = blocks->places[slot] - 1 };
	free_slot(blocks, slot);
	return true;
}

bool blocks_next(const struct blocks *blocks, uint32_t *slot, struct block *ret_block)
{
	while (*slot < blocks->slots && !blocks->places[*slot])
		(*slot)++;
	if (*slot >= blocks->slots)
		return false;
	*ret_block =
		(struct block){ .size = blocks->sizes[*slot], .place = blocks->places[*slot] - 1 };
	(*slot)++;
	return true;
}
