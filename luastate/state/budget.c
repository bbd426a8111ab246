/* SPDX-License-Identifier: MIT */
/* How much processor time may work beside the sampling take? */
#include "luastate/state/budget.h"

#include "attach/clock.h"

bool budget_allows(struct state_budget *budget, int64_t saved_ns, unsigned share)
{
	uint64_t time_ns = clock_now_ns();

	budget->left_ns += (int64_t)((time_ns - budget->now_ns) / share);
	if (budget->left_ns > saved_ns)
		budget->left_ns = saved_ns;
	budget->now_ns = time_ns;
	return budget->left_ns > 0 && budget->left_ns >= (int64_t)budget->cost_ns;
}

void budget_charge(struct state_budget *budget, uint64_t cost_ns)
{
	budget->left_ns -= (int64_t)cost_ns;
}
