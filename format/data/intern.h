/* SPDX-License-Identifier: MIT */
/* Equal byte strings as one number. */
#ifndef FORMAT_DATA_INTERN_H
#define FORMAT_DATA_INTERN_H

#include "attach/failure.h"

/**
 * Distinct byte strings by number: equal bytes get the same id (0, 1, …), in the order of first
 * appearance. Keys may be text or plain structs without padding.
 */
struct format_intern;

struct format_intern *format_intern_create(void);
void format_intern_destroy(struct format_intern *intern);

/** Find or add @p bytes. @return 0, or -1 with FAILURE_NO_MEMORY or FAILURE_LIMIT. */
int format_intern_put(struct format_intern *intern, const void *bytes, size_t len, uint32_t *ret_id,
		      struct failure *why);

/** Find @p bytes without adding them. */
bool format_intern_find(const struct format_intern *intern, const void *bytes, size_t len,
			uint32_t *ret_id);

/**
 * @return The bytes of a known id, aligned for any integer and with a zero byte behind them;
 *	   borrowed until the intern table is destroyed.
 */
const void *format_intern_get(const struct format_intern *intern, uint32_t id, size_t *ret_len);

uint32_t format_intern_count(const struct format_intern *intern);

#endif
