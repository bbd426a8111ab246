/* SPDX-License-Identifier: MIT */
/* Which file is behind a mapping, and what proves it? */
#include "symbols/space/object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/** Largest vDSO that we accept; it has one or two pages. */
#define VDSO_MAX_BYTES ((uint64_t)1 << 16)
#define PAGE_MASK      ((uint64_t)4095)

bool symbols_object_bias(const struct symbols_elf *elf, const struct symbols_mapping *mapping,
			 uint64_t *ret_bias)
{
	const struct symbols_load *load =
		symbols_elf_load_at_offset(elf, mapping->offset, mapping->executable);
	uint64_t bias;

	if (!load)
		return false;
	bias = mapping->start - mapping->offset + load->offset - load->vaddr;
	if (bias & PAGE_MASK)
		return false;
	*ret_bias = bias;
	return true;
}

/** Whether the build-id in the target's memory is the file's. */
static bool build_id_fits(const struct symbols_elf *elf, const struct symbols_mapping *mapping,
			  const struct attach_reader *memory)
{
	uint8_t mapped[SYMBOLS_BUILD_ID_MAX];
	struct failure why;
	uint64_t bias;

	return memory && elf->build_id_len && symbols_object_bias(elf, mapping, &bias) &&
	       attach_read(memory, remote_addr_make(bias + elf->build_id_vaddr), mapped,
			   elf->build_id_len, &why) == 0 &&
	       memcmp(mapped, elf->build_id, elf->build_id_len) == 0;
}

/** Whether the first page in the target's memory is the file's, for a file without a build-id. This
 *  page says where all parts of the file are. */
static bool headers_fit(const struct symbols_elf *elf, const struct symbols_mapping *mapping,
			const struct attach_reader *memory)
{
	uint8_t mapped[PAGE_MASK + 1], bytes[sizeof(mapped)];
	const struct symbols_load *load = symbols_elf_load_at_offset(elf, 0, mapping->executable);
	struct failure why;
	uint64_t bias;
	size_t len;

	if (!memory || elf->build_id_len || !load || load->offset ||
	    !symbols_object_bias(elf, mapping, &bias))
		return false;
	len = load->filesz < sizeof(bytes) ? (size_t)load->filesz : sizeof(bytes);
	return symbols_source_read(&elf->source, 0, bytes, len) &&
	       attach_read(memory, remote_addr_make(bias + load->vaddr), mapped, len, &why) == 0 &&
	       memcmp(mapped, bytes, len) == 0;
}

static bool numbers_fit(const struct symbols_source *source, const struct symbols_mapping *mapping)
{
	return source->inode == mapping->inode && major(source->device) == mapping->dev_major &&
	       minor(source->device) == mapping->dev_minor;
}

/** Distinguish a missing or unreadable file from a shortage of our own. */
static int open_failure(int errnum, const struct symbols_mapping *mapping, struct failure *why)
{
	struct failure found;

	failure_set_errno(&found, errnum, 0, "open a mapped file");
	if (!failure_is_shortage(&found))
		failure_set(&found, FAILURE_NOT_FOUND, errnum, 0, mapping->start,
			    "open a mapped file");
	if (why)
		*why = found;
	return -1;
}

/** Take a file if it is the mapped one. @param fd Closed on failure. */
static int take_file(int fd, bool is_certain, const struct symbols_mapping *mapping,
		     const struct symbols_opener *opener, struct symbols_elf *ret_elf,
		     struct failure *why)
{
	struct symbols_source source;

	if (symbols_source_init_file(&source, fd, why) < 0)
		return -1;
	is_certain = is_certain || numbers_fit(&source, mapping);
	if (symbols_elf_init(ret_elf, &source, why) < 0)
		return -1;
	if (is_certain || build_id_fits(ret_elf, mapping, opener->memory) ||
	    (opener->headers_prove && headers_fit(ret_elf, mapping, opener->memory)))
		return 0;
	symbols_elf_deinit(ret_elf);
	return failure_set(why, FAILURE_NOT_FOUND, 0, 0, mapping->start,
			   "find the file that is mapped");
}

static int open_file(const struct symbols_mapping *mapping, const struct symbols_opener *opener,
		     struct symbols_elf *ret_elf, struct failure *why)
{
	struct failure program_why;
	int fd = symbols_root_open_mapping(opener->root, mapping->start, mapping->end), result;

	if (fd >= 0)
		return take_file(fd, true, mapping, opener, ret_elf, why);
	fd = symbols_root_open(opener->root, mapping->path);
	result = fd < 0 ? open_failure(errno, mapping, why)
			: take_file(fd, false, mapping, opener, ret_elf, why);
	if (result == 0)
		return 0;
	/* The program's own file is within reach, even if an upgrade has replaced it. */
	fd = symbols_root_open_program(opener->root);
	return fd < 0 ? -1 : take_file(fd, false, mapping, opener, ret_elf, &program_why);
}

static int copy_vdso(const struct symbols_mapping *mapping, const struct symbols_opener *opener,
		     struct symbols_elf *ret_elf, struct failure *why)
{
	struct symbols_source source;
	uint64_t len = mapping->end - mapping->start;
	uint8_t *bytes;

	if (!opener->memory || len > VDSO_MAX_BYTES)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, mapping->start, "read the vDSO");
	bytes = malloc(len);
	if (!bytes)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "copy the vDSO");
	if (attach_read(opener->memory, remote_addr_make(mapping->start), bytes, len, why) < 0) {
		free(bytes);
		return -1;
	}
	symbols_source_init_memory(&source, bytes, len);
	return symbols_elf_init(ret_elf, &source, why);
}

bool symbols_object_key(const struct symbols_mapping *mapping, struct symbols_object_key *ret_key)
{
	bool is_vdso = !mapping->inode && strcmp(mapping->path, "[vdso]") == 0;

	*ret_key = (struct symbols_object_key){ .inode = mapping->inode,
						.vdso_start = is_vdso ? mapping->start : 0,
						.dev_major = mapping->dev_major,
						.dev_minor = mapping->dev_minor };
	return mapping->inode || is_vdso;
}

int symbols_object_create(const struct symbols_mapping *mapping,
			  const struct symbols_opener *opener, struct symbols_object **ret_object,
			  struct failure *why)
{
	struct symbols_object *object = calloc(1, sizeof(*object));
	int result;

	if (!object)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "keep a mapped file");
	object->elf.source.fd = -1;
	symbols_object_key(mapping, &object->key);
	object->path = strdup(mapping->path);
	if (!object->path)
		result = failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "keep a mapped file");
	else if (object->key.vdso_start)
		result = copy_vdso(mapping, opener, &object->elf, why);
	else
		result = open_file(mapping, opener, &object->elf, why);
	if (result < 0) {
		symbols_object_destroy(object);
		return -1;
	}
	*ret_object = object;
	return 0;
}

void symbols_object_destroy(struct symbols_object *object)
{
	if (!object)
		return;
	symbols_names_deinit(&object->names);
	symbols_eh_deinit(&object->eh);
	symbols_plt_deinit(&object->plt);
	symbols_elf_deinit(&object->elf);
	free(object->framed);
	free(object->path);
	free(object);
}

const struct symbols_eh *symbols_object_eh(struct symbols_object *object, struct failure *ret_why)
{
	*ret_why = (struct failure){ .kind = FAILURE_NONE };
	if (!object->eh_tried)
		object->eh_tried = symbols_eh_init(&object->eh, &object->elf, ret_why) == 0 ||
				   !failure_is_shortage(ret_why);
	return object->eh.count ? &object->eh : NULL;
}

size_t symbols_object_eh_size(const struct symbols_object *object)
{
	return object->eh.len + object->eh.count * sizeof(*object->eh.rows);
}

void symbols_object_drop_eh(struct symbols_object *object)
{
	symbols_eh_deinit(&object->eh);
	object->eh_tried = false;
}

const struct symbols_names *symbols_object_names(struct symbols_object *object,
						 const struct symbols_root *root)
{
	if (!object->names_tried) {
		if (symbols_names_init(&object->names, &object->elf, object->path, root, NULL) < 0)
			return NULL;
		object->names_tried = true;
	}
	return &object->names;
}

void symbols_object_drop_names(struct symbols_object *object)
{
	symbols_names_deinit(&object->names);
	object->names_tried = false;
}

int symbols_object_add_evidence(const struct symbols_object *object, uint64_t bias,
				struct attach_image *image, struct failure *why)
{
	const struct symbols_elf *elf = &object->elf;

	if (object->key.vdso_start)
		return attach_image_add(image, remote_addr_make(object->key.vdso_start),
					elf->source.bytes, elf->source.size, why);
	if (!elf->build_id_len)
		return 0;
	return attach_image_add(image, remote_addr_make(bias + elf->build_id_vaddr), elf->build_id,
				elf->build_id_len, why);
}
