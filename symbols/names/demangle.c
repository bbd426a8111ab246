/* SPDX-License-Identifier: MIT */
/* How do we decode C++ symbols within bounds? */
#include "symbols/names/demangle.h"

#include <setjmp.h>
#include <string.h>

#include <demangle.h>

/** Repetitions (S_, T_) that we accept. Each may double the work. Twenty of LLVM's 40,000 symbols
 *  have more. */
#define REPETITIONS_MAX 20

/** The text so far. When it is full, the decoder is left; it allocates nothing. */
struct output {
	char *text;
	size_t len, size;
	jmp_buf full;
};

static void append(const char *piece, size_t len, void *context)
{
	struct output *output = context;
	size_t room = output->size - 1 - output->len;

	memcpy(output->text + output->len, piece, len < room ? len : room);
	output->len += len < room ? len : room;
	if (len > room)
		longjmp(output->full, 1);
}

/** How often a symbol refers to parts of itself. */
static unsigned count_repetitions(const char *symbol)
{
	unsigned count = 0;

	for (; *symbol; symbol++) {
		if (*symbol != 'S' && *symbol != 'T')
			continue;
		symbol += 1 + strspn(symbol + 1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
		if (*symbol == '_')
			count++;
		else
			symbol--;
	}
	return count;
}

bool symbols_demangle(const char *symbol, char *ret_text, size_t size)
{
	struct output output = { .text = ret_text, .size = size };
	volatile bool is_decoded = true;

	if (strncmp(symbol, "_Z", 2) != 0 || size < 2 ||
	    count_repetitions(symbol) > REPETITIONS_MAX)
		return false;
	if (setjmp(output.full) == 0)
		is_decoded = cplus_demangle_v3_callback(symbol, DMGL_NO_OPTS, append, &output) != 0;
	if (!is_decoded || output.len == 0)
		return false;
	ret_text[output.len] = '\0';
	return true;
}
