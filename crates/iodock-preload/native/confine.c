/* A program forbids itself calls: what we need is made ready before. A part of record.c, kept apart for reading. */

/* Calls that may be on their way to forbid something. */
static u32 confining_now;

enum confining { CONFINES_NOTHING, CONFINES_CALLS, CONFINES_CLOCK };

/* What a call of prctl or seccomp would forbid if it succeeded. Libraries ask the kernel what it knows by calls that can't: those
 * forbid nothing. */
static enum confining confining(const struct frame *frame)
{
	/* (As the kernel takes them: of the first argument, flags and the clock's value 32 bits.) */
	u64 what = (u32)frame->arguments[0], value = frame->arguments[1], pointer = frame->arguments[2];
	if (frame->number == SYS_seccomp) {
		/* Strict mode forbids the clock too. */
		if (what == SECCOMP_SET_MODE_STRICT)
			return (u32)value || pointer ? CONFINES_NOTHING : CONFINES_CLOCK;
		return what == SECCOMP_SET_MODE_FILTER && pointer ? CONFINES_CALLS : CONFINES_NOTHING;
	}
	if (what == PR_SET_TSC)
		return (u32)value == PR_TSC_SIGSEGV ? CONFINES_CLOCK : CONFINES_NOTHING;
	if (what != PR_SET_SECCOMP)
		return CONFINES_NOTHING;
	if (value == SECCOMP_MODE_STRICT)
		return CONFINES_CLOCK;
	return value == SECCOMP_MODE_FILTER && pointer ? CONFINES_CALLS : CONFINES_NOTHING;
}

/* Maps where the next chunks will be. */
static void open_window(void)
{
	if (window || confined)
		return;
	/* Where all memory is locked this would be too, every page of it. */
	kernel2(SYS_munlock, session, session->head_bytes);
	u64 next = session->chunks_at + __atomic_load_n(&session->next_chunk, __ATOMIC_RELAXED) * session->chunk_bytes;
	window_at = next;
	window_bytes = WINDOW_MOST;
	/* A program may want the room itself. */
	int is_narrow = is_limited(RLIMIT_AS);
	if (!is_narrow && !descriptors && (window = map_part(0, next, window_bytes)) != 0)
		return;
	window_bytes = is_narrow ? WINDOW_NARROW : WINDOW_LEAST;
	window = descriptors ? open_part(&window, next, window_bytes) : map_part(0, next, window_bytes);
}

/* All of the first stream's chunk. */
static void populate_chunk(struct state *state)
{
	struct place here;
	u32 level = enter(state, &here);
	struct stream *stream = &state->streams[0];
	u8 *limit = stream->limit, *end = (u8 *)stream->chunk + session->chunk_bytes;
	if (level == 0 && limit)
		grow_to(stream, limit, end);
	leave(state, level, &here);
}

#define OTHERS_TRIES 1000

/* Until it makes no calls of ours, or there were too many tries: they are fewer by those that it took. */
static u32 wait_for(const struct state *other, u32 tries)
{
	struct { long seconds, ns; } moment = {0, 500000};
	for (; tries && *(const volatile u16 *)&other->confinement.calling; tries--)
		kernel2(SYS_nanosleep, &moment, 0);
	return tries;
}

/* Other threads may not have seen `confined` yet, and be about to make calls of ours: each is waited for once, all of them for half a second
 * at most. (The barrier is theirs: from here on who begins sees it.) */
static void wait_for_others(const struct state *state)
{
	u32 tries = OTHERS_TRIES;
	kernel2(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0);
	for (u32 index = 0; index < BLOCKS && blocks[index]; index++) {
		u64 *taken = (u64 *)blocks[index];
		for (u32 number = 1; number < BLOCK_STATES; number++)
			if (taken[number / 64] >> number % 64 & 1 && state_in(taken, number) != state)
				tries = wait_for(state_in(taken, number), tries);
	}
	for (; tries && *(volatile u32 *)&adopting; tries--)
		kernel0(SYS_sched_yield);
}

/* The program is about to forbid itself calls: what we need is made ready, and we make none any more. */
static void confine(struct state *state, const struct frame *frame)
{
	enum confining what = confining(frame);
	if (what == CONFINES_NOTHING)
		return;
	struct confinement *before = &state->confinement;
	__atomic_fetch_add(&confining_now, 1, __ATOMIC_RELAXED);
	before->stack = (u64)(frame + 1);
	before->tid = state->tid;
	before->what = (u16)what;
	prepare_lists();
	if (what == CONFINES_CLOCK) {
		stop();
		return;
	}
	populate_chunk(state);
	open_window();
	know_oneself(state);
	if (!confined || !is_lent(state))
		confined_by = state->tid;
	int is_first = !__atomic_fetch_add(&confined, 1, __ATOMIC_SEQ_CST);
	if (is_first && frame->number == SYS_seccomp && frame->arguments[1] & SECCOMP_FILTER_FLAG_TSYNC)
		wait_for_others(state);
}

/* The same where nothing is recorded, or no longer: of what is executed later, and of the clock. (If the call fails it stays so.) */
static void confine_unrecorded(const struct shape *shape, const struct frame *frame)
{
	enum confining what = shape->kind == KIND_CONFINE ? confining(frame) : CONFINES_NOTHING;
	if (what == CONFINES_NOTHING)
		return;
	prepare_lists();
	__atomic_fetch_add(what == CONFINES_CLOCK ? &stopped : &confined, 1, __ATOMIC_SEQ_CST);
}

/* The call has come back. One that failed has forbidden nothing. */
static void confine_after(struct state *state, const struct frame *frame)
{
	struct confinement *before = &state->confinement;
	if (before->stack != (u64)(frame + 1) || before->tid != state->tid)
		return;
	before->stack = 0;
	__atomic_fetch_sub(&confining_now, 1, __ATOMIC_RELAXED);
	if (!failed((s64)frame->number))
		return;
	if (before->what == CONFINES_CLOCK)
		go_on();
	else
		__atomic_fetch_sub(&confined, 1, __ATOMIC_RELAXED);
}
