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
