/* SPDX-License-Identifier: MIT */
/* Private to luastate: the inside of a state, shared by its parts. */
#ifndef LUASTATE_STATE_STATE_H
#define LUASTATE_STATE_STATE_H

#include <stdint.h>
#include <string.h>
#include <time.h>

#include "attach/hash.h"
#include "luastate/explain.h"
#include "luastate/luastate.h"
#include "luastate/stack.h"
#include "luastate/state/budget.h"
#include "luastate/state/machine.h"
/** A number of a layout, by its name in layouts.table. */
struct state_field {
	const char *name;
	size_t offset; /* of an int32_t in struct luastate_layout */
};

#include "layouts.inc"

extern const struct luastate_layout luastate_layouts[];
extern const size_t luastate_layout_count;

extern const struct state_field state_fields[];

/** Whether a build may have no such field, or it may be unknown where it is: nothing that finds a
 *  frame. Of vmst.* all may be unknown but interp and cfunc. */
bool state_may_lack(const char *field);

/** Whether a field is one of the compiler's: all or none of them are absent. */
bool state_is_of_compiler(const char *field);

/** Whether compiled code can be followed: builds without the compiler have no traces, and of some
 *  builds it is not known where they have them. */
static inline bool state_has_compiler(const struct luastate_layout *layout)
{
	return layout->global_State_to_J != LAYOUT_ABSENT;
}
extern const size_t state_field_count;

enum {
	STATE_INTERPRETERS_MAX = LUASTATE_INTERPRETERS_MAX,
	/* Different layouts by debug information, of copies that are no longer mapped. */
	STATE_RETIRED_MAX = 32,
	STATE_VMS_MAX = LUASTATE_VMS_MAX,
	/* Coroutines of unknown VMs remembered for an explanation. */
	STATE_REFUSED_MAX = 8,
	/* Of the fields of layouts.table; there are about 145. */
	STATE_FIELDS_MAX = 192,
	/* GCfunc.ffid has eight bits. */
	STATE_FFIDS = 256,
	/* The first bytes of a main coroutine, up to behind its reference to the global state. */
	STATE_MAIN_HEAD = 24,
	/* What a walk reads of a GCfunc or a lua_State in one go, over all layouts. */
	STATE_OBJECT_MAX = 256,
	/* The same of a global_State. */
	STATE_GLOBAL_MAX = 4096,
	/* GG_State has some 6 KiB. */
	STATE_DISTANCE_MAX = 65536,
	STATE_OPCODES_MAX = 256,
	/* CFRAME_RESUME, CFRAME_UNWIND_FF in the low bits of a link between C frames. */
	STATE_CFRAME_FLAGS = 3,
	/* GCState.currentwhite is before GCState.state, and GCobj's marked before its type; the
	 * whites are LJ_GC_WHITE0 and 1. Source: lj_obj.h, lj_gc.h. */
	STATE_WHITE_FROM_STATE = -1,
	STATE_MARKED_FROM_TYPE = -1,
	STATE_WHITES = 3,
	/* Prototypes with longer bytecode are rare; their parts are read one by one. */
	STATE_BYTECODE_KEEP = 16384,
	/* Of a prototype's debug part so much is kept, and so much of that compared. */
	STATE_DEBUG_KEEP = 16384,
	STATE_DEBUG_COMPARED = 1024,
	/* LuaJIT's own bound on instructions of one prototype is far below (BCMAX_D jumps). */
	STATE_BYTECODE_MAX = 1 << 26,
	/* Longest chunk name kept; a chunk name can be a whole source text. */
	STATE_CHUNKNAME_MAX = 1024,
	/* Closures and calls whose prototypes are remembered; powers of 2. */
	STATE_CLOSURES = 4096,
	STATE_CALLS = 4096,
	/* A program that was seen to replace code does it again: for this many samples prototypes
	 * are read with the stop. */
	STATE_STRICT_SAMPLES = 4096,
	/* Names are identifiers. */
	STATE_NAME_MAX = 128,
	STATE_TABLE_SLOTS_MAX = 1 << 16,
	/* Functions kept before the caches are emptied: bounds memory on targets that make new code
	 * all the time. */
	STATE_FUNCTIONS_MAX = 65536,
};

/** An opcode that is none of those that are known by name. */
#define STATE_OPCODE_UNKNOWN 255

/* Of layouts.table. */
#define STATE_ROWS_MAX 256

/**
 * An instruction with the opcode that it has in the builds of layouts.table, where all opcodes up
 * to FUNCF have the same numbers. Those from FUNCF on keep the build's own, which the layout has.
 */
static inline uint32_t state_instruction(const struct luastate_layout *layout, uint32_t ins)
{
	return layout->has_opcodes ? (ins & ~(uint32_t)0xff) | layout->opcodes[ins & 0xff] : ins;
}

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

/** What tells one prototype from another that lay at its address before. */
struct state_identity {
	uint8_t header[STATE_OBJECT_MAX]; /* GCproto, its volatile members cleared */
	uint32_t name_hash, name_len;	  /* of the chunk name's GCstr */
};

/** What is known of a function's definition. */
enum state_definition_state {
	STATE_DEFINITION_UNKNOWN = 0, /* look for it */
	STATE_DEFINITION_FOUND,	      /* it says the name, or that there is none */
	STATE_DEFINITION_GONE,	      /* collected, as its parent is */
};

/** name_rank of a name that cannot be better. */
enum { STATE_NAMED_BY_HOLDER = UINT8_MAX - 2, STATE_NAMED_BY_DEFINITION };

/** A cached prototype. */
struct state_proto {
	uint64_t address;
	const struct luastate_layout *layout;
	struct state_identity identity;
	uint32_t sizebc, numline;
	int64_t firstline;
	uint64_t bytecode, lineinfo, chunkname; /* target addresses */
	uint32_t *bc;				/* copy, or NULL where too long or not read yet */
	uint8_t *debug;				/* copy of the debug part from lineinfo on */
	size_t debug_len;
	unsigned serial;	 /* sample in which the identity was compared */
	bool stale;		 /* something else lies there now */
	uint8_t name_rank;	 /* how sure the name is, 0 none */
	uint8_t definition;	 /* enum state_definition_state */
	bool is_read;		 /* what functions it makes is known */
	bool is_orphan;		 /* its parent is certainly gone */
	bool is_asked;		 /* who holds it was looked for */
	uint8_t parents_tries;	 /* indexes in which its parent was not found */
	unsigned parents_serial; /* the last of them */
	struct luastate_function function;
	char name[STATE_NAME_MAX];
	UT_hash_handle hh;
};

/** A fast function, C function or trace that frames refer to. */
struct state_callable {
	uint64_t key;
	struct luastate_function function;
	char name[STATE_NAME_MAX];
	char *chunkname;
	UT_hash_handle hh;
};

/** A C function's name, found in the target's tables. */
struct state_cname {
	uint64_t address;
	char name[STATE_NAME_MAX];
	UT_hash_handle hh;
};

/** What a closure's prototype was when it was met last: a guess for the planner. */
struct state_closure {
	uint64_t function, proto;
};

/** In which prototype a call was when it was met last. */
struct state_call {
	uint64_t pc, proto;
};

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

/* ---- Values ----------------------------------------------------------------------------- */

static inline uint64_t state_u64(const uint8_t *bytes, int32_t offset)
{
	uint64_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

static inline uint32_t state_u32(const uint8_t *bytes, int32_t offset)
{
	uint32_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

/** A GCRef or MRef: 32 bits wide without GC64. Source: lj_obj.h. */
static inline uint64_t state_ref(const struct luastate_layout *layout, const uint8_t *bytes,
				 int32_t offset)
{
	return layout->gc64 ? state_u64(bytes, offset) : state_u32(bytes, offset);
}

/*
 * The tag and the object of a TValue (lj_obj.h, "64 bit and 32 bit TValues"):
 *   GC64     tag in the top 17 bits, the object's address below
 *   else     tag in the upper 32 bits, the object's address in the lower
 */
static inline int32_t state_tag(const struct luastate_layout *layout, uint64_t value)
{
	return (int32_t)((int64_t)value >> (layout->gc64 ? 47 : 32));
}

static inline uint64_t state_object(const struct luastate_layout *layout, uint64_t value)
{
	return value & (((uint64_t)1 << (layout->gc64 ? 47 : 32)) - 1);
}

/** Type number in GCobj.gct of the objects with a tag. */
static inline int32_t state_gct(int32_t tag)
{
	return ~tag;
}

/** No object lies in the first page. */
static inline bool state_is_pointer(uint64_t value)
{
	return value >= 4096 && value < (uint64_t)1 << STATE_ADDRESS_BITS;
}

static inline int state_read(const struct attach_reader *reader, uint64_t address, void *ret_bytes,
			     size_t len, struct failure *why)
{
	return attach_read(reader, remote_addr_make(address), ret_bytes, len, why);
}

/** A collectable object's type number. */
int state_read_object(const struct luastate_layout *layout, const struct attach_reader *reader,
		      uint64_t address, int32_t gct, void *ret_bytes, size_t len,
		      struct failure *why);

/** Copy a GCstr's text, at most size - 1 bytes, always terminated. */
int state_read_string(const struct luastate_layout *layout, const struct attach_reader *reader,
		      uint64_t address, char *ret_text, size_t size, struct failure *why);

/** Whether a name may stand in a line: no byte of it is a control character. */
bool state_is_plain(const char *name);

/** A GCRef or MRef in the target. */
int state_read_ref(const struct luastate_layout *layout, const struct attach_reader *reader,
		   uint64_t address, uint64_t *ret_ref, struct failure *why);

/** What a VM's collector holds, in bytes; 0 where that cannot be read (vm_stats.c). */
uint64_t state_heap_bytes(const struct luastate_layout *layout, const struct attach_reader *reader,
			  uint64_t G);

/* ---- VMs (vm.c, invariants.c) ----------------------------------------------------------- */

/** luastate_vm_of() for what a sample shows, which may be many coroutines of no VM: after some
 * whose VM was not known others are refused, with FAILURE_LIMIT, unless theirs is. */
const struct luastate_vm *state_sample_vm_of(struct luastate *state,
					     const struct attach_reader *reader, uint64_t L,
					     struct failure *why);

/** The known VM with global state @p G, or NULL. */
const struct luastate_vm *state_vm_by_G(const struct luastate *state, uint64_t G);

/** The known VM that VM code with these registers is of, interpreted or compiled; NULL if they hold
 * none. Source: as luastate_is_in_trace(). */
const struct luastate_vm *state_vm_in_register(const struct luastate *state,
					       const struct attach_registers *regs);

/** The interpreter that has code at @p pc, or NULL. Borrowed until another is found. */
const struct state_interpreter *state_interpreter_at(const struct luastate *state, uint64_t pc);

/** Whether the code at @p pc of the interpreter is @p bytes. */
bool state_code_is(const struct state_interpreter *interpreter, uint64_t pc, const uint8_t *bytes,
		   size_t len);

/** Layout of the code at @p pc, NULL if it is not in an interpreter, or no VM of it is known. */
const struct luastate_layout *state_layout_at(const struct luastate *state, uint64_t pc);

/** The global state that a coroutine refers to under a layout, 0 if it is no coroutine. */
uint64_t state_global_of(const struct luastate_layout *layout, const struct attach_reader *reader,
			 uint64_t L);

/** Remember a coroutine whose VM fits no layout, for explanations. */
void state_note_refused(struct luastate *state, uint64_t L);

/**
 * Whether the global_State at @p G, under a layout, is that of a live VM.
 * @param visit Called for each invariant, also behind the first that fails; NULL: stop there.
 */
bool state_check_vm(const struct luastate *state, const struct luastate_layout *layout,
		    const struct attach_reader *reader, uint64_t G,
		    luastate_invariant_visitor *visit, void *context);

/**
 * Whether a layout's members, as they are read, lie within their structures, and these within what
 * they are read into. Holds for each row; debug information is foreign bytes.
 */
bool state_layout_is_bounded(const struct luastate_layout *layout);

/** Whether the bytes of a trace are those of trace @p number under a layout. */
bool state_trace_fits(const struct luastate_layout *layout, const struct attach_reader *reader,
		      const uint8_t *trace, uint64_t address, uint32_t number);

bool state_is_row(const struct luastate_layout *layout);

/** Keep a layout that prototypes and predictions may refer to until the state is reset. @param
 * layout May be NULL. @return whether there is room for it. */
bool state_retire_layout(struct luastate *state, struct luastate_layout *layout);

/** Whether an interpreter may have this layout, by what is known of it so far. */
bool state_may_have(const struct state_interpreter *interpreter,
		    const struct luastate_layout *layout);

/** Whether the row that a VM passes holds for all else that its interpreter and the VM show; else
 *  the interpreter may not have it any more. Stopped window: no. */
bool state_row_holds(struct luastate *state, struct state_interpreter *interpreter,
		     const struct luastate_layout *row, const struct attach_reader *reader,
		     uint64_t L);

/** A VM has shown that this is the interpreter's layout. */
void state_set_layout(struct luastate *state, struct state_interpreter *interpreter,
		      const struct luastate_layout *layout);

/** A VM runs compiled code: what its layout says of that is compared with its traces once, and what
 *  was not known may be seen. Costs next to nothing afterwards. Stopped window: no. */
void state_note_compiled(struct luastate *state, const struct attach_reader *reader,
			 const struct luastate_vm *vm);

/** Choose a VM's layout anew: it now shows what tells it from others. */
void state_reconsider_layout(struct luastate *state, const struct attach_reader *reader,
			     uint64_t G);

/** Whether GCtrace and jit_State fit, by a trace of the VM; true where it has none yet. */
bool state_check_trace(const struct luastate_layout *layout, const struct attach_reader *reader,
		       uint64_t G);

/* ---- Prototypes (proto.c) --------------------------------------------------------------- */

/**
 * The prototype at @p address, compared with the target once per sample: by what the stop copied,
 * or else by what is there now. Where that is not the known one any more nobody knows which it was
 * during the stop: it is lost for this sample, which is torn (state->losses), and the next ones are
 * strict.
 */
struct state_proto *state_get_proto(struct luastate *state, const struct luastate_layout *layout,
				    const struct luastate_memory *memory, uint64_t address,
				    struct failure *why);

/** Whether known prototypes are to be compared by what the stop copies. */
bool state_is_strict(const struct luastate *state);

/** A known prototype that was not seen to be replaced, or NULL. Reads nothing. */
const struct state_proto *state_find_proto(const struct luastate *state, uint64_t address);

/** The known prototype that holds the call at @p pc and a copy of it, or NULL. Reads nothing. */
const struct state_proto *state_find_call(const struct luastate *state, uint64_t pc);

/** The call at @p pc: from the stop, from a known prototype, or from the live process. */
int state_read_call(struct luastate *state, const struct luastate_layout *layout,
		    const struct luastate_memory *memory, uint64_t pc, uint32_t *ret_ins,
		    struct failure *why);

/** The prototype of a Lua function; NULL of another one. */
static inline struct state_proto *state_proto_of(const struct luastate_function *function)
{
	return function->kind == LUASTATE_LUA
		       ? (struct state_proto *)((uintptr_t)function -
						offsetof(struct state_proto, function))
		       : NULL;
}

/** Remember that the call at @p pc is in a prototype. */
void state_note_call(struct luastate *state, const struct state_proto *proto, uint64_t pc);

/** The place of a closure among those that are remembered. */
static inline size_t state_closure_slot(uint64_t function)
{
	return (size_t)(hash_spread(function) >> 40) & (STATE_CLOSURES - 1);
}

/** Bytes of the debug part from lineinfo on that belong to a prototype's identity. */
size_t state_compared_debug(const struct state_proto *proto);

/** Whether the prototype at @p address is the known one still, by what the reader has. Stopped
 *  window: yes, over an image. */
bool state_is_same_proto(const struct luastate *state, const struct luastate_layout *layout,
			 const struct attach_reader *reader, uint64_t address);

/** Whether @p pc is inside, or right behind the last instruction. */
bool state_proto_holds(const struct state_proto *proto, uint64_t pc);

/** Line of the instruction at @p pc, 0 if the chunk is stripped. */
uint32_t state_proto_line(const struct state_proto *proto, const struct attach_reader *reader,
			  uint64_t pc);

/** Whether a prototype's parts lie where its header's sizes say. @param header Its GCproto. */
bool state_proto_is_consistent(const struct luastate_layout *layout, uint64_t address,
			       const uint8_t *header);

/** The instruction at @p pc. */
int state_proto_instruction(const struct state_proto *proto, const struct attach_reader *reader,
			    uint64_t pc, uint32_t *ret_ins, struct failure *why);

void state_free_protos(struct luastate *state);

/* ---- Names by definitions (definition_names.c) ------------------------------------------ */

/**
 * Name the Lua functions of a stack's frames by their definitions, as far as these were not looked
 * for before. Stopped window: no; reads the process as it is now. Bounded in processor time.
 */
void state_define_frames(struct luastate *state, const struct luastate_memory *memory,
			 const struct luastate_frame *frames, size_t count);

/** Note the names of all functions that the prototype at an address makes. */
void state_read_parent(struct luastate *state, const struct luastate_layout *layout,
		       const struct attach_reader *reader, uint64_t G, uint64_t address);

/** Name a function by what is known of prototypes of its VM. @return whether its definition is
 *  known. */
bool state_define_proto(struct luastate *state, const struct luastate_layout *layout,
			const struct attach_reader *reader, uint64_t G, struct state_proto *proto);

/** For luastate_begin_sample(). */
void state_begin_definitions(struct luastate *state);

/** Forget what prototypes make, but not who may be whose parent. */
void state_forget_definitions(struct luastate *state);
void state_free_definitions(struct luastate *state);

/* ---- Names (call_names.c, library_names.c) ---------------------------------------------- */

/** Derive a callee's name from the call instruction at @p pc of @p caller.
 *  @return Its rank: 0 none, 1 local or upvalue, 2 method or field, 3 global. */
int state_name_call(const struct luastate_layout *layout, const struct state_proto *caller,
		    const struct attach_reader *reader, uint64_t pc, char *ret_name, size_t size);

/** A function's name without those of the tables that it is in. */
const char *state_last_name(const char *name);

/** The value under a string key of a table, 0 if there is none. */
uint64_t state_table_get(const struct luastate_layout *layout, const struct attach_reader *reader,
			 uint64_t address, const char *key);

/** The registry's table of loaded modules, or what it holds under @p module; 0 if it has none. */
uint64_t state_get_loaded(const struct luastate_vm *vm, const struct attach_reader *reader,
			  const char *module);

/** Look for names of fast functions and C functions, unless that was done a moment ago. */
void state_load_names(struct luastate *state, const struct attach_reader *reader, uint64_t G);

/** The callable with this kind and address, made on first sight. NULL when out of memory. */
struct luastate_function *state_get_callable(struct luastate *state, enum luastate_kind kind,
					     uint64_t address, int ffid);
struct luastate_function *state_get_trace(struct luastate *state, uint32_t number, uint64_t proto,
					  const char *chunkname, int64_t line);
void state_free_callables(struct luastate *state);
void state_free_names(struct luastate *state);

#endif
