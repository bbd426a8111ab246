/* SPDX-License-Identifier: MIT */
/* Live profiles against what a person would count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include "format/live.h"
#include "format/report.h"
#include "tests/rounds.h"

enum {
	MAIN = 10,
	BURN,
	HELPER,
	GC_STEP, /* native */
	GC,	 /* pseudo */
};

static struct format_live *create(uint32_t functions, uint32_t nodes, uint32_t window)
{
	const struct format_live_options options = { .functions_max = functions,
						     .nodes_max = nodes,
						     .window = window };
	struct format_live *live = NULL;
	struct failure why;

	assert_int_equal(0, format_live_create(&options, &live, &why));
	return live;
}

static void announce(struct format_live *live, uint32_t id, enum format_kind kind, const char *name,
		     const char *source, int64_t line)
{
	const struct format_function function = { .kind = kind,
						  .address = 0x10000 + (uint64_t)id * 64,
						  .name = name,
						  .source = source,
						  .first_line = line };
	struct failure why;

	assert_int_equal(0, format_live_function(live, id, &function, &why));
}

static void announce_all(struct format_live *live)
{
	announce(live, MAIN, FORMAT_KIND_LUA, "main chunk", "@app.lua", 0);
	announce(live, BURN, FORMAT_KIND_LUA, "burn", "@app.lua", 12);
	announce(live, HELPER, FORMAT_KIND_LUA, "helper", "@lib/help.lua", 3);
	announce(live, GC_STEP, FORMAT_KIND_NATIVE, "lj_gc_step", "/usr/bin/luajit", 0);
	announce(live, GC, FORMAT_KIND_PSEUDO, "[gc sweep]", NULL, 0);
}

/* A chain of ids, leaf first, ended by 0; lines are ten times the position from the root. */
static void sample_of(struct format_live *live, int32_t pid, int32_t tid, uint32_t weight,
		      const uint32_t *ids)
{
	struct format_frame frames[64];
	struct format_sample sample = { .pid = pid,
					.tid = tid,
					.weight = weight,
					.state = FORMAT_STATE_LFUNC,
					.trace_function = FORMAT_NO_FUNCTION,
					.full = true,
					.frames = frames };
	struct failure why;

	while (ids[sample.frame_count])
		sample.frame_count++;
	for (uint32_t i = 0; i < sample.frame_count; i++)
		frames[i] = (struct format_frame){ .function = ids[i],
						   .line = 10 * (sample.frame_count - i) };
	assert_int_equal(0, format_live_sample(live, &sample, &why));
}

#define SAMPLE(live, weight, ...) \
	sample_of(live, 1, 1, weight, (const uint32_t[]){ __VA_ARGS__, 0 })

static struct format_live_rows query(const struct format_live *live,
				     const struct format_live_query *query)
{
	struct format_live_rows rows;
	struct failure why;

	assert_int_equal(0, format_live_query(live, query, &rows, &why));
	return rows;
}

static const struct format_live_row *find(const struct format_live_rows *rows, const char *name)
{
	for (size_t i = 0; i < rows->count; i++)
		if (strcmp(rows->rows[i].name, name) == 0)
			return &rows->rows[i];
	return NULL;
}

static void assert_counts(const struct format_live_row *row, uint64_t self, uint64_t guest,
			  uint64_t total)
{
	assert_non_null(row);
	assert_int_equal(self, row->count.self);
	assert_int_equal(guest, row->count.guest);
	assert_int_equal(total, row->count.total);
}

static void test_functions(void **state)
{
	struct format_live *live = create(0, 0, 0);
	struct format_live_rows rows;

	(void)state;
	announce_all(live);
	SAMPLE(live, 3, BURN, MAIN);
	SAMPLE(live, 1, GC_STEP, GC, BURN, MAIN);
	SAMPLE(live, 2, GC_STEP, HELPER, MAIN);
	rows = query(live, &(struct format_live_query){ 0 });
	assert_int_equal(5, rows.count);
	assert_int_equal(6, rows.samples);
	assert_string_equal("burn", rows.rows[0].name); /* the larger total */
	assert_string_equal("app.lua:12", rows.rows[0].location);
	assert_string_equal("lj_gc_step", rows.rows[1].name);
	assert_counts(find(&rows, "burn"), 3, 3, 4);
	assert_counts(find(&rows, "lj_gc_step"), 3, 0, 3);
	assert_counts(find(&rows, "[gc sweep]"), 0, 1, 1);
	assert_counts(find(&rows, "helper"), 0, 2, 2);
	assert_counts(find(&rows, "main chunk"), 0, 0, 6);
	format_live_rows_deinit(&rows);
	rows = query(live,
		     &(struct format_live_query){ .no_natives = true, .order = FORMAT_LIVE_TOTAL });
	assert_null(find(&rows, "lj_gc_step"));
	assert_string_equal("main chunk", rows.rows[0].name);
	format_live_rows_deinit(&rows);
	rows = query(live, &(struct format_live_query){ .filter = "HELP" });
	assert_int_equal(1, rows.count);
	format_live_rows_deinit(&rows);
	rows = query(live, &(struct format_live_query){ .view = FORMAT_LIVE_MODULES });
	assert_counts(find(&rows, "app.lua"), 3, 3, 6);
	assert_counts(find(&rows, "lib/help.lua"), 0, 2, 2);
	assert_counts(find(&rows, "/usr/bin/luajit"), 3, 0, 3);
	format_live_rows_deinit(&rows);
	format_live_destroy(live);
}

static void test_recursion(void **state)
{
	struct format_live *live = create(0, 0, 0);
	struct format_live_rows rows;
	const struct format_live_query of_thread = { .pid = 1 };

	(void)state;
	announce_all(live);
	SAMPLE(live, 5, BURN, BURN, HELPER, BURN, MAIN);
	for (int i = 0; i < 2; i++) {
		/* From the table, and from the chains. */
		rows = query(live, i ? &of_thread : &(struct format_live_query){ 0 });
		assert_counts(find(&rows, "burn"), 5, 5, 5);
		assert_counts(find(&rows, "helper"), 0, 0, 5);
		assert_int_equal(5, rows.samples);
		format_live_rows_deinit(&rows);
	}
	format_live_destroy(live);
}

static uint32_t id_of(const struct format_live *live, const char *name)
{
	struct format_live_rows rows = query(live, &(struct format_live_query){ 0 });
	const struct format_live_row *row = find(&rows, name);
	uint32_t id = row ? row->id : 0;

	assert_non_null(row);
	format_live_rows_deinit(&rows);
	return id;
}

static void test_calls(void **state)
{
	struct format_live *live = create(0, 0, 0);
	struct format_live_rows rows;
	struct failure why;

	(void)state;
	announce_all(live);
	SAMPLE(live, 4, BURN, BURN, BURN, MAIN);
	SAMPLE(live, 2, BURN, GC_STEP, HELPER, MAIN);
	SAMPLE(live, 1, HELPER, MAIN);
	assert_int_equal(0, format_live_callers(live, id_of(live, "burn"),
						&(struct format_live_query){ 0 }, &rows, &why));
	assert_int_equal(3, rows.count);
	assert_int_equal(4, find(&rows, "burn")->count.total);
	assert_int_equal(4, find(&rows, "main chunk")->count.total);
	assert_int_equal(2, find(&rows, "lj_gc_step")->count.total);
	format_live_rows_deinit(&rows);
	assert_int_equal(0, format_live_callers(live, id_of(live, "burn"),
						&(struct format_live_query){ .no_natives = true },
						&rows, &why));
	assert_int_equal(2, find(&rows, "helper")->count.total);
	format_live_rows_deinit(&rows);
	assert_int_equal(0, format_live_callees(live, id_of(live, "main chunk"),
						&(struct format_live_query){ 0 }, &rows, &why));
	assert_int_equal(2, rows.count);
	assert_int_equal(4, find(&rows, "burn")->count.total);
	assert_int_equal(3, find(&rows, "helper")->count.total);
	assert_int_equal(1, find(&rows, "helper")->count.self);
	format_live_rows_deinit(&rows);
	format_live_destroy(live);
}

static void test_tree(void **state)
{
	struct format_live *live = create(0, 0, 0);
	struct format_live_tree tree;
	const struct format_live_node *node;
	struct failure why;

	(void)state;
	announce_all(live);
	SAMPLE(live, 4, BURN, MAIN);
	SAMPLE(live, 6, BURN, GC_STEP, HELPER, MAIN);
	sample_of(live, 1, 2, 5, (const uint32_t[]){ HELPER, MAIN, 0 });
	assert_int_equal(
		0, format_live_tree(live, &(struct format_live_query){ .order = FORMAT_LIVE_TOTAL },
				    &tree, &why));
	assert_int_equal(15, tree.nodes[0].row.count.total);
	assert_int_equal(1, tree.nodes[0].child_count);
	node = &tree.nodes[tree.nodes[0].first_child];
	assert_string_equal("main chunk", node->row.name);
	assert_int_equal(2, node->child_count);
	node = &tree.nodes[node->first_child];
	assert_string_equal("helper", node->row.name);
	assert_counts(&node->row, 5, 5, 11);
	assert_string_equal("lj_gc_step", tree.nodes[node->first_child].row.name);
	format_live_tree_deinit(&tree);
	assert_int_equal(0,
			 format_live_tree(live,
					  &(struct format_live_query){
						  .no_natives = true, .filter = "help", .tid = 1 },
					  &tree, &why));
	assert_int_equal(10, tree.nodes[0].row.count.total);
	node = &tree.nodes[tree.nodes[tree.nodes[0].first_child].first_child];
	assert_string_equal("helper", node->row.name);
	assert_int_equal(FORMAT_LIVE_NO_NODE, node->next); /* burn does not fit */
	assert_string_equal("burn", tree.nodes[node->first_child].row.name);
	assert_int_equal(6, tree.nodes[node->first_child].row.count.self);
	format_live_tree_deinit(&tree);
	format_live_destroy(live);
}

static void test_window(void **state)
{
	struct format_live *live = create(0, 0, 3);
	struct format_live_rows rows;
	struct failure why;

	(void)state;
	announce_all(live);
	for (uint32_t i = 1; i <= 6; i++) {
		SAMPLE(live, i, BURN, MAIN);
		assert_int_equal(i + (i > 1 ? i - 1 : 0) + (i > 2 ? i - 2 : 0) +
					 (i > 3 ? i - 3 : 0),
				 format_live_window_samples(live));
		assert_int_equal(0, format_live_refresh(live, &why));
	}
	rows = query(live, &(struct format_live_query){ 0 });
	assert_int_equal(21, rows.samples);
	assert_int_equal(6 + 5 + 4, rows.window_samples);
	assert_int_equal(6 + 5 + 4, find(&rows, "burn")->count.window_self);
	assert_int_equal(6 + 5 + 4, find(&rows, "main chunk")->count.window_total);
	format_live_rows_deinit(&rows);
	for (int i = 0; i < 3; i++)
		assert_int_equal(0, format_live_refresh(live, &why));
	rows = query(live, &(struct format_live_query){ 0 });
	assert_int_equal(0, find(&rows, "burn")->count.window_total);
	assert_int_equal(21, find(&rows, "burn")->count.self);
	format_live_rows_deinit(&rows);
	/* What is in the window when it is reset does not leave it later. */
	SAMPLE(live, 5, BURN, MAIN);
	assert_int_equal(0, format_live_refresh(live, &why));
	format_live_reset(live);
	rows = query(live, &(struct format_live_query){ 0 });
	assert_int_equal(0, rows.count);
	format_live_rows_deinit(&rows);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(0, format_live_refresh(live, &why));
		assert_int_equal(0, format_live_window_samples(live));
	}
	SAMPLE(live, 2, BURN, MAIN);
	rows = query(live, &(struct format_live_query){ 0 });
	assert_counts(find(&rows, "burn"), 2, 2, 2);
	assert_int_equal(2, find(&rows, "burn")->count.window_self);
	format_live_rows_deinit(&rows);
	format_live_destroy(live);
}

/* A name that comes later, and the same function in two processes. */
static void test_names(void **state)
{
	struct format_live *live = create(0, 0, 0);
	struct format_live_rows rows;

	(void)state;
	announce_all(live);
	announce(live, 30, FORMAT_KIND_LUA, NULL, "@app.lua", 40);
	SAMPLE(live, 2, 30, MAIN);
	rows = query(live, &(struct format_live_query){ 0 });
	assert_counts(find(&rows, "<app.lua:40>"), 2, 2, 2);
	format_live_rows_deinit(&rows);
	{
		const struct format_function named = { .kind = FORMAT_KIND_LUA,
						       .address = 0x10000 + 30 * 64,
						       .name = "late",
						       .source = "@app.lua",
						       .first_line = 40 };
		struct failure why;

		assert_int_equal(0, format_live_function(live, 31, &named, &why));
	}
	announce(live, 77, FORMAT_KIND_LUA, "burn", "@app.lua", 12); /* at another address */
	announce(live, 78, FORMAT_KIND_LUA, "main chunk", "@app.lua", 0);
	SAMPLE(live, 1, 78, MAIN);
	SAMPLE(live, 3, 31, MAIN);
	SAMPLE(live, 1, BURN, MAIN);
	SAMPLE(live, 1, 77, MAIN);
	SAMPLE(live, 1, 4000, MAIN); /* never announced */
	rows = query(live, &(struct format_live_query){ 0 });
	assert_null(find(&rows, "<app.lua:40>"));
	assert_counts(find(&rows, "late"), 5, 5, 5);
	assert_counts(find(&rows, "burn"), 2, 2, 2);
	assert_counts(find(&rows, "[other]"), 1, 1, 1);
	assert_counts(find(&rows, "main chunk"), 1, 1, 9);
	format_live_rows_deinit(&rows);
	format_live_destroy(live);
}

static void test_hostile_names(void **state)
{
	struct format_live *live = create(0, 0, 0);
	struct format_live_rows rows;
	char *huge = malloc(1 << 20);

	(void)state;
	memset(huge, 'x', (1 << 20) - 1);
	huge[(1 << 20) - 1] = '\0';
	announce(live, 1, FORMAT_KIND_LUA, "\033[2Jevil\n", "@\xff\xfe\x9b 31m.lua\r", 5);
	announce(live, 2, FORMAT_KIND_LUA, huge, huge, INT64_MAX);
	announce(live, 3, FORMAT_KIND_LUA, "", "", -1);
	announce(live, 4, FORMAT_KIND_NATIVE, "", "", INT64_MIN);
	announce(live, 5, FORMAT_KIND_LUA, NULL, "return\nline two", 1);
	SAMPLE(live, 1, 1, 2, 3, 4, 5);
	rows = query(live, &(struct format_live_query){ .view = FORMAT_LIVE_LINES });
	assert_int_equal(5, rows.count);
	for (size_t i = 0; i < rows.count; i++) {
		const char *const texts[] = { rows.rows[i].name, rows.rows[i].location,
					      rows.rows[i].module };

		for (int k = 0; k < 3; k++) {
			assert_true(strlen(texts[k]) < 400);
			for (const char *c = texts[k]; *c; c++)
				assert_true((unsigned char)*c >= 32 && *c != 127);
		}
	}
	format_live_rows_deinit(&rows);
	format_live_destroy(live);
	free(huge);
}

/* What is cold goes, what is hot stays, and nothing is lost. */
static void test_folding(void **state)
{
	struct format_live *live = create(64, 256, 5);
	struct format_live_rows rows;
	struct format_live_tree tree;
	uint64_t self = 0;
	char name[32];
	struct failure why;

	(void)state;
	announce_all(live);
	for (uint32_t i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "new%u", i);
		announce(live, 1000 + i, FORMAT_KIND_LUA, name, "@gen.lua", i);
		SAMPLE(live, 1, 1000 + i, HELPER, MAIN);
		SAMPLE(live, 3, BURN, MAIN);
		if (format_live_take_forgotten(live))
			announce_all(live);
		if (i % 8 == 7)
			assert_int_equal(0, format_live_refresh(live, &why));
	}
	rows = query(live, &(struct format_live_query){ 0 });
	assert_true(rows.count <= 64);
	assert_int_equal(8000, rows.samples);
	assert_counts(find(&rows, "burn"), 6000, 6000, 6000);
	assert_counts(find(&rows, "main chunk"), 0, 0, 8000);
	assert_counts(find(&rows, "helper"), 0, 0, 2000);
	assert_non_null(find(&rows, "new1999"));
	assert_null(find(&rows, "new3"));
	for (size_t i = 0; i < rows.count; i++)
		self += rows.rows[i].count.self;
	assert_int_equal(8000, self);
	assert_true(find(&rows, "[other]")->count.total <= 8000);
	assert_true(format_live_folded(live).functions + rows.count >= 2000);
	format_live_rows_deinit(&rows);
	assert_int_equal(0, format_live_tree(live, &(struct format_live_query){ 0 }, &tree, &why));
	self = 0;
	for (size_t i = 0; i < tree.count; i++)
		self += tree.nodes[i].row.count.self;
	assert_int_equal(8000, self);
	assert_int_equal(8000, tree.nodes[0].row.count.total);
	format_live_tree_deinit(&tree);
	rows = query(live, &(struct format_live_query){ .pid = 1 });
	assert_counts(find(&rows, "burn"), 6000, 6000, 6000);
	format_live_rows_deinit(&rows);
	format_live_destroy(live);
}

/* Different chains without end, through few functions. */
static void test_folding_chains(void **state)
{
	struct format_live *live = create(0, 512, 5);
	struct format_live_rows rows;
	struct format_live_tree tree;
	uint64_t self = 0;
	struct failure why;

	(void)state;
	announce_all(live);
	for (uint32_t i = 0; i < 5000; i++) {
		uint32_t ids[16], count = 0;

		for (uint32_t bits = i | 1 << 13; bits > 1; bits >>= 1)
			ids[count++] = bits & 1 ? BURN : HELPER;
		ids[count++] = MAIN;
		ids[count] = 0;
		sample_of(live, 1, 1, 1, ids);
		if (i % 50 == 49)
			assert_int_equal(0, format_live_refresh(live, &why));
	}
	assert_true(format_live_folded(live).nodes > 1000);
	rows = query(live, &(struct format_live_query){ 0 });
	assert_counts(find(&rows, "main chunk"), 0, 0, 5000); /* tables stay exact */
	assert_int_equal(2500, find(&rows, "burn")->count.self);
	format_live_rows_deinit(&rows);
	assert_int_equal(0, format_live_tree(live, &(struct format_live_query){ 0 }, &tree, &why));
	assert_true(tree.count <= 1024);
	for (size_t i = 0; i < tree.count; i++)
		self += tree.nodes[i].row.count.self;
	assert_int_equal(5000, self);
	format_live_tree_deinit(&tree);
	format_live_destroy(live);
}

/* A million functions, each with its own file and line, in bounded memory. */
static void test_million(void **state)
{
	const uint32_t samples =
		test_rounds(test_is_full() || test_is_emulated() ? 1000000 : 200000);
	struct format_live *live = create(0, 0, 0);
	size_t limit = 0;
	char name[32], source[32];
	struct failure why;

	(void)state;
	announce_all(live);
	for (uint32_t i = 0; i < samples; i++) {
		snprintf(name, sizeof(name), "new%u", i);
		snprintf(source, sizeof(source), "@gen%u.lua", i);
		announce(live, 1000 + i, FORMAT_KIND_LUA, name, source, i % 1000);
		SAMPLE(live, 1, 1000 + i, MAIN);
		if (i % 1000 == 999)
			assert_int_equal(0, format_live_refresh(live, &why));
		if (i == 50000)
			limit = mallinfo2().uordblks + mallinfo2().hblkhd;
	}
	/* A sanitizer's allocator is none that mallinfo2() sees. */
	if (limit)
		assert_true(mallinfo2().uordblks + mallinfo2().hblkhd < limit + limit / 4);
	else
		print_message("the memory in use is not to be seen here\n");
	assert_int_equal(samples, format_live_samples(live));
	format_live_destroy(live);
}

static char *write_as(const struct format_live *live, const char *format, size_t *ret_len)
{
	char path[] = "/tmp/ljprof-live-XXXXXX", *text = calloc(1, 1 << 20);
	int fd = mkstemp(path), copy = dup(fd);
	struct failure why;
	ssize_t got;

	assert_int_equal(0, format_live_write(live, format, "title", fd, &why));
	unlink(path);
	got = pread(copy, text, (1 << 20) - 1, 0);
	close(copy);
	assert_true(got > 0);
	*ret_len = (size_t)got;
	return text;
}

static void test_write(void **state)
{
	struct format_live *live = create(0, 0, 0);
	const struct format_report_ops *folded = format_report_find("folded");
	const struct format_report_options options = { 0 };
	struct format_profile *profile;
	char *text, *again = NULL, *from;
	size_t len, again_len;
	struct failure why;
	FILE *file, *out;

	(void)state;
	announce_all(live);
	SAMPLE(live, 4, BURN, MAIN);
	SAMPLE(live, 6, HELPER, BURN, MAIN);
	from = write_as(live, "folded", &len);
	assert_string_equal("main chunk (@app.lua:10);burn (@app.lua:20) 4\n"
			    "main chunk (@app.lua:10);burn (@app.lua:20);helper (@lib/help.lua:30) "
			    "6\n",
			    from);
	text = write_as(live, "sysprof", &len);
	file = fmemopen(text, len, "r");
	assert_int_equal(0, format_profile_read(file, &profile, &why));
	fclose(file);
	out = open_memstream(&again, &again_len);
	assert_int_equal(0, folded->print(profile, &options, out, &why));
	fclose(out);
	assert_string_equal(from, again);
	format_profile_destroy(profile);
	free(text);
	free(again);
	text = write_as(live, "svg", &len);
	assert_non_null(strstr(text, "<svg"));
	assert_false(format_live_can_write("nonsense"));
	assert_int_equal(
		-1, format_live_write(live, "nonsense", NULL, open("/dev/null", O_WRONLY), &why));
	free(text);
	free(from);
	format_live_destroy(live);
}

static void test_traces_and_threads(void **state)
{
	struct format_live *live = create(0, 0, 0);
	struct format_frame frames[] = { { .function = BURN, .line = 13, .trace = 7 },
					 { .function = MAIN, .line = 50 } };
	struct format_sample sample = { .pid = 5,
					.tid = 6,
					.weight = 2,
					.state = FORMAT_STATE_TRACE,
					.trace = 7,
					.trace_function = 20,
					.compiled = FORMAT_COMPILED_EXACT,
					.frames = frames,
					.frame_count = 2 };
	struct format_live_rows rows;
	struct failure why;

	(void)state;
	announce_all(live);
	announce(live, 20, FORMAT_KIND_TRACE, NULL, "@app.lua", 14);
	assert_int_equal(0, format_live_sample(live, &sample, &why));
	SAMPLE(live, 1, BURN, MAIN);
	rows = query(live, &(struct format_live_query){ .view = FORMAT_LIVE_TRACES });
	assert_int_equal(1, rows.count);
	assert_string_equal("trace 7", rows.rows[0].name);
	assert_string_equal("app.lua:14", rows.rows[0].location);
	assert_int_equal(5, rows.rows[0].pid);
	assert_int_equal(2, rows.rows[0].compiled[FORMAT_COMPILED_EXACT]);
	assert_counts(&rows.rows[0], 2, 2, 2);
	format_live_rows_deinit(&rows);
	rows = query(live, &(struct format_live_query){ .view = FORMAT_LIVE_THREADS });
	assert_int_equal(2, rows.count);
	assert_int_equal(6, rows.rows[0].tid);
	assert_counts(&rows.rows[0], 2, 2, 2);
	format_live_rows_deinit(&rows);
	rows = query(live, &(struct format_live_query){ .view = FORMAT_LIVE_FUNCTIONS, .tid = 6 });
	assert_int_equal(2, rows.samples);
	assert_counts(find(&rows, "burn"), 2, 2, 2);
	format_live_rows_deinit(&rows);
	rows = query(live, &(struct format_live_query){ .view = FORMAT_LIVE_LINES });
	assert_string_equal("app.lua:13", rows.rows[0].location);
	format_live_rows_deinit(&rows);
	format_live_destroy(live);
}

/* BURN in a coroutine that began with HELPER, resumed by the main one. */
static void sample_in(struct format_live *live, uint64_t address, uint32_t began, int32_t tid)
{
	const struct format_frame frames[] = { { .function = BURN, .line = 13 },
					       { .function = MAIN, .line = 50 } };
	const struct format_coroutine coroutines[] = {
		{ .address = address, .function = began },
		{ .address = 0x1000, .function = FORMAT_NO_FUNCTION, .is_main = true },
	};
	const struct format_sample sample = { .pid = 5,
					      .tid = tid,
					      .weight = 1,
					      .state = FORMAT_STATE_LFUNC,
					      .trace_function = FORMAT_NO_FUNCTION,
					      .full = true,
					      .frames = frames,
					      .frame_count = 2,
					      .coroutines = coroutines,
					      .coroutine_count = 2 };
	struct failure why;

	assert_int_equal(0, format_live_sample(live, &sample, &why));
}

static const struct format_live_row *find_coroutine(const struct format_live_rows *rows,
						    uint64_t address, const char *name)
{
	for (size_t i = 0; i < rows->count; i++)
		if (rows->rows[i].coroutine == address && strcmp(rows->rows[i].name, name) == 0)
			return &rows->rows[i];
	return NULL;
}

static void test_coroutines(void **state)
{
	const struct format_live_query all = { .view = FORMAT_LIVE_COROUTINES };
	struct format_live *live = create(0, 0, 0);
	struct format_live_rows rows;

	(void)state;
	announce_all(live);
	for (int i = 0; i < 3; i++)
		sample_in(live, 0x2000, HELPER, 6);
	/* The same address again, with another function: another coroutine. */
	sample_in(live, 0x2000, BURN, 6);
	/* What it began with is not known. */
	sample_in(live, 0x3000, FORMAT_NO_FUNCTION, 7);
	rows = query(live, &all);
	assert_int_equal(4, rows.count);
	assert_string_equal("helper", rows.rows[0].name);
	assert_string_equal("lib/help.lua:3", rows.rows[0].location);
	assert_int_equal(5, rows.rows[0].pid);
	assert_counts(find_coroutine(&rows, 0x2000, "helper"), 3, 3, 3);
	assert_counts(find_coroutine(&rows, 0x2000, "burn"), 1, 1, 1);
	assert_counts(find_coroutine(&rows, 0x3000, "?"), 1, 1, 1);
	assert_counts(find_coroutine(&rows, 0x1000, "main"), 0, 0, 5);
	format_live_rows_deinit(&rows);
	rows = query(live, &(struct format_live_query){ .view = FORMAT_LIVE_COROUTINES, .tid = 7 });
	assert_non_null(find_coroutine(&rows, 0x3000, "?"));
	assert_null(find_coroutine(&rows, 0x2000, "helper"));
	format_live_rows_deinit(&rows);
	rows = query(live, &(struct format_live_query){ .view = FORMAT_LIVE_COROUTINES, .pid = 4 });
	assert_int_equal(0, rows.count);
	format_live_rows_deinit(&rows);
	format_live_reset(live);
	rows = query(live, &all);
	assert_int_equal(0, rows.count);
	format_live_rows_deinit(&rows);
	format_live_destroy(live);
}

static void expect_group(const struct format_live_rows *rows, const char *name, uint32_t coroutines,
			 uint64_t self, uint64_t total)
{
	for (size_t i = 0; i < rows->count; i++)
		if (strcmp(rows->rows[i].name, name) == 0) {
			assert_int_equal(coroutines, rows->rows[i].coroutines);
			assert_counts(&rows->rows[i], self, self, total);
			return;
		}
	fail_msg("no group %s", name);
}

/* By the function that they began with. */
static void test_groups_of_coroutines(void **state)
{
	const struct format_live_query groups = { .view = FORMAT_LIVE_COROUTINE_GROUPS };
	struct format_live *live = create(0, 0, 0);
	struct format_live_rows rows;

	(void)state;
	announce_all(live);
	sample_in(live, 0x2000, HELPER, 6);
	sample_in(live, 0x2100, HELPER, 6);
	sample_in(live, 0x2100, HELPER, 6);
	sample_in(live, 0x2000, BURN, 6);
	sample_in(live, 0x3000, FORMAT_NO_FUNCTION, 7);
	rows = query(live, &groups);
	assert_int_equal(4, rows.count);
	assert_string_equal("helper", rows.rows[0].name);
	assert_string_equal("lib/help.lua:3", rows.rows[0].location);
	expect_group(&rows, "helper", 2, 3, 3);
	expect_group(&rows, "burn", 1, 1, 1);
	expect_group(&rows, "?", 1, 1, 1);
	expect_group(&rows, "main", 1, 0, 5);
	format_live_rows_deinit(&rows);
	format_live_destroy(live);
}

/* More coroutines than there is room for: the cold ones fold, and nothing is lost. */
static void test_many_coroutines(void **state)
{
	const struct format_live_query all = { .view = FORMAT_LIVE_COROUTINES };
	enum { MANY = 20000, HOT = 100 };
	struct format_live *live = create(0, 0, 0);
	struct format_live_rows rows;
	uint64_t self = 0;
	struct failure why;

	(void)state;
	announce_all(live);
	for (uint64_t i = 0; i < MANY; i++) {
		sample_in(live, 0x100000 + 64 * i, HELPER, 6);
		if (i % (MANY / HOT) == 0)
			sample_in(live, 0x2000, HELPER, 6);
		if (i % 1000 == 0)
			assert_int_equal(0, format_live_refresh(live, &why));
	}
	rows = query(live, &all);
	assert_in_range(rows.count, 1000, 4096);
	assert_counts(find_coroutine(&rows, 0x2000, "helper"), HOT, HOT, HOT);
	assert_string_equal("[other]", rows.rows[0].name);
	assert_int_equal(0, rows.rows[0].coroutine);
	for (size_t i = 0; i < rows.count; i++)
		self += rows.rows[i].count.self;
	assert_int_equal(MANY + HOT, self);
	format_live_rows_deinit(&rows);
	format_live_destroy(live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions),	cmocka_unit_test(test_recursion),
		cmocka_unit_test(test_calls),		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_window),		cmocka_unit_test(test_names),
		cmocka_unit_test(test_hostile_names),	cmocka_unit_test(test_folding),
		cmocka_unit_test(test_folding_chains),	cmocka_unit_test(test_million),
		cmocka_unit_test(test_write),		cmocka_unit_test(test_traces_and_threads),
		cmocka_unit_test(test_coroutines),	cmocka_unit_test(test_groups_of_coroutines),
		cmocka_unit_test(test_many_coroutines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
