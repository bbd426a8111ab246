/* SPDX-License-Identifier: MIT */
/* How does a stop copy a thread by the rules of the BPF program? */
#define ATTACH_SAMPLER_LARGE
#if defined(__x86_64__)
#define __TARGET_ARCH_x86
#endif
#include "luastate/plan.h"

#include <errno.h>
#include <stdlib.h>

#include "luastate/bpf/thread.bpf.h"
#include "luastate/layout/machine.h"

enum {
	COPY_BYTES = ATTACH_SAMPLER_PARTS * sizeof(((struct attach_sampler_record *)0)->bytes),
};

int luastate_copier_create(struct luastate_copier **ret_copier, struct failure *why)
{
	struct luastate_copier *copier = calloc(1, sizeof(*copier));

	if (copier)
		copier->bytes = malloc(COPY_BYTES);
	if (!copier || !copier->bytes) {
		luastate_copier_destroy(copier);
		return failure_set_errno(why, ENOMEM, 0, "copy threads");
	}
	copier->size = COPY_BYTES;
	copier->work.copier = copier;
	*ret_copier = copier;
	return 0;
}

void luastate_copier_destroy(struct luastate_copier *copier)
{
	if (copier)
		free(copier->bytes);
	free(copier);
}

/* Set the registers that the rules need. */
static void set_registers(uint64_t *words, const struct attach_registers *registers)
{
	words[REG_SP] = attach_sp(registers);
	words[REG_LUA_BASE] = registers->r[STATE_REG_BASE];
	words[REG_LUA_PC] = registers->r[STATE_REG_PC];
	words[REG_LUA_VM] = registers->r[STATE_REG_VM];
#if defined(__x86_64__)
	words[REG_IP] = attach_pc(registers);
#else
	words[REG_FP] = registers->r[ATTACH_REG_FP];
#endif
}

void luastate_copier_run(struct luastate_copier *copier, const struct luastate_bpf_plan *plan,
			 const uint64_t *known, const struct attach_registers *registers,
			 struct attach_fetcher *fetcher)
{
	copier->fetcher = fetcher;
	copier->known = known;
	copier->len = 0;
	set_registers(copier->work.record.registers, registers);
	copier->work.record.time_ns = clock_now_ns();
	copy_thread(&copier->work, plan);
}

bool luastate_copier_is_late(const struct luastate_copier *copier)
{
	return copier->work.record.is_late != 0;
}

bool luastate_copier_take(const struct luastate_copier *copier, struct attach_image *image)
{
	return attach_image_add_ranges(image, copier->bytes, copier->len);
}
