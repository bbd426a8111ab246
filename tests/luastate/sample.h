/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LUASTATE_SAMPLE_H
#define TESTS_LUASTATE_SAMPLE_H

/* One sample of a fake VM in the making, and what its walk shall give. Includes cmocka. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fake_vm.h"
#include "luastate/function/proto.h"

enum { SAMPLE_CFRAMES_MAX = 512 };

struct sample {
	struct fake_vm *vm;
	struct luastate *state;
	struct attach_registers regs;
	struct luastate_vm_frame vm_frames[SAMPLE_CFRAMES_MAX]; /* newest first */
	size_t vm_frame_count;
	struct luastate_chain chain;
	struct failure why;
};

/** The layout of all VMs, from a test's arguments: FAMILY MODEL FIRST, or none. */
void sample_choose(int argc, char **argv);

/** For cmocka's setup and teardown; the state knows the VM. */
int sample_setup(void **state);
int sample_teardown(void **state);

/** Push a C frame on the native stack and put it in front of the list.
 *  @param pc What the callee-saved PC register holds in it. */
struct luastate_vm_frame *sample_cframe(struct sample *sample, uint64_t L, int32_t nres,
					uint64_t pc);

/** The thread stands in the interpreter, in the newest C frame. */
void sample_leaf(struct sample *sample, unsigned at, uint64_t base, uint64_t pc);

/** What the callee-saved PC register holds in a C frame. */
void sample_set_pc(struct sample *sample, size_t vm_frame, uint64_t pc);

/** The fake VM stands still: one memory for all reads. */
struct luastate_memory sample_memory(const struct sample *sample);

/** The prototype at an address as a walk gets it. */
struct state_proto *sample_proto(struct sample *sample, uint64_t address);

void sample_walk(struct sample *sample);

/** A frame that is expected. */
struct sample_frame {
	uint64_t function; /**< Its address; for C functions the code. */
	uint32_t line;
	unsigned owner;
};

/** Walk, and compare. */
void sample_expect(struct sample *sample, enum luastate_outcome outcome, size_t count,
		   const struct sample_frame *frames);

/** A callback of cmocka's for a test with setup and teardown. */
#define SAMPLE_TEST(name) cmocka_unit_test_setup_teardown(name, sample_setup, sample_teardown)

#endif
