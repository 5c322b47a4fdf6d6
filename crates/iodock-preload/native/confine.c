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

/* In ticks: until what a thread has said is seen by all, and some tenths of a second. */
#define SEEN_AFTER (1ul << 18)
#define OTHERS_MOST (1ul << 30)

/* Until it is 0. Where it is not by then, for it was left by longjmp, nobody is to wait for it again. */
static void wait_for(u16 *calling, u64 begin)
{
	while (*(volatile u16 *)calling && ticks() - begin < OTHERS_MOST)
		__builtin_ia32_pause();
	*calling = 0;
}

/* Other threads may not have seen `confined` yet, and be about to make calls of ours: each is waited for once. Not by a call, for
 * one of them may be about to forbid it; and none comes of this thread from here on. */
static void wait_for_others(struct state *state)
{
	u64 begin = ticks();
	state->confinement.calling = 0;
	while (ticks() - begin < SEEN_AFTER)
		__builtin_ia32_pause();
	for (u32 index = 0; index < BLOCKS && blocks[index]; index++) {
		u64 *taken = (u64 *)blocks[index];
		for (u32 number = 1; number < BLOCK_STATES; number++)
			if (taken[number / 64] >> number % 64 & 1 && state_in(taken, number)->confinement.calling)
				wait_for(&state_in(taken, number)->confinement.calling, begin);
	}
	wait_for(&newcomers, begin);
}

/* The program is about to forbid itself calls: what we need is made ready, and we make none any more. */
static void confine(struct state *state, const struct frame *frame)
{
	enum confining what = confining(frame);
	if (what == CONFINES_NOTHING)
		return;
	struct confinement *before = &state->confinement;
	__atomic_fetch_add(&confining_now, 1, __ATOMIC_SEQ_CST);
	before->stack = (u64)(frame + 1);
	before->tid = state->tid;
	before->what = (u8)what;
	prepare_lists();
	if (what == CONFINES_CLOCK) {
		stop();
		return;
	}
	populate_chunk(state);
	open_window();
	know_oneself(state);
	before->of_child += is_lent(state);
	__atomic_fetch_add(&confined, 1, __ATOMIC_SEQ_CST);
	if (frame->number == SYS_seccomp && frame->arguments[1] & SECCOMP_FILTER_FLAG_TSYNC)
		wait_for_others(state);
}

static int is_confining(void)
{
	return __atomic_load_n(&confining_now, __ATOMIC_SEQ_CST) != 0;
}

#define STATE_TRIES 3

/* Recording may only have stopped for another thread's call that will fail. Who begins such a call says so before it stops recording, and who
 * ends goes on before it says so. Who has no state yet waits for that. 0: it has stopped for good. */
static struct state *state_to_confine(u64 stack)
{
	if (!is_confining() && __atomic_load_n(&stopped, __ATOMIC_SEQ_CST) && !is_confining())
		return 0;
	if (own && own->taken == TAKEN)
		return own;
	struct state *state = 0;
	u32 tries = STATE_TRIES;
	for (u64 begin = ticks(), now = begin; !state && tries && now - begin < OTHERS_MOST; now = ticks()) {
		__builtin_ia32_pause();
		if (stopped)
			continue;
		state = mine(now >> TIME_SHIFT, stack);
		/* There is none, or recording had just stopped again. */
		tries -= !is_confining();
	}
	return state;
}

/* The same where nothing is recorded, or no longer: of what is executed later, and of the clock. If the call fails it stays so. (A thread
 * that it has stopped for may have no storage for `own`.) */
static void confine_unrecorded(const struct frame *frame)
{
	enum confining what = confining(frame);
	struct state *state = what == CONFINES_NOTHING ? 0 : state_to_confine(stack_of(frame));
	if (state) {
		confine(state, frame);
		return;
	}
	if (what == CONFINES_NOTHING)
		return;
	prepare_lists();
	__atomic_fetch_add(what == CONFINES_CLOCK ? &stopped : &confined, 1, __ATOMIC_SEQ_CST);
}

static void undo(struct confinement *before)
{
	if (before->what == CONFINES_CLOCK) {
		go_on();
		return;
	}
	before->of_child -= before->of_child > 0;
	__atomic_fetch_sub(&confined, 1, __ATOMIC_RELAXED);
}

/* The call has come back. One that failed has forbidden nothing. */
static void confine_after(struct state *state, const struct frame *frame)
{
	struct confinement *before = &state->confinement;
	if (before->stack != (u64)(frame + 1) || before->tid != state->tid)
		return;
	before->stack = 0;
	if (failed((s64)frame->number))
		undo(before);
	__atomic_fetch_sub(&confining_now, 1, __ATOMIC_SEQ_CST);
}
