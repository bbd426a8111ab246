/* SPDX-License-Identifier: MIT */
/*
 * Decoding of memory of any content. The first byte chooses how the input is taken:
 *
 *   'L'  a saved image ("LJIMAGE1"), decoded as ljreport's replay does
 *   'M'  registers, C frames and memory at a fixed address, given to the walk
 *   'P'  changes of a small VM that is valid, given to the planner, the C frame search and the walk
 *
 * Anything else is no input.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "attach/image.h"
#include "daemon/daemon.h"
#include "scenes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define MUST(condition)           \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

/* ---- A file with an interpreter ----------------------------------------------------------- */

enum {
	FILE_PAGE = 4096,
	FILE_HDR = 0xc0,    /* .eh_frame_hdr */
	FILE_FRAME = 0x100, /* .eh_frame */
};

static struct scene scenes[SCENE_COUNT];
/* The bytes of each scene as they were, to undo changes. */
static uint8_t kept[SCENE_COUNT][SCENE_BYTES];
static uint8_t *code; /* of all scenes */
static char interpreter_line[128];

static void put(uint8_t *file, size_t *at, const void *bytes, size_t len)
{
	memcpy(file + *at, bytes, len);
	*at += len;
}

static void put_i32(uint8_t *file, size_t *at, int64_t value)
{
	int32_t bytes = (int32_t)value;

	put(file, at, &bytes, sizeof(bytes));
}

/* An unwind entry for [start, start+len) of the file, with its program. */
static void put_entry(uint8_t *file, size_t *at, size_t start, size_t len, const char *program,
		      size_t program_len)
{
	put_i32(file, at, 13 + (int64_t)program_len);
	put_i32(file, at, (int64_t)(*at - FILE_FRAME));
	put_i32(file, at, (int64_t)start - (int64_t)*at);
	put_i32(file, at, (int64_t)len);
	put(file, at, "", 1);
	put(file, at, program, program_len);
}

static void put_unwind_table(uint8_t *file, size_t host, size_t vm_code)
{
	/* CFA = rsp+8, return address at CFA-8. */
	static const char common[] = "\1zR\0\1\x78\x10\1\x1b\x0c\7\10\x90\1";
	static const char header[] = "\1\x1b\xff\xff";
	/* CFA = rsp+80; rbp, rbx, r15, r14 below the return address. */
	static const char vm_rule[] = "\x0e\x50\x86\2\x83\3\x8f\4\x8e\5";
	size_t at = FILE_HDR;

	put(file, &at, header, 4);
	put_i32(file, &at, FILE_FRAME - (FILE_HDR + 4));
	at = FILE_FRAME;
	put_i32(file, &at, 4 + sizeof(common) - 1);
	put_i32(file, &at, 0);
	put(file, &at, common, sizeof(common) - 1);
	put_entry(file, &at, vm_code, FAKE_CODE_BYTES, vm_rule, sizeof(vm_rule) - 1);
	put_entry(file, &at, host, FAKE_HOST_LEAF, "\7\x10", 2); /* the thread's first function */
	put_entry(file, &at, host + FAKE_HOST_LEAF, FAKE_HOST_BYTES - FAKE_HOST_LEAF, "\0", 1);
	put_i32(file, &at, 0);
}

static void put_headers(uint8_t *file, size_t size)
{
	const Elf64_Ehdr header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
						 ELFDATA2LSB, EV_CURRENT },
				    .e_type = ET_DYN,
				    .e_machine = EM_X86_64,
				    .e_version = EV_CURRENT,
				    .e_phoff = sizeof(Elf64_Ehdr),
				    .e_ehsize = sizeof(Elf64_Ehdr),
				    .e_phentsize = sizeof(Elf64_Phdr),
				    .e_phnum = 2 };
	const Elf64_Phdr segments[2] = {
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_filesz = size,
		  .p_memsz = size,
		  .p_align = FILE_PAGE },
		{ .p_type = PT_GNU_EH_FRAME,
		  .p_flags = PF_R,
		  .p_offset = FILE_HDR,
		  .p_vaddr = FILE_HDR,
		  .p_filesz = 8,
		  .p_memsz = 8 },
	};
	size_t at = 0;

	put(file, &at, &header, sizeof(header));
	put(file, &at, segments, sizeof(segments));
}

/* The file of which the scenes' code is the end, in memory; and the line that maps it. */
static void make_file(const struct fake_vm *vm)
{
	uint64_t start = vm->host & ~(uint64_t)(FILE_PAGE - 1);
	size_t size = (size_t)(FAKE_END - start);
	uint8_t *file = calloc(1, size);
	int fd = memfd_create("interpreter", MFD_CLOEXEC);
	struct stat status;

	MUST(file && fd >= 0 && vm->host - start > FILE_FRAME + 256);
	put_headers(file, size);
	put_unwind_table(file, (size_t)(vm->host - start), (size_t)(vm->code - start));
	memcpy(file + (vm->host - start), vm->bytes + (vm->host - FAKE_BASE),
	       (size_t)(FAKE_END - vm->host));
	MUST(write(fd, file, size) == (ssize_t)size && fstat(fd, &status) == 0);
	snprintf(interpreter_line, sizeof(interpreter_line),
		 "%lx-%lx r-xp 00000000 %02x:%02x %lu /proc/self/fd/%d\n", (unsigned long)start,
		 (unsigned long)FAKE_END, major(status.st_dev), minor(status.st_dev),
		 (unsigned long)status.st_ino, fd);
	free(file);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	for (unsigned i = 0; i < SCENE_COUNT; i++) {
		const struct fake_vm *vm;

		scene_init(&scenes[i], i);
		vm = scenes[i].vm;
		memcpy(kept[i], vm->bytes + (scene_start(vm) - FAKE_BASE), SCENE_BYTES);
	}
	code = scenes[0].vm->bytes + (scenes[0].vm->code - FAKE_BASE);
	make_file(scenes[0].vm);
	return 0;
}

static struct luastate *open_state(void)
{
	struct luastate *state = luastate_create();
	struct failure why;

	MUST(state &&
	     luastate_add_interpreter(state, scenes[0].vm->code, FAKE_END, code, &why) == 0);
	return state;
}

/* ---- Images ----------------------------------------------------------------------------- */

/*
 * An image names files, and decoding it opens them. Which ones shall not be up to an input: without
 * slashes, and without the escapes that could make some, no name leads anywhere. In their place the
 * one file that has an interpreter is mapped, above all else.
 */
static void tame_maps(struct attach_image *image)
{
	size_t line = strlen(interpreter_line);
	struct failure why;

	for (size_t i = 0; i < image->note_count; i++) {
		struct image_note *note = &image->notes[i];
		uint8_t *text;

		if (strcmp(note->name, "maps") != 0)
			continue;
		text = realloc(note->bytes, note->len + 1 + line);
		MUST(text);
		note->bytes = text;
		for (size_t k = 0; k < note->len; k++)
			if (text[k] == '/' || text[k] == '\\')
				text[k] = '.';
		if (note->len && text[note->len - 1] != '\n')
			text[note->len++] = '\n';
		memcpy(text + note->len, interpreter_line, line);
		note->len += line;
		return;
	}
	attach_image_set_note(image, "maps", interpreter_line, line, &why);
}

static void check_sample(const struct daemon_replay *replay, const struct format_sample *sample)
{
	const struct format_functions *functions = daemon_replay_functions(replay);

	for (uint32_t i = 0; i < sample->frame_count; i++)
		MUST(sample->frames[i].function < format_functions_count(functions));
}

static void decode(struct daemon_replay *replay, struct attach_image *image)
{
	struct format_sample sample;
	enum daemon_outcome outcome = DAEMON_OUTCOME_COUNT;
	struct failure why;

	if (daemon_replay_image(replay, image, &sample, &outcome, &why) != 0)
		return;
	MUST(outcome < DAEMON_OUTCOME_COUNT);
	check_sample(replay, &sample);
}

static void fuzz_image(const uint8_t *data, size_t size)
{
	struct daemon_replay *replay;
	struct attach_image *image, *broken;
	struct failure why;

	if (attach_image_load(data, size, &image, &why) != 0)
		return;
	tame_maps(image);
	MUST(daemon_replay_create(&replay, &why) == 0);
	decode(replay, image);
	/* Another image without maps between, and the same one over what is known by now. */
	broken = attach_image_create();
	MUST(broken);
	attach_image_set_note(broken, "origin", "0123456789abcdef", 16, &why);
	attach_image_set_note(broken, "maps", "no maps", 7, &why);
	if (size % 4 == 0)
		decode(replay, broken);
	decode(replay, image);
	attach_image_destroy(broken);
	attach_image_destroy(image);
	daemon_replay_destroy(replay);
}

/* ---- Walks ------------------------------------------------------------------------------ */

/* A thread that is stopped, as the walk sees it. */
struct thread {
	const struct attach_reader *memory;
	struct attach_registers regs;
	struct luastate_cframe cframes[SCENE_CFRAMES_MAX];
	size_t cframe_count;
};

static void walk(struct luastate *state, const struct thread *thread)
{
	static struct luastate_chain chain;
	const struct luastate_memory memory = { .stopped = thread->memory, .any = thread->memory };

	luastate_begin_sample(state, thread->memory);
	luastate_walk(state, &memory, &thread->regs, thread->cframes, thread->cframe_count, &chain);
	MUST(chain.count <= LUASTATE_FRAMES_MAX);
	for (size_t i = 0; i < chain.count; i++)
		MUST(chain.frames[i].function && chain.frames[i].owner < thread->cframe_count);
}

/* What the C frame search makes of the leaf and of each frame. */
static void find_cframes(struct luastate *state, const struct thread *thread)
{
	const struct luastate_memory memory = { .stopped = thread->memory, .any = thread->memory };
	struct luastate_cframe found;
	struct failure why;

	luastate_find_cframe(state, &memory, attach_pc(&thread->regs), attach_sp(&thread->regs),
			     thread->regs.r[ATTACH_REG_RBX], &thread->regs, &found, &why);
	luastate_find_trace_cframe(state, &memory, attach_sp(&thread->regs), &found, &why);
	for (size_t i = 0; i < thread->cframe_count; i++)
		luastate_find_cframe(state, &memory, scenes[0].vm->code + FAKE_AT_RETURN,
				     thread->cframes[i].address, 0, NULL, &found, &why);
}

/* ---- Memory ----------------------------------------------------------------------------- */

struct block {
	uint64_t start;
	const uint8_t *bytes;
	size_t len;
};

static int read_block(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		      struct failure *why)
{
	const struct block *block = self;
	uint64_t skip = address.value - block->start;

	if (len == 0)
		return 0;
	if (address.value < block->start || skip >= block->len)
		return failure_set(why, FAILURE_FAULT, 0, 0, address.value, "read the input");
	if (len > block->len - skip)
		return failure_set(why, FAILURE_FAULT, 0, 0, block->start + block->len,
				   "read the input");
	memcpy(ret_bytes, block->bytes + skip, len);
	return 0;
}

/* Bytes of the input, zeros behind its end. */
struct input {
	const uint8_t *bytes;
	size_t len;
};

static void take(struct input *input, void *ret, size_t len)
{
	size_t there = len < input->len ? len : input->len;

	memset(ret, 0, len);
	memcpy(ret, input->bytes, there);
	input->bytes += there;
	input->len -= there;
}

static uint64_t take_number(struct input *input, size_t len)
{
	uint64_t value = 0;

	take(input, &value, len);
	return value;
}

static void fuzz_memory(struct input input)
{
	const struct fake_vm *vm = scenes[0].vm;
	struct luastate *state = open_state();
	struct thread thread = { 0 };
	struct block block;
	const struct attach_reader reader = { .read = read_block, .self = &block };
	struct failure why;

	thread.memory = &reader;
	thread.cframe_count = take_number(&input, 1) % (SCENE_CFRAMES_MAX + 1);
	take(&input, &thread.regs, sizeof(thread.regs));
	for (size_t i = 0; i < thread.cframe_count; i++) {
		struct luastate_cframe *cframe = &thread.cframes[i];
		uint64_t flags = take_number(&input, 1);

		cframe->leaf = flags & 1 && i == 0;
		cframe->compiled = flags & 2;
		cframe->address = take_number(&input, 8);
		cframe->L = take_number(&input, 8);
		cframe->pc = take_number(&input, 8);
	}
	block = (struct block){ .start = scene_start(vm), .bytes = input.bytes, .len = input.len };
	luastate_vm_of(state, &reader, vm->main, &why);
	luastate_find_in_range(state, &reader, block.start, block.start + block.len, &why);
	luastate_find_on_stack(state, &reader, attach_sp(&thread.regs), 0, &why);
	find_cframes(state, &thread);
	walk(state, &thread);
	luastate_set_thorough(state, true);
	walk(state, &thread);
	luastate_destroy(state);
}

/* ---- Changes ---------------------------------------------------------------------------- */

static void fill(struct attach_image *image, const struct attach_reader *memory)
{
	for (; image->planned < image->range_count; image->planned++) {
		struct image_range *range = &image->ranges[image->planned];
		uint8_t *to = image->arena + range->offset;
		struct failure why;

		range->len = range->wanted;
		if (attach_read(memory, remote_addr_make(range->start), to, range->wanted, &why) !=
		    0)
			range->len = why.address > range->start ? why.address - range->start : 0;
		if (range->len && range->len < range->wanted)
			attach_read(memory, remote_addr_make(range->start), to, range->len, &why);
	}
}

static void plan(const struct luastate *state, struct luastate_prediction *prediction,
		 const struct thread *thread)
{
	struct luastate_plan_context context = { .state = state, .prediction = prediction };
	struct attach_image *image = attach_image_create();
	bool more = true;

	MUST(image);
	*attach_image_registers(image) = thread->regs;
	for (unsigned round = 0; more; round++) {
		MUST(round < 4);
		more = luastate_plan(&context, image, round);
		fill(image, thread->memory);
	}
	luastate_plan_after(&context, image);
	fill(image, thread->memory);
	attach_image_destroy(image);
}

/* A value that means something in the scene, or any. */
static uint64_t take_value(struct input *input, const struct fake_vm *vm)
{
	uint64_t kind = take_number(input, 1), start = scene_start(vm);

	switch (kind & 7) {
	case 0:
		return take_number(input, 8);
	case 1:
		return start + take_number(input, 2) % (SCENE_BYTES + 16);
	case 2:
		return vm->code + take_number(input, 2) % FAKE_CODE_BYTES;
	case 3:
		return fake_tag(-(int32_t)(kind >> 3), start + take_number(input, 2) % SCENE_BYTES);
	case 4:
		return fake_get_u64(vm, start + take_number(input, 2) % (SCENE_BYTES - 8));
	case 5:
		return (uint64_t)(int64_t)(int8_t)take_number(input, 1);
	case 6:
		return take_number(input, 2);
	default:
		return take_number(input, 4);
	}
}

static void change(struct input *input, const struct scene *scene, struct thread *thread)
{
	struct fake_vm *vm = scene->vm;

	while (input->len) {
		uint64_t at = take_number(input, 2), value;

		if (at >= 0xff00) { /* a register */
			thread->regs.r[at % ATTACH_REG_COUNT] = take_value(input, vm);
			continue;
		}
		at = scene_start(vm) + at % (SCENE_BYTES - 8);
		value = take_value(input, vm);
		switch (input->len ? take_number(input, 1) & 3 : 3) {
		case 0:
			fake_put_u8(vm, at, (uint8_t)value);
			break;
		case 1:
			fake_put_u32(vm, at & ~(uint64_t)3, (uint32_t)value);
			break;
		default:
			fake_put_u64(vm, at & ~(uint64_t)7, value);
			break;
		}
	}
}

static void fuzz_changes(struct input input)
{
	unsigned number = take_number(&input, 1) % SCENE_COUNT;
	const struct scene *scene = &scenes[number];
	struct fake_vm *vm = scene->vm;
	struct luastate_prediction prediction = { 0 };
	struct luastate *state = open_state();
	struct thread thread = { .memory = &vm->reader,
				 .regs = scene->regs,
				 .cframe_count = scene->cframe_count };
	struct failure why;

	memcpy(thread.cframes, scene->cframes, sizeof(thread.cframes));
	MUST(luastate_vm_of(state, &vm->reader, vm->main, &why));
	walk(state, &thread);
	luastate_learn(state, &vm->reader, thread.cframes, thread.cframe_count, vm->native_end,
		       false, vm->sp, &prediction);
	change(&input, scene, &thread);
	plan(state, &prediction, &thread);
	find_cframes(state, &thread);
	walk(state, &thread);
	fake_put(vm, scene_start(vm), kept[number], SCENE_BYTES);
	luastate_destroy(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] == 'L')
		fuzz_image(data, size);
	else if (data[0] == 'M')
		fuzz_memory((struct input){ .bytes = data + 1, .len = size - 1 });
	else if (data[0] == 'P')
		fuzz_changes((struct input){ .bytes = data + 1, .len = size - 1 });
	return 0;
}
