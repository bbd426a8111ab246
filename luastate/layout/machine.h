/* SPDX-License-Identifier: MIT */
/* What does ljprof know of each architecture when it is built? Private to luastate. */
#ifndef LUASTATE_LAYOUT_MACHINE_H
#define LUASTATE_LAYOUT_MACHINE_H

#include <stdint.h>

#include "attach/reader.h"

/** Registers of VM code. Source: LuaJIT v2.1 src/vm_x64.dasc, vm_x86.dasc, vm_arm64.dasc, "Register
 *  usage". */
#if defined(__x86_64__)
enum {
	STATE_REG_BASE = ATTACH_REG_RDX,      /* BASE; calls into C overwrite it */
	STATE_REG_KEPT_BASE = ATTACH_REG_RBP, /* BASE, in calls that leave L->base alone */
	STATE_REG_PC = ATTACH_REG_RBX,	      /* calls preserve it */
	STATE_REG_VM = ATTACH_REG_R14,	      /* DISPATCH; with GC64 in traces too */
	STATE_ADDRESS_BITS = 47,	      /* bits of user addresses */
	STATE_TRACES_NOTED = 1,		      /* vmstate is the number of the running trace */
	STATE_STUBS_SHARED = 1,		      /* jit_State.exitstubgroup is in use */
	STATE_MCODE_UNIT = 1,		      /* bytes of MCode, which SnapShot.mcofs counts */
};
#elif defined(__aarch64__)
enum {
	STATE_REG_BASE = ATTACH_REG_X19,
	STATE_REG_KEPT_BASE = ATTACH_REG_X19,
	STATE_REG_PC = ATTACH_REG_X21,
	STATE_REG_VM = ATTACH_REG_X22, /* GL; in traces too */
	STATE_ADDRESS_BITS = 48,       /* objects are below 2^47, code and native stacks above */
	STATE_TRACES_NOTED = 0,	       /* vmstate is 0 in all traces */
	STATE_STUBS_SHARED = 0,	       /* each trace has its own */
	STATE_MCODE_UNIT = 4,	       /* bytes of MCode, which SnapShot.mcofs counts */
};
#endif

/** The shape of an interpreter's C frames, as its unwind rule shows. */
struct state_frame_shape {
	int32_t size; /* bytes of a C frame; 0: not an interpreter's rule */
	int32_t prev; /* offset of the link to the previous C frame */
};

#endif
