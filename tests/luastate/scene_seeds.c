/* SPDX-License-Identifier: MIT */
/*
 * Write the scenes as inputs of the fuzz target for images (tests/fuzz/fuzz_image.c).
 * Usage: scene_seeds FOLDER
 */
#include "scenes.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void must(bool done, const char *step)
{
	if (done)
		return;
	fprintf(stderr, "scene_seeds: cannot %s\n", step);
	exit(1);
}

/* All that a decoding may read, without the gaps between objects. */
static void add_ranges(struct attach_image *image, const struct fake_vm *vm)
{
	size_t end = FAKE_BYTES - FAKE_CODE_BYTES;
	struct failure why;

	for (size_t at = scene_start(vm); at < end;) {
		size_t start = at, zone_end = start + fake_left(vm, start);

		while (at < end && at < zone_end && vm->known[at])
			at++;
		must(at == start ||
			     attach_image_add(image, remote_addr_make(fake_address(vm, start)),
					      vm->bytes + start, at - start, &why) == 0,
		     "fill an image");
		while (at < end && !vm->known[at])
			at++;
	}
}

/* The scene's first pages play machine code; the interpreter's file, which also covers the native
 * stack, is added later. */
static void note_maps(struct attach_image *image, const struct fake_vm *vm)
{
	uint64_t start = fake_address(vm, scene_start(vm)) & ~(uint64_t)4095;
	uint64_t host = vm->host & ~(uint64_t)4095, heap_end = host;
	struct failure why;
	char maps[256];

	if (!vm->layout->gc64)
		heap_end = (vm->heap_base + vm->split + 4095) & ~(uint64_t)4095;
	snprintf(maps, sizeof(maps),
		 "%lx-%lx r-xp 00000000 00:00 0\n%lx-%lx rw-p 00000000 00:00 0\n",
		 (unsigned long)start, (unsigned long)start + 8192, (unsigned long)start + 8192,
		 (unsigned long)heap_end);
	must(attach_image_set_note(image, "maps", maps, strlen(maps), &why) == 0, "note the maps");
}

/* What chooses the row; row 0 needs nothing. */
static void put_row(FILE *file, unsigned row)
{
	if (row)
		fputc((int)('0' + row), file);
}

/* Put the row before what is in a file. */
static void prepend_row(const char *path, unsigned row)
{
	char *bytes = malloc(1 << 20);
	FILE *file = fopen(path, "re");
	size_t len;

	must(bytes && file, "read an image");
	len = fread(bytes, 1, 1 << 20, file);
	fclose(file);
	file = fopen(path, "we");
	must(file, "create a file");
	put_row(file, row);
	must(fwrite(bytes, 1, len, file) == len && fclose(file) == 0, "write a file");
	free(bytes);
}

static void write_image(const struct scene *scene, unsigned row, const char *path)
{
	const struct fake_vm *vm = scene->vm;
	const uint64_t origin[2] = { 1, vm->main };
	struct attach_image *image = attach_image_create();
	struct failure why;

	must(image, "make an image");
	*attach_image_registers(image) = scene->regs;
	add_ranges(image, vm);
	note_maps(image, vm);
	must(attach_image_set_note(image, "origin", origin, sizeof(origin), &why) == 0,
	     "note the origin");
	unlink(path);
	must(attach_image_save(image, path, &why) == 0, "save an image");
	attach_image_destroy(image);
	prepend_row(path, row);
}

static void write_memory(const struct scene *scene, unsigned row, const char *path)
{
	const struct fake_vm *vm = scene->vm;
	FILE *file = fopen(path, "we");

	must(file, "create a file");
	put_row(file, row);
	fputc('M', file);
	fputc((int)scene->vm_frame_count, file);
	fwrite(&scene->regs, sizeof(scene->regs), 1, file);
	for (size_t i = 0; i < scene->vm_frame_count; i++) {
		const struct luastate_vm_frame *vm_frame = &scene->vm_frames[i];

		fputc(vm_frame->leaf | vm_frame->compiled << 1, file);
		fwrite(&vm_frame->address, sizeof(vm_frame->address), 1, file);
		fwrite(&vm_frame->L, sizeof(vm_frame->L), 1, file);
		fwrite(&vm_frame->frame.r[STATE_REG_PC], 8, 1, file);
	}
	fwrite(vm->bytes + scene_start(vm), SCENE_BYTES, 1, file);
	must(fclose(file) == 0, "write a file");
}

static void write_changes(unsigned row, unsigned number, const char *path)
{
	FILE *file = fopen(path, "we");

	must(file, "create a file");
	put_row(file, row);
	fputc('P', file);
	fputc((int)number, file);
	must(fclose(file) == 0, "write a file");
}

/* Of the rows but the first some scenes do: a coroutine, frames of all kinds, traces. */
static bool is_wanted(unsigned row, unsigned number)
{
	return row == 0 || (number >= 2 && number <= 4) || number == 8;
}

static void write_scene(const char *folder, unsigned row, unsigned number)
{
	struct scene scene;
	char path[4096], suffix[16] = "";

	if (row)
		snprintf(suffix, sizeof(suffix), "-%u", row);
	scene_init(&scene, row, number);
	snprintf(path, sizeof(path), "%s/image%u%s", folder, number, suffix);
	write_image(&scene, row, path);
	snprintf(path, sizeof(path), "%s/memory%u%s", folder, number, suffix);
	if (row == 0 || number == 3 || number == 8)
		write_memory(&scene, row, path);
	snprintf(path, sizeof(path), "%s/changes%u%s", folder, number, suffix);
	write_changes(row, number, path);
	scene_deinit(&scene);
}

int main(int argc, char **argv)
{
	must(argc == 2, "tell the folder: scene_seeds FOLDER");
	for (unsigned row = 0; row < SCENE_ROWS; row++)
		for (unsigned number = 0; number < SCENE_COUNT; number++)
			if (is_wanted(row, number))
				write_scene(argv[1], row, number);
	return 0;
}
