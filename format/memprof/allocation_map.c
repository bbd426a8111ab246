/* SPDX-License-Identifier: MIT */
/* How does the hash table find an allocated block by its address? */
#include "format/memprof/allocation_map.h"

#include <stdlib.h>
#include <string.h>

#include "attach/hash.h"

#define SLOTS_FIRST 1024

void allocation_map_deinit(struct allocations *allocations)
{
	free(allocations->addresses);
	free(allocations->sizes);
	free(allocations->locations);
	memset(allocations, 0, sizeof(*allocations));
}

/** The slot where the search for an address starts. */
static uint32_t slot_of(const struct allocations *allocations, uint64_t address)
{
	return (uint32_t)hash_word(address, 0) & (allocations->slots - 1);
}

/** @return The slot of an address, or the free slot for it. */
static uint32_t find(const struct allocations *allocations, uint64_t address)
{
	uint32_t slot = slot_of(allocations, address);

	while (allocations->locations[slot] && allocations->addresses[slot] != address)
		slot = (slot + 1) & (allocations->slots - 1);
	return slot;
}

/** Double the number of slots. */
static int grow(struct allocations *allocations, struct failure *why)
{
	struct allocations wider = { .slots = allocations->slots ? 2 * allocations->slots
								 : SLOTS_FIRST,
				     .slots_max = allocations->slots_max };

	if (wider.slots > (allocations->slots_max ? allocations->slots_max : ALLOCATION_SLOTS_MAX))
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0,
				   "more blocks of memory than can be kept");
	wider.addresses = malloc(wider.slots * sizeof(*wider.addresses));
	wider.sizes = malloc(wider.slots * sizeof(*wider.sizes));
	wider.locations = calloc(wider.slots, sizeof(*wider.locations));
	if (!wider.addresses || !wider.sizes || !wider.locations) {
		allocation_map_deinit(&wider);
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the blocks of memory");
	}
	for (uint32_t i = 0; i < allocations->slots; i++) {
		uint32_t slot;

		if (!allocations->locations[i])
			continue;
		slot = find(&wider, allocations->addresses[i]);
		wider.addresses[slot] = allocations->addresses[i];
		wider.sizes[slot] = allocations->sizes[i];
		wider.locations[slot] = allocations->locations[i];
	}
	wider.count = allocations->count;
	allocation_map_deinit(allocations);
	*allocations = wider;
	return 0;
}

int allocation_map_put(struct allocations *allocations, uint64_t address,
		       struct allocation allocation, struct failure *why)
{
	uint32_t slot;

	if (allocations->count >= allocations->slots / 8 * 7 && grow(allocations, why))
		return -1;
	slot = find(allocations, address);
	if (!allocations->locations[slot])
		allocations->count++;
	allocations->addresses[slot] = address;
	allocations->sizes[slot] = allocation.size;
	allocations->locations[slot] = allocation.location + 1;
	return 0;
}

/** Free a slot and move later entries up, so that searches still find them. */
static void free_slot(struct allocations *allocations, uint32_t hole)
{
	uint32_t mask = allocations->slots - 1, slot = hole;

	for (;;) {
		slot = (slot + 1) & mask;
		if (!allocations->locations[slot])
			break;
		/* The entry may stay if its search starts behind the hole. */
		if (((slot - slot_of(allocations, allocations->addresses[slot])) & mask) <
		    ((slot - hole) & mask))
			continue;
		allocations->addresses[hole] = allocations->addresses[slot];
		allocations->sizes[hole] = allocations->sizes[slot];
		allocations->locations[hole] = allocations->locations[slot];
		hole = slot;
	}
	allocations->locations[hole] = 0;
	allocations->count--;
}

bool allocation_map_take(struct allocations *allocations, uint64_t address,
			 struct allocation *ret_block)
{
	uint32_t slot = allocations->slots ? find(allocations, address) : 0;

	if (!allocations->slots || !allocations->locations[slot])
		return false;
	*ret_block = (struct allocation){ .size = allocations->sizes[slot],
					  .location = allocations->locations[slot] - 1 };
	free_slot(allocations, slot);
	return true;
}

bool allocation_map_next(const struct allocations *allocations, uint32_t *slot,
			 struct allocation *ret_block)
{
	while (*slot < allocations->slots && !allocations->locations[*slot])
		(*slot)++;
	if (*slot >= allocations->slots)
		return false;
	*ret_block = (struct allocation){ .size = allocations->sizes[*slot],
					  .location = allocations->locations[*slot] - 1 };
	(*slot)++;
	return true;
}
