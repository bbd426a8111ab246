/* SPDX-License-Identifier: MIT */
/* How is the layout of a build derived that has no row in layouts.table? Private to luastate. The
 * interpreter's code and the live VM show it.
 *
 * There are three kinds of evidence:
 * - displacements in the interpreter's instructions (derive_code_*.c);
 * - the values that members of live objects must have (derive_vm.c, derive_protos.c,
 *   derive_traces.c);
 * - the nearest row: if two members have moved by the same distance, a member between them has
 *   moved by it too (evidence.c).
 *
 * A field is unknown if two kinds contradict each other. A layout is believed only if a live VM
 * satisfies all invariants under it (invariants.c), like any other layout.
 */
#ifndef LUASTATE_DERIVE_DERIVE_H
#define LUASTATE_DERIVE_DERIVE_H

#include "luastate/layout/object.h"
#include "luastate/state/state.h"

/** The index in state_fields of a member of struct luastate_layout. */
#define DERIVE_FIELD(member)                                    \
	((offsetof(struct luastate_layout, member) -            \
	  offsetof(struct luastate_layout, lua_State_sizeof)) / \
	 sizeof(int32_t))

enum {
	/* Different values of a field that are counted; an instruction pattern with more of them
	 * proves nothing. */
	DERIVE_VALUES = 4,
	/* Largest distance of a live object's member from its offset in the nearest row. */
	DERIVE_SHIFT_MAX = 64,
	/* Objects of a kind that are examined; more objects would show no more. */
	DERIVE_OBJECTS = 64,
	/* Processor time of one search; a real VM takes less than 10 ms. Memory can be forged so
	 * that everything fits for a while, and fails in the end. */
	DERIVE_NS = 250 * 1000 * 1000,
	/* A VM runs while it is read, so a test that fails may pass at the next look. */
	DERIVE_LOOKS = 3,
	/* Bytes of a snapshot; builds have 8 and 12. */
	DERIVE_SNAPSHOT_MAX = 32,
	/* maxtrace is 65535 at most (TraceNo1). */
	DERIVE_TRACES_MAX = 65536,
};

/** How a field is known. */
enum derive_source {
	DERIVE_UNKNOWN,
	DERIVE_GUESSED, /**< The field keeps the row's distance from a seen member. */
	DERIVE_BY_ROW,	/**< The field is between members that have moved by the same distance. */
	DERIVE_BY_VM,	/**< Live objects show it. */
	DERIVE_BY_CODE, /**< Instructions show it. */
	DERIVE_BY_BOTH,
	DERIVE_ABSENT,	 /**< The build has no such field. */
	DERIVE_DOUBTFUL, /**< The code and live objects contradict each other, or one of them
			    contradicts itself. */
};

/** The values that one kind of instruction patterns shows for a field. */
struct derive_votes {
	int32_t value[DERIVE_VALUES];
	uint16_t count[DERIVE_VALUES];
};

/** All that an interpreter's code shows. */
struct derive_reading {
	struct derive_votes votes[STATE_FIELDS_MAX];
	/* Distances from a prototype's end, where its bytecode begins, because the code does not
	 * contain the structure's size. */
	struct derive_votes k_before_end, numparams_before_end;
	struct derive_votes gc_total, gc_grayagain; /* members of gc in global_State */
	bool gc64, has_compiler;
};

/** An object of the VM, and its bytes. */
struct derive_object {
	uint64_t address;
	uint32_t number; /* of a trace */
	uint8_t bytes[STATE_OBJECT_MAX];
};

/** The state of one derivation. */
struct derive {
	const struct luastate *state;
	const struct state_interpreter *interpreter;
	const struct attach_reader *reader;
	const struct derive_reading *reading;
	/* Whether to ignore a row, as if the table lacked it; NULL: ignore none. */
	bool (*is_withheld)(const struct luastate_layout *row);
	const struct luastate_layout *row; /* the nearest */
	struct luastate_layout layout;
	uint8_t source[STATE_FIELDS_MAX]; /* enum derive_source */
	uint64_t G;
	/* Objects found in the VM. */
	struct {
		uint64_t threads[DERIVE_OBJECTS], code[DERIVE_OBJECTS]; /* code: bytecode */
		size_t thread_count, code_count;
	} objects;
	uint8_t g[STATE_GLOBAL_MAX]; /* the bytes before the compiler's state */
	int32_t g_len;
	/* Prototypes, and traces by number. Bytes behind an object's end are 0. */
	struct derive_object protos[DERIVE_OBJECTS], traces[DERIVE_OBJECTS];
	size_t proto_count, trace_count;
};

/** A member of an object's bytes. Outside the bytes it reads as all ones, or as 0. */
static inline uint32_t derive_u32(const struct derive_object *object, int32_t at)
{
	return at < 0 || at + 4 > STATE_OBJECT_MAX ? UINT32_MAX : state_u32(object->bytes, at);
}

static inline uint32_t derive_u16(const struct derive_object *object, int32_t at)
{
	return at < 0 || at + 4 > STATE_OBJECT_MAX ? UINT32_MAX
						   : state_u32(object->bytes, at) & 0xffff;
}

static inline uint64_t derive_u64(const struct derive_object *object, int32_t at)
{
	return at < 0 || at + 8 > STATE_OBJECT_MAX ? 0 : state_u64(object->bytes, at);
}

static inline uint64_t derive_ref(const struct derive *derive, const struct derive_object *object,
				  int32_t at)
{
	return at < 0 || at + 8 > STATE_OBJECT_MAX ? 0
						   : state_ref(&derive->layout, object->bytes, at);
}

/** A reader with limits that only forged memory reaches. */
struct derive_bounded_reader {
	struct attach_reader reader;
	const struct attach_reader *behind;
	uint32_t reads;
	uint64_t bytes;
	uint64_t end_ns; /* processor time of the thread */
	bool is_over;
};

/** Start a bounded reader. @param ret_bounded Must not move; read through its member `reader`. */
void derive_bound_reads(struct derive_bounded_reader *ret_bounded,
			const struct attach_reader *reader);

/** A source in words: how a field is known, or why it is not. Static. */
const char *derive_evidence(uint8_t source);

/** Count a vote for a value. Ignores values outside any structure. */
void derive_vote(struct derive_votes *votes, int32_t value);

/** The value with more than three quarters of the votes. @return false if there is none. */
bool derive_winner(const struct derive_votes *votes, int32_t *ret_value);

/**
 * Read an interpreter's code; each architecture has an implementation.
 * @return false if the code is not LuaJIT's, or unlike all known builds.
 */
bool derive_read_code(const struct state_interpreter *interpreter,
		      struct derive_reading *ret_reading);

/** Start a layout from a row and the values that the code shows. */
void derive_begin(struct derive *derive, const struct luastate_layout *row);

/** Note the value of a field that live objects show. */
void derive_note(struct derive *derive, size_t field, int32_t value);

/** Whether the code or live objects show a field. */
bool derive_is_seen(const struct derive *derive, size_t field);

/** Fill in the unknown fields of a structure, such as "GCproto.", that are between known ones. */
void derive_fill(struct derive *derive, const char *structure);

/** Whether an address is in the block that contains the global state (GG_State). */
bool derive_is_own(const struct derive *derive, uint64_t address);

/** Note that the build has no such field. */
void derive_note_absent(struct derive *derive, size_t field);

/** Whether a field's value is known, by any evidence. */
bool derive_is_known(const struct derive *derive, size_t field);

/** Whether a field belongs to a structure, such as "GCproto.". */
bool derive_is_member(size_t field, const char *structure);

/**
 * The distances by which a member may have moved: between those of the seen members before it and
 * behind it. @return whether a seen member is behind it.
 */
bool derive_range(const struct derive *derive, const char *structure, size_t field,
		  int32_t *ret_least, int32_t *ret_most);

/** Whether the live VM's memory is consistent with a member at @p location. */
typedef bool derive_test(const struct derive *derive, int32_t location);

/**
 * Note the only offset that passes a test. The search starts where the member's neighbours have
 * moved to, and widens until some offset passes. If none passes, the field is
 * doubtful, because the row's offset is wrong too. If several pass, it is not known.
 */
void derive_pick(struct derive *derive, const char *structure, size_t field, int32_t step,
		 derive_test *holds);

/**
 * Test two members that one equation relates. @return the number of objects that satisfy it; 0 if
 * the offsets are impossible. The pair with the highest number wins.
 */
typedef size_t derive_test_of_two(const struct derive *derive, int32_t first, int32_t second);

void derive_pick_two(struct derive *derive, const char *structure, const size_t fields[2],
		     int32_t step, derive_test_of_two *holds);

/**
 * Guess a field that tests did not decide: it gets the row's distance from a seen neighbour. The
 * layout stays provisional.
 * @param bytes The member's size, for its alignment.
 * @param holds The guess must pass this test.
 */
void derive_guess_beside(struct derive *derive, size_t field, size_t neighbour, int32_t bytes,
			 derive_test *holds);

/** Find the members of lua_State and global_State. @return false if there is no VM. */
bool derive_vm(struct derive *derive, uint64_t L);

/** Find the members of GCproto from the VM's functions. */
bool derive_protos(struct derive *derive);

/** Find the members of GCtrace, SnapShot and jit_State, as far as there are traces. */
void derive_traces(struct derive *derive);

/** A step of derive_traces(): find the members of SnapShot, and GCtrace.nsnapmap. */
void derive_snapshots(struct derive *derive);

/**
 * Steps of derive_traces(): find the size of the table of traces, then the other members of
 * jit_State.
 */
void derive_trace_table(struct derive *derive);
void derive_compiler(struct derive *derive);

/** Read bytes of jit_State. @return false if they cannot be read. */
bool derive_read_J(const struct derive *derive, int32_t at, void *ret_bytes, size_t len);

/**
 * Map the build's opcodes to the known ones, by the operands in the build's own table of opcodes.
 * An ambiguous opcode is unknown. If the table cannot be read, as in an image, the number of
 * opcodes decides whether they are the known ones.
 */
void derive_opcodes(const struct state_interpreter *interpreter, const struct attach_reader *reader,
		    struct luastate_layout *layout);

/** Whether words of LuaJIT's table of operands are those of the first @p count opcodes. */
bool derive_is_operands(const uint16_t *words, size_t count);

/**
 * Derive the layout of the VM of a coroutine. Stopped window: no; some thousand reads, and at most
 * DERIVE_NS of processor time.
 * @param derive state, interpreter, reader and reading set, the rest 0.
 * @return whether it succeeded: the live VM satisfies derive->layout. If derive->G is 0, the
 * coroutine belongs to no VM.
 */
bool derive_layout(struct derive *derive, uint64_t L);

/** The verdict on a row whose invariants (invariants.c) a VM satisfies. */
enum derive_verdict {
	DERIVE_OPEN, /**< Not contradicted, but there were no traces, or memory could not be read.
		      */
	DERIVE_CONFIRMED,    /**< All evidence agrees with it, including traces. */
	DERIVE_CONTRADICTED, /**< Code or objects showed another value at every look. */
};

/**
 * Compare a row with the interpreter's code and the live VM of a coroutine. invariants.c checks
 * only members that distinguish known builds, and future builds may differ in others. Stopped
 * window: no.
 */
enum derive_verdict derive_judge_row(struct luastate *state, struct state_interpreter *interpreter,
				     const struct attach_reader *reader,
				     const struct luastate_layout *row, uint64_t L);

/**
 * Whether a search may start: enough time has passed since the last one, and the code is LuaJIT's.
 */
bool derive_is_due(struct state_interpreter *interpreter);

/** Note that a search ended, to delay the next one. @param begin_ns When it began. */
void derive_rest(struct state_interpreter *interpreter, uint64_t begin_ns);

/**
 * Derive a layout for an interpreter that has none, from the VM of a coroutine. Retries get rarer
 * after each failure, and all searches together take a small part of the time.
 * @return whether it has one now.
 */
bool derive_interpreter(struct luastate *state, struct state_interpreter *interpreter,
			const struct attach_reader *reader, uint64_t L);

/**
 * Derive a provisional layout again if that is due, because the program may have traces now.
 * @param ret_before The layout that was replaced; the caller releases or retires it.
 * @return whether more is known now.
 */
bool derive_again(struct luastate *state, struct state_interpreter *interpreter,
		  const struct attach_reader *reader, uint64_t main_thread,
		  struct luastate_layout **ret_before);

#endif
