/* SPDX-License-Identifier: MIT */
/* How is a line typed at the bottom of the screen? */
#ifndef CLI_TOP_INPUT_TOP_PROMPT_H
#define CLI_TOP_INPUT_TOP_PROMPT_H

#include <stddef.h>

/** The state of the line. */
enum top_typed {
	TOP_TYPED_MORE,	  /**< It may have changed. */
	TOP_TYPED_DONE,	  /**< Enter. */
	TOP_TYPED_CANCEL, /**< Escape, or Backspace in an empty line. */
};

/**
 * Handle one key from wgetch(3): a byte of text, or an editing command of readline.
 * @param text Terminated, in a buffer of @p size bytes; remains terminated.
 */
enum top_typed top_prompt_key(char *text, size_t size, int key);

#endif
