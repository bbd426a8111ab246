/* SPDX-License-Identifier: MIT */
/*
 * Which names does bytecode give to the functions that it creates?
 *
 * FNEW puts a new function in a slot. The following instructions move it to where the program's
 * text says:
 *
 *   local f = function()          slot 3, in which the variable f lives from here on
 *   function M.f()                FNEW 3; TSETS 3 0 "f", and the variable M lives in slot 0
 *   t = { a = { f = function()    TNEW 1; TNEW 2; FNEW 3; TSETS 3 2 "f"; TSETS 2 1 "a"; GSET 1 "t"
 *
 * The code here follows the value from instruction to instruction, as if it ran: over jumps that
 * are always taken, and jumps that a true value takes. It finds a table's name the same way or, for
 * a table that the code reads from somewhere, in the instruction that reads it. A function that a
 * straight line of code does not define has no name.
 */
#include "luastate/definition/definition.h"

#include <stdio.h>

#include "luastate/definition/definition_source.h"
#include "luastate/function/bytecode.h"
#include "luastate/function/proto.h"
#include "luastate/layout/object.h"

enum {
	/* Maximum nesting of tables, and of tables passed to setmetatable(). */
	DEPTH_MAX = 16,
	SLOTS = 256,
};

/** A name that grows to the left. */
struct path {
	char text[STATE_NAME_MAX];
	size_t begin;
	size_t last_len; /* length of the last component, with its dot */
	bool is_rooted;	 /* it begins with a variable or global */
	bool is_full;
};

/* ---- The name --------------------------------------------------------------------------- */

static void init_path(struct path *path)
{
	*path = (struct path){ .begin = STATE_NAME_MAX - 1 };
}

/* If the text does not fit, it and all later ones are left out. */
static void prepend(struct path *path, const char *text, size_t len)
{
	path->is_full |= len > path->begin;
	if (path->is_full)
		return;
	path->begin -= len;
	memcpy(path->text + path->begin, text, len);
}

static bool is_empty(const struct path *path)
{
	return path->begin == STATE_NAME_MAX - 1;
}

static bool begins_with(const struct path *path, const char *text)
{
	return strncmp(path->text + path->begin, text, strlen(text)) == 0;
}

static void add_component(struct path *path, const char *text)
{
	bool first = is_empty(path);

	prepend(path, text, strlen(text));
	if (first)
		path->last_len = strlen(text);
}

static void add_key(struct path *path, const char *key)
{
	char text[STATE_NAME_MAX + 8];
	bool plain = !(*key >= '0' && *key <= '9');

	for (const char *c = key; *c; c++)
		plain &= *c == '_' || (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
			 (*c >= 'A' && *c <= 'Z') || (unsigned char)*c >= 128;
	snprintf(text, sizeof(text), plain ? ".%s" : "[\"%s\"]", key);
	add_component(path, text);
}

static void add_index(struct path *path, int32_t index)
{
	char text[32];

	snprintf(text, sizeof(text), "[%d]", index);
	add_component(path, text);
}

/* Add a variable or global, which ends the path. */
static bool add_root(struct path *path, const char *name)
{
	if (!name || !*name || !state_is_plain(name))
		return false;
	if (strcmp(name, "_G") == 0 && begins_with(path, "."))
		return true;
	path->is_rooted = !path->is_full && strlen(name) <= path->begin;
	prepend(path, name, strlen(name));
	return true;
}

/* ---- Following a value ------------------------------------------------------------------ */

/** The slots that hold the value. */
struct slots {
	bool holds[SLOTS];
	unsigned count;
};

static void set_slot(struct slots *slots, uint32_t slot, bool holds)
{
	slots->count += holds - slots->holds[slot];
	slots->holds[slot] = holds;
}

static void kill_slots(struct slots *slots, uint32_t first, uint32_t last)
{
	for (uint32_t slot = first; slot <= last && slot < SLOTS && slots->count; slot++)
		set_slot(slots, slot, false);
}

static bool holds_from(const struct slots *slots, uint32_t first)
{
	for (uint32_t slot = first; slot < SLOTS; slot++)
		if (slots->holds[slot])
			return true;
	return false;
}

static enum definition_fate follow(struct definition_source *source, uint32_t at, uint32_t slot,
				   struct path *path, unsigned depth);

/** Where a table created in an expression is used next. */
struct rest {
	uint32_t at, slot;
};

/* Find the instruction that wrote a slot that @use reads. 0 if uncertain: if a jump from before
 * it leads to after it, another instruction may have written the slot. */
static uint32_t find_writer(struct definition_source *source, uint32_t use, uint32_t slot)
{
	uint32_t first_jump = UINT32_MAX;

	for (uint32_t i = use; i > 1 && source->steps_left; source_spend(source, 1)) {
		uint32_t jump = source_first_jump(source, i);

		first_jump = jump < first_jump ? jump : first_jump;
		if (bc_writes(source_instruction(source, --i), slot))
			return first_jump < i ? 0 : i;
	}
	return 0;
}

/* Add the text of a key that is in a slot, for TGETV or TSETV. The 257th and later constants are
 * such keys. */
static bool add_key_in_slot(struct definition_source *source, uint32_t use, uint32_t slot,
			    struct path *path)
{
	uint32_t writer = find_writer(source, use, slot), ins;
	char text[STATE_NAME_MAX];

	if (!writer || source_variable_at(source, use, slot))
		return false;
	ins = source_instruction(source, writer);
	if (bc_op(ins) == BC_KSHORT) {
		add_index(path, (int16_t)bc_d(ins));
		return true;
	}
	if (bc_op(ins) != BC_KSTR || !source_text(source, bc_d(ins), text, sizeof(text)))
		return false;
	add_key(path, text);
	return true;
}

/* Add the key of TGETx or TSETx. */
static bool add_key_of(struct definition_source *source, uint32_t index, uint32_t ins,
		       struct path *path)
{
	uint32_t op = bc_op(ins);
	char text[STATE_NAME_MAX];

	if (op == BC_TGETB || op == BC_TSETB) {
		add_index(path, (int32_t)bc_c(ins));
		return true;
	}
	if (op == BC_TGETV || op == BC_TSETV)
		return add_key_in_slot(source, index, bc_c(ins), path);
	if ((op != BC_TGETS && op != BC_TSETS) ||
	    !source_text(source, bc_c(ins), text, sizeof(text)))
		return false;
	add_key(path, text);
	return true;
}

/*
 * Prepend the name of a table that an instruction uses. If the table has no name, the path stays as
 * it is.
 * @param rest Where a table created for this is used next.
 */
static void add_table(struct definition_source *source, uint32_t use, uint32_t slot,
		      struct rest rest, struct path *path, unsigned depth)
{
	const struct definition_variable *variable = source_variable_at(source, use, slot);
	char text[STATE_NAME_MAX];
	uint32_t writer, ins;

	if (variable) {
		add_root(path, variable->name);
		return;
	}
	writer = depth < DEPTH_MAX ? find_writer(source, use, slot) : 0;
	if (!writer)
		return;
	ins = source_instruction(source, writer);
	switch (bc_op(ins)) {
	case BC_GGET:
		if (source_text(source, bc_d(ins), text, sizeof(text)))
			add_root(path, text);
		break;
	case BC_UGET:
		add_root(path, source_upvalue_name(source, bc_d(ins)));
		break;
	case BC_MOV:
		add_table(source, writer, bc_d(ins), rest, path, depth + 1);
		break;
	case BC_TGETS:
	case BC_TGETB:
	case BC_TGETV:
		if (add_key_of(source, writer, ins, path))
			add_table(source, writer, bc_b(ins), rest, path, depth + 1);
		break;
	case BC_TNEW:
	case BC_TDUP:
		if (rest.at)
			follow(source, rest.at, rest.slot, path, depth + 1);
		break;
	default:
		break;
	}
}

/* Whether the called function is setmetatable. */
static bool calls_setmetatable(struct definition_source *source, uint32_t index, uint32_t slot)
{
	struct path path;

	init_path(&path);
	add_table(source, index, slot, (struct rest){ 0 }, &path, 0);
	return strcmp(path.text + path.begin, "setmetatable") == 0;
}

/** The value at an instruction. */
struct position {
	struct definition_source *source;
	uint32_t index, ins;
	struct slots *slots; /* slots that hold the value before the instruction */
	struct path *path;
	unsigned depth;
};

/*
 * Follow a value that is an argument of a call. setmetatable() returns its first argument. Its
 * second argument, a table created for this call, counts as the first: a program finds fields of
 * its __index in the first table.
 * @return whether the value is the call's result.
 */
static bool pass(const struct position *at)
{
	struct definition_source *source = at->source;
	uint32_t ins = at->ins, first = bc_a(ins) + (source->layout->gc64 ? 2 : 1);
	bool tail = bc_op(ins) == BC_CALLT;
	/* After a tail call, the result is returned. */
	struct rest rest = { tail ? 0 : at->index + 1, bc_a(ins) };

	if ((bc_op(ins) != BC_CALL && !tail) || first + 1 >= SLOTS || is_empty(at->path) ||
	    (tail ? bc_d(ins) : bc_c(ins)) != 3 ||
	    !calls_setmetatable(source, at->index, bc_a(ins)))
		return false;
	if (at->slots->holds[first])
		return true;
	if (!at->slots->holds[first + 1])
		return false;
	if (begins_with(at->path, ".__index.") || begins_with(at->path, ".__index["))
		at->path->begin += strlen(".__index");
	add_table(source, at->index, first, rest, at->path, at->depth + 1);
	return false;
}

/* Whether the value is one of the returned ones. */
static bool is_returned(uint32_t ins, const struct slots *slots)
{
	uint32_t op = bc_op(ins), a = bc_a(ins), count = bc_d(ins);

	if (op == BC_RET0)
		return false;
	if (op == BC_RET1)
		return slots->holds[a];
	for (uint32_t slot = a; slot < SLOTS && (op == BC_RETM || slot + 1 < a + count); slot++)
		if (slots->holds[slot])
			return true;
	return false;
}

/* Find the variable, among those in the slots, that gets the value at an instruction. */
static bool add_variable(struct definition_source *source, uint32_t index,
			 const struct slots *slots, struct path *path)
{
	source_spend(source, SLOTS / 8);
	for (uint32_t slot = 0; slot < SLOTS; slot++) {
		const struct definition_variable *variable =
			slots->holds[slot] ? source_variable_at(source, index, slot) : NULL;

		if (variable && add_root(path, variable->name))
			return true;
	}
	return false;
}

/** The effect of an instruction on the value. */
struct step {
	bool is_over;
	enum definition_fate fate;
	uint32_t next; /* index of the next instruction */
};

static void end_step(struct step *step, enum definition_fate fate)
{
	step->is_over = true;
	step->fate = fate;
}

/* Follows only forward jumps. */
static void jump(const struct definition_source *source, uint32_t index, uint32_t ins,
		 struct step *step)
{
	int64_t target = bc_target(index, ins);

	if (target <= index || target >= source->sizebc)
		end_step(step, DEFINITION_NAMELESS);
	else
		step->next = (uint32_t)target;
}

/* Follow a comparison and the jump after it. The value, a function or table, is true. */
static void test(const struct position *at, struct step *step)
{
	const struct definition_source *source = at->source;
	uint32_t ins = at->ins, op = bc_op(ins), behind = at->index + 1;
	bool holds = op >= BC_ISTC && bc_d(ins) < SLOTS && at->slots->holds[bc_d(ins)];

	step->next = behind + 1;
	if (holds && op == BC_ISTC)
		set_slot(at->slots, bc_a(ins), true);
	if (holds && (op == BC_IST || op == BC_ISTC) && behind < source->sizebc &&
	    bc_op(source_instruction(source, behind)) == BC_JMP)
		jump(source, behind, source_instruction(source, behind), step);
}

/* Follow a value that is stored. @return whether this instruction stores it. */
static bool store(const struct position *at, struct step *step)
{
	struct definition_source *source = at->source;
	struct path *path = at->path;
	uint32_t ins = at->ins, op = bc_op(ins), a = bc_a(ins);
	char text[STATE_NAME_MAX];
	bool named = false;

	if (op == BC_USETV && bc_d(ins) < SLOTS && at->slots->holds[bc_d(ins)]) {
		named = add_root(path, source_upvalue_name(source, a));
	} else if (op == BC_GSET && at->slots->holds[a]) {
		named = source_text(source, bc_d(ins), text, sizeof(text)) && add_root(path, text);
	} else if ((op == BC_TSETS || op == BC_TSETV || op == BC_TSETB) && at->slots->holds[a]) {
		named = add_key_of(source, at->index, ins, path);
		if (named)
			add_table(source, at->index, bc_b(ins),
				  (struct rest){ at->index + 1, bc_b(ins) }, path, at->depth + 1);
	} else {
		return false;
	}
	end_step(step, named || !is_empty(path) ? DEFINITION_NAMED : DEFINITION_NAMELESS);
	return true;
}

static void call(const struct position *at, struct step *step)
{
	uint32_t op = bc_op(at->ins), a = bc_a(at->ins);
	bool is_result = holds_from(at->slots, a) && pass(at);

	source_spend(at->source, SLOTS / 8);
	if (op == BC_CALLT || op == BC_CALLMT) {
		end_step(step, is_result ? DEFINITION_RETURNED : DEFINITION_NAMELESS);
		return;
	}
	kill_slots(at->slots, a, SLOTS - 1);
	if (is_result)
		set_slot(at->slots, a, true);
}

/* Other instructions only write slots, or nothing. */
static void overwrite(uint32_t ins, struct slots *slots)
{
	uint32_t op = bc_op(ins);

	if (op == BC_CAT)
		kill_slots(slots, bc_b(ins), bc_c(ins));
	if (op == BC_KNIL)
		kill_slots(slots, bc_a(ins), bc_d(ins));
	else if (bc_writes_from(op))
		kill_slots(slots, bc_a(ins), SLOTS - 1);
	else if (bc_writes_slot(op))
		set_slot(slots, bc_a(ins), false);
}

static struct step take_step(struct definition_source *source, uint32_t index, struct slots *slots,
			     struct path *path, unsigned depth)
{
	uint32_t ins = source_instruction(source, index), op = bc_op(ins);
	const struct position at = { source, index, ins, slots, path, depth };
	struct step step = { .next = index + 1 };

	if (op <= BC_ISF) {
		test(&at, &step);
	} else if (op == BC_MOV && bc_d(ins) < SLOTS) {
		bool holds = slots->holds[bc_d(ins)];
		const struct definition_variable *variable =
			holds ? source_variable_at(source, index + 1, bc_a(ins)) : NULL;

		set_slot(slots, bc_a(ins), holds);
		if (variable && add_root(path, variable->name))
			end_step(&step, DEFINITION_NAMED);
	} else if (store(&at, &step)) {
		return step;
	} else if (op >= BC_CALLM && op <= BC_CALLT) {
		call(&at, &step);
	} else if (op >= BC_RETM && op <= BC_RET1) {
		end_step(&step,
			 is_returned(ins, slots) ? DEFINITION_RETURNED : DEFINITION_NAMELESS);
	} else if (op == BC_JMP || op == BC_UCLO) {
		jump(source, index, ins, &step);
	} else if (!bc_is_understood(op) || op == BC_ISNEXT) {
		end_step(&step, DEFINITION_NAMELESS);
	} else {
		overwrite(ins, slots);
	}
	return step;
}

/* Follow a value from the first instruction after it came into a slot. */
static enum definition_fate follow(struct definition_source *source, uint32_t at, uint32_t slot,
				   struct path *path, unsigned depth)
{
	struct slots slots = { 0 };
	struct step step = { .next = at };

	set_slot(&slots, slot, true);
	if (add_variable(source, at, &slots, path))
		return DEFINITION_NAMED;
	while (slots.count && step.next < source->sizebc && source->steps_left) {
		uint32_t index = step.next;

		source_spend(source, 1);
		if (index != at && source_begins_at(source, index) &&
		    add_variable(source, index, &slots, path))
			return DEFINITION_NAMED;
		step = take_step(source, index, &slots, path, depth);
		if (step.is_over)
			return step.fate;
	}
	return DEFINITION_NAMELESS;
}

/* ---- Definitions ------------------------------------------------------------------------ */

bool definition_has_self(const struct luastate_layout *layout, const struct attach_reader *reader,
			 uint64_t proto)
{
	uint8_t header[STATE_OBJECT_MAX];
	char name[sizeof("self")];
	struct failure why;
	uint64_t varinfo;

	if (state_read_object(layout, reader, proto, state_gct(layout->tag_proto), header,
			      (size_t)layout->GCproto_sizeof, &why) != 0 ||
	    header[layout->GCproto_numparams] == 0)
		return false;
	varinfo = state_ref(layout, header, layout->GCproto_varinfo);
	return state_is_pointer(varinfo) &&
	       state_read(reader, varinfo, name, sizeof(name), &why) == 0 &&
	       memcmp(name, "self", sizeof(name)) == 0;
}

static const char *finish(const struct definition_source *source, struct path *path, uint64_t child)
{
	size_t last = STATE_NAME_MAX - 1 - path->last_len;

	if (path->is_rooted && path->last_len && path->text[last] == '.' &&
	    definition_has_self(source->layout, source->reader, child))
		path->text[last] = ':';
	/* Skip the dot before the first key, if no variable precedes it. */
	return path->text + path->begin + (begins_with(path, ".") && path->text[path->begin + 1]);
}

static void define(struct definition_source *source, uint32_t index, definition_visitor *visit,
		   void *context)
{
	uint32_t ins = source_instruction(source, index);
	struct definition definition = { .child = source_constant(source, bc_d(ins)) };
	struct path path;

	if (!state_is_pointer(definition.child))
		return;
	init_path(&path);
	definition.fate = follow(source, index + 1, bc_a(ins), &path, 0);
	if (!is_empty(&path)) {
		definition.fate = DEFINITION_NAMED;
		definition.name = finish(source, &path, definition.child);
	} else if (definition.fate == DEFINITION_NAMED) {
		definition.fate = DEFINITION_NAMELESS;
	}
	visit(context, &definition);
}

int definition_visit(const struct luastate_layout *layout, const struct attach_reader *reader,
		     uint64_t address, uint64_t only, definition_visitor *visit, void *context,
		     struct failure *why)
{
	struct definition_source source = { .layout = layout,
					    .reader = reader,
					    .address = address };
	int ret = source_open(&source, why);

	for (uint32_t i = 1; ret == 0 && i < source.sizebc && source.steps_left; i++)
		if (bc_op(source_instruction(&source, i)) == BC_FNEW &&
		    (!only ||
		     source_constant(&source, bc_d(source_instruction(&source, i))) == only))
			define(&source, i, visit, context);
	source_close(&source);
	return ret;
}

bool definition_refers(const struct luastate_layout *layout, const struct attach_reader *reader,
		       uint64_t address, const uint8_t *header, uint64_t child,
		       unsigned *reads_left)
{
	enum { AT_A_TIME = 512 };
	uint64_t k = state_ref(layout, header, layout->GCproto_k);
	uint32_t left = state_u32(header, layout->GCproto_sizekgc);
	size_t size = (size_t)layout->ref_size;
	uint8_t bytes[AT_A_TIME * 8];
	struct failure why;

	if (left > BC_CONSTANTS_MAX || !state_proto_is_consistent(layout, address, header))
		return false;
	while (left && *reads_left) {
		uint32_t count = left < AT_A_TIME ? left : AT_A_TIME;

		k -= count * size;
		--*reads_left;
		if (state_read(reader, k, bytes, count * size, &why) != 0)
			return false;
		for (uint32_t i = 0; i < count; i++)
			if (state_ref(layout, bytes, (int32_t)(i * size)) == child)
				return true;
		left -= count;
	}
	return false;
}
