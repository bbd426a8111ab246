/* SPDX-License-Identifier: MIT */
#include "made_core.h"
#include "attach/reader.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/user.h>
#include <unistd.h>

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

const uint8_t made_build_id[20] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };

static void must(bool good)
{
	if (!good)
		abort();
}

/* ---- Bytes ------------------------------------------------------------------------------ */

void made_append(struct made_bytes *made, const void *bytes, size_t len)
{
	if (made->size - made->len < len) {
		made->size = 2 * (made->len + len);
		made->bytes = realloc(made->bytes, made->size);
		must(made->bytes != NULL);
	}
	if (bytes)
		memcpy(made->bytes + made->len, bytes, len);
	else
		memset(made->bytes + made->len, 0, len);
	made->len += len;
}

static void pad(struct made_bytes *made, size_t unit)
{
	made_append(made, NULL, (unit - made->len % unit) % unit);
}

void made_free(struct made_bytes *made)
{
	free(made->bytes);
	*made = (struct made_bytes){ 0 };
}

uint8_t made_byte(uint64_t address)
{
	return (uint8_t)(address ^ address >> 8 ^ address >> 16);
}

/* ---- Notes ------------------------------------------------------------------------------ */

static void append_note(struct made_bytes *notes, const char *name, uint32_t type,
			const void *bytes, size_t len)
{
	Elf64_Nhdr header = { .n_namesz = (uint32_t)strlen(name) + 1,
			      .n_descsz = (uint32_t)len,
			      .n_type = type };

	made_append(notes, &header, sizeof(header));
	made_append(notes, name, header.n_namesz);
	pad(notes, 4);
	made_append(notes, bytes, len);
	pad(notes, 4);
}

void made_note(struct made_core *core, uint32_t type, const void *bytes, size_t len)
{
	append_note(&core->notes, "CORE", type, bytes, len);
}

void made_thread(struct made_core *core, pid_t tid, short signal, uint64_t pc, uint64_t sp)
{
	struct elf_prstatus status = { .pr_cursig = signal, .pr_pid = tid };
	struct user_regs_struct user = { 0 };

#if defined(__x86_64__)
	user.rip = pc;
	user.rsp = sp;
	user.orig_rax = (unsigned long long)-1;
#else
	user.pc = pc;
	user.sp = sp;
#endif
	memcpy(&status.pr_reg, &user, sizeof(user));
	made_note(core, NT_PRSTATUS, &status, sizeof(status));
}

void made_process(struct made_core *core, pid_t pid, const char *name)
{
	struct elf_prpsinfo info = { .pr_pid = pid };

	memcpy(info.pr_fname, name, strnlen(name, sizeof(info.pr_fname)));
	made_note(core, NT_PRPSINFO, &info, sizeof(info));
}

void made_auxv(struct made_core *core, uint64_t vdso)
{
	const Elf64_auxv_t entries[] = { { .a_type = AT_PAGESZ, .a_un.a_val = MADE_PAGE },
					 { .a_type = AT_SYSINFO_EHDR, .a_un.a_val = vdso },
					 { .a_type = AT_NULL } };

	made_note(core, NT_AUXV, entries, sizeof(entries));
}

void made_files(struct made_core *core, const struct made_file *files, size_t count)
{
	const uint64_t head[] = { count, MADE_PAGE };
	struct made_bytes list = { 0 };

	made_append(&list, head, sizeof(head));
	for (size_t i = 0; i < count; i++) {
		const uint64_t entry[] = { files[i].start, files[i].end, files[i].page };

		made_append(&list, entry, sizeof(entry));
	}
	for (size_t i = 0; i < count; i++)
		made_append(&list, files[i].path, strlen(files[i].path) + 1);
	made_note(core, NT_FILE, list.bytes, list.len);
	made_free(&list);
}

/* ---- Files ------------------------------------------------------------------------------ */

static Elf64_Ehdr make_header(uint16_t type, uint16_t segments)
{
	Elf64_Ehdr header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					   ELFDATA2LSB, EV_CURRENT },
			      .e_type = type,
			      .e_machine = MACHINE,
			      .e_version = EV_CURRENT,
			      .e_phoff = sizeof(header),
			      .e_ehsize = sizeof(header),
			      .e_phentsize = sizeof(Elf64_Phdr),
			      .e_phnum = segments };

	return header;
}

static void append_memory(struct made_bytes *file, const struct made_segment *segment)
{
	if (segment->bytes) {
		made_append(file, segment->bytes, segment->saved);
		return;
	}
	for (uint64_t i = 0; i < segment->saved; i++) {
		uint8_t byte = made_byte(segment->start + i);

		made_append(file, &byte, 1);
	}
}

void made_finish(struct made_core *core, const struct made_segment *segments, size_t count)
{
	Elf64_Ehdr header = make_header(ET_CORE, (uint16_t)(count + 1));
	Elf64_Phdr note = { .p_type = PT_NOTE,
			    .p_offset = sizeof(header) + (count + 1) * sizeof(note),
			    .p_filesz = core->notes.len };
	uint64_t at = note.p_offset + note.p_filesz;

	made_append(&core->file, &header, sizeof(header));
	made_append(&core->file, &note, sizeof(note));
	for (size_t i = 0; i < count; i++) {
		Elf64_Phdr load = { .p_type = PT_LOAD,
				    .p_flags = segments[i].flags,
				    .p_offset = at,
				    .p_vaddr = segments[i].start,
				    .p_filesz = segments[i].saved,
				    .p_memsz = segments[i].size };

		made_append(&core->file, &load, sizeof(load));
		at += segments[i].saved;
	}
	made_append(&core->file, core->notes.bytes, core->notes.len);
	for (size_t i = 0; i < count; i++)
		append_memory(&core->file, &segments[i]);
}

void made_core_free(struct made_core *core)
{
	made_free(&core->notes);
	made_free(&core->file);
}

void made_program(struct made_bytes *program, const uint8_t *build_id, uint8_t fill)
{
	Elf64_Ehdr header = make_header(ET_DYN, 3);
	const uint64_t notes = sizeof(header) + 3 * sizeof(Elf64_Phdr);
	struct made_bytes note = { 0 };
	Elf64_Phdr segments[3] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = MADE_PAGE, .p_memsz = MADE_PAGE },
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_offset = MADE_PAGE,
		  .p_vaddr = MADE_PAGE,
		  .p_filesz = MADE_PAGE,
		  .p_memsz = MADE_PAGE },
		{ .p_type = PT_NOTE, .p_offset = notes, .p_vaddr = notes },
	};

	if (build_id)
		append_note(&note, "GNU", NT_GNU_BUILD_ID, build_id, 20);
	segments[2].p_filesz = segments[2].p_memsz = note.len;
	made_append(program, &header, sizeof(header));
	made_append(program, segments, sizeof(segments));
	made_append(program, note.bytes, note.len);
	pad(program, MADE_PAGE);
	made_append(program, NULL, MADE_PAGE);
	memset(program->bytes + MADE_PAGE, fill, MADE_PAGE);
	made_free(&note);
}

int made_open(const void *bytes, size_t len, char ret_path[64])
{
	int fd = memfd_create("made", MFD_CLOEXEC);

	must(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
	snprintf(ret_path, 64, "/proc/self/fd/%d", fd);
	return fd;
}
