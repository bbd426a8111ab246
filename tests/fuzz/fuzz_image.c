/* SPDX-License-Identifier: MIT */
/*
 * Decoding of memory of any content. The first byte chooses how the input is taken:
 *
 *   'L'  a saved image ("LJIMAGE1"), decoded as ljreport's replay does
 *   'M'  registers, C frames and memory at a fixed address, given to the walk
 *   'P'  changes of a small VM that is valid, given to the planner, the C frame search and the walk
 *
 * Before it a digit may choose the layout of the VM; without one it is mainline's with GC64.
 * Anything else is no input.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "attach/image/image_internal.h"
#include "daemon/replay.h"
#include "daemon/stats.h"
#include "scenes.h"
#include "walkers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* ---- A file with an interpreter --------------------------------------------------------- */

enum {
	FILE_PAGE = 4096,
	FILE_HDR = 0xc0,    /* .eh_frame_hdr */
	FILE_FRAME = 0x100, /* .eh_frame */
};

static struct scene scenes[SCENE_ROWS][SCENE_COUNT];
/* The bytes of each scene as they were, to undo changes. */
static uint8_t kept[SCENE_ROWS][SCENE_COUNT][SCENE_BYTES];
static char interpreter_lines[SCENE_ROWS][128];

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

static void put_unwind_table(uint8_t *file, size_t host, size_t vm_code, int32_t frame)
{
	/* CFA = rsp+8, return address at CFA-8. */
	static const char common[] = "\1zR\0\1\x78\x10\1\x1b\x0c\7\10\x90\1";
	static const char header[] = "\1\x1b\xff\xff";
	/* CFA = rsp+frame; rbp, rbx, r15, r14 below the return address. */
	char vm_rule[] = "\x0e\0\x86\2\x83\3\x8f\4\x8e\5";
	size_t at = FILE_HDR;

	vm_rule[1] = (char)frame;
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
static void make_file(const struct fake_vm *vm, char *ret_line, size_t line_size)
{
	uint64_t start = vm->host & ~(uint64_t)(FILE_PAGE - 1);
	size_t size = (size_t)(FAKE_END - start);
	uint8_t *file = calloc(1, size);
	int fd = memfd_create("interpreter", MFD_CLOEXEC);
	struct stat status;

	MUST(file && fd >= 0 && vm->host - start > FILE_FRAME + 256);
	put_headers(file, size);
	put_unwind_table(file, (size_t)(vm->host - start), (size_t)(vm->code - start),
			 vm->layout->cframe_size);
	memcpy(file + (vm->host - start), fake_at(vm, vm->host, (size_t)(FAKE_END - vm->host)),
	       (size_t)(FAKE_END - vm->host));
	MUST(write(fd, file, size) == (ssize_t)size && fstat(fd, &status) == 0);
	snprintf(ret_line, line_size, "%lx-%lx r-xp 00000000 %02x:%02x %lu /proc/self/fd/%d\n",
		 (unsigned long)start, (unsigned long)FAKE_END, major(status.st_dev),
		 minor(status.st_dev), (unsigned long)status.st_ino, fd);
	free(file);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	for (unsigned row = 0; row < SCENE_ROWS; row++) {
		for (unsigned i = 0; i < SCENE_COUNT; i++) {
			const struct fake_vm *vm;

			scene_init(&scenes[row][i], row, i);
			vm = scenes[row][i].vm;
			memcpy(kept[row][i], vm->bytes + scene_start(vm), SCENE_BYTES);
		}
		make_file(scenes[row][0].vm, interpreter_lines[row],
			  sizeof(interpreter_lines[row]));
	}
	return 0;
}

static struct luastate *open_state(unsigned row)
{
	struct luastate *state = luastate_create();

	MUST(state && fake_vm_add_interpreter(scenes[row][0].vm, state) == 0);
	return state;
}

/* ---- Images ----------------------------------------------------------------------------- */

/*
 * An image names files, and decoding it opens them. Which ones shall not be up to an input: without
 * slashes, and without the escapes that could make some, no name leads anywhere. In their place the
 * one file that has an interpreter is mapped, above all else.
 */
static void tame_maps(struct attach_image *image, const char *interpreter_line)
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
	if (sample->trace && sample->trace_function != FORMAT_NO_FUNCTION) {
		const struct format_function *trace =
			format_functions_get(functions, sample->trace_function);

		MUST(trace && trace->kind == FORMAT_KIND_TRACE);
	}
	MUST((unsigned)sample->compiled < FORMAT_COMPILED_COUNT);
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

static void fuzz_image(unsigned row, const uint8_t *data, size_t size)
{
	struct daemon_replay *replay;
	struct attach_image *image, *broken;
	struct failure why;

	if (attach_image_load(data, size, &image, &why) != 0)
		return;
	tame_maps(image, interpreter_lines[row]);
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

/* ---- Memory ----------------------------------------------------------------------------- */

/* The bytes of a scene, as far as the input goes. */
struct block {
	const struct fake_vm *vm;
	const uint8_t *bytes;
	size_t len;
};

static int read_block(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		      struct failure *why)
{
	const struct block *block = self;
	size_t at = fake_offset(block->vm, address.value), skip = at - scene_start(block->vm);
	size_t left = fake_left(block->vm, at);

	if (len == 0)
		return 0;
	if (at == FAKE_BYTES || skip >= block->len)
		return failure_set(why, FAILURE_FAULT, 0, 0, address.value, "read the input");
	if (left > block->len - skip)
		left = block->len - skip;
	if (len > left)
		return failure_set(why, FAILURE_FAULT, 0, 0, address.value + left,
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

static void fuzz_memory(unsigned row, struct input input)
{
	const struct fake_vm *vm = scenes[row][0].vm;
	struct luastate *state = open_state(row);
	struct walkers_thread thread = { .vm = vm };
	struct block block;
	uint64_t start;
	const struct attach_reader reader = { .read = read_block, .self = &block };
	struct failure why;

	thread.memory = &reader;
	thread.vm_frame_count = take_number(&input, 1) % (SCENE_CFRAMES_MAX + 1);
	take(&input, &thread.regs, sizeof(thread.regs));
	for (size_t i = 0; i < thread.vm_frame_count; i++) {
		struct luastate_vm_frame *vm_frame = &thread.vm_frames[i];
		uint64_t flags = take_number(&input, 1);

		vm_frame->leaf = flags & 1 && i == 0;
		vm_frame->compiled = flags & 2;
		vm_frame->address = take_number(&input, 8);
		vm_frame->L = take_number(&input, 8);
		vm_frame->frame = thread.regs;
		vm_frame->frame.r[STATE_REG_PC] = take_number(&input, 8);
	}
	block = (struct block){ .vm = vm, .bytes = input.bytes, .len = input.len };
	luastate_vm_of(state, &reader, vm->main, &why);
	start = fake_address(vm, scene_start(vm));
	luastate_find_in_range(state, &reader, start, start + fake_left(vm, scene_start(vm)), &why);
	luastate_find_on_stack(state, &reader, attach_sp(&thread.regs), 0, &why);
	walkers_find_cframes(state, &thread);
	walkers_walk(state, &thread);
	walkers_explain(state, &thread);
	luastate_set_thorough(state, true);
	walkers_walk(state, &thread);
	luastate_destroy(state);
}

/* ---- Changes ---------------------------------------------------------------------------- */

/* A value that means something in the scene, or any. */
static uint64_t take_value(struct input *input, const struct fake_vm *vm)
{
	uint64_t kind = take_number(input, 1);
	size_t start = scene_start(vm);

	switch (kind & 7) {
	case 0:
		return take_number(input, 8);
	case 1:
		return fake_address(vm, start + take_number(input, 2) % SCENE_BYTES);
	case 2:
		return vm->code + take_number(input, 2) % FAKE_CODE_BYTES;
	case 3:
		return fake_tag(vm, -(int32_t)(kind >> 3),
				fake_address(vm, start + take_number(input, 2) % SCENE_BYTES));
	case 4:
		return state_u64(vm->bytes + start,
				 (int32_t)(take_number(input, 2) % (SCENE_BYTES - 8)));
	case 5:
		return (uint64_t)(int64_t)(int8_t)take_number(input, 1);
	case 6:
		return take_number(input, 2);
	default:
		return take_number(input, 4);
	}
}

static void change(struct input *input, const struct scene *scene, struct walkers_thread *thread)
{
	struct fake_vm *vm = scene->vm;

	while (input->len) {
		uint64_t at = take_number(input, 2), value;
		uint8_t *to;

		if (at >= 0xff00) { /* a register */
			thread->regs.r[at % ATTACH_REG_COUNT] = take_value(input, vm);
			continue;
		}
		value = take_value(input, vm);
		to = vm->bytes + scene_start(vm) + at % (SCENE_BYTES - 8);
		switch (input->len ? take_number(input, 1) & 3 : 3) {
		case 0:
			memcpy(to, &value, 1);
			break;
		case 1:
			memcpy(to - at % 4, &value, 4);
			break;
		default:
			memcpy(to - at % 8, &value, 8);
			break;
		}
	}
}

static void fuzz_changes(unsigned row, struct input input)
{
	unsigned number = take_number(&input, 1) % SCENE_COUNT;
	const struct scene *scene = &scenes[row][number];
	struct fake_vm *vm = scene->vm;
	struct luastate_prediction prediction = { 0 };
	struct luastate *state = open_state(row);
	struct walkers_thread thread = { .vm = vm,
					 .memory = &vm->reader,
					 .regs = scene->regs,
					 .vm_frame_count = scene->vm_frame_count };
	struct attach_image *image = attach_image_create(), *after = attach_image_create();
	struct failure why;

	MUST(image && after);
	memcpy(thread.vm_frames, scene->vm_frames, sizeof(thread.vm_frames));
	MUST(luastate_vm_of(state, &vm->reader, vm->main, &why));
	walkers_walk(state, &thread);
	walkers_learn(state, &thread, &prediction);
	change(&input, scene, &thread);
	walkers_plan(state, &prediction, &thread, image, after);
	walkers_find_cframes(state, &thread);
	walkers_walk(state, &thread);
	walkers_explain(state, &thread);
	memcpy(vm->bytes + scene_start(vm), kept[row][number], SCENE_BYTES);
	attach_image_destroy(image);
	attach_image_destroy(after);
	luastate_destroy(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned row = 0;

	if (size && data[0] > '0' && data[0] < '0' + SCENE_ROWS) {
		row = (unsigned)(data[0] - '0');
		data++;
		size--;
	}
	if (size == 0)
		return 0;
	if (data[0] == 'L')
		fuzz_image(row, data, size);
	else if (data[0] == 'M')
		fuzz_memory(row, (struct input){ .bytes = data + 1, .len = size - 1 });
	else if (data[0] == 'P')
		fuzz_changes(row, (struct input){ .bytes = data + 1, .len = size - 1 });
	return 0;
}
