/* Programs executed with an environment of their own (env -i, subprocess with env={}) are to be recorded
 * too: ours is put back into it. A part of record.c, kept apart for reading.
 *
 * The kernel has not seen the environment yet, so it may be anything: it is asked what of it can be read. */

#define MOST_VARIABLES 2000
/* More than the names that are looked for. */
#define HEAD 16
#define SOME 64 /* variables that are looked at at once */
#define TEXTS (4 * (PATH_LIMIT + 1024))

/* What is used of it in most cases lies in few pages: each that is touched has its price, at each exec. */
struct environment {
	u64 pages[SOME][2];
	u8 bytes[SOME];
	enum sight sight; /* of the program that is executed */
	u32 used; /* of the texts: old and new variables */
	u32 is_foreign; /* the program shall not be told of the library, whatever else it is */
	u32 is_made; /* the list is the program's own with ours in it, or without */
	u64 list[MOST_VARIABLES + 3];
	u8 texts[TEXTS];
	/* The beginning of the program's file. */
	u8 head[HEAD_BYTES + NOTE_BYTES];
};

#define ENVIRONMENT_BYTES ((sizeof(struct environment) + 4095) & ~4095ul)

static void give_back_environment(struct environment *environment)
{
	if (environment)
		kernel2(SYS_munmap, environment, ENVIRONMENT_BYTES);
}

/* Where the next text may be written, with room for PATH_LIMIT and a little; keep_text says how much of it is used. */
static u8 *next_text(struct environment *environment)
{
	return environment->texts + environment->used;
}

static void keep_text(struct environment *environment, const u8 *end)
{
	environment->used = (u32)(end + 1 - environment->texts);
}

/* The number of variables, -1 if they can't be read or are too many. */
static long read_list(struct environment *environment, const u64 *from)
{
	for (u64 done = 0; from && done < MOST_VARIABLES;) {
		u64 count = (4096 - ((u64)(from + done) & 4095)) / 8;
		u64 most = done ? MOST_VARIABLES - done : SOME;
		if (count == 0 || count > most)
			count = count ? most : 1;
		if (copy_in(environment->list + done, from + done, count * 8) != count * 8)
			return -1;
		for (u64 i = 0; i < count; i++, done++)
			if (!environment->list[done])
				return (long)done;
	}
	return from ? -1 : 0;
}

/* Can so many variables be read, each as far as its page goes? A byte of each page is asked for: they lie in few. */
static int are_there(struct environment *environment, const u64 *list, u64 count)
{
	u64 pages = 0;
	for (u64 i = 0; i < count; i++) {
		u64 page = list[i] & ~4095ul, known = 0;
		while (known < pages && environment->pages[known][0] != page)
			known++;
		environment->pages[known][0] = page;
		environment->pages[known][1] = 1;
		pages += known == pages;
	}
	u64 into[2] = {(u64)environment->bytes, pages};
	long result = kernel(SYS_process_vm_readv, kernel0(SYS_getpid), (long)into, 1, (long)environment->pages, (long)pages, 0);
	return result == (long)pages;
}

static u8 *put_text(u8 *at, const char *text)
{
	while (*text)
		*at++ = (u8)*text++;
	*at = 0;
	return at;
}

/* Where our library stands in a list of libraries, -1 if it does not. */
static long place_of_library(const u8 *value)
{
	u64 count = length((const u8 *)library, sizeof(library_path));
	for (long at = 0;; at++) {
		u8 behind = begins(value + at, library) ? value[at + (long)count] : 1;
		if (behind == 0 || behind == ':' || behind == ' ')
			return at;
		while (value[at] && value[at] != ':' && value[at] != ' ')
			at++;
		if (!value[at])
			return -1;
	}
}

/* `with` is shorter than HEAD. The variable's page is there; what comes behind it may not be. */
static int variable_begins(u64 variable, const char *with)
{
	u8 head[HEAD] = {0};
	if ((variable & 4095) <= 4096 - HEAD)
		return begins((const u8 *)variable, with);
	u64 here = 4096 - (variable & 4095);
	if (copy_in(head, (const void *)variable, here) == here)
		copy_in(head + here, (const void *)(variable + here), HEAD - here);
	return begins(head, with);
}

struct variables {
	long count, preload, session;
	u32 only_lists; /* the program is not to run: ldd asks its dynamic linker for what it would load */
};

static int find_variables(struct environment *environment, const u64 *from, struct variables *found)
{
	long count = read_list(environment, from);
	*found = (struct variables){count, -1, -1, 0};
	for (long done = 0; done < count; done += SOME) {
		u64 some = count - done < SOME ? (u64)(count - done) : SOME;
		if (!are_there(environment, environment->list + done, some))
			return 0;
		for (u64 i = 0; i < some; i++) {
			u64 variable = environment->list[done + (long)i];
			if (variable_begins(variable, "LD_PRELOAD="))
				found->preload = done + (long)i;
			if (variable_begins(variable, "IODOCK_SESSION="))
				found->session = done + (long)i;
			if (variable_begins(variable, "LD_TRACE_LOADED"))
				found->only_lists = 1;
		}
	}
	return count >= 0;
}

/* Does it name this session? Else the program begins another recording, by itself. */
static int is_this_session(struct environment *environment, u64 variable)
{
	u8 *text = next_text(environment);
	u64 count = length((const u8 *)session->session, sizeof(session->session));
	return copy_path(text, (const u8 *)variable) && begins(text + 15, session->session) && !text[15 + count];
}

/* What opens files by rights that no longer belong to its user (setpriv --reuid) loses them by exec: access asks without them, but as the
 * real user. */
static int is_readable_behind_exec(void)
{
	long user = kernel1(SYS_getuid, 0);
	if (!user || user != kernel1(SYS_geteuid, 0))
		return 1;
	return kernel3(SYS_access, library, R_OK, 0) != -EACCES;
}

/* The dynamic linker complains of a library that it can't open: behind chroot, in a sandbox of files, with fewer rights, or when the recorder
 * has gone. (Of the sandbox only the open tells.) */
static int can_be_loaded(void)
{
	long file = kernel3(SYS_open, library, O_CLOEXEC | O_NONBLOCK, 0);
	if (!failed(file))
		kernel1(SYS_close, file);
	/* Where no descriptor is to be had it is but asked for. */
	if (file == -EMFILE || file == -ENFILE)
		file = kernel(SYS_faccessat2, AT_FDCWD, (long)library, R_OK, AT_EACCESS, 0, 0);
	return file != -ENOENT && file != -EACCES && file != -ENOTDIR && file != -EPERM && is_readable_behind_exec();
}

/* `old`: the list of libraries, behind its name. */
static void put_ours_in(struct environment *environment, struct variables *found, const u8 *old)
{
	if (found->preload < 0)
		found->preload = found->count++;
	if (found->session < 0)
		found->session = found->count++;
	environment->list[found->count] = 0;
	if (place_of_library(old) < 0) {
		u8 *preload = next_text(environment);
		u8 *at = put_text(put_text(preload, "LD_PRELOAD="), library);
		if (*old)
			at = put_text(put_text(at, ":"), (const char *)old);
		environment->list[found->preload] = (u64)preload;
		keep_text(environment, at);
	}
	u8 *name = next_text(environment);
	environment->list[found->session] = (u64)name;
	keep_text(environment, put_text(put_text(name, "IODOCK_SESSION="), session->session));
}

/* The libraries without ours, which stands at `at` of them. */
static u8 *put_others(u8 *to, const u8 *libraries, u64 at)
{
	u64 behind = at + length((const u8 *)library, sizeof(library_path));
	/* With a separator. */
	if (libraries[behind])
		behind++;
	else if (at)
		at--;
	return put_text(put_bytes(to, libraries, at), (const char *)libraries + behind);
}

static void take_ours_out(struct environment *environment, const struct variables *found, const u8 *old)
{
	long at = found->preload < 0 ? -1 : place_of_library(old);
	if (at < 0)
		return;
	u8 *preload = next_text(environment);
	keep_text(environment, put_others(put_text(preload, "LD_PRELOAD="), old, (u64)at));
	environment->list[found->preload] = (u64)preload;
	/* The last one takes its place. */
	if (!preload[11]) {
		environment->list[found->preload] = environment->list[found->count - 1];
		environment->list[found->count - 1] = 0;
	}
}

static struct environment *new_environment(void)
{
	long memory = kernel(SYS_mmap, 0, ENVIRONMENT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return failed(memory) ? 0 : (struct environment *)memory;
}

/* The environment with our library in it, or without, where it can't be loaded; *argument is that from now on. */
static void make_environment(struct environment *environment, u64 *argument)
{
	struct variables found;
	if (!find_variables(environment, (const u64 *)*argument, &found))
		return;
	u8 *old = next_text(environment);
	if (found.preload >= 0) {
		if (!copy_path(old, (const u8 *)environment->list[found.preload]))
			return;
		u64 bytes = length(old, PATH_LIMIT);
		if (bytes == PATH_LIMIT)
			return;
		keep_text(environment, old + bytes);
	} else {
		/* An empty list behind no name. */
		keep_text(environment, old + 11);
	}
	if (found.session >= 0 && !is_this_session(environment, environment->list[found.session]))
		return;
	u32 is_out_of_reach = found.only_lists || !can_be_loaded();
	if (is_out_of_reach || environment->is_foreign)
		take_ours_out(environment, &found, old + 11);
	else
		put_ours_in(environment, &found, old + 11);
	if (is_out_of_reach && environment->sight == SEEN)
		environment->sight = BLIND;
	*argument = (u64)environment->list;
	environment->is_made = 1;
}

/* The program of an exec is looked at, and its environment, the argument `environment_at`, made. (Shells try one folder after
 * the other: where no program is, nothing is made.) It touches nothing of the thread's: a handler may execute or fork meanwhile. */
static struct environment *prepare_exec(struct state *state, const struct shape *shape, struct frame *frame, u32 environment_at, u64 now)
{
	struct program program = open_program(frame->arguments, shape->roles[0] == ROLE_PATH ? 0 : 1);
	if (is_not_there(&program))
		return 0;
	/* (Before we read anything ourselves.) */
	count_before_exec(state, now);
	struct environment *environment = new_environment();
	if (!environment) {
		close_program(&program);
		return 0;
	}
	environment->sight = sight_of(program, environment->head, &environment->is_foreign);
	make_environment(environment, &frame->arguments[environment_at]);
	return environment;
}

/* Of an environment with ours in it: is this variable there for us only? */
static int is_only_for_us(struct environment *environment, u64 variable)
{
	u8 *text = next_text(environment);
	if (variable_begins(variable, "IODOCK_SESSION="))
		return 1;
	if (!variable_begins(variable, "LD_PRELOAD=") && !variable_begins(variable, "ASAN_OPTIONS="))
		return 0;
	/* The recorder's own addition where the program has no options. */
	static const char options[] = "ASAN_OPTIONS=:verify_asan_link_order=0";
	return copy_path(text, (const u8 *)variable) &&
	       (is_same(text + 11, library, sizeof(library_path)) || is_same(text, options, sizeof(options)));
}

/* With that environment. Returns its error. */
static s64 execute_with(u64 number, const u64 *given, u32 environment_at, const u64 *list)
{
	u64 arguments[6];
	for (u32 i = 0; i < 6; i++)
		arguments[i] = given[i];
	arguments[environment_at] = (u64)list;
	return kernel((long)number, (long)arguments[0], (long)arguments[1], (long)arguments[2], (long)arguments[3],
		      (long)arguments[4], (long)arguments[5]);
}

/* An exec had more to hand on than may be, with our variables in it: without them? Returns its error if not. */
static s64 exec_without_ours(struct environment *environment, const struct pending *exec, u32 environment_at)
{
	u64 count = 0;
	for (const u64 *variable = environment->list; *variable; variable++)
		if (!is_only_for_us(environment, *variable))
			environment->list[count++] = *variable;
	environment->list[count] = 0;
	return execute_with(exec->number, exec->arguments, environment_at, environment->list);
}
