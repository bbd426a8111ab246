/* SPDX-License-Identifier: MIT */
/* Which functions does the interpreter call, for which opcodes and built-ins?
 *
 * LuaJIT's data has the offset in the interpreter of each opcode and of each built-in in assembler.
 * From there, branches lead to all code that can run before the next opcode. The C functions that
 * are called on the way are the same in all known versions.
 *
 * Source: LuaJIT v2.1 src/vm_x64.dasc, vm_x86.dasc, vm_arm64.dasc (extern); lj_bc.h (opcodes);
 * host/buildvm.c (lj_bc_ofs); lj_dispatch.c (lj_dispatch_init).
 */
#include <stdlib.h>
#include <string.h>

#include "luastate/derive/derive.h"
#include "luastate/native/native.h"

enum {
	/* Opcodes with the same numbers in all builds: up to JMP. */
	OPCODES = 89,
	OPCODES_MAX = 128,
	/* C functions that the interpreter calls; it has 60. */
	TARGETS_MAX = 128,
	QUEUE_MAX = 256,
	/* Instructions behind one opcode or built-in; real ones have some hundred. */
	STEPS_MAX = 4096,
	CODE_MAX = 1 << 17,
	/* Bytes of all opcodes; real ones have 6 KiB. */
	OPCODES_MIN = 2048,
	WORDS = TARGETS_MAX / 64,
};

/** A set of called functions. */
struct targets {
	uint64_t words[WORDS];
};

/** The interpreter's code, and what it calls. */
struct interpreter {
	struct native *native;
	const uint8_t *code;
	uint64_t start;
	size_t len;
	uint16_t offsets[OPCODES_MAX + NATIVE_BUILTINS_MAX];
	size_t opcode_count;
	uint32_t targets[TARGETS_MAX]; /* functions */
	size_t target_count;
	uint8_t visited[CODE_MAX / 8];
};

/** What is known of a function that the interpreter calls: it is the only one that is called from
 * all of some opcodes and built-ins, and from none of others. */
struct rule {
	const char *name;
	const char *from, *not_from;
	bool in_place; /* the call is in the opcode's own code, not in code that several share */
};

/* ---- Offsets ---------------------------------------------------------------------------- */

/* Names of the opcodes that the rules use, by number. */
static const char *const opcode_names[OPCODES] = {
	[0] = "ISLT",	[1] = "ISGE",	[2] = "ISLE",	[3] = "ISGT",	 [4] = "ISEQV",
	[5] = "ISNEV",	[6] = "ISEQS",	[7] = "ISNES",	[16] = "ISTYPE", [17] = "ISNUM",
	[21] = "LEN",	[22] = "ADDVN", [23] = "SUBVN", [32] = "ADDVV",	 [33] = "SUBVV",
	[34] = "MULVV", [38] = "CAT",	[46] = "USETV", [47] = "USETS",	 [50] = "UCLO",
	[51] = "FNEW",	[52] = "TNEW",	[53] = "TDUP",	[54] = "GGET",	 [55] = "GSET",
	[56] = "TGETV", [57] = "TGETS", [58] = "TGETB", [59] = "TGETR",	 [60] = "TSETV",
	[61] = "TSETS", [62] = "TSETB", [63] = "TSETM", [64] = "TSETR",	 [65] = "CALLM",
	[66] = "CALL",	[68] = "CALLT", [71] = "VARG",	[77] = "FORI",	 [79] = "FORL",
	[82] = "ITERL", [85] = "LOOP",
};

/* The number of opcodes by LuaJIT's table of their operands, which zeros end; 0: no such table. */
static size_t count_opcodes(const struct luastate_module_part *part)
{
	for (size_t at = 0; at + 2 * (OPCODES_MAX + 1) <= part->len; at += 2) {
		uint16_t words[OPCODES_MAX + 1];
		size_t count = 0;

		memcpy(words, part->bytes + at, 4 * sizeof(words[0]));
		if (!words[0] || words[0] != words[1] || words[2] != words[3])
			continue; /* ISLT and ISGE, ISLE and ISGT */
		memcpy(words, part->bytes + at, sizeof(words));
		while (count <= OPCODES_MAX && words[count])
			count++;
		if (count > OPCODES && count <= OPCODES_MAX && derive_is_operands(words, OPCODES))
			return count;
	}
	return 0;
}

/* Whether words are the offsets of opcodes: they ascend from 0 and end in the interpreter. */
static bool is_offsets(const struct interpreter *interpreter, const uint16_t *words)
{
	if (words[0] != 0 || words[1] == 0 || words[interpreter->opcode_count - 1] < OPCODES_MIN)
		return false;
	for (size_t i = 1; i < interpreter->opcode_count; i++)
		if (words[i] < words[i - 1] || words[i] >= interpreter->len)
			return false;
	return true;
}

/* @return the number of places that look like the table of offsets. */
static size_t search_offsets(struct interpreter *interpreter,
			     const struct luastate_module_part *part)
{
	uint16_t words[OPCODES_MAX + NATIVE_BUILTINS_MAX] = { 0 };
	size_t bytes = 2 * interpreter->opcode_count, found = 0;

	for (size_t at = 0; at + bytes <= part->len; at += 2) {
		/* A zero and no other one, which files have most of. */
		if (part->bytes[at] || part->bytes[at + 1] ||
		    !(part->bytes[at + 2] | part->bytes[at + 3]))
			continue;
		memcpy(words, part->bytes + at, bytes);
		if (!is_offsets(interpreter, words))
			continue;
		bytes = part->len - at < sizeof(words) ? part->len - at : sizeof(words);
		memcpy(interpreter->offsets, part->bytes + at, bytes);
		bytes = 2 * interpreter->opcode_count;
		found++;
	}
	return found;
}

static bool find_offsets(struct interpreter *interpreter)
{
	const struct luastate_module *module = interpreter->native->module;
	size_t found = 0;

	for (size_t i = 0; i < module->part_count && !interpreter->opcode_count; i++)
		interpreter->opcode_count = count_opcodes(&module->parts[i]);
	for (size_t i = 0; i < module->part_count && interpreter->opcode_count; i++)
		found += search_offsets(interpreter, &module->parts[i]);
	return found == 1;
}

/* ---- Calls ------------------------------------------------------------------------------ */

static void add_target(struct interpreter *interpreter, uint64_t address, struct targets *set)
{
	uint32_t function = native_function_from(interpreter->native, address);
	size_t i = 0;

	if (function == NATIVE_NONE)
		return; /* another file's */
	while (i < interpreter->target_count && interpreter->targets[i] != function)
		i++;
	if (i == TARGETS_MAX)
		return;
	if (i == interpreter->target_count)
		interpreter->targets[interpreter->target_count++] = function;
	set->words[i / 64] |= (uint64_t)1 << i % 64;
}

/** A walk through the interpreter's code. */
struct walk {
	struct interpreter *interpreter;
	size_t low, high; /* code to stay in */
	size_t queue[QUEUE_MAX];
	size_t queued;
	unsigned steps;
	struct targets set;
};

static void go_to(struct walk *walk, uint64_t address)
{
	uint64_t into = address - walk->interpreter->start;

	if (into >= walk->low && into < walk->high && walk->queued < QUEUE_MAX)
		walk->queue[walk->queued++] = (size_t)into;
	else if (into >= walk->interpreter->len)
		add_target(walk->interpreter, address, &walk->set);
}

/* Follow code until it ends or was visited. */
static void follow(struct walk *walk, size_t at)
{
	const struct interpreter *interpreter = walk->interpreter;
	struct native_decoder decoder = { 0 };

	while (at >= walk->low && at < walk->high && walk->steps++ < STEPS_MAX) {
		struct native_insn insn;
		uint8_t *visited = &walk->interpreter->visited[at / 8];

		if (*visited >> at % 8 & 1 ||
		    !native_decode(&decoder, interpreter->code + at, interpreter->len - at,
				   interpreter->start + at, &insn))
			return;
		*visited |= (uint8_t)(1 << at % 8);
		if (insn.kind == NATIVE_CALL || insn.kind == NATIVE_JUMP ||
		    insn.kind == NATIVE_BRANCH)
			go_to(walk, insn.target);
		if (insn.kind == NATIVE_JUMP || insn.kind == NATIVE_INDIRECT)
			return;
		at += insn.len;
	}
}

/* The functions that are called from an offset on. */
static struct targets walk_from(struct interpreter *interpreter, size_t start, size_t low,
				size_t high)
{
	struct walk walk = { .interpreter = interpreter, .low = low, .high = high };

	memset(interpreter->visited, 0, sizeof(interpreter->visited));
	walk.queue[walk.queued++] = start;
	while (walk.queued)
		follow(&walk, walk.queue[--walk.queued]);
	return walk.set;
}

/* ---- Rules ------------------------------------------------------------------------------ */

/* Names are from 2.1.0-beta3 to 2.1 of 2026. */
static const struct rule rules[] = {
	{ "lj_meta_comp", "ISLT ISGE ISLE ISGT", "CALL", false },
	{ "lj_meta_equal", "ISEQV ISNEV", "ISEQS ISNES", false },
	{ "lj_meta_equal_cd", "ISEQV ISNEV ISEQS ISNES", "CALL", false },
	{ "lj_meta_istype", "ISTYPE ISNUM", "", false },
	{ "lj_tab_len", "LEN", "", true },
	{ "lj_meta_arith", "ADDVN SUBVN ADDVV SUBVV MULVV", "CALL", false },
	{ "lj_meta_cat", "CAT", "CALL", false },
	{ "lj_gc_barrieruv", "USETV USETS", "", false },
	{ "lj_func_closeuv", "UCLO", "", false },
	{ "lj_func_newL_gc", "FNEW", "", false },
	{ "lj_tab_new", "TNEW", "TDUP", false },
	{ "lj_tab_dup", "TDUP", "TNEW", false },
	{ "lj_gc_step_fixtop", "TNEW TDUP", "", false },
	{ "lj_meta_tget", "GGET TGETV TGETS TGETB", "", false },
	{ "lj_tab_getinth", "TGETR", "", false },
	{ "lj_meta_tset", "GSET TSETV TSETS TSETB", "", false },
	{ "lj_tab_newkey", "TSETS", "", true },
	{ "lj_tab_reasize", "TSETM", "", true },
	{ "lj_tab_setinth", "TSETR", "", false },
	{ "lj_meta_call", "CALLM CALL CALLT", "", false },
	{ "lj_state_growstack", "VARG", "", true },
	{ "lj_meta_for", "FORI", "", false },
	{ "lj_trace_hot", "FORL ITERL LOOP", "", false },
	{ "lj_tab_get", "rawget", "math_abs", false },
	{ "lj_tab_next", "next", "math_abs", false },
	{ "lj_gc_step", "string_char string_sub string_reverse string_lower string_upper",
	  "math_abs", false },
	{ "lj_str_new", "string_char string_sub", "string_reverse", false },
	{ "lj_buf_putstr_reverse", "string_reverse", "string_lower string_upper", false },
	{ "lj_buf_putstr_lower", "string_lower", "string_reverse string_upper", false },
	{ "lj_buf_putstr_upper", "string_upper", "string_reverse string_lower", false },
	{ "lj_buf_tostr", "string_reverse string_lower string_upper", "string_char", false },
};

/* The offset of an opcode or built-in, and where the next one begins. @return false if there is
 * none of that name. */
static bool find_begin(const struct interpreter *interpreter, const char *name, size_t len,
		       size_t *ret_start, size_t *ret_end)
{
	const struct native *native = interpreter->native;

	for (size_t i = 0; i < OPCODES; i++) {
		if (!opcode_names[i] || strlen(opcode_names[i]) != len ||
		    memcmp(opcode_names[i], name, len) != 0)
			continue;
		*ret_start = interpreter->offsets[i];
		*ret_end = interpreter->offsets[i + 1];
		return true;
	}
	for (size_t i = 0; i < native->builtin_count; i++) {
		const struct native_builtin *builtin = &native->builtins[i];

		if (strlen(builtin->name) != len || memcmp(builtin->name, name, len) != 0)
			continue;
		*ret_start = interpreter->offsets[interpreter->opcode_count + builtin->index];
		*ret_end = interpreter->len;
		return *ret_start > interpreter->offsets[interpreter->opcode_count - 1];
	}
	return false;
}

/* The functions that are called from all of some opcodes and built-ins, or from any of them.
 * @return false if one of them does not exist. */
static bool find_called(struct interpreter *interpreter, const struct rule *rule, const char *names,
			bool from_all, struct targets *ret_set)
{
	struct targets set = { { 0 } };

	if (from_all)
		memset(&set, 0xff, sizeof(set));
	for (const char *name = names; *name;) {
		size_t len = strcspn(name, " "), start, end;
		struct targets called;

		if (!find_begin(interpreter, name, len, &start, &end))
			return false;
		called = rule->in_place ? walk_from(interpreter, start, start, end)
					: walk_from(interpreter, start, 0, interpreter->len);
		for (unsigned i = 0; i < WORDS; i++)
			set.words[i] = from_all ? set.words[i] & called.words[i]
						: set.words[i] | called.words[i];
		name += len + (name[len] == ' ');
	}
	*ret_set = set;
	return true;
}

/* @return the function, or NATIVE_NONE. */
static uint32_t find_by_rule(struct interpreter *interpreter, const struct rule *rule)
{
	struct targets from, not_from;
	uint32_t found = NATIVE_NONE;

	if (!find_called(interpreter, rule, rule->from, true, &from) ||
	    !find_called(interpreter, rule, rule->not_from, false, &not_from))
		return NATIVE_NONE;
	for (size_t i = 0; i < interpreter->target_count; i++) {
		if (!(from.words[i / 64] & ~not_from.words[i / 64] & (uint64_t)1 << i % 64))
			continue;
		if (found != NATIVE_NONE)
			return NATIVE_NONE;
		found = interpreter->targets[i];
	}
	return found;
}

/* ---- What named functions call ---------------------------------------------------------- */

/* The only function that another one calls, or NATIVE_NONE. */
static uint32_t only_callee(const struct native *native, uint32_t caller)
{
	const struct native_function *function = &native->functions[caller];
	uint32_t found = NATIVE_NONE;

	for (uint32_t i = 0; i < function->edge_count; i++) {
		const struct native_edge *edge = &native->edges[function->first_edge + i];

		if (edge->kind == NATIVE_EDGE_ADDRESS)
			continue;
		if (edge->target == NATIVE_NONE || edge->into ||
		    (found != NATIVE_NONE && found != edge->target))
			return NATIVE_NONE;
		found = edge->target;
	}
	return found;
}

/* The collector's steps. lj_gc_step_fixtop() only calls lj_gc_step(), which only calls
 * gc_onestep(). Source: LuaJIT v2.1 src/lj_gc.c. */
static void take_collector(struct native *native, uint32_t fixtop, uint32_t step)
{
	uint32_t onestep;

	if (fixtop == NATIVE_NONE || step == NATIVE_NONE || only_callee(native, fixtop) != step)
		return;
	onestep = only_callee(native, step);
	if (onestep != NATIVE_NONE)
		native_claim(native, onestep, "gc_onestep", LUASTATE_NATIVE_BY_CALLS);
}

static uint32_t function_by(const uint32_t *found, const char *name)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (strcmp(rules[i].name, name) == 0)
			return found[i];
	return NATIVE_NONE;
}

static void take_interpreter(struct interpreter *interpreter)
{
	uint32_t found[sizeof(rules) / sizeof(rules[0])];
	struct native *native = interpreter->native;

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		found[i] = find_by_rule(interpreter, &rules[i]);
		if (found[i] != NATIVE_NONE)
			native_claim(native, found[i], rules[i].name, LUASTATE_NATIVE_BY_CALLS);
	}
	take_collector(native, function_by(found, "lj_gc_step_fixtop"),
		       function_by(found, "lj_gc_step"));
	native_take_free_functions(native, function_by(found, "lj_func_closeuv"));
}

void native_take_calls(struct native *native)
{
	struct interpreter *interpreter = calloc(1, sizeof(*interpreter));
	const struct native_function *code = &native->functions[native->interpreter];
	size_t len;

	if (!interpreter)
		return;
	interpreter->native = native;
	interpreter->start = code->start;
	interpreter->code = native_bytes(native, code->start, &len);
	interpreter->len = code->end - code->start < len ? (size_t)(code->end - code->start) : len;
	if (interpreter->code && interpreter->len <= CODE_MAX && find_offsets(interpreter))
		take_interpreter(interpreter);
	free(interpreter);
}
