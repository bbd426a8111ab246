/* SPDX-License-Identifier: MIT */
/* Rounds: changes of a thread's VM, and the walkers over what comes of them. */
#include <stdio.h>
#include <stdlib.h>

#include "attach/image/image_internal.h"
#include "walkers.h"

enum {
	LATE_ONE_IN = 4,
	/* No walker reads more often in a VM of some dozen objects, however they are linked; a
	 * JIT report may find 65536 traces. */
	READS_MAX = 50 * 1000,
	JIT_REPORT_READS_MAX = 300 * 1000,
	LAYOUTS_MAX = 128,
	CHANGES_MAX = 40,
};

const char *const walker_names[WALKERS] = {
	[WALKER_PLAN] = "plan",
	[WALKER_CFRAMES] = "C frames",
	[WALKER_WALK] = "walk",
	[WALKER_VARIABLES] = "variables",
	[WALKER_COROUTINES] = "coroutines",
	[WALKER_JIT_REPORT] = "JIT report",
	[WALKER_VM_STATS] = "VM stats",
	[WALKER_NAMES] = "names",
	[WALKER_EXPLAIN] = "explanation",
	[WALKER_SEARCH] = "search",
};

/* ---- Memory ----------------------------------------------------------------------------- */

static int read_changed(void *self, struct remote_addr address, void *ret_bytes, size_t len,
			struct failure *why)
{
	struct walkers_memory *memory = self;

	memory->reads++;
	if (memory->reads > memory->reads_max) {
		fprintf(stderr, "more than %llu reads\n", (unsigned long long)memory->reads_max);
		abort();
	}
	if (memory->reads == memory->late_at)
		mutation_add(memory->mutation, memory->choices);
	return attach_read(memory->target, address, ret_bytes, len, why);
}

void walkers_memory_init(struct walkers_memory *memory, struct mutation *mutation,
			 struct choices *choices)
{
	*memory = (struct walkers_memory){ .reader = { .read = read_changed, .self = memory },
					   .target = &mutation->stage->vm->reader,
					   .mutation = mutation,
					   .choices = choices };
}

/* ---- One round -------------------------------------------------------------------------- */

/** A round. */
struct round {
	struct luastate *state;
	struct walkers_thread thread;
	struct luastate_prediction prediction;
	const struct luastate_chain *chain;
	struct walkers_memory memory;
	struct attach_image *image, *after; /* of the stop */
	struct walkers_count *count;
};

static void run_walker(struct round *round, enum walker walker)
{
	struct luastate *state = round->state;
	const struct walkers_thread *thread = &round->thread;

	switch (walker) {
	case WALKER_PLAN:
		walkers_plan(state, &round->prediction, thread, round->image, round->after);
		break;
	case WALKER_CFRAMES:
		walkers_find_cframes(state, thread);
		break;
	case WALKER_WALK:
		round->chain = walkers_walk(state, thread);
		break;
	case WALKER_VARIABLES:
		walkers_variables(state, thread, round->chain);
		break;
	case WALKER_COROUTINES:
		walkers_coroutines(state, thread);
		break;
	case WALKER_JIT_REPORT:
		walkers_catalogue(state, thread);
		break;
	case WALKER_VM_STATS:
		walkers_vitals(state, thread);
		break;
	case WALKER_NAMES:
		walkers_names(state, thread);
		break;
	case WALKER_EXPLAIN:
		walkers_explain(state, thread);
		break;
	default:
		walkers_search(state, thread);
		break;
	}
}

static void count_walker(struct round *round, enum walker walker)
{
	struct walkers_count *count = round->count;
	uint64_t reads = round->memory.reads;

	count->reads[walker] += reads;
	if (reads > count->most_reads[walker])
		count->most_reads[walker] = reads;
	if (walker != WALKER_WALK)
		return;
	count->chains++;
	count->full += round->chain->outcome == LUASTATE_FULL;
	count->frames += round->chain->count;
	if (round->chain->count > count->longest)
		count->longest = round->chain->count;
}

static void set_thread(struct round *round, const struct stage *stage)
{
	round->thread.vm = stage->vm;
	round->thread.regs = stage->regs;
	round->thread.vm_frame_count = stage->vm_frame_count;
	memcpy(round->thread.vm_frames, stage->vm_frames, sizeof(stage->vm_frames));
}

/* While the VM is whole. */
static void open(struct round *round, struct stage *stage, unsigned how)
{
	round->state = fake_vm_open(stage->vm, true);
	round->image = attach_image_create();
	round->after = attach_image_create();
	MUST(round->image && round->after);
	round->thread.memory = &stage->vm->reader;
	set_thread(round, stage);
	if (how & 1) {
		walkers_walk(round->state, &round->thread);
		walkers_learn(round->state, &round->thread, &round->prediction);
	}
	if (how & 2)
		luastate_set_thorough(round->state, true);
}

void walkers_run(struct stage *stage, struct choices *choices, unsigned wanted, unsigned changes,
		 struct walkers_count *count)
{
	static struct mutation mutation;
	static struct round round;
	unsigned how = (unsigned)choose(choices, 8);

	memset(&round, 0, sizeof(round));
	round.count = count;
	open(&round, stage, how);
	mutation_begin(&mutation, stage);
	walkers_memory_init(&round.memory, &mutation, choices);
	round.thread.memory = &round.memory.reader;
	for (unsigned i = 0; i < changes; i++)
		mutation_add(&mutation, choices);
	set_thread(&round, stage);
	for (unsigned walker = 0; walker < WALKERS; walker++) {
		if (!(wanted & 1u << walker))
			continue;
		round.memory.reads = round.memory.late_at = 0;
		round.memory.reads_max =
			walker == WALKER_JIT_REPORT ? JIT_REPORT_READS_MAX : READS_MAX;
		if (choose(choices, LATE_ONE_IN) == 1)
			round.memory.late_at = 1 + choose(choices, 256);
		run_walker(&round, walker);
		count_walker(&round, walker);
		if (walker == WALKER_PLAN && how & 4) {
			round.thread.stopped = attach_image_reader(round.image);
			round.thread.later = attach_image_reader(round.after);
		}
	}
	attach_image_destroy(round.image);
	attach_image_destroy(round.after);
	luastate_destroy(round.state);
	mutation_end(&mutation);
}

/* ---- Fuzz targets ----------------------------------------------------------------------- */

static struct stage *get_stage(unsigned layout, unsigned number)
{
	static struct stage *stages[LAYOUTS_MAX][STAGE_COUNT];
	struct stage **stage = &stages[layout][number];

	if (!*stage) {
		*stage = malloc(sizeof(**stage));
		MUST(*stage);
		stage_init(*stage, layout, number);
	}
	return *stage;
}

void walkers_fuzz(const uint8_t *data, size_t size, const unsigned *situations, size_t count,
		  unsigned wanted)
{
	struct choices choices = { .bytes = data, .len = size };
	struct walkers_count counted = { 0 };
	unsigned layout = (unsigned)choose(&choices, stage_layout_count());
	unsigned number = situations[choose(&choices, count)], changes;

	MUST(stage_layout_count() <= LAYOUTS_MAX);
	changes = (unsigned)choose(&choices, CHANGES_MAX + 1);
	walkers_run(get_stage(layout, number), &choices, wanted, changes, &counted);
}
