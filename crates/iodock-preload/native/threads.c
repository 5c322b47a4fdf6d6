/* Whose state is whose. A part of record.c, kept apart for reading. */

static struct state *slot(u32 index)
{
	return (struct state *)(arena + (u64)index * SLOT_BYTES);
}

static void write_task(struct state *state, u32 level, u64 now)
{
	struct stream *stream = &state->streams[level];
	if (!room(state, level, PLAIN_LIMIT, now))
		return;
	u8 *at = stream->at;
	*at++ = CODE_CONTROL;
	*at++ = CONTROL_TASK;
	at = put_fixed(at, state->tid, 4);
	at = put_fixed(at, state->pid, 4);
	at = put_fixed(at, now, 8);
	stream->last_end = now;
	commit(stream, at);
}

/* struct rusage in words: user and system time in seconds and microseconds, then, of interest, blocks of 512
 * bytes read from and written to devices. */
#define RUSAGE_WORDS 18
#define RUSAGE_READ 11
#define RUSAGE_WRITTEN 12

static u8 *put_times(u8 *at, const u64 *used)
{
	return put(put(at, used[0] * 1000000 + used[1]), used[2] * 1000000 + used[3]);
}

/* What a thread, and with the last one its process, has used when it ends. */
static void write_usage(struct state *state, u32 level, u32 ends_process, u64 now)
{
	u64 used[RUSAGE_WORDS];
	struct stream *stream = &state->streams[level];
	if (confined || failed(kernel2(SYS_getrusage, RUSAGE_THREAD, used)) || !room(state, level, PLAIN_LIMIT, now))
		return;
	u8 *at = stream->at;
	*at++ = CODE_CONTROL;
	*at++ = CONTROL_USAGE;
	at = put_fixed(at, state->tid, 4);
	at = put_fixed(at, state->pid, 4);
	at = put_times(put_fixed(at, now, 8), used);
	ends_process = ends_process && !failed(kernel2(SYS_getrusage, RUSAGE_SELF, used));
	*at++ = (u8)ends_process;
	if (ends_process)
		at = put(put(put_times(at, used), used[RUSAGE_READ]), used[RUSAGE_WRITTEN]);
	stream->last_end = now;
	commit(stream, at);
}

/* A thread's first call. */
static __attribute__((noinline)) struct state *adopt(void)
{
	if (!session || stopped || session->closed)
		return 0;
	if (confined) {
		/* We may not even ask who we are. */
		__atomic_fetch_add(&session->lost_calls, 1, __ATOMIC_RELAXED);
		return 0;
	}
	for (u32 i = 0; i < ARENA_BYTES / SLOT_BYTES; i++) {
		struct state *state = slot(i);
		u32 nobody = 0;
		if (state->taken ||
		    !__atomic_compare_exchange_n(&state->taken, &nobody, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		state->tid = (u32)kernel0(SYS_gettid);
		state->pid = state->owner = (u32)kernel0(SYS_getpid);
		state->depth = 0;
		state->level = 0;
		own = state;
		for (u32 level = 0; level < LEVELS; level++)
			if (state->streams[level].chunk)
				write_task(state, level, ticks() >> TIME_SHIFT);
		return state;
	}
	__atomic_fetch_add(&session->lost_streams, 1, __ATOMIC_RELAXED);
	return 0;
}

static inline struct state *mine(void)
{
	struct state *state = own;
	if (likely(state && state->taken))
		return state;
	return adopt();
}
