/* SPDX-License-Identifier: MIT */
/* Private to luastate: the inside of a state. */
#ifndef LUASTATE_STATE_STATE_H
#define LUASTATE_STATE_STATE_H

#include <stdint.h>
#include <string.h>
#include <time.h>

#include "attach/hash.h"
#include "luastate/layout/layout.h"
#include "luastate/layout/machine.h"
#include "luastate/stack.h"
#include "luastate/state/budget.h"

enum {
	STATE_INTERPRETERS_MAX = LUASTATE_INTERPRETERS_MAX,
	/* Different layouts by debug information, of copies that are no longer mapped. */
	STATE_RETIRED_MAX = 32,
	STATE_VMS_MAX = LUASTATE_VMS_MAX,
	/* Coroutines of unknown VMs remembered for an explanation. */
	STATE_REFUSED_MAX = 8,
	/* GCfunc.ffid has eight bits. */
	STATE_FFIDS = 256,
	/* Closures and calls whose prototypes are remembered; powers of 2. */
	STATE_CLOSURES = 4096,
	STATE_CALLS = 4096,
	/* Functions kept before the caches are emptied: bounds memory on targets that make new code
	 * all the time. */
	STATE_FUNCTIONS_MAX = 65536,
	/* Names are identifiers. */
	STATE_NAME_MAX = 128,
};

/* Of layouts.table. */
#define STATE_ROWS_MAX 256

/** One copy of LuaJIT's interpreter in the target. A build has one layout, so all VMs that run in
 *  one interpreter share it. */
struct state_interpreter {
	uint64_t start, end;
	uint8_t *code;
	struct state_frame_shape shape;	      /* by its unwind rule */
	const struct luastate_layout *layout; /* NULL until a VM was recognised */
	/* A layout of its own: by debug information, or derived; NULL: a row's. */
	struct luastate_layout *own;
	const struct luastate_layout *row; /* with an own one: the row that is nearest */
	struct derive_reading *reading;	   /* what its code shows; NULL: not read yet */
	bool is_derived;		   /* the own layout is */
	bool is_provisional;		   /* then: the program may show more later */
	uint8_t source[STATE_FIELDS_MAX];  /* then: how each field is known, enum derive_source */
	uint64_t data_start, data_end;	   /* where its file is mapped */
	unsigned derive_tries;		   /* that found nothing */
	uint64_t derive_due_ns;		   /* when it may be tried again */
	/* Rows that a VM has, by invariants.c, but that its code or its objects contradict. */
	uint64_t rejected_rows[STATE_ROWS_MAX / 64];
	bool is_confirmed; /* by traces, too */
};

/** What a closure's prototype was when it was met last: a guess for the planner. */
struct state_closure {
	uint64_t function, proto;
};

/** In which prototype a call was when it was met last. */
struct state_call {
	uint64_t pc, proto;
};

struct state_proto;
struct state_callable;
struct state_cname;
struct trace;
struct trace_areas;
struct window;
struct state_definition;
struct state_held;
struct state_parent;

struct luastate {
	struct state_closure closures[STATE_CLOSURES]; /* by a hash of the function */
	struct state_call calls[STATE_CALLS];	       /* by a hash of the position */
	uint64_t refused[STATE_REFUSED_MAX];	       /* coroutines whose VMs fit no layout */
	size_t refused_count;
	struct state_interpreter interpreters[STATE_INTERPRETERS_MAX];
	size_t interpreter_count;
	/* Layouts of interpreters that were dropped: VMs, prototypes and predictions refer to them.
	 */
	struct luastate_layout *retired[STATE_RETIRED_MAX];
	size_t retired_count;
	struct luastate_vm vms[STATE_VMS_MAX];
	uint64_t vm_code[STATE_VMS_MAX]; /* where the interpreter of each begins */
	size_t vm_count;
	const struct luastate_layout *proven; /* by a trace that was left last; NULL: none yet */
	struct state_proto *protos;
	struct state_callable *callables;
	struct trace *traces;	    /* by VM and number */
	struct trace **trace_index; /* by machine code */
	size_t trace_index_count, trace_bytes;
	struct trace_areas *areas; /* of machine code, by VM */
	struct state_cname *cnames;
	char ff_names[STATE_FFIDS][STATE_NAME_MAX];
	struct state_definition *definitions; /* by the function that is defined */
	struct state_held *held;	      /* functions, by where the program keeps them */
	unsigned held_sample;		      /* in which that was looked for last */
	struct state_parent *parents;	      /* prototypes that make functions */
	size_t parent_count, parent_room;
	struct state_budget walk_time; /* for walks to find them */
	struct state_budget read_time; /* for reading what they make, and who holds functions */
	unsigned parents_serial;       /* how often they were */
	unsigned parents_sample;       /* in which sample they were the last time, of the next VM */
	uint64_t parents_G;
	bool parents_whole;	  /* all were found that last time */
	unsigned candidates_left; /* of a sample */
	uint64_t names_due_ns;	  /* when names may be looked for again; 0 they never were */
	unsigned names_in_vain;
	luastate_pages_function *pages; /* which are in memory; NULL: nobody tells */
	void *pages_context;
	struct window *windows;		 /* what it told */
	struct state_budget derive_time; /* a program that replaces itself gets no more of it */
	unsigned epoch;			 /* advances with each reset */
	unsigned serial;
	unsigned strict_until; /* sample; until then functions are read with the stop */
	bool was_strict;       /* when this sample was planned; a loss in it changes that no more */
	size_t trace_work;     /* steps of this sample, see trace_charge() */
	size_t link_work;      /* links of C frames followed for this sample */
	unsigned unknown_work; /* coroutines in it for which all layouts were tried */
	unsigned code_work;    /* addresses in it whose VM was looked for in machine code */
	unsigned losses;       /* of functions that had changed after a stop, since the beginning */
	bool thorough;
};

/** A VM in a sample: what is known of its process, what holds its memory, and as what that is read.
 */
struct state_view {
	struct luastate *state;
	const struct luastate_memory *memory;
	const struct luastate_layout *layout;
	uint64_t G; /* 0 where only the layout is known */
};

static inline struct state_view state_view_of(struct luastate *state,
					      const struct luastate_memory *memory,
					      const struct luastate_vm *vm)
{
	return (struct state_view){ state, memory, vm->layout, vm->G };
}

/* ---- Lookups ---------------------------------------------------------------------------- */

/** The known VM with global state @p G, or NULL. */
const struct luastate_vm *state_vm_by_G(const struct luastate *state, uint64_t G);

/** The interpreter that has code at @p pc, or NULL. Borrowed until another is found. */
const struct state_interpreter *state_interpreter_at(const struct luastate *state, uint64_t pc);

/** Whether the code at @p pc of the interpreter is @p bytes. */
bool state_code_is(const struct state_interpreter *interpreter, uint64_t pc, const uint8_t *bytes,
		   size_t len);

/** Layout of the code at @p pc, NULL if it is not in an interpreter, or no VM of it is known. */
const struct luastate_layout *state_layout_at(const struct luastate *state, uint64_t pc);

/** Remember a coroutine whose VM fits no layout, for explanations. */
void state_note_refused(struct luastate *state, uint64_t L);

#endif
