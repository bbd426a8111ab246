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
	uint64_t end = FAKE_END - FAKE_CODE_BYTES;
	struct failure why;

	for (uint64_t at = scene_start(vm); at < end;) {
		uint64_t start = at;

		while (at < end && vm->known[at - FAKE_BASE])
			at++;
		must(at == start || attach_image_add(image, remote_addr_make(start),
						     vm->bytes + (start - FAKE_BASE),
						     (size_t)(at - start), &why) == 0,
		     "fill an image");
		while (at < end && !vm->known[at - FAKE_BASE])
			at++;
	}
}

static void write_image(const struct scene *scene, const char *path)
{
	const struct fake_vm *vm = scene->vm;
	const uint64_t origin[2] = { 1, vm->main };
	uint64_t start = scene_start(vm) & ~(uint64_t)4095;
	struct attach_image *image = attach_image_create();
	struct failure why;
	char maps[256];

	must(image, "make an image");
	*attach_image_registers(image) = scene->regs;
	add_ranges(image, vm);
	/* The scene's first page plays machine code; the interpreter's file is added later. */
	snprintf(maps, sizeof(maps),
		 "%lx-%lx r-xp 00000000 00:00 0\n%lx-%lx rw-p 00000000 00:00 0\n",
		 (unsigned long)start, (unsigned long)start + 4096, (unsigned long)start + 4096,
		 (unsigned long)(vm->host & ~(uint64_t)4095));
	must(attach_image_set_note(image, "maps", maps, strlen(maps), &why) == 0 &&
		     attach_image_set_note(image, "origin", origin, sizeof(origin), &why) == 0,
	     "note the maps");
	unlink(path);
	must(attach_image_save(image, path, &why) == 0, "save an image");
	attach_image_destroy(image);
}

static void write_memory(const struct scene *scene, const char *path)
{
	const struct fake_vm *vm = scene->vm;
	FILE *file = fopen(path, "we");

	must(file, "create a file");
	fputc('M', file);
	fputc((int)scene->cframe_count, file);
	fwrite(&scene->regs, sizeof(scene->regs), 1, file);
	for (size_t i = 0; i < scene->cframe_count; i++) {
		const struct luastate_cframe *cframe = &scene->cframes[i];

		fputc(cframe->leaf | cframe->compiled << 1, file);
		fwrite(&cframe->address, sizeof(cframe->address), 1, file);
		fwrite(&cframe->L, sizeof(cframe->L), 1, file);
		fwrite(&cframe->pc, sizeof(cframe->pc), 1, file);
	}
	fwrite(vm->bytes + (scene_start(vm) - FAKE_BASE), SCENE_BYTES, 1, file);
	must(fclose(file) == 0, "write a file");
}

static void write_changes(unsigned number, const char *path)
{
	FILE *file = fopen(path, "we");

	must(file, "create a file");
	fputc('P', file);
	fputc((int)number, file);
	must(fclose(file) == 0, "write a file");
}

int main(int argc, char **argv)
{
	char path[4096];

	must(argc == 2, "tell the folder: scene_seeds FOLDER");
	for (unsigned i = 0; i < SCENE_COUNT; i++) {
		struct scene scene;

		scene_init(&scene, i);
		snprintf(path, sizeof(path), "%s/image%u", argv[1], i);
		write_image(&scene, path);
		snprintf(path, sizeof(path), "%s/memory%u", argv[1], i);
		write_memory(&scene, path);
		snprintf(path, sizeof(path), "%s/changes%u", argv[1], i);
		write_changes(i, path);
		scene_deinit(&scene);
	}
	return 0;
}
