/* Changes the environment of an exec. It adds our library if it is missing, so that programs started with
 * their own environment (env -i) are recorded too; it removes the library if the program can't load it. The
 * kernel has not checked the environment yet, and its pointers may be invalid: so it is copied by the
 * kernel. */

#include "recorder.h"

#define MOST_VARIABLES 2000
#define NAME_MOST 16 /* longer than each variable's name that is searched for */
#define SOME 64 /* number of variables examined at a time */
#define TEXTS (4 * (PATH_LIMIT + 1024))

/* Memory for a changed environment. It is large, but usually few of its pages are used, because each used
 * page costs time at each exec. */
struct environment {
	u64 pages[SOME][2];
	u8 bytes[SOME];
	enum sight sight; /* whether this library will record the program that is executed */
	u32 used; /* number of used bytes of `texts`, which holds old and new variables */
	u32 is_foreign; /* the program must not get the library, because it is for another linker, libc or machine */
	u32 is_made; /* `list` is complete: the program's own variables, with or without ours */
	u64 list[MOST_VARIABLES + 3];
	u8 texts[TEXTS];
	u8 head[HEAD_BYTES + NOTE_BYTES]; /* beginning of the program's file */
};
#define ENVIRONMENT_BYTES ((sizeof(struct environment) + 4095) & ~4095ul)

struct environment *new_environment(void) {
	long memory = kernel(SYS_mmap, 0, ENVIRONMENT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return failed(memory) ? 0 : (struct environment *)memory;
}

void give_back_environment(struct environment *environment) {
	if (environment)
		kernel2(SYS_munmap, environment, ENVIRONMENT_BYTES);
}

/* Returns the address for the next text, with room for a little more than PATH_LIMIT bytes. */
static u8 *next_text(struct environment *environment) {
	return environment->texts + environment->used;
}

static void keep_text(struct environment *environment, const u8 *end) {
	environment->used = (u32)(end + 1 - environment->texts);
}

/* Copies the list of variables. Returns their number, -1 if they can't be read or are too many. */
static long read_list(struct environment *environment, const u64 *from) {
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

/* Whether the variables are readable, each up to the end of its page. Variables are usually in few pages, so
 * one byte of each page is read. */
static int are_there(struct environment *environment, const u64 *list, u64 count) {
	u64 pages = 0;
	for (u64 i = 0; i < count; i++) {
		u64 page = list[i] & ~4095ul, known = 0;
		while (known < pages && environment->pages[known][0] != page)
			known++;
		environment->pages[known][0] = page;
		environment->pages[known][1] = 1;
		pages += known == pages;
	}
	return read_pieces(environment->bytes, pages, environment->pages, pages) == (long)pages;
}

/* Returns the position of our library (with the library for interfaces after it, if that is used) in a list
 * of libraries, -1 if it is missing. */
long place_of_library(const u8 *value) {
	u64 count = length((const u8 *)library, sizeof(session->preloaded));
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

/* Whether the variable begins with that text. The variable's page is readable; the next page may not be. */
static int variable_begins(u64 variable, const char *with) {
	u8 head[NAME_MOST] = {0};
	if ((variable & 4095) <= 4096 - NAME_MOST)
		return begins((const u8 *)variable, with);
	u64 here = 4096 - (variable & 4095);
	if (copy_in(head, (const void *)variable, here) == here)
		copy_in(head + here, (const void *)(variable + here), NAME_MOST - here);
	return begins(head, with);
}

struct variables {
	long count, preload, session;
	u32 only_lists; /* ldd executes the program: its dynamic linker will only list the libraries */
};

static int find_variables(struct environment *environment, const u64 *from, struct variables *found) {
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

/* Whether the variable names this session. If not, the program begins another recording itself. */
static int is_this_session(struct environment *environment, u64 variable) {
	u8 *text = next_text(environment);
	u64 count = length((const u8 *)session->session, sizeof(session->session));
	return copy_path(text, (const u8 *)variable) && begins(text + 15, session->session) && !text[15 + count];
}

/* Whether the library stays readable after an exec. A process that changed its user id (setpriv --reuid) may
 * keep capabilities that it loses at the exec. access(2) checks without them, but for the real user id. */
static int is_readable_behind_exec(void) {
	long user = kernel1(SYS_getuid, 0);
	if (!user || user != kernel1(SYS_geteuid, 0))
		return 1;
	return kernel3(SYS_access, session->library, R_OK, 0) != -EACCES;
}

/* Whether the dynamic linker could open our library. Otherwise it would print an error: after chroot or
 * Landlock, with fewer rights, or when the recorder has ended and has removed the library. */
static int can_be_loaded(void) {
	long file = kernel3(SYS_open, session->library, O_CLOEXEC | O_NONBLOCK, 0);
	if (!failed(file))
		kernel1(SYS_close, file);
	/* If no descriptor is free, the library is checked by its name. */
	if (file == -EMFILE || file == -ENFILE)
		file = kernel(SYS_faccessat2, AT_FDCWD, (long)session->library, R_OK, AT_EACCESS, 0, 0);
	return file != -ENOENT && file != -EACCES && file != -ENOTDIR && file != -EPERM && is_readable_behind_exec();
}

/* Adds our library and our session to the environment. `old` is the list of libraries so far. */
static void put_ours_in(struct environment *environment, struct variables *found, const u8 *old) {
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

static void take_ours_out(struct environment *environment, const struct variables *found, const u8 *old) {
	long at = found->preload < 0 ? -1 : place_of_library(old);
	if (at < 0)
		return;
	u8 *preload = next_text(environment);
	keep_text(environment, put_other_libraries(preload, old, (u64)at));
	environment->list[found->preload] = (u64)preload;
	/* If LD_PRELOAD becomes empty, the last variable takes its place in the list. */
	if (!preload[11]) {
		environment->list[found->preload] = environment->list[found->count - 1];
		environment->list[found->count - 1] = 0;
	}
}

/* Copies the list of libraries after LD_PRELOAD=. Returns 0 if the list is unreadable or too long. */
static int copy_preload(struct environment *environment, const struct variables *found) {
	u8 *old = next_text(environment);
	/* If the variable is missing, the list is empty: 11 is the length of LD_PRELOAD=. */
	u64 bytes = 11;
	if (found->preload >= 0 && (!copy_path(old, (const u8 *)environment->list[found->preload]) ||
				    (bytes = length(old, PATH_LIMIT)) == PATH_LIMIT))
		return 0;
	keep_text(environment, old + bytes);
	return 1;
}

/* Sets *argument to the environment with our library, or without it if it can't be loaded. */
void make_environment(struct environment *environment, u64 *argument) {
	struct variables found;
	const u8 *old = next_text(environment) + 11;
	if (!find_variables(environment, (const u64 *)*argument, &found) || !copy_preload(environment, &found))
		return;
	if (found.session >= 0 && !is_this_session(environment, environment->list[found.session]))
		return;
	u32 is_out_of_reach = found.only_lists || !can_be_loaded();
	if (is_out_of_reach || environment->is_foreign)
		take_ours_out(environment, &found, old);
	else
		put_ours_in(environment, &found, old);
	if (is_out_of_reach && environment->sight == SEEN)
		environment->sight = BLIND;
	*argument = (u64)environment->list;
	environment->is_made = 1;
}

/* Examines the program of an exec, and creates its environment. Returns 0 if the program does not exist:
 * shells try one folder of PATH after the other. The environment is not noted in the thread's state yet,
 * because a handler may make an exec or a fork in between. */
struct environment *prepare_exec(struct state *state, const struct shape *shape, struct frame *frame, u32 environment_at, u64 now) {
	struct program program = open_program(frame->arguments, shape->roles[0] == ROLE_PATH ? 0 : 1);
	if (program.file == -ENOENT || program.file == -ENOTDIR)
		return 0;
	/* The kernel's count is read first, because our own reads below would increase it. */
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

/* Requests tracing from the recorder if the library will not see the program's calls. */
void trace_exec(struct state *state, const struct environment *environment) {
	if (environment)
		before_exec(state, environment->sight);
}

/* Repeats a failed exec without our variables if its arguments and variables were too many (E2BIG). Returns
 * the result. */
s64 execute_again(struct state *state, const struct pending *exec, u32 environment_at, s64 result) {
	struct environment *environment = exec->exec.made;
	struct given given;
	if (result != -E2BIG || !environment || !environment->is_made)
		return result;
	/* A tracer detached when the exec failed, so tracing must be requested again. */
	if (environment->sight == SEEN)
		environment->sight = BLIND;
	before_exec(state, environment->sight);
	if (find_ours(&given, environment->list))
		copy_others(environment->list, next_text(environment), &given);
	return execute_with(exec->number, exec->arguments, environment_at, environment->list);
}
