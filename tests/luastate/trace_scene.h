/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LUASTATE_TRACE_SCENE_H
#define TESTS_LUASTATE_TRACE_SCENE_H

/* A thread whose newest C frame runs main, which called work, in which trace 1 began. */

#include "fake_trace.h"
#include "sample.h"

enum { SCENE_TRACE = 1, SCENE_TRACES = 64, SCENE_FF = 7 };

struct trace_scene {
	struct sample *sample;
	struct fake_vm *vm;
	/* Prototypes and functions of four instructions on four lines, the third is a call. */
	uint64_t main_proto, work_proto, inner_proto, leaf_proto;
	uint64_t main, work, inner, leaf;
	uint64_t pcall, pcall_code; /* a fast function */
	uint64_t code, stubs, base;
	struct fake_tracing tracing;
};

/** The stacks, room for traces, and a description of trace 1 without snapshots. */
void trace_scene_init(struct trace_scene *scene, struct sample *sample);

/** Address behind the call in a function of the scene. */
uint64_t trace_scene_ret(const struct trace_scene *scene, uint64_t proto);
uint64_t trace_scene_pc(const struct trace_scene *scene, uint64_t proto, unsigned index);

/** A snapshot of the lowest frame alone; of that with a call of inner. */
void trace_scene_base(struct trace_scene *scene, uint32_t offset, unsigned index);
void trace_scene_inner(struct trace_scene *scene, uint32_t offset, unsigned index);

/** Put a trace in memory; it shows a VM's layout. */
void trace_scene_put_other(struct trace_scene *scene, struct fake_tracing *tracing);
/** Likewise trace 1. */
void trace_scene_put(struct trace_scene *scene);
/** Describe trace 1 anew. */
void trace_scene_again(struct trace_scene *scene);

/** All of that for a trace with three snapshots in which inner was called; see EXPECT_INNER(). */
void trace_scene_begin(struct trace_scene *scene, struct sample *sample);
/** These snapshots. */
void trace_scene_describe(struct trace_scene *scene);

/** The thread stands in machine code. @param leaf false: in C code that the trace called. */
void trace_scene_stand(struct trace_scene *scene, uint64_t pc, bool leaf);
/** Likewise at an offset in trace 1. */
void trace_scene_at(struct trace_scene *scene, uint32_t offset);
void trace_scene_vmstate(struct trace_scene *scene, int32_t vmstate);

/** A frame that is expected. */
struct trace_scene_frame {
	uint64_t function;
	uint32_t line, trace;
	bool approximate;
};

/** Walk, and compare. @param file, line Of the caller. */
void trace_scene_expect(struct trace_scene *scene, enum luastate_compiled compiled, size_t count,
			const struct trace_scene_frame *frames, const char *file, int line);

#define EXPECT_AT(scene, offset, compiled, ...)                                                    \
	do {                                                                                       \
		const struct trace_scene_frame frames_[] = { __VA_ARGS__ };                        \
		trace_scene_at(scene, offset);                                                     \
		trace_scene_expect(scene, compiled, sizeof(frames_) / sizeof(frames_[0]), frames_, \
				   __FILE__, __LINE__);                                            \
	} while (0)

#define EXPECT_NOW(scene, compiled, ...)                                                           \
	do {                                                                                       \
		const struct trace_scene_frame frames_[] = { __VA_ARGS__ };                        \
		trace_scene_expect(scene, compiled, sizeof(frames_) / sizeof(frames_[0]), frames_, \
				   __FILE__, __LINE__);                                            \
	} while (0)

#define EXACT	    LUASTATE_COMPILED_EXACT
#define APPROXIMATE LUASTATE_COMPILED_APPROXIMATE
#define TRACE	    LUASTATE_COMPILED_TRACE

/* Frames of a struct trace_scene called scene. */
#define MAIN                                  \
	{                                     \
		scene.main_proto, 2, 0, false \
	}
#define WORK(line, approximate)                        \
	{                                              \
		scene.work_proto, line, 1, approximate \
	}
#define INNER(line, approximate)                        \
	{                                               \
		scene.inner_proto, line, 1, approximate \
	}
#define LEAF(line, approximate)                        \
	{                                              \
		scene.leaf_proto, line, 1, approximate \
	}
/* A trace of which no more is known, and the frame in which it runs. */
#define ALONE(number)                               \
	{ number, 11, number, false },              \
	{                                           \
		scene.work_proto, 10, number, false \
	}

/** In the middle of a trace of trace_scene_begin(). */
#define EXPECT_INNER(scene) EXPECT_AT(&(scene), 70, EXACT, INNER(22, false), WORK(12, false), MAIN)

/** Whether the layout tells where snapshots begin. */
static inline bool trace_scene_has_offsets(const struct trace_scene *scene)
{
	return scene->vm->layout->SnapShot_mcofs != LAYOUT_ABSENT;
}

#endif
