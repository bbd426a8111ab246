/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LUASTATE_FAKE_VM_H
#define TESTS_LUASTATE_FAKE_VM_H

/*
 * A small LuaJIT VM laid out by hand, seen through a strict reader: a read of any byte that no
 * object holds fails with FAILURE_FAULT at exactly that byte. Objects never touch each other.
 *
 * Misuse of this builder ends the test program.
 */

#include <stdlib.h>

#include "luastate/luastate.h"
#include "luastate/layout/object.h"
#include "luastate/state/state.h"

/**
 * Where the fake target's memory ends; a page that nobody may touch lies behind it. Code and native
 * stack are at its end. Without GC64 all else is seen at FAKE_LOW_BASE instead of FAKE_BASE, as the
 * collector's objects are then below 4 GiB.
 */
#define FAKE_END      UINT64_C(0x7f2000400000)
#define FAKE_BYTES    ((size_t)4 << 20)
#define FAKE_BASE     (FAKE_END - FAKE_BYTES)
#define FAKE_LOW_BASE UINT64_C(0x40000000)

/** Places in the fake interpreter, as distances from fake_vm.code. All else is nops. */
enum {
	FAKE_AT_PLAIN = 0x80,
	FAKE_AT_PROLOGUE = 0x100,
	FAKE_AT_EPILOGUE = 0x200,
	FAKE_AT_NEXT = 0x300,	    /* ins_NEXT */
	FAKE_AT_STORE_LINK = 0x400, /* mov [BASE-8], PC */
	FAKE_AT_LOAD_PC = 0x500,    /* mov PC, LFUNC:RB->pc */
	FAKE_AT_CALL = 0x600,	    /* call FAKE_AT_HELPER */
	FAKE_AT_RETURN = 0x605,
	FAKE_AT_HELPER = 0x700,
	FAKE_AT_FF = 0x1000, /* handlers of fast functions, 16 bytes each */
	FAKE_CODE_BYTES = 0x2400,
};

/** Places in the fake application's code, as distances from fake_vm.host. */
enum {
	FAKE_HOST_DIRECT = 5,	 /* behind a call of FAKE_AT_PROLOGUE */
	FAKE_HOST_INDIRECT = 16, /* behind an indirect call */
	FAKE_HOST_OTHER = 32,	 /* behind a call of something else */
	FAKE_HOST_LEAF = 64,	 /* a function that VM code calls */
	FAKE_HOST_BYTES = 96,
};

/** Opcodes that the tests write. Source: LuaJIT v2.1 src/lj_bc.h. */
enum {
	FAKE_ADDVV = 32,
	FAKE_MOV = 18,
	FAKE_KNIL = 44,
	FAKE_UGET = 45,
	FAKE_FNEW = 51,
	FAKE_GGET = 54,
	FAKE_TGETS = 57,
	FAKE_CALLM = 65,
	FAKE_CALL = 66,
	FAKE_CALLMT = 67,
	FAKE_CALLT = 68,
	FAKE_ITERC = 69,
	FAKE_RET0 = 75,
};

/** Types of frame links, as their low bits. */
enum {
	FAKE_LINK_C = 1,
	FAKE_LINK_CONT = 2,
	FAKE_LINK_VARG = 3,
	FAKE_LINK_CP = 5,
	FAKE_LINK_PCALL = 6,
};

#define MUST(condition)           \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

/** What a fake VM is made of. Zero: what most tests take. */
struct fake_options {
	const struct luastate_layout *layout; /**< Mainline with GC64, as Debian 12 has it. */
	size_t native_bytes;		      /**< Of the native stack. */
	size_t main_slots;		      /**< Of the main coroutine's stack. */
	uint32_t modules;		      /**< Room for modules, a power of two. */
	uint64_t displaced;		      /**< All addresses are higher by so much. */
	uint64_t fill;			      /**< In all members of structs that no test writes. */
};

/** A piece of its memory. */
struct fake_block {
	uint64_t address;
	size_t len;
	bool is_struct; /**< One of LuaJIT's: an object, or the first one's GG_State. */
};

struct fake_vm {
	uint8_t *bytes;	    /* target memory */
	uint8_t *known;	    /* per byte: 1 where an object is */
	size_t next;	    /* objects are placed downwards from this offset */
	size_t split;	    /* offset of the first byte of code and native stack */
	uint64_t base;	    /* where the first byte would be seen if it were of these */
	uint64_t heap_base; /* where the bytes below are seen */
	uint64_t fill;
	const struct luastate_layout *layout;
	uint64_t frame_bytes; /* of a Lua frame's function and link */
	struct attach_reader reader;
	uint64_t reads, bytes_read;
	struct fake_block *blocks; /* in the order in which they were made */
	size_t block_count;

	uint64_t code, host;
	uint64_t main, G;
	uint64_t registry, loaded; /* tables */
	uint64_t native_start, native_end, sp;
};

/** A row of the layout table for this architecture; ends the program if there is none. */
const struct luastate_layout *fake_layout(const char *family, bool gc64, const char *first);

/** One of the rows for this architecture; numbers behind the last begin anew. */
const struct luastate_layout *fake_layout_at(unsigned number);

struct fake_vm *fake_vm_create(const struct fake_options *options);
void fake_vm_destroy(struct fake_vm *vm);

/** Bytes of a VM's first block: main coroutine, global state, compiler, dispatch table. */
size_t fake_vm_bytes(const struct luastate_layout *layout);
/** Another VM of the same program, at an address or, if that is 0, in new memory.
 *  @return Its main coroutine. */
uint64_t fake_second_vm(struct fake_vm *vm, uint64_t address);
/** Let the VM of this main coroutine run in an interpreter of its own, a copy that is made known to
 *  the state. @return Its code. */
uint64_t fake_second_interpreter(struct fake_vm *vm, struct luastate *state, uint64_t main);

/** A state that knows the interpreter and, if asked, the VM. */
struct luastate *fake_vm_open(struct fake_vm *vm, bool with_vm);
/** Whether its code has an interpreter's unwind rule. */
bool fake_vm_is_interpreter(const struct fake_vm *vm);
/** Make the interpreter known to a state. @return as luastate_add_interpreter(). */
int fake_vm_add_interpreter(struct fake_vm *vm, struct luastate *state);

/* ---- Memory ----------------------------------------------------------------------------- */

/** Zeroed memory that starts at a multiple of 8. */
uint64_t fake_alloc(struct fake_vm *vm, size_t len);
/** The offset in the fake memory of a target address; FAKE_BYTES if it is in none of the zones. */
size_t fake_offset(const struct fake_vm *vm, uint64_t address);
uint64_t fake_address(const struct fake_vm *vm, size_t offset);
/** Bytes from an offset to the end of its zone. */
size_t fake_left(const struct fake_vm *vm, size_t offset);
/** The bytes at a target address. */
uint8_t *fake_at(const struct fake_vm *vm, uint64_t address, size_t len);
void fake_put(struct fake_vm *vm, uint64_t address, const void *bytes, size_t len);
void fake_put_u8(struct fake_vm *vm, uint64_t address, uint8_t value);
/** The low half of @p value. */
void fake_put_u16(struct fake_vm *vm, uint64_t address, uint32_t value);
void fake_put_u32(struct fake_vm *vm, uint64_t address, uint32_t value);
void fake_put_u64(struct fake_vm *vm, uint64_t address, uint64_t value);
/** Write a GCRef or an MRef. */
void fake_put_ref(struct fake_vm *vm, uint64_t address, uint64_t value);
uint32_t fake_get_u32(const struct fake_vm *vm, uint64_t address);
uint64_t fake_get_u64(const struct fake_vm *vm, uint64_t address);
uint64_t fake_get_ref(const struct fake_vm *vm, uint64_t address);
/** Make bytes unreadable, or readable again. */
void fake_hide(struct fake_vm *vm, uint64_t address, size_t len);
void fake_show(struct fake_vm *vm, uint64_t address, size_t len);

/** Address of a member. */
static inline uint64_t fake_member(uint64_t object, int32_t offset)
{
	return object + (uint64_t)offset;
}

/** Memory of which the first @p size bytes are a struct of the VM's: with the fill in the members
 *  that nobody writes. */
uint64_t fake_alloc_struct(struct fake_vm *vm, size_t size, size_t more);

/* ---- Objects ---------------------------------------------------------------------------- */

/** A TValue. */
uint64_t fake_tag(const struct fake_vm *vm, int32_t tag, uint64_t object);
/** An instruction by its A and D operands. */
uint32_t fake_ad(unsigned op, unsigned a, unsigned d);
/** An instruction by its A, B and C operands. */
uint32_t fake_abc(unsigned op, unsigned a, unsigned b, unsigned c);

/** A function's first instruction. */
uint32_t fake_funcf(const struct fake_vm *vm, unsigned framesize);

uint64_t fake_string(struct fake_vm *vm, const char *text);

struct fake_proto {
	const char *chunkname;
	int32_t firstline;
	uint32_t numline;
	const uint32_t *bc;
	uint32_t sizebc;
	const uint32_t *lines; /**< Distance from the first line, per instruction. */
	const char *varinfo, *uvinfo;
	size_t varinfo_len, uvinfo_len;
	uint8_t sizeuv;
	const uint64_t *kgc; /**< Collectable constants. */
	uint32_t sizekgc, sizekn;
};

/** Without lines and names the prototype is stripped. */
uint64_t fake_proto(struct fake_vm *vm, const struct fake_proto *proto);
/** Put another prototype in the place of one that has at least its size. */
void fake_put_proto(struct fake_vm *vm, uint64_t address, const struct fake_proto *proto);
/** Address of an instruction. */
uint64_t fake_pc(const struct fake_vm *vm, uint64_t proto, unsigned index);

/** A function of four instructions on four lines that calls a global: FUNCF, GGET, CALL, RET0.
 *  The call has A 2 and returns to instruction 3. */
uint64_t fake_caller(struct fake_vm *vm, const char *chunkname, int32_t firstline,
		     const char *callee);

uint64_t fake_lua_function(struct fake_vm *vm, uint64_t proto);
uint64_t fake_c_function(struct fake_vm *vm, uint64_t f);
/** A fast function in assembler: number @p index of the dispatch table's. */
uint64_t fake_asm_function(struct fake_vm *vm, uint8_t ffid, unsigned index);
/** A fast function in C. */
uint64_t fake_fast_function(struct fake_vm *vm, uint8_t ffid, uint64_t f);

/** A table of traces with room for @p size, and one in it that starts at an instruction.
 *  @return The GCtrace. */
uint64_t fake_trace(struct fake_vm *vm, uint32_t number, uint32_t size, uint64_t proto,
		    unsigned index);

/** A table with room for @p size entries, a power of two. */
uint64_t fake_table(struct fake_vm *vm, uint32_t size);
/** Add an entry; @p value is tagged. */
void fake_table_set(struct fake_vm *vm, uint64_t table, const char *key, uint64_t value);
/** Make the tables of a module: package.loaded[name] = a new table. */
uint64_t fake_module(struct fake_vm *vm, const char *name, uint32_t size);
/** package.loaded[name] = function, which is then called so. */
void fake_name_function(struct fake_vm *vm, const char *name, uint64_t function);
/** module[name] = function */
void fake_module_set(struct fake_vm *vm, uint64_t module, const char *name, uint64_t function);

/* ---- Stacks ----------------------------------------------------------------------------- */

/** A coroutine with a Lua stack of so many slots, and the frame at its bottom. */
uint64_t fake_coroutine(struct fake_vm *vm, size_t slots);
/** Write the lua_State at @p L with a new stack. */
void fake_lua_state(struct fake_vm *vm, uint64_t L, size_t slots);
/** A member of a lua_State, at its own width. */
uint64_t fake_L_get(const struct fake_vm *vm, uint64_t L, int32_t field);
void fake_L_set(struct fake_vm *vm, uint64_t L, int32_t field, uint64_t value);

/** Call @p function with @p gap slots between its frame and the base of the one below.
 *  @return The new base. */
uint64_t fake_call(struct fake_vm *vm, uint64_t L, uint64_t function, unsigned gap, unsigned type);
/** Call from Lua; @p ret is the return address in the caller. */
uint64_t fake_call_lua(struct fake_vm *vm, uint64_t L, uint64_t function, uint64_t ret);
/** Call by a metamethod; @p pc is where the caller goes on. */
uint64_t fake_call_cont(struct fake_vm *vm, uint64_t L, uint64_t function, unsigned gap,
			uint64_t pc);

/** Write the function's slot and the link of the frame at @p base. */
void fake_put_function(struct fake_vm *vm, uint64_t base, uint64_t function);
/** Write a TValue in the function's slot; without GC64 the link has its tag's place. */
void fake_put_slot(struct fake_vm *vm, uint64_t base, uint64_t value);
void fake_put_link(struct fake_vm *vm, uint64_t base, uint64_t link);
uint64_t fake_get_link(const struct fake_vm *vm, uint64_t base);
/** Write a value over a frame below its base, as results do. */
void fake_put_results(struct fake_vm *vm, uint64_t base);
/** Write what a continuation frame has beside its own: where the caller goes on, and how. */
void fake_put_cont(struct fake_vm *vm, uint64_t base, uint64_t pc, uint64_t cont);

/** Push one word on the native stack. */
void fake_push(struct fake_vm *vm, uint64_t word);
/** Push a C frame and link it. @return Its address. */
uint64_t fake_cframe(struct fake_vm *vm, uint64_t L, int32_t nres, uint64_t pc);
/** Where a C frame has its return address. */
uint64_t fake_cframe_ret(const struct fake_vm *vm, uint64_t frame);

/** Rounds of one stop, as attach_capture() has them: first wishes, one for each stage, and the one
 *  that wants no more. */
enum { FAKE_ROUNDS_MAX = 14 };

/** Read what a stop's plan asked for, as attach_capture() does; of a range that faults, what comes
 *  before the fault. */
void fake_fill_image(struct attach_image *image, const struct attach_reader *memory);

#endif
