/* SPDX-License-Identifier: MIT */
/* How much processor time may work beside the sampling take? Private to luastate. */
#ifndef LUASTATE_STATE_BUDGET_H
#define LUASTATE_STATE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/** A budget of processor time in nanoseconds. All 0: starts with the largest savings. */
struct state_budget {
	int64_t left_ns;  /* below 0 if work took longer than allowed */
	uint64_t now_ns;  /* time of left_ns, CLOCK_MONOTONIC */
	uint64_t cost_ns; /* of the last piece of work, as an estimate of the next */
};

/**
 * Whether there is time for one more piece of work, estimated by the last one.
 * @param saved_ns Largest savings.
 * @param share    1/share of the time that passes may be spent.
 */
bool budget_allows(struct state_budget *budget, int64_t saved_ns, unsigned share);

/** Charge the time that work took, even if it exceeds the budget. */
void budget_charge(struct state_budget *budget, uint64_t cost_ns);

#endif
