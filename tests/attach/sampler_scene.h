/* SPDX-License-Identifier: MIT */
#ifndef TESTS_ATTACH_SAMPLER_SCENE_H
#define TESTS_ATTACH_SAMPLER_SCENE_H

/* A child with a sampler, and what tests do with the copies that the kernel makes of it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/bpf.h"
#include "luastate/plan.h"

enum {
	SCENE_RATE_HZ = 997,
	SCENE_PATIENCE_S = 20,
	/** Words with a mark on scene_spin()'s stack: the first is SCENE_MARK, each next one more.
	 */
	SCENE_MARKS = 64,
};

#define SCENE_MARK ((uint64_t)0x5a5a1234c0ffee00)

/** One child and its sampler. */
struct scene {
	pid_t pid;
	struct attach_sampler *sampler;
	struct luastate_bpf_plan *plan;
	struct attach_image *image;
	/** Copies since scene_watch(): all, those cut because room or time ran out, and late ones.
	 * Then the time of the newest copy, and the time of scene_watch(); in ns. */
	uint64_t count, cut_count, late_count, last_ns, since_ns;
	/** Looks at each of them, if set. @return whether the next one is to be taken. */
	bool (*check)(struct scene *scene);
	void *context;
};

/** Of the plan that a scene begins with: what is copied anyway. */
extern const struct luastate_bpf_plan scene_nothing;

/** Memory that a child touches, so that it is there. */
struct scene_memory {
	const void *start;
	size_t len;
};

/** Spins with marks on its stack, without a call. @param argument struct scene_memory or NULL. */
void scene_spin(void *argument);

/** Sleeps for ever. @param argument Not used. */
void scene_sleep(void *argument);

/** Start a child that calls run(argument), and sampler it, with copies that may take seconds. The
 * test is skipped, with the reason, where the kernel makes no copies. What the scene holds is its
 * own; end it with scene_end(). */
void scene_begin(struct scene *scene, unsigned rate_hz, void (*run)(void *), void *argument);

/** Have the child copied by this plan, which becomes the scene's. @param why As
 *  attach_sampler_add(). @return 0 or -1. */
int scene_add(struct scene *scene, const struct luastate_bpf_plan *first, struct failure *why);

/** End the child, and release all but the scene itself. */
void scene_end(struct scene *scene);

/** What attach_sampler_drain() calls with a scene as context. */
bool scene_take(void *context, void *thread, const struct attach_sampler_timing *timing);

/** Start counting at 0. Copies that began earlier are neither counted nor checked.
 * @param check As in the scene, or NULL. */
void scene_watch(struct scene *scene, bool (*check)(struct scene *scene));

/** Take copies until there are @p count since scene_watch(). If that takes too long, the test
 * fails. */
void scene_await(struct scene *scene, uint64_t count);

#endif
