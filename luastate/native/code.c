/* SPDX-License-Identifier: MIT */
/* What do the instructions of a file's functions show? */
#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "luastate/native/native.h"

/* Shorter functions than this many instructions are too much alike. */
enum { SIGNATURE_INSNS_MIN = 12 };

const uint8_t *native_bytes(const struct native *native, uint64_t address, size_t *ret_len)
{
	for (size_t i = 0; i < native->module->part_count; i++) {
		const struct luastate_module_part *part = &native->module->parts[i];

		if (address >= part->start && address - part->start < part->len) {
			*ret_len = part->len - (size_t)(address - part->start);
			return part->bytes + (address - part->start);
		}
	}
	return NULL;
}

bool native_read_u64(const struct native *native, uint64_t address, uint64_t *ret_value)
{
	size_t len;
	const uint8_t *bytes = native_bytes(native, address, &len);

	if (!bytes || len < sizeof(*ret_value))
		return false;
	memcpy(ret_value, bytes, sizeof(*ret_value));
	return true;
}

uint32_t native_function_at(const struct native *native, uint64_t address)
{
	size_t end;

	if (!native->count || address < native->functions[0].start ||
	    address >= native->functions[native->count - 1].end)
		return NATIVE_NONE;
	end = ARRAY_SEARCH(native->count, i, native->functions[i].start <= address);
	return end && address < native->functions[end - 1].end ? (uint32_t)(end - 1) : NATIVE_NONE;
}

uint32_t native_function_from(const struct native *native, uint64_t address)
{
	uint32_t index = native_function_at(native, address);

	return index != NATIVE_NONE && native->functions[index].start == address ? index
										 : NATIVE_NONE;
}

static bool is_data(const struct native *native, uint64_t address)
{
	size_t len;

	return address && native_bytes(native, address, &len) &&
	       native_function_at(native, address) == NATIVE_NONE;
}

/** The state while one function is read. */
struct reading {
	struct native *native;
	struct native_function *function;
	uint64_t arguments[4]; /* since the last call */
};

/* Note where control goes if it leaves the function. @return false when out of memory. */
static bool note_edge(struct reading *reading, uint64_t target, enum native_edge_kind kind)
{
	struct native *native = reading->native;
	struct native_edge edge = { .target = NATIVE_NONE, .kind = (uint8_t)kind };

	if (target >= reading->function->start && target < reading->function->end &&
	    (kind != NATIVE_EDGE_CALL || target != reading->function->start))
		return true;
	if (native->edge_count == NATIVE_EDGES_MAX)
		return true;
	if (!ARRAY_RESERVE(native->edges, native->edge_room, native->edge_count + 1))
		return false;
	edge.target = native_function_at(native, target);
	if (edge.target != NATIVE_NONE)
		edge.into = (uint32_t)(target - native->functions[edge.target].start);
	native->edges[native->edge_count++] = edge;
	reading->function->edge_count++;
	return true;
}

/* Note a call whose third and fourth arguments are addresses, as of lj_lib_register(). */
static void note_registration(struct reading *reading, uint64_t target)
{
	struct native *native = reading->native;
	uint32_t callee = NATIVE_NONE;

	if (is_data(native, reading->arguments[2]) && is_data(native, reading->arguments[3]) &&
	    native->registration_count < NATIVE_LIBRARIES_MAX)
		callee = native_function_from(native, target);
	if (callee != NATIVE_NONE) {
		struct native_registration *registration =
			&native->registrations[native->registration_count++];

		registration->callee = callee;
		memcpy(registration->arguments, reading->arguments + 1,
		       sizeof(registration->arguments));
	}
	memset(reading->arguments, 0, sizeof(reading->arguments));
}

/* Keep an address that an instruction has as operand. @return false when out of memory. */
static bool note_reference(struct reading *reading, uint64_t address)
{
	struct native *native = reading->native;

	if (!is_data(native, address))
		return native_function_from(native, address) == NATIVE_NONE ||
		       note_edge(reading, address, NATIVE_EDGE_ADDRESS);
	if (native->reference_count == NATIVE_REFERENCES_MAX)
		return true;
	if (!ARRAY_RESERVE(native->references, native->reference_room, native->reference_count + 1))
		return false;
	native->references[native->reference_count++] = address;
	return true;
}

static bool take_insn(struct reading *reading, const struct native_insn *insn)
{
	if (!note_reference(reading, insn->reference))
		return false;
	switch (insn->kind) {
	case NATIVE_CALL:
		note_registration(reading, insn->target);
		return note_edge(reading, insn->target, NATIVE_EDGE_CALL);
	case NATIVE_JUMP:
		return note_edge(reading, insn->target, NATIVE_EDGE_JUMP);
	case NATIVE_BRANCH:
		return note_edge(reading, insn->target, NATIVE_EDGE_BRANCH);
	case NATIVE_SET:
		if (insn->argument < 4)
			reading->arguments[insn->argument] = insn->target;
		return true;
	default:
		return true;
	}
}

static bool read_function(struct reading *reading)
{
	struct native_function *function = reading->function;
	struct native_decoder decoder = { 0 };
	uint64_t hash = NATIVE_HASH_BEGIN, at = function->start;
	unsigned insns = 0, steps = 0;
	size_t len;
	const uint8_t *code = native_bytes(reading->native, at, &len);

	function->first_edge = (uint32_t)reading->native->edge_count;
	while (code && at < function->end && steps++ < NATIVE_INSNS_MAX) {
		size_t into = (size_t)(at - function->start);
		struct native_insn insn;

		if (into >= len || !native_decode(&decoder, code + into, len - into, at, &insn))
			return true; /* what was not decoded has no signature */
		if (insn.operation) {
			hash = native_hash(hash, insn.operation, sizeof(insn.operation));
			insns++;
		}
		if (!take_insn(reading, &insn))
			return false;
		at += insn.len;
	}
	if (at == function->end && insns >= SIGNATURE_INSNS_MIN)
		function->signature = hash ? hash : 1;
	return true;
}

bool native_read_functions(struct native *native)
{
	for (uint32_t i = 0; i < native->count; i++) {
		struct reading reading = { .native = native, .function = &native->functions[i] };

		if (i != native->interpreter && !read_function(&reading))
			return false;
	}
	if (native->reference_count)
		qsort(native->references, native->reference_count, sizeof(*native->references),
		      array_by_first_u64);
	return true;
}
