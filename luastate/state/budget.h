/* SPDX-License-Identifier: MIT */
/* Private to luastate: time, and how much processor time work beside the sampling may take. */
#ifndef LUASTATE_STATE_BUDGET_H
#define LUASTATE_STATE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/** Processor time that may be spent, in nanoseconds. All 0: as much as may be saved up. */
struct state_budget {
	int64_t left_ns;  /* what took longer than there was time is owed */
	uint64_t now_ns;  /* as much at that time, by the monotonic clock */
	uint64_t cost_ns; /* of what was done last, where the next takes as long */
};

/**
 * Whether there is time for one more piece of work, that takes as long as the last one.
 * @param saved_ns What may be saved up.
 * @param share    One part in that many of the time that passes may be spent.
 */
bool budget_allows(struct state_budget *budget, int64_t saved_ns, unsigned share);

/** Work took that long, maybe more than there was time. */
void budget_charge(struct state_budget *budget, uint64_t cost_ns);

#endif
