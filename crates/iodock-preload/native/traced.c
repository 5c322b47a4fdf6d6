/* Programs that this library does not reach, and with --complete what the dynamic linker does before it is loaded, are traced by the
 * recorder, which is asked before the program is executed. A part of record.c, kept apart for reading.
 *
 * The tracer is spoken to by a call that means nothing to the kernel: it answers in the kernel's place. */

#define PR_IODOCK 0x494f444b
#define STAY_OFF 1
enum mark {
	MARK_ASKED = 1,  /* am I traced? */
	MARK_LOADING = 2, /* what follows is the library's own; STAY_OFF: it shall not begin */
	MARK_LOADED = 3, /* calls are recorded here from now on: the tracer lets go */
	MARK_FAILED = 4, /* they are not */
};

#define SYS_fstat 5
#define SYS_geteuid 107
#define SYS_fgetxattr 193
#define PR_SET_PTRACER 0x59616d61
#define AT_EMPTY_PATH 0x1000
#define SET_USER 04000
#define SET_GROUP 02010 /* with the right to execute */
#define PT_INTERP 3
#define PT_NOTE 4
#define NT_GO_BUILD_ID 4
#define MACHINE_X86_64 62
#define SCRIPTS 5 /* that interpret scripts, as deep as the kernel goes */
/* How often to look, how long to wait for others that ask, and for an answer. */
#define LOOK_NS 10000000l
#define TURN_TRIES 1000
#define ANSWER_TRIES 300

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

static long mark(u32 what)
{
	return kernel2(SYS_prctl, PR_IODOCK, what);
}

enum sight {
	SEEN,	/* it will load this library, as far as can be known */
	BLIND,	/* it will not, or makes its calls past it */
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

/* `head`: the first `bytes` of the file, with room for a note behind. */
static enum sight sight_of_elf(long fd, u8 *head, u64 bytes)
{
	const struct elf *elf = (const struct elf *)head;
	const struct segment *segment = (const struct segment *)(head + elf->segments_at);
	u32 has_linker = 0;
	if (head[4] != 2 || elf->machine != MACHINE_X86_64)
		return BLIND;
	if (elf->segments_at > bytes || elf->segments > (bytes - elf->segments_at) / sizeof(*segment))
		return SEEN;
	for (u32 i = 0; i < elf->segments; i++) {
		u64 count = segment[i].file_bytes < NOTE_BYTES ? segment[i].file_bytes : NOTE_BYTES;
		has_linker |= segment[i].type == PT_INTERP;
		if (segment[i].type != PT_NOTE)
			continue;
		long got = kernel(SYS_pread64, fd, (long)(head + HEAD_BYTES), (long)count, (long)segment[i].offset, 0, 0);
		if (!failed(got) && is_go_note(head + HEAD_BYTES, (u64)got))
			return BLIND;
	}
	return has_linker ? SEEN : BLIND;
}

/* Does the file give rights? struct stat holds the mode at 24, user and group behind. */
static int gives_rights(long fd, u64 *status)
{
	if (failed(kernel2(SYS_fstat, fd, status)))
		return 0;
	u32 mode = (u32)status[3], user = (u32)(status[3] >> 32);
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

/* What becomes of the file that is about to be executed. `head` has room for HEAD_BYTES + NOTE_BYTES. What can't be read is believed to
 * be seen. */
static enum sight sight_of(long directory, const u8 *path, u64 flags, u8 *head)
{
	u64 status[32];
	for (u32 depth = 0; depth < SCRIPTS; depth++) {
		u32 is_open = (flags & AT_EMPTY_PATH) && path[0] == 0;
		long fd = is_open ? directory
				  : kernel(SYS_openat, directory, (long)path, O_CLOEXEC | O_NONBLOCK, 0, 0, 0);
		if (failed(fd))
			return SEEN;
		long bytes = kernel(SYS_pread64, fd, (long)head, HEAD_BYTES - 1, 0, 0, 0);
		enum sight sight = SEEN;
		u32 is_elf = !failed(bytes) && bytes >= 64 && *(const u32 *)head == 0x464c457f;
		if (is_elf) {
			sight = sight_of_elf(fd, head, (u64)bytes);
			if (gives_rights(fd, status))
				sight = PRIVILEGED;
		}
		if (!is_open)
			kernel1(SYS_close, fd);
		if (is_elf || failed(bytes) || bytes < 3 || head[0] != '#' || head[1] != '!' || !interpreter(head, (u64)bytes))
			return sight;
		directory = AT_FDCWD;
		path = head;
		flags = 0;
	}
	return SEEN;
}

/* Waits until the recorder has taken up this thread, or for three seconds, once: it may be gone. Who waits for a turn goes on when
 * somebody has found that. */
static void ask_to_be_traced(const struct state *state)
{
	u32 *asking = &session->trace_asking;
	struct { long seconds, ns; } moment = {0, LOOK_NS};
	u32 nobody = 0, me = state->tid;
	/* Where only ancestors may trace, and ours may have gone. */
	kernel2(SYS_prctl, PR_SET_PTRACER, session->recorder);
	for (u32 tries = 0; !__atomic_compare_exchange_n(asking, &nobody, me, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE); tries++) {
		if (tries == TURN_TRIES || !session->trace_what)
			return;
		kernel(SYS_futex, (long)asking, FUTEX_WAIT, nobody, (long)&moment, 0, 0);
		nobody = 0;
	}
	kernel3(SYS_futex, asking, FUTEX_WAKE, 1);
	for (u32 tries = 0; __atomic_load_n(asking, __ATOMIC_ACQUIRE) == me; tries++) {
		u32 still = me;
		if (tries == ANSWER_TRIES) {
			__atomic_compare_exchange_n(asking, &still, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
			session->trace_what = TRACE_NOTHING;
			return;
		}
		kernel(SYS_futex, (long)asking, FUTEX_WAIT, me, (long)&moment, 0, 0);
	}
}

/* Does the recorder know this thread by the number that it knows itself? */
static int has_name(u64 *status)
{
	return !failed(kernel2(SYS_stat, "/proc/self/ns/pid", status)) && status[1] == session->id_space;
}

/* An exec is about to be made: where this library will not see what comes, somebody else shall. */
static void before_exec(struct state *state, const struct shape *shape, const struct frame *frame)
{
	u64 what = session->trace_what;
	if (confined || !what || session->closed || !state->environment)
		return;
	u32 at = shape->roles[0] == ROLE_PATH ? 0 : 1;
	struct environment *scratch = (struct environment *)state->environment;
	enum sight sight = SEEN;
	u8 *path = next_text(scratch);
	if (copy_path(path, (const u8 *)frame->arguments[at]))
		sight = sight_of(at ? (s32)frame->arguments[0] : AT_FDCWD, path, at ? frame->arguments[4] : 0, scratch->head);
	if (sight == SEEN && scratch->out_of_reach)
		sight = BLIND;
	u64 wanted = sight == SEEN ? TRACE_ALL : sight == BLIND ? TRACE_UNSEEN : TRACE_PRIVILEGED;
	if (!(what & wanted) || !has_name((u64 *)scratch->head))
		return;
	ask_to_be_traced(state);
	if (mark(MARK_ASKED) != 0)
		return;
	u32 level = enter(state);
	write_control(state, level, CONTROL_TRACED, ticks() >> TIME_SHIFT);
	leave(state, level);
}
