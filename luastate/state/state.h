/* SPDX-License-Identifier: MIT */
/* What does a luastate consist of? Private to luastate. */
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
	/* Different layouts, from debug information or derived, whose copies of LuaJIT are no
	 * longer mapped. */
	STATE_RETIRED_MAX = 32,
	STATE_VMS_MAX = LUASTATE_VMS_MAX,
	/* Coroutines of unknown VMs to remember for an explanation. */
	STATE_REFUSED_MAX = 8,
	/* GCfunc.ffid has eight bits. */
	STATE_FFIDS = 256,
	/* Closures and calls whose prototypes are remembered; powers of 2. */
	STATE_CLOSURES = 4096,
	STATE_CALLS = 4096,
	/* Functions to keep before the caches are emptied; limits memory for targets that keep
	 * making new code. */
	STATE_FUNCTIONS_MAX = 65536,
	/* Names are identifiers, which are short. */
	STATE_NAME_MAX = 128,
};

/* Limit of the rows of layouts.table. */
#define STATE_ROWS_MAX 256

/** A copy of LuaJIT's interpreter in the target. All VMs in one interpreter share its layout. */
struct state_interpreter {
	uint64_t start, end;
	uint8_t *code;
	struct state_frame_shape shape;	      /* from its unwind rule */
	const struct luastate_layout *layout; /* NULL until a VM is recognised */
	/* A layout of its own, from debug information or derived; NULL: a row's. */
	struct luastate_layout *own;
	const struct luastate_layout *row; /* the row nearest to the own layout */
	struct derive_reading *reading;	   /* evidence from its code; NULL: not read yet */
	bool is_derived;		   /* the own layout is derived */
	bool is_provisional;		   /* the derived layout may improve */
	uint8_t source[STATE_FIELDS_MAX]; /* enum derive_source of each field of a derived layout */
	uint64_t data_start, data_end;	  /* mapping of its file */
	unsigned derive_tries;		  /* failed derivations */
	uint64_t derive_due_ns;		  /* no derivation before this time */
	/* Rows that satisfy a VM's invariants, but contradict its code or its objects. */
	uint64_t rejected_rows[STATE_ROWS_MAX / 64];
	bool is_confirmed; /* the layout is confirmed, by traces too */
};

/** The prototype that a closure had before: a guess for the planner. */
struct state_closure {
	uint64_t function, proto;
};

/** The prototype that contained a call before. */
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
	/* Layouts of dropped interpreters; VMs, prototypes and predictions may still refer to them.
	 */
	struct luastate_layout *retired[STATE_RETIRED_MAX];
	size_t retired_count;
	struct luastate_vm vms[STATE_VMS_MAX];
	uint64_t vm_code[STATE_VMS_MAX]; /* start of each VM's interpreter */
	size_t vm_count;
	const struct luastate_layout *proven; /* by the last trace that was left; NULL: none */
	struct state_proto *protos;
	size_t proto_bytes; /* bytes of bytecode and debug parts that they keep */
	struct state_callable *callables;
	struct trace *traces;	    /* by VM and number */
	struct trace **trace_index; /* sorted by machine code */
	size_t trace_index_count, trace_bytes;
	struct trace_areas *areas; /* areas of machine code, by VM */
	struct state_cname *cnames;
	char ff_names[STATE_FFIDS][STATE_NAME_MAX];
	struct state_definition *definitions; /* by the defined function */
	struct state_held *held;      /* functions, by the variable or table that holds them */
	unsigned held_sample;	      /* sample of the last search for held */
	bool held_is_sure;	      /* its results count, even if there are none */
	struct state_parent *parents; /* prototypes that make functions */
	size_t parent_count, parent_room;
	struct state_budget walk_time; /* for walks that find parents */
	struct state_budget read_time; /* for reading them, and searching for held functions */
	unsigned parents_serial;       /* number of searches for parents */
	unsigned parents_sample;       /* sample of the last one; parents_G: the next VM */
	uint64_t parents_G;
	bool parents_whole;	  /* the last search found all */
	unsigned unsure_serial;	  /* index with a parent that changed while it was read, or may be
				     garbage */
	unsigned candidates_left; /* candidates left for this sample */
	uint64_t names_due_ns;	  /* no search for names before; 0: never searched */
	unsigned names_doublings; /* of the pause until the next search */
	luastate_pages_function *pages; /* reports present pages; NULL: unknown */
	void *pages_context;
	struct window *windows;		 /* its answers */
	struct state_budget derive_time; /* kept when the program replaces itself */
	unsigned epoch;			 /* increases with each reset */
	unsigned serial;
	unsigned strict_until; /* until this sample the stop reads functions */
	bool was_strict;       /* at this sample's planning; later losses do not change it */
	size_t trace_work;     /* steps in this sample, see trace_charge() */
	size_t link_work;      /* links of C frames followed in this sample */
	unsigned unknown_work; /* coroutines of this sample tried with all layouts */
	unsigned code_work;    /* addresses of this sample looked up in machine code */
	unsigned losses;       /* functions that changed after a stop, in total */
	bool thorough;
};

/** A VM in a sample: its process's state, its memory, and its layout. */
struct state_view {
	struct luastate *state;
	const struct luastate_memory *memory;
	const struct luastate_layout *layout;
	uint64_t G; /* 0 if only the layout is known */
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

/** The interpreter whose code contains @p pc, or NULL. Borrowed until an interpreter is added. */
const struct state_interpreter *state_interpreter_at(const struct luastate *state, uint64_t pc);

/** Whether the interpreter's code at @p pc equals @p bytes. */
bool state_code_is(const struct state_interpreter *interpreter, uint64_t pc, const uint8_t *bytes,
		   size_t len);

/** The layout of the code at @p pc; NULL if this is in no interpreter, or no VM of it is known. */
const struct luastate_layout *state_layout_at(const struct luastate *state, uint64_t pc);

/** Remember a coroutine whose VM fits no layout, for explanations. */
void state_note_refused(struct luastate *state, uint64_t L);

/** Take back state_note_refused(): its VM fits one now. */
void state_forget_refused(struct luastate *state, uint64_t L);

/* ---- Layouts of dropped interpreters ---------------------------------------------------- */

/**
 * Keep a layout until the state is reset, because prototypes and predictions may refer to it.
 * @param layout May be NULL. @return whether there was room.
 */
bool state_retire_layout(struct luastate *state, struct luastate_layout *layout);

/**
 * Take back a kept layout that equals @p layout, so that a program that loads and unloads LuaJIT
 * again and again needs only one. LJ_STACK_EXTRA and the opcodes may differ.
 * @return The caller owns it; NULL if there is none.
 */
struct luastate_layout *state_take_retired(struct luastate *state,
					   const struct luastate_layout *layout);

#endif
