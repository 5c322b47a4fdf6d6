/* Whose state is whose. A part of record.c, kept apart for reading. */

/* States lie in blocks, which a fork wipes with all they say. A block begins with a bit for each of its states: is it taken? The first is
 * none, so that the bits and the state that comes next share a page: many processes need no other. (Behind the first block's bits stands
 * what ahead.c has for threads to come, and the count of newcomers.) */
#define BITS_BYTES 64
_Static_assert(AHEAD_AT >= BLOCK_STATES / 8 && MOST_AT >= AHEAD_AT + sizeof(struct ahead) && BITS_BYTES >= NEWCOMERS_AT + 4, "behind each other");
_Static_assert(BITS_BYTES + sizeof(struct state) <= 4096, "on one page");

static struct state *state_in(u64 *taken, u32 number)
{
	return (struct state *)((u8 *)taken + BITS_BYTES + (number - 1) * SLOT_BYTES);
}

/* The highest number of a state that was ever taken: behind it all is zeros, which nobody shall touch only to look. */
static u32 *most_taken(u64 *taken)
{
	return (u32 *)((u8 *)taken + MOST_AT);
}

static void raise_most(u64 *taken, u32 number)
{
	u32 most = __atomic_load_n(most_taken(taken), __ATOMIC_RELAXED);
	while (most < number && !__atomic_compare_exchange_n(most_taken(taken), &most, number, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static u64 *block(u32 index)
{
	u8 *there = __atomic_load_n(&blocks[index], __ATOMIC_ACQUIRE);
	if (likely(there))
		return (u64 *)there;
	long new = kernel(SYS_mmap, 0, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (failed(new))
		return 0;
	if (!failed(kernel3(SYS_madvise, new, BLOCK_BYTES, MADV_WIPEONFORK)) &&
	    __atomic_compare_exchange_n(&blocks[index], &there, (u8 *)new, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return (u64 *)new;
	/* Another thread was faster, or there is none. */
	kernel2(SYS_munmap, new, BLOCK_BYTES);
	return (u64 *)there;
}

/* A state that is nobody's, and ours now; 0 if there is none. */
static struct state *take_state(void)
{
	for (u32 index = 0; index < BLOCKS; index++) {
		u64 *taken = block(index);
		if (!taken)
			return 0;
		/* The first is none. Said at once, and not looked at: a new page that is read before it is written to takes two faults. */
		__atomic_fetch_or(taken, 1, __ATOMIC_RELAXED);
		for (u32 word = 0; word < BLOCK_STATES / 64; word++) {
			/* (A handler's fork may have wiped what was just said.) */
			u64 open = ~__atomic_load_n(&taken[word], __ATOMIC_RELAXED) & (word ? ~0ul : ~1ul);
			for (; open; open &= open - 1) {
				u64 bit = open & -open;
				if (__atomic_fetch_or(&taken[word], bit, __ATOMIC_ACQUIRE) & bit)
					continue;
				u32 number = word * 64 + (u32)__builtin_ctzl(bit);
				raise_most(taken, number);
				struct state *state = state_in(taken, number);
				state->number = index * BLOCK_STATES + number;
				return state;
			}
		}
	}
	return 0;
}

/* A state that stays nobody's. */
static void set_taken(u32 number)
{
	u64 *taken = block(number / BLOCK_STATES);
	number %= BLOCK_STATES;
	if (taken)
		__atomic_fetch_or(&taken[number / 64], 1ul << number % 64, __ATOMIC_RELAXED);
}

static void end_all_pending(struct state *state);
static int is_lent(const struct state *state);
static void settle(struct state *state, u64 now, u64 stack);
static void leave_to_nobody(struct state *state);

/* It is nobody's, with the chunks that it has begun. */
static void free_state(struct state *state)
{
	u32 number = state->number % BLOCK_STATES;
	u64 *taken = block(state->number / BLOCK_STATES);
	state->calling = 0;
	state->taken = NOT_TAKEN;
	__atomic_fetch_and(&taken[number / 64], ~(1ul << number % 64), __ATOMIC_RELEASE);
}

/* A thread ends: its state, and the chunks that it has begun, are the next one's. Not those whose record a handler has left. */
static void give_state_back(struct state *state)
{
	if (state->level)
		abandon(state, 0);
	end_all_pending(state);
	own = 0;
	free_state(state);
}

/* How each of them begins. */
static u8 *put_control(u8 *at, const struct state *state, enum control kind, u64 now)
{
	*at++ = CODE_CONTROL;
	*at++ = (u8)kind;
	return put_fixed(put_fixed(put_fixed(at, state->tid, 4), state->pid, 4), now, 8);
}

static void write_control(struct state *state, u32 level, enum control kind, u64 now)
{
	struct stream *stream = &state->streams[level];
	u8 *begin = room(state, level, PLAIN_LIMIT, now);
	if (!begin)
		return;
	u8 *at = put_control(begin, state, kind, now);
	stream->last_end = now;
	commit(stream, begin, at);
}

/* Whose calls follow in this stream. */
static void write_task(struct state *state, u32 level, u64 now)
{
	state->streams[level].task = task_of(state);
	write_control(state, level, CONTROL_TASK, now);
}

/* struct rusage in words: user and system time in seconds and microseconds, then, of interest, blocks of 512
 * bytes read from and written to devices. */
#define RUSAGE_WORDS 18
#define RUSAGE_READ 11
#define RUSAGE_WRITTEN 12
#define RUSAGE_WAITS 16 /* times that a thread gave up its processor to wait for something */

static u8 *put_times(u8 *at, const u64 *used)
{
	return put(put(at, used[0] * 1000000 + used[1]), used[2] * 1000000 + used[3]);
}

/* What a thread, and with the last one its process, has used when it ends. */
static void write_usage(struct state *state, u32 level, u32 ends_process, u64 now)
{
	u64 used[RUSAGE_WORDS];
	struct stream *stream = &state->streams[level];
	if (failed(kernel2(SYS_getrusage, RUSAGE_THREAD, used)))
		return;
	u8 *begin = room(state, level, PLAIN_LIMIT, now);
	if (!begin)
		return;
	u8 *at = put_times(put_control(begin, state, CONTROL_USAGE, now), used);
	ends_process = ends_process && !failed(kernel2(SYS_getrusage, RUSAGE_SELF, used));
	*at++ = (u8)ends_process;
	if (ends_process)
		at = put(put(put_times(at, used), used[RUSAGE_READ]), used[RUSAGE_WRITTEN]);
	stream->last_end = now;
	commit(stream, begin, at);
}

/* A thread's first call, which begins or ended at `now`: what it is told before must not be later. */
static __attribute__((noinline)) struct state *adopt(u64 now)
{
	if (!session || stopped || session->closed)
		return 0;
	/* A child has what its maker had here, and a new thread nothing. */
	struct state *before = own;
	if (before)
		leave_to_nobody(before);
	struct state *state;
	u32 tid, pid;
	/* (The child of a handler's fork goes on here, and has no such state: it is wiped.) */
	do {
		state = take_state();
		if (!state) {
			__atomic_fetch_add(&session->lost_streams, 1, __ATOMIC_RELAXED);
			return 0;
		}
		pid = (u32)kernel0(SYS_getpid);
		tid = (u32)kernel0(SYS_gettid);
	} while (!*(volatile u32 *)&state->number);
	if (own != before && own->taken) {
		/* A handler came first, and has one by now. */
		if (own != state)
			free_state(state);
		return own;
	}
	state->tid = tid;
	state->pid = state->owner = pid;
	state->depth = 0;
	state->flight = 0;
	state->calling = 0;
	state->taken = TAKEN;
	struct place here;
	u32 level = enter(state, &here);
	/* From here on handlers find it. */
	own = state;
	/* The stub does not ask whose the first stream is. */
	if (state->streams[0].chunk)
		write_task(state, level, now);
	leave(state, level, &here);
	/* (In the child of a handler's fork it has another one.) */
	return own;
}

static __attribute__((noinline)) struct state *adopted_or_settled(struct state *state, u64 now, u64 stack)
{
	if (!state || !state->taken)
		return adopt(now);
	settle(state, now, stack);
	return state;
}

/* The state of who makes a call at `stack` (0: it is not said where). 0: it can't be recorded. */
static inline struct state *mine(u64 now, u64 stack)
{
	struct state *state = own;
	if (likely(state && state->taken == TAKEN))
		return state;
	return adopted_or_settled(state, now, stack);
}
