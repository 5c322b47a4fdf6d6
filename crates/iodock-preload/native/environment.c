/* Programs executed with an environment of their own (env -i, subprocess with env={}) are to be recorded
 * too: ours is put back into it. A part of record.c, kept apart for reading.
 *
 * The kernel has not seen the environment yet, so it may be anything: it is only read as the kernel would. */

#define MOST_VARIABLES 2000
#define HEAD 16
#define SOME 1000 /* pieces that one process_vm_readv takes (IOV_MAX is 1024) */

struct environment {
	u64 list[MOST_VARIABLES + 3];
	u8 heads[MOST_VARIABLES][HEAD];
	u64 pieces[SOME][2];
	u8 preload[2 * PATH_LIMIT]; /* the new one; from PATH_LIMIT on the old one */
	u8 session[PATH_LIMIT];
};

#define ENVIRONMENT_BYTES ((sizeof(struct environment) + 4095) & ~4095ul)

static void give_back_environment(struct state *state)
{
	if (state->environment)
		kernel2(SYS_munmap, state->environment, ENVIRONMENT_BYTES);
	state->environment = 0;
}

/* The number of variables, -1 if they can't be read or are too many. */
static long read_list(struct environment *environment, const u64 *from)
{
	for (u64 done = 0; from && done < MOST_VARIABLES;) {
		u64 count = (4096 - ((u64)(from + done) & 4095)) / 8;
		if (count == 0 || count > MOST_VARIABLES - done)
			count = count ? MOST_VARIABLES - done : 1;
		if (copy_in(environment->list + done, from + done, count * 8) != count * 8)
			return -1;
		for (u64 i = 0; i < count; i++, done++)
			if (!environment->list[done])
				return (long)done;
	}
	return from ? -1 : 0;
}

/* The first bytes of each variable. */
static int read_heads(struct environment *environment, u64 count)
{
	for (u64 done = 0; done < count;) {
		u64 some = count - done < SOME ? count - done : SOME;
		for (u64 i = 0; i < some; i++) {
			environment->pieces[i][0] = environment->list[done + i];
			environment->pieces[i][1] = HEAD;
		}
		u64 into[2] = {(u64)environment->heads[done], some * HEAD};
		long result = kernel(SYS_process_vm_readv, kernel0(SYS_getpid), (long)into, 1, (long)environment->pieces,
				     (long)some, 0);
		if (result != (long)(some * HEAD))
			return 0;
		done += some;
	}
	return 1;
}

static int begins(const u8 *text, const char *with)
{
	while (*with)
		if (*text++ != (u8)*with++)
			return 0;
	return 1;
}

static u8 *put_text(u8 *at, const char *text)
{
	while (*text)
		*at++ = (u8)*text++;
	*at = 0;
	return at;
}

/* Is our library among those of `value`? It was put first. */
static int has_library(const u8 *value)
{
	u64 count = length((const u8 *)session->library, sizeof(session->library));
	return begins(value, session->library) && (value[count] == 0 || value[count] == ':');
}

static void keep_preload(struct state *state, u64 *argument)
{
	if (confined)
		return;
	give_back_environment(state);
	long memory = kernel(SYS_mmap, 0, ENVIRONMENT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (failed(memory))
		return;
	state->environment = (u8 *)memory;
	struct environment *environment = (struct environment *)memory;
	long count = read_list(environment, (const u64 *)*argument);
	long preload = -1, sessions = -1;
	if (count < 0 || !read_heads(environment, (u64)count))
		return;
	for (long i = 0; i < count; i++) {
		if (begins(environment->heads[i], "LD_PRELOAD="))
			preload = i;
		if (begins(environment->heads[i], "IODOCK_SESSION="))
			sessions = i;
	}
	u8 *old = environment->preload + PATH_LIMIT;
	old[11] = 0;
	if (preload >= 0 && !copy_path(old, (const u8 *)environment->list[preload]))
		return;
	/* As it is, or the beginning of another recording, by the program itself. */
	if (sessions >= 0 && preload >= 0)
		return;
	if (preload < 0)
		preload = count++;
	if (sessions < 0)
		sessions = count++;
	environment->list[count] = 0;
	if (!has_library(old + 11)) {
		u8 *at = put_text(put_text(environment->preload, "LD_PRELOAD="), session->library);
		if (old[11])
			put_text(put_text(at, ":"), (const char *)old + 11);
		environment->list[preload] = (u64)environment->preload;
	}
	put_text(put_text(environment->session, "IODOCK_SESSION="), session->session);
	environment->list[sessions] = (u64)environment->session;
	*argument = (u64)environment->list;
}
