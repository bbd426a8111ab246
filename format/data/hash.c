/* SPDX-License-Identifier: MIT */
/*
 * SipHash-1-3, and its variant of 128 bits. Source: J.-P. Aumasson, D. J. Bernstein, "SipHash: a
 * fast short-input PRF", 2012; the variant is that of their reference implementation.
 */
#include "format/data/hash.h"

#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static uint64_t hash_key[2];

void hash_init(void)
{
	/* Without entropy any other one does as well as none. */
	if (!hash_key[0] && getrandom(hash_key, sizeof(hash_key), GRND_NONBLOCK) < 0)
		hash_key[0] = 0x9e3779b97f4a7c15 ^ (uint64_t)getpid();
}

static uint64_t rotate(uint64_t value, int bits)
{
	return value << bits | value >> (64 - bits);
}

static inline void mix(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

static inline uint64_t finish(uint64_t v[4])
{
	for (int i = 0; i < 3; i++)
		mix(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/** @param variant What tells the two functions apart. */
static inline void absorb(const void *bytes, size_t len, uint64_t variant, uint64_t ret_v[4])
{
	uint64_t v[] = { hash_key[0] ^ 0x736f6d6570736575,
			 hash_key[1] ^ 0x646f72616e646f6d ^ variant,
			 hash_key[0] ^ 0x6c7967656e657261, hash_key[1] ^ 0x7465646279746573 };
	const unsigned char *at = bytes;
	uint64_t word, last = (uint64_t)len << 56;

	for (; len >= sizeof(word); len -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		v[3] ^= word;
		mix(v);
		v[0] ^= word;
	}
	for (size_t i = 0; i < len; i++)
		last |= (uint64_t)at[i] << 8 * i;
	v[3] ^= last;
	mix(v);
	v[0] ^= last;
	memcpy(ret_v, v, sizeof(v));
}

uint64_t hash_bytes(const void *bytes, size_t len)
{
	uint64_t v[4];

	absorb(bytes, len, 0, v);
	v[2] ^= 0xff;
	return finish(v);
}

void hash_bytes_wide(const void *bytes, size_t len, uint64_t ret_hash[2])
{
	uint64_t v[4];

	absorb(bytes, len, 0xee, v);
	v[2] ^= 0xee;
	ret_hash[0] = finish(v);
	v[1] ^= 0xdd;
	ret_hash[1] = finish(v);
}
