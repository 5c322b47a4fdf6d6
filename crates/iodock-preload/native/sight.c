/* What is about to be executed: does it load this library? A part of record.c, kept apart for reading. */

#define SYS_fstat 5
#define SYS_geteuid 107
#define SYS_fgetxattr 193
#define AT_EMPTY_PATH 0x1000
#define TYPE 0170000
#define TYPE_PLAIN 0100000
#define SET_USER 04000
#define SET_GROUP 02010 /* with the right to execute */
#define PT_INTERP 3
#define PT_NOTE 4
#define NT_GO_BUILD_ID 4
#define MACHINE_X86_64 62
#define SCRIPTS 5 /* that interpret scripts, as deep as the kernel goes */
#define HEAD_BYTES 2048 /* 35 segments */
#define NOTE_BYTES 256

struct segment {
	u32 type, flags;
	u64 offset, address, physical, file_bytes, memory_bytes, align;
};

struct elf {
	u8 ident[16];
	u16 type, machine;
	u32 version;
	u64 entry, segments_at, sections_at;
	u32 flags;
	u16 header_bytes, segment_bytes, segments;
};

enum sight {
	SEEN,	/* it will load this library, as far as can be known */
	BLIND,	/* it will not, or makes its calls past it */
	FOREIGN, /* nor this: it has a dynamic linker that can't load it, or another libc than it is made for, and shall not be told of it */
	PRIVILEGED, /* nor this, and a tracer without privileges would take its own away */
};

static int is_go_note(const u8 *note, u64 bytes)
{
	const u32 *head = (const u32 *)note;
	while (bytes >= 16) {
		u64 count = 12 + ((head[0] + 3) & ~3ul) + ((head[1] + 3) & ~3ul);
		if (head[2] == NT_GO_BUILD_ID && head[0] == 4 && head[3] == 0x6f47 /* Go */)
			return 1;
		if (count >= bytes)
			return 0;
		bytes -= count;
		head = (const u32 *)((const u8 *)head + count);
	}
	return 0;
}

/* Is this the path of glibc's dynamic linker for x86-64, wherever it lies? */
static int is_ours(const u8 *linker, u64 bytes)
{
	static const char name[] = "/ld-linux-x86-64.so.";
	u64 from = bytes;
	while (from && linker[from - 1] != '/')
		from--;
	u64 i = 0;
	while (from && i < sizeof(name) - 1 && from - 1 + i < bytes && linker[from - 1 + i] == (u8)name[i])
		i++;
	return i == sizeof(name) - 1;
}

/* Of a linker's path the end is read, where its name stands; of notes the beginning, where Go's is. */
static long read_segment(long fd, const struct segment *segment, u8 *to)
{
	u64 more = segment->file_bytes > NOTE_BYTES ? segment->file_bytes - NOTE_BYTES : 0;
	u64 from = segment->offset + (segment->type == PT_INTERP ? more : 0);
	return kernel(SYS_pread64, fd, (long)to, (long)(segment->file_bytes - more), (long)from, 0, 0);
}

/* `head`: the first `bytes` of the file, with room for a note behind. */
static enum sight sight_of_elf(long fd, u8 *head, u64 bytes)
{
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
			is_go |= !failed(got) && is_go_note(head + HEAD_BYTES, (u64)got);
	}
	return sight == SEEN && is_go ? BLIND : sight;
}

/* Of struct stat, in which user and group stand behind it. */
static inline u32 mode_in(const u64 *status)
{
	return (u32)status[3];
}

/* Does the file give rights? */
static int gives_rights(long fd, u64 *status)
{
	if (failed(kernel2(SYS_fstat, fd, status)))
		return 0;
	u32 mode = mode_in(status), user = (u32)(status[3] >> 32);
	if ((mode & SET_USER) && user != (u32)kernel0(SYS_geteuid))
		return 1;
	if ((mode & SET_GROUP) == SET_GROUP)
		return 1;
	return kernel(SYS_fgetxattr, fd, (long)"security.capability", 0, 0, 0, 0) > 0;
}

/* The program that a script's first line names is put where `head` is; 0 if it names none. */
static int interpreter(u8 *head, u64 bytes)
{
	u64 at = 2, to = 0;
	while (at < bytes && (head[at] == ' ' || head[at] == '\t'))
		at++;
	while (at < bytes && head[at] > ' ')
		head[to++] = head[at++];
	head[to] = 0;
	return to > 0;
}

/* A file that is about to be executed. */
struct program {
	long file;	 /* its descriptor, or the error of opening it */
	u32 is_borrowed; /* of the program itself: to close even a copy of it would take away the locks that its process has on the file */
};

/* What is no plain file can't be executed, and is not touched: to open a tape winds it back. */
static long open_plain(long directory, const u8 *path)
{
	u64 status[18];
	long found = kernel(SYS_newfstatat, directory, (long)path, (long)status, 0, 0, 0);
	if (failed(found))
		return found;
	if ((mode_in(status) & TYPE) != TYPE_PLAIN)
		return -EACCES;
	return kernel(SYS_openat, directory, (long)path, O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0, 0, 0);
}

/* What is executed where the arguments of exec and execveat say, as they stand from `at` on. */
static struct program open_program(const u64 *arguments, u32 at)
{
	long directory = at ? (s32)arguments[0] : AT_FDCWD;
	long file = open_plain(directory, (const u8 *)arguments[at]);
	/* An empty path, where that is allowed: the descriptor itself. */
	if (file == -ENOENT && at && (arguments[4] & AT_EMPTY_PATH))
		return (struct program){directory, 1};
	return (struct program){file, 0};
}

static int is_not_there(const struct program *program)
{
	return program->file == -ENOENT || program->file == -ENOTDIR;
}

/* Which can't be looked at: it is believed to be one of most. Where all descriptors are taken, which a tracer does not need, it is traced. */
static enum sight sight_without(const struct program *program)
{
	return program->file == -EMFILE || program->file == -ENFILE ? BLIND : SEEN;
}

static void close_program(const struct program *program)
{
	if (!failed(program->file) && !program->is_borrowed)
		kernel1(SYS_close, program->file);
}

/* What becomes of the program, which is closed. `head` has room for HEAD_BYTES + NOTE_BYTES. What can't be read is believed to be seen.
 * Scripts lie as deep as the kernel goes, and then there is the program. */
static enum sight sight_of(struct program program, u8 *head, u32 *is_foreign)
{
	u64 status[32];
	for (u32 depth = 0; depth <= SCRIPTS && !failed(program.file); depth++) {
		long bytes = kernel(SYS_pread64, program.file, (long)head, HEAD_BYTES - 1, 0, 0, 0);
		enum sight sight = SEEN;
		u32 is_elf = !failed(bytes) && bytes >= 64 && *(const u32 *)head == 0x464c457f;
		if (is_elf) {
			sight = sight_of_elf(program.file, head, (u64)bytes);
			*is_foreign = sight == FOREIGN;
			if (gives_rights(program.file, status))
				sight = PRIVILEGED;
		}
		close_program(&program);
		if (is_elf || failed(bytes) || bytes < 3 || head[0] != '#' || head[1] != '!' || !interpreter(head, (u64)bytes))
			return sight;
		program = (struct program){open_plain(AT_FDCWD, head), 0};
	}
	close_program(&program);
	return sight_without(&program);
}
