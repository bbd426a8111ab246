/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LUASTATE_FAKE_VM_H
#define TESTS_LUASTATE_FAKE_VM_H

/*
 * A small LuaJIT VM laid out by hand, seen through a strict reader: a read of any byte that no
 * object holds fails with FAILURE_FAULT at exactly that byte. Objects never touch each other.
 *
 * Misuse of this builder ends the test program.
 */

#include "attach/attach.h"
#include "luastate/luastate.h"
#include "luastate/state.h"

/** Where the fake target's memory ends; a page that nobody may touch lies behind it. */
#define FAKE_END   UINT64_C(0x7f2000400000)
#define FAKE_BYTES ((size_t)4 << 20)
#define FAKE_BASE  (FAKE_END - FAKE_BYTES)

/** Places in the fake interpreter, as distances from fake_vm.code. All else is nops. */
enum {
	FAKE_AT_PLAIN = 0x80,
	FAKE_AT_PROLOGUE = 0x100,
	FAKE_AT_EPILOGUE = 0x200,
	FAKE_AT_NEXT = 0x300,	    /* ins_NEXT */
	FAKE_AT_STORE_LINK = 0x400, /* mov [rdx-8], rbx */
	FAKE_AT_LOAD_PC = 0x500,    /* mov rbx, [rbp+0x20] */
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
	FAKE_FUNCF = 89,
};

/** Types of frame links, as their low bits. */
enum {
	FAKE_LINK_C = 1,
	FAKE_LINK_CONT = 2,
	FAKE_LINK_VARG = 3,
	FAKE_LINK_CP = 5,
	FAKE_LINK_PCALL = 6,
};

struct fake_vm {
	uint8_t *bytes; /* target memory */
	uint8_t *known; /* per byte: 1 where an object is */
	uint64_t next;	/* objects are placed downwards from here */
	const struct luastate_layout *layout;
	struct attach_reader reader;
	uint64_t reads, bytes_read;

	uint64_t code, host;
	uint64_t main, G;
	uint64_t registry, loaded; /* tables */
	uint64_t native_start, native_end, sp;
};

struct fake_vm *fake_vm_create(void);
/** One with a small native stack and a small Lua stack, to be kept in files. */
struct fake_vm *fake_vm_create_sized(size_t native_bytes, size_t main_slots, uint32_t modules);
void fake_vm_destroy(struct fake_vm *vm);

/** A state that knows the interpreter and, if asked, the VM. */
struct luastate *fake_vm_open(struct fake_vm *vm, bool with_vm);

/* ---- Memory ----------------------------------------------------------------------------- */

/** Zeroed memory that starts at a multiple of 8. */
uint64_t fake_alloc(struct fake_vm *vm, size_t len);
void fake_put(struct fake_vm *vm, uint64_t address, const void *bytes, size_t len);
void fake_put_u8(struct fake_vm *vm, uint64_t address, uint8_t value);
void fake_put_u32(struct fake_vm *vm, uint64_t address, uint32_t value);
void fake_put_u64(struct fake_vm *vm, uint64_t address, uint64_t value);
uint64_t fake_get_u64(const struct fake_vm *vm, uint64_t address);
/** Make bytes unreadable, or readable again. */
void fake_hide(struct fake_vm *vm, uint64_t address, size_t len);
void fake_show(struct fake_vm *vm, uint64_t address, size_t len);

/* ---- Objects ---------------------------------------------------------------------------- */

uint64_t fake_tag(int32_t tag, uint64_t object);
/** An instruction by its A and D operands. */
uint32_t fake_ad(unsigned op, unsigned a, unsigned d);
/** An instruction by its A, B and C operands. */
uint32_t fake_abc(unsigned op, unsigned a, unsigned b, unsigned c);

uint64_t fake_string(struct fake_vm *vm, const char *text);

struct fake_proto {
	const char *chunkname;
	int32_t firstline;
	uint32_t numline;
	const uint32_t *bc;
	uint32_t sizebc;
	const uint32_t
		*lines; /**< Distance from the first line, per instruction; NULL: stripped. */
	const char *varinfo, *uvinfo;
	size_t varinfo_len, uvinfo_len;
	uint8_t sizeuv;
	const uint64_t *kgc; /**< Collectable constants. */
	uint32_t sizekgc;
};

uint64_t fake_proto(struct fake_vm *vm, const struct fake_proto *proto);
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

/** A table with room for @p size entries, a power of two. */
uint64_t fake_table(struct fake_vm *vm, uint32_t size);
/** Add an entry; @p value is tagged. */
void fake_table_set(struct fake_vm *vm, uint64_t table, const char *key, uint64_t value);
/** Make the tables of a module: package.loaded[name] = a new table. */
uint64_t fake_module(struct fake_vm *vm, const char *name, uint32_t size);
/** module[name] = function */
void fake_module_set(struct fake_vm *vm, uint64_t module, const char *name, uint64_t function);

/* ---- Stacks ----------------------------------------------------------------------------- */

/** A coroutine with a Lua stack of so many slots, and the frame at its bottom. */
uint64_t fake_coroutine(struct fake_vm *vm, size_t slots);
/** Write the lua_State at @p L with a new stack. */
void fake_lua_state(struct fake_vm *vm, uint64_t L, size_t slots);
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

/** Push one word on the native stack. */
void fake_push(struct fake_vm *vm, uint64_t word);
/** Push a C frame and link it. @return Its address. */
uint64_t fake_cframe(struct fake_vm *vm, uint64_t L, int32_t nres, uint64_t pc);

#endif
