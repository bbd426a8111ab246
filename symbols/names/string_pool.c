/* SPDX-License-Identifier: MIT */
/* Strings of a space, each once. */
#include "symbols/names/string_pool.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS ((size_t)1 << 10)
#define BLOCK_BYTES ((size_t)1 << 15)

struct block {
	struct block *next;
	size_t used, size;
	char bytes[];
};

struct symbols_strings {
	const char **slots; /**< Open addressing, at most half full. */
	size_t slot_count, count;
	struct block *blocks;
	size_t bytes;
};

struct symbols_strings *symbols_strings_create(void)
{
	struct symbols_strings *strings = calloc(1, sizeof(*strings));

	if (!strings)
		return NULL;
	strings->slot_count = FIRST_SLOTS;
	strings->slots = calloc(FIRST_SLOTS, sizeof(*strings->slots));
	if (!strings->slots) {
		symbols_strings_destroy(strings);
		return NULL;
	}
	return strings;
}

void symbols_strings_destroy(struct symbols_strings *strings)
{
	if (!strings)
		return;
	for (struct block *block = strings->blocks, *next; block; block = next) {
		next = block->next;
		free(block);
	}
	free(strings->slots);
	free(strings);
}

/** FNV-1a. */
static uint64_t hash_of(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
	return hash ^ hash >> 32;
}

static const char **slot_of(const char **slots, size_t slot_count, const char *text)
{
	size_t at = hash_of(text) & (slot_count - 1);

	while (slots[at] && strcmp(slots[at], text) != 0)
		at = (at + 1) & (slot_count - 1);
	return &slots[at];
}

static int grow(struct symbols_strings *strings)
{
	size_t slot_count = strings->slot_count * 2;
	const char **slots = calloc(slot_count, sizeof(*slots));

	if (!slots)
		return -1;
	for (size_t i = 0; i < strings->slot_count; i++) {
		if (strings->slots[i])
			*slot_of(slots, slot_count, strings->slots[i]) = strings->slots[i];
	}
	free(strings->slots);
	strings->slots = slots;
	strings->slot_count = slot_count;
	return 0;
}

static char *take_bytes(struct symbols_strings *strings, size_t len)
{
	struct block *block = strings->blocks;

	if (!block || block->size - block->used < len) {
		size_t size = len > BLOCK_BYTES ? len : BLOCK_BYTES;

		block = malloc(sizeof(*block) + size);
		if (!block)
			return NULL;
		*block = (struct block){ .next = strings->blocks, .size = size };
		strings->blocks = block;
	}
	block->used += len;
	strings->bytes += len;
	return block->bytes + block->used - len;
}

const char *symbols_strings_intern(struct symbols_strings *strings, const char *text)
{
	const char **slot = slot_of(strings->slots, strings->slot_count, text);
	size_t len = strlen(text) + 1;
	char *copy;

	if (*slot)
		return *slot;
	if (strings->bytes + len > SYMBOLS_STRINGS_MAX_BYTES)
		return NULL;
	if (strings->count * 2 >= strings->slot_count) {
		if (grow(strings) < 0)
			return NULL;
		slot = slot_of(strings->slots, strings->slot_count, text);
	}
	copy = take_bytes(strings, len);
	if (!copy)
		return NULL;
	memcpy(copy, text, len);
	strings->count++;
	return *slot = copy;
}
