/* SPDX-License-Identifier: MIT */
/* Private to luastate: what is in a prototype whose definitions are read? */
#ifndef LUASTATE_DEFINITION_DEFINITION_SOURCE_H
#define LUASTATE_DEFINITION_DEFINITION_SOURCE_H

#include "luastate/luastate.h"

/** A local variable. Variables are ordered by the start of their lives. */
struct definition_variable {
	uint32_t start, end;
	const char *name; /* "" for an internal one of a loop */
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
	uint64_t k; /* offset of the first numeric constant */
	struct definition_variable *variables;
	size_t variable_count;
	uint32_t *first_jumps; /* to each instruction; NULL: not searched yet */
	size_t steps_left;
};

/**
 * Copy the prototype at source->address at once, so that it does not change in between. Stopped
 * window: no.
 * @param source With layout, reader and address set, the rest 0. Call source_close() in any case.
 * @return 0, or -1 as definition_visit().
 */
int source_open(struct definition_source *source, struct failure *why);
void source_close(struct definition_source *source);

/** Charge work. Once no steps are left, the current search ends. */
void source_spend(struct definition_source *source, size_t steps);

uint32_t source_instruction(const struct definition_source *source, uint32_t index);

/** The first instruction that may jump to @p index, which is inside the prototype. UINT32_MAX if
 * none does, 0 if unknown. */
uint32_t source_first_jump(struct definition_source *source, uint32_t index);

/** Collectable constant @p index, 0 if there is none. */
uint64_t source_constant(const struct definition_source *source, uint32_t index);

/** The text of that constant. @return whether it is one, of printable characters. */
bool source_text(const struct definition_source *source, uint32_t index, char *ret_text,
		 size_t size);

/** The variable in a slot at an instruction, NULL if there is none. */
const struct definition_variable *source_variable_at(struct definition_source *source,
						     uint32_t index, uint32_t slot);

/** Whether a variable's life begins exactly at an instruction. */
bool source_begins_at(const struct definition_source *source, uint32_t index);

/** NULL if it has no name. */
const char *source_upvalue_name(const struct definition_source *source, uint32_t index);

#endif
