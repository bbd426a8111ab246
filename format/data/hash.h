/* SPDX-License-Identifier: MIT */
/*
 * Hashes with a key of this process: what is hashed comes from files, and whoever could choose many
 * bytes of one hash would have all of them compared with each other.
 */
#ifndef FORMAT_DATA_HASH_H
#define FORMAT_DATA_HASH_H

#include <stddef.h>
#include <stdint.h>

/** Choose the key, once; what else is here relies on it. */
void hash_init(void);

/** SipHash-1-3 of @p len bytes. Never fails. */
uint64_t hash_bytes(const void *bytes, size_t len);

/** The same in 128 bits, which tell any bytes of a file apart. */
void hash_bytes_wide(const void *bytes, size_t len, uint64_t ret_hash[2]);

#endif
