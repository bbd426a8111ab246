/* SPDX-License-Identifier: MIT */
/*
 * Write inputs of the fuzz targets of walkers: whole VMs, and some with changes.
 * Usage: walkers_seeds FOLDER, such as tests/fuzz/corpus/fuzz_values
 */
#include <stdio.h>

#include "walkers.h"

enum {
	LAYOUTS = 5, /* of those that there are, and as many */
	SITUATIONS = 4,
	CHANGES = 8,
	DECISIONS = 96, /* bytes */
};

static void write_seed(const char *folder, unsigned layout, unsigned situation, bool is_changed)
{
	struct choices choices = choices_from_seed((uint64_t)layout * SITUATIONS + situation);
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s%u-%u", folder, is_changed ? "changed" : "whole", layout,
		 situation);
	file = fopen(path, "we");
	MUST(file);
	fputc((int)(layout * stage_layout_count() / LAYOUTS), file);
	fputc((int)situation, file);
	fputc(is_changed ? CHANGES : 0, file);
	for (unsigned i = 0; is_changed && i < DECISIONS; i++)
		fputc((int)choose(&choices, 256), file);
	MUST(fclose(file) == 0);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "tell the folder: walkers_seeds FOLDER\n");
		return 2;
	}
	for (unsigned layout = 0; layout < LAYOUTS; layout++)
		for (unsigned situation = 0; situation < SITUATIONS; situation++) {
			if (layout == 0)
				write_seed(argv[1], layout, situation, false);
			write_seed(argv[1], layout, situation, true);
		}
	return 0;
}
