/* SPDX-License-Identifier: MIT */
/* Private to luastate: a copy of a prototype whose definitions are read. */
#ifndef LUASTATE_DEFINITION_DEFINITION_SOURCE_H
#define LUASTATE_DEFINITION_DEFINITION_SOURCE_H

#include "luastate/luastate.h"

/** A local variable; these are in the order in which they begin. */
struct definition_variable {
	uint32_t start, end;
	const char *name; /* "" for one of a loop's own */
};

/** A copy of a prototype. */
struct definition_source {
	const struct luastate_layout *layout;
	const struct attach_reader *reader;
	uint64_t address;
	uint8_t *bytes;
	size_t len;
	const uint8_t *bc;
	uint32_t sizebc, sizekgc;
	uint64_t k; /* distance of the first constant that is a number */
	struct definition_variable *variables;
	size_t variable_count;
	uint32_t *first_jumps; /* to each instruction; NULL: not looked for yet */
	size_t steps_left;
};

/** Copy the prototype at source->address once, so that nothing of it changes meanwhile. Stopped
 * window: no. @param source With layout, reader and address, else 0; source_close() in any case.
 *  @return 0, or -1 as definition_visit(). */
int source_open(struct definition_source *source, struct failure *why);
void source_close(struct definition_source *source);

/** Note work done on it: where none is left, what is under way ends. */
void source_spend(struct definition_source *source, size_t steps);

uint32_t source_instruction(const struct definition_source *source, uint32_t index);

/** The first instruction that may jump to @p index, which is one of its own; UINT32_MAX: none does.
 * 0 where that is not known. */
uint32_t source_first_jump(struct definition_source *source, uint32_t index);

/** Collectable constant @p index, 0 if there is none. */
uint64_t source_constant(const struct definition_source *source, uint32_t index);

/** The same as a text of printable characters. @return whether it is one. */
bool source_text(const struct definition_source *source, uint32_t index, char *ret_text,
		 size_t size);

/** The variable in a slot at an instruction, NULL if there is none. */
const struct definition_variable *source_variable_at(struct definition_source *source,
						     uint32_t index, uint32_t slot);

/** Whether a variable begins right at an instruction. */
bool source_begins_at(const struct definition_source *source, uint32_t index);

/** NULL where it has none. */
const char *source_upvalue_name(const struct definition_source *source, uint32_t index);

#endif
