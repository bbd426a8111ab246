/* SPDX-License-Identifier: MIT */
/* What does a stop read of functions?
 *
 * Closures on the stack may be garbage soon after the thread continues, so the stop reads them. A
 * known prototype is not read in the stop. Its identifying bytes are read afterwards; if they are
 * unchanged, they were so during the stop. If they have changed, the program makes and drops code,
 * and for a while the stop reads prototypes too (state_is_strict()).
 */
#include "luastate/plan/plan_internal.h"

#include "luastate/function/proto.h"
#include "luastate/layout/object.h"

enum {
	/* Slots to search for functions; deeper frames are read after the stop. */
	PLAN_SLOTS = 2048,
	/* Bytes that the stop reads of a new prototype, and of its chunk name's text. */
	PLAN_PROTO_BYTES = 8192,
	PLAN_NAME_BYTES = 128,
	/* A frame of this stop is compared with this number of frames of the last stop. */
	PLAN_EXPECTED = 8,
};

/* ---- Frames ----------------------------------------------------------------------------- */

/** The copied bytes of a Lua stack, from its start on. */
struct slots {
	const uint8_t *bytes;
	uint64_t start;
	size_t len;
};

static struct slots look_at_slots(struct attach_image *image, uint64_t start)
{
	struct slots slots = { .start = start };

	slots.bytes = attach_image_peek(image, remote_addr_make(start), PLAN_STACK_MAX, &slots.len);
	return slots;
}

/* Read slots. The stack may be in two ranges, if the first range was predicted too short. */
static bool get_slots(const struct slots *slots, struct attach_image *image, uint64_t address,
		      uint8_t *ret_bytes, size_t len)
{
	if (address - slots->start > slots->len || slots->len - (address - slots->start) < len)
		return plan_get(image, address, ret_bytes, len);
	memcpy(ret_bytes, slots->bytes + (address - slots->start), len);
	return true;
}

/** A possible frame: a function and a link below a base. */
struct plan_frame {
	uint64_t function, link;
};

/* Whether a slot holds a function, and the next one a possible frame link: a bytecode address, or a
 * distance with a type. Values of a program look different, except zero. */
static bool read_frame(const struct luastate_layout *layout, const struct slots *slots,
		       struct attach_image *image, uint64_t base, struct plan_frame *ret_frame)
{
	size_t size = 2 * (size_t)layout->ref_size;
	uint8_t bytes[16];
	uint64_t slot;

	if (!get_slots(slots, image, base - size, bytes, size))
		return false;
	slot = state_u64(bytes, 0);
	ret_frame->function = state_object(layout, slot);
	ret_frame->link = state_ref(layout, bytes, layout->ref_size);
	if (layout->gc64
		    ? state_tag(layout, slot) != layout->tag_func
		    : !state_is_pointer(ret_frame->function) ||
			      (ret_frame->function | ret_frame->link) >= LUASTATE_LOW_MEMORY_END)
		return false;
	return (ret_frame->link & 3) == 0 ? state_is_pointer(ret_frame->link)
					  : ret_frame->link < PLAN_STACK_MAX;
}

/* Recursion repeats frames. @return the hash slot for a new frame, NULL if the frame was noted
 * before. */
static uint16_t *find_location(struct luastate_plan_progress *found, const struct plan_frame *frame)
{
	const size_t count = sizeof(found->slots) / sizeof(found->slots[0]);
	uint64_t key = frame->function ^ frame->link << 20;
	size_t at = (size_t)(hash_spread(key) >> 40) % count;

	for (; found->slots[at]; at = (at + 1) % count) {
		const struct luastate_plan_frame *known = &found->frames[found->slots[at] - 1];

		if (known->function == frame->function && known->link == frame->link)
			return NULL;
	}
	return &found->slots[at];
}

/* A closure most likely has the prototype that it had before. */
static uint64_t guess_proto(const struct luastate *state, uint64_t function)
{
	const struct state_closure *closure = &state->closures[state_closure_slot(function)];

	return closure->function == function ? closure->proto : 0;
}

/* Whether the call before a return address need not be read: it is in a known prototype. */
static bool is_call_known(const struct luastate *state, uint64_t link)
{
	return (link & 3) != 0 || (!state_is_strict(state) && state_find_call(state, link - 4));
}

void plan_want_identity(const struct luastate_layout *layout, struct attach_image *image,
			const struct state_proto *known)
{
	plan_want_once(image, known->address, known->address + (uint64_t)layout->GCproto_sizeof);
	plan_want_once(image, known->chunkname, known->chunkname + (uint64_t)layout->GCstr_sizeof);
	plan_want_once(image, known->lineinfo, known->lineinfo + state_compared_debug(known));
}

void plan_want_frame(const struct luastate *state, struct attach_image *image,
		     const struct luastate_plan_frame *frame)
{
	const struct state_proto *known =
		state_is_strict(state) ? state_find_proto(state, frame->proto) : NULL;

	plan_want(image, frame->function, frame->function + (uint64_t)frame->layout->GCfunc_header);
	if (!is_call_known(state, frame->link))
		plan_want(image, frame->link - 4, frame->link);
	if (known)
		plan_want_identity(frame->layout, image, known);
}

/* Whether the last stop had this frame; the first round then asked for its memory. Most frames
 * recur in the same order, except the innermost ones. */
static bool is_expected(const struct luastate_prediction *prediction,
			struct luastate_plan_progress *found, const struct plan_frame *frame)
{
	unsigned end = found->expected + PLAN_EXPECTED;

	for (unsigned i = found->expected; i < end && i < prediction->frame_count; i++) {
		const struct luastate_plan_frame *known = &prediction->frames[i];

		if (known->function != frame->function || known->link != frame->link)
			continue;
		found->expected = i + 1;
		return true;
	}
	return false;
}

/* @return whether memory had to be asked for. */
static bool add_frame(struct luastate_plan_context *context, const struct luastate_layout *layout,
		      const struct plan_frame *frame, struct attach_image *image)
{
	struct luastate_plan_progress *found = &context->progress;
	const struct luastate *state = context->state;
	uint8_t bytes[STATE_OBJECT_MAX];
	struct luastate_plan_frame *added;
	uint16_t *location;

	if (found->frame_count == LUASTATE_PLAN_FRAMES || frame->function % 8 != 0)
		return false;
	location = find_location(found, frame);
	if (!location)
		return false;
	added = &found->frames[found->frame_count];
	*added = (struct luastate_plan_frame){ .layout = layout,
					       .function = frame->function,
					       .link = frame->link };
	*location = (uint16_t)++found->frame_count;
	if (is_expected(context->prediction, found, frame))
		return false;
	if (plan_get(image, frame->function, bytes, (size_t)layout->GCfunc_header) &&
	    (is_call_known(state, frame->link) || plan_get(image, frame->link - 4, bytes, 4)))
		return false;
	added->proto = guess_proto(state, frame->function);
	plan_want_frame(state, image, added);
	return true;
}

/* Innermost frames first, because deep frames live longer. */
static bool plan_stack_functions(struct luastate_plan_context *context, struct attach_image *image,
				 const struct luastate_plan_thread *thread)
{
	const struct luastate_layout *layout = thread->layout;
	struct plan_stack stack;
	struct plan_frame frame;
	struct slots slots;
	uint64_t lowest, steps = 0;
	bool more = false;

	if (!plan_read_header(image, thread, &stack))
		return false;
	lowest = stack.start + 2 * (uint64_t)layout->ref_size;
	slots = look_at_slots(image, stack.start);
	for (uint64_t base = stack.used_end; base >= lowest && steps < PLAN_SLOTS;
	     base -= 8, steps++) {
		if (!read_frame(layout, &slots, image, base, &frame) ||
		    !add_frame(context, layout, &frame, image))
			continue;
		slots = look_at_slots(image, stack.start); /* the request may move memory */
		more = true;
	}
	return more;
}

bool plan_functions(struct luastate_plan_context *context, struct attach_image *image)
{
	struct luastate_plan_progress *found = &context->progress;
	bool more = false;

	found->frame_count = 0;
	for (unsigned i = 0; i < found->thread_count; i++)
		more |= plan_stack_functions(context, image, &found->threads[i]);
	return more;
}

/* ---- Prototypes ------------------------------------------------------------------------- */

/* The prototype in a copied function, 0 if there is none. */
static uint64_t proto_of(struct attach_image *image, const struct luastate_plan_frame *frame)
{
	const struct luastate_layout *layout = frame->layout;
	uint8_t bytes[STATE_OBJECT_MAX];
	uint64_t proto;

	if (!plan_get(image, frame->function, bytes, (size_t)layout->GCfunc_header) ||
	    bytes[layout->GCobj_gct] != state_gct(layout->tag_func) ||
	    bytes[layout->GCfunc_ffid] != 0)
		return 0;
	proto = state_ref(layout, bytes, layout->GCfunc_pc) - (uint64_t)layout->GCproto_sizeof;
	return state_is_pointer(proto) ? proto : 0;
}

/* Whether all of the header is copied: another range may cover only its first bytes. */
static bool has_header(struct attach_image *image, const struct luastate_layout *layout,
		       uint64_t proto)
{
	uint8_t header[STATE_OBJECT_MAX];

	return plan_get(image, proto, header, (size_t)layout->GCproto_sizeof);
}

bool plan_protos(struct luastate_plan_context *context, struct attach_image *image)
{
	struct luastate_plan_progress *found = &context->progress;
	bool strict = state_is_strict(context->state), more = false;

	for (unsigned i = 0; i < found->frame_count; i++) {
		const struct luastate_layout *layout = found->frames[i].layout;
		uint64_t proto = proto_of(image, &found->frames[i]);
		const struct state_proto *known;

		known = proto ? state_find_proto(context->state, proto) : NULL;
		found->frames[i].proto = proto;
		found->known[i] = known;
		if (!proto || (known && !strict) || has_header(image, layout, proto))
			continue;
		if (known)
			plan_want_identity(layout, image, known);
		else
			plan_want(image, proto, proto + (uint64_t)layout->GCproto_sizeof);
		more = true;
	}
	return more;
}

static void want_proto_parts(const struct luastate_layout *layout, struct attach_image *image,
			     uint64_t proto)
{
	size_t header = (size_t)layout->GCproto_sizeof;
	uint8_t bytes[STATE_OBJECT_MAX];
	uint64_t size, name;

	if (!plan_get(image, proto, bytes, header) ||
	    bytes[layout->GCobj_gct] != state_gct(layout->tag_proto))
		return;
	size = state_u32(bytes, layout->GCproto_sizept);
	name = state_ref(layout, bytes, layout->GCproto_chunkname);
	if (size > header)
		plan_want(image, proto + header,
			  proto + (size < PLAN_PROTO_BYTES ? size : PLAN_PROTO_BYTES));
	if (state_is_pointer(name))
		plan_want(image, name, name + (uint64_t)layout->GCstr_sizeof + PLAN_NAME_BYTES);
}

/* Whether a frame's prototype counts as the known one, as far as the stop can say. */
static bool is_known(const struct luastate_plan_context *context, struct attach_image *image,
		     unsigned index)
{
	const struct luastate_plan_frame *frame = &context->progress.frames[index];

	if (!state_is_strict(context->state))
		return context->progress.known[index] != NULL;
	return state_is_same_proto(context->state, frame->layout, attach_image_reader(image),
				   frame->proto);
}

/* Ask for the rest of the prototypes that are unknown or changed. */
bool plan_proto_parts(struct luastate_plan_context *context, struct attach_image *image)
{
	const struct luastate_plan_progress *found = &context->progress;
	bool more = false;

	for (unsigned i = 0; i < found->frame_count; i++) {
		uint64_t proto = found->frames[i].proto;

		if (!proto || is_known(context, image, i))
			continue;
		want_proto_parts(found->frames[i].layout, image, proto);
		more = true;
	}
	return more;
}

/* Whether the image proves that a known prototype is unchanged. BPF copies include what earlier
 * copies lacked, which is most often the header alone. */
static bool has_identity(struct attach_image *image, const struct luastate_layout *layout,
			 const struct state_proto *known)
{
	size_t len = state_compared_debug(known), name;

	if (!has_header(image, layout, known->address))
		return false;
	attach_image_peek(image, remote_addr_make(known->chunkname), (size_t)layout->GCstr_sizeof,
			  &name);
	if (name == (size_t)layout->GCstr_sizeof && len > 0)
		attach_image_peek(image, remote_addr_make(known->lineinfo), len, &len);
	return name == (size_t)layout->GCstr_sizeof && len == state_compared_debug(known);
}

void plan_ask_again(const struct luastate_plan_context *context, struct attach_image *stopped,
		    struct attach_image *after)
{
	const struct luastate_plan_progress *found = &context->progress;

	for (unsigned i = 0; i < found->frame_count; i++) {
		uint64_t proto = found->frames[i].proto;
		const struct state_proto *known = state_find_proto(context->state, proto);

		if (known && !has_identity(stopped, found->frames[i].layout, known))
			plan_want_identity(found->frames[i].layout, after, known);
	}
}
