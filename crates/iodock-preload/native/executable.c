/* Determines whether the program about to be executed will load this library. */

#include "recorder.h"

enum { TYPE = 0170000, TYPE_PLAIN = 0100000, SET_USER = 04000, SET_GROUP = 02010 /* with the group's right to execute */ };
#define SCRIPTS 5 /* greatest number of nested script interpreters, as in the kernel */

/* Returns the ELF note of that type and name (four bytes with its NUL), or 0. */
const u32 *find_note(const u8 *at, u64 bytes, u32 type, u32 name) {
	for (u64 count; bytes >= 16; bytes = bytes > count ? bytes - count : 0, at += count) {
		const u32 *note = (const u32 *)at;
		if (note[2] == type && note[0] == 4 && note[3] == name)
			return note;
		count = 12 + ((note[0] + 3) & ~3ul) + ((note[1] + 3) & ~3ul);
	}
	return 0;
}

/* Whether this is the path of glibc's dynamic linker for x86-64, in any folder. */
static int is_ours(const u8 *linker, u64 bytes) {
	static const char name[] = "/ld-linux-x86-64.so.";
	u64 from = bytes;
	while (from && linker[from - 1] != '/')
		from--;
	u64 i = 0;
	while (from && i < sizeof(name) - 1 && from - 1 + i < bytes && linker[from - 1 + i] == (u8)name[i])
		i++;
	return i == sizeof(name) - 1;
}

/* Reads the end of the dynamic linker's path, which contains its name, or the beginning of a note segment,
 * which contains the note of Go's compiler. */
static long read_segment(long fd, const struct segment *segment, u8 *to) {
	u64 more = segment->file_bytes > NOTE_BYTES ? segment->file_bytes - NOTE_BYTES : 0;
	u64 from = segment->offset + (segment->type == PT_INTERP ? more : 0);
	return kernel(SYS_pread64, fd, (long)to, (long)(segment->file_bytes - more), (long)from, 0, 0);
}

/* Determines whether the library will see an ELF program's calls. A Go program may load the library, but
 * makes its calls without libc. `head` contains the first `bytes` of the file, and has space for a note. */
static enum sight sight_of_elf(long fd, u8 *head, u64 bytes) {
	const struct elf *elf = (const struct elf *)head;
	const struct segment *segment = (const struct segment *)(head + elf->segments_at);
	enum sight sight = BLIND;
	int is_go = 0;
	if (head[4] != 2 || elf->machine != MACHINE_X86_64)
		return FOREIGN;
	if (elf->segments_at > bytes || elf->segments > (bytes - elf->segments_at) / sizeof(*segment))
		return SEEN;
	for (u32 i = 0; i < elf->segments; i++) {
		if (segment[i].type != PT_NOTE && segment[i].type != PT_INTERP)
			continue;
		long got = read_segment(fd, &segment[i], head + HEAD_BYTES);
		if (segment[i].type == PT_INTERP)
			sight = failed(got) || is_ours(head + HEAD_BYTES, (u64)got) ? SEEN : FOREIGN;
		else
			is_go |= !failed(got) && find_note(head + HEAD_BYTES, (u64)got, NT_GO_BUILD_ID, NAME_GO) != 0;
	}
	return sight == SEEN && is_go ? BLIND : sight;
}

/* Whether executing the file grants privileges (set-user-ID and the like). In struct stat the mode is
 * followed by the user. */
static int gives_rights(long fd) {
	u64 status[STAT_WORDS];
	if (failed(kernel2(SYS_fstat, fd, status)))
		return 0;
	u32 mode = (u32)status[3], user = (u32)(status[3] >> 32);
	if ((mode & SET_GROUP) == SET_GROUP || ((mode & SET_USER) && user != (u32)kernel0(SYS_geteuid)))
		return 1;
	return kernel(SYS_fgetxattr, fd, (long)"security.capability", 0, 0, 0, 0) > 0;
}

/* Copies the path of the interpreter in a script's first line to `head`. Returns 0 if there is none. */
static int interpreter(u8 *head, u64 bytes) {
	u64 at = 2, to = 0;
	while (at < bytes && (head[at] == ' ' || head[at] == '\t'))
		at++;
	while (at < bytes && head[at] > ' ')
		head[to++] = head[at++];
	head[to] = 0;
	return to > 0;
}

/* Opens a regular file. Other files can't be executed, and are not opened, because opening has side effects:
 * a tape for example is rewound. */
static long open_plain(long directory, const u8 *path) {
	u64 status[STAT_WORDS];
	long found = kernel(SYS_newfstatat, directory, (long)path, (long)status, 0, 0, 0);
	if (failed(found))
		return found;
	if (((u32)status[3] & TYPE) != TYPE_PLAIN)
		return -EACCES;
	return kernel(SYS_openat, directory, (long)path, O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0, 0, 0);
}

/* Opens the file that execve or execveat will execute. Its path is argument number `at`. */
struct program open_program(const u64 *arguments, u32 at) {
	long directory = at ? (s32)arguments[0] : AT_FDCWD;
	long file = open_plain(directory, (const u8 *)arguments[at]);
	/* If the path is empty and AT_EMPTY_PATH is set, the descriptor itself is executed. */
	if (file == -ENOENT && at && (arguments[4] & AT_EMPTY_PATH))
		return (struct program){directory, 1};
	return (struct program){file, 0};
}

void close_program(const struct program *program) {
	if (!failed(program->file) && !program->is_borrowed)
		kernel1(SYS_close, program->file);
}

/* Determines whether the library will see the calls of the program (for a script its interpreter), and closes
 * its file. For an unreadable file this is assumed. If no descriptor is free the result is BLIND: the
 * program is traced, because a tracer needs no descriptor. `head` has space for HEAD_BYTES + NOTE_BYTES. */
enum sight sight_of(struct program program, u8 *head, u32 *is_foreign) {
	for (u32 depth = 0; depth <= SCRIPTS && !failed(program.file); depth++) {
		long bytes = kernel(SYS_pread64, program.file, (long)head, HEAD_BYTES - 1, 0, 0, 0);
		enum sight sight = SEEN;
		u32 is_elf = !failed(bytes) && bytes >= 64 && *(const u32 *)head == ELF_MAGIC;
		if (is_elf) {
			sight = sight_of_elf(program.file, head, (u64)bytes);
			*is_foreign = sight == FOREIGN;
			if (gives_rights(program.file))
				sight = PRIVILEGED;
		}
		close_program(&program);
		if (is_elf || failed(bytes) || bytes < 3 || head[0] != '#' || head[1] != '!' || !interpreter(head, (u64)bytes))
			return sight;
		program = (struct program){open_plain(AT_FDCWD, head), 0};
	}
	close_program(&program);
	return program.file == -EMFILE || program.file == -ENFILE ? BLIND : SEEN;
}
