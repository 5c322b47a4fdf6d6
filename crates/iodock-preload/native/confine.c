/* A program forbids itself calls: what we need is made ready before. A part of record.c, kept apart for reading. */

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

/* In ticks: until what a thread has said is seen by all, and 10 to 20 s: where a hundred threads share two processors with other programs, each
 * waits up to 4 s for its turn, and who does not wait for it has it killed by the filter. */
#define SEEN_AFTER (1ul << 18)
#define OTHERS_MOST (1ul << 35)
#define ONE_MOST (1ul << 30) /* for one thread's next step */

/* Maps where the next chunks will be: as much as there is room for. */
static void map_window(void)
{
	static const u64 sizes[] = {WINDOW_MOST, WINDOW_LEAST, WINDOW_NARROW};
	/* Where all memory is locked this would be too, every page of it. */
	kernel2(SYS_munlock, session, session->head_bytes);
	u64 next = session->chunks_at + __atomic_load_n(&session->next_chunk, __ATOMIC_RELAXED) * session->chunk_bytes;
	u8 *mapped = 0;
	/* A program may want the room itself. */
	for (u32 i = is_limited(RLIMIT_AS) || is_filled_at_once() ? 2 : descriptors ? 1 : 0; i < 3 && !mapped; i++) {
		window_bytes = sizes[i];
		mapped = descriptors ? open_part(&mapped, next, window_bytes) : map_part(0, next, window_bytes);
	}
	window_at = next;
	__atomic_store_n(&window, mapped, __ATOMIC_RELEASE);
}

enum window { NO_WINDOW, IS_BEING_OPENED, IS_OPEN };
static u32 window_is;

/* Once in a process, by whoever is first; others wait for it. (Not for long: it may be who this handler interrupts.) */
static void open_window(void)
{
	u32 none = NO_WINDOW;
	if (__atomic_compare_exchange_n(&window_is, &none, IS_BEING_OPENED, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		map_window();
		__atomic_store_n(&window_is, IS_OPEN, __ATOMIC_RELEASE);
	}
	for (u64 begin = ticks(); __atomic_load_n(&window_is, __ATOMIC_ACQUIRE) != IS_OPEN && ticks() - begin < ONE_MOST;)
		__builtin_ia32_pause();
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

/* Is a thread in another stretch than it was in `then`, or in none? */
static int has_gone_on(const struct confinement *one, u16 then)
{
	u16 now = *(const volatile u16 *)&one->calling;
	return !(now & STRETCHES) || (then ^ now) > STRETCHES;
}

static int is_taken(const u64 *taken, u32 number)
{
	return taken[number / 64] >> number % 64 & 1;
}

/* Until no thread of this block is in the stretch that it is in now. One that is for OTHERS_MOST was left by longjmp, as far as anybody can tell:
 * nobody is to wait for it again. */
static void wait_for_block(u64 *taken, u64 begin)
{
	u16 then[BLOCK_STATES];
	for (u32 number = 1; number < BLOCK_STATES; number++)
		then[number] = is_taken(taken, number) ? state_in(taken, number)->confinement.calling : 0;
	for (u32 number = 1; number < BLOCK_STATES; number++) {
		struct confinement *one = &state_in(taken, number)->confinement;
		while (then[number] & STRETCHES && !has_gone_on(one, then[number]) && ticks() - begin < OTHERS_MOST)
			__builtin_ia32_pause();
		if (then[number] & STRETCHES && !has_gone_on(one, then[number]))
			one->calling &= (u16)~STRETCHES;
	}
}

/* Other threads may not have seen `all_filters` yet, and be about to make calls of ours: each is waited for once. Not by a call, for
 * one of them may be about to forbid it; and none comes of this thread from here on. */
static void wait_for_others(struct state *state)
{
	u64 begin = ticks();
	int is_newcomer = !(state->confinement.calling & STRETCHES);
	state->confinement.calling &= (u16)~STRETCHES;
	if (is_newcomer)
		state->confinement.is_taken_off = 1, is_no_newcomer();
	while (ticks() - begin < SEEN_AFTER)
		__builtin_ia32_pause();
	for (u32 index = 0; index < BLOCKS && blocks[index]; index++)
		wait_for_block((u64 *)blocks[index], begin);
	while (__atomic_load_n(&newcomers, __ATOMIC_ACQUIRE))
		if (ticks() - begin < OTHERS_MOST)
			__builtin_ia32_pause();
		else
			newcomers = 0;
}

/* The clock may be forbidden this thread: its calls have no times. */
static void stop_clock(struct state *state)
{
	__atomic_fetch_add(&passing_stops, 1, __ATOMIC_SEQ_CST);
	stop();
	state->confinement.was_taken = (u8)state->taken & 3;
	barrier();
	state->taken = WITHOUT_CLOCK;
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
	before->what = (u8)what & 3;
	if (what == CONFINES_CLOCK) {
		stop_clock(state);
		return;
	}
	if (!is_confined()) {
		map_copies();
		populate_chunk(state);
		open_window();
		/* (What libc knows of a child of vfork is its parent's number.) */
		if (!is_lent(state))
			know_oneself(state);
	}
	had_filters = 1;
	/* (A child of vfork has one thread, in its parent's memory.) */
	before->is_for_all = !is_lent(state) && frame->number == SYS_seccomp && frame->arguments[1] & SECCOMP_FILTER_FLAG_TSYNC;
	if (before->is_for_all) {
		__atomic_fetch_add(&all_filters, 1, __ATOMIC_SEQ_CST);
		wait_for_others(state);
		return;
	}
	own_filters++;
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
	if (own && own->taken == WITHOUT_CLOCK)
		return 0;
	struct state *state = 0;
	u32 tries = STATE_TRIES;
	for (u64 begin = ticks(), now = begin; !state && tries && now - begin < ONE_MOST; now = ticks()) {
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
	map_copies();
	had_filters |= what == CONFINES_CALLS;
	__atomic_fetch_add(what == CONFINES_CLOCK ? &stopped : &all_filters, 1, __ATOMIC_SEQ_CST);
}

static void undo(struct state *state)
{
	struct confinement *before = &state->confinement;
	if (before->what == CONFINES_CLOCK) {
		state->taken = before->was_taken;
		go_on();
	} else if (before->is_for_all) {
		__atomic_fetch_sub(&all_filters, 1, __ATOMIC_RELAXED);
	} else {
		own_filters -= own_filters > 0;
	}
}

/* (A filter for all that one thread can't take is refused by that thread's number, unless a descriptor is asked for.) */
static int is_refused(const struct confinement *before, const struct frame *frame)
{
	s64 result = (s64)frame->number;
	return failed(result) || (before->is_for_all && result > 0 && !(frame->arguments[1] & SECCOMP_FILTER_FLAG_NEW_LISTENER));
}

static void confining_is_over(struct confinement *before)
{
	before->stack = 0;
	/* (A fork in the midst of it may have said so before.) */
	if (before->what == CONFINES_CLOCK && passing_stops)
		__atomic_fetch_sub(&passing_stops, 1, __ATOMIC_SEQ_CST);
	if (confining_now)
		__atomic_fetch_sub(&confining_now, 1, __ATOMIC_SEQ_CST);
}

/* The call has come back. One that failed has forbidden nothing. */
static void confine_after(struct state *state, const struct frame *frame)
{
	struct confinement *before = &state->confinement;
	if (before->stack != (u64)(frame + 1) || before->tid != state->tid)
		return;
	if (is_refused(before, frame))
		undo(state);
	confining_is_over(before);
}
