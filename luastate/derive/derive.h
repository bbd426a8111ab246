/* SPDX-License-Identifier: MIT */
/*
 * Private to luastate: the layout of a build that no row of layouts.table has, derived from what
 * the interpreter's code and the live VM show.
 *
 * Three kinds of evidence: the displacements in the interpreter's instructions (derive_code_*.c),
 * what members of live objects must be (derive_vm.c, derive_protos.c, derive_traces.c), and the row
 * that is nearest: a member between two others that have moved by the same distance has moved with
 * them (derive.c). What two kinds contradict each other about is not known. A layout is believed if
 * a live VM has all invariants under it (invariants.c), as any other.
 */
#ifndef LUASTATE_DERIVE_DERIVE_H
#define LUASTATE_DERIVE_DERIVE_H

#include "luastate/layout/object.h"
#include "luastate/state/state.h"

/** A field of struct luastate_layout by its member: its index in state_fields. */
#define DERIVE_FIELD(member)                                    \
	((offsetof(struct luastate_layout, member) -            \
	  offsetof(struct luastate_layout, lua_State_sizeof)) / \
	 sizeof(int32_t))

enum {
	/* Values of one field that the code shows; more would be a shape that says nothing. */
	DERIVE_VALUES = 4,
	/* Members of live objects lie at most so far from where the nearest row has them. */
	DERIVE_SHIFT_MAX = 64,
	/* Objects of a kind that are looked at: many of the same kind show no more. */
	DERIVE_OBJECTS = 64,
	/* Processor time of one search; one of a real VM takes less than 10 ms. Memory can be made
	 * so that everything agrees for a while, and nothing in the end. */
	DERIVE_NS = 250 * 1000 * 1000,
	/* A VM runs on while it is read: what does not fit at one look may at the next. */
	DERIVE_LOOKS = 3,
	/* Bytes of a snapshot; builds have 8 and 12. */
	DERIVE_SNAPSHOT_MAX = 32,
	/* maxtrace is 65535 at most (TraceNo1). */
	DERIVE_TRACES_MAX = 65536,
};

/** How a field is known. */
enum derive_source {
	DERIVE_UNKNOWN,
	DERIVE_GUESSED, /**< It is as far from a member that was seen as in the row. */
	DERIVE_BY_ROW,	/**< It lies between members that have moved alike. */
	DERIVE_BY_VM,	/**< Live objects show it. */
	DERIVE_BY_CODE, /**< Instructions show it. */
	DERIVE_BY_BOTH,
	DERIVE_ABSENT,	 /**< The build has no such field. */
	DERIVE_DOUBTFUL, /**< Code and live objects contradict each other, or the code itself. */
};

/** What one kind of places in the code says of a field. */
struct derive_votes {
	int32_t value[DERIVE_VALUES];
	uint16_t count[DERIVE_VALUES];
};

/** What an interpreter's code shows. */
struct derive_reading {
	struct derive_votes votes[STATE_FIELDS_MAX];
	/* Distances from a prototype's end, where its bytecode begins: its size is not in the code.
	 */
	struct derive_votes k_before_end, numparams_before_end;
	struct derive_votes gc_total, gc_grayagain; /* gc.* of global_State */
	bool gc64, has_compiler;
};

/** An object of the VM, as it was read. */
struct derive_object {
	uint64_t address;
	uint32_t number; /* of a trace */
	uint8_t bytes[STATE_OBJECT_MAX];
};

/** A layout that is being derived. */
struct derive {
	const struct luastate *state;
	const struct state_interpreter *interpreter;
	const struct attach_reader *reader;
	const struct derive_reading *reading;
	/* Rows that are not to be used, as if the table lacked them; NULL: all may be. */
	bool (*is_withheld)(const struct luastate_layout *row);
	const struct luastate_layout *row; /* the nearest */
	struct luastate_layout layout;
	uint8_t source[STATE_FIELDS_MAX]; /* enum derive_source */
	uint64_t G;
	/* Objects of the VM. */
	struct {
		uint64_t threads[DERIVE_OBJECTS], code[DERIVE_OBJECTS]; /* of Lua functions */
		size_t thread_count, code_count;
	} objects;
	uint8_t g[STATE_GLOBAL_MAX]; /* as much as there is before the compiler's state */
	int32_t g_len;
	/* Prototypes, and traces by their numbers. What is behind an object's end is 0. */
	struct derive_object protos[DERIVE_OBJECTS], traces[DERIVE_OBJECTS];
	size_t proto_count, trace_count;
};

/** Members of an object that was read; what would lie behind its end is all ones, or 0. */
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

/** A reader that fails after so much that only memory that is made for it asks for more. */
struct derive_bounded_reader {
	struct attach_reader reader;
	const struct attach_reader *of;
	uint32_t reads;
	uint64_t bytes;
	uint64_t end_ns; /* by the thread's own clock */
	bool is_over;
};

/** @param ret_bounded Must not move; its `reader` is the one to use. */
void derive_bound_reads(struct derive_bounded_reader *ret_bounded,
			const struct attach_reader *reader);

/** A source in words: what shows a field, or why it is not known. Static. */
const char *derive_evidence(uint8_t source);

/** Count a vote; one for a place that no structure has is none. */
void derive_vote(struct derive_votes *votes, int32_t value);

/** The value that has more than three quarters of the votes. @return false if none has. */
bool derive_winner(const struct derive_votes *votes, int32_t *ret_value);

/** Read an interpreter's code: one implementation for each architecture.
 *  @return false where it is not LuaJIT's, or not like any that is known. */
bool derive_read_code(const struct state_interpreter *interpreter,
		      struct derive_reading *ret_reading);

/** Begin with a row, and with what the code shows in its place. */
void derive_begin(struct derive *derive, const struct luastate_layout *row);

/** Live objects show a field. */
void derive_note(struct derive *derive, size_t field, int32_t value);

/** Whether a field's value has been seen. */
bool derive_is_seen(const struct derive *derive, size_t field);

/** Fill in the fields of a structure, "GCproto.", that lie between others. */
void derive_fill(struct derive *derive, const char *structure);

/** Whether an address lies in the block that the global state is a part of (GG_State). */
bool derive_is_own(const struct derive *derive, uint64_t address);

/** The build has no such field. */
void derive_note_absent(struct derive *derive, size_t field);

/** Whether a field's value is known, by whatever evidence. */
bool derive_is_known(const struct derive *derive, size_t field);

/** Whether a field is of a structure, "GCproto.". */
bool derive_is_member(size_t field, const char *structure);

/** By how much a member may have moved: as the seen members before and behind it have.
 *  @return whether there is one behind it. */
bool derive_range(const struct derive *derive, const char *structure, size_t field,
		  int32_t *ret_least, int32_t *ret_most);

/** Whether a member can lie at @p place, by what the live VM has there. */
typedef bool derive_test(const struct derive *derive, int32_t location);

/** Of the places to which a member may have moved take the one that passes a test, if one does;
 * where none does, of all places near. Where no place at all passes the row is not believed either.
 */
void derive_pick(struct derive *derive, const char *structure, size_t field, int32_t step,
		 derive_test *holds);

/** The same of two members that one equation relates. @return for how many objects it holds; 0
 * where the places cannot be theirs. The places for which it holds most often are taken. */
typedef size_t derive_test_of_two(const struct derive *derive, int32_t first, int32_t second);

void derive_pick_two(struct derive *derive, const char *structure, const size_t fields[2],
		     int32_t step, derive_test_of_two *holds);

/** Where several places pass a test, or none can, take the one that has the row's distance from a
 *  neighbour that was seen. @param bytes The member's size. It only breaks a tie: the layout is
 *  provisional. */
void derive_guess_beside(struct derive *derive, size_t field, size_t neighbour, int32_t bytes,
			 derive_test *holds);

/** The members of lua_State and global_State. @return false where there is no VM. */
bool derive_vm(struct derive *derive, uint64_t L);

/** The members of GCproto, by the functions of the VM. */
bool derive_protos(struct derive *derive);

/** The members of GCtrace, SnapShot and jit_State, as far as there are traces. */
void derive_traces(struct derive *derive);

/** Of these the ones of SnapShot, and GCtrace.nsnapmap, by the traces that were read. */
void derive_snapshots(struct derive *derive);

/** Of these the ones of jit_State: those that tell where traces are, and the others. */
void derive_trace_table(struct derive *derive);
void derive_compiler(struct derive *derive);

/** Bytes of jit_State. @return false where they cannot be read. */
bool derive_read_J(const struct derive *derive, int32_t at, void *ret_bytes, size_t len);

/** Tell a layout what the build's opcodes are in other builds, by the operands that its own table
 * of opcodes says they have. What may be several ones
 *  is unknown. Without the table, as in an image, their number tells whether they are the same. */
void derive_opcodes(const struct state_interpreter *interpreter, const struct attach_reader *reader,
		    struct luastate_layout *layout);

/**
 * Derive the layout of the VM of a coroutine. Stopped window: no; some thousand reads, and no more
 * than DERIVE_NS of processor time.
 * @param derive state, interpreter, reader and reading set, the rest 0.
 * @return whether it was found: derive->layout holds for the live VM. Where derive->G is 0 the
 *         coroutine is no VM's.
 */
bool derive_layout(struct derive *derive, uint64_t L);

/** What a row that a VM has by invariants.c is worth. */
enum derive_verdict {
	DERIVE_OPEN, /**< Nothing is against it, and it had no traces yet or could not be read. */
	DERIVE_CONFIRMED,    /**< All that was seen, of traces too, is as it says. */
	DERIVE_CONTRADICTED, /**< Code or objects showed another value each time. */
};

/** Compare a row with the interpreter's code and the live VM of a coroutine: invariants.c looks at
 * the members that tell known builds apart, and builds to come may differ in others. Stopped
 * window: no. */
enum derive_verdict derive_judge_row(struct luastate *state, struct state_interpreter *interpreter,
				     const struct attach_reader *reader,
				     const struct luastate_layout *row, uint64_t L);

/** Whether a search may begin: not too soon after the last one, and only where the code is like
 *  LuaJIT's. */
bool derive_is_due(struct state_interpreter *interpreter);

/** Note that a search ended that began then. */
void derive_rest(struct state_interpreter *interpreter, uint64_t begin_ns);

/** Give an interpreter that has no layout yet one of its own, by the VM of a coroutine. After each
 *  failure it is tried more seldom, and all searches together take a small part of the time.
 *  @return whether it has one now. */
bool derive_interpreter(struct luastate *state, struct state_interpreter *interpreter,
			const struct attach_reader *reader, uint64_t L);

/** Where a derived layout is provisional, as a program had no traces when it was derived, derive it
 *  again if that is due. @param ret_before The layout that it had, to be released or retired by the
 *  caller. @return whether more is known now. */
bool derive_again(struct luastate *state, struct state_interpreter *interpreter,
		  const struct attach_reader *reader, uint64_t main_thread,
		  struct luastate_layout **ret_before);

#endif
