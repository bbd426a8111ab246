/* SPDX-License-Identifier: MIT */
#include "mutate.h"

/* ---- Decisions -------------------------------------------------------------------------- */

struct choices choices_from_seed(uint64_t seed)
{
	/* Source: the finaliser of SplitMix64, so that neighbours differ in all bits. */
	seed += UINT64_C(0x9e3779b97f4a7c15);
	seed = (seed ^ seed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	seed = (seed ^ seed >> 27) * UINT64_C(0x94d049bb133111eb);
	seed ^= seed >> 31;
	return (struct choices){ .random = seed ? seed : 1 };
}

/* xorshift64*. */
static uint64_t next_random(struct choices *choices)
{
	choices->random ^= choices->random >> 12;
	choices->random ^= choices->random << 25;
	choices->random ^= choices->random >> 27;
	return choices->random * UINT64_C(0x2545f4914f6cdd1d);
}

uint64_t choose(struct choices *choices, uint64_t limit)
{
	size_t width = limit == 0 ? 8 : limit <= 256 ? 1 : limit <= 65536 ? 2 : 4;
	uint64_t value = 0;

	if (choices->len) {
		width = width < choices->len ? width : choices->len;
		memcpy(&value, choices->bytes, width);
		choices->bytes += width;
		choices->len -= width;
	} else if (choices->random) {
		value = next_random(choices) >> (limit ? 16 : 0);
	}
	return limit ? value % limit : value;
}

/* ---- Writing ---------------------------------------------------------------------------- */

void mutation_begin(struct mutation *mutation, struct stage *stage)
{
	mutation->stage = stage;
	mutation->regs = stage->regs;
	memcpy(mutation->vm_frames, stage->vm_frames, sizeof(mutation->vm_frames));
	mutation->word_count = mutation->hide_count = 0;
}

void mutation_end(struct mutation *mutation)
{
	struct stage *stage = mutation->stage;

	while (mutation->word_count) {
		size_t i = --mutation->word_count;

		memcpy(stage->vm->bytes + mutation->words[i].offset, mutation->words[i].bytes,
		       mutation->words[i].len);
	}
	while (mutation->hide_count) {
		size_t i = --mutation->hide_count;

		memcpy(stage->vm->known + mutation->hides[i].offset, mutation->hides[i].known,
		       mutation->hides[i].len);
	}
	stage->regs = mutation->regs;
	memcpy(stage->vm_frames, mutation->vm_frames, sizeof(stage->vm_frames));
}

static void put(struct mutation *mutation, uint64_t address, uint64_t value, size_t width)
{
	struct fake_vm *vm = mutation->stage->vm;
	size_t at = fake_offset(vm, address);

	if (mutation->word_count == sizeof(mutation->words) / sizeof(mutation->words[0]) ||
	    at == FAKE_BYTES || width > fake_left(vm, at))
		return;
	mutation->words[mutation->word_count].offset = at;
	mutation->words[mutation->word_count].len = width;
	memcpy(mutation->words[mutation->word_count++].bytes, vm->bytes + at, width);
	memcpy(vm->bytes + at, &value, width);
}

static void hide(struct mutation *mutation, uint64_t address, uint64_t len)
{
	struct fake_vm *vm = mutation->stage->vm;
	size_t at = fake_offset(vm, address);

	if (mutation->hide_count == MUTATE_HIDES || at == FAKE_BYTES)
		return;
	len = len < MUTATE_HIDE_MAX ? len : MUTATE_HIDE_MAX;
	len = len < fake_left(vm, at) ? len : fake_left(vm, at);
	mutation->hides[mutation->hide_count].offset = at;
	mutation->hides[mutation->hide_count].len = len;
	memcpy(mutation->hides[mutation->hide_count++].known, vm->known + at, len);
	memset(vm->known + at, 0, len);
}

/* ---- Values ----------------------------------------------------------------------------- */

static const struct fake_block *choose_block(const struct stage *stage, struct choices *choices)
{
	return &stage->vm->blocks[choose(choices, stage->vm->block_count)];
}

static const struct fake_block *block_of(const struct stage *stage, uint64_t address)
{
	for (size_t i = 0; i < stage->vm->block_count; i++) {
		const struct fake_block *block = &stage->vm->blocks[i];

		if (address - block->address < block->len)
			return block;
	}
	return &stage->vm->blocks[0];
}

static const struct stage_location *choose_link(const struct stage *stage, struct choices *choices)
{
	return &stage->links[choose(choices, stage->link_count)];
}

static uint64_t get(const struct stage *stage, const struct stage_location *location)
{
	return location->width == 4 ? fake_get_u32(stage->vm, location->address)
				    : fake_get_u64(stage->vm, location->address);
}

/* Where a link leads. */
static uint64_t target_of(const struct stage *stage, const struct stage_location *link)
{
	uint64_t value = get(stage, link);

	return link->is_tagged ? state_object(stage->vm->layout, value) : value;
}

/* An address to which the link at @p from may lead. */
static uint64_t choose_target(const struct stage *stage, struct choices *choices,
			      const struct stage_location *from)
{
	const struct fake_block *block;

	switch (choose(choices, 12)) {
	case 0:
	case 1: /* the object that holds it: a circle */
		return block_of(stage, from->address)->address;
	case 2:
		return from->address;
	case 3:
	case 4:
	case 5: /* where another one leads */
		return target_of(stage, choose_link(stage, choices));
	case 6: /* into an object */
		block = choose_block(stage, choices);
		return block->address + choose(choices, block->len);
	case 7: /* beside what it was */
		return target_of(stage, from) + choose(choices, 128) - 64;
	case 8: /* behind an object; freed */
		block = choose_block(stage, choices);
		return block->address + block->len + choose(choices, 16);
	case 9:
		return fake_address(stage->vm, stage->vm->next) - 8 * choose(choices, 512);
	case 10:
		return choose(choices, 8192);
	default:
		return choose(choices, 0);
	}
}

/* Sizes and counts at which something ends. */
static uint64_t choose_number(struct choices *choices, uint64_t old)
{
	static const uint64_t bounds[] = { 0,
					   1,
					   2,
					   3,
					   0x7f,
					   0x80,
					   0xff,
					   0x100,
					   0x7fff,
					   0x8000,
					   0xffff,
					   0x10000,
					   0x3ffffff,
					   0x4000001,
					   0x7fffffff,
					   0x80000000,
					   0xffffffff,
					   0x7fffffffffff,
					   0x7fffffffffffffff,
					   0xffffffffffffffff };

	switch (choose(choices, 5)) {
	case 0:
		return old + 1;
	case 1:
		return old - 1;
	case 2:
		return choose(choices, 256);
	case 3:
		return old ^ (uint64_t)1 << choose(choices, 64);
	default:
		return bounds[choose(choices, sizeof(bounds) / sizeof(bounds[0]))];
	}
}

/* ---- Changes ---------------------------------------------------------------------------- */

static void change_link(struct mutation *mutation, struct choices *choices)
{
	const struct stage *stage = mutation->stage;
	const struct stage_location *link = choose_link(stage, choices);
	uint64_t target = choose_target(stage, choices, link), old = get(stage, link);

	if (link->is_tagged)
		target = (old - state_object(stage->vm->layout, old)) |
			 state_object(stage->vm->layout, target);
	put(mutation, link->address, target, link->width);
}

static void swap_links(struct mutation *mutation, struct choices *choices)
{
	const struct stage *stage = mutation->stage;
	const struct stage_location *one = choose_link(stage, choices);
	const struct stage_location *other = choose_link(stage, choices);
	uint64_t value = get(stage, one);

	put(mutation, one->address, get(stage, other), one->width);
	put(mutation, other->address, value, other->width);
}

static void change_member(struct mutation *mutation, struct choices *choices)
{
	static const size_t widths[] = { 1, 2, 4, 4, 8 };
	const struct stage *stage = mutation->stage;
	const struct stage_location *member = &stage->members[choose(choices, stage->member_count)];
	size_t width = member->width ? member->width : widths[choose(choices, 5)];
	size_t at = fake_offset(stage->vm, member->address);
	uint64_t old = 0;

	if (at == FAKE_BYTES || width > fake_left(stage->vm, at))
		return;
	memcpy(&old, stage->vm->bytes + at, width);
	put(mutation, member->address, choose_number(choices, old), width);
}

/* A type becomes that of another object, or any. */
static void change_type(struct mutation *mutation, struct choices *choices)
{
	const struct stage *stage = mutation->stage;
	const struct fake_block *block = choose_block(stage, choices);
	const struct fake_block *other = choose_block(stage, choices);
	uint64_t gct = (uint64_t)stage->vm->layout->GCobj_gct;

	if (!block->is_struct || !other->is_struct)
		return;
	put(mutation, block->address + gct,
	    choose(choices, 2) ? *fake_at(stage->vm, other->address + gct, 1) : choose(choices, 16),
	    1);
}

/* A slot of a Lua stack: above all links of frames, whose low bits are their types. */
static void change_slot(struct mutation *mutation, struct choices *choices)
{
	const struct stage *stage = mutation->stage;
	const struct fake_vm *vm = stage->vm;
	const struct fake_block *stack = stage->stacks[choose(choices, stage->stack_count)];
	const struct fake_block *from = stage->stacks[choose(choices, stage->stack_count)];
	/* The lower part is in use. */
	uint64_t at = stack->address + 8 * choose(choices, stack->len / 16);
	uint64_t link = at + (vm->layout->gc64 ? 0 : 4), old = fake_get_ref(vm, link);
	size_t width = (size_t)vm->layout->ref_size;

	switch (choose(choices, 5)) {
	case 0:
		put(mutation, link, (old & ~(uint64_t)7) | choose(choices, 8), width);
		break;
	case 1:
		put(mutation, link, 8 * choose(choices, 64) + choose(choices, 8), width);
		break;
	case 2:
		put(mutation, link, old + 8 * choose(choices, 32) - 128, width);
		break;
	case 3:
		put(mutation, at,
		    fake_get_u64(vm, from->address + 8 * choose(choices, from->len / 16)), 8);
		break;
	default:
		put(mutation, link, choose_number(choices, old), width);
		break;
	}
}

static void change_native(struct mutation *mutation, struct choices *choices)
{
	const struct stage *stage = mutation->stage;
	uint64_t words = (stage->vm->native_end - stage->vm->native_start) / 8;
	const struct stage_location location = {
		.address = stage->vm->native_end - 8 - 8 * choose(choices, words), .width = 8
	};

	put(mutation, location.address,
	    choose(choices, 4) ? choose_target(stage, choices, &location)
			       : stage->vm->native_start + choose(choices, 8 * words),
	    8);
}

static void hide_some(struct mutation *mutation, struct choices *choices)
{
	const struct fake_block *block = choose_block(mutation->stage, choices);
	uint64_t at = block->address + choose(choices, block->len);

	switch (choose(choices, 3)) {
	case 0:
		hide(mutation, block->address, block->len);
		break;
	case 1:
		hide(mutation, at, 1 + choose(choices, 16));
		break;
	default:
		hide(mutation, at & ~(uint64_t)(MUTATE_HIDE_MAX - 1), MUTATE_HIDE_MAX);
		break;
	}
}

static void change_thread(struct mutation *mutation, struct choices *choices)
{
	struct stage *stage = mutation->stage;
	struct luastate_vm_frame *vm_frame =
		&stage->vm_frames[choose(choices, stage->vm_frame_count)];
	const struct stage_location *link = choose_link(stage, choices);
	uint64_t value = choose_target(stage, choices, link);

	switch (choose(choices, 6)) {
	case 0:
		vm_frame->address = value;
		break;
	case 1:
		vm_frame->L = value;
		break;
	case 2:
		vm_frame->compiled = !vm_frame->compiled;
		break;
	case 3:
		vm_frame->frame.r[choose(choices, ATTACH_REG_COUNT)] = value;
		break;
	case 4:
		stage->regs.r[ATTACH_REG_PC] = stage->vm->code + choose(choices, FAKE_CODE_BYTES);
		break;
	default:
		stage->regs.r[choose(choices, ATTACH_REG_COUNT)] = value;
		break;
	}
}

static void flip_bit(struct mutation *mutation, struct choices *choices)
{
	const struct fake_block *block = choose_block(mutation->stage, choices);
	uint64_t at = block->address + choose(choices, block->len);

	put(mutation, at, *fake_at(mutation->stage->vm, at, 1) ^ 1u << choose(choices, 8), 1);
}

/* Bytes of one object in another. */
static void copy_word(struct mutation *mutation, struct choices *choices)
{
	const struct fake_block *to = choose_block(mutation->stage, choices);
	const struct fake_block *from = choose_block(mutation->stage, choices);
	uint64_t at = to->address + (choose(choices, to->len) & ~(uint64_t)3);
	uint64_t source = from->address + (choose(choices, from->len) & ~(uint64_t)3);

	if (source + 4 <= from->address + from->len)
		put(mutation, at, fake_get_u32(mutation->stage->vm, source), 4);
}

void mutation_add(struct mutation *mutation, struct choices *choices)
{
	static void (*const kinds[])(struct mutation *, struct choices *) = {
		change_link,   change_link,   change_link,   change_link, swap_links,
		change_member, change_member, change_slot,   change_slot, change_slot,
		change_native, hide_some,     change_thread, change_type, change_thread,
		flip_bit,      copy_word,
	};

	kinds[choose(choices, sizeof(kinds) / sizeof(kinds[0]))](mutation, choices);
}
