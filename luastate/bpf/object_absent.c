/* SPDX-License-Identifier: MIT */
/* Without clang or libbpf at build time: there is no sampling program. */
#include "luastate/plan.h"

struct attach_sampler_object luastate_bpf_object(void)
{
	return (struct attach_sampler_object){ 0 };
}
