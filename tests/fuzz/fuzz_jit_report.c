/* SPDX-License-Identifier: MIT */
/*
 * What the compiler of a VM has made, read from memory of any content. The first byte chooses the
 * VM's layout; then come changes of a valid VM: where in its memory, in two bytes, how many bytes,
 * in one, and these. A change whose place is beyond all others is made while the report is read,
 * at the read that the next byte tells.
 */
#include <stdlib.h>

#include "fake_traces.h"
#include "walkers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

enum {
	ROWS = 5,
	/* All that was made lies in these bytes below the code. */
	VM_BYTES = 24576,
	LATE = 0x8000, /* flag of a place */
};

static const struct {
	const char *family, *first;
	bool gc64;
} rows[ROWS] = {
	{ "mainline", "a32aeadc", true },   { "mainline", "a2ce8114", true },
	{ "mainline", "fbfbd7b9", false },  { "openresty", "15e77d84", true },
	{ "tarantool", "71ec8eb2", false },
};

static struct fake_vm *vms[ROWS];
static uint8_t kept[ROWS][VM_BYTES];

/** The input, and what of it is still to come. */
struct changes {
	const struct fake_vm *vm;
	const uint8_t *bytes;
	size_t len;
	unsigned reads_left; /* to the next change */
	uint64_t reads;
};

static size_t vm_start(const struct fake_vm *vm)
{
	return vm->split - VM_BYTES;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	for (size_t i = 0; i < ROWS; i++) {
		struct fake_traces traces;

		vms[i] = fake_vm_create(&(struct fake_options){
			.layout = fake_layout(rows[i].family, rows[i].gc64, rows[i].first) });
		fake_traces_make(vms[i], &traces);
		fake_penalty(vms[i], 1, fake_pc(vms[i], traces.mid, 1), 72, 7);
		MUST(vms[i]->next >= vm_start(vms[i]));
		memcpy(kept[i], vms[i]->bytes + vm_start(vms[i]), VM_BYTES);
	}
	return 0;
}

/* Make changes up to the next that is late. */
static void change(struct changes *changes)
{
	while (changes->len >= 3) {
		size_t location = (size_t)changes->bytes[0] | (size_t)changes->bytes[1] << 8;
		size_t count = changes->bytes[2];
		bool late = location & LATE;

		changes->bytes += 3;
		changes->len -= 3;
		if (late && changes->len) {
			changes->reads_left = *changes->bytes++;
			changes->len--;
		}
		location %= VM_BYTES;
		count = count < changes->len ? count : changes->len;
		count = count < VM_BYTES - location ? count : VM_BYTES - location;
		memcpy(changes->vm->bytes + vm_start(changes->vm) + location, changes->bytes,
		       count);
		changes->bytes += count;
		changes->len -= count;
		if (late)
			return;
	}
}

static int read_and_change(void *self, struct remote_addr address, void *ret_bytes, size_t len,
			   struct failure *why)
{
	struct changes *changes = self;

	/* Work is bounded by the clock; here by what a small VM can need. */
	if (changes->reads++ > 200000)
		return failure_set(why, FAILURE_FAULT, 0, 0, address.value, "read fake memory");
	if (changes->len && changes->reads_left-- == 0)
		change(changes);
	return attach_read(&changes->vm->reader, address, ret_bytes, len, why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct fake_vm *vm = vms[size ? data[0] % ROWS : 0];
	struct changes changes = { .vm = vm,
				   .bytes = data + (size > 0),
				   .len = size ? size - 1 : 0 };
	const struct attach_reader reader = { .read = read_and_change, .self = &changes };
	const struct walkers_thread thread = { .vm = vm, .memory = &reader };
	struct luastate *state = fake_vm_open(vms[size ? data[0] % ROWS : 0], true);

	/* The VM was found when it was whole. */
	change(&changes);
	walkers_catalogue(state, &thread);
	luastate_destroy(state);
	memcpy(vm->bytes + vm_start(vm), kept[size ? data[0] % ROWS : 0], VM_BYTES);
	return 0;
}
