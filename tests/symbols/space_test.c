/* SPDX-License-Identifier: MIT */

/* Spaces: of this process, which knows its own truth, and of recorded maps. */

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbols/names.h"
#include "symbols/space/space_internal.h"
#include "symbols/unwind.h"
#include "tests/rounds.h"

/* Without a second opening some one in 800 fails; fewer, as in an emulated machine, may miss that.
 */
#define REPLACED_READS	    5000
#define FULL_REPLACED_READS 30000

static struct attach_process *process;
static struct symbols_space *space;

static int open_own(void **state)
{
	struct failure why;

	(void)state;
	if (attach_process_open(getpid(), &process, &why) < 0)
		return -1;
	return symbols_space_create(process, &space, &why);
}

static int close_own(void **state)
{
	(void)state;
	symbols_space_destroy(space);
	attach_process_close(process);
	return 0;
}

static uint64_t address_of(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

static struct symbols_function find(uint64_t address)
{
	struct symbols_function function;
	struct failure why;

	assert_int_equal(symbols_find_function(space, address, &function, &why), 0);
	assert_true(address >= function.start && address < function.end);
	return function;
}

static void test_own_function(void **state)
{
	struct symbols_function function = find(address_of((void *)(uintptr_t)test_own_function));

	(void)state;
	assert_string_equal(function.name, "test_own_function");
	assert_string_equal(function.module, "symbols_space_test");
	assert_true(function.is_symbol);
	assert_int_equal(function.start, address_of((void *)(uintptr_t)test_own_function));
	/* The second answer comes from the cache and is the same. */
	assert_ptr_equal(find(function.start).name, function.name);
}

static void test_library_function(void **state)
{
	uint64_t address = address_of(dlsym(RTLD_DEFAULT, "lfind"));
	struct symbols_function function = find(address);
	struct failure why;
	uint64_t found;

	(void)state;
	assert_string_equal(function.name, "lfind");
	assert_string_equal(function.module, "libc.so.6");
	assert_int_equal(symbols_find_address(space, "lfind", &found, &why), 0);
	assert_int_equal(found, address);
	assert_int_equal(symbols_find_address(space, "no_such_symbol", &found, &why), -1);
	assert_int_equal(why.kind, FAILURE_NOT_FOUND);
}

#if defined(__x86_64__)
#define VDSO_FUNCTION "__vdso_clock_gettime"
#define INSTRUCTION   1 /* bytes of nop and of ret */
#elif defined(__aarch64__)
#define VDSO_FUNCTION "__kernel_clock_gettime"
#define INSTRUCTION   4
#endif

static void test_vdso(void **state)
{
	uint64_t base = getauxval(AT_SYSINFO_EHDR), found;
	struct symbols_function function;
	struct failure why;

	(void)state;
	if (!base)
		skip();
	assert_int_equal(symbols_find_address(space, VDSO_FUNCTION, &found, &why), 0);
	assert_true(found - base < 65536);
	function = find(found);
	assert_string_equal(function.module, "[vdso]");
	assert_string_equal(function.name, VDSO_FUNCTION); /* an alias is weak */
}

/* The note that the linker has put into a program, as its loader finds it. */
struct own_note {
	uint64_t address;
	const uint8_t *bytes;
	size_t len;
};

static int find_note(struct dl_phdr_info *info, size_t size, void *context)
{
	struct own_note *found = context;
	const ElfW(Phdr) *notes = NULL;
	bool is_here = false;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + header->p_vaddr;

		is_here |= header->p_type == PT_LOAD && found->address >= start &&
			   found->address < start + header->p_memsz;
	}
	for (size_t i = 0; is_here && i < info->dlpi_phnum; i++) {
		notes = &info->dlpi_phdr[i];
		for (size_t at = 0; notes->p_type == PT_NOTE && at < notes->p_memsz;) {
			const uint8_t *bytes =
				(const uint8_t *)(uintptr_t)(info->dlpi_addr + notes->p_vaddr) + at;
			ElfW(Nhdr) note;

			memcpy(&note, bytes, sizeof(note));
			if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4) {
				found->bytes = bytes + sizeof(note) + 4;
				found->len = note.n_descsz;
			}
			at += sizeof(note) + ((note.n_namesz + 3) & ~3u) +
			      ((note.n_descsz + 3) & ~3u);
		}
	}
	return is_here;
}

static void test_build_id(void **state)
{
	struct own_note note = { .address = address_of(dlsym(RTLD_DEFAULT, "qsort")) };
	int local;
	uint8_t id[SYMBOLS_BUILD_ID_MAX];

	(void)state;
	assert_int_equal(1, dl_iterate_phdr(find_note, &note));
	assert_int_equal(note.len, symbols_find_build_id(space, note.address, id));
	if (note.len)
		assert_memory_equal(note.bytes, id, note.len);
	assert_int_equal(0, symbols_find_build_id(space, address_of(&local), id));
	assert_int_equal(0, symbols_find_build_id(space, 1, id));
}

static void test_without_symbol(void **state)
{
	struct symbols_function function;
	void *anonymous = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct failure why;

	(void)state;
	assert_ptr_not_equal(anonymous, MAP_FAILED);
	assert_int_equal(symbols_space_refresh(space, &why), 0);
	function = find(address_of(anonymous) + 5);
	assert_false(function.is_symbol);
	assert_string_equal(function.module, "[anon]");
	assert_string_equal(function.name, "[anon]"); /* one function, from end to end */
	assert_true(function.start <= address_of(anonymous));
	assert_true(function.end >= address_of(anonymous) + 4096);
	function = find(3);
	assert_string_equal(function.name, "[unmapped]+0x3");
	munmap(anonymous, 4096);
}

/** The stubs of this program that have names lead to functions of these names. */
static void test_stubs(void **state)
{
	static const char suffix[] = "@plt";
	const struct symbols_mapping *mapping =
		symbols_space_find(space, address_of((void *)(uintptr_t)test_stubs));
	unsigned count = 0, resolved = 0, known = 0;
	char last[256] = "";

	(void)state;
	assert_non_null(mapping);
	for (uint64_t address = mapping->start; address < mapping->end; address += 4) {
		struct symbols_function function = find(address);
		size_t len = strlen(function.name);
		char name[256];

		if (len < sizeof(suffix) ||
		    strcmp(function.name + len + 1 - sizeof(suffix), suffix))
			continue;
		assert_true(function.is_symbol);
		assert_true(function.end - function.start <= 16);
		if (strcmp(last, function.name) == 0)
			continue;
		snprintf(last, sizeof(last), "%s", function.name);
		snprintf(name, sizeof(name), "%.*s", (int)(len + 1 - sizeof(suffix)),
			 function.name);
		/* A weak symbol may have no function. */
		resolved += dlsym(RTLD_DEFAULT, name) != NULL;
		count++;
		known += strcmp(name, "getauxval") == 0 || strcmp(name, "mkdtemp") == 0 ||
			 strcmp(name, "elf_strptr") == 0;
	}
	print_message("%u stubs, %u functions\n", count, resolved);
	assert_true(known > 0);
	assert_true(resolved > count * 8 / 10);
}

/** Code between symbols is named by its unwind entry, from any address in it. */
static void test_entry_name(void **state)
{
	uint8_t *code = dlsym(dlopen(FIXTURE_STRIPPED, RTLD_NOW), "fixture_no_size");
	struct symbols_function first, second;
	struct failure why;
	char expected[64];
	Dl_info info;

	(void)state;
	assert_non_null(code);
	assert_true(dladdr(code, &info));
	assert_int_equal(symbols_space_refresh(space, &why), 0);
	assert_string_equal(find(address_of(code)).name, "fixture_no_size");
	first = find(address_of(code + 16));
	second = find(address_of(code + 16 + INSTRUCTION));
	assert_false(first.is_symbol);
	assert_ptr_equal(first.name, second.name);
	assert_int_equal(first.start, address_of(code + 16));
	assert_int_equal(first.end, address_of(code + 16 + 2 * INSTRUCTION));
	snprintf(expected, sizeof(expected), "fixture_stripped.so+0x%lx",
		 first.start - address_of(info.dli_fbase));
	assert_string_equal(first.name, expected);
}

static void test_generation(void **state)
{
	uint64_t generation = symbols_space_generation(space);
	struct failure why;
	void *handle;
	uint64_t code;

	(void)state;
	for (int i = 0; i < 20; i++) {
		handle = dlopen(FIXTURE, RTLD_NOW);
		assert_non_null(handle);
		code = address_of(dlsym(handle, "fixture_global"));
		assert_int_equal(symbols_space_refresh(space, &why), 0);
		assert_true(symbols_space_generation(space) > generation);
		generation = symbols_space_generation(space);
		assert_string_equal(find(code).name, "fixture_global");
		dlclose(handle);
		assert_int_equal(symbols_space_refresh(space, &why), 0);
		assert_string_equal(find(code).module, "[unmapped]");
	}
}

static void test_file_bytes(void **state)
{
	uint8_t bytes[16];
	struct failure why = { .kind = FAILURE_NONE };
	uint64_t stack = address_of(&why);

	(void)state;
	assert_int_equal(symbols_read_file_bytes(space,
						 address_of((void *)(uintptr_t)test_file_bytes),
						 bytes, sizeof(bytes), &why),
			 0);
	assert_memory_equal(bytes, (void *)(uintptr_t)test_file_bytes, sizeof(bytes));
	assert_int_equal(symbols_read_file_bytes(space, stack, bytes, sizeof(bytes), &why), -1);
	assert_int_equal(why.kind, FAILURE_FAULT);
	assert_int_equal(why.address, stack);
}

/* Code that finds its frame made, as an interpreter does, and the same with a program that no
 * interpreter has. */
#define FRAMED_BYTES 5000
#if defined(__x86_64__)
#define RULE ".cfi_def_cfa_offset 96\n.cfi_offset 3, -24\n"
#define MORE ".rept 100\n.cfi_offset 3, -24\n.cfi_offset 3, -32\n.endr\n"
#elif defined(__aarch64__)
#define RULE ".cfi_def_cfa_offset 96\n.cfi_offset 19, -24\n"
#define MORE ".rept 100\n.cfi_offset 19, -24\n.cfi_offset 19, -32\n.endr\n"
#endif
__asm__(".text\n.balign 16\n"
	".globl framed_code, framed_long_code\n"
	"framed_code:\n.cfi_startproc\n" RULE ".zero 5000\n.cfi_endproc\n"
	"framed_long_code:\n.cfi_startproc\n" RULE MORE ".zero 5000\n.cfi_endproc\n");
void framed_code(void);
void framed_long_code(void);

/** Entries of framed_code among those visited. */
struct framed {
	uint64_t starts[4], end;
	unsigned count, others;
};

static bool take_framed(void *context, const struct symbols_unwind_entry *entry)
{
	struct framed *framed = context;

	assert_true(entry->end - entry->start >= 4096);
	assert_int_not_equal(entry->start, address_of((void *)(uintptr_t)framed_long_code));
	if (entry->end - entry->start != FRAMED_BYTES || framed->count == 4) {
		framed->others++;
		return true;
	}
	assert_true(entry->constant);
	assert_int_equal(entry->cfa_offset, 96);
	framed->starts[framed->count++] = entry->start;
	return true;
}

static bool stop_at_first(void *context, const struct symbols_unwind_entry *entry)
{
	(void)entry;
	++*(unsigned *)context;
	return false;
}

static void test_entries(void **state)
{
	struct framed framed = { 0 };
	unsigned first = 0;

	(void)state;
	assert_int_equal(symbols_each_unwind_entry(space, 4096, take_framed, &framed, NULL), 0);
	assert_int_equal(framed.count, 1);
	assert_int_equal(framed.starts[0], address_of((void *)(uintptr_t)framed_code));
	assert_int_equal(symbols_each_unwind_entry(space, 4096, stop_at_first, &first, NULL), 0);
	assert_int_equal(first, 1);
	/* It is remembered for this length only. */
	assert_int_equal(symbols_each_unwind_entry(space, 5001, take_framed, &framed, NULL), 0);
	assert_int_equal(framed.count, 1);
	assert_int_equal(symbols_each_unwind_entry(space, 5000, take_framed, &framed, NULL), 0);
	assert_int_equal(framed.count, 2);
}

/** A target that makes up addresses without end gets answers, but not all our memory. */
static void test_names_are_bounded(void **state)
{
	struct symbols_function function = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 500000; i++) {
		function = find(0x1000 + i);
		if (i % 4096 == 0 && strcmp(function.name, "[more names than kept]") == 0)
			break;
	}
	assert_string_equal(function.name, "[more names than kept]");
	assert_string_equal(find(address_of((void *)(uintptr_t)test_own_function)).name,
			    "test_own_function");
}

/* ---- Unwinding -------------------------------------------------------------------------- */

/* Code whose frames have 16 bytes, with a short unwind program and one of 8 KB. */
#if defined(__x86_64__)
#define FRAME ".cfi_def_cfa_offset 16\n"
#define SAVED "3"
#elif defined(__aarch64__)
#define FRAME ".cfi_def_cfa_offset 16\n.cfi_offset 30, -8\n"
#define SAVED "19"
#endif
__asm__(".text\n.balign 16\n"
	".globl short_program, long_program\n"
	"short_program:\n.cfi_startproc\n" FRAME ".zero 8192\n.cfi_endproc\n"
	"long_program:\n.cfi_startproc\n" FRAME ".rept 2000\n.cfi_offset " SAVED
	", -24\n.cfi_offset " SAVED ", -32\n.endr\n"
	".zero 8192\n.cfi_endproc\n");
void short_program(void);
void long_program(void);

#define STACK	    ((uint64_t)0x7ffe00000000)
#define STACK_WORDS 8000

static int read_stack(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		      struct failure *why)
{
	const uint64_t *words = self;
	uint64_t at = address.value - STACK;

	if (at >= STACK_WORDS * 8 || len > STACK_WORDS * 8 - at)
		return failure_set(why, FAILURE_FAULT, 0, 0, address.value, "read");
	memcpy(ret_bytes, (const uint8_t *)words + at, len);
	return 0;
}

/** Walk a stack of 4000 frames in some code. @return Steps, and why it ended. */
static unsigned walk(void (*code)(void), struct failure *ret_why)
{
	static uint64_t words[STACK_WORDS];
	const struct attach_reader memory = { .read = read_stack, .self = words };
	struct attach_registers regs = { .syscall = -1 };
	struct symbols_unwinder *unwinder;
	unsigned steps = 0;

	/* Many places, or what is known of one would serve all. */
	for (size_t i = 0; i < STACK_WORDS; i++)
		words[i] = address_of((void *)(uintptr_t)code) + 64 + i * 12 % 8000 / 4 * 4;
	regs.r[ATTACH_REG_PC] = words[0];
	regs.r[ATTACH_REG_SP] = STACK;
	assert_int_equal(symbols_unwinder_create(space, &unwinder, ret_why), 0);
	symbols_unwind_begin(unwinder, &regs, &memory);
	while (symbols_unwind_step(unwinder, ret_why) > 0)
		steps++;
	symbols_unwinder_destroy(unwinder);
	return steps;
}

/** Long unwind programs end a walk in time; as many frames with short ones do not. */
static void test_programs_are_bounded(void **state)
{
	struct failure why = { 0 };
	unsigned steps;

	(void)state;
	assert_int_equal(walk(short_program, &why), STACK_WORDS / 2);
	assert_int_equal(why.kind, FAILURE_FAULT);
	steps = walk(long_program, &why);
	assert_int_equal(why.kind, FAILURE_LIMIT);
	assert_true(steps > 100 && steps < STACK_WORDS / 2);
	/* Each walk has its own. */
	assert_int_equal(walk(long_program, &why), steps);
}

/* ---- Recorded spaces -------------------------------------------------------------------- */

/** A maps line for the fixture's code, with these numbers. */
static struct symbols_space *record(const char *path, unsigned long inode, unsigned major,
				    unsigned minor)
{
	struct symbols_space *recorded;
	struct failure why;
	char text[512];

	snprintf(text, sizeof(text), "10000-12000 r-xp 00001000 %02x:%02x %lu %s\n", major, minor,
		 inode, path);
	assert_int_equal(symbols_space_create_recorded(text, strlen(text), &recorded, &why), 0);
	return recorded;
}

/** Name of a known function in a recorded space, whose mapping has file offset 0x1000. */
static const char *recorded_name(struct symbols_space *recorded)
{
	uint64_t found;
	struct failure why;
	struct symbols_function function;

	if (symbols_find_address(recorded, "fixture_global", &found, &why) < 0)
		return "";
	assert_int_equal(symbols_find_function(recorded, found, &function, &why), 0);
	return strcmp(function.name, "fixture_global") == 0 ? "fixture_global" : "?";
}

/** Memory that has the fixture where the mapping says. */
static int read_fixture(void *self, struct remote_addr address, void *ret_bytes, size_t len,
			struct failure *why)
{
	int *fd = self;

	/* Bias 0xf000, and segments whose file offsets are their addresses. */
	if (pread(*fd, ret_bytes, len, (off_t)(address.value - 0xf000)) == (ssize_t)len)
		return 0;
	return failure_set(why, FAILURE_FAULT, 0, 0, address.value, "read");
}

static void test_recorded(void **state)
{
	struct stat status;
	struct symbols_space *recorded;
	int fd = open(FIXTURE, O_RDONLY), other = open(UNWIND_TARGET, O_RDONLY);
	struct attach_reader memory = { .read = read_fixture, .self = &fd };
	struct attach_reader wrong = { .read = read_fixture, .self = &other };
	unsigned major, minor;

	(void)state;
	assert_int_equal(fstat(fd, &status), 0);
	major = (unsigned)(status.st_dev >> 8 & 0xfff);
	minor = (unsigned)((status.st_dev & 0xff) | (status.st_dev >> 12 & 0xfff00));
	recorded = record(FIXTURE, status.st_ino, major, minor);
	assert_string_equal(recorded_name(recorded), "fixture_global");
	symbols_space_destroy(recorded);

	/* Other numbers: taken only where the build-id in memory proves it. */
	recorded = record(FIXTURE, status.st_ino + 1, major, minor);
	assert_string_equal(recorded_name(recorded), "");
	symbols_space_destroy(recorded);
	recorded = record(FIXTURE, status.st_ino + 1, major, minor);
	symbols_space_set_memory(recorded, &memory);
	assert_string_equal(recorded_name(recorded), "fixture_global");
	symbols_space_destroy(recorded);
	recorded = record(FIXTURE, status.st_ino, major + 1, minor);
	symbols_space_set_memory(recorded, &wrong);
	assert_string_equal(recorded_name(recorded), "");
	symbols_space_destroy(recorded);
	close(fd);
	close(other);
}

/** As many files as a process likes, with as many symbols, cost bounded time and memory. */
static void test_loads_of_names_are_bounded(void **state)
{
	struct symbols_object *large = calloc(1, sizeof(*large));
	struct symbols_space *recorded;
	struct stat status;
	unsigned major, minor;

	(void)state;
	assert_int_equal(stat(FIXTURE, &status), 0);
	major = (unsigned)(status.st_dev >> 8 & 0xfff);
	minor = (unsigned)((status.st_dev & 0xff) | (status.st_dev >> 12 & 0xfff00));
	recorded = record(FIXTURE, status.st_ino, major, minor);
	recorded->names_ns = SYMBOLS_NAMES_LOAD_NS + 1;
	assert_string_equal(recorded_name(recorded), "");
	symbols_space_destroy(recorded);

	assert_non_null(large);
	large->elf.source.fd = -1;
	large->names.count = SYMBOLS_NAMES_KEPT_BYTES / sizeof(struct symbols_name) + 1;
	recorded = record(FIXTURE, status.st_ino, major, minor);
	HASH_ADD(hh, recorded->objects, key, sizeof(large->key), large);
	assert_string_equal(recorded_name(recorded), "");
	symbols_space_destroy(recorded);

	recorded = record(FIXTURE, status.st_ino, major, minor);
	assert_string_equal(recorded_name(recorded), "fixture_global");
	assert_true(recorded->names_ns > 0);
	symbols_space_destroy(recorded);
}

/** What a live space adds to an image is enough for the same answers from the image alone. */
static void test_evidence(void **state)
{
	struct attach_image *image = attach_image_create();
	uint64_t vdso = getauxval(AT_SYSINFO_EHDR), clock = 0;
	struct symbols_space *recorded;
	struct symbols_function function;
	struct failure why;
	size_t len;
	const char *maps = symbols_space_text(space, &len);

	(void)state;
	assert_non_null(image);
	if (!vdso || symbols_find_address(space, "__vdso_clock_gettime", &clock, &why) < 0)
		skip();
	assert_int_equal(symbols_space_add_evidence(space, image, &why), 0);
	assert_int_equal(symbols_space_create_recorded(maps, len, &recorded, &why), 0);
	symbols_space_set_memory(recorded, attach_image_reader(image));
	assert_int_equal(symbols_find_function(recorded, clock, &function, &why), 0);
	assert_string_equal(function.name, "__vdso_clock_gettime");
	symbols_space_destroy(recorded);
	attach_image_destroy(image);
}

/** Maps lines: this program's code twice, and a page of the C library's @p more times. */
static char *many_maps(unsigned more, size_t *ret_len)
{
	const struct symbols_mapping *own =
		symbols_space_find(space, address_of((void *)(uintptr_t)framed_code));
	const struct symbols_mapping *library =
		symbols_space_find(space, address_of(dlsym(RTLD_DEFAULT, "lfind")));
	uint64_t at = 0x100000000, len_bytes = own->end - own->start;
	char *text = calloc(more + 2, 512);
	size_t len = 0;

	assert_non_null(text);
	for (unsigned i = 0; i < more + 2; i++, at += len_bytes + 4096) {
		const struct symbols_mapping *mapping = i < 2 ? own : library;

		len += (size_t)snprintf(text + len, 512, "%lx-%lx r-xp %08lx %02x:%02x %lu %s\n",
					at, at + (i < 2 ? len_bytes : 4096), mapping->offset,
					mapping->dev_major, mapping->dev_minor, mapping->inode,
					mapping->path);
	}
	*ret_len = len;
	return text;
}

/** A file is looked at once, however often and wherever it is mapped; each place counts. */
static void test_entries_of_many_mappings(void **state)
{
	struct framed framed = { 0 };
	struct symbols_space *recorded;
	struct timespec begin, end;
	struct failure why;
	size_t len;
	char *text = many_maps(20000, &len);

	(void)state;
	assert_int_equal(symbols_space_create_recorded(text, len, &recorded, &why), 0);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	assert_int_equal(symbols_each_unwind_entry(recorded, 4096, take_framed, &framed, NULL), 0);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	assert_int_equal(framed.count, 2);
	assert_int_not_equal(framed.starts[0], framed.starts[1]);
	/* Reading its entries for each would take seconds. */
	assert_true(end.tv_sec - begin.tv_sec < 2);
	symbols_space_destroy(recorded);
	free(text);
}

static void test_recorded_hostile(void **state)
{
	static const char *const paths[] = { "/dev/zero", "/proc/self/mem", "/",	  "",
					     "relative",  "[stack]",	    "/etc/passwd" };
	struct symbols_space *recorded = NULL;
	struct symbols_function function;
	struct failure why;

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		recorded = record(paths[i], 1, 0, 5);
		assert_int_equal(symbols_find_function(recorded, 0x10004, &function, &why), 0);
		assert_false(function.is_symbol);
		symbols_space_destroy(recorded);
	}
	assert_int_equal(symbols_space_create_recorded("x", 1, &recorded, &why), -1);
	assert_int_equal(why.kind, FAILURE_INVALID);
}

static int read_other(pid_t pid, struct failure *why)
{
	struct attach_process *other;
	struct symbols_space *its;
	int result;

	if (attach_process_open_to_read(pid, &other, why) != 0)
		return -1;
	result = symbols_space_create(other, &its, why);
	if (result == 0)
		symbols_space_destroy(its);
	attach_process_close(other);
	return result;
}

/* An exec between opening and reading the maps leaves nothing to read: the process is there all the
 * same. */
static void test_replaced(void **state)
{
	char *const argv[] = { (char[]){ REPLACED_TARGET }, NULL };
	pid_t pid = fork();
	unsigned failed = 0;
	struct failure why;

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv(argv[0], argv);
		_exit(1);
	}
	for (unsigned i = 0; i < test_length(REPLACED_READS, FULL_REPLACED_READS); i++)
		if (read_other(pid, &why) != 0 && failed++ == 0)
			print_message("read %u: cannot %s, failure %d, errno %d\n", i, why.step,
				      (int)why.kind, why.errnum);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(failed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_function),
		cmocka_unit_test(test_library_function),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_build_id),
		cmocka_unit_test(test_without_symbol),
		cmocka_unit_test(test_stubs),
		cmocka_unit_test(test_entry_name),
		cmocka_unit_test(test_generation),
		cmocka_unit_test(test_file_bytes),
		cmocka_unit_test(test_entries),
		cmocka_unit_test(test_entries_of_many_mappings),
		cmocka_unit_test(test_programs_are_bounded),
		cmocka_unit_test(test_recorded),
		cmocka_unit_test(test_recorded_hostile),
		cmocka_unit_test(test_loads_of_names_are_bounded),
		cmocka_unit_test(test_evidence),
		cmocka_unit_test(test_names_are_bounded),
		cmocka_unit_test(test_replaced),
	};

	return cmocka_run_group_tests(tests, open_own, close_own);
}
