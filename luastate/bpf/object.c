/* SPDX-License-Identifier: MIT */
/* Where is the compiled BPF program? It is linked into ljprof as bytes. */
#include "luastate/plan.h"

__asm__(".pushsection .rodata\n"
	".balign 8\n"
	".hidden sampler_object\n"
	".hidden sampler_object_end\n"
	".globl sampler_object\n"
	".globl sampler_object_end\n"
	"sampler_object:\n"
	".incbin \"" LUASTATE_BPF_OBJECT "\"\n"
	"sampler_object_end:\n"
	".byte 0\n"
	".popsection\n");
extern const char sampler_object[] __attribute__((visibility("hidden")));
extern const char sampler_object_end[] __attribute__((visibility("hidden")));

struct attach_sampler_object luastate_bpf_object(void)
{
	return (struct attach_sampler_object){
		.bytes = sampler_object,
		.len = (size_t)(sampler_object_end - sampler_object),
	};
}
