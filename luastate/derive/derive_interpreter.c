/* SPDX-License-Identifier: MIT */
/* When is an interpreter's layout derived, does a row of the table hold, and which result is kept?
 */
#include "luastate/derive/derive.h"

#include <stdlib.h>

#include "attach/clock.h"
#include "luastate/arch/arch.h"
#include "luastate/layout/fields.h"

enum {
	/* After a failed search, the next one waits for as long as the failed one took. The wait
	 * then doubles, up to some minutes. */
	TRIES_DOUBLED = 12,
	ROW_TRIES = 10,
	/* Processor time of all searches of a process: at most SAVED_NS at once, and 1/SHARE of the
	 * time that passes. The limit is needed because stacks and memory can show any number of
	 * coroutines that belong to no VM. */
	SAVED_NS = 300 * 1000 * 1000,
	SHARE = 20,
	/* A row is ruled out only if each of ROW_LOOKS looks at the live VM contradicts it in the
	 * same way, because the right row must never be ruled out. */
	ROW_LOOKS = 8,
	TRACES_ENOUGH = 16,
};

/* ---- When ------------------------------------------------------------------------------- */

/* Whether there is time for one more search. */
static bool may_search(struct luastate *state)
{
	return budget_allows(&state->derive_time, SAVED_NS, SHARE);
}

static void spend(struct luastate *state, uint64_t begin_ns)
{
	budget_charge(&state->derive_time, clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns);
}

/* Read the code once. Code that does not look like LuaJIT's is never tried again. */
static bool read_code(struct state_interpreter *interpreter)
{
	if (!interpreter->reading) {
		interpreter->reading = calloc(1, sizeof(*interpreter->reading));
		if (interpreter->reading && !derive_read_code(interpreter, interpreter->reading))
			interpreter->derive_due_ns = UINT64_MAX;
	}
	return interpreter->reading && interpreter->derive_due_ns != UINT64_MAX;
}

bool derive_is_due(struct state_interpreter *interpreter)
{
	return clock_now_ns() >= interpreter->derive_due_ns && read_code(interpreter);
}

/* The next search waits for the duration of the last one, doubled with each try. */
void derive_rest(struct state_interpreter *interpreter, uint64_t begin_ns)
{
	unsigned doublings = interpreter->derive_tries < TRIES_DOUBLED ? interpreter->derive_tries
								       : TRIES_DOUBLED;

	interpreter->derive_due_ns = clock_now_ns() + ((clock_now_ns() - begin_ns) << doublings);
	interpreter->derive_tries++;
}

/* ---- Known rows ------------------------------------------------------------------------- */

/* Whether a field may rule a row out: only what the code shows, and equations that live objects
 * satisfy. Other members are found by their usual values, or by parameters that a program may set;
 * and some sizes are rounded up. */
static bool is_strong(const struct derive *derive, size_t field)
{
	static const size_t fields[] = {
		DERIVE_FIELD(lua_State_sizeof),	 DERIVE_FIELD(lua_State_stacksize),
		DERIVE_FIELD(GCproto_sizeof),	 DERIVE_FIELD(GCproto_sizebc),
		DERIVE_FIELD(GCproto_sizekgc),	 DERIVE_FIELD(GCproto_sizekn),
		DERIVE_FIELD(GCproto_sizept),	 DERIVE_FIELD(GCproto_sizeuv),
		DERIVE_FIELD(GCproto_uv),	 DERIVE_FIELD(GCproto_chunkname),
		DERIVE_FIELD(GCproto_firstline), DERIVE_FIELD(GCproto_numline),
		DERIVE_FIELD(GCproto_lineinfo),	 DERIVE_FIELD(GCproto_uvinfo),
		DERIVE_FIELD(GCproto_varinfo),	 DERIVE_FIELD(GCtrace_ir),
		DERIVE_FIELD(GCtrace_nk),	 DERIVE_FIELD(GCtrace_nins),
		DERIVE_FIELD(GCtrace_snap),	 DERIVE_FIELD(GCtrace_nsnap),
		DERIVE_FIELD(GCtrace_snapmap),	 DERIVE_FIELD(GCtrace_nsnapmap),
		DERIVE_FIELD(GCtrace_startpt),	 DERIVE_FIELD(GCtrace_startpc),
		DERIVE_FIELD(GCtrace_szmcode),	 DERIVE_FIELD(SnapShot_sizeof),
	};

	if (derive->source[field] != DERIVE_BY_VM)
		return true;
	/* With few traces, the numbers of side traces and their roots fit other members as well. */
	if (field == DERIVE_FIELD(GCtrace_root) || field == DERIVE_FIELD(GCtrace_nchild))
		return derive->trace_count >= TRACES_ENOUGH;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (fields[i] == field)
			return true;
	return false;
}

/* Look at a live VM once. Keeps the fields that contradict the row as they did in the looks before,
 * by the same value. @return their number. */
static size_t look_at_row(struct derive *derive, const struct luastate_layout *row, uint64_t L,
			  bool is_first, int32_t *seen)
{
	size_t count = 0;

	derive_begin(derive, row);
	if (derive_vm(derive, L) && derive_protos(derive) && derive->reading->has_compiler)
		derive_traces(derive);
	for (size_t i = 0; i < state_field_count; i++) {
		int32_t value = state_field_value(&derive->layout, i),
			known = state_field_value(row, i);
		bool differs = derive_is_seen(derive, i) && is_strong(derive, i) &&
			       known != LAYOUT_ABSENT && known != value;

		seen[i] = differs && (is_first || seen[i] == value) ? value : LAYOUT_ABSENT;
		count += seen[i] != LAYOUT_ABSENT;
	}
	return count;
}

enum derive_verdict derive_judge_row(struct luastate *state, struct state_interpreter *interpreter,
				     const struct attach_reader *reader,
				     const struct luastate_layout *row, uint64_t L)
{
	struct derive *derive = calloc(1, sizeof(*derive));
	int32_t seen[STATE_FIELDS_MAX];
	struct derive_bounded_reader bounded;
	size_t left = 1;
	enum derive_verdict verdict;
	uint64_t begin_ns;

	if (!derive || !read_code(interpreter) || !may_search(state)) {
		free(derive);
		return DERIVE_OPEN;
	}
	begin_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	derive_bound_reads(&bounded, reader);
	derive->state = state;
	derive->interpreter = interpreter;
	derive->reader = &bounded.reader;
	derive->reading = interpreter->reading;
	/* The VM runs while it is read, so one look may combine values of different times. */
	for (unsigned look = 0; look < ROW_LOOKS && left; look++)
		left = look_at_row(derive, row, L, look == 0, seen);
	verdict = left ? DERIVE_CONTRADICTED : derive->trace_count ? DERIVE_CONFIRMED : DERIVE_OPEN;
	free(derive);
	spend(state, begin_ns);
	return verdict;
}

/* ---- Searches --------------------------------------------------------------------------- */

/* Search once, from a coroutine. */
static struct derive *search(const struct luastate *state, struct state_interpreter *interpreter,
			     const struct attach_reader *reader, uint64_t L)
{
	struct derive *derive = calloc(1, sizeof(*derive));
	uint64_t begin_ns = clock_now_ns();
	bool found;

	if (!derive)
		return NULL;
	derive->state = state;
	derive->interpreter = interpreter;
	derive->reader = reader;
	derive->reading = interpreter->reading;
	found = derive_layout(derive, L);
	/* Most coroutine-like words belong to no VM, so only a search that found a VM delays the
	 * next one. */
	if (derive->G)
		derive_rest(interpreter, begin_ns);
	if (found)
		return derive;
	free(derive);
	return NULL;
}

/* @return NULL if nothing was found, or a search is not due yet. */
static struct derive *search_when_due(struct luastate *state, struct state_interpreter *interpreter,
				      const struct attach_reader *reader, uint64_t L)
{
	uint64_t begin_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	struct derive *derive;

	if (!may_search(state))
		return NULL;
	derive = derive_is_due(interpreter) ? search(state, interpreter, reader, L) : NULL;
	spend(state, begin_ns);
	return derive;
}

/* Count the fields whose values are known. */
static unsigned count_known(const uint8_t *source)
{
	unsigned count = 0;

	for (size_t i = 0; i < state_field_count; i++)
		count += source[i] != DERIVE_UNKNOWN && source[i] != DERIVE_DOUBTFUL &&
			 source[i] != DERIVE_ABSENT;
	return count;
}

/* Whether a row agrees with all known fields. */
static bool is_row(const struct derive *derive)
{
	for (size_t i = 0; i < luastate_layout_count; i++) {
		const struct luastate_layout *row = &luastate_layouts[i];
		bool same =
			strcmp(row->arch, state_arch_name) == 0 && row->gc64 == derive->layout.gc64;

		for (size_t k = 0; k < state_field_count && same; k++)
			same = !derive_is_known(derive, k) ||
			       state_field_value(row, k) == state_field_value(&derive->layout, k);
		if (same)
			return true;
	}
	return false;
}

/* Whether the layout may improve when the program has more traces. */
static bool is_provisional(const struct derive *derive)
{
	return memchr(derive->source, DERIVE_GUESSED, state_field_count) ||
	       (derive->reading->has_compiler && !state_has_compiler(&derive->layout));
}

static bool keep(struct luastate *state, struct state_interpreter *interpreter,
		 const struct derive *derive)
{
	struct luastate_layout *own = state_take_retired(state, &derive->layout);

	if (!own)
		own = malloc(sizeof(*own));
	if (!own)
		return false;
	*own = derive->layout;
	interpreter->own = own;
	memcpy(interpreter->source, derive->source, sizeof(interpreter->source));
	interpreter->row = derive->row;
	interpreter->is_derived = true;
	interpreter->is_provisional = is_provisional(derive);
	return true;
}

bool derive_interpreter(struct luastate *state, struct state_interpreter *interpreter,
			const struct attach_reader *reader, uint64_t L)
{
	struct derive *derive;
	bool found;

	if (interpreter->layout || interpreter->own)
		return false;
	derive = search_when_due(state, interpreter, reader, L);
	/* A VM of a known build may have failed a check at this look only; at another look its row
	 * fits, and the row has more fields. After ROW_TRIES tries the derived layout is kept
	 * anyway. */
	found = derive &&
		(state_has_compiler(&derive->layout) || !is_row(derive) ||
		 interpreter->derive_tries > ROW_TRIES) &&
		keep(state, interpreter, derive);
	free(derive);
	return found;
}

bool derive_again(struct luastate *state, struct state_interpreter *interpreter,
		  const struct attach_reader *reader, uint64_t main_thread,
		  struct luastate_layout **ret_before)
{
	struct luastate_layout *before = interpreter->own;
	struct derive *derive;
	bool better = false;

	if (!interpreter->is_derived || !interpreter->is_provisional)
		return false;
	derive = search_when_due(state, interpreter, reader, main_thread);
	if (derive && (count_known(derive->source) > count_known(interpreter->source) ||
		       !is_provisional(derive)))
		better = keep(state, interpreter, derive);
	free(derive);
	if (better)
		*ret_before = before;
	return better;
}
