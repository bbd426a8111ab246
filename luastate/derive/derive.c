/* SPDX-License-Identifier: MIT */
/* How is a layout derived? Evidence is collected and weighed; the nearest row fills in the rest. */
#include "luastate/derive/derive.h"

#include <stdlib.h>

#include "attach/clock.h"
#include "luastate/arch/arch.h"
#include "luastate/layout/fields.h"
#include "luastate/state/invariants.h"

enum {
	/* Rows to try, nearest first. The others differ in too many members. */
	ROWS_TRIED = 6,
	/* A search makes some thousand reads, of about 100 KiB in all. Memory that is made to look
	 * like a VM can ask for many more; the search then fails. */
	READS_MAX = 200000,
	BYTES_MAX = 1 << 29,
	/* Reads between two checks of the time. */
	READS_AT_ONCE = 16,
};

/* ---- Bounds ----------------------------------------------------------------------------- */

static int read_bounded(void *self, struct remote_addr address, void *ret_bytes, size_t len,
			struct failure *why)
{
	struct derive_bounded_reader *bounded = self;

	bounded->bytes += len;
	if (bounded->reads++ >= READS_MAX || bounded->bytes > BYTES_MAX ||
	    (bounded->reads % READS_AT_ONCE == 0 &&
	     clock_read_ns(CLOCK_THREAD_CPUTIME_ID) >= bounded->end_ns))
		bounded->is_over = true;
	if (bounded->is_over)
		return failure_set(why, FAILURE_LIMIT, 0, 0, address.value, "derive a layout");
	return attach_read(bounded->behind, address, ret_bytes, len, why);
}

void derive_bound_reads(struct derive_bounded_reader *ret_bounded,
			const struct attach_reader *reader)
{
	*ret_bounded = (struct derive_bounded_reader){
		.reader = { .read = read_bounded, .self = ret_bounded },
		.behind = reader,
		.end_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) + DERIVE_NS
	};
}

/* ---- Votes ------------------------------------------------------------------------------ */

void derive_vote(struct derive_votes *votes, int32_t value)
{
	size_t least = 0;

	/* No structure is larger, so callers need not check the range of their sums. */
	if (value < -STATE_DISTANCE_MAX || value > STATE_DISTANCE_MAX)
		return;
	for (size_t i = 0; i < DERIVE_VALUES; i++) {
		if (votes->count[i] && votes->value[i] == value) {
			votes->count[i]++;
			return;
		}
		if (votes->count[i] < votes->count[least])
			least = i;
	}
	if (votes->count[least] > 1)
		return;
	votes->value[least] = value;
	votes->count[least] = 1;
}

bool derive_winner(const struct derive_votes *votes, int32_t *ret_value)
{
	unsigned all = 0;
	size_t best = 0;

	for (size_t i = 0; i < DERIVE_VALUES; i++) {
		all += votes->count[i];
		if (votes->count[i] > votes->count[best])
			best = i;
	}
	if (all == 0 || 4 * (unsigned)votes->count[best] <= 3 * all)
		return false;
	*ret_value = votes->value[best];
	return true;
}

/* ---- The nearest row -------------------------------------------------------------------- */

/* Count the places where members have moved, as the code shows. A change of a structure moves all
 * members behind it, so this counts changes. */
static unsigned count_steps(const struct derive_reading *reading, const struct luastate_layout *row)
{
	int32_t shift = 0, value;
	unsigned steps = 0;
	const char *structure = "";

	for (size_t i = 0; i < state_field_count; i++) {
		const char *name = state_fields[i].name, *dot = strchr(name, '.');
		size_t len = dot ? (size_t)(dot - name) : 0;

		if (!derive_winner(&reading->votes[i], &value) || strcmp(name, "GCstr.hash") == 0 ||
		    state_field_value(row, i) == LAYOUT_ABSENT ||
		    (derive_is_member(i, "jit_State.") && strcmp(name, "jit_State.L") != 0))
			continue;
		if (strncmp(structure, name, len) != 0) {
			structure = name;
			shift = 0;
		}
		steps += value - state_field_value(row, i) != shift;
		shift = value - state_field_value(row, i);
	}
	return steps;
}

/* Select the rows that may resemble the interpreter, nearest first. @return their number. */
static size_t sort_rows(const struct derive *derive,
			const struct luastate_layout *ret_rows[ROWS_TRIED])
{
	const struct state_interpreter *interpreter = derive->interpreter;
	const struct derive_reading *reading = derive->reading;
	unsigned steps[ROWS_TRIED];
	size_t count = 0;

	/* From the last row on: among equally near rows the latest comes first. */
	for (size_t i = luastate_layout_count; i-- > 0;) {
		const struct luastate_layout *row = &luastate_layouts[i];
		unsigned own;
		size_t at;

		if (strcmp(row->arch, state_arch_name) != 0 || (row->gc64 == 1) != reading->gc64 ||
		    row->cframe_size != interpreter->shape.size ||
		    row->cframe_prev != interpreter->shape.prev ||
		    (derive->is_withheld && derive->is_withheld(row)))
			continue;
		own = count_steps(reading, row);
		for (at = count; at > 0 && steps[at - 1] > own; at--)
			if (at < ROWS_TRIED) {
				steps[at] = steps[at - 1];
				ret_rows[at] = ret_rows[at - 1];
			}
		if (at < ROWS_TRIED) {
			steps[at] = own;
			ret_rows[at] = row;
			count += count < ROWS_TRIED;
		}
	}
	return count;
}

/* ---- The whole -------------------------------------------------------------------------- */

static bool is_of_compiler(size_t field)
{
	return state_is_of_compiler(state_fields[field].name);
}

/* Whether no known build has changed the field's structure; the row's value then holds. */
static bool is_steady(size_t field)
{
	static const char *const structures[] = { "GCobj.",	 "GCfunc", "GCupval.", "GCstr.",
						  "GCtab.",	 "Node.",  "GCudata.", "GCcdata.",
						  "HotPenalty.", "tag.",   "cframe." };

	for (size_t i = 0; i < sizeof(structures) / sizeof(structures[0]); i++)
		if (derive_is_member(field, structures[i]))
			return true;
	/* All collectable objects have this member at the same offset. */
	return field == DERIVE_FIELD(GCproto_gclist);
}

/* The code shows distances from the global state; convert them to offsets in jit_State. */
static int32_t from_J(const struct derive *derive, size_t field, int32_t value)
{
	if (derive_is_member(field, "jit_State.") && field != DERIVE_FIELD(jit_State_L))
		return value - derive->layout.global_State_to_J;
	return value;
}

/* VM states are consecutive numbers, so a state has moved as far as the last known one before it.
 */
static void fill_states(struct derive *derive)
{
	int32_t shift = 0;

	for (size_t i = 0; i < state_field_count; i++) {
		if (!derive_is_member(i, "vmst."))
			continue;
		if (state_field_value(derive->row, i) == LAYOUT_ABSENT) {
			derive_note_absent(derive, i);
		} else if (derive_is_seen(derive, i)) {
			shift = state_field_value(&derive->layout, i) -
				state_field_value(derive->row, i);
		} else if (derive->source[i] == DERIVE_UNKNOWN) {
			*state_field_at(&derive->layout, i) =
				state_field_value(derive->row, i) + shift;
			derive->source[i] = DERIVE_BY_ROW;
		}
	}
}

/* Whether to believe a value from the code, which is untrusted. A member must be inside the bytes
 * that are read of its structure. If all builds have the same value, only the row's is right. */
static bool is_credible(const struct derive *derive, size_t field, int32_t value)
{
	bool is_far =
		derive_is_member(field, "global_State.") || derive_is_member(field, "jit_State.");

	if (is_steady(field))
		return value == state_field_value(derive->row, field);
	return value >= 0 && value <= (is_far ? STATE_DISTANCE_MAX : STATE_OBJECT_MAX - 16);
}

void derive_begin(struct derive *derive, const struct luastate_layout *row)
{
	const struct derive_reading *reading = derive->reading;

	derive->row = row;
	derive->layout = *row;
	derive->trace_count = 0;
	memset(derive->source, 0, sizeof(derive->source));
	for (size_t i = 0; i < state_field_count; i++) {
		int32_t value;

		if (is_of_compiler(i) && !reading->has_compiler) {
			derive_note_absent(derive, i);
			continue;
		}
		/* In newer builds, table look-ups use another member than the string table does, so
		 * the code shows something else. */
		if (i == DERIVE_FIELD(GCstr_hash) || i == DERIVE_FIELD(GCstr_len)) {
			derive->source[i] = DERIVE_BY_ROW;
		} else if (derive_winner(&reading->votes[i], &value)) {
			value = from_J(derive, i, value);
			derive->source[i] =
				is_credible(derive, i, value) ? DERIVE_BY_CODE : DERIVE_DOUBTFUL;
			if (derive->source[i] == DERIVE_BY_CODE)
				*state_field_at(&derive->layout, i) = value;
		} else if (is_steady(i)) {
			derive->source[i] = DERIVE_BY_ROW;
		}
	}
}

/* Whether compiled code can be followed. This needs all fields that find and describe a trace. A
 * program without traces does not show them, and the row's values would be guesses. */
static bool knows_compiler(const struct derive *derive)
{
	if (!derive->trace_count)
		return false;
	for (size_t i = 0; i < state_field_count; i++)
		if (is_of_compiler(i) && !derive_is_known(derive, i) &&
		    derive->source[i] != DERIVE_ABSENT && !state_may_lack(state_fields[i].name))
			return false;
	return true;
}

/* Mark unknown fields as absent. @return whether the known fields are enough. */
static bool finish(struct derive *derive)
{
	if (!knows_compiler(derive))
		for (size_t i = 0; i < state_field_count; i++)
			if (is_of_compiler(i))
				derive_note_absent(derive, i);
	for (size_t i = 0; i < state_field_count; i++) {
		if (derive_is_known(derive, i) || derive->source[i] == DERIVE_ABSENT)
			continue;
		if (!state_may_lack(state_fields[i].name) && !derive_is_member(i, "vmst."))
			return false;
		*state_field_at(&derive->layout, i) = LAYOUT_ABSENT;
	}
	return true;
}

static bool try_row(struct derive *derive, const struct luastate_layout *row, uint64_t L)
{
	derive_begin(derive, row);
	if (!derive_vm(derive, L) || !derive_protos(derive))
		return false;
	if (derive->reading->has_compiler)
		derive_traces(derive);
	fill_states(derive);
	if (!finish(derive) || !state_layout_is_bounded(&derive->layout) ||
	    !state_check_vm(derive->state, &derive->layout, derive->reader, derive->G, NULL, NULL))
		return false;
	derive_opcodes(derive->interpreter, derive->reader, &derive->layout);
	return true;
}

bool derive_layout(struct derive *derive, uint64_t L)
{
	const struct luastate_layout *rows[ROWS_TRIED];
	size_t count = sort_rows(derive, rows);
	struct derive_bounded_reader bounded;
	uint64_t G = 0;
	bool found = false;

	derive_bound_reads(&bounded, derive->reader);
	derive->reader = &bounded.reader;
	/* The VM runs while it is read, so a test that fails now may pass at the next look. Two
	 * facts do not change: whether the coroutine belongs to a VM, and what the code shows; so
	 * the first row settles whether to continue. */
	for (size_t i = 0; i < count * DERIVE_LOOKS && !found && !bounded.is_over && (i == 0 || G);
	     i++) {
		found = try_row(derive, rows[i / DERIVE_LOOKS], L);
		G = derive->G ? derive->G : G;
	}
	derive->G = G;
	derive->reader = bounded.behind;
	return found;
}
