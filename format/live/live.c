/* SPDX-License-Identifier: MIT */
/* How does a live view count samples? */
#include "format/live/live_internal.h"

#include <stdlib.h>
#include <string.h>

enum {
	FUNCTIONS_MAX = 16384,
	LINES_MAX = 32768,
	NODES_MAX = 131072,
	WINDOW = 10,
	WINDOW_MAX = 600,
	/* More modules, traces, threads and processes than anyone looks at. */
	OTHERS_MAX = 4096,
	/* Ids of one function: each announcement may add one. */
	IDS_PER_FUNCTION = 4,
};

/* ---- Samples ---------------------------------------------------------------------------- */

/* A sample while it is counted. */
struct counting {
	struct format_live *live;
	const struct format_sample *sample;
	uint32_t node;
	uint32_t cut; /* The last node of a chain that did not fit. */
	struct failure *why;
};

/* Add to an entry; the sample counts once in its total. */
static int count(struct counting *counting, struct live_table *table, uint32_t id, bool self,
		 bool guest)
{
	uint32_t weight = counting->sample->weight;
	bool total = table->counts[id].serial != counting->live->serial;
	const struct live_delta add = { .id = id,
					.self = self ? weight : 0,
					.guest = guest ? weight : 0,
					.total = total ? weight : 0 };

	if (!self && !guest && !total)
		return 0;
	table->counts[id].serial = counting->live->serial;
	return live_table_add(table, &add, counting->why);
}

/* Move the facts about entries to their new numbers. */
static void move_info(struct format_live *live, const struct live_table *table, const uint32_t *map,
		      uint32_t count)
{
	for (uint32_t i = 1; i < count; i++) {
		if (map[i] == FORMAT_LIVE_OTHER)
			continue;
		if (table == &live->traces)
			live->trace_info[map[i]] = live->trace_info[i];
		else if (table == &live->coroutines)
			live->coroutine_info[map[i]] = live->coroutine_info[i];
	}
}

/*
 * Find or add an entry of a table that may fold any entry.
 * @param ret_id 0 if the table has no room.
 */
static int put_plain(struct counting *counting, struct live_table *table, const void *key,
		     uint32_t *ret_id)
{
	struct format_live *live = counting->live;
	uint32_t *map;
	int ret = 0;

	if (table->count == table->max && !live->others_full &&
	    live_table_find(table, key) == LIVE_GONE) {
		uint32_t before = table->count;

		map = calloc(before, sizeof(*map));
		ret = map ? live_fold_plain(table, map, counting->why) : -1;
		if (ret == 0)
			move_info(live, table, map, before);
		free(map);
		live->others_full = table->count == table->max;
	}
	if (ret == 0)
		ret = live_table_put(table, key, ret_id, counting->why);
	if (ret == 0 && *ret_id == LIVE_GONE)
		*ret_id = FORMAT_LIVE_OTHER;
	return ret;
}

static int count_thread(struct counting *counting)
{
	struct format_live *live = counting->live;
	const struct format_sample *sample = counting->sample;
	const struct live_thread_key thread = { .pid = sample->pid, .tid = sample->tid },
				     process = { .pid = sample->pid };
	uint32_t id;

	if (put_plain(counting, &live->threads, &thread, &id) != 0 ||
	    count(counting, &live->threads, id, true, true) != 0 ||
	    put_plain(counting, &live->processes, &process, &id) != 0)
		return -1;
	return count(counting, &live->processes, id, true, true);
}

static int count_trace(struct counting *counting, uint32_t number, bool self, bool guest)
{
	struct format_live *live = counting->live;
	const struct format_sample *sample = counting->sample;
	const struct live_trace_key key = { .pid = sample->pid, .number = number };
	uint32_t before = live->traces.count, id;

	if (put_plain(counting, &live->traces, &key, &id) != 0)
		return -1;
	if (id >= before || live->traces.count < before)
		live->trace_info[id] = (struct live_trace){ 0 };
	if (guest && sample->trace_function != FORMAT_NO_FUNCTION)
		live->trace_info[id].function = live_function_of(live, sample->trace_function);
	if (guest)
		live->trace_info[id].compiled[sample->compiled] += sample->weight;
	return count(counting, &live->traces, id, self, guest);
}

static int count_coroutine(struct counting *counting, const struct format_coroutine *coroutine,
			   bool runs)
{
	struct format_live *live = counting->live;
	uint32_t function = coroutine->function == FORMAT_NO_FUNCTION
				    ? FORMAT_LIVE_OTHER
				    : live_function_of(live, coroutine->function);
	struct live_coroutine_key key = { .address = coroutine->address,
					  .pid = counting->sample->pid,
					  .is_main = coroutine->is_main };
	uint32_t id;

	if (function != FORMAT_LIVE_OTHER)
		key.began = live->function_info[function].value.address;
	if (put_plain(counting, &live->coroutines, &key, &id) != 0)
		return -1;
	if (id != FORMAT_LIVE_OTHER)
		live->coroutine_info[id] = (struct live_coroutine){ .function = function,
								    .tid = counting->sample->tid };
	return count(counting, &live->coroutines, id, runs, runs);
}

static int put_line(struct counting *counting, uint32_t function, uint32_t line, uint32_t *ret_id)
{
	struct format_live *live = counting->live;
	const struct live_line_key key = { .function = function,
					   .line = function == FORMAT_LIVE_OTHER ? 0 : line };

	if (live->lines.count == live->lines.max && !live->lines_full &&
	    live_table_find(&live->lines, &key) == LIVE_GONE &&
	    live_fold_lines(live, counting->why) != 0)
		return -1;
	if (live_table_put(&live->lines, &key, ret_id, counting->why) != 0)
		return -1;
	if (*ret_id != LIVE_GONE)
		return 0;
	live->folded.lines++;
	*ret_id = FORMAT_LIVE_OTHER;
	return 0;
}

/* Step to the node below the current one; LIVE_GONE if the table has no room. */
static int step_node(struct counting *counting, const struct live_node_key *key, uint64_t address)
{
	struct format_live *live = counting->live;
	uint32_t before = live->nodes.count, id;

	if (key->function == FORMAT_LIVE_OTHER && key->parent > 0 &&
	    live_node(live, key->parent)->function == FORMAT_LIVE_OTHER)
		return 0;
	if (live_table_put(&live->nodes, key, &id, counting->why) != 0)
		return -1;
	if (live->nodes.count > before)
		live->node_addresses[id] = address;
	counting->node = id;
	return 0;
}

static struct live_node_key key_of_frame(const struct counting *counting, uint32_t function,
					 const struct format_frame *frame)
{
	const struct format_function *value = &counting->live->function_info[function].value;
	struct live_node_key key = { .parent = counting->node, .function = function };

	if (function == FORMAT_LIVE_OTHER)
		return key;
	/* Positions in machine code are useless in a tree. */
	key.line = value->kind == FORMAT_KIND_LUA ? frame->line : 0;
	key.trace =
		(frame->trace & ~LIVE_APPROXIMATE) | (frame->approximate ? LIVE_APPROXIMATE : 0);
	return key;
}

static int count_frame(struct counting *counting, const struct format_frame *frame, bool self,
		       bool guest)
{
	struct format_live *live = counting->live;
	uint32_t function = live_function_of(live, frame->function), line;
	struct live_node_key key = key_of_frame(counting, function, frame);
	uint32_t parent = counting->node;

	if (count(counting, &live->functions, function, self, guest) != 0 ||
	    put_line(counting, function, key.line, &line) != 0 ||
	    count(counting, &live->lines, line, self, guest) != 0 ||
	    count(counting, &live->modules, live->function_info[function].module, self, guest) != 0)
		return -1;
	if (frame->trace && count_trace(counting, frame->trace, false, false) != 0)
		return -1;
	if (parent == LIVE_GONE)
		return 0;
	if (step_node(counting, &key, frame->address) != 0)
		return -1;
	if (counting->node != LIVE_GONE)
		return count(counting, &live->nodes, counting->node, self, guest);
	counting->cut = parent;
	return live_table_add(
		&live->nodes,
		&(struct live_delta){ .id = parent, .other = counting->sample->weight },
		counting->why);
}

/* Make room for the nodes of one chain before it is counted, because folding renumbers nodes. */
static int make_room(struct format_live *live, const struct format_sample *sample,
		     struct failure *why)
{
	if (live->nodes_full || live->nodes.max - live->nodes.count > sample->frame_count + 1)
		return 0;
	return live_fold_nodes(live, why);
}

static int count_end(struct counting *counting)
{
	struct format_live *live = counting->live;
	const struct format_sample *sample = counting->sample;
	bool cut = counting->node == LIVE_GONE;
	struct live_end_key key = { .node = cut ? counting->cut : counting->node,
				    .state = (uint8_t)sample->state,
				    .compiled = (uint8_t)sample->compiled,
				    .full = sample->full,
				    .cut = cut,
				    .trace = sample->trace,
				    .trace_function = FORMAT_NO_FUNCTION };
	uint32_t id;

	if (sample->trace && sample->trace_function != FORMAT_NO_FUNCTION)
		key.trace_function = live_function_of(live, sample->trace_function);
	if (live_table_put(&live->ends, &key, &id, counting->why) != 0)
		return -1;
	if (id == LIVE_GONE) { /* no room: count it as "[other]", without its state and trace */
		key = (struct live_end_key){ .cut = 1, .trace_function = FORMAT_NO_FUNCTION };
		if (live_table_put(&live->ends, &key, &id, counting->why) != 0)
			return -1;
	}
	return live_table_add(
		&live->ends,
		&(struct live_delta){ .id = id == LIVE_GONE ? 0 : id, .self = sample->weight },
		counting->why);
}

static uint32_t guest_leaf(const struct format_live *live, const struct format_sample *sample)
{
	uint32_t i = 0;

	while (i < sample->frame_count &&
	       live_is_native(live, live_function_of(live, sample->frames[i].function)))
		i++;
	return i;
}

static int count_sample(struct format_live *live, const struct format_sample *sample,
			struct failure *why)
{
	struct counting counting = { .live = live, .sample = sample, .why = why };
	const struct live_node_key thread = { .function = LIVE_THREAD,
					      .line = (uint32_t)sample->pid,
					      .trace = (uint32_t)sample->tid };
	bool running = sample->trace && sample->state == FORMAT_STATE_TRACE;
	uint32_t leaf = guest_leaf(live, sample);

	live->serial++;
	live->samples += sample->weight;
	live->window_samples += sample->weight;
	live->window_ring[live->refresh % (live->window + 1)] += sample->weight;
	if (make_room(live, sample, why) != 0 || count_thread(&counting) != 0 ||
	    count(&counting, &live->nodes, 0, false, false) != 0 ||
	    step_node(&counting, &thread, 0) != 0)
		return -1;
	if (counting.node == LIVE_GONE &&
	    live_table_add(&live->nodes, &(struct live_delta){ .other = sample->weight }, why) != 0)
		return -1;
	if (counting.node != LIVE_GONE &&
	    count(&counting, &live->nodes, counting.node, sample->frame_count == 0,
		  leaf == sample->frame_count) != 0)
		return -1;
	if (sample->trace && count_trace(&counting, sample->trace, running, true) != 0)
		return -1;
	for (uint32_t i = 0; i < sample->coroutine_count; i++)
		if (count_coroutine(&counting, &sample->coroutines[i], i == 0) != 0)
			return -1;
	for (uint32_t i = sample->frame_count; i-- > 0;)
		if (count_frame(&counting, &sample->frames[i], i == 0, i == leaf) != 0)
			return -1;
	return count_end(&counting);
}

int format_live_sample(struct format_live *live, const struct format_sample *sample,
		       struct failure *why)
{
	if (count_sample(live, sample, why) != 0)
		return -1;
	return live->program ? live_program_sample(live->program, live, sample, why) : 0;
}

/* ---- Start, refresh and end ------------------------------------------------------------- */

static uint32_t or_default(uint32_t value, uint32_t normal, uint32_t least)
{
	return value == 0 ? normal : value < least ? least : value;
}

static int init_tables(struct format_live *live, const struct format_live_options *options,
		       struct failure *why)
{
	uint32_t functions = or_default(options->functions_max, FUNCTIONS_MAX, 16);
	uint32_t lines = or_default(options->lines_max, LINES_MAX, 16);
	uint32_t nodes = or_default(options->nodes_max, NODES_MAX, 64);
	uint32_t window = live->window;
	const struct {
		struct live_table *table;
		size_t key_len;
		uint32_t max, window;
	} tables[] = {
		{ &live->functions, sizeof(struct live_function_key), functions, window },
		{ &live->lines, sizeof(struct live_line_key), lines, window },
		{ &live->modules, sizeof(uint64_t), OTHERS_MAX, window },
		{ &live->traces, sizeof(struct live_trace_key), OTHERS_MAX, window },
		{ &live->coroutines, sizeof(struct live_coroutine_key), OTHERS_MAX, window },
		{ &live->threads, sizeof(struct live_thread_key), OTHERS_MAX, window },
		{ &live->processes, sizeof(struct live_thread_key), OTHERS_MAX, window },
		{ &live->nodes, sizeof(struct live_node_key), nodes, window },
		/* A chain ends at a node once per state and trace; most nodes have one end at
		 * most. */
		{ &live->ends, sizeof(struct live_end_key), nodes, 0 },
	};

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (live_table_init(tables[i].table, tables[i].key_len, tables[i].max,
				    tables[i].window, why) != 0)
			return -1;
	for (live->id_size = 64; live->id_size < functions * IDS_PER_FUNCTION;)
		live->id_size *= 2;
	live->function_info = calloc(functions, sizeof(*live->function_info));
	live->node_addresses = calloc(nodes, sizeof(*live->node_addresses));
	live->module_info = calloc(OTHERS_MAX, sizeof(*live->module_info));
	live->trace_info = calloc(OTHERS_MAX, sizeof(*live->trace_info));
	live->coroutine_info = calloc(OTHERS_MAX, sizeof(*live->coroutine_info));
	live->ids = calloc(live->id_size, sizeof(*live->ids));
	live->window_ring = calloc(window + 1, sizeof(*live->window_ring));
	return live->function_info && live->node_addresses && live->module_info &&
			       live->trace_info && live->coroutine_info && live->ids &&
			       live->window_ring
		       ? 0
		       : -1;
}

/* Entry 0 of each table. */
static int put_others(struct format_live *live, struct failure *why)
{
	static const struct format_function other = { .kind = FORMAT_KIND_PSEUDO,
						      .name = "[other]",
						      .source = "[other]" };
	const struct live_line_key line = { 0 };
	const struct live_thread_key thread = { 0 };
	const struct live_trace_key trace = { 0 };
	const struct live_coroutine_key coroutine = { 0 };
	const struct live_node_key root = { .function = FORMAT_NO_FUNCTION };
	const struct live_end_key end = { .cut = 1, .trace_function = FORMAT_NO_FUNCTION };
	uint32_t id;

	if (live_table_put(&live->lines, &line, &id, why) != 0 ||
	    live_table_put(&live->traces, &trace, &id, why) != 0 ||
	    live_table_put(&live->coroutines, &coroutine, &id, why) != 0 ||
	    live_table_put(&live->threads, &thread, &id, why) != 0 ||
	    live_table_put(&live->processes, &thread, &id, why) != 0 ||
	    live_table_put(&live->nodes, &root, &id, why) != 0 ||
	    live_table_put(&live->ends, &end, &id, why) != 0)
		return -1;
	return live_put_function(live, &other, &id, why);
}

int live_create_plain(const struct format_live_options *options, struct format_live **ret_live,
		      struct failure *why)
{
	struct format_live *live = calloc(1, sizeof(*live));
	uint32_t window = or_default(options->window, WINDOW, 1);

	if (!live)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "count samples");
	live->window = window > WINDOW_MAX ? WINDOW_MAX : window;
	if (init_tables(live, options, why) != 0 || put_others(live, why) != 0) {
		format_live_destroy(live);
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "count samples");
	}
	*ret_live = live;
	return 0;
}

int format_live_create(const struct format_live_options *options, struct format_live **ret_live,
		       struct failure *why)
{
	struct format_live *live;

	if (live_create_plain(options, &live, why) != 0)
		return -1;
	if (live_program_create(options, &live->program, why) != 0) {
		format_live_destroy(live);
		return -1;
	}
	*ret_live = live;
	return 0;
}

void format_live_destroy(struct format_live *live)
{
	if (!live)
		return;
	live_program_destroy(live->program);
	for (uint32_t i = 0; live->function_info && i < live->functions.max; i++)
		live_free_function(&live->function_info[i]);
	for (uint32_t i = 0; live->module_info && i < OTHERS_MAX; i++)
		free(live->module_info[i].name);
	live_table_deinit(&live->functions);
	live_table_deinit(&live->lines);
	live_table_deinit(&live->modules);
	live_table_deinit(&live->traces);
	live_table_deinit(&live->coroutines);
	live_table_deinit(&live->threads);
	live_table_deinit(&live->processes);
	live_table_deinit(&live->nodes);
	live_table_deinit(&live->ends);
	free(live->function_info);
	free(live->module_info);
	free(live->trace_info);
	free(live->coroutine_info);
	free(live->node_addresses);
	free(live->ids);
	free(live->window_ring);
	free(live);
}

int format_live_refresh(struct format_live *live, struct failure *why)
{
	uint64_t *oldest;

	if (live->program && format_live_refresh(live->program->live, why) != 0)
		return -1;
	live_table_refresh(&live->functions);
	live_table_refresh(&live->lines);
	live_table_refresh(&live->modules);
	live_table_refresh(&live->traces);
	live_table_refresh(&live->coroutines);
	live_table_refresh(&live->threads);
	live_table_refresh(&live->processes);
	live_table_refresh(&live->nodes);
	live_table_refresh(&live->ends);
	live->refresh++;
	oldest = &live->window_ring[live->refresh % (live->window + 1)];
	live->window_samples -= *oldest;
	*oldest = 0;
	live->functions_full = live->lines_full = live->nodes_full = live->others_full = false;
	return 0;
}

void format_live_reset(struct format_live *live)
{
	if (live->program)
		format_live_reset(live->program->live);
	live_table_reset(&live->functions);
	live_table_reset(&live->lines);
	live_table_reset(&live->modules);
	live_table_reset(&live->traces);
	live_table_reset(&live->coroutines);
	live_table_reset(&live->threads);
	live_table_reset(&live->processes);
	live_table_reset(&live->nodes);
	live_table_reset(&live->ends);
	for (uint32_t i = 0; i < live->traces.count; i++)
		memset(live->trace_info[i].compiled, 0, sizeof(live->trace_info[i].compiled));
	memset(live->window_ring, 0, (live->window + 1) * sizeof(*live->window_ring));
	live->samples = live->window_samples = 0;
}

uint64_t format_live_samples(const struct format_live *live)
{
	return live->samples;
}

uint64_t format_live_window_samples(const struct format_live *live)
{
	return live->window_samples;
}

struct format_live_folded format_live_folded(const struct format_live *live)
{
	return live->folded;
}

bool format_live_take_forgotten(struct format_live *live)
{
	bool forgotten = live->forgotten;

	live->forgotten = false;
	if (live->program && format_live_take_forgotten(live->program->live))
		forgotten = true;
	return forgotten;
}
