/* The library's constructor, which runs when the library is loaded: it maps the session, patches the modules,
 * and records the process. */

#include "recorder.h"
#include "light.h"

static const char *variable(char **environment, const char *name) {
	for (; *environment; environment++) {
		u64 i = 0;
		while (name[i] && (*environment)[i] == name[i])
			i++;
		if (!name[i] && (*environment)[i] == '=')
			return *environment + i + 1;
	}
	return 0;
}

/* Returns a value of the auxiliary vector, which follows the environment in memory; 0 if it is missing. */
static u64 auxiliary(char **environment, u64 type) {
	while (*environment)
		environment++;
	const u64 *pair = (const u64 *)(environment + 1);
	while (pair[0] != AT_NULL && pair[0] != type)
		pair += 2;
	return pair[0] == AT_NULL ? 0 : pair[1];
}

/* Returns the dynamic linker's list of loaded modules, which it publishes for debuggers (DT_DEBUG). */
static struct link *modules(char **environment) {
	u64 segments_at = auxiliary(environment, AT_PHDR), count = auxiliary(environment, AT_PHNUM), load = 0;
	struct segment *segment = (struct segment *)segments_at;
	u64 *dynamic = 0;
	/* PT_PHDR comes first, and shows at which address the program is loaded. If it is missing, that is 0. */
	for (u64 i = 0; i < count; i++)
		if (segment[i].type == PT_PHDR)
			load = segments_at - segment[i].address;
		else if (segment[i].type == PT_DYNAMIC)
			dynamic = (u64 *)(load + segment[i].address);
	for (; dynamic && dynamic[0]; dynamic += 2)
		if (dynamic[0] == DT_DEBUG && dynamic[1])
			return *(struct link **)(dynamic[1] + 8);
	return 0;
}

/* Returns the path of the program: as it was passed to exec if that is absolute, else from /proc. */
static const char *program_name(char **environment, char *room, u64 bytes) {
	const char *name = (const char *)auxiliary(environment, AT_EXECFN);
	long count = name && name[0] == '/' ? -1 : kernel3(SYS_readlink, "/proc/self/exe", room, bytes - 1);
	if (failed(count))
		return name ? name : "";
	room[count] = 0;
	return room;
}

u32 counts_calls;

/* Returns the number that a variable contains, ~0 if it contains none. */
static u64 number_in(const char *value) {
	u64 number = 0;
	for (u32 i = 0; i < 10; i++) {
		if (!value[i])
			return i ? number : ~0ul;
		if (value[i] < '0' || value[i] > '9')
			break;
		number = 10 * number + (u64)(value[i] - '0');
	}
	return ~0ul;
}

/* Returns the MPI rank that the launcher has put into the environment; ~0 if there is none. */
static u64 rank_in(char **environment) {
	for (const char *name = session->rank_names; *name; name += length((const u8 *)name, sizeof(session->rank_names)) + 1) {
		/* In a batch script Slurm sets SLURM_PROCID to 0, although the script is not a task of a step. */
		if (begins((const u8 *)name, "SLURM_") && !variable(environment, "SLURM_STEP_ID"))
			continue;
		const char *value = variable(environment, name);
		u64 rank = value ? number_in(value) : ~0ul;
		if (rank != ~0ul)
			return rank;
	}
	return ~0ul;
}

/* Whether this process counts its calls instead of recording them: all processes do, or only those whose rank
 * the user has not chosen for recording. */
static u32 are_calls_counted(char **environment) {
	if (!session->table_bytes || !session->whole_count)
		return session->table_bytes != 0;
	u64 rank = rank_in(environment);
	if (rank == ~0ul)
		return session->counts_unranked;
	for (u32 i = 0; i < session->whole_count && i < RANGES_MOST; i++)
		if (rank >= session->whole[i].from && rank <= session->whole[i].to)
			return 0;
	return 1;
}

/* Maps only the head of the session's file. The whole file would take 64 GiB of address space, which may be
 * limited, and would all be locked with mlockall. */
static int map_session(char **environment) {
	long at = kernel(SYS_mmap, 0, HEAD_LEAST, PROT_READ | PROT_WRITE, MAP_SHARED, session_file, 0);
	struct header *mapped = (struct header *)at;
	if (failed(at) || mapped->magic != SESSION_MAGIC || mapped->version != SESSION_VERSION || mapped->time_shift != TIME_SHIFT ||
	    mapped->closed)
		return 0;
	session = mapped;
	if (session->head_bytes > HEAD_LEAST) {
		at = kernel(SYS_mremap, at, HEAD_LEAST, (long)session->head_bytes, MREMAP_MAYMOVE, 0, 0);
		if (failed(at))
			return 0;
		session = (struct header *)at;
	}
	header_span = (struct span){(u64)session, (u64)session + session->head_bytes};
	chunk_bytes = session->chunk_bytes;
	library = session->preloaded;
	counts_calls = are_calls_counted(environment);
	if (counts_calls)
		iodock_stub = iodock_light;
	return get_block(0) != 0 && (!counts_calls || begin_counting());
}

extern const u8 library_begin[] __asm__("__ehdr_start");

static void note_library(void) {
	const struct elf *elf = (const struct elf *)library_begin;
	const struct segment *segment = (const struct segment *)(library_begin + elf->segments_at);
	library_span = (struct span){(u64)library_begin, (u64)library_begin};
	for (u32 i = 0; i < elf->segments; i++)
		if (segment[i].type == PT_LOAD && (u64)library_begin + segment[i].address + segment[i].memory_bytes > library_span.to)
			library_span.to = (u64)library_begin + segment[i].address + segment[i].memory_bytes;
}

/* Whether a variable of the environment may hold the MPI rank, or is needed to judge one: Slurm's rank counts
 * only within a job step. */
static int names_rank(const char *pair) {
	if (begins((const u8 *)pair, "SLURM_STEP_ID="))
		return 1;
	for (; *pair && *pair != '='; pair++)
		if (begins((const u8 *)pair, "RANK") || begins((const u8 *)pair, "PROCI"))
			return 1;
	return 0;
}

/* Writes texts, each with its NUL, up to `most` bytes, to `at` (if that is not 0), and returns their length.
 * With `wanted`, the texts are variables, and only wanted ones are written. An argument that does not fit is
 * cut. A variable that does not fit is omitted, because a cut number would be wrong. */
static u64 put_texts(u8 *at, char **texts, u64 most, int (*wanted)(const char *)) {
	u64 bytes = 0;
	for (; *texts && bytes < most; texts++) {
		if (wanted && !wanted(*texts))
			continue;
		u64 left = most - bytes - 1, count = length((const u8 *)*texts, left + 1);
		if (count > left && wanted)
			break;
		count = count < left ? count : left;
		if (at)
			*put_bytes(at + bytes, (const u8 *)*texts, count) = 0;
		bytes += count + 1;
	}
	return bytes;
}

/* Writes a list of texts, preceded by its length in bytes. */
static u8 *put_list(u8 *at, char **texts, u64 most, int (*wanted)(const char *)) {
	u64 bytes = put_texts(at + 2, texts, most, wanted);
	return put_fixed(at, bytes, 2) + bytes;
}

#define TEXT_LIMIT 8192
#define RANKS_LIMIT 1024

/* Records facts about the process when its program starts. The exact size is computed first, to use as few
 * pages of the chunk as possible, because each costs time. */
static void write_process(char **arguments, char **environment, u32 traced) {
	u8 directory[PATH_LIMIT];
	u64 now = ticks() >> TIME_SHIFT;
	struct state *state = mine(now, 0);
	long named = kernel2(SYS_getcwd, directory, PATH_LIMIT);
	/* getcwd has returned the length of the name with its NUL. */
	u64 bytes = failed(named) ? 0 : (u64)named - 1;
	u64 texts = put_texts(0, arguments, TEXT_LIMIT, 0) + put_texts(0, environment, RANKS_LIMIT, names_rank);
	u8 *begin = state ? room(state, 0, PLAIN_LIMIT + bytes + texts, now) : 0, *at = begin;
	if (!begin)
		return;
	at = put_control(at, state, CONTROL_PROCESS, now);
	at = put_fixed(at, (u64)kernel0(SYS_getppid), 4);
	at = put_fixed(at, traced, 1);
	at = put_bytes(put_fixed(at, bytes, 2), directory, bytes);
	at = put_list(at, arguments, TEXT_LIMIT, 0);
	at = put_list(at, environment, RANKS_LIMIT, names_rank);
	commit_control(state, 0, begin, at, now);
	write_counted(state, 0, now);
}

/* Valgrind does not see data that the kernel writes into the recorder's memory, and would report their use
 * as errors of the program. */
static int is_in_valgrind(char **environment) {
	const char *libraries = variable(environment, "LD_PRELOAD");
	for (; libraries && *libraries; libraries++)
		if (begins((const u8 *)libraries, "/vgpreload_"))
			return 1;
	return 0;
}

__attribute__((constructor)) static void loaded(int count, char **arguments, char **environment) {
	/* musl calls constructors without arguments, so these must be checked. */
	if (arguments + count + 1 != environment)
		return;
	const char *path = variable(environment, "IODOCK_SESSION");
	if (!path || is_in_valgrind(environment))
		return;
	long answer = mark(MARK_LOADING);
	if (answer == STAY_OFF)
		return;
	char room[MODULE_NAME + 1];
	note_library();
	session_file = kernel3(SYS_open, path, O_RDWR | O_CLOEXEC, 0);
	/* If the recorder knows no call site of this process (for example with another libc), nothing is
	 * recorded. */
	u32 works = !failed(session_file) && map_session(environment), is_traced = answer == 0;
	if (works) {
		struct link *link = modules(environment);
		/* The program's arguments are at the top of the main thread's stack. */
		if (session->stacks && !counts_calls && begin_stacks((u64)arguments, auxiliary(environment, AT_PHDR), auxiliary(environment, AT_PHNUM), link))
			iodock_stub = iodock_plain_stacks;
		works = patch_all(link, program_name(environment, room, sizeof(room)));
	}
	if (!works && !failed(session_file)) {
		/* The file is closed before mark(), because afterwards the tracer records all calls, and this one is
		 * not the program's. */
		kernel1(SYS_close, session_file);
		session_file = -1;
	}
	if (is_traced)
		mark(works ? MARK_LOADED : MARK_FAILED);
	else if (!works && session)
		stop();
	if (works) {
		struct state *began_in = begin_own_calls();
		write_process(arguments, environment, is_traced);
		end_own_calls(began_in);
	} else {
		session = 0;
	}
	if (!failed(session_file))
		kernel1(SYS_close, session_file);
	session_file = -1;
}
